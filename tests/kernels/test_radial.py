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
    LiRacine,
    LocallyPeriodic,
    Matern32,
    Periodic,
    ProductKernel,
    RadialKernel,
    RationalQuadratic,
    Silverman,
    Triangular,
    WangVanRyzin,
)
from sklearn_attention.kernels._base import KERNELS, as_kernel

KERNEL_NAMES = [name for name, kind in KERNELS.items() if issubclass(kind, RadialKernel)]


@pytest.mark.parametrize("kernel", [Boxcar(), RationalQuadratic(alpha=0.3), Silverman()])
def test_a_kernel_of_the_distance_is_its_own_form(kernel):
    rng, d = np.random.default_rng(0), 3
    x, y = rng.normal(size=(6, d)), rng.normal(size=(7, d))
    form = kernel.radial_form(d)
    assert form.kernel is kernel
    assert form.categorical is None
    assert form.columns == list(range(d))
    squared = form.squared(x, y)
    np.testing.assert_allclose(squared, ((x[:, None] - y) ** 2).sum(-1))
    np.testing.assert_allclose(form.values(squared, x, y), kernel(x, y), rtol=1e-13)
    if not kernel.signed:
        np.testing.assert_allclose(form.log_values(squared, x, y), kernel.log(x, y), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel",
    [
        Laplacian(),
        as_kernel(laplacian_kernel),
        ProductKernel([("a", "gaussian", [0]), ("b", "gaussian", [0, 1])]),
        ProductKernel([("a", "gaussian", [0]), ("b", "epanechnikov", [1])]),
        ProductKernel([("a", LiRacine(), [0]), ("b", WangVanRyzin(), [1])]),
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
    assert Silverman().spread == Matern32().spread == AitchisonAitken().spread == 1
    u = np.linspace(-12, 12, 200_001)[:, None]
    density = kernel([[0.0]], u)[0]
    variance = np.sum(density * u[:, 0] ** 2) / density.sum()
    assert kernel.spread == pytest.approx(math.sqrt(variance), rel=1e-4)
    assert ProductKernel(kernel).spread == kernel.spread


SLOPES = [
    *KERNEL_NAMES,
    RationalQuadratic(alpha=0.3),
    Periodic(period=0.7, length_scale=2.0),
    LocallyPeriodic(period=0.7, length_scale=2.0),
    ProductKernel("gaussian").radial_form(3).kernel,
]


@pytest.mark.parametrize("kernel", SLOPES, ids=repr)
def test_slopes_of_logarithms(kernel):
    kernel = as_kernel(kernel)
    squared = np.append(np.linspace(0.01, 0.97, 40), np.linspace(1.1, 30, 40))
    slope = kernel.log_slope(squared)
    ends = [np.abs(kernel.profile(squared * (1 + step))) for step in (1e-6, -1e-6)]
    found = (squared < kernel.support**2) & (ends[0] > 1e-12)
    logs = np.log(ends[0][found]) - np.log(ends[1][found])
    expected = logs / (2e-6 * squared[found])
    np.testing.assert_allclose(slope[found], expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(kernel.log_slope(torch.from_numpy(squared)), slope, rtol=1e-12)
    # What is 0, or has a kink, leaves products with the slope finite.
    for edge in (0.0, 1.0, 1e300):
        assert np.isfinite(kernel.log_slope(np.array([edge]))).all()


# Which fall with the distance at the scale of the bandwidth, and say so

RAY = np.linspace(0, 6, 200)[:, None]


@pytest.mark.parametrize("name", KERNELS)
def test_the_flag_says_whether_a_kernel_falls(name):
    kernel = as_kernel(name)
    along_the_ray = kernel(RAY[:1], RAY)[0]
    falls = bool((np.diff(along_the_ray) <= 0).all() and along_the_ray[-1] < along_the_ray[0])
    # Locally periodic falls at scale 1 by chance; its period is no neighbourhood.
    assert kernel.decreasing == (falls and name != "locally_periodic")
