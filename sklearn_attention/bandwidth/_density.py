"""How well a density estimate describes each row by all others."""

import math
import sys

import numpy as np

from ..kernels import Gaussian, ProductKernel, level_table
from ._convolution import SelfConvolution
from ._pairs import RowPairs, softmax

# The log-density of a row that no other row reaches.
LOG_OF_NOTHING = math.log(sys.float_info.min)


def density_likelihood(X, kernel, bandwidth, *, columns=None, sample_weight=None):
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
    bandwidth : ndarray of shape (n_features,)
        Of each numeric column the bandwidth, of each categorical one the lambda.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights :math:`w`, all positive.

    Returns
    -------
    likelihood : float
        To be maximised.
    gradient : ndarray of shape (n_features,)
        With respect to `bandwidth`.

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
    >>> from sklearn_attention.bandwidth import density_likelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> likelihood, gradient = density_likelihood(X, Gaussian(), np.array([1.0]))
    >>> round(likelihood, 4), gradient.round(4)
    (-2.5126, array([1.3568]))
    """
    bandwidth = np.asarray(bandwidth, dtype=np.float64)
    pairs = RowPairs(X, ProductKernel(kernel), columns)
    weights = _weights(X, sample_weight)
    log_volume = np.log(bandwidth[pairs.numeric]).sum()
    likelihood, gradient = 0.0, np.zeros(len(bandwidth))
    for rows in pairs.blocks():
        log_values, pull = pairs.log(rows, bandwidth)
        log_sum, share = softmax(_without_own(log_values + np.log(weights), rows))
        found = np.isfinite(log_sum)
        log_density = log_sum - np.log(weights.sum() - weights[rows]) - log_volume
        likelihood += weights[rows] @ np.where(found, log_density, LOG_OF_NOTHING)
        gradient += pull(weights[rows, None] * share)
        gradient[pairs.numeric] -= (weights[rows] @ found) / bandwidth[pairs.numeric]
    return float(likelihood / weights.sum()), gradient / weights.sum()


def density_least_squares(X, kernel, bandwidth, *, columns=None, sample_weight=None):
    r"""Integrated squared error of a density estimate, but for a constant.

    .. math:: \int \hat f(x)^2\,dx
              - \frac{2}{\sum_i w_i} \sum_i w_i \hat f_{-i}(x_i)

    An unbiased estimate of :math:`\int (\hat f - f)^2 - \int f^2`; its minimum is
    least-squares cross-validation [1]_ [2]_. The first integral is a double sum of the
    kernel convolved with itself, and runs over numbers and levels alike.

    Parameters
    ----------
    X, kernel, bandwidth, columns, sample_weight
        As for :func:`density_likelihood`.

    Returns
    -------
    error : float
        To be minimised; negative where the estimate is any good.
    gradient : ndarray of shape (n_features,)
        With respect to `bandwidth`.

    References
    ----------
    .. [1] Rudemo, M. (1982). Empirical choice of histograms and kernel density estimators.
       Scandinavian Journal of Statistics 9, 65-78.
    .. [2] Bowman, A. W. (1984). An alternative method of cross-validation for the smoothing
       of density estimates. Biometrika 71, 353-360.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import density_least_squares
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> error, gradient = density_least_squares(X, Gaussian(), np.array([1.0]))
    >>> round(error, 4), gradient.round(4)
    (-0.0277, array([-0.2039]))
    """
    bandwidth = np.asarray(bandwidth, dtype=np.float64)
    weights = _weights(X, sample_weight)
    total = weights.sum()
    # Two Gaussians make one that is wider by the square root of 2.
    gaussian = type(kernel) is Gaussian
    convolution = kernel if gaussian else SelfConvolution(kernel)
    squared = RowPairs(X, ProductKernel(convolution), columns, _squared_table)
    widening = np.ones(len(bandwidth))
    widening[squared.numeric] = math.sqrt(2) if gaussian else 1.0
    integral, slope = _double_sum(
        squared, bandwidth * widening, weights / total, weights / total
    )

    pairs = RowPairs(X, ProductKernel(kernel), columns)
    left, left_slope = _double_sum(
        pairs, bandwidth, weights / (total * (total - weights)), weights, leave_own_out=True
    )
    return float(integral - 2 * left), widening * slope - 2 * left_slope


def conditional_likelihood(
    X, y, kernel, bandwidth, target_kernel, target_bandwidth,
    *, columns=None, sample_weight=None,
):  # fmt: skip
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
    bandwidth : ndarray of shape (n_features,)
        Of each numeric column the bandwidth, of each categorical one the lambda.
    target_kernel : SmoothingKernel
        Spreads the targets.
    target_bandwidth : float
        Its bandwidth :math:`g`.
    columns, sample_weight
        As for :func:`density_likelihood`.

    Returns
    -------
    likelihood : float
        To be maximised.
    gradient : ndarray of shape (n_features + 1,)
        With respect to `bandwidth` and, last, `target_bandwidth`.

    Notes
    -----
    The criterion smooths features away on which the target does not depend: their best
    bandwidth is infinite [1]_. Where a target is not reached by any other, it counts with
    the logarithm of the smallest normal number, as in :func:`density_likelihood`.

    References
    ----------
    .. [1] Hall, P., Racine, J. and Li, Q. (2004). Cross-validation and the estimation of
       conditional probability densities. Journal of the American Statistical Association
       99, 1015-1026.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import conditional_likelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0.0, 1.0, 1.0])
    >>> likelihood, gradient = conditional_likelihood(
    ...     X, y, Gaussian(), np.array([1.0]), Gaussian(), 1.0
    ... )
    >>> round(likelihood, 4), gradient.round(4)
    (-1.2251, array([ 0.0391, -0.4072]))
    """
    bandwidth = np.asarray(bandwidth, dtype=np.float64)
    given = RowPairs(X, kernel, columns, _plain_table)
    targets = RowPairs(y[:, None], target_kernel)
    weights = _weights(X, sample_weight)
    likelihood, gradient = 0.0, np.zeros(len(bandwidth) + 1)
    for rows in given.blocks():
        log_given, pull_given = given.log(rows, bandwidth)
        log_target, pull_target = targets.log(rows, np.array([target_bandwidth]))
        log_given = _without_own(log_given + np.log(weights), rows)
        log_joint, joint_share = softmax(log_given + log_target)
        log_sum, share = softmax(log_given)
        found = np.isfinite(log_joint)
        log_density = log_joint - np.where(found, log_sum, 0) - math.log(target_bandwidth)
        likelihood += weights[rows] @ np.where(found, log_density, LOG_OF_NOTHING)
        counted = (weights[rows] * found)[:, None]
        gradient[:-1] += pull_given(counted * (joint_share - share))
        gradient[-1] += pull_target(counted * joint_share)[0] - counted.sum() / target_bandwidth
    return float(likelihood / weights.sum()), gradient / weights.sum()


def _weights(X, sample_weight):
    if sample_weight is None:
        return np.ones(len(X))
    return np.asarray(sample_weight, dtype=np.float64)


def _without_own(log_values, rows):
    """The pairs of different rows alone; overwrites its argument."""
    own = np.arange(rows.start, rows.stop)
    log_values[own - rows.start, own] = -np.inf
    return log_values


def _double_sum(pairs, bandwidth, row_weights, key_weights, *, leave_own_out=False):
    """Weighted sum of a product kernel over all pairs, and its gradient."""
    volume = np.prod(bandwidth[pairs.numeric])
    total, gradient = 0.0, np.zeros(len(bandwidth))
    for rows in pairs.blocks():
        log_values, pull = pairs.log(rows, bandwidth)
        if leave_own_out:
            log_values = _without_own(log_values.copy(), rows)
        terms = np.exp(log_values) * (row_weights[rows, None] / volume * key_weights)
        total += terms.sum()
        gradient += pull(terms)
    gradient[pairs.numeric] -= total / bandwidth[pairs.numeric]
    return total, gradient


def _plain_table(kind, n_levels, lam):
    return level_table(kind, n_levels, lam, normalized=False)


def _squared_table(kind, n_levels, lam):
    """Sums over all levels of the products of two keys' probabilities."""
    table, slope = level_table(kind, n_levels, lam)
    half = table.T @ slope
    return table.T @ table, half + half.T
