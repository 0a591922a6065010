"""Rules of thumb: a bandwidth from the number of rows and the spread of each feature."""

import numpy as np

from .._partitions import in_memory
from .._spread import mean_and_deviation
from .._validation import check_choice
from ..kernels import Gaussian


def _scott(n, d):
    return n ** (-1 / (d + 4))


def _silverman(n, d):
    return (n * (d + 2) / 4) ** (-1 / (d + 4))


# Name -> factor on each feature's spread, from the number of rows and of features, for the
# Gaussian kernel: Scott (1992), eq. 6.42, and Silverman (1986), eq. 4.14.
RULES = {"scott": _scott, "silverman": _silverman}


def feature_spread(X, sample_weight=None):
    """Standard deviation of each feature, and 1 for a feature that is constant.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,), default=None

    Returns
    -------
    spread : ndarray of shape (n_features,)
        Always positive: a constant feature tells no rows apart at any bandwidth.
    """
    _, deviation = mean_and_deviation(X, sample_weight)
    return np.where(deviation > 0, deviation, 1.0)


def rule_bandwidth(X, kernel, rule="scott", sample_weight=None):
    r"""Bandwidth of each feature by a rule of thumb.

    .. math:: h_j = \frac{\delta_0(K)}{\delta_0(\phi)}\, c(n, d)\, \hat\sigma_j

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys.
    kernel : Kernel
        Smoothing kernels have their canonical bandwidth :math:`\delta_0`; for others the
        ratio is taken as 1.
    rule : {"scott", "silverman"}, default="scott"
        :math:`c = n^{-1/(d+4)}`, or :math:`c = (n (d + 2) / 4)^{-1/(d+4)}`.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights; :math:`n` is their sum.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import rule_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    >>> rule_bandwidth(X, Gaussian(), "scott").round(3)
    array([0.68 , 6.799])
    """
    check_choice("rule", rule, RULES)
    n = len(X) if sample_weight is None else float(*in_memory(np.sum(sample_weight)))
    factor = RULES[rule](n, X.shape[1])
    return canonical_ratio(kernel) * factor * feature_spread(X, sample_weight)


def canonical_ratio(kernel):
    """By how much to widen a Gaussian's bandwidth for this kernel to smooth alike."""
    own = getattr(kernel, "canonical_bandwidth", None)
    return 1.0 if own is None else own / Gaussian().canonical_bandwidth
