"""Weighted averages of the training rows' targets, with a learned kernel."""

from dataclasses import dataclass

import numpy as np

from .._blocks import blocks_of_queries
from ._kernel import LearnedKernel, ScaledKeys
from ._pairs import Pairs


@dataclass(frozen=True)
class AverageMember:
    r"""A fitted average :math:`\hat y(x) = \sum_i w_i(x)\, y_i` with a learned kernel.

    The weight w_i(x) is proportional to the row's weight times K(x, x_i), without the kernel's
    rough, linear and constant parts.
    """

    kernel: LearnedKernel
    rows: np.ndarray  # positions of the training rows that averages are taken over

    def predict(self, training, X, left_out=None):
        """Predict queries, (n_queries, n_outputs).

        `left_out` (n_queries,) is the position among `rows` of the one row that is left out
        for each query, -1 for none.
        """
        targets = training.targets[self.rows]
        averages = [w @ targets for _, w in self._weights(training, X, left_out)]
        return np.concatenate(averages)

    def weights(self, training, X):
        """Return the weight of every training row in the predictions, (n_queries, n)."""
        all_weights = np.zeros((len(X), len(training)))
        for block, weights in self._weights(training, X):
            all_weights[block, self.rows] = weights
        return all_weights

    def slopes(self, training, X):
        """Return 0 as slopes of averages, (n_queries, n_outputs, n_features)."""
        return np.zeros((len(X), training.targets.shape[1], training.X.shape[1]))

    def _weights(self, training, X, left_out=None):
        """Yield blocks of queries, and the weights of `rows` in their averages."""
        keys = ScaledKeys.from_rows(self.kernel, training.coordinates(self.rows, np.float64))
        queries, row_weights = training.queries(X), training.weights[self.rows]
        for block in blocks_of_queries(len(X), len(self.rows)):
            left_out_of_block = None if left_out is None else left_out[block]
            coordinates = queries.coordinates(block, np.float64)
            pairs = AveragePairs(self.kernel, coordinates, keys, row_weights, left_out_of_block)
            yield block, pairs.weights


class AveragePairs(Pairs):
    """Weights of keys in averages, from the smooth parts of a kernel, and their gradient.

    Parameters
    ----------
    kernel, queries, keys
        As for `Pairs`; the kernel has smooth parts only.
    row_weights : ndarray of shape (n_keys,)
        Weights of the keys, which their kernel is multiplied by.
    left_out : ndarray of int of shape (n_queries,), default=None
        Position of the one key that is left out for each query, -1 for none.

    Attributes
    ----------
    weights : ndarray of shape (n_queries, n_keys)
        Rows sum to 1.
    """

    def __init__(self, kernel, queries, keys, row_weights, left_out=None):
        self._row_weights, self._left_out = row_weights.astype(queries[0].dtype), left_out
        super().__init__(kernel, queries, keys)
        self._total = self.matrix.sum(axis=1, keepdims=True)
        self.weights = self.matrix / self._total

    def gradient(self, average_gradient, targets):
        """Return the gradient of a number in the parameters, from that in the averages.

        `average_gradient` (n_queries, n_outputs) has the number's derivatives in the averages
        of the targets (n_keys, n_outputs).
        """
        matrix_gradient = average_gradient @ targets.T
        # Weights are divided by their sum, which changes too.
        matrix_gradient -= (matrix_gradient * self.weights).sum(axis=1, keepdims=True)
        matrix_gradient[self._is_isolated] = 0
        return super().gradient(matrix_gradient / self._total)

    def _smooth_parts(self):
        """Return the smooth parts times the keys' weights, each query's largest being 1.

        A query where all of them are 0, as is possible beyond the support of a compact kernel,
        has the weights of its nearest keys instead.
        """
        with np.errstate(divide="ignore"):
            log_row_weights = np.log(self._row_weights)
        log_parts = [
            self.kernel.formula.log_profile(squared) + (2 * log_amplitude + log_row_weights)
            for squared, log_amplitude in zip(
                self._squared, self._named["amplitude"].astype(self._dtype), strict=True
            )
        ]
        is_left_out = np.zeros(self._shape, dtype=bool)
        if self._left_out is not None:
            queries = np.flatnonzero(self._left_out >= 0)
            is_left_out[queries, self._left_out[queries]] = True
        for log_part in log_parts:
            log_part[is_left_out] = -np.inf
        peak = np.max([log_part.max(axis=1) for log_part in log_parts], axis=0)
        self._is_isolated = np.isneginf(peak)
        peak[self._is_isolated] = 0
        smooth_parts = [np.exp(log_part - peak[:, None]) for log_part in log_parts]
        if self._is_isolated.any():
            squared = np.where(is_left_out, np.inf, sum(self._squared))[self._is_isolated]
            is_nearest = squared == squared.min(axis=1, keepdims=True)
            smooth_parts[0][self._is_isolated] = is_nearest * self._row_weights
        return smooth_parts
