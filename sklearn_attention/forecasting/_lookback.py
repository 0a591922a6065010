"""How many steps of the past a window has."""

import warnings

from .._validation import check_positive

# "auto" looks back so many seasons, and at least over the horizon and so many steps, but over
# no more than this share of the longest series.
_SEASONS, _FEWEST_STEPS, _LARGEST_SHARE = 3, 10, 0.25
# Windows that there have to be to learn from.
_FEWEST_WINDOWS = 2


def least_length(horizon):
    """Steps that a series needs to have for windows of it to be learned from."""
    return 2 * horizon + _FEWEST_WINDOWS


def choose_lookback(length, lookback, horizon, season_length, seasons=_SEASONS):
    """How many steps of the past a window has.

    Parameters
    ----------
    length : int
        Steps of the longest series.
    lookback : int or "auto"
        What the user passed. "auto" is so many seasons, at least the horizon and 10 steps, and
        at most a quarter of the longest series.
    horizon, season_length : int
    seasons : int, default=3

    Returns
    -------
    lookback : int
        Less than asked for, with a warning, where the longest series has no room for it.

    Raises
    ------
    ValueError
        If no series has :func:`least_length` steps.
    """
    # Two windows to learn from, and one after them to be judged by.
    longest = length - 2 * horizon - (_FEWEST_WINDOWS - 1)
    if longest < 1:
        raise ValueError(
            f"the longest series has {length} sample{'s' if length > 1 else ''}, but "
            f"horizon={horizon} needs at least {least_length(horizon)}: pass a longer "
            "series or a smaller horizon."
        )
    if isinstance(lookback, str) and lookback == "auto":
        wanted = max(seasons * season_length, horizon, _FEWEST_STEPS)
        return max(1, min(wanted, int(_LARGEST_SHARE * length), longest))
    lookback = check_positive("lookback", lookback, integer=True)
    if lookback > longest:
        warnings.warn(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: it shrinks to {longest}.",
            UserWarning,
            stacklevel=5,
        )
    return min(lookback, longest)
