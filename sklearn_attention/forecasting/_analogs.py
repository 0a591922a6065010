"""Analogs: kernel-weighted averages of what followed similar windows of all series.

Forecasts: Nadaraya-Watson regression on windows. The query is the window of the last `lookback`
steps of a series. The keys are windows of training series, which are remembered with the steps
that followed them, the values. All are relative to a level and in a unit of their own (see
`Windows`). A memory is the set of windows that a series is forecast from: all of them, or those
of the series.

Learns: the lookback, the memory and the bandwidth of least leave-one-out error
(`_analog_search`).

Costs: the distances of a query from all windows of its memory, at most 20 000.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._column_stats import replace_zeros
from ..attention._tables import attention_weights, heaviest, weighted_quantiles
from ..kernels import Kernel
from ._origins import SEASONAL, STANDARD, Windows
from ._table import by_group, chunks, spread_over_phases

# A series needs 20 windows to be forecast from its own.
MIN_OWN_WINDOWS = 20
# At most 20 000 windows of a series are remembered, or of all series if these are averaged
# together. On five sets of 8000 to 330 000 windows errors are 0.98 of those with all windows.
# The latest windows have less held-out error than evenly spread ones at 2 of 30 cuts.
MAX_WINDOWS = 20_000
# A search for bandwidths predicts from at most 4000 windows.
MAX_KEYS = 4000
# At most 4 million weights of windows are computed at once in a forecast.
_MAX_WEIGHTS = 4_000_000
# Windows whose standard deviation is less than 0.1 times the median one of their series are no
# analogs: what followed them would be measured in a unit close to 0.
_MIN_VARIATION = 0.1
# Windows before a jump are no analogs either. There the ratio of the standard deviation of the
# window to that of the window and what followed together is less than 0.3 times the median
# ratio.
_MIN_VARIATION_RATIO = 0.3


@dataclass(frozen=True, eq=False)
class Analogs:
    """Windows of training series in units of their own, with the steps that followed them.

    Attributes
    ----------
    lookback : int
        Steps of a window.
    kernel : Kernel
    normalize : str or None
        Level and unit of windows, as in `Windows.at_origins`.
    scale : ndarray of shape (n_series,)
        Unit of each training series, in which windows are if `normalize` is "last" or
        "seasonal" and there are several series.
    bandwidth : ndarray of shape (n_columns,)
        Divides the columns of the keys.
    pooled : bool
        Whether series are forecast from the windows of all series, or from their own.
    keys : ndarray of shape (n_windows, n_columns)
        Steps of the windows, features of these steps that are known only up to now, and known
        features of the steps that followed.
    values : ndarray of shape (n_windows, horizon)
        What followed, in units of the window.
    series, steps : ndarray of int of shape (n_windows,)
        Training series, ascending, and position of the first step that followed.
    season : int
        Number of steps in a season.
    seasonal_share : float
        Share of the last season, relative to its mean, that is subtracted from values.
    last_share : float or ndarray of shape (horizon,)
        Share of the deviation of the last value from its level that is subtracted from values.
    """

    lookback: int
    kernel: Kernel
    normalize: str | None
    scale: np.ndarray
    bandwidth: np.ndarray | None = None
    pooled: bool = True
    keys: np.ndarray | None = None
    values: np.ndarray | None = None
    series: np.ndarray | None = None
    steps: np.ndarray | None = None
    season: int = 1
    seasonal_share: float = 1.0
    last_share: float | np.ndarray = 0.0

    def fit(self, origins, max_windows=MAX_WINDOWS):
        """Remember the windows before `origins` with what followed them.

        Each memory, the windows of all series or of each series, has at most `max_windows`,
        spread evenly over time and over the phases of any season. `origins` are ordered by
        series, and so are the windows. Windows that hardly vary are left out.
        """
        group = np.zeros_like(origins.series) if self.pooled else origins.series
        rows = [rows[spread_over_phases(len(rows), max_windows)] for _, rows in by_group(group)]
        windows = self.windows(self.comparable(origins.take(np.concatenate(rows))))
        return replace(
            self,
            keys=windows.keys,
            values=windows.values,
            series=windows.origins.series,
            steps=first_steps(windows.origins),
        )

    def forecast(self, origins, levels=None):
        """Forecast the mean and quantiles of what follows.

        Parameters
        ----------
        origins : Origins
        levels : sequence of float, default=None
            Levels of the quantiles; None for no quantiles.

        Returns
        -------
        mean : ndarray of shape (n_origins, horizon)
        quantiles : ndarray of shape (n_origins, horizon, n_levels) or None
        """
        queries, quantiles = self.windows(origins), None
        mean = np.empty((len(origins), origins.horizon))
        if levels is not None:
            quantiles = np.empty((*mean.shape, len(levels)))
        for rows, memory in self.memories(origins):
            values = self.values[memory]
            # Averages of differences from one value have no rounding errors if all are equal.
            first, differences = values[0], values - values[0]
            for chunk in chunks(rows, _MAX_WEIGHTS, len(values)):
                weights = self.weights(memory, queries.keys[chunk])
                mean[chunk] = first + weights @ differences
                if levels is not None:
                    quantiles[chunk] = np.stack(
                        [weighted_quantiles(column, weights, levels) for column in values.T],
                        axis=1,
                    )
        if levels is not None:
            quantiles = queries.restore(quantiles)
        return queries.restore(mean), quantiles

    def heaviest(self, origins, k):
        """Find the `k` windows with the largest weights in each forecast.

        Returns
        -------
        rows, windows : ndarray of int of shape (n,)
            Number of the origin, ascending, and of the window, the heaviest first.
        weights : ndarray of shape (n,)
        """
        queries, rows, windows, weights = self.windows(origins).keys, [], [], []
        for memory_rows, memory in self.memories(origins):
            numbers = np.arange(len(self.keys))[memory]
            top, top_weights = heaviest(
                partial(self.weights, memory), queries[memory_rows], len(numbers), k
            )
            rows.append(np.repeat(memory_rows, top.shape[1]))
            windows.append(numbers[top.ravel()])
            weights.append(top_weights.ravel())
        rows = np.concatenate(rows)
        order = np.argsort(rows, kind="stable")
        return rows[order], np.concatenate(windows)[order], np.concatenate(weights)[order]

    def windows(self, origins):
        """Make the Windows before origins with the level and unit of these analogs."""
        # Series of different sizes are only alike in units of their own.
        has_series_unit = self.normalize in ("last", "seasonal") and len(self.scale) > 1
        unit = origins.series_units(self.scale)[:, None] if has_series_unit else 1.0
        return Windows.at_origins(
            origins,
            self.lookback,
            self.normalize,
            unit,
            self.season,
            self.seasonal_share,
            self.last_share,
        )

    def with_seasonal_share(self, origins):
        """Fit `seasonal_share` to what followed windows at `origins`, by least squares."""
        if self.normalize not in SEASONAL:
            return self
        origins = self.sample(origins, MAX_KEYS)
        without_season = replace(self, seasonal_share=0.0).windows(origins)
        with_season = replace(self, seasonal_share=1.0).windows(origins)
        season = (with_season.level - without_season.level) / without_season.unit
        share = np.sum(season * without_season.values) / replace_zeros(np.sum(season**2))
        return replace(self, seasonal_share=float(np.clip(share, 0, 1)))

    def sample(self, origins, max_windows):
        """Choose at most `max_windows` of the origins, and leave out those that are no analogs.

        They are spread evenly over time and over the phases of any season.
        """
        return self.comparable(origins.take(spread_over_phases(len(origins), max_windows)))

    def comparable(self, origins):
        """Leave out origins whose windows vary so little that they are no analogs.

        This concerns windows that are divided by their standard deviation: what followed is in
        the same unit, and would be huge. All origins are returned in other units.
        """
        if self.normalize not in STANDARD:
            return origins
        past, later = origins.past(self.lookback), origins.targets()
        std, weight = past.std(axis=1), past.shape[1] / (past.shape[1] + later.shape[1])
        # The variance of both together is the mean of their variances plus that of their means.
        difference = past.mean(axis=1) - later.mean(axis=1)
        variance = weight * std**2 + (1 - weight) * later.var(axis=1)
        joint_std = np.sqrt(variance + weight * (1 - weight) * difference**2)
        ratio = np.where(joint_std > 0, std / replace_zeros(joint_std), 1.0)
        is_analog = np.empty(len(origins), dtype=bool)
        for _, rows in by_group(origins.series):
            varies = std[rows] >= _MIN_VARIATION * np.median(std[rows])
            min_ratio = _MIN_VARIATION_RATIO * np.median(ratio[rows])
            has_no_jump = varies & (ratio[rows] >= min_ratio)
            is_analog[rows] = has_no_jump if has_no_jump.any() else varies
        return origins.take(is_analog)

    def memories(self, origins):
        """Yield rows of origins, and the numbers of the windows that they are forecast from.

        Origins in a series with fewer than 20 windows are forecast from those of all series.
        """
        source = np.where(self.pooled, -1, origins.training_index)
        counts = np.bincount(self.series, minlength=len(self.scale))
        source = np.where(counts[source] >= MIN_OWN_WINDOWS, source, -1)
        for i, rows in by_group(source):
            if i >= 0:
                yield rows, slice(*np.searchsorted(self.series, [i, i + 1]))
            else:
                yield rows, spread_over_phases(len(self.keys), MAX_WINDOWS)

    def weights(self, memory, queries):
        """Compute weights of the windows of a memory for queries; (n_queries, n_windows).

        Rows sum to 1.
        """
        keys = self.keys[memory]
        weights = attention_weights(queries, keys, self.kernel, bandwidth=self.bandwidth)
        refuse_negative((weights < 0).any(), self.kernel)
        return weights


def first_steps(origins):
    """Return the position of the first step to forecast on the time index; (n_origins,)."""
    return origins.table.starts[origins.series] + origins.n_known


def refuse_negative(negative, kernel):
    """Raise if `negative`, whether a kernel took negative values, is True."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, which cannot be weights of what "
            "followed similar windows: choose a positive kernel, such as 'gaussian'."
        )
