"""Copies: equal rows, which would predict one another without error."""

import numpy as np

# A column with so many different values, as a share of the different rows, is one in which
# rows do not agree by chance.
_LEAST_DIFFERENT = 0.5


def join_copies(X, values, weights):
    """Rows without their copies, which add to their weight.

    Rows are copies if they agree in all features and targets, and one of these, a number that
    hardly ever repeats, shows that this is no coincidence. Where all columns have few values,
    as counts and categories do, equal rows are observations like any others.

    Returned are the positions of the first of all that are equal, and their joint weights.
    """
    table = np.column_stack([X, values])
    # A missing cell equals another one; infinite ones there are not.
    table = np.where(np.isnan(table), np.inf, table)
    first = _first_of_equals(table)
    kept, group = np.unique(first, return_inverse=True)
    if len(kept) == len(table):
        return kept, weights
    most = max(len(np.unique(column)) for column in table[kept].T)
    if most < _LEAST_DIFFERENT * len(kept):
        return np.arange(len(table)), weights
    return kept, np.bincount(group, weights)


def _first_of_equals(table):
    """For each row the first one that equals it."""
    # Equal rows have equal sums, so that they are neighbours once these are sorted.
    mix = np.random.default_rng(0).uniform(0.5, 1.5, table.shape[1])
    spread = np.where(np.isfinite(table), table, 0.0)
    largest = np.abs(spread).max(axis=0)
    sums = (spread / np.where(largest > 0, largest, 1.0) * mix).sum(axis=1)
    order = np.argsort(sums, kind="stable")
    equal = (table[order[1:]] == table[order[:-1]]).all(axis=1)
    starts = np.concatenate([[True], ~equal])
    first = np.empty(len(table), dtype=np.int64)
    first[order] = order[starts][np.cumsum(starts) - 1]
    return first
