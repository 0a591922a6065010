"""Weighted mixtures of one kernel around fixed values: distribution and quantiles."""

import numpy as np

from ._kernel_distribution import KernelDistribution

# Enough for plain bisection, where the distribution function has corners.
_MAX_STEPS = 200


class KernelMixture:
    r"""Mixtures of a smoothing kernel around values, one mixture for each row of weights.

    .. math:: F(y) = \sum_i w_i\, F_K\Big(\frac{y - y_i}{g}\Big)

    Parameters
    ----------
    values : ndarray of shape (n_keys,)
        The centres :math:`y_i`.
    kernel : SmoothingKernel
        A positive one.
    bandwidth : float
        Its bandwidth :math:`g`.
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

    def quantiles(self, weights, probability):
        """Where the distribution functions reach (n_places,) probabilities.

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
