"""Backtests: forecasts of test steps in the past, each from the steps before its cutoff.

The steps of time are split into folds. A fold has a training stretch of steps and, after it, a
test stretch. The cutoff is the last step of the training stretch: nothing later is known to the
forecasts of the fold.
"""

import numbers
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit, check_cv

from .._validation import check_positive, is_one_of
from ._checks import check_levels, fill_values
from ._feature_rows import require_features
from ._forms import SERIES, TARGET, TIME
from ._inputs import (
    make_training_table,
    read_training_data,
    requested_table,
    with_future_covariates,
)
from ._output_forms import to_library

# Names of columns of a backtest, and their names in the backtest of a tidy frame.
NAMES = {"series": SERIES, "time": TIME, "actual": TARGET}


def backtest(forecaster, X, y, cv, refit, coverage):
    """Forecast the test steps of every fold; see :meth:`Forecaster.backtest`.

    The forecaster is not changed, and need not be fitted.
    """
    if coverage is not None:
        coverage = check_levels("coverage", coverage)
    reader = clone(forecaster)
    table, rows, what = read_training_data(reader, X, y)
    if getattr(forecaster, "n_features_in_", 0) and not reader.n_features_in_:
        require_features(forecaster, advice=", and the series as y")
    if rows is None and is_one_of(reader.missing, "zero"):
        # The zeros count as observations, with which forecasts are compared.
        table = fill_values(table, missing="zero", season_length=1, what=what)
    replay = _Replay(reader, table, rows)
    # Folds are those of the rows of the series, or else of the steps of time.
    series = X if y is None else y
    samples = series if table.form.aligned else np.empty(len(table.time))
    frames, model = [], None
    for fold, stretches in enumerate(_folds(samples, cv, forecaster.horizon)):
        start, stop, test_start, test_stop = stretches
        if refit or model is None:
            model = replay.fit(start, stop)
        elif stop < replay.stop:
            raise ValueError(
                f"cv={cv!r} has a fold, {fold}, whose training rows end earlier than those of "
                "the fold before: sort its folds in time, or pass refit=True."
            )
        else:
            replay.update(model, stop)
        frame = replay.compare(model, test_start, test_stop, coverage)
        if frame is not None:
            cutoff = table.time.index_between(stop - 1, stop)[0]
            frames.append(frame.assign(fold=fold, cutoff=cutoff))
    if not frames:
        raise ValueError(
            f"cv={cv!r} has no test rows of a series with earlier training rows: pass folds "
            "that train on earlier steps of the series they test."
        )
    return _with_names(pd.concat(frames, ignore_index=True), table)


def _with_names(frame, table):
    """Name the series and the columns of a backtest, in the library of the user's data.

    The column "series" of `frame` has the numbers of the series in `table`; the result has
    their names.
    """
    form = table.form
    keys = ["fold", "cutoff", "time", "actual"]
    # Forms of one series have no name of the series.
    if form.kind not in ("array", "series") and not form.single:
        keys.insert(0, "series")
        names = [table.names[i] for i in frame["series"]]
        frame["series"] = pd.Series(names, dtype=object).infer_objects()
    forecasts = [name for name in frame if name not in ["series", *keys]]
    frame = frame[keys + forecasts]
    if form.kind == "tidy":
        frame = frame.rename(columns=NAMES)
    return to_library(frame, form.library)


class _Replay:
    """Series up to a moving cutoff, and what a forecaster has seen of them.

    A forecaster numbers series and steps in its own way: it has only the series with an
    observation up to the cutoff, and its first step is the first observation.

    Attributes
    ----------
    reader : Forecaster
        Forecaster that has the parameters and has read the features, but is not fitted.
    table : Table
        All observations, before and after the cutoff.
    rows : FeatureRows or None
        Rows of X.
    start, stop : int
        Positions of the first training step, and of the step after the last one.
    seen_series : ndarray of int of shape (n_seen_series,)
        Number in `table` of each series of the forecaster.
    ends : ndarray of int of shape (n_series,)
        Position of the step after the last observation that the forecaster has seen.
    offset : int
        Position of step 0 of the forecaster.
    """

    def __init__(self, reader, table, rows):
        names = ["y" if name is None else name for name in table.names]
        self.table = replace(table, names=names, form=replace(table.form, kind="dict"))
        self.reader, self.rows = reader, rows

    def fit(self, start, stop):
        """Fit a forecaster to the training stretch from position `start` to before `stop`."""
        training = self.table.observed_between(start, stop)
        if not len(training.step):
            times = self.table.time.index_between(start, stop)
            raise ValueError(
                f"cv has a fold whose training rows, from {times[0]} to {times[-1]}, have no "
                "observation: pass folds with observations among their training rows."
            )
        self.start, self.stop = start, stop
        self.seen_series, self.ends = np.flatnonzero(training.row_counts), training.ends
        self.offset = int(training.step.min())
        model = clone(self.reader)
        for name in ("n_features_in_", "feature_names_in_", "columns_"):
            if hasattr(self.reader, name):
                setattr(model, name, getattr(self.reader, name))
        model._check_every_parameter()
        training = training.take_series(self.seen_series, self.offset)
        rows = self._renumbered(self.rows)
        what = "X" if rows is None else "y"
        training = make_training_table(model, training, rows, what)
        return model._fit_table(training, {"X": training, "y": None, "metadata": {}})

    def update(self, model, stop):
        """Append the observations before position `stop` that the forecaster has not seen."""
        training = self.table.observed_between(self.start, stop)
        self.stop = stop
        is_later = training.step >= self.ends[training.series]
        later = training.take_rows(np.flatnonzero(is_later))
        self.ends = np.maximum(self.ends, training.ends)
        if len(later.step):
            new_series = np.setdiff1d(np.flatnonzero(later.row_counts), self.seen_series)
            self.seen_series = np.append(self.seen_series, new_series)
            later = later.take_series(self.seen_series, self.offset)
            model._append(later, self._renumbered(self.rows))

    def _renumbered(self, rows):
        """Give series and steps of FeatureRows the forecaster's numbers; None stays None."""
        if rows is None:
            return None
        number = np.full(len(self.table), -1)
        number[self.seen_series] = np.arange(len(self.seen_series))
        rows = rows.take(number[rows.series] >= 0)
        return rows._replace(series=number[rows.series], step=rows.step - self.offset)

    def compare(self, model, start, stop, coverage):
        """Forecast the observed steps from position `start` to before `stop`.

        Returns
        -------
        frame : DataFrame or None
            A row for each observed step: the number of its series in `table`, the time, the
            observation, and forecasts. None if no series of the forecaster has an observation.
        """
        test = self.table.observed_between(start, stop)
        is_tested = ~np.isnan(test.value) & np.isin(test.series, self.seen_series)
        test = test.take_rows(np.flatnonzero(is_tested))
        if not len(test.step):
            return None
        # 1. Number series and steps as the forecaster does.
        actual, rows = test.take_series(self.seen_series, self.offset), None
        has_row = np.ones(len(actual.step), dtype=bool)
        if self.rows is not None:
            # Forecasts also need the rows of X between the cutoff and the test stretch.
            first = self.ends[self.seen_series].min()
            is_needed = (self.rows.step >= first) & (self.rows.step < stop)
            rows = self._renumbered(self.rows.take(is_needed))
            # Each pair of series and step becomes one whole number.
            base = len(self.table.time)
            has_row = np.isin(
                actual.series * base + actual.step, rows.series * base + rows.step
            )
        # 2. Extend what the forecaster has observed by the future covariates of the test steps.
        requested = requested_table(actual, actual.series[has_row], actual.step[has_row])
        table = with_future_covariates(model, model.observed_, rows, requested)
        if not has_row.all():
            step = actual.step[~has_row][0]
            time = actual.time.index_between(step, step + 1)[0]
            raise ValueError(f"X has no rows for {time}, where y has values: add them.")
        # 3. Forecast the steps, and put the forecasts beside the observations.
        forecasts, columns = model._forecast_rows(table, requested, coverage)
        forecasts = forecasts.reshape(len(actual.step), -1).astype(actual.form.dtype)
        frame = pd.DataFrame(forecasts, columns=columns or ["forecast"])
        times = actual.time.index_between(0, actual.step.max() + 1)
        frame.insert(0, "series", self.seen_series[actual.series])
        frame.insert(1, "time", times[actual.step])
        frame.insert(2, "actual", actual.value)
        return frame


def _folds(samples, cv, horizon):
    """Yield the stretches of each fold as four numbers of rows.

    These are the first training row, the row after the last training row, the first test row,
    and the row after the last test row.

    Parameters
    ----------
    samples : array-like
        Data whose rows are divided; only their number counts.
    cv : int or splitter of scikit-learn
        A number of folds, or an object that makes them.
    horizon : int
        Number of test rows of a fold, if `cv` is a number.
    """
    if isinstance(cv, numbers.Integral):
        n_folds = check_positive("cv", cv, integer=True, minimum=2)
        cv = TimeSeriesSplit(
            n_folds, test_size=check_positive("horizon", horizon, integer=True)
        )
    for train, test in check_cv(cv).split(samples):
        are_stretches = all(len(rows) and (np.diff(rows) == 1).all() for rows in (train, test))
        if not are_stretches or train[-1] >= test[0]:
            raise ValueError(
                f"cv={cv!r} has folds whose training rows are not contiguous, or not followed "
                "by contiguous test rows: pass a TimeSeriesSplit."
            )
        yield train[0], train[-1] + 1, test[0], test[-1] + 1
