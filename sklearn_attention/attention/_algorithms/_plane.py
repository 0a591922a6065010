"""Kernel sums in the plane, by whichever algorithm is the fastest."""

import functools
import math

import numpy as np
from scipy.spatial import KDTree

from ..._blocks import IN_CACHE, blocks
from ...kernels._numerics import ROUNDED_UP
from ._boxes import Boxes, Grid
from ._keys import ROUNDING, Keys, Ranges, pair_sums, ranges, reach
from ._nearest import keys_within, nearest_kept, nearest_sums

# Squares of boxes, in standard deviations, and polynomials that leave rounding errors alone.
_WIDTH, _TERMS = 5.0, 32
# Pairs below which all pairs are fastest.
_FEW_PAIRS = 2**16
# Pairs that take as long as a square's terms that are moved to another, for each sum.
_CARRIED = 128


class Plane(Keys):
    """Keys in the plane, for a kernel that :func:`serves_plane`."""

    def __init__(self, points, weights, values, kernel, degree=0):
        super().__init__(np.ascontiguousarray(points), weights, values, kernel, degree)
        self.order = np.arange(len(points))
        self._deviation = _deviation(kernel)

    @functools.cached_property
    def _boxes(self):
        peak, deviation = math.sqrt(self.peak), self._deviation  # of each axis
        return Boxes(
            self,
            lambda squared: peak * np.exp((-0.5 / deviation**2) * squared),
            Grid(_WIDTH * deviation, _TERMS, reach(self.kernel)),
        )

    def _in_linear_time(self, queries, scale):
        if len(queries) * len(self.points) < _FEW_PAIRS:
            return None
        strips = _Strips(self.points, self.reach * float(np.max(scale, initial=0.0)) / 2)
        if not np.ndim(scale):
            pairs = self._n_pairs(strips, queries, scale) - _FEW_PAIRS
            if pairs > 0:
                plan = self._boxes.plan(queries, scale)
                n_carried = sum((leg >= 0).sum() for leg in plan.legs)
                if pairs > _CARRIED * self.n_sums * n_carried:
                    return self._boxes(plan)
        return self._near(strips, queries, np.broadcast_to(scale, len(queries)))

    def _n_pairs(self, strips, queries, scale):
        """Number of pairs within reach of each other, about."""
        some = self._counted(queries)
        found = strips.ranges(some, np.full(len(some), self.reach * scale))
        return float((found.high - found.low).sum()) * len(queries) / max(len(some), 1)

    def _near(self, strips, queries, scale):
        """Sums over the keys within reach, and bounds on the error of the first."""
        sums = np.zeros((len(self.powers), len(self.columns), len(queries)))
        for some in blocks(len(queries), IN_CACHE):
            near = strips.ranges(queries[some], self.reach * scale[some])
            found = pair_sums(self, queries[some], scale[some], near, shifted=False)
            sums[:, :, some] = found[1]
        far = float(self.kernel.profile(np.array(self.reach**2))) * self.columns[0].sum()
        return sums, ROUNDING * sums[0, 0] + far

    def _by_pairs(self, queries, scale, left_out):
        n_queries, n = len(queries), len(self.points)
        if n_queries * n < _FEW_PAIRS:
            every = Ranges.one(np.zeros(n_queries, int), np.full(n_queries, n))
            return pair_sums(self, queries, scale, every, left_out)
        shift = np.full(n_queries, -np.inf)
        sums = np.zeros((len(self.powers), len(self.columns), n_queries))
        radius = math.sqrt(2 * self.invisible) * self._deviation * scale
        radius = np.hypot(nearest_kept(self._tree, queries, left_out)[0], radius)
        # A little more, since searches may round otherwise.
        for rows, near in keys_within(self._tree, queries, radius * ROUNDED_UP):
            some = None if left_out is None else left_out[rows]
            found = pair_sums(self, queries[rows], scale[rows], near, some)
            shift[rows], sums[:, :, rows] = found
        return shift, sums

    def nearest(self, queries, left_out, rounding):
        return nearest_sums(self.points, self.columns, queries, left_out, rounding)

    @functools.cached_property
    def _tree(self):
        return KDTree(self.points, balanced_tree=False)


def serves_plane(kernel):
    """True if a kernel of the distance has an algorithm of linear time in the plane."""
    return _deviation(kernel) is not None


def _deviation(kernel):
    """Standard deviation, in bandwidths, of a kernel that is a Gaussian; else None."""
    if not math.isinf(kernel.analytic_strip):
        return None
    # A Gaussian is what has a logarithm linear in the squared distance.
    slopes = np.diff(kernel.log_profile(np.arange(9.0)))
    is_gaussian = slopes[0] < 0 and np.allclose(slopes, slopes[0], rtol=1e-12)
    return math.sqrt(-0.5 / slopes[0]) if is_gaussian else None


class _Strips:
    """Points (n, 2) in strips along the first axis, in the order of the second within.

    The attribute `order` (n,) has their positions.
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
        """Ranges of the order that hold all points within a radius (m,), and few besides."""
        x, y = queries.T
        strip = np.searchsorted(self._numbers, self._number(x - radius))
        last = np.searchsorted(self._numbers, self._number(x + radius), "right")
        n_strips = last - strip
        query = np.repeat(np.arange(len(x)), n_strips)
        first = np.append(0, np.cumsum(n_strips))
        strip = ranges(strip, last)
        x, y, radius = x[query], y[query], radius[query]
        apart = np.maximum(self._left[strip] - x, x - self._right[strip]).clip(0)
        half = np.sqrt((radius**2 - apart**2).clip(0))
        base = strip * (len(self.order) + 1)
        low = base + np.searchsorted(self._y, y - half, "left")
        high = base + np.searchsorted(self._y, y + half, "right")
        low, high = np.searchsorted(self._code, low), np.searchsorted(self._code, high)
        return Ranges(low, high, first, self.order)
