"""Ridge regressions that leave blocks out; linear maps from windows to what follows."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ._origins import Windows, chunks
from ._table import deviations

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

    def coef(self, part, penalty):
        """Coefficients (n_columns, n_targets) of all rows, 0, or of those without a block."""
        gram, cross = self._split(part)
        return cho_solve(self._factor(gram, penalty), cross)

    def predict(self, part, penalty, x):
        """Predictions for rows (n, n_columns), by way of the map only where they are many."""
        gram, cross = self._split(part)
        if len(x) < cross.shape[1]:
            return cho_solve(self._factor(gram, penalty), x.T).T @ cross
        return x @ self.coef(part, penalty)

    def _split(self, part):
        return np.split(self.products[part], [self.products.shape[1]], axis=1)

    def _factor(self, gram, penalty):
        whole = self.products[0, :, : len(gram)]
        return _factor(gram, _absolute(penalty, whole))


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
        ridge = BlockRidge(sum(map(windows.products, np.flatnonzero(windows.counts))))
        found, penalty = _best_penalty(partial(windows.forecasts, ridge))
        held_out[windows.rows, 0] = windows.tests.restore(found)
        groups = np.flatnonzero(windows.counts >= least) if self.own else np.arange(0)
        parts = len(ridge.products) if len(groups) else 1
        starts = [ridge.coef(part, penalty) for part in range(parts)]
        coef, found = [starts[0]], np.full_like(windows.tests.values, np.nan)
        for i in groups:
            own, tests, found[tests] = windows.own(i, starts)
            coef.append(own)
        if self.own:
            held_out[windows.rows, 1] = windows.tests.restore(found)
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

    def products(self, i):
        """Of the windows of a series, and of those that do not overlap with each block."""
        n_steps, out = self.lookback + self.horizon - 1, []
        whole = _products(self.values[i], self.lookback, self.horizon)
        for block in range(self.training.n_blocks):
            inside = self._overlapping(i, block)
            values = self.values[i][inside.start : inside.stop + n_steps]
            out.append(_products(values, self.lookback, self.horizon))
        return BlockRidge.of(whole, out).products

    def forecasts(self, ridge, penalty):
        """Squared error of tests, and their forecasts without their blocks."""
        found = np.empty((len(self.rows), self.horizon))
        for block in np.unique(self.block):
            own = self.block == block
            found[own] = ridge.predict(1 + block, penalty, self.tests.keys[own])
        return np.nansum((found - self.tests.values) ** 2), found

    def own(self, i, starts):
        """The map of a series, its tests, and their forecasts without their blocks.

        Maps are shrunk towards those of all series, with and without the block.
        """
        n, tests = self.lookback, np.flatnonzero(self.tests.origins.series == i)
        gram, cross = np.split(_products(self.values[i], n, self.horizon), [n], axis=1)
        penalty = _absolute(1.0, gram)
        factor = _factor(gram, penalty)
        windows = sliding_window_view(self.values[i], n + self.horizon)
        found = np.empty((len(tests), self.horizon))
        for block in np.unique(self.block[tests]):
            own, out = self.block[tests] == block, windows[self._overlapping(i, block)]
            x, y = np.split(out - out[:, n - 1 : n], [n], axis=1)
            solved = _solve_without(factor, x, self.tests.keys[tests[own]].T)
            found[own] = solved.T @ (cross + penalty * starts[1 + block]) - (x @ solved).T @ y
        return cho_solve(factor, cross + penalty * starts[0]), tests, found

    def _overlapping(self, i, block):
        """The windows of a series whose targets overlap with those of a block; a slice."""
        known = self.lookback + np.arange(self.counts[i])
        inside = self.training.overlapping(np.full(len(known), i), known, block)
        first = int(inside.argmax()) if inside.any() else 0
        return slice(first, first + int(inside.sum()))


def _best_penalty(forecasts):
    """Forecasts with the penalty of least error, and the penalty."""
    # `forecasts(penalty)` are an error and forecasts. On eight long series errors have a single
    # minimum, of the first penalty to the seventh.
    tried, at = {}, len(PENALTIES) // 3
    while True:
        near = range(max(at - 1, 0), min(at + 2, len(PENALTIES)))
        tried |= {i: forecasts(PENALTIES[i]) for i in near if i not in tried}
        best = min(near, key=lambda i: tried[i][0])
        if best == at:
            return tried[at][1], PENALTIES[at]
        at = best


def _absolute(penalty, gram):
    """A penalty relative to the mean square of a column, above rounding."""
    return max(penalty * np.trace(gram) / len(gram), 1e-9)


def _factor(gram, penalty):
    return cho_factor(gram + penalty * np.eye(len(gram)), lower=True, overwrite_a=True)


def _solve_without(factor, out, b):
    """Solve with a factored matrix less the products of some rows (Woodbury)."""
    half = partial(solve_triangular, factor[0], lower=True)
    x, y = np.split(half(np.concatenate([out.T, b], axis=1)), [len(out)], axis=1)
    y += x @ np.linalg.solve(np.eye(len(out)) - x.T @ x, x.T @ y)
    return half(y, trans=1)


def _products(values, lookback, horizon):
    """Sums over windows of products of their steps, less the last, and with what follows.

    (lookback, lookback + horizon).
    """
    size, n_windows = lookback + horizon, len(values) - lookback - horizon + 1
    if n_windows < lookback:
        windows = values[np.arange(max(n_windows, 0))[:, None] + np.arange(size)]
        windows = windows - windows[:, lookback - 1 : lookback]
        return windows[:, :lookback].T @ windows
    products = np.zeros((lookback, size))
    products[0] = np.correlate(values, values[:n_windows], "valid")
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
