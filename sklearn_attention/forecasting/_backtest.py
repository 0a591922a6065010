"""Forecasts from points in the past, with the observed values."""

import numbers
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit, check_cv

from .._validation import check_positive, is_one_of
from ._checks import check_levels, fill_values
from ._forms import SERIES, TARGET, TIME, in_library
from ._inputs import read_given, refuse_no_features, request, with_known, without_gaps

# Of a backtest, and of a frame of observations.
NAMES = {"series": SERIES, "time": TIME, "actual": TARGET}


def backtest(forecaster, X, y, cv, refit, coverage):
    """Forecast every fold from what came before it; see :meth:`Forecaster.backtest`.

    The forecaster is not changed, and need not be fitted.
    """
    if coverage is not None:
        coverage = check_levels("coverage", coverage)
    reader = clone(forecaster)
    table, rows, what = read_given(reader, X, y)
    if getattr(forecaster, "n_features_in_", 0) and not reader.n_features_in_:
        refuse_no_features(forecaster, further=", and the series as y")
    if rows is None and is_one_of(reader.missing, "zero"):  # then that is what was observed
        table = fill_values(table, missing="zero", season_length=1, what=what)
    form, names = table.form, table.names
    past = _Past(reader, table, rows)
    target = (X if y is None else y) if form.aligned else np.empty(len(table.time))
    folds, model = [], None
    for fold, (first, last, start, stop) in enumerate(_folds(target, cv, forecaster.horizon)):
        if refit or model is None:
            model = past.learn(first, last)
        elif last < past.last:
            raise ValueError(
                f"cv={cv!r} has a fold, {fold}, whose training rows end earlier than those of "
                "the fold before: sort its folds in time, or pass refit=True."
            )
        else:
            past.update(model, last)
        found = past.compare(model, start, stop, coverage)
        cutoff = table.time.between(last - 1, last)[0]
        folds += [part.assign(fold=fold, cutoff=cutoff) for part in found]
    if not folds:
        raise ValueError(
            f"cv={cv!r} has no test rows of a series with earlier training rows: pass folds "
            "that train on earlier steps of the series they test."
        )
    found = pd.concat(folds, ignore_index=True)
    keys = ["fold", "cutoff", "time", "actual"]
    if form.kind not in ("array", "series") and not form.single:
        keys.insert(0, "series")
        of_row = [names[i] for i in found["series"]]
        found["series"] = pd.Series(of_row, dtype=object).infer_objects()
    named = ["series", *keys]
    found = found[keys + [name for name in found if name not in named]]
    if form.kind == "tidy":
        found = found.rename(columns=NAMES)
    return in_library(found, form.library)


class _Past:
    """Series, and models that are fitted to a stretch of them and then grow."""

    def __init__(self, reader, table, rows):
        names = ["y" if name is None else name for name in table.names]
        self.table = replace(table, names=names, form=replace(table.form, kind="dict"))
        self.reader, self.rows = reader, rows

    def learn(self, first, last):
        """A forecaster that is fitted to a stretch."""
        stretch = self.table.between(first, last)
        if not len(stretch.step):
            times = self.table.time.between(first, last)
            raise ValueError(
                f"cv has a fold whose training rows, from {times[0]} to {times[-1]}, have no "
                "observation: pass folds with observations among their training rows."
            )
        self.first, self.last = first, last
        # Its series, in its order, the first step of its time, and their ends.
        self.known, self.ends = np.flatnonzero(stretch.counts), stretch.ends
        self.begin = int(stretch.step.min())
        model = clone(self.reader)
        for name in ("n_features_in_", "feature_names_in_", "columns_"):
            if hasattr(self.reader, name):
                setattr(model, name, getattr(self.reader, name))
        model._check_every_parameter()
        stretch, rows = stretch.take(self.known, self.begin), self._of_model(self.rows)
        what = "X" if rows is None else "y"
        stretch = without_gaps(model, stretch, rows, what)
        return model._fit_table(stretch, {"X": stretch, "y": None, "metadata": {}})

    def update(self, model, last):
        """Append what was observed since."""
        stretch = self.table.between(self.first, last)
        self.last = last
        later = stretch.of_rows(np.flatnonzero(stretch.step >= self.ends[stretch.series]))
        self.ends = np.maximum(self.ends, stretch.ends)
        if len(later.step):
            further = np.setdiff1d(np.flatnonzero(later.counts), self.known)
            self.known = np.append(self.known, further)
            model._append(later.take(self.known, self.begin), self._of_model(self.rows))

    def _of_model(self, rows):
        """Rows of features with series and steps as a forecaster numbers them."""
        if rows is None:
            return None
        number = np.full(len(self.table), -1)
        number[self.known] = np.arange(len(self.known))
        rows = rows.take(number[rows.series] >= 0)
        return rows._replace(series=number[rows.series], step=rows.step - self.begin)

    def compare(self, model, start, stop, coverage):
        """A frame of forecasts of a stretch with the observed values; none without these."""
        happened = self.table.between(start, stop)
        there = ~np.isnan(happened.value) & np.isin(happened.series, self.known)
        happened = happened.of_rows(np.flatnonzero(there))
        if not len(happened.step):
            return []
        actual, rows = happened.take(self.known, self.begin), None
        covered = np.ones(len(actual.step), dtype=bool)
        if self.rows is not None:
            # Rows between the past and the stretch are needed too.
            first = self.ends[self.known].min()
            rows = self.rows.take((self.rows.step >= first) & (self.rows.step < stop))
            rows = self._of_model(rows)
            size, both = len(self.table.time), (actual, rows)
            covered = np.isin(*(part.series * size + part.step for part in both))
        requested = request(actual, actual.series[covered], actual.step[covered])
        table = with_known(model, model.observed_, rows, requested)
        if not covered.all():
            step = actual.step[~covered][0]
            lost = actual.time.between(step, step + 1)[0]
            raise ValueError(f"X has no rows for {lost}, where y has values: add them.")
        forecasts, columns = model._forecast_rows(table, requested, coverage)
        forecasts = forecasts.reshape(len(actual.step), -1).astype(actual.form.dtype)
        found = pd.DataFrame(forecasts, columns=columns or ["forecast"])
        found.insert(0, "series", self.known[actual.series])
        found.insert(1, "time", actual.time.between(0, actual.step.max() + 1)[actual.step])
        found.insert(2, "actual", actual.value)
        return [found]


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
                f"cv={cv!r} has folds whose training rows are not contiguous, or not followed "
                "by contiguous test rows: pass a TimeSeriesSplit."
            )
        yield train[0], train[-1] + 1, test[0], test[-1] + 1
