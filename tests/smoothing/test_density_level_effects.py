"""Effects of new levels on the target of a conditional density."""

import numpy as np
import pytest
from scipy.stats import norm, t
from smoothing_cases import frame_of

from sklearn_attention import ConditionalKernelDensity


@pytest.mark.parametrize(("degree", "kernel"), [(0, "gaussian"), (1, "epanechnikov")])
def test_the_kernel_of_the_target_is_wider_at_a_new_level(degree, kernel):
    """By what errors of rows without their level exceed the variance of the density there."""
    X, y = frame_of(30)
    y = y + 3.0 * (X["color"] == "b")
    model = ConditionalKernelDensity(
        bandwidth=[0.5, 0.1, 0.3], degree=degree, target_kernel=kernel, target_bandwidth=0.7
    ).fit(X, y)
    spread_values, keys = model.residuals_ if degree else model.values_, model.keys_
    squared_errors, variances = [], []
    for code in np.unique(keys[:, 1]):
        own, others = keys[:, 1] == code, keys[:, 1] != code
        new = keys[own].copy()
        new[:, 1] = -1
        mean = model._line.take(others).predict(new) if degree else np.zeros(own.sum())
        weights = model._averages.take(others).weights(new)
        squares = []
        for center, w, target in zip(mean, weights, y[own], strict=True):
            squares.append((target - center - w @ spread_values[others]) ** 2)
        squared_errors.append(np.mean(squares))
        for w in model._averages.weights(new):
            variance = w @ (spread_values - w @ spread_values) ** 2
            variances.append(variance + (0.7 * model.target_kernel_.spread) ** 2)
    excess = np.mean(squared_errors) - np.mean(variances)
    effect = np.sqrt(excess) * t.ppf(0.95, 2) / norm.ppf(0.95)
    query = X[:1].assign(color="new")
    ((wide, _),) = model._mixtures(model._read_rows(query))
    expected = np.hypot(0.7, effect / model.target_kernel_.spread)
    assert wide.bandwidth == pytest.approx(expected, rel=1e-9)
    ((known, _),) = model._mixtures(model._read_rows(X[:1]))
    assert known.bandwidth == 0.7
