"""Exact leave-one-out errors of kernel interpolation, with their gradient in closed form."""

import torch


class _LeaveOneOutErrors(torch.autograd.Function):
    @staticmethod
    def forward(context, matrix, targets):
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(matrix))
        solved, own = inverse @ targets, inverse.diagonal()[:, None]
        context.save_for_backward(inverse, solved, own)
        return solved / own

    @staticmethod
    def backward(context, gradient):
        inverse, solved, own = context.saved_tensors
        of_own = -(gradient * solved / own**2).sum(1)
        pulled = inverse @ (gradient / own)
        return -pulled @ solved.T - (inverse * of_own) @ inverse, None


def leave_one_out_errors(matrix, targets):
    r"""Targets less what all other rows predict of them.

    .. math:: r_i = \frac{[K^{-1} y]_i}{[K^{-1}]_{ii}}

    Parameters
    ----------
    matrix : Tensor of shape (n, n)
        Kernel with the noise on its diagonal; symmetric, positive definite.
    targets : Tensor of shape (n, n_outputs)

    Returns
    -------
    errors : Tensor of shape (n, n_outputs)
        With a gradient for the matrix,
        :math:`-K^{-1} g\, \alpha^\top - K^{-1} \operatorname{diag}(h) K^{-1}`, where
        :math:`g_i = \dot r_i / k_i` and :math:`h_i = -\dot r_i \alpha_i / k_i^2` with
        :math:`k` the diagonal of the inverse.

    Raises
    ------
    torch.linalg.LinAlgError
        If the matrix is not positive definite in its precision.
    """
    return _LeaveOneOutErrors.apply(matrix, targets)
