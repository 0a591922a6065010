"""The log-kernel of pairs of rows, and how it changes with every bandwidth."""

import math

import numpy as np

from .._blocks import blocks
from .._columns import Columns
from ..kernels import Gaussian, ProductKernel, RadialKernel, as_kernel, level_table

# Pairs at a time: the temporaries stay in the processor's cache.
_BLOCK_PAIRS = 2**16


class RowPairs:
    """Rows of numbers and of categories' codes, compared with each other.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    kernel : Kernel
        Compares the numeric columns, all at once.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    table : callable, default=level_table
        ``table(kind, n_levels, lam) -> (values, slopes)`` for the categorical columns.
    """

    def __init__(self, X, kernel, columns=None, table=level_table):
        columns = columns or Columns.numbers(X.shape[1])
        self.numeric = columns.numeric
        self.numbers = np.ascontiguousarray(X[:, self.numeric], dtype=np.float64)
        self.codes = {j: X[:, j].astype(np.intp) for j in columns.categorical}
        self.kernel, self.table = kernel, table
        self.kinds, self.n_levels = columns.kinds, columns.n_levels

    def __len__(self):
        return len(self.numbers)

    def blocks(self):
        """Slices of rows few enough to be compared with all rows at a time."""
        return blocks(len(self), max(1, _BLOCK_PAIRS // len(self)))

    def log(self, rows, bandwidth):
        """Log-kernel of some rows with all rows.

        Parameters
        ----------
        rows : slice
        bandwidth : ndarray of shape (n_features,)
            Of each numeric column the bandwidth, of each categorical one the lambda.

        Returns
        -------
        log_values : ndarray of shape (n_rows, n_samples)
        pull : callable
            Turns the derivatives of something with respect to ``log_values`` into those
            with respect to the bandwidths. Once only.
        """
        log_values, pull_numbers = self._log_numbers(rows, bandwidth[self.numeric])
        slopes = {}
        for j, codes in self.codes.items():
            values, slope = self.table(self.kinds[j], self.n_levels[j], bandwidth[j])
            pairs = np.ix_(codes[rows], codes)
            with np.errstate(divide="ignore"):
                log_values = log_values + np.log(values)[pairs]
            positive = np.where(values > 0, values, 1.0)
            slopes[j] = (slope / positive)[pairs]

        def pull(outer):
            gradient = np.empty(len(bandwidth))
            gradient[self.numeric] = pull_numbers(outer)
            for j, slope in slopes.items():
                gradient[j] = np.vdot(outer, slope)
            return gradient

        return log_values, pull

    def _log_numbers(self, rows, bandwidth):
        if not self.numeric:
            return np.zeros((len(self.numbers[rows]), len(self))), lambda outer: []
        if isinstance(self.kernel, RadialKernel):
            return self._log_radial(rows, bandwidth)
        each = self.kernel.kernels if isinstance(self.kernel, ProductKernel) else None
        if each is not None and not isinstance(each, (list, tuple)):
            each = as_kernel(each)
            if isinstance(each, RadialKernel):
                return self._log_product(each, rows, bandwidth)
        return self._log_any(rows, bandwidth)

    def _squares(self, rows, bandwidth):
        """Squared distances in bandwidths, column by column."""
        columns = (self.numbers / bandwidth).T
        with np.errstate(over="ignore"):
            return [(column[rows, None] - column) ** 2 for column in columns]

    def _log_radial(self, rows, bandwidth):
        squares = self._squares(rows, bandwidth)
        log_values, slope = _log_and_slope(self.kernel, sum(squares))

        def pull(outer):
            outer = outer * slope
            return -2 * np.array([np.vdot(outer, square) for square in squares]) / bandwidth

        return log_values, pull

    def _log_product(self, kernel, rows, bandwidth):
        squares = self._squares(rows, bandwidth)
        pairs = [_log_and_slope(kernel, square) for square in squares]

        def pull(outer):
            factors = zip(pairs, squares, strict=True)
            slopes = [np.vdot(outer, slope * square) for (_, slope), square in factors]
            return -2 * np.array(slopes) / bandwidth

        return sum(log_values for log_values, _ in pairs), pull

    def _log_any(self, rows, bandwidth):
        import torch

        numbers = torch.from_numpy(self.numbers)
        divisor = torch.tensor(bandwidth, requires_grad=True)
        scaled = self.kernel.rescale(numbers, divisor)
        log_values = self.kernel.log(scaled[rows], scaled)

        def pull(outer):
            if not log_values.requires_grad:  # a step function is flat
                return np.zeros(len(bandwidth))
            log_values.backward(torch.from_numpy(outer))
            return divisor.grad.numpy()

        return log_values.detach().numpy(), pull


def _log_and_slope(kernel, squared):
    """Log-kernel at squared distances, and its derivative with respect to them."""
    if type(kernel) is Gaussian:
        return kernel.log_profile(squared), -0.5
    # Kernels are written once, for NumPy and torch: torch has their derivatives.
    import torch

    variable = torch.from_numpy(squared).requires_grad_()
    bounded = math.isfinite(kernel.support)
    values = kernel.profile(variable) if bounded else kernel.log_profile(variable)
    if values.requires_grad:
        values.sum().backward()
        slope = variable.grad.numpy()
    else:  # a step function is flat
        slope = 0.0
    values = values.detach().numpy()
    if not bounded:
        return values, slope
    with np.errstate(divide="ignore"):
        return np.log(values), slope / np.where(values > 0, values, 1.0)


def softmax(log_values):
    """Logarithm of each row's sum, and every entry's share of it; 0 where there is none.

    Parameters
    ----------
    log_values : ndarray of shape (n_rows, n_columns)
        May be -inf.

    Returns
    -------
    log_sum : ndarray of shape (n_rows,)
    share : ndarray of shape (n_rows, n_columns)
    """
    top = log_values.max(axis=1, keepdims=True)
    top[~np.isfinite(top)] = 0
    share = np.exp(log_values - top)
    total = share.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_sum = (np.log(total) + top)[:, 0]
    share /= np.where(total > 0, total, 1.0)
    return log_sum, share
