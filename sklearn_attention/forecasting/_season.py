"""Length of a season, by the frequency or by the autocorrelation."""

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
_YEAR = 365.25  # days
# Seasons that differ by less than this share are one.
_ALIKE = 0.05


def season_of(panel, season_length):
    """Number of steps in a season, 1 if there is none.

    "auto" is the usual season of the frequency (a year of months, quarters or weeks, a week of
    days, five business days, a day of hours or minutes), if the longest series has two of them,
    and otherwise the highest peak of the autocorrelation of the longest series.
    """
    if not (isinstance(season_length, str) and season_length == "auto"):
        return max(1, round(check_positive("season_length", season_length)))
    longest = max(panel.values, key=len)
    usual = season_of_frequency(panel.time.offset)
    if usual is not None and len(longest) >= _FEWEST_SEASONS * usual:
        return usual
    return season_of_values(longest)


def seasons_of(panel, season_length):
    """All seasons that series may have, the one that is adjusted for first; [1.0] if none.

    "auto" is the usual season of the frequency, which is adjusted for, a longer usual one, and
    the season that the autocorrelation of the longest series shows, which need not have a whole
    number of steps.
    """
    if season_length != "auto":
        return [float(season_length)]
    longest, offset, seasons = max(panel.values, key=len), panel.time.offset, []
    usual, stem = season_of_frequency(offset), _stem(offset)
    if usual is not None and stem == "W":
        seasons = [_YEAR / 7 / offset.n]
    elif usual is not None:
        seasons = [usual, _YEAR] if stem == "D" else [usual]
        if isinstance(offset, pd.offsets.Tick) and _MINUTE <= pd.Timedelta(offset) < _DAY:
            seasons.append(7 * usual)
    shown = season_of_values(longest)
    if shown > 1:
        shown = _refined(longest, shown)
        if not any(abs(shown - season) < _ALIKE * season for season in seasons):
            seasons.append(shown)
    most = len(longest) / _FEWEST_SEASONS
    return [float(own) for own in seasons if 1 < own <= most] or [1.0]


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
    """Steps in the season that usually goes with a frequency; None if not a whole number."""
    steps = _CALENDAR.get(_stem(offset))
    if steps is not None:
        n = offset.n
        return steps // n if steps % n == 0 else None
    if not isinstance(offset, pd.offsets.Tick):
        return None
    step = pd.Timedelta(offset)
    cycle = _DAY if step >= _MINUTE else _HOUR
    return int(cycle / step) if cycle % step == pd.Timedelta(0) and step < cycle else None


def season_of_values(values):
    """Lag of the highest peak of the autocorrelation, once a straight line is subtracted.

    1 if no peak reaches 0.3, which is also where series are shorter than two seasons.
    """
    correlation = autocorrelation(values) if len(values) >= 2 * _FEWEST_SEASONS else None
    if correlation is None or (correlation >= 0).all():
        return 1  # there is nothing, or it never leaves the slope around lag 0
    below = np.flatnonzero(correlation < 0)
    lags = np.arange(max(below[0], 2), len(correlation) - 1)
    lags = lags[
        (correlation[lags] >= correlation[lags - 1])
        & (correlation[lags] >= correlation[lags + 1])
    ]
    lag = max(lags, key=correlation.__getitem__, default=0)
    return int(lag) if lag and correlation[lag] >= _CLEAR_PEAK else 1


def autocorrelation(values):
    """Autocorrelation up to half of a series, once a straight line is subtracted.

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
    return correlation / correlation[0]
