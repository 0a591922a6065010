r"""The learned kernel: a smooth part for each encoding, a rough part, and a linear part.

.. math:: K(x, x') = c + \sum_e s_e^2\, k(D_e) + r^2 e^{-\tau \sqrt{\sum_e D_e}} + b^2
          \phi_1(x)^\top \phi_1(x') / d, \quad
          D_e = \lVert (\phi_e(x) - \phi_e(x')) / \ell_e \rVert^2

In encoding e, which maps a row x to its coordinates phi_e(x), features have length-scales l_e
(automatic relevance determination, Rasmussen and Williams 2006, equation 5.2). D_e is the
squared distance in units of length-scales, k a radial kernel with k(0) = 1. The rough part is
an exponential kernel (section 4.2.1) of all encodings together, which follows jumps. The linear
part is a scalar product of the d columns of the first encoding. Terms:

- rows: a list of arrays (n, n_columns), the coordinates in each encoding.
- scale: the inverse of a length-scale; scaled rows are coordinates times scales.
- augmented rows: scaled rows x with two more columns. A query [x, 1, |x|^2] times a key
  [-2z, |z|^2, 1] is the squared distance |x - z|^2.
- radial part: the smooth parts and the rough part together, which depend on distances only.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._blocks import blocks
from ..kernels import Gaussian, RadialKernel

# A feature whose mean squared distance between rows is below this, in coordinates of about unit
# variance, starts with the length-scale that it would have with this distance.
_MIN_DISTANCE = 0.01
# Added to the squared distance of the rough part, which has a kink at 0.
KINK = 1e-4
# Noise variance that rounding makes necessary, as a multiple of the mean diagonal of a Gram
# matrix, for each precision.
MIN_NOISE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Smaller weights of rows count as this, so that their noise variance is finite.
_MIN_WEIGHT = 1e-12
# Upper bound of the logarithm of a scale: with it any two different values are far apart, and
# squares are finite in single precision.
_MAX_LOG_SCALE = 12 * math.log(10)
# Standard deviations r and b of the rough and the linear part before learning.
_INITIAL_STD = 0.3
# Number of queries, and of keys, in a tile of a sum. Predictions take 1.1 times as long with 64
# queries, and as long with 512.
_TILE = 256


@dataclass(frozen=True)
class LearnedKernel:
    """The kernel of the module's formula, with all of its parameters in one vector."""

    features: list  # for each encoding, the feature that each column belongs to
    n_features: int
    formula: RadialKernel  # the k
    # Logarithms, in this order: scales 1 / l_e of every feature in each encoding; for each
    # column, the deviation of its log-scale from that of its feature, if the feature has
    # several columns; s_e; b; r; tau; the standard deviation of the noise. `named` splits them.
    values: np.ndarray
    constant: float  # the c

    @classmethod
    def start(
        cls,
        features,
        variances,
        n_features,
        formula,
        *,
        constant=1.0,
        rough=True,
        linear=False,
        noise=0.1,
    ):
        """Return a kernel before learning, in which all features count alike.

        Parameters
        ----------
        features : list of ndarray of int of shape (n_columns,)
            For each encoding, the feature that each column belongs to.
        variances : list of ndarray of shape (n_columns,)
            For each encoding, the variance of each column.
        n_features : int
        formula : RadialKernel
        constant : float, default=1.0
            The c of the kernel, which is not learned.
        rough, linear : bool
            Whether the kernel has these parts.
        noise : float, default=0.1
            Standard deviation of the noise.
        """
        n_encodings = len(features)
        log_scales = np.zeros((n_encodings, n_features))
        for e, (feature, variance) in enumerate(zip(features, variances, strict=True)):
            # The mean squared distance of two rows is twice the variance. Each feature that
            # varies gets an equal part of a total of 1.
            distance = np.bincount(feature, weights=2 * variance, minlength=n_features)
            n_varying = max(1, np.count_nonzero(distance > _MIN_DISTANCE))
            # A feature that hardly varies here may vary in other rows.
            log_scales[e] = -0.5 * np.log(np.maximum(distance, _MIN_DISTANCE) * n_varying)
        log_std = {True: math.log(_INITIAL_STD), False: -np.inf}
        values = [
            log_scales.ravel(),
            np.zeros(sum(map(len, features))),
            np.full(n_encodings, -0.5 * math.log(n_encodings)),
            [log_std[linear], log_std[rough], 0.0, math.log(noise)],
        ]
        return cls(features, n_features, formula, np.concatenate(values), constant)

    def named(self, values=None):
        """Return views of the parameters by name: a dict of arrays.

        "scale" (n_encodings, n_features), "deviation" (n_columns of all encodings,),
        "amplitude" (n_encodings,), "linear", "rough", "rate" and "noise" (1,) are the
        logarithms that `values` lists. Another array of the same length, such as a gradient, is
        split in the same way.
        """
        values = self.values if values is None else values
        n_encodings, n_columns = len(self.features), sum(map(len, self.features))
        n_scales = n_encodings * self.n_features
        sizes = {"scale": n_scales, "deviation": n_columns, "amplitude": n_encodings}
        sizes |= {"linear": 1, "rough": 1, "rate": 1, "noise": 1}
        views, start = {}, 0
        for name, size in sizes.items():
            views[name] = values[start : start + size]
            start += size
        views["scale"] = views["scale"].reshape(n_encodings, self.n_features)
        return views

    def with_values(self, values):
        """Return the same kernel with other parameters."""
        return replace(self, values=values)

    @property
    def noise(self):
        """Noise variance of a row of weight 1."""
        return math.exp(2 * self.values[-1])

    def noise_variances(self, weights):
        """Return the noise variance of rows with these weights, (n,)."""
        return self.noise / np.maximum(weights, _MIN_WEIGHT)

    @property
    def solve_dtype(self):
        """Data type in which to factorise Gram matrices: double if there is little noise."""
        single = np.dtype(np.float32)
        (peak,) = self.diagonal([np.zeros((1, 0))])
        is_noisy = self.noise > MIN_NOISE[single] * peak
        return single if is_noisy else np.dtype(np.float64)

    @property
    def column_scales(self):
        """Scale of every column: a list of arrays (n_columns,), one per encoding."""
        named = self.named()
        ends = np.cumsum([len(feature) for feature in self.features])[:-1]
        deviations = np.split(named["deviation"], ends)
        encodings = zip(named["scale"], self.features, deviations, strict=True)
        return [
            np.exp(np.minimum(log_scales[feature] + deviation, _MAX_LOG_SCALE))
            for log_scales, feature, deviation in encodings
        ]

    @property
    def is_learned(self):
        """Mask of `values`: True for those that gradient descent changes.

        These are the parameters of the parts that the kernel has. Deviations are learned only
        for features with several columns.
        """
        is_learned = np.isfinite(self.values)
        has_several_columns = [
            np.bincount(feature, minlength=self.n_features)[feature] > 1
            for feature in self.features
        ]
        named = self.named(is_learned)
        named["deviation"][:] = np.concatenate(has_several_columns) if self.features else ()
        named["rate"][:] = named["rough"]
        return is_learned

    def scaled(self, rows):
        """Return scaled rows, a list of arrays (n, n_columns)."""
        return [
            z * scale.astype(z.dtype) for z, scale in zip(rows, self.column_scales, strict=True)
        ]

    def space(self, rows):
        """Return the scaled rows of all encodings side by side, (n, n_columns of all)."""
        return np.concatenate(self.scaled(rows), axis=1)

    def diagonal(self, rows):
        """Return the kernel between each row and itself, (n,)."""
        named = self.named()
        peak = np.exp(2 * named["amplitude"]).sum() + self.constant
        peak = peak + rough_part(np.full(1, math.sqrt(KINK)), named)
        slope = np.exp(2 * named["linear"]) / max(1, rows[0].shape[1])
        return peak + slope * np.einsum("ij,ij->i", rows[0], rows[0])

    def matrix(self, queries, keys):
        """Return the kernel between rows and rows or ScaledKeys, (n_queries, n_keys)."""
        keys = ScaledKeys.from_rows(self, keys)
        shape = len(queries[0]), len(keys.rows[0])
        buffers = np.empty((3, *shape), queries[0].dtype)
        matrix = self.radial(augment_all(self, queries), keys.augmented, buffers)
        named = self.named()
        if np.isfinite(named["linear"][0]):
            matrix += linear_part(queries[0], keys.rows[0], named)
        if self.constant:
            matrix += self.constant
        return matrix

    def radial(self, augmented_queries, augmented_keys, buffers):
        """Compute the radial part, (n_queries, n_keys).

        Queries and keys are augmented rows, a list of arrays for each. The result overwrites
        the first of the three `buffers` (3, n_queries, n_keys).
        """
        total, distance, other = buffers
        named = self.named()
        has_rough = np.isfinite(named["rough"][0])
        pairs = zip(augmented_queries, augmented_keys, strict=True)
        for e, (query, key) in enumerate(pairs):
            squared = squared_distances(query, key, out=other if e else total)
            if has_rough:
                np.add(squared, distance if e else KINK, out=distance)
            # A Gaussian overwrites the squared distances, other kernels return a new array.
            smooth = smooth_part(self.formula, squared, named["amplitude"][e])
            if e:
                total += smooth
            elif smooth is not total:
                total[:] = smooth
        if has_rough:
            total += rough_part(np.sqrt(distance, out=distance), named, out=distance)
        return total


class ScaledKeys(NamedTuple):
    """Rows to compare queries with, as they are and as augmented keys, in all encodings."""

    rows: list
    augmented: list

    @classmethod
    def from_rows(cls, kernel, rows):
        """Augment rows by the scales of a kernel; return ScaledKeys as they are."""
        if isinstance(rows, ScaledKeys):
            return rows
        augmented = augment_all(kernel, rows)
        for x in augmented:
            as_keys(x, out=x)
        return cls(rows, augmented)

    def select(self, rows):
        """Return the keys at the positions in an index or a slice."""
        return ScaledKeys([z[rows] for z in self.rows], [x[rows] for x in self.augmented])


class KernelSum:
    r"""Compute :math:`f(x) = \sum_j K(x, x_j)\, a_j` of keys and coefficients at any queries.

    What depends on the keys alone is computed once: the augmented keys, and the linear and the
    constant part, which are a vector and a number for each output. The radial part is computed
    in tiles that stay in a processor's cache. This takes 0.6 to 0.8 of the time of the matrix
    for 1000 queries, and a fifth for one.
    """

    def __init__(self, kernel, keys, coefficients):
        # Coefficients (n_keys, n_outputs) are large and cancel, so that sums need more digits
        # than the kernel.
        self._kernel, self._coefficients = kernel, coefficients.astype(np.float64)
        self._augmented_keys = ScaledKeys.from_rows(kernel, keys).augmented
        self._slopes, self._constant = affine_part(kernel, keys, self._coefficients)

    def __call__(self, queries):
        """Return the sums (n_queries, n_outputs) at queries, given in all encodings."""
        augmented_queries = augment_all(self._kernel, queries)
        sums = queries[0] @ self._slopes + self._constant
        for rows in blocks(len(sums), _TILE):
            queries_of_tile = [x[rows] for x in augmented_queries]
            n_queries = rows.stop - rows.start
            # If there are fewer queries, a tile has more keys.
            for keys in blocks(len(self._coefficients), _TILE**2 // n_queries):
                keys_of_tile = [x[keys] for x in self._augmented_keys]
                shape = n_queries, keys.stop - keys.start
                buffers = np.empty((3, *shape), augmented_queries[0].dtype)
                radial = self._kernel.radial(queries_of_tile, keys_of_tile, buffers)
                sums[rows] += radial.astype(np.float64) @ self._coefficients[keys]
        return sums


def augment_all(kernel, rows):
    """Return the augmented queries of rows in all encodings, a list of arrays."""
    return [augment(z, scale) for z, scale in zip(rows, kernel.column_scales, strict=True)]


def augment(rows, scales):
    """Return augmented queries [x, 1, |x|^2] for x = rows * scales, (n, n_columns + 2)."""
    augmented = np.empty((len(rows), rows.shape[1] + 2), rows.dtype)
    x = np.multiply(rows, scales.astype(rows.dtype), out=augmented[:, :-2])
    augmented[:, -2] = 1
    augmented[:, -1] = np.einsum("ij,ij->i", x, x)
    return augmented


def as_keys(augmented, out=None):
    """Turn augmented queries [x, 1, |x|^2] into augmented keys [-2x, |x|^2, 1]."""
    squared_norms = augmented[:, -1].copy()
    keys = np.multiply(augmented, -2, out=out)
    keys[:, -2], keys[:, -1] = squared_norms, 1
    return keys


def squared_distances(augmented_queries, augmented_keys, out=None):
    """Return squared distances in one encoding, (n_queries, n_keys)."""
    squared = np.matmul(augmented_queries, augmented_keys.T, out=out)
    # Rounding makes some values near 0 negative. A maximum would take six times as long.
    return np.abs(squared, out=squared)


def smooth_part(formula, squared, log_amplitude):
    """Return s^2 k(D) for squared distances D and log s; a Gaussian overwrites D.

    The result has the shape of D.
    """
    variance = math.exp(2 * log_amplitude)
    if not isinstance(formula, Gaussian):
        profile = formula.profile(squared)
        return profile * (variance / formula.profile(np.zeros(1))[0]).astype(profile.dtype)
    squared *= -0.5
    gaussian = np.exp(squared, out=squared)
    gaussian *= variance
    return gaussian


def rough_part(distance, named, out=None):
    """Return r^2 exp(-tau distance) for the parameters `named`, in the shape of `distance`."""
    exponential = np.multiply(distance, -math.exp(named["rate"][0]), out=out)
    np.exp(exponential, out=exponential)
    exponential *= math.exp(2 * named["rough"][0])
    return exponential


def linear_part(queries, keys, named):
    """Return the linear part of coordinates in the first encoding, (n_queries, n_keys)."""
    return (queries * _linear_factor(named, queries.shape[1])) @ keys.T


def affine_part(kernel, keys, coefficients):
    """Return the linear and the constant part of a sum over keys, as functions of the query.

    Slopes (n_columns, n_outputs) are to be multiplied by the query's coordinates in the first
    encoding; the constants are (n_outputs,).
    """
    factor = _linear_factor(kernel.named(), keys[0].shape[1])
    slopes = factor * (keys[0].T @ coefficients)
    return slopes, kernel.constant * coefficients.sum(axis=0)


def _linear_factor(named, n_columns):
    """Return the factor b^2 / d of the scalar products, 0 if there is no linear part."""
    return math.exp(2 * named["linear"][0]) / max(1, n_columns)
