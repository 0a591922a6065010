"""The weights of an average as a matrix, for inspection."""

import numpy as np

from .._blocks import IN_MEMORY, blocks
from .._memory import check_memory
from .._thread_pools import map_on_threads
from .._validation import check_choice
from ._algorithms._dense import comparison, own_pairs, shifted_weights
from ._algorithms._nearest import nearest_by_pairs
from ._read import as_passed, read
from ._sums import EMPTY_POLICIES

_BLOCK_PAIRS = IN_MEMORY // 32
_INVISIBLE = 1e-300
# What to do about a matrix that does not fit into memory.
IN_PARTS = "pass some queries at a time"


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
    weights = np.empty((n_queries, n_keys))

    def fill(rows):
        weights[rows] = normalized(problem.take(rows), empty)

    row_blocks = blocks(n_queries, max(1, _BLOCK_PAIRS // n_keys))
    # A user's own function may not be safe in threads.
    map_on_threads(fill, row_blocks, parallel=problem.kernel.signed is not None)
    if kept is not None:
        everywhere = np.zeros((n_queries, len(keys)))
        everywhere[:, kept] = weights
        weights = everywhere
    (weights,) = as_passed([problem.result(weights)], queries, keys)
    return weights


def normalized(problem, empty):
    """The weights (n, m) divided by their sum; where these have none, those of the policy."""
    weights, lost = shares(problem)
    lost = np.flatnonzero(lost)
    if len(lost):
        weights[lost] = np.nan
        if empty == "nearest":
            some = problem.take(lost)
            _, near = nearest_by_pairs(some.queries, some.keys, some.own_key, some.gap)
            near *= some.weights
            with np.errstate(invalid="ignore"):
                weights[lost] = near / near.sum(axis=1, keepdims=True)
    return weights


def shares(problem):
    """The weights (n, m) divided by their sum, and which rows have none, which are 0."""
    rows, keys = np.arange(len(problem.queries)), np.arange(len(problem.keys))
    width = np.ones(len(rows)) if problem.query_scale is None else problem.query_scale
    whole = slice(0, len(keys))
    if not len(rows):
        return np.zeros((0, len(keys))), np.zeros(0, dtype=bool)
    table = comparison(problem, rows, keys, width)(whole)
    left_out = own_pairs(problem, rows, keys)(whole)
    weights, _, least = shifted_weights(problem, table, left_out)
    # Weights that are kept above the denormal numbers are 0 for all purposes.
    size = np.abs(weights)
    weights[size <= _INVISIBLE * size.max(axis=1, keepdims=True)] = 0.0
    total = weights.sum(axis=1)
    lost = ~(np.abs(total) > least)
    weights[lost] = 0.0
    return weights / np.where(lost, 1.0, total)[:, None], lost
