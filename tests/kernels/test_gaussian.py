"""The Gaussian, its constants, and products of several."""

import math

import numpy as np
import pytest
from kernel_contracts import SmoothingContract, WithoutUnderflow

from sklearn_attention.kernels import Gaussian
from sklearn_attention.kernels._unbounded import GaussianProduct

pi, sqrt = math.pi, math.sqrt


class TestGaussian(WithoutUnderflow, SmoothingContract):
    samples = (Gaussian(),)
    table = (1 / (2 * sqrt(pi)), 1, 0.7764)

    def profile(self, kernel, r):
        return 1 / sqrt(2 * pi) * math.exp(-r * r / 2)

    def log_profile(self, kernel, r):
        return -r * r / 2 - math.log(2 * pi) / 2


@pytest.mark.parametrize("n_factors", [1, 5])
def test_gaussians_along_several_axes_multiply(n_factors):
    rng = np.random.default_rng(n_factors)
    queries, keys = rng.normal(size=(4, n_factors)), rng.normal(size=(6, n_factors))
    expected = math.prod(Gaussian()(queries[:, [j]], keys[:, [j]]) for j in range(n_factors))
    kernel = GaussianProduct(n_factors)
    np.testing.assert_allclose(kernel(queries, keys), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.log(queries, keys), np.log(expected), rtol=1e-12)
