"""Quantiles behind intervals, against sorting everything."""

import numpy as np
import pytest
from smoothing_cases import jackknife_plus

from sklearn_attention.smoothing._inference import jackknife_intervals, weighted_quantiles


@pytest.mark.parametrize("moved", [0.0, 1e-9, 0.1, 10.0])
def test_intervals_by_sorting(moved):
    rng = np.random.default_rng(0)
    for n in (3, 20, 400):
        sizes = np.abs(rng.normal(size=(n, 2))).round(2)  # with ties
        sizes[: n // 5] *= np.inf if moved == 0.1 else 1.0
        values, scale = rng.normal(size=(5, 2)), rng.uniform(0.1, 3, size=(5, 2))
        left_out = values[:, None] + moved * rng.normal(size=(5, n, 2))
        for coverage in (0.02, 0.5, 0.77, 0.9):
            found = jackknife_intervals(left_out, sizes, scale, coverage)
            for q, output in np.ndindex(5, 2):
                errors = scale[q, output] * sizes[:, output]
                expected = jackknife_plus(left_out[q, :, output], errors, coverage)
                np.testing.assert_allclose(found[q, :, output], expected, rtol=1e-12)


def test_weighted_quantiles_by_walking_through_the_values():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=30).round(1), rng.integers(0, 3, size=(4, 30)) / 2.0
    weights /= weights.sum(axis=1, keepdims=True)
    asked = [0.1, 0.5, 0.9]
    found = weighted_quantiles(values, weights, asked)
    assert found.shape == (4, 3)
    for row, k in np.ndindex(4, 3):
        reached = 0.0
        for i in np.argsort(values, kind="stable"):
            reached += weights[row, i]
            if reached >= asked[k] * (1 - 1e-9):
                break
        assert found[row, k] == values[i]
