"""Windows that are widened until the weight of enough rows is in them."""

import numpy as np

from .._blocks import blocks

# Weight that a window is to have, in rows for each coefficient of its polynomial, and at most
# this share of all rows: that of three rows for a line in one feature, of which two would do.
_ROWS_PER_COEFFICIENT, _MOST = 1.5, 0.5
# Rows whose places are found at a time.
_BLOCK_ROWS = 2**14
# Windows are doubled so often, at most: from there all rows weigh alike.
_MOST_DOUBLINGS = 64


def weight_needed(keys, weights, n_coefficients):
    """Weight that windows over some rows are to have, in rows of mean weight.

    Rows at one place count as one row, so that repeated rows are like one of larger weight.
    """
    places = _places(keys, weights)
    places.sort()
    n_places = np.count_nonzero(places[1:] != places[:-1]) + 1
    return _needed(weights.sum(), n_places, n_coefficients)


def weight_needed_without(keys, weights, n_coefficients):
    """The same over all rows but each, (n_samples,)."""
    _, place, counts = np.unique(
        _places(keys, weights), return_inverse=True, return_counts=True
    )
    n_places = np.full(len(keys), len(counts))
    n_places[weights > 0] -= counts[place] == 1
    return _needed(weights.sum() - weights, n_places, n_coefficients)


def _needed(weight, n_places, n_coefficients):
    rows = _ROWS_PER_COEFFICIENT * n_coefficients
    return weight * np.minimum(rows / np.maximum(n_places, 1), _MOST)


def _places(keys, weights):
    """A number for the place of each row that has weight, different for nearly all places."""
    directions = np.random.default_rng(0).uniform(1, 2, keys.shape[1])
    with np.errstate(over="ignore"):
        parts = [
            (keys[rows] * directions).sum(axis=1)[weights[rows] > 0]
            for rows in blocks(len(keys), _BLOCK_ROWS)
        ]
    return np.concatenate(parts)


def widen(smoother, evaluate, needed, reach):
    """Fields (n, ...) at queries, in windows doubled until they have the weight needed."""
    # `evaluate(smoother, rows)` returns weights (n_rows, ...) of the windows of some queries,
    # and their fields. Results lie between those of the last two windows, in proportion with
    # the missing weight, so that they are continuous in the query. No window is wider than
    # needed for a distance of `reach` bandwidths.
    weight, *found = evaluate(smoother, slice(None))
    rows, needed = np.arange(len(weight)), np.broadcast_to(needed, weight.shape)
    most = 2 + int(np.ceil(np.log2(np.clip(reach, 1.0, 2.0**_MOST_DOUBLINGS))))
    for times in range(1, most + 1):
        short = weight < needed[rows]
        some = short.reshape(len(rows), -1).any(axis=1)
        rows, weight, short = rows[some], weight[some], short[some]
        if not len(rows):
            break
        wider, *fields = evaluate(smoother.doubled(times), rows)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = (needed[rows] - weight) / (wider - weight)
        share = np.where(short, share.clip(0, 1), 0.0)
        for field, x in zip(found, fields, strict=True):
            own = share.reshape(share.shape + (1,) * (x.ndim - share.ndim))
            field[rows] += own * (x - field[rows])
        weight = np.where(short, wider, np.inf)
    return found
