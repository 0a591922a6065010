"""Attention by features against all pairs, and what must not depend on anything else."""

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sklearn_attention.kernels import PositiveFeatures, TrigonometricFeatures
from sklearn_attention.nn import MultiHeadAttention, attention
from sklearn_attention.nn import _linear_attention as module

KERNELS = [
    PositiveFeatures(32, kernel="gaussian", orthogonal=False),
    PositiveFeatures(32, center=[0.2, 0.0, -0.3], covariance=np.diag([2.0, 1.0, 0.0]) + 0.2),
    TrigonometricFeatures(32),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
each_causal = pytest.mark.parametrize("causal", [False, True])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Several chunks in short sequences, the last one not full."""
    monkeypatch.setattr(module, "_CHUNK", 4)


def make_heads(n_queries=11, n_keys=11, d=3, *, dtype=torch.float64, spread=0.7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(n_queries, d), (n_keys, d), (n_keys, 2)]
    heads = [torch.randn(2, 3, *s, dtype=torch.float64, generator=generator) for s in shapes]
    return [(spread * x).to(dtype) if i < 2 else x.to(dtype) for i, x in enumerate(heads)]


def slow_average(kernel, queries, keys, values, allowed):
    """Averages from the printed features of each row, query by query, in Python floats."""
    phi = [kernel.feature_form(x) for x in (queries, keys)]
    phi = [
        torch.exp(f.exponents + f.offsets) * (1 if f.factors is None else f.factors)
        for f in phi
    ]
    averages = torch.zeros(*queries.shape[:3], values.shape[3], dtype=torch.float64)
    for b, h, t in np.ndindex(*queries.shape[:3]):
        # What each feature adds to the weight of each key.
        parts = phi[0][b, h, t] * phi[1][b, h] * allowed[b, h, t][:, None]
        total, of_each = parts.sum(), parts.sum(dim=0)
        least = math.sqrt((of_each**2).sum()) if kernel.signed else 0.0
        if total > least:
            averages[b, h, t] = parts.sum(dim=1) @ values[b, h] / total
    return averages


def earlier(n):
    return torch.ones(2, 3, n, n, dtype=torch.float64).tril()


def padding(n_keys=11, floats=False):
    """Row 0 has no key in its first five, row 1 none in its last four."""
    mask = torch.ones(2, 1, 1, n_keys, dtype=torch.bool)
    mask[0, ..., :5] = False
    mask[1, ..., -4:] = False
    return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf) if floats else mask


class TestAgainstPairs:
    @each_kernel
    @each_causal
    @pytest.mark.parametrize("masked", [None, "float"])
    def test_equals_a_loop_over_pairs(self, kernel, causal, masked):
        heads = make_heads()
        mask = None if masked is None else padding(floats=masked == "float")
        allowed = earlier(11) if causal else torch.ones(2, 3, 11, 11, dtype=torch.float64)
        if mask is not None:
            allowed = allowed * padding()
        found, weights = attention(*heads, kernel, mask=mask, causal=causal)
        assert weights is None
        dense, weights = attention(*heads, kernel, mask=mask, causal=causal, need_weights=True)
        torch.testing.assert_close(dense, found, rtol=0, atol=1e-10)
        assert not causal or (weights.triu(1) == 0).all()
        expected = slow_average(kernel, *heads, allowed)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        assert expected.any()

    @each_kernel
    @pytest.mark.parametrize("floats", [False, True])
    def test_general_masks(self, kernel, floats):
        heads = make_heads(5, 7)
        generator = torch.Generator().manual_seed(1)
        mask = torch.rand(2, 1, 5, 7, generator=generator) < 0.6
        mask[:, :, 2] = False  # a query without keys
        mask[0, :, :, 3] = False  # and a key without queries
        allowed = mask.double().expand(2, 3, 5, 7)
        if floats:
            bias = torch.randn(2, 1, 5, 7, dtype=torch.float64, generator=generator)
            allowed = allowed * bias.exp()
            # What is added to all logits of a query cancels, however large it is.
            large = 1e3 * torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])[:, None]
            mask = (bias + large).masked_fill(~mask, -torch.inf)
        found, _ = attention(*heads, kernel, mask=mask)
        torch.testing.assert_close(found, slow_average(kernel, *heads, allowed))
        assert (found[:, :, 2] == 0).all()
        weighed, _ = attention(*heads, kernel, mask=mask, need_weights=True)
        torch.testing.assert_close(weighed, found)


class TestNumbers:
    @each_kernel
    @pytest.mark.parametrize(("causal", "spread"), [(False, 1e-20), (True, 30.0), (False, 1e8)])
    def test_extreme_rows_stay_finite_with_their_gradients(self, kernel, causal, spread):
        heads = [x.requires_grad_(True) for x in make_heads(dtype=torch.float32, spread=spread)]
        found, _ = attention(*heads, kernel, causal=causal)
        assert torch.isfinite(found).all()
        found.square().sum().backward()
        assert all(torch.isfinite(x.grad).all() for x in heads)

    @each_causal
    def test_weights_that_drown_in_their_error_count_as_none(self, causal):
        # Far from all keys the Gaussian is 0, and its approximation is noise of either sign.
        queries, keys, values = make_heads(200, 200, dtype=torch.float32)
        queries = (queries + 40).requires_grad_(True)
        kernel = TrigonometricFeatures(64, kernel="gaussian")
        found, _ = attention(queries, keys, values, kernel, causal=causal)
        assert (found == 0).all(-1).double().mean() > 0.6
        # What is left is a quotient that is not large: its denominator is above its error.
        assert found.abs().max() < 64 * values.abs().max()
        found.sum().backward()
        assert torch.isfinite(queries.grad).all()

    @each_kernel
    @pytest.mark.parametrize(("causal", "floats"), [(False, True), (True, False)])
    def test_no_key_at_all_is_0(self, kernel, causal, floats):
        heads = [x.requires_grad_(True) for x in make_heads()]
        mask = padding(floats=floats)
        mask[1] = -torch.inf if floats else False
        for need_weights in (False, True):
            found, _ = attention(
                *heads, kernel, mask=mask, causal=causal, need_weights=need_weights
            )
            assert (found[1] == 0).all()
            if causal:
                assert (found[0, :, :5] == 0).all()
            assert found[0].any()
            gradients = torch.autograd.grad((found + 1).square().sum(), heads)
            assert all(torch.isfinite(g).all() and (g[1] == 0).all() for g in gradients)

    @each_kernel
    @each_causal
    def test_gradient_equals_differences(self, kernel, causal):
        small = clone(kernel).set_params(n_features=4)
        heads = [x[:1, :1].requires_grad_(True) for x in make_heads(5, 5, 3, spread=0.4)]
        assert torch.autograd.gradcheck(
            lambda *x: attention(*x, small, causal=causal)[0], heads, atol=1e-4
        )

    def test_no_table_of_pairs_is_made(self, monkeypatch):
        monkeypatch.setattr(module, "_CHUNK", 256)
        layer = MultiHeadAttention(4, 2, kernel=PositiveFeatures(8)).eval()
        n = 20_000  # whose table of pairs has 3 GB
        tokens = torch.zeros(1, n, 4)
        real = torch.ones(1, n, dtype=torch.bool)
        with torch.no_grad():
            for causal in (False, True):
                assert layer(tokens, padding=real, causal=causal)[0].shape == (1, n, 4)
