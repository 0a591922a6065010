"""Predictions of a smoother for its own rows, with and without themselves."""

import numpy as np

from .._partitions import need_all_rows
from ..attention._average import attend
from ..attention._leave_one_out import Predictions


def predict_rows(smoother, measured):
    """Predictions of all rows; how far windows reach is measured in those of a smoother."""
    leave_one_out = smoother.leave_one_out()
    rows = leave_one_out.rows
    if measured.n_neighbors is None:
        predictions = leave_one_out.predictions()
    else:
        # If a row is left out, it is no neighbour of itself, and the bandwidth is larger.
        scale, next_scale = (measured.scale(measured.keys[rows], more=k) for k in (0, 1))
        predictions = leave_one_out.predictions(scale)
        left_out = leave_one_out.predictions(next_scale).left_out
        predictions = predictions._replace(left_out=left_out)
    n_rows = len(smoother.keys)
    if len(rows) == n_rows:
        return predictions
    # Rows of weight 0 are left out anyway.
    everywhere = measured.predict(measured.keys).reshape(n_rows, -1)
    fields = everywhere.copy(), everywhere, np.zeros(n_rows)
    for field, known in zip(fields, predictions, strict=True):
        field[rows] = known
    return Predictions(*fields)


def predict_by_sums(smoother):
    """The same of averages, by sums over all rows and over all others, wherever these are."""
    if smoother.local:
        need_all_rows(
            "predictions of own rows by local polynomials", smoother.keys,
            remedy="pass degree=0, or fit rows in memory",
        )  # fmt: skip
    options = {"bandwidth": smoother.divisors, "sample_weight": smoother.key_weights}
    options |= {"empty": smoother.empty, "algorithm": smoother.algorithm}
    tables = smoother.keys, smoother.keys, smoother.table, smoother.kernel
    left_out, log_others = attend(*tables, leave_one_out=True, **options)
    fitted, log_all = attend(*tables, **options)
    # A row of weight 0 that no other reaches has no share in nothing.
    reached = log_all > -np.inf
    log_rest = np.where(reached, log_others, 0.0) - np.where(reached, log_all, 0.0)
    return Predictions(left_out, fitted, -np.expm1(log_rest))
