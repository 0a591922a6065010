"""The nearest keys of each query, and sums over them, for queries without any weight.

Keys whose distances differ by rounding only are *tied*: all of them count as nearest, and share
the query in proportion to their weights. Sums are taken by pairs, by a k-d tree, or along a
line, in O(n m), O((n + m) log m) or O(n + m) after sorting, for n queries and m keys.

*Columns* (c, m) are what is summed: the weights of the keys, and these times each value.
`left_out` (n, 2) is the range of keys that each query leaves out, None for no key; `rounding`
(n,) is the largest difference of two distances from a query that counts as a tie.
"""

import itertools
import math

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ..._blocks import IN_CACHE, ROWS_AT_ONCE, blocks
from .._sums import Nearest
from ._keys import Ranges, blocks_of_sizes, inside
from ._windows import window

# Numbers of features for which trees are fast, and pairs below which all pairs are fastest.
FEATURES, FEW_PAIRS = range(1, 9), 2**22


def nearest_sums(keys, columns, queries, left_out, rounding):
    """Sum columns (c, m) over the nearest keys (m, d) of each query (n, d), as `Nearest`."""
    n, n_keys = len(queries), len(keys)
    nearest = Nearest(distance=np.empty(n), rounding=rounding, sums=np.zeros((len(columns), n)))
    if n * n_keys < FEW_PAIRS or keys.shape[1] not in FEATURES:
        for rows in blocks(n, max(1, IN_CACHE // n_keys)):
            limits = None if left_out is None else left_out[rows]
            distance, table = nearest_by_pairs(queries[rows], keys, limits, rounding[rows])
            nearest.distance[rows], nearest.sums[:, rows] = distance, columns @ table.T
        return nearest
    tree = KDTree(keys, balanced_tree=False)
    nearest.distance[:], _ = nearest_kept(tree, queries, left_out)
    # A ball around each query has all tied keys, and perhaps some that the query leaves out.
    radius = np.where(nearest.distance < np.inf, nearest.distance + rounding, 0.0)
    counts = tree.query_ball_point(queries, radius, return_length=True)
    for rows in blocks_of_sizes(counts, ROWS_AT_ONCE):
        limits = None if left_out is None else left_out[rows]
        keys_in_balls = itertools.chain.from_iterable(
            tree.query_ball_point(queries[rows], radius[rows])
        )
        ends = np.cumsum(counts[rows])
        ranges = Ranges(ends - counts[rows], ends, np.fromiter(keys_in_balls, np.intp))
        nearest.sums[:, rows] = _sum_over(ranges, columns, limits, np.arange(n_keys))
    return nearest


def nearest_along(line, queries, left_out, rounding):
    """Sum the columns of a `Line` over the nearest keys of queries (n,), as `Nearest`."""
    distance = distance_along(line, queries, left_out)
    low, high = window(line.x, queries, distance + rounding)
    high = np.where(distance < np.inf, high, low)
    columns, order = line.columns, line.order
    if left_out is None:
        # Equal keys are summed once, however many queries they are nearest to.
        is_first = np.diff(line.x, prepend=-np.inf) > 0
        columns = np.add.reduceat(columns, np.flatnonzero(is_first), axis=1)
        distinct = np.append(0, np.cumsum(is_first))
        low, high = distinct[low], distinct[high]
    sums = _sum_over(Ranges(low, high), columns, left_out, order)
    return Nearest(distance, rounding, sums)


def _sum_over(ranges, columns, left_out, order):
    """Sum columns (c, m) over a range of keys for each query, without those left out, (c, n).

    `ranges` are :class:`Ranges` of the m keys. `order` (m,) has the position of each key among
    the keys as passed.
    """
    sums = np.zeros((len(columns), len(ranges.low)))
    for rows, counts, keys in ranges.blocks():
        terms = columns[:, keys]
        if left_out is not None:
            limits = left_out.take(np.repeat(rows, counts), axis=0)
            terms[:, inside(limits, order[keys])] = 0.0
        sums[:, rows] = np.add.reduceat(terms, np.cumsum(counts) - counts, axis=1)
    return sums


def distance_along(line, queries, left_out):
    """Return the distance (n,) from each query to the nearest key on a line.

    It is infinite for a query that leaves out all keys.
    """
    x, n_keys = line.x, len(line.x)
    # The positions of the last key before each query, and of the first one that is not before.
    after = np.searchsorted(x, queries)
    before = after - 1
    for positions, step in ((before, -1), (after, 1)):
        rows = np.arange(0 if left_out is None else len(queries))
        # Positions of keys that a query leaves out are moved on, in place, key by key.
        while len(rows):
            rows = rows[(positions[rows] >= 0) & (positions[rows] < n_keys)]
            limits = left_out.take(rows, axis=0)
            rows = rows[inside(limits, line.order[positions[rows]])]
            positions[rows] += step
    below = np.where(before >= 0, queries - x[before.clip(0)], np.inf)
    above = np.where(after < n_keys, x[after.clip(max=n_keys - 1)] - queries, np.inf)
    return np.minimum(below, above)


def nearest_kept(tree, queries, left_out):
    """Find the nearest key of each query among those that it does not leave out.

    Returns distances (n,), infinite for a query that leaves out all keys, and positions (n,).
    """
    # If the longest range has L keys, one of the L + 1 nearest keys is not left out.
    longest = 0 if left_out is None else int(np.diff(left_out).max(initial=0))
    n_neighbors = np.arange(1, min(1 + longest, tree.n) + 1)
    distance, nearest = np.empty(len(queries)), np.empty(len(queries), np.intp)
    for rows in blocks(len(queries), max(1, IN_CACHE // len(n_neighbors))):
        distances, keys = tree.query(queries[rows], n_neighbors)
        if left_out is not None:
            distances[inside(left_out[rows, None], keys)] = np.inf
        first = np.arange(len(keys)), distances.argmin(axis=1)
        distance[rows], nearest[rows] = distances[first], keys[first]
    return distance, nearest


def nearest_by_pairs(queries, keys, left_out, rounding):
    """Return distances (n,) to the nearest keys, and a table (n, m): 1.0 for a nearest key.

    The table is 0.0 for other keys. Tied keys are all nearest.
    """
    # Coordinates are divided by about the largest one, so that no square overflows, whatever
    # the bandwidth is. The divisor is a power of two, so no digit changes either.
    largest = max(np.abs(x).max(initial=0.0) for x in (queries, keys))
    scale = math.ldexp(0.5, math.frexp(largest)[1]) if largest > 0 else 1.0
    distances = cdist(queries / scale, keys / scale) * scale
    if left_out is not None:
        distances[inside(left_out[:, None], np.arange(len(keys)))] = np.inf
    smallest = distances.min(axis=1)
    is_nearest = (distances <= (smallest + rounding)[:, None]) & np.isfinite(distances)
    return smallest, is_nearest.astype(np.float64)
