"""Kernel ridge regression: the linear system of each of overlapping blocks of rows."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import get_lapack_funcs
from sklearn.utils.extmath import randomized_svd

from .._blocks import blocks_of_queries
from ._encodings import SAMPLE_SIZE
from ._kernel import (
    LEAST_NOISE,
    KernelSum,
    LearnedKernel,
    Pairs,
    ScaledKeys,
    add_mixed_terms,
    products_by_feature,
    sums_of_mixed_rows,
)

# Rows that a block may have; where rows are equal, some of twice as many are drawn.
_MOST = 3000
_OVERLAP = 0.05
# Up to 500 rows there is time for double precision. Beyond, single precision takes 0.3 to 0.6
# of the time of a prediction. It changes predictions by 1e-5 to 0.003 of the errors' standard
# deviation, and by 0.07 where length-scales are so small that distances are rounded most.
_FEW_ROWS = 500
_MOST_AXES = 32
# Coordinates of keys in length-scales that a member keeps between predictions: 32 MB in single
# precision, as 15 000 rows of 10 numbers have.
_MOST_KEPT = 2**23
# A category matters about as much as all other columns if changing its level lowers the kernel
# by at least 0.8 of what changing all other columns does, measured on 300 rows. None of its
# levels may have more than a tenth of the rows of a block, so that halves are of similar size.
_MATTERS, _COMPARED, _LARGEST_LEVEL = 0.8, 300, 0.1


class System:
    r"""The matrix :math:`K + \sigma^2 W^{-1}` of some training rows, factorised."""

    # `keys` are the rows in their encodings, `coefficients` (n_rows, n_outputs) the solution
    # for the targets. LinAlgError if the matrix is not positive definite, whatever is added to
    # its diagonal.

    def __init__(self, kernel, training, rows, dtype):
        self.kernel = kernel
        self._targets = training.targets[rows]
        self._noise = kernel.noise_of(training.weights[rows])
        # More digits first, then more and more noise.
        single, double = LEAST_NOISE
        trials = [(single, LEAST_NOISE[single])] if dtype == single else []
        trials += [
            (double, least) for least in (0, *LEAST_NOISE[double] * 10.0 ** np.arange(11))
        ]
        for dtype, least in trials:
            self.keys = training.coordinates(rows, dtype)
            if self._factorise(least):
                self.coefficients = self._solve(self._targets)
                return
        raise np.linalg.LinAlgError(
            f"kernel={kernel.formula!r} has a matrix that is not positive definite, even with "
            "the ridge added to its diagonal: choose a positive definite kernel, such as "
            "'gaussian', or a larger ridge."
        )

    def left_out(self, n_rows):
        """Predictions of the last so many rows by all others; (n_rows, n_outputs)."""
        if n_rows == 0:
            return self._targets[:0]
        # Of the last rows the inverse needs only the last block of the factor.
        (invert,) = get_lapack_funcs(("trtri",), (self._factor,))
        inverse = invert(self._factor[-n_rows:, -n_rows:], lower=0)[0]
        own = np.square(np.triu(inverse)).sum(axis=1)[:, None]
        return self._targets[-n_rows:] - self.coefficients[-n_rows:] / own

    def weights(self, matrix):
        """Weights of the targets in predictions, from the kernel, both (n_queries, n_rows)."""
        return self._solve(matrix.T).T

    def _factorise(self, least):
        n = len(self._targets)
        matrix = np.empty((n, n), self.keys[0].dtype if self.keys else np.float64)
        keys = ScaledKeys.of(self.kernel, self.keys)
        for rows in blocks_of_queries(n, n):
            # The factorisation reads only the lower triangle.
            before = keys.block(slice(rows.stop))
            matrix[rows, : rows.stop] = self.kernel.matrix([z[rows] for z in self.keys], before)
        diagonal = matrix.diagonal().mean()
        matrix.flat[:: n + 1] += (self._noise + least * diagonal).astype(matrix.dtype)
        (factorise,) = get_lapack_funcs(("potrf",), (matrix,))
        # The transpose is in the order that LAPACK reads.
        self._factor, info = factorise(matrix.T, lower=0, clean=0, overwrite_a=1)
        return info == 0

    def _solve(self, right):
        (solve,) = get_lapack_funcs(("potrs",), (self._factor,))
        return solve(self._factor, right.astype(self._factor.dtype), lower=0)[0]


@dataclass(frozen=True)
class Partition:
    """A binary tree of splits, each along a direction in the learned space."""

    # At t on the direction of a split the right side has the share u^2 (3 - 2u) with u =
    # clip((t - a) / (b - a), 0, 1), the left side the rest. The weight of a leaf is the product
    # of the shares on the way to it, so that weights sum to 1 and have no jumps.

    # (n_splits, n_columns); the children of the split at i are those at 2i + 1 and 2i + 2.
    directions: np.ndarray
    lower: np.ndarray  # the a and b, (n_splits,)
    upper: np.ndarray

    @classmethod
    def learn(cls, points, *, most, overlap, rng):
        """Splits at medians of points along principal directions, to leaves of at most `most`.

        `overlap` is the share of rows, on either side of a median, that belong to both.
        """
        depth = 0
        if len(points) > most:
            depth = math.ceil(math.log(len(points) / most) / -math.log(0.5 + overlap))
        n_splits = 2**depth - 1
        partition = cls(
            np.zeros((n_splits, points.shape[1]), points.dtype),
            np.full(n_splits, np.inf),
            np.full(n_splits, np.inf),
        )
        members = {0: np.arange(len(points))}
        for split in range(n_splits):
            rows = members.pop(split)
            if len(rows) > 1 and points.shape[1]:
                partition._learn_split(split, points[rows], overlap, rng)
            share = partition.right_share(split, points[rows])[0]
            members[2 * split + 1], members[2 * split + 2] = rows[share < 1], rows[share > 0]
        return partition

    def leaves(self, points):
        """For each leaf the rows that belong to it, and their weights there."""
        found = {0: (np.arange(len(points)), np.ones(len(points)))}
        for split in range(len(self.lower)):
            rows, weights = found.pop(split)
            share = self.right_share(split, points[rows])[0]
            for child, part in ((2 * split + 1, 1 - share), (2 * split + 2, share)):
                used = part > 0
                found[child] = rows[used], (weights * part)[used]
        for leaf in sorted(found):
            yield found[leaf]

    def weight_slopes(self, leaf, points):
        """Derivatives of a leaf's weight in the points, (n, n_columns)."""
        child, weights = leaf + len(self.lower), np.ones(len(points))
        slopes = np.zeros(points.shape)
        while child:
            split, is_right = (child - 1) // 2, child % 2 == 0
            share, slope = self.right_share(split, points)
            share, slope = (share, slope) if is_right else (1 - share, -slope)
            slopes = slopes * share[:, None] + np.outer(weights * slope, self.directions[split])
            weights = weights * share
            child = split
        return slopes

    def right_share(self, split, points):
        """Share of the right side of a split, and its derivative along the direction."""
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = self.lower[split], self.upper[split]
        if not lower < upper:
            return (along > lower).astype(np.float64), np.zeros(len(along))
        u = np.clip((along - lower) / (upper - lower), 0, 1)
        return u * u * (3 - 2 * u), 6 * u * (1 - u) / (upper - lower)

    def _learn_split(self, split, points, overlap, rng):
        sample = points
        if len(points) > SAMPLE_SIZE:
            sample = points[rng.choice(len(points), SAMPLE_SIZE, replace=False)]
        covariance = np.atleast_2d(np.cov(sample.T.astype(np.float64)))
        self.directions[split] = np.linalg.eigh(covariance)[1][:, -1]
        along = (points @ self.directions[split]).astype(np.float64)
        lower, upper = np.quantile(along, [0.5 - overlap, 0.5 + overlap])
        # They differ by no more than rounding.
        same = 10 * np.finfo(points.dtype).eps * np.abs(along).max()
        if upper - lower <= same:
            lower, upper = _gap(along, lower, same)
        self.lower[split], self.upper[split] = lower, upper


def _gap(along, tied, same):
    """Interval where rows pass between sides, next to many rows at one place."""
    below, above = along[along < tied - same], along[along > tied + same]
    if not len(below) and not len(above):
        # All rows are at one place: on the left.
        return np.inf, np.inf
    lower, upper = (below.max(), tied) if len(below) > len(above) else (tied, above.min())
    margin = 0.1 * (upper - lower)
    return lower + margin, upper - margin


@dataclass(frozen=True)
class RidgeMember:
    r"""A fitted kernel ridge regression, over blocks that pass smoothly into each other.

    :math:`\hat y(x) = \sum_b w_b(x)\, k_b(x)^\top (K_b + \sigma^2 W_b^{-1})^{-1} y_b`
    """

    kernel: LearnedKernel
    partition: Partition
    # From the learned space to the points that are split, (n_columns, n_axes).
    axes: np.ndarray
    rows: list  # training rows of each block
    coefficients: list  # (n_rows, n_outputs) of each block
    _kept: dict = field(default_factory=dict, init=False, repr=False)  # sums, by block

    @classmethod
    def fit(cls, kernel, training, rng, held_out):
        """The member, and leave-one-out predictions (n_held_out, n_outputs) of rows held out.

        The latter are exact in every block.
        """
        n = len(training)
        dtype = np.dtype(np.float64) if n <= _FEW_ROWS else kernel.precision
        axes = np.zeros((sum(map(len, training.encodings)), 0), np.float32)
        if n > _MOST and len(axes):
            axes = _axes(kernel, training, rng)
        points = _points(kernel, axes, n, lambda rows: training.coordinates(rows, np.float32))
        partition = Partition.learn(points, most=_MOST, overlap=_OVERLAP, rng=rng)
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
        dtype, encoded = np.result_type(*self.coefficients), training.queries(X)
        for leaf, reaching, weights, _ in self._reached(encoded):
            kernel_sum = self._kernel_sum(training, leaf, dtype)
            for block in blocks_of_queries(len(reaching), max(1, len(self.axes))):
                rows = reaching[block]
                sums = kernel_sum(encoded.coordinates(rows, dtype))
                found[rows] += weights[block, None] * sums
        return found

    def predict_mixed(self, training, rows, others, masks, mean=False):
        """Predict mixed rows, (n_masks, n_rows, n_others, n_outputs).

        `rows` and `others` are numbers and codes; `masks` and `mean` are as for
        `sums_of_mixed_rows`. With several blocks `mean` saves no time.
        """
        dtype = np.result_type(*self.coefficients)
        rows, others = (training.encode(X, dtype) for X in (rows, others))
        # Scores of classes sum to 0, so that those of the last class follow from the others.
        targets = training.targets
        is_sum_0 = np.abs(targets.sum(axis=1)).max() <= 1e-9 * np.abs(targets).max()
        n_solved = targets.shape[1] - (is_sum_0 and targets.shape[1] > 1)

        def sums_of_leaf(leaf, others, mean=False):
            keys = training.coordinates(self.rows[leaf], dtype)
            data = keys, self.coefficients[leaf][:, :n_solved], rows, others, masks
            sums = sums_of_mixed_rows(self.kernel, *data, mean=mean)
            if n_solved == targets.shape[1]:
                return sums
            return np.concatenate([sums, -sums.sum(axis=3, keepdims=True)], axis=3)

        if len(self.rows) == 1:
            return sums_of_leaf(0, others, mean)
        # Points of the partition are products with the axes, and so sums over features.
        data = self.axes, np.concatenate(self.kernel.features), self.kernel.n_features
        terms = [products_by_feature(self.kernel.space(z), *data) for z in (rows, others)]
        points = add_mixed_terms(*terms, masks)
        shape, n_axes = points.shape[:3], points.shape[3]
        predictions = np.zeros((*shape, targets.shape[1]))
        leaves = self.partition.leaves(points.reshape(math.prod(shape), n_axes))
        for leaf, (reaching, weights) in enumerate(leaves):
            leaf_weights = np.zeros(shape)
            leaf_weights.flat[reaching] = weights
            used = np.flatnonzero(leaf_weights.any(axis=(0, 1)))
            if len(used):
                sums = sums_of_leaf(leaf, [z[used] for z in others])
                predictions[:, :, used] += leaf_weights[:, :, used, None] * sums
        return predictions.mean(axis=2, keepdims=True) if mean else predictions

    def _kernel_sum(self, training, leaf, dtype):
        """The sum over the keys of a leaf, which is kept if the keys of all leaves are few."""
        if leaf in self._kept:
            return self._kept[leaf]
        is_kept = sum(map(len, self.rows)) * len(self.axes) <= _MOST_KEPT
        # Those of keys that are kept are not kept a second time without length-scales.
        keys = (
            training.encode(training.X[self.rows[leaf]], dtype)
            if is_kept
            else training.coordinates(self.rows[leaf], dtype)
        )
        kernel_sum = KernelSum(self.kernel, keys, self.coefficients[leaf])
        if is_kept:
            self._kept[leaf] = kernel_sum
        return kernel_sum

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
        for leaf, keys, rows, queries, weights, points in self._leaves(training, encoded):
            pairs = Pairs(self.kernel, queries, keys)
            passing = self.partition.weight_slopes(leaf, points) @ self.axes.T * scales
            derivative = np.concatenate(
                [encoding.derivative(X[rows]) for encoding in training.encodings], axis=1
            )
            values = pairs.matrix @ self.coefficients[leaf]
            for output, alpha in enumerate(self.coefficients[leaf].T.astype(np.float64)):
                of_coordinates = np.concatenate(pairs.slopes(alpha), axis=1) * weights[:, None]
                of_coordinates += values[:, [output]] * passing
                found[rows, output] += (of_coordinates * derivative) @ of_feature
        return found

    def _leaves(self, training, X, dtype=np.float64):
        """Every leaf with its keys, and a block of the queries that reach it."""
        encoded = training.queries(X)
        for leaf, reaching, weights, points in self._reached(encoded):
            keys = ScaledKeys.of(self.kernel, training.coordinates(self.rows[leaf], dtype))
            for block in blocks_of_queries(len(reaching), len(self.rows[leaf])):
                rows = reaching[block]
                queries = encoded.coordinates(rows, dtype)
                yield leaf, keys, rows, queries, weights[block], points[rows]

    def _reached(self, encoded):
        """Every leaf that queries reach, with these, their weights there, and all points."""
        points = _points(
            self.kernel, self.axes, len(encoded),
            lambda rows: encoded.coordinates(rows, np.float32),
        )  # fmt: skip
        for leaf, (reaching, weights) in enumerate(self.partition.leaves(points)):
            if len(reaching):
                yield leaf, reaching, weights, points


def _axes(kernel, training, rng):
    """Directions in the learned space that blocks are split along; (n_columns, n_axes)."""
    # Rows of a level predict one another, so that they belong together where a category of
    # many levels matters about as much as all else: errors of shops are 0.95 (500 levels) and
    # 0.80 (2000), those of one block of all rows. Where it matters less they would be 1.03 to
    # 1.05 (flights, hotels), as numbers then are far apart within a block.
    first = training.encodings[0]
    for feature in first.high_cardinality_features:
        sample = rng.choice(len(training), min(len(training), _COMPARED), replace=False)
        rows, levels = training.coordinates(sample, np.float64), first.level_columns(feature)
        own, rest = (_lost(kernel, rows, levels, others) for others in (False, True))
        largest = first.largest_level(feature, training.X[:, feature])
        if own >= _MATTERS * rest and largest <= _LARGEST_LEVEL * _MOST:
            axes = np.zeros((sum(map(len, training.encodings)), _MOST_AXES), np.float32)
            axes[levels] = rng.normal(size=(len(levels), _MOST_AXES))
            # Each level is at a random place, whatever its scale.
            axes[levels] /= kernel.column_scales[0][levels, None]
            return axes
    return _principal_axes(kernel, training, rng)


def _lost(kernel, rows, columns, others):
    """Share of the kernel that rows lose if columns, or all others, are those of the next."""
    swapped = [np.roll(z, 1, axis=0) if others else z.copy() for z in rows]
    swapped[0][:, columns] = (rows[0] if others else np.roll(rows[0], 1, axis=0))[:, columns]
    same, other = (kernel.matrix(rows, z).diagonal() for z in (rows, swapped))
    return 1 - np.mean(other / same)


def _principal_axes(kernel, training, rng):
    """Directions in the learned space along which rows differ most; (n_columns, n_axes)."""
    sample = np.sort(rng.choice(len(training), min(len(training), SAMPLE_SIZE), replace=False))
    x = kernel.space(training.coordinates(sample, np.float32)).astype(np.float64)
    seed = int(rng.integers(2**31))
    axes = randomized_svd(x - x.mean(axis=0), _MOST_AXES, n_iter=4, random_state=seed)[2]
    return np.ascontiguousarray(axes.T, dtype=np.float32)


def _points(kernel, axes, n_rows, coordinates):
    if axes.size == 0:
        return np.zeros((n_rows, 0), np.float32)
    parts = [
        kernel.space(coordinates(np.arange(rows.start, rows.stop))) @ axes
        for rows in blocks_of_queries(n_rows, len(axes))
    ]
    return np.concatenate(parts) if parts else np.zeros((0, axes.shape[1]), np.float32)
