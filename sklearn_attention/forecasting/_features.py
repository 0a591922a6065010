"""Reading features, and placing their rows on the steps of the series."""

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from ._panel import LONG


def split_index(X):
    """The table of features and the index of what is passed as X.

    Parameters
    ----------
    X : DataFrame, Series, Index, array or None

    Returns
    -------
    table : DataFrame, array or None
        None if there are no columns.
    index : Index or None
        None if there is none.
    """
    if X is None or isinstance(X, pd.Index):
        return None, X
    if isinstance(X, pd.Series):
        X = X.to_frame()
    if isinstance(X, pd.DataFrame):
        return (X if X.shape[1] else None), X.index
    return X, None


def read_table(forecaster, table, n_rows, *, reset, may_lack=()):
    """Features as numbers, their names and number checked.

    Parameters
    ----------
    forecaster : Forecaster
        Whose names of features are set or compared.
    table : DataFrame, array or None
    n_rows : int
        How many there are if there are no columns.
    reset : bool
        Whether this is `fit`.
    may_lack : sequence of str, default=()
        Names of columns that a frame need not have.

    Returns
    -------
    table : ndarray of shape (n_rows, n_features)
        With missing values where there are, also in place of columns that it lacks.
    """
    if table is None:
        if reset:
            forecaster.n_features_in_ = 0
            vars(forecaster).pop("feature_names_in_", None)
        elif forecaster.n_features_in_ > len(may_lack):
            raise ValueError(
                f"X has 0 features, but {type(forecaster).__name__} was fitted with "
                f"{forecaster.n_features_in_}: pass X with their columns."
            )
        return np.full((n_rows, 0 if reset else forecaster.n_features_in_), np.nan)
    if isinstance(table, pd.DataFrame):
        table = _numeric(table)
        if set(may_lack) - set(table.columns):
            names = forecaster.feature_names_in_
            kept = [name for name in names if name in table.columns or name in may_lack]
            table = table.reindex(columns=kept)
    if issparse(table):
        raise TypeError("X is sparse, which is not supported: pass X.toarray().")
    checks = {"dtype": np.float64, "ensure_all_finite": False}
    return validate_data(forecaster, table, reset=reset, **checks)


def _numeric(table):
    wrong = [table.columns[i] for i in range(table.shape[1]) if not _may_be_numeric(table, i)]
    if wrong:
        raise ValueError(
            f"X has columns that are not numeric, {wrong}: encode them first, for example with "
            "OneHotEncoder in a ColumnTransformer, or pandas.get_dummies."
        )
    return table


def _may_be_numeric(table, i):
    column = table.iloc[:, i]
    if column.dtype.kind in "biufc":
        return True
    # Objects may be numbers all the same; whether they are is seen as they are converted.
    return column.dtype == object and not column.map(lambda v: isinstance(v, str)).any()


def place_rows(index, n_rows, panel, begins):
    """Which step of which series every row is about.

    Parameters
    ----------
    index : Index or None
        Steps, for all series alike; or series and step, in two levels.
    n_rows : int
        How many there are if there is no index: steps that follow one another.
    panel : Panel
    begins : ndarray of int of shape (n_series,)
        The step of each series that rows without an index begin at.

    Returns
    -------
    positions, rows : list of ndarray of int
        For each series, steps and the rows that are about them.
    """
    rows = [np.arange(n_rows)] * len(panel)
    if index is None:
        return [begin + rows[0] for begin in begins], rows
    if not isinstance(index, pd.MultiIndex):
        return [panel.time.positions(index)] * len(panel), rows
    tidy = panel.form == "tidy"
    if panel.form not in (*LONG, "dict") or index.nlevels != (3 if tidy else 2):
        wanted = "the columns 'unique_id' and 'ds', or " if tidy else ""
        raise ValueError(
            f"X has an index of {index.nlevels} levels, but y is not long: give X {wanted}the "
            "index of the time alone."
        )
    of_row, steps = index.get_level_values(0), index.get_level_values(1)
    series = pd.Index(panel.names, tupleize_cols=False).get_indexer(of_row)
    if (series < 0).any():
        unknown = sorted(map(str, set(of_row[series < 0])))
        raise ValueError(f"X has rows of unknown series, {unknown}: fit them first.")
    order = np.argsort(series, kind="stable")
    rows = np.split(order, np.searchsorted(series[order], np.arange(1, len(panel))))
    return [panel.time.positions(steps[own]) for own in rows], rows


def training_features(table, positions, rows, panel, missing):
    """Features of every observation.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_features)
    positions, rows : list of ndarray of int
        From :func:`place_rows`.
    panel : Panel
    missing : {"raise", "interpolate", "seasonal"}

    Returns
    -------
    features : list of ndarray of shape (n_steps, n_features)

    Raises
    ------
    ValueError
        If rows are missing, or values missing or infinite.
    """
    found = []
    for i, values in enumerate(panel.values):
        placed = np.full((len(values), table.shape[1]), np.nan)
        there = np.zeros(len(values), dtype=bool)
        inside = (positions[i] >= panel.starts[i]) & (positions[i] < panel.ends[i])
        steps = positions[i][inside] - panel.starts[i]
        placed[steps], there[steps] = table[rows[i][inside]], True
        if not there.all():
            lost = panel.time.name_steps(panel.starts[i] + np.flatnonzero(~there))
            raise ValueError(f"X has no rows for {lost}, where y has values: add them.")
        found.append(filled(placed, panel.starts[i], panel.time, missing))
    return found


def later_features(table, positions, rows, end, n_steps, time):
    """Features of the steps after the end of a series.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_known)
        Of the rows of X, columns that are known beforehand.
    positions, rows : ndarray of int
        Of this series, from :func:`place_rows`.
    end : int
        Position of the first step after the end.
    n_steps : int
        How many steps are wanted; beyond the last row of X that row is repeated.
    time : TimeIndex

    Returns
    -------
    features : ndarray of shape (n_steps, n_known)

    Raises
    ------
    ValueError
        If a step before the last row of X has no row.
    """
    later = positions >= end
    steps, values = positions[later] - end, table[rows[later]]
    if len(steps) == 0:
        raise ValueError(
            "X does not cover the horizon: the forecaster was fitted with features, so pass "
            f"X with rows for the steps to forecast, from {time.name_steps([end])} on."
        )
    there = np.zeros(steps.max() + 1, dtype=bool)
    there[steps] = True
    if not there.all():
        lost = time.name_steps(end + np.flatnonzero(~there))
        raise ValueError(
            f"X does not cover the horizon: there are no rows for {lost}, which lie between "
            "the end of the series and the steps to forecast. Add them."
        )
    placed = np.empty((len(there), table.shape[1]))
    placed[steps] = values
    return placed[np.minimum(np.arange(n_steps), len(placed) - 1)]


def filled(table, start, time, missing):
    """A table without missing values.

    Parameters
    ----------
    table : ndarray of shape (n_steps, n_features)
        Rows that follow one another.
    start : int
        Position of the first row.
    time : TimeIndex
    missing : {"raise", "interpolate", "seasonal"}

    Returns
    -------
    table : ndarray of shape (n_steps, n_features)
    """
    infinite, lost = np.isinf(table).any(axis=1), np.isnan(table)
    if infinite.any():
        steps = time.name_steps(start + np.flatnonzero(infinite))
        raise ValueError(f"X has infinite values (inf) at {steps}: replace them.")
    if not lost.any():
        return table
    at_ends = lost[0].any() or lost[-1].any()
    if missing == "raise" or at_ends:
        steps = time.name_steps(start + np.flatnonzero(lost.any(axis=1)))
        remedy = "fill those at the ends" if at_ends else "pass missing='interpolate' or fill"
        raise ValueError(f"X has missing values (NaN) at {steps}: {remedy}.")
    table, steps = table.copy(), np.arange(len(table))
    for column in np.flatnonzero(lost.any(axis=0)):
        known = ~lost[:, column]
        table[:, column] = np.interp(steps, steps[known], table[known, column])
    return table


def refuse_leakage(features, known, panel, names):
    """Raise if a feature that is known beforehand is the target itself.

    Parameters
    ----------
    features : list of ndarray of shape (n_steps, n_features)
    known : ndarray of int
        Columns that are known beforehand.
    panel : Panel
    names : sequence
        Of the columns.
    """
    for column in known:
        for i, values in enumerate(panel.values):
            varies = (values != values[0]).any()
            if varies and np.array_equal(features[i][:, column], values):
                raise ValueError(
                    f"X has the column {names[column]!r}, which is the target "
                    f"{panel.names[i]!r} itself and will not be known when it is to be "
                    "forecast: remove it."
                )
