"""How much less sure of itself a classifier should be."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

_HIGHEST = 20.0


def choose_temperature(logits, classes, weights):
    r"""The temperature of least log-loss, on rows that were not learned from.

    .. math:: P(c) = \frac{e^{z_c / \tau}}{\sum_k e^{z_k / \tau}},\quad \tau \ge 1

    Networks that fit their training rows well are too sure of others (Guo et al. 2017). It is
    never below 1: on a few rows that all happen to be right, no certainty would be too great.

    Parameters
    ----------
    logits : ndarray of shape (n_rows, n_classes)
    classes : ndarray of int of shape (n_rows,)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    temperature : float
        In [1, 20].
    """

    def log_loss(logarithm):
        found = log_softmax(logits / np.exp(logarithm), axis=1)
        return -np.average(found[np.arange(len(classes)), classes], weights=weights)

    best = minimize_scalar(log_loss, bounds=(0.0, np.log(_HIGHEST)), method="bounded")
    # The search never tries the ends.
    return float(np.exp(best.x)) if best.fun < log_loss(0.0) else 1.0
