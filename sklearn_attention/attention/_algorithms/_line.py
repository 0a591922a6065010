"""Kernel sums along one feature, by whichever algorithm is the fastest."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ._boxes import BoxSums, reach
from ._pairs import pair_sums
from ._recurrences import RecurrenceSums
from ._windows import WindowSums, window

# A sum is trusted down to this many times the bound on its error.
_TRUSTED = 1e9
# Weights below this share of the largest, as a logarithm, are left out of sums that are made
# pair by pair.
_INVISIBLE = -40.0
# Nanoseconds of a query and of a pair where sums are made pair by pair, and what each sum adds
# to the latter; and of a call of the algorithms of linear time.
_QUERY, _PAIR, _SUM, _CALL = 150.0, 6.0, 0.7, 1e5
# Queries that stand for all where pairs are counted.
_COUNTED = 512


class LineSums(NamedTuple):
    """Sums about each query, in units of the bandwidth.

    Attributes
    ----------
    shift : ndarray of shape (m,)
        Logarithm of what the sums are divided by; -inf where no key has weight.
    sums : ndarray of shape (2 * degree + 1, 1 + p, m)
        For each power of the key's distance the sum of the weights, and up to the degree
        that of the weights times each value.
    """

    shift: Any
    sums: Any


class Line:
    """Keys along one feature, in order.

    Parameters
    ----------
    x : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    values : ndarray of shape (n, p)
    kernel : RadialKernel
        One that :func:`serves` the line.
    degree : int
        Half the highest power of the distance to be summed.
    """

    def __init__(self, x, weights, values, kernel, degree=0):
        self.order = np.argsort(x)
        self.x = x[self.order]
        self.columns = np.vstack([weights, (values * weights[:, None]).T])[:, self.order]
        self.kernel, self.degree = kernel, degree
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.reach = reach(kernel, 2 * degree)

    def sums(self, queries, scale, own=None):
        """Sums for queries in ascending order.

        Parameters
        ----------
        queries : ndarray of shape (m,)
            The attribute `x` for the keys themselves, which spares some work.
        scale : float or ndarray of shape (m,)
            Multiplies the bandwidth.
        own : int ndarray of shape (m,), default=None
            Position, in order, of the key to leave out of each query's sums; -1 for none.

        Returns
        -------
        found : LineSums
        """
        if np.ndim(scale) or self._pairs_are_few(queries, scale):
            return self._by_pairs(queries, scale, own)
        sums, error = self._linear(self.x, self.columns, queries, scale)
        if own is not None:
            itself = np.where(own >= 0, self.peak, 0.0) * self.columns[:, own]
            sums[0] -= itself
        total = sums[0, 0]
        shift = np.zeros(len(queries))
        unsure = np.flatnonzero(~(total > _TRUSTED * error))
        if len(unsure):
            own = None if own is None else own[unsure]
            shift[unsure], sums[:, :, unsure] = self._by_pairs(queries[unsure], scale, own)
        return LineSums(shift, sums)

    @functools.cached_property
    def _linear(self):
        kernel = self.kernel
        if kernel.polynomial is not None:
            return WindowSums(kernel, self.degree)
        if kernel.exponential_polynomial is not None:
            return RecurrenceSums(kernel, self.degree)
        return BoxSums(kernel, self.degree)

    def _pairs_are_few(self, queries, scale):
        some = queries[:: max(1, len(queries) // _COUNTED)]
        low, high = window(self.x, some, self.reach * scale)
        n_columns = len(self.columns)
        n_sums = 2 * self.degree + 1 + (self.degree + 1) * (n_columns - 1)
        pairs = _QUERY + (_PAIR + _SUM * n_sums) * (high - low).mean()
        linear = self._linear.cost(self.x, n_columns, some, scale)
        n_rows = (len(self.x) + len(queries)) / 2
        return pairs * len(queries) < linear * n_rows + _CALL

    def _by_pairs(self, queries, scale, own):
        """Pair by pair, over the keys that can be seen beside the nearest."""
        kernel, scale = self.kernel, np.broadcast_to(scale, np.shape(queries))
        bounded = math.isfinite(kernel.support)
        distance = self.reach * scale
        if not bounded:
            nearest = self._beside(queries, own)[2] / scale
            far = np.flatnonzero(np.isfinite(nearest) & (nearest > self.reach / 4))
            distance[far] = self._furthest(nearest[far]) * scale[far]
        exact = bounded and kernel.profile(np.ones(1))[0] > 0
        ranges = window(self.x, queries, distance, exact=exact)
        return LineSums(
            *pair_sums(self.x, self.columns, queries, ranges, kernel, scale, self.degree, own)
        )

    def _furthest(self, nearest):
        """Distance up to which keys weigh something beside one at a given distance."""
        # The kernels' logarithms are concave: beyond the nearest key they fall at least as
        # fast as from 0.
        low, high = nearest, nearest + self.reach
        with np.errstate(over="ignore"):
            lowest = self.kernel.log_profile(nearest**2) + _INVISIBLE
            for _ in range(20):
                middle = (low + high) / 2
                seen = self.kernel.log_profile(middle**2) > lowest
                low, high = np.where(seen, middle, low), np.where(seen, high, middle)
        return high

    def nearest(self, queries, own=None):
        """Sums over the nearest keys of each query alone, which share where equally near.

        Parameters
        ----------
        queries, own
            As for :meth:`sums`; in any order.

        Returns
        -------
        distance : ndarray of shape (m,)
            To the nearest key; inf where there is none.
        sums : ndarray of shape (2 * degree + 1, 1 + p, m)
            Sums of the columns; those of higher powers are 0, so that a polynomial is the
            average.
        """
        before, after, distance = self._beside(queries, own)
        x, n = self.x, len(self.x)
        left, right = x[before.clip(0)], x[after.clip(max=n - 1)]
        on_left = (before >= 0) & (queries - left == distance)
        on_right = (after < n) & (right - queries == distance)
        low = np.where(on_left, np.searchsorted(x, left, "left"), before + 1)
        high = np.where(on_right, np.searchsorted(x, right, "right"), after)
        running = np.cumsum(np.pad(self.columns, ((0, 0), (1, 0))), axis=1)
        sums = np.zeros((2 * self.degree + 1, len(self.columns), len(queries)))
        sums[0] = running[:, high] - running[:, low]
        if own is not None:
            twin = (own >= low) & (own < high)
            sums[0][:, twin] -= self.columns[:, own[twin]]
        return distance, sums

    def everything(self, queries, own=None, scale=1.0):
        """Sums over all keys alike, as :meth:`nearest`; powers are in units of the scale."""
        weight = self.columns[0]
        middle = weight @ self.x / weight.sum()
        powers = range(2 * self.degree + 1)
        moments = [self.columns @ (self.x - middle) ** k for k in powers]
        offset = middle - queries
        sums = np.zeros((len(powers), len(self.columns), len(queries)))
        for e in powers:
            for k in range(e + 1):
                shifted = math.comb(e, k) * offset ** (e - k) * moments[k][:, None]
                sums[e] += shifted / scale**e
        if own is not None:
            sums[0] -= np.where(own >= 0, self.columns[:, own], 0.0)
        return np.zeros(len(queries)), sums

    def _beside(self, queries, own):
        """The keys next to each query on either side, and the smaller of their distances."""
        x, n = self.x, len(self.x)
        after = np.searchsorted(x, queries, "left")
        before = after - 1
        if own is not None:
            before = np.where(own >= 0, own - 1, before)
            after = np.where(own >= 0, own + 1, after)
        left = np.where(before >= 0, queries - x[before.clip(0)], np.inf)
        right = np.where(after < n, x[after.clip(max=n - 1)] - queries, np.inf)
        return before, after, np.minimum(left, right)


def serves(kernel):
    """Whether a kernel of the distance has an algorithm of linear time on the line."""
    light = kernel.analytic_strip > 0 and np.isfinite(reach(kernel))
    return kernel.polynomial is not None or kernel.exponential_polynomial is not None or light
