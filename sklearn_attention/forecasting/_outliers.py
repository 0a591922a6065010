"""Single values far outside of all that their series has been, moved to where it might be."""

from dataclasses import replace

import numpy as np

from ._windows import by_group

# How improbable a value has to be to be moved: one in so many.
_RARE = 1e6


def damped(table):
    """A table in which each value is clipped by a range that those before it span."""
    value = table.value.copy()
    for length, series in by_group(table.lengths):
        rows = table.first[series][:, None] + np.arange(length)
        value[rows] = clipped(value[rows])
    return replace(table, value=value)


def clipped(values):
    r"""Series, (n_series, n_steps), each value clipped by a range that those before it span.

    After :math:`n` values their range is widened on both sides by :math:`c^{1/n}` times itself:
    it is narrower than it should be by such a factor with a probability of about :math:`1/c`.
    A value that is moved widens the range for the next ones, so that of a shift of the level
    only the first step is. A step without change takes one from :math:`n`, and so neither steps
    between plateaus nor counts that are mostly 0 are moved.
    """
    changes = np.where(values[:, 1:-1] == values[:, :-2], -1.0, 1.0).cumsum(axis=1)
    low, high = (f.accumulate(values, axis=1)[:, 1:-1] for f in (np.minimum, np.maximum))
    with np.errstate(over="ignore"):  # beyond the largest numbers there is nothing to clip
        factor = np.where(changes > 0, _RARE ** (1 / np.maximum(changes, 1)), np.inf)
        width = np.where(high > low, high - low, 1.0) * factor
        later = np.clip(values[:, 2:], low - width, high + width)
    return np.concatenate([values[:, :2], later], axis=1)
