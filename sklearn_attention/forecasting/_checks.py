"""Mistakes in data that would go unnoticed, and gaps, which are filled or refused."""

import numbers
from dataclasses import replace
from functools import partial

import numpy as np

from .._base import warn_user
from .._validation import check_choice, check_probabilities

MISSING = ("interpolate", "raise", "seasonal", "zero")
# Sizes from which on values are refused, what they are called, and what to do.
_TOO_LARGE = (
    (np.inf, "infinite values (inf)", "replace them"),
    (1e150, "values of 1e150 or more", "divide all by a constant, since squares overflow"),
)
# Size below which a series is refused: intervals of smaller ones would grow.
_TOO_SMALL = 1e-90


def is_integer(value):
    """True for a whole number that is no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def refuse_too_large(table, values, what, columns=()):
    """Raise if values of the rows of a table, or features, are infinite, or their squares."""
    for limit, kind, remedy in _TOO_LARGE:
        large = np.abs(values.reshape(len(values), -1)) >= limit
        for i in table.series[large.any(axis=1)][:1]:
            own = large & (table.series == i)[:, None]
            steps = table.time.name_steps(table.step[own.any(axis=1)])
            where = f"{_of_columns(columns, own)}{in_series(table, i)}"
            raise ValueError(f"{what} has {kind}{where} at {steps}: {remedy}.")


def refuse_too_small(table):
    """Raise if a series to learn from has values, but none whose square is a number."""
    for i, values in enumerate(table.values):
        size = np.abs(values).max(initial=0.0)
        if 0 < size < _TOO_SMALL:
            raise ValueError(
                f"values of the series{in_series(table, i)} are all smaller than {_TOO_SMALL}, "
                f"{size:.3g} at most, so that their squares underflow to 0: multiply all by a "
                "large constant."
            )


def in_series(table, i):
    """Name of a series in a message; empty for the only one without a name."""
    name = table.names[i]
    return "" if table.form.kind == "array" or name is None else f" in {name!r}"


def refuse_leakage(table, names):
    """Raise if a feature that is known beforehand is the target itself; `names` of columns."""
    for column in table.known:
        same = table.features[:, column] == table.value
        for i in np.flatnonzero(np.bincount(table.series, ~same) == 0):
            values = table.values[i]
            if (values != values[0]).any():
                raise ValueError(
                    f"X has the column {names[column]!r}, which is the target "
                    f"{table.names[i]!r} itself and will not be known when it is to be "
                    "forecast: remove it."
                )


def resolve_past(past_features, n_features, names):
    """The columns known only up to now: their names, or positions where there are none."""
    names = list(names) or list(range(n_features))
    past = [] if past_features is None else past_features
    if isinstance(past, str) or not np.iterable(past):
        raise ValueError(f"past_features={past!r} is not valid: pass a list of columns.")
    for column in past:
        if isinstance(column, bool) or column not in names:
            raise ValueError(
                f"past_features={past!r} has {column!r}, which is not a column of X: choose "
                f"from {names}."
            )
    return list(past)


def check_levels(name, given):
    """Distinct probabilities, as a list; columns are named after percents of coverages."""
    levels = check_probabilities(name, given).tolist()
    if len({f"{100 * level:g}" for level in levels}) < len(levels):
        raise ValueError(f"{name}={given!r} has a probability twice: pass each once.")
    return levels


def fill_line(values):
    """Values with the missing ones on the line between their neighbours."""
    known = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), known, values[known])


def fill_seasonal(values, season_length):
    """Values with missing ones filled by the seasons before and after."""
    # With a season of s steps, y_t is y_{t-s} plus the difference y_t - y_{t-s}, interpolated
    # between the steps at which it is known; the same with t + s; the mean of both, or the one
    # there is. So a constant trend and season are filled in exactly. Elsewhere values are on
    # the line between their neighbours.
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
    """A table without missing values, or an error that names them; `what` has them.

    Series end where missing values at their ends begin, unless these are refused.
    """
    check_choice("missing", missing, MISSING)
    if missing != "raise" and np.isnan(table.value).any():
        given, table = table, table.between(0, len(table.time))
        for i in np.flatnonzero((table.counts == 0) & (given.counts > 0))[:1]:
            where = in_series(table, i)
            raise ValueError(
                f"{what} has only missing values (NaN){where}: remove that series."
            )
    if missing == "interpolate" and season_length > 1:
        _warn_of_lost_seasons(table, season_length, what)
    seasonal = partial(fill_seasonal, season_length=season_length)
    fill = {"seasonal": seasonal, "zero": np.nan_to_num}.get(missing, fill_line)
    return _filled(table, "value", missing, fill, what)


def _warn_of_lost_seasons(table, season_length, what):
    """Warn of the first gap of a season or more, in which a line will have no season."""
    known = np.flatnonzero(~np.isnan(table.value))
    for gap in np.flatnonzero(np.diff(known) > season_length)[:1]:
        first, last = known[gap] + 1, known[gap + 1] - 1
        begin, end = (table.time.name_steps(table.step[[row]]) for row in (first, last))
        warn_user(
            f"{what} has no values{in_series(table, table.series[first])} from {begin} to "
            f"{end}, a whole season of {season_length} steps or more. missing='interpolate' "
            "fills them by a straight line, so that forecasts may lose the season: if there is "
            "one, pass missing='seasonal'."
        )


def fill_features(table, missing, columns):
    """A table without missing features, or an error that names the rows and columns of X.

    Columns that are not known beforehand keep their last value where they end early.
    """
    if not table.n_features:
        return table
    refuse_too_large(table, table.features, "X", columns)
    fill = partial(np.apply_along_axis, fill_line, 0)
    return _filled(table, "features", missing, fill, "X", columns)


def _filled(table, name, missing, fill, what, columns=()):
    """A table with its "value" or "features" filled in each series that has gaps."""
    values = getattr(table, name).copy()
    lost = np.isnan(values.reshape(len(values), -1))
    may_end = np.zeros(lost.shape[1], dtype=bool)
    if name == "features":
        may_end = ~np.isin(np.arange(lost.shape[1]), table.known)
    for i in np.unique(table.series[lost.any(axis=1)]):
        rows = slice(table.first[i], table.first[i] + table.counts[i])
        has_begun = np.maximum.accumulate(~lost[rows])
        goes_on = np.maximum.accumulate(~lost[rows][::-1])[::-1]
        at_ends = ~(has_begun & (goes_on | may_end))
        refused = lost[rows] if missing == "raise" else at_ends
        steps, at_ends = np.flatnonzero(refused.any(axis=1)), at_ends.any()
        if len(steps):
            remedy = "pass missing='interpolate' or missing='seasonal', or "
            remedy *= not (at_ends and name == "features")
            remedy += "drop the rows at the ends, or fill them" if at_ends else "fill them"
            raise ValueError(
                f"{what} has missing values (NaN){_of_columns(columns, refused)}"
                f"{in_series(table, i)} at {table.time.name_steps(table.step[rows][steps])}: "
                f"{remedy}."
            )
        values[rows] = fill(values[rows])
    return replace(table, **{name: values}) if lost.any() else table


def _of_columns(columns, there):
    """Names in a message of the columns of X that some cells are in; empty without columns."""
    names = dict.fromkeys(columns[j] for j in np.flatnonzero(there.any(axis=0)) if columns)
    return f" in column {', '.join(map(repr, names))}" if names else ""
