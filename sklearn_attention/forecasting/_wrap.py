"""Forecasts of rows of series, brought back into the form that the series came in."""

import datetime

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from ._read import SERIES, TIME


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
        return nw.new_series(name, column.to_numpy(), backend=library)
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
    form, values = table.form, np.asarray(values).astype(table.form.dtype)
    if form.long:
        return _long(table, values, columns)
    if form.kind == "array":
        return values
    parts = np.split(values, table.first[1:])
    if form.kind in ("table", "windows"):
        return np.stack(parts, axis=-1 if form.kind == "table" else 0)
    if form.kind == "arrays":
        return dict(zip(table.names, parts, strict=True))
    if form.kind == "dict":
        named = zip(parts, _indexes(table), table.names, strict=True)
        return {name: _labelled(values, index, name, columns) for values, index, name in named}
    index = next(_indexes(table)) if form.index is None else form.index
    if form.kind == "series":
        return _labelled(values, index, table.names[0], columns)
    return _wide(table, parts, index, columns)


def _indexes(table):
    """The index of the rows of each series, in turn."""
    first = int(table.step.min(initial=len(table.time)))
    index = table.time.between(first, int(table.step.max(initial=-1)) + 1)
    return (_taken(index, places) for places in np.split(table.step - first, table.first[1:]))


def _taken(index, places):
    """Some entries of an index, which keeps its frequency if they follow one another."""
    if len(places) and (np.diff(places) == 1).all():
        return index[places[0] : places[-1] + 1]
    return index[places] if len(places) else index[:0]


def _wide(table, parts, index, columns):
    labels = table.form.labels
    names = [name if len(labels) > 1 else (name,) for name in table.names]
    if columns is not None:
        names = [(*name, column) for name in names for column in columns]
    if len(labels) == 1 and columns is None:
        header = pd.Index(table.names, name=labels[0], tupleize_cols=False)
    else:
        labels = labels if columns is None else [*labels, None]
        header = pd.MultiIndex.from_tuples(names, names=labels)
    return pd.DataFrame(np.column_stack(parts), index=index, columns=header)


def _long(table, values, columns):
    form, index = table.form, table.form.index
    if index is None:
        names = pd.Index(table.names, tupleize_cols=False).take(table.series)
        steps = table.time.between(0, int(table.step.max(initial=-1)) + 1)
        steps = _taken(steps, table.step)
        index = pd.MultiIndex.from_arrays([names, steps], names=form.labels[:2])
    if form.kind == "tidy":
        return _tidy(values, index, columns)
    if form.kind == "long":
        return _labelled(values, index, form.labels[2], columns)
    names = [form.labels[2]] if columns is None else columns
    return pd.DataFrame(values.reshape(len(index), -1), index=index, columns=names)


def _tidy(values, index, columns):
    """A tidy frame; a third level of `index` labels its rows."""
    names = ["forecast"] if columns is None else columns
    frame = pd.DataFrame(values.reshape(len(index), -1), columns=names)
    for i, name in enumerate((SERIES, TIME)):
        frame.insert(i, name, index.get_level_values(i))
    return frame if index.nlevels == 2 else frame.set_axis(index.get_level_values(2))


def _labelled(values, index, name, columns):
    if columns is None:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=columns)
