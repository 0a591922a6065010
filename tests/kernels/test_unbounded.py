"""Smoothing kernels that reach everywhere, their formulas and their constants."""

import math

import numpy as np
import pytest
from kernel_contracts import SmoothingContract, WithoutUnderflow
from scipy import stats

from sklearn_attention.kernels import Logistic, Sigmoid, Silverman

pi, sqrt = math.pi, math.sqrt


class TestLogistic(WithoutUnderflow, SmoothingContract):
    samples = (Logistic(),)
    table = (1 / 6, pi**2 / 3, 0.4340)

    def profile(self, kernel, r):
        return 1 / (math.exp(r) + 2 + math.exp(-r)) if r < 700 else 0

    def log_profile(self, kernel, r):
        return -r - 2 * math.log1p(math.exp(-r))

    def test_is_the_density_of_the_logistic_distribution(self, kernel):
        u = np.linspace(-30, 30, 13)
        expected = stats.logistic.pdf(u)
        np.testing.assert_allclose(kernel([[0]], u[:, None])[0], expected, rtol=1e-13)


class TestSigmoid(WithoutUnderflow, SmoothingContract):
    samples = (Sigmoid(),)
    table = (2 / pi**2, pi**2 / 4, 0.5063)

    def profile(self, kernel, r):
        return 2 / pi / (math.exp(r) + math.exp(-r)) if r < 700 else 0

    def log_profile(self, kernel, r):
        return math.log(2 / pi) - r - math.log1p(math.exp(-2 * r))

    def test_is_the_density_of_the_hyperbolic_secant_distribution(self, kernel):
        u = np.linspace(-30, 30, 13)
        expected = stats.hypsecant.pdf(u)
        np.testing.assert_allclose(kernel([[0]], u[:, None])[0], expected, rtol=1e-13)


class TestSilverman(SmoothingContract):
    samples = (Silverman(),)
    table = (3 * sqrt(2) / 16, 0, None)
    # It is negative in places, and so is its mass in some dimensions.
    test_positive_within_the_support_and_zero_beyond = None
    test_normalizing_constant_in_many_dimensions = None

    def profile(self, kernel, r):
        return 1 / 2 * math.exp(-r / sqrt(2)) * math.sin(r / sqrt(2) + pi / 4)

    def massless(self, d):
        return d == 3

    @pytest.mark.parametrize("d", [3, 7, 11, 31])
    def test_has_mass_zero_in_every_fourth_dimension(self, kernel, d):
        with pytest.raises(ValueError, match=rf"Silverman\(\) has mass 0 in n_features={d}"):
            kernel.normalizing_constant(d)

    def test_is_of_order_four(self, kernel):
        # Green's function of u'''' + u: its fourth moment is -4!.
        assert 2 * kernel.radial_moment(2) == 0
        assert 2 * kernel.radial_moment(4) == pytest.approx(-24, rel=1e-14)
