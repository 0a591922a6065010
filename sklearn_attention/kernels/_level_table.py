"""The values of a categorical kernel for every pair of levels."""

import numpy as np

from .._columns import highest_lam
from .._validation import check_in_interval


def level_table(kind, n_levels, lam, *, normalized=True):
    r"""Value, and slope in lambda, of a categorical kernel for every pair of levels.

    Parameters
    ----------
    kind : {"unordered", "ordered"}
        Whose kernel: :class:`AitchisonAitken` or :class:`LiRacine`.
    n_levels : int
        Number of levels :math:`c`.
    lam : float
        :math:`\lambda`, from 0 to where the levels are not told apart: :math:`(c - 1) / c` for
        unordered and 1 for ordered ones.
    normalized : bool, default=True
        Whether each key's values are divided by their sum over all levels, so that they
        are probabilities. Those of unordered categories are already.

    Returns
    -------
    table, slope : ndarray of shape (n_levels, n_levels)
        At ``[level, key]`` the value, and its derivative with respect to lambda.

    Notes
    -----
    An ordered category at key :math:`k` has the probabilities

    .. math:: p(q) = \lambda^{|q - k|} \Big/ \sum_{l=0}^{c-1} \lambda^{|l - k|},

    whose sum over the finitely many levels, other than that of
    :math:`\lambda^{|q - k|}`, is 1 at either end of the order too.

    Examples
    --------
    >>> from sklearn_attention.kernels import level_table
    >>> level_table("ordered", 3, 0.5)[0].round(3)
    array([[0.571, 0.25 , 0.143],
           [0.286, 0.5  , 0.286],
           [0.143, 0.25 , 0.571]])
    """
    lam = check_in_interval("lam", lam, 0, highest_lam(kind, n_levels))
    levels = np.arange(n_levels)
    steps = np.abs(levels[:, None] - levels)
    if kind == "unordered":
        others = max(n_levels - 1, 1)
        table = np.where(steps == 0, 1 - lam, lam / others)
        return table, np.where(steps == 0, -float(n_levels > 1), 1 / others)
    table = lam**steps
    slope = steps * lam ** np.maximum(steps - 1, 0)
    if normalized:
        mass = table.sum(axis=0)
        table = table / mass
        slope = (slope - table * slope.sum(axis=0)) / mass
    return table, slope
