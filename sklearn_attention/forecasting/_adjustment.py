"""Seasonal adjustment: one additive pattern for each series, shrunk towards none."""

from dataclasses import dataclass

import numpy as np

from ._table import Table

# Seasons must have been seen so often, and show in the autocorrelation at this many of its
# standard errors.
_FEWEST_SEASONS, _LEAST_ERRORS = 3, 0.5
# Weight of a season relative to the following one.
_MEMORY = 0.8


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
        for pattern, i, n in zip(patterns, series, learned, strict=True) if m > 1 else ():
            phase = phase_of(table.starts[i] + np.arange(n), season_length)
            pattern[:] = pattern_of(table.values[i][:n], phase, m)
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
        steps = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
        values = self.table.values
        found = [values[self.series[row]][own] for row, own in zip(rows, steps, strict=True)]
        return np.array(found) - self.at(rows[:, None], steps)


def phase_of(positions, season_length):
    """Phase of positions in a season, which need not have a whole number of steps."""
    n_phases = max(1, round(season_length))
    share = np.mod(positions, season_length) / season_length
    return np.minimum((share * n_phases + 1e-9).astype(np.int64), n_phases - 1)


def pattern_of(values, phase, n_phases):
    r"""Seasonal pattern of a series, less the mean, (n_phases,).

    Zero where there are fewer than three seasons, or the autocorrelation at the lag of one is
    small.

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
    n, m = len(values), n_phases
    pattern = np.zeros(m)
    if m == 1 or n < _FEWEST_SEASONS * m or not _is_seasonal(values, m):
        return pattern
    window = np.r_[0.5, np.ones(m - 1), 0.5] / m if m % 2 == 0 else np.full(m, 1 / m)
    half = len(window) // 2
    middle = np.arange(half, n - half)
    sums = np.cumsum(np.r_[0.0, values - values.mean()])
    if m % 2:
        trend = (sums[m:] - sums[:-m]) / m
    else:
        trend = (sums[m:-1] - sums[: -m - 1] + sums[m + 1 :] - sums[1:-m]) / (2 * m)
    rest, phase = values[middle] - values.mean() - trend, phase[middle]
    weight = _MEMORY ** ((n - 1 - middle) // m)
    total = np.bincount(phase, weight, m)
    mean = np.bincount(phase, weight * rest, m) / np.maximum(total, 1e-300)
    counts = np.maximum(np.bincount(phase, minlength=m), 1)
    plain = np.bincount(phase, rest, m) / counts
    spread = np.bincount(phase, (rest - plain[phase]) ** 2, m) / counts
    noise = np.mean(np.bincount(phase, weight**2, m) / np.maximum(total, 1e-300) ** 2 * spread)
    pattern = mean - mean.mean()
    return pattern * max(0.0, 1 - (m - 3) / (m - 1) * noise / (pattern.var() + 1e-300))


def _is_seasonal(values, m):
    n, rest = len(values), values - values.mean()
    size = np.abs(rest).max()
    if size == 0:
        return False
    spectrum = np.abs(np.fft.rfft(rest / size, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[: m + 1]
    correlation = correlation / correlation[0]
    error = np.sqrt((1 + 2 * np.sum(correlation[1:m] ** 2)) / n)
    return correlation[m] > _LEAST_ERRORS * error
