"""Windows of many errors, and how large errors are in them."""

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.smoothing._local_errors import of_sizes, widened


@pytest.mark.parametrize("bandwidth", [0.1, 5.0, AdaptiveBandwidth(4)])
def test_windows_are_widened_until_they_have_many_rows(data, bandwidth):
    X, y = data
    smoother = LocalPolynomialRegressor(bandwidth=bandwidth).fit(X, y).smoother_
    wide = widened(smoother, 10)
    for factor in 2.0 ** np.arange(0, 10, 0.5):
        if np.trace(smoother.replace(factor=factor).weights(X)) <= len(X) / 10:
            break
    assert wide.factor == factor
    assert wide.empty == "nearest"


def test_sizes_are_large_where_errors_are():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 120)
    y = np.where(x < 0.5, 0.05, 1.0) * rng.normal(size=120)
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(x[:, None], y)
    errors = np.abs(model.loo_residuals_)
    around, there = of_sizes(model.smoother_, errors[:, None])
    here = around.predict(np.array([[0.1], [0.9]]))
    assert here[1] > 5 * here[0] > 0
    np.testing.assert_allclose(there.mean(), errors.mean(), rtol=0.2)
    # A row's own error has no say in its own size.
    weights = around.weights(x[:, None])
    np.fill_diagonal(weights, 0)
    expected = weights @ errors / weights.sum(axis=1)
    np.testing.assert_allclose(there[:, 0], expected, rtol=1e-7)


def test_rows_count_alike_whatever_their_weights(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.1, 10, 40) * (np.arange(40) > 5)
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y, weight)
    kept = NadarayaWatsonRegressor(bandwidth=0.2).fit(X[6:], y[6:])
    weighted, alike = (each.smoother_ for each in (model, kept))
    assert widened(weighted, 10).factor == widened(alike, 10).factor
    found = widened(weighted, 10).weights(X[:3])
    np.testing.assert_allclose(found[:, 6:], widened(alike, 10).weights(X[:3]), rtol=1e-9)
    np.testing.assert_array_equal(found[:, :6], 0)
