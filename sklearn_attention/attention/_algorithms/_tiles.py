"""The weighted average for any kernel, tile by tile: bounded memory, differences squared."""

import functools
import math

import torch

from ..._blocks import blocks
from ...kernels import squared_distances
from .._partial import Fallback, Part, merge
from .._threads import FEW_PAIRS, map_blocks

# Pairs per tile: weights and temporaries stay in cache, and are small enough for memory
# to be reused rather than handed back to the system, which is ten times slower.
_TILE_PAIRS = 2**16
_TILE_KEYS = 1024


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
        tiles = (_tile(problem, values, rows, keys) for keys in key_blocks)
        return functools.reduce(merge, tiles)

    row_blocks = blocks(n_queries, max(1, _TILE_PAIRS // columns))
    return concatenate(map_blocks(average, row_blocks, parallel=_is_parallel(problem)), problem)


def _is_parallel(problem):
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


def _tile(problem, values, rows, keys):
    weights, shift = tile_weights(problem, rows, keys)
    sums = weights @ values[keys]
    mass = None if problem.kernel.signed is False else weights.abs().sum(dim=1)
    return Part(shift, sums[:, :-1], sums[:, -1], mass)


def tile_weights(problem, rows, keys):
    """Weights of some queries on some keys, divided by ``exp(shift)``.

    Parameters
    ----------
    problem : Problem
    rows, keys : slice
        Which queries and keys.

    Returns
    -------
    weights : torch.Tensor of shape (n_rows, n_keys)
    shift : torch.Tensor of shape (n_rows,)
    """
    kernel = problem.kernel
    x, y = problem.queries[rows], problem.keys[keys]
    own = _own_pairs(problem, rows, keys)
    if kernel.signed is False and math.isinf(kernel.support):
        scores = _log_kernel(problem, x, y, rows) + problem.weights[keys].log()
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
    weights = _kernel(problem, x, y, rows) * problem.weights[keys]
    if own is not None:
        weights[own] = 0
    if kernel.signed is False:
        return weights, weights.new_zeros(len(weights))
    largest = weights.abs().amax(dim=1)
    shift = largest.log()
    return weights / torch.where(largest > 0, largest, 1)[:, None], shift


def _kernel(problem, x, y, rows):
    if problem.query_scale is None:
        return problem.kernel(x, y)
    form = problem.kernel.radial_form(x.shape[1])
    return form.values(_scaled(form.squared(x, y), problem.query_scale[rows]), x, y)


def _log_kernel(problem, x, y, rows):
    if problem.query_scale is None:
        return problem.kernel.log(x, y)
    form = problem.kernel.radial_form(x.shape[1])
    return form.log_values(_scaled(form.squared(x, y), problem.query_scale[rows]), x, y)


def _scaled(squared, scale):
    # Divided twice: the square of an extreme scale overflows or vanishes.
    return squared / scale[:, None] / scale[:, None]


def _own_pairs(problem, rows, keys):
    """Positions in the tile of the pairs to leave out, or None."""
    if problem.own_key is None:
        return None
    own = problem.own_key[rows]
    inside = ((own >= keys.start) & (own < keys.stop)).nonzero()[:, 0]
    return (inside, own[inside] - keys.start) if len(inside) else None


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
    for rows in blocks(len(problem.queries), max(1, _TILE_PAIRS // len(problem.keys))):
        squared, near = nearest_weights(problem, rows)
        distance.append(squared)
        sums.append(near @ values)
    sums = torch.cat(sums)
    return Fallback(torch.cat(distance), sums[:, :-1], sums[:, -1])


def nearest_weights(problem, rows):
    """Distance to the nearest keys, and weights that are 0 for all others."""
    x, y = problem.queries[rows], problem.keys
    # Divided by the largest coordinate no square overflows, whatever the bandwidth; by a
    # power of two, so that no digit changes either.
    largest = max(x.abs().max().item(), y.abs().max().item())
    scale = 2.0 ** math.frexp(largest)[1] if largest > 0 else 1.0
    squared = squared_distances(x / scale, y / scale)
    own = _own_pairs(problem, rows, slice(0, len(y)))
    if own is not None:
        squared[own] = math.inf
    smallest = squared.amin(dim=1)
    near = (squared == smallest[:, None]) & torch.isfinite(squared)
    return smallest.sqrt() * scale, near * problem.weights
