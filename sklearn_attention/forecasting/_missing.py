"""Missing values between others: what they are filled with."""

import numpy as np

from .._validation import check_choice

MISSING = ("interpolate", "raise", "seasonal")


def check_missing(missing):
    """Raise if the parameter `missing` is none of its values.

    Parameters
    ----------
    missing : str
    """
    check_choice("missing", missing, MISSING)


def fill_line(values):
    """Values with the missing ones on the line between their neighbours.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
        The first and the last are there.

    Returns
    -------
    filled : ndarray of shape (n_steps,)

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

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
        The first and the last are there.
    season_length : int
        Steps in a season.

    Returns
    -------
    filled : ndarray of shape (n_steps,)

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
    guesses = []
    for lag in (-season_length, season_length):
        beside = np.full(len(values), np.nan)
        if season_length < len(values):
            inner = slice(season_length, None) if lag < 0 else slice(None, -season_length)
            other = slice(None, -season_length) if lag < 0 else slice(season_length, None)
            beside[inner] = values[other]
        change = values - beside
        known = np.flatnonzero(~np.isnan(change))
        if len(known):
            guesses.append(beside + np.interp(np.arange(len(values)), known, change[known]))
    if not guesses:
        return line
    there = ~np.isnan(guesses)
    total = np.where(there, guesses, 0.0).sum(axis=0)
    filled = np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), line)
    return np.where(lost, filled, values)


def fill_missing(values, start, time, name, *, missing, season_length, what):
    """A series without missing values, or an error that names them.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
    start : int
        Position of the first one.
    time : TimeIndex
    name : object
        Of the series, for messages.
    missing : {"raise", "interpolate", "seasonal"} or None
        What is done about missing values between others; None leaves them, and those at the
        ends.
    season_length : int
        Steps in a season.
    what : str
        What the series are, for messages.

    Returns
    -------
    filled : ndarray of shape (n_steps,)
    """
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"{what} has infinite values (inf) in {name!r} at "
            f"{time.name_steps(start + infinite)}: replace them."
        )
    lost = np.isnan(values)
    if missing is None or not lost.any():
        return np.ascontiguousarray(values)
    at_ends = lost[0] or lost[-1]
    if missing == "raise" or at_ends:
        remedy = (
            "drop the rows at the ends"
            if at_ends
            else "pass missing='interpolate' or missing='seasonal', or fill them"
        )
        raise ValueError(
            f"{what} has missing values (NaN) in {name!r} at "
            f"{time.name_steps(start + np.flatnonzero(lost))}: {remedy}."
        )
    return fill_seasonal(values, season_length) if missing == "seasonal" else fill_line(values)
