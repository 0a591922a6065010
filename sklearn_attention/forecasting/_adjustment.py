"""Seasonal adjustment: one additive pattern for each series, shrunk towards none."""

from dataclasses import dataclass

import numpy as np

# Seasons must have been seen so often, and show in the autocorrelation at this many of its
# standard errors.
_FEWEST_SEASONS, _LEAST_ERRORS = 3, 0.5
# Weight of a season relative to the following one.
_MEMORY = 0.8


@dataclass(frozen=True, eq=False)
class SeasonalAdjustment:
    """Seasonal patterns of several series.

    Attributes
    ----------
    patterns : ndarray of shape (n_series, n_phases)
        What is subtracted in each phase of the season; 0 where there is no season.
    season_length : float
        Steps in a season.
    phases : ndarray of int of shape (n_series,)
        Position of the first step of each series.
    """

    patterns: np.ndarray
    season_length: float
    phases: np.ndarray

    @classmethod
    def of(cls, values, season_length, phases):
        """Patterns of series.

        Parameters
        ----------
        values : list of ndarray of shape (n_steps,)
        season_length : float
        phases : ndarray of int of shape (n_series,)

        Returns
        -------
        adjustment : SeasonalAdjustment
        """
        n_phases = max(1, round(season_length))
        patterns = np.zeros((len(values), n_phases))
        for i, own in enumerate(values):
            phase = phase_of(phases[i] + np.arange(len(own)), season_length)
            patterns[i] = pattern_of(own, phase, n_phases)
        return cls(patterns, season_length, phases)

    def at(self, series, steps):
        """The patterns at some steps.

        Parameters
        ----------
        series : ndarray of int
        steps : ndarray of int
            Positions within each series; both are broadcast.

        Returns
        -------
        values : ndarray
        """
        phase = phase_of(self.phases[series] + steps, self.season_length)
        return self.patterns[series, phase]


def phase_of(positions, season_length):
    """Phase of positions in a season, which need not have a whole number of steps."""
    n_phases = max(1, round(season_length))
    share = np.mod(positions, season_length) / season_length
    return np.minimum((share * n_phases + 1e-9).astype(np.int64), n_phases - 1)


def pattern_of(values, phase, n_phases):
    r"""Seasonal pattern of a series, less the mean.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
    phase : ndarray of int of shape (n_steps,)
    n_phases : int

    Returns
    -------
    pattern : ndarray of shape (n_phases,)
        Zero where the series is shorter than three seasons, or its autocorrelation at that lag
        is small.

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
