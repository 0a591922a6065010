"""Classical forecasts of many series at every origin: exponential smoothing and its kin."""

from dataclasses import dataclass, replace

import numpy as np

from ._season import SeasonalAdjustment, groups_of
from ._smoothing import smooth

# Lengths of the blocks whose means are forecast too, by the number of steps in a season.
_BLOCKS = {1: (2, 3), 4: (2, 4), 12: (2, 3, 4, 6)}
_OTHER_BLOCKS = (2, 4)
# Forecasts in the units before logarithms stay above this share of the mean.
_FLOOR = 0.05


@dataclass(frozen=True, eq=False)
class Classical:
    """Exponential smoothing, theta and the like, of seasonally adjusted series."""

    # At every origin parameters are those that were best so far. Series may be logarithms
    # (`logs`), so that trends of the series themselves are tried too. A `further` season than
    # the usual one is part of the names.

    season_length: float
    logs: bool
    further: bool = False

    @property
    def names(self):
        """Names of the forecasts."""
        raw = ("raw theta", "raw Holt", "raw damped") if self.logs else ()
        names = ("naive", "drift", "SES", "Holt", "damped", "theta", *raw)
        names = (*names, "median", "blocks", "classical mean")
        season = f", season of {self.season_length:.4g} steps" if self.further else ""
        return tuple(name + season for name in names)

    def fit(self, training):
        """Itself, and forecasts of validation origins with patterns from before their block."""
        validation = training.validation
        learned = validation.known.copy()
        for block in range(training.n_blocks):
            rows = np.flatnonzero(training.block == block)
            origins = validation.take(rows).learning_until(training.earliest(rows))
            learned[rows] = origins.learned
        return self, self.forecast(replace(validation, learned=learned))

    def forecast(self, origins):
        """Forecasts, (n_origins, n_names, horizon); the first step stands for itself."""
        season = SeasonalAdjustment.of(origins, self.season_length)
        known = np.maximum(origins.known, 1)
        lengths = np.zeros(len(season.series), dtype=np.int64)
        np.maximum.at(lengths, season.row, known)
        found = np.empty((len(origins), len(self.names), origins.horizon))
        for group in groups_of(lengths):
            place = np.full(len(lengths), -1)
            place[group] = np.arange(len(group))
            rows = np.flatnonzero(place[season.row] >= 0)
            table = season.adjusted(group, lengths[group])
            last = known[rows] - 1
            found[rows] = self._adjusted(table, place[season.row[rows]], last, origins.horizon)
        return found + season.at(season.row[:, None], origins.steps)[:, None]

    def _adjusted(self, table, row, last, horizon):
        """Forecasts of adjusted series (n_rows, n_steps) after some of their steps."""
        ahead = np.arange(1, horizon + 1)
        now, base = table[row, last][:, None], table[:, :1]
        sizes = _BLOCKS.get(round(self.season_length), _OTHER_BLOCKS)
        blocks = [blocks for size in sizes for blocks in _blocks(table, size, row, last)]
        tables = [(table, row, last), *(own for _, _, own in blocks)]
        if self.logs:
            raw = np.exp(np.clip(table - base, -50, 50))
            tables.append((raw, row, last))
        smoothed = smooth(tables)
        line, trend, calm = (method.path(horizon) for method in smoothed[0])
        naive = np.repeat(now, horizon, axis=1)
        level = np.repeat(smoothed[0][0].level[:, None], horizon, axis=1)
        drift = now + (now - base[row]) / np.maximum(last, 1)[:, None] * ahead
        parts = [naive, drift, level, trend, calm, line]
        central = [level, line, trend, calm]
        if self.logs:
            means = np.cumsum(raw, axis=1)[row, last] / (last + 1)
            floor = _FLOOR * means[:, None]
            for method in smoothed[-1]:
                parts.append(np.log(np.maximum(method.path(horizon), floor)) + base[row])
            central += [parts[-3], parts[-1]]
        median = np.median(central, axis=0)
        both = (line + calm) / 2
        of_blocks = np.repeat(both[None], len(sizes) + 1, axis=0)
        for (size, rows, (means, at, end)), methods in zip(blocks, smoothed[1:], strict=False):
            path = _between(size, means[at, end], methods, horizon)
            of_blocks[1 + sizes.index(size), rows] = path
        of_blocks = of_blocks.mean(axis=0)
        return np.stack([*parts, median, of_blocks, (median + of_blocks) / 2], axis=1)


def _blocks(table, size, row, last):
    """Sizes, origins, and means (n_rows, n_blocks) of blocks of steps that end there."""
    # Means have less noise, and their trend is that of the longer run. The row and the last
    # block of each origin are with the means.
    for shift in range(size):
        rows = np.flatnonzero(((last + 1) % size == shift) & ((last + 1) // size >= 2))
        if len(rows):
            end = (last[rows] + 1) // size
            used, at = np.unique(row[rows], return_inverse=True)
            steps = slice(shift, shift + size * end.max())
            means = table[used, steps].reshape(len(used), -1, size).mean(axis=2)
            yield size, rows, (means, at, end - 1)


def _between(size, now, methods, horizon):
    """Forecasts of steps, interpolated between those of blocks, (n_origins, horizon)."""
    n_ahead = -(-horizon // size) + 2
    both = (methods[0].path(n_ahead) + methods[2].path(n_ahead)) / 2
    both = np.concatenate([now[:, None], both], axis=1)
    # Centres of the blocks, in steps after the origin.
    centers = np.arange(n_ahead + 1) * size - (size - 1) / 2
    steps = np.arange(1, horizon + 1)
    left = np.clip(np.searchsorted(centers, steps) - 1, 0, n_ahead - 1)
    share = (steps - centers[left]) / size
    return both[:, left] * (1 - share) + both[:, left + 1] * share
