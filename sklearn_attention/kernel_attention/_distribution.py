"""Predictive distributions: leave-one-out errors, weighted by where they were made."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

# What the errors' log-weights are multiplied by: 0 for errors alike everywhere, 1 for those
# of the kernel that predicts.
_SHARPNESS = (0.0, 0.125, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
# Share of the weight that all errors have alike, so that no distribution is one error.
_EVERYWHERE = (0.02, 0.1, 0.3)
# Rows whose errors choose these two.
_MOST_SCORED = 256


@dataclass(frozen=True)
class ErrorDistribution:
    """Leave-one-out errors in units of the deviations where they were made, and their weights.

    Parameters
    ----------
    errors, put_right : ndarray of shape (n, n_outputs)
        The second: what fits to these rows too take of their errors.
    weights : ndarray of shape (n,)
    sharpness, everywhere : float
        How weights follow the kernel, see :func:`error_weights`.
    """

    errors: np.ndarray
    put_right: np.ndarray
    weights: np.ndarray
    sharpness: float
    everywhere: float

    @classmethod
    def calibrate(cls, judges, errors, put_right, weights):
        """The distribution of least score, some rows scored by the errors of all others."""
        errors, put_right = (e / judges.deviations[:, None] for e in (errors, put_right))
        rng = np.random.default_rng(0)
        scored = rng.choice(len(errors), min(len(errors), _MOST_SCORED), replace=False)
        likeness, _ = judges(judges.keys.block(scored))
        counts = weights[scored] * judges.deviations[scored]
        chosen = calibrate(likeness, errors, put_right, weights, scored, counts)
        return cls(errors, put_right, weights, *chosen)

    def deviation(self, judges, queries):
        """Standard deviations of new errors; (n_queries, n_outputs)."""
        shares, unit = self._at(judges, queries)
        return error_deviation(shares, self.errors) * unit[:, None]

    def quantiles(self, judges, queries, quantiles):
        """Quantiles of new errors; (n_queries, n_quantiles, n_outputs)."""
        shares, unit = self._at(judges, queries)
        found = error_quantiles(shares, self.errors, self.put_right, quantiles)
        return found * unit[:, None, None]

    def _at(self, judges, queries):
        likeness, unit = judges(queries)
        return error_weights(likeness, self.weights, self.sharpness, self.everywhere), unit


def calibrate(likeness, errors, put_right, weights, scored, counts):
    """How sharply errors are weighted, by the continuous ranked probability score.

    Likeness, (n_scored, n), is the kernel's logarithm between the rows that are scored and all
    that have errors; `counts` are the weights of the scores. Returns sharpness and everywhere
    of the least score, every row scored by the errors of all others.
    """
    if len(errors) < 3:
        return 0.0, 1.0
    others = np.ones(likeness.shape, dtype=bool)
    others[np.arange(len(scored)), scored] = False
    size = np.abs(errors).mean(0) + np.finfo(float).tiny
    # Scores are compared, for which single precision will do.
    errors, put_right = ((e / size).astype(np.float32) for e in (errors, put_right))
    likeness = likeness.astype(np.float32)
    alike = error_weights(likeness, weights, 0.0, 1.0, others)
    found = []
    for sharpness in _SHARPNESS:
        near = error_weights(likeness, weights, sharpness, 0.0, others)
        for everywhere in _EVERYWHERE if sharpness else (1.0,):
            shares = (1 - everywhere) * near + everywhere * alike
            pairs = zip(errors.T, put_right.T, strict=True)
            scores = [_crps(shares, *pair, scored) for pair in pairs]
            score = np.average(np.mean(scores, axis=0), weights=counts)
            found.append((score, sharpness, everywhere))
    return min(found)[1:]


def error_weights(likeness, weights, sharpness, everywhere, counted=None):
    """Weights of the errors at queries; (n_queries, n), rows sum to 1.

    Parameters
    ----------
    likeness : ndarray of shape (n_queries, n)
        Logarithm of the kernel.
    weights : ndarray of shape (n,)
    sharpness, everywhere : float
        From :func:`calibrate`.
    counted : ndarray of bool of shape (n_queries, n), default=None
        Which errors count at all; None for all.

    Returns
    -------
    shares : ndarray of shape (n_queries, n)
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
    return (1 - everywhere) * softmax(near, axis=1) + everywhere * alike


def _crps(shares, errors, put_right, scored):
    r"""Scores :math:`\int (F(t) - [e \le t])^2\,dt` of some errors in their distributions."""
    order = np.argsort(errors)
    places = errors[order]
    reached = np.cumsum(shares[:, order], axis=1)[:, :-1]
    own = errors[scored] + shares @ put_right  # where the error lies before the move
    away = np.abs(errors - own[:, None])
    # The mean distance to the error, less half of that between two draws.
    return np.einsum("ij,ij->i", shares, away) - (reached * (1 - reached)) @ np.diff(places)


def error_deviation(shares, errors):
    r"""Standard deviation of a new error.

    Parameters
    ----------
    shares : ndarray of shape (n_queries, n)
        Rows sum to 1.
    errors : ndarray of shape (n, n_outputs)

    Returns
    -------
    deviation : ndarray of shape (n_queries, n_outputs)
        Errors vary by :math:`1 - \sum_i w_i^2` of their variance around their own weighted
        mean, and a new one by :math:`1 + \sum_i w_i^2`.
    """
    mean = shares @ errors
    variance = np.maximum(shares @ np.square(errors) - np.square(mean), 0)
    new = np.square(shares).sum(axis=1, keepdims=True)
    return np.sqrt(variance * (1 + new) / np.maximum(1 - new, np.finfo(float).eps))


def error_quantiles(shares, errors, put_right, quantiles):
    """Quantiles of weighted errors, as they are to be expected of a new one.

    Moved by the weighted mean of what the fit has put right of them: its predictions near
    these rows know their targets, which the errors do not.

    Parameters
    ----------
    shares : ndarray of shape (n_queries, n)
        Rows sum to 1.
    errors, put_right : ndarray of shape (n, n_outputs)
    quantiles : ndarray of shape (n_quantiles,)

    Returns
    -------
    found : ndarray of shape (n_queries, n_quantiles, n_outputs)
        Linear between the errors.

    Notes
    -----
    Of n equal errors the i-th stands at i / (n + 1), where a new one is as likely below the
    first as between any two. In the middle of its own weight, it would leave intervals of few
    errors too narrow. Weights of any kind count as 1 / sum(weights**2) equal ones.
    """
    found = np.empty((len(shares), len(quantiles), errors.shape[1]))
    new = np.square(shares).sum(axis=1)
    for output, error in enumerate(errors.T):
        order = np.argsort(error)
        places, weights = error[order], shares[:, order]
        middle = np.cumsum(weights, axis=1) - weights / 2
        for row, reached in enumerate(_with_one_more(middle, new)):
            found[row, :, output] = np.interp(quantiles, reached, places)
    return found - (shares @ put_right)[:, None, :]


def _with_one_more(levels, new):
    """Levels among some errors, from 0 to 1, once there is one more of weight `new`."""
    new = new[:, None]
    tail = np.minimum(levels, 1 - levels)
    # Beyond half its weight nothing is known: levels there fall to 0 in proportion.
    raised = (tail + np.minimum(tail, new / 2)) / (1 + new)
    return np.where(levels < 0.5, raised, 1 - raised)
