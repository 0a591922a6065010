"""Kernel ridge regression by overlapping blocks."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from .._blocks import IN_CACHE, blocks
from ._kernel import Keys, LearnedKernel, Pairs
from ._partition import Partition
from ._system import System

# Rows that a block may have; where rows are equal, some of twice as many are drawn.
_MOST = 3000
_OVERLAP, _OVERLAP_OF_MANY, _MANY = 0.05, 0.03, 50_000
# Up to so many rows there is time for double precision.
_FEW_ROWS = 1500
# Queries at a time, however many keys there are.
_FEWEST_QUERIES = 128
_SAMPLED, _MOST_AXES, _ROW_BLOCK = 4000, 32, 2**14
# Beyond, axes are found among random projections.
_MANY_COLUMNS = 512


@dataclass(frozen=True)
class RidgeMember:
    r"""A fitted kernel ridge regression.

    .. math:: \hat y(x) = \sum_b w_b(x)\, k_b(x)^\top \alpha_b, \quad
              \alpha_b = (K_b + \sigma^2 W_b^{-1})^{-1} y_b

    over the blocks :math:`b` of a partition, which pass smoothly into each other.
    """

    kernel: LearnedKernel
    partition: Partition
    # From the learned space to the points that are split, (n_columns, n_axes).
    axes: np.ndarray
    rows: list  # training rows of each block
    coefficients: list  # (n_rows, n_outputs) of each block

    @classmethod
    def fit(cls, kernel, training, rng, held_out):
        """Solve for the coefficients of all blocks.

        Returns the member, and predictions of the rows held out without themselves,
        (n_held_out, n_outputs), exact in every block.
        """
        n = len(training)
        dtype = np.float64 if n <= _FEW_ROWS else kernel.precision
        axes = np.zeros((sum(map(len, training.encodings)), 0), np.float32)
        if n > _MOST:
            axes = _principal_axes(kernel, training, rng)
        points = _points(kernel, axes, n, lambda rows: training.coordinates(rows, np.float32))
        partition = Partition.learn(
            points, most=_MOST, overlap=_OVERLAP if n <= _MANY else _OVERLAP_OF_MANY, rng=rng
        )
        place = np.full(n, -1)
        place[held_out] = np.arange(len(held_out))
        left_out = np.zeros((len(held_out), training.targets.shape[1]))
        all_rows, coefficients = [], []
        for rows, weights in partition.leaves(points):
            if len(rows) == 0:
                all_rows.append(rows)
                coefficients.append(np.zeros((0, training.targets.shape[1]), dtype))
                continue
            is_left_out = place[rows] >= 0
            known, own = rows[~is_left_out], rows[is_left_out]
            if len(rows) > 2 * _MOST and len(known) > _MOST:
                known = np.sort(rng.choice(known, _MOST, replace=False))
            rows = np.concatenate([known, own])
            system = System(kernel, training, rows, dtype)
            left_out[place[own]] += weights[is_left_out, None] * system.left_out(len(own))
            all_rows.append(rows)
            coefficients.append(system.coefficients)
        return cls(kernel, partition, axes, all_rows, coefficients), left_out

    def predict(self, training, X):
        """Predictions for queries, an array or encoded; (n_queries, n_outputs)."""
        found = np.zeros((len(X), self.coefficients[0].shape[1]))
        for leaf, keys, rows, queries, weights, _ in self._leaves(training, X):
            values = self.kernel.matrix(queries, keys) @ self.coefficients[leaf]
            found[rows] += weights[:, None] * values
        return found

    def weights(self, training, X):
        """Effective weight of every training row in the predictions; (n_queries, n)."""
        found = np.zeros((len(X), len(training)))
        solved = system = None
        for leaf, keys, rows, queries, weights, _ in self._leaves(training, X):
            dtype = self.coefficients[leaf].dtype
            if leaf != solved:
                solved, system = leaf, System(self.kernel, training, self.rows[leaf], dtype)
            part = system.weights(self.kernel.matrix(queries, keys))
            found[np.ix_(rows, self.rows[leaf])] += weights[:, None] * part
        return found

    def slopes(self, training, X):
        """Derivatives of the predictions; (n_queries, n_outputs, n_features)."""
        n_outputs = self.coefficients[0].shape[1]
        found = np.zeros((len(X), n_outputs, training.X.shape[1]))
        features = np.concatenate(training.features)
        of_feature = np.equal.outer(features, np.arange(training.X.shape[1])).astype(float)
        scales = np.concatenate(self.kernel.column_scales)
        encoded = training.queries(X)
        for leaf, keys, rows, _, weights, points in self._leaves(training, encoded):
            queries = encoded.coordinates(rows, np.float64)
            pairs = Pairs(self.kernel, queries, [z.astype(np.float64) for z in keys.rows])
            passing = self.partition.weight_slopes(leaf, points) @ self.axes.T * scales
            chain = np.concatenate(
                [encoding.derivative(X[rows]) for encoding in training.encodings], axis=1
            )
            values = pairs.matrix @ self.coefficients[leaf]
            for output, alpha in enumerate(self.coefficients[leaf].T.astype(np.float64)):
                steep = np.concatenate(pairs.slopes(alpha), axis=1) * weights[:, None]
                steep += values[:, [output]] * passing
                found[rows, output] += (steep * chain) @ of_feature
        return found

    def _leaves(self, training, X):
        """Every leaf with its keys, and a block of the queries that reach it."""
        encoded = training.queries(X)
        points = _points(
            self.kernel, self.axes, len(X), lambda rows: encoded.coordinates(rows, np.float32)
        )
        for leaf, (reaching, weights) in enumerate(self.partition.leaves(points)):
            if len(reaching) == 0:
                continue
            dtype = self.coefficients[leaf].dtype
            keys = Keys.of(self.kernel, training.coordinates(self.rows[leaf], dtype))
            size = max(_FEWEST_QUERIES, 2 * IN_CACHE // max(1, len(self.rows[leaf])))
            for block in blocks(len(reaching), size):
                rows = reaching[block]
                queries = encoded.coordinates(rows, dtype)
                yield leaf, keys, rows, queries, weights[block], points[rows]


def _principal_axes(kernel, training, rng):
    """Directions in the learned space along which rows differ most; (n_columns, n_axes)."""
    sample = np.sort(rng.choice(len(training), min(len(training), _SAMPLED), replace=False))
    x = kernel.space(training.coordinates(sample, np.float32)).astype(np.float64)
    if x.shape[1] > _MANY_COLUMNS:
        seed = int(rng.integers(2**31))
        axes = randomized_svd(x - x.mean(axis=0), _MOST_AXES, n_iter=4, random_state=seed)[2].T
    else:
        axes = np.linalg.eigh(np.atleast_2d(np.cov(x.T)))[1][:, ::-1]
    return np.ascontiguousarray(axes[:, :_MOST_AXES], dtype=np.float32)


def _points(kernel, axes, n_rows, coordinates):
    if axes.size == 0:
        return np.zeros((n_rows, 0), np.float32)
    parts = [
        kernel.space(coordinates(np.arange(rows.start, rows.stop))) @ axes
        for rows in blocks(n_rows, _ROW_BLOCK)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, axes.shape[1]), np.float32)
