"""Directions of positive features, drawn where queries and keys need them."""

import numpy as np


def spread_directions(normals, covariance):
    r"""Spread standard normal directions to the smallest variance of positive features.

    Directions are drawn from :math:`N(0, \Sigma)` in place of :math:`N(0, I)`, and their
    features are weighted by the ratio of the two densities, so that means stay.

    Parameters
    ----------
    normals : ndarray of shape (n, d)
        Standard normal, independent or orthogonal.
    covariance : ndarray of shape (..., d, d)
        Of the sums of a query and a key; 0 leaves the directions as they are.

    Returns
    -------
    directions : ndarray of shape (..., n, d)
        Rows :math:`\omega = \Sigma^{1/2} z`.
    log_weights : ndarray of shape (..., n)
        Logarithms of :math:`N(\omega; 0, I) / N(\omega; 0, \Sigma)`.

    Notes
    -----
    By importance sampling [1]_ [2]_. Let :math:`s = q + k` and :math:`\Sigma` have the axes
    of the covariance of `s`, with variances :math:`1 / \rho_j`. The second moment of the
    estimate of :math:`\exp(q^\top k)` by one direction, divided by the square of its mean,
    is a Gaussian integral:

    .. math:: \prod_j \frac{1}{\sqrt{\rho_j (2 - \rho_j)}}
              \exp\Bigl(\frac{\rho_j s_j^2}{2 - \rho_j}\Bigr).

    The mean of its logarithm over all pairs depends on :math:`\sigma_j^2 = E\, s_j^2` alone.
    Its derivative in :math:`\rho_j` is 0 where :math:`\rho_j^2 - (3 + 2 \sigma_j^2) \rho_j +
    2 = 0`, which has one root in (0, 1].

    References
    ----------
    .. [1] Likhosherstov, V., Choromanski, K., Dubey, A., Liu, F., Sarlos, T. and Weller, A.
       (2022). Chefs' random tables: non-trigonometric random features. NeurIPS 35.
    .. [2] Likhosherstov, V., Choromanski, K., Dubey, A., Liu, F., Sarlos, T. and Weller, A.
       (2023). Dense-exponential random features: sharp positive estimators of the Gaussian
       kernel. NeurIPS 36.
    """
    variances, axes = np.linalg.eigh(covariance)  # (..., d), (..., d, d)
    b = 3 + 2 * np.maximum(variances, 0)
    # The smaller root, written without the difference of two large numbers.
    precisions = 4 / (b + np.sqrt(b * b - 8))
    root = (axes / np.sqrt(precisions)[..., None, :]) @ axes.mT
    directions = normals @ root
    log_weights = 0.5 * (np.square(normals).sum(-1) - np.square(directions).sum(-1))
    return directions, log_weights - 0.5 * np.log(precisions).sum(-1, keepdims=True)
