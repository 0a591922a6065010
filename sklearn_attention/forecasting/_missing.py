"""Missing values between others: what they are filled with."""

from dataclasses import replace

import numpy as np

from .._validation import check_choice
from ._checks import in_series, refuse_too_large

MISSING = ("interpolate", "raise", "seasonal")


def fill_line(values):
    """Values with the missing ones on the line between their neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting._missing import fill_line
    >>> fill_line(np.array([1.0, np.nan, 3.0]))
    array([1., 2., 3.])
    """
    known = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), known, values[known])


def fill_seasonal(values, season_length):
    r"""Values with the missing ones as the seasons beside them have it.

    Notes
    -----
    With a season of :math:`s` steps, :math:`y_t` is :math:`y_{t-s}` plus the difference
    :math:`y_t - y_{t-s}`, interpolated between the steps at which it is known. The mean of this
    and of the same with :math:`t+s` is taken, or the one of both there is. A trend and a season
    that do not change are so filled in exactly. Where both neighbours are missing too, values
    are on the line between those known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting._missing import fill_seasonal
    >>> fill_seasonal(np.array([1.0, 5.0, 2.0, np.nan, 3.0, 7.0]), 2)
    array([1., 5., 2., 6., 3., 7.])
    """
    lost, line = np.isnan(values), fill_line(values)
    if season_length == 1 or not lost.any():
        return line
    early, late = slice(None, -season_length), slice(season_length, None)
    guesses = []
    for inner, other in ((late, early), (early, late)):
        beside = np.full(len(values), np.nan)
        beside[inner] = values[other]
        change = values - beside
        if not np.isnan(change).all():
            guesses.append(beside + fill_line(change))
    if not guesses:
        return line
    there = ~np.isnan(guesses)
    total = np.where(there, guesses, 0.0).sum(axis=0)
    filled = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), line)
    return np.where(lost, filled, values)


def fill_values(table, *, missing, season_length, what):
    """A table without missing values, or an error that names them; `what` has them."""
    check_choice("missing", missing, MISSING)
    value, lost = table.value.copy(), np.isnan(table.value)
    for rows in _spans(table, lost):
        own = lost[rows]
        at_ends = own[0] or own[-1]
        if missing == "raise" or at_ends:
            remedy = (
                "drop the rows at the ends"
                if at_ends
                else "pass missing='interpolate' or missing='seasonal', or fill them"
            )
            where = in_series(table, table.series[rows.start])
            steps = table.time.name_steps(table.step[rows][own])
            raise ValueError(f"{what} has missing values (NaN){where} at {steps}: {remedy}.")
        seasonal = missing == "seasonal"
        value[rows] = (
            fill_seasonal(value[rows], season_length) if seasonal else fill_line(value[rows])
        )
    return replace(table, value=value) if lost.any() else table


def fill_features(table, missing):
    """A table without missing features, or an error that names the rows of X."""
    refuse_too_large(table, table.features, "X")
    features, lost = table.features.copy(), np.isnan(table.features).any(axis=1)
    for rows in _spans(table, lost):
        own = lost[rows]
        at_ends = own[0] or own[-1]
        if missing == "raise" or at_ends:
            steps = table.time.name_steps(table.step[rows][own])
            remedy = "pass missing='interpolate' or fill"
            remedy = "fill those at the ends" if at_ends else remedy
            raise ValueError(f"X has missing values (NaN) at {steps}: {remedy}.")
        features[rows] = np.apply_along_axis(fill_line, 0, features[rows])
    return replace(table, features=features) if lost.any() else table


def _spans(table, lost):
    """The rows of each series that has lost some."""
    for i in np.unique(table.series[lost]):
        yield slice(table.first[i], table.first[i] + table.counts[i])
