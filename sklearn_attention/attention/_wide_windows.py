"""Windows of local polynomials that are widened until the rows in them determine these."""

import math

import numpy as np

from .._blocks import blocks
from ..kernels._numerics import LARGEST

# Weight that a window is to have, in rows for each coefficient of its polynomial, and at most
# half of all rows: that of three rows for a line in one feature, of which two would do.
_ROWS_PER_COEFFICIENT = 1.5
# Rows that are equal are copies if so large a share of the different ones have values of
# their own.
DISTINCT = 0.9
# Beyond so many ranges of the rows predictions do not change any more.
FURTHEST = 30.0


class Places:
    """The places of rows that have weight, and which windows they determine."""

    # A window is wide enough if it has the weight of 1.5 rows for each coefficient, and its
    # places determine the polynomial at the query as well as one row there would. At a place of
    # the data they do: weighted least squares gives no row a leverage above 1. Rows that repeat
    # a place so keep the exact fit there, and in a gap between such places windows are widened.
    # The weight of 1.5 places a coefficient is enough anyway. Copies are one row.

    def __init__(self, keys, values, weights, n_coefficients):
        self._needed, kept = _ROWS_PER_COEFFICIENT * n_coefficients, np.flatnonzero(weights)
        self._weights, self._total = weights, weights.sum()
        self.fewest, places = math.ceil(self._needed), _numbers(keys, kept)
        ordered = np.sort(places)
        self.repeat = bool((ordered[1:] == ordered[:-1]).any())
        self._n_rows = self._n_places = len(kept)
        # Rows that are no copies, and those that are alone at their place.
        self._single = self._alone = weights > 0
        if self.repeat:
            # A row at each place, and the place of each row.
            self.first, self.of_rows, self._alone = _groups(places, kept, len(weights))
            self._n_places, values = len(self.first), _numbers(values, kept)
            rows, _, single = _groups(places + 1j * values, kept, len(weights))
            if len(np.unique(values)) >= DISTINCT * len(rows):
                self._n_rows, self._single = len(rows), single

    def enough(self, weight, worth):
        """Measure how well a window determines its polynomial; 1 or more is enough.

        `weight` is the weight of the window, in units of the weight of a row at the query.
        `worth` is the inverse leverage of a row of weight 1 at the query, in a fit to the
        distinct design points.
        """
        return self._enough(weight, worth, self._total, self._n_rows, self._n_places)

    def enough_without(self, rows, weight, worth, worth_without):
        """The same of windows without each of some rows; worths with and without its place."""
        single, alone, own = (x[rows] for x in (self._single, self._alone, self._weights))
        worth = np.where(alone, worth_without, worth)
        n_rows, n_places = self._n_rows - single, self._n_places - alone
        return self._enough(weight, worth, self._total - own, n_rows, n_places)

    def _enough(self, weight, worth, total, n_rows, n_places):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = weight / total
            rows, places = (
                share / np.minimum(self._needed / np.maximum(n, 1), 1 / 2)
                for n in (n_rows, n_places)
            )
        return np.minimum(rows, np.maximum(places, worth))


def _numbers(table, rows):
    """A number for each of some rows of a table, different where these are, nearly surely."""
    directions, found = (
        np.random.default_rng(0).uniform(1, 2, table.shape[1]),
        np.empty(len(rows)),
    )
    with np.errstate(over="ignore"):
        for part in blocks(len(rows)):
            found[part] = (table[rows[part]] * directions).sum(axis=1)
    return found


def _groups(numbers, kept, n):
    """Of equal numbers of rows that are kept: a row of each; of n rows theirs, and if alone."""
    _, first, group, counts = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    of_rows, alone = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
    of_rows[kept], alone[kept] = group, counts[group] == 1
    return kept[first], of_rows, alone


def widen(evaluate, reach):
    """Fields (n, ...) at queries, in windows that are doubled until they are wide enough."""
    # `evaluate(times, rows)` returns whether windows of some queries, doubled so often, are
    # wide enough (n_rows, ...), and their fields. Results lie between those of the last two
    # windows, so that they are continuous in the query. No window is wider than needed for a
    # distance of `reach` bandwidths.
    enough, *found = evaluate(0, slice(None))
    rows = np.arange(len(enough))
    most = 2 + int(np.ceil(np.log2(np.clip(reach, 1.0, LARGEST))))
    for times in range(1, most + 1):
        short = (enough < 1).reshape(len(rows), -1).any(axis=1)
        rows, enough = rows[short], enough[short]
        if not len(rows):
            break
        wider, *fields = evaluate(times, rows)
        some = [field[rows] for field in found]
        blend(enough, *some, wider, *fields)
        for field, x in zip(found, some, strict=True):
            field[rows] = x
        enough = np.where(enough < 1, wider, np.inf)
    return found


def blend(enough, *fields):
    """Move fields of windows that are not wide enough towards those of windows twice as wide.

    In place. After the fields come the same of the wider windows.
    """
    fields, (wider, *targets) = fields[: len(fields) // 2], fields[len(fields) // 2 :]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(wider >= 1, (1 - enough) / (wider - enough), 1.0)
    share = np.where(enough < 1, share, 0.0)
    for field, target in zip(fields, targets, strict=True):
        own = share.reshape(share.shape + (1,) * (field.ndim - share.ndim))
        field += own * (target - field)
