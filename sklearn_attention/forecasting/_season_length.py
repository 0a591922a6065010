"""Seasonal periods, and the length of windows, which depends on the season.

A season is the seasonal period: a number of steps after which a series is similar again, such
as 12 for months with a yearly pattern. A period need not be a whole number of steps: a year of
weeks has 52.18.

The period is the usual one of the frequency of the index, or otherwise the lag of the highest
peak of the autocorrelation. In all functions `table` is a `Table`, a panel of series, and
`observations` is a list with an array of the values of each series.
"""

import numpy as np
import pandas as pd

from .._base import warn_user
from .._validation import check_positive

# Steps in the season that goes with a calendar frequency, by the stem of pandas' alias: a year
# of months, quarters or weeks, a week of days.
_CALENDAR = {
    "MS": 12,
    "ME": 12,
    "M": 12,
    "BMS": 12,
    "BME": 12,
    "CBMS": 12,
    "CBME": 12,
    "WOM": 12,
    "LWOM": 12,
    "SMS": 24,
    "SME": 24,
    "QS": 4,
    "QE": 4,
    "Q": 4,
    "BQS": 4,
    "BQE": 4,
    "REQ": 4,
    "HYS": 2,
    "HYE": 2,
    "BHYS": 2,
    "BHYE": 2,
    "YS": 1,
    "YE": 1,
    "Y": 1,
    "BYS": 1,
    "BYE": 1,
    "RE": 1,
    "W": 52,
    "B": 5,
    "D": 7,
}
# Stems of the aliases that stand for the units of a DateOffset.
_STEM_OF_UNIT = {"years": "YS", "months": "MS", "weeks": "W", "days": "D"}
# Steps shorter than an hour add up to a day, steps shorter than a minute to an hour.
_DAY, _HOUR, _MINUTE = pd.Timedelta(1, "D"), pd.Timedelta(1, "h"), pd.Timedelta(1, "min")
_DAYS_IN_YEAR = 365.25
# The longest series has at least two seasons.
_MIN_SEASONS = 2
# A seasonal pattern is learned from at least three seasons.
MIN_SEASONS_TO_LEARN = 3
# Number of windows without which nothing is learned.
_MIN_WINDOWS = 2
# A peak of the autocorrelation below this value is no season.
_CLEAR_PEAK = 0.3
# Two seasons that differ by less than this fraction are one season.
_SEASON_TOLERANCE = 0.05
# The lookback "auto" is three seasons, at least the horizon and 10 steps, and at most a quarter
# of the longest series.
_SEASONS_IN_WINDOW, _MIN_LOOKBACK, _MAX_SHARE_OF_SERIES = 3, 10, 0.25
# A season is short if it has at most 24 steps. With windows of a year of weeks, learned from
# two or three years, errors become larger.
_MAX_SHORT_SEASON = 24


def choose_season_length(table, season_length):
    """Return the number of steps in a season, 1 for no season.

    A number is rounded. "auto" is the usual season of the frequency if the longest series has
    two of them, and otherwise the season that the autocorrelation of the longest series shows.
    """
    if not (isinstance(season_length, str) and season_length == "auto"):
        return max(1, round(check_positive("season_length", season_length)))
    usual_season = season_of_frequency(table.time.offset)
    if usual_season is not None and table.lengths.max() >= _MIN_SEASONS * usual_season:
        return usual_season
    return season_of_autocorrelation(mean_autocorrelation(table.observations))


def list_seasons(table, season_length):
    """List all seasons that the series may have, the one to be adjusted for first.

    A number is the only season, if it is shorter than the longest series. "auto" stands for the
    usual seasons of the frequency, such as a day and a week of hours, and for the season of the
    autocorrelation, which need not be a whole number of steps.

    Returns
    -------
    seasons : list of float
        Numbers of steps, [1.0] if there is no season.
    """
    max_length = table.lengths.max()
    if season_length != "auto":
        return [float(season_length) if season_length < max_length else 1.0]
    seasons = _usual_seasons(table.time.offset)
    correlation = mean_autocorrelation(table.observations)
    shown = season_of_autocorrelation(correlation)
    if shown > 1:
        shown = _refine_season(correlation, max_length, shown)
        # A multiple of a season is the same season again. On five sets errors are 0.994 of
        # those with multiples.
        is_multiple = any(
            abs(shown - max(1, round(shown / season)) * season) < _SEASON_TOLERANCE * season
            for season in seasons
        )
        can_be_learned = not seasons or max_length >= MIN_SEASONS_TO_LEARN * shown
        if can_be_learned and not is_multiple:
            seasons.append(shown)
    max_season = max_length / _MIN_SEASONS
    return [float(season) for season in seasons if 1 < season <= max_season] or [1.0]


def _usual_seasons(offset):
    """List the seasons that usually go with a frequency, such as a week and a year of days."""
    usual = season_of_frequency(offset)
    stem, n = _stem_and_multiple(offset)
    if usual is None:
        return []
    if stem == "W":
        return [_DAYS_IN_YEAR / 7 / n]  # A year is no whole number of weeks.
    if stem == "D":
        return [usual, _DAYS_IN_YEAR]
    # Steps that add up to a day also add up to a week.
    if isinstance(offset, pd.offsets.BusinessHour):
        return [usual, _business_days(offset) * usual]
    if isinstance(offset, pd.offsets.Tick) and _MINUTE <= pd.Timedelta(offset) < _DAY:
        return [usual, 7 * usual]
    return [usual]


def steps_in_a_year(time):
    """Return the mean number of steps of a TimeIndex in a year; infinite without dates."""
    if time.kind not in ("datetime", "period") or len(time) < 2:
        return np.inf
    ends = [time.index_between(i, i + 1) for i in (0, len(time) - 1)]
    first, last = (
        index.to_timestamp()[0] if time.kind == "period" else index[0] for index in ends
    )
    # The quotient of durations comes first: nanoseconds of 400 days times 365 do not fit into
    # 64 bits.
    return _DAYS_IN_YEAR * (len(time) - 1) * (_DAY / (last - first))


def _stem_and_multiple(offset):
    """Return the stem of the alias of a frequency, and the multiple of it: "2MS" is "MS", 2.

    Whole numbers of days have the stem "D", and whole weeks the stem "W". The stem is None
    without a frequency.
    """
    if offset is None:
        return None, 1
    alias = offset.freqstr.lstrip("0123456789")
    stem, n = alias.partition("-")[0].partition("+")[0], offset.n
    # A DateOffset has no alias, but an unit such as months.
    units = [key for key in offset.kwds or ["days"] if key in _STEM_OF_UNIT]
    if type(offset) is pd.DateOffset and len(units) == 1:
        stem, n = _STEM_OF_UNIT[units[0]], n * offset.kwds.get(units[0], 1)
    if isinstance(offset, pd.offsets.Tick) and pd.Timedelta(offset) % _DAY == pd.Timedelta(0):
        stem, n = "D", pd.Timedelta(offset) // _DAY
    days_in_week = _calendar_season(offset, stem) if stem in ("D", "B", "C") else None
    if days_in_week and n % days_in_week == 0:
        return "W", n // days_in_week
    return stem, n


def _business_days(offset):
    """Return the number of days of a week on which a frequency has business."""
    calendar = offset.kwds.get("calendar")
    return _CALENDAR["B"] if calendar is None else int(calendar.weekmask.sum())


def _calendar_season(offset, stem):
    """Return the usual season of a calendar frequency; None for other frequencies.

    The season is the number of steps if the multiple of the frequency were 1. The season of
    business hours is the number of hours of a day. `stem` is as of :func:`_stem_and_multiple`.
    """
    if isinstance(offset, pd.offsets.BusinessHour):
        spans = zip(offset.start, offset.end, strict=True)
        # Business that ends at the time of day at which it begins lasts 24 hours.
        return sum(
            (end.hour - start.hour + (end.minute - start.minute) / 60) % 24 or 24
            for start, end in spans
        )
    return _business_days(offset) if stem == "C" else _CALENDAR.get(stem)


def _refine_season(correlation, n_steps, season):
    """Refine a season to a fraction of a step, by peaks of the autocorrelation at multiples."""
    season = float(season)
    for count in range(2, n_steps // (2 * int(season)) + 1):
        lags = np.arange(round(count * season) - 1, round(count * season) + 2)
        if lags[-1] >= len(correlation) - 1:
            break
        peak = lags[correlation[lags].argmax()]
        # The vertex of the parabola through the peak and its neighbours is the refined peak.
        before, top, after = correlation[peak - 1 : peak + 2]
        curvature = before - 2 * top + after
        shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0
        season = (peak + np.clip(shift, -0.5, 0.5)) / count
    return season


def season_of_frequency(offset):
    """Return the steps in the usual season of a frequency; None if not a whole number."""
    stem, n = _stem_and_multiple(offset)
    n_single_steps = _calendar_season(offset, stem)
    if n_single_steps is not None:
        return int(n_single_steps // n) if n_single_steps % n == 0 else None
    if not isinstance(offset, pd.offsets.Tick):
        return None
    step = pd.Timedelta(offset)
    cycle = _DAY if step >= _MINUTE else _HOUR
    divides_cycle = cycle % step == pd.Timedelta(0) and step < cycle
    return int(cycle / step) if divides_cycle else None


def mean_autocorrelation(observations):
    """Average the autocorrelations of the longest series; None if they have none.

    Entry k of the result belongs to lag k.
    """
    max_length = max(map(len, observations))
    if max_length < 2 * _MIN_SEASONS:
        return None
    longest = [values for values in observations if len(values) == max_length]
    correlations = [autocorrelation(values) for values in longest]
    correlations = [correlation for correlation in correlations if correlation is not None]
    return np.mean(correlations, axis=0) if correlations else None


def season_of_autocorrelation(correlation):
    """Return the lag of the highest peak of an autocorrelation, 1 if there is no clear peak.

    The peak has to reach 0.3, and a second peak at twice its lag has to reach half of that.
    """
    if correlation is None or (correlation >= 0).all():
        return 1  # There is no peak beside the slope around lag 0.
    first_negative = np.flatnonzero(correlation < 0)[0]
    lags = np.arange(max(first_negative, 2), len(correlation) - 1)
    lags = lags[
        (correlation[lags] >= correlation[lags - 1])
        & (correlation[lags] >= correlation[lags + 1])
    ]
    lag = int(max(lags, key=correlation.__getitem__, default=0))
    # Series shorter than four seasons do not show the second peak.
    second = correlation[2 * lag - 1 : 2 * lag + 2].max(initial=-1.0)
    is_clear = 2 * lag >= len(correlation) or second >= _CLEAR_PEAK / 2
    return lag if lag and correlation[lag] >= _CLEAR_PEAK and is_clear else 1


def autocorrelation(values):
    """Return the autocorrelation of a series after a straight line is subtracted.

    Entry k belongs to lag k; the lags reach up to half of the series. The result is None if the
    residuals of the line are only rounding errors.
    """
    n = len(values)
    line = np.polynomial.Polynomial.fit(np.arange(n), values, 1)
    residuals = values - line(np.arange(n))
    size = np.abs(residuals).max()
    if size <= 1e-9 * np.abs(values).max():
        return None
    # Zeros at the end keep the circular correlation of the transform from wrapping around.
    spectrum = np.abs(np.fft.rfft(residuals / size, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[: n // _MIN_SEASONS + 1]
    return correlation / correlation[0]


def short_season(season_length):
    """Return the season if it is so short that two of them suffice, otherwise 1."""
    return season_length if season_length <= _MAX_SHORT_SEASON else 1


def min_series_length(horizon):
    """Return the fewest steps of a series from whose windows something can be learned."""
    return 2 * horizon + _MIN_WINDOWS


def choose_lookback(length, lookback, horizon, season_length, n_seasons=_SEASONS_IN_WINDOW):
    """Return the number of steps of a window.

    Parameters
    ----------
    length : int
        Number of steps of the longest series. If it is below :func:`min_series_length`, a
        ValueError is raised.
    lookback : int or "auto"
        A number shrinks, with a warning, if the longest series has no room for it. "auto" is
        `n_seasons` seasons, at least the horizon and 10 steps, and at most a quarter of the
        longest series, or a short season if that is longer.
    horizon : int
    season_length : int
    n_seasons : int, default=3
    """
    # There are two windows to learn from, and one after them that is held out.
    max_lookback = length - 2 * horizon - (_MIN_WINDOWS - 1)
    if max_lookback < 1:
        raise ValueError(
            f"the longest series has {length} sample{'s' if length > 1 else ''}, but "
            f"horizon={horizon} needs at least {min_series_length(horizon)}: pass a longer "
            "series or a smaller horizon."
        )
    if isinstance(lookback, str) and lookback == "auto":
        lookback = max(n_seasons * season_length, horizon, _MIN_LOOKBACK)
        limit = max(int(_MAX_SHARE_OF_SERIES * length), short_season(season_length))
        return max(1, min(lookback, limit, max_lookback))
    lookback = check_positive("lookback", lookback, integer=True)
    if lookback > max_lookback:
        warn_user(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: {max_lookback} is used instead. Pass longer series, or a "
            f"lookback of at most {max_lookback}."
        )
    return min(lookback, max_lookback)
