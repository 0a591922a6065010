"""The covariance kernels and the kernels for what repeats."""

import math

import numpy as np
import pytest
from kernel_contracts import KernelContract, RadialContract, WithoutUnderflow

from sklearn_attention.kernels import (
    Exponential,
    Laplacian,
    LocallyPeriodic,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)


class TestCovariance(WithoutUnderflow, RadialContract):
    samples = (
        Exponential(), Matern32(), Matern52(), RationalQuadratic(alpha=0.1),
        RationalQuadratic(alpha=30),
    )  # fmt: skip

    def log_profile(self, kernel, r):
        if isinstance(kernel, RationalQuadratic):
            return -kernel.alpha * math.log1p(r**2 / (2 * kernel.alpha))
        if kernel == Exponential():
            return -r
        if kernel == Matern32():
            return math.log(1 + math.sqrt(3) * r) - math.sqrt(3) * r
        return math.log(1 + math.sqrt(5) * r + 5 / 3 * r**2) - math.sqrt(5) * r


class TestPeriodic(RadialContract):
    samples = (Periodic(), Periodic(period=1.5, length_scale=0.7))

    def profile(self, kernel, r):
        return math.exp(self.log_profile(kernel, r))

    def log_profile(self, kernel, r):
        # The remainder is exact, so this keeps the phase whatever the distance.
        sine = math.sin(math.pi * math.remainder(r, kernel.period) / kernel.period)
        return -2 * sine**2 / kernel.length_scale**2

    def test_keeps_the_phase_over_many_periods(self, kernel):
        for r in (30.25, 1000.25, 1e6 + 0.25):
            logs = kernel.log([[0.0]], [[r]])
            np.testing.assert_allclose(logs, self.log_profile(kernel, r), atol=1e-8)

    @pytest.mark.parametrize("kind", [Periodic, LocallyPeriodic])
    def test_extreme_parameters(self, kind):
        keys = [[0.0], [0.25]]
        assert kind(length_scale=1e200)([[0.0]], keys).tolist() == [[1, 1]]
        assert kind(length_scale=1e-200)([[0.0]], keys).tolist() == [[1, 0]]
        period_free = kind(period=1e200).log([[0.0]], keys)
        expected = [[0, -(0.25**2) / 2 if kind is LocallyPeriodic else 0]]
        np.testing.assert_array_equal(period_free, expected)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(RationalQuadratic, "alpha"), (Periodic, "length_scale"), (LocallyPeriodic, "period")],
)
@pytest.mark.parametrize("value", [0, math.nan, math.inf, "1", True])
def test_parameters_that_are_not_positive(kind, name, value):
    with pytest.raises(ValueError, match=rf"{name}={value!r} is not valid: pass a finite"):
        kind(**{name: value})([[0.0]])


class TestLocallyPeriodic(WithoutUnderflow, RadialContract):
    samples = (LocallyPeriodic(), LocallyPeriodic(period=1.5, length_scale=0.7))

    def log_profile(self, kernel, r):
        sine = math.sin(math.pi * math.remainder(r, kernel.period) / kernel.period)
        return -2 * sine**2 / kernel.length_scale**2 - r**2 / (2 * kernel.length_scale**2)


class TestLaplacian(KernelContract):
    samples = (Laplacian(),)

    def formula(self, kernel, q, k):
        return math.exp(-sum(abs(a - b) for a, b in zip(q, k, strict=True)))

    def test_log_is_accurate_far_beyond_underflow(self, kernel):
        keys = [[1e200, -1e200], [1e-300, 0.0], [1000.5, 2000.25]]
        logs = kernel.log([[0.0, 0.0]], keys)
        np.testing.assert_allclose(logs, [[-2e200, -1e-300, -3000.75]], rtol=1e-15)
        assert kernel([[0.0, 0.0]], keys).tolist() == [[0, 1, 0]]
