"""Leave-one-out errors of kernel ridge regression, losses of them, and gradients."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.special import softmax

from ._kernel import LEAST_NOISE

# Shares are mixed with so much of equal ones: none is 0.
_EQUAL = 0.02
_FIRST_SHARPNESS, _NEWTON_STEPS = 4.0, 4


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
        raise np.linalg.LinAlgError("the kernel's matrix is not positive definite.")
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
