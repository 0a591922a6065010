"""The smoother behind an estimator: against sums over its rows, written out."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from smoothing_cases import CASES, refit_without, take

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels._numerics import ROUNDED_UP


@pytest.mark.parametrize("case", CASES[::3], ids=[case[0] for case in CASES[::3]])
def test_effects_make_the_predictions(case):
    _, model, X, y, weight = case
    model = clone(model).fit(X, y, weight)
    smoother, queries = model.smoother_, model.keys_[:5]
    np.testing.assert_allclose(
        smoother.effects(queries) @ y, smoother.predict(queries), rtol=0, atol=1e-9
    )
    averages = smoother.weights(queries) @ y
    np.testing.assert_allclose(smoother.average(queries, y), averages, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["weights-0", "outputs-1", "knn-0", "knn-1"])
def test_left_out_is_what_models_without_a_row_predict(kind):
    ((_, model, X, y, weight),) = (case for case in CASES if case[0] == kind)
    model = clone(model).fit(X, y, weight)
    here, effects, left_out = model.smoother_.left_out(X[:4])
    np.testing.assert_allclose(effects, model.smoother_matrix(X[:4]), atol=1e-9)
    np.testing.assert_allclose(here.reshape(model.predict(X[:4]).shape), model.predict(X[:4]))
    for i in (0, 7):
        expected = refit_without(model, X, y, i, weight).predict(take(X, range(4)))
        found = left_out[:, i].reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_factor_widens_windows_of_any_kind(data, adaptive):
    X, y = data
    bandwidth = AdaptiveBandwidth(12) if adaptive else 0.4
    smoother = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y).smoother_
    scale = smoother.scale(X[:6])
    assert (scale is not None) == adaptive
    distances = np.linalg.norm((X[:6, None] - X) / smoother.bandwidth, axis=2)
    if adaptive:
        expected = ROUNDED_UP * np.sort(distances, axis=1)[:, 11]
        np.testing.assert_allclose(scale, expected, rtol=1e-12)
        distances = distances / scale[:, None]
    weights = np.exp(-((distances / 3) ** 2) / 2)
    weights /= weights.sum(axis=1, keepdims=True)
    wide = smoother.replace(factor=3.0)
    np.testing.assert_allclose(wide.weights(X[:6]), weights, rtol=1e-9)


def test_some_of_the_rows(data):
    X, y = data
    weight = np.arange(40.0)
    model = LocalPolynomialRegressor(bandwidth=0.5).fit(X, y, weight)
    part = LocalPolynomialRegressor(bandwidth=0.5).fit(X[5:], y[5:], weight[5:])
    smoother = model.smoother_
    np.testing.assert_allclose(smoother.take(weight > 4).predict(X), part.predict(X))
    np.testing.assert_array_equal(smoother.unweighted.key_weights, weight > 0)
    whole = LocalPolynomialRegressor(bandwidth=0.5).fit(X, y).smoother_
    assert whole.take(slice(5)).key_weights is None
    assert whole.unweighted is whole


def test_nothing_computed_goes_to_another_smoother(data):
    smoother = LocalPolynomialRegressor(bandwidth=0.5).fit(*data).smoother_
    assert smoother.training is smoother.training
    assert "training" not in vars(smoother.replace(factor=2.0))


def test_an_estimator_that_is_not_fitted_has_none():
    with pytest.raises(NotFittedError):
        NadarayaWatsonRegressor().summary()
