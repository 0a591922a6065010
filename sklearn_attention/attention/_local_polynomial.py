"""Local polynomials: the weighted average, corrected for where the keys lie."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .._blocks import blocks
from .._validation import check_bandwidth, check_choice
from ._average import unfinished
from ._kernel_sums import ALGORITHMS
from ._linear_time import linear_time_sums
from ._partial import EMPTY_POLICIES, finish, refuse_empty
from ._polynomial import Basis, local_unit, solve
from ._problem import prepare

# Moments are taken about the middle of a block of queries this many bandwidths wide at
# most: seen from further away, their digits would cancel.
_RADIUS = 4.0
_BLOCK_PAIRS = 2**20
# A key that carries all but this share of a fit cannot be taken out by division.
_LONELY = 1e-7
# Queries further away than this many bandwidths are asked from here: the squares of their
# squares would overflow.
_FURTHEST = 1e60


class LocalFit(NamedTuple):
    """Local polynomials at each query.

    Attributes
    ----------
    values : array of shape (n_queries,) or (n_queries, n_values)
        The polynomials at the queries.
    slopes : array of shape (n_queries, n_features) or (n_queries, n_values, n_features)
        Their first derivatives, in the features' own units; 0 for features that the kernel
        does not compare as numbers.
    log_normalizers : array of shape (n_queries,)
        Logarithm of the sum of the weights.
    ridge : array of shape (n_queries,)
        What was added to the variances of the local terms, in units of the kernel's own, or
        of the data's where they are narrower than the kernel;
        0 where the rows in the window suffice to tell a slope.
    """

    values: Any
    slopes: Any
    log_normalizers: Any
    ridge: Any


class LocalRows(NamedTuple):
    """What each key does to the fit at each query, as matrices.

    Attributes
    ----------
    values : ndarray of shape (n_queries, n_values)
        The fits.
    weights : ndarray of shape (n_queries, n_keys)
        The kernel's weights; rows sum to 1.
    smoother : ndarray of shape (n_queries, n_keys)
        The effective weights: the fits are ``smoother @ values``.
    residuals : ndarray of shape (n_queries, n_keys, n_values)
        How far each key's value lies from the polynomial of each query.
    left_out : ndarray of shape (n_queries, n_keys, n_values)
        The fit at the query without that key.
    """

    values: Any
    weights: Any
    smoother: Any
    residuals: Any
    left_out: Any


def attend_local(
    queries,
    keys,
    values,
    kernel="gaussian",
    *,
    degree=1,
    bandwidth=1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out=False,
    algorithm="auto",
    empty="nearest",
    device="auto",
):
    r"""Local polynomial regression: weighted least squares at every query.

    .. math:: \min_{\beta} \sum_i w_i K\left(\tfrac{q - k_i}{h}\right)
              \bigl(v_i - \beta_0 - \beta_1^\top (k_i - q) - \dots\bigr)^2

    The value is :math:`\beta_0`, the slope :math:`\beta_1`. It is the weighted average
    again, of more values: the products of the polynomial's terms, with each other and with
    the values.

    Parameters
    ----------
    queries, keys, values, kernel, bandwidth, query_scale, sample_weight, empty, device
        As for :func:`attend`, like ``algorithm``. The kernel must not take negative values.
    degree : {1, 2}, default=1
        Degree of the polynomials; 2 includes the products of different features.
    leave_one_out : bool or array of shape (n_queries,), default=False
        As for :func:`attend`.

    Returns
    -------
    fit : LocalFit
        Values, slopes, log-normalisers and ridge.

    Raises
    ------
    ValueError
        As for :func:`attend`; if the kernel takes negative values, or the degree is neither
        1 nor 2.

    Notes
    -----
    Where the rows in a window do not determine the polynomial (fewer rows than
    coefficients, a feature that is constant in the window), its slopes are shrunk to 0 by a
    ridge that lifts the smallest eigenvalue of the terms' covariance to 1e-4 of the
    kernel's own variance, or the data's where that is smaller; elsewhere the ridge is 0. A
    single row thus answers with its value. For a query so far from all rows that the
    covariance is mostly rounding, the eigenvalue is lifted above that.

    References
    ----------
    .. [1] Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.
       Chapman and Hall.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import attend_local
    >>> keys = np.array([[0.0], [1.0], [2.0]])
    >>> fit = attend_local([[0.0], [3.0]], keys, 1 + 2 * keys[:, 0], bandwidth=1.0)
    >>> fit.values.round(6), fit.slopes.round(6)
    (array([1., 7.]), array([[2.], [2.]]))
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_choice("empty", empty, EMPTY_POLICIES)
    if degree not in (1, 2):
        raise ValueError(f"degree={degree!r} is not valid: pass 1 or 2 (attend is degree 0).")
    problem, answer, _ = prepare(
        queries, keys, values, kernel, bandwidth=bandwidth, query_scale=query_scale,
        sample_weight=sample_weight, leave_one_out=leave_one_out, device=device,
    )  # fmt: skip
    _refuse_signed(problem.kernel)
    problem = replace(problem, queries=problem.queries.clip(-_FURTHEST, _FURTHEST))
    center = _middle(problem.values, problem.weights)
    centred = replace(problem, values=problem.values - center)
    keys_ = linear_time_sums(centred, degree) if algorithm == "auto" else None
    # A block would complain about its own rows alone.
    policy = "nan" if empty == "raise" else empty
    if keys_ is None:
        found = _by_blocks(centred.tensors(device), degree, algorithm, policy)
    else:
        found = _in_linear_time(centred, keys_, policy)
    values_, slopes, log_normalizers, ridge = found
    values_ = values_ + array_namespace(values_).asarray(center)
    if empty == "raise":
        refuse_empty(ridge == ridge)
    xp = array_namespace(slopes)
    divisor = check_bandwidth(bandwidth, slopes.shape[-1])
    slopes = slopes / xp.asarray(divisor, dtype=slopes.dtype, device=slopes.device)
    n_dims = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    if n_dims == 1:
        values_, slopes = values_[:, 0], slopes[:, 0]
    return LocalFit(
        answer(values_), answer(slopes), answer(log_normalizers, "single"), answer(ridge)
    )


def _refuse_signed(kernel):
    if kernel.signed:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, with which least squares has no "
            "minimum: choose a positive kernel such as 'gaussian', or degree=0."
        )


def _in_linear_time(problem, keys, empty):
    """The fields of `LocalFit`, per bandwidth, in one or two features."""
    scale = 1.0 if problem.query_scale is None else problem.query_scale
    shift, sums = keys.answered(problem, keys.sums(problem), scale, empty)
    gram, cross, unit = keys.moments(sums, scale)
    solution = solve(gram, cross)
    slopes = np.zeros((*solution.value.shape, problem.queries.shape[1]))
    linear = solution.coefficients[:, : len(keys.columns)] / unit[:, :, None]
    slopes[:, :, keys.columns] = linear.transpose(0, 2, 1)
    with np.errstate(divide="ignore"):
        log_normalizers = shift + np.log(sums[0, 0]) + problem.log_weight_scale
    return solution.value, slopes, log_normalizers, solution.ridge


def _by_blocks(problem, degree, algorithm, empty):
    """The same in any dimension, by blocks of queries that lie close together."""
    import torch

    from ._algorithms._compact_blocks import compact_blocks

    local = _Coordinates(problem, degree)
    n_queries, n_values = len(problem.queries), problem.values.shape[1]
    fitted = problem.queries.new_empty((n_queries, n_values))
    slopes = problem.queries.new_zeros((n_queries, n_values, problem.queries.shape[1]))
    log_normalizers, ridge = (problem.queries.new_empty(n_queries) for _ in range(2))
    for rows in compact_blocks(local.queries, _RADIUS):
        middle = local.queries[rows].mean(dim=0)
        terms = local.basis.terms(local.keys - middle)
        columns = local.basis.columns(terms, problem.values)
        part = unfinished(replace(problem.take(rows), values=columns), algorithm, empty)
        averages, log_normalizers[rows] = finish(part, empty)
        averages = averages.double()
        solution = local.solve(averages, rows, middle)
        fitted[rows] = solution.value
        ridge[rows] = solution.ridge
        linear = solution.coefficients[:, : len(local.columns)] / local.unit[rows, :, None]
        columns = torch.tensor(local.columns, dtype=torch.long, device=rows.device)
        slopes[rows[:, None], :, columns] = linear
    return fitted, slopes, log_normalizers, ridge


def local_rows(
    queries,
    keys,
    values,
    kernel="gaussian",
    *,
    degree=0,
    bandwidth=1.0,
    query_scale=None,
    sample_weight=None,
    empty="nearest",
    device="auto",
):
    r"""What each key does to the fit at each query, as matrices.

    For inspection and uncertainty; all matrices are dense, so pass queries in blocks.

    Parameters
    ----------
    queries, keys, kernel, bandwidth, query_scale, sample_weight, empty, device
        As for :func:`attend`.
    values : array of shape (n_keys, n_values)
        What is averaged.
    degree : {0, 1, 2}, default=0
        Degree of the polynomials; 0 is the weighted average.

    Returns
    -------
    rows : LocalRows
        Arrays, in float64.

    Notes
    -----
    Leaving a key out of a least-squares fit changes it by a rank-one update: with the
    residual :math:`e_i` and the leverage :math:`s_i` of the key in the fit at the query and
    its effective weight :math:`l_i`, the fit without it is
    :math:`\hat m - l_i e_i / (1 - s_i)`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import local_rows
    >>> keys = np.array([[0.0], [1.0], [2.0]])
    >>> rows = local_rows([[3.0]], keys, keys ** 2, degree=1, bandwidth=5.0)
    >>> rows.smoother.sum().round(6), (rows.smoother @ keys).round(6)
    (np.float64(1.0), array([[3.]]))
    """
    problem, _, kept = prepare(
        queries, keys, values, kernel, bandwidth=bandwidth, query_scale=query_scale,
        sample_weight=sample_weight, leave_one_out=False, device=device,
    )  # fmt: skip
    from ._algorithms._compact_blocks import compact_blocks

    if degree:
        _refuse_signed(problem.kernel)
    problem = problem.tensors(device)
    local = _Coordinates(problem, degree)
    center = _middle(problem.values, problem.weights)
    centred = problem.values - center
    n_queries, n_keys, n_values = len(problem.queries), len(problem.keys), centred.shape[1]
    fields = {
        "values": problem.queries.new_empty((n_queries, n_values)),
        "weights": problem.queries.new_empty((n_queries, n_keys)),
        "smoother": problem.queries.new_empty((n_queries, n_keys)),
        "residuals": problem.queries.new_empty((n_queries, n_keys, n_values)),
        "left_out": problem.queries.new_empty((n_queries, n_keys, n_values)),
    }
    for box in compact_blocks(local.queries, _RADIUS):
        for part in blocks(len(box), max(1, _BLOCK_PAIRS // n_keys)):
            rows = box[part]
            found = _rows(problem, local, centred, rows, empty)
            for field, value in zip(fields.values(), found, strict=True):
                field[rows] = value
    fields["values"] += center
    fields["left_out"] += center
    if kept is not None:
        # Keys without weight do nothing: the fit without them is the fit.
        for name in ("weights", "smoother", "residuals"):
            fields[name] = _everywhere(fields[name], kept, len(keys), 0.0)
        whole = fields["values"][:, None]
        fields["left_out"] = _everywhere(fields["left_out"], kept, len(keys), whole)
    return LocalRows(*(field.cpu().numpy() for field in fields.values()))


def _rows(problem, local, values, rows, empty):
    """The fields of `LocalRows` for some of the queries."""
    import torch

    from ._weights import normalized

    weights = normalized(problem.take(rows), slice(0, len(rows)), empty)
    middle = local.queries[rows].mean(dim=0)
    terms = local.basis.terms(local.keys - middle)
    averages = weights @ local.basis.columns(terms, values)
    solution = local.solve(averages, rows, middle)
    shift = local.shift(rows, middle)[:, 1:]  # (b, P - 1, P)
    # Terms about each query, less their mean, seen through the pull and the coefficients.
    mean = solution.mean
    along = (solution.pull[:, None] @ shift)[:, 0] @ terms.T
    effect = 1 - along + (solution.pull * mean).sum(dim=1, keepdim=True)
    smoother = weights * effect
    slope = (solution.coefficients.transpose(1, 2) @ shift) @ terms.T  # (b, p, m)
    residuals = values[None] - (solution.value[:, None] + slope.transpose(1, 2))
    form = shift.transpose(1, 2) @ solution.inverse @ shift  # (b, P, P)
    spread = (
        (form.flatten(1) @ (terms[:, :, None] * terms[:, None, :]).flatten(1).T)
        - 2 * (along)
        + (solution.pull * mean).sum(dim=1, keepdim=True)
    )
    rest = 1 - weights * (1 + spread)
    lonely = rest < _LONELY
    change = smoother / torch.where(lonely, 1.0, rest)
    left_out = solution.value[:, None] - change[:, :, None] * residuals
    for query, key in lonely.nonzero().tolist():
        left_out[query, key] = _without(problem, local, values, rows[query], key)
    return solution.value, weights, smoother, residuals, left_out


def _without(problem, local, values, query, key):
    """The fit at a query without a key that outweighs the others together."""
    import torch

    rows = query[None]
    own = torch.tensor([key], device=values.device)
    middle = local.queries[query]
    columns = local.basis.columns(local.basis.terms(local.keys - middle), values)
    problem = replace(problem.take(rows), own_key=own, values=columns)
    averages, _ = finish(unfinished(problem, "dense", "nearest"), "nearest")
    return local.solve(averages.double(), rows, middle).value[0]


def _everywhere(field, kept, n_keys, fill):
    import torch

    shape = (field.shape[0], n_keys, *field.shape[2:])
    whole = torch.zeros(shape, dtype=field.dtype, device=field.device) + fill
    whole[:, kept] = field
    return whole


def _middle(values, weights):
    """Weighted mean of the values: taken off, so that a common offset cancels nothing."""
    return (weights @ values) / weights.sum()


class _Coordinates:
    """The columns a polynomial is in, in units of the kernel's own spread."""

    def __init__(self, problem, degree):
        kernel = problem.kernel
        columns = kernel.numeric_columns(problem.keys.shape[1])
        self.columns = columns
        self.queries = problem.queries[:, self.columns]
        self.keys = problem.keys[:, self.columns]
        spread = kernel.spread
        if problem.query_scale is not None:
            spread = spread * problem.query_scale[:, None]
        unit = local_unit(spread, self.keys, problem.weights)
        self.unit = unit.expand(len(self.queries), len(columns))
        self.basis = Basis(degree, len(columns))

    def shift(self, rows, middle):
        return self.basis.shift(self.queries[rows] - middle, self.unit[rows])

    def solve(self, averages, rows, middle):
        gram, cross = self.basis.moments(averages)
        shift = self.shift(rows, middle)
        return solve(shift @ gram @ shift.transpose(1, 2), shift @ cross)
