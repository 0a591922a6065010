"""Weights by which a linear model and a transformer are added up, by rows held out."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import huber as _huber
from scipy.special import logsumexp

# Precision of the weights about those of the linear model alone, 1 and 0, in rows.
_PRECISION = 1.0


def choose_weights(linear, network, loss):
    r"""Weights of a linear model and of a transformer.

    Parameters
    ----------
    linear, network : ndarray of shape (n_rows, n_outputs)
        Of rows held out.
    loss : callable
        ``loss(outputs)`` returns minus the log-likelihood of each row, but for a constant, and
        its derivatives by the outputs.

    Returns
    -------
    weights : ndarray of shape (2,)
        1 and 0 where the linear model alone is not less likely by more than a standard error,
        so that what is luck does not count.

    Notes
    -----
    The likeliest weights that are not negative, a priori normal about 1 and 0:

    .. math:: \min_{w \ge 0} \sum_i l_i(w_1 f_i + w_2 g_i)
              + \tfrac12 (w_1 - 1)^2 + \tfrac12 w_2^2
    """
    alone = np.array([1.0, 0.0])

    def risk(weights):
        losses, slopes = loss(weights[0] * linear + weights[1] * network)
        gradient = [(slopes * linear).sum(), (slopes * network).sum()]
        away = weights - alone
        return losses.sum() + _PRECISION * away @ away / 2, gradient + _PRECISION * away

    found = minimize(risk, [0.5, 0.5], jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2)
    gain = loss(linear)[0] - loss(found.x[0] * linear + found.x[1] * network)[0]
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return found.x if gain.mean() > error else alone


def log_loss_of(classes, weights):
    """Loss of logits, as :func:`choose_weights` takes it; both of shape (n_rows,)."""

    def loss(outputs):
        rows = np.arange(len(outputs))
        logs = outputs - logsumexp(outputs, axis=1, keepdims=True)
        slopes = np.exp(logs)
        slopes[rows, classes] -= 1
        return -weights * logs[rows, classes], weights[:, None] * slopes

    return loss


def error_loss_of(kind, targets, linear, weights):
    """Loss of numbers, in units of the mean loss of the linear model.

    Parameters
    ----------
    kind : {"squared_error", "absolute_error", "huber"}
        Of a normal or a Laplace distribution, or of one that is between the two.
    targets, linear : ndarray of shape (n_rows, n_outputs)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    loss : callable
        As :func:`choose_weights` takes it.
    """

    def errors(outputs):
        missed = outputs - targets
        if kind == "squared_error":
            return missed**2 / 2, missed
        if kind == "absolute_error":
            return np.abs(missed), np.sign(missed)
        return _huber(1.0, missed), np.clip(missed, -1, 1)

    mean = np.average(errors(linear)[0], axis=0, weights=weights).mean()
    # The mean loss of a normal distribution is 1/2, that of a Laplace distribution 1.
    unit = max(mean, 1e-300) * (1 if kind == "absolute_error" else 2)

    def loss(outputs):
        losses, slopes = errors(outputs)
        scale = unit * targets.shape[1]
        return weights * losses.sum(axis=1) / scale, weights[:, None] * slopes / scale

    return loss
