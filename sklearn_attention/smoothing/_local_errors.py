"""Sizes of leave-one-out errors around queries, in windows of many rows."""

import numpy as np

from .._blocks import evenly_spread
from ..bandwidth import select_bandwidth

# Spreads and distributions are of so many errors that a row's own error, which has left its
# mark on its neighbours' errors, hardly matters: the bandwidth is widened until the rows' own
# shares are one in so many.
ROWS_OF_SPREADS, ROWS_OF_QUANTILES = 20, 40
WIDENINGS = 2.0 ** np.arange(0, 10, 0.5)
# The factor is found on a sample of so many rows.
_SAMPLED_ROWS = 2000
_AVERAGES = {"degree": 0, "empty": "nearest"}
# A spread below this share of the mean spread is rounding.
_SMALLEST_SPREAD = 1e-3


def widened(smoother, n_rows):
    """The smoother with averages over so many rows at least, which count alike."""
    remoteness, smoother = smoother.remoteness_of_rows, smoother.unweighted
    factor = _widening(smoother, smoother.table, n_rows)
    return smoother.replace(factor=factor, empty="nearest", remoteness=remoteness)


def of_sizes(smoother, sizes):
    """The smoother of sizes of errors, and these around each row without its own."""
    smoother = smoother.unweighted
    bandwidth, *_ = select_bandwidth(
        smoother.keys, sizes, smoother.kernel, sample_weight=smoother.key_weights,
        random_state=smoother.random_state, empty="nearest", algorithm=smoother.algorithm,
    )  # fmt: skip
    found = smoother.replace(
        values=sizes, bandwidth=bandwidth, n_neighbors=None, empty="nearest"
    )
    found = found.replace(factor=_widening(found, sizes, ROWS_OF_SPREADS))
    there = left_out_average(found, sizes)
    found = found.replace(remoteness=found.remoteness_of_rows)
    return found, above_rounding(there, sizes)


def above_rounding(spreads, errors):
    """Spreads that may be divided by, of errors (n, outputs) that may all be 0."""
    sizes = np.abs(errors).mean(axis=0)
    return np.maximum(spreads, _SMALLEST_SPREAD * sizes + np.finfo(np.float64).tiny)


def left_out_average(smoother, values):
    """Averages of values around each row without its own; the mean where it has no weight."""
    leave_one_out = smoother.leave_one_out(values, **_AVERAGES)
    found = np.broadcast_to(values.mean(axis=0), values.shape).copy()
    found[leave_one_out.rows] = leave_one_out.predictions().left_out
    return found


def _widening(smoother, values, n_rows):
    """Factor on the bandwidth at which a row's own share is one in so many."""
    rows = evenly_spread(np.flatnonzero(smoother.counts), _SAMPLED_ROWS)
    leave_one_out = smoother.leave_one_out(values, rows=rows, **_AVERAGES)
    scale = smoother.scale(smoother.keys[rows])
    for wider in WIDENINGS:
        scales = [wider] if scale is None else [wider * scale]
        if leave_one_out.scores(scales).trace[0] <= len(rows) / n_rows:
            break
    return wider
