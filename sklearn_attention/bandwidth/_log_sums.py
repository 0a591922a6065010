"""Sums of products of kernels over rows, as logarithms, and their derivatives."""

import functools
import math
import warnings

import numpy as np

from ..attention import Line, serves
from ..kernels import Gaussian, RadialKernel, level_table
from ._convolution import horner

# Pairs at a time: the temporaries stay in the processor's cache.
BLOCK_PAIRS = 2**15
# Beyond its support, by this share, a kernel is 0 whatever rounding does.
_EDGE = 1 + 1e-9
# Exponentials of less are slow, and as good as 0 beside the largest term, which is 1.
_LOWEST_LOG = -700.0


class LogSums:
    r"""Logarithms of weighted sums of products of kernels over rows.

    .. math:: \log S(q) = \log \sum_i w_i
              \prod_k \frac{1}{s_i} K_k\Big(\frac{q_k - x_{ik}}{h_k s_i}\Big)

    Along one column of numbers they take linear time, where the kernel has an algorithm for
    that. Otherwise rows are compared pair by pair, with kernels of bounded support only where
    these reach.

    Parameters
    ----------
    keys : ndarray of shape (n_samples, n_features)
        The rows :math:`x`: numbers, and codes of categories.
    parts : list of (Kernel, list of int)
        Kernels, and the numeric columns that each compares.
    columns : sklearn_attention.Columns
        What each column is.
    weights : ndarray of shape (n_samples,), default=None
        The weights :math:`w`; all 1 by default.
    factors : ndarray of shape (n_samples,), default=None
        Local factors :math:`s` of the bandwidths of numbers. All kernels are radial then.
    table : callable, default=level_table
        ``table(kind, n_levels, lam) -> (values, slopes)`` for the categorical columns.
    """

    def __init__(self, keys, parts, columns, weights=None, factors=None, table=level_table):
        # From the middle, so that no digits are lost to where the rows are.
        self._center = np.where(columns.is_numeric, np.median(keys, axis=0), 0.0)
        self.keys = keys - self._center
        self.parts, self.columns, self.table = parts, columns, table
        self.factors = factors
        weights = np.ones(len(keys)) if weights is None else weights
        self.log_weights = _log(weights)
        if factors is not None:
            self.log_weights -= len(columns.numeric) * np.log(factors)
        self.line = self._line_with_slopes = None
        if factors is None and columns.kinds == ("numeric",):
            kernel, no_values = parts[0][0], np.empty((len(keys), 0))
            if isinstance(kernel, RadialKernel) and serves(kernel):
                self.line = Line(self.keys[:, 0], weights, no_values, kernel)
            if type(kernel) is Gaussian:  # whose derivative is its second moment
                self._line_with_slopes = Line(self.keys[:, 0], weights, no_values, kernel, 1)
        # Kernels of bounded support, which are often 0, are multiplied; where there are others
        # too, all are added as logarithms.
        bounded = [(kernel, members) for kernel, members in parts if _is_bounded(kernel)]
        self._in_logs = len(bounded) < len(parts)
        self._symmetric = not (self._in_logs or columns.categorical or factors is not None)
        self._supports = [(j, kernel.support) for kernel, members in bounded for j in members]

    def __call__(self, bandwidth, queries=None, *, leave_out=False, eval_gradient=False):
        """Logarithms of the sums, and their derivatives.

        Parameters
        ----------
        bandwidth : ndarray of shape (n_features,)
            Of each numeric column the bandwidth, of each categorical one the lambda.
        queries : ndarray of shape (n_queries, n_features), default=None
            None stands for the rows themselves.
        leave_out : bool, default=False
            Whether to leave each row out of its own sum.
        eval_gradient : bool, default=False
            Whether to return derivatives.

        Returns
        -------
        log_sums : ndarray of shape (n_queries,)
            -inf where a sum is 0.
        slopes : ndarray of shape (n_queries, n_features) or None
            Derivatives of the logarithms with respect to `bandwidth`, 0 where a sum is 0.
        """
        queries = self.keys if queries is None else queries - self._center
        line = self._line_with_slopes if eval_gradient else self.line
        if line is not None:
            return self._along(line, queries, float(bandwidth[0]), leave_out)
        if queries is self.keys and self._symmetric:
            return self._by_halves(bandwidth, leave_out, eval_gradient)
        order, query_order, low, high = self._within_reach(queries, bandwidth)
        tables = {j: self._table(j, bandwidth[j]) for j in self.columns.categorical}
        log_sums, slopes = np.empty(len(queries)), np.zeros((len(queries), len(bandwidth)))
        size = max(1, int(BLOCK_PAIRS * len(queries) / max(1, (high - low).sum())))
        for first in range(0, len(queries), size):
            rows, start = query_order[first : first + size], low[first]
            keys = order[start : max(start + 1, high[first + len(rows) - 1])]
            product, derivatives = self._product(
                queries[rows], keys, bandwidth, tables, eval_gradient
            )
            if leave_out:
                places = np.arange(len(rows))
                product[places, places + first - start] = -np.inf if self._in_logs else 0.0
            terms, total, log_sums[rows] = self._add_up(product, self.log_weights[keys])
            for j, derivative in derivatives.items():
                sums = np.vecdot(terms, derivative)
                slopes[rows, j] = sums / np.where(total > 0, total, np.inf)
        return log_sums, slopes if eval_gradient else None

    def _by_halves(self, bandwidth, leave_out, eval_gradient):
        """Looks at each pair of rows once, where it weighs the same both ways."""
        order, _, low, high = self._within_reach(self.keys, bandwidth)
        weights, n = np.exp(self.log_weights), len(order)
        sums = np.zeros((1 + len(bandwidth), n))
        size = max(1, int(2 * BLOCK_PAIRS * n / (high - low).sum()))
        for first in range(0, n, size):
            rows = order[first : first + size]
            keys = order[first : high[first + len(rows) - 1]]
            product, derivatives = self._product(
                self.keys[rows], keys, bandwidth, {}, eval_gradient
            )
            if leave_out:
                np.fill_diagonal(product, 0)
            slopes = [product * derivatives[j] for j in sorted(derivatives)]
            for total, pairs in zip(sums, [product, *slopes], strict=False):
                total[rows] += pairs @ weights[keys]
                total[keys[len(rows) :]] += weights[rows] @ pairs[:, len(rows) :]
        slopes = (sums[1:] / np.where(sums[0] > 0, sums[0], np.inf)).T
        return _log(sums[0]), slopes if eval_gradient else None

    def _along(self, line, queries, scale, leave_out):
        own = queries is self.keys
        order = line.order if own else np.argsort(queries[:, 0], kind="stable")
        places = line.points if own else queries[order]
        shift, sums, *_ = line.sums(places, scale, np.arange(len(order)) if leave_out else None)
        found = np.isfinite(shift)
        log_sums, slopes = np.full(len(order), -np.inf), np.zeros((len(order), 1))
        log_sums[order[found]] = shift[found] + _log(sums[0, 0, found])
        if line.degree == 0:
            return log_sums, None
        slopes[order[found], 0] = sums[2, 0, found] / sums[0, 0, found] / scale
        return log_sums, slopes

    def _within_reach(self, queries, bandwidth):
        """Orders of keys and queries in which few keys are within reach of each query.

        And where these are: the first, and the one behind the last.
        """
        n_keys, n_queries = len(self.keys), len(queries)
        everything = np.zeros(n_queries, dtype=np.intp), np.full(n_queries, n_keys)
        best = np.arange(n_keys), np.arange(n_queries), *everything
        widest = _EDGE * (1.0 if self.factors is None else self.factors.max())
        for j, support in self._supports:
            order = np.argsort(self.keys[:, j], kind="stable")
            own = queries is self.keys
            query_order = order if own else np.argsort(queries[:, j], kind="stable")
            x, places = self.keys[order, j], queries[query_order, j]
            reach = support * bandwidth[j] * widest
            low, high = np.searchsorted(x, places - reach), np.searchsorted(x, places + reach)
            if (high - low).sum() < (best[3] - best[2]).sum():
                best = order, query_order, low, high
        return best

    def _table(self, j, lam):
        """A category's values, or logarithms, and the slopes of the latter.

        With a last row for unknown levels.
        """
        values, slope = self.table(self.columns.kinds[j], self.columns.n_levels[j], lam)
        slope = np.divide(slope, values, out=np.zeros_like(values), where=values > 0)
        values, slope = (np.pad(table, ((0, 1), (0, 0))) for table in (values, slope))
        return _log(values) if self._in_logs else values, slope

    def _product(self, queries, keys, bandwidth, tables, eval_gradient):
        """Product of all kernels, or its logarithm, for some queries and keys.

        And for each column the derivative of the logarithm with respect to the bandwidth.
        """
        factors = None if self.factors is None else self.factors[keys]
        keys = self.keys[keys]
        found, derivatives = [], {}
        for kernel, members in self.parts:
            rows = queries[:, members], keys[:, members], bandwidth[members]
            if isinstance(kernel, RadialKernel):
                values, slopes = _radial(kernel, *rows, factors, eval_gradient)
                values = _log(values) if self._in_logs and _is_bounded(kernel) else values
            else:
                values, slopes = _any(kernel, *rows, eval_gradient)
            found.append(values)
            derivatives.update(zip(members, slopes, strict=False))
        for j, (values, slopes) in tables.items():
            pairs = np.ix_(queries[:, j].astype(np.intp), keys[:, j].astype(np.intp))
            found.append(values[pairs])
            if eval_gradient:
                derivatives[j] = slopes[pairs]
        join = np.add if self._in_logs else np.multiply
        return functools.reduce(
            lambda left, right: join(left, right, out=left), found
        ), derivatives

    def _add_up(self, product, log_weights):
        """Terms of the sums, up to a factor for each row; their totals; the logarithms."""
        if not self._in_logs:
            terms = np.multiply(product, np.exp(log_weights), out=product)
            total = terms.sum(axis=1)
            return terms, total, _log(total)
        product += log_weights
        shift = product.max(axis=1)
        nothing = ~np.isfinite(shift)
        shift[nothing] = 0
        product -= shift[:, None]
        terms = np.exp(np.maximum(product, _LOWEST_LOG, out=product), out=product)
        terms[nothing] = 0
        total = terms.sum(axis=1)
        return terms, total, _log(total) + shift


def each_column(kernel, columns):
    """The product of one kernel for each numeric column, as parts of :class:`LogSums`."""
    return [(kernel, [j]) for j in columns.numeric]


def _is_bounded(kernel):
    return isinstance(kernel, RadialKernel) and math.isfinite(kernel.support)


def _log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def _radial(kernel, queries, keys, bandwidth, factors, eval_gradient):
    """A kernel, or its logarithm if that is finite, and the logarithm's derivatives."""
    squares = []
    with np.errstate(over="ignore"):
        for query, key in zip((queries / bandwidth).T, (keys / bandwidth).T, strict=True):
            square = query[:, None] - key
            if factors is not None:
                square /= factors
            square *= square
            squares.append(square)
    squared = sum(squares[1:], squares[0])
    if not eval_gradient:
        bounded = _is_bounded(kernel)
        return (kernel.profile if bounded else kernel.log_profile)(squared), []
    values, slope = _value_and_slope(kernel, squared)
    for square, h in zip(squares, bandwidth, strict=True):
        square *= slope * (-2 / h)
    return values, squares


def _value_and_slope(kernel, squared):
    """As :func:`_radial` the kernel, and its logarithm's slope in the squared distance."""
    if type(kernel) is Gaussian:
        return kernel.log_profile(squared), -0.5
    bounded = _is_bounded(kernel)
    if hasattr(kernel, "value_and_slope"):
        values, slope = kernel.value_and_slope(squared)
    elif kernel.polynomial is not None:
        values, slope = kernel.profile(squared), _polynomial_slope(kernel.polynomial, squared)
    else:
        # Kernels are written once, for NumPy and torch: torch has their derivatives.
        import torch

        variable = torch.from_numpy(squared).requires_grad_()
        values = (kernel.profile if bounded else kernel.log_profile)(variable)
        values.sum().backward()
        values, slope = values.detach().numpy(), variable.grad.numpy()
    if bounded:
        slope = np.divide(slope, values, out=np.zeros_like(values), where=values > 0)
    return values, slope


def _polynomial_slope(polynomial, squared):
    """Derivative with respect to the squared distance, within the support."""
    coefficients = [k / 2 * c for k, c in enumerate(polynomial)][2:] or [0.0]
    if any(polynomial[1::2]):
        variable = np.sqrt(np.minimum(squared, 1.0))
    else:
        variable, coefficients = np.minimum(squared, 1.0), coefficients[::2]
    slope = horner(coefficients, variable)
    if any(polynomial[1:2]):  # at distance 0 no slope is needed
        slope += polynomial[1] / 2 / np.where(variable > 0, variable, np.inf)
    return slope


def _any(kernel, queries, keys, bandwidth, eval_gradient):
    """Logarithm of any kernel, and its derivatives in the bandwidths."""
    if not eval_gradient:
        return kernel.log(*(kernel.rescale(X, bandwidth) for X in (queries, keys))), []
    import torch
    from torch.autograd import forward_ad

    rows = torch.from_numpy(queries), torch.from_numpy(keys)
    divisor, slopes = torch.tensor(bandwidth, requires_grad=True), []
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's, of itself
        for direction in torch.eye(len(bandwidth), dtype=divisor.dtype):
            dual = forward_ad.make_dual(divisor, direction)
            found = kernel.log(*(kernel.rescale(X, dual) for X in rows))
            log_values, slope = forward_ad.unpack_dual(found)
            # A step function is flat.
            slope = torch.zeros_like(log_values) if slope is None else slope
            slopes.append(slope.detach().numpy())
    return log_values.detach().numpy(), slopes
