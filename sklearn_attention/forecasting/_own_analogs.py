"""Analogs: what followed similar windows of the own series."""

from dataclasses import dataclass, replace

import numpy as np

from ._observations import Observations, chunks, evenly_spread

# Temperatures that are tried.
_TEMPERATURES = (0.25, 0.5, 1.0)
# Windows that are remembered of a series at most, evenly spread; pairs of windows at once.
_MOST_KEYS, _PAIRS = 20_000, 4_000_000
_FEWEST = 20


@dataclass(frozen=True, eq=False)
class OwnAnalogs:
    r"""Kernel average of what followed the windows of the same series.

    Parameters
    ----------
    lookback : int
        Steps of a window.
    season_length : float
        Steps that the level of a window is the mean of.
    temperature : float
        The one that was chosen.
    values : list of ndarray
        The training series.

    Notes
    -----
    Windows and what followed are taken relative to the mean of their last season. The kernel
    is a Gaussian whose bandwidth is in proportion to the distance of the nearest window
    :math:`d_1`,

    .. math:: w_j \propto \exp\left(-\frac{d_j^2 / d_1^2 - 1}{2 \tau^2}\right),

    so that far windows are answered as smoothly as near ones. The temperature :math:`\tau` is
    the one with the least error at validation origins, for all series together; windows whose
    continuation overlaps with what is forecast are left out there.
    """

    lookback: int
    season_length: float
    temperature: float = 1.0
    values: list | None = None

    @property
    def names(self):
        """Names of the forecasts."""
        return (f"analogs of {self.lookback} steps",)

    def fit(self, training):
        """Remember series, and forecast validation origins without what overlaps with them.

        Parameters
        ----------
        training : Training

        Returns
        -------
        held_out : ndarray of shape (n_validation, 1, horizon)
            NaN where there are too few windows.
        """
        validation, block = training.validation, training.block
        self = replace(self, values=training.origins.table.values)
        found = np.full((len(_TEMPERATURES), len(validation), validation.horizon), np.nan)
        seen = validation.known >= self.lookback
        for i in np.unique(validation.series[seen]):
            memory = self._memory(i, validation.horizon)
            for b in np.unique(block[validation.series == i]):
                tests = np.flatnonzero(seen & (validation.series == i) & (block == b))
                apart = ~training.overlapping(np.full(len(memory), i), memory.known, b)
                if apart.sum() >= _FEWEST and len(tests):
                    origins, kept = validation.take(tests), memory.take(apart)
                    found[:, tests] = self._average(origins, kept, _TEMPERATURES)
        missed = (found - validation.targets()) / training.scale[validation.series, None]
        best = np.nansum(missed**2, axis=(1, 2)).argmin()
        return replace(self, temperature=_TEMPERATURES[best]), found[best][:, None]

    def forecast(self, origins):
        """Forecasts at some origins; NaN where a series is too short or not known.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        forecasts : ndarray of shape (n_origins, 1, horizon)
        """
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        own = np.where(origins.known >= self.lookback, origins.identity, -1)
        for i in np.unique(own[own >= 0]):
            memory = self._memory(i, origins.horizon)
            if len(memory) < _FEWEST:
                continue
            rows = np.flatnonzero(own == i)
            for part in chunks(rows, _PAIRS, len(memory)):
                taken = origins.take(part)
                found[part, 0] = self._average(taken, memory, [self.temperature])[0]
        return found

    def _memory(self, i, horizon):
        """Origins in a training series that have a whole window and a whole horizon."""
        own = Observations.of([self.values[i]]).origins(horizon, self.lookback)
        return own.take(evenly_spread(len(own), _MOST_KEYS)) if len(own) else own

    def _keys(self, origins):
        past = origins.past(self.lookback)
        season = min(self.lookback, max(1, round(self.season_length)))
        level = past[:, -season:].mean(axis=1, keepdims=True)
        return past - level, level

    def _average(self, origins, memory, temperatures):
        keys, base = self._keys(memory)
        values = memory.targets() - base
        queries, level = self._keys(origins)
        lengths = (queries**2).sum(axis=1, keepdims=True), (keys**2).sum(axis=1)
        squared = np.maximum(lengths[0] + lengths[1] - 2 * queries @ keys.T, 0)
        nearest = squared.min(axis=1, keepdims=True)
        # Rounding must not tell one exact repetition from another.
        floor = 1e-12 * (lengths[0] + lengths[1].max()) + 1e-300
        ratio = (squared - nearest) / np.maximum(nearest, floor)
        found = []
        for temperature in temperatures:
            weights = np.exp(-ratio / (2 * temperature**2))
            found.append(level + weights @ values / weights.sum(axis=1, keepdims=True))
        return found
