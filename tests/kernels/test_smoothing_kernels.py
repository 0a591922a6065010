"""The smoothing kernels, their formulas and their constants."""

import math

import numpy as np
import pytest
from kernel_contracts import (
    CompactContract,
    SmoothingContract,
    WithoutGradient,
    WithoutUnderflow,
)
from scipy import stats

from sklearn_attention.kernels import (
    Biweight,
    Boxcar,
    Cosine,
    Epanechnikov,
    Gaussian,
    Logistic,
    Sigmoid,
    Silverman,
    Triangular,
    Tricube,
    Triweight,
)

pi, sqrt = math.pi, math.sqrt


class TestGaussian(WithoutUnderflow, SmoothingContract):
    samples = (Gaussian(),)
    table = (1 / (2 * sqrt(pi)), 1, 0.7764)

    def profile(self, kernel, r):
        return 1 / sqrt(2 * pi) * math.exp(-r * r / 2)

    def log_profile(self, kernel, r):
        return -r * r / 2 - math.log(2 * pi) / 2

    def test_is_the_normal_density(self, kernel):
        u = np.linspace(-5, 5, 11)
        np.testing.assert_allclose(kernel([[0]], u[:, None])[0], stats.norm.pdf(u), rtol=1e-13)

    @pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
    def test_normalizing_constant_in_closed_form(self, kernel, d):
        expected = (2 * pi) ** (-(d - 1) / 2)
        assert kernel.normalizing_constant(d) == pytest.approx(expected, rel=1e-12)


class TestEpanechnikov(CompactContract):
    samples = (Epanechnikov(),)
    table = (3 / 5, 1 / 5, 1.7188)

    def profile(self, kernel, r):
        return 3 / 4 * (1 - r**2) if r <= 1 else 0

    @pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
    def test_normalizing_constant_in_closed_form(self, kernel, d):
        # The density (d + 2) / (2 V_d) (1 - r^2), with V_d the volume of the unit ball.
        volume = pi ** (d / 2) / math.gamma(d / 2 + 1)
        expected = (d + 2) / (2 * volume) / (3 / 4)
        assert kernel.normalizing_constant(d) == pytest.approx(expected, rel=1e-12)


class TestBoxcar(WithoutGradient, CompactContract):
    samples = (Boxcar(),)
    table = (1 / 2, 1 / 3, 1.3510)

    def profile(self, kernel, r):
        return 1 / 2 if r <= 1 else 0

    def test_the_edge_belongs_to_the_window(self, kernel):
        np.testing.assert_array_equal(kernel([[0.0]], [[-1.0], [1.0]]), 0.5)


class TestTriangular(CompactContract):
    samples = (Triangular(),)
    table = (2 / 3, 1 / 6, 1.8882)

    def profile(self, kernel, r):
        return 1 - r if r <= 1 else 0


class TestBiweight(CompactContract):
    samples = (Biweight(),)
    table = (5 / 7, 1 / 7, 2.0362)

    def profile(self, kernel, r):
        return 15 / 16 * (1 - r**2) ** 2 if r <= 1 else 0


class TestTriweight(CompactContract):
    samples = (Triweight(),)
    table = (350 / 429, 1 / 9, 2.3122)

    def profile(self, kernel, r):
        return 35 / 32 * (1 - r**2) ** 3 if r <= 1 else 0


class TestTricube(CompactContract):
    samples = (Tricube(),)
    table = (175 / 247, 35 / 243, 2.0262)

    def profile(self, kernel, r):
        return 70 / 81 * (1 - r**3) ** 3 if r <= 1 else 0


class TestCosine(CompactContract):
    samples = (Cosine(),)
    table = (pi**2 / 16, 1 - 8 / pi**2, 1.7663)

    def profile(self, kernel, r):
        return pi / 4 * math.cos(pi / 2 * r) if r <= 1 else 0


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
