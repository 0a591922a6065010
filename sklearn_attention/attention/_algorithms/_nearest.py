"""The nearest keys, and sums over these only; equally near keys share."""

import math

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from ..._blocks import IN_CACHE, ROWS_AT_ONCE, blocks
from ...kernels._numerics import ROUNDED_UP

# Keys whose squared distances are the smallest but for rounding are equally near.
AS_NEAR = 1 + 1e-14
# Features in which trees leave enough out, and pairs below which all pairs are fastest.
FEATURES, FEW_PAIRS = range(1, 9), 2**22


def nearest_sums(keys, columns, queries, own=None, gap=0):
    """Distances (m,) to the nearest keys, and sums (c, m) of columns (c, n) over these.

    Own keys, which are left out with so many on either side, are -1, or None for all, where
    there are none.
    """
    if len(queries) * len(keys) >= FEW_PAIRS and keys.shape[1] in FEATURES and not gap:
        return nearest_by_tree(keys, columns, queries, own)
    distance, sums = np.empty(len(queries)), np.empty((len(columns), len(queries)))
    for rows in blocks(len(queries), max(1, IN_CACHE // len(keys))):
        some = None if own is None else own[rows]
        distance[rows], near = nearest_by_pairs(queries[rows], keys, some, gap)
        sums[:, rows] = columns @ near.T
    return distance, sums


def beside(x, queries, own=None):
    """Positions of the keys next to each query on either side, and the smaller distance.

    Of keys in ascending order; but for each query's own.
    """
    n = len(x)
    after = np.searchsorted(x, queries, "left")
    before = after - 1
    if own is not None:
        before = np.where(own >= 0, own - 1, before)
        after = np.where(own >= 0, own + 1, after)
    left = np.where(before >= 0, queries - x[before.clip(0)], np.inf)
    right = np.where(after < n, x[after.clip(max=n - 1)] - queries, np.inf)
    return before, after, np.minimum(left, right)


def nearest_along(x, columns, queries, own=None):
    """Distances (m,) to the nearest keys, in ascending order, and sums (c, m) over these."""
    before, after, distance = beside(x, queries, own)
    left, right = before.clip(0), after.clip(max=len(x) - 1)
    on_left = (before >= 0) & (queries - x[left] == distance)
    on_right = (after < len(x)) & (x[right] - queries == distance)
    # Place by place: differences of running sums lose what is small beside the keys before.
    is_first = np.diff(x, prepend=-np.inf) > 0
    first, place = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    of_places, left, right = np.add.reduceat(columns, first, axis=1), place[left], place[right]
    on_right &= ~on_left | (left != right)
    sums = on_left * of_places[:, left] + on_right * of_places[:, right]
    if own is not None:
        here = place[own]
        twin = (own >= 0) & (on_left & (left == here) | on_right & (right == here))
        # A key that outweighs all others of its place cannot be subtracted without loss.
        heavy = twin & (2 * columns[0, own] > of_places[0, here])
        sums[:, twin] -= columns[:, own[twin]]
        others = columns.copy()
        others[:, own[heavy]] = 0.0
        sums[:, heavy] = np.add.reduceat(others, first, axis=1)[:, here[heavy]]
    return distance, sums


def nearest_by_tree(points, columns, queries, own=None):
    """Distances (m,) to the nearest keys, and sums (c, m) over these, by a tree."""
    tree = KDTree(points, balanced_tree=False)
    distance, _ = nearest_but_own(tree, queries, own)
    radius = distance * ROUNDED_UP
    counts = tree.query_ball_point(queries, radius, return_length=True)
    parts, first, ends = [], 0, np.cumsum(counts)
    while first < len(counts):
        before = ends[first] - counts[first]
        last = max(first + 1, np.searchsorted(ends, before + ROWS_AT_ONCE, side="right"))
        rows = slice(first, last)
        candidates = tree.query_ball_point(queries[rows], radius[rows])
        own_keys = None if own is None else own[rows]
        parts.append(_over_nearest(points, columns, queries[rows], own_keys, candidates))
        first = last
    return tuple(np.concatenate(field, axis=-1) for field in zip(*parts, strict=True))


def _over_nearest(points, columns, queries, own, candidates):
    """Distance, and sums of the columns, over the nearest of some keys of each query."""
    sizes = np.array([len(keys) for keys in candidates])
    starts, row = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    keys = np.concatenate(list(candidates)).astype(np.intp)
    squared = ((queries[row] - points[keys]) ** 2).sum(axis=1)
    if own is not None:
        squared[keys == own[row]] = np.inf
    smallest = np.minimum.reduceat(squared, starts)
    near = (squared <= AS_NEAR * smallest[row]) & np.isfinite(squared)
    return np.sqrt(smallest), np.add.reduceat(near * columns[:, keys], starts, axis=1)


def nearest_but_own(tree, queries, own):
    """Distance (n,) and position (n,) of the nearest key to each query, its own left aside.

    Its own where there is no other. Own keys are -1, or None for all, where there are none.
    """
    n_neighbors = 1 if own is None else min(2, tree.n)
    distances, found = (
        x.reshape(len(queries), n_neighbors) for x in tree.query(queries, n_neighbors)
    )
    place = 0 if own is None else np.where(found[:, 0] == own, n_neighbors - 1, 0)
    rows = np.arange(len(queries))
    return distances[rows, place], found[rows, place]


def nearest_by_pairs(queries, keys, own=None, gap=0):
    """Distance (n,) to the nearest keys, and 1 for these in a table (n, m) that is 0 else.

    Own keys are as for :func:`nearest_sums`.
    """
    # Divided by the largest coordinate no square overflows, whatever the bandwidth; by a
    # power of two, so that no digit changes either.
    largest = max(np.abs(x).max(initial=0.0) for x in (queries, keys))
    scale = math.ldexp(0.5, math.frexp(largest)[1]) if largest > 0 else 1.0
    squared = cdist(queries / scale, keys / scale, "sqeuclidean")
    if own is not None:
        apart = np.abs(np.arange(len(keys)) - own[:, None])
        squared[(apart <= gap) & (own >= 0)[:, None]] = np.inf
    smallest = squared.min(axis=1)
    near = (squared <= AS_NEAR * smallest[:, None]) & np.isfinite(squared)
    return np.sqrt(smallest) * scale, near.astype(np.float64)


def by_distance(distance):
    """Shifts of sums of which those over the nearest keys outweigh all others."""
    return -1e150 * distance.clip(max=1e155)
