"""Sizes of residuals: of single origins, by steps ahead, and of series, shrunk if they are few.

The terms are those of `_calibration`.
"""

import numpy as np

from ._table import mean_absolute_changes

# Pseudo-counts of the random walk: 4 horizons in the mean size of residuals, and 10 origins in
# their profile.
_WALK_PSEUDO_HORIZONS, _WALK_PSEUDO_ORIGINS = 4.0, 10
# Units are multiplied by the inflation: the root of the ratio of the sizes of the latest
# residuals to those of the earlier ones, at least 1 and at most 1.6.
_INFLATION_POWER, _MAX_INFLATION = 0.5, 1.6
# Relative differences below 1e-9 are rounding errors; 1e-100 keeps denominators positive.
ROUNDING, TINY = 1e-9, 1e-100


def naive_scales_above_rounding(values):
    """Compute the mean absolute difference of neighbouring values of each series; (n_series,).

    For a series of a single value it is the absolute value. It is at least 1e-9 of the largest
    absolute value. `values` is a list of arrays.
    """
    largest = np.array([np.abs(series).max(initial=0.0) for series in values])
    scales = np.where(
        [len(series) > 1 for series in values], mean_absolute_changes(values), largest
    )
    return np.maximum(scales, np.maximum(ROUNDING * largest, TINY))


def random_walk_sizes(horizon, n_differences):
    """Compute sizes of residuals of a random walk, in units of its steps; (horizon,).

    The forecast adds the mean of `n_differences` past steps h times. This adds
    h² / n_differences to the variance h of the h steps to come.
    """
    ahead = np.arange(1, horizon + 1)
    return np.sqrt(ahead * (1 + ahead / n_differences))


def residual_profile(residuals, walk_sizes):
    """Estimate the profile (horizon,) of residuals, shrunk to that of a random walk.

    `residuals` (n_origins, horizon, n_levels) are in naive scales, NaN where unknown, and
    `walk_sizes` (horizon,) are the `random_walk_sizes`.
    """
    size, profile = np.abs(residuals).mean(axis=2), walk_sizes
    is_observed = ~np.isnan(size)
    if is_observed.any():
        # The largest 5 % are clipped, so that a few huge residuals do not shape the profile.
        size = np.where(is_observed, np.minimum(size, np.nanquantile(size, 0.95)), 0)
        ratio_to_walk = size.sum() / (is_observed * walk_sizes).sum()
        if ratio_to_walk > 0:
            total = size.sum(axis=0) + _WALK_PSEUDO_ORIGINS * ratio_to_walk * walk_sizes
            profile = total / (is_observed.sum(axis=0) + _WALK_PSEUDO_ORIGINS)
    return profile / profile.mean()


def horizons_per_origin(origins):
    """Divide the number of horizons that a series was held out by its origins; (n_origins,).

    Targets of neighbouring origins overlap, so that an origin counts less than a horizon.
    """
    series, n_series = origins.series, len(origins.table)
    first, last = np.full(n_series, np.inf), np.zeros(n_series)
    np.minimum.at(first, series, origins.n_known)
    np.maximum.at(last, series, origins.n_known + origins.horizon)
    last = np.minimum(last, origins.table.lengths)
    n_horizons = (last - first)[series] / origins.horizon
    return n_horizons / np.bincount(series, minlength=n_series)[series]


def sizes_of_origins(residuals, profile):
    """Average sizes of residuals (n_origins, horizon, n_levels) over steps ahead; (n_origins,).

    Weights are the `profile` (horizon,) by which residuals were divided, so that short steps do
    not count more. The mean is NaN if no step was observed.
    """
    size = np.abs(residuals).mean(axis=2)
    weights = np.where(np.isnan(size), 0.0, profile)
    total = weights.sum(axis=1)
    return np.nansum(weights * size, axis=1) / np.where(total > 0, total, np.nan)


def shrunken_mean_sizes(sizes, series, n_horizons, scale, walk_size):
    """Average sizes of residuals by series, shrunk to their geometric mean over all series.

    Parameters
    ----------
    sizes, series, n_horizons : ndarray of shape (n_origins,)
        Mean size of the residuals of each origin, NaN if unknown, its series, and the number of
        horizons that it counts as.
    scale : ndarray of shape (n_series,)
        Naive scale of each series.
    walk_size : float
        Mean size of residuals of a random walk, in naive scales.

    Returns
    -------
    mean_size : ndarray of shape (n_series,)
        In the units of the series.
    typical_size : float
        Geometric mean over all series and the random walk, in naive scales.
    is_inexact : ndarray of bool of shape (n_series,)
        True for series with residuals larger than rounding errors.
    """
    n_horizons = np.where(np.isnan(sizes), 0.0, n_horizons)
    count = np.bincount(series, n_horizons, minlength=len(scale))
    size = np.nan_to_num(sizes)
    mean = np.bincount(series, n_horizons * size / scale[series], minlength=len(scale))
    mean = np.maximum(mean / np.maximum(count, TINY), ROUNDING)
    # Series that are forecast exactly, such as constant ones, say nothing about others.
    is_inexact = (count > 0) & (mean > ROUNDING * max(1, mean.max(initial=0.0)))
    is_pooled = is_inexact if is_inexact.any() else count > 0
    # The mean is geometric: one series with huge residuals must not widen intervals of others.
    log_total = (count * np.log(mean))[is_pooled].sum()
    log_total += _WALK_PSEUDO_HORIZONS * np.log(walk_size)
    total_count = count[is_pooled].sum() + _WALK_PSEUDO_HORIZONS
    typical_size = float(np.exp(log_total / total_count))
    ratio = np.where(count > 0, mean / typical_size, 1.0)
    mean_size = scale * typical_size * ratio ** weight_of_own_size(count)
    return mean_size, typical_size, is_inexact


def weight_of_own_size(n_horizons):
    """Compute the weight n² / (n² + 1) of the residuals of a series beside those of others.

    n is `n_horizons`. With a pseudo-count of 1 the weight would be n / (n + 1). The squares
    make it steeper: residuals within less than one horizon have hardly any weight, those of
    several horizons almost the whole weight.
    """
    return n_horizons**2 / (n_horizons**2 + 1)


def latest_inflation(sizes, series, is_latest):
    """Compute the inflation clip((latest / earlier size)**0.5, 1, 1.6) of intervals.

    The ratio is a geometric mean over the series that have both sizes.

    Parameters
    ----------
    sizes, series : ndarray of shape (n_origins,)
        Mean size of the residuals of each origin, NaN if unknown, and its series.
    is_latest : ndarray of bool of shape (n_origins,)
        True for origins in the latest block.
    """
    log_means = []
    for rows in (is_latest & ~np.isnan(sizes), ~is_latest & ~np.isnan(sizes)):
        count, total = (
            np.bincount(series[rows], weights, series.max(initial=-1) + 1)
            for weights in (None, sizes[rows])
        )
        log_means.append(np.log(np.where(total > 0, total, np.nan) / np.maximum(count, 1)))
    log_ratio = log_means[0] - log_means[1]
    log_ratio = log_ratio[~np.isnan(log_ratio)]
    if len(log_ratio) == 0:
        return 1.0
    return float(np.clip(np.exp(_INFLATION_POWER * log_ratio.mean()), 1.0, _MAX_INFLATION))
