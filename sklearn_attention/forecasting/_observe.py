"""Reading series together with their features."""

import numbers

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_consistent_length

from ._features import place_rows, read_table, split_index, training_features
from ._forecast_steps import rows_of
from ._mistakes import refuse_swapped, refuse_time
from ._season import season_of
from ._series import read_panel
from ._tidy import SERIES, TIME, features_of, is_tidy, split_tidy


def separate(X, y):
    """Features and series, of what is passed to `fit`.

    Parameters
    ----------
    X, y
        As for `fit`.

    Returns
    -------
    features : DataFrame, Index, array or None
        None if there are none.
    target : Series, DataFrame, dict or array
    what : {"X", "y"}
        What the series were passed as.
    """
    if y is None:
        if isinstance(X, pd.Index):
            raise ValueError(
                "X is an index alone, and y is None: pass the series as X or as y."
            )
        features, target = split_tidy(X) if is_tidy(X) else (None, X)
        return features, target, "X"
    refuse_swapped(X, y)
    features, target = X, y
    if is_tidy(y):
        features, target = _beside_tidy(X, y)
    elif is_tidy(X):
        check_consistent_length(X, y)
        _check_index(X.index, y)
        features, target = split_tidy(X, y)
    elif X is not None and not isinstance(y, dict) and not _shared(X, y):
        check_consistent_length(X, y)
    return features, target, "y"


def _beside_tidy(X, y):
    """Features beside a tidy frame of series: a row for each of its rows, or for each time."""
    further, target = split_tidy(y, what="y")
    if further is not None:
        raise ValueError(
            f"y has the features {list(further)} beside X: pass them in X, or all in one frame."
        )
    if X is None or isinstance(X, pd.Index):
        return X, target
    if not isinstance(X, pd.Series | pd.DataFrame):
        raise ValueError(
            f"X is of type {type(X).__name__} beside a frame with the column {SERIES!r}: pass "
            "features as further columns of that frame."
        )
    if X.index.equals(y.index):
        keys = {name: y[name] for name in (SERIES, TIME)}
        X = features_of(pd.DataFrame(X).assign(**keys))
    return X, target


def read_training(forecaster, X, y):
    """Series and features as they are passed to `fit`.

    Parameters
    ----------
    forecaster : Forecaster
        Whose names of features are set.
    X, y
        As for `fit`.

    Returns
    -------
    panel : Panel
    features : list of ndarray of shape (n_steps, n_features) or None
        None if there are none.
    """
    X, y, what = separate(X, y)
    refuse_time(y, what)
    table, index = split_index(X)
    panel = _read_series(forecaster, y, index, what)
    if X is None:
        read_table(forecaster, None, 0, reset=True)
        return panel, None
    table = read_table(forecaster, table, len(X), reset=True)
    index = steps_of_rows(index, X, y, panel)
    begins = np.zeros(len(panel), dtype=np.int64)
    placed = place_rows(index, len(table), panel, begins)
    features = training_features(table, *placed, panel, forecaster.missing)
    return panel, features if table.shape[1] else None


def _read_series(forecaster, y, index, what):
    """The series of `fit`; seasons have to be known before gaps are filled by them."""
    options = {"index": index, "what": what}
    if forecaster.missing != "seasonal":
        return read_panel(y, missing=forecaster.missing, **options)
    panel = read_panel(y, missing="interpolate", **options)
    season = season_of(panel, forecaster.season_length)
    return read_panel(y, missing="seasonal", season_length=season, **options)


def steps_of_rows(index, X, y, panel):
    """Index of rows of features: their own, which has to be that of the series, or the series'.

    Parameters
    ----------
    index : Index or None
        Of the rows of features.
    X, y
        Features and series, from :func:`separate`.
    panel : Panel
        The series.

    Returns
    -------
    index : Index or None
        None where rows follow one another.
    """
    if panel.form == "tidy" or _shared(X, y):
        return index
    _check_index(index, y)
    return y.index if index is None and isinstance(y, pd.Series | pd.DataFrame) else index


def _shared(X, y):
    """Whether rows of features are about times, and series one below the other."""
    index = X if isinstance(X, pd.Index) else getattr(X, "index", None)
    rows = getattr(y, "index", None)
    if not isinstance(index, pd.Index) or not isinstance(rows, pd.MultiIndex):
        return False
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return True
    # Numbers may count rows: as many as all series have together are meant to be theirs.
    own = len(index) == len(rows) and rows.get_level_values(0).nunique() > 1
    return not isinstance(index, pd.MultiIndex) and not own


def resolve_past(forecaster):
    """Which columns are known only up to now, and which beforehand.

    Parameters
    ----------
    forecaster : Forecaster
        With `n_features_in_` and, for frames, `feature_names_in_`.

    Returns
    -------
    past_names : list of str
        The names among `past_features`.
    known : ndarray of int
        Positions of all other columns.
    """
    given = forecaster.past_features
    n_features = forecaster.n_features_in_
    names = list(getattr(forecaster, "feature_names_in_", []))
    if given is None:
        return [], np.arange(n_features)
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(f"past_features={given!r} is not valid: pass a list of columns.")
    past = []
    for column in given:
        if isinstance(column, str) and column in names:
            past.append(names.index(column))
        elif isinstance(column, numbers.Integral) and 0 <= column < n_features:
            past.append(int(column))
        else:
            choices = names or f"positions below {n_features}"
            raise ValueError(
                f"past_features={given!r} has {column!r}, which is no column of X: choose from "
                f"{choices}."
            )
    return [names[i] for i in past if names], np.setdiff1d(np.arange(n_features), past)


def read_later(forecaster, X, y, panel):
    """Observations after those of `fit`, with their features.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    X, y
        As for `fit`.
    panel : Panel
        What is known.

    Returns
    -------
    new : Panel
    table : ndarray of shape (n_rows, n_features) or None
        None if there are no rows of features.
    index : Index or None
        Of these rows.
    """
    options = {
        "missing": forecaster.missing, "season_length": forecaster.season_length_,
        "like": panel.time, "may_lack": True,
    }  # fmt: skip
    if y is not None and (X is None or isinstance(X, numbers.Integral)):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    features, target, what = separate(X, y)
    if features is None:
        if forecaster.n_features_in_:
            raise ValueError(
                f"y=None, but {type(forecaster).__name__} was fitted with features: pass them "
                "as X, and the series as y."
            )
        return read_panel(target, **options, what=what), None, None
    table, index, _ = rows_of(forecaster, features, panel)
    new = read_panel(target, **options, index=index, what=what)
    if index is None and panel.time.kind == "position":
        return new, table, None
    return new, table, steps_of_rows(index, features, target, new)


def _check_index(index, y):
    """Rows of features and of a series with an index must be about the same steps."""
    own = y.index if isinstance(y, pd.Series | pd.DataFrame) else None
    if index is None or own is None or index.equals(own):
        return
    both = zip(index, own, strict=False)
    mine, theirs = next((pair for pair in both if pair[0] != pair[1]), (index[0], own[0]))
    raise ValueError(
        f"X and y have different indexes ({mine} beside {theirs}): give both the same, for "
        "example with X.loc[y.index]."
    )
