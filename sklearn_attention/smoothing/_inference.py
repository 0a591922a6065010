"""Uncertainty of a smoother, from what each training row does to each prediction."""

import numpy as np

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
