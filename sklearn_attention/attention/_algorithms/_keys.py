r"""Keys along one or two features, over which kernel sums take linear time.

`LinearTimeKeys` is the base class of a `Line` and a `Plane`. For m keys :math:`k_i` and n
queries q their method `sums` computes, in O(n + m),

.. math:: S_{\alpha c}(q) = \sum_i K\bigl((q - k_i) / s\bigr)
          \bigl((k_i - q) / s\bigr)^\alpha C_{ci}

at a *scale* s, a multiple of the bandwidth; coordinates are in bandwidths. The *columns* C
(1 + p, m) have the weights of the keys, and these times each of p values. The *powers* are the
exponents :math:`\alpha` (n_axes,) of all monomials up to twice the degree of the polynomial;
those above the degree are summed for the weights only.

The sums of linear time have rounding errors relative to the largest weights around, and a bound
on these. Queries that leave out keys are summed over all keys first, and these are subtracted.
A sum that is not well above its bound is computed again from pairs.
"""

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
_MIN_RATIO_TO_ERROR = 1e9
# Bound on the rounding error of a sum, relative to the sum of the absolute terms.
ROUNDING = 1e-13
# Weights below this share of the kernel's peak, or of the weight of the nearest key, are
# neglected.
_NEGLIGIBLE = 1e-20


class LinearTimeKeys(ABC):
    """Base class of keys along one or two axes, and sums over them in linear time.

    Points (m, n_axes) are the keys in bandwidths, with weights (m,) and values (m, p); `degree`
    is that of the local polynomial.
    """

    # A subclass has the attribute `order`: the position of each point among the keys as passed.

    def __init__(self, points, weights, values, kernel, degree=0):
        self.points, self.kernel, self.degree = points, kernel, degree
        self._max_coordinate = np.abs(points).max()
        self.columns = np.vstack([weights, (values * weights[:, None]).T])
        basis = Basis(degree, points.shape[1])
        self.powers = list(map(tuple, basis.powers.tolist()))
        # This is the number of sums S that are not 0 by definition.
        self.n_sums = len(self.powers) + basis.size * (len(self.columns) - 1)
        # The peak is the kernel at distance 0; beyond the cutoff the kernel is negligible.
        self.peak = float(kernel.profile(np.zeros(1))[0])
        self.cutoff = cutoff(kernel, 2 * degree)
        # This is the logarithm of the ratio of the largest weight to the smallest one, less the
        # margin between rounding and negligible weights.
        span = math.log(weights.max()) - math.log(weights[weights > 0].min())
        self.span = max(0.0, span - math.log(np.finfo(np.float64).eps / _NEGLIGIBLE))
        # This is the logarithm of the ratio, above 1, of the nearest key's weight to a
        # negligible one.
        self.log_ratio_to_negligible = self.span - math.log(_NEGLIGIBLE)

    @classmethod
    def of(cls, table, form, degree=0):
        """Return the keys of a table along the features that its kernel's form compares.

        `table` is a `KeyTable` or a `Problem`, and `form` a `RadialForm` of its kernel.
        """
        points = table.keys[:, form.columns]
        points = points[:, 0] if len(form.columns) == 1 else points
        keys = cls(points, table.weights, table.values, form.kernel, degree)
        keys._axes = form.columns  # the features of the points
        return keys

    def with_queries(self, problem):
        """Return a copy of these keys with the queries of a problem of the same keys.

        Its attribute `are_queries` is True if the queries are the keys, in the order as passed.
        """
        keys = copy.copy(self)
        keys.problem, queries = problem, problem.queries[:, self._axes]
        keys.are_queries = len(queries) == len(self.points) and np.array_equal(
            queries, problem.keys[:, self._axes]
        )
        # Queries beyond this number are clipped, so that squared distances do not overflow. No
        # key has any weight there, so sums do not change.
        max_coordinate = self._max_coordinate + LARGEST
        keys._queries = queries.clip(-max_coordinate, max_coordinate)
        return keys

    @functools.cached_property
    def _rank(self):
        """Position among the points of each key, in the order of the keys as passed."""
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(len(rank))
        return rank

    @abstractmethod
    def _in_linear_time(self, queries, scale):
        """Return sums (n_powers, 1 + p, n), and bounds (n,) on the errors of the weights' sums.

        The result is None if pairs are as fast.
        """

    def _by_pairs(self, queries, scale, left_out):
        """Return `Sums` over pairs within the cutoff; None if other algorithms are faster.

        `scale` is (n,) here.
        """
        return None

    def sums(self, queries, scale, left_out=None, *, max_share=1.0):
        """Compute `Sums` about queries (n, n_axes), at a scale that is a number or (n,).

        `left_out` (n, 2) is the range of keys that each query leaves out: positions in the
        order in which the keys were passed, not in that of `points`. Sums that are not well
        above their error bound are computed again from pairs. They stay as they
        are, with this bound, if pairs are slow, or if more than the share `max_share` of the
        queries has such sums. Returns None if `_in_linear_time` and `_by_pairs` both estimate
        that another algorithm is faster.

        If the queries are the keys in their order, pass the attribute `points` itself (the same
        object): `Boxes` then knows their cells.
        """
        sums_and_errors = self._in_linear_time(queries, scale)
        scales = np.broadcast_to(scale, len(queries))
        if sums_and_errors is None:
            return self._by_pairs(queries, scales, left_out)
        sums, error = sums_and_errors
        if left_out is not None:
            self._subtract(sums, queries, scales, left_out)
        no_shift, total_weight = np.zeros(len(queries)), sums[0, 0]
        result = Sums(no_shift, sums, error_bound=_MIN_RATIO_TO_ERROR * error)
        inaccurate = np.flatnonzero(~(total_weight > result.error_bound))
        if 0 < len(inaccurate) <= max_share * len(queries):
            pair_sums = self._by_pairs(
                queries[inaccurate], scales[inaccurate], _rows_or_none(left_out, inaccurate)
            )
            if pair_sums is not None:
                result.put(inaccurate, pair_sums)
        return result

    def _subtract(self, sums, queries, scales, left_out):
        """Subtract from sums, in place, the terms of the keys that queries leave out.

        `sums` are (n_powers, 1 + p, n), `scales` (n,) and `left_out` (n, 2).
        """
        low, high = left_out.T  # first key of each range, and one past the last
        # Each step subtracts at most one key per query: the one at `low + step`.
        for step in range((high - low).max(initial=0)):
            has_key = low + step < high
            rows = slice(None) if has_key.all() else np.flatnonzero(has_key)
            keys = self._rank[low[rows] + step]
            u = (self.points[keys] - queries[rows]).T  # (n_axes, n_rows)
            # At distance 0 all powers but 0 are 0, and the kernel is at its peak.
            powers, weights = self.powers[:1], self.peak
            if u.any():
                u /= scales[rows]
                powers, weights = self.powers, self.kernel.profile((u * u).sum(axis=0))
            for p, power in enumerate(powers):
                terms = weights * np.prod(u.T**power, axis=1) if p else weights
                for c in range(len(self.columns) if sum(power) <= self.degree else 1):
                    sums[p, c, rows] -= terms * self.columns[c, keys]

    def sums_of(self, rows, scale, *, max_share):
        """Compute `Sums` about the queries at `rows` of the problem, in the order of the rows.

        `scale` is a number or (n_rows,), and `max_share` as in :meth:`sums`.
        """
        queries, left_out = self._queries_at(rows)
        # A line wants its queries sorted. If they are the keys, the array `points` itself is
        # passed, which tells `sums` so.
        order = np.arange(len(queries))
        if self.are_queries and np.array_equal(rows, np.arange(len(self.points))):
            order, queries = self.order, self.points
        elif self.points.shape[1] == 1:
            order = np.argsort(queries[:, 0])
            queries = queries[order]
        scale = scale[order] if np.ndim(scale) else scale
        sums = self.sums(queries, scale, _rows_or_none(left_out, order), max_share=max_share)
        return None if sums is None else in_order(sums, order)

    def groups(self, scales):
        """Return the scales in groups whose sums are computed together."""
        return np.split(scales, len(scales))

    def _queries_at(self, rows):
        """Return the queries at `rows`, and the ranges of keys that they leave out or None."""
        return _rows_or_none(self._queries, rows), _rows_or_none(self.problem.left_out, rows)


def _rows_or_none(table, rows):
    """Return rows of a table, None for None; indexing takes NumPy ten times as long."""
    return None if table is None else table.take(rows, axis=0)


def in_order(ordered, order):
    """Return `Sums` of ordered queries in the order in which the queries were passed.

    `order` has the position, as passed, of each ordered query.
    """
    result = Sums(*(np.empty_like(field) for field in ordered[:3]))
    result.shift[order], result.error_bound[order] = ordered.shift, ordered.error_bound
    # Each sum is written on its own: NumPy is ten times slower if it writes to many rows.
    for power, column in np.ndindex(ordered.sums.shape[:2]):
        result.sums[power, column][order] = ordered.sums[power, column]
    return result


def cutoff(kernel, power=0, span=0.0):
    """Return the distance, in bandwidths, beyond which a kernel is negligible.

    Beyond it the kernel times this power of the distance is less than 1e-20 of its peak. With
    `span`, the logarithm of the ratio of the largest weight to the smallest one, this holds for
    the heaviest key relative to the lightest one. The distance is rounded up to a multiple of
    1/8; it is infinite if the kernel is not negligible at 256 bandwidths.
    """
    if math.isfinite(kernel.support):
        return kernel.support
    distances = np.arange(0.125, 256, 0.125)
    peak = kernel.profile(np.zeros(1))[0]
    weights = kernel.profile(distances**2) * np.maximum(distances, 1) ** power
    matters = weights > _NEGLIGIBLE * math.exp(-span) * peak
    return math.inf if matters[-1] else float(distances[np.flatnonzero(matters)[-1]]) + 0.125


# Pairs at a time: the temporaries stay in the processor's cache.
BLOCK_PAIRS = IN_CACHE // 4


def blocks_of_sizes(sizes, max_sum):
    """Yield blocks of positions of positive sizes (n,), in order.

    The sizes in a block sum to `max_sum` at most, unless it has a single position.
    """
    rows = np.flatnonzero(sizes)
    ends = np.cumsum(sizes[rows])
    first = 0
    while first < len(rows):
        start = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, start + max_sum, "right")))
        yield rows[first:stop]
        first = stop


class Ranges(NamedTuple):
    """A range of keys for each query."""

    low: Any  # (n,) the position of the first key
    high: Any  # (n,) one past the position of the last key
    order: Any = None  # (n_positions,) the key at each position; None if these are equal

    def blocks(self):
        """Yield blocks of queries that have keys, the number of keys of each, and these keys.

        A block has at most `BLOCK_PAIRS` pairs, or a single query. The keys of its queries
        follow each other, (n_pairs,).
        """
        counts = (self.high - self.low).clip(0)
        for rows in blocks_of_sizes(counts, BLOCK_PAIRS):
            keys = ranges(self.low[rows], self.high[rows])
            yield rows, counts[rows], keys if self.order is None else self.order[keys]


def inside(limits, positions):
    """Return True for positions that lie in ranges (..., 2)."""
    return (limits[..., 0] <= positions) & (positions < limits[..., 1])


def ranges(low, high):
    """Return all integers of the ranges [low, high), one range after the other.

    For example, the ranges [2, 4) and [7, 8) give 2, 3, 7.
    """
    sizes = high - low
    offsets = low - (np.cumsum(sizes) - sizes)
    return np.arange(sizes.sum()) + np.repeat(offsets, sizes)
