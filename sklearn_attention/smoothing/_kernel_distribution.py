"""Distributions of which smoothing kernels are the densities.

They are symmetric about 0. A number u is in units of the kernel's bandwidth.
"""

import math

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from ..kernels import Gaussian

# Number of steps in the table of a kernel's distribution function. The error of a cubic spline
# falls with the fourth power of this number; with 2^13 steps it is below 1e-10 of the peak.
_N_STEPS = 2**13
# The table of a kernel without bounded support ends at the distance where the kernel times the
# distance is this small. Kernels that are larger beyond the second distance are refused.
_NEGLIGIBLE, _MAX_SUPPORT = 1e-18, 1e3


class KernelDistribution:
    """Distribution function of a positive smoothing kernel, and its inverse.

    It has a closed form for the Gaussian kernel, and is tabulated for all others.
    """

    def __init__(self, kernel):
        self.support = effective_support(kernel)  # in bandwidths
        self._is_gaussian = type(kernel) is Gaussian
        if not self._is_gaussian:
            self._grid = np.linspace(0, self.support, _N_STEPS + 1)
            # A profile is the kernel as a function of the squared distance.
            density = CubicSpline(self._grid, kernel.profile(self._grid**2))
            # The integral of the kernel from 0 to a distance. It is divided by the integral to
            # the end of the grid where it is used, so the kernel need not be normalised.
            self._mass_to = density.antiderivative()
            # `ppf` inverts the integrals on the grid. By rounding they may fall a little, but
            # the inversion needs increasing numbers.
            self._mass_on_grid = np.maximum.accumulate(self._mass_to(self._grid))

    def cdf(self, u):
        """Compute the probability of a number of at most `u`, in bandwidths."""
        if self._is_gaussian:
            return ndtr(u)
        distance = np.minimum(np.abs(u), self.support)
        mass = self._mass_to(distance) / self._mass_on_grid[-1]
        return 0.5 + 0.5 * np.copysign(np.clip(mass, 0, 1), u)

    def ppf(self, probability):
        """Compute the quantile, in bandwidths, at which `cdf` is the probability."""
        if self._is_gaussian:
            return ndtri(probability)
        mass = np.abs(2 * np.asarray(probability) - 1) * self._mass_on_grid[-1]
        distance = np.interp(mass, self._mass_on_grid, self._grid)
        return np.copysign(distance, probability - 0.5)

    def draw(self, random_state, shape):
        """Draw an array of independent numbers, in bandwidths, from the kernel."""
        # A generator draws from the left ends of 2^53 cells. The middle of a cell is never 0,
        # whose quantile is infinite.
        return self.ppf(random_state.uniform(size=shape) + 2.0**-54)


def effective_support(kernel):
    """Return the distance, in bandwidths, beyond which a kernel is 0 or negligible."""
    if math.isfinite(kernel.support):
        return float(kernel.support)
    # The distance grows until the kernel times the distance is negligible.
    support = 1.0
    while kernel.profile(np.float64(support**2)) * support > _NEGLIGIBLE:
        support *= 1.25
        if support > _MAX_SUPPORT:
            raise ValueError(
                f"kernel={kernel!r} falls too slowly to be tabulated: choose a kernel with "
                "lighter tails, such as 'gaussian' or 'logistic'."
            )
    return support
