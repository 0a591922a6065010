"""Ensemble weights of candidate forecasts, from their out-of-fold errors.

A candidate is a method, such as exponential smoothing, that makes one or more forecasts, each
with a name. Its out-of-fold forecast at a validation origin comes from a fit that has not
learned from the block of that origin (see `Validation`). Weights are computed in four steps:

1. The error of name c at an origin, in the units of the series, is the root mean square of its
   residuals over the horizon. For intermittent series, such as rare sales, it is the mean
   square. Errors are averaged over the validation origins of each series i.
2. The relative error r[i, c] is the average error divided by that of the best name on the
   series. It has no unit.
3. The errors of a single series are few. So log r[i, c] is shrunk to the mean R[c] of log r
   over all series of a panel, with the panel share s:

       log E[i, c] = (1 - s) log r[i, c] + s R[c].

4. The ensemble weights of a series are a softmax of -E[i, c] / min(E[i]) and sum to 1; see
   `softmax_weights`. For a single series they are averaged with stacked weights, which minimise
   the error of the weighted mean.
"""

import numpy as np

from ._candidate_attention import MIN_WEIGHT, CandidateAttention, softmax_weights
from ._origins import combine
from ._season_length import steps_in_a_year

# The panel share is 0.75 for short series and 0.5 for long ones, and 0 for a single series. On
# twenty sets errors are 0.996 of those with shares chosen on other blocks.
_PANEL_SHARE_IF_SHORT, _PANEL_SHARE_IF_LONG = 0.75, 0.5
# For a single series, origins within a horizon of whole years before its end count 11 times.
# On fourteen series errors are 0.99 of those if all origins count once, on fifteen others
# 0.997.
_COUNT_NEAR_YEARS = 11
# Origins near whole years count more if a year has 30 steps and a series 20 horizons.
_MIN_STEPS_OF_YEAR, _MIN_HORIZONS = 30, 20


def choose_weights(forecasts, validation, attends=False):
    """Choose ensemble weights by the errors of candidates at validation origins.

    Parameters
    ----------
    forecasts : ndarray of shape (n_validation, n_names, horizon)
        Out-of-fold forecasts, NaN where a candidate has none.
    validation : Validation
    attends : bool, default=False
        Whether weights in a panel may depend on the states of series.

    Returns
    -------
    weights : ndarray of shape (n_series, n_names)
    new_series_weights : ndarray of shape (n_names,)
        Weights for a series that is not in training.
    held_out : ndarray of shape (n_validation, horizon)
        Weighted means by weights that are out-of-fold, too; the attention leaves out origins
        within a horizon.
    attention : CandidateAttention or None
        Adapts the weights to the state of a series; None if it does not help.
    """
    tests, n_series = validation.tests, len(validation.scale)
    series, targets, is_squared = tests.series, tests.targets(), validation.is_intermittent
    errors = _errors_at_origins(forecasts, targets, is_squared, series)
    panel_share = _PANEL_SHARE_IF_LONG if validation.are_long else _PANEL_SHARE_IF_SHORT
    counts = np.ones(len(series))
    if n_series == 1:
        panel_share, counts[near_whole_years(tests)] = 0.0, _COUNT_NEAR_YEARS

    def weights_by(rows):
        """Choose weights by the errors at the validation origins `rows`.

        Returns weights and the logarithms of relative errors, both (n_series + 1, n_names); the
        last row is for new series.
        """
        log_errors, panel_log_errors = relative_errors(
            errors[rows], series[rows], is_squared, counts[rows]
        )
        new_series_errors = np.full((1, len(panel_log_errors)), np.nan)
        log_errors = np.concatenate([log_errors, new_series_errors])
        weights = softmax_weights(log_errors, panel_log_errors, panel_share)
        if n_series == 1 and not is_squared[0] and len(errors[rows]):
            residuals = forecasts[rows] - targets[rows, None]
            # On fourteen series errors are 0.98 of those without stacking, on fifteen others
            # 1.00. Panels gain nothing.
            weights = (weights + stacked_weights(weights[0], residuals, counts[rows])) / 2
        return weights, log_errors

    # 1. Combine the forecasts of each block by weights that are chosen on the other blocks.
    held_out, naive = np.empty_like(targets), tests.past(1)
    out_of_fold_log_errors = np.empty_like(errors)
    for rows, other_rows in validation.folds():
        weights, log_errors = weights_by(other_rows)
        held_out[rows] = combine(forecasts[rows], weights[series[rows]], naive[rows])
        out_of_fold_log_errors[rows] = log_errors[series[rows]]
    # 2. Choose the weights of later forecasts on all blocks.
    weights, log_errors = weights_by(slice(None))
    weights[weights < MIN_WEIGHT] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    # 3. Adapt the weights and the held-out means to the states of series, if that helps.
    attention = None
    if attends and validation.is_panel:
        attention, held_out = _fit_attention(
            forecasts, validation, errors, out_of_fold_log_errors, held_out,
            log_errors=log_errors, panel_share=panel_share,
        )  # fmt: skip
    return weights[:-1], weights[-1], held_out, attention


def _errors_at_origins(forecasts, targets, is_squared, series):
    """Compute the error of each forecast over the horizon; (n_origins, n_names).

    It is the root mean square of the residuals, or the mean square in the series (n_series,)
    where `is_squared`, and NaN if a candidate has no forecast.
    """
    # Roots are averaged over origins, since with squares a few hard stretches, such as a cold
    # winter or a holiday, would choose the weights for all others. Squares are averaged for an
    # intermittent series: forecasts of its minimum, which is its median, would have the
    # smallest mean of roots, while forecasts of its mean have the smallest mean of squares.
    n_observed = np.maximum((~np.isnan(targets)).sum(axis=1), 1)[:, None]
    errors = np.nansum((forecasts - targets[:, None]) ** 2, axis=2) / n_observed
    errors[~is_squared[series]] **= 0.5
    errors[np.isnan(forecasts).any(axis=2)] = np.nan
    return errors


def _fit_attention(
    forecasts, validation, errors, out_of_fold_log_errors, held_out, *, log_errors, panel_share
):
    """Fit attention over the errors of candidates at validation origins, if it helps.

    Parameters
    ----------
    forecasts : ndarray of shape (n_validation, n_names, horizon)
    validation : Validation
    errors : ndarray of shape (n_validation, n_names)
    out_of_fold_log_errors : ndarray of shape (n_validation, n_names)
        Logarithms of the relative errors of the series in the other blocks.
    held_out : ndarray of shape (n_validation, horizon)
        Weighted means without attention.
    log_errors : ndarray of shape (n_series + 1, n_names)
    panel_share : float

    Returns
    -------
    attention : CandidateAttention or None
    held_out : ndarray of shape (n_validation, horizon)
        Weighted means with attention, unless it is None. Intermittent series have none.
    """
    tests, is_excluded = validation.tests, validation.is_intermittent
    series, n_known = tests.series, np.sum(~np.isnan(errors), axis=1)
    mean_error = np.nansum(errors, axis=1) / np.maximum(n_known, 1)
    unit = np.bincount(series, mean_error) / np.maximum(np.bincount(series), 1)
    rows = np.flatnonzero(~is_excluded[series] & (unit[series] > 0))
    if len(rows) == 0:
        return None, held_out
    origins, forecasts, unit = tests.take(rows), forecasts[rows], unit[series[rows]]
    targets, naive = origins.targets(), origins.past(1)
    out_of_fold_log_errors = out_of_fold_log_errors[rows]

    def combined(rows, expected):
        """Combine forecasts by the log errors that attention expects; (n_rows, horizon)."""
        weights = softmax_weights(out_of_fold_log_errors[rows], expected, panel_share)
        return combine(forecasts[rows], weights, naive[rows])

    def error_of(rows, expected):
        residuals = combined(rows, expected) - targets[rows]
        return np.sqrt(np.nanmean(residuals**2, axis=1)) / unit[rows]

    attention = CandidateAttention.fit(
        origins,
        forecasts,
        errors[rows] / unit[:, None],
        error_of,
        log_errors=log_errors,
        is_excluded=is_excluded,
        panel_share=panel_share,
    )
    if attention is not None:
        expected = attention.expected(origins, forecasts, leave_out=True)
        held_out = held_out.copy()
        held_out[rows] = combined(slice(None), expected)
    return attention, held_out


def near_whole_years(origins):
    """Return True for origins within a horizon of whole years before the end; (n_origins,).

    The result is False for all origins of a series with few horizons, and everywhere if a year
    has few steps, such as months or quarters.
    """
    year, lengths = steps_in_a_year(origins.table.time), origins.table.lengths[origins.series]
    if not _MIN_STEPS_OF_YEAR <= year < np.inf:
        return np.zeros(len(origins), dtype=bool)
    is_long = lengths >= _MIN_HORIZONS * origins.horizon
    distance = np.abs((origins.steps_left + year / 2) % year - year / 2)
    return is_long & (distance <= origins.horizon)


def stacked_weights(weights, residuals, counts):
    """Move weights towards those with the least error of the weighted mean.

    The error of weights w is F(w) = sum over origins o of n_o |R_o' w|, where R_o (n_names,
    horizon) are the residuals, n_o is how often the origin counts, and |.| is the root of the
    sum of squares over the horizon. Exponentiated gradients (Kivinen and Warmuth 1997,
    Information and Computation 132, 1-63) minimise it: w is multiplied by exp(-rate * slope)
    and normalised to the sum 1.

    Parameters
    ----------
    weights : ndarray of shape (n_names,)
        Weights to start from.
    residuals : ndarray of shape (n_origins, n_names, horizon)
        NaN where a forecast or the truth is unknown.
    counts : ndarray of shape (n_origins,)
        How often each origin counts.

    Returns
    -------
    best : ndarray of shape (n_names,)
        Non-negative weights that sum to 1, the best of 30 steps.
    """
    # 1. Where a candidate has no forecast, it gets the mean residual of the others.
    is_known = ~np.isnan(residuals)
    mean = np.where(is_known, residuals, 0.0).sum(axis=1, keepdims=True)
    mean /= np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    residuals = np.where(is_known, residuals, mean)
    # 2. Descend. The slope (n_names,) is the gradient of F divided by F, minus 1, its mean with
    # the weights w. It would be -1 for a candidate without any error, and is clipped to -1 and
    # 1. The rate is halved whenever a step has increased the error.
    products = residuals @ residuals.transpose(0, 2, 1)  # R R'
    best, min_error, slope, rate = weights, np.inf, 0.0, 1.0
    for _ in range(30):
        half_gradient = products @ weights  # of |R' w|², (n_origins, n_names)
        sizes = np.sqrt(np.maximum(half_gradient @ weights, 1e-300))[:, None]  # |R' w|
        error = counts @ sizes
        if error < min_error:
            best, min_error = weights, error
            slope = counts @ (half_gradient / sizes - sizes) / error
        else:
            rate /= 2
        weights = best * np.exp(-rate * np.clip(slope, -1, 1))
        weights /= weights.sum()
    return best


def relative_errors(errors, series, is_squared, counts=1.0):
    """Compare the errors of candidates with those of the best one, by series and in the panel.

    Parameters
    ----------
    errors : ndarray of shape (n_origins, n_names)
        NaN where a candidate has no forecast.
    series : ndarray of int of shape (n_origins,)
    is_squared : ndarray of bool of shape (n_series,)
        True if the errors of a series are squares.
    counts : float or ndarray of shape (n_origins,)
        How often each origin counts.

    Returns
    -------
    log_errors : ndarray of shape (n_series, n_names)
        Logarithms of error / error of the best candidate; NaN where a candidate was not
        validated.
    panel_log_errors : ndarray of shape (n_names,)
        Means of `log_errors` over series.
    """
    counts = np.broadcast_to(counts, series.shape)[:, None]
    has_error = ~np.isnan(errors)

    def sum_by_series(cells):
        """Sum cells (n_origins, n_names) of candidates with an error; (n_series, n_names)."""
        total = np.zeros((len(is_squared), errors.shape[1]))
        np.add.at(total, series, counts * np.where(has_error, cells, 0.0))
        return total

    # 1. Average errors over origins. If a candidate has no forecast at some origins, the others
    # may be easier or harder than these. Its total error is then not divided by its number of
    # origins, but by (number of all origins) * q. q is the total error at its origins, divided
    # by that at all origins, of the complete candidates, which have forecasts at all origins.
    total, count = sum_by_series(errors), sum_by_series(1.0)
    is_validated, max_count = count > 0, count.max(axis=1, keepdims=True)
    is_complete = (count == max_count)[series]
    complete_errors = np.where(is_complete, errors, 0.0).sum(axis=1, keepdims=True)
    complete_total = sum_by_series(complete_errors)
    error_ratio = complete_total / np.maximum(complete_total.max(axis=1, keepdims=True), 1e-300)
    divisor = np.where(complete_total > 0, error_ratio * max_count, count)
    mean = total / np.maximum(divisor, 1e-300)
    # 2. Divide by the error of the best candidate. Differences below 1e-9 of the mean error are
    # rounding errors, and made negligible by adding it.
    n_validated = np.maximum(is_validated.sum(axis=1, keepdims=True), 1)
    mean += 1e-9 * mean.sum(axis=1, keepdims=True) / n_validated + 1e-300
    best = np.where(is_validated, mean, np.inf).min(axis=1, keepdims=True)
    log_errors = np.log(mean) - np.log(np.minimum(best, 1e300))
    log_errors = np.where(is_validated, log_errors, 0.0)
    # If nothing happened at the validation origins of an intermittent series, a candidate may
    # be perfect by chance. With limits from 0.7 to 4 errors are within 0.2 %.
    log_errors[is_squared] = np.minimum(log_errors[is_squared] / 2, 2.3)
    # 3. Average over the series where a candidate was validated. If there is none, its error is
    # so large that it gets no weight.
    panel_log_errors = log_errors.sum(axis=0) / np.maximum(is_validated.sum(axis=0), 1)
    panel_log_errors[~is_validated.any(axis=0)] = 1e9
    return np.where(is_validated, log_errors, np.nan), panel_log_errors
