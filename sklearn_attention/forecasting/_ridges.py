"""Linear maps from windows to what follows, of all series together and of each one."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from ._metrics import dividing, spread_of
from ._origins import chunks
from ._windows import Windows

# Penalties that are tried, relative to the mean square of a step of the windows: of a map, and
# of the difference of a map of one series from that of all.
ALPHAS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
OWN_ALPHAS = (1e-2, 0.1, 1.0, 10.0, 100.0)
# The least penalty for each window, above the rounding of products of steps of variance 1.
_LEAST_PENALTY = 1e-12
# Series that penalties are chosen by, evenly spread.
_MOST_SERIES = 20
# Windows there have to be, as a share of the steps of a window.
_LEAST_SHARE = 0.5
_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class WindowRidge:
    """Ridge regression from windows to what follows, all steps at once."""

    # min_B sum_i |y_i - B' x_i|^2 + a |B - B_0|^2 for windows x and targets y relative to the
    # last value, in units of the series' standard deviations, without intercept. The map of all
    # series is shrunk towards 0, which forecasts the last value. Maps of single series are
    # shrunk towards that of all, since the months of a past year do not determine the level of
    # the next. Penalties are those with the least error at validation origins, of maps that
    # have not learned from these targets. Maps of single series use the penalty of the map of
    # all, and its factor.

    lookback: int
    own: bool = False  # whether there are maps of single series besides
    alpha: float = 1.0
    own_alpha: float = 1.0
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
        windows = _Windows(training, self.lookback)
        tests, rows, least = windows.tests, windows.rows, max(2, _LEAST_SHARE * self.lookback)
        shape = len(training.validation), len(self.names), training.validation.horizon
        held_out = np.full(shape, np.nan)
        if len(windows.origins) < least:
            return self, held_out
        products, least_error = windows.pooled_products(), np.inf
        for alpha in ALPHAS:
            maps = [_Map.of(own, alpha, len(windows.origins)) for own in products]
            found = windows.pooled_forecasts(maps[1:])
            error = np.nansum((found - tests.values) ** 2)
            if error < least_error:
                least_error, best = error, alpha
                held_out[rows, 0] = tests.level + tests.unit * found
        # Maps of single series without a block are shrunk towards the pooled ones without it.
        wanted = products if self.own else products[:1]
        pooled = [_Map.of(own, best, len(windows.origins)).towards() for own in wanted]
        groups = np.flatnonzero(windows.counts >= least) if self.own else np.arange(0)
        errors = np.zeros(len(OWN_ALPHAS))
        for i in groups[:: -(-len(groups) // _MOST_SERIES) or 1]:
            own, found = windows.own_forecasts(i, windows.own_maps(i, OWN_ALPHAS), pooled)
            errors += np.nansum((found - tests.values[own]) ** 2, axis=(1, 2))
        coef, own_alpha = [pooled[0]], OWN_ALPHAS[errors.argmin()]
        for i in groups:
            maps = windows.own_maps(i, [own_alpha])
            own, [found] = windows.own_forecasts(i, maps, pooled)
            coef.append(maps[0].towards(pooled[0]))
            held_out[rows[own], 1] = tests.level[own] + tests.unit[own] * found
        learned = {"alpha": best, "own_alpha": own_alpha, "groups": groups}
        return replace(self, **learned, coef=np.array(coef)), held_out

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
    """Windows of training, those of validation origins, and maps from all but a block."""

    def __init__(self, training, lookback):
        table, validation = training.origins.table, training.validation
        self.lookback = lookback
        self.origins = training.origins.take(training.origins.known >= lookback)
        self.counts = np.bincount(self.origins.series, minlength=len(table.values))
        # Squared errors of different series are comparable in units of their variation.
        self.unit = dividing(np.array([spread_of(own) for own in table.values]))
        pairs = zip(table.values, self.unit, strict=True)
        self.values = [(own - own.mean()) / unit for own, unit in pairs]
        self.rows = np.flatnonzero(validation.known >= lookback)
        self.tests, self.block = self._at(validation.take(self.rows)), training.block[self.rows]
        # Windows that each block leaves out, (n_blocks, n_windows).
        where, blocks = (self.origins.series, self.origins.known), range(training.n_blocks)
        self.left_out = np.array([training.overlapping(*where, b) for b in blocks])

    def pooled_products(self):
        """Products of all windows, and of those without each block."""
        every, rest = self._products(np.flatnonzero(self.counts)), []
        for left_out in self.left_out:
            out = 0.0
            for part in chunks(np.flatnonzero(left_out), _CHUNK):
                part = self._at(self.origins.take(part))
                x, y = part.keys, part.values
                out = out + np.concatenate([x.T @ x, x.T @ y], axis=1)
            rest.append(every - out)
        return [every, *rest]

    def pooled_forecasts(self, maps):
        """Forecasts of tests, relative, by maps of all series without each block."""
        found = np.empty_like(self.tests.values)
        for b in np.unique(self.block):
            found[self.block == b] = maps[b].forecast(self.tests.keys[self.block == b])
        return found

    def own_maps(self, i, alphas):
        """Maps of a series at some penalties."""
        products = self._products([i])
        return [_Map.of(products, alpha, self.counts[i]) for alpha in alphas]

    def own_forecasts(self, i, maps, pooled):
        """Tests of a series, and forecasts (n_maps, n_tests, horizon) without their blocks.

        Forecasts are relative. Maps have equal products, and are shrunk towards those of all.
        """
        n, tests = self.lookback, np.flatnonzero(self.tests.origins.series == i)
        first, block = self.counts[:i].sum(), self.block[tests]
        left_out = self.left_out[:, first : first + self.counts[i]]
        windows = sliding_window_view(self.values[i], n + self.origins.horizon)
        found = np.empty((len(maps), len(tests), self.origins.horizon))
        for b in np.unique(block):
            out, rows = windows[left_out[b]], block == b
            out, later = np.split(out - out[:, n - 1 : n], [n], axis=1)
            solved = _solve_without(out, maps, self.tests.keys[tests[rows]].T)
            for one, own, x in zip(found, maps, solved, strict=True):
                one[rows] = x.T @ own.aims(pooled[1 + b]) - (out @ x).T @ later
        return tests, found

    def _at(self, origins):
        unit = self.unit[origins.series, None]
        return Windows.before(origins, self.lookback, "last", unit, features=False)

    def _products(self, series):
        """Products of all windows of some series and what follows, relative to the last value.

        Summed over windows; (lookback, lookback + horizon).
        """
        n, size = self.lookback, self.lookback + self.origins.horizon
        products = _window_products([self.values[i] for i in series], n, size)
        products -= products[n - 1].copy()
        products -= products[:, n - 1 : n].copy()
        return products


@dataclass(frozen=True, eq=False)
class _Map:
    """Ridge regression from sums of products of windows and what follows."""

    products: np.ndarray  # (lookback, lookback + horizon)
    penalty: float

    @classmethod
    def of(cls, products, alpha, n_windows):
        """With a penalty relative to the mean square of a step."""
        penalty = alpha * np.trace(products) / len(products)
        return cls(products, max(penalty, _LEAST_PENALTY * n_windows))

    @cached_property
    def factor(self):
        """Factor of Cholesky of the products with the penalty."""
        n = len(self.products)
        shifted = self.products[:, :n].T.copy(order="F")  # symmetric
        shifted.flat[:: n + 1] += self.penalty
        return cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, b):
        """The products with the penalty, inverted, times b."""
        return cho_solve(self.factor, b, check_finite=False)

    def aims(self, start=0.0):
        """Products with what follows, if the map is shrunk towards another one."""
        return self.products[:, len(self.products) :] + self.penalty * start

    def towards(self, start=0.0):
        """The map (lookback, horizon), shrunk towards another one."""
        return self.solve(self.aims(start))

    def forecast(self, x):
        """Forecasts of windows, by way of the map only where they are many."""
        few = len(x) < self.aims().shape[1]
        return self.solve(x.T).T @ self.aims() if few else x @ self.towards()


def _solve_without(out, maps, b):
    """Solve with products of windows, without those of some left out, for each penalty.

    Where few (n_out, n) are left out the factor of all does, by the formula of Woodbury.
    """
    n_out, n = out.shape
    if 3 * n_out > n:  # costs more than another factor
        less = maps[0].products[:, :n] - out.T @ out
        return [replace(own, products=less).solve(b) for own in maps]
    found, both = [], np.concatenate([out.T, b], axis=1)
    for own in maps:
        half = partial(solve_triangular, own.factor[0], lower=True, check_finite=False)
        x, y = np.split(half(both), [n_out], axis=1)
        y += x @ np.linalg.solve(np.eye(n_out) - x.T @ x, x.T @ y)
        found.append(half(y, trans=1))
    return found


def _window_products(series, lookback, size):
    """Sums over all windows of some series of products of their steps.

    The first `lookback` of `size` steps by all of them: (lookback, size).
    """
    products = np.empty((lookback, size))
    products[0] = sum(np.correlate(own, own[: len(own) - size + 1], "valid") for own in series)
    products[1:, 0] = products[0, 1:lookback]
    # Sums of neighbouring steps differ only by the first and by the last window.
    first = np.array([own[: size - 1] for own in series])
    last = np.array([own[1 - size :] for own in series])
    products[1:, 1:] = last[:, : lookback - 1].T @ last - first[:, : lookback - 1].T @ first
    for i in range(1, lookback):
        products[i, 1:] += products[i - 1, :-1]
    return products
