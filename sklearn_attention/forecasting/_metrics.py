"""Errors of point forecasts, intervals and quantiles, and the seasonal naive forecast.

Errors are divided by a scale of the series, most often the naive scale: the mean absolute error
of repeating the last season, on the training series. So series in different units can be
compared.
"""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from .._validation import (
    check_in_open_interval,
    check_positive,
    check_probabilities,
    refuse_other_arrays,
)


def naive_scale(y, season_length: int = 1) -> float:
    r"""Compute the mean absolute error of repeating the last season, on the training series.

    Pass it as `scale` to :func:`mase` and :func:`msis`.

    Parameters
    ----------
    y : array-like of shape (n_steps,)
        The training series.
    season_length : int, default=1
        Steps in a season; 1 repeats the last value.

    Returns
    -------
    scale : float
        :math:`\frac{1}{n-m} \sum_{t>m} |y_t - y_{t-m}|`.

    Examples
    --------
    >>> from sklearn_attention.forecasting import naive_scale
    >>> naive_scale([1.0, 3.0, 2.0])
    1.5
    """
    season_length = check_positive("season_length", season_length, integer=True)
    y = _numbers("y", y)
    if len(y) <= season_length:
        raise ValueError(
            f"y has {len(y)} steps, which is not more than season_length={season_length}: pass "
            "a longer series."
        )
    return float(np.abs(y[season_length:] - y[:-season_length]).mean())


def mase(y_true, y_pred, scale) -> float:
    r"""Compute the mean absolute scaled error.

    Use it to compare forecasts of series in different units: errors are divided by `scale`,
    most often the error of a naive forecast.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_steps,)
        Observations, and their forecasts.
    scale : float or array-like of shape (n_steps,)
        Scale of the training series, see :func:`naive_scale`; one for each step if steps are of
        several series.

    Returns
    -------
    error : float
        :math:`\frac{1}{n} \sum_t |y_t - \hat y_t| / s_t`; below 1 forecasts are better than the
        naive ones were in training [1]_.

    References
    ----------
    .. [1] Hyndman, R. J. and Koehler, A. B. (2006). Another look at measures of forecast
       accuracy. International Journal of Forecasting 22, 679-688.

    Examples
    --------
    >>> from sklearn_attention.forecasting import mase
    >>> mase([1.0, 2.0], [2.0, 4.0], scale=3.0)
    0.5
    """
    y_true, y_pred = _numbers("y_true", y_true), _numbers("y_pred", y_pred)
    check_consistent_length(y_true, y_pred)
    return float((np.abs(y_true - y_pred) / _scale(scale, len(y_true))).mean())


def msis(y_true, lower, upper, coverage, scale) -> float:
    r"""Compute the mean scaled interval score.

    Use it to compare intervals: it is small for narrow intervals that contain the observations,
    and can be compared between series.

    Parameters
    ----------
    y_true, lower, upper : array-like of shape (n_steps,)
        Observations, and the ends of their intervals.
    coverage : float
        Nominal probability that intervals contain an observation.
    scale : float or array-like of shape (n_steps,)
        As for :func:`mase`.

    Returns
    -------
    error : float
        With :math:`\alpha = 1 - c` the mean over steps [1]_ of

        .. math:: \frac{1}{s_t} \left(u_t - l_t + \tfrac{2}{\alpha} \max(l_t - y_t, 0)
                  + \tfrac{2}{\alpha} \max(y_t - u_t, 0)\right).

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction,
       and estimation. Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> from sklearn_attention.forecasting import msis
    >>> msis([1.0, 7.0], [0.0, 0.0], [2.0, 6.0], coverage=0.5, scale=2.0)
    3.0
    """
    coverage = check_in_open_interval("coverage", coverage, 0, 1)
    y_true = _numbers("y_true", y_true)
    lower, upper = _numbers("lower", lower), _numbers("upper", upper)
    check_consistent_length(y_true, lower, upper)
    outside = np.maximum(lower - y_true, 0) + np.maximum(y_true - upper, 0)
    score = upper - lower + 2 / (1 - coverage) * outside
    return float((score / _scale(scale, len(y_true))).mean())


def crps(y_true, y_quantiles, quantiles, scale: ArrayLike = 1.0) -> float:
    r"""Compute the continuous ranked probability score, approximated from quantiles.

    Use it to compare whole distributions, where :func:`msis` compares intervals and
    :func:`mase` points.

    Parameters
    ----------
    y_true : array-like of shape (n_steps,)
        Observations.
    y_quantiles : array-like of shape (n_steps, n_quantiles)
        Forecasts of quantiles, as `predict_quantiles` returns them.
    quantiles : array-like of shape (n_quantiles,)
        Their probabilities, evenly spread between 0 and 1, such as 0.1, 0.2, ..., 0.9.
    scale : float or array-like of shape (n_steps,), default=1.0
        As for :func:`mase`.

    Returns
    -------
    error : float
        Twice the mean pinball loss of all steps and quantiles [1]_, which converges to the
        score with the number of quantiles.

    References
    ----------
    .. [1] Gneiting, T. and Ranjan, R. (2011). Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. Journal of Business & Economic Statistics 29, 411-422.

    See Also
    --------
    sklearn.metrics.mean_pinball_loss : The loss of one quantile.

    Examples
    --------
    >>> from sklearn_attention.forecasting import crps
    >>> crps([3.0], [[1.0, 2.0, 3.0]], [0.25, 0.5, 0.75])
    0.6666666666666666
    """
    levels, y_true = check_probabilities("quantiles", quantiles), _numbers("y_true", y_true)
    refuse_other_arrays("y_quantiles", y_quantiles)
    forecasts = np.asarray(y_quantiles, dtype=np.float64)
    if forecasts.shape != (len(y_true), len(levels)):
        raise ValueError(
            f"y_quantiles has shape {forecasts.shape}: pass {(len(y_true), len(levels))}, a "
            "row for each of y_true and a column for each of quantiles."
        )
    error = y_true[:, None] - forecasts
    pinball_loss = np.maximum(levels * error, (levels - 1) * error).mean(axis=1)
    return float((2 * pinball_loss / _scale(scale, len(y_true))).mean())


def seasonal_naive(past, horizon, season_length) -> np.ndarray:
    """Forecast by repeating the last season.

    Use it as a baseline: a forecaster that is not better than this has learned nothing.

    Parameters
    ----------
    past : array-like of shape (n_windows, lookback)
        Windows.
    horizon : int
        Number of steps to forecast.
    season_length : int
        Steps in a season, at most `lookback`; 1 repeats the last value.

    Returns
    -------
    forecasts : ndarray of shape (n_windows, horizon)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import seasonal_naive
    >>> seasonal_naive(np.array([[5, 1, 2, 3]]), horizon=4, season_length=3)
    array([[1, 2, 3, 1]])
    """
    season_length = check_positive("season_length", season_length, integer=True)
    refuse_other_arrays("past", past)
    past = np.asarray(past)
    if past.ndim != 2:
        raise ValueError(
            f"past has shape {past.shape}: pass windows of shape (n_windows, lookback), one "
            "series as [past]."
        )
    lookback = past.shape[1]
    if season_length > lookback:
        raise ValueError(
            f"season_length={season_length!r} is longer than the windows of {lookback} steps: "
            "pass a smaller one, or longer windows."
        )
    phase = np.arange(check_positive("horizon", horizon, integer=True)) % season_length
    return past[:, lookback - season_length + phase]


def _numbers(name, values):
    """Convert the argument `name` to a 1-D array of float64, or raise."""
    refuse_other_arrays(name, values)
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} has shape {values.shape}: pass a 1-D array of numbers.")
    return values


def _scale(scale, n_steps):
    """Convert `scale` to an array of one number or `n_steps` numbers above 0, or raise."""
    scale = np.asarray(scale, dtype=np.float64)
    if scale.shape not in ((), (n_steps,)) or not (scale > 0).all():
        raise ValueError(
            f"scale={scale!r} is not valid: pass a number greater than 0, or {n_steps} of them."
        )
    return scale
