"""Weights by which predictions of rows held out are added up."""

import numpy as np
from scipy.optimize import nnls

# Rounds of reweighting; half and twice as many find the same weights.
_N_ROUNDS = 5


def nonnegative_weights(columns, targets, weights, limit=None):
    """Non-negative (n_columns,) of least squared errors of ``columns @ found``.

    `weights` (n,) are those of the rows. Beyond a `limit` the absolute error counts.
    """
    counts = weights
    for _ in range(1 if limit is None else _N_ROUNDS):
        root = np.sqrt(counts)
        found, _ = nnls(columns * root[:, None], targets * root)
        if limit is not None:
            # Least squares of these weights are those of Huber's loss.
            errors = np.abs(targets - columns @ found)
            counts = weights * limit / np.maximum(errors, limit)
    return found
