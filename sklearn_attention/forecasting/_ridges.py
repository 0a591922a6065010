"""Ridge regression from the last steps of a series to those that follow.

Forecasts: a linear map of the window, its last `lookback` steps, to all steps of the horizon,
for all series together (DLinear without its decomposition: Zeng, Chen, Zhang and Xu 2023, Are
transformers effective for time series forecasting?, AAAI). Windows x and targets y are relative
to the last value, so that a zero map forecasts the last value.

Learns: min_B sum_i |y_i - B' x_i|² + a |B|² over the windows of all series in units of their
standard deviations, without an intercept. The penalty a has the least squared error at
validation origins, which are forecast by coefficients that are fitted without their block.

Costs: the sums of products of all steps of a window and its targets, in one product of matrices
for a series (`_products`). The sums outside of each block are the sums over all windows minus
those in the block, so that a fit to each fold costs one linear system (`BlockRidge`).
"""

from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._origins import Windows
from ._table import chunks, stds

# Penalties that are tried, relative to the mean square of a column.
PENALTIES = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
# A fit needs half as many windows as a window has steps. At most 8192 origins are forecast at
# once, to bound memory.
_MIN_WINDOWS_PER_STEP, _MAX_ROWS = 0.5, 8192


@dataclass(frozen=True, eq=False)
class BlockRidge:
    """Ridge regressions on all rows, and on the rows outside of each block.

    Attributes
    ----------
    products : ndarray of shape (1 + n_blocks, n_columns, n_columns + n_targets)
        Products X' X and X' Y of the columns with one another and with the targets, side by
        side: first summed over all rows, which is fold 0, then over the rows outside of each
        block, fold 1 + block.
    """

    products: np.ndarray

    @classmethod
    def from_blocks(cls, total, block_products):
        """Make regressions from the products of all rows, and of the rows in each block."""
        products = np.repeat(total[None], 1 + len(block_products), axis=0)
        for outside, inside in zip(products[1:], block_products, strict=True):
            outside -= inside
        return cls(products)

    def coef(self, fold, penalty):
        """Fit the coefficients of a fold; (n_columns, n_targets)."""
        gram, cross = self._split(fold)
        return cho_solve(self._factor(gram, penalty), cross)

    def predict(self, fold, penalty, x):
        """Predict rows `x` (n_rows, n_columns) by the coefficients of a fold.

        If there are fewer rows than targets, a linear system for the rows is cheaper than one
        for the coefficients.
        """
        gram, cross = self._split(fold)
        if len(x) < cross.shape[1]:
            return cho_solve(self._factor(gram, penalty), x.T).T @ cross
        return x @ self.coef(fold, penalty)

    def _split(self, fold):
        """Split the products of a fold into X' X and X' Y."""
        return np.split(self.products[fold], [self.products.shape[1]], axis=1)

    def _factor(self, gram, penalty):
        """Factor X' X + a I by Cholesky; a is `penalty` times the mean square of a column."""
        n_columns, gram = len(gram), gram.copy()
        mean_square = np.trace(self.products[0, :, :n_columns]) / n_columns
        gram.flat[:: n_columns + 1] += max(penalty * mean_square, 1e-9)
        # LAPACK wants columns next to each other in memory: the transpose, which is the same.
        return cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)


@dataclass(frozen=True, eq=False)
class WindowRidge:
    """Ridge regression from windows of all series to the steps that follow.

    Attributes
    ----------
    lookback : int
        Number of steps in a window.
    coef : ndarray of shape (lookback, horizon), default=None
        Coefficients B; None if there were too few windows.
    """

    lookback: int
    coef: np.ndarray | None = None

    @property
    def names(self):
        """Name of the forecast."""
        return (f"ridge of {self.lookback} steps",)

    def fit(self, validation):
        """Return a fitted candidate, and out-of-fold forecasts (n_validation, 1, horizon).

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
    """Windows to learn from, and those before validation origins, the tests.

    Attributes
    ----------
    counts : ndarray of int of shape (n_series,)
        Number of windows of each series that have a horizon after them.
    values : list of ndarray
        Standardised series.
    rows : ndarray of int of shape (n_tests,)
        Validation origins that have a window before them.
    tests : Windows
        Windows before these.
    block : ndarray of int of shape (n_tests,)
    """

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
        """Sum products over the windows of all series; return a BlockRidge."""
        # A stretch of n windows and their targets has this many more steps than windows.
        n_more_steps = self.lookback + self.horizon - 1
        stretches = [self.values[i] for i in np.flatnonzero(self.counts)]
        total = _products(stretches, self.lookback, self.horizon)
        block_products = []
        for block in range(self.validation.n_blocks):
            first, end = (
                np.clip(n_known - self.lookback, 0, self.counts).astype(np.int64)
                for n_known in self.validation.overlap_bounds(block)
            )
            stretches = [
                self.values[i][first[i] : end[i] + n_more_steps]
                for i in np.flatnonzero(first < end)
            ]
            block_products.append(_products(stretches, self.lookback, self.horizon))
        return BlockRidge.from_blocks(total, block_products)

    def validate(self, ridge, penalty):
        """Forecast the tests by coefficients without their block.

        Returns the sum of squared errors, and the forecasts (n_tests, horizon), both in the
        standardised units.
        """
        forecasts = np.empty((len(self.rows), self.horizon))
        for block in np.unique(self.block):
            rows = self.block == block
            forecasts[rows] = ridge.predict(1 + block, penalty, self.tests.keys[rows])
        return np.nansum((forecasts - self.tests.values) ** 2), forecasts


def _best_penalty(validate):
    """Find the penalty of least error; return it and the forecasts with it.

    ``validate(penalty)`` returns an error and forecasts. The search goes from one penalty to
    the next in both directions as long as the error falls.
    """
    # On eight long series the error had a single minimum, at the first to the seventh penalty.
    result, best = cache(lambda i: validate(PENALTIES[i])), len(PENALTIES) // 3
    for step in (1, -1):
        while 0 <= best + step < len(PENALTIES) and result(best + step)[0] < result(best)[0]:
            best += step
    return PENALTIES[best], result(best)[1]


def _products(stretches, lookback, horizon):
    """Sum X' X and X' Y over all windows in stretches of values, side by side.

    Columns of X are the steps of a window, those of Y the targets, both relative to the last
    step of the window. The result is of shape (lookback, lookback + horizon).
    """
    size = lookback + horizon
    products = np.zeros((lookback, size))
    if not stretches:
        return products
    # 1. Sum the products of the values themselves. P[i, j] is the sum over windows of the
    # products of their steps i and j. The first row is a correlation.
    for values in stretches:
        products[0] += np.correlate(values, values[: len(values) - size + 1], "valid")
    products[1:, 0] = products[0, 1:lookback]
    # P[i, j] differs from P[i - 1, j - 1] only by the last window of each stretch, which is
    # added, and by the first, which is subtracted.
    first = np.array([values[: size - 1] for values in stretches])
    last = np.array([values[1 - size :] for values in stretches])
    products[1:, 1:] = last[:, :-horizon].T @ last - first[:, :-horizon].T @ first
    for i in range(1, lookback):
        products[i, 1:] += products[i - 1, :-1]
    # 2. Make both factors relative to the last step of the window: subtract its row and column.
    products -= products[lookback - 1].copy()
    products -= products[:, lookback - 1 : lookback].copy()
    return products
