"""Uncertainty of a smoother, from what each training row does to each prediction."""

import numpy as np
from scipy.stats import norm

# Rounding in sums of weights must not push a quantile to the next value.
_SLACK = 1e-12


def jackknife_intervals(left_out, errors, weights, coverage):
    r"""Jackknife+ prediction intervals.

    .. math:: \bigl[\, q^-_{\alpha} \{\hat m_{-i}(x) - R_i\},\;
                      q^+_{1 - \alpha} \{\hat m_{-i}(x) + R_i\} \,\bigr]

    Parameters
    ----------
    left_out : ndarray of shape (n_queries, n_samples, n_outputs)
        Predictions without each training row.
    errors : ndarray of shape (n_queries or 1, n_samples, n_outputs)
        Size of each row's leave-one-out error :math:`R_i`, as it would be at the query.
    weights : ndarray of shape (n_samples,)
        How often each row counts.
    coverage : float
        :math:`1 - \alpha`.

    Returns
    -------
    intervals : ndarray of shape (n_queries, 2, n_outputs)
        Infinite where there are too few rows for the coverage.

    References
    ----------
    .. [1] Barber, R. F., Candes, E. J., Ramdas, A. and Tibshirani, R. J. (2021). Predictive
       inference with the jackknife+. Annals of Statistics 49, 486-507.
    """
    upper = conformal_quantile(left_out + errors, weights, coverage)
    lower = -conformal_quantile(errors - left_out, weights, coverage)
    return np.stack([lower, upper], axis=1)


def conformal_quantile(values, weights, level):
    """Smallest value that a share of the values, and one at infinity, does not exceed.

    Parameters
    ----------
    values : ndarray of shape (n_queries, n_samples, n_outputs)
    weights : ndarray of shape (n_samples,)
    level : float
        The share.

    Returns
    -------
    quantiles : ndarray of shape (n_queries, n_outputs)
    """
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weights[order], axis=1)
    needed = level * (weights.sum() + 1)
    first = (reached >= needed * (1 - _SLACK)).argmax(axis=1)
    quantiles = np.take_along_axis(
        np.take_along_axis(values, order, axis=1), first[:, None], axis=1
    )[:, 0]
    enough = reached[:, -1] >= needed * (1 - _SLACK)
    return np.where(enough, quantiles, np.inf)


def weighted_quantiles(values, weights, quantiles):
    """Quantiles of values under weights of each query.

    Parameters
    ----------
    values : ndarray of shape (n_queries or 1, n_samples)
    weights : ndarray of shape (n_queries, n_samples)
        Non-negative; rows sum to 1.
    quantiles : ndarray of shape (n_quantiles,)

    Returns
    -------
    found : ndarray of shape (n_queries, n_quantiles)
        Smallest values whose cumulative weight reaches each quantile.
    """
    order = np.argsort(values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    if len(order) == 1:
        reached = np.cumsum(weights[:, order[0]], axis=1)
        values = np.broadcast_to(values, reached.shape)
    else:
        reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    lost = np.isnan(reached[:, -1])
    found = []
    for quantile in quantiles:
        first = (reached >= quantile * reached[:, -1:] * (1 - _SLACK)).argmax(axis=1)
        found.append(
            np.where(lost, np.nan, np.take_along_axis(values, first[:, None], 1)[:, 0])
        )
    return np.stack(found, axis=1)


def standard_errors(smoother, errors, weights):
    r"""Standard errors of a linear smoother, whatever the variances of the rows.

    .. math:: \widehat{\text{se}}(x)^2 = \sum_i l_i(x)^2 R_i^2 / w_i

    Parameters
    ----------
    smoother : ndarray of shape (n_queries, n_samples)
        Effective weights :math:`l_i(x)`.
    errors : ndarray of shape (n_samples, n_outputs)
        Leave-one-out errors :math:`R_i`.
    weights : ndarray of shape (n_samples,)
        How often each row counts, :math:`w_i`.

    Returns
    -------
    errors : ndarray of shape (n_queries, n_outputs)

    References
    ----------
    .. [1] MacKinnon, J. G. and White, H. (1985). Some heteroskedasticity-consistent
       covariance matrix estimators with improved finite sample properties. Journal of
       Econometrics 29, 305-325.
    """
    return np.sqrt(smoother**2 @ (errors**2 / _counts(weights)))


def largest_deviations(smoother, errors, weights, draws, scale):
    """Largest standardised deviation over the queries, for random signs of the errors.

    Parameters
    ----------
    smoother, errors, weights
        As for :func:`standard_errors`.
    draws : ndarray of shape (n_samples, n_draws)
        Standard normal multipliers.
    scale : ndarray of shape (n_queries, n_outputs)
        Standard errors; 0 where nothing can deviate.

    Returns
    -------
    largest : ndarray of shape (n_draws, n_outputs)

    References
    ----------
    .. [1] Chernozhukov, V., Chetverikov, D. and Kato, K. (2014). Anti-concentration and
       honest, adaptive confidence bands. Annals of Statistics 42, 1787-1818.
    """
    spread = errors / np.sqrt(_counts(weights))
    largest = []
    for output in range(errors.shape[1]):
        moves = smoother @ (spread[:, output, None] * draws)
        size = scale[:, output, None]
        moves = np.abs(moves) / np.where(size > 0, size, np.inf)
        largest.append(moves.max(axis=0, initial=0.0))
    return np.stack(largest, axis=1)


def normal_factor(coverage):
    """Half-width of a normal interval, in standard deviations.

    Parameters
    ----------
    coverage : float

    Returns
    -------
    factor : float
    """
    return float(norm.ppf((1 + coverage) / 2))


def _counts(weights):
    # A row of weight 0 has no effective weight either.
    return np.where(weights > 0, weights, 1.0)[:, None]
