"""Finding known series among new observations, and appending to them."""

from dataclasses import replace
from numbers import Integral

import numpy as np

from ._features import Rows
from ._forecast_steps import rows_of
from ._missing import fill_panel
from ._observe import index_of_rows, separate
from ._series import read_panel

# Forms in which series have the names that the user gave them.
_NAMED = ("frame", "dict", "arrays", "long", "long_frame", "tidy")
_SPLIT = "In cross-validation pass cv=TimeSeriesSplit(...), whose test rows come later."


def read_later(forecaster, X, y, panel, *, may_add=False):
    """Observations after those of `fit`, on the index of what is known.

    Parameters
    ----------
    forecaster : Forecaster
        Fitted.
    X, y
        As for `fit`.
    panel : Panel
        What is known.
    may_add : bool, default=False
        Whether there may be series that are not known.

    Returns
    -------
    later : Panel
        All series that are known, without values where there are no new ones, then others.
    rows : Rows or None
        Of the features; None if there are none.
    """
    if y is not None and (X is None or isinstance(X, Integral)):
        raise ValueError(f"X={X!r} is not valid: pass features or an index beside y.")
    features, target, what = separate(X, y)
    table = index = None
    if features is not None:
        table, index = rows_of(forecaster, features, panel)
    elif forecaster.n_features_in_:
        raise ValueError(
            f"y=None, but {type(forecaster).__name__} was fitted with features: pass them "
            "as X, and the series as y."
        )
    new = read_panel(target, index=index, like=panel.time, may_lack=True, what=what)
    season = forecaster.season_length_
    new = fill_panel(new, missing=forecaster.missing, season_length=season, what=what)
    if table is not None and (index is not None or panel.time.kind != "position"):
        index = index_of_rows(index, target)
    later, begins = _aligned(panel, new, may_add)
    return later, None if table is None else Rows.place(table, index, later, begins)


def _aligned(panel, new, may_add):
    """New series among those known, and the step that the rows of each begin at."""
    by_name = panel.form in _NAMED and new.form in _NAMED
    which, names = [0], panel.names
    if by_name or not len(panel) == len(new) == 1:
        unknown = [name for name in new.names if name not in names]
        if unknown and not (may_add and by_name):
            raise ValueError(
                f"y has the series {unknown}, but the forecaster was fitted on {names}: pass "
                "those."
            )
        names = names + unknown
        which = [names.index(name) for name in new.names]
    begins = np.zeros(len(names), dtype=np.int64)
    begins[: len(panel)] = panel.origins
    if "position" not in (panel.time.kind, new.time.kind):
        begins[which] = _first_step(panel.time, new.time)
    values, starts = [np.empty(0)] * len(names), begins.copy()
    starts[which] += new.starts
    for i, own in zip(which, new.values, strict=True):
        values[i] = own
    later = replace(panel, values=values, starts=starts, names=names, features=None)
    return later, begins


def _first_step(time, new):
    """Position of the first step of a new index on another."""
    first, known = new.between(0, 1), time.between(0, 1)
    if new.kind == time.kind and first[0] < known[0]:
        raise ValueError(
            f"y begins at {first[0]}, before the series that the forecaster was fitted on, "
            f"which begin at {known[0]}: pass later observations. {_SPLIT}"
        )
    return time.positions(first, "y")[0]


def appended(panel, later, rows, missing):
    """A panel with later observations, from :func:`read_later`, which have to follow."""
    ends = np.append(panel.ends, later.starts[len(panel) :])
    for i in np.flatnonzero(later.ends > later.starts):
        if later.starts[i] != ends[i]:
            found, expected = (panel.time.name_steps([p]) for p in (later.starts[i], ends[i]))
            raise ValueError(
                f"y of series {later.names[i]!r} begins at {found}, but the next step is "
                f"{expected}: pass the observations that follow, without gap or overlap."
            )
    features = panel.features
    if features is not None:
        features = _joined(features, rows.features(later, missing))
    return replace(
        panel,
        time=panel.time.extended(max(0, later.ends.max() - len(panel.time))),
        values=_joined(panel.values, later.values),
        starts=np.append(panel.starts, ends[len(panel) :]),
        names=later.names,
        features=features,
    )


def _joined(known, later):
    """Arrays of each series one after the other; series that are not known come last."""
    known = known + [later[0][:0]] * (len(later) - len(known))
    return [np.concatenate(pair) for pair in zip(known, later, strict=True)]
