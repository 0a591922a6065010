r"""Windows of local polynomials, which are doubled until the rows in them determine these.

The *window* of a query q is the weights :math:`w_i K((q - x_i) / h)` of the rows; its weight W
is their sum divided by K(0). A *design point* is a place with one row or several: the rows 0,
0, 1 have the two design points 0 and 1. For a polynomial with P coefficients, n rows at
:math:`n_0` design points, and the total T of their weights, the *adequacy* of a window is

.. math:: \min\bigl(a(n), \max(a(n_0), 1 / \ell)\bigr), \qquad
          a(n) = \frac{W}{T} \Big/ \min\Bigl(\frac{1.5 P}{n}, \frac{1}{2}\Bigr)

where :math:`\ell` is the leverage of a row of weight 1 at q in a fit to the design points. A
window of adequacy 1 or more has the weight of 1.5 rows for each coefficient. It also has the
weight of 1.5 design points for each, or these determine the polynomial at q as well as one row
at q would. At a design point they do, since weighted least squares gives no row a leverage
above 1. So rows that repeat a place keep the exact fit there, and in a gap between such places
windows are doubled. Copies of a row count as one row.

Results are interpolated between those of the last two windows, so that they are continuous in
q. Each doubling takes the time of one prediction of the queries that are still inadequate.
"""

import functools
import math

import numpy as np

from ..kernels._numerics import LARGEST

# Weight that an adequate window has, in rows for each coefficient of its polynomial, and at
# most half of all rows: a line in one feature needs the weight of three rows, though two
# determine it.
_ROWS_PER_COEFFICIENT = 1.5
# A window is adequate if its adequacy is below 1 by at most this number: rounding, also of
# float32, does not decide whether a window of exactly the weight that it needs is doubled.
_ROUNDING = 1e-6
# Equal rows are copies of one row if the number of distinct values is at least this share of
# the number of distinct rows. If values often repeat, equal rows are separate observations.
DISTINCT = 0.9
# At queries that are further from the rows than this multiple of the range of the rows,
# predictions do not change any more.
MAX_RANGES = 30.0


class Windows:
    """The rows that have weight, their design points, and how adequate windows of them are.

    Rows are `keys` (m, d) with `values` (m, p) and `weights` (m,), which may be 0.
    `n_coefficients` is P.
    """

    def __init__(self, keys, values, weights, n_coefficients):
        self._rows_needed = _ROWS_PER_COEFFICIENT * n_coefficients
        weighted = np.flatnonzero(weights)
        self._weights, self._total = weights, weights.sum()
        # Smallest number of rows that an adequate window has, unless they share a place.
        self.fewest = math.ceil(self._rows_needed)
        self.has_repeats = False
        self._n_rows = self._n_points = len(weighted)
        # True for a row that has no copy, and for one that is alone at its design point.
        self._is_single = self._is_alone = weights > 0
        # Rows that differ from all others in one column need no labels, which take memory.
        if all(_has_repeats(keys[weighted, j]) for j in range(keys.shape[1])):
            points = _labels(keys[weighted], 0)  # number of each row's design point
            self._n_points = 1 + points.max()
            self.has_repeats = self._n_points < len(weighted)
        if self.has_repeats:
            # The first row at each design point, and the design point of each row.
            self.first_rows = weighted[np.unique(points, return_index=True)[1]]
            self.point_of_rows = np.zeros(len(weights), dtype=np.intp)
            self.point_of_rows[weighted] = points
            self._is_alone = _is_unique(points, weighted, len(weights))
            # Copies of a row, with equal values at one design point, have one number.
            rows = _labels(values[weighted], points)
            if 1 + _labels(values[weighted], 0).max() >= DISTINCT * (1 + rows.max()):
                self._n_rows = 1 + rows.max()
                self._is_single = _is_unique(rows, weighted, len(weights))

    def adequacy(self, weight, inverse_leverage):
        """Compute the adequacy of windows; 1 or more is adequate.

        `weight` is W in the module's docstring, of any shape. `inverse_leverage` is the inverse
        of the leverage of a row of weight 1 at the query, in a fit to the design points; 0 if
        no row repeats the place of another.
        """
        n_rows, n_points = self._n_rows, self._n_points
        return self._adequacy(weight, self._total, inverse_leverage, n_rows, n_points)

    def adequacy_without(self, rows, weight, inverse_leverage, without_point, ranges=None):
        """Compute the adequacy (n,) of windows each of which leaves out one of `rows` (n,).

        `weight` is W without the row, and `inverse_leverage` is as for :meth:`adequacy`.
        `without_point` is the inverse leverage in a fit that leaves out the row's design point,
        for a row that is alone there. If windows leave out more rows, ``ranges`` (n, 2) are the
        first of them and one past the last. Only rows without a copy then reduce the number of
        rows, and only rows that are alone reduce the number of design points.
        """
        is_single, is_alone = self._is_single[rows], self._is_alone[rows]
        weight_left_out = self._weights[rows]
        inverse_leverage = np.where(is_alone, without_point, inverse_leverage)
        if ranges is not None:
            # A sum over a range is the difference of two cumulative sums.
            first, stop = ranges.T
            sums = self._sums_before[:, stop] - self._sums_before[:, first]
            weight_left_out, is_single, is_alone = sums
        total = self._total - weight_left_out
        n_rows, n_points = self._n_rows - is_single, self._n_points - is_alone
        return self._adequacy(weight, total, inverse_leverage, n_rows, n_points)

    @functools.cached_property
    def _sums_before(self):
        """Sums over the rows before each, and over all rows last, (3, n_rows + 1).

        They are those of the weights, and the numbers of rows without a copy and of rows that
        are alone at their design point.
        """
        sums = np.cumsum([self._weights, self._is_single, self._is_alone], axis=1)
        return np.pad(sums, ((0, 0), (1, 0)))

    def _adequacy(self, weight, total, inverse_leverage, n_rows, n_points):
        """Evaluate the formula of the module's docstring."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            by_rows, by_points = (
                weight / total / np.minimum(self._rows_needed / np.maximum(n, 1), 1 / 2)
                for n in (n_rows, n_points)
            )
        adequacy = np.minimum(by_rows, np.maximum(by_points, inverse_leverage))
        return np.where((adequacy < 1) & (adequacy > 1 - _ROUNDING), 1.0, adequacy)


def _has_repeats(numbers):
    """Return True if some number occurs twice; sort the array in place."""
    numbers.sort()
    return (numbers[1:] == numbers[:-1]).any()


def _labels(table, labels):
    """Return labels (n,) that are equal for equal rows of a table (n, d) with equal `labels`.

    They are integers from 0. `labels` are (n,), or 0 for no distinction.
    """
    for column in table.T:
        _, levels = np.unique(column, return_inverse=True)
        _, labels = np.unique(labels * len(table) + levels, return_inverse=True)
    return np.broadcast_to(labels, len(table))


def _is_unique(labels, weighted, n_rows):
    """Return True for each of `n_rows` rows whose label no other row has.

    Labels are those of the rows at the positions `weighted`; all other rows are False.
    """
    is_unique = np.zeros(n_rows, dtype=bool)
    is_unique[weighted] = np.bincount(labels)[labels] == 1
    return is_unique


def double_windows(evaluate, max_distance):
    """Compute fields at queries, in windows that are doubled until they are adequate.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(n_doublings, rows)`` returns a list of groups for the queries at `rows`, in
        windows that were doubled so often. A group is a tuple: the adequacy (n_rows, ...) of
        its windows, and the fields (n_rows, ...) that were computed in these windows.
    max_distance : float
        Largest distance of a query from any row, in bandwidths. No window is doubled much
        beyond this distance, since it then has all rows.

    Returns
    -------
    fields : list of lists of arrays
        The fields of each group.
    """
    groups = evaluate(0, slice(None))
    rows, adequacies = np.arange(len(groups[0][0])), [group[0] for group in groups]
    max_doublings = 2 + int(np.ceil(np.log2(np.clip(max_distance, 1.0, LARGEST))))
    for n_doublings in range(1, max_doublings + 1):
        # 1. Only queries with a window that is not adequate are computed again.
        is_inadequate = np.zeros(len(rows), dtype=bool)
        for adequacy in adequacies:
            is_inadequate |= (adequacy < 1).reshape(len(rows), -1).any(axis=1)
        rows = rows[is_inadequate]
        adequacies = [adequacy[is_inadequate] for adequacy in adequacies]
        if not len(rows):
            break
        # 2. Their fields are moved towards those of windows twice as wide.
        wider_groups = evaluate(n_doublings, rows)
        blended_groups = [
            (adequacy, *(field[rows] for field in fields))
            for adequacy, (_, *fields) in zip(adequacies, groups, strict=True)
        ]
        blend(blended_groups, wider_groups)
        for (_, *fields), (_, *blended_fields) in zip(groups, blended_groups, strict=True):
            for field, blended in zip(fields, blended_fields, strict=True):
                field[rows] = blended
        # 3. A window that was adequate before is not doubled again, whatever its group needs.
        adequacies = [
            np.where(adequacy < 1, new, np.inf)
            for adequacy, (new, *_) in zip(adequacies, wider_groups, strict=True)
        ]
    return [fields for _, *fields in groups]


def blend(groups, wider_groups):
    """Move fields of inadequate windows towards those of windows twice as wide, in place.

    Where the wider window is adequate, a field is interpolated to an adequacy of 1; elsewhere
    it becomes that of the wider window. Groups are those of :func:`double_windows`.
    """
    for (adequacy, *fields), (new, *targets) in zip(groups, wider_groups, strict=True):
        # The weight of the wider window's fields, by its new adequacy.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            weight = np.where(new >= 1, (1 - adequacy) / (new - adequacy), 1.0)
        weight = np.where(adequacy < 1, weight, 0.0)
        for field, target in zip(fields, targets, strict=True):
            field_weight = weight.reshape(weight.shape + (1,) * (field.ndim - weight.ndim))
            field += field_weight * (target - field)
