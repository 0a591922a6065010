"""Positive random features.

A feature is exp(omega . x) for a random direction omega, times a factor of the row x that makes
products of features unbiased estimates of the kernel.
"""

import math

import numpy as np

from .._validation import check_choice
from ..kernels import Gaussian
from ..kernels._feature_kernels import opposite_pairs
from ..kernels._frequencies import adapt_directions
from ._random_features import RandomFeatures

_KERNELS = ("gaussian", "scaled_dot_product")


class PositiveRandomFeatures(RandomFeatures):
    r"""Map rows to positive numbers whose products approximate the kernel of attention.

    The kernel is the exponential of the scaled dot product. Take it to compute attention in a
    time that is linear in the number of rows, with weights that are never negative; for linear
    models take :class:`RandomFourierFeatures`.

    For the scaled dot product, with rows in bandwidths and divided by :math:`d^{1/4}`, with
    :math:`a` their mean in training and :math:`x' = x - a`,

    .. math:: \phi(x) = \frac{e^{-\lVert x' \rVert^2 / 2 + a^\top (x - a / 2)}}{\sqrt D}
              \bigl[\sqrt{p_j} e^{\omega_j^\top x'},\,
              \sqrt{p_j} e^{-\omega_j^\top x'}\bigr]_{j \le D / 2},
              \qquad E\, \phi(x)^\top \phi(y) = \exp(x^\top y)

    and for the Gaussian, with rows in bandwidths,

    .. math:: \phi(x) = \frac{e^{-\lVert x' \rVert^2}}{\sqrt D}
              \bigl[\sqrt{p_j} e^{\omega_j^\top x'},\,
              \sqrt{p_j} e^{-\omega_j^\top x'}\bigr]_{j \le D / 2},
              \qquad E\, \phi(x)^\top \phi(y) = e^{-\lVert x - y \rVert^2 / 2}.

    The variance of directions is adapted to the training rows; the weights :math:`p_j` correct
    for it, so that means stay the same. All products are positive, as weights have to be.

    Parameters
    ----------
    n_components : int, default=256
        Features to make, :math:`D`. The error falls with its root.
    kernel : {"gaussian", "scaled_dot_product"}, default="gaussian"
        Kernel that products of features approximate.
    bandwidth : float or array of shape (n_features,), default=1.0
        Divides the features before anything else; in their own units.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks of `n_features`, which makes the error
        smaller.
    random_state : int, RandomState instance or None, default=None
        Source of the directions; pass an int for the same ones every time.

    Attributes
    ----------
    directions_ : ndarray of shape (ceil(n_components / 2), n_features)
        The directions :math:`\omega_j`, normal, with the covariance that suits the rows.
    kernel_, bandwidth_
        The kernel, resolved, and the bandwidth of each feature.
    log_weights_ : ndarray of shape (ceil(n_components / 2),)
        Logarithms of :math:`p_j`: the standard normal density at each direction, divided by
        the one that it was drawn from.
    center_ : ndarray of shape (n_features,)
        Mean of the rows, :math:`a` in their own units.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has names.

    See Also
    --------
    RandomFourierFeatures : Sines and cosines, for more kernels.
    sklearn_attention.kernels.PositiveFeatures : The same as a kernel of attention layers.
    sklearn.kernel_approximation.RBFSampler : Features of the Gaussian that may be negative.

    Notes
    -----
    These are the hyperbolic features of Choromanski et al. (2021) [1]_. Their directions are
    drawn from the normal distribution that minimizes the relative variance of a product of two
    rows [2]_. For rows several bandwidths from the center they are still inaccurate. For the
    Gaussian, :class:`RandomFourierFeatures` have the smaller error if rows are close to each
    other, and positive features if the kernel is small.

    References
    ----------
    .. [1] Choromanski, K., Likhosherstov, V., Dohan, D. et al. (2021). Rethinking attention
       with Performers. ICLR.
    .. [2] Likhosherstov, V., Choromanski, K., Dubey, A., Liu, F., Sarlos, T. and Weller, A.
       (2023). Dense-exponential random features: sharp positive estimators of the Gaussian
       kernel. NeurIPS 36.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from sklearn_attention import PositiveRandomFeatures
    >>> X = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    >>> features = PositiveRandomFeatures(4096, random_state=0).fit_transform(X)
    >>> bool(abs(features @ features.T - rbf_kernel(X, gamma=0.5)).max() < 0.02)
    True
    """

    def _spectral_kernel(self):
        check_choice("kernel", self.kernel, _KERNELS)
        return Gaussian()

    def _learn(self, X, random_state):
        """Compute the center of the rows, and adapt the variance of directions to the rows."""
        self.center_ = X.mean(axis=0, dtype=np.float64)
        rows = self._scaled(X - self.center_, self.bandwidth_)
        with np.errstate(over="ignore", invalid="ignore"):
            # This is the covariance of the sum of two independent rows.
            covariance = 2 * rows.T @ rows / len(rows)
            self._refuse_overflow(np.square(covariance))
        self.directions_, self.log_weights_ = adapt_directions(self.directions_, covariance)

    def _features(self, X, bandwidth):
        fitted = self.directions_, self.log_weights_, self.center_
        directions, log_weights, center = (array.astype(X.dtype) for array in fitted)
        rows = self._scaled(X - center, bandwidth)
        exponents = opposite_pairs(rows @ directions.T) + 0.5 * np.tile(log_weights, 2)
        squares = np.square(rows).sum(axis=1, keepdims=True)
        if isinstance(self.kernel_, Gaussian):
            exponents = exponents - squares
        else:
            # x.y = (x - a).(y - a) + (a.x - a.a / 2) + (a.y - a.a / 2) with the center a.
            center = self._scaled(center, bandwidth)
            tilt = (rows + 0.5 * center) @ center
            exponents = exponents - 0.5 * squares + tilt[:, None]
        exponents = exponents[:, : self._n_features_out]
        return np.exp(exponents) / math.sqrt(self._n_features_out)

    def _scaled(self, X, bandwidth):
        """Divide rows by the bandwidth, and for the scaled dot product also by d^(1/4)."""
        is_gaussian = isinstance(self.kernel_, Gaussian)
        return X / bandwidth if is_gaussian else X / bandwidth / X.shape[-1] ** 0.25
