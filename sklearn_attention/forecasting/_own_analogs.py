"""Kernel averages of what followed similar windows of the same series, as a candidate.

Forecasts: the average of what followed the windows of a series, after Lorenz (1969, Journal of
the Atmospheric Sciences 26, 636-646), who called them analogs. A window at the distance d from
the last window has the weight exp(-d² / (2 t² d_1²)), with a temperature t. Distances are
divided by that of the nearest window, d_1, so that several windows have weight even if all are
far. Windows and targets are relative to the mean of the last season of the window.

Learns: the temperature t of least squared error at validation origins, one for all series. The
forecast at a validation origin leaves out windows whose targets overlap with its block.

Costs: the distances of each origin's window from all windows of its series, at most 4000.
"""

from dataclasses import dataclass, replace

import numpy as np

from ._analog_search import PAIRS, normalized, squared_distances
from ._analogs import MAX_KEYS, MIN_OWN_WINDOWS
from ._origins import Origins, Windows
from ._table import Table, by_group, chunks, spread_over_phases

# Temperatures that are tried, in distances of the nearest window.
_TEMPERATURES = (0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class OwnAnalogs:
    """Kernel average of what followed similar windows of the same series.

    Attributes
    ----------
    lookback : int
        Number of steps in a window.
    season_length : float
        Number of steps in a season.
    temperature : float
        Width of the Gaussian weights, in distances of the nearest window.
    values : list of ndarray or None
        Training series; None before the fit.
    """

    lookback: int
    season_length: float
    temperature: float = 1.0
    values: list | None = None

    @property
    def names(self):
        """Names of the forecasts."""
        return (f"analogs of {self.lookback} steps",)

    def fit(self, validation):
        """Return a fitted candidate, and out-of-fold forecasts (n_validation, 1, horizon)."""
        tests, table = validation.tests, validation.origins.table
        fitted = replace(self, values=table.observations)
        forecasts = np.full((len(_TEMPERATURES), len(tests), tests.horizon), np.nan)
        for i, rows, keys in fitted._memories(tests, np.arange(len(table))):
            block = validation.block[rows, None]
            left_out = validation.overlapping(i, keys.origins.n_known, block)
            has_enough = (~left_out).sum(axis=1) >= MIN_OWN_WINDOWS
            forecasts[:, rows[has_enough]] = fitted._average(
                tests.take(rows[has_enough]), keys, _TEMPERATURES, left_out[has_enough]
            )
        residuals = (forecasts - tests.targets()) / validation.scale[tests.series, None]
        best = np.nansum(residuals**2, axis=(1, 2)).argmin()
        return replace(fitted, temperature=_TEMPERATURES[best]), forecasts[best][:, None]

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon), NaN where a series is new or too short."""
        forecasts = np.full((len(origins), 1, origins.horizon), np.nan)
        for _, rows, keys in self._memories(origins, origins.table.training_index):
            for chunk in chunks(rows, PAIRS, len(keys)):
                (average,) = self._average(origins.take(chunk), keys, [self.temperature])
                forecasts[chunk, 0] = average
        return forecasts

    def _memories(self, origins, training_index):
        """Yield each training series, the rows of origins in it, and its windows as keys.

        `training_index` (n_series,) is the training series of each series of the origins, -1
        for a new one.
        """
        source = np.where(origins.n_known >= self.lookback, training_index[origins.series], -1)
        for i, rows in by_group(source):
            table = Table.from_arrays([self.values[i]])
            remembered = Origins.within(table, origins.horizon, self.lookback)
            if i >= 0 and len(remembered) >= MIN_OWN_WINDOWS:
                chosen = spread_over_phases(len(remembered), MAX_KEYS)
                yield i, rows, self._windows(remembered.take(chosen))

    def _windows(self, origins):
        """Make windows before origins, relative to the mean of their last season."""
        season = min(self.lookback, max(1, round(self.season_length)))
        return Windows.at_origins(origins, self.lookback, season, features=False)

    def _average(self, origins, keys, temperatures, left_out=False):
        """Average what followed windows, at each temperature; a list of (n_origins, horizon).

        `keys` are the Windows of the series. `left_out`, False or (n_origins, n_keys), is True
        for those that must not be used.
        """
        queries = self._windows(origins)
        squared, is_usable = squared_distances(queries.keys, keys.keys), ~np.asarray(left_out)
        nearest = squared.min(axis=1, keepdims=True, where=is_usable, initial=np.inf)
        # If several windows repeat the last one exactly, rounding errors must not decide which
        # is nearest. So d_1² is at least as large as the rounding errors of squared distances.
        lengths = np.square(queries.keys).sum(axis=1), np.square(keys.keys).sum(axis=1)
        rounding = 1e-12 * (lengths[0][:, None] + lengths[1].max()) + 1e-300
        ratio = squared / np.maximum(nearest, rounding)
        return [
            queries.level + normalized(-ratio / (2 * t**2), squared, is_usable) @ keys.values
            for t in temperatures
        ]
