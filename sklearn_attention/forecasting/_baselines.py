"""The forecast that others are compared with: the last season again."""

import numpy as np

from .._validation import check_positive


def seasonal_naive(past, horizon, season_length):
    """Repeat the last season.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
        Windows.
    horizon : int
        How many steps to forecast.
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
