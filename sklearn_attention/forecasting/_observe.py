"""Reading series together with their features."""

import numbers
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_consistent_length

from ._features import Rows, read_table
from ._missing import fill_panel
from ._mistakes import refuse_swapped, refuse_time
from ._season import season_of
from ._series import as_array, read_panel
from ._tidy import SERIES, TIME, features_of, is_tidy, split_tidy


def separate(X, y):
    """Features, None if there are none, and series, of what is passed to `fit`.

    Also "X" or "y", what the series were passed as.
    """
    if y is None:
        if isinstance(X, pd.Index):
            raise ValueError(
                "X is an index alone, and y is None: pass the series as X or as y."
            )
        return *(split_tidy(X) if is_tidy(X) else (None, X)), "X"
    refuse_swapped(X, y)
    if isinstance(X, pd.Index) and not isinstance(y, pd.Series | pd.DataFrame | dict):
        y = as_array(y, "y")
        check_consistent_length(X, y)
        # Forecasts then have an index too.
        y = (pd.Series if y.ndim == 1 else pd.DataFrame)(y, index=X)
    if is_tidy(y):
        return *_beside_tidy(X, y), "y"
    if is_tidy(X):
        check_consistent_length(X, y)
        _check_index(X.index, y)
        return *split_tidy(X, y), "y"
    if X is not None and not isinstance(y, dict) and not _shared(split_index(X)[1], y):
        check_consistent_length(X, y)
    return X, y, "y"


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


def split_index(X):
    """The table of features, which may have no columns, and the index of X, if any."""
    if isinstance(X, pd.Index):
        return pd.DataFrame(index=X), X
    if isinstance(X, pd.Series):
        X = X.to_frame()
    return X, X.index if isinstance(X, pd.DataFrame) else None


def read_given(X, y):
    """Series, their gaps left as they are, and features of what is passed to `fit`.

    A panel, "X" or "y", what it was passed as, the table of features, and the index of its
    rows.
    """
    X, y, what = separate(X, y)
    refuse_time(y, what)
    table, index = split_index(X)
    panel = read_panel(y, index=index, what=what)
    return panel, what, table, None if X is None else index_of_rows(index, y)


def read_training(forecaster, X, y):
    """The panel of `fit`, with features; their names and number are set on a forecaster."""
    panel, what, table, index = read_given(X, y)
    options = {"missing": forecaster.missing, "season_length": 1, "what": what}
    if forecaster.missing == "seasonal":
        # Seasons have to be known before gaps are filled by them.
        line = fill_panel(panel, **options | {"missing": "interpolate"})
        options["season_length"] = season_of(line, forecaster.season_length)
    panel = fill_panel(panel, **options)
    forecaster.n_features_in_ = 0
    vars(forecaster).pop("feature_names_in_", None)
    if table is None:
        return panel
    table = read_table(forecaster, table, reset=True)
    rows = Rows.place(table, index, panel, np.zeros(len(panel), dtype=np.int64))
    features = rows.features(panel, forecaster.missing)
    return replace(panel, features=features) if table.shape[1] else panel


def index_of_rows(index, y):
    """Index of rows of features: their own, which has to be that of the series, or the series'.

    None where rows follow one another; `y` is from :func:`separate`.
    """
    if is_tidy(y) or _shared(index, y):
        return index
    _check_index(index, y)
    return y.index if index is None and isinstance(y, pd.Series | pd.DataFrame) else index


def _shared(index, y):
    """Whether rows of features are about times, and series one below the other."""
    rows = getattr(y, "index", None)
    if index is None or not isinstance(rows, pd.MultiIndex):
        return False
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return True
    # Numbers may count rows: as many as all series have together are meant to be theirs.
    own = len(index) == len(rows) and rows.get_level_values(0).nunique() > 1
    return not isinstance(index, pd.MultiIndex) and not own


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


def resolve_past(past_features, n_features, names):
    """Names of the columns known only up to now, and positions of those known beforehand."""
    if past_features is None:
        return [], np.arange(n_features)
    if isinstance(past_features, str) or not np.iterable(past_features):
        raise ValueError(
            f"past_features={past_features!r} is not valid: pass a list of columns."
        )
    past = []
    for column in past_features:
        if isinstance(column, str) and column in names:
            past.append(names.index(column))
        elif isinstance(column, numbers.Integral) and 0 <= column < n_features:
            past.append(int(column))
        else:
            choices = names or f"positions below {n_features}"
            raise ValueError(
                f"past_features={past_features!r} has {column!r}, which is no column of X: "
                f"choose from {choices}."
            )
    return [names[i] for i in past if names], np.setdiff1d(np.arange(n_features), past)
