"""The weighted average for any kernel, tile by tile: bounded memory, differences squared."""

import functools
import math

import torch

from ..._blocks import blocks
from ...kernels import squared_distances
from .._partial import Fallback, Part, merge
from .._threads import FEW_PAIRS, map_blocks
from ._nearest import AS_NEAR

# Pairs per tile: weights and temporaries stay in cache, and are small enough for memory
# to be reused rather than handed back to the system, which is ten times slower.
_TILE_PAIRS = 2**16
_TILE_KEYS = 1024
# Pairs at a time where the nearest keys are looked for, each block among all keys.
_NEAREST_PAIRS = 2**19


def tile_part(problem):
    """Unfinished average of every query over all keys.

    Parameters
    ----------
    problem : Problem
        In the precision to compute in.

    Returns
    -------
    part : Part
        Without fallback.
    """
    n_queries, n_keys = len(problem.queries), len(problem.keys)
    columns = min(n_keys, max(_TILE_KEYS, _TILE_PAIRS // max(n_queries, 1)))
    values = _with_ones(problem)
    key_blocks = list(blocks(n_keys, columns))

    def average(rows):
        queries = problem.take(rows)
        tiles = (_tile(queries, values, keys) for keys in key_blocks)
        return functools.reduce(merge, tiles)

    row_blocks = blocks(n_queries, max(1, _TILE_PAIRS // columns))
    return concatenate(map_blocks(average, row_blocks, parallel=is_parallel(problem)), problem)


def is_parallel(problem):
    """Whether threads are to share a pass over all pairs."""
    # A GPU is parallel by itself, and a user's own function may not be safe in threads.
    if len(problem.queries) * len(problem.keys) <= FEW_PAIRS:
        return False
    return problem.queries.device.type == "cpu" and problem.kernel.signed is not None


def concatenate(parts, problem):
    """Parts of different queries over the same keys, one after the other.

    The result has the widest precision among them.
    """
    if not parts:
        none = problem.values.new_zeros(0)
        return Part(none, problem.values[:0], none)
    fields = [torch.cat([part[i] for part in parts]) for i in range(3)]
    if any(part.mass is not None for part in parts):
        fields.append(torch.cat([part.total_mass for part in parts]))
    return Part(*fields)


def _with_ones(problem):
    """The values and a column of ones, so that one product sums both; stored by column."""
    values = torch.cat([problem.values, problem.values.new_ones((len(problem.keys), 1))], dim=1)
    return values.T.contiguous().T


def _tile(problem, values, keys):
    weights, shift = tile_weights(problem, keys)
    sums = weights @ values[keys]
    mass = None if problem.kernel.signed is False else weights.abs().sum(dim=1)
    return Part(shift, sums[:, :-1], sums[:, -1], mass)


def tile_weights(problem, keys=slice(None)):
    """Weights of all queries on some keys, divided by ``exp(shift)``.

    Parameters
    ----------
    problem : Problem
    keys : slice, default=slice(None)
        Which keys.

    Returns
    -------
    weights : torch.Tensor of shape (n_queries, n_keys)
    shift : torch.Tensor of shape (n_queries,)
    """
    return shifted_weights(problem, kernel_table(problem, keys)(None), keys)


def kernel_table(problem, keys=slice(None)):
    """The kernel between all queries and some keys, as a function of the bandwidth.

    Parameters
    ----------
    problem : Problem
    keys : slice, default=slice(None)

    Returns
    -------
    table : callable
        ``table(scale)`` is the kernel, (n_queries, n_keys), or its logarithm where that is
        finite everywhere, with each query's bandwidth multiplied by ``scale``, (n_queries,),
        where it is one of distance: distances are computed once. None is the problem's own.
    """
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
    """Whether a kernel is positive at any distance, and so best handled as logarithms."""
    return kernel.signed is False and not kernel.compact


def shifted_weights(problem, table, keys=slice(None)):
    """Weights from a table of the kernel or its logarithm.

    Parameters
    ----------
    problem : Problem
    table : torch.Tensor of shape (n_queries, n_keys)
        As :func:`kernel_table` has it.
    keys : slice, default=slice(None)
        The keys.

    Returns
    -------
    weights, shift : torch.Tensor
        As of :func:`tile_weights`.
    """
    own = _own_pairs(problem, keys)
    if sums_logarithms(problem.kernel):
        scores = table + problem.weights[keys].log()
        if own is not None:
            scores[own] = -math.inf
        shift = scores.amax(dim=1)
        some = shift > -math.inf
        scores -= torch.where(some, shift, 0)[:, None]
        # Weights this small vanish beside the largest, which is 1. At the smallest normal
        # numbers and below, processors take ten times as long.
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
    around = torch.arange(-problem.gap, problem.gap + 1, device=problem.own_key.device)
    near = problem.own_key[:, None] + around
    inside = (problem.own_key[:, None] >= 0) & (near >= start) & (near < stop)
    rows, columns = inside.nonzero(as_tuple=True)
    return (rows, near[rows, columns] - start) if len(rows) else None


def nearest_fallback(problem):
    """The average over the nearest keys alone, for every query.

    Distances are Euclidean, in bandwidths. Equally near keys share by their weights.

    Parameters
    ----------
    problem : Problem
        For the queries in need.

    Returns
    -------
    fallback : Fallback
    """
    distance, sums = [], []
    values = _with_ones(problem)
    for rows in blocks(len(problem.queries), max(1, _NEAREST_PAIRS // len(problem.keys))):
        squared, near = nearest_weights(problem.take(rows))
        distance.append(squared)
        sums.append(near @ values)
    sums = torch.cat(sums)
    return Fallback(torch.cat(distance), sums[:, :-1], sums[:, -1])


def fallback_weights(problem, empty):
    """Weights that answer for queries without any.

    Parameters
    ----------
    problem : Problem
    empty : {"nearest", "mean"}
        The policy.

    Returns
    -------
    distance : torch.Tensor of shape (n_queries,)
        What decides between the answers of different keys.
    weights : torch.Tensor of shape (n_queries, n_keys)
    """
    if empty == "nearest":
        return nearest_weights(problem)
    weights = problem.weights.repeat(len(problem.queries), 1)
    own = _own_pairs(problem)
    if own is not None:
        weights[own] = 0
    return weights.new_zeros(len(weights)), weights


def fallback_averages(problem, columns, empty):
    """Averages that answer for queries without weights.

    Parameters
    ----------
    problem : Problem
        Of some queries.
    columns : torch.Tensor of shape (n_keys, c)
        What is averaged.
    empty : {"nearest", "mean", "nan"}
        The policy.

    Returns
    -------
    averages : torch.Tensor of shape (n_queries, c)
    """
    if empty == "nan":
        return columns.new_full((len(problem.queries), columns.shape[1]), math.nan)
    _, weights = fallback_weights(problem, empty)
    return (weights @ columns) / weights.sum(dim=1, keepdim=True)


def nearest_weights(problem):
    """Distance to the nearest keys, and weights that are 0 for all others."""
    x, y = problem.queries, problem.keys
    # Divided by the largest coordinate no square overflows, whatever the bandwidth; by a
    # power of two, so that no digit changes either.
    largest = max(x.abs().max().item(), y.abs().max().item())
    scale = 2.0 ** math.frexp(largest)[1] if largest > 0 else 1.0
    squared = squared_distances(x / scale, y / scale)
    own = _own_pairs(problem)
    if own is not None:
        squared[own] = math.inf
    smallest = squared.amin(dim=1)
    near = (squared <= AS_NEAR * smallest[:, None]) & torch.isfinite(squared)
    return smallest.sqrt() * scale, near * problem.weights
