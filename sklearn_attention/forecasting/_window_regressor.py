"""Any regressor of scikit-learn as a candidate: from the last steps to what follows."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import get_tags

from ._origins import out_of_fold_forecasts
from ._table import naive_scales, spread_over_phases

# At most so many windows are learned from.
_MOST_WINDOWS = 10_000


@dataclass(frozen=True, eq=False)
class WindowRegressor:
    """A regressor from windows of all series to what followed them."""

    # Windows and targets are relative to the last value, in units of the mean absolute
    # difference between neighbours of their series. A regressor of a single output is fitted
    # for each step ahead.

    regressor: object
    lookback: int
    names: tuple  # one
    fitted: object = None  # a clone that has learned
    unit: np.ndarray | None = None  # of each training series

    def fit(self, validation):
        """Learn, and forecast validation origins by clones learned apart from them."""
        origins = validation.origins
        origins = origins.take(origins.n_known >= self.lookback)
        origins = origins.take(spread_over_phases(len(origins), _MOST_WINDOWS))
        unit = naive_scales(origins.table.observations)
        blank = replace(self, fitted=None, unit=unit)

        def learn(block):
            out = validation.overlapping(origins.series, origins.n_known, block)
            return blank._learned(origins.take(~out))

        return blank._learned(origins), out_of_fold_forecasts(learn, validation)

    def forecast(self, origins):
        """Forecasts (n_origins, 1, horizon); NaN where a series is too short."""
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        whole = np.flatnonzero(origins.n_known >= self.lookback)
        if self.fitted is not None and len(whole):
            windows, level, unit = self._windows(origins.take(whole))
            ahead = np.reshape(self.fitted.predict(windows), (len(whole), -1))
            found[whole, 0] = level + unit * ahead
        return found

    def _learned(self, origins):
        """The same with a regressor fitted to windows; as it is where there are too few."""
        if len(origins) < 2:
            return self
        windows, level, unit = self._windows(origins)
        aims, regressor = (origins.targets() - level) / unit, clone(self.regressor)
        if origins.horizon == 1:
            aims = aims[:, 0]
        elif not get_tags(regressor).target_tags.multi_output:
            regressor = MultiOutputRegressor(regressor)
        return replace(self, fitted=regressor.fit(windows, aims))

    def _windows(self, origins):
        past, unit = origins.past(self.lookback), origins.series_units(self.unit)[:, None]
        return (past - past[:, -1:]) / unit, past[:, -1:], unit


def window_regressors(regressors, lookback):
    """Candidates of regressors, each named by its class, and numbered where it comes again."""
    kinds = [type(one).__name__ for one in regressors]
    counts = [kinds[: i + 1].count(kind) for i, kind in enumerate(kinds)]
    names = [kind if n == 1 else f"{kind} {n}" for kind, n in zip(kinds, counts, strict=True)]
    pairs = zip(regressors, names, strict=True)
    return [WindowRegressor(one, lookback, (name,)) for one, name in pairs]
