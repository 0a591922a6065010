"""Kernel sums along one feature by recurrences.

They are for exponentials times polynomials, such as Laplacian and Matern kernels. After
sorting, time and memory are O(n + m), whatever the bandwidth.
"""

import math

import numpy as np
from scipy.linalg.lapack import dtbtrs

from ._keys import ROUNDING


class RecurrenceSums:
    r"""Sums of a kernel :math:`\sum_k c_k |u|^k e^{-\rho |u|}` in linear time."""

    # From one key to the next, all keys behind recede by the same distance d, so S_k(x + d) =
    # e^(-rho d) sum_j binom(k, j) d^(k - j) S_j(x). Terms are positive where the columns are,
    # so no digit is lost.

    def __init__(self, line):
        self.x, self.columns, self.degree = line.x, line.columns, line.degree
        self.rate, self.coefficients = line.kernel.exponential_polynomial
        self._n_moments = len(self.coefficients) + 2 * line.degree

    def __call__(self, queries, scale):
        """Return sums for sorted queries, and bounds, as :meth:`WindowSums.__call__`."""
        x, columns, queries = self.x, self.columns, queries[:, 0]
        place = np.searchsorted(x, queries, "left")
        before = self._behind(x, columns, queries, place, scale)
        place = len(x) - place
        after = self._behind(-x[::-1], columns[:, ::-1], -queries, place, scale)
        sums = np.zeros((2 * self.degree + 1, len(columns), len(queries)))
        for e, sums_of_power in enumerate(sums):
            add = np.add if e % 2 == 0 else np.subtract
            for k, coefficient in enumerate(self.coefficients):
                sums_of_power += coefficient * add(after[k + e], before[k + e])
        # Sums below the smallest normal number lose digits.
        return sums, ROUNDING * sums[0, 0] + np.finfo(np.float64).tiny

    def cost(self, n_near):
        """Return nanoseconds for each key and query."""
        return self._n_moments * (60 + 12 * len(self.columns))

    def _behind(self, x, columns, queries, place, scale):
        """Sum |u|^k exp(-rate |u|) over the keys before each query, for each k."""
        at_keys = self._at_keys(np.diff(x) / scale, columns)
        has_keys = place > 0
        nearest = np.where(has_keys, place - 1, 0)
        step = np.where(has_keys, (queries - x[nearest]) / scale, 0.0)
        moments = [moment[:, nearest] for moment in at_keys]
        decay = has_keys * np.exp(-self.rate * step)
        return [decay * _receded(moments[:k], step, moments[k]) for k in range(len(moments))]

    def _at_keys(self, distance, columns):
        """Sum the same over the keys up to each key, itself included."""
        decay = np.exp(-self.rate * distance)
        # A sum less the decayed sum at the key before is known: a system of two diagonals.
        band = np.ones((2, len(distance) + 1), order="F")
        band[1, :-1] = -decay
        moments = []
        for k in range(self._n_moments):
            right = np.array(columns) if k == 0 else np.zeros_like(columns)
            if k:
                before = [moment[:, :-1] for moment in moments]
                right[:, 1:] = decay * _receded(before, distance)
            moments.append(dtbtrs(band, right.T, uplo="L", diag="U", overwrite_b=True)[0].T)
        return moments


def _receded(moments, step, moment=0.0):
    """Return the next moment at a point a step further on, from the moments before it.

    `moment` is the value of this moment before the step.
    """
    k = len(moments)
    for j, lower in enumerate(moments):
        moment = moment + math.comb(k, j) * step ** (k - j) * lower
    return moment
