"""The distribution of which a smoothing kernel is the density, and mixtures of it."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from ..bandwidth._convolution import kernel_reach
from ..kernels import Gaussian

# Steps of the table, with an error below 1e-10 for every kernel of the package.
_STEPS = 2**13
# Enough for plain bisection, where the distribution function has corners.
_MAX_STEPS = 200


class KernelDistribution:
    """Distribution function of a positive smoothing kernel, and its inverse.

    In closed form for the Gaussian kernel, else from a table of the density.
    """

    def __init__(self, kernel):
        self.reach = kernel_reach(kernel)
        self._closed = type(kernel) is Gaussian
        if not self._closed:
            self._grid = np.linspace(0, self.reach, _STEPS + 1)
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
        self.values, self.kernel, self.bandwidth = values, kernel, bandwidth
        self.distribution = KernelDistribution(kernel)

    def cdf(self, weights, y):
        """Distribution functions of (n, n_keys) weights at (n, n_places) places."""
        return np.einsum("ni,nki->nk", weights, self.distribution.cdf(self._distances(y)))

    def density(self, weights, y):
        """Densities of (n, n_keys) weights at (n, n_places) places."""
        density = self.kernel.profile(self._distances(y) ** 2) / self.bandwidth
        return np.einsum("ni,nki->nk", weights, density)

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
        """Values at which the distribution functions reach (n_places,) probabilities.

        Newton's method, and bisection wherever it leaves the bracket or is slow.
        """
        reach = self.distribution.reach * self.bandwidth
        low = np.full((len(weights), len(probability)), self.values.min() - reach)
        high = np.full(low.shape, self.values.max() + reach)
        tolerance = 1e-13 * np.maximum(reach, np.maximum(np.abs(low), np.abs(high)))
        y = self._discrete_quantiles(weights, probability)
        step = high - low
        for _ in range(_MAX_STEPS):
            excess = self.cdf(weights, y) - probability
            low, high = np.where(excess < 0, y, low), np.where(excess < 0, high, y)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = y - excess / self.density(weights, y)
            good = (newton > low) & (newton < high) & (np.abs(newton - y) < 0.5 * np.abs(step))
            following = np.where(good, newton, (low + high) / 2)
            step, y = following - y, following
            if (np.abs(step) <= tolerance).all():
                break
        y[np.isnan(weights).any(axis=1)] = np.nan
        return y

    def _distances(self, y):
        return (y[:, :, None] - self.values) / self.bandwidth  # (n, n_places, n_keys)

    def _discrete_quantiles(self, weights, probability):
        """Quantiles of the values before they are spread: a place to start."""
        order = np.argsort(self.values, kind="stable")
        cumulated = np.cumsum(weights[:, order], axis=1)
        places = (cumulated[:, None, :-1] < probability[:, None]).sum(axis=2)
        return self.values[order][places]
