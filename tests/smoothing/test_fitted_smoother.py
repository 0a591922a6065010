"""The smoother behind an estimator: against sums over its rows, written out."""

import numpy as np
import pytest

from sklearn_attention import (
    AdaptiveBandwidth,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels._numerics import ROUNDED_UP


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
