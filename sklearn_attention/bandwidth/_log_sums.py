"""Sums of products of kernels over rows, as logarithms, and their derivatives."""

import functools
import math

import numpy as np

from .._blocks import blocks
from ..attention import Line, serves
from ..kernels import Gaussian, RadialKernel, level_table
from ._convolution import horner

# Pairs at a time: the temporaries stay in the processor's cache.
BLOCK_PAIRS = 2**15
# Beyond its support, by this share, a kernel is 0 whatever rounding does.
_EDGE = 1 + 1e-9
# Exponentials of less are slow, and as good as 0 beside the largest term, which is 1.
_LOWEST_LOG = -700.0
# Instead of 0 where something is divided by a kernel's value.
_TINY = 1e-290


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
        with np.errstate(divide="ignore"):
            self.log_weights = np.log(weights)
        if factors is not None:
            self.log_weights -= len(columns.numeric) * np.log(factors)
        self.line = None
        if factors is None and columns.kinds == ("numeric",):
            kernel, no_values = parts[0][0], np.empty((len(keys), 0))
            if isinstance(kernel, RadialKernel) and serves(kernel):
                self.line = Line(self.keys[:, 0], weights, no_values, kernel)
        self._bounded = [
            (j, kernel.support)
            for kernel, members in parts
            for j in members
            if math.isfinite(kernel.support) and isinstance(kernel, RadialKernel)
        ]

    def __call__(self, bandwidth, queries=None, *, leave_out=False, outer=None):
        """Logarithms of the sums, and the gradient of something made of them.

        Parameters
        ----------
        bandwidth : ndarray of shape (n_features,)
            Of each numeric column the bandwidth, of each categorical one the lambda.
        queries : ndarray of shape (n_queries, n_features), default=None
            None stands for the rows themselves.
        leave_out : bool, default=False
            Whether to leave each row out of its own sum.
        outer : callable, default=None
            ``outer(rows, log_sums) -> slopes``: the derivatives of that with respect to the
            logarithms of some rows. None for no gradient.

        Returns
        -------
        log_sums : ndarray of shape (n_queries,)
            -inf where a sum is 0.
        gradient : ndarray of shape (n_features,) or None
            With respect to `bandwidth`.
        """
        queries = self.keys if queries is None else queries - self._center
        if self.line is not None and outer is None:
            return self._along_line(queries, float(bandwidth[0]), leave_out), None
        order, query_order, low, high = self._within_reach(queries, bandwidth)
        tables = {j: self._table(j, bandwidth[j]) for j in self.columns.categorical}
        log_sums, gradient = np.empty(len(queries)), np.zeros(len(bandwidth))
        size = max(1, int(BLOCK_PAIRS * len(queries) / max(1, (high - low).sum())))
        for block in blocks(len(queries), size):
            rows, start = query_order[block], low[block.start]
            keys = order[start : max(start + 1, high[block.stop - 1])]
            product = _Product(len(rows), len(keys))
            for kernel, members in self.parts:
                product.compare(
                    kernel, members, queries[rows], self.keys[keys], bandwidth,
                    None if self.factors is None else self.factors[keys], outer is not None,
                )  # fmt: skip
            for j, table in tables.items():
                product.look_up(j, *table, queries[rows, j], self.keys[keys, j])
            places = np.arange(block.start, block.stop)
            left_out = (places - block.start, places - start) if leave_out else None
            log_sums[rows] = product.log_sum(self.log_weights[keys], left_out)
            if outer is not None:
                gradient += product.gradient(outer(rows, log_sums[rows]), bandwidth)
        return log_sums, None if outer is None else gradient

    def _along_line(self, queries, scale, leave_out):
        line = self.line
        if queries is self.keys:
            order, places = line.order, line.x
        else:
            order = np.argsort(queries[:, 0], kind="stable")
            places = queries[order, 0]
        shift, sums = line.sums(places, scale, np.arange(len(order)) if leave_out else None)
        log_sums = np.empty(len(order))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_sums[order] = np.where(np.isfinite(shift), shift + np.log(sums[0, 0]), -np.inf)
        return log_sums

    def _within_reach(self, queries, bandwidth):
        """Orders of keys and queries in which few keys are within reach of each query.

        And where these are: the first, and the one behind the last.
        """
        n_keys, n_queries = len(self.keys), len(queries)
        everything = np.zeros(n_queries, dtype=np.intp), np.full(n_queries, n_keys)
        best = np.arange(n_keys), np.arange(n_queries), *everything
        widest = _EDGE * (1.0 if self.factors is None else self.factors.max())
        for j, support in self._bounded:
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
        """A category's log-values and their slopes, with a last row for unknown levels."""
        values, slope = self.table(self.columns.kinds[j], self.columns.n_levels[j], lam)
        with np.errstate(divide="ignore"):
            log_values = np.log(values)
        slope = np.divide(slope, values, out=np.zeros_like(values), where=values > 0)
        unknown = np.zeros((1, len(values)))
        return np.vstack([log_values, unknown - np.inf]), np.vstack([slope, unknown])


def each_column(kernel, columns):
    """The product of one kernel for each numeric column, as parts of :class:`LogSums`."""
    return [(kernel, [j]) for j in columns.numeric]


class _Product:
    """A product of kernels for every pair of some rows and keys.

    Kernels of bounded support, which are often 0, are kept as values, others as logarithms.
    """

    def __init__(self, n_rows, n_keys):
        self.shape = n_rows, n_keys
        self.values = self.logs = None
        self.pulls = []

    def compare(self, kernel, members, queries, keys, bandwidth, factors, with_slope):
        """Multiply by a kernel of some columns of numbers."""
        closed = type(kernel) is Gaussian or kernel.polynomial is not None
        closed |= hasattr(kernel, "value_and_slope")
        if not isinstance(kernel, RadialKernel) or (with_slope and not closed):
            divisor = bandwidth[members]
            values, slopes = _by_torch(
                kernel, queries[:, members], keys[:, members], divisor, with_slope
            )
            self._multiply_log(values)
            self.pulls.append(lambda terms: (members, slopes(terms)))
            return
        squares = []
        with np.errstate(over="ignore"):
            for j in members:
                square = queries[:, j, None] / bandwidth[j] - keys[:, j] / bandwidth[j]
                if factors is not None:
                    square /= factors
                square *= square
                squares.append(square)
        squared = functools.reduce(np.add, squares)
        slope = None  # -1/2, that of the Gaussian
        if math.isfinite(kernel.support):
            values, slope = _value_and_slope(kernel, squared, with_slope)
            if self.values is None:
                self.values = values
            else:
                self.values *= values
        else:
            self._multiply_log(kernel.log_profile(squared))
        if with_slope:

            def pull(terms):
                terms, factor = (terms, 1.0) if slope is None else (terms * slope, -2.0)
                sums = np.array([np.vdot(terms, square) for square in squares])
                return members, factor * sums / bandwidth[members]

            self.pulls.append(pull)

    def look_up(self, j, log_values, slopes, queries, keys):
        """Multiply by a kernel of a category."""
        pairs = np.ix_(queries.astype(np.intp), keys.astype(np.intp))
        self._multiply_log(log_values[pairs])
        self.pulls.append(lambda terms: (j, np.vdot(terms, slopes[pairs])))

    def _multiply_log(self, log_values):
        if self.logs is None:
            self.logs = log_values
        else:
            self.logs = self.logs + log_values

    def log_sum(self, log_weights, left_out):
        """Logarithm of each row's weighted sum, without some pairs."""
        values = self.values
        if self.logs is None:
            shift = np.zeros((self.shape[0], 1))
            terms = np.exp(log_weights) * (np.ones(self.shape) if values is None else values)
            if left_out is not None:
                terms[left_out] = 0
        else:
            logs = self.logs + log_weights
            if values is not None:
                logs[values == 0] = -np.inf
            if left_out is not None:
                logs[left_out] = -np.inf
            shift = logs.max(axis=1, keepdims=True)
            nothing = ~np.isfinite(shift[:, 0])
            shift[nothing] = 0
            logs -= shift
            terms = np.exp(np.maximum(logs, _LOWEST_LOG, out=logs), out=logs)
            terms[nothing] = 0
            if values is not None:
                terms *= values
        self.terms, self.total = terms, terms.sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.log(self.total) + shift[:, 0]

    def gradient(self, slopes, bandwidth):
        """Derivatives with respect to the bandwidths, from those of the logarithms."""
        positive = self.total > 0
        share = np.divide(slopes, self.total, out=np.zeros(len(slopes)), where=positive)
        self.terms *= share[:, None]
        gradient = np.zeros(len(bandwidth))
        for pull in self.pulls:
            members, part = pull(self.terms)
            gradient[members] = part
        return gradient


def _value_and_slope(kernel, squared, with_slope):
    """A kernel of bounded support, and its logarithm's derivative, at squared distances."""
    if not with_slope:
        return kernel.profile(squared), None
    if hasattr(kernel, "value_and_slope"):
        value, slope = kernel.value_and_slope(squared)
    else:
        value, slope = kernel.profile(squared), _polynomial_slope(kernel.polynomial, squared)
    # Where the value is 0 the slope is multiplied by 0.
    return value, slope / np.maximum(value, _TINY)


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


def _by_torch(kernel, queries, keys, bandwidth, with_slope):
    """Logarithm of any kernel, and what takes its derivatives to those of the bandwidths."""
    if not with_slope:
        rows = (kernel.rescale(X, bandwidth) for X in (queries, keys))
        return kernel.log(*rows), None
    # Kernels are written once, for NumPy and torch: torch has their derivatives.
    import torch

    divisor = torch.tensor(bandwidth, requires_grad=True)
    rows = [kernel.rescale(torch.from_numpy(X), divisor) for X in (queries, keys)]
    log_values = kernel.log(*rows)

    def pull(terms):
        if not log_values.requires_grad:  # a step function is flat
            return np.zeros(len(bandwidth))
        log_values.backward(torch.from_numpy(terms))
        return divisor.grad.numpy()

    return log_values.detach().numpy(), pull
