"""Positive random features."""

import math

import numpy as np

from .._validation import check_choice
from ..kernels import Gaussian, opposite_pairs
from ._random_features import RandomFeatures, peak

_KERNELS = ("gaussian", "scaled_dot_product")


class PositiveRandomFeatures(RandomFeatures):
    r"""Exponentials along random directions and their opposites.

    For the scaled dot product, with rows in bandwidths and divided by :math:`d^{1/4}`,

    .. math:: \phi(x) = \frac{e^{-\lVert x \rVert^2 / 2}}{\sqrt D}
              \bigl[e^{\omega_j^\top x},\, e^{-\omega_j^\top x}\bigr]_{j \le D / 2},
              \qquad E\, \phi(x)^\top \phi(y) = \exp(x^\top y)

    and for the Gaussian, with rows in bandwidths relative to their mean in training,

    .. math:: \phi(x) = \frac{e^{-\lVert x \rVert^2}}{(2 \pi)^{1/4} \sqrt D}
              \bigl[e^{\omega_j^\top x},\, e^{-\omega_j^\top x}\bigr]_{j \le D / 2},
              \qquad E\, \phi(x)^\top \phi(y) = K(x - y).

    All products are positive, as those of a kernel used as weights have to be.

    Parameters
    ----------
    n_components : int, default=256
        Features to make, :math:`D`. The error falls with its root.
    kernel : {"gaussian", "scaled_dot_product"}, default="gaussian"
        What products of features approximate.
    bandwidth : float or array of shape (n_features,), default=1.0
        What features are divided by first, in their own units.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks of `n_features`, which makes the error
        smaller.
    random_state : int, RandomState instance or None, default=None
        Source of the directions; pass an int for the same ones every time.

    Attributes
    ----------
    directions_ : ndarray of shape (ceil(n_components / 2), n_features)
        The directions :math:`\omega_j`, standard normal.
    center_ : ndarray of shape (n_features,)
        What rows are taken relative to: their mean for the Gaussian, which depends on
        differences alone, and 0 for the scaled dot product.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has names.

    See Also
    --------
    RandomFourierFeatures : Sines and cosines, for more kernels.
    sklearn_attention.kernels.PositiveFeatures : The same as a kernel of attention layers.

    Notes
    -----
    The hyperbolic features of Choromanski et al. (2021) [1]_. Of rows that are several
    bandwidths from the center they say little: the relative variance of a product grows with
    :math:`e^{\lVert x + y \rVert^2}`. For Gaussians, :class:`RandomFourierFeatures` have the
    smaller error where rows lie near to each other, and these where the kernel is small.

    References
    ----------
    .. [1] Choromanski, K., Likhosherstov, V., Dohan, D. et al. (2021). Rethinking attention
       with Performers. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import PositiveRandomFeatures
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    >>> features = PositiveRandomFeatures(4096, random_state=0).fit_transform(X)
    >>> bool(abs(features @ features.T - Gaussian()(X)).max() < 0.02)
    True
    """

    def _spectral_kernel(self):
        check_choice("kernel", self.kernel, _KERNELS)
        return Gaussian()

    def _learn(self, X, random_state):
        self.center_ = np.zeros(X.shape[1])
        if self.kernel == "gaussian":
            self.center_ = X.mean(axis=0, dtype=np.float64)

    def _features(self, X, bandwidth):
        rows = (X - self.center_.astype(X.dtype)) / bandwidth
        if self.kernel == "gaussian":
            shrink, top = 1.0, peak(self.kernel)
        else:
            shrink, top, rows = 0.5, 1.0, rows / rows.shape[1] ** 0.25
        squares = shrink * np.square(rows).sum(axis=1, keepdims=True)
        exponents = opposite_pairs(rows @ self.directions_.astype(X.dtype).T)
        exponents = exponents[:, : self.n_components] - squares
        return math.sqrt(top / self.n_components) * np.exp(exponents)
