"""Coverage is the share of what lies within intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_attention import KernelForecaster, NadarayaWatsonRegressor
from sklearn_attention.inspection import CoverageDisplay


def test_coverage_counts_what_lies_within(curve):
    X, y = curve
    model = NadarayaWatsonRegressor(bandwidth=0.02).fit(X[::2], y[::2])
    display = CoverageDisplay.from_estimator(model, X[1::2], y[1::2], coverage=[0.5, 0.9])
    lower, upper = model.predict_interval(X[1::2], 0.5).T
    assert display.actual[0] == np.mean((y[1::2] >= lower) & (y[1::2] <= upper))
    assert_allclose(display.ax_.lines[-1].get_ydata(), display.actual)
    assert display.n_samples == 60
    assert len(display.ax_.collections) == 1
    with pytest.raises(ValueError, match=r"intervals has shape \(1, 60, 3\)"):
        CoverageDisplay.from_predictions(y[1::2], np.zeros((1, 60, 3)), [0.5])


def test_coverage_of_a_backtest(series):
    model, series = KernelForecaster(6, lookback=12), series[:80]
    display = CoverageDisplay.from_estimator(model, series, coverage=[0.5, 0.9])
    table = model.backtest(series, coverage=[0.5, 0.9])
    within = table["actual"].between(table["lower_50"], table["upper_50"])
    assert display.actual[0] == within.mean()
    assert display.n_samples is None


def test_one_output_is_counted(curve):
    with pytest.raises(ValueError, match=r"y has shape \(60, 2\): pass one output"):
        CoverageDisplay.from_predictions(np.zeros((60, 2)), np.zeros((1, 60, 2)), [0.5])
