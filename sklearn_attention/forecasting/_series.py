"""Reading series: pandas, dicts, arrays and lists become a panel."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from ._index import TimeIndex, kind_of
from ._missing import check_missing, fill_missing
from ._panel import Panel
from ._tidy import is_tidy, long_of


def read_panel(
    y,
    *,
    missing="raise",
    season_length=1,
    index=None,
    like=None,
    rows_are_series=False,
    may_lack=False,
    what="y",
):
    """Read series of any form.

    Parameters
    ----------
    y : Series, DataFrame, dict, array or list
        One series; a frame or 2-D array of one series a column, where missing values at the
        ends mean that a series is shorter; a dict of Series or of arrays; a Series, or a
        frame of one column, with an index of two levels, series and time; or a frame with the
        columns "unique_id", "ds" and "y".
    missing : {"raise", "interpolate", "seasonal"} or None, default="raise"
        What is done about missing values between others: an error that names them, values on
        the line between their neighbours, or as in the seasons beside them. None leaves them.
    season_length : int, default=1
        Steps in a season, for "seasonal".
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

    Raises
    ------
    ValueError
        If `y` is empty, not numeric, infinite or not regular; the message names the steps.
    """
    if missing is not None:
        check_missing(missing)
    fill = partial(fill_missing, missing=missing, season_length=season_length, what=what)

    def times(found):
        own = like is not None and kind_of(found, what) == like.kind
        return TimeIndex.read(found, like=like if own else None, what=what)

    if isinstance(index, pd.MultiIndex) and not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = pd.Series(_as_array(y, what), index=index)
    if isinstance(y, dict):
        return _read_dict(y, times, fill, what)
    if is_tidy(y):
        return replace(_read_long(long_of(y, what), times, fill, what), form="tidy")
    if isinstance(y, pd.DataFrame | pd.Series):
        if isinstance(y.index, pd.MultiIndex):
            return _read_long(y, times, fill, what)
        _refuse_empty(y, what)
        time = times(y.index)
        if isinstance(y, pd.Series):
            columns, names, form = [y], [y.name], "series"
        else:
            columns, names, form = [y.iloc[:, i] for i in range(y.shape[1])], list(y), "frame"
        if len(set(names)) < len(names):
            raise ValueError(f"{what} has columns of the same name, {names}: rename them.")
        dtype = _common_dtype([column.dtype for column in columns])
        columns = [_floats(column, what) for column in columns]
        labels = list(y.columns.names) if form == "frame" else []
    else:
        table = _as_array(y, what)
        _refuse_empty(table, what)
        time = TimeIndex.of_positions(len(table)) if index is None else times(index)
        form = "array" if table.ndim == 1 else "windows" if rows_are_series else "table"
        if form == "windows":
            time = TimeIndex.of_positions(table.shape[1])
        dtype = _common_dtype([table.dtype])
        table = _floats(table, what).reshape(len(table), -1)
        columns = list(table if form == "windows" else table.T)
        names, labels = list(range(len(columns))), []
    several = len(columns) > 1
    there = [i for i, column in enumerate(columns) if not np.isnan(column).all()]
    if may_lack and there:
        columns, names = ([part[i] for i in there] for part in (columns, names))
    values, starts = _trimmed(columns, names, several, time, fill, what)
    return Panel(time, values, starts, names, form, dtype, labels)


def _read_dict(y, times, fill, what):
    _refuse_empty(y, what)
    if not all(isinstance(series, pd.Series) for series in y.values()):
        if any(isinstance(series, pd.Series) for series in y.values()):
            raise ValueError(f"{what} has both Series and arrays: give all an index, or none.")
        arrays = {name: _as_array(series, f"{what}[{name!r}]") for name, series in y.items()}
        for name, array in arrays.items():
            if array.ndim != 1 or len(array) == 0:
                raise ValueError(
                    f"{what}[{name!r}] has shape {array.shape}: pass one series for each name."
                )
        time = TimeIndex.of_positions(max(map(len, arrays.values())))
        dtype = _common_dtype([array.dtype for array in arrays.values()])
        values = [fill(_floats(array, what), 0, time, name) for name, array in arrays.items()]
        starts = np.zeros(len(values), dtype=np.int64)
        return Panel(time, values, starts, list(arrays), "arrays", dtype, [])
    return _of_series(y, times, fill, what, "dict", [])


def _read_long(y, times, fill, what):
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
    parts = {name: part.droplevel(0) for name, part in y.groupby(level=0, sort=False)}
    labels = [*y.index.names, column]
    return _of_series(parts, times, fill, what, form, labels)


def _of_series(parts, times, fill, what, form, labels):
    """A panel of Series that have indexes of their own."""
    for name, part in parts.items():
        _refuse_empty(part, f"{what}[{name!r}]")
    first = min(parts.values(), key=lambda part: part.index[0])
    longest = max(parts.values(), key=len)
    # The frequency of the longest can be told best.
    model = times(longest.index)
    time = TimeIndex.read(first.index, like=model, what=what)
    starts, values = [], []
    for name, part in parts.items():
        own = TimeIndex.read(part.index, like=model, what=f"{what}[{name!r}]")
        starts.append(int(time.positions(part.index[:1], what)[0]))
        time = time.extended(max(0, starts[-1] + len(own) - len(time)))
    dtype = _common_dtype([part.dtype for part in parts.values()])
    for start, (name, part) in zip(starts, parts.items(), strict=True):
        values.append(fill(_floats(part, what), start, time, name))
    return Panel(time, values, np.array(starts), list(parts), form, dtype, labels)


def _trimmed(columns, names, several, time, fill, what):
    """Columns, of several without the missing values at the ends of shorter series."""
    values, starts = [], []
    for name, column in zip(names, columns, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        if len(known) == 0:
            raise ValueError(
                f"{what} has no value but missing ones (NaN) in series {name!r}: remove it."
            )
        start, stop = (known[0], known[-1] + 1) if several else (0, len(column))
        starts.append(int(start))
        part = column[start:stop]
        values.append(fill(part, int(start), time, name))
    return values, np.array(starts, dtype=np.int64)


def _as_array(y, what):
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
