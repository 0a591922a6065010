"""Kernels of the distance, and others taken apart into one and a rest."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import laplacian_kernel

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
