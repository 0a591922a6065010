"""Predictions of a smoother for its own rows, with and without themselves."""

import numpy as np

from .._blocks import blocks_of_queries
from .._partitions import need_all_rows
from ..attention._average import attend
from ..attention._leave_one_out import Predictions


def predict_rows(smoother, measured):
    """Predictions of all rows; how far windows reach is measured in those of a smoother."""
    keys, leave_one_out = smoother.keys, smoother.leave_one_out()
    rows = leave_one_out.rows
    if measured.n_neighbors is None:
        found = leave_one_out.predictions()
    else:
        # Left out, a row is no neighbour of itself, and the bandwidth is another.
        further = measured.scale(measured.keys[rows], more=1)
        left_out, own = leave_one_out.predictions(further).left_out, []
        for part in blocks_of_queries(len(rows), len(keys)):
            places = rows[part]
            scale = measured.scale(measured.keys[places])
            local = smoother.local_rows(keys[places], query_scale=scale)
            own.append((local.values, local.effects[np.arange(len(places)), places]))
        fitted, leverage = (np.concatenate(field) for field in zip(*own, strict=True))
        found = Predictions(left_out, fitted, leverage)
    if len(rows) == len(keys):
        return found
    # Rows of weight 0 are left out anyway.
    everywhere = measured.predict(measured.keys).reshape(len(keys), -1)
    fields = everywhere.copy(), everywhere, np.zeros(len(keys))
    for field, known in zip(fields, found, strict=True):
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
