"""Sums over the keys near each query, by the algorithms that compare every pair."""

from dataclasses import replace

import torch

from .._partial import Part
from .._threads import map_blocks
from ._compact_blocks import in_order
from ._dense import dense_part


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
    problem = near.problem.tensors("cpu")
    x = problem.queries[:0]
    is_dot_product = problem.kernel.as_dot_product(x, x) is not None

    def average(queries, keys):
        some = problem.take(queries, keys)
        if is_dot_product:  # which has more digits about the middle
            middle = torch.from_numpy(near.middle(queries.numpy()))
            some = replace(some, queries=some.queries - middle, keys=some.keys - middle)
        return dense_part(some)[:3]

    return Part(*by_near_keys(average, near))


def by_near_keys(function, near, parts_of=None):
    """Fields that a function finds group by group, for all queries in order.

    Parameters
    ----------
    function : callable
        ``function(queries, keys)`` returns a tuple of tensors with an entry for each query;
        it is given tensors of positions.
    near : NearKeys
    parts_of : callable, default=None
        ``parts_of(queries)`` cuts the queries of a group into smaller ones, by a list of
        their positions among these.

    Returns
    -------
    fields : tuple of torch.Tensor
    """
    found, rows = [], []
    for groups in near:
        blocks = [tuple(map(torch.from_numpy, group)) for group in groups]
        if parts_of is not None:
            blocks = [(own[part], keys) for own, keys in blocks for part in parts_of(own)]
        found += map_blocks(lambda block: function(*block), blocks)
        rows += [queries for queries, _ in blocks]
    return in_order(found, rows)
