r"""The weighted average as scaled dot-product attention, in one fused pass of torch.

It is taken for averages (degree 0) by kernels with a form of dot products, such as Gaussians,
for a hundred million pairs or more, where it is accurate. For n queries and m keys time is
O(n m), several times less than that of `_dense.py`; memory is O(n + m), since the scores never
exist as a matrix.

*Scores* :math:`q_i^\top k_j + b_j` are the logarithms of weights, up to a constant of each
query; `bias` (m,) has the :math:`b_j`, including the logarithms of the keys' weights.
`log_sums` (n,) are the logarithms of the sums of ``exp(scores)``.
"""

import numpy as np
import torch
from torch.nn.functional import pad

from ..._blocks import blocks
from .._sums import Sums
from ._keys import ranges

# Maximum rounding error of a log-weight, by the precision of the result. At half of this bound,
# as normal rows of 64 features have, averages in single precision have five digits.
_TOLERANCE = {np.float64: 5e-13, np.float32: 5e-5}
# The fused kernel needs queries, keys and values with the same number of columns, in single
# precision a multiple of this number.
_MULTIPLE_IN_FLOAT32 = 16
# More columns of values than this are averaged in several passes, which takes less time.
_MAX_COLUMNS_OF_PASS = 64
# Keys that a query leaves out are subtracted if their share of the weight is at most this.
_MAX_LEFT_OUT = 0.9


def fused_sums(problem):
    """Compute `Sums` for averages over all keys, by a kernel with a dot-product form.

    They are computed in the precision of the result. The sums of each query are divided by the
    sum of its weights: the sum of weights becomes 1, and its logarithm is the shift. If the
    sums are not accurate for a query, the bound on its error is infinite. The result is None if
    this version of torch lacks the operator, or has it with other arguments.
    """
    form, values = problem.kernel.as_dot_product(problem.queries, problem.keys), problem.values
    bias = form.key_bias + np.log(problem.weights)
    dtype = np.float32 if problem.dtype == np.float32 else np.float64
    arrays = (np.ascontiguousarray(x, dtype) for x in (form.queries, form.keys, values, bias))
    try:
        with torch.no_grad():
            outputs = softmax_average(*map(torch.from_numpy, arrays))
    except (AttributeError, RuntimeError, TypeError):  # the operator is private
        return None
    averages, log_sums = (x.numpy().astype(np.float64) for x in outputs)
    is_accurate = _log_weight_error(problem, dtype) <= _TOLERANCE[dtype]
    error_bound = np.where(is_accurate, 0.0, np.inf)
    if problem.left_out is not None:
        # The torch kernel sums over all keys. Those that are left out are subtracted.
        low, high = problem.left_out.T
        query, key = np.repeat(np.arange(len(low)), high - low), ranges(low, high)
        scores = np.vecdot(form.queries[query], form.keys[key]) + bias[key]
        weights = np.exp(scores - log_sums[query])
        weight_left_out = np.bincount(query, weights, len(low))
        remaining_weight = (1 - weight_left_out).clip(1 - _MAX_LEFT_OUT)
        np.subtract.at(averages, query, weights[:, None] * values[key])
        averages /= remaining_weight[:, None]
        log_sums += np.log(remaining_weight)
        error_bound[weight_left_out > _MAX_LEFT_OUT] = np.inf
    columns = np.column_stack([np.ones(len(averages)), averages])
    return Sums(
        shift=log_sums + form.query_bias,
        sums=np.array(columns.T[None]),
        error_bound=error_bound,
    )


def _log_weight_error(problem, dtype):
    """Return bounds (n,) on the rounding errors of each query's scores in the type `dtype`."""
    key_norm = np.linalg.norm(problem.keys, axis=1).max()
    query_norm = np.linalg.norm(problem.queries, axis=1)
    # The query's own square cancels in the average, but not in the normaliser.
    size = np.maximum(key_norm * (query_norm + key_norm / 2), query_norm**2 / 2)
    return np.finfo(dtype).eps * size


def softmax_average(queries, keys, values, bias):
    """Return softmax averages (n, p), and ``logsumexp(queries @ keys.T + bias)`` (n,).

    Queries (n, d), keys (m, d), values (m, p) and bias (m,) are tensors.
    """
    averages = []
    for columns in blocks(max(values.shape[1], 1), _MAX_COLUMNS_OF_PASS):
        width = max(queries.shape[1], values[:, columns].shape[1])
        if queries.dtype == torch.float32:  # round up to the next multiple
            width = -(-width // _MULTIPLE_IN_FLOAT32) * _MULTIPLE_IN_FLOAT32
        # Columns of 0 change no score. The kernel reads rows as if they were contiguous,
        # whatever the strides are.
        q, k, v = (
            pad(x, (0, width - x.shape[1])).contiguous()
            for x in (queries, keys, values[:, columns])
        )
        average, log_sums = cpu_flash_attention(q, k, v, bias)  # log_sums are always the same
        averages.append(average[:, : values[:, columns].shape[1]])
    return torch.cat(averages, dim=1), log_sums


def cpu_flash_attention(queries, keys, values, bias):
    """Compute softmax averages (n, width) and log-sums (n,) by torch's own kernel for CPUs.

    Queries (n, width), keys (m, width), values (m, width) and bias (m,) are tensors.
    """
    average, log_sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries[None, None],  # (1, 1, n, width)
        keys[None, None],
        values[None, None],
        attn_mask=bias.expand(1, 1, len(queries), len(keys)),
        scale=1.0,
    )
    return average[0, 0], log_sums[0, 0].to(queries.dtype)
