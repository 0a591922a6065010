"""Quantiles behind intervals: jackknife+, and weighted quantiles of values."""

import numpy as np

# Rounding in sums of weights must not push a quantile to the next value.
_SLACK = 1e-12


class JackknifeIntervals:
    r"""Jackknife+ prediction intervals, from leave-one-out errors :math:`R_i` (n, n_outputs).

    .. math:: \bigl[\, q^-_{\alpha} \{\hat m_{-i}(x) - s(x) R_i\},\;
                      q^+_{1 - \alpha} \{\hat m_{-i}(x) + s(x) R_i\} \,\bigr]

    A row moves the prediction by :math:`\delta` at most. So the quantile of all
    :math:`R_i`, which are sorted once, is off by :math:`\delta / s(x)` at most, and rows whose
    :math:`R_i` is further than twice that from it are surely on their side of the end: the
    others alone are sorted for each query. The coverage is :math:`1 - \alpha`.
    """

    def __init__(self, errors, weights, coverage):
        self._order = np.argsort(errors, axis=0)
        self._errors = np.take_along_axis(errors, self._order, axis=0)
        self._weights = weights[self._order]
        self._reached = np.cumsum(self._weights, axis=0)
        self._needed = coverage * (weights.sum() + 1) * (1 - _SLACK)

    def around(self, values, left_out, scale):
        """Intervals (n, 2, n_outputs) of queries; infinite where rows are too few.

        Of predictions (n, n_outputs), those without each row (n, n_samples, n_outputs), and by
        what errors are multiplied, :math:`s(x)`, (n, n_outputs).
        """
        intervals = np.empty((len(values), 2, values.shape[1]))
        for output in range(values.shape[1]):
            without, factor = left_out[:, :, output], scale[:, output, None]
            moves = np.abs(without - values[:, output, None]).max(axis=1)
            furthest = np.max((moves + _SLACK * np.abs(values[:, output])) / factor[:, 0])
            rows, errors, weights, needed = self._near_the_end(output, furthest)
            without, errors = without[:, rows], errors * factor
            intervals[:, 0, output] = -_reaching(errors - without, weights, needed)
            intervals[:, 1, output] = _reaching(errors + without, weights, needed)
        return intervals

    def _near_the_end(self, output, furthest):
        """Rows that an end may be at, their errors and weights, and the weight needed."""
        errors, reached = self._errors[:, output], self._reached[:, output]
        near = slice(0, len(errors))
        place = np.searchsorted(reached, self._needed)
        if np.isfinite(furthest) and place < len(errors) and np.isfinite(errors[place]):
            reach = (2 + _SLACK) * furthest + _SLACK * errors[place]
            near = slice(
                np.searchsorted(errors, errors[place] - reach),
                np.searchsorted(errors, errors[place] + reach, side="right"),
            )
        before = reached[near.start - 1] if near.start else 0.0
        rows, weights = self._order[near, output], self._weights[near, output]
        return rows, errors[near], weights, self._needed - before


def _reaching(values, weights, needed):
    """Smallest value up to which the weights of each query's values reach what is needed."""
    order = np.argsort(values, axis=1)
    reached = np.cumsum(weights[order], axis=1)
    first = (reached >= needed).argmax(axis=1)[:, None]
    found = np.take_along_axis(np.take_along_axis(values, order, axis=1), first, axis=1)
    return np.where(reached[:, -1] >= needed, found[:, 0], np.inf)


def weighted_quantiles(values, weights, quantiles):
    """Smallest values whose weights up to there reach each quantile, (n_queries, n_quantiles).

    Weights (n_queries, n_samples) are not negative, and rows sum to 1.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[:, order], axis=1)
    needed = np.asarray(quantiles) * reached[:, -1:] * (1 - _SLACK)
    first = [(reached >= column[:, None]).argmax(axis=1) for column in needed.T]
    return values[order][np.stack(first, axis=1)]
