"""The distribution of which a smoothing kernel is the density, and mixtures of it."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root
from scipy.special import ndtr, ndtri

from .._columns import Columns
from ..bandwidth._background import Background, fold, reflections, t_quantile
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
    r"""Mixtures of a positive smoothing kernel around centers, with weights for each center.

    :math:`F(y) = \sum_i w_i\, F_K((y - c - e_i) / g)`, of values e_i and the bandwidth g.
    Kernels are reflected at bounds (low, high). A background has a share of the mass, a center
    relative to c, and a scale.
    """

    def __init__(self, values, kernel, bandwidth, bounds=None, background=(0.0, 0.0, 1.0)):
        self.values, self.bandwidth, self.bounds = values, bandwidth, bounds
        self.distribution = KernelDistribution(kernel)
        self.share, self._center, self._scale = background

    def wide(self, centers):
        """The background around centers (n,)."""
        center, scale = [np.ravel(centers) + self._center], [self._scale]
        bounds = None if self.bounds is None else self.bounds[None]
        return Background(center, scale, Columns.numbers(1), bounds)

    def images(self, y):
        """Places, and their mirror images in the bounds."""
        if self.bounds is None:
            return [y]
        reach = self.distribution.reach * self.bandwidth
        images = reflections(np.reshape(y, (-1, 1)), self.bounds[None], reach)
        return [image.reshape(np.shape(y)) for image in images]

    def cdf(self, weights, y, centers):
        """Distribution functions at y (...), of weights (..., n_keys) around centers (...)."""

        def below(places):
            steps = (places - centers)[..., None] - self.values
            return np.einsum(
                "...i,...i", weights, self.distribution.cdf(steps / self.bandwidth)
            )

        if self.bounds is None:
            found = below(y)
        else:
            y = y.clip(*self.bounds)
            ends = zip(self.images(y), self.images(np.float64(self.bounds[0])), strict=True)
            found = sum(np.abs(below(image) - below(low)) for image, low in ends)
        if not self.share:
            return found
        shape = np.shape(y)
        wide = self.wide(np.broadcast_to(centers, shape)).cdf(np.reshape(y, (-1, 1)))
        return (1 - self.share) * found + self.share * wide.reshape(shape)

    def draw(self, weights, places, centers, random_state):
        """A draw for each of (n, n_places) shares of the cumulated weights."""
        y = (
            centers[:, None]
            + self._values_at(weights, places)
            + self.noise(random_state, places.shape)
        )
        if self.bounds is not None:
            y = fold(y, *self.bounds)
        if self.share:
            rows, columns = np.nonzero(random_state.uniform(size=y.shape) < self.share)
            drawn = self.wide(centers[rows]).draw(random_state, len(rows))[:, 0]
            y[rows, columns] = np.where(np.isnan(y[rows, columns]), np.nan, drawn)
        return y

    def noise(self, random_state, shape):
        """Draws from the kernel, to be added to values."""
        return self.distribution.draw(random_state, shape) * self.bandwidth

    def _values_at(self, weights, places):
        """Values at (n, n_places) shares of the cumulated weights; NaN where these are."""
        found = np.full(places.shape, np.nan)
        for i, shares in enumerate(np.cumsum(weights, axis=1)):
            if not np.isnan(shares[-1]):
                drawn = np.searchsorted(shares, places[i] * shares[-1], side="right")
                found[i] = self.values[drawn]
        return found

    def quantiles(self, weights, probability, centers):
        """Places at which the distribution functions reach (n_places,) probabilities."""
        reach = self.distribution.reach * self.bandwidth
        centers = centers[:, None]
        low, high = centers + self.values.min() - reach, centers + self.values.max() + reach
        if self.share:
            # Beyond all kernels there is only the background.
            far = self._scale * t_quantile(probability)
            low = np.minimum(low, centers + self._center + np.minimum(far, 0))
            high = np.maximum(high, centers + self._center + np.maximum(far, 0))
        if self.bounds is not None:
            low, high = (np.clip(x, *self.bounds) for x in (low, high))
        rows = np.arange(len(weights))[:, None]

        def excess(y, row, probability):
            return self.cdf(weights[row], y, centers[row, 0]) - probability

        found = find_root(excess, (low, high), args=(rows, probability))
        # By rounding, the most extreme probabilities may be those of no place at all.
        ends = np.where(probability < 0.5, low, high)
        y = np.where(found.success, found.x, ends)
        return np.where(np.isnan(weights[:, :1]), np.nan, y)
