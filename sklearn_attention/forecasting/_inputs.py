"""Inputs of forecasters as tables: to learn from, to append, and to forecast."""

import numbers
from dataclasses import replace

import numpy as np
import pandas as pd

from .._columns import Columns
from .._validation import check_positive, is_one_of
from ._checks import fill_features, fill_values, is_integer
from ._features import (
    index_of_rows,
    place,
    read_features,
    read_rows,
    separate,
    split_index,
    with_features,
    with_later_features,
)
from ._read import dated, library_of, read_series
from ._season import season_of
from ._table import positions
from ._time import check_steps, is_date, steps_until

_SPLIT = "In cross-validation pass cv=TimeSeriesSplit(...), whose test rows come later."


def read_given(forecaster, X, y):
    """Series and rows of features, as for `fit`, with gaps; and "X" or "y", their source."""
    # Rows are None without features. Names and number of features are set on the forecaster.
    library = library_of(X if y is None else y)
    X, y, what = separate(X, y)
    features, index = split_index(X)
    table = read_series(y, index=index, missing=forecaster.missing, what=what)
    table = replace(table, form=replace(table.form, library=library))
    index = None if X is None else index_of_rows(index, y)
    forecaster.n_features_in_, forecaster.columns_ = 0, Columns.numbers(0)
    vars(forecaster).pop("feature_names_in_", None)
    if X is None:
        return table, None, what
    features = read_features(forecaster, features, reset=True)
    begins = np.zeros(len(table), dtype=np.int64)
    return table, place(features, index, table, begins), what


def without_gaps(forecaster, table, rows, what):
    """A table to learn from, of what :func:`read_given` returns."""
    table = table if rows is None else with_features(table, rows)
    options = {"missing": forecaster.missing, "season_length": 1, "what": what}
    if is_one_of(forecaster.missing, "seasonal"):
        # Seasons have to be known before gaps are filled by them.
        line = fill_values(table, **options | {"missing": "interpolate"})
        options["season_length"] = season_of(line, forecaster.season_length)
    return fill_features(fill_values(table, **options), forecaster.missing)


def read_later(forecaster, X, y, *, may_add=False):
    """Observations after those of `fit`, on their index of time, as for `update`."""
    # Of all known series, without rows where there are no new ones, then of others, if
    # `may_add`, in which case missing values stay missing; the rows of features, None if there
    # are none; and "X" or "y", which had the series.
    known = forecaster.observed_
    if y is not None and (X is None or isinstance(X, numbers.Integral)):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    given, target, what = separate(X, y)
    features = index = None
    if given is not None:
        features, index = read_rows(forecaster, given, known)
    elif forecaster.n_features_in_:
        raise ValueError(
            f"y=None, but {type(forecaster).__name__} was fitted with features: pass them "
            "as X, and the series as y."
        )
    options = {"missing": forecaster._kept["missing"], "what": what}
    new = read_series(target, index=index, like=known.time, may_lack=True, **options)
    if not may_add:
        new = fill_values(new, season_length=forecaster.season_length_, **options)
    if features is not None and (index is not None or known.time.kind != "position"):
        index = index_of_rows(index, target)
    later, begins = _aligned(known, new, may_add)
    rows = None if features is None else place(features, index, later, begins)
    if may_add and options["missing"] != "raise":
        later = _from_ends(known, later, begins)
    return later, rows, what


def _from_ends(known, later, begins):
    """Later observations with rows of missing ones from the ends of their series on.

    Only where other series have these, or the same columns, of those passed or `known`.
    """
    ends, starts = known.ends, later.starts[: len(known)]
    passed = (begins[: len(known)] <= len(known.time)) & (later.counts[: len(known)] > 0)
    gap = np.zeros(len(later), dtype=np.int64)
    gap[: len(known)] = np.where(passed, np.maximum(starts - ends, 0), 0)
    check_steps("y, whose series begin after a gap,", gap.sum())
    series, step = positions(later.starts - gap, later.counts + gap)
    value = np.full(len(step), np.nan)
    value[step >= later.starts[series]] = later.value
    features = np.empty((len(step), 0))
    return replace(later, series=series, step=step, value=value, features=features)


def _aligned(known, new, may_add):
    """New series among those known, and the step that the rows of each begin at."""
    by_name = known.form.named and new.form.named
    which, names = np.array([0]), known.names
    if by_name or not len(known) == len(new) == 1:
        unknown = [name for name in new.names if name not in names]
        if unknown and not (may_add and by_name):
            raise ValueError(
                f"y has the series {unknown}, but the forecaster was fitted on {names}: pass "
                "those."
            )
        names = names + unknown
        place_of = {name: i for i, name in enumerate(names)}
        which = np.array([place_of[name] for name in new.names])
    begins = np.zeros(len(names), dtype=np.int64)
    begins[: len(known)] = known.next_steps
    if "position" not in (known.time.kind, new.time.kind):
        begins[which] = _first_step(known.time, new.time)
    series = which[new.series]
    further = int(begins[which].max()) + len(new.time) - len(known.time)
    time = known.time.extended(max(0, further), "y") if new.form.aligned else known.time
    later = replace(
        new, time=time, names=names, series=series, step=begins[series] + new.step,
        form=known.form, identity=np.arange(len(names)),
    )  # fmt: skip
    return later.of_rows(np.argsort(series, kind="stable")), begins


def _first_step(time, new):
    """Position of the first step of a new index on another."""
    first, known = new.between(0, 1), time.between(0, 1)
    if new.kind == time.kind and first[0] < known[0]:
        raise ValueError(
            f"y begins at {first[0]}, before the series that the forecaster was fitted on, "
            f"which begin at {known[0]}: pass later observations. {_SPLIT}"
        )
    return time.positions(first, "y")[0]


def check_follows(known, later):
    """Raise if observations do not follow those known of their series."""
    ends = np.append(known.ends, later.starts[len(known) :])
    wrong = (later.counts > 0) & (later.starts != ends)
    for i in np.flatnonzero(wrong)[:1]:
        found, expected = (known.time.name_steps([p]) for p in (later.starts[i], ends[i]))
        raise ValueError(
            f"y of series {later.names[i]!r} begins at {found}, but the next step is "
            f"{expected}: pass the observations that follow, without gap or overlap."
        )


def read_request(forecaster, X, history):
    """The table to forecast from, and that of the rows to forecast, in the order of X."""
    # Both have steps on one index of time, and the first has the features known beforehand of
    # as many whole horizons as are to be forecast, as far as X has them. X and `history` are as
    # for `predict`.
    fresh, table = history is not None, forecaster.observed_
    if fresh:
        table = _read_history(forecaster, history)
    unknown = fresh and forecaster.n_features_in_ > 0
    if X is None or is_date(X) or is_integer(X):
        if unknown:
            raise ValueError(
                "history comes without features: pass X with an index, and rows for the last "
                f"{forecaster.lookback_} steps of history and the steps to forecast."
            )
        requested = _following(X, table, forecaster.horizon_)
        return with_known(forecaster, table, None, requested), requested
    features, index = read_rows(forecaster, X, table)
    rows = place(features, index, table, table.next_steps)
    if unknown:
        if index is None:
            raise ValueError(
                "history needs features, which X has to have rows for: pass history and X with "
                "an index."
            )
        table = with_features(table, rows, forecaster.lookback_)
        table = fill_features(table, forecaster._kept["missing"])
    wanted = rows
    if unknown:
        # Rows up to the end of the history are only read for their features.
        wanted = rows.take(rows.step >= table.next_steps[rows.series])
    if len(wanted.step):
        requested = _of_rows(table, wanted, index)
    else:
        requested = _following(None, table, forecaster.horizon_)
    return with_known(forecaster, table, rows, requested), requested


def _read_history(forecaster, history):
    """A table of fresh series, which must be long enough."""
    known, least = forecaster.observed_, forecaster._least_history
    options = {"missing": forecaster._kept["missing"], "what": "history"}
    table = read_series(dated(history), like=known.time, rows_are_series=True, **options)
    table = replace(table, form=replace(table.form, library=library_of(history)))
    table = fill_values(table, season_length=forecaster.season_length_, **options)
    for i in np.flatnonzero(table.lengths < least)[:1]:
        raise ValueError(
            f"history has {table.lengths[i]} steps of {table.names[i]!r}, but "
            f"lookback_={least}: pass at least as many."
        )
    identity = _identity(table, known.names[: len(forecaster.scale_)])
    return replace(table, identity=identity, known=forecaster.known_columns_)


def _identity(table, training):
    """Position of each series among the training series, by name; -1 for others."""
    if len(training) == 1:
        return np.zeros(len(table), dtype=np.int64)
    if table.form.kind == "windows":
        return np.full(len(table), -1)
    place_of = {name: i for i, name in enumerate(training)}
    return np.array([place_of.get(name, -1) for name in table.names])


def request(table, series, step, index=None):
    """A table of steps of series, to be forecast."""
    n_rows = len(step)
    return replace(
        table, series=series, step=step, value=np.full(n_rows, np.nan),
        features=np.empty((n_rows, 0)), form=replace(table.form, index=index),
    )  # fmt: skip


def _following(X, table, horizon):
    """Steps of each series from its end on: a number of them, or those up to a date."""
    begins = table.next_steps
    if is_date(X):
        counts = np.maximum(steps_until(table.time, X) - begins, 0)
    else:
        n_steps = horizon if X is None else check_positive("X", X, integer=True)
        counts = np.full(len(table), n_steps)
    if not counts.any():
        last = table.time.name_steps([min(begins) - 1])
        raise ValueError(
            f"X={X!r} is not after the end of the series, {last}: pass a later date, or an "
            "index of the steps."
        )
    check_steps(f"X={X!r}", len(table), counts.max())
    return request(table, *positions(begins, counts))


def _of_rows(table, rows, index):
    """Steps that rows of X are about, with the index of the forecasts."""
    form = table.form
    if isinstance(index, pd.MultiIndex) and form.kind != "dict":
        return request(table, rows.series, rows.step, index[rows.row])
    rows = rows.take(np.argsort(rows.series, kind="stable"))
    if index is None or form.long or form.kind == "dict":
        return request(table, rows.series, rows.step)
    return request(table, rows.series, rows.step, index[rows.row[rows.series == 0]])


def with_known(forecaster, table, rows, requested):
    """A table with the features known beforehand, as rows of X have them, of later steps."""
    last = table.ends - 1
    np.maximum.at(last, requested.series, requested.step)
    check_steps("X, up to its last step,", len(table), 1 + int((last - table.ends).max()))
    if not table.n_features:
        return table
    if rows is None:
        rows = place(np.empty((0, table.n_features)), None, table, table.ends)
    horizon = forecaster.horizon_
    return with_later_features(table, rows, last, horizon, forecaster._kept["missing"])
