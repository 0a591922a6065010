"""Learners: kernels learned by gradient descent on leave-one-out errors of batches of rows.

A learner fits one member of the ensemble. It learns a kernel from the rows that are not held
out, at most 20 000 of them, by steps of Adam, each on the leave-one-out errors of another batch
of rows. Then the member takes all rows, and predicts each row held out without this row. Losses
of these errors are at the end of the module.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.special import softmax

from ._averages import AverageMember, AveragePairs
from ._encodings import SAMPLE_SIZE
from ._kernel import MIN_NOISE, LearnedKernel
from ._pairs import Pairs
from ._ridge import RidgeMember

# Up to this number of rows batches are drawn at random; beyond they are patches of neighbours.
MAX_RANDOM_ROWS = 2500
# Maximum number of rows that a kernel is learned from.
_MAX_LEARNED_ROWS = 20_000
# Precision of the normal prior of the deviations of columns' log-scales from their feature's.
_DEVIATION_PRECISION = 0.05
# Adam: the fraction of the steps in which learning rates rise, and the factor by which the mean
# of the gradients decays in each step.
_WARM_UP, _MOMENTUM = 0.15, 0.9
# Patches of a batch, and rows in each patch.
_N_PATCHES, _PATCH_SIZE = 8, 32
# Number of batches whose patches are found together, with the length-scales of the first.
_N_BATCHES_TOGETHER = 5
# Averages: maximum number of rows that predictions are averages over; numbers of keys and of
# queries in a batch; largest learning rate, and number of steps.
_MAX_AVERAGED, _N_KEYS, _N_QUERIES = 50_000, 2048, 256
_AVERAGE_RATE, _AVERAGE_STEPS = 0.1, 80
# If predictions have more keys than the batches that a kernel is learned from, shorter
# length-scales are better: what is added to log-scales, on trial.
_LOG_SCALE_STEPS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8)
# Weight of equal probabilities that votes of averages are mixed with, so that none is 0.
_UNIFORM_WEIGHT = 0.02
# The sharpness of probabilities, by Newton's method: its first value, and number of steps.
_FIRST_SHARPNESS, _NEWTON_STEPS = 4.0, 4


@dataclass(frozen=True)
class RidgeLearner:
    """Learner of a kernel ridge regression, by its exact leave-one-out errors."""

    batch: int = 512  # maximum number of rows in a random batch
    max_fraction: float = 0.8  # maximum fraction of all rows that is in a random batch
    rate: float = 0.2  # largest learning rate
    n_steps: int = 20
    # Precision of the normal prior that holds log-scales near those they start with.
    scale_precision: float = 0.0
    noise: float = 0.1  # standard deviation of the noise to start with
    # Whether the kernel has these parts.
    rough: bool = True
    linear: bool = False
    constant: bool = True
    max_random_rows: int = MAX_RANDOM_ROWS  # number of rows beyond which batches are patches

    def fit(self, training, held_out, loss, rng, options):
        """Learn the kernel without the rows held out, and solve with all rows.

        Parameters
        ----------
        training : TrainingRows
        held_out : ndarray of int of shape (n_held_out,)
            Positions of rows.
        loss : callable
            ``loss(errors, targets, weights)`` returns a number and its derivatives in the
            errors, as `squared_loss` does.
        rng : numpy.random.Generator
        options : Options

        Returns
        -------
        member : RidgeMember
        left_out : ndarray of shape (n_held_out, n_outputs)
            Leave-one-out predictions of the rows held out.
        """
        sample = _Sample(training, held_out, rng)
        has_rough, has_linear = self.rough and options.learns, self.linear and options.learns
        kernel_parts = {"rough": has_rough, "linear": has_linear, "noise": self.noise}
        kernel_parts["constant"] = float(self.constant and options.learns)
        kernel = sample.first_kernel(options.formula, **kernel_parts)
        kernel, is_learned = options.fix(kernel, training.encodings[0])
        if is_learned.any():
            if len(training) > self.max_random_rows:
                batches = PatchBatches(sample.coordinates, rng)
            else:
                size = min(self.batch, int(self.max_fraction * len(sample.rows)))
                batches = RandomBatches(len(sample.rows), max(2, size), rng)
            first_scale = kernel.named()["scale"]

            def gradient_at(kernel):
                rows, n_scored = batches.draw(kernel)
                return self._gradient(kernel, sample, rows, n_scored, loss, first_scale)

            n_steps = options.n_steps(self.n_steps)
            kernel = descend(kernel, gradient_at, n_steps, self.rate, is_learned)
        return RidgeMember.fit(kernel, training, rng, held_out)

    def _gradient(self, kernel, sample, rows, n_scored, loss, first_scale):
        """Return the gradient of a batch's loss and of the priors in the kernel's parameters.

        `rows` are positions in the sample; the errors of only the first `n_scored` count.
        `first_scale` (n_encodings, n_features) are the log-scales before learning.
        """
        dtype = kernel.solve_dtype
        targets, weights = sample.targets[rows].astype(dtype), sample.weights[rows]
        score_weights = np.where(np.arange(len(rows)) < n_scored, weights, 0)
        score_weights = score_weights / score_weights.sum()
        pairs = Pairs(kernel, [z[rows].astype(dtype) for z in sample.coordinates])
        _, gradient = leave_one_out(
            pairs, targets, weights, lambda errors: loss(errors, targets, score_weights)
        )
        named_gradient, named = kernel.named(gradient), kernel.named()
        deviation, change = named["deviation"], named["scale"] - first_scale
        named_gradient["deviation"] += 2 * _DEVIATION_PRECISION * deviation / len(rows)
        named_gradient["scale"] += 2 * self.scale_precision * change / len(rows)
        return gradient


@dataclass(frozen=True)
class AverageLearner:
    """Learner of weighted averages, by their leave-one-out errors."""

    def fit(self, training, held_out, loss, rng, options):
        """Learn a kernel; the arguments and results are as for :class:`RidgeLearner`.

        The member is an AverageMember.
        """
        sample = _Sample(training, held_out, rng)
        kernel_parts = {"constant": 0.0, "rough": False, "noise": 1.0}
        kernel = sample.first_kernel(options.formula, **kernel_parts)
        kernel, is_learned = options.fix(kernel, training.encodings[0])
        is_learned[-1] = False  # Averages have no noise.
        if is_learned.any():

            def gradient_at(kernel):
                keys = rng.permutation(len(sample.rows))[:_N_KEYS]
                queries = rng.permutation(len(keys))[:_N_QUERIES]
                return _average_gradient(kernel, sample, keys, queries, loss)

            n_steps = options.n_steps(_AVERAGE_STEPS)
            kernel = descend(kernel, gradient_at, n_steps, _AVERAGE_RATE, is_learned)
        support = np.arange(len(training))
        if len(training) > _MAX_AVERAGED:
            chosen = rng.choice(len(training), _MAX_AVERAGED, replace=False)
            support = np.union1d(chosen, held_out)
        member = AverageMember(kernel, support)
        if options.learns and len(support) > _N_KEYS:
            member = _shorten_length_scales(member, training, sample.rows, loss, rng)
        left_out = np.searchsorted(support, held_out)
        if len(support) == 1:
            # There is no other row to average over.
            left_out = np.full(len(held_out), -1)
        return member, member.predict(training, training.X[held_out], left_out)


class _Sample:
    """Rows that a kernel is learned from, in single precision: none of those held out.

    `rows` are their positions (n,), `coordinates` those in each encoding.
    """

    def __init__(self, training, held_out, rng):
        rows = np.arange(len(training))
        if len(held_out) < len(training):
            rows = np.setdiff1d(rows, held_out)
        if len(rows) > _MAX_LEARNED_ROWS:
            rows = np.sort(rng.choice(rows, _MAX_LEARNED_ROWS, replace=False))
        self.rows = rows
        self.coordinates = training.coordinates(rows, np.float32)
        self.targets = training.targets[rows].astype(np.float32)
        self.weights = training.weights[rows].astype(np.float32)
        self._features, self._n_features = training.features, training.X.shape[1]

    def first_kernel(self, formula, **kernel_parts):
        """Return the kernel before learning, with keywords of `LearnedKernel.start`."""
        sample = [z[:SAMPLE_SIZE] for z in self.coordinates]
        variances = [z.var(axis=0, dtype=np.float64) for z in sample]
        features, n_features = self._features, self._n_features
        return LearnedKernel.start(features, variances, n_features, formula, **kernel_parts)


def _average_gradient(kernel, sample, keys, queries, loss):
    """Return the gradient of the loss of averages, and of the prior, in the parameters.

    `keys` are positions in the sample, and `queries` positions among the keys; each query is
    left out of its own average.
    """
    key_coordinates = [z[keys] for z in sample.coordinates]
    query_coordinates = [z[queries] for z in key_coordinates]
    targets, weights = sample.targets[keys], sample.weights[keys]
    left_out = queries if len(keys) > 1 else None
    pairs = AveragePairs(kernel, query_coordinates, key_coordinates, weights, left_out)
    score_weights = weights[queries] / weights[queries].sum()
    errors = targets[queries] - pairs.weights @ targets
    _, error_gradient = loss(errors, targets[queries], score_weights)
    gradient = pairs.gradient(-error_gradient, targets)
    deviation = kernel.named()["deviation"]
    prior_gradient = 2 * _DEVIATION_PRECISION * deviation / len(sample.rows)
    kernel.named(gradient)["deviation"] += prior_gradient
    return gradient


def _shorten_length_scales(member, training, learned_rows, loss, rng):
    """Return the member with all length-scales divided by the factor of least loss.

    The loss is that of leave-one-out predictions of rows that the kernel was learned from, by
    averages over all keys. `learned_rows` are positions of these rows.
    """
    known = np.intersect1d(learned_rows, member.rows)
    queries = rng.choice(known, min(len(known), _N_QUERIES), replace=False)
    left_out = np.searchsorted(member.rows, queries)
    targets, weights = training.targets[queries], training.weights[queries]
    trials = []
    for log_scale_step in _LOG_SCALE_STEPS:
        values = member.kernel.values.copy()
        member.kernel.named(values)["scale"][:] += log_scale_step
        trial = AverageMember(member.kernel.with_values(values), member.rows)
        errors = targets - trial.predict(training, training.X[queries], left_out)
        value, _ = loss(errors, targets, weights / weights.sum())
        trials.append((value, log_scale_step, trial))
    return min(trials, key=lambda trial: trial[:2])[2]


def descend(kernel, gradient_at, n_steps, rate, is_learned):
    """Return the kernel after steps of Adam (Kingma and Ba 2015) in one cycle of rates.

    Unlike those of Adam, squares of gradients have the same weight in all steps, as there are
    only a few.

    Parameters
    ----------
    kernel : LearnedKernel
    gradient_at : callable
        ``gradient_at(kernel)`` returns the gradient of the loss on another batch of rows. If it
        raises LinAlgError, the noise is raised instead, unless it was passed by the user.
    n_steps : int
    rate : float
        Largest learning rate.
    is_learned : ndarray of bool of shape (n_parameters,)
        Whether a parameter changes.
    """
    mean_gradient, squares, n_done = 0.0, 0.0, 0
    for step in range(n_steps):
        values = kernel.values.copy()
        try:
            gradient = np.where(is_learned, gradient_at(kernel), 0.0)
        except np.linalg.LinAlgError:
            # More noise makes the matrix positive definite.
            if is_learned[-1]:
                values[-1] += rate
                kernel = kernel.with_values(values)
            continue
        n_done += 1
        mean_gradient = _MOMENTUM * mean_gradient + (1 - _MOMENTUM) * gradient
        squares = squares + gradient**2
        # The mean of the gradients starts at 0, which this factor corrects.
        corrected_mean = mean_gradient / (1 - _MOMENTUM**n_done)
        size = np.sqrt(squares / n_done) + 1e-8
        step_rate = rate * _one_cycle((step + 0.5) / n_steps)
        values[is_learned] -= (step_rate * corrected_mean / size)[is_learned]
        kernel = kernel.with_values(values)
    return kernel


def _one_cycle(progress):
    """Return the learning rate as a fraction of the largest one (Smith 2019).

    `progress` is the fraction of the steps that are done.
    """
    if progress < _WARM_UP:
        height = progress / _WARM_UP
    else:
        height = (1 - progress) / (1 - _WARM_UP)
    return 0.5 - 0.5 * math.cos(math.pi * height)


class RandomBatches:
    """Batches of rows drawn at random."""

    def __init__(self, n_rows, size, rng):
        self._n_rows, self._size, self._rng = n_rows, size, rng

    def draw(self, kernel):
        """Draw positions of rows; the errors of the first n_scored of them count.

        Returns (positions, n_scored).
        """
        if self._size >= self._n_rows:
            return np.arange(self._n_rows), self._n_rows
        return self._rng.permutation(self._n_rows)[: self._size], self._size


class PatchBatches:
    """Batches of patches: random rows with their nearest neighbours, and some other rows.

    Of many rows, random ones have no near neighbours, and patches alone would not show how far
    apart rows may be. Errors count in the nearer half of each patch. As many rows are drawn
    from all rows, whose errors do not count.
    """

    def __init__(self, coordinates, rng):
        self._coordinates, self._rng, self._patches = coordinates, rng, []

    def draw(self, kernel):
        """Draw positions of rows; the errors of the first n_scored of them count.

        Returns (positions, n_scored).
        """
        if not self._patches:
            self._patches = self._find_patches(kernel.space(self._coordinates))
        n_rows, patches = len(self._coordinates[0]), self._patches.pop()
        # Of a patch (n_patches, n_neighbors), the nearer half of the neighbours is scored.
        scored = np.unique(patches[:, : _PATCH_SIZE // 2])
        drawn = self._rng.choice(n_rows, len(scored), replace=False)
        unscored = np.setdiff1d(np.concatenate([patches.ravel(), drawn]), scored)
        return np.concatenate([scored, unscored]), len(scored)

    def _find_patches(self, space):
        """Return the rows of patches, the nearest first: (n_patches, n_neighbors) per batch.

        `space` (n_rows, n_columns) are the rows in the learned space.
        """
        n_rows = len(space)
        centers = [
            self._rng.choice(n_rows, min(n_rows, _N_PATCHES), replace=False)
            for _ in range(_N_BATCHES_TOGETHER)
        ]
        n_neighbors = min(_PATCH_SIZE, n_rows)
        # One product for all batches reads the rows only once. The squared norms of the centers
        # are left out, as they do not change the order of a center's neighbours.
        squared = space[np.concatenate(centers)] @ space.T
        squared *= -2
        squared += np.einsum("ij,ij->i", space, space)
        nearest = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]
        order = np.argsort(np.take_along_axis(squared, nearest, axis=1), axis=1)
        nearest = np.take_along_axis(nearest, order, axis=1)
        return np.split(nearest, _N_BATCHES_TOGETHER)


def leave_one_out(pairs, targets, weights, loss):
    """Return the loss of leave-one-out errors, and its gradient in the kernel's parameters.

    With C = (K + sigma^2 W^-1)^-1 the errors are r = (C y) / diag C (Rasmussen and Williams
    2006, section 5.4.2). For a loss with derivatives r', the gradient in the matrix, summed
    over outputs, is C diag(h) C + u a' + a u' with a = C y, g = r' / diag C, u = -C g / 2 and
    h = g r: one more product of matrices than the errors need.

    Parameters
    ----------
    pairs : Pairs
        The Gram matrix K of a batch of n rows, which is overwritten.
    targets : ndarray of shape (n, n_outputs)
    weights : ndarray of shape (n,)
        The diagonal of W.
    loss : callable
        ``loss(errors)`` returns a number and its derivatives in the errors (n, n_outputs).

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite in its precision.
    """
    matrix = pairs.matrix
    noise = pairs.kernel.noise_variances(weights)
    mean_diagonal = matrix.diagonal().copy().mean()
    matrix.flat[:: len(matrix) + 1] += noise + MIN_NOISE[matrix.dtype] * mean_diagonal
    inverse = _inverse(matrix)
    a, diagonal = inverse @ targets, inverse.diagonal()[:, None]
    errors = a / diagonal
    value, error_gradient = loss(errors)
    g = (error_gradient / diagonal).astype(matrix.dtype)
    h = (g * errors).sum(axis=1)
    # Errors of some rows may not count.
    counted = np.flatnonzero(h)
    columns, h = inverse[:, counted], h[counted]
    if (h >= 0).all():
        # A product of one array with itself takes half the time.
        columns *= np.sqrt(h)
        matrix_gradient = columns @ columns.T
    else:
        matrix_gradient = (columns * h) @ columns.T
    u = -0.5 * (inverse @ g)
    matrix_gradient += np.hstack([u, a]) @ np.hstack([a, u]).T
    gradient = pairs.gradient(matrix_gradient)
    gradient[-1] = 2 * float(matrix_gradient.diagonal() @ noise)
    return value, gradient


def _inverse(matrix):
    """Return the inverse of a positive definite matrix, which is overwritten."""
    factorise, invert, square = get_lapack_funcs(("potrf", "trtri", "lauum"), (matrix,))
    # The transpose of a symmetric matrix is the same in the order that LAPACK reads.
    factor, info = factorise(matrix.T, lower=1)
    if info:
        raise np.linalg.LinAlgError(
            "the kernel's matrix is not positive definite: choose a positive definite kernel "
            "such as 'gaussian'."
        )
    half = square(invert(factor, lower=1, overwrite_c=1)[0], lower=1, overwrite_c=1)[0]
    # LAPACK computes the lower triangle only.
    inverse = half + half.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return inverse


def squared_loss(errors, targets, weights):
    """Return the mean squared error over rows and outputs, and its derivatives in the errors.

    Errors are targets minus predictions, (n, n_outputs). The weights of the rows sum to 1. The
    targets have no influence.
    """
    weighted = weights[:, None] * errors / errors.shape[1]
    return float((weighted * errors).sum()), 2 * weighted


@dataclass(frozen=True)
class LossOfClasses:
    """Mean over outputs of a loss of classes, with its derivatives in the errors.

    Targets are indicators of the classes minus their frequencies, predictions are scores.
    """

    loss_of_output: Callable  # cross_entropy or log_loss_of_votes
    frequencies: np.ndarray  # (n_classes,), for several outputs one after the other
    outputs: list  # slices, the classes of each output

    def __call__(self, errors, targets, weights):
        """Return the loss and its derivatives in the errors, like `squared_loss`."""
        slopes, loss = np.empty(errors.shape), 0.0
        for classes in self.outputs:
            pi = self.frequencies[classes]
            is_class = targets[:, classes] + pi > 0.5
            scores = (targets - errors)[:, classes]
            value, slopes[:, classes] = self.loss_of_output(scores, is_class, pi, weights)
            loss += value
        return loss / len(self.outputs), slopes / len(self.outputs)


def cross_entropy(scores, is_class, frequencies, weights):
    r"""Return the log-loss of :math:`P(c) \propto \pi_c\, e^{\theta f_c}`, and its derivatives.

    The sharpness :math:`\theta` is near that of least loss, so that its own change does not
    matter for the derivatives.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
        The f of the classes.
    is_class : ndarray of bool of shape (n, n_classes)
        True for the class of the row.
    frequencies : ndarray of shape (n_classes,)
    weights : ndarray of shape (n,)
        They sum to 1.

    Returns
    -------
    loss : float
    slopes : ndarray of shape (n, n_classes)
        Derivatives in the errors, which are targets minus scores.
    """
    scores, log_prior = scores.astype(np.float64), np.log(frequencies)
    log_sharpness = np.log(_FIRST_SHARPNESS)
    for _ in range(_NEWTON_STEPS):
        sharpness = np.exp(log_sharpness)
        p = softmax(log_prior + sharpness * scores, axis=1)
        mean = (p * scores).sum(axis=1)
        slope = weights @ (mean - (is_class * scores).sum(axis=1))
        curvature = weights @ ((p * scores**2).sum(axis=1) - mean**2)
        # Newton's step in the logarithm, with the curvature in the sharpness, in which the loss
        # is convex.
        step = sharpness * slope / max(sharpness**2 * curvature, 1e-12)
        log_sharpness = np.clip(log_sharpness - np.clip(step, -1, 1), -2, 6)
    sharpness = np.exp(log_sharpness)
    p = softmax(log_prior + sharpness * scores, axis=1)
    slopes = -sharpness * weights[:, None] * (p - is_class)
    # A probability may be less than the smallest number.
    probability = np.maximum((p * is_class).sum(axis=1), np.finfo(float).tiny)
    return float(-weights @ np.log(probability)), slopes


def log_loss_of_votes(scores, is_class, frequencies, weights):
    """Return the log-loss of weighted votes for the classes, and its derivatives.

    Scores are votes minus frequencies. The arguments and results are as for `cross_entropy`.
    Votes are clipped at 0, and mixed with equal probabilities, so that the loss is finite.
    """
    votes = scores + frequencies
    uniform = _UNIFORM_WEIGHT / len(frequencies)
    mixed = (1 - _UNIFORM_WEIGHT) * np.maximum(votes, 0) + uniform
    loss = -(weights[:, None] * np.log(mixed))[is_class].sum()
    # Errors are targets minus scores, so that the derivatives in them are positive.
    is_counted = is_class & (votes > 0)
    return loss, weights[:, None] * is_counted * (1 - _UNIFORM_WEIGHT) / mixed
