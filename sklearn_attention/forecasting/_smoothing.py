"""Exponential smoothing of many series at every origin, by linear filters."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.signal import lfilter

# Parameters that are tried; at every origin those with the least squared error so far count.
LEVEL_RATES = np.linspace(0.03, 0.99, 25)
TREND_RATES = tuple(product(np.linspace(0.08, 0.96, 9), (0.01, 0.05, 0.15, 0.4)))
DAMPINGS = (0.8, 0.9, 0.95, 0.98)
# Trends begin as the mean of so many first differences.
_FIRST_STEPS = 3
# Errors that differ by less than this share are the same but for rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Smoothed:
    """States of exponential smoothing at every step of several series.

    Attributes
    ----------
    level, trend, damping : ndarray of shape (n_series, n_steps)
        After each step. A forecast of k steps adds to the level the trend times the sum of the
        first k powers of the damping.
    """

    level: np.ndarray
    trend: np.ndarray
    damping: np.ndarray

    def path(self, series, last, n_steps):
        """Forecasts.

        Parameters
        ----------
        series, last : ndarray of int of shape (n_origins,)
            Which series, and the last step known.
        n_steps : int

        Returns
        -------
        forecasts : ndarray of shape (n_origins, n_steps)
        """
        damping = self.damping[series, last][:, None]
        growth = np.cumsum(damping ** np.arange(1, n_steps + 1), axis=1)
        return self.level[series, last][:, None] + self.trend[series, last][:, None] * growth


def smooth(values, rates, dampings=(1.0,)):
    r"""Exponential smoothing, with the parameters that did best up to each step.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_steps)
        Series that begin at the first column. What stands after their end does not matter for
        the states before, and must be finite.
    rates : sequence of (level, trend)
        Rates of learning; a trend rate of None is simple exponential smoothing.
    dampings : sequence of float, default=(1.0,)

    Returns
    -------
    states : Smoothed

    Notes
    -----
    With errors :math:`e_t = x_t - l_{t-1} - \phi b_{t-1}` states follow

    .. math:: l_t = l_{t-1} + \phi b_{t-1} + \alpha e_t, \qquad
              b_t = \phi b_{t-1} + \alpha \beta e_t,

    [1]_, which is a linear filter of the series for each choice of parameters:

    .. math:: l = \frac{\alpha + \alpha \phi (\beta - 1) z^{-1}}{D(z)} x, \quad
              b = \frac{\alpha \beta (1 - z^{-1})}{D(z)} x, \quad
              D(z) = 1 - (1 - \alpha + \phi (1 - \alpha \beta)) z^{-1}
              + (1 - \alpha) \phi z^{-2}.

    Levels begin at the first value, trends at the mean of the first three differences, or of
    those so far.

    References
    ----------
    .. [1] Hyndman, R. J., Koehler, A. B., Ord, J. K. and Snyder, R. D. (2008). Forecasting with
       exponential smoothing: the state space approach. Springer.
    """
    first = values[:, :1]
    x = values - first
    # Of those that are known, so that no state depends on what comes after it.
    n_first = np.minimum(np.arange(values.shape[1]), _FIRST_STEPS)
    slope = x[:, n_first] / np.maximum(n_first, 1)
    impulse = np.zeros(values.shape[1])
    impulse[0] = 1.0
    best = np.full(values.shape, np.inf)
    level, trend, damping = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for (alpha, beta), phi in product(rates, dampings):
        if beta is None:
            own_level = lfilter([alpha], [1.0, alpha - 1.0], x)
            own_trend, ahead = None, own_level
        else:
            poles = [1.0, alpha - 1.0 - phi * (1.0 - alpha * beta), (1.0 - alpha) * phi]
            own_level = lfilter([alpha, alpha * phi * (beta - 1.0)], poles, x)
            own_level += slope * lfilter([0.0, (1.0 - alpha) * phi], poles, impulse)
            own_trend = lfilter([alpha * beta, -alpha * beta], poles, x)
            own_trend += slope * lfilter([1.0, alpha - 1.0], poles, impulse)
            ahead = own_level + phi * own_trend
        error = np.zeros_like(x)
        np.cumsum((x[:, 1:] - ahead[:, :-1]) ** 2, axis=1, out=error[:, 1:])
        better = error < (1 - _ROUNDING) * best
        best[better] = error[better]
        level[better] = own_level[better]
        if own_trend is not None:
            trend[better], damping[better] = own_trend[better], phi
    return Smoothed(level + first, trend, damping)


def slopes(values):
    """Slope of the least-squares line through all steps up to each; (n_series, n_steps)."""
    steps = np.arange(values.shape[1])
    n, values = steps + 1.0, values - values[:, :1]
    products = np.cumsum(values * steps, axis=1), np.cumsum(values, axis=1) * np.cumsum(steps)
    spread = n * np.cumsum(steps.astype(float) ** 2) - np.cumsum(steps) ** 2
    return (n * products[0] - products[1]) / np.maximum(spread, 1.0)


def simple(values):
    """States of simple exponential smoothing."""
    return smooth(values, [(rate, None) for rate in LEVEL_RATES])


def theta(values):
    """States of the theta method: simple smoothing with half the slope of a straight line."""
    return replace(simple(values), trend=slopes(values) / 2)


def holt(values):
    """States of Holt's method, with a linear trend."""
    return smooth(values, TREND_RATES)


def damped(values):
    """States of Holt's method with a damped trend."""
    return smooth(values, TREND_RATES, DAMPINGS)
