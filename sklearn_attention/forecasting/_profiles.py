"""Seasonal forecasts: the last season again, and the mean of some seasons at today's level."""

from dataclasses import dataclass

import numpy as np

from .._validation import check_positive

# Seasons that are averaged.
_COUNTS = (2, 4, 8)


@dataclass(frozen=True, eq=False)
class SeasonalProfiles:
    """The last season again, and means of the last seasons, moved to the level of the last."""

    season_length: float  # in steps, not always a whole number

    @property
    def names(self):
        """Names of the forecasts."""
        season = f"of {self.season_length:.4g} steps"
        return (
            f"last season {season}",
            *(f"mean of {count} seasons {season}" for count in _COUNTS),
        )

    def fit(self, training):
        """Itself, which has nothing to learn, and forecasts of validation origins."""
        return self, self.forecast(training.validation)

    def forecast(self, origins):
        """Forecasts (n_origins, n_names, horizon); NaN where there are too few seasons."""
        m, found = self.season_length, []
        ahead = np.arange(1, origins.horizon + 1)
        whole = np.ceil(ahead / m - 1e-9)
        width = max(1, round(m))
        levels = []
        for age in range(max(_COUNTS)):
            lags = np.round(m * (whole + age)).astype(np.int64)
            found.append(origins.before(lags))
            levels.append(_mean_before(origins, round(m * age), width))
        season, levels = np.array(found), np.array(levels)[:, :, None]
        shifted = season - levels + levels[0]
        means = [shifted[:count].mean(axis=0) for count in _COUNTS]
        return np.stack([season[0], *means], axis=1)


def _mean_before(origins, gap, width):
    """Mean of so many steps that end so many steps before each origin, NaN where too few."""
    shifted = origins.at(origins.series, np.maximum(origins.known - gap, 1))
    mean = shifted.past(width).mean(axis=1)
    return np.where(origins.known - gap >= width, mean, np.nan)


def seasonal_naive(past, horizon, season_length):
    """Repeat the last season.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
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
    lookback = past.shape[1]
    if season_length > lookback:
        raise ValueError(
            f"season_length={season_length!r} is longer than the windows of {lookback} steps: "
            "pass a smaller one, or longer windows."
        )
    steps = np.arange(check_positive("horizon", horizon, integer=True)) % season_length
    return past[:, lookback - season_length + steps]
