"""Ridge regressions that leave blocks out; linear maps from windows to what follows."""

from dataclasses import dataclass, replace

import numpy as np

from ._origins import chunks
from ._table import deviations
from ._windows import Windows

# Penalties that are tried, relative to the mean square of a column. That of the difference of
# the map of one series from that of all is 1: with the best of five from .01 to 100 errors were
# .997 to 1.03 times as large on nine panels.
PENALTIES = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
# Windows there have to be, as a share of the steps of a window; forecasts at once.
_LEAST_SHARE, _CHUNK = 0.5, 8192


@dataclass(frozen=True, eq=False)
class BlockRidge:
    """Ridge regressions of all rows and of those without each block, by sums of products."""

    # (1 + n_blocks, n_columns, n_columns + n_targets): of the columns of all rows with one
    # another and with targets, then of the rows that each block leaves.
    products: np.ndarray

    @classmethod
    def of(cls, whole, left_out):
        """Of products of all rows, and of those that each block leaves out."""
        return cls(np.array([whole, *(whole - out for out in left_out)]))

    def coef(self, penalty, start=0.0):
        """Coefficients (1 + n_blocks, n_columns, n_targets), shrunk towards others."""
        n = self.products.shape[1]
        gram, cross = np.split(self.products, [n], axis=2)
        # Above the rounding of products of columns of variance 1.
        penalty = max(penalty * np.trace(gram[0]) / n, 1e-9)
        return np.linalg.solve(gram + penalty * np.eye(n), cross + penalty * start)


@dataclass(frozen=True, eq=False)
class WindowRidge:
    """Ridge regression from windows to what follows, all steps at once."""

    # min_B sum_i |y_i - B' x_i|^2 + a |B - B_0|^2 for windows x and targets y relative to the
    # last value, in units of the series' standard deviations, without intercept. The map of all
    # series is shrunk towards 0, which forecasts the last value. Maps of single series are
    # shrunk towards that of all, since the months of a past year do not determine the level of
    # the next. The penalty is the one with the least error at validation origins, of maps that
    # have not learned from these targets.

    lookback: int
    own: bool = False  # whether there are maps of single series besides
    penalty: float = 1.0
    coef: np.ndarray | None = None  # (1 + n_maps, lookback, horizon), of all series first
    groups: np.ndarray = ()  # (n_maps,), the series of the other maps

    @property
    def names(self):
        """Names of the forecasts."""
        kinds = ("pooled ridge", "own ridge") if self.own else ("ridge",)
        return tuple(f"{kind} of {self.lookback} steps" for kind in kinds)

    def fit(self, training):
        """Learn maps, and forecast validation origins by maps that have not learned from them.

        Forecasts, (n_validation, n_names, horizon), are NaN where a series is too short.
        """
        windows, least = _Windows(training, self.lookback), max(2, _LEAST_SHARE * self.lookback)
        shape = len(training.validation), len(self.names), training.validation.horizon
        held_out = np.full(shape, np.nan)
        if windows.counts.sum() < least:
            return self, held_out
        every = sum(windows.ridge(i).products for i in np.flatnonzero(windows.counts))
        tried = [(a, BlockRidge(every).coef(a)) for a in PENALTIES]
        penalty, pooled = min(tried, key=lambda one: windows.error(one[1]))
        held_out[windows.rows, 0] = windows.forecasts(pooled)
        groups = np.flatnonzero(windows.counts >= least) if self.own else np.arange(0)
        coef = [pooled[0]]
        for i in groups:
            maps = windows.ridge(i).coef(1.0, pooled)
            coef.append(maps[0])
            held_out[windows.rows_of(i), 1] = windows.forecasts(maps, i)
        return replace(self, penalty=penalty, groups=groups, coef=np.array(coef)), held_out

    def forecast(self, origins):
        """Forecasts (n_origins, n_names, horizon); NaN where a map or a window is missing."""
        found = np.full((len(origins), len(self.names), origins.horizon), np.nan)
        if self.coef is None:
            return found
        whole = origins.known >= self.lookback
        maps = [(0, whole, self.coef[0])]
        own = zip(self.groups, self.coef[1:], strict=True)
        maps += [(1, whole & (origins.identity == i), coef) for i, coef in own]
        for name, rows, coef in maps:
            for part in chunks(np.flatnonzero(rows), _CHUNK):
                past = origins.take(part).past(self.lookback)
                found[part, name] = past[:, -1:] + (past - past[:, -1:]) @ coef
        return found


class _Windows:
    """Windows of training, by series, and those of validation origins."""

    def __init__(self, training, lookback):
        table, validation = training.origins.table, training.validation
        self.training, self.lookback, self.horizon = training, lookback, validation.horizon
        self.counts = np.maximum(table.lengths - lookback - self.horizon + 1, 0)
        # Squared errors of different series are comparable in units of their variation.
        unit = deviations(table.values)
        self.values = [(v - v.mean()) / u for v, u in zip(table.values, unit, strict=True)]
        self.rows = np.flatnonzero(validation.known >= lookback)
        tests = validation.take(self.rows)
        unit = unit[tests.series, None]
        self.tests = Windows.before(tests, lookback, "last", unit, features=False)
        self.block = training.block[self.rows]

    def ridge(self, i):
        """Of the windows of a series, and of those that do not overlap with each block."""
        values, known = self.values[i], self.lookback + np.arange(self.counts[i])
        series, out = np.full(len(known), i), []
        for block in range(self.training.n_blocks):
            # They follow one another.
            inside = np.flatnonzero(self.training.overlapping(series, known, block))
            first, n = (inside[0], len(inside)) if len(inside) else (0, 0)
            n_steps = n + self.lookback + self.horizon - 1
            out.append(_products(values[first : first + n_steps], self.lookback, self.horizon))
        return BlockRidge.of(_products(values, self.lookback, self.horizon), out)

    def rows_of(self, i):
        """Validation origins of a series."""
        return self.rows[self.tests.origins.series == i]

    def forecasts(self, maps, i=None):
        """Forecasts of tests, of a series or of all, by the maps without their blocks."""
        rows = np.arange(len(self.tests)) if i is None else self.tests.origins.series == i
        keys, block = self.tests.keys[rows], self.block[rows]
        found = np.empty((len(keys), self.horizon))
        for b in np.unique(block):
            found[block == b] = keys[block == b] @ maps[1 + b]
        return self.tests.level[rows] + self.tests.unit[rows] * found

    def error(self, maps):
        """Sum of their squared errors, in units of the series."""
        missed = self.forecasts(maps) - self.tests.origins.targets()
        return np.nansum((missed / self.tests.unit) ** 2)


def _products(values, lookback, horizon):
    """Sums over windows of products of their steps, less the last, and with what follows.

    (lookback, lookback + horizon).
    """
    size = lookback + horizon
    products = np.zeros((lookback, size))
    if len(values) < size:
        return products
    products[0] = np.correlate(values, values[: len(values) - size + 1], "valid")
    products[1:, 0] = products[0, 1:lookback]
    # Sums of neighbouring steps differ only by the first and by the last window.
    first, last = values[: size - 1], values[1 - size :]
    products[1:, 1:] = np.outer(last[: lookback - 1], last) - np.outer(
        first[: lookback - 1], first
    )
    for i in range(1, lookback):
        products[i, 1:] += products[i - 1, :-1]
    products -= products[lookback - 1].copy()
    products -= products[:, lookback - 1 : lookback].copy()
    return products
