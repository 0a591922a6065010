"""Predictive distributions: leave-one-out errors, weighted by where they were made."""

import numpy as np
from scipy.special import softmax

# What the errors' log-weights are multiplied by: 0 for errors alike everywhere, 1 for those
# of the kernel that predicts.
_SHARPNESS = (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0)
# Share of the weight that all errors have alike, so that no distribution is one error.
_EVERYWHERE = (0.02, 0.1, 0.3)


def calibrate(likeness, errors, weights):
    """How sharply errors are to be weighted, by the continuous ranked probability score.

    Parameters
    ----------
    likeness : ndarray of shape (n, n)
        Logarithm of the kernel between the rows that judge.
    errors : ndarray of shape (n, n_outputs)
        Their leave-one-out errors.
    weights : ndarray of shape (n,)

    Returns
    -------
    sharpness, everywhere : float
        Of least score, every row scored by the errors of all others.
    """
    if len(errors) < 3:
        return 0.0, 1.0
    others = ~np.eye(len(errors), dtype=bool)
    found = []
    for sharpness in _SHARPNESS:
        for everywhere in _EVERYWHERE if sharpness else (1.0,):
            shares = error_weights(likeness, weights, sharpness, everywhere, others)
            scores = [_crps(shares, error) for error in errors.T]
            scale = np.abs(errors).mean(0) + np.finfo(float).tiny
            score = np.mean(np.average(scores, axis=1, weights=weights) / scale)
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
    counts = np.broadcast_to(np.log(weights), likeness.shape)
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


def _crps(shares, errors):
    r"""Scores :math:`\int (F(t) - [e \le t])^2\,dt` of each error in its distribution.

    The distribution is moved to mean 0, since its mean is the prediction.
    """
    order = np.argsort(errors)
    places = errors[order]
    reached = np.cumsum(shares[:, order], axis=1)[:, :-1]
    gaps = np.diff(places)
    own = (errors + shares @ errors)[:, None]  # where the error lies before the move
    # The step of the error itself may fall within a gap, or beyond all places.
    left = np.clip(own - places[:-1], 0, gaps)
    score = (reached**2 * left + (reached - 1) ** 2 * (gaps - left)).sum(axis=1)
    return score + np.maximum(places[0] - own[:, 0], 0) + np.maximum(own[:, 0] - places[-1], 0)


def error_quantiles(shares, errors, quantiles):
    """Quantiles of weighted errors less their weighted mean.

    Parameters
    ----------
    shares : ndarray of shape (n_queries, n)
        Rows sum to 1.
    errors : ndarray of shape (n, n_outputs)
    quantiles : ndarray of shape (n_quantiles,)

    Returns
    -------
    found : ndarray of shape (n_queries, n_quantiles, n_outputs)
        Linear between the errors, each of which stands in the middle of its weight.
    """
    found = np.empty((len(shares), len(quantiles), errors.shape[1]))
    for output, error in enumerate(errors.T):
        order = np.argsort(error)
        places, weights = error[order], shares[:, order]
        middle = np.cumsum(weights, axis=1) - weights / 2
        for row, reached in enumerate(middle):
            found[row, :, output] = np.interp(quantiles, reached, places)
    return found - (shares @ errors)[:, None, :]
