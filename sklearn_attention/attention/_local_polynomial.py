"""Local polynomials: the weighted average, corrected for where the keys lie."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .._memory import check_memory
from .._partitions import is_partitioned, partitions, reduced
from .._spread import deviation_of, join_spreads, spread
from .._validation import check_bandwidth, check_choice
from ..kernels import Kernel, as_kernel
from ._chunks import Chunks, are_many, in_blocks
from ._kernel_sums import ALGORITHMS
from ._linear_time import has_linear_time
from ._local_sums import FURTHEST, join_local_sums, local_moments
from ._moments import LocalMoments, refuse_signed
from ._over_partitions import over_partitions
from ._partial import EMPTY_POLICIES, refuse_empty
from ._polynomial import local_fit, solve
from ._problem import prepare

_BLOCK_PAIRS = 2**20
# A key that carries all but this share of a fit cannot be taken out by division.
_LONELY = 1e-7


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
    options = {
        "degree": degree, "bandwidth": bandwidth, "sample_weight": sample_weight,
        "algorithm": algorithm, "device": device,
    }  # fmt: skip
    if is_partitioned(queries, keys, values, sample_weight):
        del options["sample_weight"]
        method = _LocalPolynomials(as_kernel(kernel), options, empty)
        tables = queries, keys, values, sample_weight, query_scale
        return LocalFit(*over_partitions(method, *tables, leave_one_out))
    if np.shape(queries) == (0, *np.shape(keys)[1:]):
        found = attend_local(keys[:1], keys, values, kernel, empty="nan", **options)
        return LocalFit(*(field[:0] for field in found))
    if are_many(queries) and leave_one_out is False and query_scale is None:
        found = in_blocks(attend_local, queries, keys, values, kernel, empty=empty, **options)
        return LocalFit(*found)
    options |= {"query_scale": query_scale, "leave_one_out": leave_one_out}
    chunks = Chunks(queries, keys, values, kernel, **options)
    # A block would complain about its own rows alone.
    policy = "nan" if empty == "raise" else empty
    n_features = np.shape(keys)[1]
    if chunks.several:
        spreads = _spreads(keys, values, sample_weight)
        sums = chunks.local_sums(spreads[1].mean, policy)
        fit = _fit_of_sums(sums, chunks, as_kernel(kernel), bandwidth, degree, spreads)
    else:
        (problem,) = chunks
        problem = replace(problem, queries=problem.queries.clip(-FURTHEST, FURTHEST))
        problem, center = problem.centred()
        moments = LocalMoments(
            problem, degree, empty=policy, algorithm=algorithm, device=device
        )
        ((values_, linear, log_normalizers, ridge),) = moments.reduce(local_fit)
        fields = values_, linear, log_normalizers + problem.log_weight_scale, ridge
        fit = _in_units(fields, center, as_kernel(kernel), bandwidth, n_features)
    if empty == "raise":
        refuse_empty(fit.ridge == fit.ridge)
    n_dims = values.ndim if hasattr(values, "ndim") else np.ndim(values)
    if n_dims == 1:
        fit = fit._replace(values=fit.values[:, 0], slopes=fit.slopes[:, 0])
    answer = chunks.answer
    return LocalFit(
        answer(fit.values), answer(fit.slopes), answer(fit.log_normalizers, "single"),
        answer(fit.ridge),
    )  # fmt: skip


@dataclass(frozen=True)
class _LocalPolynomials:
    """Local polynomials over keys in partitions."""

    kernel: Kernel
    options: dict
    empty: str

    merge = staticmethod(join_local_sums)

    def context(self, keys, values, weights):
        rows = partitions(keys, values, weights)
        return reduced(_spreads, _joined_spreads, rows)

    def part(self, chunks, spreads):
        return chunks.local_sums(spreads[1].mean, self._policy)

    def finish(self, sums, queries, spreads):
        options = self.options | {"sample_weight": None, "seen": None}
        # Any key will do, to tell columns and powers.
        key, value = spreads[0].mean[None], spreads[1].mean[None]
        chunks = Chunks(queries[:0], key, value, self.kernel, **options)
        settings = self.options["bandwidth"], self.options["degree"]
        fit = _fit_of_sums(sums, chunks, self.kernel, *settings, spreads)
        if self.empty == "raise":
            refuse_empty(fit.ridge == fit.ridge)
        return fit

    def fields(self, keys, values, dtype):
        if not has_linear_time(self.kernel, keys.shape[1], self.options["degree"]):
            raise ValueError(
                f"keys are a Dask collection, over which local polynomials of degree "
                f"{self.options['degree']} with kernel={self.kernel!r} on {keys.shape[1]} "
                "features do not go: pass arrays, or degree=0."
            )
        shape = values.shape[1:]
        slopes = (*shape, keys.shape[1])
        return [
            (shape, dtype),
            (slopes, dtype),
            ((), np.promote_types(dtype, "f4")),
            ((), dtype),
        ]

    @property
    def _policy(self):
        return "nan" if self.empty == "raise" else self.empty


def _spreads(keys, values, weights):
    """Of the keys, and of the values; None if nothing has weight."""
    with np.errstate(invalid="ignore"):  # what is not finite is refused elsewhere
        found = [spread(x if x.ndim == 2 else x[:, None], weights) for x in (keys, values)]
    return None if found[0] is None else found


def _joined_spreads(a, b):
    return list(map(join_spreads, a, b))


def _fit_of_sums(sums, chunks, kernel, bandwidth, degree, spreads):
    """Local polynomials from sums over all keys, with the values' mean put back."""
    deviation = kernel.rescale(deviation_of(spreads[0])[None], bandwidth)[0]
    moments = local_moments(sums, next(iter(chunks)), degree, deviation)
    fields = local_fit(moments, slice(None))
    return _in_units(fields, spreads[1].mean, kernel, bandwidth, len(deviation))


def _in_units(fields, center, kernel, bandwidth, n_features):
    """Local polynomials from those about the values' center, in bandwidths."""
    values, linear, log_normalizers, ridge = fields
    xp = array_namespace(values)
    values = values + xp.asarray(center, device=values.device)
    shape = (*values.shape, n_features)
    slopes = xp.zeros(shape, dtype=xp.float64, device=values.device)
    columns = kernel.numeric_columns(n_features)
    unit = np.broadcast_to(check_bandwidth(bandwidth, n_features), n_features)[columns]
    slopes[:, :, columns] = linear / xp.asarray(unit, device=values.device)
    return LocalFit(values, slopes, log_normalizers, ridge)


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
    from ._algorithms._block_moments import RADIUS, Coordinates
    from ._algorithms._compact_blocks import compact_blocks, in_order
    from ._threads import threads_for
    from ._weights import IN_PARTS

    # Weights and effects, and for each value the residuals and the fits left out.
    shape = len(problem.queries), len(keys), 2 + 2 * problem.values.shape[1]
    check_memory("what every key does to the fit at every query", shape, IN_PARTS)
    if degree:
        refuse_signed(problem.kernel)
    problem, center = problem.tensors(device).centred()
    local = Coordinates(problem, degree)
    size = max(1, _BLOCK_PAIRS // len(problem.keys))
    row_blocks = [
        part for box in compact_blocks(local.queries, RADIUS) for part in box.split(size)
    ]
    with threads_for(len(problem.queries) * len(problem.keys)):
        found = [_rows(problem, local, rows, empty) for rows in row_blocks]
        fitted, weights, smoother, residuals, left_out = in_order(found, row_blocks)
    fitted, left_out = fitted + center, left_out + center
    if kept is not None:
        # Keys without weight do nothing: the fit without them is the fit.
        weights, smoother, residuals = (
            _everywhere(field, kept, len(keys), 0.0) for field in (weights, smoother, residuals)
        )
        left_out = _everywhere(left_out, kept, len(keys), fitted[:, None])
    fields = fitted, weights, smoother, residuals, left_out
    return LocalRows(*(field.cpu().numpy() for field in fields))


def _rows(problem, local, rows, empty):
    """The fields of `LocalRows` for some of the queries."""
    import torch

    from ._weights import normalized

    values, scale = problem.values, problem.query_scale
    weights = normalized(problem.take(rows), empty)
    middle = local.queries[rows].mean(dim=0)
    terms = local.basis.terms(local.keys - middle)
    columns = local.columns(terms)
    scale = None if scale is None else scale[rows]
    offset = local.queries[rows] - middle
    gram, cross, _, about = local.moments(weights @ columns, offset, scale)
    solution = solve(gram, cross)
    # From terms about the middle to those about each query, less their mean there.
    about = about[:, 1:].clone()  # (b, P - 1, P)
    about[:, :, 0] -= solution.mean
    smoother = weights * (1 - (solution.pull[:, None] @ about)[:, 0] @ terms.T)
    slope = (solution.coefficients.transpose(1, 2) @ about) @ terms.T  # (b, p, m)
    residuals = values - cross[:, :1] - slope.transpose(1, 2)
    root = torch.linalg.cholesky_ex(solution.covariance).L
    form = about.transpose(1, 2) @ torch.cholesky_solve(about, root)  # (b, P, P)
    rest = 1 - weights * (1 + local.basis.quadratic(form, columns))
    lonely = rest < _LONELY
    change = smoother / torch.where(lonely, 1.0, rest)
    left_out = solution.value[:, None] - change[:, :, None] * residuals
    for query, key in lonely.nonzero().tolist():
        left_out[query, key] = _without(problem, local, rows[query], key)
    return solution.value, weights, smoother, residuals, left_out


def _without(problem, local, query, key):
    """The fit at a query without a key that outweighs the others together."""
    import torch

    own = torch.tensor([key], device=problem.keys.device)
    problem = replace(problem.take(query[None]), own_key=own)
    moments = LocalMoments(problem, local.basis.degree, algorithm="dense")
    ((value, *_),) = moments.reduce(local_fit)
    return value[0]


def _everywhere(field, kept, n_keys, fill):
    import torch

    shape = (field.shape[0], n_keys, *field.shape[2:])
    whole = torch.zeros(shape, dtype=field.dtype, device=field.device) + fill
    whole[:, kept] = field
    return whole
