"""Random directions: frequencies of a kernel, and directions of positive features."""

import math

import numpy as np

from ._covariance import Exponential, Laplacian, Matern32, Matern52, RationalQuadratic
from ._unbounded import Gaussian


def random_frequencies(kernel, n_directions, n_features, *, orthogonal=True, random_state):
    r"""Directions (n_directions, n_features) drawn from the spectral density of a kernel.

    :math:`K(q, k) = K(0)\, E_\omega \cos(\omega^\top (q - k))`; omega in reciprocal bandwidths.
    """
    # These kernels are mixtures of Gaussians, K(u) ~ E_tau exp(-tau |u|^2 / 2), so each
    # direction is a standard normal one times sqrt(tau) (Rahimi and Recht 2007). tau is 1 for
    # the Gaussian; nu / chi^2_nu with nu = 1, 3, 5 for the exponential, Matern 3/2 and 5/2; as
    # the exponential, but for each feature by itself, for the Laplacian; Gamma(alpha) of mean 1
    # for the rational quadratic.
    # `orthogonal` directions are random rotations, in blocks of n_features, with the lengths of
    # normal vectors (Yu et al. 2016): each has the same distribution, and they spread more
    # evenly.
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


def spread_directions(normals, covariance):
    r"""Standard normal directions (n, d), spread for positive features of smallest variance.

    Returns rows (..., n, d) of :math:`N(0, \Sigma)`, and log-ratios (..., n) of both densities.
    """
    # Importance sampling after Likhosherstov et al. (2022, Chefs' random tables; 2023,
    # Dense-exponential random features). Sigma has the axes of the covariance (..., d, d) of s
    # = q + k, with variances 1 / rho_j. The second moment of the estimate of exp(q . k) by one
    # direction over the square of its mean is the product of exp(rho_j s_j^2 / (2 - rho_j)) /
    # sqrt(rho_j (2 - rho_j)). The mean of its logarithm over all pairs depends only on
    # sigma_j^2 = E s_j^2. Its derivative in rho_j is 0 where rho_j^2 - (3 + 2 sigma_j^2) rho_j
    # + 2 = 0, which has one root in (0, 1].
    variances, axes = np.linalg.eigh(covariance)  # (..., d), (..., d, d)
    b = 3 + 2 * np.maximum(variances, 0)
    # The smaller root, written without the difference of two large numbers.
    precisions = 4 / (b + np.sqrt(b * b - 8))
    root = (axes / np.sqrt(precisions)[..., None, :]) @ axes.mT
    directions = normals @ root
    log_weights = 0.5 * (np.square(normals).sum(-1) - np.square(directions).sum(-1))
    return directions, log_weights - 0.5 * np.log(precisions).sum(-1, keepdims=True)
