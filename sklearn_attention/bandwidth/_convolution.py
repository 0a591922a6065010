"""Smoothing kernels convolved with themselves, which least-squares cross-validation needs."""

import functools
import math

import numpy as np
from numpy.polynomial import Polynomial
from scipy.interpolate import CubicSpline
from scipy.special import beta
from sklearn.base import clone

from ..kernels import Gaussian, RadialKernel

# The integrals of the table are of smooth functions: so many nodes leave nothing but rounding.
_NODES = 100
# Steps of tables of kernels. The error of a cubic spline falls with their fourth power: here
# below 1e-10 of the peak.
STEPS = 2**13
# A kernel without bounds ends where it is this small.
_NEGLIGIBLE = 1e-18
_LONGEST_REACH = 1e3
# Coefficients of polynomials are left out below this share of the largest.
_SMALLEST_COEFFICIENT = 1e-17


def self_convolution(kernel, n_parts=1):
    r"""Parts of :math:`(K * K)(t) = \int K(v)\, K(t - v)\,dv` of a smoothing kernel, in 1-d."""
    # At most `n_parts` (1 or 2), each a factor, a kernel (Gaussian, polynomial of the distance
    # or table) and a divisor of its distances. Of a polynomial kernel one polynomial on |t| <=
    # 2 holds for |t| >= 1. Nearer to 0, if the kernel has a kink at 0, another of one sign is
    # added.
    if type(kernel) is Gaussian:
        return [(math.sqrt(0.5), kernel, math.sqrt(2))]
    if kernel.polynomial is None or (n_parts == 1 and any(kernel.polynomial[1::2])):
        return [(1.0, TabulatedConvolution(kernel), 1.0)]
    from_center = Polynomial(kernel.polynomial)
    from_edge = from_center(Polynomial([1, -1]))
    outer = _convolve(from_edge, from_edge)  # in 2 - t
    parts = [(1.0, PolynomialKernel(outer(Polynomial([2, -2]))), 2.0)]
    if any(kernel.polynomial[1::2]):
        inner = _convolve(from_center, from_center) - outer(Polynomial([2, -1]))
        inner += 2 * _convolve(from_edge, from_center)(Polynomial([1, -1]))
        sign = math.copysign(1.0, inner(0.0))
        parts.append((sign, PolynomialKernel(sign * inner), 1.0))
    return parts


def _convolve(left, right):
    r"""The polynomial :math:`\int_0^t l(s)\, r(t - s)\,ds`."""
    j, k = np.ogrid[: len(left), : len(right)]
    terms = np.multiply.outer(left.coef, right.coef) * beta(j + 1, k + 1)
    return Polynomial(np.bincount((j + k + 1).ravel(), terms.ravel()))


class PolynomialKernel(RadialKernel):
    """A polynomial of the distance up to one bandwidth, and 0 beyond."""

    support = 1.0
    decreasing = True

    def __init__(self, polynomial):
        lost = _SMALLEST_COEFFICIENT * np.abs(polynomial.coef).max()
        self.polynomial = tuple(polynomial.trim(lost).coef.tolist())

    def profile(self, squared):
        return _horner(self.polynomial, np.sqrt(np.minimum(squared, 1.0))) * (squared <= 1)

    def log_slope(self, squared):
        distance = np.sqrt(np.minimum(squared, 1.0))
        slope = _horner([k * c for k, c in enumerate(self.polynomial)][1:] or [0.0], distance)
        return _ratio(slope, 2 * distance * self.profile(squared))


def _ratio(slope, value):
    return np.divide(slope, value, out=np.zeros_like(value), where=value > 0)


def _horner(coefficients, x):
    """Values of a polynomial, lowest power first; like `numpy.polynomial`'s, but in place."""
    values = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        values *= x
        values += coefficient
    return values


class TabulatedConvolution(RadialKernel):
    """Any smoothing kernel convolved with itself, from a table."""

    def __init__(self, kernel):
        self.kernel = kernel

    @property
    def support(self):
        return 2 * kernel_reach(self.kernel)

    def profile(self, squared):
        return self._value_and_slope(squared)[0]

    def log_slope(self, squared):
        value, slope = self._value_and_slope(squared)
        return _ratio(slope, value * 2 * np.sqrt(squared))

    def _value_and_slope(self, squared):
        """The kernel, and its derivative with respect to the distance."""
        # The copy keeps the stored result from changing with this kernel's parameters.
        table, step = _table(clone(self.kernel))
        distance = np.sqrt(squared)
        inside = distance < STEPS * step
        distance = np.where(inside, distance, 0.0)
        index = (distance / step).astype(np.intp)
        t = distance - index * step
        a, b, c, d = (row.take(index) for row in table)
        value = np.where(inside, a + t * (b + t * (c + t * d)), 0.0)
        slope = b + t * (2 * c + t * (3 * d))
        return np.maximum(value, 0), slope


@functools.lru_cache(maxsize=8)
def _table(kernel):
    """Coefficients of a cubic for each step, lowest power first, and the step."""
    # By the second of two forms: whatever kinks a kernel has at 0 and at its edges, the
    # integrand of 2 int_{t/2}^inf K(v) K(t - v) dv is smooth on either side of v = t.
    reach = kernel_reach(kernel)
    grid = np.linspace(0, 2 * reach, STEPS + 1)
    edge = np.clip(grid, None, reach)
    near, far = _integral(kernel, grid, grid / 2, edge), _integral(kernel, grid, edge, reach)
    spline = CubicSpline(grid, 2 * (near + far))
    return np.ascontiguousarray(spline.c[::-1]), grid[1]


def _integral(kernel, t, start, end):
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (end - start) / 2
    v = (start + half)[:, None] + half[:, None] * nodes
    products = kernel.profile(v**2) * kernel.profile((t[:, None] - v) ** 2)
    return half * (products @ weights)


def kernel_reach(kernel):
    """Distance, in bandwidths, beyond which a smoothing kernel is 0 or next to it."""
    if math.isfinite(kernel.support):
        return float(kernel.support)
    reach = 1.0
    while kernel.profile(np.float64(reach**2)) * reach > _NEGLIGIBLE:
        reach *= 1.25
        if reach > _LONGEST_REACH:
            raise ValueError(
                f"kernel={kernel!r} falls too slowly to be tabulated: choose a kernel with "
                "lighter tails, such as 'gaussian' or 'logistic'."
            )
    return reach
