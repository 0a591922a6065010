"""Any regressor of scikit-learn as a candidate: from the last steps to what follows."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from ._measures import naive_scales
from ._origins import evenly_spread

# Windows that are learned from, evenly spread.
_MOST_WINDOWS = 10_000


@dataclass(eq=False)
class WindowRegressor:
    """A regressor from windows of all series to what followed them.

    Parameters
    ----------
    regressor : estimator
        Is cloned. One of a single output is fitted for each step ahead.
    lookback : int
        Steps of a window.
    names : tuple of str
        Name of the forecasts.
    fitted : estimator or None
        The clone that has learned from all windows.

    Notes
    -----
    Windows and what followed are relative to the last value, in units of the mean absolute
    difference between neighbours of their series.
    """

    regressor: object
    lookback: int
    names: tuple
    fitted: object = None

    def fit(self, training):
        """Learn, and forecast validation origins by clones that have not seen them.

        Parameters
        ----------
        training : Training

        Returns
        -------
        held_out : ndarray of shape (n_validation, 1, horizon)
            NaN where there are too few windows.
        """
        origins, validation = training.origins, training.validation
        origins = origins.take(np.flatnonzero(origins.known >= self.lookback))
        origins = origins.take(evenly_spread(len(origins), _MOST_WINDOWS))
        held_out = np.full((len(validation), 1, validation.horizon), np.nan)
        for block in range(training.n_blocks):
            apart = ~training.overlapping(origins.series, origins.known, block)
            rows = np.flatnonzero(training.block == block)
            fitted = self._learned(origins.take(apart))
            held_out[rows] = self._forecast(fitted, validation.take(rows))
        self.fitted = self._learned(origins)
        return held_out

    def forecast(self, origins):
        """Forecasts at some origins; NaN where a series is too short.

        Parameters
        ----------
        origins : Origins

        Returns
        -------
        forecasts : ndarray of shape (n_origins, 1, horizon)
        """
        return self._forecast(self.fitted, origins)

    def _forecast(self, fitted, origins):
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        seen = np.flatnonzero(origins.known >= self.lookback)
        if fitted is not None and len(seen):
            windows, level, unit = self._windows(origins.take(seen))
            ahead = np.reshape(fitted.predict(windows), (len(seen), -1))
            found[seen, 0] = level + unit * ahead
        return found

    def _learned(self, origins):
        if len(origins) < 2:
            return None
        windows, level, unit = self._windows(origins)
        aims, regressor = (origins.targets() - level) / unit, clone(self.regressor)
        if origins.horizon == 1:
            aims = aims[:, 0]
        elif not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        return regressor.fit(windows, aims)

    def _windows(self, origins):
        past = origins.past(self.lookback)
        unit = naive_scales(origins.table.values)[origins.series, None]
        return (past - past[:, -1:]) / unit, past[:, -1:], unit


def window_regressors(regressors, lookback):
    """Candidates of regressors, each named by its class, and numbered where it comes again.

    Parameters
    ----------
    regressors : list of estimators
    lookback : int
        Steps of their windows.

    Returns
    -------
    candidates : list of WindowRegressor
    """
    kinds = [type(one).__name__ for one in regressors]
    counts = [kinds[: i + 1].count(kind) for i, kind in enumerate(kinds)]
    names = [kind if n == 1 else f"{kind} {n}" for kind, n in zip(kinds, counts, strict=True)]
    pairs = zip(regressors, names, strict=True)
    return [WindowRegressor(one, lookback, (name,)) for one, name in pairs]
