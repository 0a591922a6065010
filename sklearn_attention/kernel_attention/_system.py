"""The linear system of kernel ridge regression among some rows."""

import numpy as np
from scipy.linalg import get_lapack_funcs

from .._blocks import blocks
from ._kernel import Keys
from ._leave_one_out import LEAST_NOISE

# A row of less weight is noise.
_LEAST_WEIGHT = 1e-12
_BLOCK = 256
_MOST_TRIALS = 12


class System:
    r"""The matrix :math:`K + \sigma^2 W^{-1}` of some training rows, factorised.

    `keys` are the rows in their encodings, `coefficients` (n_rows, n_outputs) the solution
    :math:`\alpha` for the targets. Raises `LinAlgError` if the matrix is not positive definite,
    whatever is added to its diagonal.
    """

    def __init__(self, kernel, training, rows, dtype):
        self.kernel = kernel
        self._targets = training.targets[rows]
        self._noise = kernel.noise / np.maximum(training.weights[rows], _LEAST_WEIGHT)
        least = LEAST_NOISE[np.dtype(dtype)] if dtype == np.float32 else 0.0
        for _ in range(_MOST_TRIALS):
            self.keys = training.coordinates(rows, dtype)
            if self._factorise(least):
                self.coefficients = self._solve(self._targets)
                return
            # More digits first, then more noise.
            if dtype == np.float32:
                dtype, least = np.float64, 0.0
            else:
                least = max(10 * least, LEAST_NOISE[np.dtype(np.float64)])
        raise np.linalg.LinAlgError(
            f"kernel={kernel.formula!r} has a matrix that is not positive definite, whatever "
            "is added to its diagonal: choose a positive definite kernel, such as 'gaussian', "
            "or a larger ridge."
        )

    def left_out(self, n_rows):
        """Predictions of the last so many rows by all others; (n_rows, n_outputs)."""
        if n_rows == 0:
            return self._targets[:0]
        # Of the last rows the inverse needs the last block of the factor alone.
        (invert,) = get_lapack_funcs(("trtri",), (self._factor,))
        inverse = invert(self._factor[-n_rows:, -n_rows:], lower=0)[0]
        own = np.square(np.triu(inverse)).sum(axis=1)[:, None]
        return self._targets[-n_rows:] - self.coefficients[-n_rows:] / own

    def weights(self, matrix):
        """Weights of the targets in predictions, from the kernel, both (n_queries, n_rows)."""
        return self._solve(matrix.T).T

    def _factorise(self, least):
        n = len(self._targets)
        matrix = np.empty((n, n), self.keys[0].dtype if self.keys else np.float64)
        keys = Keys.of(self.kernel, self.keys)
        for rows in blocks(n, _BLOCK):
            # The factorisation reads the lower triangle alone.
            before = keys.block(slice(rows.stop))
            matrix[rows, : rows.stop] = self.kernel.matrix([z[rows] for z in self.keys], before)
        diagonal = matrix.diagonal().mean()
        matrix.flat[:: n + 1] += (self._noise + least * diagonal).astype(matrix.dtype)
        (factorise,) = get_lapack_funcs(("potrf",), (matrix,))
        # The transpose is in the order that LAPACK reads.
        self._factor, info = factorise(matrix.T, lower=0, clean=0, overwrite_a=1)
        return info == 0

    def _solve(self, right):
        (solve,) = get_lapack_funcs(("potrs",), (self._factor,))
        return solve(self._factor, right.astype(self._factor.dtype), lower=0)[0]
