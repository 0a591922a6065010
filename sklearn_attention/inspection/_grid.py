"""Features of a table by name, and rows that differ in nothing else."""

import numpy as np
import pandas as pd
from sklearn.utils.validation import _check_feature_names_in


def feature_names(estimator):
    """Names of the features of an estimator, "x0", "x1" ... where it was given none.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Returns
    -------
    names : list of str
    """
    return list(map(str, _check_feature_names_in(estimator)))


def _frame(X):
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))


def _place(frame, feature):
    if feature in frame.columns:
        return frame.columns.get_loc(feature)
    if isinstance(feature, int) and 0 <= feature < frame.shape[1]:
        return feature
    raise ValueError(f"feature={feature!r} is not a column of X: pass a position or a name.")


def name_of(X, feature):
    """Name of a feature; "x" for that of an array with a single one.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
    feature : int or str

    Returns
    -------
    name : str
    """
    frame = _frame(X)
    if isinstance(X, pd.DataFrame):
        return str(frame.columns[_place(frame, feature)])
    return "x" if frame.shape[1] == 1 else f"x{_place(frame, feature)}"


def column_of(X, feature):
    """A numeric feature as an array.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
    feature : int or str

    Returns
    -------
    x : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        If it is not there, or no number.
    """
    column = _frame(X).iloc[:, _place(_frame(X), feature)]
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"feature={feature!r} is not numeric: pass one that is.")
    return column.to_numpy(dtype=np.float64)


def rows_along(X, feature, grid):
    """Rows with a feature at given values and the others as usual.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
    feature : int or str
    grid : ndarray of shape (n_places,)

    Returns
    -------
    rows : array or data frame of shape (n_places, n_features)
        Like X; others at their medians, categories at the most frequent one.
    """
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
    if not isinstance(X, pd.DataFrame):
        return rows.to_numpy()
    return rows.astype({name: kind for name, kind in frame.dtypes.items()
                        if isinstance(kind, pd.CategoricalDtype)})  # fmt: skip
