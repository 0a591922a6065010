"""Length of a season, by the frequency or by the autocorrelation."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.fft import next_fast_len

from .._validation import check_positive
from ._table import Table

# Steps in the season that goes with a calendar frequency, by the stem of pandas' alias: a year
# of months, quarters or weeks, a week of days.
_CALENDAR = {
    "MS": 12, "ME": 12, "M": 12, "BMS": 12, "BME": 12, "CBMS": 12, "CBME": 12, "WOM": 12,
    "LWOM": 12, "SMS": 24, "SME": 24,
    "QS": 4, "QE": 4, "Q": 4, "BQS": 4, "BQE": 4, "REQ": 4,
    "HYS": 2, "HYE": 2, "BHYS": 2, "BHYE": 2,
    "YS": 1, "YE": 1, "Y": 1, "BYS": 1, "BYE": 1, "RE": 1,
    "W": 52, "B": 5, "D": 7,
}  # fmt: skip
# Stems of the units of a DateOffset.
_UNITS = {"years": "YS", "months": "MS", "weeks": "W", "days": "D"}
# Steps shorter than an hour add up to a day, steps shorter than a minute to an hour.
_DAY, _HOUR, _MINUTE = pd.Timedelta(1, "D"), pd.Timedelta(1, "h"), pd.Timedelta(1, "min")
_FEWEST_SEASONS = 2
# A peak of the autocorrelation counts as a season from here on.
_CLEAR_PEAK = 0.3
_YEAR = 365.25  # days
# Seasons that differ by less than this share are one.
_ALIKE = 0.05
# There must be so many seasons.
_FEWEST_LEARNED = 3
# Weight of a season relative to the following one.
_MEMORY = 0.8
# Series are padded to a common length in groups of at most this many values.
_GROUP = 250_000


def season_of(table, season_length):
    """Number of steps in a season, 1 if there is none."""
    # "auto" is the usual season of the frequency (a year of months, quarters or weeks, a week
    # of days, five business days, a day of hours or minutes), if the longest series has two of
    # them, and otherwise that of the autocorrelation of the longest series.
    if not (isinstance(season_length, str) and season_length == "auto"):
        return max(1, round(check_positive("season_length", season_length)))
    usual = season_of_frequency(table.time.offset)
    if usual is not None and table.lengths.max() >= _FEWEST_SEASONS * usual:
        return usual
    return season_shown(mean_autocorrelation(table.values))


def seasons_of(table, season_length):
    """All seasons that series may have, the one that is adjusted for first; [1.0] if none."""
    # A number has to be shorter than the longest series. "auto" is the usual season of the
    # frequency, which is adjusted for, a longer usual one, and that of the autocorrelation of
    # the longest series, which need not be a whole number of steps. A multiple of another
    # season is that season again. On five sets errors are 0.994 of those with multiples.
    longest, offset, seasons = table.lengths.max(), table.time.offset, []
    if season_length != "auto":
        return [float(season_length) if season_length < longest else 1.0]
    usual, (stem, n) = season_of_frequency(offset), _steps_of(offset)
    if usual is not None and stem == "W":
        seasons = [_YEAR / 7 / n]
    elif usual is not None:
        seasons = [usual, _YEAR] if stem == "D" else [usual]
        if isinstance(offset, pd.offsets.BusinessHour):
            seasons.append(_days_of(offset) * usual)
        elif isinstance(offset, pd.offsets.Tick) and _MINUTE <= pd.Timedelta(offset) < _DAY:
            seasons.append(7 * usual)
    correlation = mean_autocorrelation(table.values)
    shown = season_shown(correlation)
    if shown > 1:
        shown = _refined(correlation, longest, shown)
        is_multiple = any(
            abs(shown - max(1, round(shown / season)) * season) < _ALIKE * season
            for season in seasons
        )
        is_learned = not seasons or longest >= _FEWEST_LEARNED * shown
        if is_learned and not is_multiple:
            seasons.append(shown)
    most = longest / _FEWEST_SEASONS
    return [float(season) for season in seasons if 1 < season <= most] or [1.0]


def steps_in_a_year(time):
    """Mean number of steps of an index in a year; infinite without dates."""
    if time.kind not in ("datetime", "period") or len(time) < 2:
        return np.inf
    ends = [time.between(i, i + 1) for i in (0, len(time) - 1)]
    first, last = (own.to_timestamp()[0] if time.kind == "period" else own[0] for own in ends)
    # A ratio first: nanoseconds of 400 days times 365 do not fit into 64 bits.
    return _YEAR * (len(time) - 1) * (_DAY / (last - first))


def _steps_of(offset):
    """Stem of a frequency, and number of its steps; whole days and weeks are named as such."""
    if offset is None:
        return None, 1
    # A DateOffset has no alias.
    stem, n = offset.freqstr.lstrip("0123456789").partition("-")[0].partition("+")[0], offset.n
    units = [key for key in offset.kwds or ["days"] if key in _UNITS]
    if type(offset) is pd.DateOffset and len(units) == 1:
        stem, n = _UNITS[units[0]], n * offset.kwds.get(units[0], 1)
    if isinstance(offset, pd.offsets.Tick) and pd.Timedelta(offset) % _DAY == pd.Timedelta(0):
        stem, n = "D", pd.Timedelta(offset) // _DAY
    week = _usual(offset, stem) if stem in ("D", "B", "C") else None
    return ("W", n // week) if week and n % week == 0 else (stem, n)


def _days_of(offset):
    """Days of a week on which there is business."""
    calendar = offset.kwds.get("calendar")
    return _CALENDAR["B"] if calendar is None else int(calendar.weekmask.sum())


def _usual(offset, stem):
    """Steps in the season that goes with a calendar frequency; None for others."""
    if isinstance(offset, pd.offsets.BusinessHour):
        spans = zip(offset.start, offset.end, strict=True)
        # Hours of a day; business that ends when it begins never ends.
        return sum((b.hour - a.hour + (b.minute - a.minute) / 60) % 24 or 24 for a, b in spans)
    return _days_of(offset) if stem == "C" else _CALENDAR.get(stem)


def _refined(correlation, n_steps, season):
    """Refine a season to a fraction of a step, by peaks of the autocorrelation at multiples."""
    season = float(season)
    for count in range(2, n_steps // (2 * int(season)) + 1):
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
    stem, n = _steps_of(offset)
    steps = _usual(offset, stem)
    if steps is not None:
        return int(steps // n) if steps % n == 0 else None
    if not isinstance(offset, pd.offsets.Tick):
        return None
    step = pd.Timedelta(offset)
    cycle = _DAY if step >= _MINUTE else _HOUR
    return int(cycle / step) if cycle % step == pd.Timedelta(0) and step < cycle else None


def mean_autocorrelation(values):
    """Average the autocorrelations of the longest of some series; None without any."""
    longest = max(map(len, values))
    if longest < 2 * _FEWEST_SEASONS:
        return None
    every = [autocorrelation(series) for series in values if len(series) == longest]
    shown = [correlation for correlation in every if correlation is not None]
    return np.mean(shown, axis=0) if shown else None


def season_shown(correlation):
    """Find the lag of the highest peak of an autocorrelation, which is the season it shows.

    1 if no peak reaches 0.3, or if a second one, at twice the lag, does not reach half of this.
    """
    if correlation is None or (correlation >= 0).all():
        return 1  # there is nothing, or it never leaves the slope around lag 0
    below = np.flatnonzero(correlation < 0)
    lags = np.arange(max(below[0], 2), len(correlation) - 1)
    lags = lags[
        (correlation[lags] >= correlation[lags - 1])
        & (correlation[lags] >= correlation[lags + 1])
    ]
    lag = int(max(lags, key=correlation.__getitem__, default=0))
    # Series shorter than four seasons do not show the second one.
    second = correlation[2 * lag - 1 : 2 * lag + 2].max(initial=-1.0)
    is_clear = 2 * lag >= len(correlation) or second >= _CLEAR_PEAK / 2
    return lag if lag and correlation[lag] >= _CLEAR_PEAK and is_clear else 1


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


@dataclass(frozen=True, eq=False)
class SeasonalAdjustment:
    """Seasonal patterns of the series of some origins, each learned before its origin."""

    # Origins share a row where their patterns are those of one series and equal: `patterns`
    # (n_rows, n_phases) is subtracted in each phase, 0 where there is no season; `row`
    # (n_origins,) is the row of each origin, `series` (n_rows,) the series of each row.

    patterns: np.ndarray
    row: np.ndarray
    series: np.ndarray
    season_length: float
    table: Table

    @classmethod
    def of(cls, origins, season_length):
        """Patterns learned from the first `origins.season_known` steps."""
        table, m = origins.table, max(1, round(season_length))
        learned = origins.season_known
        most = 1 + learned.max(initial=0)
        pairs, place = np.unique(origins.series * most + learned, return_inverse=True)
        series, learned = pairs // most, pairs % most
        patterns = np.zeros((len(pairs), m))
        long = np.flatnonzero(learned >= pattern_length(m)) if m > 1 else learned[:0]
        for group in groups_of(learned[long]):
            rows, n = long[group], learned[long[group]]
            values, steps = _first_steps(table, series[rows], n)
            phase = phase_of(table.starts[series[rows]][:, None] + steps, season_length)
            patterns[rows] = patterns_of(values, n, phase, m)
        # Without a season nothing depends on how much it was learned from.
        learned[~patterns.any(axis=1)] = 0
        _, rows, merged = np.unique(
            series * most + learned, return_index=True, return_inverse=True
        )
        return cls(patterns[rows], merged[place], series[rows], season_length, table)

    def at(self, row, steps):
        """The patterns of rows at steps of their series; both are broadcast."""
        phase = phase_of(self.table.starts[self.series[row]] + steps, self.season_length)
        return self.patterns[row, phase]

    def adjusted(self, rows, lengths):
        """The first steps of the series of some rows without their patterns.

        (n_rows, longest); the last of so many steps is repeated where a row is longer.
        """
        values, steps = _first_steps(self.table, self.series[rows], lengths)
        return values - self.at(rows[:, None], steps)


def pattern_length(season_length):
    """Return the fewest steps that a seasonal pattern is learned from."""
    return _FEWEST_LEARNED * round(season_length) if season_length > 1 else 0


def present_levels(origins, season_length, last):
    """Move the last values (n_origins, n_last) by the pattern; (n_origins, n_last, horizon)."""
    season, n_last = SeasonalAdjustment.of(origins, season_length), last.shape[1]
    row, steps = season.row[:, None], origins.known[:, None] - n_last + np.arange(n_last)
    level = last - season.at(row, np.maximum(steps, 0))
    return level[:, :, None] + season.at(row, origins.steps)[:, None]


def groups_of(lengths):
    """Rows in groups of similar length that together are not too many values, longest first."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        most = max(1, _GROUP // lengths[order[0]])
        yield order[:most]
        order = order[most:]


def _first_steps(table, series, lengths):
    """The first steps of some series, the last repeated, and their positions."""
    steps = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
    pairs = zip(series, steps, strict=True)
    return np.array([table.values[i][columns] for i, columns in pairs]), steps


def phase_of(positions, season_length):
    """Phase of positions in a season, which need not have a whole number of steps."""
    n_phases = max(1, round(season_length))
    share = np.mod(positions, season_length) / season_length
    return np.minimum((share * n_phases + 1e-9).astype(np.int64), n_phases - 1)


def patterns_of(values, lengths, phase, m):
    """Seasonal patterns (n_series, m) of series, less their means; 0 without a season."""
    # There is none in fewer than three seasons, or without autocorrelation at a lag of one. The
    # first `lengths` of `values` and `phase` (n_series, n_steps) count. By classical
    # decomposition differences from the centred moving average over a season are averaged by
    # phase, recent seasons more, and shrunk by the share of their variance that is noise
    # (Miller and Williams 2003, International Journal of Forecasting 19, 669-684).
    steps, n_cells = np.arange(values.shape[1]), len(values) * m
    there = steps < lengths[:, None]
    rest = values - np.mean(values, axis=1, keepdims=True, where=there)
    rest[~there] = 0.0
    half = m // 2
    inside = (
        (steps >= half) & (steps < lengths[:, None] - half) & _are_seasonal(rest, lengths, m)
    )
    row, middle = np.nonzero(inside)
    sums = np.cumsum(np.pad(rest, ((0, 0), (1, 0))), axis=1)
    first, last = sums[row, middle - half], sums[row, middle + half + 1]
    if m % 2 == 0:
        first = (first + sums[row, middle - half + 1]) / 2
        last = (last + sums[row, middle + half]) / 2
    rest = rest[row, middle] - (last - first) / m
    cell = row * m + phase[row, middle]
    weight = _MEMORY ** ((lengths[row] - 1 - middle) // m)

    def total_of(weights=None):
        return np.bincount(cell, weights, n_cells)

    total, counts = total_of(weight), np.maximum(total_of(), 1)
    total[total == 0] = 1.0  # of series without a season
    spread = total_of((rest - (total_of(rest) / counts)[cell]) ** 2) / counts
    noise = np.mean((total_of(weight**2) / total**2 * spread).reshape(-1, m), axis=1)
    pattern = (total_of(weight * rest) / total).reshape(-1, m)
    pattern -= pattern.mean(axis=1, keepdims=True)
    share = 1 - (m - 3) / (m - 1) * noise / (pattern.var(axis=1) + 1e-300)
    return pattern * np.maximum(0.0, share)[:, None]


def _are_seasonal(rest, lengths, m):
    """True for centred series, 0 after their ends, with a season of m steps; a column."""
    size = np.abs(rest).max(axis=1, keepdims=True)
    n_points = next_fast_len(2 * rest.shape[1], real=True)
    spectrum = np.abs(np.fft.rfft(rest / np.where(size > 0, size, 1), n_points)) ** 2
    correlation = np.fft.irfft(spectrum, n_points)[:, : m + 1]
    enough = (size[:, 0] > 0) & (lengths >= _FEWEST_LEARNED * m)
    return (enough & (correlation[:, m] > 0))[:, None]
