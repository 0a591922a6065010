"""Finding known series among new observations, and appending to them."""

from dataclasses import replace

import numpy as np

from ._features import place_rows, training_features
from ._forecast_steps import remembered
from ._observe import read_later

# Forms in which series have the names that the user gave them.
_NAMED = ("frame", "dict", "arrays", "long", "long_frame", "tidy")
_SPLIT = "In cross-validation pass cv=TimeSeriesSplit(...), whose test rows come later."


def match(panel, new, *, may_add=False):
    """Which of the known series new ones are, and where they begin.

    Parameters
    ----------
    panel : Panel
        What is known.
    new : Panel
    may_add : bool, default=False
        Whether there may be series that are not known.

    Returns
    -------
    which : list of int
        For each new series its number among those known, and numbers after them for others.
    begins : ndarray of int
        Its first position, on the index of `panel`.
    """
    by_name = panel.form in _NAMED and new.form in _NAMED
    if len(panel) == len(new) == 1 and not by_name:
        which = [0]
    else:
        unknown = [name for name in new.names if name not in panel.names]
        if unknown and not (may_add and by_name):
            raise ValueError(
                f"y has the series {unknown}, but the forecaster was fitted on "
                f"{panel.names}: pass those."
            )
        names = panel.names + unknown
        which = [names.index(name) for name in new.names]
    if "position" in (panel.time.kind, new.time.kind):
        known = np.array(which) < len(panel)
        origins = np.zeros(len(which), dtype=np.int64)
        origins[known] = panel.origins[np.array(which)[known]]
        return which, origins + new.starts
    first, known = new.time.between(0, 1), panel.time.between(0, 1)
    if new.time.kind == panel.time.kind and first[0] < known[0]:
        raise ValueError(
            f"y begins at {first[0]}, before the series that the forecaster was fitted on, "
            f"which begin at {known[0]}: pass later observations. {_SPLIT}"
        )
    return which, panel.time.positions(first, "y")[0] + new.starts


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
        Series that were not known before come last.
    """
    panel, features = remembered(forecaster)
    new, table, index = read_later(forecaster, X, y, panel)
    which, begins = match(panel, new, may_add=True)
    n_known = len(panel)
    panel = _with_empty(panel, new, which, begins)
    values, time = list(panel.values), panel.time
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
    flat = None
    if features is not None:
        nothing = [features[0][:0]] * (len(panel) - n_known)
        features = _more_features(
            forecaster, panel, new, features + nothing, table, index, which
        )
        flat = np.concatenate(features)
    return replace(panel, time=time, values=values).state() | {"features": flat}


def _with_empty(panel, new, which, begins):
    """A panel to which series without observations are added, for those not known."""
    order = [j for j in np.argsort(which) if which[j] >= len(panel)]
    return replace(
        panel,
        values=panel.values + [np.empty(0)] * len(order),
        starts=np.concatenate([panel.starts, begins[order]]).astype(np.int64),
        names=panel.names + [new.names[j] for j in order],
    )


def _more_features(forecaster, panel, new, features, table, index, which):
    """Features of each series with those of the new observations."""
    features = list(features)
    first_rows = panel.ends.copy()
    first_rows[which] -= new.starts
    positions, rows = place_rows(index, len(table), panel, first_rows)
    for j, i in enumerate(which):
        later = replace(
            panel, values=[new.values[j]], starts=panel.ends[[i]], names=[panel.names[i]]
        )
        found = training_features(table, [positions[i]], [rows[i]], later, forecaster.missing)
        features[i] = np.concatenate([features[i], found[0]])
    return features
