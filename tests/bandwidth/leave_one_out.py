"""The leave-one-out error at a bandwidth, which searches make small."""

import numpy as np

from sklearn_attention.attention import LeaveOneOut


def leave_one_out_error(X, values, kernel, bandwidth, **options):
    """Infinite where a row has no prediction."""
    rows = LeaveOneOut(X, values, kernel, bandwidth=bandwidth, **options)
    error = rows.scores([1.0]).left_out[0]
    return np.inf if np.isnan(error) else float(error)
