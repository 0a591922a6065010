"""Distributions of which smoothing kernels are the densities, against quadrature."""

import numpy as np
import pytest
from every_kernel import DENSITIES

from sklearn_attention.kernels import Boxcar, Gaussian, SmoothingKernel
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.smoothing._kernel_distribution import (
    KernelDistribution,
    effective_support,
)


class TestKernelDistribution:
    @pytest.mark.parametrize("kernel", DENSITIES)
    def test_is_the_integral(self, kernel):
        kernel = as_kernel(kernel)
        target = KernelDistribution(kernel)
        nodes, weights = np.polynomial.legendre.leggauss(60)
        for u in (0.0, 0.3, 0.9, 1.0, 2.5):
            end = min(u, kernel.support)
            half = end / 2 * (weights @ kernel.profile((end / 2 * (nodes + 1)) ** 2))
            expected = [0.5 + half, 0.5 - half]
            assert target.cdf(np.array([u, -u])) == pytest.approx(expected, abs=1e-10)

    @pytest.mark.parametrize("kernel", DENSITIES)
    def test_inverse(self, kernel):
        target = KernelDistribution(as_kernel(kernel))
        p = np.linspace(0.001, 0.999, 101)
        np.testing.assert_allclose(target.cdf(target.ppf(p)), p, atol=1e-6)
        assert target.cdf(np.array([-1e9, 1e9])).tolist() == [0, 1]
        assert np.isfinite(target.ppf(np.array([2.0**-54, 1 - 2.0**-53]))).all()


def test_support_of_tails_that_do_not_fall_too_slowly():
    assert effective_support(Boxcar()) == 1
    assert 8 < effective_support(Gaussian()) < 12

    class Cauchy(SmoothingKernel):
        def profile(self, squared):
            return 1 / (np.pi * (1 + squared))

    with pytest.raises(ValueError, match=r"falls too slowly.*'gaussian'"):
        effective_support(Cauchy())
