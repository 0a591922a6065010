"""Derivatives of the weighted average in its query."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._blocks import IN_CACHE, blocks
from .._thread_pools import map_on_threads
from .._validation import check_bandwidth
from ..kernels import Kernel
from ..kernels._numerics import with_slopes
from ._algorithms._dense import FEW_PAIRS, in_logarithms
from ._read import as_passed, read
from ._tables import shares


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
    Computed in float64 whatever the precision of the inputs, in blocks of queries. Kernels
    of the distance need one pass over the pairs for each feature; others are
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
        queries, keys, values, kernel, bandwidth=bandwidth, sample_weight=sample_weight,
    )  # fmt: skip
    n_queries, n_features = problem.queries.shape
    n_keys, n_values = problem.values.shape
    columns = problem.kernel.numeric_columns(n_features)
    # A common offset would leave its digits in every difference from the average.
    problem, _ = problem.centred()
    kernel = problem.kernel
    by_distance = kernel.signed is False and kernel.radial_form(n_features) is not None
    way = _by_distance if by_distance else _by_torch
    gradients = np.zeros((n_queries, n_values, n_features))
    unit = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)[columns]

    def differentiate(rows):
        gradients[rows, :, columns] = way(problem.take(rows), columns) / unit

    many = problem.n_pairs > FEW_PAIRS and kernel.signed is not None
    row_blocks = blocks(n_queries, max(1, IN_CACHE // n_keys))
    map_on_threads(differentiate, row_blocks, parallel=many)
    n_dims = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    found = problem.result(gradients[:, 0] if n_dims == 1 else gradients)
    (found,) = as_passed([found], queries, keys, values)
    return found


def _by_distance(problem, columns):
    """Gradients by the kernel's slope along the squared distance, one feature at a time."""
    values, x, y = problem.values, problem.queries, problem.keys
    form, (weights, _) = problem.kernel.radial_form(x.shape[1]), shares(problem)
    slope = 2 * form.kernel.log_slope(form.squared(x, y))
    slope[weights == 0] = 0.0
    gradients = np.empty((len(x), values.shape[1], len(columns)))
    for position, column in enumerate(columns):
        change = slope * np.subtract.outer(x[:, column], y[:, column])
        # The common part of all log-weights cancels in the average; here, not later, since for
        # a query far from all keys nothing else is left.
        change -= (weights * change).sum(axis=1, keepdims=True)
        gradients[:, :, position] = (weights * change) @ values
    return gradients


def _by_torch(problem, columns):
    """Gradients through the kernel itself, one column of values at a time."""
    kernel, values, logs = problem.kernel, problem.values, in_logarithms(problem.kernel)
    compare = kernel.log if logs else kernel
    table, pull = with_slopes(compare, problem.queries, problem.keys, columns)
    weights, lost = shares(problem)
    factor = weights
    if not logs:  # the derivative is the table's own, not that of its logarithm
        total = (problem.weights * table).sum(axis=1)
        # Of sums that are hardly numbers, no derivative is one: the average counts as constant.
        with np.errstate(over="ignore", divide="ignore"):
            inverse = 1 / total
        factor = problem.weights * np.where(lost | np.isinf(inverse), 0.0, inverse)[:, None]
    averages = weights @ values
    found = [
        pull(factor * (column - average[:, None]))[0]
        for column, average in zip(values.T, averages.T, strict=True)
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(table), 0, len(columns)))
