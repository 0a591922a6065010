"""How well a density estimate describes each row by all others."""

import math
import sys

import numpy as np

from .._columns import Columns
from ..attention import Line, PairSums, serves
from ..kernels import Gaussian, ProductKernel, level_table
from ._convolution import self_convolution

# The log-density of a row that no other row reaches.
LOG_OF_NOTHING = math.log(sys.float_info.min)


class _LogSums:
    """Logarithms of weighted sums about each row of one kernel for each column.

    A kernel compares the numbers, and ``table(kind, n_levels, lam)`` has values and slopes for
    categories. Along one column of numbers, sums take linear time where there is an algorithm.
    """

    def __init__(self, X, kernel, columns, weights, *, table=level_table, leave_out=True):
        self._columns, self._table, self._leave_out = columns, table, leave_out
        self._line, self._with_slopes = self._lines(X, kernel, weights)
        self.in_linear_time = self._line is not None
        if self._with_slopes is None:
            codes = X[:, columns.categorical].astype(np.intp)
            self._pairs = PairSums(
                X[:, columns.numeric], codes, kernel, weights, leave_out=leave_out
            )

    def __call__(self, bandwidth, eval_gradient):
        """The logarithms, -inf of 0, and ``pull``, from slopes along them to a gradient."""
        line = self._with_slopes if eval_gradient else self._line
        if line is not None:
            return self._along(line, float(bandwidth[0]))
        numeric, categorical = self._columns.numeric, self._columns.categorical
        kinds, n_levels = self._columns.kinds, self._columns.n_levels
        tables = [self._table(kinds[j], n_levels[j], bandwidth[j]) for j in categorical]
        _, log_sums, _, pull_pairs = self._pairs(
            bandwidth[numeric], tables, slopes=eval_gradient
        )

        def pull(slopes):
            gradient = np.empty(len(bandwidth))
            gradient[[*numeric, *categorical]] = pull_pairs(slopes)
            gradient[numeric] /= bandwidth[numeric]
            return gradient

        return log_sums, pull

    def _lines(self, X, kernel, weights):
        """The rows along a line, without slopes and with them, or None."""
        if self._columns.kinds != ("numeric",):
            return None, None
        factors, rest = kernel.radial_factors(1)
        if rest is not None:
            return None, None
        ((kernel, _),) = factors
        x, no_values = X[:, 0] - np.median(X), np.empty((len(X), 0))
        line = Line(x, weights, no_values, kernel) if serves(kernel) else None
        # The Gaussian's derivative is its second moment.
        is_gaussian = isinstance(kernel, Gaussian)
        return line, Line(x, weights, no_values, kernel, 1) if is_gaussian else None

    def _along(self, line, scale):
        own = np.arange(len(line.order)) if self._leave_out else None
        found = line.sums(line.points, scale, own)
        log_sums, some = np.empty(len(line.order)), np.isfinite(found.shift)
        log_sums[line.order] = found.log_total
        moments, rows = found.sums[:, 0, some], line.order[some]

        def pull(slopes):
            return slopes[rows] @ (moments[2] / moments[0])[:, None] / scale

        return log_sums, pull


class _Likelihood:
    """Mean of log-densities that a subclass has for each row by all others."""

    sign = -1.0  # times which it is to be minimised

    def __call__(self, bandwidth, eval_gradient=False):
        """The criterion at a bandwidth.

        Parameters
        ----------
        bandwidth : array-like of shape (n_features,)
            Of each numeric column the bandwidth, of each categorical one the lambda.
        eval_gradient : bool, default=False
            Whether to return the gradient too.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_features,)
            With respect to `bandwidth`; only if asked for.
        """
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
        log_density, pull = self._log_density(bandwidth, eval_gradient)
        found, shares = np.isfinite(log_density), self._weights / self._weights.sum()
        value = float(shares @ np.where(found, log_density, LOG_OF_NOTHING))
        return (value, pull(shares * found)) if eval_gradient else value

    def rescale(self, value, log_volume):
        """The value in units whose volume has the given logarithm."""
        return value - log_volume


class DensityLikelihood(_Likelihood):
    r"""Mean log-density of each row under the estimate from all others.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log \hat f_{-i}(x_i), \qquad
              \hat f_{-i}(x) = \frac{1}{\sum_{j \ne i} w_j} \sum_{j \ne i} w_j
              \prod_k \frac{1}{h_k} K\Big(\frac{x_k - x_{jk}}{h_k}\Big)

    Its maximum is likelihood cross-validation [1]_ [2]_.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    kernel : SmoothingKernel
        Compares each numeric column. Categories have the normalised kernels of
        :func:`sklearn_attention.kernels.level_table`.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights :math:`w`, all positive.

    Attributes
    ----------
    in_linear_time : bool
        Whether a call without gradient takes linear time: one column of numbers, and most
        kernels.

    Notes
    -----
    Kernels of bounded support leave rows that no other row reaches with density 0. Such a
    row counts with the logarithm of the smallest normal number, -708.4, and has no part in
    the gradient. One suffices to make a bandwidth worse than any that leaves none, so that
    outliers decide the bandwidth: a known weakness of the criterion with such kernels.

    References
    ----------
    .. [1] Habbema, J. D. F., Hermans, J. and van den Broek, K. (1974). A stepwise
       discrimination analysis program using density estimation. Compstat 1974, 101-110.
    .. [2] Duin, R. P. W. (1976). On the choice of smoothing parameters for Parzen
       estimators of probability density functions. IEEE Transactions on Computers 25,
       1175-1179.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import DensityLikelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> likelihood, gradient = DensityLikelihood(X, Gaussian())([1.0], eval_gradient=True)
    >>> round(likelihood, 4), gradient.round(4)
    (-2.5126, array([1.3568]))
    """

    def __init__(self, X, kernel, *, columns=None, sample_weight=None):
        columns = columns or Columns.numbers(X.shape[1])
        self._weights, self._numeric = _weights(X, sample_weight), columns.is_numeric
        self._sums = _LogSums(X, ProductKernel(kernel), columns, self._weights)
        self.in_linear_time = self._sums.in_linear_time

    def _log_density(self, bandwidth, eval_gradient):
        log_density, pull_sums = self._sums(bandwidth, eval_gradient)
        log_density -= np.log(self._weights.sum() - self._weights)
        log_density -= np.log(bandwidth[self._numeric]).sum()

        def pull(slopes):
            return pull_sums(slopes) - slopes.sum() * _volume_slopes(self._numeric, bandwidth)

        return log_density, pull


class ConditionalLikelihood(_Likelihood):
    r"""Mean log-density of each target, given its row, under the estimate from all others.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log
              \frac{\sum_{j \ne i} w_j K(x_i, x_j)\, K_g(y_i - y_j)}
                   {\sum_{j \ne i} w_j K(x_i, x_j)}

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    y : ndarray of shape (n_samples,)
        Targets.
    kernel : Kernel
        Compares the numeric columns of rows, all at once; positive, and with gradients.
    target_kernel : SmoothingKernel
        Spreads the targets.
    columns, sample_weight
        As for :class:`DensityLikelihood`.

    Notes
    -----
    The criterion smooths features away on which the target does not depend: their best
    bandwidth is infinite [1]_. Where a target is not reached by any other, it counts with
    the logarithm of the smallest normal number, as in :class:`DensityLikelihood`.

    References
    ----------
    .. [1] Hall, P., Racine, J. and Li, Q. (2004). Cross-validation and the estimation of
       conditional probability densities. Journal of the American Statistical Association
       99, 1015-1026.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import ConditionalLikelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0.0, 1.0, 1.0])
    >>> round(ConditionalLikelihood(X, y, Gaussian(), Gaussian())([1.0, 1.0]), 4)
    -1.2251
    """

    in_linear_time = False

    def __init__(self, X, y, kernel, target_kernel, *, columns=None, sample_weight=None):
        columns = columns or Columns.numbers(X.shape[1])
        self._weights = weights = _weights(X, sample_weight)
        self._given = _LogSums(X, kernel, columns, weights, table=_plain_table)
        numeric = len(columns.numeric)
        parts = [("features", kernel, list(range(numeric)))] if numeric else []
        joint = ProductKernel([*parts, ("target", target_kernel, [numeric])])
        rows, columns = np.column_stack([X, y]), columns + Columns.numbers(1)
        self._joint = _LogSums(rows, joint, columns, weights, table=_plain_table)

    def _log_density(self, bandwidth, eval_gradient):
        log_joint, pull_joint = self._joint(bandwidth, eval_gradient)
        log_given, pull_given = self._given(bandwidth[:-1], eval_gradient)
        with np.errstate(invalid="ignore"):  # rows that no other reaches
            log_density = log_joint - log_given - np.log(bandwidth[-1])

        def pull(slopes):
            given = np.append(pull_given(slopes), slopes.sum() / bandwidth[-1])
            return pull_joint(slopes) - given

        return log_density, pull


class DensityLeastSquares:
    r"""Integrated squared error of a density estimate, but for a constant.

    .. math:: \int \hat f(x)^2\,dx
              - \frac{2}{\sum_i w_i} \sum_i w_i \hat f_{-i}(x_i)

    An unbiased estimate of :math:`\int (\hat f - f)^2 - \int f^2`; its minimum is
    least-squares cross-validation [1]_ [2]_. The first integral is a double sum of the
    kernel convolved with itself, and runs over numbers and levels alike.

    Parameters
    ----------
    X, kernel, columns, sample_weight
        As for :class:`DensityLikelihood`.

    References
    ----------
    .. [1] Rudemo, M. (1982). Empirical choice of histograms and kernel density estimators.
       Scandinavian Journal of Statistics 9, 65-78.
    .. [2] Bowman, A. W. (1984). An alternative method of cross-validation for the smoothing
       of density estimates. Biometrika 71, 353-360.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import DensityLeastSquares
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> round(DensityLeastSquares(X, Gaussian())([1.0]), 4)
    -0.0277
    """

    sign = 1.0

    def __init__(self, X, kernel, *, columns=None, sample_weight=None):
        columns = columns or Columns.numbers(X.shape[1])
        self._numeric, weights = columns.is_numeric, _weights(X, sample_weight)
        total = weights.sum()
        left_out = _LogSums(X, ProductKernel(kernel), columns, weights)
        self._terms = [(-2.0, left_out, 1.0, weights / (total - weights) / total)]
        # What has two parts has no product over columns that is a sum of few.
        parts = self_convolution(kernel, n_parts=2 if columns.kinds == ("numeric",) else 1)
        for factor, part, widening in parts:
            sums = _LogSums(
                X, ProductKernel(part), columns, weights, table=_squared_table, leave_out=False
            )
            factor **= len(columns.numeric)
            self._terms.append((factor, sums, widening, weights / total**2))
        self.in_linear_time = all(sums.in_linear_time for _, sums, *_ in self._terms)

    def __call__(self, bandwidth, eval_gradient=False):
        """The criterion at a bandwidth; as :meth:`DensityLikelihood.__call__`."""
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
        value, gradient = 0.0, np.zeros(len(bandwidth))
        log_volume = np.log(bandwidth[self._numeric]).sum()
        for factor, sums, widening, weights in self._terms:
            wider = np.where(self._numeric, widening, 1.0)
            log_sums, pull = sums(bandwidth * wider, eval_gradient)
            with np.errstate(over="ignore"):
                terms = factor * weights * np.exp(log_sums - log_volume)
            value += terms.sum()
            if eval_gradient:
                gradient += wider * pull(terms)
                gradient -= terms.sum() * _volume_slopes(self._numeric, bandwidth)
        return (float(value), gradient) if eval_gradient else float(value)

    def rescale(self, value, log_volume):
        """The value in units whose volume has the given logarithm."""
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.sign(value) * np.exp(np.log(np.abs(value)) - log_volume))


def _weights(X, sample_weight):
    if sample_weight is None:
        return np.ones(len(X))
    return np.asarray(sample_weight, dtype=np.float64)


def _volume_slopes(is_numeric, bandwidth):
    """Derivatives of the logarithm of the kernel's volume along bandwidths."""
    return np.divide(1.0, bandwidth, out=np.zeros(len(bandwidth)), where=is_numeric)


def _plain_table(kind, n_levels, lam):
    return level_table(kind, n_levels, lam, normalized=False)


def _squared_table(kind, n_levels, lam):
    """Sums over all levels of the products of two keys' probabilities."""
    table, slope = level_table(kind, n_levels, lam)
    half = table.T @ slope
    return table.T @ table, half + half.T
