"""Weighted averages and local lines, with a kernel that is learned."""

from dataclasses import dataclass

import numpy as np

from .._blocks import blocks
from ._kernel import Keys, LearnedKernel, Pairs

_QUERY_BLOCK = 256


@dataclass(frozen=True)
class AverageMember:
    r"""A fitted average, moved along a local line if there are any.

    :math:`\hat y(x) = \sum_i w_i (y_i + \beta^\top (\phi(x) - \phi_i))`, with w_i as K(x, x_i).
    """

    kernel: LearnedKernel  # whose noise holds the slopes to 0
    rows: np.ndarray  # training rows that averages are taken over
    # Of the first encoding, those along which lines run; none for averages.
    columns: np.ndarray

    def predict(self, training, X, own=None):
        """Predictions for queries, (n_queries, n_outputs).

        `own` is the position among `rows` to leave out for each query, -1 for none.
        """
        return np.concatenate([lines.predictions for _, lines in self._lines(training, X, own)])

    def weights(self, training, X):
        """Effective weight of every training row in the predictions; (n_queries, n)."""
        found = np.zeros((len(X), len(training)))
        for block, lines in self._lines(training, X):
            found[block, self.rows] = lines.effective
        return found

    def slopes(self, training, X):
        """Slopes of the local lines, or of the averages; (n_queries, n_outputs, n_features)."""
        found = np.zeros((len(X), training.targets.shape[1], training.X.shape[1]))
        standard = training.encodings[0]
        for block, lines in self._lines(training, X):
            if len(self.columns):
                chain = standard.derivative(X[block])[:, self.columns]
                features = standard.feature[self.columns]
                found[block][:, :, features] = lines.slopes.transpose(0, 2, 1) * chain[:, None]
        return found

    def _lines(self, training, X, own=None):
        keys = Keys.of(self.kernel, training.coordinates(self.rows, np.float64))
        queries = training.queries(X)
        targets = training.targets[self.rows]
        for block in blocks(len(X), _QUERY_BLOCK):
            at = queries.coordinates(block, np.float64)
            pairs = AveragePairs(
                self.kernel, at, keys, training.weights[self.rows],
                None if own is None else own[block],
            )  # fmt: skip
            yield block, LocalLines(
                pairs.weights, targets, at[0][:, self.columns], keys.rows[0][:, self.columns],
                self.kernel.noise,
            )  # fmt: skip


class AveragePairs(Pairs):
    """Weights (n_queries, n_keys) of keys in averages, from the smooth parts of the kernel."""

    # Keys count by `counts` (n_keys,), and each query's `own` is left out, -1 for none. Rows of
    # `weights` sum to 1.

    def __init__(self, kernel, queries, keys, counts, own=None):
        self._counts, self._left = counts.astype(queries[0].dtype), own
        super().__init__(kernel, queries, keys)
        self._total = self.matrix.sum(axis=1, keepdims=True)
        self.weights = self.matrix / self._total

    def gradient(self, pull):
        """Derivatives in the parameters, from those in the weights before they sum to 1."""
        return super().gradient(np.where(self._lost[:, None], 0, pull) / self._total)

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


class LocalLines:
    r"""Weighted averages of targets, each moved along a local line to the query.

    :math:`\hat y = \sum_j w_j (y_j + \beta^\top (\phi - \phi_j))` with :math:`\beta = (\sum_j
    w_j \tilde\phi_j \tilde\phi_j^\top + \rho \sum_j w_j^2\, I)^{-1} \sum_j w_j \tilde\phi_j
    \tilde y_j`, where :math:`\tilde\phi_j, \tilde y_j` are distances from weighted means. By
    the sum of squared weights, the ridge counts more the fewer rows have the weight.
    """

    # Rows of weights (n_queries, n_keys) sum to 1. Queries and keys (n, n_slopes) are the
    # coordinates along which lines run; averages have none. Results are `predictions`
    # (n_queries, n_outputs) and `slopes` (n_queries, n_slopes, n_outputs).

    def __init__(self, weights, targets, queries, keys, ridge):
        self._weights, self._targets, self._keys, self._ridge = weights, targets, keys, ridge
        n_queries, n_slopes = queries.shape
        n_outputs = targets.shape[1]
        self._averages = weights @ targets
        self._center = weights @ keys
        self._squares = np.square(weights).sum(axis=1)
        upper = np.triu_indices(n_slopes)
        products = [keys[:, upper[0]] * keys[:, upper[1]]]
        products += [keys * targets[:, [output]] for output in range(n_outputs)]
        products = weights @ np.concatenate(products, axis=1)
        square = np.empty((n_queries, n_slopes, n_slopes), weights.dtype)
        square[:, upper[0], upper[1]] = products[:, : len(upper[0])]
        square[:, upper[1], upper[0]] = products[:, : len(upper[0])]
        cross = products[:, len(upper[0]) :].reshape(n_queries, n_outputs, n_slopes)
        cross = cross - self._averages[:, :, None] * self._center[:, None]
        square = square - self._center[:, :, None] * self._center[:, None]
        # Rounding must not make a window without width count as one.
        spread = np.trace(square, axis1=1, axis2=2) + np.square(self._center).sum(axis=1)
        tiny = np.finfo(weights.dtype)
        added = ridge * self._squares + 100 * tiny.eps * spread + tiny.tiny
        square[:, range(n_slopes), range(n_slopes)] += added[:, None]
        away = (queries - self._center)[:, :, None]
        right = np.concatenate([cross.transpose(0, 2, 1), away], axis=2)
        solved = np.linalg.solve(square, right)
        self.slopes, self._reach = solved[:, :, :-1], solved[:, :, -1]
        self.predictions = self._averages + (away * self.slopes).sum(axis=1)

    @property
    def effective(self):
        """Weight of the target of each key in the predictions; (n_queries, n_keys)."""
        return self._weights * self._lever

    @property
    def _lever(self):
        of_center = (self._center * self._reach).sum(axis=1)
        return 1 - of_center[:, None] + self._reach @ self._keys.T

    def pull(self, slopes):
        """Derivatives of a number in the weights before they are divided by their sum.

        From its derivatives in the predictions, (n_queries, n_outputs).
        """
        steep = (self.slopes * slopes[:, None]).sum(axis=2)
        level = (slopes * self._averages).sum(axis=1) - (steep * self._center).sum(axis=1)
        residuals = slopes @ self._targets.T - level[:, None] - steep @ self._keys.T
        held = (self._ridge * (self._reach * steep).sum(axis=1))[:, None]
        return self._lever * residuals - held * (2 * self._weights - self._squares[:, None])

    def ridge_slope(self, slopes):
        """Derivative of the same number in the ridge."""
        steep = (self.slopes * slopes[:, None]).sum(axis=2)
        return -float(self._squares @ (self._reach * steep).sum(axis=1))
