"""Missing values between others: what they are filled with."""

from dataclasses import replace

import numpy as np

from .._validation import check_choice

MISSING = ("interpolate", "raise", "seasonal")
# Sizes from which on values are refused, what they are called, and what to do.
_TOO_LARGE = (
    (np.inf, "infinite values (inf)", "replace them"),
    (1e150, "values of 1e150 or more", "divide all by a constant, since squares overflow"),
)


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


def refuse_too_large(values, start, time, what, where=""):
    """Raise if values are infinite, or their squares; `start` is the first row's position."""
    for limit, kind, remedy in _TOO_LARGE:
        rows = np.unique(np.argwhere(np.abs(values) >= limit)[:, 0])
        if len(rows):
            raise ValueError(
                f"{what} has {kind}{where} at {time.name_steps(start + rows)}: {remedy}."
            )


def named(panel, name):
    """Which series of a panel a message is about; nothing of the only one without a name."""
    return "" if panel.form == "array" or name is None else f" in {name!r}"


def fill_series(values, start, time, where, *, missing, season_length, what):
    """A series without missing values, or an error that names them.

    `start` is the position of its first step on `time`, `where` says for messages which series
    it is, and `what` it was passed as.
    """
    check_choice("missing", missing, MISSING)
    lost = np.isnan(values)
    if not lost.any():
        return values
    at_ends = lost[0] or lost[-1]
    if missing == "raise" or at_ends:
        remedy = (
            "drop the rows at the ends"
            if at_ends
            else "pass missing='interpolate' or missing='seasonal', or fill them"
        )
        raise ValueError(
            f"{what} has missing values (NaN){where} at "
            f"{time.name_steps(start + np.flatnonzero(lost))}: {remedy}."
        )
    return fill_seasonal(values, season_length) if missing == "seasonal" else fill_line(values)


def fill_panel(panel, **options):
    """A panel without missing values; `options` are those of :func:`fill_series`."""
    series = zip(panel.values, panel.starts, panel.names, strict=True)
    values = [
        fill_series(own, start, panel.time, named(panel, name), **options)
        for own, start, name in series
    ]
    return replace(panel, values=values)
