"""Names of features and rows of a table, and rows that differ in one feature only."""

import numbers

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.utils.validation import _check_feature_names_in

from .._frames import to_pandas


def feature_names(estimator):
    """Return names of the features of a fitted estimator, "x0", "x1" ... if they have none."""
    return list(map(str, _check_feature_names_in(estimator)))


def row_names(X):
    """Return names of rows from the index of a frame or a series, else None."""
    if not isinstance(X, pd.DataFrame | pd.Series):
        return None
    if isinstance(X.index, pd.MultiIndex):
        return [*map(label_text, X.index)]
    return X.index.astype(str).tolist()


def label_text(label):
    """Write the label of a row, which is a tuple if the index has several levels."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _frame(X):
    """Return a table as a pandas frame."""
    X = to_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X has shape {table.shape}: pass a table, (n_samples, n_features).")
    return pd.DataFrame(table)


def _position(frame, feature):
    """Return the position of a feature of a frame, which is given by name or by position."""
    if isinstance(feature, str | numbers.Integral) and feature in frame.columns:
        return frame.columns.get_loc(feature)
    if isinstance(feature, numbers.Integral) and 0 <= feature < frame.shape[1]:
        return int(feature)
    raise ValueError(
        f"feature={feature!r} is not a column of X: pass a position, 0 to "
        f"{frame.shape[1] - 1}, or a name."
    )


def position_of(X, feature):
    """Return the position of a feature of a table, which is given by position or by name."""
    return _position(_frame(X), feature)


def column_of(X, feature):
    """Return the name of a numeric feature, and its values (n_samples,)."""
    frame = _frame(X)
    position = _position(frame, feature)
    name, column = str(frame.columns[position]), frame.iloc[:, position]
    if isinstance(frame.columns, pd.RangeIndex):
        name = "x" if frame.shape[1] == 1 else f"x{position}"
    if not is_numeric_dtype(column):
        raise ValueError(f"feature={feature!r} is not numeric: pass one that is.")
    return name, column.to_numpy(dtype=np.float64)


def rows_along(X, feature, grid):
    """Return rows in which a feature has the values of `grid`, and all others are fixed.

    Other numbers are at their medians, and other categories at their most frequent level.
    """
    frame = _frame(X)
    rows = {}
    for j, (_, column) in enumerate(frame.items()):
        rows[j] = column.median() if is_numeric_dtype(column) else column.mode()[0]
        if isinstance(column.dtype, pd.CategoricalDtype):
            rows[j] = pd.Categorical([rows[j]] * len(grid), dtype=column.dtype)
    rows[_position(frame, feature)] = grid
    rows = pd.DataFrame(rows, index=range(len(grid))).set_axis(frame.columns, axis=1)
    return rows if hasattr(X, "columns") else rows.to_numpy()
