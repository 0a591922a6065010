"""A bandwidth search is drawn with its choice, and other bandwidths feature by feature."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from sklearn_attention import LocalPolynomialCV
from sklearn_attention.inspection import BandwidthDisplay


def test_a_bandwidth_search_is_drawn_with_its_choice(smoother):
    display = BandwidthDisplay.from_estimator(smoother)
    tried = smoother.bandwidth_search_
    order = np.argsort(tried["bandwidth"][:, 0])
    curve, chosen = display.ax_.lines
    assert_allclose(curve.get_xdata(), tried["bandwidth"][order, 0])
    assert_allclose(curve.get_ydata(), tried["criterion"][order])
    assert chosen.get_xdata()[0] == smoother.bandwidth_[0]
    low, high = display.flat_
    assert low <= smoother.bandwidth_[0] <= high
    near = tried["criterion"] <= 1.01 * tried["criterion"].min()
    assert high == tried["bandwidth"][near].max()


def test_a_search_over_a_list_has_a_curve_for_each_kernel_and_degree(curve):
    model = LocalPolynomialCV(["gaussian", "tricube"], degrees=(0, 1)).fit(*curve)
    display = BandwidthDisplay.from_estimator(model)
    names = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert len(names) == 4
    assert names[1] == "gaussian, degree 1"
    lowest = min(line.get_ydata().min() for line in display.ax_.lines[:4])
    assert_allclose(lowest, -model.best_score_)


def test_bandwidths_of_features_have_a_relevance_each(kernel_attention, averages, table):
    display = BandwidthDisplay.from_estimator(kernel_attention)
    relevance = kernel_attention.feature_relevance_.to_numpy()
    order = np.argsort(-relevance)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [["size", "age", "noise"][j] for j in order]
    assert_allclose([bar.get_width() for bar in display.ax_.patches], relevance[order])
    assert_allclose(display.bandwidth[names], kernel_attention.bandwidth_[order])
    searched = BandwidthDisplay.from_estimator(averages)
    assert_allclose(searched.relevance, averages.relevance_)
    by_rule = clone(averages).set_params(bandwidth="scott").fit(*table)
    display = BandwidthDisplay.from_estimator(by_rule)
    assert_allclose(display.relevance * by_rule.bandwidth_, by_rule.keys_.std(axis=0))
    assert display.search is None


@pytest.mark.parametrize("measure", ["aicc", "gcv"])
def test_the_shaded_bandwidths_do_not_depend_on_the_unit_of_the_targets(measure):
    tried, errors = np.arange(1.0, 6.0), np.array([1.02, 1.009, 1.0, 1.008, 1.5])
    for unit in (1e-20, 1.0, 1e20):
        # Akaike's criterion is the logarithm of an error.
        criterion = np.log(unit * errors) if measure == "aicc" else unit * errors
        search = pd.DataFrame({"bandwidth": tried, "criterion": criterion, "name": measure})
        display = BandwidthDisplay(pd.Series([3.0], ["x"]), measure, search=search)
        assert display.plot().flat_ == (2.0, 4.0)
