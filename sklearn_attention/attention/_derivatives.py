"""Derivatives of the weighted average in its query."""

import numpy as np
import torch

from .._blocks import IN_CACHE, blocks
from .._validation import check_bandwidth
from ._algorithms._tiles import is_parallel, least_total, shifted_weights, sums_logarithms
from ._read import as_passed, read
from ._threads import map_blocks

# Pairs per block of queries; about a dozen tables of this size are alive at a time.
_BLOCK_PAIRS = IN_CACHE
# Weights this small relative to the largest are 0: in a far key's derivative they might still
# count.
_INVISIBLE = 1e-300


def attend_gradient(
    queries,
    keys,
    values,
    kernel="gaussian",
    *,
    bandwidth=1.0,
    sample_weight=None,
):
    r"""Exact derivatives of the averages of :func:`attend` with respect to the queries.

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
    problem = problem.tensors()
    n_queries, n_features = problem.queries.shape
    n_keys, n_values = problem.values.shape
    columns = problem.kernel.numeric_columns(n_features)
    # A common offset would leave its digits in every difference from the average.
    problem, _ = problem.centred()
    way = _by_autograd if problem.kernel.radial_form(n_features) is None else _by_distance

    def differentiate(rows):
        return way(problem, columns, rows)

    row_blocks = blocks(n_queries, max(1, _BLOCK_PAIRS // n_keys))
    found = map_blocks(differentiate, row_blocks, parallel=is_parallel(problem))
    gradients = problem.queries.new_zeros((n_queries, n_values, n_features))
    if found:
        scale = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)[columns]
        scale = torch.tensor(scale)
        gradients[:, :, columns] = torch.cat(found) / scale
    n_dims = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    found = problem.result(gradients[:, 0] if n_dims == 1 else gradients)
    (found,) = as_passed([found], queries, keys, values)
    return found


def _by_distance(problem, columns, rows):
    """Gradients for some queries, by the kernel's derivative along the squared distance."""
    x, y = problem.queries[rows], problem.keys
    form, is_log = problem.kernel.radial_form(x.shape[1]), sums_logarithms(problem.kernel)
    squared = form.squared(x, y).requires_grad_()
    with torch.enable_grad():
        table = (form.log_values if is_log else form.values)(squared, x, y)
    values = problem.values
    gradients = x.new_zeros((len(x), values.shape[1], len(columns)))
    if not table.requires_grad:
        return gradients  # a kernel of steps
    # One derivative for each pair: pairs do not enter each other's entries.
    (slope,) = torch.autograd.grad(table.sum(), squared)
    shares, factor = _shares(problem, table.detach())
    slope = torch.where(factor != 0, 2 * slope, 0)
    averages = shares @ values
    for position, column in enumerate(columns):
        change = slope * (x[:, column, None] - y[:, column])
        if is_log:
            # The common part of all log-weights cancels in the average; here, not later,
            # since for a query far from all keys nothing else is left.
            change -= (shares * change).sum(dim=1, keepdim=True)
        change *= factor
        common = averages * change.sum(dim=1, keepdim=True)
        gradients[:, :, position] = change @ values - common
    return gradients


def _by_autograd(problem, columns, rows):
    """Gradients for some queries, by torch through the kernel itself."""
    x, y, is_log = problem.queries[rows], problem.keys, sums_logarithms(problem.kernel)
    # Codes of categories stay outside the graph: their kernels need no derivative.
    moving = x[:, columns].clone().requires_grad_()
    with torch.enable_grad():
        x = x.index_copy(1, torch.tensor(columns), moving) if columns else x
        table = problem.kernel.log(x, y) if is_log else problem.kernel(x, y)
    values = problem.values
    gradients = x.new_zeros((len(x), values.shape[1], len(columns)))
    if not table.requires_grad:
        return gradients
    shares, factor = _shares(problem, table.detach())
    averages = shares @ values
    for column in range(values.shape[1]):
        pull = factor * (values[:, column] - averages[:, column, None])
        (gradient,) = torch.autograd.grad(table, moving, pull, retain_graph=True)
        gradients[:, column] = gradient
    return gradients


def _shares(problem, table):
    """Normalised weights, and factors of the table's derivatives; 0 without usable weights."""
    # For logarithms both are the same; for the kernel's values the factor is the weight of the
    # key over the sum.
    weights, shift = shifted_weights(problem, table)
    if sums_logarithms(problem.kernel):
        weights = torch.where(weights > _INVISIBLE, weights, 0)
    total = weights.sum(dim=1)
    usable = total.abs() > least_total(problem.kernel, weights)
    inverse = torch.where(usable, 1 / torch.where(usable, total, 1), 0)[:, None]
    shares = weights * inverse
    if sums_logarithms(problem.kernel):
        return shares, shares
    return shares, problem.weights * torch.where(usable, (-shift).exp(), 0)[:, None] * inverse
