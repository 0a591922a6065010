"""Any regressor of scikit-learn as a candidate.

Forecasts: what the regressor predicts from the last `lookback` steps of a series. Windows and
targets are relative to the last value, in units of the naive scale of the series.

Learns: a clone of the regressor on windows of all series; if it has a single output, one clone
for each step ahead.

Costs: one fit on all windows, at most 10 000, and one without each of the five blocks.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from ._origins import out_of_fold_forecasts
from ._table import naive_scales, spread_over_phases

# A regressor learns from at most 10 000 windows.
_MAX_WINDOWS = 10_000


@dataclass(frozen=True, eq=False)
class WindowRegressor:
    """A regressor from windows of all series to what followed them.

    Attributes
    ----------
    regressor : estimator
        Regressor to be cloned.
    lookback : int
        Number of steps in a window.
    names : (str,)
    fitted : estimator or None
        Clone that has learned; None if there were fewer than two windows.
    unit : ndarray of shape (n_series,) or None
        Naive scale of each training series.
    """

    regressor: object
    lookback: int
    names: tuple
    fitted: object = None
    unit: np.ndarray | None = None

    def fit(self, validation):
        """Return a fitted candidate, and out-of-fold forecasts (n_validation, 1, horizon)."""
        origins = validation.origins
        origins = origins.take(origins.n_known >= self.lookback)
        origins = origins.take(spread_over_phases(len(origins), _MAX_WINDOWS))
        unit = naive_scales(origins.table.observations)
        unfitted = replace(self, fitted=None, unit=unit)

        def learn(block):
            overlaps = validation.overlapping(origins.series, origins.n_known, block)
            return unfitted._fit_to(origins.take(~overlaps))

        return unfitted._fit_to(origins), out_of_fold_forecasts(learn, validation)

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon), NaN where fewer steps than a window are known."""
        forecasts = np.full((len(origins), 1, origins.horizon), np.nan)
        rows = np.flatnonzero(origins.n_known >= self.lookback)
        if self.fitted is not None and len(rows):
            windows, level, unit = self._windows(origins.take(rows))
            predictions = np.reshape(self.fitted.predict(windows), (len(rows), -1))
            forecasts[rows, 0] = level + unit * predictions
        return forecasts

    def _fit_to(self, origins):
        """Fit the regressor to windows before origins, unless there are fewer than two."""
        if len(origins) < 2:
            return self
        windows, level, unit = self._windows(origins)
        targets, regressor = (origins.targets() - level) / unit, clone(self.regressor)
        if origins.horizon == 1:
            targets = targets[:, 0]
        elif not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        return replace(self, fitted=regressor.fit(windows, targets))

    def _windows(self, origins):
        """Return windows (n_origins, lookback), and their levels and units, (n_origins, 1)."""
        past, unit = origins.past(self.lookback), origins.series_units(self.unit)[:, None]
        return (past - past[:, -1:]) / unit, past[:, -1:], unit


def window_regressors(regressors, lookback):
    """Make candidates of regressors, named by their classes.

    Names of a class that occurs several times are numbered from the second one on.
    """
    kinds = [type(regressor).__name__ for regressor in regressors]
    counts = [kinds[: i + 1].count(kind) for i, kind in enumerate(kinds)]
    names = [kind if n == 1 else f"{kind} {n}" for kind, n in zip(kinds, counts, strict=True)]
    return [
        WindowRegressor(regressor, lookback, (name,))
        for regressor, name in zip(regressors, names, strict=True)
    ]
