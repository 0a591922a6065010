"""The polynomial of one member: its own rows, in windows that another smoother measures."""

import numpy as np

from sklearn_attention import (
    AdaptiveBandwidth,
    NadarayaWatsonRegressor,
)
from sklearn_attention.smoothing._polynomial import predict_training_rows


def test_another_smoother_may_measure_the_windows(data):
    X, y = data
    model = NadarayaWatsonRegressor(bandwidth=AdaptiveBandwidth(9)).fit(X, y)
    measured = model.smoother_
    flat = X.copy()
    flat[:, 1] = 0
    found = predict_training_rows(measured.replace(keys=flat), measured)
    scale = measured.bandwidth_factors(X)[:, None]
    distances = np.abs(flat[:, None, 0] - flat[:, 0]) / measured.bandwidth[0] / scale
    weights = np.exp(-(distances**2) / 2)
    expected = weights @ y / weights.sum(axis=1)
    np.testing.assert_allclose(found.fitted[:, 0], expected, rtol=1e-9)
