"""Kernel sums of a Gaussian in two features by Chebyshev interpolation between cells.

They are taken for many pairs of n queries and m keys, if moving the terms of cells
(`_boxes.py`) takes less time than the pairs in cells within the cutoff of each other. Time and
memory are O(n + m) for each sum. A Gaussian is a product over both axes, K(x, y) = k(x) k(y),
and no other kernel of the distance is.
"""

import math

import numpy as np

from ._boxes import Boxes, Grid
from ._keys import LinearTimeKeys, cutoff

# Width of cells in standard deviations, and number of polynomials: errors are below rounding.
_WIDTH, _TERMS = 5.0, 32
# Pairs below which all pairs are fastest.
FEW_PAIRS = 2**19
# Number of pairs that take as long as moving the terms of a cell to another, for each sum.
_PAIRS_OF_CELL = 256


class Plane(LinearTimeKeys):
    """Keys along two features, for a Gaussian; :func:`serves_plane` recognises it."""

    def __init__(self, points, weights, values, kernel, degree=0):
        super().__init__(np.ascontiguousarray(points), weights, values, kernel, degree)
        self.order = np.arange(len(points))
        std = _gaussian_std(kernel)
        # The kernel is a product over both axes, so each has the root of its peak.
        peak_along_axis = math.sqrt(self.peak)

        def profile(squared):
            return peak_along_axis * np.exp((-0.5 / std**2) * squared)

        self._boxes = Boxes(self, profile, Grid(_WIDTH * std, _TERMS, cutoff(kernel)))

    def _in_linear_time(self, queries, scale):
        if np.ndim(scale) or len(queries) * len(self.points) < FEW_PAIRS:
            return None
        plan = self._boxes.plan(queries, scale)
        n_moves = sum((leg >= 0).sum() for leg in plan.legs)  # -1 is an empty cell
        is_slow = self._boxes.n_pairs(plan) < _PAIRS_OF_CELL * self.n_sums * n_moves
        return None if is_slow else self._boxes(plan)


def serves_plane(kernel):
    """Return True if a kernel of the distance has an algorithm of linear time in the plane."""
    return _gaussian_std(kernel) is not None


def _gaussian_std(kernel):
    """Return the standard deviation of a Gaussian kernel in bandwidths; None for others."""
    if not math.isinf(kernel.analytic_strip):
        return None
    # A Gaussian is what has a logarithm linear in the squared distance.
    slopes = np.diff(kernel.log_profile(np.arange(9.0)))
    is_gaussian = slopes[0] < 0 and np.allclose(slopes, slopes[0], rtol=1e-12)
    return math.sqrt(-0.5 / slopes[0]) if is_gaussian else None
