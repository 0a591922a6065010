"""Training rows with the largest weights in a prediction."""

from typing import NamedTuple

import numpy as np

from ._blocks import IN_MEMORY, blocks
from ._validation import check_positive

_BLOCK_PAIRS = IN_MEMORY // 2


class Explanation(NamedTuple):
    """Training rows of largest weight in each prediction, the heaviest first.

    Attributes
    ----------
    indices : ndarray of shape (n_queries, k)
        Rows of the training data.
    weights : ndarray of shape (n_queries, k) or (n_queries, k, n_outputs)
        Their weights in the average; for each output where they differ, as those of
        :class:`KernelAttentionRegressor` do. All training rows together have weight 1; weights
        are negative only for signed kernels, and ordered by absolute value.
    values : ndarray of shape (n_queries, k) or (n_queries, k, n_outputs)
        Their targets.
    """

    indices: np.ndarray
    weights: np.ndarray
    values: np.ndarray


def heaviest(weights_of, X, n_keys, k):
    """Positions (n_queries, k) and weights of the k heaviest keys of every query.

    ``weights_of(X[rows])`` returns the weights of some queries, (n_rows, n_keys), or for each
    output, (n_rows, n_keys, n_outputs), of which the largest decides.
    """
    k = min(check_positive("k", k, integer=True), n_keys)
    indices, weights = [], []
    for rows in blocks(len(X), max(1, _BLOCK_PAIRS // n_keys)):
        block = weights_of(X[rows])
        size = np.abs(block).reshape(*block.shape[:2], -1).max(axis=-1)
        # Of equal ones the first.
        top = np.sort(np.argpartition(-size, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(-np.take_along_axis(size, top, axis=1), axis=1, kind="stable")
        top = np.take_along_axis(top, order, axis=1)
        indices.append(top)
        weights.append(block[np.arange(len(block))[:, None], top])
    return np.concatenate(indices), np.concatenate(weights)
