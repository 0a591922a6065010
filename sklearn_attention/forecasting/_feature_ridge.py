"""Linear maps from features and the last steps to each step ahead."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ._feature_basis import FeatureBasis
from ._origins import chunks, evenly_spread

# Penalties that are tried, relative to the mean square of a column.
_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
# Origins that are learned from, evenly spread; origins at a time.
_MOST_ORIGINS, _CHUNK = 5000, 1000
# Last steps that are seen: so many seasons, of at most so many steps in all.
_SEASONS, _MOST_STEPS = 2, 64


@dataclass(eq=False)
class FeatureRidge:
    r"""Ridge regression of each step ahead on features and the last steps, for all series.

    Parameters
    ----------
    season_length : float
        Steps in a season.
    basis : FeatureBasis
        How features are seen.
    alpha : float
        The penalty that was chosen.
    coef : ndarray of shape (horizon, n_columns)
        The maps, once they are learned.
    unit : ndarray of shape (n_series,)
        Of the training series.

    Notes
    -----
    Features are seen as they are and bent at quantiles: at the origin, and those known
    beforehand at the step ahead and on average over the steps up to it. What followed and the
    last steps are relative to the last value, in units of the series. The penalty is the one
    with the least error at validation origins, of maps that have not learned from what
    followed them.
    """

    season_length: float
    basis: FeatureBasis | None = None
    alpha: float = 1.0
    coef: np.ndarray | None = None
    unit: np.ndarray | None = None

    names = ("feature ridge",)

    @property
    def lookback(self):
        """Last steps that are seen."""
        return int(np.clip(round(_SEASONS * self.season_length), 8, _MOST_STEPS))

    def fit(self, training):
        """Learn maps, and forecast validation origins by maps that have not seen them.

        Parameters
        ----------
        training : Training

        Returns
        -------
        held_out : ndarray of shape (n_validation, 1, horizon)
        """
        validation = training.validation
        origins = training.origins.take(training.origins.known >= self.lookback)
        held_out = np.full((len(validation), 1, validation.horizon), np.nan)
        if len(origins) < 2:
            return held_out
        origins = origins.take(evenly_spread(len(origins), _MOST_ORIGINS))
        self.basis = FeatureBasis.of(origins.past_features(1)[:, 0])
        self.unit = training.scale
        every = self._products(origins)
        blocks = []
        for block in range(training.n_blocks):
            out = training.overlapping(origins.series, origins.known, block)
            part = self._products(origins.take(out))
            blocks.append([own - less for own, less in zip(every, part, strict=True)])
        found, errors = [], []
        scale = training.scale[validation.series, None]
        for alpha in _ALPHAS:
            forecasts = held_out[:, 0].copy()
            for block, products in enumerate(blocks):
                rows = np.flatnonzero(training.block == block)
                self.coef = solve_ridges(*products, alpha)
                forecasts[rows] = self._apply(validation.take(rows))
            found.append(forecasts)
            errors.append(np.nanmean(((forecasts - validation.targets()) / scale) ** 2))
        best = int(np.argmin(errors))
        self.alpha, self.coef = _ALPHAS[best], solve_ridges(*every, _ALPHAS[best])
        return found[best][:, None]

    def forecast(self, origins):
        """Forecasts at some origins; (n_origins, 1, horizon).

        Parameters
        ----------
        origins : Origins
        """
        if self.coef is None:
            return np.full((len(origins), 1, origins.horizon), np.nan)
        return self._apply(origins)[:, None]

    def _columns(self, origins):
        """What is seen at origins, (n, n_fixed), and of each step, (n, horizon, n_moving)."""
        past = origins.past(self.lookback)
        now = origins.past_features(1)[:, 0]
        every = np.arange(now.shape[1])
        fixed = [past - past[:, -1:], self.basis(now, every), np.ones((len(past), 1))]
        later, known = origins.future_features(), origins.table.known
        if later is None:
            moving = np.empty((len(past), origins.horizon, 0))
        else:
            basis = self.basis(later, known)
            steps = np.arange(1, origins.horizon + 1)[:, None]
            moving = np.concatenate([basis, np.cumsum(basis, axis=1) / steps], axis=2)
        return fixed, moving, past[:, -1:]

    def _products(self, origins):
        gram = cross = 0.0
        for rows in chunks(np.arange(len(origins)), _CHUNK):
            own = origins.take(rows)
            (steps, *fixed), moving, level = self._columns(own)
            unit = self.unit[own.series, None]
            fixed = np.concatenate([steps / unit, *fixed], axis=1)
            missed = (own.targets() - level) / unit
            every = np.repeat(fixed[:, None], own.horizon, axis=1)
            columns = np.concatenate([every, moving], axis=2).swapaxes(0, 1)
            gram = gram + columns.swapaxes(1, 2) @ columns
            cross = cross + np.einsum("hnc,nh->hc", columns, missed)
        return gram, cross

    def _apply(self, origins):
        found = []
        for rows in chunks(np.arange(len(origins)), _CHUNK):
            own = origins.take(rows)
            (steps, *fixed), moving, level = self._columns(own)
            unit = own.table.units(self.unit)[own.series, None]
            fixed = np.concatenate([steps / unit, *fixed], axis=1)
            n = fixed.shape[1]
            ahead = fixed @ self.coef[:, :n].T
            ahead += np.einsum("nhc,hc->nh", moving, self.coef[:, n:])
            found.append(level + unit * ahead)
        return np.concatenate(found)


def solve_ridges(gram, cross, alpha):
    """Ridge regressions from the products of their columns and aims.

    Parameters
    ----------
    gram : ndarray of shape (n_maps, n_columns, n_columns)
    cross : ndarray of shape (n_maps, n_columns)
    alpha : float
        Penalty, relative to the mean square of a column.

    Returns
    -------
    coef : ndarray of shape (n_maps, n_columns)
    """
    n = gram.shape[1]
    found = np.empty(cross.shape)
    for i, (own, aim) in enumerate(zip(gram, cross, strict=True)):
        penalty = alpha * np.trace(own) / n or 1.0
        found[i] = cho_solve(cho_factor(own + penalty * np.eye(n)), aim)
    return found
