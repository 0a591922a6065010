"""Names of features and rows of a table, and rows that differ in one feature only."""

import numbers

import numpy as np
import pandas as pd
from sklearn.utils.validation import _check_feature_names_in

from .._columns import to_pandas


def feature_names(estimator):
    """Names of the features of a fitted estimator, "x0", "x1" ... if they have none."""
    return list(map(str, _check_feature_names_in(estimator)))


def row_names(X):
    """Names of rows from the index of a frame or a series, else None."""
    if not isinstance(X, pd.DataFrame | pd.Series):
        return None
    if isinstance(X.index, pd.MultiIndex):
        return [", ".join(map(str, levels)) for levels in X.index]
    return X.index.astype(str).tolist()


def _frame(X):
    X = to_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X has shape {table.shape}: pass a table, (n_samples, n_features).")
    return pd.DataFrame(table)


def _place(frame, feature):
    if isinstance(feature, str | numbers.Integral) and feature in frame.columns:
        return frame.columns.get_loc(feature)
    if isinstance(feature, numbers.Integral) and 0 <= feature < frame.shape[1]:
        return int(feature)
    raise ValueError(
        f"feature={feature!r} is not a column of X: pass a position, 0 to "
        f"{frame.shape[1] - 1}, or a name."
    )


def name_of(X, feature):
    """Name of a feature of a table; "x" for the only column of an array."""
    frame = _frame(X)
    place = _place(frame, feature)
    if not isinstance(frame.columns, pd.RangeIndex):
        return str(frame.columns[place])
    return "x" if frame.shape[1] == 1 else f"x{place}"


def column_of(X, feature):
    """A numeric feature of a table as an array (n_samples,)."""
    column = _frame(X).iloc[:, _place(_frame(X), feature)]
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"feature={feature!r} is not numeric: pass one that is.")
    return column.to_numpy(dtype=np.float64)


def rows_along(X, feature, grid):
    """Rows with a feature at the places of a grid, the others at their medians or modes."""
    frame = _frame(X)
    usual = {}
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        numeric = pd.api.types.is_numeric_dtype(column)
        usual[j] = column.median() if numeric else column.mode()[0]
    rows = pd.DataFrame({j: [value] * len(grid) for j, value in usual.items()})
    place = _place(frame, feature)
    rows[place] = grid
    rows.columns = frame.columns
    if not hasattr(X, "columns"):
        return rows.to_numpy()
    return rows.astype({name: kind for name, kind in frame.dtypes.items()
                        if isinstance(kind, pd.CategoricalDtype)})  # fmt: skip
