"""Linear maps from windows to what follows, of each series or of all together."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ._measures import dividing, spread_of
from ._observations import chunks

# Penalties that are tried, relative to the mean square of a step of the windows.
ALPHAS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
# Windows that are learned from, and series that penalties are chosen by; evenly spread.
_MOST_WINDOWS, _MOST_SERIES = 60_000, 20
# Windows there have to be, as a share of the steps that they look back.
_LEAST_SHARE = 0.5
_CHUNK = 8192


@dataclass(eq=False)
class WindowRidge:
    r"""Ridge regression from windows to what follows, all steps at once.

    Parameters
    ----------
    lookback : int
        Steps of a window.
    season_length : float
        Steps that the level of a window is the mean of; see Notes.
    pooled : bool
        Whether all series share a map, or have one each.
    relative_to_season, alpha : bool and float
        The level and the penalty that were chosen.
    coef : ndarray of shape (n_maps, lookback, horizon)
        The maps, once they are learned.
    groups : ndarray of int of shape (n_maps,)
        Which series each is of.

    Notes
    -----
    Windows and what followed are taken relative to a level :math:`l`, their last value or the
    mean of their last season, in units of the series' standard deviations, without intercept:

    .. math:: \min_B \sum_i \lVert y_i - l_i - B^\top (x_i - l_i) \rVert^2
              + \alpha \lVert B \rVert^2 .

    Penalty and level are those with the least error at validation origins, of maps that have
    not learned from what followed them. All maps come from one matrix of products: windows
    that are held out are subtracted from it.
    """

    lookback: int
    season_length: float
    pooled: bool
    relative_to_season: bool = False
    alpha: float = 1.0
    coef: np.ndarray | None = None
    groups: np.ndarray | None = None

    @property
    def names(self):
        """Names of the forecasts."""
        return (f"{'pooled' if self.pooled else 'own'} ridge of {self.lookback} steps",)

    def fit(self, training):
        """Learn maps, and forecast validation origins by maps that have not seen them.

        Parameters
        ----------
        training : Training

        Returns
        -------
        held_out : ndarray of shape (n_validation, 1, horizon)
            NaN where a series is too short.
        """
        origins, validation = training.origins, training.validation
        # Squared errors of different series are comparable in units of their variation.
        unit = dividing(np.array([spread_of(own) for own in origins.observations.values]))
        usable = np.flatnonzero(origins.known >= self.lookback)
        group = np.zeros_like(origins.series) if self.pooled else origins.series
        groups, counts = np.unique(group[usable], return_counts=True)
        groups = groups[counts >= max(2, _LEAST_SHARE * self.lookback)]
        held_out = np.full((len(validation), 1, origins.horizon), np.nan)
        seen = validation.known >= self.lookback
        tests = {
            g: np.flatnonzero(seen & (self.pooled | (validation.series == g))) for g in groups
        }
        products = {}
        errors = np.zeros((2, len(ALPHAS)))
        for g in groups[:: -(-len(groups) // _MOST_SERIES)] if len(groups) else ():
            products[g] = self._products(training, usable[group[usable] == g], tests[g], unit)
            for level in range(2):
                for j, alpha in enumerate(ALPHAS):
                    found = self._held_out(training, tests[g], products[g], level, alpha)
                    missed = found - validation.take(tests[g]).targets()
                    missed /= unit[validation.series[tests[g]], None]
                    errors[level, j] += np.nansum(missed**2)
        level, best = np.unravel_index(errors.argmin(), errors.shape)
        self.relative_to_season, self.alpha = bool(level), ALPHAS[best]
        self.groups = groups
        self.coef = np.empty((len(groups), self.lookback, origins.horizon))
        for place, g in enumerate(groups):
            if g not in products:
                products[g] = self._products(
                    training, usable[group[usable] == g], tests[g], unit
                )
            self.coef[place] = self._solve(products[g][0], level, self.alpha)
            held_out[tests[g], 0] = self._held_out(
                training, tests[g], products.pop(g), level, self.alpha
            )
        return held_out

    def forecast(self, origins):
        """Forecasts at some origins; NaN where a series is too short or not known.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        forecasts : ndarray of shape (n_origins, 1, horizon)
        """
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        seen = origins.known >= self.lookback
        group = np.zeros_like(origins.series) if self.pooled else origins.identity
        for g, coef in zip(self.groups, self.coef, strict=True):
            rows = np.flatnonzero(seen & (group == g))
            for part in chunks(rows, _CHUNK):
                found[part, 0] = self._apply(origins.take(part), coef, self.relative_to_season)
        return found

    @property
    def _season(self):
        return min(self.lookback, max(1, round(self.season_length)))

    def _apply(self, origins, coef, level):
        past = origins.past(self.lookback)
        base = past[:, -1:] if not level else past[:, -self._season :].mean(1, keepdims=True)
        return base + (past - base) @ coef

    def _products(self, training, rows, tests, unit):
        """Products of windows and what follows, of all rows and less those of each block."""
        if len(rows) > _MOST_WINDOWS:
            rows = rows[:: -(-len(rows) // _MOST_WINDOWS)]
        origins = training.origins.take(rows)
        every = self._gram(origins, unit)
        blocks = {}
        for block in np.unique(training.block[tests]):
            out = training.overlapping(origins.series, origins.known, block)
            blocks[block] = every - self._gram(origins.take(out), unit)
        return every, blocks

    def _gram(self, origins, unit):
        size = self.lookback + origins.horizon
        total = np.zeros((self.lookback, size))
        for part in chunks(np.arange(len(origins)), _CHUNK):
            own = origins.take(part)
            past, scale = own.past(self.lookback), unit[own.series, None]
            x = (past - past[:, -1:]) / scale
            y = (own.targets() - past[:, -1:]) / scale
            total += x.T @ np.concatenate([x, y], axis=1)
        return total

    def _held_out(self, training, tests, products, level, alpha):
        validation = training.validation
        found = np.empty((len(tests), validation.horizon))
        for block, gram in products[1].items():
            own = training.block[tests] == block
            coef = self._solve(gram, level, alpha)
            found[own] = self._apply(validation.take(tests[own]), coef, level)
        return found

    def _solve(self, gram, level, alpha):
        """The map from products of windows less their last value."""
        n = self.lookback
        own, cross = gram[:, :n], gram[:, n:]
        if level == 1:
            # The level is linear in the window, so that products only have to be projected.
            season = slice(n - self._season, n)
            to_level = own[:, season].mean(axis=1, keepdims=True)
            cross = cross - to_level
            cross = cross - cross[season].mean(axis=0)
            own = own - to_level
            own = own - own[season].mean(axis=0)
        penalty = alpha * np.trace(own) / n or 1.0
        shifted = own + penalty * np.eye(n)
        try:
            return cho_solve(cho_factor(shifted), cross)
        except LinAlgError:
            return np.linalg.lstsq(shifted, cross, rcond=None)[0]
