"""Kernels taken apart into one of the distance and one that no bandwidth divides."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import laplacian_kernel

from sklearn_attention import Columns
from sklearn_attention.kernels import (
    AitchisonAitken,
    Boxcar,
    Epanechnikov,
    Gaussian,
    Laplacian,
    Linear,
    LiRacine,
    Matern32,
    Periodic,
    ProductKernel,
    RationalQuadratic,
    Silverman,
    Triangular,
    WangVanRyzin,
    as_kernel,
    mixed_kernel,
)

RADIAL = [
    Gaussian(),
    Epanechnikov(),
    Triangular(),
    Boxcar(),
    Matern32(),
    RationalQuadratic(alpha=0.3),
    Periodic(period=0.7),
    Silverman(),
]


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("d", [1, 3])
def test_a_kernel_of_the_distance_is_its_own_form(kernel, d):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, d)), rng.normal(size=(7, d))
    form = kernel.radial_form(d)
    assert form.kernel is kernel
    assert form.rest is None
    assert form.columns == list(range(d))
    squared = form.squared(x, y)
    np.testing.assert_allclose(squared, ((x[:, None] - y) ** 2).sum(-1))
    np.testing.assert_allclose(form.values(squared, x, y), kernel(x, y), rtol=1e-13)
    if not kernel.signed:
        np.testing.assert_allclose(form.log_values(squared, x, y), kernel.log(x, y), rtol=1e-13)


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_profiles_take_any_shape_and_library(kernel):
    squared = np.linspace(0, 5, 24).reshape(2, 3, 4)
    along = np.sqrt(squared.reshape(-1, 1))
    expected = kernel([[0.0]], along).reshape(2, 3, 4)
    np.testing.assert_allclose(kernel.profile(squared), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        kernel.profile(torch.as_tensor(squared)), expected, rtol=1e-12, atol=1e-15
    )
    if not kernel.signed:
        with np.errstate(divide="ignore"):
            logs = np.log(expected)
        np.testing.assert_allclose(kernel.log_profile(squared), logs, rtol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov(), Periodic(period=3.0)], ids=repr)
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 5.0])
def test_mixed_kernels_divide_the_distance_alone(kernel, bandwidth):
    rng = np.random.default_rng(0)
    kinds = ("ordered", "numeric", "unordered", "numeric")
    X = np.column_stack(
        [
            rng.integers(0, 4, 12),
            rng.normal(size=12),
            rng.integers(0, 3, 12),
            rng.normal(size=12),
        ]
    )
    columns = Columns(kinds, (range(4), None, range(3), None))
    whole = mixed_kernel(kernel, columns, [0.4, 0, 0.2, 0])
    form = whole.radial_form(4)
    assert form.kernel == kernel
    assert form.columns == [1, 3] == whole.numeric_columns(4)
    scaled = whole.rescale(X, bandwidth)
    squared = form.squared(X, X) / bandwidth**2
    np.testing.assert_allclose(form.values(squared, X, X), whole(scaled), rtol=1e-12)
    by_hand = 0.4 ** abs(X[:, None, 0] - X[:, 0])
    by_hand = by_hand * np.where(X[:, None, 2] == X[:, 2], 0.8, 0.1)
    np.testing.assert_allclose(form.rest(X, X), by_hand, rtol=1e-12)
    np.testing.assert_allclose(form.log_values(squared, X, X), whole.log(scaled), rtol=1e-10)
    assert whole.spread == kernel.spread


def test_the_order_of_columns_may_be_any():
    X = np.array([[1.0, 0.0, 5.0], [2.0, 1.0, -3.0]])
    kernel = ProductKernel(
        [("x", "gaussian", [-1, 0]), ("group", AitchisonAitken(lam=0.3), [1])]
    )
    form = kernel.radial_form(3)
    assert form.columns == [2, 0]
    np.testing.assert_allclose(form.squared(X, X)[0, 1], 65)
    assert kernel.numeric_columns(3) == [0, 2]


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Laplacian(),
        AitchisonAitken(),
        as_kernel(laplacian_kernel),
        ProductKernel("epanechnikov"),
        ProductKernel([("a", "gaussian", [0]), ("b", "gaussian", [0, 1])]),
        ProductKernel([("a", "gaussian", [0]), ("b", "epanechnikov", [1])]),
        ProductKernel([("a", "laplacian", [0, 1])]),
        ProductKernel([("a", LiRacine(), [0]), ("b", WangVanRyzin(), [1])]),
        Gaussian() + Gaussian(),
        Gaussian() * Gaussian(),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_kernels_without_form(kernel):
    assert kernel.radial_form(2) is None


def test_the_product_form_of_one_column_is_of_the_distance():
    form = ProductKernel("epanechnikov").radial_form(1)
    assert form.kernel == Epanechnikov()
    assert form.columns == [0]
    assert form.rest is None


@pytest.mark.parametrize(
    "kernel",
    [
        ProductKernel("gaussian"),
        ProductKernel([("a", "gaussian", [2]), ("b", "gaussian", [0, 1])]),
        ProductKernel(
            [("c", LiRacine(lam=0.5), [1]), ("a", ProductKernel("gaussian"), [2, 0])]
        ),
    ],
    ids=repr,
)
def test_a_product_of_gaussians_is_a_gaussian_of_the_distance(kernel):
    X = np.array([[0.0, 0.0, 0.5], [3.0, 1.0, -1.0], [0.2, 2.0, 0.1]])
    form = kernel.radial_form(3)
    assert form.columns == kernel.numeric_columns(3)
    squared = form.squared(X, X)
    np.testing.assert_allclose(form.values(squared, X, X), kernel(X), rtol=1e-13)
    np.testing.assert_allclose(form.log_values(squared, X, X), kernel.log(X), rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "expected", "has_rest"),
    [
        (Gaussian(), [("Gaussian", [0, 1, 2])], False),
        (Linear(), [], True),
        (ProductKernel("boxcar"), [("Boxcar", [0]), ("Boxcar", [1]), ("Boxcar", [2])], False),
        (
            ProductKernel([("a", "boxcar", [2]), ("b", ProductKernel("gaussian"), [1, 0])]),
            [("Boxcar", [2]), ("Gaussian", [1]), ("Gaussian", [0])],
            False,
        ),
        (
            ProductKernel([("a", "boxcar", [2]), ("b", "laplacian", [0, 1])]),
            [("Boxcar", [2])],
            True,
        ),
        (
            ProductKernel([("a", ProductKernel("boxcar"), [0, 2]), ("b", LiRacine(), [1])]),
            [("Boxcar", [0]), ("Boxcar", [2])],
            True,
        ),
        (
            ProductKernel([("a", "boxcar", [0, 2]), ("b", LiRacine(), [1])]),
            [("Boxcar", [0, 2])],
            True,
        ),
    ],
    ids=repr,
)
def test_factors_of_the_distance(kernel, expected, has_rest):
    factors, rest = kernel.radial_factors(3)
    assert [(type(factor).__name__, list(of)) for factor, of in factors] == expected
    assert (rest is not None) == has_rest
    X = np.array([[0.0, 0.0, 0.5], [0.3, 1.0, -0.1], [0.2, 2.0, 0.1]])
    product = 1.0 if rest is None else rest(X)
    for factor, of in factors:
        product = product * factor(X[:, of])
    np.testing.assert_allclose(product, kernel(X), rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "compact"),
    [
        (Boxcar(), True),
        (Gaussian(), False),
        (Boxcar() + Gaussian(), False),
        (Boxcar() * Gaussian(), True),
        (ProductKernel("boxcar"), True),
        (ProductKernel([("a", "boxcar", [0]), ("b", LiRacine(), [1])]), True),
        (ProductKernel([("a", "boxcar", [0]), ("b", "gaussian", [1])]), False),
        (ProductKernel([("b", LiRacine(), [1])]), False),
    ],
    ids=repr,
)
def test_what_ends(kernel, compact):
    assert kernel.compact is compact
    columns = kernel.numeric_columns(2)
    far = kernel(np.zeros((1, 2)), 5 * np.eye(2)[columns])
    assert (bool(columns) and not far.any()) == compact


def test_a_kernel_of_several_products():
    inner = ProductKernel([("x", "gaussian", [0])])
    outer = ProductKernel([("a", inner, [1]), ("c", LiRacine(lam=0.5), [0])])
    form = outer.radial_form(2)
    assert form.kernel == Gaussian()
    assert form.columns == [1]
    X = np.array([[0.0, 0.3], [2.0, 1.0]])
    np.testing.assert_allclose(form.values(form.squared(X, X), X, X), outer(X), rtol=1e-13)
    wider = ProductKernel([("a", ProductKernel([("x", "gaussian", [1])]), [0, 2])])
    Y = np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 1.0]])
    form = wider.radial_form(3)
    assert form.columns == [2]
    np.testing.assert_allclose(form.values(form.squared(Y, Y), Y, Y), wider(Y), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Epanechnikov(), Triangular(), Boxcar()], ids=repr
)
def test_spread_is_the_standard_deviation(kernel):
    u = np.linspace(-12, 12, 2_000_001)[:, None]
    density = kernel([[0.0]], u)[0]
    variance = np.sum(density * u[:, 0] ** 2) / density.sum()
    assert kernel.spread == pytest.approx(math.sqrt(variance), rel=1e-4)
    assert ProductKernel(kernel).spread == kernel.spread


@pytest.mark.parametrize(
    "kernel", [Silverman(), Matern32(), Linear(), AitchisonAitken()], ids=repr
)
def test_spread_of_other_kernels_is_one(kernel):
    assert kernel.spread == 1


def test_numeric_columns():
    assert Gaussian().numeric_columns(3) == [0, 1, 2]
    assert AitchisonAitken().numeric_columns(2) == []
    assert (Gaussian() + 0.1).numeric_columns(2) == [0, 1]
    assert ProductKernel([("x", "gaussian", [2])]).numeric_columns(3) == [2]
    mixed = ProductKernel([("x", "gaussian", [2]), ("a", LiRacine(), [0])])
    assert mixed.numeric_columns(4) == [2]
    assert mixed.categorical_columns(4) == [0]
