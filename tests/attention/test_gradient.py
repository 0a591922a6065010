"""Derivatives of the average against finite differences of the average."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel
from threadpoolctl import threadpool_limits

from sklearn_attention import attend
from sklearn_attention.attention import _tables, attend_gradient
from sklearn_attention.kernels import (
    AitchisonAitken,
    Epanechnikov,
    FunctionKernel,
    Gaussian,
    Laplacian,
    LiRacine,
    Matern52,
    ProductKernel,
    ScaledDotProduct,
)
from sklearn_attention.kernels._base import KERNELS

STEP = 1e-5


def make_data(n_queries=30, n_keys=80, n_features=3, n_values=2, seed=0):
    rng = np.random.default_rng(seed)
    queries = rng.normal(size=(n_queries, n_features))
    keys = rng.normal(size=(n_keys, n_features))
    return queries, keys, rng.normal(size=(n_keys, n_values))


def finite_differences(queries, keys, values, columns=None, **options):
    """Central differences of the average, one feature after the other."""
    differences = np.zeros((len(queries), values.shape[1], queries.shape[1]))
    for j in range(queries.shape[1]) if columns is None else columns:
        step = STEP * (np.arange(queries.shape[1]) == j)
        above, _ = attend(queries + step, keys, values, **options)
        below, _ = attend(queries - step, keys, values, **options)
        differences[:, :, j] = (above - below) / (2 * STEP)
    return differences


@pytest.mark.parametrize(
    "kernel",
    [
        *KERNELS,
        0.5 * Matern52() + Laplacian(),
        Epanechnikov() * ScaledDotProduct(),
        ProductKernel([("a", "matern32", [2]), ("b", "biweight", [0])]),
    ],
    ids=str,
)
def test_equals_finite_differences(kernel):
    queries, keys, values = make_data()
    weight = np.random.default_rng(1).uniform(0, 2, len(keys))
    options = dict(kernel=kernel, bandwidth=np.array([1.5, 2.0, 1.2]), sample_weight=weight)
    found = attend_gradient(queries, keys, values, **options)
    expected = finite_differences(queries, keys, values, **options)
    # Where signed weights almost cancel, the average has a pole.
    tame = np.abs(expected).max(axis=(1, 2)) < 100
    assert tame.mean() > 0.6
    np.testing.assert_allclose(found[tame], expected[tame], rtol=1e-6, atol=1e-6)
    assert (np.abs(expected[tame]).max() > 0.01) == (kernel != "boxcar")


@pytest.mark.parametrize(("numbers", "lam"), [("gaussian", 0.3), ("linear", 0.0)])
def test_categories_have_no_gradient(numbers, lam):
    rng = np.random.default_rng(0)
    (a, b), group, order = rng.normal(size=(2, 60)), *rng.integers(0, [[3], [4]], (2, 60))
    X = np.column_stack([a, group, b, order])
    values = rng.normal(size=(60, 2))
    kernel = ProductKernel([
        ("numbers", numbers, [0, 2]), ("group", AitchisonAitken(n_levels=3, lam=lam), [1]),
        ("order", LiRacine(lam=lam), [3]),
    ])  # fmt: skip
    options = dict(kernel=kernel, bandwidth=np.array([1.5, 7.0, 2.0, 7.0]))
    queries = X[:20] + np.array([0.01, 0.0, 0.02, 0.0])
    found = attend_gradient(queries, X, values, **options)
    expected = finite_differences(queries, X, values, columns=[0, 2], **options)
    tame = np.abs(expected).max(axis=(1, 2)) < 100
    np.testing.assert_allclose(found[tame], expected[tame], rtol=1e-5, atol=1e-6)
    assert (found[:, :, [1, 3]] == 0).all()


def test_values_of_one_output_and_of_none():
    queries, keys, values = make_data()
    both = attend_gradient(queries, keys, values)
    single = attend_gradient(queries, keys, values[:, 1])
    np.testing.assert_allclose(single, both[:, 1], rtol=1e-10, atol=1e-14)
    assert attend_gradient(queries, keys, values[:, :0]).shape == (30, 0, 3)
    assert attend_gradient(queries[:0], keys, values).shape == (0, 2, 3)
    with pytest.raises(ValueError, match="sample_weight is 0 for every key"):
        attend_gradient(queries, keys, values, sample_weight=np.zeros(80))


def test_far_query_equals_exact_arithmetic():
    # Two keys: m = 1 / (1 + exp(-(q - 1/2) / h^2)), with the weights' log-ratio as small.
    h = 100.0
    keys, values = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    query = np.array([[2e4]])
    odds = np.exp((query - 0.5) / h**2)
    expected = odds / (1 + odds) ** 2 / h**2
    found = attend_gradient(query, keys, values + 1e6, bandwidth=h)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["epanechnikov", ProductKernel("biweight")])
def test_no_weights_no_gradient(kernel):
    queries, keys, values = make_data()
    found = attend_gradient(queries + 50.0, keys, values, kernel)
    np.testing.assert_array_equal(found, 0)


def test_on_a_kink_the_mean_of_both_sides():
    keys, values = np.array([[0.0], [0.4], [-0.9]]), np.array([1.0, 5.0, 2.0])
    sides = attend_gradient([[-1e-9], [1e-9]], keys, values, "triangular")
    middle = attend_gradient([[0.0]], keys, values, "triangular")
    np.testing.assert_allclose(middle[0], sides.mean(axis=0), rtol=1e-6)


def test_library_and_precision_come_back():
    queries, keys, values = make_data()
    expected = attend_gradient(queries, keys, values)
    single = attend_gradient(*(x.astype("float32") for x in (queries, keys, values)))
    assert isinstance(single, np.ndarray)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)
    tensors = attend_gradient(*map(torch.from_numpy, (queries, keys, values)))
    assert isinstance(tensors, torch.Tensor)
    assert not tensors.requires_grad
    np.testing.assert_array_equal(tensors.numpy(), expected)


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_blocks_and_threads_bound_the_memory_and_change_nothing(kernel, monkeypatch):
    queries, keys, values = make_data(n_queries=50)
    expected = attend_gradient(queries, keys, values, kernel)
    sizes = []
    kernel_weights = _tables.kernel_weights

    def spy(problem):
        sizes.append(problem.n_pairs)
        return kernel_weights(problem)

    monkeypatch.setattr(_tables, "kernel_weights", spy)
    monkeypatch.setattr(_tables, "IN_CACHE", 300)
    monkeypatch.setattr(_tables, "FEW_PAIRS", 0)
    with threadpool_limits(3):
        found = attend_gradient(queries, keys, values, kernel)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert max(sizes) <= 300
    assert sum(sizes) == 50 * 80


@pytest.mark.parametrize("kernel", [RBF(), Gaussian() + FunctionKernel(laplacian_kernel)])
def test_functions_cannot_be_differentiated(kernel):
    queries, keys, values = make_data()
    with pytest.raises(TypeError, match=r"kernel=.*has no gradient: use one of the kernels"):
        attend_gradient(queries, keys, values, kernel)


def test_sums_that_are_hardly_numbers_have_no_derivative():
    keys, values = np.array([[0.0], [0.3]]), np.array([1.0, 2.0])
    queries = np.linspace(900, 1500, 400)[:, None]
    found = attend_gradient(queries, keys, values, "silverman")
    assert np.isfinite(found).all()
    assert (found[queries[:, 0] > 1100] == 0).all()
