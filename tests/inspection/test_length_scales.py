"""Relevance and length-scales, feature by feature."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.base import clone

from sklearn_attention.inspection import LengthScaleDisplay


def test_length_scales_of_kernel_attention_and_smoothers(kernel_attention, averages, table):
    display = LengthScaleDisplay.from_estimator(kernel_attention, most=2)
    order = np.argsort(-kernel_attention.feature_relevance_)[:2]
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [["size", "age", "noise"][j] for j in order]
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert_allclose(widths, kernel_attention.feature_relevance_[order])
    other = LengthScaleDisplay.from_estimator(averages)
    assert_allclose(other.relevance, averages.relevance_)
    by_rule = clone(averages).set_params(bandwidth="scott").fit(*table)
    other = LengthScaleDisplay.from_estimator(by_rule)
    assert_allclose(other.relevance * by_rule.bandwidth_, by_rule.keys_.std(axis=0))
