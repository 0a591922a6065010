"""Forecasts in the form, and the library, in which the user passed the series.

`_forms` reads the series, and `Form` in `_table.py` lists all forms.
"""

import datetime

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from ._table import SERIES, TIME


def wrap(table, forecast_rows, columns=None):
    """Return forecasts in the form in which the user passed the series.

    Parameters
    ----------
    table : Table
        The steps to forecast, in the order of the series, unless its form has an index of
        series and time.
    forecast_rows : ndarray of shape (n_rows,) or (n_rows, n_columns)
        Forecasts of the rows of the table, or several quantities of each.
    columns : list, default=None
        Names of the quantities; None if there is only one.
    """
    wrapped, form = _in_form(table, forecast_rows, columns), table.form
    has_times = isinstance(wrapped, pd.DataFrame) and table.time.kind != "position"
    return to_library(wrapped, form.library, with_index=has_times and form.kind != "tidy")


def to_library(data, library, *, with_index=False):
    """Convert a frame or Series of pandas to another library; return other data unchanged.

    Parameters
    ----------
    data : DataFrame, Series, dict or ndarray
    library : str
    with_index : bool, default=False
        Whether the index of a frame becomes a column of time.
    """
    if library == "pandas":
        return data
    if isinstance(data, pd.Series):
        return _to_library_column(data.name, data, library).to_native()
    columns = {TIME: data.index} if with_index else {}
    for i, name in enumerate(data):
        # Other libraries have no columns of several levels.
        columns["_".join(map(str, np.atleast_1d(name)))] = data.iloc[:, i]
    converted = {
        name: _to_library_column(name, column, library) for name, column in columns.items()
    }
    return nw.from_dict(converted, backend=library).to_native()


def _to_library_column(name, column, library):
    """Convert a column of pandas to a Series of narwhals in another library."""
    column, name = pd.Index(column), "" if name is None else str(name)
    if not isinstance(column, pd.DatetimeIndex):
        cells = column.tolist() if column.dtype == object else column.to_numpy()
        return nw.new_series(name, cells, backend=library)
    # Times with a time zone are converted in UTC.
    cells = column.asi8.view(f"M8[{column.unit}]")
    if column.unit == "s":
        # polars has units of days and of milliseconds, but not of seconds.
        days, has_no_zone = cells.astype("M8[D]"), column.tz is None
        cells = days if has_no_zone and (days == cells).all() else cells.astype("M8[ms]")
    converted = nw.new_series(name, cells, backend=library)
    if column.tz is None:
        return converted
    # An offset without a name, such as +02:00, is no time zone in other libraries.
    zone = "UTC" if isinstance(column.tz, datetime.timezone) else str(column.tz)
    return converted.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def _in_form(table, forecast_rows, columns):
    """Return forecasts in the form of the series, as arrays or objects of pandas.

    The arguments are those of :func:`wrap`.
    """
    form, names = table.form, table.names
    forecast_rows = np.asarray(forecast_rows).astype(form.dtype)
    if form.kind == "array":
        return forecast_rows
    rows_of_series = np.split(forecast_rows, table.first_rows[1:])
    if form.kind == "table":
        return np.stack(rows_of_series, axis=-1)
    if form.kind == "windows":
        return np.stack(rows_of_series, axis=0)
    if form.kind == "arrays":
        return dict(zip(names, rows_of_series, strict=True))
    # The other forms have an index. It is cut from an index of all steps, so that it keeps its
    # frequency.
    first = int(table.step.min(initial=len(table.time)))
    steps = table.time.index_between(first, int(table.step.max(initial=-1)) + 1)
    if form.long:
        return _in_long_form(table, forecast_rows, _take(steps, table.step - first), columns)
    if form.kind == "dict":
        positions_of_series = np.split(table.step - first, table.first_rows[1:])
        forecasts = {}
        for i, name in enumerate(names):
            index = _take(steps, positions_of_series[i])
            forecasts[name] = _labelled(rows_of_series[i], index, name, columns)
        return forecasts
    index = form.index
    if index is None:
        index = _take(steps, table.step[table.series == 0] - first)
    if form.kind == "series":
        return _labelled(forecast_rows, index, names[0], columns)
    header = _header(names, form.labels, columns)
    return pd.DataFrame(np.column_stack(rows_of_series), index=index, columns=header)


def _header(names, labels, columns):
    """Return the columns of a frame with a series, or several quantities of it, in each column.

    `names` are those of the series, `labels` those of the levels of the header, and `columns`
    the quantities or None.
    """
    if columns is not None:
        tuples = [name if len(labels) > 1 else (name,) for name in names]
        names = [(*name, column) for name in tuples for column in columns]
        labels = [*labels, None]
    if len(labels) > 1:
        return pd.MultiIndex.from_tuples(names, names=labels)
    return pd.Index(names, name=labels[0], tupleize_cols=False)


def _take(index, entries):
    """Select entries of an index, which keeps its frequency if they follow one another."""
    if len(entries) and (np.diff(entries) == 1).all():
        return index[entries[0] : entries[-1] + 1]
    return index[entries] if len(entries) else index[:0]


def _in_long_form(table, forecast_rows, steps, columns):
    """Return forecasts in long format; `steps` is the index of time of the rows.

    The other arguments are those of :func:`wrap`.
    """
    form, index = table.form, table.form.index
    if index is None:
        names = pd.Index(table.names, tupleize_cols=False).take(table.series)
        index = pd.MultiIndex.from_arrays([names, steps], names=form.labels[:2])
    if form.kind == "long":
        return _labelled(forecast_rows, index, form.labels[2], columns)
    name_of_value = "forecast" if form.kind == "tidy" else form.labels[2]
    frame = _labelled(
        forecast_rows.reshape(len(index), -1), index, None, columns or [name_of_value]
    )
    if form.kind == "long_frame":
        return frame
    frame = frame.set_axis(index.set_names([SERIES, TIME])).reset_index()
    frame = frame.drop(columns=SERIES) if form.single else frame
    return frame if form.rows is None else frame.set_axis(form.rows)


def _labelled(values, index, name, columns):
    """Return a Series with this name, or a frame if there are columns."""
    if columns is None:
        return pd.Series(values, index=index, name=name)
    return pd.DataFrame(values, index=index, columns=columns)
