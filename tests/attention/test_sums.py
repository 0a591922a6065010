"""Sums over some of the keys, put together, against sums of the weights."""

import numpy as np
import pytest

from sklearn_attention.attention import attention_sums
from sklearn_attention.kernels._base import as_kernel


@pytest.mark.parametrize("kernel", ["gaussian", "silverman"])
@pytest.mark.parametrize("far_first", [False, True])
def test_parts_of_very_different_size_add_up(kernel, far_first):
    """All their sums do; that of the absolute weights too, by which an average is trusted."""
    rng = np.random.default_rng(0)
    near, far = rng.uniform(-1, 1, (20, 2)), rng.uniform(9, 11, (30, 2))
    parts = [(keys, rng.normal(size=(len(keys), 2))) for keys in (near, far)]
    parts = parts[::-1] if far_first else parts
    queries = rng.uniform(-1, 1, (5, 2))
    one, two = (attention_sums(queries, *part, kernel) for part in parts)
    merged = one + two
    keys, values = map(np.concatenate, zip(*parts, strict=True))
    weights = as_kernel(kernel)(queries, keys)
    size = np.exp(merged.shift)
    np.testing.assert_allclose(merged.sums[0, 1:] * size, (weights @ values).T, rtol=1e-9)
    np.testing.assert_allclose(merged.sums[0, 0] * size, weights.sum(axis=1), rtol=1e-9)
    if kernel == "silverman":
        mass = 2.0**-26 * np.abs(weights).sum(axis=1)
        np.testing.assert_allclose(merged.error_bound * size, mass, rtol=1e-9)
