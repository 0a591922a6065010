r"""The weighted average of stored values, and local polynomials in place of it.

For queries q, keys :math:`k_i` and values :math:`v_i`, :func:`attend` computes averages with
the kernel's weights :math:`w_i K(q / h, k_i / h)`, and :func:`attend_local` fits a polynomial
with these weights around every query. `_smoother.py` computes both; this module has the public
functions and what they promise. Time is from O(n + m) to O(n m) for n queries and m keys, by
the algorithm that `_reduce.py` takes; memory is O(n + m).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from ..kernels import Kernel
from ._arrays import as_numpy
from ._smoother import Smoother, smooth
from ._solve import is_degree
from ._sums import require_sums


def attend(
    queries,
    keys,
    values,
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    bandwidth: ArrayLike = 1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out: bool | ArrayLike = False,
    algorithm: str = "auto",
    empty: str = "nearest",
) -> Any:
    r"""Average values, weighted by a kernel between queries and keys.

    Keys are the training rows, values their targets, and queries the rows to predict. Smoothers
    and forecasters are built on this function; call it if you want only the average, of arrays
    and at a bandwidth that you choose. Take :class:`NadarayaWatsonRegressor` to have the
    bandwidth chosen and intervals computed, and :func:`sklearn_attention.nn.attention` for a
    layer of a network.

    .. math:: \text{Attention}(q) =
              \frac{\sum_i w_i K\left(\frac{q}{h}, \frac{k_i}{h}\right) v_i}
                   {\sum_j w_j K\left(\frac{q}{h}, \frac{k_j}{h}\right)}

    Averages are exact, and take memory of O(n + m) for any number of pairs of n queries and m
    keys. If there are more than a million keys, arrays are summed chunk by chunk, and more than
    four million queries are taken in blocks, so that memory maps stay on disk. Each partition
    of a Dask array or data frame is summed where it is, and only the sums are transferred.

    Parameters
    ----------
    queries : array or tensor of shape (n_queries, n_features)
        Rows at which averages are computed. Queries, keys, values and weights may be Dask
        collections, or torch tensors in memory, which are converted to arrays.
    keys : array or tensor of shape (n_keys, n_features)
        Keys, which the kernel compares with the queries.
    values : array or tensor of shape (n_keys,) or (n_keys, n_values)
        Value of each key, to be averaged.
    kernel : str, Kernel or callable, default="gaussian"
        See :mod:`sklearn_attention.kernels`.
    bandwidth : float or array of shape (n_features,), default=1.0
        Divides the features before the kernel compares them; in the features' own units.
    query_scale : array of shape (n_queries,), default=None
        Factor on the bandwidth at each query, for bandwidths that differ from place to place.
        The kernel must depend only on the distance.
    sample_weight : array of shape (n_keys,), default=None
        Non-negative weights of the keys. Weight 2 is the key twice, weight 0 its absence.
    leave_one_out : bool or int array of shape (n_queries,), default=False
        Whether to leave each query's own key out of its average. True if the own key is the one
        at the same position; otherwise the positions of the own keys, -1 for a query without
        one. A query may differ from its own key.
    algorithm : {"auto", "dense"}, default="auto"
        "dense" compares every query with every key; "auto" takes the fastest algorithm
        that is exact to about ten digits at least.
    empty : {"nearest", "nan"}, default="nearest"
        Result of a query without any weight (all keys are beyond a compact kernel's support,
        or signed weights cancel): the value of its nearest key, or NaN. Keys whose distances
        differ only by rounding are averaged.

    Returns
    -------
    averages : array or tensor of shape (n_queries,) or (n_queries, n_values)
        NumPy in, NumPy out; float32 in, float32 out. A Dask array if the queries are a Dask
        collection.
    log_normalizers : array or tensor of shape (n_queries,)
        Logarithm of the denominator's absolute value; -inf for a query without weight. In
        single precision at least.

    Raises
    ------
    ValueError
        If shapes do not fit, an input is not finite, or a parameter is out of range.
    TypeError
        If a tensor requires gradients, or is not in memory; call the kernel itself to
        differentiate.

    Notes
    -----
    Each query takes the fastest of these algorithms that is accurate for it:

    * Along a single feature, most kernels are summed in time linear in keys and queries, by
      NumPy: by windows of moments, recurrences or Chebyshev interpolation, whichever suits the
      kernel. Gaussians are in two features, too.
    * In up to eight features, if the bandwidth is small relative to the data, trees find the
      keys near each group of neighbouring queries, and only these are compared. They are the
      keys within the support of a compact kernel (or of a compact factor of a product);
      otherwise all keys but those that together have less than 1e-12 of the weight.
    * For a hundred million pairs or more, averages by Gaussian and scaled dot-product kernels
      are :func:`torch.nn.functional.scaled_dot_product_attention`, where that is accurate (see
      :class:`~sklearn_attention.kernels.Gaussian`); for float32 in single precision.
    * Otherwise all pairs are compared, in double precision, in tiles that stay in cache and on
      as many threads as linear algebra has, whose number does not change results. Distances of
      Gaussian kernels are computed by products of matrices, for queries that are close
      together. Sums of positive kernels that would vanish are computed again in log space.

    If a query leaves out its own key and no other key has weight, the result is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import attend
    >>> keys, values = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 10.0, 20.0])
    >>> averages, _ = attend([[0.5], [1.0]], keys, values, "gaussian", bandwidth=0.5)
    >>> averages.round(3)
    array([ 5.136, 10.   ])
    """
    smoother = Smoother(kernel, bandwidth, 0, empty, algorithm)
    tables = queries, keys, values, sample_weight, query_scale, leave_one_out
    return tuple(smooth(smoother, *tables))


def attention_sums(
    queries,
    keys,
    values,
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    bandwidth: ArrayLike = 1.0,
    sample_weight=None,
    algorithm: str = "auto",
    empty: str = "nearest",
) -> Any:
    """Compute sums over one part of the keys, from which weighted averages are made.

    Use this function if your keys come in parts, such as files: add the sums of all parts, and
    call the method `average` of the total. If all keys are in memory or in a Dask collection,
    take :func:`~sklearn_attention.attend`.

    Parameters
    ----------
    queries, keys, values, kernel, bandwidth, sample_weight, algorithm, empty
        As for :func:`attend`. The same `empty` goes to :meth:`Sums.average`.

    Returns
    -------
    sums : Sums
        Arrays are in float64, since a large shift takes many digits.

    Raises
    ------
    ValueError, TypeError
        As :func:`attend`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import attention_sums
    >>> first = attention_sums([[0.5]], [[0.0], [1.0]], np.array([0.0, 10.0]), "boxcar")
    >>> second = attention_sums([[0.5]], [[0.5]], np.array([20.0]), "boxcar")
    >>> averages, log_normalizers = (first + second).average()
    >>> averages
    array([[10.]])
    """
    smoother = Smoother(kernel, bandwidth, 0, empty, algorithm)
    names = "queries", "keys", "values", "sample_weight"
    tables = map(as_numpy, names, (queries, keys, values, sample_weight))
    return require_sums(
        smoother.sums_of_part(
            *tables, query_scale=None, leave_one_out=False, location=None, complete=True
        )
    )


class LocalFit(NamedTuple):
    r"""Polynomials that were fitted around each query.

    It is the result of :func:`attend_local`.

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
        What was added to the variances of the local terms, in units of the kernel's variance,
        or of the data's variance if they are narrower than the kernel; 0 where the rows in the
        window determine the slopes.
    squared_distance : array of shape (n_queries,)
        Squared Mahalanobis distance :math:`\mu^\top C^{-1} \mu` of the query from the rows in
        its window, for the mean and covariance of their terms. A row at the query has a
        leverage of :math:`1 + \mu^\top C^{-1} \mu` times its share of the weights.
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
    kernel: str | Kernel | Callable[..., Any] = "gaussian",
    *,
    degree: int = 1,
    bandwidth: ArrayLike = 1.0,
    query_scale=None,
    sample_weight=None,
    leave_one_out: bool | ArrayLike = False,
    algorithm: str = "auto",
    empty: str = "nearest",
) -> LocalFit:
    r"""Fit a polynomial by weighted least squares around every query.

    This is local polynomial regression of arrays, at a bandwidth that you choose. Take
    :class:`~sklearn_attention.LocalPolynomialRegressor` to have the bandwidth chosen and
    several degrees averaged, and :func:`~sklearn_attention.attend` for plain averages.

    .. math:: \min_{\beta} \sum_i w_i K\left(\tfrac{q - k_i}{h}\right)
              \bigl(v_i - \beta_0 - \beta_1^\top (k_i - q) - \dots\bigr)^2

    The value is :math:`\beta_0`, the slope :math:`\beta_1`. Both follow from weighted
    averages of the products of the polynomial's terms, with each other and with the values.

    Parameters
    ----------
    queries, keys, values, kernel, bandwidth, query_scale, sample_weight, empty
        As for :func:`attend`, like ``algorithm``. The kernel must not take negative values.
    degree : {1, 2, 3}, default=1
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
        As for :func:`attend`; if the kernel takes negative values, or the degree is not
        1, 2 or 3.

    Notes
    -----
    If the rows in a window do not determine the polynomial (fewer rows than coefficients, or a
    feature that is constant in the window), its slopes are shrunk to 0 by a ridge. The ridge
    lifts the smallest eigenvalue of the terms' covariance to 1e-4 of the kernel's variance, or
    of the data's if that is smaller; otherwise the ridge is 0. So a single row predicts its own
    value. For a query so far from all rows that the covariance is mostly rounding error, the
    eigenvalue is lifted above that error.

    Extrapolation is bounded. Let :math:`\mu` and :math:`C` be the weighted mean and covariance
    of the :math:`p` terms about the query. If :math:`\mu^\top C^{-1} \mu > 9 p`, the polynomial
    is not evaluated at the query, but between the rows' mean and the query, where equality
    holds. So a value is within :math:`3 \sqrt p` weighted standard deviations of the values in
    the window from their weighted mean; slopes are those of the polynomial.

    At a query without any weight, the value is the average of the nearest keys, and the slope
    is 0. For partitions of Dask, and for more than a million keys, sums of all powers of
    distances are held for every query: 20 numbers for a line in three features, 70 for a
    parabola.

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
    if not (is_degree(degree) and degree):
        raise ValueError(
            f"degree={degree!r} is not valid: pass 1, 2 or 3, or call attend for degree 0."
        )
    smoother = Smoother(kernel, bandwidth, int(degree), empty, algorithm)
    tables = queries, keys, values, sample_weight, query_scale, leave_one_out
    return LocalFit(*smooth(smoother, *tables))
