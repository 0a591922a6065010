"""Windows that are widened until the weight of enough rows is in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Weight that a window is to have, in rows for each coefficient of its polynomial, and at most
# this share of all rows: that of three rows for a line in one feature, of which two would do.
_ROWS_PER_COEFFICIENT, _MOST = 1.5, 0.5
# Windows are doubled so often, at most: from there all rows weigh alike.
_MOST_DOUBLINGS = 64


@dataclass(frozen=True)
class Needed:
    """Weight that windows are to have: of all rows, and (n_samples,) of all but each."""

    of_all: float
    without: Any


def needed_weight(keys, weights, n_coefficients):
    """What windows over some rows are to have, in rows of mean weight.

    Rows at one place count as one row, so that repeated rows are like one of larger weight.
    """
    # The same for rows that are equal, and hardly ever for others.
    directions = np.random.default_rng(0).uniform(1, 2, keys.shape[1])
    _, place, counts = np.unique(
        (keys * directions).sum(axis=1)[weights > 0], return_inverse=True, return_counts=True
    )
    alone = np.zeros(len(keys))
    alone[weights > 0] = counts[place] == 1
    most = _ROWS_PER_COEFFICIENT * n_coefficients

    def needed(weight, n_places):
        return weight * np.minimum(most / np.maximum(n_places, 1), _MOST)

    total = weights.sum()
    return Needed(needed(total, len(counts)), needed(total - weights, len(counts) - alone))


def widen(smoother, evaluate, needed, reach):
    """Fields (n, ...) at queries, in windows that are doubled until they have the weight needed.

    ``evaluate(smoother, rows)`` returns weights (n_rows, ...) of the windows of some queries, and
    fields of these. Between two windows fields are in between, in proportion with the weight
    that is missing, so that they are continuous in the query. Windows need not be wider than
    `reach`, in bandwidths.
    """
    weight, *found = evaluate(smoother, slice(None))
    rows, needed = np.arange(len(weight)), np.broadcast_to(needed, weight.shape)
    most = min(_MOST_DOUBLINGS, 2 + int(np.ceil(np.log2(max(reach, 1.0)))))
    for times in range(1, most + 1):
        short = weight < needed[rows]
        some = short.reshape(len(rows), -1).any(axis=1)
        rows, weight, short = rows[some], weight[some], short[some]
        if not len(rows):
            break
        wider, *fields = evaluate(smoother.doubled(times), rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (needed[rows] - weight) / (wider - weight)
        share = np.where(short, share.clip(0, 1), 0.0)
        for field, x in zip(found, fields, strict=True):
            own = share.reshape(share.shape + (1,) * (x.ndim - share.ndim))
            field[rows] += own * (x - field[rows])
        weight = np.where(short, wider, np.inf)
    return found
