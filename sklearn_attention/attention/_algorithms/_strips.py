"""Points of the plane in strips, in which all that are near lie in few ranges."""

import numpy as np

from ._pairs import Ranges, ranges


class Strips:
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
