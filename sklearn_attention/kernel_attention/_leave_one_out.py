"""Leave-one-out predictions of kernel ridge regression, with their gradient in closed form."""

import numpy as np
from scipy.linalg import get_lapack_funcs

# Noise that rounding makes, as a share of the diagonal: what single precision needs.
LEAST_NOISE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Rows of less weight have too much noise to be told.
_LEAST_WEIGHT = 1e-6


def leave_one_out(pairs, targets, weights, loss):
    r"""Loss of leave-one-out predictions, and its gradient in the kernel's parameters.

    With :math:`C = (K + \sigma^2 W^{-1})^{-1}`, :math:`\alpha = C y` and
    :math:`\kappa = \operatorname{diag} C` the errors are :math:`r = \alpha / \kappa` [1]_.
    For a loss with derivatives :math:`\dot r`, the gradient in the matrix is

    .. math:: G = C \operatorname{diag}(h) C - \tfrac12 (u \alpha^\top + \alpha u^\top),
              \quad g = \dot r / \kappa,\; u = C g,\; h = g\, r

    summed over outputs, which costs one more product of matrices than the errors.

    Parameters
    ----------
    pairs : Pairs
        The kernel among the rows.
    targets : ndarray of shape (n, n_outputs)
    weights : ndarray of shape (n,)
    loss : callable
        From errors to their loss and its derivatives in them.

    Returns
    -------
    loss : float
    gradient : ndarray of shape (n_parameters,)

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite in its precision.

    References
    ----------
    .. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine
       learning, section 5.4.2. MIT Press.
    """
    matrix = pairs.matrix
    noise = pairs.kernel.noise / np.maximum(weights, _LEAST_WEIGHT)
    diagonal = matrix.diagonal().copy()
    matrix.flat[:: len(matrix) + 1] += noise + LEAST_NOISE[matrix.dtype] * diagonal.mean()
    inverse = _inverse(matrix)
    solved, own = inverse @ targets, inverse.diagonal()[:, None]
    errors = solved / own
    value, of_errors = loss(errors)
    g = (of_errors / own).astype(matrix.dtype)
    h = (g * errors).sum(axis=1)
    judged = np.flatnonzero(h)
    columns, h = inverse[:, judged], h[judged]
    if (h >= 0).all():
        columns *= np.sqrt(h)
        pull = columns @ columns.T  # of one array: half the work
    else:
        pull = (columns * h) @ columns.T
    pulled = (inverse @ g) @ solved.T
    pull -= 0.5 * pulled
    pull -= 0.5 * pulled.T
    gradient = pairs.gradient(pull)
    gradient[-1] = 2 * float(pull.diagonal() @ noise)
    return value, gradient


def _inverse(matrix):
    factorise, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    # The transpose of a symmetric matrix is the same in the order that LAPACK reads.
    factor, info = factorise(matrix.T, lower=1, clean=0)
    if info == 0:
        inverse, info = invert(factor, lower=1, overwrite_c=1)
    if info:
        raise np.linalg.LinAlgError("the kernel's matrix is not positive definite.")
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    return inverse
