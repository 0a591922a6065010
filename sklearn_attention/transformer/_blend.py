"""Weights by which a baseline and a transformer are added up, by rows held out."""

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import huber, log_softmax

from .._labels import split_outputs

# Weights where nothing is known, and what they count for, in rows.
_PRIOR, _PRECISION = np.array([0.7, 0.3]), 3.0
# Typical errors beyond which an error counts less, so that few rows do not decide.
_LARGE_ERROR = 3.0


def choose_weights(baseline, network, loss, *, average=False):
    r"""Weights of a baseline and of a transformer.

    Parameters
    ----------
    baseline, network : ndarray of shape (n_rows, n_outputs)
        Of rows held out.
    loss : callable
        ``loss(outputs)`` returns minus the log-likelihood of each row, but for a constant, and
        its derivatives by the outputs.
    average : bool, default=False
        Whether weights have to add up to 1. Less than that moves quantiles to the mean.

    Returns
    -------
    weights : ndarray of shape (2,)

    Notes
    -----
    The likeliest weights that are not negative, a priori normal about .7 and .3 with a
    precision of 3 rows:

    .. math:: \min_{w \ge 0} \sum_i l_i(w_1 f_i + w_2 g_i)
              + \tfrac32 (w_1 - .7)^2 + \tfrac32 (w_2 - .3)^2
    """

    def risk(weights):
        losses, slopes = loss(weights[0] * baseline + weights[1] * network)
        gradient = [(slopes * baseline).sum(), (slopes * network).sum()]
        away = weights - _PRIOR
        return losses.sum() + _PRECISION * away @ away / 2, gradient + _PRECISION * away

    if average:
        shares = minimize_scalar(
            lambda share: risk(np.array([1 - share, share]))[0],
            bounds=(0, 1), method="bounded",
        )  # fmt: skip
        return np.array([1 - shares.x, shares.x])
    return minimize(risk, _PRIOR, jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2).x


def loss_of(loss, targets, baseline, weights):
    """The loss by which weights are chosen.

    Parameters
    ----------
    loss : Loss
    targets : ndarray of shape (n_rows, n_outputs)
        Numbers, or numbers of classes.
    baseline : ndarray of shape (n_rows, n_outputs) or (n_rows, n_classes of all outputs)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    loss : callable
        As :func:`choose_weights` takes it.
    """
    if loss.n_classes is None:
        return error_loss_of(loss, targets, baseline, weights)
    return log_loss_of(targets, weights, loss.n_classes)


def log_loss_of(classes, weights, n_classes):
    """Mean loss of the logits of several outputs, as :func:`choose_weights` takes it.

    Parameters
    ----------
    classes : ndarray of int of shape (n_rows, n_outputs)
    weights : ndarray of shape (n_rows,)
    n_classes : tuple of int

    Returns
    -------
    loss : callable
    """
    rows, shares = np.arange(len(classes)), weights / len(n_classes)

    def loss(outputs):
        logs = [log_softmax(part, axis=1) for part in split_outputs(outputs, n_classes)]
        slopes = [np.exp(part) for part in logs]
        for slope, own in zip(slopes, classes.T, strict=True):
            slope[rows, own] -= 1
        true = sum(part[rows, own] for part, own in zip(logs, classes.T, strict=True))
        return -shares * true, shares[:, None] * np.hstack(slopes)

    return loss


def error_loss_of(loss, targets, baseline, weights):
    """Loss of numbers, in units of the mean loss of the baseline.

    Parameters
    ----------
    loss : Loss
        Of a Laplace distribution for a quantile, an asymmetric one but for the median; else of
        one that is normal but for errors beyond three typical ones, the median of the
        baseline's, which count less.
    targets, baseline : ndarray of shape (n_rows, n_outputs)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    loss : callable
        As :func:`choose_weights` takes it.
    """
    typical = np.abs(baseline - targets)
    # Where most errors are 0, the mean takes the place of the median.
    large = _LARGE_ERROR * (np.median(typical) or typical.mean())

    def errors(outputs):
        missed = outputs - targets
        if loss.quantile is not None:
            slopes = (missed > 0) - loss.quantile
            return missed * slopes, slopes
        return huber(large, missed), np.clip(missed, -large, large)

    mean = np.average(errors(baseline)[0], axis=0, weights=weights).mean()
    # The mean loss of a normal distribution is 1/2, that of a Laplace distribution 1.
    unit = max(mean, 1e-300) * (2 if loss.quantile is None else 1)

    def of_rows(outputs):
        losses, slopes = errors(outputs)
        scale = unit * targets.shape[1]
        return weights * losses.sum(axis=1) / scale, weights[:, None] * slopes / scale

    return of_rows
