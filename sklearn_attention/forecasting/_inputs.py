"""What is passed to `fit`, `update`, `score` and `predict`, as tables.

Series may be passed as X or as y, and features as X, or as further columns of a tidy frame
(with columns "unique_id", "ds" and "y"). `read_training_data` and `read_later_data` return
observations, and `read_request` returns the table to forecast from and the requested table,
whose rows are the steps to forecast in the order of X.

In all functions `forecaster` is the one whose method was called, and `what` is "X" or "y", the
name of the argument with the series.
"""

import datetime
import numbers
import re
from dataclasses import replace

import numpy as np
import pandas as pd

from .._columns import Columns
from .._validation import check_positive, is_one_of
from ._checks import fill_features, fill_values, in_series, is_integer, resolve_past
from ._feature_rows import (
    FeatureRows,
    add_future_covariates,
    column_of_each_feature,
    encode_features,
    index_of_features,
    place_on_steps,
    read_feature_rows,
    require_features,
    split_features_and_series,
    split_off_index,
    with_features,
)
from ._forms import library_of, read_series
from ._frequency import CV_ADVICE, check_steps
from ._season_length import choose_season_length
from ._table import Table, positions
from ._time import as_index

# Matches a text that ends with a time zone, which periods would drop. Since it is matched from
# the beginning, it takes time in proportion to the length of the text.
_HAS_ZONE = re.compile(r"[^:]*:\d\d.*([+-]\d\d(:?\d\d)?|[A-Za-z])$")


def read_training_data(forecaster, X, y):
    """Read the arguments of `fit`; set names and number of features on the forecaster.

    Returns
    -------
    table : Table
        Observations of the series, with missing values and without features.
    rows : FeatureRows or None
        None without features.
    what : {"X", "y"}
        The argument that had the series.
    """
    library = library_of(X if y is None else y)
    X, y, what = split_features_and_series(X, y)
    rows = index = None
    if X is not None:
        X, index, labels = split_off_index(X)
        index = index_of_features(X, index, labels, y)
    table = read_series(y, index=index, missing=forecaster.missing, what=what)
    forecaster.n_features_in_, forecaster.columns_ = 0, Columns.numbers(0)
    vars(forecaster).pop("feature_names_in_", None)
    if X is not None:
        features = encode_features(forecaster, X, reset=True)
        first_steps = np.zeros(len(table), dtype=np.int64)
        columns = column_of_each_feature(forecaster)
        rows = place_on_steps(features, index, table, first_steps, columns)
    return replace(table, form=replace(table.form, library=library)), rows, what


def make_training_table(forecaster, table, rows, what):
    """Add the features to the table to learn from, and fill gaps, or refuse them.

    The arguments after `forecaster` are what :func:`read_training_data` returns.
    """
    names = getattr(forecaster, "feature_names_in_", ())
    past = resolve_past(forecaster.past_features, forecaster.n_features_in_, names)
    forecaster.past_names_ = past
    columns = column_of_each_feature(forecaster)
    future_columns = [j for j, column in enumerate(columns) if column not in past]
    table = replace(table, future_columns=np.array(future_columns, dtype=np.int64))
    table = table if rows is None else with_features(table, rows)
    options = {"missing": forecaster.missing, "season_length": 1, "what": what}
    if is_one_of(forecaster.missing, "interpolate", "seasonal") and np.isnan(table.value).any():
        # The season that is filled in, or about whose loss `fill_values` warns, is that of the
        # interpolated series.
        interpolated = fill_values(table, **options | {"missing": "interpolate"})
        options["season_length"] = choose_season_length(interpolated, forecaster.season_length)
    table = fill_values(table, **options)
    return fill_features(table, forecaster.missing, columns)


def read_later_data(forecaster, X, y, *, may_add=False):
    """Read the arguments of `update` or `score`: observations on the time index of the fit.

    Parameters
    ----------
    forecaster : Forecaster
    X, y : object
    may_add : bool, default=False
        Whether there may be new series. Missing values then stay missing, to be filled after
        the observations are appended; otherwise they are filled.

    Returns
    -------
    later : Table
        All series of the forecaster, without rows if they have no later observations, then new
        series.
    rows : FeatureRows or None
        None without features.
    what : {"X", "y"}
        The argument that had the series.
    """
    observed, missing = forecaster.observed_, forecaster._kept["missing"]
    if y is not None and (X is None or isinstance(X, numbers.Integral)):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    X, y, what = split_features_and_series(X, y)
    index = None
    if X is not None:
        features, index, labels = read_feature_rows(forecaster, X, observed)
        if observed.time.kind != "position":
            index = index_of_features(features, index, labels, y)
    else:
        require_features(forecaster, advice=", and the series as y")
    options = {"missing": missing, "what": what}
    later = read_series(y, index=index, earlier=observed, **options)
    _refuse_earlier_starts(observed, later, what)
    if not may_add:
        if len(later) > len(observed):
            raise ValueError(
                f"{what} has the series {later.names[len(observed) :]}, but the forecaster was "
                f"fitted on {observed.names}: pass those."
            )
        later = fill_values(later, season_length=forecaster.season_length_, **options)
    if X is None:
        return later, None, what
    first_steps = observed.next_steps_of(len(later))
    columns = column_of_each_feature(forecaster)
    return later, place_on_steps(features, index, later, first_steps, columns), what


def _refuse_earlier_starts(observed, later, what):
    """Raise if a series begins earlier in the later data than in those of the fit."""
    n_series = len(observed)
    has_rows = later.row_counts[:n_series] > 0
    is_earlier = has_rows & (later.starts[:n_series] < observed.starts)
    for i in np.flatnonzero(is_earlier)[:1]:
        start = observed.time.name_steps([later.starts[i]])
        start_in_fit = observed.time.name_steps([observed.starts[i]])
        raise ValueError(
            f"{what}{in_series(observed, i)} begins at {start}, but the series that the "
            f"forecaster was fitted on begins at {start_in_fit}: pass observations from that "
            f"time on. {CV_ADVICE}"
        )


def continue_series(observed, later, missing):
    """Fill the steps between observed series and later observations with missing values.

    An overlap raises an error, and so does a gap if `missing` is "raise".
    """
    expected_starts = np.append(observed.ends, later.starts[len(observed) :])
    has_rows = later.row_counts > 0
    has_overlap = later.starts < expected_starts
    has_gap = later.starts > expected_starts
    is_refused = has_overlap | has_gap if missing == "raise" else has_overlap
    for i in np.flatnonzero(is_refused & has_rows)[:1]:
        start = observed.time.name_steps([later.starts[i]])
        expected_start = observed.time.name_steps([expected_starts[i]])
        raise ValueError(
            f"y of series {later.names[i]!r} begins at {start}, but the next step is "
            f"{expected_start}: pass the observations that follow, without gap or overlap."
        )
    # One row at the begin of a gap is enough: the table fills the steps up to the next row.
    with_gap = np.flatnonzero(has_gap & has_rows)
    return Table.from_steps(
        later.time,
        later.names,
        np.concatenate([later.series, with_gap]),
        np.concatenate([later.step, expected_starts[with_gap]]),
        np.concatenate([later.value, np.full(len(with_gap), np.nan)]),
        later.form,
    )


def read_request(forecaster, X, history):
    """Read the arguments of `predict`.

    Returns
    -------
    table : Table
        Series to forecast from. It has the future covariates of the steps to forecast, and of
        later steps of their last horizon as far as X has rows of them.
    requested : Table
        Steps to forecast, in the order of X, on the same index of time.
    """
    table = forecaster.observed_ if history is None else _read_history(forecaster, history)
    # The features of a history are in X, too.
    lacks_features = history is not None and forecaster.n_features_in_ > 0
    if X is None or is_date(X) or is_integer(X):
        if lacks_features:
            raise ValueError(
                "history was passed without features, but the forecaster was fitted with "
                "some: pass X with an index of the time, and with rows for the last "
                f"{forecaster.lookback_} steps of history and for the steps to forecast."
            )
        require_features(forecaster, table.future_columns, what=f"X={X!r:.60}")
        requested = _next_steps(X, table, forecaster.horizon_)
        return with_future_covariates(forecaster, table, None, requested), requested
    features, index, labels = read_feature_rows(forecaster, X, table)
    columns = column_of_each_feature(forecaster)
    rows = place_on_steps(
        features, index, table, table.next_steps, columns, may_precede=lacks_features
    )
    requested_rows = rows
    if lacks_features:
        if index is None:
            raise ValueError(
                "history was passed with features that cannot be matched to it by time: pass "
                "both history and X with an index of the time, and rows of X for the steps of "
                "history too."
            )
        table = with_features(table, rows, forecaster.lookback_)
        table = fill_features(table, forecaster._kept["missing"], columns)
        # Rows up to the end of the history are only read for their features.
        requested_rows = rows.take(rows.step >= table.next_steps[rows.series])
    if len(requested_rows.step):
        requested = _steps_of_rows(table, requested_rows, index, labels)
    else:
        requested = _next_steps(None, table, forecaster.horizon_)
    return with_future_covariates(forecaster, table, rows, requested), requested


def _read_history(forecaster, history):
    """Read the series of the argument `history`, or raise if a series is too short."""
    observed, min_length = forecaster.observed_, forecaster._least_history
    options = {"missing": forecaster._kept["missing"], "what": "history"}
    table = read_series(history, reference=observed.time, rows_are_series=True, **options)
    table = fill_values(table, season_length=forecaster.season_length_, **options)
    for i in np.flatnonzero(table.lengths < min_length)[:1]:
        raise ValueError(
            f"history has {table.lengths[i]} steps of {table.names[i]!r}, but "
            f"lookback_={min_length}: pass at least so many steps."
        )
    # Training series are recognized by their names; a single one may have any name. Rows of an
    # array have no names.
    names = observed.learned_names
    index_of = {name: i for i, name in enumerate(names)}
    if table.form.kind == "windows":
        index_of = {}
    training_index = [0 if len(names) == 1 else index_of.get(name, -1) for name in table.names]
    return replace(
        table,
        training_index=np.array(training_index),
        future_columns=forecaster.known_columns_,
    )


def requested_table(table, series, step, index=None, row_labels=None):
    """Make a table of steps to forecast, without values and features.

    Parameters
    ----------
    table : Table
        Series to forecast from.
    series, step : ndarray of int of shape (n_rows,)
        Series of each row, and position of its step on the time index.
    index : Index, default=None
        Index of the forecasts, if it is not made of the steps; see `Form.index`.
    row_labels : Index, default=None
        Labels of the rows of a tidy frame of forecasts; see `Form.rows`.
    """
    n_rows = len(step)
    return replace(
        table,
        series=series,
        step=step,
        value=np.full(n_rows, np.nan),
        features=np.empty((n_rows, 0)),
        form=replace(table.form, index=index, rows=row_labels),
    )


def _next_steps(X, table, horizon):
    """Make the requested table of the steps that follow each series.

    X is a number of steps, a date up to which to forecast, or None for one horizon.
    """
    first_steps = table.next_steps
    if is_date(X):
        counts = np.maximum(count_steps_until(table.time, X) - first_steps, 0)
    else:
        n_steps = horizon if X is None else check_positive("X", X, integer=True)
        counts = np.full(len(table), n_steps)
    if not counts.any():
        last = table.time.name_steps([min(first_steps) - 1])
        raise ValueError(
            f"X={X!r} is not after the end of the series, {last}: pass a later date, or an "
            "index of the steps."
        )
    check_steps(f"X={X!r}", len(table), counts.max())
    return requested_table(table, *positions(first_steps, counts))


def _steps_of_rows(table, rows, index, labels):
    """Make the requested table of the steps that rows of X are about.

    Parameters
    ----------
    table : Table
        Series to forecast from.
    rows : FeatureRows
        Rows of X after the end of the series.
    index, labels : Index or None
        Time, or series and time, of each row of X, and its labels; see `split_off_index`.
    """
    form, has_series = table.form, isinstance(index, pd.MultiIndex)
    # Row labels that are no steps are those of a tidy frame.
    is_tidy_X = form.kind == "tidy" and labels is not None
    is_tidy_X = is_tidy_X and (has_series or form.single)
    is_tidy_X = is_tidy_X and not as_index(labels).equals(index)
    if has_series and form.kind != "dict":
        row_labels = labels[rows.row] if is_tidy_X else None
        return requested_table(table, rows.series, rows.step, index[rows.row], row_labels)
    # Forecasts in other forms are sorted by series.
    rows = rows.take(np.argsort(rows.series, kind="stable"))
    shared_index = None
    if index is not None and form.aligned:
        shared_index = index[rows.row[rows.series == 0]]
    row_labels = labels[rows.row] if is_tidy_X else None
    return requested_table(table, rows.series, rows.step, shared_index, row_labels)


def with_future_covariates(forecaster, table, rows, requested):
    """Append the future covariates of the requested steps to a table.

    `rows` are the FeatureRows of X, or None if X has no rows.
    """
    last_steps = table.ends - 1
    np.maximum.at(last_steps, requested.series, requested.step)
    n_ahead = 1 + int((last_steps - table.ends).max())
    check_steps("X, up to its last step,", len(table), n_ahead)
    if not table.n_features:
        return table
    if rows is None:
        no_pairs, no_features = np.empty(0, dtype=np.int64), np.empty((0, table.n_features))
        columns = column_of_each_feature(forecaster)
        rows = FeatureRows(no_pairs, no_pairs, no_pairs, no_features, columns)
    missing = forecaster._kept["missing"]
    return add_future_covariates(table, rows, last_steps, forecaster.horizon_, missing)


def is_date(X):
    """Return True for a date, as text or as any of the objects for dates."""
    return isinstance(X, str | datetime.date | np.datetime64 | pd.Period)


def count_steps_until(time, date):
    """Count the steps of a TimeIndex up to a date, from its first step.

    A text, a period and a `datetime.date` stand for the end of their span: "2024-06" for the
    end of the month, and "2024" for the end of the year, as in slices of pandas. If the date is
    after the end of the index, steps are counted as if the index went on.
    """
    end = _end_of_date(date)
    if time.offset is None:  # The index has no dates.
        raise ValueError(
            f"X={date!r} is a date, but the series have none: pass a number of steps."
        )
    if end.tz is not None and not time.tz:
        raise ValueError(
            f"X={date!r} has a time zone, but the series have none: remove it by "
            "tz_localize(None)."
        )
    if time.kind == "period":
        end = pd.Period(end, freq=time.freq)
    elif end.tz is None and time.tz:
        end = end.tz_localize(time.tz, ambiguous=False, nonexistent="shift_forward")
    # Steps are compared with the date, since `searchsorted` refuses a date in nanoseconds that
    # an index in seconds cannot represent.
    return int((time.extended_to(end, f"X={date!r}").index <= end).sum())


def _end_of_date(date):
    """Convert a date in any form to the Timestamp at its end, or raise if it is none."""
    is_text = isinstance(date, str) and not _HAS_ZONE.match(date)
    try:
        # In a text such as "03/04/2024" the day may be taken for the month.
        if is_text and not date[:4].isdigit():
            raise ValueError(date)
        if is_text:
            date_or_period = pd.Period(date)
        elif type(date) is datetime.date:
            date_or_period = pd.Period(date, "D")
        else:
            date_or_period = date
        if isinstance(date_or_period, pd.Period):
            end = date_or_period.end_time
        else:
            end = pd.Timestamp(date_or_period)
        if end is pd.NaT:
            raise ValueError(end)
    except ValueError as error:
        raise ValueError(
            f"X={date!r:.60} is not a date: pass one such as '2024-06'."
        ) from error
    return end
