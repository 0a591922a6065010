"""How many rows carry a solution."""

import math

# Up to so many rows the system is solved as it is. Beyond, the memory is read through some
# of its rows, as many as this much work allows.
MOST_SOLVED_ROWS = 20_000
_LANDMARK_WORK = 1.2e12
_FEWEST_LANDMARKS, _MOST_LANDMARKS = 2000, 6000


def n_landmarks(n_rows):
    """How many rows carry the solution for so many rows.

    Parameters
    ----------
    n_rows : int

    Returns
    -------
    n : int
        All rows, or the root of what the work of :class:`SolvedMemory` allows.
    """
    if n_rows <= MOST_SOLVED_ROWS:
        return n_rows
    affordable = int(math.sqrt(_LANDMARK_WORK / n_rows))
    return min(_MOST_LANDMARKS, max(_FEWEST_LANDMARKS, affordable))
