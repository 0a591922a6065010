"""Keys along one or two features, over which kernel sums take linear time."""

import copy
import functools
import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..._blocks import IN_CACHE
from ...kernels._numerics import LARGEST
from .._solve import Basis
from .._sums import Sums

# A sum is accurate if it exceeds the bound on its error by this factor.
_ACCURACY = 1e9
# Bound on the rounding error of a sum, relative to the sum of the absolute terms.
ROUNDING = 1e-13
# Weights below this share of the kernel's peak, or of the weight of the nearest key, are
# neglected.
_NEGLIGIBLE = 1e-20


class Keys(ABC):
    """Base class of keys along one or two axes, and sums over them in linear time."""

    # A subclass has an algorithm of linear time. It may sum pairs where that is faster, or if
    # sums are too small for the error bound.

    # Points (n, n_axes) have weights (n,) and values (n, p); `degree` is half the highest power
    # of the distances. `columns` (1 + p, n) has the weights, and these times the values;
    # `powers` has exponents of the distances, in bandwidths, along each axis. `peak` is the
    # kernel at distance 0; beyond the distance `cutoff` it is negligible.

    def __init__(self, points, weights, values, kernel, degree=0):
        self.points, self.kernel, self.degree = points, kernel, degree
        self._largest = np.abs(points).max()
        self.columns = np.vstack([weights, (values * weights[:, None]).T])
        basis = Basis(degree, points.shape[1])
        self.powers = list(map(tuple, basis.powers.tolist()))
        # Number of sums that differ from 0.
        self.n_sums = len(self.powers) + basis.size * (len(self.columns) - 1)
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.cutoff = cutoff(kernel, 2 * degree)
        # Logarithm of the ratio of the largest weight to the smallest one, less the margin by
        # which negligible weights are below rounding.
        span = math.log(weights.max()) - math.log(weights[weights > 0].min())
        self.span = max(0.0, span - math.log(np.finfo(np.float64).eps / _NEGLIGIBLE))
        # Logarithm of the ratio of the weight of the nearest key to a negligible one.
        self.log_ratio_to_negligible = self.span - math.log(_NEGLIGIBLE)

    @classmethod
    def of(cls, table, form, degree=0):
        """Return the keys of a table along the features of its kernel's form."""
        points = table.keys[:, form.columns]
        points = points[:, 0] if len(form.columns) == 1 else points
        keys = cls(points, table.weights, table.values, form.kernel, degree)
        keys._axes = form.columns
        return keys

    def asked(self, problem):
        """Return the keys of a problem with its queries."""
        keys = copy.copy(self)
        keys.problem, queries = problem, problem.queries[:, self._axes]
        keys.are_queries = len(queries) == len(self.points) and np.array_equal(
            queries, problem.keys[:, self._axes]
        )
        # Queries further from all keys are moved to where their squares are still numbers.
        furthest = self._largest + LARGEST
        keys._queries = queries.clip(-furthest, furthest)
        return keys

    @functools.cached_property
    def _rank(self):
        """Position of each key, as passed, in the order of the points."""
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(len(rank))
        return rank

    @abstractmethod
    def _in_linear_time(self, queries, scale):
        """Return sums, and bounds on the error of the first; None if pairs are as fast."""

    def _by_pairs(self, queries, scale, left_out):
        """Sum pair by pair over the keys within the cutoff; None if others are faster."""
        return None

    def sums(self, queries, scale, left_out=None, *, max_share=1.0):
        """Sum about queries (m, n_axes) at multiples of the bandwidth, a number or (m,).

        Ranges `left_out` (m, 2) are positions of keys as passed. Sums below the error bound are
        computed again from pairs, unless their share is larger than `max_share`. None if other
        algorithms are faster.
        """
        # The attribute `points` as queries saves work.
        with_errors = self._in_linear_time(queries, scale)
        scales = np.broadcast_to(scale, len(queries))
        if with_errors is None:
            return self._by_pairs(queries, scales, left_out)
        sums, error = with_errors
        if left_out is not None:
            self._subtract(sums, queries, scales, left_out)
        result = Sums(np.zeros(len(queries)), sums, _ACCURACY * error)
        small = np.flatnonzero(~(sums[0, 0] > result.error_bound))
        if 0 < len(small) <= max_share * len(queries):
            pairs = self._by_pairs(queries[small], scales[small], _rows(left_out, small))
            if pairs is not None:
                result.put(small, pairs)
        return result

    def _subtract(self, sums, queries, scales, left_out):
        """Subtract from sums those over the keys that queries leave out, in place."""
        low, high = left_out.T
        for step in range((high - low).max(initial=0)):
            has_key = low + step < high
            rows = slice(None) if has_key.all() else np.flatnonzero(has_key)
            keys = self._rank[low[rows] + step]
            u = (self.points[keys] - queries[rows]).T
            # At the keys all powers but 0 are 0.
            powers, weights = self.powers[:1], self.peak
            if u.any():
                u /= scales[rows]
                powers, weights = self.powers, self.kernel.profile((u * u).sum(axis=0))
            for p, power in enumerate(powers):
                terms = weights * np.prod(u.T**power, axis=1) if p else weights
                for c in range(len(self.columns) if sum(power) <= self.degree else 1):
                    sums[p, c, rows] -= terms * self.columns[c, keys]

    def sums_of(self, rows, scale, *, max_share):
        """Sum about some queries of the problem, in their order, as :meth:`sums`.

        Powers are in units of the scale, a number or one for each query.
        """
        queries, left_out = self._queries_at(rows)
        order = np.arange(len(queries))
        if self.are_queries and np.array_equal(rows, np.arange(len(self.points))):
            order, queries = self.order, self.points
        elif self.points.shape[1] == 1:
            order = np.argsort(queries[:, 0])
            queries = queries[order]
        scale = scale[order] if np.ndim(scale) else scale
        sums = self.sums(queries, scale, _rows(left_out, order), max_share=max_share)
        return None if sums is None else in_order(sums, order)

    def groups(self, scales):
        """Return the scales in groups whose sums are computed together."""
        return np.split(scales, len(scales))

    def _queries_at(self, rows):
        """Return some queries, and the ranges of keys that they leave out."""
        return _rows(self._queries, rows), _rows(self.problem.left_out, rows)


def _rows(table, rows):
    """Return rows of a table, None for None; indexing takes NumPy ten times as long."""
    return None if table is None else table.take(rows, axis=0)


def in_order(ordered, order):
    """Return sums of ordered queries in the order in which the queries were passed."""
    result = Sums(*(np.empty_like(field) for field in ordered[:3]))
    result.shift[order], result.error_bound[order] = ordered.shift, ordered.error_bound
    # Sum by sum: NumPy is ten times slower where it writes to many rows at once.
    for e, c in np.ndindex(ordered.sums.shape[:2]):
        result.sums[e, c][order] = ordered.sums[e, c]
    return result


def cutoff(kernel, power=0, span=0.0):
    """Return the distance, in bandwidths, beyond which a kernel times a power is negligible.

    The power is one of the distance. With the span of the weights this also holds for the
    heaviest key beside the lightest.
    """
    if math.isfinite(kernel.support):
        return kernel.support
    distances = np.arange(0.125, 256, 0.125)
    peak = kernel.profile(np.zeros(1))[0]
    weights = kernel.profile(distances**2) * np.maximum(distances, 1) ** power
    counts = weights > _NEGLIGIBLE * math.exp(-span) * peak
    return math.inf if counts[-1] else float(distances[np.flatnonzero(counts)[-1]]) + 0.125


# Pairs at a time: the temporaries stay in the processor's cache.
BLOCK_PAIRS = IN_CACHE // 4


def blocks_of_sizes(sizes, max_sum):
    """Yield positions of sizes (m,) above 0, in blocks whose sizes sum to `max_sum` at most.

    A block has one position at least.
    """
    rows = np.flatnonzero(sizes)
    ends = np.cumsum(sizes[rows])
    first = 0
    while first < len(rows):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + max_sum, "right")))
        yield rows[first:last]
        first = last


class Ranges(NamedTuple):
    """A range of keys for each query."""

    low: Any  # (m,) the first key of each
    high: Any  # (m,) the key behind its last
    order: Any = None  # the keys in the order of which these are ranges; None for their own

    def blocks(self):
        """Yield queries that have keys, the number of keys of each, and these keys.

        Each block has at most `BLOCK_PAIRS` pairs, or a single query.
        """
        counts = (self.high - self.low).clip(0)
        for rows in blocks_of_sizes(counts, BLOCK_PAIRS):
            keys = ranges(self.low[rows], self.high[rows])
            yield rows, counts[rows], keys if self.order is None else self.order[keys]


def inside(limits, positions):
    """Return True for positions that lie in ranges (..., 2)."""
    return (limits[..., 0] <= positions) & (positions < limits[..., 1])


def ranges(low, high):
    """Return all numbers of some ranges, one range after the other."""
    sizes = high - low
    return np.arange(sizes.sum()) + np.repeat(low - (np.cumsum(sizes) - sizes), sizes)
