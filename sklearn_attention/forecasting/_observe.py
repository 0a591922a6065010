"""Reading series together with their features, and appending to them."""

import numbers

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_consistent_length

from ._features import place_rows, read_table, split_index, training_features
from ._panel import Panel
from ._question import remembered, rows_of
from ._series import read_panel


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
    if y is None:
        if isinstance(X, pd.Index):
            raise ValueError(
                "X is an index alone, and y is None: pass the series as X or as y."
            )
        read_table(forecaster, None, 0, reset=True)
        return read_panel(X, missing=forecaster.missing, what="X"), None
    table, index = split_index(X)
    if X is not None and not isinstance(y, dict):
        check_consistent_length(X, y)
    panel = read_panel(y, missing=forecaster.missing, index=index)
    if X is None:
        read_table(forecaster, None, 0, reset=True)
        return panel, None
    table = read_table(forecaster, table, len(X), reset=True)
    _check_index(index, y)
    if index is None and isinstance(y, pd.Series | pd.DataFrame):
        index = y.index
    begins = np.zeros(len(panel), dtype=np.int64)
    placed = place_rows(index, len(table), panel, begins)
    features = training_features(table, *placed, panel, forecaster.missing)
    return panel, features if table.shape[1] else None


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


def match(panel, new):
    """Which of the known series new ones are, and where they begin.

    Parameters
    ----------
    panel : Panel
        What is known.
    new : Panel

    Returns
    -------
    which : list of int
        For each new series its number among those known.
    begins : ndarray of int
        Its first position, on the index of `panel`.
    """
    if len(panel) == len(new) == 1:
        which = [0]
    else:
        unknown = [name for name in new.names if name not in panel.names]
        if unknown:
            raise ValueError(
                f"y has the series {unknown}, but the forecaster was fitted on "
                f"{panel.names}: pass those."
            )
        which = [panel.names.index(name) for name in new.names]
    if "position" in (panel.time.kind, new.time.kind):
        return which, panel.origins[which] + new.starts
    return which, panel.time.positions(new.time.between(0, 1), "y")[0] + new.starts


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
    options = {"missing": forecaster.missing, "like": panel.time, "may_lack": True}
    if y is None:
        if forecaster.n_features_in_:
            raise ValueError(
                f"y=None, but {type(forecaster).__name__} was fitted with features: pass them "
                "as X, and the series as y."
            )
        return read_panel(X, **options, what="X"), None, None
    if X is None or isinstance(X, numbers.Integral):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    table, index, _ = rows_of(forecaster, X, panel)
    if not isinstance(y, dict):
        check_consistent_length(table, y)
    _check_index(index, y)
    new = read_panel(y, **options, index=index)
    has_steps = isinstance(y, pd.Series | pd.DataFrame) and panel.time.kind != "position"
    return new, table, y.index if index is None and has_steps else index


def appended(forecaster, X, y):
    """What a forecaster has observed, with further observations.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    X, y
        As for `update`.

    Returns
    -------
    observed : dict
    """
    panel, features = remembered(forecaster)
    new, table, index = read_later(forecaster, X, y, panel)
    which, begins = match(panel, new)
    values = list(panel.values)
    time = panel.time
    for j, i in enumerate(which):
        end = panel.ends[i]
        if begins[j] != end:
            expected, found = time.name_steps([end]), time.name_steps([begins[j]])
            raise ValueError(
                f"y of series {panel.names[i]!r} begins at {found}, but the next step is "
                f"{expected}: pass the observations that follow, without gap or overlap."
            )
        values[i] = np.concatenate([values[i], new.values[j]])
        time = time.extended(max(0, end + len(new.values[j]) - len(time)))
    longer = Panel(
        time, values, panel.starts, panel.names, panel.form, panel.dtype, panel.labels
    )
    flat = None
    if features is not None:
        flat = np.concatenate(
            _more_features(forecaster, panel, new, features, table, index, which)
        )
    return longer.state() | {"features": flat}


def _more_features(forecaster, panel, new, features, table, index, which):
    """Features of each series with those of the new observations."""
    features = list(features)
    first_rows = panel.ends.copy()
    first_rows[which] -= new.starts
    positions, rows = place_rows(index, len(table), panel, first_rows)
    for j, i in enumerate(which):
        later = Panel(
            panel.time, [new.values[j]], panel.ends[[i]], [panel.names[i]], panel.form,
            panel.dtype, panel.labels,
        )  # fmt: skip
        found = training_features(table, [positions[i]], [rows[i]], later, forecaster.missing)
        features[i] = np.concatenate([features[i], found[0]])
    return features


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
