"""Analogs: what followed similar windows of the own series."""

from dataclasses import dataclass, replace

import numpy as np

from ._origins import Origins, chunks, evenly_spread
from ._table import Table
from ._windows import Windows, by_group

# Temperatures that are tried.
_TEMPERATURES = (0.25, 0.5, 1.0)
# Windows that are stored of a series at most, evenly spread; pairs of windows at once, and
# values in windows, which fit into the cache.
_MOST_KEYS, _PAIRS, _AT_ONCE = 20_000, 4_000_000, 250_000
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class OwnAnalogs:
    """Kernel average of what followed the windows of the same series."""

    # Windows of `lookback` steps and their targets are relative to the mean of their last
    # season. Weights are Gaussian, exp(-(d_j^2 / d_1^2 - 1) / (2 t^2)), in units of the
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
        for i, rows, memory in fitted._memories(validation, np.arange(len(table))):
            known, block = memory.known, training.block[rows]
            left_out = training.overlapping(i, known, block[:, None])
            enough = (~left_out).sum(axis=1) >= _FEWEST
            rows, left_out = rows[enough], left_out[enough]
            found[:, rows] = fitted._average(
                validation.take(rows), memory, _TEMPERATURES, left_out
            )
        missed = (found - validation.targets()) / training.scale[validation.series, None]
        best = np.nansum(missed**2, axis=(1, 2)).argmin()
        return replace(fitted, temperature=_TEMPERATURES[best]), found[best][:, None]

    def forecast(self, origins):
        """Forecasts (n, 1, horizon); NaN where a series is too short or not known."""
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        for _, rows, memory in self._memories(origins, origins.table.identity):
            for part in chunks(rows, _PAIRS, len(memory)):
                some = origins.take(part)
                found[part, 0] = self._average(some, memory, [self.temperature])[0]
        return found

    def _memories(self, origins, identity):
        """Training series with the rows of origins in them, and the windows to average."""
        source = np.where(origins.known >= self.lookback, identity[origins.series], -1)
        for i, rows in by_group(source):
            table = Table.of([self.values[i]])
            remembered = Origins.within(table, origins.horizon, self.lookback)
            if i >= 0 and len(remembered) >= _FEWEST:
                few = evenly_spread(len(remembered), _MOST_KEYS)
                yield i, rows, remembered.take(few)

    def _windows(self, origins):
        season = min(self.lookback, max(1, round(self.season_length)))
        return Windows.before(origins, self.lookback, season, features=False)

    def _average(self, origins, memory, temperatures, left_out=None):
        """Forecasts at each temperature, (n, horizon), from windows that are not left out.

        `memory` are the origins of the windows, too many to be copied all at once.
        """
        queries = self._windows(origins)
        lengths = np.einsum("ij,ij->i", queries.keys, queries.keys)[:, None]
        squared, longest, values = np.empty((len(queries), len(memory))), 0.0, []
        for part in chunks(np.arange(len(memory)), _AT_ONCE, self.lookback):
            windows = self._windows(memory.take(part))
            own = np.einsum("ij,ij->i", windows.keys, windows.keys)
            squared[:, part] = own - 2 * queries.keys @ windows.keys.T
            longest = max(longest, own.max())
            values.append(windows.values)
        squared = np.maximum(squared + lengths, 0)
        if left_out is not None:
            squared[left_out] = np.inf
        nearest = squared.min(axis=1, keepdims=True)
        # Rounding must not distinguish one exact repetition from another.
        floor = 1e-12 * (lengths + longest) + 1e-300
        ratio = (squared - nearest) / np.maximum(nearest, floor)
        found, values = [], np.concatenate(values)
        for temperature in temperatures:
            weights = np.exp(-ratio / (2 * temperature**2))
            average = weights @ values / weights.sum(axis=1, keepdims=True)
            found.append(queries.level + average)
        return found
