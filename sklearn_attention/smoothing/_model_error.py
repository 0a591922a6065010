r"""Errors of a smoother's model: how they grow where rows are few, and beyond the rows.

A prediction is a sum :math:`\sum_i l_i y_i` with the hat-matrix weights :math:`l_i` of the rows
at :math:`x_i`, in bandwidths. Three numbers (`RowDistances`) tell how far the rows are from the
query x:

.. math:: r = \sqrt{\frac{\sum_i |l_i|\, \|x_i - x\|^2}{\sum_i |l_i|}}, \quad
          a = \sum_i |l_i|, \quad
          o = \Bigl\|\sum_i l_i (x_i - x)\Bigr\|

The squared error of the model, in units of the variance of the noise, is (`ModelError`)

.. math:: b^2 = e(r / r_0)^2\, a^2 + s^2 o^2,

where :math:`r_0` is the median of r over leave-one-out predictions of the rows. The rows in a
window that is wider by a factor of :math:`r / r_0` are at a root mean square distance of r. In
such windows, squared leave-one-out residuals are larger than at the bandwidth in use; their
growth is :math:`e^2`. Averages of rows on one side of the query are wrong by a slope, s, in
addition.
"""

from typing import Any, NamedTuple

import numpy as np

from .._blocks import evenly_spread
from .._column_stats import order_columns
from ..kernels._numerics import LARGEST

# Factors on the bandwidth, from 1, at which errors and windows are measured.
BANDWIDTH_FACTORS = 2.0 ** np.arange(0, 10, 0.5)
# The growth of residuals in wider windows is measured at no more rows than these.
_MAX_ROWS = 1000
# The growth of errors is half its mean over all rows, and half its mean over the cell of rows
# where this is largest. Cells are made by halving the rows this many times.
_HALVINGS = 2


class RowDistances(NamedTuple):
    """Distances of the rows that predictions rest on, each (n_predictions,); see above."""

    rms: Any  # root mean square distance r, weighted by absolute hat-matrix weights
    total_weight: Any  # sum a of the absolute hat-matrix weights
    offset: Any  # distance o of the query from the rows' mean, weighted by hat-matrix weights


def row_distances(queries, rows, hat_weights):
    """Compute the `RowDistances` of predictions at queries (m, d) from rows (n, d).

    Both are in bandwidths; ``hat_weights`` (m, n) are the rows of the hat matrix.
    """
    absolute_weights, center = np.abs(hat_weights), rows.mean(axis=0)
    total_weight = absolute_weights.sum(axis=1)
    # The center is subtracted, so that squares neither cancel nor overflow.
    rows, queries = rows - center, (queries - center).clip(-LARGEST, LARGEST)
    # The weighted sum of the squared distances, |x_i|^2 + |x|^2 - 2 x_i'x.
    squared = absolute_weights @ (rows**2).sum(axis=1)
    squared = squared + total_weight * (queries**2).sum(axis=1)
    squared -= 2 * ((absolute_weights @ rows) * queries).sum(axis=1)
    offset = hat_weights @ rows - hat_weights.sum(axis=1)[:, None] * queries
    rms = np.sqrt(squared.clip(0) / np.where(total_weight > 0, total_weight, 1.0))
    return RowDistances(rms, total_weight, np.linalg.norm(offset, axis=1))


class ModelError:
    """Squared errors b² of a smoother's model, in units of the variance of the noise.

    Parameters
    ----------
    smoother : FittedSmoother
        The smoother whose predictions have these errors.
    loo_residuals : ndarray of shape (n_rows, n_outputs)
        Its leave-one-out residuals.
    noise_variances : ndarray of shape (n_rows,)
        Variance of the noise of each row, relative to that of a row of mean weight.
    distances : RowDistances
        The distances of the leave-one-out predictions of the rows of positive weight.
    """

    def __init__(self, smoother, loo_residuals, noise_variances, distances):
        self._smoother = smoother
        self._scaled_rows = smoother.scaled_rows(smoother.keys)  # in bandwidths
        self._median_rms = np.median(distances.rms)  # r_0 of the module's docstring
        weighted_rows = self._scaled_rows[smoother.row_weights > 0]
        # Mean squared distance of the rows from their mean, from which the slope s follows.
        self._row_variance = (
            np.square(weighted_rows - weighted_rows.mean(axis=0)).sum(axis=1).mean()
        )
        # The growth e^2 of squared residuals, at the logarithms of factors on the bandwidth.
        self._log_factors, self._growth = self._measure_growth(
            weighted_rows, loo_residuals, noise_variances
        )

    def sizes(self, X, hat_weights):
        """Return the sizes b of the model's errors at queries, (n_queries, n_outputs).

        ``hat_weights`` (n_queries, n_rows) are the rows of the hat matrix at the queries.
        """
        distances = row_distances(self._smoother.scaled_rows(X), self._scaled_rows, hat_weights)
        return np.sqrt(self.squares(distances))

    def squares(self, distances):
        """Return the squared errors b² of predictions with these `RowDistances`.

        The shape is (n_predictions, n_outputs).
        """
        # If the rows that predictions rest on are at distance 0, nothing is known of the growth
        # of errors.
        rms, total_weight, offset = distances
        if not (self._median_rms > 0 and self._row_variance > 0):
            return np.zeros((len(rms), self._growth.shape[1]))
        log_ratio = np.log2(np.maximum(rms / self._median_rms, 1.0))
        growth = [np.interp(log_ratio, self._log_factors, output) for output in self._growth.T]
        # Errors grow at least by sqrt(2) over half of the rows' extent: evenly spread rows have
        # the variance (extent / 2)^2 / 3.
        min_growth = (rms - self._median_rms).clip(0) ** 2 / (3 * self._row_variance)
        squares = np.maximum(growth, min_growth).T * total_weight[:, None] ** 2
        # The squared slope s² is the growth in the widest windows, which have nearly all rows,
        # divided by the variance of the rows: a line with this slope would alone explain all
        # that the rows explain.
        squared_slope = self._growth[-1] / self._row_variance
        return squares + squared_slope * offset[:, None] ** 2

    def _measure_growth(self, rows, loo_residuals, noise_variances):
        """Measure by how much squared leave-one-out residuals grow in wider windows.

        `rows` (n, d) are those of positive weight, in bandwidths. Returns the base-2 logarithms
        of factors on the bandwidth, (n_factors,), and the growth e² at each, relative to the
        squared residuals at factor 1, (n_factors, n_outputs).
        """
        # 1. Sample rows, and compute their squared residuals at the bandwidth in use.
        smoother, weighted = self._smoother, np.flatnonzero(self._smoother.row_weights)
        sample = evenly_spread(np.arange(len(weighted)), _MAX_ROWS)
        positions, rows = weighted[sample], rows[sample]
        values, weights = smoother.values_2d[positions], np.ones(len(positions))
        robustness = smoother.error_settings.robustness
        if robustness is not None and robustness[positions].any():
            weights = robustness[positions]
        variances = noise_variances[positions][:, None]
        squares = np.nan_to_num(loo_residuals[positions] ** 2 / variances)
        mean_square = np.average(squares, axis=0, weights=weights)
        # 2. Compute how much the squares rise in wider windows, until these have all rows.
        cells = [cell for cell in _kd_cells(rows, values) if weights[cell].any()]
        log_factors, growths = [0.0], [0 * mean_square]
        max_distance = 2 * np.linalg.norm(np.ptp(rows, axis=0))
        wider = BANDWIDTH_FACTORS[1:]
        for factor in wider[wider * self._median_rms < max_distance]:
            residuals = smoother.predict_left_out(positions, factor) - values
            rise = np.nan_to_num(residuals**2 / variances - squares)
            growth = _mean_of_overall_and_worst(rise, weights, cells)
            growth = np.divide(growth, mean_square, where=mean_square > 0, out=0 * mean_square)
            log_factors.append(np.log2(factor))
            # By chance the growth may fall, but errors do not fall with the distance.
            growths.append(np.maximum(growth, growths[-1]))
        return np.array(log_factors), np.array(growths)


def _mean_of_overall_and_worst(rise, weights, cells):
    """Return the mean of two averages of `rise` (n, n_outputs): overall and in the worst cell.

    The worst cell is the one with the largest average, output by output. `weights` (n,) are
    those of the rows, and `cells` a list of positions of rows.
    """
    overall = np.average(rise, axis=0, weights=weights)
    of_cells = [np.average(rise[cell], axis=0, weights=weights[cell]) for cell in cells]
    return (overall + np.max(of_cells, axis=0)) / 2


def _kd_cells(rows, values):
    """Split rows (n, d) into k-d tree cells of about equal size.

    Returns a list with the positions of the rows of each cell. The cells are the same in any
    order of the rows and columns: where rows are equal, the values (n, n_outputs) decide.
    """
    # Columns are put into an order that depends on their numbers only.
    rows = rows[:, order_columns(rows, values)] if rows.shape[1] else rows
    cells = [np.arange(len(rows))]
    for _ in range(_HALVINGS if rows.shape[1] else 0):
        halves = []
        for cell in cells:
            # A cell is halved along the column in which it is widest.
            widest_column = rows[cell, np.ptp(rows[cell], axis=0).argmax()]
            order = np.lexsort([*values[cell].T, *rows[cell].T, widest_column])
            halves += np.array_split(cell[order], 2)
        cells = [half for half in halves if len(half)]
    return cells
