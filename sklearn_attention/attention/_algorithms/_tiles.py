"""The weighted average for any kernel, tile by tile: bounded memory, differences squared."""

import functools
import math
import operator

import torch

from ..._blocks import IN_CACHE, blocks
from .._sums import Sums
from .._threads import FEW_PAIRS, map_blocks
from ._nearest import nearest_by_pairs

# Pairs per tile: weights and temporaries stay in cache, and are small enough for memory
# to be reused rather than returned to the system, which is ten times slower.
_TILE_PAIRS = IN_CACHE // 2
_TILE_KEYS = 1024


def tile_sums(problem):
    """Sums for averages, over all keys, in the precision of the problem."""
    n_queries, n_keys = len(problem.queries), len(problem.keys)
    columns = min(n_keys, max(_TILE_KEYS, _TILE_PAIRS // max(n_queries, 1)))
    values = _with_ones(problem)
    key_blocks = list(blocks(n_keys, columns))

    def average(rows):
        queries = problem.take(rows)
        return functools.reduce(
            operator.add, (_tile(queries, values, keys) for keys in key_blocks)
        )

    row_blocks = blocks(n_queries, max(1, _TILE_PAIRS // columns))
    found = map_blocks(average, row_blocks, parallel=is_parallel(problem))
    if not found:
        none = problem.values.new_zeros(0)
        return Sums(none, none.expand(1, 1 + problem.values.shape[1], 0), none)
    return concatenate(found)


def is_parallel(problem):
    """True if threads share a pass over all pairs."""
    # A user's own function may not be safe in threads.
    return problem.n_pairs > FEW_PAIRS and problem.kernel.signed is not None


def concatenate(parts):
    """Sums of different queries over the same keys, in the widest precision among them."""
    return Sums(*(torch.cat([part[i] for part in parts], dim=-1) for i in range(3)))


def _with_ones(problem):
    """A column of ones and the values, so that one product sums both; stored by column."""
    values = torch.cat([problem.values.new_ones((len(problem.keys), 1)), problem.values], dim=1)
    return values.T.contiguous().T


def _tile(problem, values, keys):
    weights, shift = tile_weights(problem, keys)
    return Sums(shift, (weights @ values[keys]).T[None], least_total(problem.kernel, weights))


def least_total(kernel, weights):
    """Sum of each query's weights that may still be divided by: signed ones may cancel."""
    if kernel.signed is False:
        return weights.new_zeros(len(weights))
    return torch.finfo(weights.dtype).eps ** 0.5 * weights.abs().sum(dim=1)


def tile_weights(problem, keys=slice(None)):
    """Weights of all queries on some keys, divided by ``exp(shift)``; and the shifts."""
    return shifted_weights(problem, kernel_table(problem, keys)(None), keys)


def kernel_table(problem, keys=slice(None)):
    """Function from a multiple of the bandwidth per query to the kernel, or its logarithm."""
    # Between all queries and some keys; None is the problem's own bandwidth. Kernels of the
    # distance compute the distances once.
    kernel, x, y = problem.kernel, problem.queries, problem.keys[keys]
    is_log, form = sums_logarithms(kernel), kernel.radial_form(x.shape[1])
    if form is None:
        return lambda scale: kernel.log(x, y) if is_log else kernel(x, y)
    squared = form.squared(x, y)
    rest = None
    if form.rest is not None:
        rest = form.rest.log(x, y) if is_log else form.rest(x, y)

    def table(scale):
        scale = problem.query_scale if scale is None else scale
        # Divided twice: the square of an extreme scale overflows or vanishes.
        scaled = squared if scale is None else squared / scale[:, None] / scale[:, None]
        found = form.kernel.log_profile(scaled) if is_log else form.kernel.profile(scaled)
        if rest is None:
            return found
        return found + rest if is_log else found * rest

    return table


def sums_logarithms(kernel):
    """True for a kernel that is positive at any distance, so best handled as logarithms."""
    return kernel.signed is False and not kernel.compact


def shifted_weights(problem, table, keys=slice(None)):
    """Weights from a table of :func:`kernel_table` for some keys; as of `tile_weights`."""
    own = _own_pairs(problem, keys)
    if sums_logarithms(problem.kernel):
        scores = table + problem.weights[keys].log()
        if own is not None:
            scores[own] = -math.inf
        shift = scores.amax(dim=1)
        some = shift > -math.inf
        scores -= torch.where(some, shift, 0)[:, None]
        # Weights this small are negligible relative to the largest, which is 1. At the smallest
        # normal numbers and below, processors take ten times as long.
        lowest = 0.98 * math.log(torch.finfo(scores.dtype).tiny)
        weights = scores.clamp_min_(lowest).exp_()
        return weights if some.all() else weights * some[:, None], shift
    weights = table * problem.weights[keys]
    if own is not None:
        weights[own] = 0
    if problem.kernel.signed is False:
        return weights, weights.new_zeros(len(weights))
    largest = weights.abs().amax(dim=1)
    shift = largest.log()
    return weights / torch.where(largest > 0, largest, 1)[:, None], shift


def _own_pairs(problem, keys=slice(None)):
    """Positions in the tile of the pairs to leave out, or None."""
    if problem.own_key is None:
        return None
    start, stop, _ = keys.indices(len(problem.keys))
    around = torch.arange(-problem.gap, problem.gap + 1)
    near = problem.own_key[:, None] + around
    inside = (problem.own_key[:, None] >= 0) & (near >= start) & (near < stop)
    rows, columns = inside.nonzero(as_tuple=True)
    return (rows, near[rows, columns] - start) if len(rows) else None


def fallback_weights(problem):
    """Weights (n, m) of queries that have none: those of their nearest keys."""
    own = _own_pairs(problem)
    return nearest_by_pairs(problem.queries, problem.keys, problem.weights, own)[1]
