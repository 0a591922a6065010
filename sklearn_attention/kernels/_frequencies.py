"""Random frequencies, drawn from the spectral density of a kernel."""

import math

import numpy as np

from ._covariance import Exponential, Laplacian, Matern32, Matern52, RationalQuadratic
from ._gaussian import Gaussian


def random_frequencies(kernel, n_directions, n_features, *, orthogonal=True, random_state):
    r"""Draw directions from the spectral density of a kernel.

    Their density is the Fourier transform of the kernel, divided by its peak, so that
    :math:`K(q, k) = K(0)\, E_\omega \cos(\omega^\top (q - k))`.

    Parameters
    ----------
    kernel : Kernel
        :class:`Gaussian`, :class:`Laplacian`, :class:`Exponential`, :class:`Matern32`,
        :class:`Matern52` or :class:`RationalQuadratic`.
    n_directions : int
        How many to draw.
    n_features : int
        The dimension :math:`d` that they lie in.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks of :math:`d`, which leaves the
        distribution of each as it is and spreads them more evenly.
    random_state : numpy.random.RandomState
        The source of random numbers.

    Returns
    -------
    frequencies : ndarray of float64, of shape (n_directions, n_features)
        In reciprocal bandwidths.

    Raises
    ------
    ValueError
        If the spectral density of the kernel is not known.

    Notes
    -----
    All these kernels are mixtures of Gaussians,
    :math:`K(u) \propto E_\tau \exp(-\tau \lVert u \rVert^2 / 2)`. So each direction is a
    standard normal one times :math:`\sqrt\tau` [1]_:

    ======================= ==============================================================
    kernel                  :math:`\tau`
    ======================= ==============================================================
    gaussian                1
    exponential             :math:`\nu / \chi^2_\nu` with :math:`\nu = 1`, so that the
                            directions have Student's distribution in :math:`d` dimensions
    matern32, matern52      the same with :math:`\nu = 3` and :math:`\nu = 5`
    laplacian               as the exponential, but drawn for each feature by itself
    rational_quadratic      :math:`\Gamma(\alpha)` of mean 1
    ======================= ==============================================================

    A block of orthogonal directions is a random rotation whose rows have the lengths of
    normal vectors [2]_.

    References
    ----------
    .. [1] Rahimi, A. and Recht, B. (2007). Random features for large-scale kernel machines.
       NeurIPS 20.
    .. [2] Yu, F. X., Suresh, A. T., Choromanski, K., Holtmann-Rice, D. and Kumar, S. (2016).
       Orthogonal random features. NeurIPS 29.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.kernels import Gaussian
    >>> from sklearn_attention.kernels._frequencies import random_frequencies
    >>> random_state = np.random.RandomState(0)
    >>> directions = random_frequencies(Gaussian(), 2, 3, random_state=random_state)
    >>> directions.shape
    (2, 3)
    >>> bool(abs(directions[0] @ directions[1]) < 1e-12)
    True
    """
    if type(kernel) not in _MIXTURES:
        known = sorted(kind.__name__ for kind in _MIXTURES)
        raise ValueError(
            f"kernel={kernel!r} has no known spectral density: choose one of {known}."
        )
    directions = _normal_directions(n_directions, n_features, orthogonal, random_state)
    columns = n_features if isinstance(kernel, Laplacian) else 1
    tau = _MIXTURES[type(kernel)](kernel, random_state, (n_directions, columns))
    return directions * np.sqrt(tau)


def _normal_directions(n_directions, n_features, orthogonal, random_state):
    if not orthogonal:
        return random_state.normal(size=(n_directions, n_features))
    blocks = []
    for _ in range(math.ceil(n_directions / n_features)):
        square = random_state.normal(size=(n_features, n_features))
        rotation, triangle = np.linalg.qr(square)
        # Signs of the diagonal are up to the library; positive ones make the rotation uniform.
        rotation = rotation * np.copysign(1.0, np.diag(triangle))
        lengths = np.sqrt(random_state.chisquare(n_features, size=(n_features, 1)))
        blocks.append(rotation.T * lengths)
    return np.concatenate(blocks)[:n_directions]


_MIXTURES = {
    Gaussian: lambda kernel, rng, size: np.ones(size),
    Laplacian: lambda kernel, rng, size: 1 / rng.chisquare(1, size),
    Exponential: lambda kernel, rng, size: 1 / rng.chisquare(1, size),
    Matern32: lambda kernel, rng, size: 3 / rng.chisquare(3, size),
    Matern52: lambda kernel, rng, size: 5 / rng.chisquare(5, size),
    RationalQuadratic: lambda kernel, rng, size: (
        rng.gamma(kernel.alpha, size=size) / kernel.alpha
    ),
}
