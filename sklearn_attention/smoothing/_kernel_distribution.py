"""The distribution of which a smoothing kernel is the density, and mixtures of it."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root
from scipy.special import ndtr, ndtri

from ..bandwidth._convolution import STEPS, kernel_reach
from ..kernels import Gaussian


class KernelDistribution:
    """Distribution function of a positive smoothing kernel, and its inverse.

    In closed form for the Gaussian kernel, else from a table of the density.
    """

    def __init__(self, kernel):
        self.reach = kernel_reach(kernel)
        self._closed = type(kernel) is Gaussian
        if not self._closed:
            self._grid = np.linspace(0, self.reach, STEPS + 1)
            density = CubicSpline(self._grid, kernel.profile(self._grid**2))
            self._mass = density.antiderivative()
            self._half = np.maximum.accumulate(self._mass(self._grid))

    def cdf(self, u):
        """Probability of being at most `u`."""
        if self._closed:
            return ndtr(u)
        mass = self._mass(np.minimum(np.abs(u), self.reach)) / self._half[-1]
        return 0.5 + 0.5 * np.copysign(np.clip(mass, 0, 1), u)

    def ppf(self, probability):
        """Quantile: where the distribution function has a given value."""
        if self._closed:
            return ndtri(probability)
        mass = np.abs(2 * np.asarray(probability) - 1) * self._half[-1]
        return np.copysign(np.interp(mass, self._half, self._grid), probability - 0.5)

    def draw(self, random_state, shape):
        """Independent draws from the kernel."""
        # In the middle of the cells a generator draws from: 0, whose quantile is infinite,
        # is none of them.
        return self.ppf(random_state.uniform(size=shape) + 2.0**-54)


class KernelMixture:
    r"""Mixtures of a positive smoothing kernel, one mixture for each row of weights.

    :math:`F(y) = \sum_i w_i\, F_K((y - y_i) / g)`, of values y_i and the bandwidth g.
    """

    def __init__(self, values, kernel, bandwidth):
        self.values, self.bandwidth = values, bandwidth
        self.distribution = KernelDistribution(kernel)

    def cdf(self, weights, y):
        """Distribution functions of (n, n_keys) weights at (n, n_places) places."""
        below = self.distribution.cdf((y[:, :, None] - self.values) / self.bandwidth)
        return np.einsum("ni,nki->nk", weights, below)

    def noise(self, random_state, shape):
        """Draws from the kernel, to be added to values."""
        return self.distribution.draw(random_state, shape) * self.bandwidth

    def values_at(self, weights, places):
        """Values at (n, n_places) shares of the cumulated weights; NaN where these are."""
        found = np.full(places.shape, np.nan)
        for i, shares in enumerate(np.cumsum(weights, axis=1)):
            if not np.isnan(shares[-1]):
                drawn = np.searchsorted(shares, places[i] * shares[-1], side="right")
                found[i] = self.values[drawn]
        return found

    def quantiles(self, weights, probability):
        """Values at which the distribution functions reach (n_places,) probabilities."""
        reach = self.distribution.reach * self.bandwidth
        ends = self.values.min() - reach, self.values.max() + reach
        rows = np.arange(len(weights))[:, None]

        def excess(y, row, probability):
            below = self.distribution.cdf((y[..., None] - self.values) / self.bandwidth)
            return np.einsum("...i,...i", weights[row], below) - probability

        found = find_root(excess, ends, args=(rows, probability))
        # By rounding, the most extreme probabilities may be those of no place at all.
        y = np.where(found.success, found.x, np.where(probability < 0.5, *ends))
        return np.where(np.isnan(weights[:, :1]), np.nan, y)
