"""Kernels of the dot product, as attention layers use them."""

import math
from typing import Any

from array_api_compat import array_namespace

from .._validation import check_in_interval, check_positive
from ._base import Kernel
from ._numerics import log, square_root
from ._unbounded import DotProductForm


class ScaledDotProduct(Kernel, name="scaled_dot_product"):
    r"""Exponential of the scaled dot product, the kernel of transformers.

    .. math:: K(q, k) = \exp\left(\frac{q^\top k}{\sqrt d}\right)

    The weights are the softmax of Vaswani et al. (2017). The kernel is positive but not
    bounded: long keys attract every query of a similar direction.

    Notes
    -----
    When all keys have the same norm, the weights equal those of a Gaussian kernel of
    bandwidth :math:`d^{1/4}` (Song et al. 2021).

    Examples
    --------
    >>> from sklearn_attention.kernels import ScaledDotProduct
    >>> ScaledDotProduct()([[1.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 2.7183]])
    """

    def _log_values(self, queries, keys):
        return queries / math.sqrt(queries.shape[1]) @ keys.T

    def as_dot_product(self, queries, keys) -> DotProductForm | None:
        xp = array_namespace(queries, keys)
        return DotProductForm(
            queries / math.sqrt(queries.shape[1]),
            keys,
            key_bias=xp.zeros_like(keys[:, 0]),
            query_bias=xp.zeros_like(queries[:, 0]),
        )


class Linear(Kernel, name="linear"):
    r"""Linear kernel.

    It can be negative, so that averages can leave the range of the values. Take it in sums and
    products with other kernels.

    .. math:: K(q, k) = (q - c)^\top (k - c)

    The kernel is signed: an average divides by the sum of the weights, which may be close to
    0.

    Parameters
    ----------
    center : float or array of shape (n_features,), default=0.0
        The point :math:`c`, in bandwidths.

    Examples
    --------
    >>> from sklearn_attention.kernels import Linear
    >>> Linear()([[2.0]], [[3.0], [-1.0]])
    array([[ 6., -2.]])
    """

    signed = True

    def __init__(self, center: Any = 0.0) -> None:
        self.center = center

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        center = xp.asarray(self.center, dtype=keys.dtype, device=keys.device)
        if tuple(center.shape) not in ((), (keys.shape[1],)):
            raise ValueError(
                f"center={self.center!r} does not fit {keys.shape[1]} features: pass a "
                "number, or one number for each feature."
            )
        return (queries - center) @ (keys - center).T


class Polynomial(Kernel, name="polynomial"):
    r"""Polynomial kernel.

    It can be negative if the degree is odd. Take it in sums and products with other kernels,
    for interactions of features.

    .. math:: K(q, k) = (q^\top k + \text{coef0})^{\text{degree}}

    The kernel is signed unless the degree is even.

    Parameters
    ----------
    degree : int, default=2
        Positive exponent.
    coef0 : float, default=1.0
        Constant added to the dot product.

    Examples
    --------
    >>> from sklearn_attention.kernels import Polynomial
    >>> Polynomial(degree=2)([[2.0]], [[3.0], [-1.0]])
    array([[49.,  1.]])
    """

    def __init__(self, degree: int = 2, coef0: float = 1.0) -> None:
        self.degree = degree
        self.coef0 = coef0

    @property
    def _exponent(self):
        return check_positive("degree", self.degree, integer=True)

    @property
    def signed(self):
        return self._exponent % 2 != 0

    def _base(self, queries, keys):
        return queries @ keys.T + check_in_interval("coef0", self.coef0, -math.inf, math.inf)

    def _values(self, queries, keys):
        return self._base(queries, keys) ** self._exponent

    def _log_values(self, queries, keys):
        return self._exponent * log(abs(self._base(queries, keys)))


class CosineSimilarity(Kernel, name="cosine_similarity"):
    r"""Cosine of the angle between query and key.

    Take it if only directions matter, as for counts of words. It can be negative.

    .. math:: K(q, k) = \frac{q^\top k}{\lVert q \rVert \, \lVert k \rVert}

    The kernel is signed. A row of zeros has similarity 0 to all rows, as in
    :func:`sklearn.metrics.pairwise.cosine_similarity`.

    Examples
    --------
    >>> from sklearn_attention.kernels import CosineSimilarity
    >>> CosineSimilarity()([[2.0, 0.0]], [[1.0, 0.0], [0.0, 3.0]])
    array([[1., 0.]])
    """

    signed = True

    def _values(self, queries, keys):
        return _normalize(queries) @ _normalize(keys).T


def _normalize(X):
    """Divide rows by their Euclidean norms; rows of zeros stay as they are."""
    xp = array_namespace(X)
    # Each row is first divided by its largest entry, so that squares neither overflow nor
    # vanish.
    largest = xp.max(abs(X), axis=1, keepdims=True)
    X = X / xp.where(largest > 0, largest, 1.0)
    norms = square_root(xp.sum(X * X, axis=1, keepdims=True))
    return X / xp.where(norms > 0, norms, 1.0)
