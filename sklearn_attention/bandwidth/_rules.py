"""Rules of thumb, from the number of rows and the spread of each feature; all rules by name."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

from .._column_stats import checked_std, std_above_rounding
from .._columns import Columns
from .._frames import numeric_table
from .._validation import check_choice, check_key_weights
from ._criteria import SMOOTHER_CRITERIA
from ._density_search import DensitySearch
from ._neighbors import NeighborSearch
from ._one_scale import CriterionSearch
from ._search import BandwidthChoice, BandwidthRule, Rows, canonical_ratio, rate_lambdas


def _scott(n, d):
    return n ** (-1 / (d + 4))


def _silverman(n, d):
    return (n * (d + 2) / 4) ** (-1 / (d + 4))


# Name -> factor on each feature's spread, from the number of rows and of features, for the
# Gaussian kernel: Scott (1992), eq. 6.42, and Silverman (1986), eq. 4.14.
_FACTORS = {"scott": _scott, "silverman": _silverman}


def rule_bandwidth(
    X, kernel, rule: str = "scott", sample_weight=None, *, columns=None
) -> np.ndarray:
    r"""Compute a bandwidth for each feature by a rule of thumb.

    It takes hardly any time, and suits densities with one mode. For regression,
    :func:`select_bandwidth` chooses by the errors of predictions.

    .. math:: h_j = \frac{\delta_0(K)}{\delta_0(\phi)}\, c(n, d)\, \hat\sigma_j, \qquad
              \lambda_j = \lambda_j^{\max} \min(1, n^{-2/(d+4)})

    with :math:`d` the number of numeric columns that vary. The lambdas shrink at the rate of
    the squared bandwidths, which is the optimal one [1]_.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys; categories as codes from 0.
    kernel : Kernel
        Of the numeric columns. Smoothing kernels have their canonical bandwidth
        :math:`\delta_0`; for others the ratio is taken as 1.
    rule : {"scott", "silverman"}, default="scott"
        :math:`c = n^{-1/(d+4)}`, or :math:`c = (n (d + 2) / 4)^{-1/(d+4)}`.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights; :math:`n` is their sum.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units; of categories the lambda, whose largest value
        :math:`\lambda_j^{\max}` weights all levels alike.

    References
    ----------
    .. [1] Li, Q. and Racine, J. (2003). Nonparametric estimation of distributions with
       categorical and continuous data. Journal of Multivariate Analysis 86, 266-292.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import Columns
    >>> from sklearn_attention.bandwidth import rule_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0, 0], [1.0, 1], [2.0, 0], [3.0, 1]])
    >>> rule_bandwidth(X, Gaussian()).round(3)
    array([0.887, 0.397])
    >>> columns = Columns(("numeric", "unordered"), (None, ("a", "b")))
    >>> rule_bandwidth(X, Gaussian(), columns=columns).round(3)
    array([0.847, 0.287])
    """
    check_choice("rule", rule, _FACTORS)
    X = numeric_table(X)
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and len(X)):
        X = check_array(X, dtype=(np.float64, np.float32))
    columns = columns or Columns.numbers(X.shape[1])
    rows = Rows(X=X, columns=columns, sample_weight=check_key_weights(sample_weight, X))
    return _bandwidth_of(rule, rows, kernel)


def _bandwidth_of(rule, rows, kernel):
    """Return the bandwidth of rows that were checked, which may be in partitions."""
    n_samples, columns, weights = len(rows.X), rows.columns, rows.sample_weight
    if not columns.numeric:
        return rate_lambdas(n_samples, columns, weights)
    constant = columns.is_numeric & (std_above_rounding(rows.spread) == 0)
    varying = columns.without(constant)
    factor = canonical_ratio(kernel) * _FACTORS[rule](rows.spread.mass, len(varying.numeric))
    widths = factor * checked_std(rows.spread)
    lambdas = rate_lambdas(n_samples, varying, weights)
    return np.where(columns.is_numeric, widths, lambdas)


@dataclass(frozen=True)
class RuleOfThumb(BandwidthRule):
    """Scott's or Silverman's rule."""

    name: str

    def choose(self, rows, kernel, observe=None):
        rows.refuse_gap()
        return BandwidthChoice(_bandwidth_of(self.name, rows, kernel))


_OF_THUMB = {name: RuleOfThumb(name) for name in _FACTORS}
# By the name that the parameter `bandwidth` takes.
SMOOTHER_RULES = {
    **{name: CriterionSearch(name) for name in SMOOTHER_CRITERIA},
    "knn-loo": NeighborSearch(),
    **_OF_THUMB,
}
DENSITY_RULES = {"likelihood": DensitySearch()} | _OF_THUMB
