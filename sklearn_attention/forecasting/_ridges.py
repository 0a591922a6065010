"""Ridge regressions that leave blocks out; linear maps from windows to what follows."""

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._origins import Windows
from ._table import chunks, stds

# Penalties that are tried, relative to the mean square of a column.
PENALTIES = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
# Fewest windows to learn from, for each step of a window; origins that are forecast at once.
_MIN_WINDOWS_PER_STEP, _MAX_ROWS = 0.5, 8192


@dataclass(frozen=True, eq=False)
class BlockRidge:
    """Ridge regressions on all rows and on those outside of each block, by sums of products."""

    # (1 + n_blocks, n_columns, n_columns + n_targets): products of the columns with one another
    # and with the targets, summed over all rows, then over the rows outside of each block.
    products: np.ndarray

    @classmethod
    def from_blocks(cls, total, of_blocks):
        """Make regressions by products of all rows, and of the rows in each block."""
        products = np.repeat(total[None], 1 + len(of_blocks), axis=0)
        for outside, inside in zip(products[1:], of_blocks, strict=True):
            outside -= inside
        return cls(products)

    def coef(self, fold, penalty):
        """Fit coefficients (n_columns, n_targets) to fold 0, all rows, or fold 1 + block."""
        gram, cross = self._split(fold)
        return cho_solve(self._factor(gram, penalty), cross)

    def predict(self, fold, penalty, x):
        """Predict rows (n, n_columns) by coefficients of a fold, in the cheaper order."""
        gram, cross = self._split(fold)
        if len(x) < cross.shape[1]:
            return cho_solve(self._factor(gram, penalty), x.T).T @ cross
        return x @ self.coef(fold, penalty)

    def _split(self, fold):
        return np.split(self.products[fold], [self.products.shape[1]], axis=1)

    def _factor(self, gram, penalty):
        """Factor by Cholesky with a penalty, relative to the mean square of all columns."""
        n_columns, gram = len(gram), gram.copy()
        mean_square = np.trace(self.products[0, :, :n_columns]) / n_columns
        gram.flat[:: n_columns + 1] += max(penalty * mean_square, 1e-9)
        # LAPACK wants columns next to each other in memory: the transpose, which is the same.
        return cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)


@dataclass(frozen=True, eq=False)
class WindowRidge:
    """Ridge regression from windows of all series to the steps that follow, all at once."""

    # min_B sum_i |y_i - B' x_i|^2 + a |B|^2 for windows x and targets y relative to the last
    # value, in units of the standard deviations of the series, without intercept: B is shrunk
    # towards 0, which forecasts the last value. The penalty a has the least squared error at
    # validation origins, which are forecast by coefficients fitted without their block.

    lookback: int
    coef: np.ndarray | None = None  # (lookback, horizon); None if there were too few windows

    @property
    def names(self):
        """Name of the forecast."""
        return (f"ridge of {self.lookback} steps",)

    def fit(self, validation):
        """Fit coefficients; return them, and held-out forecasts (n_validation, 1, horizon).

        Forecasts are NaN at origins with fewer known steps than a window has.
        """
        windows, tests = _Windows(validation, self.lookback), validation.tests
        held_out = np.full((len(tests), 1, tests.horizon), np.nan)
        if windows.counts.sum() < max(2, _MIN_WINDOWS_PER_STEP * self.lookback):
            return self, held_out
        ridge = windows.ridge()
        penalty, scaled_forecasts = _best_penalty(partial(windows.validate, ridge))
        held_out[windows.rows, 0] = windows.tests.restore(scaled_forecasts)
        return replace(self, coef=ridge.coef(0, penalty)), held_out

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon), NaN where fewer steps than a window are known."""
        forecasts = np.full((len(origins), 1, origins.horizon), np.nan)
        is_long = origins.n_known >= self.lookback
        if self.coef is None or not is_long.any():
            return forecasts
        for rows in chunks(np.flatnonzero(is_long), _MAX_ROWS):
            past = origins.take(rows).past(self.lookback)
            forecasts[rows, 0] = past[:, -1:] + (past - past[:, -1:]) @ self.coef
        return forecasts


class _Windows:
    """Windows to learn from, of each series, and the tests, those at validation origins."""

    def __init__(self, validation, lookback):
        table, tests = validation.origins.table, validation.tests
        self.validation, self.lookback, self.horizon = validation, lookback, tests.horizon
        self.counts = np.maximum(table.lengths - lookback - self.horizon + 1, 0)
        # In units of their standard deviations, errors of different series are comparable.
        std = stds(table.observations)
        self.values = [
            (v - v.mean()) / unit for v, unit in zip(table.observations, std, strict=True)
        ]
        self.rows = np.flatnonzero(tests.n_known >= lookback)
        origins = tests.take(self.rows)
        unit = std[origins.series, None]
        self.tests = Windows.at_origins(origins, lookback, "last", unit, features=False)
        self.block = validation.block[self.rows]

    def ridge(self):
        """Sum products over the windows of all series; a BlockRidge."""
        n_further = self.lookback + self.horizon - 1
        every = [self.values[i] for i in np.flatnonzero(self.counts)]
        of_blocks = []
        for block in range(self.validation.n_blocks):
            first, end = (
                np.clip(known - self.lookback, 0, self.counts).astype(np.int64)
                for known in self.validation.overlap_bounds(block)
            )
            inside = np.flatnonzero(first < end)
            of_blocks.append([self.values[i][first[i] : end[i] + n_further] for i in inside])
        total, *of_blocks = (
            _products(stretches, self.lookback, self.horizon)
            for stretches in (every, *of_blocks)
        )
        return BlockRidge.from_blocks(total, of_blocks)

    def validate(self, ridge, penalty):
        """Forecast the tests without their block; return the squared error and forecasts."""
        forecasts = np.empty((len(self.rows), self.horizon))
        for block in np.unique(self.block):
            rows = self.block == block
            forecasts[rows] = ridge.predict(1 + block, penalty, self.tests.keys[rows])
        return np.nansum((forecasts - self.tests.values) ** 2), forecasts


def _best_penalty(validate):
    """Find the penalty of least error; return it and forecasts with it.

    `validate(penalty)` returns an error and forecasts.
    """
    # On eight long series errors have a single minimum, from the first penalty to the seventh.
    result, best = cache(lambda i: validate(PENALTIES[i])), len(PENALTIES) // 3
    for step in (1, -1):
        while 0 <= best + step < len(PENALTIES) and result(best + step)[0] < result(best)[0]:
            best += step
    return PENALTIES[best], result(best)[1]


def _products(stretches, lookback, horizon):
    """Sum products of steps of windows, relative to the last step, and with what follows.

    Windows are all of each stretch of values; returns (lookback, lookback + horizon).
    """
    size = lookback + horizon
    products = np.zeros((lookback, size))
    if not stretches:
        return products
    for values in stretches:
        products[0] += np.correlate(values, values[: len(values) - size + 1], "valid")
    products[1:, 0] = products[0, 1:lookback]
    # Sums of neighbouring steps differ only by the first and by the last window of a stretch.
    first = np.array([values[: size - 1] for values in stretches])
    last = np.array([values[1 - size :] for values in stretches])
    products[1:, 1:] = last[:, :-horizon].T @ last - first[:, :-horizon].T @ first
    for i in range(1, lookback):
        products[i, 1:] += products[i - 1, :-1]
    products -= products[lookback - 1].copy()
    products -= products[:, lookback - 1 : lookback].copy()
    return products
