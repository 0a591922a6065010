"""Kernel sums along one feature by recurrences: exponentials times polynomials."""

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
        """Sums for sorted queries; as :meth:`WindowSums.__call__`."""
        x, columns, queries = self.x, self.columns, queries[:, 0]
        place = np.searchsorted(x, queries, "left")
        before = self._behind(x, columns, queries, place, scale)
        place = len(x) - place
        after = self._behind(-x[::-1], columns[:, ::-1], -queries, place, scale)
        sums = np.zeros((2 * self.degree + 1, len(columns), len(queries)))
        for e, found in enumerate(sums):
            add = np.add if e % 2 == 0 else np.subtract
            for k, coefficient in enumerate(self.coefficients):
                found += coefficient * add(after[k + e], before[k + e])
        # Below the last number, sums lose digits.
        return sums, ROUNDING * sums[0, 0] + np.finfo(np.float64).tiny

    def cost(self, near):
        """Nanoseconds of each key and query."""
        return self._n_moments * (60 + 12 * len(self.columns))

    def _behind(self, x, columns, queries, place, scale):
        """Sums of |u|^k exp(-rate |u|) over the keys before each query, for each k."""
        at_keys = self._at_keys(np.diff(x) / scale, columns)
        known = place > 0
        nearest = np.where(known, place - 1, 0)
        step = np.where(known, (queries - x[nearest]) / scale, 0.0)
        moments = [moment[:, nearest] for moment in at_keys]
        fading = known * np.exp(-self.rate * step)
        return [fading * _receded(moments[:k], step, moments[k]) for k in range(len(moments))]

    def _at_keys(self, distance, columns):
        """The same over the keys up to and with each key itself."""
        fading = np.exp(-self.rate * distance)
        # Each sum less what has faded of the last one is known: two diagonals.
        band = np.ones((2, len(distance) + 1), order="F")
        band[1, :-1] = -fading
        found = []
        for k in range(self._n_moments):
            right = np.array(columns) if k == 0 else np.zeros_like(columns)
            if k:
                last = [moment[:, :-1] for moment in found]
                right[:, 1:] = fading * _receded(last, distance)
            found.append(dtbtrs(band, right.T, uplo="L", diag="U", overwrite_b=True)[0].T)
        return found


def _receded(moments, step, moment=0.0):
    """The next moment at a point further on, from those before, and itself where it was."""
    k = len(moments)
    for j, lower in enumerate(moments):
        moment = moment + math.comb(k, j) * step ** (k - j) * lower
    return moment
