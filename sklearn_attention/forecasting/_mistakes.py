"""Mistakes that would go unnoticed: arguments in the wrong order, and time among the series."""

import numpy as np
import pandas as pd

from ._tidy import is_tidy

# Columns of these names are time if the index is not: with the least and greatest value.
_FIELDS = {
    "year": (1000, 2999), "quarter": (1, 4), "month": (1, 12), "week": (1, 53), "day": (1, 31),
    "hour": (0, 24), "minute": (0, 59), "weekday": (0, 7), "dayofweek": (0, 7),
    "dayofyear": (1, 366),
}  # fmt: skip


def refuse_swapped(X, y):
    """Raise if features and series are passed in the wrong order, where that is certain."""
    if X is None or isinstance(X, pd.Index) or np.ndim(X) != 1:
        return
    shape = f"{type(X).__name__} of shape {np.shape(X)}"
    if len(X) and _has_dates(pd.Series(X)):
        raise ValueError(
            f"X is a {shape} with dates, which are no feature: pass them as an index, "
            "fit(pandas.DatetimeIndex(X), y)."
        )
    if isinstance(y, pd.Index):
        raise ValueError(
            f"y is an index and X a {shape}, as if the series came first: the order is "
            "fit(index, series)."
        )
    if getattr(y, "ndim", 1) == 2 and not is_tidy(y):
        kind = f"a frame with the columns {list(y)}" if hasattr(y, "columns") else "a table"
        raise ValueError(
            f"X is one-dimensional ({shape}) and y {kind}, as if the series came first: the "
            "order is fit(X, y), features before series. One feature of several series is "
            "passed as a frame, X.to_frame()."
        )


def refuse_time(y, what):
    """Raise if a column of a frame is time, and not a series beside others."""
    if not isinstance(y, pd.DataFrame) or len(y) == 0 or y.shape[1] < 2 or is_tidy(y):
        return
    dated = isinstance(y.index, pd.DatetimeIndex | pd.PeriodIndex)
    found = {}
    for i, name in enumerate(y):
        column = y.iloc[:, i]
        if _has_dates(column):
            found[name] = "dates"
        elif column.dtype.kind in "iuf":
            values = column.to_numpy(np.float64, na_value=np.nan)
            same = _same_as_index(values, y.index) if dated else _by_name(name, values)
            found |= {name: same} if same else {}
    # If nothing were left, these may be series after all.
    if not found or len(found) == y.shape[1]:
        return
    name, same = next(iter(found.items()))
    remedy = f"as a feature pass it in X, fit(frame[[{name!r}]], y), or drop it"
    if same == "dates":
        remedy = f"make it the index, frame.set_index({name!r}), as dates of pandas.to_datetime"
        if y[name].duplicated().any():
            remedy = (
                "if these are of several series one below the other, name their column 'ds', "
                "that of the series' names 'unique_id', and that of the values 'y'"
            )
    elif not dated:
        remedy = f"make it the index; {remedy}; or rename it if it is a series"
    raise ValueError(
        f"{what} has the column {name!r} beside series, which has {same}: {remedy}."
    )


def _has_dates(column):
    """Whether a column has dates, as such or as text that is no number."""
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.PeriodDtype):
        return True
    first = column.iloc[0]
    if not isinstance(first, str) or first.replace(".", "", 1).strip("+- ").isdigit():
        return False
    try:
        return pd.Timestamp(first) is not pd.NaT
    except ValueError:
        return False


def _same_as_index(values, index):
    """What of a regular index some values are, or None."""
    known = ~np.isnan(values)
    values, index = values[known], index[known]
    index = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
    if len(values) < 2 or (values == values[0]).all():
        return None
    names = ["year", "quarter", "month", "day", "day_of_week", "day_of_year", "hour", "minute"]
    for name in names:
        field = np.asarray(getattr(index, name))
        if np.array_equal(values, field) or np.array_equal(values, field + 1):
            return f"the {name} of its index"
    if np.array_equal(values, index.day_of_week >= 5):
        return "the weekends of its index"
    return "a running count" if (np.diff(values) == 1).all() else None


def _by_name(name, values):
    """What time a column is by its name and values, or None."""
    field = str(name).lower().replace("_", "")
    if field not in _FIELDS or not (values == np.round(values)).all():
        return None
    low, high = _FIELDS[field]
    inside = values.min() >= low and values.max() <= high
    return f"the {field}, by its name" if inside else None
