"""Weighted averages, with a kernel that is learned."""

from dataclasses import dataclass

import numpy as np

from .._blocks import blocks_of_queries
from ._kernel import LearnedKernel, Pairs, ScaledKeys


@dataclass(frozen=True)
class AverageMember:
    r"""A fitted average :math:`\hat y(x) = \sum_i w_i y_i`, with w_i as K(x, x_i)."""

    kernel: LearnedKernel
    rows: np.ndarray  # training rows that averages are taken over

    def predict(self, training, X, own=None):
        """Predictions for queries, (n_queries, n_outputs).

        `own` is the position among `rows` to leave out for each query, -1 for none.
        """
        targets = training.targets[self.rows]
        return np.concatenate([w @ targets for _, w in self._weights(training, X, own)])

    def weights(self, training, X):
        """Weight of every training row in the predictions; (n_queries, n)."""
        found = np.zeros((len(X), len(training)))
        for block, weights in self._weights(training, X):
            found[block, self.rows] = weights
        return found

    def slopes(self, training, X):
        """Slopes of averages, which are 0; (n_queries, n_outputs, n_features)."""
        return np.zeros((len(X), training.targets.shape[1], training.X.shape[1]))

    def _weights(self, training, X, own=None):
        keys = ScaledKeys.of(self.kernel, training.coordinates(self.rows, np.float64))
        queries, counts = training.queries(X), training.weights[self.rows]
        for block in blocks_of_queries(len(X), len(self.rows)):
            left = None if own is None else own[block]
            at = queries.coordinates(block, np.float64)
            yield block, AveragePairs(self.kernel, at, keys, counts, left).weights


class AveragePairs(Pairs):
    """Weights (n_queries, n_keys) of keys in averages, from the smooth parts of the kernel."""

    # Keys count by `counts` (n_keys,), and each query's `own` is left out, -1 for none. Rows of
    # `weights` sum to 1.

    def __init__(self, kernel, queries, keys, counts, own=None):
        self._counts, self._left = counts.astype(queries[0].dtype), own
        super().__init__(kernel, queries, keys)
        self._total = self.matrix.sum(axis=1, keepdims=True)
        self.weights = self.matrix / self._total

    def gradient(self, of_averages, targets):
        """Derivatives in the parameters, from those in averages of the targets."""
        of_weights = of_averages @ targets.T
        of_weights -= (of_weights * self.weights).sum(axis=1, keepdims=True)
        of_weights[self._lost] = 0
        return super().gradient(of_weights / self._total)

    def _evaluate(self):
        """The parts of the kernel, each query's in units of its largest."""
        with np.errstate(divide="ignore"):
            counts = np.log(self._counts)
        logs = [
            self.kernel.formula.log_profile(squared) + (2 * amplitude + counts)
            for squared, amplitude in zip(
                self._squared, self._named["amplitude"].astype(self._dtype), strict=True
            )
        ]
        left = np.zeros(self._shape, dtype=bool)
        if self._left is not None:
            rows = np.flatnonzero(self._left >= 0)
            left[rows, self._left[rows]] = True
        for part in logs:
            part[left] = -np.inf
        peak = np.max([part.max(axis=1) for part in logs], axis=0)
        self._lost = np.isneginf(peak)
        peak[self._lost] = 0
        parts = [np.exp(part - peak[:, None]) for part in logs]
        if self._lost.any():
            # Beyond the support of a compact kernel the nearest keys count.
            squared = np.where(left, np.inf, sum(self._squared))[self._lost]
            ties = squared == squared.min(axis=1, keepdims=True)
            parts[0][self._lost] = ties * self._counts
        return parts
