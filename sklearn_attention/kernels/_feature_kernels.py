"""Kernels that are a dot product of finitely many random features."""

import functools
import math
import numbers
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from sklearn.base import clone

from .._validation import check_choice, check_flag, check_size
from ._base import Kernel, as_floats
from ._frequencies import adapt_directions, random_frequencies
from ._numerics import log
from ._unbounded import Gaussian

_LARGEST_SEED = 2**32 - 1


class FeatureForm(NamedTuple):
    r"""Features on a logarithmic scale, :math:`\phi_j(x) = f_j(x) \exp(e_j(x) + a(x))`."""

    # In an average over keys the offset a(q) of a query cancels. So does a constant that is
    # subtracted from e_j of all keys and added to e_j of all queries.

    factors: Any  # the f_j, (..., n_features), of either sign; None if all of them are 1
    exponents: Any  # the e_j, (..., n_features); zeros (..., 1) if only factors differ
    offsets: Any  # the a, (..., 1)


class FeatureKernel(Kernel):
    r"""Base class of kernels :math:`K(q, k) = \phi(q)^\top \phi(k)` of finite dimension."""

    # An average needs the sum of phi(k) v^T over all keys. It is computed once, and multiplied
    # by phi(q) for each query, so that time and memory grow with the number of rows, not with
    # the number of pairs.

    positive_definite = True
    # Constants of the features of exp(q . k), which a subclass sets: the offset of a row x is
    # _growth |x|^2 + _log_gain - log(n_features) / 2.
    _growth, _log_gain = 0.0, 0.0

    def __init__(
        self,
        n_features: int = 256,
        *,
        kernel: str = "scaled_dot_product",
        orthogonal: bool = True,
        random_state: int = 0,
    ) -> None:
        self.n_features = n_features
        self.kernel = kernel
        self.orthogonal = orthogonal
        self.random_state = random_state

    def directions(self, dimension) -> np.ndarray:
        """Return the random directions, each of which makes two features.

        Parameters
        ----------
        dimension : int
            Entries of a query or a key.

        Returns
        -------
        directions : ndarray of shape (n_features / 2, dimension)
            A read-only array.
        """
        n_features = check_size("n_features", self.n_features, 16)
        if n_features % 2:
            raise ValueError(
                f"n_features={self.n_features!r} is not valid: pass an even integer, since "
                "each direction makes two features."
            )
        seed = self.random_state
        is_integer = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
        if not is_integer or not 0 <= seed <= _LARGEST_SEED:
            raise ValueError(
                f"random_state={seed!r} is not valid: pass an integer from 0 to "
                f"{_LARGEST_SEED}, so that every call has the same features."
            )
        orthogonal = check_flag("orthogonal", self.orthogonal)
        return _cached_directions(n_features // 2, dimension, orthogonal, int(seed))

    def feature_form(self, X) -> FeatureForm:
        """Compute the features of rows on a logarithmic scale.

        Parameters
        ----------
        X : array or tensor of shape (..., dimension)
            Queries or keys, in units of the bandwidth.

        Returns
        -------
        form : FeatureForm
        """
        check_choice("kernel", self.kernel, ("gaussian", "scaled_dot_product"))
        X = as_floats(X)
        xp = array_namespace(X)
        growth, log_gain = self._growth, self._log_gain
        if self.kernel == "scaled_dot_product":
            X = X / X.shape[-1] ** 0.25
        else:
            # The Gaussian is exp(q.k) times a factor of the query and one of the key.
            growth, log_gain = growth - 0.5, log_gain - 0.25 * math.log(2 * math.pi)
        X, tilt = self._center(X)
        features = self._features(X)  # factors and exponents
        offsets = growth * xp.sum(X * X, axis=-1, keepdims=True) + tilt
        return FeatureForm(*features, offsets + log_gain - 0.5 * math.log(self.n_features))

    def _center(self, X):
        """Subtract a center from rows, and return the logarithm of the factor this removes."""
        return X, 0.0

    @abstractmethod
    def _features(self, X):
        """Compute factors and exponents of the features of exp(q . k); see FeatureForm."""


class PositiveFeatures(FeatureKernel, name="positive_features"):
    r"""Approximation of the scaled dot-product kernel by positive random features (Performer).

    Use it for attention if :class:`ScaledDotProduct` is too slow, since there are too many
    keys. Its weights are never negative.

    With :math:`x` divided by :math:`d^{1/4}`, and :math:`\omega_j` standard normal,

    .. math:: \phi(x) = \frac{e^{-\lVert x \rVert^2 / 2}}{\sqrt D}
              \bigl[e^{\omega_j^\top x},\, e^{-\omega_j^\top x}\bigr]_{j \le D / 2},
              \qquad E\, \phi(q)^\top \phi(k) = \exp(q^\top k)

    which is the scaled dot product. For the Gaussian :math:`x` is not divided, and the factor
    before is :math:`(2\pi)^{-1/4} e^{-\lVert x \rVert^2}`.

    Weights are positive, so averages stay within the values. Attention layers compute them
    in time linear in length.

    Parameters
    ----------
    n_features : int, default=256
        Number of features :math:`D`; even, since each direction makes two. The error falls
        with its root.
    kernel : {"scaled_dot_product", "gaussian"}, default="scaled_dot_product"
        Kernel to approximate.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks, which makes the error smaller.
    random_state : int, default=0
        Seed of the directions, which depend only on it and on the dimension.
    center : array of shape (d,) or (n_heads, d), default=None
        Mean of queries and keys, subtracted before features are computed; None stands for 0.
    covariance : array of shape (d, d) or (n_heads, d, d), default=None
        Covariance of the sum of a query and a key, which sets the variance of directions; None
        stands for 0. :meth:`adapt` computes it and `center`. Any values leave the mean of
        :math:`\phi(q)^\top \phi(k)` unchanged, and suitable ones reduce its variance.

    Notes
    -----
    These are the hyperbolic features of Choromanski et al. (2021) [1]_: a direction together
    with its opposite has no larger error than two independent ones, and costs one projection.

    The variance of :math:`\phi(q)^\top \phi(k)`, relative to the square of what it
    approximates, is :math:`(e^{s / 2} - e^{-s / 2})^2 / D` with
    :math:`s = \lVert q + k \rVert^2`, for independent directions. So they suit short queries
    and keys, whose weights are spread over many keys; long ones, whose weights concentrate
    on a few, need more features than there are keys.

    :meth:`adapt` lowers the variance, most where entries differ in size or lie off 0: with
    :math:`a` the center, :math:`x' = x - a`, and directions from :math:`N(0, \Sigma)` [2]_,

    .. math:: \phi_j(x) = \frac{e^{-\lVert x' \rVert^2 / 2 + a^\top (x - a / 2)}}{\sqrt D}
              \sqrt{\frac{N(\omega_j; 0, I)}{N(\omega_j; 0, \Sigma)}}
              \, e^{\pm \omega_j^\top x'}.

    Directions stay as they are once adapted. Those that followed each input would let earlier
    steps depend on later ones, and results on padding.

    References
    ----------
    .. [1] Choromanski, K., Likhosherstov, V., Dohan, D. et al. (2021). Rethinking attention
       with Performers. ICLR.
    .. [2] Likhosherstov, V., Choromanski, K., Dubey, A., Liu, F., Sarlos, T. and Weller, A.
       (2023). Dense-exponential random features: sharp positive estimators of the Gaussian
       kernel. NeurIPS 36.

    Examples
    --------
    >>> from sklearn_attention.kernels import PositiveFeatures, ScaledDotProduct
    >>> queries, keys = [[0.5, 0.0]], [[0.5, 0.0], [0.0, 0.5]]
    >>> ScaledDotProduct()(queries, keys).round(2)
    array([[1.19, 1.  ]])
    >>> PositiveFeatures(4096)(queries, keys).round(1)
    array([[1.2, 1. ]])
    """

    _growth = -0.5

    def __init__(
        self,
        n_features: int = 256,
        *,
        kernel: str = "scaled_dot_product",
        orthogonal: bool = True,
        random_state: int = 0,
        center: Any = None,
        covariance: Any = None,
    ) -> None:
        super().__init__(
            n_features, kernel=kernel, orthogonal=orthogonal, random_state=random_state
        )
        self.center = center
        self.covariance = covariance

    def adapt(self, queries, keys) -> Self:
        """Return a copy of the kernel whose directions suit the given queries and keys.

        Parameters
        ----------
        queries : array or tensor of shape (n_queries, d) or (B, n_heads, T_q, d)
            Typical queries, in units of the bandwidth, like the keys.
        keys : array or tensor of shape (n_keys, d) or (B, n_heads, T_k, d)
            With heads, directions are adapted to each head separately.

        Returns
        -------
        kernel : PositiveFeatures
            A copy with other values of `center` and `covariance`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_attention.kernels import PositiveFeatures, ScaledDotProduct
        >>> rng = np.random.default_rng(0)
        >>> queries = rng.normal(size=(50, 8)) * [3, 1, 1, 1, 1, 1, 1, 1] + 0.5
        >>> keys = rng.normal(size=(60, 8)) + 0.5
        >>> exact = ScaledDotProduct().log(queries, keys)
        >>> kernel = PositiveFeatures(256)
        >>> float(abs(kernel.log(queries, keys) - exact).mean().round(1))
        0.7
        >>> adapted = kernel.adapt(queries, keys)
        >>> float(abs(adapted.log(queries, keys) - exact).mean().round(1))
        0.2
        """
        mean_q, covariance_q = _mean_and_covariance("queries", queries)
        mean_k, covariance_k = _mean_and_covariance("keys", keys)
        if mean_q.shape != mean_k.shape:
            raise ValueError(
                f"queries of shape {tuple(queries.shape)} and keys of shape "
                f"{tuple(keys.shape)} do not fit each other: pass both with the same number of "
                "heads and the same last dimension."
            )
        return clone(self).set_params(
            center=(mean_q + mean_k) / 2, covariance=covariance_q + covariance_k
        )

    def _center(self, X):
        """Subtract the parameter `center` from rows; see `FeatureKernel._center`."""
        if self.center is None:
            return X, 0.0
        center = self._checked_parameter("center", X, 1)
        if self.kernel == "gaussian":
            return X - _as_array_like(center, X)[..., None, :], 0.0
        # q.k = (q - a).(k - a) + (a.q - a.a / 2) + (a.k - a.a / 2) with the center a.
        center = _as_array_like(center / X.shape[-1] ** 0.25, X)[..., None, :]
        return X - center, ((X - 0.5 * center) * center).sum(-1)[..., None]

    def _features(self, X):
        """Compute exponents of the features of exp(q . k); all factors are 1."""
        xp, dimension = array_namespace(X), X.shape[-1]
        normals = self.directions(dimension)
        if self.covariance is None:
            return None, opposite_pairs(X @ _as_array_like(normals, X).T)
        covariance = self._checked_parameter("covariance", X, 2)
        if self.kernel == "scaled_dot_product":
            covariance = covariance / dimension**0.5
        key = len(normals), bool(self.orthogonal), int(self.random_state)
        directions, log_weights = _cached_adapted_directions(
            *key, covariance.shape, covariance.tobytes()
        )
        log_weights = 0.5 * _as_array_like(log_weights, X)[..., None, :]
        exponents = opposite_pairs(X @ _as_array_like(directions, X).mT)
        return None, exponents + xp.concat([log_weights, log_weights], axis=-1)

    def _checked_parameter(self, name, X, n_axes):
        """Return a parameter as an array, and raise an error if it does not fit rows X.

        Rows of d numbers have the shape (..., n, d), or (..., n_heads, n, d) with heads. The
        parameter has `n_axes` axes of length d; an axis of length n_heads may precede them.
        """
        value = np.asarray(getattr(self, name), dtype=np.float64)
        head_axis = value.shape[: value.ndim - n_axes]
        fits = value.shape[len(head_axis) :] == n_axes * (X.shape[-1],) and len(head_axis) <= 1
        if not fits or (head_axis and (X.ndim < 3 or head_axis[0] != X.shape[-3])):
            raise ValueError(
                f"{name} of shape {value.shape} does not fit rows of shape {tuple(X.shape)}: "
                "adapt the kernel again, to queries and keys with the heads and the last "
                "dimension of these rows."
            )
        return value

    def _log_values(self, queries, keys):
        """Compute the logarithm of the dot product of the features for each pair."""
        xp = array_namespace(queries, keys)
        queries, keys = self.feature_form(queries), self.feature_form(keys)
        log_keys = keys.exponents + keys.offsets  # (n_keys, n_features)
        if 0 in log_keys.shape:
            return queries.offsets + keys.offsets.T
        # The maximum of each feature over keys is subtracted from the keys' exponents and added
        # to the queries', and the maximum of each query is taken out of its sum, so that no sum
        # vanishes or overflows.
        key_maxima = xp.max(log_keys, axis=0, keepdims=True)
        log_queries = queries.exponents + key_maxima
        query_maxima = xp.max(log_queries, axis=1, keepdims=True)
        total = xp.exp(log_queries - query_maxima) @ xp.exp(log_keys - key_maxima).T
        return log(total) + query_maxima + queries.offsets


class TrigonometricFeatures(FeatureKernel, name="trigonometric_features"):
    r"""Approximation of the scaled dot-product kernel by random sines and cosines.

    Use it to compare with :class:`PositiveFeatures`: here weights can be negative, so that
    averages can leave the range of the values.

    With :math:`x` divided by :math:`d^{1/4}`, and :math:`\omega_j` standard normal,

    .. math:: \phi(x) = \sqrt{\tfrac2D}\; e^{\lVert x \rVert^2 / 2}
              \bigl[\sin(\omega_j^\top x),\, \cos(\omega_j^\top x)\bigr]_{j \le D / 2},
              \qquad E\, \phi(q)^\top \phi(k) = \exp(q^\top k)

    which is the scaled dot product. For the Gaussian :math:`x` is not divided, and the factor
    before is :math:`(2\pi)^{-1/4}`.

    The kernel is signed: its approximation may be negative where the kernel is small. An
    average divides by the sum of the weights, which may be close to 0; see the notes.

    Parameters
    ----------
    n_features, kernel, orthogonal, random_state
        As of :class:`PositiveFeatures`.

    Notes
    -----
    Sines and cosines approximate the Gaussian [1]_. The softmax of attention also needs the
    factor :math:`\exp(\lVert k \rVert^2 / 2)` of each key, as in Peng et al. (2021)
    [2]_; that of the query cancels.

    The variance of :math:`\phi(q)^\top \phi(k)`, relative to the square of what it
    approximates, is :math:`(e^{s / 2} - e^{-s / 2})^2 / D` with
    :math:`s = \lVert q - k \rVert^2`, for independent directions: weights of near keys are
    accurate, those of far keys noise of either sign.

    Attention layers return 0 for a query whose sum of weights is not greater than the root
    of the sum of squares of the features' shares in it, as for a query without keys: such a
    sum is within its sampling error of 0.

    References
    ----------
    .. [1] Rahimi, A. and Recht, B. (2007). Random features for large-scale kernel machines.
       NeurIPS 20.
    .. [2] Peng, H., Pappas, N., Yogatama, D., Schwartz, R., Smith, N. A. and Kong, L. (2021).
       Random feature attention. ICLR.

    Examples
    --------
    >>> from sklearn_attention.kernels import Gaussian, TrigonometricFeatures
    >>> Gaussian()([[0.0]], [[0.0], [1.0]]).round(2)
    array([[0.4 , 0.24]])
    >>> TrigonometricFeatures(4096, kernel="gaussian")([[0.0]], [[0.0], [1.0]]).round(2)
    array([[0.4 , 0.24]])
    """

    signed = True
    _growth, _log_gain = 0.5, 0.5 * math.log(2)

    @property
    def stationary(self):
        return self.kernel == "gaussian"

    def _features(self, X):
        return wave_pairs(X @ _as_array_like(self.directions(X.shape[-1]), X).T), 0.0 * X[
            ..., :1
        ]

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        queries, keys = self.feature_form(queries), self.feature_form(keys)
        return (queries.factors @ keys.factors.T) * xp.exp(queries.offsets + keys.offsets.T)


def opposite_pairs(projections):
    """Return exponents (..., 2 n) of positive features: all projections, then minus these."""
    xp = array_namespace(projections)
    return xp.concat([projections, -projections], axis=-1)


def wave_pairs(projections):
    """Return waves (..., 2 n) of projections (..., n): all sines, then all cosines."""
    xp = array_namespace(projections)
    return xp.concat([xp.sin(projections), xp.cos(projections)], axis=-1)


def _as_array_like(array, X):
    """Convert an array of NumPy to the library, precision and device of X."""
    return array_namespace(X).asarray(array, dtype=X.dtype, device=X.device, copy=True)


def _mean_and_covariance(name, X):
    """Compute the mean and the covariance of rows, for each head separately if X has heads."""
    X = as_floats(X)
    if X.ndim not in (2, 4) or 0 in X.shape:
        raise ValueError(
            f"{name} must have shape (n_{name}, d) or (B, n_heads, T, d) and not be empty, "
            f"got {tuple(X.shape)}."
        )
    if is_torch_array(X):
        X = X.detach().cpu().numpy()
    X = X.astype(np.float64)
    if X.ndim == 4:
        X = np.moveaxis(X, 1, 0).reshape(X.shape[1], -1, X.shape[3])
    mean = X.mean(axis=-2)
    X = X - mean[..., None, :]
    return mean, X.mT @ X / X.shape[-2]


@functools.lru_cache(maxsize=64)
def _cached_adapted_directions(n_directions, orthogonal, seed, shape, covariance):
    """Return the result of `adapt_directions`; the covariance is passed as bytes."""
    normals = _cached_directions(n_directions, shape[-1], orthogonal, seed)
    return adapt_directions(normals, np.frombuffer(covariance).reshape(shape))


@functools.lru_cache(maxsize=64)
def _cached_directions(n_directions, dimension, orthogonal, seed):
    """Draw standard normal directions (n_directions, dimension), as a read-only array."""
    random_state = np.random.RandomState([seed, dimension])
    directions = random_frequencies(
        Gaussian(), n_directions, dimension, orthogonal=orthogonal, random_state=random_state
    )
    directions.flags.writeable = False
    return directions
