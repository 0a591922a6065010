"""Kernel sums in the plane, pair by pair."""

import functools
import itertools
import math

import numpy as np
from scipy.spatial import KDTree

from ._pairs import blocks_of_pairs
from ._plane_boxes import powers

# Weights smaller than the largest by this factor, as a logarithm, are left out.
_INVISIBLE = 40.0
# Queries whose ranges of keys are found at a time.
_BLOCK_QUERIES = 2**16
# Pairs below which nothing but all pairs pays.
FEW_PAIRS = 2**16
_ROUNDING = 1e-14


class PlanePairs:
    """Kernel sums over pairs of queries and keys.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    columns : ndarray of shape (c, n)
    kernel : RadialKernel
        A Gaussian.
    deviation : float
        Its standard deviation, in bandwidths.
    degree : {0, 1}
    reach : float
        Distance, in bandwidths, beyond which the kernel is next to 0.
    """

    def __init__(self, points, columns, kernel, deviation, degree, reach):
        self.points, self.columns = points, columns
        self.kernel, self.deviation = kernel, deviation
        self.degree, self.reach = degree, reach
        self.powers = powers(degree)
        self._far = float(kernel.profile(np.array(reach**2))) * columns[0].sum()

    def near(self, strips, queries, scale):
        """Sums over the keys within reach.

        Parameters
        ----------
        strips : Strips
            Of the points.
        queries : ndarray of shape (m, 2)
        scale : ndarray of shape (m,)
            The bandwidth.

        Returns
        -------
        sums : ndarray of shape (n_powers, c, m)
        error : ndarray of shape (m,)
            Bound on the error of the first sum.
        """
        sums = np.zeros((len(self.powers), len(self.columns), len(queries)))
        for start in range(0, len(queries), _BLOCK_QUERIES):
            block = slice(start, start + _BLOCK_QUERIES)
            self._add_near(sums[:, :, block], strips, queries[block], scale[block])
        return sums, _ROUNDING * sums[0, 0] + self._far

    def _add_near(self, sums, strips, queries, scale):
        low, high, first = strips.ranges(queries, self.reach * scale)
        lengths = high - low
        before = np.append(0, np.cumsum(lengths))
        counts = np.diff(before[first])
        for rows in blocks_of_pairs(counts):
            ranges = slice(first[rows[0]], first[rows[-1] + 1])
            skip = low[ranges] - before[ranges] + before[ranges.start]
            place = np.arange(lengths[ranges].sum()) + np.repeat(skip, lengths[ranges])
            keys = strips.order[place]
            pairs = _Pairs(self.points, queries, scale, rows, keys, counts[rows])
            self._add(sums, pairs, self.kernel.profile(pairs.squared))

    def exact(self, queries, scale, own=None):
        """Sums over all keys that can be seen beside the nearest.

        Parameters
        ----------
        queries, scale
            As for :meth:`near`.
        own : int ndarray of shape (m,), default=None
            Key to leave out of each query's sums; -1 for none.

        Returns
        -------
        shift : ndarray of shape (m,)
            Logarithm of what the sums are divided by, the largest weight of the kernel.
        sums : ndarray of shape (n_powers, c, m)
        """
        n_queries, n = len(queries), len(self.points)
        shift = np.full(n_queries, -np.inf)
        sums = np.zeros((len(self.powers), len(self.columns), n_queries))
        every = n_queries * n < FEW_PAIRS
        if every:
            counts = np.full(n_queries, n)
        else:
            radius = math.sqrt(2 * _INVISIBLE) * self.deviation * scale
            radius = _radius(np.hypot(self._distance(queries, own), radius))
            counts = self.tree.query_ball_point(queries, radius, return_length=True)
        for rows in blocks_of_pairs(counts):
            if every:
                keys = np.tile(np.arange(n), len(rows))
            else:
                keys = self._within(queries[rows], radius[rows])
            pairs = _Pairs(self.points, queries, scale, rows, keys, counts[rows])
            with np.errstate(over="ignore"):
                logs = self.kernel.log_profile(pairs.squared)
            if own is not None:
                logs[keys == np.repeat(own[rows], counts[rows])] = -np.inf
            largest = np.maximum.reduceat(logs, pairs.starts)
            shift[rows] = largest
            base = np.where(np.isfinite(largest), largest, 0.0)
            self._add(sums, pairs, np.exp(logs - np.repeat(base, counts[rows])))
        return shift, sums

    def nearest(self, queries, own=None):
        """Distances of the nearest keys, and sums of the columns over these alone."""
        distance = self._distance(queries, own)
        radius = _radius(distance)
        counts = self.tree.query_ball_point(queries, radius, return_length=True)
        sums = np.zeros((len(self.columns), len(queries)))
        for rows in blocks_of_pairs(counts):
            keys = self._within(queries[rows], radius[rows])
            starts = np.cumsum(counts[rows]) - counts[rows]
            others = True if own is None else keys != np.repeat(own[rows], counts[rows])
            for column, found in zip(self.columns, sums, strict=True):
                found[rows] = np.add.reduceat(column[keys] * others, starts)
        return distance, sums

    def _distance(self, queries, own):
        """From each query to the nearest key that is not its own; inf where there is none."""
        if own is None:
            return self.tree.query(queries)[0]
        distance, found = self.tree.query(queries, 2)
        return np.where(found[:, 0] == own, distance[:, 1], distance[:, 0])

    def _within(self, queries, radius):
        """The keys within a radius of each query, one query after the other."""
        found = self.tree.query_ball_point(queries, radius)
        return np.fromiter(itertools.chain.from_iterable(found), np.intp)

    @functools.cached_property
    def tree(self):
        """The keys, for searches."""
        return KDTree(self.points, balanced_tree=False)

    def _add(self, sums, pairs, weights):
        """Write the sums over pairs of given weights."""
        for c, column in enumerate(self.columns):
            times = weights * column[pairs.keys]
            for power, (e, f) in enumerate(self.powers):
                if c and e + f > self.degree:
                    break
                terms = times
                for _ in range(e):
                    terms = terms * pairs.u
                for _ in range(f):
                    terms = terms * pairs.v
                sums[power, c, pairs.rows] = np.add.reduceat(terms, pairs.starts)


class _Pairs:
    """Pairs of some queries with the keys of each, one after the other."""

    def __init__(self, points, queries, scale, rows, keys, counts):
        self.rows, self.keys = rows, keys
        self.starts = np.cumsum(counts) - counts
        where = np.repeat(rows, counts)
        with np.errstate(over="ignore"):
            self.u, self.v = ((points[keys] - queries[where]) / scale[where, None]).T
            self.squared = self.u * self.u + self.v * self.v


class Strips:
    """Points in strips along the first axis, in the order of the second within.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    width : float
        Of a strip.

    Attributes
    ----------
    order : int ndarray of shape (n,)
    """

    def __init__(self, points, width):
        x, y = points.T
        by_height = np.argsort(y)
        self._y, self._x0, self._width = y[by_height], x.min(), width
        self._numbers, strip = np.unique(self._number(x), return_inverse=True)
        self.order = by_height[np.argsort(strip[by_height], kind="stable")]
        n_strips = len(self._numbers)
        self._left, self._right = np.full(n_strips, np.inf), np.full(n_strips, -np.inf)
        np.minimum.at(self._left, strip, x)
        np.maximum.at(self._right, strip, x)
        height = np.empty_like(by_height)
        height[by_height] = np.arange(len(x))
        # Ascending: a number of the strip and the rank of the height.
        self._code = strip[self.order] * (len(x) + 1) + height[self.order]

    def _number(self, x):
        return np.floor((x - self._x0) / self._width)

    def ranges(self, queries, radius):
        """Ranges of the order that hold all points within a radius, and few besides.

        Returns
        -------
        low, high : int ndarray
            The first point of each range, and the one behind its last.
        first : int ndarray of shape (m + 1,)
            The first range of each query, and the number of ranges.
        """
        x, y = queries.T
        strip = np.searchsorted(self._numbers, self._number(x - radius))
        last = np.searchsorted(self._numbers, self._number(x + radius), "right")
        n_strips = last - strip
        query = np.repeat(np.arange(len(x)), n_strips)
        first = np.append(0, np.cumsum(n_strips))
        strip = np.arange(first[-1]) + np.repeat(strip - first[:-1], n_strips)
        x, y, radius = x[query], y[query], radius[query]
        apart = np.maximum(self._left[strip] - x, x - self._right[strip]).clip(0)
        half = np.sqrt((radius**2 - apart**2).clip(0))
        base = strip * (len(self.order) + 1)
        low = base + np.searchsorted(self._y, y - half, "left")
        high = base + np.searchsorted(self._y, y + half, "right")
        low, high = np.searchsorted(self._code, low), np.searchsorted(self._code, high)
        return low, high, first


def _radius(distance):
    """A little more than a distance, since searches may round otherwise; 0 for infinity."""
    return np.where(np.isfinite(distance), distance * (1 + 1e-14), 0.0)
