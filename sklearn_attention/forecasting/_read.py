"""Reading series: pandas, dicts, arrays and lists become a table."""

from itertools import pairwise

import numpy as np
import pandas as pd

from .._columns import frame_of, to_pandas
from .._validation import is_one_of, refuse_other_arrays
from ._checks import refuse_too_large
from ._table import Form, Table, positions
from ._time import (
    TimeIndex,
    as_index,
    check_steps,
    clearest,
    kind_of,
    numbers_of,
    read_with_gaps,
    refuse_gaps,
)

SERIES, TIME, TARGET = "unique_id", "ds", "y"
# Code that does something to each of the series of a form, from their name and what it does.
_LONG = "{}.groupby(level=0).apply(lambda s: s.droplevel(0).{})"
_FILLED = {
    "dict": "{{name: s.{1} for name, s in {0}.items()}}", "long": _LONG, "long_frame": _LONG,
    "tidy": f"{{}}.set_index({TIME!r}).groupby({SERIES!r})[{TARGET!r}].apply(lambda s: s.{{}})"
    f".rename_axis({[SERIES, TIME]}).reset_index()",
}  # fmt: skip
_NUMBERS = (
    "convert it with pandas.to_numeric, or remove it; of series in cells make a dict, "
    "dict(enumerate(column)). Features come before series, fit(X, y); dates are the index, by "
    "set_index, or where series are one below the other a column 'ds' beside 'unique_id', "
    "their name, and 'y', the values; in frames of polars they are always 'ds'."
)


def read_series(
    y,
    *,
    index=None,
    like=None,
    rows_are_series=False,
    may_lack=False,
    missing="raise",
    what="y",
):
    """A table of series of any form; values missing between others stay missing."""
    # `index` is that of an array, which has none. An index of the kind of `like`, another
    # TimeIndex, has to agree with it; its frequency then need not be inferred. A 2-D array may
    # have a series in each row. If columns may lack, those without any value are left out, as
    # of series that have ended, unless all are without. Steps that an index lacks have
    # missing values, or are refused if `missing` is "raise". `what` is its name in messages.

    def times(found, like=like, what=what, fill="{}.{}"):
        alike = like is not None and kind_of(found, what) == like.kind
        time = read_with_gaps(found, like=like if alike else None, what=what)
        if fill and is_one_of(missing, "raise"):
            refuse_gaps(time, found, what, fill)
        return time

    if isinstance(index, pd.MultiIndex) and not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = pd.Series(as_array(y, what), index=index)
    if isinstance(y, dict):
        table = _of_dict(y, times, what)
    elif is_tidy(y):
        table = _of_long(long_of(y, what), times, what, "tidy")
    elif isinstance(getattr(y, "index", None), pd.MultiIndex):
        table = _of_long(y, times, what, "long")
    else:
        if isinstance(y, pd.DataFrame | pd.Series):
            index = as_index(y.index)
        y = to_pandas(y) if library_of(y) != "pandas" else y
        table = _of_columns(y, index, times, rows_are_series, may_lack, what)
    refuse_too_large(table, table.value, what)
    return table


def _table(time, names, starts, counts, value, form):
    """A table of series that have so many rows each."""
    series, step = positions(starts, counts)
    return Table(
        time, names, series, step, value, np.empty((len(value), 0)), form,
        np.arange(len(names)), np.empty(0, dtype=np.int64),
    )  # fmt: skip


def _of_columns(y, index, times, rows_are_series, may_lack, what):
    """Series on one index; of several the missing values at the ends of shorter ones go."""
    names, labels = None, []
    if isinstance(y, pd.Series):
        columns, names, kind = [y], [y.name], "series"
    elif isinstance(y, pd.DataFrame):
        columns, names = [y.iloc[:, i] for i in range(y.shape[1])], list(y)
        kind, labels = "frame", list(y.columns.names)
    else:
        y = as_array(y, what)
        columns, kind = (
            [y.T if rows_are_series else y],
            "windows" if rows_are_series else "table",
        )
        kind = "array" if y.ndim == 1 else kind
    _refuse_empty(y, what)
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"{what} has columns of the same name, {names}: rename them.")
    values = np.column_stack([_floats(column, what) for column in columns])
    names = list(range(values.shape[1])) if names is None else names
    time = TimeIndex.of_positions(len(values)) if index is None else times(index)
    values = _on_steps(values, index, time)
    there = ~np.isnan(values)
    empty = ~there.any(axis=0)
    n_steps, several = len(values), len(names) > 1
    if empty.any() and not may_lack:
        where = f" in series {names[empty.argmax()]!r}" if several else ""
        raise ValueError(f"{what} has no value but missing ones (NaN){where}: remove it.")
    if empty.all():
        empty[:] = False
    starts = there.argmax(axis=0) if several else np.zeros(1, dtype=np.int64)
    stops = n_steps - there[::-1].argmax(axis=0) if several else np.array([n_steps])
    starts, counts = starts[~empty], (stops - starts)[~empty]
    names = [name for name, lacks in zip(names, empty, strict=True) if not lacks]
    column, step = positions(starts, counts)
    value = values[step, np.flatnonzero(~empty)[column]]
    form = Form(kind, _common_dtype(column.dtype for column in columns), labels)
    return _table(time, names, starts, counts, value, form)


def _on_steps(values, index, time):
    """Rows of an index, if there is one, on all steps that it has or lacks."""
    if index is None or len(time) == len(values):
        return values
    found = np.full((len(time), values.shape[1]), np.nan)
    found[time.find(numbers_of(index))] = values
    return found


def _of_dict(y, times, what):
    _refuse_empty(y, what)
    indexed = [isinstance(series, pd.Series) for series in y.values()]
    if all(indexed):
        for name, part in y.items():
            _refuse_empty(part, f"{what}[{name!r}]")
        value = np.concatenate([_floats(part, what) for part in y.values()])
        form = Form("dict", _common_dtype(part.dtype for part in y.values()))
        indexes = [as_index(part.index) for part in y.values()]
        return _of_parts(indexes, list(y), value, form, times, what)
    if any(indexed):
        raise ValueError(f"{what} has both Series and arrays: pass only one kind.")
    arrays = {name: as_array(series, f"{what}[{name!r}]") for name, series in y.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) == 0:
            raise ValueError(
                f"{what}[{name!r}] has shape {array.shape}: pass one series for each name."
            )
    counts = np.array([len(array) for array in arrays.values()])
    form = Form("arrays", _common_dtype(array.dtype for array in arrays.values()))
    value = np.concatenate([_floats(array, what) for array in arrays.values()])
    time = TimeIndex.of_positions(counts.max())
    return _table(time, list(arrays), np.zeros_like(counts), counts, value, form)


def _of_long(y, times, what, kind):
    column = y.name if isinstance(y, pd.Series) else None
    if isinstance(y, pd.DataFrame):
        if y.shape[1] != 1:
            raise ValueError(
                f"{what} is long and has the columns {list(y)}: pass the column of the target "
                "as y, and the others as X."
            )
        kind, column, y = "long_frame", y.columns[0], y.iloc[:, 0]
    if y.index.nlevels != 2:
        raise ValueError(
            f"{what} has an index of {y.index.nlevels} levels: pass two, series and time."
        )
    _refuse_empty(y, what)
    series, names = pd.factorize(y.index.get_level_values(0))
    order = np.argsort(series, kind="stable")
    order = order[series[order] >= 0]  # rows without a series go
    cuts = np.searchsorted(series[order], np.arange(len(names) + 1))
    steps = as_index(y.index.get_level_values(1)).take(order)
    indexes = [steps[first:stop] for first, stop in pairwise(cuts)]
    form = Form(kind, _common_dtype([y.dtype]), [*y.index.names, column])
    return _of_parts(indexes, list(names), _floats(y, what)[order], form, times, what)


def _of_parts(indexes, names, value, form, times, what):
    """Series that have indexes of their own."""
    whats = [f"{what}[{name!r}]" for name in names]
    alike = len({index.dtype for index in indexes}) == 1
    # The frequency of the longest is the clearest.
    model = times(clearest(indexes) if alike else max(indexes, key=len), fill=None)
    if not alike:  # of several time zones or resolutions
        for index, own in zip(indexes, whats, strict=True):
            times(index, model, own, fill=None)
    earliest = min(range(len(names)), key=lambda i: indexes[i][0])
    time = times(indexes[earliest], model, whats[earliest], fill=None)
    counts = np.array(list(map(len, indexes)))
    first, series = np.cumsum(counts) - counts, np.repeat(np.arange(len(names)), counts)
    if alike:
        numbers = np.concatenate(list(map(numbers_of, indexes)))
        time = time.reaching(numbers.max(), whats[series[numbers.argmax()]])
        step = time.find(numbers)
    else:
        step = np.concatenate([time.positions(index, what) for index in indexes])
        time = time.extended(max(0, step.max() + 1 - len(time)))
    ahead = np.diff(step, prepend=0)
    ahead[first] = 1
    for wrong in ((step < 0) | (ahead < 1), ahead > 1):
        for i in series[wrong][:1]:
            times(indexes[i], model, whats[i], _FILLED[form.kind])
            time.positions(indexes[i], what)
    begins, ends = step[first], step[first + counts - 1] + 1
    lengths = ends - begins
    check_steps(what, lengths.sum())
    placed = np.full(lengths.sum(), np.nan)
    placed[step + (np.cumsum(lengths) - ends)[series]] = value
    return _table(time, names, begins, lengths, placed, form)


def as_array(y, what):
    """One or two dimensions of what has no index, or an error that names it."""
    refuse_other_arrays(what, y)
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
        raise ValueError(f"{what} has dtype {values.dtype}, no numbers: {_NUMBERS}")
    numbers = np.empty(values.shape)
    for place, value in np.ndenumerate(values):
        try:
            numbers[place] = np.nan if value is pd.NA else value
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{what} has the entry {value!r} at row {place[0]}, no number: {_NUMBERS}"
            ) from error
    return numbers


def is_tidy(data):
    """True for a frame with columns of series and time."""
    return isinstance(data, pd.DataFrame) and {SERIES, TIME} <= set(data.columns)


def library_of(data):
    """Name of the library of a frame or a series; pandas for all else."""
    known = isinstance(data, pd.DataFrame | pd.Series)
    frame = None if known else frame_of(data, allow_series=True)
    return "pandas" if frame is None else frame.implementation.value


def dated(data):
    """A frame of another library with a column of times as one of pandas; all else as it is."""
    frame = to_pandas(data)
    if frame is data or TIME not in frame:
        return data
    return frame if is_tidy(frame) else frame.set_index(TIME)


def split_tidy(frame, y=None, what="X"):
    """Features, None if there are none, and the frame of the values, `y` or a column.

    `what` is what the frame was passed as, for messages.
    """
    features = frame
    if y is None:
        if TARGET not in frame:
            raise ValueError(
                f"{what} has the columns {SERIES!r} and {TIME!r}, but none of the values: name "
                f"that {TARGET!r}."
            )
        features, y = frame.drop(columns=TARGET), frame[TARGET]
    target = frame[[SERIES]].assign(**{TIME: as_index(frame[TIME]), TARGET: np.asarray(y)})
    features = features_of(features)
    return (features if features.shape[1] else None), target


def features_of(frame):
    """Features of a tidy frame, with an index of series, times, and the rows' own labels."""
    labels = frame.index.to_flat_index() if frame.index.nlevels > 1 else frame.index
    index = pd.MultiIndex.from_arrays(
        [frame[SERIES], frame[TIME], labels], names=[SERIES, TIME, frame.index.name]
    )
    return frame.drop(columns=[SERIES, TIME]).set_axis(index)


def long_of(frame, what="X"):
    """The series of a tidy frame one below the other, each sorted in time."""
    _, frame = split_tidy(frame, what=what)
    if frame[SERIES].isna().any():
        raise ValueError(f"{what} has rows without {SERIES!r}: drop them.")
    kind_of(pd.Index(frame[TIME]), what)
    return frame.sort_values([SERIES, TIME]).set_index([SERIES, TIME])[TARGET]
