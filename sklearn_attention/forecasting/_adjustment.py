"""Seasonal adjustment: one additive pattern for each series, shrunk towards none."""

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from ._table import Table

# Seasons must have been seen so often, and show in the autocorrelation at this many of its
# standard errors.
_FEWEST_SEASONS, _LEAST_ERRORS = 3, 0.5
# Weight of a season relative to the following one.
_MEMORY = 0.8
# Series are padded to a common length in groups of at most this many values.
_GROUP = 250_000


@dataclass(frozen=True, eq=False)
class SeasonalAdjustment:
    """Seasonal patterns of the series of some origins, each learned before its origin.

    Origins share a row where their patterns are those of one series and equal: `patterns`
    (n_rows, n_phases) is what is subtracted in each phase, 0 where there is no season, `row`
    (n_origins,) the row of each origin, `series` (n_rows,) the series of each row.
    """

    patterns: np.ndarray
    row: np.ndarray
    series: np.ndarray
    season_length: float
    table: Table

    @classmethod
    def of(cls, origins, season_length):
        """Patterns of `origins.learned` steps, of all that are known where that is None."""
        table, m = origins.table, max(1, round(season_length))
        learned = origins.known if origins.learned is None else origins.learned
        most = 1 + learned.max(initial=0)
        pairs, place = np.unique(origins.series * most + learned, return_inverse=True)
        series, learned = pairs // most, pairs % most
        patterns = np.zeros((len(pairs), m))
        long = np.flatnonzero(learned >= _FEWEST_SEASONS * m) if m > 1 else learned[:0]
        for group in groups_of(learned[long]):
            own, n = long[group], learned[long[group]]
            values, steps = _first_steps(table, series[own], n)
            phase = phase_of(table.starts[series[own]][:, None] + steps, season_length)
            patterns[own] = patterns_of(values, n, phase, m)
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
    return np.array([table.values[i][own] for i, own in pairs]), steps


def phase_of(positions, season_length):
    """Phase of positions in a season, which need not have a whole number of steps."""
    n_phases = max(1, round(season_length))
    share = np.mod(positions, season_length) / season_length
    return np.minimum((share * n_phases + 1e-9).astype(np.int64), n_phases - 1)


def patterns_of(values, lengths, phase, m):
    r"""Seasonal patterns (n_series, m) of series, less their means.

    Zero where there are fewer than three seasons, or the autocorrelation at the lag of one is
    small. Of `values` and `phase` (n_series, n_steps) so many steps count as `lengths` says.

    Notes
    -----
    Classical decomposition: differences from the centred moving average over a season are
    averaged by phase, recent seasons more, and the pattern is shrunk by the share of its
    variance that is noise [1]_.

    References
    ----------
    .. [1] Miller, D. M. and Williams, D. (2003). Shrinkage estimators of time series seasonal
       factors and their effect on forecasting accuracy. International Journal of Forecasting
       19, 669-684.
    """
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
    """Whether centred series, zero after their ends, have a season of m steps, as a column."""
    size = np.abs(rest).max(axis=1, keepdims=True)
    n_points = next_fast_len(2 * rest.shape[1], real=True)
    spectrum = np.abs(np.fft.rfft(rest / np.where(size > 0, size, 1), n_points)) ** 2
    correlation = np.fft.irfft(spectrum, n_points)[:, : m + 1]
    correlation /= np.where(size > 0, correlation[:, :1], 1)
    error = np.sqrt((1 + 2 * np.sum(correlation[:, 1:m] ** 2, axis=1)) / lengths)
    enough = (size[:, 0] > 0) & (lengths >= _FEWEST_SEASONS * m)
    return (enough & (correlation[:, m] > _LEAST_ERRORS * error))[:, None]
