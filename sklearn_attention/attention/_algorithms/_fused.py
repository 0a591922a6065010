"""The weighted average as scaled dot-product attention, in one fused pass of torch.

It is taken for averages (degree 0) by kernels with a form of dot products, such as Gaussians,
from a hundred million pairs on, where it is accurate. Time is O(n m), several times less than
that of `_dense.py`; memory is O(n + m), since the scores never exist as a matrix.
"""

import numpy as np
import torch
from torch.nn.functional import pad

from ..._blocks import blocks
from .._sums import Sums
from ._keys import ranges

# Bound on the rounding error of a log-weight, by the precision of the result. At half of this
# bound, as normal rows of 64 features have, averages in single precision have five digits.
_TOLERANCE = {np.float64: 5e-13, np.float32: 5e-5}
# The fused kernel needs queries, keys and values of one width, in single precision a multiple
# of the first number. More values than the second number are cheaper in several passes.
_MULTIPLE, _MAX_WIDTH = 16, 64
# Keys that a query leaves out are subtracted if their share of the weight is at most this.
_MAX_LEFT_OUT = 0.9


def fused_sums(problem):
    """Sum for averages over all keys, by a kernel with a dot-product form.

    Sums are computed in the precision of the result. If they are not accurate for a query, the
    bound on its error is infinite. None if this version of torch has another operator.
    """
    form, values = problem.kernel.as_dot_product(problem.queries, problem.keys), problem.values
    bias = form.key_bias + np.log(problem.weights)
    dtype = np.float32 if problem.dtype == np.float32 else np.float64
    arrays = (np.ascontiguousarray(x, dtype) for x in (form.queries, form.keys, values, bias))
    try:
        with torch.no_grad():
            fields = softmax_average(*map(torch.from_numpy, arrays))
    except (AttributeError, RuntimeError, TypeError):  # the operator is not public
        return None
    averages, log_sums = (field.numpy().astype(np.float64) for field in fields)
    is_accurate = _log_weight_error(problem, dtype) <= _TOLERANCE[dtype]
    error_bound = np.where(is_accurate, 0.0, np.inf)
    if problem.left_out is not None:
        low, high = problem.left_out.T
        query, key = np.repeat(np.arange(len(low)), high - low), ranges(low, high)
        scores = np.vecdot(form.queries[query], form.keys[key]) + bias[key]
        weights = np.exp(scores - log_sums[query])
        share = np.bincount(query, weights, len(low))
        remaining = (1 - share).clip(1 - _MAX_LEFT_OUT)
        np.subtract.at(averages, query, weights[:, None] * values[key])
        averages /= remaining[:, None]
        log_sums += np.log(remaining)
        error_bound[share > _MAX_LEFT_OUT] = np.inf
    columns = np.column_stack([np.ones(len(averages)), averages])
    return Sums(log_sums + form.query_bias, np.array(columns.T[None]), error_bound)


def _log_weight_error(problem, dtype):
    """Bound the rounding errors of each query's scores."""
    key_norm = np.linalg.norm(problem.keys, axis=1).max()
    query_norm = np.linalg.norm(problem.queries, axis=1)
    # The query's own square cancels in the average, but not in the normaliser.
    size = np.maximum(key_norm * (query_norm + key_norm / 2), query_norm**2 / 2)
    return np.finfo(dtype).eps * size


def softmax_average(queries, keys, values, bias):
    """Compute softmax averages (n, p) with a bias (m,) per key, and log-normalisers (n,).

    The latter are ``logsumexp(queries @ keys.T + bias)`` over the keys.
    """
    averages = []
    for columns in blocks(max(values.shape[1], 1), _MAX_WIDTH):
        width = max(queries.shape[1], values[:, columns].shape[1])
        if queries.dtype == torch.float32:
            width = -(-width // _MULTIPLE) * _MULTIPLE
        # The kernel reads rows as if they were contiguous, whatever the strides are.
        q, k, v = (
            pad(x, (0, width - x.shape[1])).contiguous()
            for x in (queries, keys, values[:, columns])
        )
        average, log_sums = cpu_flash_attention(q, k, v, bias)
        averages.append(average[:, : values[:, columns].shape[1]])
    return torch.cat(averages, dim=1), log_sums


def cpu_flash_attention(queries, keys, values, bias):
    """Compute attention and its log-normaliser by torch's own kernel for CPUs."""
    average, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries[None, None],  # (1, 1, n, width)
        keys[None, None],
        values[None, None],
        attn_mask=bias.expand(1, 1, len(queries), len(keys)),
        scale=1.0,
    )
    return average[0, 0], log_sums[0, 0].to(queries.dtype)
