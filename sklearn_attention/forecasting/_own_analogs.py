"""Analogs: what followed similar windows of the own series."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from ._analogs import FEWEST_OWN, MOST_KEYS, PAIRS, normalized
from ._origins import Origins, chunks, evenly_spread
from ._table import Table
from ._windows import Windows, by_group

# Temperatures that are tried.
_TEMPERATURES = (0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class OwnAnalogs:
    """Kernel average of what followed the windows of the same series."""

    # Windows of `lookback` steps and their targets are relative to the mean of their last
    # season. Weights are Gaussian, exp(-d_j^2 / (2 t^2 d_1^2)), in units of the
    # distance d_1 of the nearest window, so that the average is as smooth where all windows are
    # far. The temperature t is the one with the least error at validation origins, for all
    # series together; windows whose targets overlap with the forecasts are left out there.

    lookback: int
    season_length: float
    temperature: float = 1.0
    values: list | None = None  # the training series

    @property
    def names(self):
        """Names of the forecasts."""
        return (f"analogs of {self.lookback} steps",)

    def fit(self, training):
        """Store the series and choose the temperature."""
        validation, table = training.validation, training.origins.table
        fitted = replace(self, values=table.values)
        found = np.full((len(_TEMPERATURES), len(validation), validation.horizon), np.nan)
        for i, rows, keys in fitted._memories(validation, np.arange(len(table))):
            block = training.block[rows, None]
            left_out = training.overlapping(i, keys.origins.known, block)
            enough = (~left_out).sum(axis=1) >= FEWEST_OWN
            rows, left_out = rows[enough], left_out[enough]
            some = validation.take(rows)
            found[:, rows] = fitted._average(some, keys, _TEMPERATURES, left_out)
        missed = (found - validation.targets()) / training.scale[validation.series, None]
        best = np.nansum(missed**2, axis=(1, 2)).argmin()
        return replace(fitted, temperature=_TEMPERATURES[best]), found[best][:, None]

    def forecast(self, origins):
        """Forecasts (n, 1, horizon); NaN where a series is too short or not known."""
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        for _, rows, keys in self._memories(origins, origins.table.identity):
            for part in chunks(rows, PAIRS, len(keys)):
                some = origins.take(part)
                found[part, 0] = self._average(some, keys, [self.temperature])[0]
        return found

    def _memories(self, origins, identity):
        """Training series, the rows of origins in them, and windows with what followed."""
        source = np.where(origins.known >= self.lookback, identity[origins.series], -1)
        for i, rows in by_group(source):
            table = Table.of([self.values[i]])
            remembered = Origins.within(table, origins.horizon, self.lookback)
            if i >= 0 and len(remembered) >= FEWEST_OWN:
                few = evenly_spread(len(remembered), MOST_KEYS)
                yield i, rows, self._windows(remembered.take(few))

    def _windows(self, origins):
        season = min(self.lookback, max(1, round(self.season_length)))
        return Windows.before(origins, self.lookback, season, features=False)

    def _average(self, origins, keys, temperatures, left_out=False):
        """Forecasts at each temperature, (n, horizon), from windows that are not left out."""
        queries = self._windows(origins)
        squared, apart = cdist(queries.keys, keys.keys, "sqeuclidean"), ~np.asarray(left_out)
        nearest = squared.min(axis=1, keepdims=True, where=apart, initial=np.inf)
        # Rounding must not distinguish one exact repetition from another.
        ratio = squared / np.maximum(nearest, 1e-12 * squared.max(initial=0) + 1e-300)
        return [
            queries.level + normalized(-ratio / (2 * t**2), squared, apart) @ keys.values
            for t in temperatures
        ]
