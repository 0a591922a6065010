"""Sums of local polynomials over some of the keys, which those over others may join."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ._linear_time import linear_time_sums
from ._polynomial import Moments

# Queries further away than this many bandwidths are asked from here: the squares of their
# squares would overflow.
FURTHEST = 1e60


class LocalSums(NamedTuple):
    """Sums about each query over some of the keys.

    Attributes
    ----------
    shift : ndarray of shape (n,)
        Logarithm of what the sums are divided by; -inf where no key has weight.
    sums : ndarray of shape (n_powers, 1 + p, n)
        As those of :class:`~._algorithms._keys.Sums`; where no key has weight over the keys
        that answer.
    distance : ndarray of shape (n,)
        Of the keys that answer where none has weight; inf where they were not looked for.
    """

    shift: Any
    sums: Any
    distance: Any


def local_sums(problem, degree, center, empty):
    """Sums over the keys of a problem.

    Parameters
    ----------
    problem : Problem
        Of arrays, whose sums take linear time.
    degree : int
    center : ndarray of shape (p,)
        What is subtracted from the values.
    empty : {"nearest", "mean", "nan"}
        The policy.

    Returns
    -------
    found : LocalSums
    """
    queries = problem.queries.clip(-FURTHEST, FURTHEST)
    problem = replace(problem, queries=queries, values=problem.values - center)
    keys = linear_time_sums(problem, degree)
    shift, sums = keys.sums(problem)
    lost = ~np.isfinite(shift)
    if problem.seen is not None:
        lost &= ~(problem.seen > -np.inf)
    rows, distance = np.flatnonzero(lost), np.full(len(shift), np.inf)
    if len(rows):
        distance[rows], instead = keys.instead(problem.take(rows), np.ones(len(rows)), empty)
        sums[:, :, rows] = np.exp(problem.log_weight_scale) * instead
    return LocalSums(shift + problem.log_weight_scale, sums, distance)


def join_local_sums(a, b):
    """Sums over the keys of both.

    Parameters
    ----------
    a, b : LocalSums

    Returns
    -------
    found : LocalSums
    """
    shift = np.maximum(a.shift, b.shift)
    found = np.isfinite(shift)
    base, least = np.where(found, shift, 0.0), np.minimum(a.distance, b.distance)
    sums = 0.0
    for part in (a, b):
        factor = np.where(found, np.exp(part.shift - base), part.distance == least)
        # What answers for no query may be NaN.
        sums = sums + np.where(factor > 0, part.sums, 0.0) * factor
    return LocalSums(shift, sums, least)


def local_moments(found, problem, degree, deviation):
    """Moments of local polynomials about every query.

    Parameters
    ----------
    found : LocalSums
        Over all keys.
    problem : Problem
        Of some of the keys.
    degree : int
    deviation : ndarray of shape (n_features,)
        Standard deviation of all keys, in bandwidths.

    Returns
    -------
    moments : Moments
    """
    # Any key will do, to tell columns and powers.
    keys = linear_time_sums(problem.take(slice(0), np.zeros(1, dtype=int)), degree)
    extent = deviation[keys.columns]
    keys.extent = np.where(extent > 0, extent, np.inf)
    total = np.where(np.isfinite(found.shift), found.sums[0, 0], 0.0)
    return Moments(found.shift, total, *keys.moments(found.sums, 1.0))
