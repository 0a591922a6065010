r"""Kernel sums along one feature by recurrences.

They are taken for exponentials times polynomials of the distance, such as Laplacian and Matern
kernels: :math:`K(u) = \sum_k c_k |u|^k e^{-\rho |u|}`. After sorting n queries and m keys, time
and memory are O(n + m), whatever the bandwidth.

*Moment* k at a point is the sum of :math:`|u|^k e^{-\rho |u|}` times a column, over the keys
before the point. From a point x to one a step d further on, all keys recede by d, so

.. math:: S_k(x + d) = e^{-\rho d} \sum_j \binom{k}{j} d^{k - j} S_j(x)

and keys in between are added. Terms are positive where the columns are, so no digit is lost.
Keys after a point are those before it on the line turned round.
"""

import math

import numpy as np
from scipy.linalg.lapack import dtbtrs

from ._keys import ROUNDING


class RecurrenceSums:
    """Sums over the keys of a `Line` for an exponential times a polynomial of the distance."""

    def __init__(self, line):
        self.x, self.columns, self.degree = line.x, line.columns, line.degree
        self.rate, self.coefficients = line.kernel.exponential_polynomial
        self._n_moments = len(self.coefficients) + 2 * line.degree

    def __call__(self, queries, scale):
        """Return sums (n_powers, c, n) about sorted queries (n, 1), and error bounds (n,).

        The bounds are those of the first sum, that of the weights.
        """
        x, columns, queries = self.x, self.columns, queries[:, 0]
        n_before = np.searchsorted(x, queries, "left")
        before = self._moments_before(x, columns, queries, n_before, scale)
        n_after = len(x) - n_before
        after = self._moments_before(-x[::-1], columns[:, ::-1], -queries, n_after, scale)
        sums = np.zeros((2 * self.degree + 1, len(columns), len(queries)))
        for e, sums_of_power in enumerate(sums):
            # Keys before a query are at negative distances: odd powers change their sign.
            join = np.add if e % 2 == 0 else np.subtract
            for k, coefficient in enumerate(self.coefficients):
                sums_of_power += coefficient * join(after[k + e], before[k + e])
        # Sums below the smallest normal number lose digits.
        return sums, ROUNDING * sums[0, 0] + np.finfo(np.float64).tiny

    def cost(self, n_near):
        """Return nanoseconds for a key and a query together, whatever `n_near` is."""
        return self._n_moments * (60 + 12 * len(self.columns))

    def _moments_before(self, x, columns, queries, n_before, scale):
        """Return a list of all moments (c, n) at queries (n,), over the keys before each.

        `x` (m,) are the keys and `n_before` (n,) the numbers of keys before each query.
        """
        moments_at_keys = self._moments_at_keys(np.diff(x) / scale, columns)
        # Moments at the last key before each query are moved on by the step to the query.
        has_keys = n_before > 0
        nearest = np.where(has_keys, n_before - 1, 0)
        step = np.where(has_keys, (queries - x[nearest]) / scale, 0.0)
        moments = [moment[:, nearest] for moment in moments_at_keys]
        decay = has_keys * np.exp(-self.rate * step)
        return [decay * _receded(moments[:k], step, moments[k]) for k in range(len(moments))]

    def _moments_at_keys(self, steps, columns):
        """Return a list of all moments (c, m) at keys, over the keys up to each and itself.

        `steps` (m - 1,) are the distances from each key to the next.
        """
        decay = np.exp(-self.rate * steps)
        # A moment less the decayed moment at the key before is known, from lower moments. This
        # is a triangular system with the diagonal 1 and one diagonal below it.
        band = np.ones((2, len(steps) + 1), order="F")
        band[1, :-1] = -decay
        moments = []
        for k in range(self._n_moments):
            right_side = np.array(columns) if k == 0 else np.zeros_like(columns)
            if k:
                before = [moment[:, :-1] for moment in moments]
                right_side[:, 1:] = decay * _receded(before, steps)
            solved, _ = dtbtrs(band, right_side.T, uplo="L", diag="U", overwrite_b=True)
            moments.append(solved.T)
        return moments


def _receded(moments, step, moment=0.0):
    """Return moment k (c, n) a step further on, without the decay.

    `moments` are moments 0 to k - 1 before the step, whose length is `step` (n,); `moment` is
    moment k before the step, or 0 to leave out its term.
    """
    k = len(moments)
    for j, lower in enumerate(moments):
        moment = moment + math.comb(k, j) * step ** (k - j) * lower
    return moment
