"""Sums over all pairs, or all near ones: exact for any kernel, wherever the keys lie."""

from dataclasses import replace

import torch

from .._sums import Sums
from ._fused import fused_sums
from ._tiles import concatenate, tile_sums

# Largest rounding error of a log-weight, by the precision of the result.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 5e-13}
# A float32 result computed in float64 has digits to spare.
_TOLERANCE_WITHIN_FLOAT64 = 1e-7
# Weights are relative to the largest.
_SMALLEST_WEIGHT = 1e-20


@torch.no_grad()
def all_pairs(problem):
    """Sums for averages, of tensors; float64 unless float32 is accurate for all queries."""
    # Each query takes the fastest way that is accurate for it: fused in float32, fused in
    # float64, or tiles of differences in float64. The choice depends on the keys and on that
    # query only, so results do not depend on the other rows of a batch.
    if len(problem.queries) == 0:
        return tile_sums(problem.to(problem.precision))
    todo = torch.ones_like(problem.queries[:, 0], dtype=torch.bool)
    done = []
    for way, precision, accurate in _ways(problem):
        rows = (todo & accurate).nonzero()[:, 0]
        if len(rows):
            todo[rows] = False
            whole = len(rows) == len(problem.queries)
            done.append((rows, way((problem if whole else problem.take(rows)).to(precision))))
    if len(done) == 1:
        return done[0][1]
    order = torch.cat([rows for rows, _ in done]).argsort()
    found = concatenate([sums for _, sums in done])
    return Sums(*(field[..., order] for field in found[:3]))


@torch.no_grad()
def near_pairs(near):
    """The same over the keys that count for each query, of :class:`NearKeys`."""
    problem = near.problem.tensors()
    x = problem.queries[:0]
    is_dot_product = problem.kernel.as_dot_product(x, x) is not None

    def average(queries, keys):
        some = problem.take(queries, keys)
        if is_dot_product:  # which has more digits about the middle
            middle = torch.from_numpy(near.middle(queries.numpy()))
            some = replace(some, queries=some.queries - middle, keys=some.keys - middle)
        found = all_pairs(some)
        return found.shift, found.sums.movedim(-1, 0), found.least

    shift, sums, least = near.fold(average)
    return Sums(shift, sums.movedim(0, -1), least)


def _ways(problem):
    """(function, precision, queries it is accurate for), the fastest first."""
    error = _log_weight_error(problem)
    # Single precision has no room for weights of very different size.
    narrow = problem.weights.min() > _SMALLEST_WEIGHT
    small = torch.float32 if problem.single and narrow else None
    if problem.query_scale is not None:
        pass  # no form for the fused kernel, and no bound on the scales
    elif problem.kernel.as_dot_product(problem.queries[:0], problem.keys[:0]) is not None:
        # Taking a query's own key out divides by a difference: float64 is needed for it.
        if small and problem.own_key is None:
            yield fused_sums, small, error(small) <= _TOLERANCE[small]
        tolerance = _TOLERANCE_WITHIN_FLOAT64 if problem.single else _TOLERANCE[torch.float64]
        yield fused_sums, torch.float64, error(torch.float64) <= tolerance
    elif small and problem.kernel.decreasing:
        yield tile_sums, small, error(small) <= _TOLERANCE[small]
    yield tile_sums, torch.float64, torch.ones_like(problem.queries[:, 0], dtype=torch.bool)


def _log_weight_error(problem):
    """Bound on the rounding of each query's scores, as a function of the precision."""
    key_norm = torch.linalg.vector_norm(problem.keys, dim=1).max()
    query_norm = torch.linalg.vector_norm(problem.queries, dim=1)
    # The query's own square cancels in the average, but not in the normaliser.
    size = torch.maximum(key_norm * (query_norm + key_norm / 2), query_norm**2 / 2)
    return lambda precision: torch.finfo(precision).eps * size
