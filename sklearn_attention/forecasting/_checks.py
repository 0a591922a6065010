"""Mistakes in data that would go unnoticed, and missing values, which are filled or refused.

In all functions `table` is a `Table`, a panel of series in long format, and `what` is the name
of the user's data in error messages, such as "y". A gap is a stretch of missing values between
two observed ones. The parameter `missing` says what happens to missing values: "raise" refuses
them, and "interpolate" (a straight line), "seasonal" (the same phase of the seasons before and
after) and "zero" fill gaps.
"""

import numbers
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from .._base import warn_user
from .._validation import check_choice, check_probabilities, refuse_other_arrays
from ._table import TIME
from ._time import LONG_FORMAT_ADVICE, as_index

MISSING = ("interpolate", "raise", "seasonal", "zero")
# Sizes from which on values are refused, what they are called, and what to do.
_TOO_LARGE = (
    (np.inf, "infinite values (inf)", "replace them"),
    (1e150, "values of 1e150 or more", "divide all by a constant, since squares overflow"),
)
# A series whose values are all smaller is refused, since its intervals would grow.
_TOO_SMALL = 1e-90
_CONVERT_ADVICE = "convert it with pandas.to_numeric, or remove it. "
_FORM_ADVICE = (
    "If each cell holds a series, pass dict(enumerate(column)). If these are features, pass "
    "them before the series, fit(X, y); if these are dates, make them the index (set_index), "
    "or the column 'ds' of a frame. " + LONG_FORMAT_ADVICE
)


def is_integer(value):
    """Return True for a whole number that is not a boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def as_array(y, what):
    """Convert data without an index to an array of one or two dimensions, or raise."""
    if isinstance(y, np.ma.MaskedArray):
        y = y.astype(np.float64).filled(np.nan)
    refuse_other_arrays(what, y)
    # NumPy refuses rows of different lengths.
    with suppress(ValueError):
        array = np.asarray(y)
        if array.ndim in (1, 2):
            return array
    shape = getattr(y, "shape", "unknown")
    raise ValueError(
        f"{what} of type {type(y).__name__}, of shape {shape}, is not an array of one or two "
        "dimensions: pass one series as an array, several as the columns of a table, or "
        "series of different lengths as a dict."
    )


def as_floats(values, what):
    """Convert an array or a Series to float64; raise an error that names what is no number."""
    if isinstance(values, pd.Series):
        what = f"{what} ({values.name!r})" if values.name is not None else what
        if values.dtype.kind in "fiub":
            return values.to_numpy(np.float64, na_value=np.nan)
        values = values.to_numpy()
    if values.dtype.kind not in "fiubOUS":
        problem = "Complex data not supported: " * (values.dtype.kind == "c")
        remedy = _CONVERT_ADVICE * (values.dtype.kind != "M") + _FORM_ADVICE
        raise ValueError(
            f"{problem}{what} has dtype {values.dtype}, which is not numeric: {remedy}"
        )
    with suppress(TypeError, ValueError, OverflowError):
        return values.astype(np.float64)
    # Each value is converted alone, to find the first one that is no number.
    floats = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            floats[row] = np.nan if value is pd.NA else value
        except (TypeError, ValueError, OverflowError) as error:
            texts = pd.Series(values, dtype=object).astype(str)
            has_numbers = bool(pd.to_numeric(texts, errors="coerce").notna().any())
            raise ValueError(
                f"{what} has the entry {value!r:.60} at row {row}, which is not a number: "
                f"{_CONVERT_ADVICE * has_numbers}{_FORM_ADVICE}"
            ) from error
    return floats


def refuse_dates(y, library, what):
    """Raise if a frame in wide format has a column of dates."""
    for name, column in y.items():
        if column.dtype.kind in "MO" and as_index(column).dtype.kind == "M":
            remedy = f": make them the index, {what}.set_index({name!r})"
            if library != "pandas":
                remedy = f": rename it, {what}.rename({{{name!r}: {TIME!r}}})"
            if column.duplicated().any():
                # The frame is in long format, whose remedy follows in any case.
                remedy = ", several times the same"
            raise ValueError(
                f"{what} has dates in its column {name!r}{remedy}. {LONG_FORMAT_ADVICE}"
            )


def refuse_too_large(table, values, what, columns=()):
    """Raise if values are infinite, or so large that their squares are.

    Parameters
    ----------
    table : Table
        Names the series and the steps.
    values : ndarray of shape (n_rows,) or (n_rows, n_columns)
        Values of the rows of the table.
    what : str
    columns : list, default=()
        Name of each column.
    """
    for limit, kind, remedy in _TOO_LARGE:
        is_large = np.abs(values.reshape(len(values), -1)) >= limit
        for i in table.series[is_large.any(axis=1)][:1]:
            is_named = is_large & (table.series == i)[:, None]
            steps = table.time.name_steps(table.step[is_named.any(axis=1)])
            where = f"{_in_columns(columns, is_named)}{in_series(table, i)}"
            raise ValueError(f"{what} has {kind}{where} at {steps}: {remedy}.")


def refuse_too_small(table):
    """Raise if all values of a series are so small that their squares are 0."""
    for i, values in enumerate(table.observations):
        size = np.abs(values).max(initial=0.0)
        if 0 < size < _TOO_SMALL:
            raise ValueError(
                f"values of the series{in_series(table, i)} are all smaller than {_TOO_SMALL}, "
                f"{size:.3g} at most, so that their squares underflow to 0: multiply all by a "
                "large constant."
            )


def in_series(table, i):
    """Return " in 'name'" of series i, for a message; empty for the only one without a name."""
    name = table.names[i]
    return "" if table.form.kind == "array" or name is None else f" in {name!r}"


def refuse_leakage(table, columns):
    """Raise if a future covariate is the target itself; `columns` has the names of features."""
    for column in table.future_columns:
        differs = table.features[:, column] != table.value
        for i in np.flatnonzero(np.bincount(table.series, differs) == 0):
            values = table.observations[i]
            # A constant covariate may agree with a constant series by chance.
            if (values != values[0]).any():
                raise ValueError(
                    f"X has the column {columns[column]!r}, which is the target "
                    f"{table.names[i]!r} itself and will not be known when it is to be "
                    "forecast: remove it."
                )


def resolve_past(past_features, n_features, names):
    """List the columns of X that are past covariates, by name or else by position.

    Parameters
    ----------
    past_features : sequence of str or int, or None
        The parameter of the forecaster.
    n_features : int
        Number of columns of X.
    names : sequence of str
        Names of the columns of X; empty if there are none.
    """
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


def check_levels(name, levels):
    """Return probabilities as a list, or raise unless they have distinct percents.

    Columns of intervals are named by percents. `name` is the parameter that has the `levels`.
    """
    probabilities = check_probabilities(name, levels).tolist()
    if len({f"{100 * level:g}" for level in probabilities}) < len(probabilities):
        raise ValueError(f"{name}={levels!r} has a probability twice: pass each once.")
    return probabilities


def fill_line(values):
    """Fill missing values of a series by the straight line between their neighbours."""
    observed = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), observed, values[observed])


def fill_seasonal(values, season_length):
    """Fill missing values of a series by the same phase of the seasons before and after.

    With a season of m steps, one guess of y_t is y_{t-m} plus the change y_t - y_{t-m}, where
    unknown changes are interpolated. Another guess uses t + m. The mean of both guesses fills a
    constant trend and season exactly. Where no guess exists, values are on the straight line
    between their neighbours.
    """
    is_missing, line = np.isnan(values), fill_line(values)
    if season_length == 1 or not is_missing.any():
        return line
    first_steps, last_steps = slice(None, -season_length), slice(season_length, None)
    guesses = []
    for steps, steps_in_other_season in (last_steps, first_steps), (first_steps, last_steps):
        reference = np.full(len(values), np.nan)
        reference[steps] = values[steps_in_other_season]
        change = values - reference
        if not np.isnan(change).all():
            guesses.append(reference + fill_line(change))
    if not guesses:
        return line
    is_guess = ~np.isnan(guesses)
    total = np.where(is_guess, guesses, 0.0).sum(axis=0)
    mean = total / np.maximum(is_guess.sum(axis=0), 1)
    filled = np.where(is_guess.any(axis=0), mean, line)
    return np.where(is_missing, filled, values)


def fill_values(table, *, missing, season_length, what):
    """Fill the gaps of the series of a table, or raise an error that names them.

    Missing values at the ends of a series are cut off, unless `missing` is "raise".
    `season_length` is the number of steps in a season, for "seasonal" and for a warning that
    "interpolate" may lose the season.
    """
    check_choice("missing", missing, MISSING)
    if missing != "raise" and np.isnan(table.value).any():
        had_rows = table.row_counts > 0
        table = table.observed_between(0, len(table.time))
        for i in np.flatnonzero((table.row_counts == 0) & had_rows)[:1]:
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
    """Warn of the first gap of at least one season, which a straight line would fill."""
    observed = np.flatnonzero(~np.isnan(table.value))
    for gap in np.flatnonzero(np.diff(observed) > season_length)[:1]:
        first, last = observed[gap] + 1, observed[gap + 1] - 1
        begin, end = (table.time.name_steps(table.step[[row]]) for row in (first, last))
        warn_user(
            f"{what} has no values{in_series(table, table.series[first])} from {begin} to "
            f"{end}, a whole season of {season_length} steps or more. missing='interpolate' "
            "fills them by a straight line, so that forecasts may lose the season: if there is "
            "one, pass missing='seasonal'."
        )


def fill_features(table, missing, columns):
    """Fill the gaps of the covariates of a table, or raise an error that names them.

    Past covariates that end early keep their last value. `columns` has the name of the column
    of X of each feature.
    """
    if not table.n_features:
        return table
    refuse_too_large(table, table.features, "X", columns)
    fill = partial(np.apply_along_axis, fill_line, 0)
    return _filled(table, "features", missing, fill, "X", columns)


def _filled(table, field, missing, fill, what, columns=()):
    """Fill "value" or "features" of a table, series by series.

    Parameters
    ----------
    table : Table
    field : {"value", "features"}
    missing : str
        If "raise", all missing cells are refused; otherwise only those at the ends of a series.
    fill : callable
        Fills the array of one series.
    what : str
    columns : list, default=()
        Names of the columns of "features".
    """
    filled = getattr(table, field).copy()
    is_missing = np.isnan(filled.reshape(len(filled), -1))
    # True for columns that may end before their series: past covariates.
    may_end = np.zeros(is_missing.shape[1], dtype=bool)
    if field == "features":
        may_end = ~np.isin(np.arange(is_missing.shape[1]), table.future_columns)
    for i in np.unique(table.series[is_missing.any(axis=1)]):
        rows = slice(table.first_rows[i], table.first_rows[i] + table.row_counts[i])
        # A cell is in a gap if the column has a value before it and a value after it.
        has_begun = np.maximum.accumulate(~is_missing[rows])
        goes_on = np.maximum.accumulate(~is_missing[rows][::-1])[::-1]
        is_at_end = ~(has_begun & (goes_on | may_end))
        is_refused = is_missing[rows] if missing == "raise" else is_at_end
        steps = np.flatnonzero(is_refused.any(axis=1))
        if len(steps):
            remedy = "fill them"
            if is_at_end.any():
                remedy = "drop the rows at the ends, or fill them"
            if not (is_at_end.any() and field == "features"):
                remedy = f"pass missing='interpolate' or missing='seasonal', or {remedy}"
            raise ValueError(
                f"{what} has missing values (NaN){_in_columns(columns, is_refused)}"
                f"{in_series(table, i)} at {table.time.name_steps(table.step[rows][steps])}: "
                f"{remedy}."
            )
        filled[rows] = fill(filled[rows])
    return replace(table, **{field: filled}) if is_missing.any() else table


def _in_columns(columns, is_named):
    """Return " in column 'a', 'b'", the columns with a True cell, for a message.

    `is_named` (n_rows, n_columns) is True for a cell that the message is about. The text is
    empty if there are no columns.
    """
    positions = np.flatnonzero(is_named.any(axis=0))
    names = dict.fromkeys(columns[j] for j in positions if columns)
    return f" in column {', '.join(map(repr, names))}" if names else ""
