"""Members: kernels learned by leave-one-out errors, on batches of rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.special import softmax

from ._averages import AverageMember, AveragePairs
from ._encodings import SAMPLE_SIZE
from ._kernel import LEAST_NOISE, LearnedKernel, Pairs
from ._ridge import RidgeMember

# Up to so many rows members are learned on batches drawn at random, and in several ways.
FEW_ROWS = 2500
# Rows that a kernel is learned from, at most.
_MOST_LEARNED_FROM = 20_000
# Deviations of a feature's columns from its scale are normal with this precision before the
# rows are known.
_COLUMN_PRECISION = 0.05
# Of Adam: the share of the steps in which rates rise, and what is kept of the last steps.
_WARM_UP, _MOMENTUM = 0.15, 0.9
# Of patches: rows far from one another would never show how far apart rows may be.
_CENTERS, _NEAR = 8, 32
# Steps for which neighbours are those in the same length-scales.
_REFRESH = 5
# Rows that averages are taken over: for a prediction, and to learn from.
_MOST_AVERAGED, _KEYS, _QUERIES = 50_000, 2048, 256
_AVERAGE_RATE, _AVERAGE_STEPS = 0.1, 80
# Where there are more keys than learned from, nearer ones do: logarithms of what scales are
# multiplied by, on trial.
_SHARPER = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8)
# Shares are mixed with so much of equal ones: none is 0.
_EQUAL = 0.02
_FIRST_SHARPNESS, _NEWTON_STEPS = 4.0, 4


@dataclass(frozen=True)
class RidgeLearner:
    """Kernel ridge regression, learned by its exact leave-one-out errors."""

    batch: int = 512  # rows of a batch, at most
    share: float = 0.8  # of all rows, at most
    rate: float = 0.2
    n_steps: int = 20
    precision: float = 0.0  # how firmly scales are held where they start
    noise: float = 0.1  # to start with
    rough: bool = True  # parts of the kernel
    linear: bool = False
    constant: bool = True
    most_at_random: int = FEW_ROWS  # beyond, batches are patches of neighbours

    def fit(self, training, held_out, loss, rng, options):
        """Learn the kernel without the rows held out, and solve with all rows.

        Returns a RidgeMember and its leave-one-out predictions (n_held_out, n_outputs).
        """
        sample = _Sample(training, held_out, rng)
        kernel = LearnedKernel.start(
            training.features, sample.variances, training.X.shape[1], options.formula,
            constant=float(self.constant and options.learns),
            rough=self.rough and options.learns, linear=self.linear and options.learns,
            noise=self.noise,
        )  # fmt: skip
        kernel, free = options.fix(kernel, training.encodings[0])
        if free.any():
            size = max(2, min(self.batch, int(self.share * len(sample.rows))))
            if len(training) > self.most_at_random:
                batches = PatchBatches(sample.coordinates, rng)
            else:
                batches = RandomBatches(len(sample.rows), size, rng)

            first_scale = kernel.named()["scale"]

            def gradient_at(kernel):
                rows, n_scored = batches.draw(kernel)
                dtype = kernel.precision
                targets, weights = sample.targets[rows].astype(dtype), sample.weights[rows]
                counted = np.where(np.arange(len(rows)) < n_scored, weights, 0)
                counted = counted / counted.sum()
                gradient = leave_one_out(
                    Pairs(kernel, [z[rows].astype(dtype) for z in sample.coordinates]),
                    targets, weights,
                    lambda errors: loss(errors, targets, counted),
                )[1]  # fmt: skip
                named, values = kernel.named(gradient), kernel.named()
                named["deviation"] += 2 * _COLUMN_PRECISION * values["deviation"] / len(rows)
                held = values["scale"] - first_scale
                named["scale"] += 2 * self.precision * held / len(rows)
                return gradient

            kernel = descend(
                kernel, gradient_at, options.n_steps(self.n_steps), self.rate, free
            )
        return RidgeMember.fit(kernel, training, rng, held_out)


@dataclass(frozen=True)
class AverageLearner:
    """Weighted averages, learned by their leave-one-out errors."""

    def fit(self, training, held_out, loss, rng, options):
        """An AverageMember and its leave-one-out predictions; see :class:`RidgeLearner`."""
        sample = _Sample(training, held_out, rng)
        kernel = LearnedKernel.start(
            training.features, sample.variances, training.X.shape[1], options.formula,
            constant=0.0, rough=False, noise=1.0,
        )  # fmt: skip
        kernel, free = options.fix(kernel, training.encodings[0])
        free[-1] = False
        if free.any():

            def gradient_at(kernel):
                keys = rng.permutation(len(sample.rows))[:_KEYS]
                own = rng.permutation(len(keys))[:_QUERIES]
                return _average_gradient(kernel, sample, keys, own, loss)

            n_steps = options.n_steps(_AVERAGE_STEPS)
            kernel = descend(kernel, gradient_at, n_steps, _AVERAGE_RATE, free)
        support = np.arange(len(training))
        if len(training) > _MOST_AVERAGED:
            chosen = rng.choice(len(training), _MOST_AVERAGED, replace=False)
            support = np.union1d(chosen, held_out)
        member = AverageMember(kernel, support)
        if options.learns and len(support) > _KEYS:
            member = _sharpen(member, training, sample.rows, loss, rng)
        own = np.searchsorted(support, held_out)
        own = own if len(support) > 1 else np.full(len(held_out), -1)
        return member, member.predict(training, training.X[held_out], own)


class _Sample:
    """Rows that a kernel is learned from, in single precision: none of those held out."""

    def __init__(self, training, held_out, rng):
        rows = np.arange(len(training))
        if len(held_out) < len(training):
            rows = np.setdiff1d(rows, held_out)
        if len(rows) > _MOST_LEARNED_FROM:
            rows = np.sort(rng.choice(rows, _MOST_LEARNED_FROM, replace=False))
        self.rows = rows
        self.coordinates = training.coordinates(rows, np.float32)
        self.targets = training.targets[rows].astype(np.float32)
        self.weights = training.weights[rows].astype(np.float32)
        self.variances = [
            z[:SAMPLE_SIZE].var(axis=0, dtype=np.float64) for z in self.coordinates
        ]


def _average_gradient(kernel, sample, keys, own, loss):
    at_keys = [z[keys] for z in sample.coordinates]
    at_queries = [z[own] for z in at_keys]
    targets, weights = sample.targets[keys], sample.weights[keys]
    left = own if len(keys) > 1 else None
    pairs = AveragePairs(kernel, at_queries, at_keys, weights, left)
    counted = weights[own] / weights[own].sum()
    of_errors = loss(targets[own] - pairs.weights @ targets, targets[own], counted)[1]
    gradient = pairs.gradient(-of_errors, targets)
    deviation = kernel.named()["deviation"]
    kernel.named(gradient)["deviation"] += 2 * _COLUMN_PRECISION * deviation / len(sample.rows)
    return gradient


def _sharpen(member, training, learned_from, loss, rng):
    """The member at the best of some temperatures, on rows that it has learned from."""
    known = np.intersect1d(learned_from, member.rows)
    queries = rng.choice(known, min(len(known), _QUERIES), replace=False)
    own = np.searchsorted(member.rows, queries)
    targets, weights = training.targets[queries], training.weights[queries]
    found = []
    for sharper in _SHARPER:
        values = member.kernel.values.copy()
        member.kernel.named(values)["scale"][:] += sharper
        trial = AverageMember(member.kernel.with_values(values), member.rows)
        errors = targets - trial.predict(training, training.X[queries], own)
        found.append((loss(errors, targets, weights / weights.sum())[0], sharper, trial))
    return min(found, key=lambda trial: trial[:2])[2]


def descend(kernel, gradient_at, n_steps, rate, free):
    """The kernel after steps of Adam (Kingma, Ba 2015) in one cycle of rates (Smith 2019)."""
    # `gradient_at(kernel)` is that of the loss on another batch of rows. Where it raises
    # LinAlgError the noise is raised, unless it was passed. Parameters that are not `free`,
    # (n_parameters,), do not change. Steps are few: squares count alike in all of them.
    mean, squares, n_done = 0.0, 0.0, 0
    for step in range(n_steps):
        values = kernel.values.copy()
        try:
            gradient = np.where(free, gradient_at(kernel), 0.0)
        except np.linalg.LinAlgError:
            if free[-1]:
                values[-1] += rate
                kernel = kernel.with_values(values)
            continue
        n_done += 1
        mean = _MOMENTUM * mean + (1 - _MOMENTUM) * gradient
        squares = squares + gradient**2
        moved = mean / (1 - _MOMENTUM**n_done)
        size = np.sqrt(squares / n_done) + 1e-8
        values[free] -= (rate * _share((step + 0.5) / n_steps) * moved / size)[free]
        kernel = kernel.with_values(values)
    return kernel


def _share(done):
    """Share of the largest rate, by the share of the steps that are done."""
    risen = done / _WARM_UP if done < _WARM_UP else (1 - done) / (1 - _WARM_UP)
    return 0.5 - 0.5 * math.cos(math.pi * risen)


class RandomBatches:
    """Rows drawn at random."""

    def __init__(self, n_rows, size, rng):
        self._n, self._size, self._rng = n_rows, size, rng

    def draw(self, kernel):
        """Positions of rows, and of how many of them, the first ones, errors count."""
        if self._size >= self._n:
            return np.arange(self._n), self._n
        return self._rng.permutation(self._n)[: self._size], self._size


class PatchBatches:
    """Patches: random rows with those nearest to them, and some rows from elsewhere.

    Errors count in the nearer half of each patch, and as many rows are from elsewhere.
    """

    def __init__(self, coordinates, rng):
        self._coordinates, self._rng, self._patches = coordinates, rng, []

    def draw(self, kernel):
        """Positions of rows, and of how many of them, the first ones, errors count."""
        if not self._patches:
            self._patches = self._find(kernel.space(self._coordinates))
        n, found = len(self._coordinates[0]), self._patches.pop()
        scored = np.unique(found[:, : _NEAR // 2])
        elsewhere = self._rng.choice(n, len(scored), replace=False)
        others = np.setdiff1d(np.concatenate([found.ravel(), elsewhere]), scored)
        return np.concatenate([scored, others]), len(scored)

    def _find(self, space):
        """Rows of the patches of some steps, the nearest first."""
        n = len(space)
        centers = [
            self._rng.choice(n, min(n, _CENTERS), replace=False) for _ in range(_REFRESH)
        ]
        near = min(_NEAR, n)
        # All at once, so that all rows are read but once.
        squared = space[np.concatenate(centers)] @ space.T
        squared *= -2
        squared += np.einsum("ij,ij->i", space, space)
        found = np.argpartition(squared, near - 1, axis=1)[:, :near]
        order = np.argsort(np.take_along_axis(squared, found, axis=1), axis=1)
        return np.split(np.take_along_axis(found, order, axis=1), _REFRESH)


def leave_one_out(pairs, targets, weights, loss):
    """Loss of leave-one-out predictions, and its gradient in the kernel's parameters.

    ``loss(errors)`` returns a number and its derivatives in the errors (n, n_outputs).
    """
    # With C = (K + sigma^2 W^-1)^-1, a = C y and k = diag C the errors are r = a / k (Rasmussen
    # and Williams 2006, section 5.4.2). For a loss with derivatives r', the gradient in the
    # matrix, summed over outputs, is C diag(h) C - (u a' + a u') / 2 with g = r' / k, u = C g
    # and h = g r: one more product of matrices than the errors. LinAlgError if the matrix is
    # not positive definite in its precision.
    matrix = pairs.matrix
    noise = pairs.kernel.noise_of(weights)
    diagonal = matrix.diagonal().copy()
    matrix.flat[:: len(matrix) + 1] += noise + LEAST_NOISE[matrix.dtype] * diagonal.mean()
    inverse = _inverse(matrix)
    solved, own = inverse @ targets, inverse.diagonal()[:, None]
    errors = solved / own
    value, of_errors = loss(errors)
    g = (of_errors / own).astype(matrix.dtype)
    h = (g * errors).sum(axis=1)
    counted = np.flatnonzero(h)
    columns, h = inverse[:, counted], h[counted]
    if (h >= 0).all():
        columns *= np.sqrt(h)
        of_matrix = columns @ columns.T  # of one array: half the work
    else:
        of_matrix = (columns * h) @ columns.T
    u = -0.5 * (inverse @ g)
    of_matrix += np.hstack([u, solved]) @ np.hstack([solved, u]).T
    gradient = pairs.gradient(of_matrix)
    gradient[-1] = 2 * float(of_matrix.diagonal() @ noise)
    return value, gradient


def _inverse(matrix):
    factorise, invert, square = get_lapack_funcs(("potrf", "trtri", "lauum"), (matrix,))
    # The transpose of a symmetric matrix is the same in the order that LAPACK reads.
    factor, info = factorise(matrix.T, lower=1)
    if info:
        raise np.linalg.LinAlgError(
            "the kernel's matrix is not positive definite: choose a positive definite kernel "
            "such as 'gaussian'."
        )
    half = square(invert(factor, lower=1, overwrite_c=1)[0], lower=1, overwrite_c=1)[0]
    inverse = half + half.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return inverse


def squared_loss(errors, targets, weights):
    """Mean squared error over rows and outputs, and its derivatives in the errors.

    Errors are targets less predictions, (n, n_outputs); the weights sum to 1.
    """
    weighted = weights[:, None] * errors / errors.shape[1]
    return float((weighted * errors).sum()), 2 * weighted


@dataclass(frozen=True)
class LossOfClasses:
    """Mean over outputs of a loss of classes, with its derivatives in the errors."""

    of_output: Callable  # cross_entropy or log_loss_of_shares
    frequencies: np.ndarray  # (n_classes,), for several outputs one after the other
    outputs: list  # slices, the classes of each output

    def __call__(self, errors, targets, weights):
        slopes, loss = np.empty(errors.shape), 0.0
        for classes in self.outputs:
            pi = self.frequencies[classes]
            labels = targets[:, classes] + pi > 0.5
            scores = (targets - errors)[:, classes]
            value, slopes[:, classes] = self.of_output(scores, labels, pi, weights)
            loss += value
        return loss / len(self.outputs), slopes / len(self.outputs)


def cross_entropy(scores, labels, frequencies, weights):
    r"""Log-loss of :math:`P(c) \propto \pi_c\, e^{\theta f_c}`, for scores f of classes.

    The sharpness :math:`\theta` is near that of least loss, so derivatives do not depend on it.
    """
    scores, log_prior = scores.astype(np.float64), np.log(frequencies)
    log_sharpness = np.log(_FIRST_SHARPNESS)
    for _ in range(_NEWTON_STEPS):
        sharpness = np.exp(log_sharpness)
        p = softmax(log_prior + sharpness * scores, axis=1)
        mean = (p * scores).sum(axis=1)
        slope = weights @ (mean - (labels * scores).sum(axis=1))
        curvature = weights @ ((p * scores**2).sum(axis=1) - mean**2)
        # In the logarithm; convex in the sharpness itself.
        step = sharpness * slope / max(sharpness**2 * curvature, 1e-12)
        log_sharpness = np.clip(log_sharpness - np.clip(step, -1, 1), -2, 6)
    sharpness = np.exp(log_sharpness)
    p = softmax(log_prior + sharpness * scores, axis=1)
    slopes = -sharpness * weights[:, None] * (p - labels)
    # A probability may be less than the smallest number.
    own = np.maximum((p * labels).sum(axis=1), np.finfo(float).tiny)
    return float(-weights @ np.log(own)), slopes


def log_loss_of_shares(scores, labels, frequencies, weights):
    """Log-loss of predictions that are shares of the classes, less their frequencies."""
    shares = scores + frequencies
    mixed = (1 - _EQUAL) * np.maximum(shares, 0) + _EQUAL / len(frequencies)
    loss = -(weights[:, None] * np.log(mixed))[labels].sum()
    counted = labels & (shares > 0)
    return loss, weights[:, None] * counted * (1 - _EQUAL) / mixed
