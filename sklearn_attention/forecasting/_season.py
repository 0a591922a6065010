"""Seasonal periods, seasonal patterns, and the length of windows, which depends on the season.

A season is the seasonal period: a number of steps after which a series is similar again, such
as 12 for months with a yearly pattern. A period need not be a whole number of steps: a year of
weeks has 52.18. The phase of a step is its place within the season, a whole number; a seasonal
pattern is the mean difference of each phase from the level of the series.

The period is the usual one of the frequency of the index, or otherwise the lag of the highest
peak of the autocorrelation. In all functions `table` is a `Table`, a panel of series, and
`observations` is a list with an array of the values of each series.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.fft import next_fast_len

from .._base import warn_user
from .._validation import check_positive
from ._table import Table

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
# A peak of the autocorrelation below this value is no season.
_CLEAR_PEAK = 0.3
# Two seasons that differ by less than this fraction are one season.
_SEASON_TOLERANCE = 0.05
# A seasonal pattern is learned from at least three seasons.
_MIN_SEASONS_TO_LEARN = 3
# Weight of a season in the seasonal pattern, relative to the following season.
_DECAY_PER_SEASON = 0.8
# Series are padded to a common length in groups of at most this many values.
_MAX_GROUP_VALUES = 250_000
# The lookback "auto" is three seasons, at least the horizon and 10 steps, and at most a quarter
# of the longest series.
_SEASONS_IN_WINDOW, _MIN_LOOKBACK, _MAX_SHARE_OF_SERIES = 3, 10, 0.25
# A season is short if it has at most 24 steps. With windows of a year of weeks, learned from
# two or three years, errors become larger.
_MAX_SHORT_SEASON = 24
# Number of windows without which nothing is learned.
_MIN_WINDOWS = 2


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
        can_be_learned = not seasons or max_length >= _MIN_SEASONS_TO_LEARN * shown
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


@dataclass(frozen=True, eq=False)
class SeasonalAdjustment:
    """Seasonal patterns at origins, each learned only from steps before its origin.

    Origins of one series share a pattern if their patterns are learned from the same steps.

    Attributes
    ----------
    patterns : ndarray of shape (n_patterns, n_phases)
        Differences of phases from the mean; 0 for a series without a season.
    pattern_of_origin : ndarray of int of shape (n_origins,)
        Row of `patterns` of each origin.
    series : ndarray of int of shape (n_patterns,)
        Series of each pattern, as its position in `table`.
    season_length : float
        Number of steps in a season.
    table : Table
    """

    patterns: np.ndarray
    pattern_of_origin: np.ndarray
    series: np.ndarray
    season_length: float
    table: Table

    @classmethod
    def learn(cls, origins, season_length):
        """Learn the pattern of each origin from the first `n_pattern_steps` of its series."""
        table, n_phases = origins.table, max(1, round(season_length))
        # One pattern is learned for each distinct pair of series and number of steps. Pairs are
        # coded as whole numbers.
        n_steps = origins.n_pattern_steps
        base = 1 + n_steps.max(initial=0)
        pairs, pair_of_origin = np.unique(origins.series * base + n_steps, return_inverse=True)
        series, n_steps_of_pair = pairs // base, pairs % base
        patterns = np.zeros((len(pairs), n_phases))
        long = n_steps_of_pair[:0]
        if n_phases > 1:
            long = np.flatnonzero(n_steps_of_pair >= min_pattern_steps(n_phases))
        for group in groups_by_length(n_steps_of_pair[long]):
            pairs_of_group = long[group]
            lengths = n_steps_of_pair[pairs_of_group]
            values, steps = _first_values(table, series[pairs_of_group], lengths)
            starts = table.starts[series[pairs_of_group]][:, None]
            phase = phase_of(starts + steps, season_length)
            patterns[pairs_of_group] = seasonal_patterns(values, lengths, phase, n_phases)
        # Pairs of a series whose patterns are all 0 are merged into one.
        n_steps_of_pair[~patterns.any(axis=1)] = 0
        _, first_pair, merged = np.unique(
            series * base + n_steps_of_pair, return_index=True, return_inverse=True
        )
        return cls(
            patterns[first_pair],
            merged[pair_of_origin],
            series[first_pair],
            season_length,
            table,
        )

    def patterns_at(self, pattern, steps):
        """Return the values of patterns at steps counted from the start of their series.

        `pattern` (row numbers of `patterns`) and `steps` broadcast to the shape of the result.
        """
        positions = self.table.starts[self.series[pattern]] + steps
        return self.patterns[pattern, phase_of(positions, self.season_length)]

    def adjusted(self, pattern, lengths):
        """Return the first steps of series minus their patterns; (n_rows, lengths.max()).

        `pattern` and `lengths` (n_rows,) are the pattern and the number of steps of each row.
        The last step is repeated where a row is shorter than the longest.
        """
        values, steps = _first_values(self.table, self.series[pattern], lengths)
        return values - self.patterns_at(pattern[:, None], steps)


def min_pattern_steps(season_length):
    """Return the fewest steps that a seasonal pattern is learned from."""
    return _MIN_SEASONS_TO_LEARN * round(season_length) if season_length > 1 else 0


def move_by_pattern(origins, season_length, last):
    """Move the last known values to the phases of the steps to forecast.

    `last` (n_origins, n_last) are the last known values of each series. The result has the
    shape (n_origins, n_last, horizon).
    """
    season, n_last = SeasonalAdjustment.learn(origins, season_length), last.shape[1]
    pattern = season.pattern_of_origin[:, None]
    steps = origins.n_known[:, None] - n_last + np.arange(n_last)
    adjusted = last - season.patterns_at(pattern, np.maximum(steps, 0))
    return adjusted[:, :, None] + season.patterns_at(pattern, origins.target_steps)[:, None]


def groups_by_length(lengths):
    """Yield the positions of rows in groups of similar length, the longest rows first.

    A group that is padded to its longest row has a limited number of values.
    """
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        n_rows = max(1, _MAX_GROUP_VALUES // lengths[order[0]])
        yield order[:n_rows]
        order = order[n_rows:]


def _first_values(table, series, lengths):
    """Return the first values of series, and their steps; both (n_rows, lengths.max()).

    Row i has the first ``lengths[i]`` steps of ``series[i]``. Its last step is repeated.
    """
    steps = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
    pairs = zip(series, steps, strict=True)
    return np.array([table.observations[i][steps_of_row] for i, steps_of_row in pairs]), steps


def phase_of(positions, season_length):
    """Return the phase of positions on the index of time, from 0 to the rounded season - 1.

    The season need not be a whole number of steps.
    """
    n_phases = max(1, round(season_length))
    fraction = np.mod(positions, season_length) / season_length
    # The summand keeps rounding from moving a position to the phase before its own.
    return np.minimum((fraction * n_phases + 1e-9).astype(np.int64), n_phases - 1)


def seasonal_patterns(values, lengths, phase, n_phases):
    """Learn seasonal patterns by classical decomposition, with shrinkage.

    Differences from the centred moving average over a season are averaged by phase, recent
    seasons with more weight. The pattern is multiplied by 1 - (m - 3) / (m - 1) times the share
    of its variance that is noise, with m phases [1]_.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_steps)
    lengths : ndarray of int of shape (n_series,)
        Number of steps of each series; later values are ignored.
    phase : ndarray of int of shape (n_series, n_steps)
        Phase of each step.
    n_phases : int
        Number m of phases, which is the rounded number of steps in a season.

    Returns
    -------
    patterns : ndarray of shape (n_series, n_phases)
        The mean over phases is 0. All are 0 for a series of fewer than three seasons, or
        without a positive autocorrelation at a lag of one season.

    References
    ----------
    .. [1] Miller, D. M. and Williams, D. (2003). Shrinkage estimators of time series seasonal
       factors and their effect on forecasting accuracy. International Journal of Forecasting
       19, 669-684.
    """
    m = n_phases
    row, step, difference = _without_trend(values, lengths, m)
    # A cell is a phase of a series.
    cell, n_cells = row * m + phase[row, step], len(values) * m
    weight = _DECAY_PER_SEASON ** ((lengths[row] - 1 - step) // m)

    def total_of(weights=None):
        """Sum the weights in each cell, or count its steps."""
        return np.bincount(cell, weights, n_cells)

    total, counts = total_of(weight), np.maximum(total_of(), 1)
    total[total == 0] = 1.0  # A series without a season has no steps here.
    variance = total_of((difference - (total_of(difference) / counts)[cell]) ** 2) / counts
    # Variance of the weighted mean of a phase, averaged over phases.
    noise = np.mean((total_of(weight**2) / total**2 * variance).reshape(-1, m), axis=1)
    pattern = (total_of(weight * difference) / total).reshape(-1, m)
    pattern -= pattern.mean(axis=1, keepdims=True)
    shrinkage = 1 - (m - 3) / (m - 1) * noise / (pattern.var(axis=1) + 1e-300)
    return pattern * np.maximum(0.0, shrinkage)[:, None]


def _without_trend(values, lengths, m):
    """Subtract the centred moving average over m steps from series with a season of m steps.

    `values` and `lengths` are as for :func:`seasonal_patterns`.

    Returns
    -------
    row, step : ndarray of int of shape (n_differences,)
        Series and step of each difference. Steps within half a season of an end have none.
    difference : ndarray of shape (n_differences,)
    """
    steps = np.arange(values.shape[1])
    is_step = steps < lengths[:, None]
    centered = values - np.mean(values, axis=1, keepdims=True, where=is_step)
    centered[~is_step] = 0.0
    half = m // 2
    has_average = (steps >= half) & (steps < lengths[:, None] - half)
    row, step = np.nonzero(has_average & _are_seasonal(centered, lengths, m)[:, None])
    # A sum over consecutive steps is a difference of cumulative sums.
    sums = np.cumsum(np.pad(centered, ((0, 0), (1, 0))), axis=1)
    sum_before, sum_after = sums[row, step - half], sums[row, step + half + 1]
    if m % 2 == 0:
        # An even season has m + 1 steps around its centre: the outer two count half.
        sum_before = (sum_before + sums[row, step - half + 1]) / 2
        sum_after = (sum_after + sums[row, step + half]) / 2
    moving_average = (sum_after - sum_before) / m
    return row, step, centered[row, step] - moving_average


def _are_seasonal(centered, lengths, m):
    """Return True for a series with a season of m steps; (n_series,).

    It has at least three seasons, and a positive autocorrelation at lag m. Each row of
    `centered` (n_series, n_steps) has mean 0, and is 0 from the length of its series on.
    """
    size = np.abs(centered).max(axis=1, keepdims=True)
    # Zeros at the end keep the circular correlation of the transform from wrapping around.
    n_points = next_fast_len(2 * centered.shape[1], real=True)
    spectrum = np.abs(np.fft.rfft(centered / np.where(size > 0, size, 1), n_points)) ** 2
    correlation = np.fft.irfft(spectrum, n_points)[:, : m + 1]
    is_long = lengths >= _MIN_SEASONS_TO_LEARN * m
    return (size[:, 0] > 0) & is_long & (correlation[:, m] > 0)


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
