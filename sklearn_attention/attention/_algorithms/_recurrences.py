"""Kernel sums along one feature by recurrences: exponentials times polynomials."""

import math

import numpy as np
from scipy.linalg import solve_banded

_ROUNDING = 1e-14
# Where numbers grow so small that they lose digits, times what makes a sum trusted.
_SMALLEST = 1e-300


class RecurrenceSums:
    r"""Sums of a kernel :math:`\sum_k c_k |u|^k e^{-\rho |u|}` in linear time.

    From one key to the next, all that lies behind recedes by the same distance :math:`d`:

    .. math:: S_k(x + d) = e^{-\rho d} \sum_j \binom{k}{j} d^{k - j} S_j(x)

    All terms are positive where the columns are, so no digit is lost.

    Parameters
    ----------
    kernel : RadialKernel
        With an `exponential_polynomial`.
    degree : int
    """

    def __init__(self, kernel, degree):
        self.rate, self.coefficients = kernel.exponential_polynomial
        self.degree = degree

    def __call__(self, x, columns, queries, scale):
        """Sums for sorted queries over sorted keys; as :meth:`BoxSums.__call__`."""
        columns = np.ascontiguousarray(columns.T)
        place = np.searchsorted(x, queries, "left")
        before = self._behind(x, columns, queries, place, scale)
        place = len(x) - place
        after = self._behind(-x[::-1], columns[::-1], -queries, place, scale)
        n_powers = 2 * self.degree + 1
        sums = np.zeros((n_powers, columns.shape[1], len(queries)))
        for e in range(n_powers):
            for k, coefficient in enumerate(self.coefficients):
                sums[e] += coefficient * (after[k + e] + (-1) ** e * before[k + e]).T
        return sums, _ROUNDING * sums[0, 0] + _SMALLEST

    def cost(self, x, n_columns, queries, scale):
        """How long it takes, about; as :meth:`BoxSums.cost`."""
        return (len(self.coefficients) + 2 * self.degree) * (75 + 37 * n_columns)

    def _behind(self, x, columns, queries, place, scale):
        """Sums of |u|^k exp(-rate |u|) over the keys before each query, for each k."""
        n_moments = len(self.coefficients) + 2 * self.degree
        distance = np.diff(x) / scale
        at_keys = self._at_keys(distance, columns, n_moments)
        known = place > 0
        nearest = np.where(known, place - 1, 0)
        step = np.where(known, (queries - x[nearest]) / scale, 0.0)
        return self._recede(step, known, [moment[nearest] for moment in at_keys])

    def _at_keys(self, distance, columns, n_moments):
        """The same over the keys up to and with each key itself."""
        fading = np.exp(-self.rate * distance)
        band = np.ones((2, len(columns)))
        band[1, :-1], band[1, -1] = -fading, 0.0
        found = []
        for k in range(n_moments):
            right = np.zeros_like(columns)
            if k == 0:
                right += columns
            for j in range(k):
                factor = math.comb(k, j) * distance ** (k - j) * fading
                right[1:] += factor[:, None] * found[j][:-1]
            found.append(
                solve_banded((1, 0), band, right, overwrite_b=True, check_finite=False)
            )
        return found

    def _recede(self, step, known, moments):
        fading = (known * np.exp(-self.rate * step))[:, None]
        found = []
        for k in range(len(moments)):
            total = moments[k].copy()
            for j in range(k):
                total += math.comb(k, j) * (step ** (k - j))[:, None] * moments[j]
            found.append(total * fading)
        return found
