"""Smoothing kernels that reach everywhere, their formulas and their constants."""

import math

import pytest
from kernel_contracts import SmoothingContract, WithoutUnderflow

from sklearn_attention.kernels import Gaussian, Logistic, Sigmoid, Silverman

pi, sqrt = math.pi, math.sqrt


class TestUnbounded(WithoutUnderflow, SmoothingContract):
    samples = (Gaussian(), Logistic(), Sigmoid())
    tables = (
        (1 / (2 * sqrt(pi)), 1, 0.7764),
        (1 / 6, pi**2 / 3, 0.4340),
        (2 / pi**2, pi**2 / 4, 0.5063),
    )

    def log_profile(self, kernel, r):
        if kernel == Gaussian():
            return -r * r / 2 - math.log(2 * pi) / 2
        if kernel == Logistic():
            return -r - 2 * math.log1p(math.exp(-r))
        return math.log(2 / pi) - r - math.log1p(math.exp(-2 * r))


class TestSilverman(SmoothingContract):
    samples = (Silverman(),)
    tables = ((3 * sqrt(2) / 16, 0, None),)
    massless = (3,)
    test_positive_within_the_support_and_zero_beyond = None  # It is negative in places.

    def profile(self, kernel, r):
        return 1 / 2 * math.exp(-r / sqrt(2)) * math.sin(r / sqrt(2) + pi / 4)

    @pytest.mark.parametrize("d", [7, 31])
    def test_has_mass_zero_in_every_fourth_dimension(self, kernel, d):
        with pytest.raises(ValueError, match=rf"Silverman\(\) has mass 0 in n_features={d}"):
            kernel.normalizing_constant(d)

    def test_is_of_order_four(self, kernel):
        # Green's function of u'''' + u: its fourth moment is -4!.
        assert 2 * kernel.radial_moment(2) == 0
        assert 2 * kernel.radial_moment(4) == pytest.approx(-24, rel=1e-14)
