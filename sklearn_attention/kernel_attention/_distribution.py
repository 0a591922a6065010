"""Predictive distributions: leave-one-out errors, weighted by where they were made."""

import dataclasses

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular
from scipy.special import softmax

from .._blocks import evenly_spread
from .._thread_pools import one_blas_thread
from ._kernel import Pairs, ScaledKeys

# Factors of the errors' log-weights: 0 for equal weights everywhere, 1 for those of the kernel
# that predicts.
_SHARPNESS = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# Share of the weight that all errors have equally, so that no distribution is one error.
_EVERYWHERE = 0.1
# Rows whose errors choose the factor, and rows by which deviations are known, at most.
_MOST_COMPARED = 500


class HeldOutRows:
    """Rows that have errors: their kernel with queries, and deviations of new targets."""

    # The deviation of a new target is that of the Gaussian process with the kernel, s(x)^2 =
    # K(x, x) + sigma^2 - k(x)' (K + sigma^2 W^-1)^-1 k(x), and of a row its own left-out one.
    # Only their ratios matter, and the constant of the kernel is left out. Its linear part
    # makes them grow on and on beyond the rows, as predictions do, and is no likeness of rows.
    # Deviations that do not vary, as those of averages, whose kernel has no noise, are 1.

    def __init__(self, kernel, rows, weights, varied=True):
        self._kernel = dataclasses.replace(kernel, constant=0.0)
        values = kernel.values.copy()
        kernel.named(values)["linear"][:] = -np.inf
        self._likeness = self._kernel.with_values(values)
        self.rows, self._keys = rows, ScaledKeys.of(self._likeness, rows)
        self.deviations = np.ones(len(weights))
        self._factor = None
        if varied:
            self._factorise(weights)

    def log_kernel(self, queries, rows=None):
        """Return the logarithm of the kernel between queries and all rows, or other rows."""
        with one_blas_thread(), np.errstate(divide="ignore"):
            return np.log(self._likeness.matrix(queries, self._keys if rows is None else rows))

    def deviations_of(self, queries):
        """Return the standard deviations of new targets at queries, (n_queries,)."""
        if self._factor is None:
            return np.ones(len(queries[0]))
        with one_blas_thread():
            return self._deviations(queries)

    def _factorise(self, weights):
        n = len(weights)
        known = evenly_spread(np.arange(n), _MOST_COMPARED)
        self._known = ScaledKeys.of(self._kernel, [z[known] for z in self.rows])
        noise = self._kernel.noise_of(weights[known])
        matrix = Pairs(self._kernel, self._known.rows).matrix
        diagonal = matrix.diagonal().copy()
        (factorise, invert) = get_lapack_funcs(("potrf", "trtri"), (matrix,))
        for least in diagonal.mean() * 10.0 ** np.arange(-10, 3):
            matrix.flat[:: len(matrix) + 1] = diagonal + noise + least
            factor, info = factorise(matrix.T, lower=1, clean=1)
            if info == 0:
                break
        else:
            return
        self._factor, self._least = factor, self._kernel.noise + least
        others = np.setdiff1d(np.arange(n), known)
        if len(others):
            self.deviations[others] = self._deviations([z[others] for z in self.rows])
        inverse = invert(self._factor, lower=1)[0]
        self.deviations[known] = 1 / np.sqrt(np.square(inverse).sum(axis=0))

    def _deviations(self, queries):
        matrix = self._kernel.matrix(queries, self._known)
        of_known = np.square(solve_triangular(self._factor, matrix.T, lower=True)).sum(axis=0)
        # Never less than the noise, but for rounding.
        spread = np.maximum(self._kernel.diagonal(queries) - of_known, 0)
        return np.sqrt(spread + self._least)


@dataclasses.dataclass(frozen=True)
class ErrorDistribution:
    """Leave-one-out errors, in units of the deviations at their rows, and their weights."""

    errors: np.ndarray  # (n, n_outputs)
    # The part of the errors by which fits to these rows too reduce them.
    in_sample_gain: np.ndarray
    weights: np.ndarray  # (n,)
    sharpness: float  # see error_weights

    @classmethod
    def calibrate(cls, held_out, errors, in_sample_gain, weights):
        """The distribution of least score, some rows scored by the errors of all others."""
        errors, in_sample_gain = (
            e / held_out.deviations[:, None] for e in (errors, in_sample_gain)
        )
        rng = np.random.default_rng(0)
        scored = rng.choice(len(errors), min(len(errors), _MOST_COMPARED), replace=False)
        likeness = held_out.log_kernel([z[scored] for z in held_out.rows])
        counts = weights[scored] * held_out.deviations[scored]
        sharpness = calibrate(likeness, errors, in_sample_gain, weights, scored, counts)
        return cls(errors, in_sample_gain, weights, sharpness)

    def deviation(self, log_kernel, deviations):
        """Return standard deviations of new errors, (n_queries, n_outputs).

        Like `quantiles` it takes the log-kernel between queries and the rows held out,
        (n_queries, n), and the deviations of new targets at queries, (n_queries,).
        """
        shares = error_weights(log_kernel, self.weights, self.sharpness)
        return error_deviation(shares, self.errors) * deviations[:, None]

    def quantiles(self, log_kernel, deviations, probabilities):
        """Return quantiles of new errors, (n_queries, n_quantiles, n_outputs)."""
        shares = error_weights(log_kernel, self.weights, self.sharpness)
        found = error_quantiles(shares, self.errors, self.in_sample_gain, probabilities)
        return found * deviations[:, None, None]


def calibrate(likeness, errors, in_sample_gain, weights, scored, counts):
    """Sharpness of the weights of errors, by least CRPS."""
    # `likeness` (n_scored, n) is the kernel's logarithm between the rows that are scored and
    # all that have errors; `counts` are the weights of the scores. Every row is scored by the
    # errors of all others.
    if len(errors) < 3:
        return 0.0
    others = np.ones(likeness.shape, dtype=bool)
    others[np.arange(len(scored)), scored] = False
    sizes = (np.abs(e).mean(axis=0) for e in (errors, in_sample_gain))
    size = np.maximum(*sizes) + np.finfo(float).tiny
    # Scores are compared, for which single precision suffices.
    errors, in_sample_gain = ((e / size).astype(np.float32) for e in (errors, in_sample_gain))
    likeness = likeness.astype(np.float32)
    found = []
    for sharpness in _SHARPNESS:
        shares = error_weights(likeness, weights, sharpness, others)
        pairs = zip(errors.T, in_sample_gain.T, strict=True)
        scores = [_crps(shares, *pair, scored) for pair in pairs]
        found.append((np.average(np.mean(scores, axis=0), weights=counts), sharpness))
    return min(found)[1]


def error_weights(likeness, weights, sharpness, counted=None):
    """Weights of the errors at queries, which sum to 1, from the logarithm of the kernel.

    Both are (n_queries, n), and so is `counted`: whether errors count at all.
    """
    counts = np.broadcast_to(np.log(weights).astype(likeness.dtype), likeness.shape)
    if counted is not None:
        counts = np.where(counted, counts, -np.inf)
    alike = softmax(counts, axis=1)
    if sharpness == 0:
        return alike
    near = sharpness * likeness + counts
    # Where a compact kernel reaches no error, all are alike.
    lost = np.isneginf(near).all(axis=1)
    near[lost] = counts[lost]
    return (1 - _EVERYWHERE) * softmax(near, axis=1) + _EVERYWHERE * alike


def _crps(shares, errors, in_sample_gain, scored):
    r"""Scores :math:`\int (F(t) - [e \le t])^2\,dt` of some errors in their distributions."""
    order = np.argsort(errors)
    places = errors[order]
    reached = np.cumsum(shares[:, order], axis=1)[:, :-1]
    own = errors[scored] + shares @ in_sample_gain  # where the error lies before the move
    away = np.abs(errors - own[:, None])
    # The mean distance to the error, less half of that between two draws.
    return np.einsum("ij,ij->i", shares, away) - (reached * (1 - reached)) @ np.diff(places)


def error_deviation(shares, errors):
    """Standard deviations of a new error, (n_queries, n_outputs)."""
    # Errors vary by 1 - sum(w^2) of their variance around their own weighted mean, and a new
    # one by 1 + sum(w^2).
    mean = shares @ errors
    variance = np.maximum(shares @ np.square(errors) - np.square(mean), 0)
    new = np.square(shares).sum(axis=1, keepdims=True)
    return np.sqrt(variance * (1 + new) / np.maximum(1 - new, np.finfo(float).eps))


def error_quantiles(shares, errors, in_sample_gain, quantiles):
    """Quantiles (n_queries, n_quantiles, n_outputs) of a new error, from weighted errors."""
    # Moved by the weighted mean of `in_sample_gain`, by which the fit has reduced the errors:
    # its predictions near these rows use their targets, which the errors do not.
    # Linear between the errors. Of n equal errors the i-th stands at i / (n + 1), where a new
    # one is as likely below the first as between any two; in the middle of its own weight,
    # intervals of few errors would be too narrow. Weights count as 1 / sum(weights**2) equal
    # ones.
    found = np.empty((len(shares), len(quantiles), errors.shape[1]))
    new = np.square(shares).sum(axis=1)
    for output, error in enumerate(errors.T):
        order = np.argsort(error)
        places, weights = error[order], shares[:, order]
        middle = np.cumsum(weights, axis=1) - weights / 2
        for row, reached in enumerate(_with_one_more(middle, new)):
            found[row, :, output] = np.interp(quantiles, reached, places)
    return found - (shares @ in_sample_gain)[:, None, :]


def _with_one_more(levels, new):
    """Levels among some errors, from 0 to 1, once there is one more of weight `new`."""
    new = new[:, None]
    tail = np.minimum(levels, 1 - levels)
    # Beyond half its weight nothing is known: levels there fall to 0 in proportion.
    raised = (tail + np.minimum(tail, new / 2)) / (1 + new)
    return np.where(levels < 0.5, raised, 1 - raised)
