"""The rows that judge, as a kernel sees them from queries."""

import dataclasses

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from .._blas_threads import one_blas_thread
from ._kernel import Pairs, ScaledRows

# Rows that say how sure the kernel is of a place.
_MOST_KNOWN = 500
# A row of less weight has too much noise to be told.
_LEAST_WEIGHT = 1e-6


class Judges:
    r"""Rows that have errors: how like queries are to them, and how far errors reach there.

    The deviation of a new target is that of the Gaussian process with the kernel,

    .. math:: s(x)^2 = K(x, x) + \sigma^2 - k(x)^\top (K + \sigma^2 W^{-1})^{-1} k(x)

    and of a row its own left-out one. They matter by their ratios alone. The constant and the
    linear part of the kernel, alike everywhere or about the center, are left out.

    Parameters
    ----------
    kernel : LearnedKernel
    rows : list of ndarray of shape (n, n_columns)
    weights : ndarray of shape (n,)
    varied : bool
        Whether deviations vary; those of averages, which have no noise, are 1.

    Attributes
    ----------
    keys : ScaledRows
    deviations : ndarray of shape (n,)
    """

    def __init__(self, kernel, rows, weights, varied=True):
        values = kernel.values.copy()
        kernel.named(values)["linear"][:] = -np.inf
        self._kernel = dataclasses.replace(kernel, values=values, constant=0.0)
        self.keys = ScaledRows.of(self._kernel, rows)
        self.deviations = np.ones(len(weights))
        self._factor = None
        if varied:
            self._factorise(weights)

    @one_blas_thread()
    def __call__(self, queries):
        """Log-kernel between queries and rows, (n_queries, n), and deviations of queries."""
        matrix = self._kernel.matrix(queries, self.keys)
        unit = np.ones(len(matrix))
        if self._factor is not None:
            unit = self._deviations(matrix[:, self._known])
        with np.errstate(divide="ignore"):
            return np.log(matrix), unit

    def _factorise(self, weights):
        n = len(weights)
        self._known = np.linspace(0, n - 1, min(n, _MOST_KNOWN)).astype(int)
        known = self.keys.block(self._known)
        noise = self._kernel.noise / np.maximum(weights[self._known], _LEAST_WEIGHT)
        matrix = Pairs(self._kernel, known).matrix
        self._peak = matrix[0, 0]
        (factorise, invert) = get_lapack_funcs(("potrf", "trtri"), (matrix,))
        for least in self._peak * 10.0 ** np.arange(-10, 3):
            matrix.flat[:: len(matrix) + 1] = self._peak + noise + least
            factor, info = factorise(matrix.T, lower=1, clean=1)
            if info == 0:
                break
        else:
            return
        self._factor, self._least = factor, self._kernel.noise + least
        others = np.setdiff1d(np.arange(n), self._known)
        if len(others):
            at = self._kernel.matrix(self.keys.block(others), known)
            self.deviations[others] = self._deviations(at)
        inverse = invert(self._factor, lower=1)[0]
        self.deviations[self._known] = 1 / np.sqrt(np.square(inverse).sum(axis=0))

    def _deviations(self, matrix):
        of_known = np.square(solve_triangular(self._factor, matrix.T, lower=True)).sum(axis=0)
        # Never less than the noise, but for rounding.
        return np.sqrt(np.maximum(self._peak - of_known, 0) + self._least)
