"""Linear maps from windows to what follows, of all series together and of each one."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ._measures import dividing, spread_of
from ._origins import chunks

# Penalties that are tried, relative to the mean square of a step of the windows: of a map, and
# of the difference of a map of one series from that of all.
ALPHAS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
OWN_ALPHAS = (1e-2, 0.1, 1.0, 10.0, 100.0)
# Series that penalties are chosen by, evenly spread.
_MOST_SERIES = 20
# Windows there have to be, as a share of the steps of a window.
_LEAST_SHARE = 0.5
_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class WindowRidge:
    r"""Ridge regression from windows to what follows, all steps at once.

    Windows and what followed are taken relative to the last value, in units of the series'
    standard deviations, without intercept:

    .. math:: \min_B \sum_i \lVert y_i - B^\top x_i \rVert^2 + \alpha \lVert B - B_0 \rVert^2 .

    The map of all series is shrunk towards 0, which is to forecast the last value. Maps of
    single series are shrunk towards that of all, since the months of a year that a series has
    had do not tell its level of the next. Penalties are those with the least error at
    validation origins, of maps that have not learned from what followed them.
    """

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
        origins, validation = training.origins, training.validation
        held_out = np.full((len(validation), len(self.names), origins.horizon), np.nan)
        values = origins.table.values
        counts = np.bincount(origins.series[origins.known >= self.lookback])
        least = max(2, _LEAST_SHARE * self.lookback)
        if counts.sum() < least:
            return self, held_out
        # Squared errors of different series are comparable in units of their variation.
        unit = dividing(np.array([spread_of(own) for own in values]))
        groups = np.flatnonzero(counts >= least) if self.own else np.empty(0, dtype=np.int64)
        choosing = groups[:: -(-len(groups) // _MOST_SERIES) or 1]
        kept, every = {}, 0.0
        for i in np.flatnonzero(counts):
            products = self._products(training, i, unit[i])
            every = every + products
            if i in choosing:
                kept[i] = products
        rows = np.flatnonzero(validation.known >= self.lookback)
        least = np.inf
        for alpha in ALPHAS:
            maps = self._maps(every, alpha, np.zeros(len(every)))
            found, error = self._held_out(training, rows, maps, unit)
            if error < least:
                least, best, pooled, held_out[rows, 0] = error, alpha, maps, found
        coef, tests = [pooled[0]], {i: rows[validation.series[rows] == i] for i in groups}
        errors = np.zeros(len(OWN_ALPHAS))
        for i, products in kept.items():
            for j, alpha in enumerate(OWN_ALPHAS):
                maps = self._maps(products, alpha, pooled)
                errors[j] += self._held_out(training, tests[i], maps, unit)[1]
        own_alpha = OWN_ALPHAS[errors.argmin()]
        for i in groups:
            products = kept.pop(i) if i in kept else self._products(training, i, unit[i])
            maps = self._maps(products, own_alpha, pooled)
            coef.append(maps[0])
            held_out[tests[i], 1] = self._held_out(training, tests[i], maps, unit)[0]
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
                found[part, name] = self._apply(origins.take(part), coef)
        return found

    def _apply(self, origins, coef):
        past = origins.past(self.lookback)
        return past[:, -1:] + (past - past[:, -1:]) @ coef

    def _products(self, training, i, unit):
        """Products of the windows of a series and what follows, relative to the last value.

        Those of all and less each block: (1 + n_blocks, lookback, lookback + horizon).
        """
        n, values = self.lookback, training.origins.table.values[i]
        known = np.arange(n, len(values) - training.origins.horizon + 1)
        size, values = n + training.origins.horizon, (values - values.mean()) / unit
        spans = [known]
        for block in range(training.n_blocks):
            spans.append(known[training.overlapping(np.full(len(known), i), known, block)])
        products = np.zeros((len(spans), n, size))
        for own, span in zip(products, spans, strict=True):
            if len(span):
                own[:] = _window_products(values[span[0] - n : span[-1] + size - n], n, size)
        products -= (
            products[:, :, n - 1 : n]
            + products[:, n - 1 :, :]
            - products[:, n - 1 :, n - 1 : n]
        )
        products[1:] = products[0] - products[1:]
        return products

    def _held_out(self, training, tests, maps, unit):
        """Forecasts by maps learned apart from their block, and the sum of squared errors."""
        own, block = training.validation.take(tests), training.block[tests]
        found = np.empty((len(tests), own.horizon))
        for b in np.unique(block):
            rows = block == b
            found[rows] = self._apply(own.take(rows), maps[1 + b])
        return found, np.nansum(((found - own.targets()) / unit[own.series, None]) ** 2)

    def _maps(self, products, alpha, starts):
        """Maps from products of windows, each shrunk towards another one."""
        n = self.lookback
        maps = np.empty((len(products), n, products.shape[2] - n))
        for found, own, start in zip(maps, products, starts, strict=True):
            penalty = alpha * np.trace(own) / n or 1.0
            shifted, aims = own[:, :n] + penalty * np.eye(n), own[:, n:] + penalty * start
            try:
                found[:] = cho_solve(cho_factor(shifted), aims)
            except LinAlgError:
                found[:] = np.linalg.lstsq(shifted, aims, rcond=None)[0]
        return maps


def _window_products(values, lookback, size):
    """Sums over the windows of a stretch of values of products of their steps.

    The first `lookback` of `size` steps by all of them: (lookback, size).
    """
    n = len(values) - size + 1
    products = np.empty((lookback, size))
    products[0] = np.correlate(values, values[:n], "valid")
    products[1:, 0] = products[0, 1:lookback]
    for i in range(1, lookback):
        # Sums of neighbouring steps differ by the first and by the last window alone.
        later, sooner = values[n + i - 1] * values[n:], values[i - 1] * values[: size - 1]
        products[i, 1:] = products[i - 1, :-1] + later - sooner
    return products
