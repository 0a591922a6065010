"""Reading series: pandas, dicts, arrays and lists become a panel."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from ._missing import named, refuse_too_large
from ._panel import Panel
from ._tidy import is_tidy, long_of
from ._time import TimeIndex, kind_of


def read_panel(y, *, index=None, like=None, rows_are_series=False, may_lack=False, what="y"):
    """Read series of any form; values missing between others stay so.

    Parameters
    ----------
    y : Series, DataFrame, dict, array or list
        As for :meth:`Forecaster.fit`.
    index : Index, default=None
        The index of an array, which has none.
    like : TimeIndex, default=None
        An index that an index of the same kind has to go together with; its frequency then
        need not be found out.
    rows_are_series : bool, default=False
        Whether a 2-D array has a series in each row.
    may_lack : bool, default=False
        Whether columns without any value are left out, as of series that have ended; unless
        all of them are.
    what : str, default="y"
        What it is, for messages.

    Returns
    -------
    panel : Panel
    """

    def times(found):
        own = like is not None and kind_of(found, what) == like.kind
        return TimeIndex.read(found, like=like if own else None, what=what)

    if isinstance(index, pd.MultiIndex) and not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = pd.Series(as_array(y, what), index=index)
    if isinstance(y, dict):
        panel = _of_dict(y, times, what)
    elif is_tidy(y):
        panel = replace(_of_long(long_of(y, what), times, what), form="tidy")
    elif not isinstance(y, pd.DataFrame | pd.Series):
        panel = _of_array(y, index, times, rows_are_series, may_lack, what)
    elif isinstance(y.index, pd.MultiIndex):
        panel = _of_long(y, times, what)
    else:
        panel = _of_pandas(y, times, may_lack, what)
    for values, start, name in zip(panel.values, panel.starts, panel.names, strict=True):
        refuse_too_large(values, start, panel.time, what, named(panel, name))
    return panel


def _of_array(y, index, times, rows_are_series, may_lack, what):
    table = as_array(y, what)
    _refuse_empty(table, what)
    form = "array" if table.ndim == 1 else "windows" if rows_are_series else "table"
    time = TimeIndex.of_positions(len(table)) if index is None else times(index)
    if form == "windows":
        time = TimeIndex.of_positions(table.shape[1])
    values = _floats(table, what).reshape(len(table), -1)
    columns = dict(enumerate(values if form == "windows" else values.T))
    return _of_columns(columns, time, form, [table.dtype], [], may_lack, what)


def _of_pandas(y, times, may_lack, what):
    _refuse_empty(y, what)
    time = times(y.index)
    if isinstance(y, pd.Series):
        columns, names, form, labels = [y], [y.name], "series", []
    else:
        columns, names = [y.iloc[:, i] for i in range(y.shape[1])], list(y)
        form, labels = "frame", list(y.columns.names)
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has columns of the same name, {names}: rename them.")
    dtypes = [column.dtype for column in columns]
    columns = {name: _floats(own, what) for name, own in zip(names, columns, strict=True)}
    return _of_columns(columns, time, form, dtypes, labels, may_lack, what)


def _of_columns(columns, time, form, dtypes, labels, may_lack, what):
    """Series on one index; of several the missing values at the ends of shorter ones go."""
    empty = [name for name, column in columns.items() if np.isnan(column).all()]
    several = len(columns) > 1
    if empty and not (may_lack and len(empty) < len(columns)):
        raise ValueError(
            f"{what} has no value but missing ones (NaN) in series {empty[0]!r}: remove it."
        )
    names = [name for name in columns if name not in empty]
    values, starts = [], []
    for name in names:
        known = np.flatnonzero(~np.isnan(columns[name]))
        start, stop = (known[0], known[-1] + 1) if several else (0, len(columns[name]))
        values.append(np.ascontiguousarray(columns[name][start:stop]))
        starts.append(start)
    starts = np.array(starts, dtype=np.int64)
    return Panel(time, values, starts, names, form, _common_dtype(dtypes), labels)


def _of_dict(y, times, what):
    _refuse_empty(y, what)
    indexed = [isinstance(series, pd.Series) for series in y.values()]
    if all(indexed):
        return _of_series(y, times, "dict", [], what)
    if any(indexed):
        raise ValueError(f"{what} has both Series and arrays: give all an index, or none.")
    arrays = {name: as_array(series, f"{what}[{name!r}]") for name, series in y.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) == 0:
            raise ValueError(
                f"{what}[{name!r}] has shape {array.shape}: pass one series for each name."
            )
    time = TimeIndex.of_positions(max(map(len, arrays.values())))
    dtype = _common_dtype([array.dtype for array in arrays.values()])
    values = [_floats(array, what) for array in arrays.values()]
    starts = np.zeros(len(values), dtype=np.int64)
    return Panel(time, values, starts, list(arrays), "arrays", dtype, [])


def _of_long(y, times, what):
    form, column = "long", y.name if isinstance(y, pd.Series) else None
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise ValueError(
                f"{what} is long and has the columns {list(y)}: pass the column of the target "
                "as y, and the others as X."
            )
        form, column, y = "long_frame", y.columns[0], y.iloc[:, 0]
    if y.index.nlevels != 2:
        raise ValueError(
            f"{what} has an index of {y.index.nlevels} levels: pass two, series and time."
        )
    _refuse_empty(y, what)
    parts = {
        name: part.droplevel(0) for name, part in y.groupby(level=0, sort=False, observed=True)
    }
    return _of_series(parts, times, form, [*y.index.names, column], what)


def _of_series(parts, times, form, labels, what):
    """A panel of Series that have indexes of their own."""
    for name, part in parts.items():
        _refuse_empty(part, f"{what}[{name!r}]")
    # The frequency of the longest can be told best.
    model = times(max(parts.values(), key=len).index)
    first = min(parts.values(), key=lambda part: part.index[0])
    time = TimeIndex.read(first.index, like=model, what=what)
    starts, values = [], []
    for name, part in parts.items():
        own = TimeIndex.read(part.index, like=model, what=f"{what}[{name!r}]")
        starts.append(int(time.positions(part.index[:1], what)[0]))
        time = time.extended(max(0, starts[-1] + len(own) - len(time)))
        values.append(_floats(part, what))
    dtype = _common_dtype([part.dtype for part in parts.values()])
    return Panel(time, values, np.array(starts), list(parts), form, dtype, labels)


def as_array(y, what):
    """One or two dimensions of what has no index, or an error that names it.

    Parameters
    ----------
    y : array or list
    what : str
        What it is, for messages.

    Returns
    -------
    table : ndarray
    """
    if issparse(y):
        raise TypeError(f"{what} is sparse, which is not supported: pass {what}.toarray().")
    try:
        table = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"{what} has rows of different lengths: pass series of different lengths as a dict."
        ) from error
    if table.ndim not in (1, 2):
        raise ValueError(
            f"{what} has {table.ndim} dimensions (shape {table.shape}): pass one series, or a "
            "2-D array with a column for each."
        )
    return table


def _refuse_empty(y, what):
    if len(y) == 0 or 0 in np.shape(y):
        raise ValueError(f"{what} is empty (shape {np.shape(y)}): pass at least one series.")


def _common_dtype(dtypes):
    """float32 if all series are in it or less, else float64."""
    names = {str(dtype).lower() for dtype in dtypes}
    return "float32" if names <= {"float16", "float32"} else "float64"


def _floats(values, what):
    """float64, with an error that names what is no number."""
    if isinstance(values, pd.Series):
        what = f"{what} ({values.name!r})" if values.name is not None else what
        if values.dtype.kind in "fiub":
            return values.to_numpy(np.float64, na_value=np.nan)
        values = values.to_numpy()
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is complex, pass real numbers.")
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind not in "OUS":
        raise ValueError(f"{what} has dtype {values.dtype}: pass numbers.")
    numbers = np.empty(values.shape)
    for place, value in np.ndenumerate(values):
        try:
            numbers[place] = np.nan if value is pd.NA else value
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{what} has the entry {value!r} at row {place[0]}, which is no number: "
                "convert it with pandas.to_numeric, or remove it."
            ) from error
    return numbers
