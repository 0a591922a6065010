"""From the errors on a hold-out to intervals and quantiles (split-conformal prediction)."""

import numpy as np

from ._measures import naive_scales

# Rounding must not ask for one more error than needed.
_SLACK = 1e-9
# Origins that the errors of all series count as among those of one.
_BORROWED = 1.0
# Horizons that held-out errors count as among those since the fit.
_LEARNED = 2.0


def errors_at(errors, levels, level):
    """Errors of the quantile of a level, between those of the levels that were kept.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Truth less the quantile forecast at each level.
    levels : ndarray of shape (n_levels,)
        Increasing.
    level : float

    Returns
    -------
    errors : ndarray of shape (n_origins, horizon)
    """
    place = np.interp(level, levels, np.arange(len(levels)))
    below = int(place)
    above = min(below + 1, len(levels) - 1)
    return errors[..., below] + (place - below) * (errors[..., above] - errors[..., below])


def error_units(errors, series, scale):
    """Size of the errors of each series, in part that of all series.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Truth less quantile forecasts; NaN where nothing was observed.
    series : ndarray of int of shape (n_origins,)
        Which series each origin lies in.
    scale : ndarray of shape (n_series,)
        Of each series the error of the naive forecast.

    Returns
    -------
    unit : ndarray of shape (n_series,)
        Positive.
    usual : float
        Unit of a series that nothing is known of, in units of its scale.
    """
    seen = ~np.isnan(errors)
    size = np.where(seen, np.abs(errors), 0).sum(axis=(1, 2)) / np.maximum(seen.sum((1, 2)), 1)
    ratio = size / scale[series]
    count = np.bincount(series, minlength=len(scale))
    total = np.bincount(series, ratio, minlength=len(scale))
    own = total / np.maximum(count, 1)
    positive = own > 0
    usual = float(np.exp(np.log(own[positive]).mean())) if positive.any() else 1.0
    # Sizes differ by factors: one series of large errors must not widen those of all others.
    share = count / (count + _BORROWED)
    return scale * usual * np.where(positive, own / usual, 1.0) ** share, usual


def calibrated(errors, series, block, scale, disagreement):
    r"""Errors in units of what was to be expected of each of them.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Truth less quantile forecasts; NaN where nothing was observed.
    series : ndarray of int of shape (n_origins,)
        Which series each origin lies in.
    block : int or ndarray of int of shape (n_origins,)
        Which block of its time.
    scale : ndarray of shape (n_series,)
        Of each series the error of the naive forecast.
    disagreement : float or ndarray of shape (n_origins, horizon)
        Mean distance of candidates from their mean.

    Returns
    -------
    calibration : dict
        ``errors``; the ``error`` and ``unit`` of each series, of which the latter is what is
        left where disagreement is allowed for; and ``usual``, both of a series that nothing is
        known of, in units of its scale.

    Notes
    -----
    With :math:`\sigma` the mean error of a series and :math:`s` the disagreement, errors are
    taken to grow like :math:`\sqrt{1 + s / \sigma}`. The unit of an error is from other
    blocks of its series, as those to come are no part of it either: from few blocks it is
    uncertain, and the errors in such units have the longer tails that make up for it.
    """
    error, usual_error = error_units(errors, series, scale)
    errors = errors / growth(disagreement, error[series])[:, :, None]
    unit, usual = error_units(errors, series, scale)
    units = unit[series]
    for one in np.unique(block):
        other = block != one
        if other.any():
            apart, _ = error_units(errors[other], series[other], scale)
            units[~other] = apart[series[~other]]
    return {
        "errors": errors / units[:, None, None],
        "error": error,
        "unit": unit,
        "usual": (usual_error, usual),
    }


def growth(disagreement, error):
    """How many times as large as usual errors are where candidates disagree.

    Parameters
    ----------
    disagreement : float or ndarray of shape (n_origins, horizon)
    error : ndarray of shape (n_origins,)
        What is usual.

    Returns
    -------
    factor : ndarray of shape (n_origins, horizon or 1)
    """
    return np.sqrt(1 + disagreement / error[:, None])


def drift_since(errors, held_out, series, n_series, n_horizons):
    """How many times as large as held-out errors those since the fit are, in part.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Of forecasts since the fit, in the units of held-out ones.
    held_out : ndarray of shape (n_held_out, horizon, n_levels)
    series : ndarray of int of shape (n_origins,)
    n_series : int
    n_horizons : ndarray of shape (n_series,)
        Horizons since the fit.

    Returns
    -------
    factor : ndarray of shape (n_series,)
        1 for a series without errors.
    """
    size = np.nanmean(np.abs(errors), axis=(1, 2)) / (np.nanmean(np.abs(held_out)) or 1.0)
    count = np.bincount(series, minlength=n_series)
    total = np.bincount(series, size, minlength=n_series)
    share = np.where(count > 0, n_horizons / (n_horizons + _LEARNED), 0.0)
    return 1 + share * (total / np.maximum(count, 1) - 1)


def calibration_without_origins(origins, levels):
    """Errors of a random walk, for series too short to hold anything out.

    Parameters
    ----------
    origins : Origins
        None, in the series.
    levels : sequence of float

    Returns
    -------
    calibration : dict
        Steps of all series, times the root of the number of steps ahead.
    """
    values = origins.table.values
    scale = naive_scales(values)
    pairs = zip(values, scale, strict=True)
    steps = np.concatenate([np.zeros(1), *(np.diff(own) / size for own, size in pairs)])
    growth = np.sqrt(np.arange(1, origins.horizon + 1))
    errors = np.repeat((steps[:, None] * growth)[:, :, None], len(levels), axis=2)
    return {"errors": errors, "error": scale, "unit": scale, "usual": (1.0, 1.0)}


def interval_margin(errors, levels, coverage):
    r"""By how much an interval between two quantiles has to be widened.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Truth less the quantile forecast at each level, on the hold-out.
    levels : ndarray of shape (n_levels,)
        Increasing; one level if there are only point forecasts.
    coverage : float

    Returns
    -------
    margin : ndarray of shape (horizon,)
        For each step ahead; negative where the quantiles are too far apart.

    Notes
    -----
    Conformalised quantile regression [1]_: the score of an origin is how far the truth lies
    outside of the interval, :math:`E_i = \max(\hat q_{lo} - y_i, y_i - \hat q_{hi})`, and the
    margin its :math:`\lceil (n + 1) c \rceil`-th smallest value. With point forecasts it is
    that of the absolute errors. A step with too few scores for the coverage has the margin of
    the scores of all steps, each in units of the largest root mean square up to its step.

    References
    ----------
    .. [1] Romano, Y., Patterson, E. and Candes, E. J. (2019). Conformalized quantile
       regression. Advances in Neural Information Processing Systems 32.
    """
    below = errors_at(errors, levels, (1 - coverage) / 2)
    above = errors_at(errors, levels, (1 + coverage) / 2)
    scores = np.maximum(-below, above)  # NaN where nothing was observed
    counts = np.sum(~np.isnan(scores), axis=0)
    ranks = np.ceil((counts + 1) * coverage - _SLACK).astype(np.int64)
    ordered = np.sort(scores, axis=0)  # NaN last
    squares = np.where(np.isnan(scores), 0, scores) ** 2
    size = np.sqrt(squares.sum(axis=0) / np.maximum(counts, 1))
    # Sizes do not shrink with the horizon: a step without any score has that of those before.
    size = np.maximum.accumulate(np.where(counts > 0, size, 0))
    # Steps with too few scores borrow those of all steps, in units of their size.
    pooled = np.sort((scores / np.where(size > 0, size, 1.0)).ravel())
    pooled = pooled[~np.isnan(pooled)]
    rank = min(len(pooled), int(np.ceil((len(pooled) + 1) * coverage - _SLACK)))
    own = ordered[np.clip(ranks, 1, len(scores)) - 1, np.arange(scores.shape[1])]
    return np.where(ranks <= counts, own, size * pooled[rank - 1])


def quantile_shift(errors, levels, level):
    """By how much a quantile forecast has to be moved.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, horizon, n_levels)
        Truth less the quantile forecast at each level, on the hold-out.
    levels : ndarray of shape (n_levels,)
        Increasing.
    level : float

    Returns
    -------
    shift : ndarray of shape (horizon,)
        The quantile of that level of its own errors.
    """
    errors = errors_at(errors, levels, level)
    seen = ~np.isnan(errors).all(axis=0)
    shift = np.zeros(errors.shape[1])
    shift[seen] = np.nanquantile(errors[:, seen], level, axis=0)
    # A step that nothing was observed of is moved as the last one that was.
    return shift[np.maximum.accumulate(np.where(seen, np.arange(len(seen)), 0))]
