"""Kernels of all heads at once against one pair of rows at a time."""

import numpy as np
import pytest
import torch
from torch_weights import tokens

from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.nn import _compare as module

# Of the distance, with a kink and without; the dot product; heads one after the other.
KERNELS = ["gaussian", "exponential", "scaled_dot_product", "laplacian", "polynomial"]


def make_rows(dtype=torch.float64):
    return tokens(2, 3, 4, 5, dtype=dtype), tokens(2, 3, 6, 5, seed=1, dtype=dtype)


def each_pair(function, queries, keys):
    """Values of ``function(query, key)`` for the rows of each head, in double precision."""
    found = np.empty((*queries.shape[:3], keys.shape[2]))
    for b, h, t, s in np.ndindex(found.shape):
        found[b, h, t, s] = function(queries[b, h, t].double(), keys[b, h, s].double())
    return found


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_every_head_by_itself(name, logarithm):
    kernel, rows = as_kernel(name), make_rows()
    of_one = kernel.log if logarithm else kernel
    expected = each_pair(lambda q, k: of_one(q[None], k[None])[0, 0], *rows)
    found = module.compare(kernel, *rows, logarithm=logarithm)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_no_heads(name):
    queries, keys = (x[:0] for x in make_rows())
    assert module.compare(as_kernel(name), queries, keys, logarithm=True).shape == (0, 3, 4, 6)


@pytest.mark.parametrize("name", KERNELS)
def test_half_precision_is_compared_in_single(name):
    half = [x.to(torch.bfloat16) for x in make_rows()]
    single = [x.float() for x in half]
    expected = module.compare(as_kernel(name), *single, logarithm=True)
    assert expected.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        for rows in (half, single):
            found = module.compare(as_kernel(name), *rows, logarithm=True)
            assert torch.equal(found, expected)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_squared_distances(dtype, shift, exact):
    rows = [x + shift for x in make_rows(dtype)]
    expected = each_pair(lambda q, k: (q - k).square().sum(), *rows)
    found = module.squared_distances(*rows, exact=exact)
    assert found.dtype == dtype
    assert (found >= 0).all()
    np.testing.assert_allclose(found, expected, rtol=2e-6 if dtype == torch.float32 else 1e-9)


@pytest.mark.parametrize(
    ("dtype", "near", "far"), [(torch.float32, 1.0, 1e3), (torch.float64, 1e2, 1e4)], ids=str
)
def test_distances_are_expanded_near_the_origin_alone(dtype, near, far):
    queries, keys = make_rows(dtype)
    assert module.expands_accurately(queries + near, keys + near)
    assert not module.expands_accurately(queries + far, keys)
    assert not module.expands_accurately(queries, keys + far)
    assert module.expands_accurately(queries[:, :, :0] + far, keys + far)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_precision_is_single_at_least(dtype, expected):
    assert module.at_least_single(torch.ones(2, dtype=dtype)).dtype == expected
