"""The learned kernel between queries and keys as a matrix, with its derivatives.

Kernels are learned from Gram matrices of batches of rows, whose derivatives in the kernel's
parameters are needed, and slopes of predictions are derivatives in the queries' coordinates.
Names and terms are those of `_kernel`.
"""

import math

import numpy as np

from ..kernels import Gaussian
from ._kernel import (
    KINK,
    ScaledKeys,
    as_keys,
    augment_all,
    linear_part,
    rough_part,
    smooth_part,
    squared_distances,
)


class Pairs:
    """Matrix of a kernel between rows, and its derivatives.

    Parameters
    ----------
    kernel : LearnedKernel
    queries : list of ndarray of shape (n_queries, n_columns)
        Rows in all encodings.
    keys : ScaledKeys or list of ndarray of shape (n_keys, n_columns), default=None
        By default the queries, so that the matrix is their Gram matrix.

    Attributes
    ----------
    matrix : ndarray of shape (n_queries, n_keys)
    """

    def __init__(self, kernel, queries, keys=None):
        self.kernel, self._is_gram = kernel, keys is None
        self._named = kernel.named()
        augmented = augment_all(kernel, queries)
        if self._is_gram:
            keys = ScaledKeys(queries, [as_keys(x) for x in augmented])
        keys = ScaledKeys.from_rows(kernel, keys)
        self._rows, self._augmented_keys = (queries, keys.rows), keys.augmented
        self._scaled_queries = [x[:, :-2] for x in augmented]
        pairs = zip(augmented, keys.augmented, strict=True)
        self._squared = [squared_distances(query, key) for query, key in pairs]
        if self._is_gram:
            # Rounding must not separate a row from itself, where some kernels have a kink.
            for squared in self._squared:
                np.fill_diagonal(squared, 0)
        self._shape = len(queries[0]), len(keys.rows[0])
        self._dtype = queries[0].dtype
        self._rough = self._distance = None
        if np.isfinite(self._named["rough"][0]):
            self._distance = np.sqrt(sum(self._squared, KINK))
            self._rate = math.exp(self._named["rate"][0])
            self._rough = rough_part(self._distance, self._named)
        self._smooth = self._smooth_parts()
        self.matrix = self._sum()

    @property
    def _scaled_keys(self):
        """Scaled keys, a list of arrays (n_keys, n_columns)."""
        if self._is_gram:
            return self._scaled_queries
        return [-0.5 * x[:, :-2] for x in self._augmented_keys]

    def _smooth_parts(self):
        """Return the smooth part of each encoding; a Gaussian overwrites the distances."""
        formula, log_amplitudes = self.kernel.formula, self._named["amplitude"]
        pairs = zip(self._squared, log_amplitudes, strict=True)
        return [smooth_part(formula, squared, log_s) for squared, log_s in pairs]

    def _sum(self):
        """Return the sum of all parts of the kernel."""
        total = self._smooth[0].copy()
        for smooth in self._smooth[1:]:
            total += smooth
        if self._rough is not None:
            total += self._rough
        if np.isfinite(self._named["linear"][0]):
            queries, keys = self._rows
            total += linear_part(queries[0], keys[0], self._named)
        if self.kernel.constant:
            total += self.kernel.constant
        return total

    def _log_slope(self, e):
        """Return d log k(D) / dD of the smooth part of encoding `e`, at all squared distances.

        For a Gaussian this is a number, so that its distances need not be stored.
        """
        formula = self.kernel.formula
        if isinstance(formula, Gaussian):
            return -0.5
        return formula.log_slope(self._squared[e]).astype(self._dtype)

    def gradient(self, matrix_gradient):
        """Return the gradient of a number in the kernel's parameters, from that in the matrix.

        `matrix_gradient` (n_queries, n_keys) has the number's derivatives in the entries of
        `matrix`. The result has the layout of ``kernel.values``, with 0 for the noise.
        """
        kernel = self.kernel
        gradient = np.zeros_like(kernel.values)
        named = kernel.named(gradient)
        # Derivatives through the rough part in the squared distances, which are the same in
        # all encodings.
        rough_slope = None
        if self._rough is not None:
            rough_slope = matrix_gradient * self._rough
            named["rough"][:] = 2 * float(rough_slope.sum())
            weighted_distance = float(np.einsum("ij,ij->", rough_slope, self._distance))
            named["rate"][:] = -self._rate * weighted_distance
            rough_slope /= self._distance
            rough_slope *= -0.5 * self._rate
            if self._is_gram:
                np.fill_diagonal(rough_slope, 0)
        log_linear = self._named["linear"][0]
        if np.isfinite(log_linear):
            x, z = (rows[0] for rows in self._rows)
            products = np.einsum("ij,ij->", matrix_gradient @ z, x) / max(1, x.shape[1])
            named["linear"][:] = 2 * math.exp(2 * log_linear) * float(products)
        ends = np.cumsum([0, *(len(feature) for feature in kernel.features)])
        for e, feature in enumerate(kernel.features):
            slope = matrix_gradient * self._smooth[e]
            named["amplitude"][e] = 2 * float(slope.sum())
            slope *= self._log_slope(e)
            if rough_slope is not None:
                slope += rough_slope
            # A column's squared differences grow with the square of its scale.
            column_gradient = 2 * _weighted_squared_differences(
                slope, self._scaled_queries[e], self._scaled_keys[e]
            )
            named["scale"][e] = np.bincount(
                feature, weights=column_gradient, minlength=kernel.n_features
            )
            named["deviation"][ends[e] : ends[e + 1]] = column_gradient
        return gradient

    def slopes(self, coefficients):
        """Return derivatives of ``matrix @ coefficients`` in the coordinates of the queries.

        `coefficients` are (n_keys,). The result is a list of arrays (n_queries, n_columns), one
        per encoding, in units of the coordinates before scaling.
        """
        # The squared distance |q - k|^2 has the derivative 2 (q - k) in a scaled query q.
        slopes = []
        for e, scale in enumerate(self.kernel.column_scales):
            # Derivatives of the kernel in squared distances, (n_queries, n_keys).
            distance_slope = self._smooth[e] * self._log_slope(e)
            if self._rough is not None:
                distance_slope -= 0.5 * self._rate * self._rough / self._distance
            distance_slope *= 2 * coefficients
            q, k = self._scaled_queries[e], self._scaled_keys[e]
            slopes.append(
                (distance_slope.sum(axis=1)[:, None] * q - distance_slope @ k) * scale
            )
        if np.isfinite(self._named["linear"][0]):
            keys = self._rows[1][0]
            linear = coefficients @ keys / max(1, keys.shape[1])
            slopes[0] = slopes[0] + math.exp(2 * self._named["linear"][0]) * linear
        return slopes


def _weighted_squared_differences(weights, queries, keys):
    r"""Return :math:`\sum_{ij} w_{ij} (q_{ic} - k_{jc})^2` for each column c, (n_columns,).

    `weights` are (n_queries, n_keys).
    """
    query_terms = weights.sum(axis=1) @ np.square(queries)
    key_terms = weights.sum(axis=0) @ np.square(keys)
    return query_terms + key_terms - 2 * np.einsum("ij,ij->j", queries, weights @ keys)
