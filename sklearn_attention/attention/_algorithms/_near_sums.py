"""Sums over the keys near each query, by the algorithms that compare every pair."""

from dataclasses import replace

import torch

from .._partial import Fallback, Part
from .._threads import map_blocks
from ._compact_blocks import in_order
from ._dense import dense_part
from ._tiles import nearest_fallback


@torch.no_grad()
def near_part(near):
    """Unfinished average of every query over the keys that count for it.

    Parameters
    ----------
    near : NearKeys

    Returns
    -------
    part : Part
        Without fallback.
    """

    def average(problem, middle):
        # About their own middle, distances have more digits.
        queries, keys = problem.queries - middle, problem.keys - middle
        return dense_part(replace(problem, queries=queries, keys=keys))[:3]

    return Part(*_by_groups(average, near))


@torch.no_grad()
def near_fallback(near):
    """The average over the nearest keys alone, for every query.

    Parameters
    ----------
    near : NearKeys
        With the nearest keys.

    Returns
    -------
    fallback : Fallback
    """

    def nearest(problem, middle):
        return nearest_fallback(problem)

    return Fallback(*_by_groups(nearest, near))


def _by_groups(function, near):
    """Fields of a function of each group's problem and middle, for all queries in order."""
    problem, found, rows = near.problem.tensors("cpu"), [], []

    def of_group(group):
        middle = torch.from_numpy(near.middle(group[0]))
        return function(problem.take(*map(torch.from_numpy, group)), middle)

    for groups in near:
        found += map_blocks(of_group, groups)
        rows += [torch.from_numpy(queries) for queries, _ in groups]
    return in_order(found, rows)
