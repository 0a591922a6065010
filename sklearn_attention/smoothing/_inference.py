"""Quantiles behind intervals: jackknife+, and weighted quantiles of values."""

import math

import numpy as np

# Rounding must not push a quantile to the next value.
_SLACK = 1e-12


class JackknifeIntervals:
    """Jackknife+ prediction intervals, from leave-one-out errors :math:`R_i` (n, n_outputs)."""

    # From the quantile alpha of m_without_i(x) - s(x) R_i to the quantile 1 - alpha of
    # m_without_i(x) + s(x) R_i. A row moves the prediction by delta at most. So the quantile of
    # all R_i, which are sorted once, is off by delta / s(x) at most, and a row whose R_i is
    # further than twice that from it is on a known side of the end: only the others are sorted
    # for each query.

    def __init__(self, errors, coverage):
        self._order = np.argsort(errors, axis=0)
        self._errors = np.take_along_axis(errors, self._order, axis=0)
        # The end is at this error, counted from 0.
        self._place = math.ceil(coverage * (len(errors) + 1) * (1 - _SLACK)) - 1

    def around(self, values, left_out, scale):
        """Intervals (n, 2, n_outputs) of queries; infinite where rows are too few.

        Of predictions (n, n_outputs), those without each row (n, n_samples, n_outputs), and s.
        """
        intervals = np.empty((len(values), 2, values.shape[1]))
        if self._place >= len(self._errors):
            intervals[:, 0], intervals[:, 1] = -np.inf, np.inf
            return intervals
        for output in range(values.shape[1]):
            without, factor = left_out[:, :, output], scale[:, output, None]
            moves = np.abs(without - values[:, output, None]).max(axis=1)
            furthest = np.max((moves + _SLACK * np.abs(values[:, output])) / factor[:, 0])
            rows, errors, place = self._near_the_end(output, furthest)
            without, errors = without[:, rows], errors * factor
            for end, ends in enumerate((errors - without, errors + without)):
                intervals[:, end, output] = np.partition(ends, place, axis=1)[:, place]
        intervals[:, 0] *= -1
        return intervals

    def _near_the_end(self, output, furthest):
        """Rows that an end may be at, their errors, and the end's place among them."""
        errors = self._errors[:, output]
        near, end = slice(0, len(errors)), errors[self._place]
        if np.isfinite(furthest) and np.isfinite(end):
            reach = (2 + _SLACK) * furthest + _SLACK * end
            near = slice(
                np.searchsorted(errors, end - reach),
                np.searchsorted(errors, end + reach, side="right"),
            )
        return self._order[near, output], errors[near], self._place - near.start


def weighted_quantiles(values, weights, quantiles):
    """Smallest values whose weights up to there reach each quantile, (n_queries, n_quantiles).

    Weights (n_queries, n_samples) are not negative, and rows sum to 1.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[:, order], axis=1)
    needed = np.asarray(quantiles) * reached[:, -1:] * (1 - _SLACK)
    first = [(reached >= column[:, None]).argmax(axis=1) for column in needed.T]
    return values[order][np.stack(first, axis=1)]
