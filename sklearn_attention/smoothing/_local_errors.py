"""How large leave-one-out errors are around queries, in windows of many rows."""

import numpy as np

from .. import attention
from ..bandwidth import select_bandwidth
from ._training_rows import left_out_errors

# Spreads and distributions are of so many errors that a row's own error, which has left its
# mark on its neighbours' errors, hardly matters: the bandwidth is widened until the rows' own
# shares are one in so many.
ROWS_OF_SPREADS, ROWS_OF_QUANTILES = 20, 40
_WIDENINGS = 2.0 ** np.arange(0, 10, 0.5)
# The factor is found on a sample of so many rows.
_SAMPLED_ROWS = 2000
# A spread below this share of the mean spread is rounding.
_SMALLEST_SPREAD = 1e-3


def widened(smoother, n_rows):
    """The smoother with averages over so many rows at least."""
    memo = f"windows of {n_rows}"
    if memo not in smoother.memo:
        smoother.memo[memo] = _widening(smoother, smoother.table, n_rows)
    return smoother.replace(factor=smoother.memo[memo], empty="nearest")


def local_sizes(smoother, X, random_state):
    """Local mean absolute errors: at queries, and at training rows without themselves."""
    errors = left_out_errors(smoother)
    sizes = np.abs(errors)
    if "spread" not in smoother.memo:
        bandwidth, *_ = select_bandwidth(
            smoother.keys, sizes, smoother.kernel, sample_weight=smoother.key_weights,
            random_state=random_state, empty="nearest", device=smoother.device,
        )  # fmt: skip
        window = {"bandwidth": bandwidth, "n_neighbors": None, "empty": "nearest"}
        window["factor"] = _widening(smoother.replace(**window), errors, ROWS_OF_SPREADS)
        leave_one_out = _leave_one_out(smoother.replace(**window), sizes)
        there = np.broadcast_to(sizes.mean(axis=0), sizes.shape).copy()
        there[leave_one_out.rows] = leave_one_out.predictions().left_out
        smoother.memo["spread"] = window, there
    window, there = smoother.memo["spread"]
    here = smoother.replace(**window).average(X, sizes)
    smallest = _SMALLEST_SPREAD * sizes.mean(axis=0) + np.finfo(np.float64).tiny
    return np.maximum(here, smallest), np.maximum(there, smallest)


def _widening(smoother, errors, n_rows):
    """Factor on the bandwidth at which a row's own share is one in so many."""
    counts = smoother.counts
    rows = np.flatnonzero(counts)
    few = np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLED_ROWS)).astype(int)
    rows = rows[few]
    leave_one_out = _leave_one_out(smoother, errors, rows)
    scale = smoother.scale(smoother.keys[rows])
    most = counts[rows].sum() / n_rows
    for wider in _WIDENINGS:
        scales = [wider] if scale is None else [wider * scale]
        if leave_one_out.scores(scales).trace[0] <= most:
            break
    return wider


def _leave_one_out(smoother, values, rows=None):
    return attention.LeaveOneOut(
        smoother.keys.astype(np.float64), values, smoother.kernel, bandwidth=smoother.divisors,
        sample_weight=smoother.key_weights, rows=rows, device=smoother.device,
    )  # fmt: skip
