"""A kernel that is learned: a smooth part for each encoding, and a rough one of them all."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._blocks import blocks
from ..kernels import Gaussian, RadialKernel

# Mean squared distance in one feature, of coordinates of about unit variance, below which it
# counts as this.
_LEAST_DISTANCE = 0.01
# Added to the squared distance of the rough part, which has a kink at 0.
_KINK = 1e-4
# Noise that rounding makes, as a share of the diagonal: what each precision needs.
LEAST_NOISE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# A row of less weight is noise.
_LEAST_WEIGHT = 1e-12
# Of an inverse length-scale: what differs at all is then far apart, and squares are finite in
# single precision.
_LARGEST_LOG_SCALE = 12 * math.log(10)
# Sizes of the rough and the linear part to start with.
_START = 0.3
# Queries and keys of a tile. Predictions take 1.1 times as long with 64 queries, and as long
# with 512.
_TILE = 256
# Sums at mixed rows. Keys of a tile, at most; numbers in its squared distances by feature; and
# numbers in an array of the masks that are evaluated together. With other sizes of half to four
# times these, sums take 1.0 to 1.3 times as long.
_MIXED_TILE, _MIXED_DISTANCES, _MIXED_NUMBERS = 256, 2**22, 2**18
# Squared distances count as this at most, so that they stay finite if multiplied by 0.
_LARGEST_DISTANCE = 1e30
# A Gaussian counts as 0 where its exponent exceeds this, and it is less than 6e-6.
_FAR = 12.0
# Number of Gaussians from one exponential, all but the first by squaring, which doubles the
# error of rounding: in single precision sums of them err by 3e-5 at most.
_SQUARED = 16
# Added to numbers that are squared, as some processors are slow where these become subnormal.
_TINY = np.float32(1e-18)


@dataclass(frozen=True)
class LearnedKernel:
    r"""Sum of kernels of the distances in several encodings, with learned length-scales.

    :math:`K(x, x') = c + \sum_e s_e^2\, k(D_e) + r^2 e^{-\tau \sqrt{\sum_e D_e}} + b^2
    \phi_1(x)^\top \phi_1(x') / d` with :math:`D_e = \lVert (\phi_e(x) - \phi_e(x')) / \ell_e
    \rVert^2` and :math:`k(0) = 1`: smooth parts, a rough one with the same length-scales, which
    follows jumps, and a linear one. Rows are lists of arrays (n, n_columns), one per encoding.
    """

    features: list  # for each encoding, the feature that each column belongs to
    n_features: int
    formula: RadialKernel  # the k
    # Logarithms: of the inverse length-scales of all features in each encoding, of the
    # deviations from them of columns of a feature with several, then of s_e, b, r, tau and the
    # noise.
    values: np.ndarray
    constant: float  # the c

    @classmethod
    def start(
        cls, features, variances, n_features, formula, *, constant=1.0, rough=True,
        linear=False, noise=0.1,
    ):  # fmt: skip
        """A kernel before learning: equal length-scales, by `variances` of all columns."""
        n = len(features)
        scale = np.zeros((n, n_features))
        for own, feature, variance in zip(scale, features, variances, strict=True):
            # Twice the variance is the mean squared distance; all features together have 1.
            distance = np.bincount(feature, weights=2 * variance, minlength=n_features)
            # A feature that hardly varies here may vary elsewhere: it gets no larger scale.
            used = max(1, np.count_nonzero(distance > _LEAST_DISTANCE))
            own[:] = -0.5 * np.log(np.maximum(distance, _LEAST_DISTANCE) * used)
        rest = [
            math.log(_START) if linear else -np.inf,
            math.log(_START) if rough else -np.inf,
            0.0,
            math.log(noise),
        ]
        values = [
            scale.ravel(),
            np.zeros(sum(map(len, features))),
            np.full(n, -0.5 * math.log(n)),
            rest,
        ]
        return cls(features, n_features, formula, np.concatenate(values), constant)

    def named(self, values=None):
        """Views of the parameters, or of numbers in their place, by name."""
        values = self.values if values is None else values
        n, n_columns = len(self.features), sum(map(len, self.features))
        sizes = {"scale": n * self.n_features, "deviation": n_columns, "amplitude": n}
        views, start = {}, 0
        for name, size in (
            sizes | dict.fromkeys(("linear", "rough", "rate", "noise"), 1)
        ).items():
            views[name] = values[start : start + size]
            start += size
        views["scale"] = views["scale"].reshape(n, self.n_features)
        return views

    def with_values(self, values):
        """The same kernel with other parameters."""
        return replace(self, values=values)

    @property
    def noise(self):
        """Variance of the noise."""
        return math.exp(2 * self.values[-1])

    def noise_of(self, weights):
        """Variance of the noise of rows of some weights."""
        return self.noise / np.maximum(weights, _LEAST_WEIGHT)

    @property
    def precision(self):
        """Data type to factorise its matrices in: double where there is little noise."""
        single = np.dtype(np.float32)
        (peak,) = self.diagonal([np.zeros((1, 0))])
        return single if self.noise > LEAST_NOISE[single] * peak else np.dtype(np.float64)

    @property
    def column_scales(self):
        """Inverse length-scale of every column, a list of arrays."""
        named = self.named()
        deviations = np.split(named["deviation"], np.cumsum(list(map(len, self.features)))[:-1])
        return [
            np.exp(np.minimum(scale[feature] + deviation, _LARGEST_LOG_SCALE))
            for scale, feature, deviation in zip(
                named["scale"], self.features, deviations, strict=True
            )
        ]

    @property
    def is_learned(self):
        """Mask of the parameters that gradient descent moves: ndarray of bool.

        A feature of one column has one scale, not two.
        """
        free = np.isfinite(self.values)
        several = [np.bincount(f, minlength=self.n_features)[f] > 1 for f in self.features]
        named = self.named(free)
        named["deviation"][:] = np.concatenate(several) if several else ()
        named["rate"][:] = named["rough"]
        return free

    def scaled(self, rows):
        """Rows in length-scales: what the distances are between."""
        return [
            z * scale.astype(z.dtype) for z, scale in zip(rows, self.column_scales, strict=True)
        ]

    def space(self, rows):
        """Scaled rows of all encodings side by side; the rough part falls with distances."""
        return np.concatenate(self.scaled(rows), axis=1)

    def diagonal(self, rows):
        """The kernel between each row and itself, (n,)."""
        named = self.named()
        size = np.exp(2 * named["amplitude"]).sum() + self.constant
        size = size + _rough(np.full(1, math.sqrt(_KINK)), named)
        slope = np.exp(2 * named["linear"]) / max(1, rows[0].shape[1])
        return size + slope * np.einsum("ij,ij->i", rows[0], rows[0])

    def matrix(self, queries, keys):
        """The kernel between rows and rows or ScaledKeys, (n_queries, n_keys)."""
        keys, scales = ScaledKeys.of(self, keys), self.column_scales
        left = [_augmented(z, scale) for z, scale in zip(queries, scales, strict=True)]
        shape = len(queries[0]), len(keys.rows[0])
        found = self.radial(left, keys.scaled, np.empty((3, *shape), queries[0].dtype))
        named = self.named()
        if np.isfinite(named["linear"][0]):
            found += _linear(queries[0], keys.rows[0], named)
        if self.constant:
            found += self.constant
        return found

    def radial(self, left, right, buffers):
        """The parts of the kernel that are functions of distances, (n_queries, n_keys).

        `left` and `right` are the two sides of products that are squared distances, for each
        encoding. The result is the first of three `buffers` (n_queries, n_keys).
        """
        total, distance, part = buffers
        named = self.named()
        has_rough = np.isfinite(named["rough"][0])
        for e, (query, key) in enumerate(zip(left, right, strict=True)):
            squared = _squared(query, key, out=part if e else total)
            if has_rough:
                np.add(squared, distance if e else _KINK, out=distance)
            smooth = _smooth(self.formula, squared, named["amplitude"][e])
            if e:
                total += smooth
            elif smooth is not total:
                total[:] = smooth
        if has_rough:
            total += _rough(np.sqrt(distance, out=distance), named, out=distance)
        return total


class ScaledKeys(NamedTuple):
    """Rows, and scaled as the right sides of products that are squared distances."""

    rows: list
    scaled: list

    @classmethod
    def of(cls, kernel, rows):
        """Rows, unless they are keys already."""
        if isinstance(rows, ScaledKeys):
            return rows
        scaled = [_augmented(z, s) for z, s in zip(rows, kernel.column_scales, strict=True)]
        for x in scaled:
            _as_keys(x, out=x)
        return cls(rows, scaled)

    def block(self, rows):
        """Some of the keys."""
        return ScaledKeys([z[rows] for z in self.rows], [x[rows] for x in self.scaled])


class KernelSum:
    r"""Compute :math:`f(x) = \sum_j K(x, x_j)\, a_j` of keys and coefficients at any queries.

    What depends on the keys alone is computed once: the keys in length-scales, and the linear
    and the constant part, which are a vector and a number for each output. The other parts are
    computed in tiles that stay in a processor's cache. This takes 0.6 to 0.8 of the time of the
    matrix for 1000 queries, and a fifth for one.
    """

    def __init__(self, kernel, keys, coefficients):
        # Coefficients (n_keys, n_outputs) are large, so that sums need more digits than the
        # kernel.
        self._kernel, self._coefficients = kernel, coefficients.astype(np.float64)
        self._keys = ScaledKeys.of(kernel, keys).scaled
        self._linear, self._constant = _affine_part(kernel, keys, self._coefficients)

    def __call__(self, queries):
        """Return the sums (n_queries, n_outputs) at queries in all encodings."""
        scales = self._kernel.column_scales
        left = [_augmented(z, scale) for z, scale in zip(queries, scales, strict=True)]
        sums = queries[0] @ self._linear + self._constant
        for rows in blocks(len(sums), _TILE):
            queries_of_tile, n_queries = [x[rows] for x in left], rows.stop - rows.start
            # With few queries a tile has more keys.
            for keys in blocks(len(self._coefficients), _TILE**2 // n_queries):
                keys_of_tile = [x[keys] for x in self._keys]
                shape = n_queries, keys.stop - keys.start
                buffers = np.empty((3, *shape), left[0].dtype)
                kernel = self._kernel.radial(queries_of_tile, keys_of_tile, buffers)
                sums[rows] += kernel.astype(np.float64) @ self._coefficients[keys]
        return sums


def sums_of_mixed_rows(kernel, keys, coefficients, rows, others, masks, *, mean=False):
    r"""Compute the sums of KernelSum at mixed rows, which have some features of other rows.

    The squared distance between a mixed row and a key is a sum of two distances: one in the
    features that come from the row, one in the features that come from the other row. A
    Gaussian of the sum is a product of two factors, so that a product of two matrices has the
    sums for all pairs of rows. The rough part of the kernel is a sum of Gaussians, to 3e-6.

    Parameters
    ----------
    kernel : LearnedKernel
        Its formula is Gaussian.
    keys, rows, others : list of ndarray of shape (n, n_columns)
        Rows in all encodings.
    coefficients : ndarray of shape (n_keys, n_outputs)
    masks : ndarray of bool of shape (n_masks, n_features)
        Features that mixed rows have from `rows`; they have the rest from `others`.
    mean : bool, default=False
        Whether to average over `others`, in about a tenth of the time.

    Returns
    -------
    sums : ndarray of shape (n_masks, n_rows, n_others, n_outputs)
        With `mean`, n_others is 1.
    """
    named, dtype = kernel.named(), keys[0].dtype
    coefficients = coefficients.astype(np.float64)
    # Features whose columns of `masks` are equal form a group.
    masks, group_of_feature = np.unique(masks, axis=1, return_inverse=True)
    group_of_column = [group_of_feature.reshape(-1)[feature] for feature in kernel.features]
    n_groups = masks.shape[1]

    # The linear part is a sum over groups, the constant part a number.
    slopes, constant = _affine_part(kernel, keys, coefficients)
    data = slopes, group_of_column[0], n_groups
    terms = [products_by_feature(z[0], *data) for z in (rows, others)]
    sums = add_mixed_terms(*terms, masks, mean) + constant

    # The other parts are Gaussians, of which each has its multiple of the coefficients.
    rates, rough_sizes = _gaussians_of_rough(named)
    sizes = np.concatenate([np.exp(2 * named["amplitude"]), rough_sizes])
    sized_coefficients = (sizes[:, None, None] * coefficients).astype(dtype)

    def columns_by_group(rows):
        """Return rows in length-scales, for each encoding a list with the columns by group."""
        return [
            [_augmented(z[:, group == j], scale[group == j]) for j in range(n_groups)]
            for z, scale, group in zip(rows, kernel.column_scales, group_of_column, strict=True)
        ]

    both = columns_by_group(rows), columns_by_group(others)
    keys_by_group = [[*map(_as_keys, columns)] for columns in columns_by_group(keys)]
    # As numbers, by which distances are multiplied.
    both_masks = masks.astype(dtype), (~masks).astype(dtype)
    mean_weights = np.full((1, len(others[0])), 1 / len(others[0]), dtype)
    n_rows = len(rows[0]) + len(others[0])
    n_keys = int(np.clip(_MIXED_DISTANCES // (n_groups * n_rows), 1, _MIXED_TILE))
    for tile in blocks(len(coefficients), n_keys):
        # For rows and for others: squared distances (n_groups, n, n_keys) of each encoding.
        distances = [
            [
                np.stack([
                    np.minimum(_squared(z, key[tile]), _LARGEST_DISTANCE)
                    for z, key in zip(*columns, strict=True)
                ])
                for columns in zip(side, keys_by_group, strict=True)
            ]
            for side in both
        ]  # fmt: skip
        for block in blocks(len(masks), max(1, _MIXED_NUMBERS // (n_rows * n_keys))):
            of_masks = [
                [np.tensordot(mask[block], distance, 1) for distance in of_encodings]
                for mask, of_encodings in zip(both_masks, distances, strict=True)
            ]
            # The Gaussians end early if no key is near; coefficients come first, so that none
            # of the Gaussians is lost.
            pairs = zip(sized_coefficients[:, tile], _gaussians(*of_masks, rates), strict=False)
            for of_keys, (left, right, near_keys) in pairs:
                if mean:
                    # A product, since a mean over the middle axis takes eight times as long.
                    means = (mean_weights @ right).swapaxes(1, 2)
                    sums[block, :, 0] += left @ (means * of_keys[near_keys])
                    continue
                for output, column in enumerate(of_keys[near_keys].T):
                    sums[block, ..., output] += (left * column) @ right.swapaxes(1, 2)
    return sums


def products_by_feature(rows, slopes, feature_of_column, n_features):
    """Return products of columns and slopes, summed over the columns of each feature.

    Rows are (n, n_columns), slopes (n_columns, n_terms), `feature_of_column` (n_columns,), and
    products (n, n_features, n_terms).
    """
    columns = [feature_of_column == j for j in range(n_features)]
    return np.stack([rows[:, is_own] @ slopes[is_own] for is_own in columns], axis=1)


def add_mixed_terms(row_terms, other_terms, masks, mean=False):
    """Add up terms (n, n_features, n_terms) over the features of mixed rows.

    The other arguments and the result (n_masks, n_rows, n_others, n_terms) are as for
    :func:`sums_of_mixed_rows`.
    """
    if mean:
        other_terms = other_terms.mean(axis=0, keepdims=True)
    from_rows = np.tensordot(masks, row_terms, (1, 1))
    from_others = np.tensordot(~masks, other_terms, (1, 1))
    return from_rows[:, :, None] + from_others[:, None]


def _gaussians(left, right, rates):
    """Yield Gaussians of squared distances in each encoding, then of their sum at all rates.

    `left` and `right` are lists of squared distances (n_masks, n, n_keys) in each encoding,
    from the rows and from the others. Each of `rates` has to be twice the one before.

    Yields (left factor, right factor, keys): a Gaussian is the product of the two factors, for
    these keys; all other keys are so far away that it is 0. The factors are overwritten when
    the next ones are asked for. The generator ends if all keys are far away.
    """
    for pair in zip(left, right, strict=True):
        yield *(np.exp(-0.5 * squared) for squared in pair), slice(None)
    totals = [sum(left), sum(right)]
    # No pair of rows is nearer to a key than this.
    min_distances = sum(total.min(axis=(0, 1)) for total in totals)
    near_keys = np.arange(len(min_distances))
    factors = [np.exp(-float(rate) * total) for rate in rates[:1] for total in totals]
    for number, rate in enumerate(rates):
        is_near = rate * min_distances[near_keys] < _FAR
        # To copy the near keys takes less time than to keep the far ones if these are many.
        if 2 * is_near.sum() < len(near_keys):
            near_keys, factors = (
                near_keys[is_near],
                [factor[..., is_near] for factor in factors],
            )
        if not len(near_keys):
            return
        if number % _SQUARED:
            for factor in factors:
                np.square(factor, out=factor)
                factor += _TINY
        elif number:
            factors = [np.exp(-float(rate) * total[..., near_keys]) for total in totals]
        yield *factors, near_keys


def _gaussians_of_rough(named):
    r"""Return rates and sizes of Gaussians whose sum is the rough part, to 3e-6 of its size.

    The rough part is :math:`e^{-\sqrt s}` with s the squared distance, the kink included, times
    the squared rate. With :math:`u = e^t` it is :math:`\int e^{-us - 1/(4u)} / (2 \sqrt{\pi u})
    dt`, and the integral becomes a sum over steps of log 2. For u < 1/32 terms are negligible,
    and so they are where u s > 8 for the smallest s, that of the kink.
    """
    size, squared_rate = math.exp(2 * named["rough"][0]), math.exp(2 * named["rate"][0])
    if size == 0:
        return np.zeros(0), np.zeros(0)
    min_squared = _KINK * squared_rate
    n_doublings = max(0, math.ceil(math.log2(8 / min_squared)))
    u = 2.0 ** np.arange(-5, n_doublings + 1)
    weights = math.log(2) / (2 * np.sqrt(math.pi * u)) * np.exp(-1 / (4 * u) - u * min_squared)
    return squared_rate * u, size * weights


class Pairs:
    """The kernel between rows and rows or ScaledKeys, None for the same, and its derivatives.

    Its `matrix` is (n_queries, n_keys).
    """

    def __init__(self, kernel, queries, keys=None):
        self.kernel, self._own = kernel, keys is None
        self._named = kernel.named()
        left = [_augmented(z, s) for z, s in zip(queries, kernel.column_scales, strict=True)]
        if self._own:
            keys = ScaledKeys(queries, [_as_keys(x) for x in left])
        keys = ScaledKeys.of(kernel, keys)
        self._rows, self._right = (queries, keys.rows), keys.scaled
        self._queries = [x[:, :-2] for x in left]
        self._squared = [_squared(q, k) for q, k in zip(left, keys.scaled, strict=True)]
        if self._own:
            # Rounding must not part a row from itself, where some kernels have a kink.
            for squared in self._squared:
                np.fill_diagonal(squared, 0)
        self._shape = len(queries[0]), len(keys.rows[0])
        self._dtype = queries[0].dtype
        self._rough = self._distance = None
        if np.isfinite(self._named["rough"][0]):
            self._add_rough()
        self._smooth = self._evaluate()
        self.matrix = self._sum()

    @property
    def _keys(self):
        """The keys in length-scales."""
        if self._own:
            return self._queries
        return [-0.5 * x[:, :-2] for x in self._right]

    def _add_rough(self):
        self._distance = np.sqrt(sum(self._squared, _KINK))
        self._rate = math.exp(self._named["rate"][0])
        self._rough = _rough(self._distance, self._named)

    def _evaluate(self):
        """The smooth parts, in place of the distances where these are not needed again."""
        return [
            _smooth(self.kernel.formula, squared, amplitude)
            for squared, amplitude in zip(self._squared, self._named["amplitude"], strict=True)
        ]

    def _sum(self):
        total = self._smooth[0].copy()
        for part in self._smooth[1:]:
            total += part
        if self._rough is not None:
            total += self._rough
        if np.isfinite(self._named["linear"][0]):
            total += _linear(*(rows[0] for rows in self._rows), self._named)
        if self.kernel.constant:
            total += self.kernel.constant
        return total

    def _log_slope(self, e):
        """Derivative of the logarithm of a smooth part in the squared distance."""
        formula = self.kernel.formula
        if isinstance(formula, Gaussian):
            return -0.5
        return formula.log_slope(self._squared[e]).astype(self._dtype)

    def gradient(self, of_matrix):
        """Derivatives of a number in the parameters, from those in the kernel's values.

        0 for the noise.
        """
        kernel = self.kernel
        gradient = np.zeros_like(kernel.values)
        named = kernel.named(gradient)
        rough = None
        if self._rough is not None:
            rough = of_matrix * self._rough
            named["rough"][:] = 2 * float(rough.sum())
            along = float(np.einsum("ij,ij->", rough, self._distance))
            named["rate"][:] = -self._rate * along
            rough /= self._distance
            rough *= -0.5 * self._rate
            if self._own:
                np.fill_diagonal(rough, 0)
        if np.isfinite(named_linear := self._named["linear"][0]):
            x, z = (rows[0] for rows in self._rows)
            of_linear = np.einsum("ij,ij->", of_matrix @ z, x) / max(1, x.shape[1])
            named["linear"][:] = 2 * math.exp(2 * named_linear) * float(of_linear)
        ends = np.cumsum([0, *map(len, kernel.features)])
        for e, feature in enumerate(kernel.features):
            part = of_matrix * self._smooth[e]
            named["amplitude"][e] = 2 * float(part.sum())
            part *= self._log_slope(e)
            if rough is not None:
                part += rough
            of_columns = 2 * _spread(part, self._queries[e], self._keys[e])
            named["scale"][e] = np.bincount(
                feature, weights=of_columns, minlength=kernel.n_features
            )
            named["deviation"][ends[e] : ends[e + 1]] = of_columns
        return gradient

    def slopes(self, coefficients):
        """Derivatives of ``matrix @ coefficients`` in the queries' coordinates, not scaled."""
        found = []
        for e, scale in enumerate(self.kernel.column_scales):
            part = self._smooth[e] * self._log_slope(e)
            if self._rough is not None:
                part -= 0.5 * self._rate * self._rough / self._distance
            part *= 2 * coefficients
            q, k = self._queries[e], self._keys[e]
            found.append((part.sum(axis=1)[:, None] * q - part @ k) * scale)
        if np.isfinite(self._named["linear"][0]):
            keys = self._rows[1][0]
            linear = coefficients @ keys / max(1, keys.shape[1])
            found[0] = found[0] + math.exp(2 * self._named["linear"][0]) * linear
        return found


def _augmented(rows, scale):
    """Rows in length-scales, with a one and their squared norm."""
    augmented = np.empty((len(rows), rows.shape[1] + 2), rows.dtype)
    x = np.multiply(rows, scale.astype(rows.dtype), out=augmented[:, :-2])
    augmented[:, -2] = 1
    augmented[:, -1] = np.einsum("ij,ij->i", x, x)
    return augmented


def _as_keys(augmented, out=None):
    """The same rows as right sides: their products with others are squared distances."""
    norms = augmented[:, -1].copy()
    keys = np.multiply(augmented, -2, out=out)
    keys[:, -2], keys[:, -1] = norms, 1
    return keys


def _squared(queries, keys, out=None):
    """Squared distances, (n_queries, n_keys), as one product of augmented rows."""
    squared = np.matmul(queries, keys.T, out=out)
    # Rounding makes some that are about 0 negative. A maximum would take six times as long.
    return np.abs(squared, out=squared)


def _smooth(formula, squared, amplitude):
    """A smooth part; a Gaussian one takes the place of the distances."""
    size = math.exp(2 * amplitude)
    if not isinstance(formula, Gaussian):
        part = formula.profile(squared)
        return part * (size / formula.profile(np.zeros(1))[0]).astype(part.dtype)
    squared *= -0.5
    part = np.exp(squared, out=squared)
    part *= size
    return part


def _rough(distance, named, out=None):
    part = np.multiply(distance, -math.exp(named["rate"][0]), out=out)
    np.exp(part, out=part)
    part *= math.exp(2 * named["rough"][0])
    return part


def _linear(queries, keys, named):
    return (queries * _linear_slope(named, queries.shape[1])) @ keys.T


def _affine_part(kernel, keys, coefficients):
    """Return slopes (n_columns, n_outputs) and constants (n_outputs,) of sums over keys."""
    slopes = _linear_slope(kernel.named(), keys[0].shape[1]) * (keys[0].T @ coefficients)
    return slopes, kernel.constant * coefficients.sum(axis=0)


def _linear_slope(named, n_columns):
    """Return the factor of the scalar products in the linear part, 0 if there is none."""
    return math.exp(2 * named["linear"][0]) / max(1, n_columns)


def _spread(weights, queries, keys):
    r"""Weighted squared differences :math:`\sum_{ij} w_{ij} (q_{ic} - k_{jc})^2` of columns."""
    of_queries = weights.sum(axis=1) @ np.square(queries)
    of_keys = weights.sum(axis=0) @ np.square(keys)
    return of_queries + of_keys - 2 * np.einsum("ij,ij->j", queries, weights @ keys)
