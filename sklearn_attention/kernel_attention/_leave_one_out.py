"""Leave-one-out predictions of kernel ridge regression, with their gradient in closed form."""

import numpy as np
from scipy.linalg import get_lapack_funcs

# Noise that rounding makes, as a share of the diagonal: what single precision needs.
LEAST_NOISE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Rows of less weight have too much noise to be told.
_LEAST_WEIGHT = 1e-6
# Rows of a triangular matrix that LAPACK inverts as fast as products do.
_UNDIVIDED = 64


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
    u = -0.5 * (inverse @ g)
    pull += np.hstack([u, solved]) @ np.hstack([solved, u]).T
    gradient = pairs.gradient(pull)
    gradient[-1] = 2 * float(pull.diagonal() @ noise)
    return value, gradient


def _inverse(matrix):
    factorise, square = get_lapack_funcs(("potrf", "lauum"), (matrix,))
    # The transpose of a symmetric matrix is the same in the order that LAPACK reads.
    factor, info = factorise(matrix.T, lower=1)
    if info:
        raise np.linalg.LinAlgError("the kernel's matrix is not positive definite.")
    half = square(_inverse_of_lower(factor), lower=1, overwrite_c=1)[0]
    inverse = half + half.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return inverse


def _inverse_of_lower(factor):
    """The inverse of a lower triangular matrix, in half the time of OpenBLAS's trtri."""
    n = len(factor)
    if n <= _UNDIVIDED:
        (invert,) = get_lapack_funcs(("trtri",), (factor,))
        return invert(factor, lower=1)[0]
    inverse, half = np.zeros_like(factor), n // 2
    first = inverse[:half, :half] = _inverse_of_lower(factor[:half, :half])
    last = inverse[half:, half:] = _inverse_of_lower(factor[half:, half:])
    inverse[half:, :half] = -last @ (factor[half:, :half] @ first)
    return inverse
