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
    test_positive_within_the_support_and_zero_beyond = None  # It is negative in places.

    def profile(self, kernel, r):
        return 1 / 2 * math.exp(-r / sqrt(2)) * math.sin(r / sqrt(2) + pi / 4)

    def test_is_of_order_four(self, kernel):
        # Green's function of u'''' + u: its fourth moment is -4!.
        assert kernel.second_moment == 0
        fourth = 2 * self.integral(kernel, lambda r, K: r**4 * K)
        assert fourth == pytest.approx(-24, rel=1e-9)
