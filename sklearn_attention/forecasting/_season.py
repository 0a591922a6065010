"""How many steps a season has, by the frequency or by the autocorrelation."""

import numpy as np
import pandas as pd

from .._validation import check_positive

# Steps in the season that goes with a calendar frequency, by the stem of pandas' alias: a year
# of months, quarters or weeks, a week of days.
_CALENDAR = {
    "MS": 12, "ME": 12, "M": 12, "BMS": 12, "BME": 12, "SMS": 24, "SME": 24,
    "QS": 4, "QE": 4, "Q": 4, "BQS": 4, "BQE": 4,
    "YS": 1, "YE": 1, "Y": 1, "BYS": 1, "BYE": 1,
    "W": 52, "B": 5, "C": 5, "D": 7,
}  # fmt: skip
# Steps shorter than an hour add up to a day, steps shorter than a minute to an hour.
_DAY, _HOUR, _MINUTE = pd.Timedelta(1, "D"), pd.Timedelta(1, "h"), pd.Timedelta(1, "min")
_FEWEST_SEASONS = 2
# A peak of the autocorrelation counts as a season from here on.
_CLEAR_PEAK = 0.3
# Longer seasons that go with a frequency: a year of days.
_YEAR = 365.25
_LONGER = {"D": _YEAR}
# Seasons that differ by less than this share are one.
_ALIKE = 0.05


def season_of(panel, season_length):
    """Number of steps in a season.

    Parameters
    ----------
    panel : Panel
        The series.
    season_length : int or "auto"
        What the user passed. "auto" is the usual season of the frequency (a year of months,
        quarters or weeks, a week of days, five business days, a day of hours or minutes), if
        the longest series has two of them, and otherwise the highest peak of the
        autocorrelation of the longest series.

    Returns
    -------
    season_length : int
        1 if there is no season.
    """
    if not (isinstance(season_length, str) and season_length == "auto"):
        return max(1, round(check_positive("season_length", season_length)))
    longest = max(panel.values, key=len)
    usual = season_of_frequency(panel.time.offset)
    if usual is not None and len(longest) >= _FEWEST_SEASONS * usual:
        return usual
    return season_of_values(longest)


def seasons_of(panel, season_length):
    """All seasons that series may have, the one that is adjusted for first.

    Parameters
    ----------
    panel : Panel
        The series.
    season_length : float or "auto"
        What the user passed. "auto" is the usual season of the frequency, which is adjusted
        for, a longer usual one, and the season that the autocorrelation of the longest series
        shows, which need not have a whole number of steps.

    Returns
    -------
    seasons : list of float
        At least one; 1 if there is no season.
    """
    if season_length != "auto":
        return [float(season_length)]
    longest = max(panel.values, key=len)
    usual, offset = season_of_frequency(panel.time.offset), panel.time.offset
    seasons = [] if usual is None else [usual, _LONGER.get(_stem(offset))]
    if usual is not None and isinstance(offset, pd.offsets.Tick) and offset < _DAY:
        seasons[1] = 7 * usual if pd.Timedelta(offset) >= _MINUTE else None
    if _stem(offset) == "W" and usual is not None:
        seasons[0] = _YEAR / 7 / offset.n
    shown = season_of_values(longest)
    if shown > 1:
        shown = _refined(longest, shown)
        known = [season for season in seasons if season]
        if not any(abs(shown - season) < _ALIKE * season for season in known):
            seasons.append(shown)
    most = len(longest) / _FEWEST_SEASONS
    return [float(own) for own in seasons if own and 1 < own <= most] or [1.0]


def _stem(offset):
    return None if offset is None else offset.rule_code.partition("-")[0]


def _refined(values, season):
    """A season to a fraction of a step, by the peaks of the autocorrelation at multiples."""
    correlation, season = autocorrelation(values), float(season)
    for count in range(2, len(values) // (2 * int(season)) + 1):
        near = np.arange(round(count * season) - 1, round(count * season) + 2)
        if near[-1] >= len(correlation) - 1:
            break
        top = near[correlation[near].argmax()]
        left, middle, right = correlation[top - 1 : top + 2]
        bend = left - 2 * middle + right
        shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
        season = (top + np.clip(shift, -0.5, 0.5)) / count
    return season


def season_of_frequency(offset):
    """Steps in the season that usually goes with a frequency.

    Parameters
    ----------
    offset : pandas.DateOffset or None

    Returns
    -------
    season_length : int or None
        None if there is none, or if it has no whole number of steps.
    """
    if offset is None:
        return None
    stem = offset.rule_code.partition("-")[0]
    if stem in _CALENDAR:
        steps, n = _CALENDAR[stem], offset.n
        return steps // n if steps % n == 0 else None
    if not isinstance(offset, pd.offsets.Tick):
        return None
    step = pd.Timedelta(offset)
    cycle = _DAY if step >= _MINUTE else _HOUR
    return int(cycle / step) if cycle % step == pd.Timedelta(0) and step < cycle else None


def season_of_values(values):
    """Lag of the highest peak of the autocorrelation, once a straight line is subtracted.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)

    Returns
    -------
    season_length : int
        1 if no peak reaches 0.3, which is also where series are shorter than two seasons.
    """
    if len(values) < 2 * _FEWEST_SEASONS:
        return 1
    correlation = autocorrelation(values)
    if correlation is None:
        return 1
    below = np.flatnonzero(correlation < 0)
    if len(below) == 0:
        return 1  # it never leaves the slope around lag 0
    lags = np.arange(max(below[0], 2), len(correlation) - 1)
    lags = lags[
        (correlation[lags] >= correlation[lags - 1])
        & (correlation[lags] >= correlation[lags + 1])
    ]
    if len(lags) == 0:
        return 1
    lag = lags[correlation[lags].argmax()]
    return int(lag) if correlation[lag] >= _CLEAR_PEAK else 1


def autocorrelation(values):
    """Autocorrelation up to half of a series, once a straight line is subtracted.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)

    Returns
    -------
    correlation : ndarray of shape (n_steps // 2 + 1,) or None
        None where nothing but rounding is left.
    """
    n = len(values)
    line = np.polynomial.Polynomial.fit(np.arange(n), values, 1)
    rest = values - line(np.arange(n))
    size = np.abs(rest).max()
    if size <= 1e-9 * np.abs(values).max():
        return None
    # Zeros at the end keep the circular correlation of the transform from wrapping around.
    spectrum = np.abs(np.fft.rfft(rest / size, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[: n // _FEWEST_SEASONS + 1]
    correlation = correlation / correlation[0]
    return correlation
