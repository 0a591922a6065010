"""Overlapping blocks of rows, with weights that pass smoothly from one to the next."""

import math
from dataclasses import dataclass

import numpy as np

_SAMPLED = 1000
# Differences along a direction that rounding makes, as a share of the largest coordinate.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Partition:
    r"""A binary tree of splits, each along a direction in the learned space.

    Of a row at :math:`t` on the direction of a split the right side has the share
    :math:`u^2 (3 - 2u)` with :math:`u = \text{clip}((t - a) / (b - a), 0, 1)`, the left side
    the rest. The weight of a leaf is the product of the shares on the way to it, so that
    weights sum to 1 and have no jumps.
    """

    # (n_splits, n_columns); the children of the split at i are those at 2i + 1 and 2i + 2.
    directions: np.ndarray
    lower: np.ndarray  # the a and b, (n_splits,)
    upper: np.ndarray

    @classmethod
    def learn(cls, points, *, most, overlap, rng):
        """Splits at medians of points along principal directions, to leaves of at most `most`.

        `overlap` is the share of rows, on either side of a median, that belong to both.
        """
        depth = 0
        if len(points) > most:
            depth = math.ceil(math.log(len(points) / most) / -math.log(0.5 + overlap))
        n_splits = 2**depth - 1
        partition = cls(
            np.zeros((n_splits, points.shape[1]), points.dtype),
            np.full(n_splits, np.inf),
            np.full(n_splits, np.inf),
        )
        members = {0: np.arange(len(points))}
        for split in range(n_splits):
            rows = members.pop(split)
            if len(rows) > 1 and points.shape[1]:
                partition._learn_split(split, points[rows], overlap, rng)
            share = partition.right_share(split, points[rows])[0]
            members[2 * split + 1], members[2 * split + 2] = rows[share < 1], rows[share > 0]
        return partition

    def leaves(self, points):
        """For each leaf the rows that belong to it, and their weights there."""
        found = {0: (np.arange(len(points)), np.ones(len(points)))}
        for split in range(len(self.lower)):
            rows, weights = found.pop(split)
            share = self.right_share(split, points[rows])[0]
            for child, part in ((2 * split + 1, 1 - share), (2 * split + 2, share)):
                used = part > 0
                found[child] = rows[used], (weights * part)[used]
        for leaf in sorted(found):
            yield found[leaf]

    def weight_slopes(self, leaf, points):
        """Derivatives of a leaf's weight in the points, (n, n_columns)."""
        child, weights = leaf + len(self.lower), np.ones(len(points))
        slopes = np.zeros(points.shape)
        while child:
            split, is_right = (child - 1) // 2, child % 2 == 0
            share, steep = self.right_share(split, points)
            share, steep = (share, steep) if is_right else (1 - share, -steep)
            slopes = slopes * share[:, None] + np.outer(weights * steep, self.directions[split])
            weights = weights * share
            child = split
        return slopes

    def right_share(self, split, points):
        """Share of the right side of a split, and its derivative along the direction."""
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = self.lower[split], self.upper[split]
        if not lower < upper:
            return (along > lower).astype(np.float64), np.zeros(len(along))
        u = np.clip((along - lower) / (upper - lower), 0, 1)
        return u * u * (3 - 2 * u), 6 * u * (1 - u) / (upper - lower)

    def _learn_split(self, split, points, overlap, rng):
        sample = points
        if len(points) > _SAMPLED:
            sample = points[rng.choice(len(points), _SAMPLED, replace=False)]
        covariance = np.atleast_2d(np.cov(sample.T.astype(np.float64)))
        self.directions[split] = np.linalg.eigh(covariance)[1][:, -1]
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = np.quantile(along, [0.5 - overlap, 0.5 + overlap])
        # They differ by no more than rounding.
        same = _ROUNDING * np.abs(along).max()
        if upper - lower <= same:
            lower, upper = _gap(along, lower, same)
        self.lower[split], self.upper[split] = lower, upper


def _gap(along, tied, same):
    """Where rows pass from one side to the other next to many that are at one place."""
    below, above = along[along < tied - same], along[along > tied + same]
    if not len(below) and not len(above):
        # All rows are at one place: on the left.
        return np.inf, np.inf
    lower, upper = (below.max(), tied) if len(below) > len(above) else (tied, above.min())
    margin = 0.1 * (upper - lower)
    return lower + margin, upper - margin
