r"""Windows of local polynomials, which are doubled until the rows in them determine these.

The *window* of a query q is the weights :math:`w_i K((q - x_i) / h)` of the rows; its weight W
is their sum divided by K(0). To double a window is to multiply the bandwidth h by 2. A *design
point* is a distinct x, at which there may be several rows: the rows 0, 0, 1 have the two design
points 0 and 1. For a polynomial with P coefficients, n rows at :math:`n_0` design points, and
the total T of their weights, the *adequacy* of a window is

.. math:: \min\bigl(a(n), \max(a(n_0), 1 / \ell)\bigr), \qquad
          a(n) = \frac{W}{T} \Big/ \min\Bigl(\frac{1.5 P}{n}, \frac{1}{2}\Bigr)

where :math:`\ell` is the leverage that a row of weight 1 at q would have in a fit to the design
points, and :math:`1 / \ell` is the *inverse leverage* of the query. A window of adequacy 1 or
more is *adequate*: it has the weight of 1.5 rows for each coefficient. It also has the weight
of 1.5 design points for each coefficient, or the design points determine the polynomial at q as
well as one row at q would. At a design point they do, since weighted least squares gives no row
a leverage above 1. So a window at a design point is not doubled if there are enough rows in it,
and a window in a gap between design points is. Copies of a row, which are equal in x and in
their values, count as one row.

Results are interpolated between those of the last two windows, so that they are continuous in
q. Each doubling takes the time of one prediction of the queries that are still inadequate.
"""

import functools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import IN_MEMORY
from ..kernels._numerics import LARGEST
from ._read import key_ranges
from ._solve import Basis

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


class DesignPoints:
    """The distinct keys among the rows of positive weight.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_features)
        The rows.
    weighted : ndarray of shape (n_weighted,)
        Positions of the rows of positive weight.

    Attributes
    ----------
    n_points : int
        Number of design points.
    has_repeats : bool
        Whether two rows or more share a design point. The next three attributes exist only if
        they do.
    labels : ndarray of shape (n_weighted,)
        Number of the design point, from 0, of each row of positive weight.
    first_rows : ndarray of shape (n_points,)
        Position of the first row at each design point.
    point_of_rows : ndarray of shape (n_rows,)
        Number of the design point of each row; 0 for rows of weight 0.
    """

    def __init__(self, keys, weighted):
        self.n_points, self.has_repeats = len(weighted), False
        # Rows that differ from all others in one column need no labels, which take memory.
        if all(_has_repeats(keys[weighted, j]) for j in range(keys.shape[1])):
            self.labels = _labels(keys[weighted], 0)
            self.n_points = 1 + self.labels.max()
            self.has_repeats = self.n_points < len(weighted)
        if self.has_repeats:
            self.first_rows = weighted[np.unique(self.labels, return_index=True)[1]]
            self.point_of_rows = np.zeros(len(keys), dtype=np.intp)
            self.point_of_rows[weighted] = self.labels


class WindowAdequacy:
    """The adequacy of windows of some rows, by the formula of the module's docstring.

    Parameters
    ----------
    keys : ndarray of shape (n_rows, n_features)
        The rows.
    values : ndarray of shape (n_rows, n_values)
        Their values, by which copies of a row are recognized.
    weights : ndarray of shape (n_rows,)
        Their weights, which may be 0.
    n_coefficients : int
        Number P of coefficients of the polynomial.

    Attributes
    ----------
    min_rows : int
        Smallest number of rows that an adequate window has, unless they share design points.
    points : DesignPoints
        The design points of the rows.
    """

    def __init__(self, keys, values, weights, n_coefficients):
        self._weight_needed = _ROWS_PER_COEFFICIENT * n_coefficients  # in rows of weight 1
        self.min_rows = math.ceil(self._weight_needed)
        weighted = np.flatnonzero(weights)
        self._weights, self._total = weights, weights.sum()
        self.points = DesignPoints(keys, weighted)
        self._n_rows = len(weighted)
        # True for a row that has no copy, and for one that is alone at its design point.
        self._is_single = self._is_alone = weights > 0
        if self.points.has_repeats:
            self._is_alone = _is_unique(self.points.labels, weighted, len(weights))
            # Copies of a row have one label.
            labels = _labels(values[weighted], self.points.labels)
            n_distinct = 1 + labels.max()
            if 1 + _labels(values[weighted], 0).max() >= DISTINCT * n_distinct:
                self._n_rows = n_distinct
                self._is_single = _is_unique(labels, weighted, len(weights))

    def of_windows(self, weight, inverse_leverage):
        """Compute the adequacy of windows, an array of the shape of `weight`.

        `weight` is the weight W of each window, and `inverse_leverage` that of its query, or 0
        if no row repeats the key of another.
        """
        n_rows, n_points = self._n_rows, self.points.n_points
        return self._evaluate(weight, self._total, inverse_leverage, n_rows, n_points)

    def without_rows(self, rows, weight, inverse_leverage, without_point, left_out=None):
        """Compute the adequacy (n,) of windows each of which leaves out one of `rows` (n,).

        `weight` is the weight W without the row, and `inverse_leverage` is as for
        :meth:`of_windows`. `without_point` is the inverse leverage in a fit that leaves out a
        design point; it counts for a row that is alone at its design point. If windows leave
        out several rows each, ``left_out`` (n, 2) has the first of them and one past the last.
        Only rows without a copy then reduce the number of rows, and only rows that are alone
        reduce the number of design points.
        """
        is_single, is_alone = self._is_single[rows], self._is_alone[rows]
        weight_left_out = self._weights[rows]
        inverse_leverage = np.where(is_alone, without_point, inverse_leverage)
        if left_out is not None:
            # A sum over a range is the difference of two cumulative sums.
            first, stop = left_out.T
            sums = self._sums_before[:, stop] - self._sums_before[:, first]
            weight_left_out, is_single, is_alone = sums
        total = self._total - weight_left_out
        n_rows, n_points = self._n_rows - is_single, self.points.n_points - is_alone
        return self._evaluate(weight, total, inverse_leverage, n_rows, n_points)

    @functools.cached_property
    def _sums_before(self):
        """Sums over the rows before each, and over all rows last, (3, n_rows + 1).

        They are those of the weights, and the numbers of rows without a copy and of rows that
        are alone at their design point.
        """
        sums = np.cumsum([self._weights, self._is_single, self._is_alone], axis=1)
        return np.pad(sums, ((0, 0), (1, 0)))

    def _evaluate(self, weight, total, inverse_leverage, n_rows, n_points):
        """Evaluate the formula for windows of weight W, with T, 1 / leverage, n and n_0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            by_rows, by_points = (
                weight / total / np.minimum(self._weight_needed / np.maximum(n, 1), 1 / 2)
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


class WindowResults(NamedTuple):
    """What is computed in windows, such as predictions, and the adequacy of each window."""

    adequacy: Any  # (n_queries,), or (n_queries, n_keys) for windows without each key
    results: list  # arrays whose first axes are those of the adequacy

    def move_towards(self, wider, rows=slice(None)):
        """Move results of inadequate windows towards those of windows twice as wide, in place.

        `wider` are the `WindowResults` of the queries at the positions `rows`, in the wider
        windows. Where the wider window is adequate, a result is interpolated to an adequacy of
        1; elsewhere it becomes that of the wider window.
        """
        adequacy, wider_adequacy = self.adequacy[rows], wider.adequacy
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            to_adequate = (1 - adequacy) / (wider_adequacy - adequacy)
        # The weight of the results in the wider window, from 0 to 1.
        weight = np.where(wider_adequacy >= 1, to_adequate, 1.0)
        weight = np.where(adequacy < 1, weight, 0.0)
        for result, wider_result in zip(self.results, wider.results, strict=True):
            n_further_axes = result.ndim - weight.ndim
            result_weight = weight.reshape(weight.shape + (1,) * n_further_axes)
            result[rows] += result_weight * (wider_result - result[rows])


def double_windows(evaluate, max_distance):
    """Compute results at queries, in windows that are doubled until they are adequate.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(n_doublings, rows)`` returns a list of `WindowResults` for the queries at the
        positions `rows`, in windows that were doubled `n_doublings` times. There are several if
        a query has several windows, such as with all keys and without each key.
    max_distance : float
        Largest distance of a query from any row, in bandwidths. No window is doubled much
        beyond this distance, since it then has all rows.

    Returns
    -------
    results : list of lists of arrays
        The results of each of the `WindowResults`.
    """
    first = evaluate(0, slice(None))
    # The arrays of results are moved in place. The adequacy is that of the widest windows yet.
    current = [windows._replace(adequacy=windows.adequacy.copy()) for windows in first]
    rows = np.arange(len(current[0].adequacy))
    max_doublings = 2 + int(np.ceil(np.log2(np.clip(max_distance, 1.0, LARGEST))))
    for n_doublings in range(1, max_doublings + 1):
        # 1. Only queries with a window that is not adequate are computed again.
        is_inadequate = np.zeros(len(rows), dtype=bool)
        for windows in current:
            is_inadequate |= (windows.adequacy[rows] < 1).reshape(len(rows), -1).any(axis=1)
        rows = rows[is_inadequate]
        if not len(rows):
            break
        for windows, wider in zip(current, evaluate(n_doublings, rows), strict=True):
            # 2. Their results are moved towards those of windows twice as wide.
            windows.move_towards(wider, rows)
            # 3. A window that was adequate before is not doubled again, whatever the other
            # windows of the query need.
            adequacy = windows.adequacy[rows]
            windows.adequacy[rows] = np.where(adequacy < 1, wider.adequacy, np.inf)
    return [windows.results for windows in current]


class RowsInDoubledWindows:
    """Training rows, predicted with and without themselves in windows that are doubled.

    Parameters
    ----------
    rows : _PredictedRows
        The rows of `_leave_one_out`, in windows that are not doubled.
    X : ndarray of shape (n_keys, n_features)
        The keys in their own units.
    degree : int
        Degree of the polynomials.
    """

    def __init__(self, rows, X, degree):
        problem, self._rows = rows.problem, rows
        columns = problem.kernel.numeric_columns(problem.keys.shape[1])
        n_coefficients = Basis(degree, len(columns)).size
        self._adequacy = WindowAdequacy(X, problem.values, problem.weights, n_coefficients)
        self.min_rows, self._points = self._adequacy.min_rows, self._adequacy.points
        largest_range = np.ptp(problem.keys[:, columns], axis=0).max(initial=0.0)
        # Largest distance of a query from a row, in bandwidths at scale 1.
        self._max_distance = (1 + 2 * MAX_RANGES) * largest_range
        # A cache of the results at the scales that were tried last, by `_scale_key`. Windows at
        # a scale are the doubled windows of half this scale.
        self._results_at_scales = {}
        if self._points.has_repeats:
            # The adequacy depends on leverages in a fit to the design points. They come from a
            # problem whose keys and queries are these points, all of weight 1.
            first_rows = self._points.first_rows
            self._predicted_points = rows.of_problem(
                replace(
                    problem,
                    queries=problem.keys[first_rows],
                    keys=problem.keys[first_rows],
                    values=problem.values[first_rows][:, :0],
                    weights=np.ones(len(first_rows)),
                    left_out=key_ranges(np.arange(len(first_rows))),
                )
            )

    def predict(self, scales):
        """Yield predictions without the row and with it, and leverages, at each scale.

        They are the fields of `Predictions` in `_leave_one_out`.
        """
        n_rows, results_by_position = len(self._rows.values), {}
        predictions = list(self._rows.predict(scales))
        # The largest scale comes first, so that the results at twice a scale are in the cache
        # if this is one of the scales.
        for k in np.argsort(-scales):
            row_scales = np.full(n_rows, scales[k])
            results = self._results(np.arange(n_rows), row_scales, predictions[k])
            wider_results = self._results_at_scales.get(_scale_key(2 * scales[k]))
            if wider_results is None:
                self._double(results, row_scales)
            else:
                for windows, wider in zip(results, wider_results, strict=True):
                    windows.move_towards(wider)
            self._remember(scales[k], results)
            results_by_position[k] = results
        for k in range(len(scales)):
            without_row, with_row = results_by_position[k]
            yield *without_row.results, *with_row.results

    def _double(self, results, row_scales):
        """Replace results, in place, by those in adequate windows.

        `row_scales` (n_rows,) are the scales of the windows before; all are equal.
        """

        def evaluate(n_doublings, rows):
            if n_doublings == 0:
                return results
            return self._results(rows, row_scales[rows] * 2.0**n_doublings)

        double_windows(evaluate, self._max_distance / row_scales[0])

    def _results(self, rows, scales, predictions=None):
        """Return the `WindowResults` without each row, and those with it.

        The former have the prediction of the row, the latter its prediction and its leverage.
        `rows` are positions of the rows, ``scales`` (n,) those of their windows, and
        `predictions` the five results of `_PredictedRows.each` for these, if they are known.
        """
        keys, weights = self._rows.own_key[rows], self._rows.weights[rows]
        if predictions is None:
            predictions = self._rows.each(rows, scales)
        left_out, fitted, leverage, own_weight_outside_block, own_weight = predictions
        # A row of weight w has the own weight s = w / (w + W), where W is the weight of the
        # other rows in the window. So the window has the weight w / s with the row, and
        # W = w (1 - s) / s without it. If a block is left out, W is that outside the block.
        with np.errstate(divide="ignore"):
            window_weight = weights / own_weight
            weight_without = weights * (1 - own_weight_outside_block) / own_weight_outside_block
        inverse_leverage = self._inverse_leverage(keys, scales)
        # Without its own point, whose leverage is h, a point has the leverage h / (1 - h): the
        # inverse is 1 / h - 1.
        adequacy_without = self._adequacy.without_rows(
            keys,
            weight_without,
            inverse_leverage,
            without_point=inverse_leverage - 1,
            left_out=None if self._rows.h_block is None else self._rows.h_block[rows],
        )
        adequacy = self._adequacy.of_windows(window_weight, inverse_leverage)
        without_row = WindowResults(adequacy_without, [left_out])
        return [without_row, WindowResults(adequacy, [fitted, leverage])]

    def _remember(self, scale, results):
        """Remember the results at a scale, and forget the oldest if there are too many."""
        self._results_at_scales[_scale_key(scale)] = results
        n_numbers = sum(
            array.size for windows in results for array in (windows.adequacy, *windows.results)
        )
        max_remembered = max(1, IN_MEMORY // 2 // n_numbers)
        for oldest in list(self._results_at_scales)[:-max_remembered]:
            del self._results_at_scales[oldest]

    def _inverse_leverage(self, keys, scales):
        """Return the inverse leverages (n,) of the rows `keys`, each at its own scale.

        The adequacy of windows depends on them only if rows repeat the key of another;
        otherwise the result is 0.
        """
        if not self._points.has_repeats:
            return 0.0
        points = self._points.point_of_rows[keys]
        # Rows at one design point and scale have the same leverage, so each such pair, as a
        # complex number, is computed once.
        _, first, inverse = np.unique(
            points + 1j * scales, return_index=True, return_inverse=True
        )
        _, _, leverage, _, _ = self._predicted_points.each(points[first], scales[first])
        return 1 / leverage[inverse]


def _scale_key(scale):
    """Round the logarithm of a scale: scales that differ by rounding have the same key."""
    return round(float(np.log2(scale)), 9)
