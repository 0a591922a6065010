"""The weights of an average as a matrix, for inspection."""

import torch

from .._blocks import IN_MEMORY, blocks
from .._memory import check_memory
from .._validation import check_choice
from ._algorithms._tiles import fallback_weights, least_total, tile_weights
from ._read import as_passed, read
from ._sums import EMPTY_POLICIES
from ._threads import threads_for

_BLOCK_PAIRS = IN_MEMORY // 32
_INVISIBLE = 1e-300
# What to do about a matrix that does not fit into memory.
IN_PARTS = "pass some queries at a time"


@torch.no_grad()
def attention_weights(
    queries,
    keys,
    kernel="gaussian",
    *,
    bandwidth=1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out=False,
    empty="nearest",
):
    """Weights of every key in every query's average, as a matrix.

    ``attention_weights(...) @ values`` is what :func:`attend` computes without ever
    holding this matrix.

    Parameters
    ----------
    queries, keys, kernel, bandwidth, query_scale, sample_weight, leave_one_out, empty
        As for :func:`attend`.

    Returns
    -------
    weights : array or tensor of shape (n_queries, n_keys)
        Each row sums to 1; under the policy "nan" rows without weights are NaN.

    Raises
    ------
    ValueError, TypeError
        As for :func:`attend`.

    Examples
    --------
    >>> from sklearn_attention import attention_weights
    >>> attention_weights([[0.0]], [[0.0], [1.0], [2.0]], "triangular", bandwidth=2.0)
    array([[0.66666667, 0.33333333, 0.        ]])
    """
    check_choice("empty", empty, EMPTY_POLICIES)
    problem, kept = read(
        queries, keys, None, kernel, bandwidth=bandwidth, query_scale=query_scale,
        sample_weight=sample_weight, leave_one_out=leave_one_out,
    )  # fmt: skip
    n_queries, n_keys = len(problem.queries), len(problem.keys)
    check_memory("a weight for every query and key", (n_queries, len(keys)), IN_PARTS)
    problem = problem.tensors()
    weights = problem.queries.new_zeros((n_queries, n_keys))
    with threads_for(n_queries * n_keys):
        for rows in blocks(n_queries, max(1, _BLOCK_PAIRS // n_keys)):
            weights[rows] = normalized(problem.take(rows), empty)
    if kept is not None:
        everywhere = weights.new_zeros((n_queries, len(keys)))
        everywhere[:, kept] = weights
        weights = everywhere
    (weights,) = as_passed([problem.result(weights)], queries, keys)
    return weights


def normalized(problem, empty):
    """The weights (n, m) divided by their sum; where these have none, those of the policy."""
    weights, _ = tile_weights(problem)
    # Weights that the tiles keep above the denormal numbers are 0 for all purposes.
    size = weights.abs()
    weights = torch.where(size > _INVISIBLE * size.amax(dim=1, keepdim=True), weights, 0)
    usable = weights.sum(dim=1).abs() > least_total(problem.kernel, weights)
    if not usable.all():
        weights[~usable] = torch.nan
        if empty == "nearest":
            weights[~usable] = fallback_weights(problem.take(~usable))
    return weights / weights.sum(dim=1, keepdim=True)
