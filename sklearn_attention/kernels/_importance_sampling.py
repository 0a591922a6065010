"""Directions of positive features, drawn where queries and keys need them."""

import numpy as np


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
