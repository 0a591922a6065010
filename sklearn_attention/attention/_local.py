"""Local polynomials: the weighted average, corrected for where the keys lie."""

from typing import Any, NamedTuple

from .._validation import is_one_of
from ._over_partitions import smooth
from ._smoother import Smoother


class LocalFit(NamedTuple):
    r"""Local polynomials at each query.

    Attributes
    ----------
    values : array of shape (n_queries,) or (n_queries, n_values)
        The polynomials at the queries.
    slopes : array of shape (n_queries, n_features) or (n_queries, n_values, n_features)
        Their first derivatives, in the features' own units; 0 for features that the kernel
        does not compare as numbers.
    log_normalizers : array of shape (n_queries,)
        Logarithm of the sum of the weights.
    ridge : array of shape (n_queries,)
        Added to the variances of the local terms, in units of the kernel's own, or of the
        data's where they are narrower than the kernel; 0 where the rows in the window determine
        the slopes.
    squared_distance : array of shape (n_queries,)
        Of the query from the mean of the rows in its window, in the metric of their terms,
        :math:`\mu^\top C^{-1} \mu`. A row of weight 1 at the query has a leverage of
        :math:`1 + \mu^\top C^{-1} \mu` times its share of the weights.
    """

    values: Any
    slopes: Any
    log_normalizers: Any
    ridge: Any
    squared_distance: Any


def attend_local(
    queries,
    keys,
    values,
    kernel="gaussian",
    *,
    degree=1,
    bandwidth=1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out=False,
    algorithm="auto",
    empty="nearest",
):
    r"""Local polynomial regression: weighted least squares at every query.

    .. math:: \min_{\beta} \sum_i w_i K\left(\tfrac{q - k_i}{h}\right)
              \bigl(v_i - \beta_0 - \beta_1^\top (k_i - q) - \dots\bigr)^2

    The value is :math:`\beta_0`, the slope :math:`\beta_1`. Both follow from weighted
    averages of the products of the polynomial's terms, with each other and with the values.

    Parameters
    ----------
    queries, keys, values, kernel, bandwidth, query_scale, sample_weight, empty
        As for :func:`attend`, like ``algorithm``. The kernel must not take negative values.
    degree : {1, 2}, default=1
        Degree of the polynomials; 2 includes the products of different features.
    leave_one_out : bool or array of shape (n_queries,), default=False
        As for :func:`attend`.

    Returns
    -------
    fit : LocalFit
        Values, slopes, log-normalisers, ridge and squared distance.

    Raises
    ------
    ValueError
        As for :func:`attend`; if the kernel takes negative values, or the degree is neither
        1 nor 2.

    Notes
    -----
    Where the rows in a window do not determine the polynomial (fewer rows than
    coefficients, a feature that is constant in the window), its slopes are shrunk to 0 by a
    ridge that lifts the smallest eigenvalue of the terms' covariance to 1e-4 of the
    kernel's own variance, or the data's where that is smaller; elsewhere the ridge is 0. A
    single row thus predicts its own value. For a query so far from all rows that the
    covariance is mostly rounding error, the eigenvalue is lifted above that error.

    Extrapolation is bounded. Let :math:`\mu` and :math:`C` be the weighted mean and covariance
    of the :math:`p` terms about the query. Where :math:`\mu^\top C^{-1} \mu > 9 p`, the
    polynomial is read on the way from the rows' mean to the query, where equality holds. So a
    value is within :math:`3 \sqrt p` weighted standard deviations of the values in the window
    from their weighted mean; slopes are those of the polynomial.

    In an empty neighbourhood the nearest keys give their average, with slope 0.
    Over partitions of Dask, and more than a million keys, sums of all powers of distances are
    held for every query: 20 numbers for a line in three features, 70 for a parabola.

    References
    ----------
    .. [1] Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.
       Chapman and Hall.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import attend_local
    >>> keys = np.array([[0.0], [1.0], [2.0]])
    >>> fit = attend_local([[0.0], [3.0]], keys, 1 + 2 * keys[:, 0], bandwidth=1.0)
    >>> fit.values.round(6), fit.slopes.round(6)
    (array([1., 7.]), array([[2.], [2.]]))
    """
    if not is_one_of(degree, 1, 2):
        raise ValueError(f"degree={degree!r} is not valid: pass 1 or 2 (attend is degree 0).")
    smoother = Smoother(kernel, bandwidth, int(degree), empty, algorithm)
    tables = queries, keys, values, sample_weight, query_scale, leave_one_out
    return LocalFit(*smooth(smoother, *tables))
