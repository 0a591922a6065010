"""The smoother behind an estimator: against sums over its rows, written out."""

import pickle

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.attention import _smoother
from sklearn_attention.kernels._numerics import ROUNDED_UP


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_factor_widens_windows_of_any_kind(data, adaptive):
    X, y = data
    bandwidth = AdaptiveBandwidth(12) if adaptive else 0.4
    smoother = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, y).smoother_
    scale = smoother.bandwidth_factors(X[:6])
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


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("columns", [[0], [0, 1]])
def test_predictions_read_the_rows_once(data, degree, columns, monkeypatch):
    X, y = data[0][:, columns], data[1]
    model = LocalPolynomialRegressor(bandwidth=0.4, degree=degree).fit(X, y)
    stored = len(pickle.dumps(model.smoother_))
    expected, n_read, read_keys = model.predict(X), [], _smoother.read_keys

    def count(*args, **options):
        n_read.append(1)
        return read_keys(*args, **options)

    monkeypatch.setattr(_smoother, "read_keys", count)
    alone = np.concatenate([model.predict(row[None]) for row in X])
    np.testing.assert_allclose(alone, expected, rtol=1e-9)
    assert not n_read
    # What is kept is not stored, nor sent to workers.
    assert len(pickle.dumps(model.smoother_)) == stored
    # More rows than are read at once are read anew, chunk by chunk.
    monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", len(X) // 2)
    many = LocalPolynomialRegressor(bandwidth=0.4, degree=degree).fit(X, y)
    n_read.clear()
    np.testing.assert_allclose(many.predict(X[:1]), expected[:1], rtol=1e-9)
    assert len(n_read) > 1
