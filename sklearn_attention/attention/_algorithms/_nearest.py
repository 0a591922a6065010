"""Averages over the nearest keys alone, which trees find."""

import numpy as np

from .._partial import Fallback
from ._near_keys import FEATURES, many_pairs, nearest_but_own

# Keys whose squared distances are the smallest but for rounding are equally near.
AS_NEAR = 1 + 1e-14
# Pairs of a query and a key that may be the nearest, at a time.
_MOST_PAIRS = 2**22
# Keys this little further than the nearest may be as near, since trees round otherwise.
_ROUNDING = 1 + 1e-9


def nearest_by_tree(problem):
    """The average over the nearest keys of each query, which share where equally near.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    fallback : Fallback or None
        Of arrays; None where all pairs are compared as fast, or there is no other way.
    """
    if not many_pairs(problem, "auto") or problem.keys.shape[1] not in FEATURES:
        return None
    from sklearn.neighbors import KDTree  # takes a while to load

    tree = KDTree(problem.keys)
    distance, _ = nearest_but_own(tree, problem.queries, problem.own_key)
    radius = distance * _ROUNDING
    counts = tree.query_radius(problem.queries, radius, count_only=True)
    parts, first, ends = [], 0, np.cumsum(counts)
    while first < len(counts):
        before = ends[first] - counts[first]
        last = max(first + 1, np.searchsorted(ends, before + _MOST_PAIRS, side="right"))
        rows = slice(first, last)
        candidates = tree.query_radius(problem.queries[rows], radius[rows])
        parts.append(_average(problem.take(rows), candidates))
        first = last
    return Fallback(*map(np.concatenate, zip(*parts, strict=True)))


def _average(problem, candidates):
    """Distance, and sums of values and weights, over the nearest of some keys of each query."""
    sizes = np.array([len(keys) for keys in candidates])
    starts, row = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(sizes)), sizes)
    keys = np.concatenate(candidates)
    squared = ((problem.queries[row] - problem.keys[keys]) ** 2).sum(axis=1)
    if problem.own_key is not None:
        squared[keys == problem.own_key[row]] = np.inf
    smallest = np.minimum.reduceat(squared, starts)
    near = (squared <= AS_NEAR * smallest[row]) & np.isfinite(squared)
    weights = near * problem.weights[keys]
    numerator = np.add.reduceat(weights[:, None] * problem.values[keys], starts)
    return np.sqrt(smallest), numerator, np.add.reduceat(weights, starts)
