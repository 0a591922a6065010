"""Mixtures of kernels around the training rows: densities, distributions, draws.

Terms of this module:

* The **keys** are the training rows, mapped to the `Scale` on which kernels compare them. An
  **image** of a row is its mirror image in a bound; the kernels of images keep the mass inside.
* The **background** is a wide density with the mass of one further row, for rows unlike all
  others.
* A mixture **given features** weights the keys by the kernel between their features and those
  of a query; its center may differ from query to query.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp, ndtr, ndtri
from sklearn.utils import check_random_state

from .._blocks import IN_CACHE, blocks
from ..attention._average import attend
from ..bandwidth._background import (
    Background,
    background_mixing_weight,
    fold,
    leave_one_out_mass,
    reflections,
    t_quantile,
)
from ..bandwidth._samples import draw_rows, optimal_rate_factor
from ..kernels import Gaussian, ProductKernel
from ..kernels._categorical import level_table
from ..kernels._product_kernel import mixed_kernel

# Local factors are rounded to powers of 2^(1/8), so that rows of one factor are summed as fast
# as rows of one bandwidth; factors above 4 and below 1/4 are rounded to powers of 2.
_STEPS_PER_OCTAVE, _FINE_OCTAVES = 8, 2

# Number of steps in the table of a kernel's density. The error of a cubic spline falls with the
# fourth power of this number; with 2^13 steps it is below 1e-10 of the peak.
_N_STEPS = 2**13
# The table of a kernel without bounded support ends at the distance where the kernel times the
# distance is this small. Kernels that are larger beyond the second distance are refused.
_NEGLIGIBLE, _MAX_SUPPORT = 1e-18, 1e3
# Maximum number of pairs of a query (or one of its quantiles) and a key in memory at a time.
_BLOCK_PAIRS = 2 * IN_CACHE
# Largest absolute logarithm whose differences from others have enough digits.
_MAX_LOG = 1e5


class KernelDistribution:
    """Distribution function of a positive smoothing kernel, and its inverse.

    It has a closed form for the Gaussian kernel, and is tabulated for all others.
    """

    def __init__(self, kernel):
        self.support = effective_support(kernel)
        self._is_gaussian = type(kernel) is Gaussian
        if not self._is_gaussian:
            self._grid = np.linspace(0, self.support, _N_STEPS + 1)
            density = CubicSpline(self._grid, kernel.profile(self._grid**2))
            # The mass of one half of the kernel, between 0 and a distance.
            self._mass_below = density.antiderivative()
            self._mass_on_grid = np.maximum.accumulate(self._mass_below(self._grid))

    def cdf(self, u):
        """Compute the probability of being at most `u`."""
        if self._is_gaussian:
            return ndtr(u)
        distance = np.minimum(np.abs(u), self.support)
        mass = self._mass_below(distance) / self._mass_on_grid[-1]
        return 0.5 + 0.5 * np.copysign(np.clip(mass, 0, 1), u)

    def ppf(self, probability):
        """Compute the quantile, where the distribution function has a given value."""
        if self._is_gaussian:
            return ndtri(probability)
        mass = np.abs(2 * np.asarray(probability) - 1) * self._mass_on_grid[-1]
        distance = np.interp(mass, self._mass_on_grid, self._grid)
        return np.copysign(distance, probability - 0.5)

    def draw(self, random_state, shape):
        """Draw independent numbers from the kernel."""
        # A generator draws from the left ends of 2^53 cells. The middle of a cell is never 0,
        # whose quantile is infinite.
        return self.ppf(random_state.uniform(size=shape) + 2.0**-54)


@dataclass(frozen=True)
class Scale:
    """The scale on which kernels compare rows; some columns become logarithms.

    z = log(x - a + o) beside a lower bound a, where the sign is 1, and z = -log(b - x + o)
    beside an upper bound b, where it is -1.
    """

    bounds: Any = None  # (n_features, 2), or None if no column has any
    offsets: Any = None  # o, (n_features,), NaN for columns that stay as they are; or None

    @property
    def log_columns(self):
        """For each log-transformed column: index, sign as in the formula, bound and offset."""
        if self.offsets is None:
            return []
        is_lower = np.isfinite(self.bounds[:, 0])
        signs, bounds = np.where(is_lower, 1, -1), np.where(is_lower, *self.bounds.T)
        indices = np.flatnonzero(~np.isnan(self.offsets)).tolist()
        return [(j, signs[j], bounds[j], self.offsets[j]) for j in indices]

    @property
    def scaled_bounds(self):
        """The bounds of the columns on the scale, (n_features, 2); None without any."""
        if not self.log_columns:
            return self.bounds
        bounds = self.bounds.copy()
        for j, sign, _, offset in self.log_columns:
            bounds[j, 0 if sign > 0 else 1] = sign * np.log(offset)
        return bounds

    def clip(self, rows):
        """Move rows into the bounds; return them, and True (n,) for those that were inside."""
        if self.bounds is None:
            return rows, True
        low, high = self.bounds.T
        return rows.clip(low, high), ((low <= rows) & (rows <= high)).all(axis=1)

    def apply(self, rows):
        """Map rows from their units to the scale."""
        columns = list(rows.T)
        for j, sign, bound, offset in self.log_columns:
            columns[j] = sign * np.log(sign * (rows[:, j] - bound) + offset)
        return np.stack(columns, axis=1) if self.log_columns else rows  # of Dask too

    def invert(self, Z):
        """Map points from the scale back to the units of the rows."""
        columns = list(Z.T)
        for j, sign, bound, offset in self.log_columns:
            with np.errstate(over="ignore"):
                distance = np.exp(sign * Z[:, j]) - offset
            columns[j] = bound + sign * distance.clip(0, np.finfo(np.float64).max)
        return np.stack(columns, axis=1) if self.log_columns else Z

    def log_slopes(self, rows):
        """Compute log |dz / dx| at rows, (n,): how much the scale stretches a small volume."""
        log_slopes = 0.0 * rows[:, 0]
        for j, sign, bound, offset in self.log_columns:
            log_slopes = log_slopes - np.log(sign * (rows[:, j] - bound) + offset)
        return log_slopes


@dataclass(frozen=True)
class KernelMixture:
    r"""Kernels around the keys, and a wide background with the mass of one row.

    The density of the kernels on the scale is, divided by the sum of the weights,

    .. math:: f(z) = \sum_i w_i \prod_j \frac{1}{h_j s_i}
              K\Bigl(\frac{z_j - c - k_{ij}}{h_j s_i}\Bigr)

    with a center c that may differ from query to query: the height of a regression line if the
    keys are its residuals. Densities, queries and draws are in the units of the rows.
    """

    keys: Any  # k, (n_keys, n_columns), on the scale
    weights: Any  # w, (n_keys,); None for 1
    kernel: Any  # K, the kernel of each number
    columns: Any  # Columns: which columns of the keys are numbers, and which categories
    bandwidth: Any  # h, (n_columns,); the lambda of a category
    scale: Scale
    # Center and scale of each column, (2, n_columns), in the units of the rows; None for none.
    background: Any
    row_factors: Any = None  # s, (n_keys,), factors on the bandwidths of numbers; None for 1
    # For mixtures given features: the smoother that averages the keys by their features, and
    # ``weigh(features)``, which returns the weights (n, n_keys) of the keys.
    averages: Any = None
    weigh: Any = None

    @functools.cached_property
    def distribution(self):
        """The distribution function of the kernel."""
        return KernelDistribution(self.kernel)

    @property
    def mass(self):
        """Sum of the weights."""
        return len(self.keys) if self.weights is None else float(self.weights.sum())

    @functools.cached_property
    def share(self):
        """Mass of the background, a fraction of 1."""
        return background_mixing_weight(len(self.keys), self.weights)

    @functools.cached_property
    def tables(self):
        """Kernels between every two levels, (n_levels, n_levels), by categorical column."""
        kinds, n_levels = self.columns.kinds, self.columns.n_levels
        return {
            j: level_table(kinds[j], n_levels[j], self.bandwidth[j])[0]
            for j in self.columns.categorical
        }

    def background_around(self, centers=0.0):
        """Return the `Background` around a center, or around the centers (n,) of queries."""
        center, scale = self.background
        center = np.add.outer(center, np.ravel(centers))
        return Background(center, scale, self.columns, self.scale.bounds)

    def take(self, rows):
        """Return the mixture of a selection of the rows, at the same bandwidths."""
        names = "keys", "weights", "row_factors"
        fields = ((name, getattr(self, name)) for name in names)
        return replace(self, **{name: None if x is None else x[rows] for name, x in fields})

    def subsample(self, max_rows, random_state):
        """Return the mixture of a sample of at most `max_rows` rows.

        Its bandwidths are larger, as fewer rows need them.
        """
        n_rows = len(self.keys)
        if n_rows <= max_rows:
            return self
        rows = draw_rows(n_rows, max_rows, check_random_state(random_state))
        factor = 1 / optimal_rate_factor(n_rows / max_rows, len(self.columns.numeric))
        return replace(self.take(rows), bandwidth=self._bandwidth(factor))

    def local_factors(self, sensitivity, log_density):
        """Compute the local factors s (n_keys,) from log-densities of the keys on the scale."""
        # A row of weight 0 may have no density at all; its factor does not matter.
        weights = np.isfinite(log_density) * (1.0 if self.weights is None else self.weights)
        log_density = np.where(weights == 0, 0.0, log_density)
        logs = sensitivity * (np.average(log_density, weights=weights) - log_density)
        logs /= np.log(2)
        steps = np.where(np.abs(logs) < _FINE_OCTAVES, _STEPS_PER_OCTAVE, 1)
        return np.exp2(np.round(logs * steps) / steps)

    # Densities

    def log_density(self, rows, features=None, centers=0.0):
        """Compute log-densities of rows (n, n_columns), -inf where the density is 0.

        The density is that given `features` (n, n_features), if they are passed, around
        `centers`, a number or one for each row.
        """
        rows, is_inside = self.scale.clip(rows)
        is_inside &= (rows[:, self.columns.categorical] >= 0).all(axis=1)
        centers_of_rows = np.reshape(centers, (-1, 1))
        images = [z - centers_of_rows for z in self._images(self.scale.apply(rows))]
        if features is None:
            log_kernels = self._log_sums(images) - np.log(self.mass)
        else:
            log_kernels = self._log_density_given(images, features)
        return np.where(is_inside, self._mix(rows, log_kernels, centers), -np.inf)

    def log_density_on_scale(self, Z):
        """Compute log-densities at points Z of the scale, per unit of volume on the scale."""
        rows = self.scale.invert(Z)
        return self.log_density(rows) - self.scale.log_slopes(rows)

    def left_out(self):
        """Compute the log-density of each key in the mixture of all other keys, (n_keys,)."""
        log_sums = self._log_sums(self._images(self.keys), leave_one_out=True)
        weights = np.ones(len(self.keys)) if self.weights is None else self.weights
        log_kernels = log_sums - np.log(leave_one_out_mass(weights))
        return self._mix(self.scale.invert(self.keys), log_kernels)

    def score(self):
        """Compute the mean log-density of the keys, each in the mixture of all others."""
        return float(np.average(self.left_out(), weights=self.weights))

    def _mix(self, rows, log_kernels, centers=0.0):
        """Return log-densities of rows, with the background.

        `log_kernels` (n,) are those of the kernels alone, per unit of volume on the scale.
        """
        log_density = log_kernels + self.scale.log_slopes(rows)
        if self.background is None:
            return log_density
        log_background = self.background_around(centers).log_density(rows) + np.log(self.share)
        return np.logaddexp(log_density + np.log1p(-self.share), log_background)

    def _log_density_given(self, images, features):
        """Compute log-densities of targets by the kernels, given features, (n,).

        They are ratios of sums over the keys: the joint kernel of features and target over the
        kernel of features. Where their logarithms have too few digits, or the kernel is signed,
        all pairs are summed.
        """
        log_density, is_exact = np.empty(len(features)), np.zeros(len(features), dtype=bool)
        if self.averages.kernel.signed is False:
            keys, options = self.averages.keys, {"sample_weight": self.weights, "empty": "nan"}
            options["bandwidth"] = self.averages.divisors
            log_total = attend(features, keys, keys[:, :0], self.averages.kernel, **options)[1]
            is_exact = np.abs(log_total) < _MAX_LOG
            joint = self._log_sums(images, features)
            log_density[is_exact] = (joint - np.where(is_exact, log_total, 0.0))[is_exact]
        queries = np.flatnonzero(~is_exact)
        for block, weights in self.blocks_of_weights(features[queries], len(images)):
            Z = np.stack([image[queries[block]] for image in images])
            with np.errstate(divide="ignore", over="ignore"):
                squared = ((Z - self.keys[:, 0]) / self.bandwidth[0]) ** 2
                terms = np.log(weights) + self.kernel.log_profile(squared)
            log_density[queries[block]] = logsumexp(terms, axis=(0, 2))
            log_density[queries[block]] -= np.log(self.bandwidth[0])
        return log_density

    def _log_sums(self, images, features=None, *, leave_one_out=False):
        """Compute log-sums of the kernels at images of the queries, (n,).

        Kernels are multiplied by those of `features` (n, n_features), if they are passed.
        """
        log_sums = []
        for rows, kernel, divisors, weights, log_volume in self._groups():
            keys, queries = self.keys[rows], images
            if features is not None:
                n, n_all = features.shape[1], features.shape[1] + keys.shape[1]
                kernel = ProductKernel(
                    [
                        ("features", self.averages.kernel, list(range(n))),
                        ("target", kernel, list(range(n, n_all))),
                    ]
                )
                divisors = np.append(self.averages.divisors, divisors)
                keys = np.hstack([self.averages.keys, keys])
                queries = [np.hstack([features, image]) for image in images]
            options = {"bandwidth": divisors, "sample_weight": weights, "empty": "nan"}
            if leave_one_out:
                positions = np.full(len(self.keys), -1)
                positions[rows] = np.arange(len(keys))
                options["leave_one_out"] = positions
            log_sums += [
                attend(z, keys, keys[:, :0], kernel, **options)[1] - log_volume for z in queries
            ]
        return functools.reduce(np.logaddexp, log_sums)

    def _groups(self):
        """Yield groups of keys with equal local factors.

        Each has the positions of the keys, their kernel, the divisors of the columns, the
        weights, and the logarithm of the product of the bandwidths.
        """
        columns, factors = self.columns, self.row_factors
        masks = [(1.0, slice(None))]
        if factors is not None:
            used = factors if self.weights is None else factors[self.weights > 0]
            masks = [(factor, factors == factor) for factor in np.unique(used)]
        for factor, rows in masks:
            bandwidth = self._bandwidth(factor)
            weights = None if self.weights is None else self.weights[rows]
            for j, table in self.tables.items():
                if columns.kinds[j] == "ordered":  # over all levels each row has mass 1
                    masses = table.diagonal()[self.keys[rows, j].astype(np.intp)]
                    weights = masses if weights is None else weights * masses
            kernel = mixed_kernel(ProductKernel(self.kernel), columns, bandwidth)
            log_volume = np.log(bandwidth[columns.is_numeric]).sum()
            yield rows, kernel, columns.divisors(bandwidth), weights, log_volume

    def _images(self, Z):
        """Return points of the scale, and their images in the bounds within a kernel's support.

        It is a list of arrays (n, n_columns).
        """
        if self.scale.bounds is None:
            return [Z]
        factor = 1.0 if self.row_factors is None else self.row_factors.max()
        distances = self.distribution.support * self._bandwidth(factor)
        return list(reflections(Z, self.scale.scaled_bounds, distances))

    def _bandwidth(self, factor):
        """Return the bandwidths, of which those of numbers are multiplied by a factor."""
        return np.where(self.columns.is_numeric, factor, 1.0) * self.bandwidth

    # Distributions

    def blocks_of_weights(self, features, n_values=1):
        """Yield blocks of queries, and the weights (n, n_keys) of the keys given features.

        For each query and key there are `n_values` numbers in memory.
        """
        for rows in blocks(len(features), max(1, _BLOCK_PAIRS // (len(self.keys) * n_values))):
            yield rows, self.weigh(features[rows])

    def cdf(self, rows, weights=None, centers=0.0):
        """Compute the distribution function at rows (n, n_columns), from 0 to 1.

        `weights` (n, n_keys) are those of the keys for each row; by default the mixture's.
        """
        rows, _ = self.scale.clip(rows)
        Z = self.scale.apply(rows)
        if weights is None:
            # Rows and keys may be in partitions, so local factors are a further column of keys.
            keys = self.keys
            if self.row_factors is not None:
                Z = np.column_stack([Z, Z[:, 0]])
                keys = np.column_stack([keys, self.row_factors])
            options = {"sample_weight": self.weights, "empty": "nan"}
            log_sums = attend(Z, keys, keys[:, :0], self._masses, **options)[1]
            probability = np.exp(log_sums - np.log(self.mass))
        else:
            probability = np.vecdot(weights, self._masses(Z, self.keys, centers))
        if self.background is not None:
            background = self.share * self.background_around(centers).cdf(rows)
            probability = (1 - self.share) * probability + background
        is_known = (rows[:, self.columns.categorical] >= 0).all(axis=1)
        return np.where(is_known, probability.clip(0, 1), 0.0)

    def _masses(self, Z, keys, centers=0.0):
        """Compute the mass of each key's kernel below each query, (n, n_keys).

        Further columns of the keys are factors on the bandwidths.
        """
        columns, bounds = self.columns, self.scale.scaled_bounds
        factors, masses = keys[:, len(columns.kinds) :].prod(axis=1), 1.0
        for j in columns.numeric:

            def mass_below(z, bandwidth=self.bandwidth[j] * factors, key=keys[:, j]):
                with np.errstate(over="ignore"):
                    return self.distribution.cdf(((z - centers)[:, None] - key) / bandwidth)

            if bounds is None:
                masses = masses * mass_below(Z[:, j])
                continue
            # The mass between the lower bound and the query, and between their mirror images.
            distance = self.distribution.support * self.bandwidth[j] * factors.max()
            ends = Z[:, [j]], bounds[[j], :1]
            images = zip(*(reflections(z, bounds[[j]], distance) for z in ends), strict=True)
            masses = masses * sum(
                np.abs(mass_below(image[:, 0]) - mass_below(lower[:, 0]))
                for image, lower in images
            )
        for j, table in self.tables.items():
            table = table.cumsum(axis=0) if columns.kinds[j] == "ordered" else table
            masses = masses * table[Z[:, j].astype(np.intp)][:, keys[:, j].astype(np.intp)]
        return masses

    def quantiles(self, weights, probabilities, centers):
        """Compute quantiles of a target for n queries, (n, n_probabilities).

        For each query, `weights` (n, n_keys) has the weights of the keys, NaN if no key has
        any, and `centers` (n,) the number to which the keys are relative.
        """
        # Each quantile is between `low` and `high`, and is found as a root of the distribution
        # function less the probability.
        rows, centers = np.arange(len(weights))[:, None], centers[:, None]
        margin = self.distribution.support * self.bandwidth[0]
        low, high = centers + self.keys.min() - margin, centers + self.keys.max() + margin
        if self.background is not None:
            # Beyond all kernels there is only the background.
            center, scale = self.background[:, 0]
            distance = scale * t_quantile(probabilities)
            low = np.minimum(low, centers + center + np.minimum(distance, 0))
            high = np.maximum(high, centers + center + np.maximum(distance, 0))
        if self.scale.bounds is not None:
            low, high = (ends.clip(*self.scale.bounds[0]) for ends in (low, high))

        def excess(y, row, probability):
            queries = y.reshape(-1, 1), weights[row.ravel()], centers[row.ravel(), 0]
            return self.cdf(*queries).reshape(y.shape) - probability

        root = find_root(excess, (low, high), args=(rows, probabilities))
        # Where rounding keeps the distribution function from reaching an extreme probability,
        # the quantile is the end of the bracket.
        y = np.where(root.success, root.x, np.where(probabilities < 0.5, low, high))
        return np.where(np.isnan(weights[:, :1]), np.nan, y)

    def draw(self, random_state, keys, centers=0.0):
        """Draw a row around each of the keys at positions `keys` (n,); NaN for position -1."""
        numeric = self.columns.numeric
        Z = np.array(self.keys[keys]) + np.reshape(centers, (-1, 1)) * self.columns.is_numeric
        factors = 1.0 if self.row_factors is None else self.row_factors[keys, None]
        noise = self.distribution.draw(random_state, (len(keys), len(numeric)))
        Z[:, numeric] += noise * (factors * self.bandwidth[numeric])
        if self.scale.bounds is not None:
            for j in numeric:
                Z[:, j] = fold(Z[:, j], *self.scale.scaled_bounds[j])
        for j, table in self.tables.items():
            cumulated = np.cumsum(table, axis=0)[:, Z[:, j].astype(np.intp)]
            uniform = random_state.uniform(size=len(keys)) * cumulated[-1]
            Z[:, j] = (cumulated <= uniform).sum(axis=0)
        rows = self.scale.invert(Z)
        if self.background is not None:
            wide = np.flatnonzero(random_state.uniform(size=len(keys)) < self.share)
            centers = np.broadcast_to(centers, len(keys))[wide]
            rows[wide] = self.background_around(centers).draw(random_state, len(wide))
        rows[keys < 0] = np.nan
        return rows


def draw_positions(weights, uniform):
    """Draw keys for each query, with probabilities in proportion to weights (n, n_keys).

    Returns the positions of the keys, (n, n_draws), by inversion of `uniform` numbers of the
    same shape; -1 where the weights are NaN.
    """
    positions = np.full(uniform.shape, -1)
    for i, cumulated in enumerate(np.cumsum(weights, axis=1)):
        if not np.isnan(cumulated[-1]):
            positions[i] = np.searchsorted(cumulated, uniform[i] * cumulated[-1], side="right")
    return positions


def effective_support(kernel):
    """Return the distance, in bandwidths, beyond which a kernel is 0 or negligible."""
    if math.isfinite(kernel.support):
        return float(kernel.support)
    support = 1.0
    while kernel.profile(np.float64(support**2)) * support > _NEGLIGIBLE:
        support *= 1.25
        if support > _MAX_SUPPORT:
            raise ValueError(
                f"kernel={kernel!r} falls too slowly to be tabulated: choose a kernel with "
                "lighter tails, such as 'gaussian' or 'logistic'."
            )
    return support
