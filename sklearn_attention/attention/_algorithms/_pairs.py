"""Kernel sums pair by pair: exact, for ranges of few keys."""

from typing import Any, NamedTuple

import numpy as np

from ..._blocks import IN_CACHE

# Pairs at a time: the temporaries stay in the processor's cache.
_BLOCK_PAIRS = IN_CACHE // 8


class Ranges(NamedTuple):
    """Ranges of keys, one or several for each query."""

    low: Any  # (n_ranges,) the first key of each
    high: Any  # (n_ranges,) the key behind its last
    first: Any  # (m + 1,) the first range of each query, and the number of ranges
    order: Any = None  # the keys in the order of which these are ranges; None for their own

    @classmethod
    def one(cls, low, high, order=None):
        """One range for each query."""
        return cls(low, high, np.arange(len(low) + 1), order)

    def blocks(self):
        """Some queries that have keys, how many each has, and all these keys."""
        lengths = self.high - self.low
        counts = np.diff(np.append(0, np.cumsum(lengths))[self.first])
        for rows in blocks_of_pairs(counts):
            some = slice(self.first[rows[0]], self.first[rows[-1] + 1])
            keys = ranges(self.low[some], self.high[some])
            yield rows, counts[rows], keys if self.order is None else self.order[keys]


def ranges(low, high):
    """All numbers of some ranges, one behind the other."""
    sizes = high - low
    return np.arange(sizes.sum()) + np.repeat(low - (np.cumsum(sizes) - sizes), sizes)


def pair_sums(keys, queries, scale, ranges, own=None, *, shifted=True):
    """Shifts (m,) and sums (n_powers, c, m) over ranges of keys for queries (m, n_axes)."""
    # At bandwidths (m,), of Keys. Own keys (m,) are left out; -1 for none. Shifts are
    # logarithms of the divisors of sums: if `shifted`, the largest weight of a kernel that is
    # positive everywhere; -inf where no key has weight.
    shift = np.full(len(queries), -np.inf)
    sums = np.zeros((len(keys.powers), len(keys.columns), len(queries)))
    shifted = shifted and np.isinf(keys.kernel.support)
    for rows, counts, found in ranges.blocks():
        starts = np.cumsum(counts) - counts
        width = np.repeat(scale[rows], counts)
        with np.errstate(over="ignore"):
            u = [
                (point[found] - np.repeat(query[rows], counts)) / width
                for point, query in zip(keys.points.T, queries.T, strict=True)
            ]
            squared = u[0] * u[0] if len(u) == 1 else u[0] * u[0] + u[1] * u[1]
            kernel = keys.kernel.log_profile if shifted else keys.kernel.profile
            weights = kernel(squared)
        if own is not None:
            weights[found == np.repeat(own[rows], counts)] = -np.inf if shifted else 0.0
        if shifted:
            largest = np.maximum.reduceat(weights, starts)
            shift[rows] = largest
            base = np.where(np.isfinite(largest), largest, 0.0)
            weights = np.exp(weights - np.repeat(base, counts))
        else:
            shift[rows] = np.where(np.add.reduceat(weights, starts) > 0, 0.0, -np.inf)
        for c, column in enumerate(keys.columns):
            terms = {keys.powers[0]: weights * column[found]}
            for p, power in enumerate(keys.powers):
                if c and sum(power) > keys.degree:
                    break
                if p:  # one power of an axis more than a term that is there
                    axis = next(axis for axis, e in enumerate(power) if e)
                    lower = (*power[:axis], power[axis] - 1, *power[axis + 1 :])
                    terms[power] = terms[lower] * u[axis]
                sums[p, c, rows] = np.add.reduceat(terms[power], starts)
    return shift, sums


def blocks_of_pairs(counts):
    """Positions of queries that have keys, from their counts (m,); few pairs at a time."""
    rows = np.flatnonzero(counts)
    ends = np.cumsum(counts[rows])
    first = 0
    while first < len(rows):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + _BLOCK_PAIRS, "right")))
        yield rows[first:last]
        first = last
