"""Kernel ridge regression, solved in overlapping blocks of rows.

Up to 3000 rows there is one block. Beyond, the learned space, in which rows are scaled by the
learned length-scales, is split into overlapping blocks (`_partition`). Each block has the
linear system of a kernel ridge regression, which is the posterior mean of a Gaussian process
(Rasmussen and Williams 2006, equation 2.25), and predictions are averages over the blocks, with
weights that change smoothly. Blocks are called leaves where they are those of the tree.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import get_lapack_funcs
from sklearn.utils.extmath import randomized_svd

from .._blocks import blocks_of_queries
from ._encodings import SAMPLE_SIZE
from ._kernel import MIN_NOISE, KernelSum, LearnedKernel, ScaledKeys
from ._mixed_rows import add_mixed_terms, products_by_feature, sums_of_mixed_rows
from ._pairs import Pairs
from ._partition import Partition

# Maximum number of rows in a block. Where many rows are equal, a block may have more than twice
# as many, of which only this number is drawn, beside the rows held out.
_MAX_BLOCK_ROWS = 3000
# Fraction of the rows on either side of a split that belong to both sides.
_OVERLAP = 0.05
# Up to 500 rows there is time for double precision. Beyond, single precision takes 0.3 to 0.6
# of the time of a prediction. It changes predictions by 1e-5 to 0.003 of the errors' standard
# deviation, and by 0.07 where length-scales are so small that distances are rounded most.
_MAX_DOUBLE_ROWS = 500
# Maximum number of axes of the space in which rows are split.
_MAX_AXES = 32
# Maximum number of coordinates of keys that a member caches between predictions: 32 MB in
# single precision, as 15 000 rows of 10 numbers have.
_MAX_CACHED = 2**23
# A category matters about as much as all other columns if changing its level lowers the kernel
# by at least 0.8 of what changing all other columns does, measured on 300 rows. None of its
# levels may have more than a tenth of the rows of a block, so that halves are of similar size.
_MIN_LEVEL_EFFECT, _N_COMPARED, _MAX_LEVEL_SIZE = 0.8, 300, 0.1


class System:
    r"""The linear system of training rows, whose matrix is :math:`K + \sigma^2 W^{-1}`.

    W has the rows' weights on its diagonal. Raises LinAlgError if the matrix is not positive
    definite, whatever is added to its diagonal.

    Parameters
    ----------
    kernel : LearnedKernel
    training : TrainingRows
    rows : ndarray of int of shape (n_rows,)
        Positions of the system's rows among the training rows.
    dtype : numpy.dtype
        Single precision, in which the system is solved if possible, or double precision.

    Attributes
    ----------
    keys : list of ndarray of shape (n_rows, n_columns)
        The rows in all encodings.
    coefficients : ndarray of shape (n_rows, n_outputs)
        The solution for the rows' targets.
    """

    def __init__(self, kernel, training, rows, dtype):
        self.kernel = kernel
        self._targets = training.targets[rows]
        self._noise = kernel.noise_variances(training.weights[rows])
        # If the matrix cannot be factorised, more digits are tried, then more and more noise.
        single, double = np.dtype(np.float32), np.dtype(np.float64)
        trials = [(single, MIN_NOISE[single])] if dtype == single else []
        jitters = [0, *MIN_NOISE[double] * 10.0 ** np.arange(11)]
        trials += [(double, jitter) for jitter in jitters]
        for trial_dtype, jitter in trials:
            self.keys = training.coordinates(rows, trial_dtype)
            if self._factorise(jitter):
                self.coefficients = self._solve(self._targets)
                return
        raise np.linalg.LinAlgError(
            f"kernel={kernel.formula!r} has a matrix that is not positive definite, even with "
            "the ridge added to its diagonal: choose a positive definite kernel, such as "
            "'gaussian', or a larger ridge."
        )

    def leave_one_out(self, n_rows):
        """Predict each of the last `n_rows` rows by all other rows, (n_rows, n_outputs).

        With C = (K + sigma^2 W^-1)^-1 the prediction is y_i - (C y)_i / C_ii (Rasmussen and
        Williams 2006, equation 5.12).
        """
        if n_rows == 0:
            return self._targets[:0]
        # The inverse of the last block of the factor has all that the last entries of the
        # diagonal of C consist of.
        (invert,) = get_lapack_funcs(("trtri",), (self._factor,))
        half = invert(self._factor[-n_rows:, -n_rows:], lower=0)[0]
        diagonal = np.square(np.triu(half)).sum(axis=1)[:, None]
        return self._targets[-n_rows:] - self.coefficients[-n_rows:] / diagonal

    def weights(self, matrix):
        """Return weights of the targets in predictions, (n_queries, n_rows).

        `matrix` (n_queries, n_rows) is the kernel between queries and rows.
        """
        return self._solve(matrix.T).T

    def _factorise(self, jitter):
        """Factorise the matrix, with `jitter` times its mean diagonal added; False if not."""
        n = len(self._targets)
        matrix = np.empty((n, n), self.keys[0].dtype if self.keys else np.float64)
        keys = ScaledKeys.from_rows(self.kernel, self.keys)
        for rows in blocks_of_queries(n, n):
            # The factorisation reads only the lower triangle.
            keys_so_far = keys.select(slice(rows.stop))
            queries = [z[rows] for z in self.keys]
            matrix[rows, : rows.stop] = self.kernel.matrix(queries, keys_so_far)
        mean_diagonal = matrix.diagonal().mean()
        matrix.flat[:: n + 1] += (self._noise + jitter * mean_diagonal).astype(matrix.dtype)
        (factorise,) = get_lapack_funcs(("potrf",), (matrix,))
        # The transpose is in the order that LAPACK reads.
        self._factor, info = factorise(matrix.T, lower=0, clean=0, overwrite_a=1)
        return info == 0

    def _solve(self, right_sides):
        """Return the solutions for right sides (n_rows, n_columns)."""
        (solve,) = get_lapack_funcs(("potrs",), (self._factor,))
        return solve(self._factor, right_sides.astype(self._factor.dtype), lower=0)[0]


@dataclass(frozen=True)
class RidgeMember:
    r"""A fitted kernel ridge regression, over blocks that pass smoothly into each other.

    :math:`\hat y(x) = \sum_b w_b(x)\, k_b(x)^\top (K_b + \sigma^2 W_b^{-1})^{-1} y_b` with the
    weight :math:`w_b(x)` of block b at the query. Methods take the TrainingRows that the member
    was fitted to as `training`.
    """

    kernel: LearnedKernel
    partition: Partition
    axes: np.ndarray  # (n_columns, n_axes): products with scaled rows are the split points
    rows: list  # positions of the training rows of each block
    coefficients: list  # (n_rows, n_outputs) of each block
    _kernel_sums: dict = field(default_factory=dict, init=False, repr=False)  # by block

    @classmethod
    def fit(cls, kernel, training, rng, held_out):
        """Solve the system of each block.

        Parameters
        ----------
        kernel : LearnedKernel
        training : TrainingRows
        rng : numpy.random.Generator
        held_out : ndarray of int of shape (n_held_out,)
            Positions of the rows that the kernel was not learned from.

        Returns
        -------
        member : RidgeMember
        left_out : ndarray of shape (n_held_out, n_outputs)
            Leave-one-out predictions of the rows held out, exact in every block.
        """
        # 1. Split the rows into blocks, in a space of up to 32 axes.
        n, n_outputs = training.targets.shape
        dtype = np.dtype(np.float64) if n <= _MAX_DOUBLE_ROWS else kernel.solve_dtype
        axes = np.zeros((sum(map(len, training.encodings)), 0), np.float32)
        if n > _MAX_BLOCK_ROWS and len(axes):
            axes = _axes(kernel, training, rng)
        points = _points(kernel, axes, training)
        partition = Partition.learn(points, max_rows=_MAX_BLOCK_ROWS, overlap=_OVERLAP, rng=rng)
        # 2. Solve the system of each block; `place` is the position of a row among those held
        # out, -1 for other rows.
        place = np.full(n, -1)
        place[held_out] = np.arange(len(held_out))
        left_out = np.zeros((len(held_out), n_outputs))
        all_rows, coefficients = [], []
        for rows, weights in partition.leaves(points):
            if len(rows) == 0:
                all_rows.append(rows)
                coefficients.append(np.zeros((0, n_outputs), dtype))
                continue
            is_held_out = place[rows] >= 0
            known, held_out_of_block = rows[~is_held_out], rows[is_held_out]
            # Equal rows cannot be split, so that a block may be too large for its system.
            if len(rows) > 2 * _MAX_BLOCK_ROWS and len(known) > _MAX_BLOCK_ROWS:
                known = np.sort(rng.choice(known, _MAX_BLOCK_ROWS, replace=False))
            # The rows held out are the last ones, as `System.leave_one_out` needs.
            block_rows = np.concatenate([known, held_out_of_block])
            system = System(kernel, training, block_rows, dtype)
            predictions = system.leave_one_out(len(held_out_of_block))
            left_out[place[held_out_of_block]] += weights[is_held_out, None] * predictions
            all_rows.append(block_rows)
            coefficients.append(system.coefficients)
        return cls(kernel, partition, axes, all_rows, coefficients), left_out

    def predict(self, training, X):
        """Predict queries, an array or EncodedRows; return (n_queries, n_outputs)."""
        predictions = np.zeros((len(X), self.coefficients[0].shape[1]))
        dtype, encoded = np.result_type(*self.coefficients), training.queries(X)
        for leaf, leaf_queries, weights, _ in self._leaves_with_queries(encoded):
            kernel_sum = self._kernel_sum(training, leaf, dtype)
            for block in blocks_of_queries(len(leaf_queries), max(1, len(self.axes))):
                rows = leaf_queries[block]
                sums = kernel_sum(encoded.coordinates(rows, dtype))
                predictions[rows] += weights[block, None] * sums
        return predictions

    def predict_mixed(self, training, rows, background, masks, mean=False):
        """Predict mixed rows, (n_masks, n_rows, n_background, n_outputs).

        `rows` and `background` are numbers and codes; `masks` and `mean` are as for
        `sums_of_mixed_rows`. With several blocks `mean` saves no time.
        """
        dtype = np.result_type(*self.coefficients)
        rows, background = (training.encode(X, dtype) for X in (rows, background))
        if len(self.rows) == 1:
            return self._mixed_sums(training, 0, rows, background, masks, mean=mean)
        # Points of the partition are products with the axes, and so sums over features.
        features = np.concatenate(self.kernel.features)
        terms = [
            products_by_feature(
                self.kernel.space(z), self.axes, features, self.kernel.n_features
            )
            for z in (rows, background)
        ]
        points = add_mixed_terms(*terms, masks)
        shape, n_axes = points.shape[:3], points.shape[3]
        predictions = np.zeros((*shape, training.targets.shape[1]))
        leaves = self.partition.leaves(points.reshape(math.prod(shape), n_axes))
        for leaf, (leaf_queries, weights) in enumerate(leaves):
            # Weights of the leaf at all mixed rows; some rows of the background may have none.
            leaf_weights = np.zeros(shape)
            leaf_weights.flat[leaf_queries] = weights
            used = np.flatnonzero(leaf_weights.any(axis=(0, 1)))
            if len(used):
                used_background = [z[used] for z in background]
                sums = self._mixed_sums(training, leaf, rows, used_background, masks)
                predictions[:, :, used] += leaf_weights[:, :, used, None] * sums
        return predictions.mean(axis=2, keepdims=True) if mean else predictions

    def _mixed_sums(self, training, leaf, rows, background, masks, *, mean=False):
        """Return the sums over the keys of a leaf at mixed rows, for all outputs."""
        keys, targets = training.coordinates(self.rows[leaf], rows[0].dtype), training.targets
        # Scores of classes sum to 0, so that those of the last class follow from the others.
        sums_to_0 = np.abs(targets.sum(axis=1)).max() <= 1e-9 * np.abs(targets).max()
        omits_last = sums_to_0 and targets.shape[1] > 1
        coefficients = self.coefficients[leaf][:, : targets.shape[1] - omits_last]
        data = self.kernel, keys, coefficients, rows, background, masks
        sums = sums_of_mixed_rows(*data, mean=mean)
        if not omits_last:
            return sums
        return np.concatenate([sums, -sums.sum(axis=3, keepdims=True)], axis=3)

    def _kernel_sum(self, training, leaf, dtype):
        """Return the sum over the keys of a leaf, cached if the keys of all leaves are few."""
        if leaf in self._kernel_sums:
            return self._kernel_sums[leaf]
        rows = self.rows[leaf]
        if sum(map(len, self.rows)) * len(self.axes) > _MAX_CACHED:
            return KernelSum(
                self.kernel, training.coordinates(rows, dtype), self.coefficients[leaf]
            )
        # `training.coordinates` would cache the same keys a second time, before scaling.
        keys = training.encode(training.X[rows], dtype)
        self._kernel_sums[leaf] = KernelSum(self.kernel, keys, self.coefficients[leaf])
        return self._kernel_sums[leaf]

    def weights(self, training, X):
        """Return the weight of every training row in the predictions, (n_queries, n)."""
        all_weights = np.zeros((len(X), len(training)))
        solved_leaf = system = None
        for leaf, keys, rows, queries, weights, _ in self._blocks_of_leaves(training, X):
            if leaf != solved_leaf:
                dtype = self.coefficients[leaf].dtype
                system = System(self.kernel, training, self.rows[leaf], dtype)
                solved_leaf = leaf
            block_weights = system.weights(self.kernel.matrix(queries, keys))
            all_weights[np.ix_(rows, self.rows[leaf])] += weights[:, None] * block_weights
        return all_weights

    def slopes(self, training, X):
        """Return the derivatives of the predictions, (n_queries, n_outputs, n_features).

        A prediction is a sum over leaves of weight times value, so that the slope in a
        coordinate is weight times slope of the value plus slope of the weight times value.
        """
        n_outputs, n_features = self.coefficients[0].shape[1], training.X.shape[1]
        slopes = np.zeros((len(X), n_outputs, n_features))
        features = np.concatenate(training.features)
        is_of_feature = np.equal.outer(features, np.arange(n_features)).astype(float)
        scales = np.concatenate(self.kernel.column_scales)
        encoded = training.queries(X)
        for leaf, keys, rows, queries, weights, points in self._blocks_of_leaves(
            training, encoded
        ):
            pairs = Pairs(self.kernel, queries, keys)
            weight_slopes = self.partition.weight_slopes(leaf, points) @ self.axes.T * scales
            # By the chain rule, slopes in coordinates are multiplied by those of coordinates in
            # their feature, (n_queries, n_columns), and summed over the columns of a feature.
            derivative = np.concatenate(
                [encoding.derivative(X[rows]) for encoding in training.encodings], axis=1
            )
            values = pairs.matrix @ self.coefficients[leaf]
            for output, column in enumerate(self.coefficients[leaf].T.astype(np.float64)):
                column_slopes = np.concatenate(pairs.slopes(column), axis=1) * weights[:, None]
                column_slopes += values[:, [output]] * weight_slopes
                slopes[rows, output] += (column_slopes * derivative) @ is_of_feature
        return slopes

    def _blocks_of_leaves(self, training, X, dtype=np.float64):
        """Yield the queries of each leaf in batches that fit into memory.

        Yields (leaf, the leaf's training rows as keys, positions of the batch's queries, their
        coordinates in all encodings, their weights in the leaf, their points in the partition).
        """
        encoded = training.queries(X)
        for leaf, leaf_queries, weights, points in self._leaves_with_queries(encoded):
            coordinates = training.coordinates(self.rows[leaf], dtype)
            keys = ScaledKeys.from_rows(self.kernel, coordinates)
            for batch in blocks_of_queries(len(leaf_queries), len(self.rows[leaf])):
                rows = leaf_queries[batch]
                queries = encoded.coordinates(rows, dtype)
                yield leaf, keys, rows, queries, weights[batch], points[rows]

    def _leaves_with_queries(self, encoded):
        """Yield leaves that have queries.

        Yields (leaf, positions of the leaf's queries, their weights there, the points of all
        queries in the partition).
        """
        points = _points(self.kernel, self.axes, encoded)
        for leaf, (leaf_queries, weights) in enumerate(self.partition.leaves(points)):
            if len(leaf_queries):
                yield leaf, leaf_queries, weights, points


def _axes(kernel, training, rng):
    """Choose axes of the learned space that blocks are split along, (n_columns, n_axes).

    Rows with the same level of a category predict one another, so that they belong in one block
    if a category of many levels matters about as much as all other columns: errors of shops are
    0.95 (500 levels) and 0.80 (2000) times those of one block of all rows. Where the category
    matters less they would be 1.03 to 1.05 times (flights, hotels), as numbers are then far
    apart within a block.
    """
    first = training.encodings[0]
    for feature in first.high_cardinality_features:
        sample = rng.choice(len(training), min(len(training), _N_COMPARED), replace=False)
        rows, levels = training.coordinates(sample, np.float64), first.level_columns(feature)
        # Replace the level by that of another row, then all other columns instead. Only the
        # first encoding has the levels.
        other_rows = [np.roll(z, 1, axis=0) for z in rows]
        with_other_level = [rows[0].copy(), *rows[1:]]
        with_other_level[0][:, levels] = other_rows[0][:, levels]
        with_same_level = [other_rows[0].copy(), *other_rows[1:]]
        with_same_level[0][:, levels] = rows[0][:, levels]
        level_effect = _mean_decrease(kernel, rows, with_other_level)
        other_effect = _mean_decrease(kernel, rows, with_same_level)
        largest_level = first.largest_level(feature, training.X[:, feature])
        matters = level_effect >= _MIN_LEVEL_EFFECT * other_effect
        if matters and largest_level <= _MAX_LEVEL_SIZE * _MAX_BLOCK_ROWS:
            axes = np.zeros((sum(map(len, training.encodings)), _MAX_AXES), np.float32)
            # Each level has a random point, which does not depend on the level's scale.
            axes[levels] = rng.normal(size=(len(levels), _MAX_AXES))
            axes[levels] /= kernel.column_scales[0][levels, None]
            return axes
    return _principal_axes(kernel, training, rng)


def _mean_decrease(kernel, rows, changed):
    """Return the mean fraction by which K(x, x) falls if one x is replaced by `changed`."""
    same, other = (kernel.matrix(rows, z).diagonal() for z in (rows, changed))
    return 1 - np.mean(other / same)


def _principal_axes(kernel, training, rng):
    """Return the directions of largest variance in the learned space, (n_columns, n_axes)."""
    n_rows = min(len(training), SAMPLE_SIZE)
    sample = np.sort(rng.choice(len(training), n_rows, replace=False))
    x = kernel.space(training.coordinates(sample, np.float32)).astype(np.float64)
    seed = int(rng.integers(2**31))
    axes = randomized_svd(x - x.mean(axis=0), _MAX_AXES, n_iter=4, random_state=seed)[2]
    return np.ascontiguousarray(axes.T, dtype=np.float32)


def _points(kernel, axes, encoded):
    """Return the points of EncodedRows or TrainingRows in the partition, (n, n_axes)."""
    n_rows, n_axes = len(encoded), axes.shape[1]
    points = np.zeros((n_rows, n_axes), np.float32)
    if axes.size == 0:
        return points
    for rows in blocks_of_queries(n_rows, len(axes)):
        positions = np.arange(rows.start, rows.stop)
        points[rows] = kernel.space(encoded.coordinates(positions, np.float32)) @ axes
    return points
