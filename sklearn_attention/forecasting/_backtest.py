"""Forecasts from points in the past, beside what happened."""

import numbers

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit, check_cv

from .._validation import check_positive


def backtest(forecaster, X, y, cv, refit):
    """Forecast every fold from what came before it.

    Parameters
    ----------
    forecaster : Forecaster
        Whose parameters are judged; it is not changed, and need not be fitted.
    X, y, cv, refit
        As for :meth:`Forecaster.backtest`.

    Returns
    -------
    forecasts : DataFrame
    """
    features, target = (None, X) if y is None else (X, y)
    if isinstance(target, dict) or isinstance(getattr(target, "index", None), pd.MultiIndex):
        raise ValueError(
            "backtest splits rows, which series in a dict or one below the other do not share: "
            "pass a frame with a column for each series, for example by unstack(level=0)."
        )
    if not isinstance(target, pd.Series | pd.DataFrame):
        target = np.asarray(target)
    folds, model, known = [], None, 0
    for fold, (first, last, start, stop) in enumerate(_folds(target, cv, forecaster.horizon)):
        if refit or model is None:
            model, known = clone(forecaster).fit(*_cut(features, target, first, last)), last
        if last < known:
            raise ValueError(
                f"cv={cv!r} ends the past of fold {fold} before that of the fold before: sort "
                "its folds in time, or pass refit=True."
            )
        if last > known:
            model.update(*_cut(features, target, known, last))
            known = last
        # Rows between the past and the test are forecast too, since their features are needed.
        asked = stop - last if features is None else _cut(features, target, last, stop)[0]
        forecast = np.asarray(model.predict(asked)).reshape(stop - last, -1)
        folds.append(_tidy(fold, features, target, start, stop, forecast[start - last :]))
    return pd.concat(folds, ignore_index=True)


def _folds(target, cv, horizon):
    """First row of the past, row after its last, first row of the test, row after its last."""
    if isinstance(cv, numbers.Integral):
        n_folds = check_positive("cv", cv, integer=True, minimum=2)
        cv = TimeSeriesSplit(
            n_folds, test_size=check_positive("horizon", horizon, integer=True)
        )
    for train, test in check_cv(cv).split(target):
        stretches = all(len(part) and (np.diff(part) == 1).all() for part in (train, test))
        if not stretches or train[-1] >= test[0]:
            raise ValueError(
                f"cv={cv!r} has folds that are no stretch of time with its test after its "
                "training rows: pass a TimeSeriesSplit."
            )
        yield train[0], train[-1] + 1, test[0], test[-1] + 1


def _cut(features, target, start, stop):
    """Rows of what is passed to `fit` and `update`."""
    parts = [target] if features is None else [features, target]
    return [
        part.iloc[start:stop] if hasattr(part, "iloc") else part[start:stop] for part in parts
    ]


def _tidy(fold, features, target, start, stop, forecast):
    indexed = target if hasattr(target, "index") else features
    if not hasattr(indexed, "index") or not isinstance(indexed, pd.Series | pd.DataFrame):
        time = indexed if isinstance(indexed, pd.Index) else pd.RangeIndex(len(target))
    else:
        time = indexed.index
    (actual,) = _cut(None, target, start, stop)
    n_series = forecast.shape[1]
    table = pd.DataFrame(
        {
            "fold": fold,
            "time": time[start:stop].repeat(n_series),
            "actual": np.asarray(actual, dtype=np.float64).ravel(),
            "forecast": forecast.ravel(),
        }
    )
    if np.ndim(target) == 2:
        names = target.columns if isinstance(target, pd.DataFrame) else range(n_series)
        table.insert(2, "series", list(names) * (stop - start))
    # A series that has ended has no observation to compare with.
    return table.dropna(subset="actual", ignore_index=True)
