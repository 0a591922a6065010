"""Every query meets every key: exact for any kernel, in any dimension."""

import torch

from ._fused import fused_part
from ._part import Part
from ._tiles import concatenate, tile_part

# How far rounding may move a log-weight, by the precision of the answer.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 5e-13}
# A float32 answer computed in float64 has digits to spare.
_TOLERANCE_WITHIN_FLOAT64 = 1e-7
# Weights are relative to the largest.
_SMALLEST_WEIGHT = 1e-20


def dense_part(task):
    """Unfinished average of every query over all keys.

    Each query takes the fastest way that is accurate for it: fused in float32, fused in
    float64, or tiles of differences in float64. The choice depends on the keys and on
    that query alone, so an answer does not change with the company it is asked in.

    Parameters
    ----------
    task : Task

    Returns
    -------
    part : Part
        Without fallback, in float64 unless every query made do with float32.
    """
    if len(task.queries) == 0:
        return tile_part(task.to(task.dtype))
    todo = torch.ones_like(task.queries[:, 0], dtype=torch.bool)
    done = []
    for way, dtype, accurate in _ways(task):
        rows = (todo & accurate).nonzero()[:, 0]
        if len(rows):
            todo[rows] = False
            whole = len(rows) == len(task.queries)
            done.append((rows, way((task if whole else task.take(rows)).to(dtype))))
    if len(done) == 1:
        return done[0][1]
    order = torch.cat([rows for rows, _ in done]).argsort()
    part = concatenate([part for _, part in done], task)
    return Part(*(None if field is None else field[order] for field in part[:4]))


def _ways(task):
    """(function, precision, queries it is accurate for), the fastest first."""
    error = _log_weight_error(task)
    # Single precision has no room for weights of very different size.
    narrow = task.weights.min() > _SMALLEST_WEIGHT
    small = torch.float32 if task.dtype == torch.float32 and narrow else None
    if task.query_scale is not None:
        pass  # no form for the fused kernel, and no bound on the scales
    elif task.kernel.as_dot_product(task.queries[:0], task.keys[:0]) is not None:
        # Taking a query's own key out divides by a difference: float64 is needed for it.
        if small and task.own_key is None:
            yield fused_part, small, error(small) <= _TOLERANCE[small]
        single = task.dtype == torch.float32
        tolerance = _TOLERANCE_WITHIN_FLOAT64 if single else _TOLERANCE[torch.float64]
        yield fused_part, torch.float64, error(torch.float64) <= tolerance
    elif small and task.kernel.decreasing:
        yield tile_part, small, error(small) <= _TOLERANCE[small]
    yield tile_part, torch.float64, torch.ones_like(task.queries[:, 0], dtype=torch.bool)


def _log_weight_error(task):
    """Bound on the rounding of each query's scores, as a function of the precision."""
    key_norm = torch.linalg.vector_norm(task.keys, dim=1).max()
    query_norm = torch.linalg.vector_norm(task.queries, dim=1)
    # The query's own square cancels in the average, but not in the normaliser.
    size = torch.maximum(key_norm * (query_norm + key_norm / 2), query_norm**2 / 2)
    return lambda dtype: torch.finfo(dtype).eps * size
