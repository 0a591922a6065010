"""Kernel logistic regression: log-odds of classes that a memory reproduces."""

import torch

from ._solve import SolvedMemory

_MOST_ITERATIONS = 12
_TOLERANCE = 1e-3
# A row that is all but certain would have no weight, and infinite noise.
_LEAST_CURVATURE = 1e-4


def solve_logistic(matrix, indicators, weights, offset, rows):
    r"""Log-odds of every class against the rest, by Newton's method.

    .. math:: f = b + K \alpha, \qquad
              \max_\alpha \sum_i w_i \log P(y_i \mid f_i) - \tfrac12 \alpha^\top K \alpha

    Every step solves :math:`(K + W^{-1}) \alpha = f - b + W^{-1} (y - p)`, with
    :math:`W = w\, p\, (1 - p)` and :math:`p` the logistic function of :math:`f`: kernel ridge
    regression with a noise for every row [1]_.

    Parameters
    ----------
    matrix : Tensor of shape (n, n)
    indicators : Tensor of shape (n, n_classes)
    weights : Tensor of shape (n,)
        Positive.
    offset : Tensor of shape (n_classes,)
        The log-odds :math:`b` far from all rows.
    rows : LongTensor of shape (n_rows,)
        Rows to be predicted without themselves.

    Returns
    -------
    coefficients : Tensor of shape (n, n_classes)
        The :math:`\alpha`.
    left_out : Tensor of shape (n_rows, n_classes)
        Log-odds less the offset, from the last step's system without the row [2]_.

    References
    ----------
    .. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine
       learning, section 3.4. MIT Press.
    .. [2] Opper, M. and Winther, O. (2000). Gaussian processes for classification: mean-field
       algorithms. Neural Computation 12, 2655-2684.
    """
    coefficients, left_out = [], []
    # Of two classes the log-odds of one are those of the other, negated.
    complements = len(offset) == 2 and bool((indicators.sum(dim=1) == 1).all())
    mirrored = complements and torch.allclose(offset[:1], -offset[1:])
    solved = slice(0, 1) if mirrored else slice(None)
    for label, b in zip(indicators.T[solved], offset[solved], strict=True):
        f = b.expand(len(label))
        for _ in range(_MOST_ITERATIONS):
            p = torch.sigmoid(f)
            curvature = weights * (p * (1 - p)).clamp_min(_LEAST_CURVATURE)
            response = f - b + weights * (label - p) / curvature
            system = SolvedMemory(
                lambda a, b: matrix[a[0] : a[-1] + 1, b[0] : b[-1] + 1],
                response[:, None], 1 / curvature,
            )  # fmt: skip
            f = b + (matrix @ system.coefficients)[:, 0]
            if (torch.sigmoid(f) - p).abs().max() < _TOLERANCE:
                break
        coefficients.append(system.coefficients)
        left_out.append(system.left_out(rows))
    if mirrored:
        coefficients.append(-coefficients[0])
        left_out.append(-left_out[0])
    return torch.cat(coefficients, dim=1), torch.cat(left_out, dim=1)
