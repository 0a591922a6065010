"""Predictive distributions, from the leave-one-out errors of the rows held out.

The distribution of a new target at x is the prediction plus n errors with weights that depend
on x: errors of rows that are similar to x count more (split-conformal prediction with a local
weight and a local scale). For a row i that was held out, and a query x:

- error e_i: the target minus its leave-one-out prediction, in standardised units.
- in-sample gain g_i: the prediction of row i by all rows, itself included, minus its
  leave-one-out prediction: the part of the error that the row's own target removes.
- s(x): standard deviation of a new target by the Gaussian process of the learned kernel, and
  s_i: the same at row i when this row is left out. Only their ratios matter. Errors e_i / s_i
  are called scaled errors.
- k(x, x_i): similarity, the learned kernel without its constant and its linear part.
- w_i(x): weight of the error, 0.9 v_i k(x, x_i)^t + 0.1 v_i with both terms normalised, for
  the row's weight v_i. The exponent t is called sharpness, an inverse temperature: 0 weights
  all errors by v_i alone.
"""

import dataclasses

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular
from scipy.special import softmax

from .._blocks import evenly_spread
from .._thread_pools import one_blas_thread
from ._kernel import ScaledKeys
from ._pairs import Pairs

# Sharpnesses on trial.
_SHARPNESS = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# Part of the weight that is independent of the similarity, so that no distribution consists of
# a single error.
_UNIFORM_WEIGHT = 0.1
# Maximum number of rows whose errors choose the sharpness, and of rows that standard deviations
# are conditioned on.
_MAX_COMPARED = 500


class HeldOutRows:
    """Rows held out: their similarity to queries, and standard deviations of new targets.

    The deviation of a new target is s(x)^2 = k(x, x) + sigma^2 - k(x)' (K + sigma^2 W^-1)^-1
    k(x), as in equation 2.26 of Rasmussen and Williams (2006), for the kernel without its
    constant; that of a row held out is its leave-one-out one (their equation 5.12). With
    `has_noise` False, as for averages, whose kernel has no noise variance, all are 1.

    Attributes
    ----------
    rows : list of ndarray of shape (n, n_columns)
        The rows, in all encodings.
    deviations : ndarray of shape (n,)
        Leave-one-out standard deviation s_i of each row.
    """

    def __init__(self, kernel, rows, weights, has_noise=True):
        self._kernel = dataclasses.replace(kernel, constant=0.0)
        # The linear part is no similarity of rows. It stays in the deviations, which it makes
        # grow without end beyond the rows, as predictions do.
        values = kernel.values.copy()
        kernel.named(values)["linear"][:] = -np.inf
        self._similarity = self._kernel.with_values(values)
        self.rows, self._keys = rows, ScaledKeys.from_rows(self._similarity, rows)
        self.deviations = np.ones(len(weights))
        self._factor = None
        if has_noise:
            self._factorise(weights)

    def log_kernel(self, queries, rows=None):
        """Return the logarithm of the similarity between queries and all rows, or other rows.

        Queries and rows are lists of arrays in all encodings; the result is (n_queries, n).
        """
        keys = self._keys if rows is None else rows
        with one_blas_thread(), np.errstate(divide="ignore"):
            return np.log(self._similarity.matrix(queries, keys))

    def deviations_of(self, queries):
        """Return the standard deviations s(x) of new targets at queries, (n_queries,)."""
        if self._factor is None:
            return np.ones(len(queries[0]))
        with one_blas_thread():
            return self._deviations(queries)

    def _factorise(self, weights):
        """Condition a Gaussian process on up to 500 rows; set `deviations` of all rows.

        It factorises K + sigma^2 W^-1 of the rows that the process is conditioned on; their
        `weights` are the diagonal of W. If the matrix is not positive definite even with 100
        times its mean diagonal added, all deviations stay 1.
        """
        n = len(weights)
        conditioned = evenly_spread(np.arange(n), _MAX_COMPARED)
        self._conditioned_keys = ScaledKeys.from_rows(
            self._kernel, [z[conditioned] for z in self.rows]
        )
        noise = self._kernel.noise_variances(weights[conditioned])
        matrix = Pairs(self._kernel, self._conditioned_keys.rows).matrix
        diagonal = matrix.diagonal().copy()
        (factorise, invert) = get_lapack_funcs(("potrf", "trtri"), (matrix,))
        # Add as little to the diagonal as makes the matrix positive definite.
        for jitter in diagonal.mean() * 10.0 ** np.arange(-10, 3):
            matrix.flat[:: len(matrix) + 1] = diagonal + noise + jitter
            factor, info = factorise(matrix.T, lower=1, clean=1)
            if info == 0:
                break
        else:
            return
        self._factor, self._min_variance = factor, self._kernel.noise + jitter
        unconditioned = np.setdiff1d(np.arange(n), conditioned)
        if len(unconditioned):
            rows = [z[unconditioned] for z in self.rows]
            self.deviations[unconditioned] = self._deviations(rows)
        # The leave-one-out variance of a row is 1 / diag((K + sigma^2 W^-1)^-1).
        inverse = invert(self._factor, lower=1)[0]
        self.deviations[conditioned] = 1 / np.sqrt(np.square(inverse).sum(axis=0))

    def _deviations(self, queries):
        """Return s(x) at queries, conditioned on the rows of the factorised matrix."""
        matrix = self._kernel.matrix(queries, self._conditioned_keys)
        half = solve_triangular(self._factor, matrix.T, lower=True)
        explained = np.square(half).sum(axis=0)
        # Rounding may make the variance of the function negative.
        variance = np.maximum(self._kernel.diagonal(queries) - explained, 0)
        return np.sqrt(variance + self._min_variance)


@dataclasses.dataclass(frozen=True)
class ErrorDistribution:
    """Scaled errors of the rows held out, and the sharpness of their weights."""

    errors: np.ndarray  # (n, n_outputs), e_i / s_i
    in_sample_gain: np.ndarray  # (n, n_outputs), g_i / s_i
    weights: np.ndarray  # (n,), weights v_i of the rows
    sharpness: float  # the exponent t of the similarity

    @classmethod
    def calibrate(cls, held_out, errors, in_sample_gain, weights):
        """Scale the errors, and choose the sharpness by the CRPS of predicting each error.

        The continuous ranked probability score (CRPS) of an error is that of the distribution
        that all other errors make at its row.

        Parameters
        ----------
        held_out : HeldOutRows
        errors, in_sample_gain : ndarray of shape (n, n_outputs)
            Neither is scaled yet.
        weights : ndarray of shape (n,)
            Weights of the rows.
        """
        errors = errors / held_out.deviations[:, None]
        in_sample_gain = in_sample_gain / held_out.deviations[:, None]
        rng = np.random.default_rng(0)
        scored = rng.choice(len(errors), min(len(errors), _MAX_COMPARED), replace=False)
        log_kernel = held_out.log_kernel([z[scored] for z in held_out.rows])
        # Scores of scaled errors are multiplied by s_i, so that they have the targets' unit.
        score_weights = weights[scored] * held_out.deviations[scored]
        sharpness = choose_sharpness(
            log_kernel, errors, in_sample_gain, weights, scored, score_weights
        )
        return cls(errors, in_sample_gain, weights, sharpness)

    def deviation(self, log_kernel, deviations):
        """Return standard deviations of new errors, (n_queries, n_outputs).

        Like `quantiles` it takes the log-similarity of queries and the rows held out,
        (n_queries, n), and the deviations s(x) of new targets at queries, (n_queries,).
        """
        error_weights = weights_of_errors(log_kernel, self.weights, self.sharpness)
        return error_deviation(error_weights, self.errors) * deviations[:, None]

    def quantiles(self, log_kernel, deviations, probabilities):
        """Return quantiles of new errors, (n_queries, n_quantiles, n_outputs)."""
        error_weights = weights_of_errors(log_kernel, self.weights, self.sharpness)
        scaled_quantiles = error_quantiles(
            error_weights, self.errors, self.in_sample_gain, probabilities
        )
        return scaled_quantiles * deviations[:, None, None]


def choose_sharpness(log_kernel, errors, in_sample_gain, weights, scored, score_weights):
    """Return the sharpness of least mean CRPS; 0 if there are fewer than 3 errors.

    Parameters
    ----------
    log_kernel : ndarray of shape (n_scored, n)
        Log-similarity between the rows that are scored and all rows held out.
    errors, in_sample_gain : ndarray of shape (n, n_outputs)
    weights : ndarray of shape (n,)
        Weights of the rows in distributions.
    scored : ndarray of int of shape (n_scored,)
        Positions of the rows that are scored, each by the errors of all other rows.
    score_weights : ndarray of shape (n_scored,)
        Weights of the rows' scores in the mean.
    """
    if len(errors) < 3:
        return 0.0
    is_counted = np.ones(log_kernel.shape, dtype=bool)
    is_counted[np.arange(len(scored)), scored] = False
    error_size, gain_size = np.abs(errors).mean(axis=0), np.abs(in_sample_gain).mean(axis=0)
    size = np.maximum(error_size, gain_size) + np.finfo(float).tiny
    # Scores are only compared, for which single precision suffices.
    errors = (errors / size).astype(np.float32)
    in_sample_gain = (in_sample_gain / size).astype(np.float32)
    log_kernel = log_kernel.astype(np.float32)
    trials = []
    for sharpness in _SHARPNESS:
        error_weights = weights_of_errors(log_kernel, weights, sharpness, is_counted)
        scores = [
            _crps(error_weights, errors_of_output, gain_of_output, scored)
            for errors_of_output, gain_of_output in zip(errors.T, in_sample_gain.T, strict=True)
        ]
        mean_score = np.average(np.mean(scores, axis=0), weights=score_weights)
        trials.append((mean_score, sharpness))
    return min(trials)[1]


def weights_of_errors(log_kernel, weights, sharpness, is_counted=None):
    """Return the weights w_i(x) of the errors at queries, (n_queries, n); rows sum to 1.

    Parameters
    ----------
    log_kernel : ndarray of shape (n_queries, n)
        Log-similarity between queries and the rows that have errors.
    weights : ndarray of shape (n,)
        Weights of these rows.
    sharpness : float
        Exponent of the similarity.
    is_counted : ndarray of bool of shape (n_queries, n), default=None
        Whether an error has a weight at a query at all. By default all have.
    """
    log_weights = np.broadcast_to(np.log(weights).astype(log_kernel.dtype), log_kernel.shape)
    if is_counted is not None:
        log_weights = np.where(is_counted, log_weights, -np.inf)
    uniform = softmax(log_weights, axis=1)
    if sharpness == 0:
        return uniform
    logits = sharpness * log_kernel + log_weights
    # Where a compact kernel is 0 for all rows, the similarity does not count.
    is_isolated = np.isneginf(logits).all(axis=1)
    logits[is_isolated] = log_weights[is_isolated]
    return (1 - _UNIFORM_WEIGHT) * softmax(logits, axis=1) + _UNIFORM_WEIGHT * uniform


def _crps(error_weights, errors, in_sample_gain, scored):
    r"""Return the CRPS :math:`\int (F(t) - [e \le t])^2\,dt` of errors, (n_scored,).

    Row i of `error_weights` (n_scored, n) is the distribution F of the error e at position
    ``scored[i]`` of `errors` (n,). F is the weighted errors, all moved by the weighted mean of
    `in_sample_gain` (n,), as in `error_quantiles`.
    """
    order = np.argsort(errors)
    sorted_errors = errors[order]
    cdf = np.cumsum(error_weights[:, order], axis=1)[:, :-1]
    # Here the observed error is moved in the opposite direction instead.
    observed = errors[scored] + error_weights @ in_sample_gain
    distances = np.abs(errors - observed[:, None])
    # CRPS = E|X - e| - E|X - X'| / 2, for two independent draws X and X' from F.
    to_observed = np.einsum("ij,ij->i", error_weights, distances)
    return to_observed - (cdf * (1 - cdf)) @ np.diff(sorted_errors)


def error_deviation(error_weights, errors):
    """Return standard deviations of a new error, (n_queries, n_outputs).

    With weights w, the variance of the errors around their weighted mean is on average
    1 - sum(w^2) times their true variance, and that of a new error 1 + sum(w^2) times.
    """
    mean = error_weights @ errors
    variance = np.maximum(error_weights @ np.square(errors) - np.square(mean), 0)
    sum_of_squares = np.square(error_weights).sum(axis=1, keepdims=True)
    denominator = np.maximum(1 - sum_of_squares, np.finfo(float).eps)
    return np.sqrt(variance * (1 + sum_of_squares) / denominator)


def error_quantiles(error_weights, errors, in_sample_gain, probabilities):
    """Return quantiles of a new error, (n_queries, n_quantiles, n_outputs).

    Quantiles are linear between the errors (n, n_outputs), whose weights (n_queries, n) are
    rows that sum to 1. They are moved by minus the weighted mean of `in_sample_gain`:
    predictions near these rows use the rows' own targets, which leave-one-out predictions do
    not.
    """
    quantiles = np.empty((len(error_weights), len(probabilities), errors.shape[1]))
    new_weight = np.square(error_weights).sum(axis=1)
    for output, errors_of_output in enumerate(errors.T):
        order = np.argsort(errors_of_output)
        sorted_errors, sorted_weights = errors_of_output[order], error_weights[:, order]
        middle = np.cumsum(sorted_weights, axis=1) - sorted_weights / 2
        for query, levels in enumerate(_with_new_error(middle, new_weight)):
            quantiles[query, :, output] = np.interp(probabilities, levels, sorted_errors)
    return quantiles - (error_weights @ in_sample_gain)[:, None, :]


def _with_new_error(levels, new_weight):
    """Return the levels of sorted errors once a new error counts too, (n_queries, n).

    `levels` (n_queries, n) are cumulative weights up to the middle of each error's weight.
    `new_weight` (n_queries,) is the weight of one more error, that of one of 1 / sum(w^2)
    equal errors. Of n equal errors the i-th then has the level i / (n + 1), as a new error is
    as likely below the first as between any two; without this, intervals from a few errors are
    too narrow.
    """
    new_weight = new_weight[:, None]
    tail = np.minimum(levels, 1 - levels)
    # A level below half of the new weight falls in proportion to 0, as nothing is known there.
    raised_tail = (tail + np.minimum(tail, new_weight / 2)) / (1 + new_weight)
    return np.where(levels < 0.5, raised_tail, 1 - raised_tail)
