r"""Rows of the hat matrix of local polynomials, and fits without each key.

For n queries q and m keys :math:`k_i` with values :math:`v_i`, the *weights* :math:`p_i(q)`
(n, m) are the kernel's weights divided by their sum. The *effects* :math:`l_i(q)` (n, m) are
the rows of the smoother (hat) matrix: the fit of a local polynomial is :math:`\hat m = \sum_i
l_i v_i`. For degree 0 they are the weights.

About q, the polynomial has terms :math:`\phi_i` (without the constant) at key i, with weighted
mean :math:`\mu` and covariance C over the keys; :math:`D = \mu^\top C^{-1} \mu` is the *squared
distance* of q from the keys, and r the shrinkage of far extrapolations (`_solve.py`).

Time and memory are O(n m), and p times as much for p columns of values without each key.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._blocks import ROWS_AT_ONCE, check_memory
from .._thread_pools import map_on_threads
from ..kernels import Kernel
from ._algorithms._dense import FEW_PAIRS, MAX_WIDTH, split
from ._read import key_ranges, read
from ._reduce import Reduction
from ._solve import (
    Basis,
    check_degree,
    local_unit,
    refuse_signed,
    shrinkage_of,
    solve,
    std_of_keys,
)
from ._tables import REMEDY, for_all_keys, normalized_weights

# If all other keys have less than this share of a fit's weight, a key cannot be left out by
# division.
_MIN_SHARE_OF_OTHERS = 1e-7


class LocalRows(NamedTuple):
    """Smoother (hat) matrices of local polynomials, with a row for each query.

    They are the result of :func:`local_rows`.

    Attributes
    ----------
    values : ndarray of shape (n_queries, n_values)
        The fits.
    weights : ndarray of shape (n_queries, n_keys)
        The kernel's weights; rows sum to 1.
    effects : ndarray of shape (n_queries, n_keys)
        The effective weights: the fits are ``effects @ values``.
    squared_distance : ndarray of shape (n_queries,)
        Squared Mahalanobis distance of the query from the rows, as that of
        :class:`~sklearn_attention.attention.LocalFit`.
    left_out : ndarray of shape (n_queries, n_keys, n_values)
        The fit at the query without that key; None without ``without_each``.
    left_out_distance : ndarray of shape (n_queries, n_keys)
        The squared distance without that key; None without ``without_each``.
    """

    values: Any
    weights: Any
    effects: Any
    squared_distance: Any
    left_out: Any
    left_out_distance: Any


def local_rows(
    queries,
    keys,
    values,
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    degree: int = 0,
    bandwidth: ArrayLike = 1.0,
    query_scale=None,
    sample_weight=None,
    empty: str = "nearest",
    without_each: bool = True,
) -> LocalRows:
    r"""Compute the smoother (hat) matrices of local polynomials at some queries.

    Entries are the weights of each key's value in the fit at each query. Use them to inspect
    local polynomials, or to compute their uncertainty; for predictions alone take
    :func:`attend_local`. All matrices are dense, so pass queries in blocks.

    Parameters
    ----------
    queries, keys, kernel, bandwidth, query_scale, sample_weight, empty
        As for :func:`attend`.
    values : array of shape (n_keys, n_values)
        Values to be averaged.
    degree : {0, 1, 2, 3}, default=0
        Degree of the polynomials; 0 is the weighted average.
    without_each : bool, default=True
        Whether to compute the fits without each key, which takes most of the time if windows
        are narrow.

    Returns
    -------
    rows : LocalRows
        Arrays, in float64.

    Notes
    -----
    Leaving a key out of a least-squares fit changes it by a rank-one update: with
    the residual :math:`e_i` and the leverage :math:`s_i` of the key in the fit at the query and
    its effective weight :math:`l_i`, the fit without it is
    :math:`\hat m - l_i e_i / (1 - s_i)`, unless the query is so far from the rows that the fit
    is shrunk (:func:`attend_local`). The squared distance without the key follows by such an
    update as well.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import local_rows
    >>> keys = np.array([[0.0], [1.0], [2.0]])
    >>> rows = local_rows([[3.0]], keys, keys ** 2, degree=1, bandwidth=5.0)
    >>> rows.effects.sum().round(6), (rows.effects @ keys).round(6)
    (np.float64(1.0), array([[3.]]))
    """
    degree = check_degree(degree)
    problem, positions = read(
        queries,
        keys,
        values,
        kernel,
        bandwidth=bandwidth,
        query_scale=query_scale,
        sample_weight=sample_weight,
        centred=True,
    )
    # These are weights and effects, and for each value the residuals, which are temporary, and
    # the fits without each key.
    shape = len(problem.queries), len(keys), 2 + 2 * problem.values.shape[1]
    check_memory("what every key does to the fit at every query", shape, REMEDY)
    if degree:
        refuse_signed(problem.kernel)
    columns = problem.kernel.numeric_columns(problem.keys.shape[1])
    basis = Basis(degree, len(columns), len(problem.keys))
    key_std = std_of_keys(problem.keys[:, columns], problem.weights)
    groups = _groups_of_queries(problem, degree, columns, key_std)

    def compute(rows):
        return _rows_of_group(problem.take(rows), basis, columns, key_std, empty, without_each)

    # A user's own function may not be safe in threads.
    parallel = problem.n_pairs > FEW_PAIRS and problem.kernel.signed is not None
    fields_of_groups = map_on_threads(compute, groups or [np.arange(0)], parallel=parallel)
    order = np.argsort(np.concatenate(groups)) if groups else slice(None)
    fields = (np.concatenate(field)[order] for field in zip(*fields_of_groups, strict=True))
    fitted, weights, effects, distance, left_out, left_out_distance = fields
    fitted, left_out = fitted + problem.value_center, left_out + problem.value_center
    if not without_each:
        left_out = left_out_distance = None
    local = LocalRows(fitted, weights, effects, distance, left_out, left_out_distance)
    return local if positions is None else _with_weightless_keys(local, positions, len(keys))


def _with_weightless_keys(local, positions, n_keys):
    """Return `LocalRows` of all keys, from those of the keys at `positions`.

    The other keys have no weight: their effects are 0, and the fit without them is the fit.
    """

    def expand(field, fill):
        return None if field is None else for_all_keys(field, positions, n_keys, fill)

    fitted, distance = local.values, local.squared_distance
    left_out = expand(local.left_out, fitted[:, None])
    left_out_distance = expand(local.left_out_distance, distance[:, None])
    weights, effects = expand(local.weights, 0.0), expand(local.effects, 0.0)
    return LocalRows(fitted, weights, effects, distance, left_out, left_out_distance)


def _groups_of_queries(problem, degree, columns, key_std):
    """Divide the queries into groups of neighbours; return arrays of their rows.

    Sums about the middle of a group lose digits if a query is many units of the narrowest
    window away. Tables of a group and all keys have `ROWS_AT_ONCE` numbers at most.
    """
    max_rows = max(1, ROWS_AT_ONCE // len(problem.keys))
    max_width = MAX_WIDTH[degree] if degree else np.inf
    scale = 1.0 if problem.query_scale is None else problem.query_scale.min(initial=1.0)
    with np.errstate(over="ignore"):
        points = problem.queries[:, columns] / np.minimum(scale, key_std)
    rows = np.arange(len(problem.queries))
    return split(points, rows, max_rows=max_rows, max_width=max_width)


def _rows_of_group(problem, basis, columns, key_std, empty, without_each):
    """Return the six fields of `LocalRows` for queries that are close together.

    The last two, the fits (b, m, p) and distances (b, m) without each key, are computed only if
    `without_each`; otherwise they are those with all keys. `columns` are the numeric columns,
    and `key_std` (n_columns,) has the standard deviations of the keys.
    """
    # Shapes: b queries, m keys, p values, P terms of the polynomial, the constant included.
    values, keys = problem.values, problem.keys[:, columns]
    queries = problem.queries[:, columns]
    weights = normalized_weights(problem, empty)
    # 1. Moments are computed about the middle of the queries by a product of matrices, and
    # moved to each query.
    middle = queries.sum(axis=0) / max(len(queries), 1)
    products = basis.products(keys - middle, values)
    terms = products[:, : basis.size]  # (m, P) about the middle
    kernel_std, query_scale = problem.kernel.spread, problem.query_scale
    unit = local_unit(
        kernel_std if query_scale is None else kernel_std * query_scale[:, None], key_std
    )
    shift = basis.shift(queries - middle, unit)
    gram, cross = basis.moments(weights @ products)
    gram, cross = shift @ gram @ shift.swapaxes(1, 2), shift @ cross
    solution = solve(gram, cross)
    # 2. The effects are l_i = p_i (1 - r mu' C^-1 (phi_i - mu)). The matrix `to_centred` turns
    # terms about the middle into phi_i - mu about each query.
    to_centred = shift[:, 1:].copy()  # (b, P - 1, P)
    to_centred[:, :, 0] -= solution.mean
    slope_effects = (solution.solved_mean[:, None] @ to_centred)[:, 0] @ terms.T  # (b, m)
    distance = solution.squared_distance
    fields = solution.value, weights, weights * (1 - slope_effects), distance
    if not without_each:
        return *fields, solution.value, distance
    # 3. Key i has the residual e_i = v_i - mean - beta' (phi_i - mu), and in the fit at the
    # query the leverage s_i = p_i (1 + (phi_i - mu)' C^-1 (phi_i - mu)).
    slopes = (solution.coefficients.swapaxes(1, 2) @ to_centred) @ terms.T  # (b, p, m)
    residuals = values - cross[:, :1] - slopes.swapaxes(1, 2)
    forms = to_centred.swapaxes(1, 2) @ np.linalg.solve(solution.covariance, to_centred)
    key_distance = basis.linear_forms(forms) @ products[:, : basis.n_powers].T  # (b, m)
    one_minus_leverage = 1 - weights * (1 + key_distance)
    # 4. A key is left out by an update, or by a new fit if it outweighs all others together.
    is_heaviest = one_minus_leverage < _MIN_SHARE_OF_OTHERS
    one_minus_leverage = np.where(is_heaviest, 1.0, one_minus_leverage)
    left_out, distance = _left_out(
        solution, cross[:, 0], weights, slope_effects, one_minus_leverage, values, residuals
    )
    for query, key in np.argwhere(is_heaviest):
        fit = _fit_without(problem.take([query]), basis.degree, key, empty)
        left_out[query, key], distance[query, key] = fit
    return *fields, left_out, distance


def _left_out(solution, average, weights, slope_effects, one_minus_leverage, values, residuals):
    """Return fits (b, m, p) and squared distances (b, m) without each key.

    Leaving a key out is an update of rank one of the Gram matrix (Sherman and Morrison).
    `average` (b, p) are the weighted averages of the values; the other arguments are named as
    in `_rows_of_group`.
    """
    shrinkage = solution.shrinkage[:, None]
    # These are the polynomial at the query, and its effects divided by the weights, both as if
    # the shrinkage were 1.
    polynomial = average + (solution.value - average) / shrinkage
    relative_effects = 1 - slope_effects / shrinkage
    # Without key i the polynomial changes by -l_i e_i / (1 - s_i).
    change = (weights * relative_effects / one_minus_leverage)[:, :, None] * residuals
    polynomial_without = polynomial[:, None] - change
    # The first entry of the inverse Gram matrix is (1 + D) / W for weights that sum to W: to 1
    # with all keys, and to 1 - p_i without key i.
    update = weights * relative_effects**2 / one_minus_leverage
    inverse_gram = 1 + solution.squared_distance[:, None] + update
    distance = (1 - weights) * inverse_gram - 1
    # Then the fit is shrunk towards the average without the key.
    shrinkage = shrinkage_of(distance, solution.solved_mean.shape[1])[:, :, None]
    odds = weights / (1 - weights).clip(_MIN_SHARE_OF_OTHERS)
    averages_without = average[:, None] + odds[:, :, None] * (average[:, None] - values)
    to_average = polynomial_without - averages_without
    return polynomial_without - (1 - shrinkage) * to_average, distance


def _fit_without(problem, degree, key, empty):
    """Fit at the only query of a problem without one key; return fit and squared distance."""
    problem = replace(problem, left_out=key_ranges(np.array([key])))
    reduction = Reduction(problem, degree, empty=empty, algorithm="dense")
    ((_, row_blocks),) = reduction.each(np.ones(1))  # one scale
    ((_, _, moments),) = row_blocks  # one block, of the only query
    solution = solve(moments.gram, moments.cross)
    return solution.value[0], solution.squared_distance[0]
