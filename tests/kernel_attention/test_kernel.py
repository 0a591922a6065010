"""The learned kernel, and its sums over keys, against loops."""

import numpy as np
import pytest
from slow_learned_kernel import (
    FEATURES,
    GAUSSIAN,
    every_kernel,
    make_kernel,
    make_rows,
    slow_kernel,
)

from sklearn_attention.kernel_attention import _kernel
from sklearn_attention.kernel_attention._kernel import KernelSum, LearnedKernel


@every_kernel
def test_the_matrix_equals_its_formula(formula, rough, linear):
    kernel = make_kernel(formula, rough=rough, linear=linear)
    queries, keys = make_rows(6), make_rows(9, seed=1)
    expected = slow_kernel(kernel, formula, queries, keys)
    np.testing.assert_allclose(kernel.matrix(queries, keys), expected, rtol=1e-12)


def test_parameters_start_with_all_features_alike():
    rows = [z * [1, 10, 100] for z in make_rows(4000)[:1]]
    kernel = LearnedKernel.start(FEATURES[:1], [rows[0].var(axis=0)], 3, GAUSSIAN)
    space = kernel.space(rows)
    # Two random rows differ by 1 in the mean square, to which all features add alike.
    np.testing.assert_allclose(2 * space.var(axis=0), np.full(3, 1 / 3), rtol=1e-9)


def test_columns_without_variance_have_no_large_scale():
    kernel = LearnedKernel.start(FEATURES[:1], [np.array([1.0, 0.0, 1e-9])], 3, GAUSSIAN)
    assert (kernel.column_scales[0] <= 10).all()


@pytest.mark.parametrize(("rough", "linear"), [(True, False), (False, True)])
def test_what_is_learned(rough, linear):
    kernel = make_kernel(rough=rough, linear=linear)
    free = kernel.named(kernel.is_learned)
    assert free["scale"].all()
    assert free["amplitude"].all()
    assert free["noise"].all()
    # Only columns that share a feature deviate from its scale.
    assert list(free["deviation"]) == [False] * 3 + [True] * 4 + [False]
    assert free["rough"][0] == free["rate"][0] == rough
    assert free["linear"][0] == linear


@every_kernel
@pytest.mark.parametrize("tile", [256, 7])
def test_a_sum_over_keys_is_the_matrix_times_coefficients(
    monkeypatch, formula, rough, linear, tile
):
    monkeypatch.setattr(_kernel, "_TILE", tile)
    kernel = make_kernel(formula, rough=rough, linear=linear)
    queries, keys = make_rows(20), make_rows(30, seed=1)
    coefficients = np.random.default_rng(2).normal(size=(30, 2))
    found = KernelSum(kernel, keys, coefficients)(queries)
    expected = slow_kernel(kernel, formula, queries, keys) @ coefficients
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_large_coefficients_cancel_in_double_precision():
    kernel = make_kernel()
    queries, keys = ([z.astype(np.float32) for z in make_rows(n, n)] for n in (20, 300))
    coefficients = np.repeat([[1e6], [-1e6]], 150, axis=0)
    found = KernelSum(kernel, keys, coefficients)(queries)
    expected = kernel.matrix(queries, keys).astype(np.float64) @ coefficients
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
