"""Partition of rows into overlapping blocks, with weights that change smoothly between them.

Rows are points in a space of a few dimensions. A binary tree of splits, each at a position
along a direction, has the blocks as its leaves. At a point with coordinate t along the
direction of a split, the right side has the weight u^2 (3 - 2u) with u = clip((t - a) /
(b - a), 0, 1), the left side the remainder of 1. The weight of a leaf is the product of the
weights of the sides on the way to it, so that the weights of all leaves sum to 1, and have no
jumps. A row belongs to every leaf in which its weight is positive.
"""

import math
from dataclasses import dataclass

import numpy as np

from ._encodings import SAMPLE_SIZE


@dataclass(frozen=True)
class Partition:
    """A binary tree of splits; the children of split i are nodes 2i + 1 and 2i + 2.

    Nodes from the number of splits on are leaves, in this order.
    """

    directions: np.ndarray  # (n_splits, n_columns)
    # (n_splits,): the interval from a to b where both sides overlap. A split whose interval is
    # empty has no overlap: points beyond a are on the right, and all are on the left if a is
    # infinite.
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def learn(cls, points, *, max_rows, overlap, rng):
        """Split points at medians along principal directions until leaves are small enough.

        Parameters
        ----------
        points : ndarray of shape (n, n_columns)
        max_rows : int
            About the largest number of points in a leaf.
        overlap : float
            Fraction of the points on either side of a median that belong to both sides.
        rng : numpy.random.Generator
        """
        depth = 0
        if len(points) > max_rows:
            # Each side has this fraction of the points: 0.5 + overlap.
            depth = math.ceil(math.log(len(points) / max_rows) / -math.log(0.5 + overlap))
        n_splits = 2**depth - 1
        partition = cls(
            np.zeros((n_splits, points.shape[1]), points.dtype),
            np.full(n_splits, np.inf),
            np.full(n_splits, np.inf),
        )
        rows_of_node = {0: np.arange(len(points))}
        for split in range(n_splits):
            rows = rows_of_node.pop(split)
            if len(rows) > 1 and points.shape[1]:
                partition._learn_split(split, points[rows], overlap, rng)
            right_weight = partition.right_weight(split, points[rows])[0]
            rows_of_node[2 * split + 1] = rows[right_weight < 1]
            rows_of_node[2 * split + 2] = rows[right_weight > 0]
        return partition

    def leaves(self, points):
        """Yield, for each leaf, the positions of the points in it, and their weights there."""
        rows_and_weights = {0: (np.arange(len(points)), np.ones(len(points)))}
        for split in range(len(self.lower)):
            rows, weights = rows_and_weights.pop(split)
            right_weight = self.right_weight(split, points[rows])[0]
            children = (2 * split + 1, 1 - right_weight), (2 * split + 2, right_weight)
            for child, side_weight in children:
                is_inside = side_weight > 0
                rows_and_weights[child] = rows[is_inside], (weights * side_weight)[is_inside]
        for leaf in sorted(rows_and_weights):
            yield rows_and_weights[leaf]

    def weight_slopes(self, leaf, points):
        """Return the derivatives of a leaf's weight in the points, (n, n_columns)."""
        # The product rule, on the way from the leaf up to the root.
        node, weights = leaf + len(self.lower), np.ones(len(points))
        slopes = np.zeros(points.shape)
        while node:
            split, is_right = (node - 1) // 2, node % 2 == 0
            side_weight, slope = self.right_weight(split, points)
            if not is_right:
                side_weight, slope = 1 - side_weight, -slope
            slope_of_side = np.outer(weights * slope, self.directions[split])
            slopes = slopes * side_weight[:, None] + slope_of_side
            weights = weights * side_weight
            node = split
        return slopes

    def right_weight(self, split, points):
        """Return the weight of the right side of a split, u^2 (3 - 2u), at points.

        Returns the weights (n,), and their derivatives (n,) along the direction of the split.
        """
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = self.lower[split], self.upper[split]
        if not lower < upper:
            # There is no overlap, so that the weight is a step.
            return (along > lower).astype(np.float64), np.zeros(len(along))
        u = np.clip((along - lower) / (upper - lower), 0, 1)
        return u * u * (3 - 2 * u), 6 * u * (1 - u) / (upper - lower)

    def _learn_split(self, split, points, overlap, rng):
        """Set the direction of a split and its overlap, by points (n, n_columns)."""
        sample = points
        if len(points) > SAMPLE_SIZE:
            sample = points[rng.choice(len(points), SAMPLE_SIZE, replace=False)]
        covariance = np.atleast_2d(np.cov(sample.T.astype(np.float64)))
        self.directions[split] = np.linalg.eigh(covariance)[1][:, -1]
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = np.quantile(along, [0.5 - overlap, 0.5 + overlap])
        # Coordinates that differ by this much or less are equal but for rounding.
        tolerance = 10 * np.finfo(points.dtype).eps * np.abs(along).max()
        if upper - lower <= tolerance:
            lower, upper = _interval_beside_ties(along, lower, tolerance)
        self.lower[split], self.upper[split] = lower, upper


def _interval_beside_ties(along, tied_value, tolerance):
    """Return an interval of overlap between many tied coordinates and their next ones.

    The tied points stay together, with the smaller of the two groups on their sides.
    """
    below, above = along[along < tied_value - tolerance], along[along > tied_value + tolerance]
    if not len(below) and not len(above):
        # All points are equal: all are on the left.
        return np.inf, np.inf
    if len(below) > len(above):
        lower, upper = below.max(), tied_value
    else:
        lower, upper = tied_value, above.min()
    margin = 0.1 * (upper - lower)
    return lower + margin, upper - margin
