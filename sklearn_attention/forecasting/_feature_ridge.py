"""Linear maps from features and the last steps to each step ahead."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._metrics import dividing, spread_of
from ._origins import chunks, evenly_spread, held_out

# Penalties that are tried, relative to the mean square of a column.
_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
# Origins that are learned from, evenly spread; origins at a time.
_MOST_ORIGINS, _CHUNK = 5000, 1000
# Last steps that are used: so many seasons, of at most so many steps in all.
_SEASONS, _MOST_STEPS = 2, 64
# Quantiles that features bend at, and values a feature has at least to bend.
_KNOTS, _FEWEST_VALUES = (0.2, 0.4, 0.6, 0.8), 6


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    r"""Standardised features, and hinges :math:`\max(x - q, 0)` at four of their quantiles."""

    center: np.ndarray  # (n_features,)
    scale: np.ndarray
    bends: np.ndarray  # (n_bends,), which feature bends
    knots: np.ndarray  # where it does, standardised

    @classmethod
    def of(cls, features):
        """The basis of a table of features, (n_rows, n_features)."""
        center, scale = features.mean(axis=0), dividing(spread_of(features, axis=0))
        pairs = [
            (i, knot)
            for i, column in enumerate(((features - center) / scale).T)
            if len(np.unique(column)) >= _FEWEST_VALUES
            for knot in np.unique(np.quantile(column, _KNOTS))
        ]
        bends = np.array([i for i, _ in pairs], dtype=np.int64)
        return cls(center, scale, bends, np.array([knot for _, knot in pairs]))

    def __call__(self, features, columns):
        """Some columns, which are all that `features` has, and hinges; (..., n_basis)."""
        whole = np.zeros((*features.shape[:-1], len(self.center)))
        whole[..., columns] = (features - self.center[columns]) / self.scale[columns]
        kept = np.isin(self.bends, columns)
        bent = np.maximum(whole[..., self.bends[kept]] - self.knots[kept], 0)
        return np.concatenate([whole[..., columns], bent], axis=-1)


@dataclass(frozen=True, eq=False)
class FeatureRidge:
    """Ridge regression of each step ahead on features and the last steps, for all series."""

    # Features are used as they are and with hinges at quantiles: those at the origin, and those
    # known beforehand at the step ahead and averaged over the steps up to it. Targets and the
    # last steps are relative to the last value, in units of the series. The penalty is the one
    # with the least error at validation origins, of maps that have not learned from these
    # targets.

    season_length: float
    basis: FeatureBasis | None = None
    alpha: float = 1.0
    coef: np.ndarray | None = None  # (horizon, n_columns)
    unit: np.ndarray | None = None  # of each training series

    names = ("feature ridge",)

    @property
    def lookback(self):
        """Last steps that are used."""
        return int(np.clip(round(_SEASONS * self.season_length), 8, _MOST_STEPS))

    def fit(self, training):
        """Learn maps, and forecast validation origins by maps learned apart from them."""
        origins, validation = training.origins, training.validation
        origins = origins.take(origins.known >= self.lookback)
        if len(origins) < 2:
            return self, np.full((len(validation), 1, validation.horizon), np.nan)
        origins = origins.take(evenly_spread(len(origins), _MOST_ORIGINS))
        basis = FeatureBasis.of(origins.past_features(1)[:, 0])
        ridge = replace(self, basis=basis, unit=training.scale)
        every, apart = ridge._products(origins), []
        for block in range(training.n_blocks):
            out = training.overlapping(origins.series, origins.known, block)
            part = ridge._products(origins.take(out))
            apart.append([whole - less for whole, less in zip(every, part, strict=True)])
        targets, unit = validation.targets(), training.scale[validation.series, None]
        tried = []
        for alpha in _ALPHAS:
            maps = [ridge._solved(products, alpha) for products in apart]
            found = held_out(maps.__getitem__, training)
            tried.append((np.nanmean(((found[:, 0] - targets) / unit) ** 2), alpha, found))
        _, alpha, found = min(tried, key=lambda one: one[0])
        return ridge._solved(every, alpha), found

    def forecast(self, origins):
        """Forecasts at some origins; (n_origins, 1, horizon)."""
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        for rows in chunks(np.arange(len(origins)), _CHUNK) if self.coef is not None else ():
            some = origins.take(rows)
            fixed, moving, level, unit = self._columns(some)
            n = fixed.shape[1]
            ahead = fixed @ self.coef[:, :n].T
            ahead += np.einsum("nhc,hc->nh", moving, self.coef[:, n:])
            found[rows, 0] = level + unit * ahead
        return found

    def _solved(self, products, alpha):
        return replace(self, alpha=alpha, coef=solve_ridges(*products, alpha))

    def _columns(self, origins):
        """Columns alike for all steps, (n, n_fixed), those of each, (n, horizon, n_moving).

        With the last value and the unit, which both are relative to, (n, 1).
        """
        past, unit = origins.past(self.lookback), origins.units(self.unit)[:, None]
        now, level = origins.past_features(1)[:, 0], past[:, -1:]
        basis = self.basis(now, np.arange(now.shape[1]))
        fixed = np.concatenate([(past - level) / unit, basis, np.ones_like(level)], axis=1)
        later, known = origins.future_features(), origins.table.known
        if later is None:
            moving = np.empty((len(past), origins.horizon, 0))
        else:
            basis = self.basis(later, known)
            steps = np.arange(1, origins.horizon + 1)[:, None]
            moving = np.concatenate([basis, np.cumsum(basis, axis=1) / steps], axis=2)
        return fixed, moving, level, unit

    def _products(self, origins):
        """Products of columns with one another and with targets, summed over origins."""
        gram = cross = 0.0
        for rows in chunks(np.arange(len(origins)), _CHUNK):
            some = origins.take(rows)
            fixed, moving, level, unit = self._columns(some)
            missed = (some.targets() - level) / unit
            every = np.repeat(fixed[:, None], some.horizon, axis=1)
            columns = np.concatenate([every, moving], axis=2).swapaxes(0, 1)
            gram = gram + columns.swapaxes(1, 2) @ columns
            cross = cross + np.einsum("hnc,nh->hc", columns, missed)
        return gram, cross


def solve_ridges(gram, cross, alpha):
    """Coefficients (n_maps, n_columns) of ridges, by products of columns and with targets.

    `gram` is (n_maps, n_columns, n_columns), and `alpha` relative to a mean square of a column.
    """
    n = gram.shape[1]
    found = np.empty(cross.shape)
    for i, (products, aim) in enumerate(zip(gram, cross, strict=True)):
        penalty = alpha * np.trace(products) / n or 1.0
        found[i] = cho_solve(cho_factor(products + penalty * np.eye(n)), aim)
    return found
