"""Forms of series: `read_series` makes a `Table` of series of any form.

Users pass series as arrays, Series, frames or dicts, of pandas or another library. In wide
format a frame has a series in each column. In long format the series are one below the other:
in a Series or a one-column frame with an index of series and time, or in a tidy frame, which
has the columns "unique_id" (series), "ds" (time) and "y" (value). `Form` in `_table.py` lists
all forms.

In all functions `what` is the name of the user's data in error messages, such as "y".
"""

from itertools import pairwise

import numpy as np
import pandas as pd

from .._frames import narwhals_frame, to_pandas
from .._validation import is_one_of
from ._checks import as_array, as_floats, refuse_dates, refuse_too_large
from ._frequency import as_integers, infer_offset
from ._table import SERIES, TARGET, TIME, Form, Table, positions
from ._time import TimeIndex, as_index, check_order, kind_of


def read_series(
    y,
    *,
    index=None,
    reference=None,
    earlier=None,
    rows_are_series=False,
    missing="raise",
    what="y",
):
    """Make a table of series of any form; missing values between others stay missing.

    Parameters
    ----------
    y : Series, DataFrame, dict or array
        The series.
    index : Index, default=None
        Index of an array, which has none of its own.
    reference : TimeIndex, default=None
        An index with which that of the series has to agree if it is of the same kind. The
        frequency then need not be inferred.
    earlier : Table, default=None
        Observations of the same series up to now. The new table has the index of time of
        `earlier` and the same series in the same order, then new series. Series without an
        index follow the last steps of `earlier`.
    rows_are_series : bool, default=False
        Whether a 2-D array has a series in each row; otherwise in each column.
    missing : str, default="raise"
        "raise" refuses steps that an index lacks; otherwise they get missing values.
    what : str, default="y"
        Name of the argument `y` in error messages.
    """
    # 1. Divide `y` into one array of values for each series. Steps are numbered from 0.
    names, columns, indexes, form = _split_into_series(y, index, rows_are_series, what)
    lengths = np.array([len(column) for column in columns])
    series, step = positions(0, lengths)
    time = TimeIndex.of_positions(lengths.max()) if earlier is None else earlier.time
    # 2. Convert the indexes of the series to positions on one index of time.
    has_steps = indexes is not None and (earlier is None or time.kind != "position")
    if has_steps:
        descriptions = [what] if form.aligned else [f"{what}[{name!r}]" for name in names]
        known_time = None if earlier is None else time
        time, steps_of_indexes = _on_one_time(indexes, descriptions, reference, known_time)
        for steps, description in zip(steps_of_indexes, descriptions, strict=True):
            if is_one_of(missing, "raise") and steps[-1] - steps[0] >= len(steps):
                time.refuse_gaps(steps, description)
        # Aligned series share one index, and all have its steps.
        step = np.tile(np.concatenate(steps_of_indexes), len(names) if form.aligned else 1)
    # 3. Give series the numbers that they have in the earlier table. Without an index of their
    # own, they follow its last steps.
    if earlier is not None:
        numbers, names = _number_series(earlier, names, form)
        series, form_of_table = numbers[series], earlier.form
        if not has_steps:
            step = step + earlier.next_steps_of(len(names))[series]
            time = time.extended(int(step.max()) + 1 - len(time))
    else:
        form_of_table = form
    # 4. Make a table of all series, and cut off missing values at the ends of columns.
    value = np.concatenate([as_floats(column, what) for column in columns])
    table = Table.from_steps(time, names, series, step, value, form_of_table)
    if form.aligned:
        table = _without_missing_ends(table, len(columns), earlier is None, what)
    refuse_too_large(table, table.value, what)
    return table


def _without_missing_ends(table, n_columns, is_new, what):
    """Cut off missing values at the ends of columns, which may end before their common index.

    In a single column missing values at the ends stay missing. If the series are new, a series
    without an observation raises an error.
    """
    observed = table.observed_between(0, len(table.time))
    is_empty = observed.row_counts == 0
    if is_empty.any() and is_new:
        name = table.names[is_empty.argmax()]
        where = f" in series {name!r}" if len(table) > 1 else ""
        raise ValueError(f"{what} has only missing values (NaN){where}: remove that series.")
    return observed if n_columns > 1 and not is_empty.all() else table


def _on_one_time(indexes, descriptions, reference, time):
    """Find the positions of several indexes on one regular index of time.

    Parameters
    ----------
    indexes : list of Index
    descriptions : list of str
        Name of each index in error messages.
    reference : TimeIndex or None
        As for :func:`read_series`.
    time : TimeIndex or None
        The index of time, which is extended if necessary; None makes one that begins at the
        first step of any index.

    Returns
    -------
    time : TimeIndex
    steps : list of ndarray of int
        Ascending positions of the entries of each index.
    """
    # 1. A regular index tells kind, time zone and frequency: `time`, or one made for that.
    regular = time
    if time is None:
        longest = max(range(len(indexes)), key=lambda i: len(indexes[i]))
        sample, what_of_sample = indexes[longest], descriptions[longest]
        if isinstance(sample, pd.DatetimeIndex) and not sample.is_monotonic_increasing:
            check_order(sample, what_of_sample)
        if len({index.dtype for index in indexes}) == 1:
            sample = index_to_infer_from(indexes)
        has_same_kind = (
            reference is not None and kind_of(sample, what_of_sample) == reference.kind
        )
        regular = TimeIndex.read(
            sample, reference=reference if has_same_kind else None, what=what_of_sample
        )
    for index, what in zip(indexes, descriptions, strict=True):
        regular.check_kind(index, what)
        if index.hasnans:
            check_order(index, what)
    if regular.tz:
        indexes = [index.tz_convert(regular.tz) for index in indexes]
    # 2. The index of time reaches from the first to the last step of any series.
    if time is None:
        first = min(range(len(indexes)), key=lambda i: indexes[i][0])
        time = TimeIndex.read(indexes[first], reference=regular, what=descriptions[first])
    entries = indexes[0].append(indexes[1:])
    lengths = np.array([len(index) for index in indexes])
    cuts, number = np.cumsum([0, *lengths]), np.repeat(np.arange(len(lengths)), lengths)
    time = time.extended_to(entries.max(), descriptions[number[as_integers(entries).argmax()]])
    # 3. The entries of all indexes are found at once. They have to ascend within each index.
    steps = time.find(entries)
    ascends = np.diff(steps, prepend=-1) > 0
    ascends[cuts[:-1]] = True
    for i in number[~ascends | (steps < 0)][:1]:
        # One of these calls raises an error that names the entries.
        check_order(indexes[i], descriptions[i])
        time.positions(indexes[i], descriptions[i])
    return time, [steps[start:stop] for start, stop in pairwise(cuts)]


def index_to_infer_from(indexes):
    """Return the index from which the common frequency of several series is inferred.

    The longest index is enough if it has a frequency. Otherwise it may have gaps, and the union
    of all indexes is returned.
    """
    longest = max(indexes, key=len)
    is_dated = isinstance(longest, pd.DatetimeIndex) and not longest.hasnans
    if is_dated and infer_offset(longest) is None:
        return longest.append(indexes).unique().sort_values()
    return longest


def _number_series(earlier, names, form):
    """Find the numbers of series in an earlier table, by name; new names get the next numbers.

    Returns
    -------
    numbers : ndarray of int of shape (len(names),)
    all_names : list
        Names of the series of the earlier table, then new names.
    """
    both_are_named = earlier.form.named and form.named
    if len(earlier) == len(names) == 1 and not both_are_named:
        return np.zeros(1, dtype=np.int64), earlier.names
    new_names = [name for name in names if name not in earlier.names]
    if new_names and not both_are_named:
        raise ValueError(
            f"y has the series {new_names}, but the forecaster was fitted on {earlier.names}: "
            "pass those."
        )
    number_of = {name: i for i, name in enumerate([*earlier.names, *new_names])}
    return np.array([number_of[name] for name in names]), list(number_of)


def _split_into_series(y, index, rows_are_series, what):
    """Split series of any form into columns.

    Parameters
    ----------
    y, index, rows_are_series, what
        As for :func:`read_series`.

    Returns
    -------
    names : list
        Name of each series.
    columns : list of ndarray or Series
        Values of each series.
    indexes : list of Index, or None
        Index of each column, or one index for all columns of an aligned form; None if the data
        have no index.
    form : Form
    """
    library, labels, y = library_of(y), [], pandas_if_dated(y)
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
        names, columns, indexes = _split_dict(y, what)
        kind = "arrays" if indexes is None else "dict"
    elif is_tidy(y) or isinstance(index, pd.MultiIndex):
        names, columns, indexes, kind, labels = _split_long(y, what)
    elif isinstance(y, pd.Series):
        names, columns, kind = [y.name], [y], "series"
    elif isinstance(y, pd.DataFrame):
        refuse_dates(y, library, what)
        names, kind, labels = list(y), "frame", list(y.columns.names)
        columns = [y.iloc[:, i] for i in range(len(names))]
    else:
        kind = "array" if y.ndim == 1 else "windows" if rows_are_series else "table"
        columns = list(np.atleast_2d(y if rows_are_series else y.T))
        names = list(range(len(columns)))
    dtypes = {str(column.dtype).lower() for column in columns}
    dtype = "float32" if dtypes <= {"float16", "float32"} else "float64"
    return names, columns, indexes, Form(kind, dtype, labels, library=library)


def _split_dict(y, what):
    """Split a dict into names, columns and indexes, which are None for a dict of arrays."""
    is_series = [isinstance(column, pd.Series) for column in y.values()]
    if any(is_series) != all(is_series):
        raise ValueError(f"{what} has both Series and arrays: pass only one kind.")
    columns = list(y.values())
    if not all(is_series):
        columns = [as_array(column, f"{what}[{name!r}]") for name, column in y.items()]
    for name, column in zip(y, columns, strict=True):
        if column.ndim != 1 or len(column) == 0:
            raise ValueError(
                f"{what}[{name!r}] has shape {column.shape}, which is not one series: pass a "
                "one-dimensional array or a Series for each name."
            )
    indexes = [as_index(column.index) for column in columns] if all(is_series) else None
    return list(y), columns, indexes


def _split_long(y, what):
    """Split a tidy frame, or data with an index of series and time, into series.

    Rows of a tidy frame are sorted by time.

    Returns
    -------
    names : list
    columns : list of Series
    indexes : list of Index
        Steps of each series.
    kind : str
        Kind of :class:`Form`.
    labels : list
        Names of the level of series, of the level of time, and of the values.
    """
    kind = "long" if isinstance(y, pd.Series) else "long_frame"
    if is_tidy(y):
        if TARGET not in y:
            raise ValueError(
                f"{what} has the columns {SERIES!r} and {TIME!r}, but no column {TARGET!r} "
                f"with the values: rename the column of the values to {TARGET!r}."
            )
        kind, levels = "tidy", [SERIES if SERIES in y else None, TIME]
        # A frame of one series has no column of series: the name of the target takes its place.
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
    # Rows are sorted by series, in the order in which series first appear.
    order = np.argsort(series, kind="stable")
    cuts = pairwise(np.searchsorted(series[order], np.arange(len(names) + 1)))
    spans = [slice(*cut) for cut in cuts]
    steps, y = as_index(y.index.get_level_values(1))[order], y.iloc[order]
    columns, indexes = [y.iloc[span] for span in spans], [steps[span] for span in spans]
    return list(names), columns, indexes, kind, [*y.index.names, y.name]


def is_tidy(data):
    """Return True for a frame with a column of time, and one of series or of values."""
    has_time = isinstance(data, pd.DataFrame) and TIME in data
    return has_time and (SERIES in data or TARGET in data)


def pandas_if_dated(data):
    """Convert a frame of another library with a column of time to pandas; return other data.

    The time becomes the index, unless the frame is tidy.
    """
    frame = to_pandas(data)
    if frame is data or TIME not in frame:
        return data
    return frame if is_tidy(frame) else frame.set_index(TIME)


def library_of(data):
    """Return the name of the library of a frame or a Series; "pandas" for other data."""
    is_pandas = isinstance(data, pd.DataFrame | pd.Series)
    frame = None if is_pandas else narwhals_frame(data, allow_series=True)
    return "pandas" if frame is None else frame.implementation.value
