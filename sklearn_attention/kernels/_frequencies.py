"""Random directions: frequencies of a kernel, and directions of positive features."""

import math

import numpy as np

from ._covariance import Exponential, Laplacian, Matern32, Matern52, RationalQuadratic
from ._unbounded import Gaussian


def random_frequencies(kernel, n_directions, n_features, *, orthogonal=True, random_state):
    r"""Draw directions (n_directions, n_features) from the spectral density of a kernel.

    Directions omega are in reciprocal bandwidths, and
    :math:`K(q, k) = K(0)\, E_\omega \cos(\omega^\top (q - k))`.

    Parameters
    ----------
    kernel : Kernel
        An instance of one of the classes in `_DRAW_TAU`.
    n_directions, n_features : int
    orthogonal : bool
        Whether directions are orthogonal in blocks of `n_features`.
    random_state : numpy.random.RandomState
    """
    # These kernels are mixtures of Gaussians, K(u) ~ E_tau exp(-tau |u|^2 / 2). So a direction
    # is a standard normal vector times sqrt(tau) (Rahimi and Recht 2007). The distribution of
    # tau is
    # - constant, 1, for the Gaussian;
    # - nu / chi^2_nu for the exponential, Matern 3/2 and 5/2, with nu = 1, 3 and 5;
    # - that of the exponential for the Laplacian, drawn for each feature separately;
    # - Gamma(alpha), divided by its mean, for the rational quadratic.
    if type(kernel) not in _DRAW_TAU:
        known = sorted(kind.__name__ for kind in _DRAW_TAU)
        raise ValueError(
            f"kernel={kernel!r} has no known spectral density: choose one of {known}."
        )
    directions = _normal_directions(n_directions, n_features, orthogonal, random_state)
    n_columns = n_features if isinstance(kernel, Laplacian) else 1
    tau = _DRAW_TAU[type(kernel)](kernel, random_state, (n_directions, n_columns))
    return directions * np.sqrt(tau)


def _normal_directions(n_directions, n_features, orthogonal, random_state):
    """Draw standard normal directions (n_directions, n_features).

    Orthogonal ones are rows of random rotations, in blocks of `n_features`, times lengths of
    independent normal vectors (Yu et al. 2016). Each direction has the same distribution as
    an independent one, and together they cover the sphere more evenly.
    """
    if not orthogonal:
        return random_state.normal(size=(n_directions, n_features))
    blocks = []
    for _ in range(math.ceil(n_directions / n_features)):
        square = random_state.normal(size=(n_features, n_features))
        rotation, triangle = np.linalg.qr(square)
        # Libraries choose the signs of the diagonal differently. If all are positive, the
        # rotation is uniformly distributed.
        rotation = rotation * np.copysign(1.0, np.diag(triangle))
        lengths = np.sqrt(random_state.chisquare(n_features, size=(n_features, 1)))
        blocks.append(rotation.T * lengths)
    return np.concatenate(blocks)[:n_directions]


# Functions of a kernel, a RandomState and a shape that draw tau; see `random_frequencies`.
_DRAW_TAU = {
    Gaussian: lambda kernel, rng, size: np.ones(size),
    Laplacian: lambda kernel, rng, size: 1 / rng.chisquare(1, size),
    Exponential: lambda kernel, rng, size: 1 / rng.chisquare(1, size),
    Matern32: lambda kernel, rng, size: 3 / rng.chisquare(3, size),
    Matern52: lambda kernel, rng, size: 5 / rng.chisquare(5, size),
    RationalQuadratic: lambda kernel, rng, size: (
        rng.gamma(kernel.alpha, size=size) / kernel.alpha
    ),
}


def adapt_directions(normals, covariance):
    r"""Rescale normal directions such that positive features have the smallest variance.

    Parameters
    ----------
    normals : ndarray of shape (n, d)
        Standard normal directions.
    covariance : ndarray of shape (..., d, d)
        Covariance of the sums q + k of queries and keys.

    Returns
    -------
    directions : ndarray of shape (..., n, d)
        Directions with the distribution :math:`N(0, \Sigma)` that suits the covariance.
    log_weights : ndarray of shape (..., n)
        Logarithms of the ratio of densities :math:`N(w; 0, I) / N(w; 0, \Sigma)` at each
        direction w.
    """
    # This is importance sampling after Likhosherstov et al. (2022, Chefs' random tables; 2023,
    # Dense-exponential random features). Sigma has the eigenvectors of the covariance of
    # s = q + k, and the eigenvalues 1 / rho_j; s_j is s along eigenvector j. One direction w
    # with its weight estimates exp(q . k) as exp(w . s - |q|^2 / 2 - |k|^2 / 2). The second
    # moment of this estimate, divided by the square of its mean, is the product over j of
    # exp(rho_j s_j^2 / (2 - rho_j)) / sqrt(rho_j (2 - rho_j)). The mean of the logarithm of
    # this product over all pairs depends only on sigma_j^2 = E s_j^2. Its derivative in rho_j
    # is 0 if rho_j^2 - (3 + 2 sigma_j^2) rho_j + 2 = 0, which has one solution in (0, 1].
    variances, eigenvectors = np.linalg.eigh(covariance)  # (..., d), (..., d, d)
    b = 3 + 2 * np.maximum(variances, 0)
    # This is the smaller solution rho, written without a difference of two large numbers.
    rho = 4 / (b + np.sqrt(b * b - 8))
    sqrt_sigma = (eigenvectors / np.sqrt(rho)[..., None, :]) @ eigenvectors.mT
    directions = normals @ sqrt_sigma
    log_weights = 0.5 * (np.square(normals).sum(-1) - np.square(directions).sum(-1))
    return directions, log_weights - 0.5 * np.log(rho).sum(-1, keepdims=True)
