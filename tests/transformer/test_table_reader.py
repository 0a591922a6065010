"""Tables, as encoders read them."""

import numpy as np
import pytest

from sklearn_attention._levels import MISSING, UNSEEN
from sklearn_attention.transformer._table_reader import N_PIECES, feature_rows, learn_scales


def test_places_among_quantiles():
    X = np.random.default_rng(0).normal(size=(500, 2)) ** 3
    X[::7, 1] = np.nan
    scales = learn_scales(X, [0, 1])
    (z, u, codes), _ = feature_rows(X, [None, None], scales).batch(np.arange(500))
    assert codes.shape == (500, 0)
    for j in range(2):
        x = X[~np.isnan(X[:, j]), j]
        knots = np.quantile(x, np.linspace(0, 1, N_PIECES + 1))
        np.testing.assert_allclose(scales["knots"][j], knots)
        standard = np.clip((x - x.mean()) / x.std(), -5, 5)
        np.testing.assert_allclose(z[~np.isnan(X[:, j]), j], standard, rtol=1e-5)
        for value, place in zip(x[:50], u[~np.isnan(X[:, j]), j][:50], strict=True):
            k = min(np.searchsorted(knots, value, side="right") - 1, N_PIECES - 1)
            expected = k + (value - knots[k]) / (knots[k + 1] - knots[k])
            assert place == pytest.approx(expected, abs=1e-4)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(X))
    np.testing.assert_array_equal(np.isnan(u), np.isnan(X))


def test_values_beyond_those_seen():
    X = np.array([[0.0], [1.0], [2.0]])
    rows = feature_rows(np.array([[-1e300], [1e300]]), [None], learn_scales(X, [0]))
    (z, u, _), _ = rows.batch(np.arange(2))
    np.testing.assert_array_equal(z, [[-5], [5]])
    np.testing.assert_array_equal(u[:, 0], [0, N_PIECES])


def test_levels_beyond_those_known_are_missing():
    X = np.array([[0.0, 1.0], [2.0, UNSEEN], [1.0, MISSING]])
    (_, _, codes), _ = feature_rows(X, [2, 2], learn_scales(X, [])).batch(np.arange(3))
    np.testing.assert_array_equal(codes, [[0, 1], [-1, -1], [1, -1]])
