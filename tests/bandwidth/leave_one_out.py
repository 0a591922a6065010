"""The leave-one-out error at a bandwidth, which searches make small."""

import numpy as np

from sklearn_attention.attention import LeaveOneOut
from sklearn_attention.bandwidth._criteria import SMOOTHER_CRITERIA


def leave_one_out_error(X, values, kernel, bandwidth, **options):
    """Infinite where a row has no prediction."""
    rows = LeaveOneOut(X, values, kernel, bandwidth=bandwidth, **options)
    error = rows.scores([1.0]).left_out[0]
    return np.inf if np.isnan(error) else float(error)


def criteria(X, values, kernel, bandwidths, criterion="loo", **options):
    """A criterion at each of some bandwidths, of rows of positive weight."""
    found = [
        SMOOTHER_CRITERIA[criterion](
            LeaveOneOut(X, values, kernel, bandwidth=bandwidth, **options).scores([1.0]), len(X)
        )
        for bandwidth in bandwidths
    ]
    return np.nan_to_num(np.concatenate(found), nan=np.inf, posinf=np.inf)
