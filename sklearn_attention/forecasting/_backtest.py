"""Forecasts from points in the past, beside what happened."""

import numbers

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit, check_cv

from .._validation import check_positive
from ._panel import ALIGNED
from ._record import Record


def backtest(forecaster, X, y, cv, refit, coverage):
    """Forecast every fold from what came before it; see :meth:`Forecaster.backtest`.

    The forecaster is not changed, and need not be fitted.
    """
    record = Record.read(X, y)
    panel = record.panel
    rows = X if y is None else y
    rows = rows if panel.form in ALIGNED else np.empty(len(panel.time))
    folds, model, ends, known = [], None, {}, 0
    for fold, (first, last, start, stop) in enumerate(_folds(rows, cv, forecaster.horizon)):
        if refit or model is None:
            begin, past = first, record.past(first, last)
            model = clone(forecaster).fit(*record.told(past, {}, last))
        elif last < known:
            raise ValueError(
                f"cv={cv!r} ends the past of fold {fold} before that of the fold before: sort "
                "its folds in time, or pass refit=True."
            )
        else:
            past = record.past(begin, last)
            if ends != _ends_of(past):
                fill = {"missing": forecaster.missing, "season_length": model.season_length_}
                model.update(*record.told(past, ends, last, fill))
        ends, known = _ends_of(past), last
        found = _compare(record, model, ends, start, stop, coverage)
        cutoff = panel.time.between(last - 1, last)[0]
        folds += [part.assign(fold=fold, cutoff=cutoff) for part in found]
    if not folds:
        raise ValueError(f"cv={cv!r} has no test rows of series that have a past: pass others.")
    keys = ["fold", "cutoff", "time", "actual"]
    if panel.form not in ("array", "series"):
        keys.insert(0, "series")
    table = pd.concat(folds, ignore_index=True)
    named = ["series", *keys]
    return table[keys + [name for name in table if name not in named]]


def _ends_of(past):
    return {i: start + len(values) for i, (start, values) in past.items()}


def _compare(record, model, ends, start, stop, coverage):
    """For each series that has a past a frame of its forecasts, and of what happened."""
    happened = record.happened(ends, start, stop)
    if not happened:
        return []
    forecasts = model.predict(record.asked(ends, start, stop), coverage=coverage)
    parts = []
    for i, (times, actual) in happened.items():
        found = pd.DataFrame(forecasts[record.names[i]]).reindex(times)
        if found.isna().any(axis=None):
            lost = times[found.isna().any(axis=1)][0]
            raise ValueError(f"X has no rows for {lost}, where y has values: add them.")
        if coverage is None:
            found.columns = ["forecast"]
        found = found.rename_axis(None).reset_index(drop=True)
        name = pd.Series([record.panel.names[i]] * len(times), dtype=object)
        found.insert(0, "series", name.infer_objects())
        found.insert(1, "time", times)
        found.insert(2, "actual", actual)
        parts.append(found)
    return parts


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
