"""The weighted average as scaled dot-product attention, in one fused pass.

Memory is O(n + m): the scores never exist as a matrix.
"""

import contextlib

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from ..._blocks import IN_MEMORY, blocks
from .._sums import Sums
from .._threads import FEW_PAIRS, one_thread_per_operation
from ._tiles import tile_sums

# The fused kernel needs queries, keys and values of one width. More values than this are
# cheaper in several passes.
_MAX_WIDTH = 64
# Vectorised float32 products need a width that is a multiple of this.
_FLOAT32_WIDTH = 16
# Scores of one block of queries where the fused kernel's normaliser is out of reach.
_BLOCK_PAIRS = IN_MEMORY // 2
# Above this share the query's own key leaves too little behind to be taken out again.
_MAX_OWN_SHARE = 0.9


def fused_sums(problem):
    """Sums for averages, over all keys, by a kernel with a dot-product form."""
    form = problem.kernel.as_dot_product(problem.queries, problem.keys)
    bias = form.key_bias + problem.weights.log()
    few = problem.n_pairs <= FEW_PAIRS
    with one_thread_per_operation() if few else contextlib.nullcontext():
        averages, log_sums = softmax_average(form.queries, form.keys, problem.values, bias)
    if problem.own_key is not None:
        own = problem.own_key.clamp_min(0)
        own_score = (form.queries * form.keys[own]).sum(dim=1) + bias[own]
        share = torch.where(problem.own_key >= 0, (own_score - log_sums).exp(), 0)
        rest = (1 - share).clamp_min(1 - _MAX_OWN_SHARE)
        averages = (averages - share[:, None] * problem.values[own]) / rest[:, None]
        log_sums = log_sums + rest.log()
    columns = torch.cat([averages.new_ones((len(averages), 1)), averages], dim=1)
    shift = log_sums + form.query_bias
    found = Sums(shift, columns.T[None], torch.zeros_like(shift))
    if problem.own_key is None:
        return found
    # Rows with most of their own average's weight are averaged again without themselves.
    return _overwrite(found, (share > _MAX_OWN_SHARE).nonzero()[:, 0], problem)


def _overwrite(found, rows, problem):
    """The sums, with those of some queries computed again by tiles."""
    if len(rows) == 0:
        return found
    if len(rows) == len(problem.queries):
        return tile_sums(problem)
    anew = tile_sums(problem.take(rows))
    fields = (
        old.index_copy(-1, rows, new.to(old.dtype))
        for old, new in zip(found[:3], anew[:3], strict=True)
    )
    return Sums(*fields)


def softmax_average(queries, keys, values, bias):
    """Softmax averages (n, p) with a bias (m,) per key, and log-normalisers (n,).

    The latter are ``logsumexp(queries @ keys.T + bias)`` over the keys.
    """
    averages = []
    for columns in blocks(max(values.shape[1], 1), _MAX_WIDTH):
        q, k, v = _same_width(queries, keys, values[:, columns])
        average, log_sums = cpu_flash_attention(q, k, v, bias)
        averages.append(average[:, : values[:, columns].shape[1]])
    return torch.cat(averages, dim=1), log_sums


def _same_width(queries, keys, values):
    width = max(queries.shape[1], values.shape[1])
    if queries.dtype == torch.float32 and width > 1:
        width = -(-width // _FLOAT32_WIDTH) * _FLOAT32_WIDTH
    # The kernel reads rows as if they were contiguous, whatever the strides are.
    return [pad(x, (0, width - x.shape[1])).contiguous() for x in (queries, keys, values)]


def cpu_flash_attention(queries, keys, values, bias):
    """Attention and its log-normaliser by torch's own kernel for CPUs."""
    # The operator is not public. Where it is missing, public_attention computes the same,
    # slower.
    try:
        operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        average, log_sums = operator(
            queries[None, None],  # (1, 1, n, width)
            keys[None, None],
            values[None, None],
            attn_mask=bias.expand(1, 1, len(queries), len(keys)),
            scale=1.0,
        )
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return public_attention(queries, keys, values, bias)
    return average[0, 0], log_sums[0, 0].to(queries.dtype)


def public_attention(queries, keys, values, bias):
    """Attention and its log-normaliser by public functions."""
    averages, log_sums = [], []
    for rows in blocks(len(queries), max(1, _BLOCK_PAIRS // len(keys))):
        q = queries[rows]
        mask = bias.expand(1, 1, len(q), len(keys))
        average = scaled_dot_product_attention(
            q[None, None], keys[None, None], values[None, None], attn_mask=mask, scale=1.0
        )
        averages.append(average[0, 0])
        log_sums.append(torch.logsumexp(torch.addmm(bias, q, keys.T), dim=1))
    return torch.cat(averages), torch.cat(log_sums)
