"""Sums of the learned kernel at mixed rows, and the Gaussians that its rough part is."""

import numpy as np
import pytest
from slow_learned_kernel import FEATURES, make_kernel, make_rows

from sklearn_attention.kernel_attention import _kernel, _mixed_rows
from sklearn_attention.kernel_attention._kernel import KernelSum
from sklearn_attention.kernel_attention._mixed_rows import sums_of_mixed_rows


@pytest.mark.parametrize(("rough", "linear"), [(False, False), (True, True)])
@pytest.mark.parametrize("numbers", [None, 40])
def test_sums_at_mixed_rows_are_those_of_each(rough, linear, numbers, monkeypatch):
    monkeypatch.setattr(_mixed_rows, "_MAX_KEYS", 5)
    if numbers:
        monkeypatch.setattr(_mixed_rows, "_DISTANCES_SIZE", numbers)
    kernel = make_kernel(rough=rough, linear=linear)
    keys, rows, others = make_rows(13), make_rows(4, seed=1), make_rows(3, seed=2)
    # A mixed row that equals a key is where the rough part has its kink.
    others = [np.vstack([z, k[:1]]) for z, k in zip(others, keys, strict=True)]
    coefficients = np.random.default_rng(0).normal(size=(13, 2))
    masks = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    found = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks)
    assert found.shape == (4, 4, 4, 2)
    sums = KernelSum(kernel, keys, coefficients)
    for m, mask in enumerate(masks):
        for i in range(4):
            mixed = [
                np.where(mask[feature], row[i], other)
                for feature, row, other in zip(FEATURES, rows, others, strict=True)
            ]
            atol = 1e-4 if rough else 1e-12
            np.testing.assert_allclose(found[m, i], sums(mixed), atol=atol, rtol=0)
    means = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks, mean=True)
    np.testing.assert_allclose(means, found.mean(axis=2, keepdims=True), atol=1e-10)


def test_sums_at_mixed_rows_in_single_precision():
    # With a small rate the squares of the first Gaussian are those of a number near 1.
    values = make_kernel().values.copy()
    kernel = make_kernel().with_values(values)
    kernel.named(values)["rate"][:] = np.log(0.03)
    keys, rows, others = make_rows(13), make_rows(4, seed=1), make_rows(3, seed=2)
    rows = [k[:4] + 0.01 * row for k, row in zip(keys, rows, strict=True)]
    others = [k[:3] + 0.01 * other for k, other in zip(keys, others, strict=True)]
    coefficients = np.random.default_rng(0).normal(size=(13, 2))
    masks = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    expected = sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks)
    single = [[z.astype(np.float32) for z in table] for table in (keys, rows, others)]
    found = sums_of_mixed_rows(kernel, single[0], coefficients, *single[1:], masks)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_sums_at_mixed_rows_that_are_far_away_are_finite():
    kernel, keys = make_kernel(), [z.astype(np.float32) for z in make_rows(5)]
    far = [np.full((1, len(feature)), 1e20, np.float32) for feature in FEATURES]
    masks = np.array([[1, 0, 0], [0, 0, 0]], dtype=bool)
    sums = sums_of_mixed_rows(kernel, keys, np.ones((5, 1)), far, [z[:1] for z in keys], masks)
    assert np.isfinite(sums).all()


@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0, 1e4])
def test_gaussians_sum_to_the_rough_part(rate):
    named = {"rough": np.log([2.0]), "rate": np.log([rate])}
    rates, sizes = _mixed_rows._gaussians_of_rough(named)
    squared = np.concatenate([[0], np.geomspace(1e-6, 1e4, 200)])
    found = np.exp(-np.outer(squared, rates)) @ sizes
    expected = _kernel.rough_part(np.sqrt(squared + _kernel.KINK), named)
    np.testing.assert_allclose(found, expected, atol=4 * 4e-6)
    assert len(rates) < 40
