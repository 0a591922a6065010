"""The number of steps of a window."""

from .._base import warn_user
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
    """The number of steps of a window.

    "auto" is so many seasons, at least the horizon and 10 steps, and at most a quarter of the
    longest series, which has `length` steps. A number shrinks, with a warning, where the
    longest series has no room for it, and without :func:`least_length` that is a ValueError.
    """
    # Two windows to learn from, and one held out after them.
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
        warn_user(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: it shrinks to {longest}."
        )
    return min(lookback, longest)
