r"""Matrices of the weights of keys at queries, derivatives of averages, and heaviest keys.

For n queries q and m keys :math:`k_i` with values :math:`v_i`:

* *weights* :math:`p_i(q)` (n, m) are the kernel's weights divided by their sum;
* *gradients* are the derivatives of :math:`\sum_i p_i v_i` in q.

All matrices are dense, in float64: time and memory are O(n m). Work is divided into blocks of
queries, whose temporary tables are small. `_local_rows.py` has the hat matrices of local
polynomials.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from .._blocks import IN_CACHE, blocks, blocks_of_queries, check_memory
from .._frames import narwhals_frame, row_labels
from .._thread_pools import map_on_threads
from .._validation import check_bandwidth, check_choice, check_positive
from ..kernels import Kernel
from ..kernels._numerics import kernel_and_vjp
from ._algorithms._dense import (
    FEW_PAIRS,
    MAX_PRODUCT_OFFSET,
    TINY,
    comparison,
    in_logarithms,
    left_out_pairs,
    shifted_weights,
)
from ._algorithms._nearest import nearest_by_pairs
from ._arrays import as_passed
from ._read import read
from ._sums import EMPTY_POLICIES

# Rounding must not push a quantile to the next value.
_SLACK = 1e-12
# Remedy, in error messages, for a matrix that does not fit into memory.
REMEDY = "pass some queries at a time"


def attention_weights(
    queries,
    keys,
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    bandwidth: ArrayLike = 1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out: bool | ArrayLike = False,
    empty: str = "nearest",
) -> Any:
    """Compute the weight that :func:`attend` gives to each key (column) for each query (row).

    Use it to look at weights, or to apply them to several sets of values.

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
    problem, positions = read(
        queries,
        keys,
        None,
        kernel,
        bandwidth=bandwidth,
        query_scale=query_scale,
        sample_weight=sample_weight,
        leave_one_out=leave_one_out,
    )
    n_queries, n_keys = len(problem.queries), len(problem.keys)
    check_memory("a weight for every query and key", (n_queries, len(keys)), REMEDY)
    weights = np.empty((n_queries, n_keys))

    def fill(rows):
        weights[rows] = normalized_weights(problem.take(rows), empty)

    row_blocks = blocks_of_queries(n_queries, n_keys)
    # A user's own function may not be safe in threads.
    map_on_threads(fill, row_blocks, parallel=problem.kernel.signed is not None)
    if positions is not None:
        weights = for_all_keys(weights, positions, len(keys), 0.0)
    (weights,) = as_passed([problem.result(weights)], queries, keys)
    return weights


def normalized_weights(problem, empty):
    """Return the weights (n, m) of all keys for each query, which sum to 1.

    Where the kernel has no weight at all, they are NaN, or those of the nearest keys, as the
    policy `empty` says.
    """
    weights, is_empty = kernel_weights(problem)
    empty_rows = np.flatnonzero(is_empty)
    if len(empty_rows):
        weights[empty_rows] = np.nan
        if empty == "nearest":
            problem = problem.take(empty_rows)
            # Distances are measured in the columns that the kernel compares.
            compared = (x[:, problem.columns] for x in (problem.queries, problem.keys))
            _, is_nearest = nearest_by_pairs(*compared, problem.left_out, problem.rounding)
            nearest_weights = is_nearest * problem.weights
            with np.errstate(invalid="ignore"):
                total = nearest_weights.sum(axis=1, keepdims=True)
                weights[empty_rows] = nearest_weights / total
    return weights


def kernel_weights(problem):
    """Return weights (n, m) divided by their sum, and True (n,) for queries whose sum is 0.

    Such a query has weights 0. A sum of signed weights counts as 0 if it is within its error
    bound.
    """
    rows, keys = np.arange(len(problem.queries)), np.arange(len(problem.keys))
    scales = np.ones(len(rows)) if problem.query_scale is None else problem.query_scale
    all_keys = slice(0, len(keys))
    if not len(rows):
        return np.zeros((0, len(keys))), np.zeros(0, dtype=bool)
    # If all queries are near their middle, distances may be computed as products of matrices.
    numbers = problem.queries[:, problem.kernel.numeric_columns(problem.queries.shape[1])]
    middle = numbers.mean(axis=0)
    largest_offset = np.abs(numbers - middle).max(initial=0.0)
    is_narrow = largest_offset <= MAX_PRODUCT_OFFSET * scales.min()
    is_product = is_narrow and in_logarithms(problem.kernel) and problem.kernel.stationary
    # The table (n, m) has weights or their logarithms. Each query's weights are then divided by
    # a number, as is the bound (n,) on the error of their sum.
    compare = comparison(problem, rows, keys, scales, middle if is_product else None)
    table, left_out = compare(all_keys), left_out_pairs(problem, rows, keys)(all_keys)
    weights, _, error_bound = shifted_weights(problem, table, left_out)
    # Weights that are negligible relative to the largest one count as 0.
    size = np.abs(weights)
    weights[size <= TINY * size.max(axis=1, keepdims=True)] = 0.0
    total = weights.sum(axis=1)
    is_empty = ~(np.abs(total) > error_bound)
    weights[is_empty] = 0.0
    return weights / np.where(is_empty, 1.0, total)[:, None], is_empty


def for_all_keys(field, positions, n_keys, fill):
    """Return a field (n, n_positions, ...) for all keys, (n, n_keys, ...).

    Keys that are not at the positions have the number, or the array (n, 1, ...), `fill`.
    """
    shape = (field.shape[0], n_keys, *field.shape[2:])
    of_all_keys = np.zeros(shape) + fill
    of_all_keys[:, positions] = field
    return of_all_keys


def attend_gradient(
    queries,
    keys,
    values,
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    bandwidth: ArrayLike = 1.0,
    sample_weight=None,
):
    r"""Compute exact derivatives of the averages of :func:`attend` with respect to the queries.

    Use it for slopes of averages at a bandwidth that you choose. Slopes of local polynomials,
    by :func:`attend_local`, have less bias, and fitted smoothers have the method
    `predict_gradient`.

    With the average :math:`m(q)` and the normalised weights :math:`p_i(q)`,

    .. math:: \nabla m(q) = \sum_i p_i \, (v_i - m) \, \nabla_q \log K\left(\frac{q}{h},
              \frac{k_i}{h}\right),

    itself a weighted average: for the Gaussian kernel the local covariance of values and
    keys, divided by :math:`h^2`.

    Parameters
    ----------
    queries, keys, values, kernel, bandwidth, sample_weight
        As for :func:`attend`. The kernel must be one of this package, or a sum or product
        of these.

    Returns
    -------
    gradients : array or tensor of shape (n_queries, n_features) or \
(n_queries, n_values, n_features)
        The second for values of two dimensions. In values per unit of each feature; 0 for
        columns of categories. NumPy in, NumPy out; float32 in, float32 out.

    Raises
    ------
    ValueError
        As for :func:`attend`.
    TypeError
        If the kernel is a function, or comes from :mod:`sklearn.gaussian_process`: it is
        computed by NumPy and cannot be differentiated.

    Notes
    -----
    Gradients are computed in float64, whatever the precision of the inputs, in blocks of
    queries. Kernels of the distance need one pass over the pairs for each feature; others are
    differentiated by torch, once for each column of values.

    The derivative is 0 where a query has no weights, since the result there is constant
    nearby. It is 0 everywhere for the boxcar kernel, whose averages are steps: that is the
    true derivative almost everywhere, but no estimate of the trend. On a kink, such as
    that of the triangular kernel on its key, it is the mean of those on either side.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import attend_gradient
    >>> keys = np.array([[0.0], [1.0], [2.0]])
    >>> attend_gradient([[0.5], [1.0]], keys, keys[:, 0] ** 2, bandwidth=0.5).round(3)
    array([[1.18 ],
           [1.704]])
    """
    problem, _ = read(
        queries,
        keys,
        values,
        kernel,
        bandwidth=bandwidth,
        sample_weight=sample_weight,
        centred=True,
    )
    n_queries, n_features = problem.queries.shape
    n_keys, n_values = problem.values.shape
    columns = problem.kernel.numeric_columns(n_features)
    kernel = problem.kernel
    is_radial = kernel.signed is False and kernel.radial_form(n_features) is not None
    gradients_of = _by_distance if is_radial else _by_torch  # both (n, p, n_columns)
    gradients = np.zeros((n_queries, n_values, n_features))
    unit = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)[columns]

    def differentiate(rows):
        gradients[rows, :, columns] = gradients_of(problem.take(rows), columns) / unit

    parallel = problem.n_pairs > FEW_PAIRS and kernel.signed is not None
    row_blocks = blocks(n_queries, max(1, IN_CACHE // n_keys))
    map_on_threads(differentiate, row_blocks, parallel=parallel)
    n_dims = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    gradients = problem.result(gradients[:, 0] if n_dims == 1 else gradients)
    (gradients,) = as_passed([gradients], queries, keys, values)
    return gradients


def _by_distance(problem, columns):
    """Compute gradients (n, p, n_columns) by the kernel's slope along the squared distance."""
    values, x, y = problem.values, problem.queries, problem.keys
    form, (weights, _) = problem.kernel.radial_form(x.shape[1]), kernel_weights(problem)
    slope = 2 * form.kernel.log_slope(form.squared(x, y))
    slope[weights == 0] = 0.0
    gradients = np.empty((len(x), values.shape[1], len(columns)))
    for position, column in enumerate(columns):
        # This is the derivative (n, m) of the log-kernel along one feature of the query.
        change = slope * np.subtract.outer(x[:, column], y[:, column])
        # What all log-weights have in common cancels in the average. It is subtracted here
        # since the difference is tiny for a query far from all keys.
        change -= (weights * change).sum(axis=1, keepdims=True)
        gradients[:, :, position] = (weights * change) @ values
    return gradients


def _by_torch(problem, columns):
    """Compute gradients (n, p, n_columns) through the kernel itself, value by value."""
    kernel, values, logs = problem.kernel, problem.values, in_logarithms(problem.kernel)
    compare = kernel.log if logs else kernel
    table, table_vjp = kernel_and_vjp(compare, problem.queries, problem.keys, columns)
    weights, is_empty = kernel_weights(problem)
    # An average changes by factor * (v - average) times the change of the table, with factors
    # (n, m): the weights, or for a table of the kernel itself these divided by the kernel.
    factor = weights
    if not logs:
        total = (problem.weights * table).sum(axis=1)
        # The inverse of a tiny sum may be infinite; the average then counts as constant.
        with np.errstate(over="ignore", divide="ignore"):
            inverse = 1 / total
        inverse = np.where(is_empty | np.isinf(inverse), 0.0, inverse)
        factor = problem.weights * inverse[:, None]
    averages = weights @ values
    gradients = [
        table_vjp(factor * (column - average[:, None]))[0]  # along the queries, (n, n_columns)
        for column, average in zip(values.T, averages.T, strict=True)
    ]
    if not gradients:
        return np.zeros((len(table), 0, len(columns)))
    return np.stack(gradients, axis=1)


class Explanation(NamedTuple):
    """Training rows with the largest weights in each prediction.

    It is the result of `explain`; :class:`~sklearn_attention.inspection.ExplanationDisplay`
    draws it.

    Attributes
    ----------
    indices : ndarray of shape (n_queries, k)
        Rows of the training data.
    weights : ndarray of shape (n_queries, k)
        Their weights in the average, ordered by absolute value. All training rows together have
        weight 1; those of local polynomials, signed kernels and kernel ridge regression may be
        negative.
    values : ndarray of shape (n_queries, k) or (n_queries, k, n_outputs)
        Their targets.
    """

    indices: np.ndarray
    weights: np.ndarray
    values: np.ndarray


def heaviest(weights_of, X, n_keys, k):
    """Return positions and weights, (n_queries, k) each, of every query's k heaviest keys.

    Keys are ordered by the absolute value of their weights, the heaviest first. The function
    ``weights_of(X[rows])`` returns the weights of a block of queries, (n_rows, n_keys).
    """
    k = min(check_positive("k", k, integer=True), n_keys)
    indices, weights = [], []
    for rows in blocks_of_queries(len(X), n_keys):
        block = weights_of(X[rows])
        size = np.abs(block)
        # Keys of equal weight are in the order of their positions.
        heaviest_keys = np.sort(np.argpartition(-size, k - 1, axis=1)[:, :k], axis=1)
        heaviest_size = np.take_along_axis(size, heaviest_keys, axis=1)
        order = np.argsort(-heaviest_size, axis=1, kind="stable")
        heaviest_keys = np.take_along_axis(heaviest_keys, order, axis=1)
        indices.append(heaviest_keys)
        weights.append(np.take_along_axis(block, heaviest_keys, axis=1))
    return np.concatenate(indices), np.concatenate(weights)


def explained(X, explanation, labels):
    """Return an :class:`Explanation` of the queries X, as a long-format frame if X is a frame.

    The frame has a row for each query and key, with the labels of both, the weight, and the
    key's values. `labels` are those of the keys; None to show their positions.
    """
    frame = narwhals_frame(X)
    if frame is None:
        return explanation
    indices, weights, values = explanation
    queries, k = row_labels(X), indices.shape[1]
    queries = np.arange(len(indices)) if queries is None else queries
    rows = indices if labels is None else labels[indices]
    columns = {"query": queries.repeat(k), "row": rows.ravel(), "weight": weights.ravel()}
    if values.ndim == 2:
        columns["value"] = values.ravel()
    else:
        outputs = values.reshape(len(rows) * k, -1).T
        columns |= {f"value_{j}": output for j, output in enumerate(outputs)}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def weighted_quantiles(values, weights, quantiles):
    """Return the smallest values at which the cumulative weight reaches each quantile.

    `values` are (n_values,), `weights` (n_queries, n_values) are not negative, and rows sum to
    1. `quantiles` (n_quantiles,) are in [0, 1]. The result is (n_queries, n_quantiles).
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights.T[order], axis=0)
    levels = np.asarray(quantiles) * cumulative[-1:].T * (1 - _SLACK)
    first = [
        np.searchsorted(weights_up_to, query_levels)
        for weights_up_to, query_levels in zip(cumulative.T, levels, strict=True)
    ]
    return values[order][np.reshape(first, levels.shape).astype(np.int64)]
