"""All forms of series: they come in one below the other, and forecasts go out as they came."""

import datetime
from contextlib import suppress
from itertools import pairwise

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from .._frames import narwhals_frame, to_pandas
from .._validation import is_one_of, refuse_other_arrays
from ._checks import refuse_too_large
from ._table import Form, Table, positions
from ._time import OF_SERIES, TimeIndex, as_index, check_order, clearest, kind_of, numbers_of

SERIES, TIME, TARGET = "unique_id", "ds", "y"
_CONVERT = "convert it with pandas.to_numeric, or remove it. "
_ARRANGE = (
    "If each cell holds a series, pass dict(enumerate(column)). If these are features, pass "
    "them before the series, fit(X, y); if these are dates, make them the index (set_index), "
    "or the column 'ds' of a frame. " + OF_SERIES
)


def read_series(
    y, *, index=None, like=None, onto=None, rows_are_series=False, missing="raise", what="y"
):  # fmt: skip
    """A table of series of any form; values missing between others stay missing."""
    # `index` is that of an array, which has none. An index of the kind of `like`, another
    # TimeIndex, has to agree with it; its frequency then need not be inferred. Series go on
    # from those of another table, `onto`, on its index; without one of their own they follow.
    # A 2-D array may have a series in each row. Steps that an index lacks have missing values,
    # or are refused if `missing` is "raise". `what` is its name in messages.
    names, columns, indexes, form = _one_below_the_other(y, index, rows_are_series, what)
    counts = np.array([*map(len, columns)])
    series, step = positions(0, counts)
    time = TimeIndex.of_positions(counts.max()) if onto is None else onto.time
    dated = indexes is not None and (onto is None or time.kind != "position")
    if dated:
        whats = [what] if form.aligned else [f"{what}[{name!r}]" for name in names]
        time, steps = _on_one_time(indexes, whats, like, None if onto is None else time)
        for own, name in zip(steps, whats, strict=True):
            if is_one_of(missing, "raise") and own[-1] - own[0] >= len(own):
                time.refuse_gaps(own, name)
        step = np.tile(np.concatenate(steps), len(names) if form.aligned else 1)
    if onto is not None:
        which, names = _among(onto, names, form)
        series = which[series]
        if not dated:
            step = step + onto.begins(len(names))[series]
            time = time.extended(int(step.max()) + 1 - len(time))
    value = np.concatenate([_floats(column, what) for column in columns])
    table = Table.placed(time, names, series, step, value, form if onto is None else onto.form)
    if form.aligned:
        cut = table.between(0, len(time))
        empty = cut.counts == 0
        if empty.any() and onto is None:
            where = f" in series {names[empty.argmax()]!r}" if len(names) > 1 else ""
            raise ValueError(
                f"{what} has only missing values (NaN){where}: remove that series."
            )
        # Several series may end before their common index; a single one lacks values.
        table = cut if len(columns) > 1 and not empty.all() else table
    refuse_too_large(table, table.value, what)
    return table


def _on_one_time(indexes, whats, like, time):
    """A regular index that has the steps of all, `time` or their own, and positions on it."""
    known = time
    if time is None:
        longest = max(range(len(indexes)), key=lambda i: len(indexes[i]))
        clear, what = indexes[longest], whats[longest]
        if isinstance(clear, pd.DatetimeIndex) and not clear.is_monotonic_increasing:
            check_order(clear, what)
        if len({index.dtype for index in indexes}) == 1:
            clear = clearest(indexes)
        alike = like is not None and kind_of(clear, what) == like.kind
        known = TimeIndex.read(clear, like=like if alike else None, what=what)
    for index, what in zip(indexes, whats, strict=True):
        known.check_kind(index, what)
        if index.hasnans:
            check_order(index, what)
    if known.tz:
        indexes = [index.tz_convert(known.tz) for index in indexes]
    if time is None:
        first = min(range(len(indexes)), key=lambda i: indexes[i][0])
        time = TimeIndex.read(indexes[first], like=known, what=whats[first])
    whole, counts = indexes[0].append(indexes[1:]), np.array([*map(len, indexes)])
    cuts, series = np.cumsum([0, *counts]), np.repeat(np.arange(len(counts)), counts)
    time = time.reaching(whole.max(), whats[series[numbers_of(whole).argmax()]])
    found = time.find(whole)
    ascend = np.diff(found, prepend=-1) > 0
    ascend[cuts[:-1]] = True
    for i in series[~ascend | (found < 0)][:1]:
        check_order(indexes[i], whats[i])
        time.positions(indexes[i], whats[i])
    return time, [found[start:stop] for start, stop in pairwise(cuts)]


def _among(known, names, form):
    """Position of series among those of a table, by name, and the names of all."""
    if len(known) == len(names) == 1 and not (known.form.named and form.named):
        return np.zeros(1, dtype=np.int64), known.names
    further = [name for name in names if name not in known.names]
    if further and not (known.form.named and form.named):
        raise ValueError(
            f"y has the series {further}, but the forecaster was fitted on {known.names}: pass "
            "those."
        )
    place_of = {name: i for i, name in enumerate([*known.names, *further])}
    return np.array([place_of[name] for name in names]), list(place_of)


def _one_below_the_other(y, index, rows_are_series, what):
    """Names of series, their values, their indexes if there are any, and their form."""
    library, labels, y = library_of(y), [], dated(y)
    if isinstance(y, pd.Series | pd.DataFrame):
        index = as_index(y.index)
    y = to_pandas(y)
    if not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = as_array(y, what)
        y = pd.Series(y, index) if isinstance(index, pd.MultiIndex) else y
    if len(y) == 0 or 0 in np.shape(y):
        raise ValueError(f"{what} is empty (shape {np.shape(y)}): pass at least one series.")
    if isinstance(y, pd.DataFrame) and not y.columns.is_unique:
        raise ValueError(f"{what} has columns of the same name, {list(y)}: rename them.")
    indexes = None if index is None else [index]
    if isinstance(y, dict):
        names, columns, indexes = _of_dict(y, what)
        kind = "arrays" if indexes is None else "dict"
    elif is_tidy(y) or isinstance(index, pd.MultiIndex):
        names, columns, indexes, kind, labels = _of_long(y, what)
    elif isinstance(y, pd.Series):
        names, columns, kind = [y.name], [y], "series"
    elif isinstance(y, pd.DataFrame):
        _refuse_dates(y, library, what)
        names, kind, labels = list(y), "frame", list(y.columns.names)
        columns = [y.iloc[:, i] for i in range(len(names))]
    else:
        kind = "array" if y.ndim == 1 else "windows" if rows_are_series else "table"
        columns = list(np.atleast_2d(y if rows_are_series else y.T))
        names = list(range(len(columns)))
    dtypes = {str(column.dtype).lower() for column in columns}
    dtype = "float32" if dtypes <= {"float16", "float32"} else "float64"
    return names, columns, indexes, Form(kind, dtype, labels, library=library)


def _refuse_dates(y, library, what):
    """Raise if a frame with a series in each column has a column of dates."""
    for name, column in y.items():
        if column.dtype.kind in "MO" and as_index(column).dtype.kind == "M":
            remedy = f": make them the index, {what}.set_index({name!r})"
            if library != "pandas":
                remedy = f": rename it, {what}.rename({{{name!r}: {TIME!r}}})"
            remedy = ", several times the same" if column.duplicated().any() else remedy
            raise ValueError(f"{what} has dates in its column {name!r}{remedy}. {OF_SERIES}")


def _of_dict(y, what):
    indexed = [isinstance(part, pd.Series) for part in y.values()]
    if any(indexed) != all(indexed):
        raise ValueError(f"{what} has both Series and arrays: pass only one kind.")
    columns = list(y.values())
    if not all(indexed):
        columns = [as_array(part, f"{what}[{name!r}]") for name, part in y.items()]
    for name, column in zip(y, columns, strict=True):
        if column.ndim != 1 or len(column) == 0:
            raise ValueError(
                f"{what}[{name!r}] has shape {column.shape}, which is not one series: pass a "
                "one-dimensional array or a Series for each name."
            )
    indexes = [as_index(part.index) for part in columns] if all(indexed) else None
    return list(y), columns, indexes


def _of_long(y, what):
    """Series of a tidy frame, sorted, or of an index of two levels."""
    kind = "long" if isinstance(y, pd.Series) else "long_frame"
    if is_tidy(y):
        if TARGET not in y:
            raise ValueError(
                f"{what} has the columns {SERIES!r} and {TIME!r}, but no column {TARGET!r} "
                f"with the values: rename the column of the values to {TARGET!r}."
            )
        kind, levels = "tidy", [SERIES if SERIES in y else None, TIME]
        keys = {SERIES: y.get(SERIES, TARGET), TIME: as_index(y[TIME])}
        kind_of(pd.Index(keys[TIME]), what)
        y = y[[TARGET]].assign(**keys).sort_values([SERIES, TIME])
        y = y.set_index([SERIES, TIME]).rename_axis(levels)
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise ValueError(
                f"{what} is in long format, where one column has the values, but has the "
                f"columns {list(y)}: pass the column of the target as y, and the others as X."
            )
        y = y.iloc[:, 0]
    if y.index.nlevels != 2:
        raise ValueError(
            f"{what} has an index of {y.index.nlevels} levels: pass two, series and time."
        )
    series, names = pd.factorize(y.index.get_level_values(0))
    if (series < 0).any():
        raise ValueError(f"{what} has rows without the name of their series: drop them.")
    order = np.argsort(series, kind="stable")
    cuts = pairwise(np.searchsorted(series[order], np.arange(len(names) + 1)))
    spans = [slice(*cut) for cut in cuts]
    steps, y = as_index(y.index.get_level_values(1))[order], y.iloc[order]
    columns, indexes = [y.iloc[span] for span in spans], [steps[span] for span in spans]
    return list(names), columns, indexes, kind, [*y.index.names, y.name]


def as_array(y, what):
    """One or two dimensions of what has no index, or an error that names it."""
    if isinstance(y, np.ma.MaskedArray):
        y = y.astype(np.float64).filled(np.nan)
    refuse_other_arrays(what, y)
    with suppress(ValueError):  # rows of different lengths are none
        table = np.asarray(y)
        if table.ndim in (1, 2):
            return table
    shape = getattr(y, "shape", "unknown")
    raise ValueError(
        f"{what} of type {type(y).__name__}, of shape {shape}, is not an array of one or two "
        "dimensions: pass one series as an array, several as the columns of a table, or "
        "series of different lengths as a dict."
    )


def _floats(values, what):
    """float64, with an error that names what is no number."""
    if isinstance(values, pd.Series):
        what = f"{what} ({values.name!r})" if values.name is not None else what
        if values.dtype.kind in "fiub":
            return values.to_numpy(np.float64, na_value=np.nan)
        values = values.to_numpy()
    if values.dtype.kind not in "fiubOUS":
        problem = "Complex data not supported: " * (values.dtype.kind == "c")
        remedy = _CONVERT * (values.dtype.kind != "M") + _ARRANGE
        raise ValueError(
            f"{problem}{what} has dtype {values.dtype}, which is not numeric: {remedy}"
        )
    with suppress(TypeError, ValueError, OverflowError):
        return values.astype(np.float64)
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = np.nan if value is pd.NA else value
        except (TypeError, ValueError, OverflowError) as error:
            texts = pd.Series(values, dtype=object).astype(str)
            has_numbers = bool(pd.to_numeric(texts, errors="coerce").notna().any())
            raise ValueError(
                f"{what} has the entry {value!r:.60} at row {row}, which is not a number: "
                f"{_CONVERT * has_numbers}{_ARRANGE}"
            ) from error
    return numbers


def is_tidy(data):
    """True for a frame with a column of time, and one of series or of values."""
    is_dated = isinstance(data, pd.DataFrame) and TIME in data
    return is_dated and (SERIES in data or TARGET in data)


def library_of(data):
    """Name of the library of a frame or a series; pandas for all else."""
    known = isinstance(data, pd.DataFrame | pd.Series)
    frame = None if known else narwhals_frame(data, allow_series=True)
    return "pandas" if frame is None else frame.implementation.value


def dated(data):
    """A frame of another library with a column of times as one of pandas; all else as it is."""
    frame = to_pandas(data)
    if frame is data or TIME not in frame:
        return data
    return frame if is_tidy(frame) else frame.set_index(TIME)


def wrap(table, values, columns=None):
    """Forecasts of the rows of a table, (n_rows,) or (n_rows, n_columns), in its form.

    Rows are in order of series, unless the form has an index of series and time.
    """
    found, form = _in_form(table, values, columns), table.form
    has_times = isinstance(found, pd.DataFrame) and table.time.kind != "position"
    return in_library(found, form.library, with_index=has_times and form.kind != "tidy")


def in_library(found, library, *, with_index=False):
    """A frame or a series of pandas in another library, perhaps with its index as a column."""
    if library == "pandas":
        return found
    if isinstance(found, pd.Series):
        return _column(found.name, found, library).to_native()
    columns = {TIME: found.index} if with_index else {}
    for i, name in enumerate(found):
        columns["_".join(map(str, np.atleast_1d(name)))] = found.iloc[:, i]
    columns = {name: _column(name, column, library) for name, column in columns.items()}
    return nw.from_dict(columns, backend=library).to_native()


def _column(name, column, library):
    """A column of pandas as a series of another library, for narwhals."""
    column, name = pd.Index(column), "" if name is None else str(name)
    if not isinstance(column, pd.DatetimeIndex):
        cells = column.tolist() if column.dtype == object else column.to_numpy()
        return nw.new_series(name, cells, backend=library)
    # In UTC where there is a time zone, and left there where it is an offset without a name.
    # polars has days, but no seconds.
    cells = column.asi8.view(f"M8[{column.unit}]")
    if column.unit == "s":
        days, plain = cells.astype("M8[D]"), column.tz is None
        cells = days if plain and (days == cells).all() else cells.astype("M8[ms]")
    found = nw.new_series(name, cells, backend=library)
    if column.tz is None:
        return found
    zone = "UTC" if isinstance(column.tz, datetime.timezone) else str(column.tz)
    return found.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def _in_form(table, values, columns):
    form, names = table.form, table.names
    values = np.asarray(values).astype(form.dtype)
    if form.kind == "array":
        return values
    parts = np.split(values, table.first[1:])
    if form.kind in ("table", "windows"):
        return np.stack(parts, axis=-1 if form.kind == "table" else 0)
    if form.kind == "arrays":
        return dict(zip(names, parts, strict=True))
    first = int(table.step.min(initial=len(table.time)))
    whole = table.time.between(first, int(table.step.max(initial=-1)) + 1)
    if form.long:
        return _long(table, values, _taken(whole, table.step - first), columns)
    if form.kind == "dict":
        steps = np.split(table.step - first, table.first[1:])
        return {
            name: _labelled(part, _taken(whole, own), name, columns)
            for name, part, own in zip(names, parts, steps, strict=True)
        }
    index = form.index
    if index is None:
        index = _taken(whole, table.step[table.series == 0] - first)
    if form.kind == "series":
        return _labelled(values, index, names[0], columns)
    labels = form.labels if columns is None else [*form.labels, None]
    if columns is not None:
        names = [name if len(form.labels) > 1 else (name,) for name in names]
        names = [(*name, column) for name in names for column in columns]
    header = pd.Index(names, name=labels[0], tupleize_cols=False)
    if len(labels) > 1:
        header = pd.MultiIndex.from_tuples(names, names=labels)
    return pd.DataFrame(np.column_stack(parts), index=index, columns=header)


def _taken(index, places):
    """Some entries of an index, which keeps its frequency if they follow one another."""
    if len(places) and (np.diff(places) == 1).all():
        return index[places[0] : places[-1] + 1]
    return index[places] if len(places) else index[:0]


def _long(table, values, steps, columns):
    form, index = table.form, table.form.index
    if index is None:
        names = pd.Index(table.names, tupleize_cols=False).take(table.series)
        index = pd.MultiIndex.from_arrays([names, steps], names=form.labels[:2])
    if form.kind == "long":
        return _labelled(values, index, form.labels[2], columns)
    name = "forecast" if form.kind == "tidy" else form.labels[2]
    found = _labelled(values.reshape(len(index), -1), index, None, columns or [name])
    if form.kind == "long_frame":
        return found
    found = found.set_axis(index.set_names([SERIES, TIME])).reset_index()
    found = found.drop(columns=SERIES) if form.single else found
    return found if form.rows is None else found.set_axis(form.rows)


def _labelled(values, index, name, columns):
    if columns is None:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=columns)
