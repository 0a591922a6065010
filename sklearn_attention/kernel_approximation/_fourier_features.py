"""Random Fourier features."""

import math

import numpy as np

from ..kernels._base import as_kernel
from ..kernels._feature_kernels import wave_pairs
from ._random_features import RandomFeatures


class RandomFourierFeatures(RandomFeatures):
    r"""Map rows to sines and cosines whose products approximate a stationary kernel.

    Such a kernel depends only on the difference of two rows. Put it before a linear model if
    there are too many rows for exact kernel methods;
    :class:`sklearn.kernel_approximation.RBFSampler` does so for the Gaussian kernel alone. Take
    :class:`PositiveRandomFeatures` if weights must not be negative.

    .. math:: \phi(x) = \sqrt{\tfrac2D}
              \bigl[\sin(\omega_j^\top x),\, \cos(\omega_j^\top x)\bigr]_{j \le D / 2},
              \qquad E\, \phi(x)^\top \phi(y) = K(x - y) / K(0)

    with rows in bandwidths. Products of features approximate the kernel, so linear models on
    them replace kernel machines at a cost that is linear in the number of rows.
    :class:`sklearn.kernel_approximation.RBFSampler` does this for the Gaussian with
    independent directions; here they are orthogonal, and there are more kernels.

    Parameters
    ----------
    n_components : int, default=256
        Features to make, :math:`D`. The error falls with its root.
    kernel : str or Kernel, default="gaussian"
        "gaussian", "laplacian", "exponential", "matern32", "matern52" or
        "rational_quadratic", or one of these kernels with its parameters.
    bandwidth : float or array of shape (n_features,), default=1.0
        Divides the features before anything else; in their own units. For the Gaussian, `gamma`
        of ``RBFSampler`` is ``1 / (2 * bandwidth**2)``.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks of `n_features`, which makes the error
        smaller.
    random_state : int, RandomState instance or None, default=None
        Source of the directions; pass an int for the same ones every time.

    Attributes
    ----------
    directions_ : ndarray of shape (ceil(n_components / 2), n_features)
        The frequencies :math:`\omega_j`, in reciprocal bandwidths.
    kernel_, bandwidth_
        The kernel, resolved, and the bandwidth of each feature.
    phases_ : ndarray of shape (ceil(n_components / 2),)
        Added to the projections: 0, and for an odd `n_components` a random phase of the last
        one, of which only the sine is kept.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has names.

    See Also
    --------
    PositiveRandomFeatures : Features that are positive.
    sklearn_attention.kernels.TrigonometricFeatures : The same as a kernel of attention layers.
    sklearn.kernel_approximation.RBFSampler : Independent directions, for the Gaussian only.

    Notes
    -----
    The features are those of Rahimi and Recht (2007) [1]_, with the orthogonal directions of
    Yu et al. (2016) [2]_. Directions are drawn from the spectral density of the kernel. The
    approximated kernel is 1 between a row and itself, as in scikit-learn, so that kernels can
    be exchanged without another regularisation. Among the kernels of this package only
    :class:`~sklearn_attention.kernels.Gaussian` has another value there,
    :math:`K(0) = 1 / \sqrt{2 \pi}`.

    References
    ----------
    .. [1] Rahimi, A. and Recht, B. (2007). Random features for large-scale kernel machines.
       NeurIPS 20.
    .. [2] Yu, F. X., Suresh, A. T., Choromanski, K., Holtmann-Rice, D. and Kumar, S. (2016).
       Orthogonal random features. NeurIPS 29.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_attention import RandomFourierFeatures
    >>> X, y = make_friedman1(600, n_features=5, random_state=0)
    >>> features = RandomFourierFeatures(kernel="matern52", bandwidth=1.0, random_state=0)
    >>> model = make_pipeline(features, Ridge(alpha=1e-3)).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.98
    True
    """

    def _spectral_kernel(self):
        return as_kernel(self.kernel)

    def _learn(self, X, random_state):
        """Draw the phase of the last feature if it has no partner, and set all others to 0."""
        self.phases_ = np.zeros(len(self.directions_))
        if self._n_features_out % 2:
            self.phases_[-1] = random_state.uniform(0, 2 * np.pi)

    def _features(self, X, bandwidth):
        directions, phases = self.directions_.astype(X.dtype), self.phases_.astype(X.dtype)
        waves = wave_pairs(X / bandwidth @ directions.T + phases)
        n_components = self._n_features_out
        return math.sqrt(2 / n_components) * waves[:, :n_components]
