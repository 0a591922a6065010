"""Kernels that are a dot product of finitely many random features."""

import functools
import math
import numbers
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .._validation import check_choice, check_positive
from ._base import Kernel
from ._frequencies import random_frequencies
from ._gaussian import Gaussian
from ._numerics import as_floats, log

_LARGEST_SEED = 2**32 - 1


class FeatureForm(NamedTuple):
    r"""Features on a logarithmic scale, :math:`\phi_j(x) = f_j(x) \exp(e_j(x) + a(x))`.

    In an average over keys the query's own :math:`a(q)` cancels, and so does any constant
    that is taken from the exponents of a feature in all keys and given to it in the queries.
    """

    factors: Any  # (..., n_features) with both signs, or None where all of them are 1
    exponents: Any  # (..., n_features); (..., 1), and 0, where features differ by factors
    offsets: Any  # (..., 1)


class FeatureKernel(Kernel):
    r"""Base class of kernels that are a dot product of finitely many features.

    .. math:: K(q, k) = \phi(q)^\top \phi(k)

    An average with such a kernel needs :math:`\sum_i \phi(k_i) v_i^\top` once, and then each
    query by itself: time and memory grow with the number of rows, not of pairs.

    Parameters
    ----------
    n_features, kernel, orthogonal, random_state
        As of :class:`PositiveFeatures`.
    """

    positive_definite = True
    # Features of exp(q.k) have the factor exp(_growth |x|^2 + _log_gain) / sqrt(n_features).
    _growth, _log_gain = 0.0, 0.0

    def __init__(
        self, n_features=256, *, kernel="scaled_dot_product", orthogonal=True, random_state=0
    ):
        self.n_features = n_features
        self.kernel = kernel
        self.orthogonal = orthogonal
        self.random_state = random_state

    def directions(self, dimension):
        """The random directions, of which each gives two features.

        Parameters
        ----------
        dimension : int
            Entries of a query or a key.

        Returns
        -------
        directions : ndarray of shape (n_features / 2, dimension)
            Not to be written to.
        """
        n_features = check_positive("n_features", self.n_features, integer=True)
        if n_features % 2:
            raise ValueError(
                f"n_features={self.n_features!r} is not valid: pass an even integer, since "
                "each direction gives two features."
            )
        seed, orthogonal = self.random_state, self.orthogonal
        whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
        if not whole or not 0 <= seed <= _LARGEST_SEED:
            raise ValueError(
                f"random_state={seed!r} is not valid: pass an integer from 0 to "
                f"{_LARGEST_SEED}, so that every call has the same features."
            )
        if not isinstance(orthogonal, bool | np.bool_):
            raise ValueError(f"orthogonal={orthogonal!r} is not valid: pass True or False.")
        return _directions(n_features // 2, dimension, bool(orthogonal), int(seed))

    def feature_form(self, X):
        """Features of some rows, on a logarithmic scale.

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
        directions = xp.asarray(
            self.directions(X.shape[-1]), dtype=X.dtype, device=X.device, copy=True
        )
        growth, log_gain = self._growth, self._log_gain - 0.5 * math.log(self.n_features)
        if self.kernel == "scaled_dot_product":
            X = X / X.shape[-1] ** 0.25
        else:
            # The Gaussian is exp(q.k) times a factor of the query and one of the key.
            growth, log_gain = growth - 0.5, log_gain - 0.25 * math.log(2 * math.pi)
        offsets = growth * xp.sum(X * X, axis=-1, keepdims=True) + log_gain
        return FeatureForm(*self._features(X @ directions.T), offsets)

    @abstractmethod
    def _features(self, projections):
        """Factors and exponents of the features of exp(q.k)."""


class PositiveFeatures(FeatureKernel, name="positive_features"):
    r"""Random features that are positive, the attention of Performers.

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
        How many, :math:`D`; even, as each direction gives two. The error falls with its root.
    kernel : {"scaled_dot_product", "gaussian"}, default="scaled_dot_product"
        What is approximated.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks, which makes the error smaller.
    random_state : int, default=0
        Seed of the directions, which depend on it and on the dimension alone.

    Notes
    -----
    These are the hyperbolic features of Choromanski et al. (2021) [1]_: a direction together
    with its opposite has no larger error than two independent ones, and costs one projection.

    The variance of :math:`\phi(q)^\top \phi(k)`, relative to the square of what it
    approximates, is :math:`(e^{s / 2} - e^{-s / 2})^2 / D` with
    :math:`s = \lVert q + k \rVert^2`, for independent directions. So they suit short queries
    and keys, whose weights are spread over many keys; long ones, whose weights concentrate
    on a few, need more features than there are keys.

    References
    ----------
    .. [1] Choromanski, K., Likhosherstov, V., Dohan, D. et al. (2021). Rethinking attention
       with Performers. ICLR.

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

    def _features(self, projections):
        return None, opposite_pairs(projections)

    def _log_values(self, queries, keys):
        xp = array_namespace(queries, keys)
        queries, keys = self.feature_form(queries), self.feature_form(keys)
        of_keys = keys.exponents + keys.offsets  # (n_keys, n_features)
        if 0 in of_keys.shape:
            return queries.offsets + keys.offsets.T
        # What is taken from a feature in the keys goes to the queries, so that no sum vanishes.
        shift = xp.max(of_keys, axis=0, keepdims=True)
        of_queries = queries.exponents + shift
        top = xp.max(of_queries, axis=1, keepdims=True)
        total = xp.exp(of_queries - top) @ xp.exp(of_keys - shift).T
        return log(total) + top + queries.offsets


class TrigonometricFeatures(FeatureKernel, name="trigonometric_features"):
    r"""Random Fourier features, sines and cosines.

    With :math:`x` divided by :math:`d^{1/4}`, and :math:`\omega_j` standard normal,

    .. math:: \phi(x) = \sqrt{\tfrac2D}\; e^{\lVert x \rVert^2 / 2}
              \bigl[\sin(\omega_j^\top x),\, \cos(\omega_j^\top x)\bigr]_{j \le D / 2},
              \qquad E\, \phi(q)^\top \phi(k) = \exp(q^\top k)

    which is the scaled dot product. For the Gaussian :math:`x` is not divided, and the factor
    before is :math:`(2\pi)^{-1/4}`.

    Signed: where the kernel is small, its approximation may be negative, and the sum of the
    weights, by which averages are divided, close to 0; see the notes.

    Parameters
    ----------
    n_features : int, default=256
        How many, :math:`D`; even, as each direction gives two. The error falls with its root.
    kernel : {"scaled_dot_product", "gaussian"}, default="scaled_dot_product"
        What is approximated.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks, which makes the error smaller.
    random_state : int, default=0
        Seed of the directions, which depend on it and on the dimension alone.

    Notes
    -----
    Sines and cosines alone approximate the Gaussian [1]_. The softmax of attention needs the
    factor :math:`\exp(\lVert k \rVert^2 / 2)` of each key besides, as in Peng et al. (2021)
    [2]_; that of the query cancels.

    The variance of :math:`\phi(q)^\top \phi(k)`, relative to the square of what it
    approximates, is :math:`(e^{s / 2} - e^{-s / 2})^2 / D` with
    :math:`s = \lVert q - k \rVert^2`, for independent directions: weights of near keys are
    accurate, those of far keys noise of either sign.

    Attention layers return 0 for a query whose sum of weights is not greater than the root
    of the sum of squares of the features' shares in it, as for a query without keys: such a
    sum cannot be told from 0 within its sampling error.

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

    def _features(self, projections):
        return wave_pairs(projections), 0.0 * projections[..., :1]

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        queries, keys = self.feature_form(queries), self.feature_form(keys)
        return (queries.factors @ keys.factors.T) * xp.exp(queries.offsets + keys.offsets.T)


def opposite_pairs(projections):
    """Exponents of positive features, (..., 2 n): every projection, then its opposite."""
    xp = array_namespace(projections)
    return xp.concat([projections, -projections], axis=-1)


def wave_pairs(projections):
    """Waves along some projections, (..., 2 n): all sines, then all cosines."""
    xp = array_namespace(projections)
    return xp.concat([xp.sin(projections), xp.cos(projections)], axis=-1)


@functools.lru_cache(maxsize=64)
def _directions(n_directions, dimension, orthogonal, seed):
    directions = random_frequencies(
        Gaussian(), n_directions, dimension, orthogonal=orthogonal,
        random_state=np.random.RandomState([seed, dimension]),
    )  # fmt: skip
    directions.flags.writeable = False
    return directions
