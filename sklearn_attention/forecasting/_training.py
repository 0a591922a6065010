"""Origins that candidates learn from, and those in blocks of time that compare them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._measures import naive_scales
from ._origins import Origins, evenly_spread

# So many series make a panel.
PANEL = 30
_BLOCKS = 5
# Validation origins of all series together about, and of each at least and at most.
_ABOUT, _FEWEST, _MOST = 400, 6, 100
# Series are long from so many horizons on: then so large a share of them is validated, and so
# many horizons where there are many of them, whose recent errors tell enough.
_LONG, _SHARE, _PANEL_SPAN = 10, 0.6, 6
# Steps there have to be before a validation origin.
_LEAST_KNOWN = 4


@dataclass(frozen=True, eq=False)
class Training:
    """Series to learn from, with validation origins in contiguous blocks of time.

    `origins` are all with a whole horizon after them and a step before, `block`
    (n_validation,) numbers the block of each validation origin, and `scale` (n_series,) is the
    unit of each series.
    """

    origins: Origins
    validation: Origins
    block: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, table, horizon, lookback, share=_SHARE):
        """Training on all series of a table, with validation origins in five blocks.

        Blocks are counted from the end of each series. The last origins of a long series are
        one horizon before its end, and its first so that they span `share` of it, in panels six
        horizons. Of a short series it is half a horizon and three horizons; where the series
        ends within a horizon the steps that there are count. Before an origin there are
        `lookback` steps where a third of the series is as long.
        """
        lengths = table.lengths
        per_series = int(np.clip(_ABOUT / len(lengths), _FEWEST, _MOST))
        series, known, block = ([np.empty(0, dtype=np.int64)] for _ in range(3))
        for i, n in enumerate(lengths):
            before = max(min(lookback, n // 3), _LEAST_KNOWN)
            if n >= _LONG * horizon:
                span = _PANEL_SPAN * horizon if len(lengths) >= PANEL else int(share * n)
                nearest, farthest = horizon, min(span, n - before)
            else:
                nearest, farthest = max(1, horizon // 2), min(3 * horizon, n - before)
            nearest = min(nearest, farthest)
            if nearest < 1:
                continue  # too short to be validated
            width = farthest - nearest + 1
            gaps = nearest + evenly_spread(width, per_series)
            series.append(np.full(len(gaps), i))
            known.append(n - gaps)
            block.append((gaps - nearest) * _BLOCKS // width)
        series, known, block = map(np.concatenate, (series, known, block))
        validation = table.at_ends(horizon).at(series, known)
        return cls(table.origins(horizon), validation, block, naive_scales(table.values))

    @property
    def is_panel(self):
        """Whether there are many series, and some to be validated on."""
        return len(self.scale) >= PANEL and len(self.block) > 0

    @property
    def n_blocks(self):
        """Number of blocks."""
        return int(self.block.max()) + 1 if len(self.block) else 0

    def earliest(self, rows=slice(None)):
        """First of some validation origins in each series, its end if none; (n_series,)."""
        first = self.validation.table.lengths.copy()
        np.minimum.at(first, self.validation.series[rows], self.validation.known[rows])
        return first

    @cached_property
    def _spans(self):
        """First and last validation origin of each series in each block; inf, -inf if none."""
        shape = len(self.origins.table.values), self.n_blocks
        first, last = np.full(shape, np.inf), np.full(shape, -np.inf)
        at = self.validation.series, self.block
        np.minimum.at(first, at, self.validation.known)
        np.maximum.at(last, at, self.validation.known)
        return first, last

    def overlapping(self, series, known, block):
        """Whether what follows origins (n,) overlaps with what is forecast in a block; (n,)."""
        first, last = (spans[series, block] for spans in self._spans)
        horizon = self.origins.horizon
        return (known > first - horizon) & (known < last + horizon)

    def within(self, series, steps):
        """Whether steps of a series are forecast in the blocks; (n_steps, n_blocks)."""
        first, last = (spans[series] for spans in self._spans)
        return (steps[:, None] >= first) & (steps[:, None] < last + self.origins.horizon)


def held_out(learn, training, n_names=1):
    """Forecasts of validation origins; (n_validation, n_names, horizon).

    `learn(block)` is a candidate that has not learned from what overlaps with a block.
    """
    validation = training.validation
    found = np.full((len(validation), n_names, validation.horizon), np.nan)
    for block in range(training.n_blocks):
        rows = np.flatnonzero(training.block == block)
        if len(rows):
            found[rows] = learn(block).forecast(validation.take(rows))
    return found
