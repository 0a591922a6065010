"""Values learned so that a memory reproduces its targets: kernel interpolation."""

import torch

from .._blocks import blocks

_BLOCK = 2048
_JITTER = {torch.float32: 1e-5, torch.float64: 1e-10}


class SolvedMemory:
    r"""Kernel ridge regression, in full or through landmarks.

    .. math:: \alpha = (K + \Sigma)^{-1} y, \qquad \hat y(x) = k(x)^\top \alpha

    Through landmarks :math:`Z` (subset of regressors [1]_):

    .. math:: \hat y(x) = k_Z(x)^\top
              (K_{ZZ} + K_{ZX} \Sigma^{-1} K_{XZ})^{-1} K_{ZX} \Sigma^{-1} y

    Parameters
    ----------
    matrix : callable
        ``matrix(a, b)`` returns the kernel between rows at positions `a` and `b`, as a
        Tensor of the precision of the targets; None stands for the landmarks.
    targets : Tensor of shape (n, n_outputs)
    noise : Tensor of shape (n,)
        Diagonal of :math:`\Sigma`.
    landmarks : LongTensor of shape (n_landmarks,) or None, default=None
        None for all rows.

    Attributes
    ----------
    coefficients : Tensor of shape (n or n_landmarks, n_outputs)

    References
    ----------
    .. [1] Quinonero-Candela, J. and Rasmussen, C. E. (2005). A unifying view of sparse
       approximate Gaussian process regression. JMLR 6, 1939-1959.
    """

    def __init__(self, matrix, targets, noise, landmarks=None):
        self._matrix, self._targets, self._noise = matrix, targets, noise
        self._landmarks = landmarks
        if landmarks is None:
            self._factor = _factor(self._full(), noise)
            self.coefficients = torch.cholesky_solve(targets, self._factor)
        else:
            self._solve_through_landmarks()

    def left_out(self, rows):
        """Predictions of some rows by all others, exactly; (n_rows, n_outputs).

        Through landmarks a row that is one of them remains a landmark.
        """
        if self._landmarks is None:
            unit = self._targets.new_zeros((len(self._targets), len(rows)))
            unit[rows, torch.arange(len(rows))] = 1
            half = torch.linalg.solve_triangular(self._factor, unit, upper=False)
            errors = self.coefficients[rows] / half.square().sum(0)[:, None]
            return self._targets[rows] - errors
        block = self._whitened(rows)
        half = torch.linalg.solve_triangular(self._factor, block, upper=False)
        own = half.square().sum(0)[:, None]
        fitted = self._matrix(rows, None) @ self.coefficients
        return (fitted - own * self._targets[rows]) / (1 - own)

    def weights(self, queries):
        """Effective weight of every row in predictions; (n_queries, n).

        Parameters
        ----------
        queries : Tensor of shape (n_queries, n or n_landmarks)
            The kernel between queries and all rows, or the landmarks.
        """
        if self._landmarks is None:
            return torch.cholesky_solve(queries.T, self._factor).T
        half = torch.linalg.solve_triangular(self._root, queries.T, upper=False)
        half = torch.cholesky_solve(half, self._factor).T
        n = len(self._targets)
        parts = []
        for rows in _positions(n):
            parts.append(half @ self._whitened(rows) / self._noise[rows].sqrt())
        return torch.cat(parts, dim=1)

    def _full(self):
        n = len(self._targets)
        full = self._targets.new_empty((n, n))
        for rows in _positions(n):
            # The factorisation reads the lower triangle alone.
            stop = int(rows[-1]) + 1
            full[rows[0] : stop, :stop] = self._matrix(rows, torch.arange(stop))
        return full

    def _solve_through_landmarks(self):
        landmarks = self._landmarks
        among = self._matrix(landmarks, None).double()
        self._root = _factor(among, among.new_zeros(len(landmarks))).to(self._targets.dtype)
        square = among.new_zeros(among.shape)
        moment = among.new_zeros((len(landmarks), self._targets.shape[1]))
        for rows in _positions(len(self._targets)):
            block = self._whitened(rows)
            square += block @ block.T
            moment += block @ (self._targets[rows] / self._noise[rows].sqrt()[:, None])
        square.diagonal().add_(1.0)
        factor = torch.linalg.cholesky(square)
        solved = torch.cholesky_solve(moment, factor)
        self._factor = factor.to(self._targets.dtype)
        self.coefficients = torch.linalg.solve_triangular(
            self._root.T.double(), solved, upper=True
        ).to(self._targets.dtype)

    def _whitened(self, rows):
        """Landmarks' kernel with rows, in units of their own and of the noise."""
        block = self._matrix(rows, None).T / self._noise[rows].sqrt()
        return torch.linalg.solve_triangular(self._root, block, upper=False)


def _positions(n):
    for block in blocks(n, _BLOCK):
        yield torch.arange(block.start, block.stop)


def _factor(matrix, noise):
    """Cholesky factor of a matrix and its noise, with more noise where rounding asks for it."""
    jitter = _JITTER[matrix.dtype] * float(matrix.diagonal().mean())
    matrix.diagonal().add_(noise)
    for _ in range(12):
        factor, info = torch.linalg.cholesky_ex(matrix)
        if info == 0:
            return factor
        matrix.diagonal().add_(jitter)
        jitter *= 10
    raise torch.linalg.LinAlgError(
        "the kernel's matrix is not positive definite, whatever is added to its diagonal: "
        "choose a positive definite kernel, such as 'gaussian', or a larger ridge."
    )
