"""Windows of local polynomials, which are doubled until the rows in them determine these."""

import math

import numpy as np

from ..kernels._numerics import LARGEST

# Weight that a window is to have, in rows for each coefficient of its polynomial, and at most
# half of all rows: that of three rows for a line in one feature, of which two would do.
_ROWS_PER_COEFFICIENT = 1.5
# A window is adequate if at most this share is missing: rounding, also of float32, does not
# decide whether a window of exactly the weight that it needs is doubled.
_ROUNDING = 1e-6
# Rows that are equal are copies if so large a share of the different ones have values of
# their own.
DISTINCT = 0.9
# Beyond this many ranges of the rows predictions do not change any more.
MAX_RANGES = 30.0


class Windows:
    """Rows that have weight, their design points, and which windows they determine.

    A design point is a place with one row or several: the rows 0, 0, 1 have the two design
    points 0 and 1.
    """

    # A window is adequate if it has the weight of 1.5 rows for each coefficient, and its design
    # points determine the polynomial at the query as well as one row there would. At a design
    # point they do: weighted least squares gives no row a leverage above 1. So rows that repeat
    # a place keep the exact fit there, and in a gap between such places windows are doubled.
    # The weight of 1.5 design points a coefficient is adequate anyway. Copies are one row.

    def __init__(self, keys, values, weights, n_coefficients):
        self._needed, weighted = _ROWS_PER_COEFFICIENT * n_coefficients, np.flatnonzero(weights)
        self._weights, self._total = weights, weights.sum()
        self.fewest, self.repeat = math.ceil(self._needed), False
        self._n_rows = self._n_points = len(weighted)
        # Rows that are no copies, and those that are alone at their design point.
        self._is_single = self._is_alone = weights > 0
        # Rows that differ from all others in one column need no labels, which take memory.
        if all(_has_repeats(keys[weighted, j]) for j in range(keys.shape[1])):
            points = _labels(keys[weighted], 0)
            self._n_points = 1 + points.max()
            self.repeat = self._n_points < len(weighted)
        if self.repeat:
            # A row at each design point, and the design point of each row.
            self.first = weighted[np.unique(points, return_index=True)[1]]
            self.point_of_rows = np.zeros(len(weights), dtype=np.intp)
            self.point_of_rows[weighted] = points
            self._is_alone = _is_unique(points, weighted, len(weights))
            rows = _labels(values[weighted], points)
            if 1 + _labels(values[weighted], 0).max() >= DISTINCT * (1 + rows.max()):
                self._n_rows = 1 + rows.max()
                self._is_single = _is_unique(rows, weighted, len(weights))

    def adequacy(self, weight, inverse_leverage):
        """Measure how well a window determines its polynomial; 1 or more is adequate.

        `weight` is the weight of the window, in units of the weight of a row at the query.
        `inverse_leverage` is that of a row of weight 1 at the query, in a fit to the design
        points; 0 where no row repeats another's place.
        """
        n_rows, n_points = self._n_rows, self._n_points
        return self._adequacy(weight, self._total, inverse_leverage, n_rows, n_points)

    def adequacy_without(self, rows, weight, inverse_leverage, without_point):
        """Measure the same for windows that leave out one of `rows` each.

        `without_point` is the inverse leverage where the design point of the row is left out.
        """
        is_single, is_alone = self._is_single[rows], self._is_alone[rows]
        total = self._total - self._weights[rows]
        inverse_leverage = np.where(is_alone, without_point, inverse_leverage)
        n_rows, n_points = self._n_rows - is_single, self._n_points - is_alone
        return self._adequacy(weight, total, inverse_leverage, n_rows, n_points)

    def _adequacy(self, weight, total, inverse_leverage, n_rows, n_points):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            by_rows, by_points = (
                weight / total / np.minimum(self._needed / np.maximum(n, 1), 1 / 2)
                for n in (n_rows, n_points)
            )
        adequacy = np.minimum(by_rows, np.maximum(by_points, inverse_leverage))
        return np.where((adequacy < 1) & (adequacy > 1 - _ROUNDING), 1.0, adequacy)


def _has_repeats(numbers):
    numbers.sort()
    return (numbers[1:] == numbers[:-1]).any()


def _labels(table, labels):
    """Label the rows of a table (n, d) anew, so that equal rows with equal labels are equal."""
    for column in table.T:
        _, levels = np.unique(column, return_inverse=True)
        _, labels = np.unique(labels * len(table) + levels, return_inverse=True)
    return np.broadcast_to(labels, len(table))


def _is_unique(labels, weighted, n_rows):
    """Return True for each of `n_rows` whose label no other has.

    Labels are those of the rows `weighted`; other rows are False.
    """
    is_unique = np.zeros(n_rows, dtype=bool)
    is_unique[weighted] = np.bincount(labels)[labels] == 1
    return is_unique


def double_windows(evaluate, max_distance):
    """Fields at queries, in windows that are doubled until they are adequate.

    ``evaluate(times, rows)`` returns groups for some queries, in windows that were doubled so
    often: each begins with the adequacy of the windows, (n_rows, ...), before its fields. The
    fields of all groups are returned, without the adequacy. `max_distance` is that of a query
    from any row, in bandwidths, beyond which no window is doubled.
    """
    # Results lie between those of the last two windows, so they are continuous in the query.
    groups = evaluate(0, slice(None))
    n_rows = len(groups[0][0])
    rows, adequacies = np.arange(n_rows), [group[0] for group in groups]
    n_doublings = 2 + int(np.ceil(np.log2(np.clip(max_distance, 1.0, LARGEST))))
    for times in range(1, n_doublings + 1):
        is_short = sum((a < 1).reshape(len(rows), -1).any(axis=1) for a in adequacies) > 0
        rows, adequacies = rows[is_short], [adequacy[is_short] for adequacy in adequacies]
        if not len(rows):
            break
        wider = evaluate(times, rows)
        blended = [
            (adequacy, *(field[rows] for field in fields))
            for adequacy, (_, *fields) in zip(adequacies, groups, strict=True)
        ]
        blend(blended, wider)
        for (_, *fields), (_, *blended_fields) in zip(groups, blended, strict=True):
            for field, values in zip(fields, blended_fields, strict=True):
                field[rows] = values
        adequacies = [
            np.where(adequacy < 1, new, np.inf)
            for adequacy, (new, *_) in zip(adequacies, wider, strict=True)
        ]
    return [fields for _, *fields in groups]


def blend(groups, wider_groups):
    """Move fields of windows that are not adequate towards those of windows twice as wide.

    In place; groups are as in :func:`double_windows`.
    """
    for (adequacy, *fields), (wider, *targets) in zip(groups, wider_groups, strict=True):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            weight = np.where(wider >= 1, (1 - adequacy) / (wider - adequacy), 1.0)
        weight = np.where(adequacy < 1, weight, 0.0)
        for field, target in zip(fields, targets, strict=True):
            field += weight.reshape(weight.shape + (1,) * (field.ndim - weight.ndim)) * (
                target - field
            )
