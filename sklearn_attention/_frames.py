"""Tables as frames: conversions of arrays and of frames of any library, and labels of rows.

Tables are read as frames of narwhals, which have the same methods for pandas, polars and other
libraries. A frame is returned as one of the library of the user.
"""

import narwhals.stable.v2 as nw
import numpy as np

from ._partitions import empty_table, is_partitioned, to_memory
from ._validation import OF_TIMES, as_numbers, refuse_other_arrays


def narwhals_frame(X, *, allow_series=False):
    """Return a frame of any library as one of narwhals; None for everything else.

    With `allow_series` a series is returned as one of narwhals, too.
    """
    # Only pandas allows several columns of the same name.
    columns = X.columns if hasattr(X, "iloc") and X.ndim == 2 else None
    if columns is not None and not columns.is_unique:
        raise ValueError(f"X has columns of the same name, {list(columns)}: rename them.")
    frame = nw.from_native(X, pass_through=True, allow_series=allow_series or None)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        raise TypeError(
            "X or y is a LazyFrame, whose rows are not computed yet: pass what its collect() "
            "returns."
        )
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None


def row_labels(X, first=0):
    """Return the labels (n_samples,) of the rows of a pandas frame.

    The result is None if the labels are the numbers from `first` on, and for other tables.
    """
    if is_partitioned(X) or not hasattr(X, "iloc"):
        return None
    is_range = X.index.nlevels == 1 and np.array_equal(X.index, range(first, first + len(X)))
    return None if is_range else _as_labels(X.index)


def _as_labels(index):
    """Convert an index of pandas to numbers, times, or objects that can be stored in files."""
    labels = np.asarray(index)
    if labels.dtype != object or {*map(type, labels)} <= {str, int, float, bool, tuple}:
        return labels
    # Other labels, such as times with a zone, become texts, by which pandas finds them too.
    return np.asarray(index.astype(str), dtype=object)


def concatenate_labels(old, new, n_old, X):
    """Concatenate the labels of `n_old` rows and of the new rows X.

    Labels that are None are the positions of the rows.
    """
    if old is None and new is None:
        return None
    import pandas as pd

    old = range(n_old) if old is None else old
    new = range(n_old, n_old + len(X)) if new is None else new
    # Labels may be tuples, and of several types.
    old, new = (pd.Index(labels, tupleize_cols=False) for labels in (old, new))
    return _as_labels(old.append(new))


def to_pandas(X):
    """Convert a frame or a series of another library to pandas; return others as they are."""
    import pandas as pd

    if isinstance(X, pd.DataFrame | pd.Series):
        return X
    frame = narwhals_frame(X, allow_series=True)
    if frame is None:
        return X
    if isinstance(frame, nw.DataFrame):
        columns = (column.to_native() for column in frame.iter_columns())
        return pd.DataFrame(dict(zip(frame.columns, map(to_pandas, columns), strict=True)))
    # The conversion goes through NumPy, since narwhals' own needs pyarrow. NumPy has times with
    # a zone as times in UTC.
    cells, zone = frame.to_numpy(), getattr(frame.dtype, "time_zone", None)
    cells = pd.DatetimeIndex(cells, tz="UTC").tz_convert(zone) if zone else cells
    return pd.Series(cells, name=frame.name)


def is_numeric_array(X):
    """Return True for a table of numbers in NumPy, whose columns need not be inspected."""
    is_numeric = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    return is_numeric and not np.ma.is_masked(X)


def checked_frame(X):
    """Convert a table to a frame of narwhals; raise an error for columns that are unsupported.

    Arrays and lists become frames of pandas, without columns if X is no table. A Dask
    collection becomes a frame without rows.
    """
    X = empty_table(X) if is_partitioned(X) else X
    refuse_other_arrays("X", X)
    frame = narwhals_frame(X)
    frame = _frame_of_array(X) if frame is None else frame
    for j, (name, dtype) in enumerate(frame.schema.items()):
        cell = "" if dtype.is_numeric() or not len(frame) else frame.item(0, j)
        if hasattr(cell, "__len__") and not isinstance(cell, str | bytes | tuple | dict):
            raise ValueError(
                f"X has a sequence in each cell of column {name!r}, where each cell has to be "
                "a single value: compute features of the sequences, or pass arrays of shape "
                "(n_steps, n_channels) to TransformerRegressor or TransformerClassifier, for "
                "example [numpy.column_stack(list(row)) for row in numpy.asarray(X)]."
            )
        if dtype == nw.Struct:
            raise ValueError(
                f"X has records in column {name!r}: make a column of each of their fields, as "
                f"X.unnest({name!r}) does in polars."
            )
        if isinstance(cell, complex):
            raise ValueError(
                f"Complex data not supported: X has {cell} in column {name!r}. Pass real and "
                "imaginary parts as columns of their own."
            )
        if dtype.is_temporal():
            raise ValueError(f"X has dates or times in column {name!r}: {OF_TIMES}.")
    return frame


def _frame_of_array(X):
    """Convert an array or lists to a frame, which has no columns if they are no table."""
    import pandas as pd

    try:
        array = np.asarray(X)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.dtype.kind == "U" and isinstance(X, list | tuple):
        array = np.array(X, dtype=object)  # so that numbers next to texts remain numbers
    array = array if array.ndim == 2 else np.empty((0, 0))
    # Integers and bools become floats, since they would be different levels otherwise.
    dtype = {"O": object, "b": float, "i": float, "u": float}.get(array.dtype.kind)
    return nw.from_native(pd.DataFrame(array, dtype=dtype, copy=False))


def numeric_table(X):
    """Convert the cells of a table of numbers or objects to numbers.

    An error names the column of a cell that is no number.
    """
    (X,) = to_memory(X)
    return X if is_numeric_array(X) else with_codes(X, checked_frame(X), {})


def with_codes(X, table, codes):
    """Replace columns of a table by codes, and objects in other columns by numbers.

    `table` is X as a frame of narwhals, and `codes` has those of each categorical column by its
    name. The result is a frame of the library of X, or an array if X is one.
    """
    remedy = "make numbers of it (pandas.to_numeric), or encode it first (OneHotEncoder)"
    if not table.columns and (isinstance(X, list | tuple) or hasattr(X, "__array__")):
        return as_numbers("X", X, "pass a table, with as many numbers in each row")
    for name, dtype in table.schema.items():
        if not (name in codes or dtype.is_numeric() or dtype == nw.Boolean):
            cells, where = table.get_column(name).to_native(), f" in column {name!r}"
            codes = codes | {name: as_numbers("X", cells, remedy, where)}
    if not codes:
        return X
    encoded = table.with_columns(
        nw.new_series(name, cells, nw.Float64, backend=table.implementation)
        for name, cells in codes.items()
    ).to_native()
    if hasattr(X, "columns"):
        return encoded
    dtype = table.to_native().dtypes.iloc[0]
    return encoded.to_numpy(dtype if dtype.kind == "f" else np.float64, copy=True)
