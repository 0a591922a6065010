"""Predictions of the training rows: once for all, and in windows that another one measured."""

import numpy as np
import pytest
from sklearn.base import clone
from smoothing_cases import CASES

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.smoothing._training_rows import predict_rows


@pytest.mark.parametrize("case", CASES[::3], ids=[case[0] for case in CASES[::3]])
def test_rows_are_predicted_with_and_without_themselves(case):
    _, model, X, y, weight = case
    smoother = clone(model).fit(X, y, weight).smoother_
    found = smoother.training
    matrix, without = smoother.effects(smoother.keys), smoother.left_out(smoother.keys)[-1]
    kept = smoother.counts > 0
    np.testing.assert_allclose(found.fitted, matrix @ smoother.table, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.leverage, np.diag(matrix) * kept, rtol=0, atol=1e-9)
    own = without[np.arange(len(y)), np.arange(len(y))]
    np.testing.assert_allclose(found.left_out[kept], own[kept], rtol=0, atol=1e-8)
    errors = smoother.errors.left_out[kept]
    np.testing.assert_allclose(errors, (smoother.table - own)[kept], rtol=0, atol=1e-8)


def test_they_are_computed_once(data):
    model = LocalPolynomialRegressor(bandwidth=0.5).fit(*data)
    found = [model.smoother_.training for _ in range(2)]
    assert found[0] is found[1]


def test_another_smoother_may_measure_the_windows(data):
    X, y = data
    model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(X, y)
    measured = model.smoother_
    flat = X.copy()
    flat[:, 1] = 0
    found = predict_rows(measured.replace(keys=flat), measured)
    scale = measured.scale(X)[:, None]
    distances = np.abs(flat[:, None, 0] - flat[:, 0]) / measured.bandwidth[0] / scale
    weights = np.exp(-(distances**2) / 2)
    expected = weights @ y / weights.sum(axis=1)
    np.testing.assert_allclose(found.fitted[:, 0], expected, rtol=1e-9)


def test_an_error_that_is_not_known_is_refused():
    x = np.array([0.0, 0.1, 0.2, 9.0])[:, None]
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.5, empty="nan").fit(x, x[:, 0])
    errors = model.smoother_.errors.left_out[:, 0]
    np.testing.assert_array_equal(np.isnan(errors), [False, False, False, True])
    with pytest.raises(ValueError, match=r"this needs every.*1 of 4 training rows.*'nan'"):
        model.smoother_.errors.need_all("this")
