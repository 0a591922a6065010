"""Rules of thumb for bandwidths, and all rules by name.

A rule of thumb is a formula of the number of rows, the number of numeric columns and their
standard deviations.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

from .._column_stats import checked_std, std_above_rounding
from .._columns import Columns
from .._frames import numeric_table
from .._sample_weight import check_key_weights
from .._validation import check_choice
from ._criteria import SMOOTHER_CRITERIA
from ._density_search import DensitySearch
from ._neighbors import NeighborSearch
from ._one_scale import CriterionSearch
from ._search import BandwidthChoice, BandwidthRule, Rows, canonical_ratio, rule_lambdas


def _scott(n, d):
    """Return Scott's factor on the standard deviation (1992, eq. 6.42); see `_FACTORS`."""
    return n ** (-1 / (d + 4))


def _silverman(n, d):
    """Return Silverman's factor on the standard deviation (1986, eq. 4.14); see `_FACTORS`."""
    return (n * (d + 2) / 4) ** (-1 / (d + 4))


# Functions of the number of rows n and the number of numeric columns d. They return the
# bandwidth of a Gaussian kernel divided by the standard deviation of a column.
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
        Compares the numeric columns. The formula has the canonical bandwidth :math:`\delta_0`
        of a smoothing kernel; for other kernels this ratio is 1.
    rule : {"scott", "silverman"}, default="scott"
        :math:`c = n^{-1/(d+4)}`, or :math:`c = (n (d + 2) / 4)^{-1/(d+4)}`.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights; :math:`n` is their sum.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units; for a category its lambda, at whose largest value
        :math:`\lambda_j^{\max}` all levels have the same weight.

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
    return _rule_bandwidth(rule, rows, kernel)


def _rule_bandwidth(rule, rows, kernel):
    """Compute the bandwidth (n_columns,) for Rows, which may be in partitions of Dask.

    `rule` is the name of a rule of thumb. Categories get lambdas.
    """
    n_samples, columns, weights = len(rows.X), rows.columns, rows.sample_weight
    if not columns.numeric:
        return rule_lambdas(n_samples, columns, weights)
    # Constant columns do not count in d, the number of numeric columns. The number n of rows is
    # `stats.mass`, the sum of the weights.
    is_constant = columns.is_numeric & (std_above_rounding(rows.stats) == 0)
    varying = columns.without(is_constant)
    # The kernel's bandwidth is that of a Gaussian one times its canonical ratio.
    factor = canonical_ratio(kernel) * _FACTORS[rule](rows.stats.mass, len(varying.numeric))
    lambdas = rule_lambdas(n_samples, varying, weights)
    return np.where(columns.is_numeric, factor * checked_std(rows.stats), lambdas)


@dataclass(frozen=True)
class RuleOfThumb(BandwidthRule):
    """Scott's or Silverman's rule."""

    name: str

    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows; no bandwidths are tried and observed."""
        rows.refuse_gap()
        return BandwidthChoice(_rule_bandwidth(self.name, rows, kernel))


_RULES_OF_THUMB = {name: RuleOfThumb(name) for name in _FACTORS}
# Rules by the name that the parameter `bandwidth` takes, of smoothers and of densities.
SMOOTHER_RULES = {
    **{name: CriterionSearch(name) for name in SMOOTHER_CRITERIA},
    "knn-loo": NeighborSearch(),
    **_RULES_OF_THUMB,
}
DENSITY_RULES = {"likelihood": DensitySearch()} | _RULES_OF_THUMB
