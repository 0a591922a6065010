"""Seasonal patterns of series, and series without their patterns.

A season is the seasonal period (`_season_length`). The phase of a step is its place within the
season, a whole number; a seasonal pattern is the mean difference of each phase from the level
of the series. A pattern of weeks, whose season has 52.18 steps, has 52 phases.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from ._season_length import MIN_SEASONS_TO_LEARN
from ._table import Table

# Weight of a season in the seasonal pattern, relative to the following season.
_DECAY_PER_SEASON = 0.8
# Series are padded to a common length in groups of at most this many values.
_MAX_GROUP_VALUES = 250_000


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
    return MIN_SEASONS_TO_LEARN * round(season_length) if season_length > 1 else 0


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
    is_long = lengths >= MIN_SEASONS_TO_LEARN * m
    return (size[:, 0] > 0) & is_long & (correlation[:, m] > 0)
