"""Kernels for categories, coded as numbers."""

import math

import numpy as np
from array_api_compat import array_namespace

from .._columns import highest_lam
from .._validation import check_in_interval, check_positive
from ._base import Kernel
from ._numerics import log


class _CategoricalKernel(Kernel):
    """Base class of kernels that compare codes of categories, column by column.

    The bandwidth does not divide codes. The parameter `lam` has its role: the larger it is, the
    more a key of another category counts. A subclass defines ``_compare(query, key)``, the
    kernel between codes in one column, arrays (n_queries, 1) and (1, n_keys).
    """

    scaled = False
    stationary = True

    def __init__(self, lam: float = 0.2) -> None:
        self.lam = lam

    def _values(self, queries, keys):
        return math.prod(self._comparisons(queries, keys))

    def _log_values(self, queries, keys):
        return sum(map(log, self._comparisons(queries, keys)))

    def _comparisons(self, queries, keys):
        """Yield the kernel (n_queries, n_keys) in each column."""
        columns = zip(queries.T, keys.T, strict=True)
        return (self._compare(query[:, None], key[None]) for query, key in columns)


class AitchisonAitken(_CategoricalKernel):
    r"""Aitchison-Aitken kernel for unordered categories.

    .. math:: K(q, k) = \begin{cases} 1 - \lambda & q = k \\
              \lambda / (c - 1) & q \ne k \end{cases}

    With :math:`\lambda = 0` only the same category counts; with :math:`\lambda = (c-1)/c`
    all categories count equally. The kernels of several columns are multiplied.

    Parameters
    ----------
    n_levels : int, default=2
        Number of categories :math:`c`, at least 2.
    lam : float, default=0.2
        :math:`\lambda`, from 0 to :math:`(c - 1) / c`.

    References
    ----------
    .. [1] Aitchison, J. and Aitken, C. G. G. (1976). Multivariate binary discrimination
       by the kernel method. Biometrika 63, 413-420.

    Examples
    --------
    >>> from sklearn_attention.kernels import AitchisonAitken
    >>> AitchisonAitken(n_levels=3, lam=0.2)([[0]], [[0], [1], [2]])
    array([[0.8, 0.1, 0.1]])
    """

    def __init__(self, n_levels: int = 2, lam: float = 0.2) -> None:
        super().__init__(lam)
        self.n_levels = n_levels

    def _compare(self, query, key):
        n_levels = check_positive("n_levels", self.n_levels, integer=True, minimum=2)
        # Users may compute the largest lambda (c - 1) / c as 1 - 1 / c, which may round to the
        # next larger float. So this is allowed, too.
        highest = math.nextafter(highest_lam("unordered", n_levels), 1)
        lam = check_in_interval("lam", self.lam, 0, highest)
        xp = array_namespace(query, key)
        if_different = xp.full_like(query - key, lam / (n_levels - 1))
        return xp.where(query == key, 1 - lam, if_different)


class WangVanRyzin(_CategoricalKernel):
    r"""Wang-van Ryzin kernel for ordered categories.

    Its bandwidth is :math:`\lambda`. Its weights sum to 1 over the integers, which densities of
    counts need; for regression take :class:`LiRacine`.

    .. math:: K(q, k) = \begin{cases} 1 - \lambda & q = k \\
              \tfrac12 (1 - \lambda) \lambda^{|q - k|} & q \ne k \end{cases}

    The codes must be whole numbers in the order of the categories. The kernels of several
    columns are multiplied.

    Parameters
    ----------
    lam : float, default=0.2
        :math:`\lambda`, from 0 (only the same category counts) to 1 (excluded: every
        weight would be 0).

    References
    ----------
    .. [1] Wang, M.-C. and van Ryzin, J. (1981). A class of smooth estimators for discrete
       distributions. Biometrika 68, 301-309.

    Examples
    --------
    >>> from sklearn_attention.kernels import WangVanRyzin
    >>> WangVanRyzin(lam=0.5)([[0]], [[0], [1], [2]])
    array([[0.5   , 0.125 , 0.0625]])
    """

    def _compare(self, query, key):
        lam = check_in_interval("lam", self.lam, 0, 1, closed_right=False)
        xp = array_namespace(query, key)
        step = abs(query - key)
        return xp.where(step == 0, 1 - lam, 0.5 * (1 - lam) * lam**step)


class LiRacine(_CategoricalKernel):
    r"""Li-Racine kernel for ordered categories.

    .. math:: K(q, k) = \lambda^{|q - k|}

    With :math:`\lambda = 0` only the same category counts; with :math:`\lambda = 1` all
    categories count equally, so that an average ignores the column; :class:`WangVanRyzin` has
    no such value. The codes must be whole numbers in the order of the categories. The kernels
    of several columns are multiplied.

    Parameters
    ----------
    lam : float, default=0.2
        :math:`\lambda`, from 0 to 1.

    References
    ----------
    .. [1] Li, Q. and Racine, J. (2007). Nonparametric Econometrics: Theory and Practice.
       Princeton University Press, section 4.

    Examples
    --------
    >>> from sklearn_attention.kernels import LiRacine
    >>> LiRacine(lam=0.5)([[0]], [[0], [1], [2]])
    array([[1.  , 0.5 , 0.25]])
    """

    def _compare(self, query, key):
        lam = check_in_interval("lam", self.lam, 0, 1)
        return lam ** abs(query - key)


def level_table(kind, n_levels, lam, *, normalized=True):
    """Evaluate a categorical kernel between all levels, and differentiate it in lambda.

    Parameters
    ----------
    kind : {"unordered", "ordered"}
        "unordered" is AitchisonAitken, whose values sum to 1 over the levels of each key;
        "ordered" is LiRacine.
    n_levels : int
        The number c of levels.
    lam : float
        From 0 to where levels do not differ: (c - 1) / c if unordered, 1 if ordered.
    normalized : bool
        Whether the values of LiRacine at key k are divided by their sum over the levels.

    Returns
    -------
    table, slope : ndarray of shape (n_levels, n_levels)
        The values at ``[level, key]``, and their derivatives in lambda.
    """
    lam = check_in_interval("lam", lam, 0, highest_lam(kind, n_levels))
    levels = np.arange(n_levels)
    steps = np.abs(levels[:, None] - levels)
    if kind == "unordered":
        n_different = max(n_levels - 1, 1)
        table = np.where(steps == 0, 1 - lam, lam / n_different)
        return table, np.where(steps == 0, -float(n_levels > 1), 1 / n_different)
    table = lam**steps
    slope = steps * lam ** np.maximum(steps - 1, 0)
    if normalized:
        mass = table.sum(axis=0)
        table = table / mass
        slope = (slope - table * slope.sum(axis=0)) / mass
    return table, slope
