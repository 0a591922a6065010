"""From the errors on a hold-out to intervals and quantiles (split-conformal prediction)."""

import numpy as np

# Rounding must not ask for one more error than needed.
_SLACK = 1e-9


def errors_at(errors, levels, level):
    """Errors of the quantile of a level, between those of the levels that were kept.

    Parameters
    ----------
    errors : ndarray of shape (n_windows, horizon, n_levels)
        Truth less the quantile forecast at each level.
    levels : ndarray of shape (n_levels,)
        Increasing.
    level : float

    Returns
    -------
    errors : ndarray of shape (n_windows, horizon)
    """
    place = np.interp(level, levels, np.arange(len(levels)))
    below = int(place)
    above = min(below + 1, len(levels) - 1)
    return errors[..., below] + (place - below) * (errors[..., above] - errors[..., below])


def interval_margin(errors, levels, coverage):
    r"""By how much an interval between two quantiles has to be widened.

    Parameters
    ----------
    errors : ndarray of shape (n_windows, horizon, n_levels)
        Truth less the quantile forecast at each level, on the hold-out.
    levels : ndarray of shape (n_levels,)
        Increasing; one level if there are only point forecasts.
    coverage : float

    Returns
    -------
    margin : ndarray of shape (horizon,)
        For each step ahead; negative where the quantiles are too far apart, infinite where
        the hold-out has too few windows for the coverage.

    Notes
    -----
    Conformalised quantile regression [1]_: the score of a window is how far the truth lies
    outside of the interval, :math:`E_i = \max(\hat q_{lo} - y_i, y_i - \hat q_{hi})`, and the
    margin its :math:`\lceil (n + 1) c \rceil`-th smallest value. With point forecasts it is
    that of the absolute errors.

    References
    ----------
    .. [1] Romano, Y., Patterson, E. and Candes, E. J. (2019). Conformalized quantile
       regression. Advances in Neural Information Processing Systems 32.
    """
    below = errors_at(errors, levels, (1 - coverage) / 2)
    above = errors_at(errors, levels, (1 + coverage) / 2)
    scores = np.sort(np.maximum(-below, above), axis=0)
    rank = int(np.ceil((len(scores) + 1) * coverage - _SLACK))
    if rank > len(scores):
        return np.full(scores.shape[1], np.inf)
    return scores[rank - 1]


def quantile_shift(errors, levels, level):
    """By how much a quantile forecast has to be moved.

    Parameters
    ----------
    errors : ndarray of shape (n_windows, horizon, n_levels)
        Truth less the quantile forecast at each level, on the hold-out.
    levels : ndarray of shape (n_levels,)
        Increasing.
    level : float

    Returns
    -------
    shift : ndarray of shape (horizon,)
        The quantile of that level of its own errors.
    """
    return np.quantile(errors_at(errors, levels, level), level, axis=0)
