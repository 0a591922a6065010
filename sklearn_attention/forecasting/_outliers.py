"""Single values far outside of all that their series has been, replaced by the ones before."""

from dataclasses import replace

import numpy as np

from ._windows import by_group

# How improbable a value has to be to be replaced: one in so many.
_RARE = 1e6


def damped(table):
    """A table in which no value is far outside of the range of those before it."""
    value = table.value.copy()
    for length, series in by_group(table.lengths):
        rows = table.first[series][:, None] + np.arange(length)
        value[rows] = without_outliers(value[rows])
    return replace(table, value=value)


def without_outliers(values):
    """Series (n_series, n_steps), values far outside the range so far replaced by the last."""
    # Far is farther than c^(1/n) times that range, after n values: it is narrower than it
    # should be by such a factor with a probability of about 1 / c. A replaced value extends the
    # range of the next ones, so that of a shift of the level only the first step is replaced. A
    # step without change takes one from n, so neither steps between plateaus nor counts that
    # are mostly 0 are replaced.
    later = values[:, 2:]
    changes = np.where(values[:, 1:-1] == values[:, :-2], -1.0, 1.0).cumsum(axis=1)
    low, high = (f.accumulate(values, axis=1)[:, 1:-1] for f in (np.minimum, np.maximum))
    with np.errstate(over="ignore"):  # beyond the largest numbers there is nothing
        factor = np.where(changes > 0, _RARE ** (1 / np.maximum(changes, 1)), np.inf)
        width = np.where(high > low, high - low, 1.0) * factor
        far = (later > high + width) | (later < low - width)
    later = np.where(far, values[:, 1:-1], later)
    return np.concatenate([values[:, :2], later], axis=1)
