"""Distributions of which smoothing kernels are the densities, against quadrature."""

import numpy as np
import pandas as pd
import pytest
from every_kernel import DENSITIES
from scipy.stats import norm

from sklearn_attention import Columns, ProductKernelDensity
from sklearn_attention.kernels import Boxcar, Gaussian, SmoothingKernel
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.smoothing._mixtures import (
    KernelDistribution,
    KernelMixture,
    Scale,
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


class TestKernelMixture:
    @pytest.fixture
    def weights(self):
        return np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])

    def test_is_the_sum(self, weights):
        keys = np.array([[0.0], [2.0], [5.0]])
        mixture = KernelMixture(
            keys,
            None,
            as_kernel("gaussian"),
            Columns.numbers(1),
            np.array([0.5]),
            Scale(),
            None,
        )
        y = np.array([0.1, 4.0])
        expected = (weights * norm.cdf((y[:, None] - keys[:, 0]) / 0.5)).sum(axis=1)
        probability = mixture.cdf(y[:, None] + 7, weights, np.full(2, 7.0))
        np.testing.assert_allclose(probability, expected, rtol=1e-12)


def test_fewer_rows_have_a_bandwidth_that_is_wider_at_the_rate_of_the_best_one():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=320), "y": rng.normal(size=320)})
    frame["color"] = rng.choice(["red", "green"], 320)
    whole = ProductKernelDensity(bandwidth=[0.3, 0.2, 0.1]).fit(frame)._mixture
    sample = whole.subsample(5, random_state=0)
    assert len(sample.keys) == 5
    # The best bandwidths of two numbers are proportional to n^(-1/6).
    np.testing.assert_allclose(sample.bandwidth, [0.6, 0.4, 0.1])
    assert whole.subsample(320, random_state=0) is whole


def test_support_of_tails_that_do_not_fall_too_slowly():
    assert effective_support(Boxcar()) == 1
    assert 8 < effective_support(Gaussian()) < 12

    class Cauchy(SmoothingKernel):
        def profile(self, squared):
            return 1 / (np.pi * (1 + squared))

    with pytest.raises(ValueError, match=r"falls too slowly.*'gaussian'"):
        effective_support(Cauchy())
