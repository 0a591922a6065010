"""What fast sums over one feature use: polynomials, exponentials and strips of analyticity."""

import math

import numpy as np
import pytest
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import polyval

from sklearn_attention.kernels import RationalQuadratic
from sklearn_attention.kernels._base import KERNELS, as_kernel

NAMED = [as_kernel(name) for name in sorted(KERNELS)]
POLYNOMIALS = [kernel for kernel in NAMED if kernel.polynomial]
EXPONENTIALS = [kernel for kernel in NAMED if kernel.exponential_polynomial]
ANALYTIC = [*(kernel for kernel in NAMED if kernel.analytic_strip), RationalQuadratic(4.0)]


def along_one_feature(kernel, u):
    return kernel([[0.0]], np.asarray(u)[:, None])[0]


def each(kernels):
    return pytest.mark.parametrize("kernel", kernels, ids=repr)


@each(POLYNOMIALS)
def test_polynomials(kernel):
    u = np.linspace(0, 1, 1001)
    expected = along_one_feature(kernel, u)
    np.testing.assert_allclose(polyval(u, kernel.polynomial), expected, rtol=0, atol=2e-15)
    assert kernel.polynomial[-1] != 0


@each(EXPONENTIALS)
def test_exponential_polynomials(kernel):
    u = np.linspace(0, 30, 1001)
    rate, coefficients = kernel.exponential_polynomial
    actual = polyval(u, coefficients) * np.exp(-rate * u)
    np.testing.assert_allclose(actual, along_one_feature(kernel, u), rtol=1e-13)


@each(ANALYTIC)
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_chebyshev_series_converge_as_the_strip_says(kernel, radius):
    """On [-r, r] they fall like rho^-k, with rho of the largest ellipse within the strip."""
    series = chebyshev.chebinterpolate(lambda x: along_one_feature(kernel, radius * x), 79)
    degrees = np.arange(80)
    clear = (np.abs(series) > 1e-13) & (degrees > 5) & (degrees % 2 == 0)
    degrees, logs = degrees[clear], np.log(np.abs(series[clear]))
    if math.isinf(kernel.analytic_strip):
        assert (np.diff(logs / degrees) < 0).all()  # faster than any geometric series
    else:
        expected = math.asinh(kernel.analytic_strip / radius)  # log rho
        assert -np.polyfit(degrees, logs, 1)[0] == pytest.approx(expected, rel=0.15)
