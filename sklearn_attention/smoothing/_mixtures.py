"""Mixtures of kernels around the training rows: densities, distributions, draws.

Terms of this module:

* The **keys** are the training rows, mapped to the `Scale` on which kernels compare them. An
  **image** of a row is its mirror image in a bound; the kernels of images keep the mass inside.
* A **local factor** of a key multiplies its bandwidths: kernels are wide where keys are sparse.
* The **background** is a wide density with the mass of one further row, for rows unlike all
  others.
* A mixture **given features** is that of a target. Each query has its own weights of the keys,
  by the kernel between features, and a **center**, a number that is added to all keys.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize.elementwise import find_root
from scipy.special import logsumexp
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
from ..kernels import ProductKernel
from ..kernels._categorical import level_table
from ..kernels._product_kernel import mixed_kernel
from ._kernel_distribution import KernelDistribution
from ._scale import Scale

# Local factors are rounded to powers of 2^(1/8), so that rows of one factor are summed as fast
# as rows of one bandwidth; factors above 4 and below 1/4 are rounded to powers of 2.
_STEPS_PER_OCTAVE, _FINE_OCTAVES = 8, 2

# Maximum number of pairs of a query (or one of its quantiles) and a key in memory at a time.
_BLOCK_PAIRS = 2 * IN_CACHE
# Largest absolute logarithm whose differences from others have enough digits.
_MAX_LOG = 1e5


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
    # Rows of centers and scales of the columns, (2, n_columns), in the units of the rows; None
    # without a background.
    background: Any
    local_factors: Any = None  # s, (n_keys,), on the bandwidths of numbers; None for 1
    # Only for mixtures given features: a `FittedSmoother` whose keys are the features of the
    # keys, and ``weights_given(features)``, which returns the weights (n, n_keys) of the keys.
    feature_smoother: Any = None
    weights_given: Any = None

    @functools.cached_property
    def distribution(self):
        """The distribution function of the kernel."""
        return KernelDistribution(self.kernel)

    @property
    def total_weight(self):
        """Sum of the weights of the keys."""
        return len(self.keys) if self.weights is None else float(self.weights.sum())

    @functools.cached_property
    def background_weight(self):
        """Weight of the background in the density, from 0 to 1; the kernels have the rest."""
        return background_mixing_weight(len(self.keys), self.weights)

    @functools.cached_property
    def level_kernels(self):
        """For each categorical column, by its position, the kernels between all levels.

        An array (n_levels, n_levels) has a row for each level of a query, and a column for each
        level of a key.
        """
        kinds, n_levels = self.columns.kinds, self.columns.n_levels
        return {
            j: level_table(kinds[j], n_levels[j], self.bandwidth[j])[0]
            for j in self.columns.categorical
        }

    def background_around(self, centers=0.0):
        """Return the `Background` of queries with `centers`, (n,) or one number for all."""
        column_centers, scales = self.background
        query_centers = np.add.outer(column_centers, np.ravel(centers))
        return Background(query_centers, scales, self.columns, self.scale.bounds)

    def take(self, rows):
        """Return the mixture of some of the keys, positions or a mask."""
        names = "keys", "weights", "local_factors"
        fields = ((name, getattr(self, name)) for name in names)
        return replace(self, **{name: None if x is None else x[rows] for name, x in fields})

    def subsample(self, max_rows, random_state):
        """Return the mixture of a sample of at most `max_rows` keys.

        For fewer rows the best bandwidth is wider; the bandwidths are multiplied by the
        theoretical factor.
        """
        n_rows = len(self.keys)
        if n_rows <= max_rows:
            return self
        rows = draw_rows(n_rows, max_rows, check_random_state(random_state))
        factor = 1 / optimal_rate_factor(n_rows / max_rows, len(self.columns.numeric))
        return replace(self.take(rows), bandwidth=self._scaled_bandwidth(factor))

    def compute_local_factors(self, sensitivity, log_density):
        """Compute local factors (n_keys,) from log-densities (n_keys,) of the keys.

        A factor is ``(f / g) ** -sensitivity``, with the density f of the key, and the
        geometric mean g of the densities of all keys. Densities are those on the scale.
        """
        # A row of weight 0 may have no density at all; its factor does not matter.
        weights = np.isfinite(log_density) * (1.0 if self.weights is None else self.weights)
        log_density = np.where(weights == 0, 0.0, log_density)
        logs = sensitivity * (np.average(log_density, weights=weights) - log_density)
        # Factors are rounded to fractions of an octave, a factor of 2, so that many are equal.
        logs /= np.log(2)
        steps = np.where(np.abs(logs) < _FINE_OCTAVES, _STEPS_PER_OCTAVE, 1)
        return np.exp2(np.round(logs * steps) / steps)

    # Densities

    def log_density(self, rows, features=None, centers=0.0):
        """Compute log-densities of rows (n, n_columns), -inf where the density is 0.

        If `features` (n, n_features) are passed, the density of each row is that given its
        features. `centers`, (n,) or one number for all rows, is added to the keys.
        """
        rows, is_inside = self.scale.clip(rows)
        # A level that did not occur in training has the code -1, and the density 0.
        is_inside &= (rows[:, self.columns.categorical] >= 0).all(axis=1)
        # Centers are subtracted from the rows, which is the same as adding them to the keys.
        # Kernels are summed over the keys, and over the images of each row in the bounds.
        centers_of_rows = np.reshape(centers, (-1, 1))
        images = [z - centers_of_rows for z in self._images(self.scale.apply(rows))]
        if features is None:
            log_kernels = self._log_sums(images) - np.log(self.total_weight)
        else:
            log_kernels = self._log_kernels_given(images, features)
        log_density = self._with_background(rows, log_kernels, centers)
        return np.where(is_inside, log_density, -np.inf)

    def log_density_on_scale(self, Z):
        """Compute log-densities (n,) at points Z (n, n_columns) of the scale.

        They are those per unit of volume on the scale.
        """
        rows = self.scale.invert(Z)
        return self.log_density(rows) - self.scale.log_slopes(rows)

    def loo_log_density(self):
        """Compute the log-density of each key in the mixture of all other keys, (n_keys,)."""
        log_sums = self._log_sums(self._images(self.keys), leave_one_out=True)
        weights = np.ones(len(self.keys)) if self.weights is None else self.weights
        log_kernels = log_sums - np.log(leave_one_out_mass(weights))
        return self._with_background(self.scale.invert(self.keys), log_kernels)

    def score(self):
        """Compute the mean log-density of the keys, each in the mixture of all others."""
        return float(np.average(self.loo_log_density(), weights=self.weights))

    def _with_background(self, rows, log_kernels, centers=0.0):
        """Return log-densities (n,) of rows in the mixture of kernels and background.

        It is log((1 - v) f + v g) with the density f in the kernels alone, and the weight v and
        the density g of the background. `log_kernels` (n,) is log f, per unit of volume on the
        scale. `centers`, (n,) or one number for all rows, is added to the keys.
        """
        # The slopes of the scale turn densities per unit of the scale into those per unit of
        # the rows.
        log_kernels = log_kernels + self.scale.log_slopes(rows)
        if self.background is None:
            return log_kernels
        weight = self.background_weight
        log_background = self.background_around(centers).log_density(rows)
        return np.logaddexp(log_kernels + np.log1p(-weight), log_background + np.log(weight))

    def _log_kernels_given(self, images, features):
        """Compute log-densities of targets in the kernels alone, given features, (n,).

        `images` is a list of arrays (n, 1): the targets on the scale, and their images in the
        bounds. The log-densities are those per unit on the scale.
        """
        # A density is a ratio of sums over the keys: the kernels of features and target
        # together, over the kernels of the features.
        log_density, is_exact = np.empty(len(features)), np.zeros(len(features), dtype=bool)
        smoother = self.feature_smoother
        if smoother.kernel.signed is False:
            log_totals = _log_kernel_sums(
                features, smoother.keys, smoother.kernel, self.weights, smoother.divisors
            )
            is_exact = np.abs(log_totals) < _MAX_LOG
            log_joint = self._log_sums(images, features)
            log_density[is_exact] = (log_joint - np.where(is_exact, log_totals, 0.0))[is_exact]
        # Where these logarithms have too few digits, or the kernel may be negative, the kernels
        # of all pairs of a query and a key are summed.
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
        """Compute the logarithms of weighted sums of kernels, for each of n queries, (n,).

        Parameters
        ----------
        images : list of ndarray of shape (n, n_columns)
            The queries on the scale, and their images in the bounds. The kernels of all are
            added.
        features : ndarray of shape (n, n_features), default=None
            Features of the queries. If they are passed, each kernel is multiplied by that of
            the features.
        leave_one_out : bool, default=False
            True if the queries are the keys, and each is left out of its own sum.
        """
        log_sums = []
        for group in self._groups_of_equal_factors():
            kernel, divisors = group.kernel, group.divisors
            keys, queries = self.keys[group.is_member], images
            if features is not None:
                # Features and target become one table, compared by the product of both kernels.
                smoother = self.feature_smoother
                n, n_all = features.shape[1], features.shape[1] + keys.shape[1]
                kernel = ProductKernel(
                    [
                        ("features", smoother.kernel, list(range(n))),
                        ("target", kernel, list(range(n, n_all))),
                    ]
                )
                divisors = np.append(smoother.divisors, divisors)
                keys = np.hstack([smoother.keys, keys])
                queries = [np.hstack([features, image]) for image in images]
            left_out = False
            if leave_one_out:
                # The position in the group of the key that each query leaves out, -1 for none.
                left_out = np.full(len(self.keys), -1)
                left_out[group.is_member] = np.arange(len(keys))
            log_sums += [
                _log_kernel_sums(query, keys, kernel, group.weights, divisors, left_out)
                - group.log_volume
                for query in queries
            ]
        return functools.reduce(np.logaddexp, log_sums)

    def _groups_of_equal_factors(self):
        """Yield a `_KeyGroup` for each local factor."""
        columns, factors = self.columns, self.local_factors
        selections = [(1.0, slice(None))]
        if factors is not None:
            used = factors if self.weights is None else factors[self.weights > 0]
            selections = [(factor, factors == factor) for factor in np.unique(used)]
        for factor, is_member in selections:
            bandwidth = self._scaled_bandwidth(factor)
            weights = None if self.weights is None else self.weights[is_member]
            for j, kernels in self.level_kernels.items():
                if columns.kinds[j] == "ordered":
                    # The kernel below is 1 between equal levels. Times the diagonal, the kernel
                    # of each key sums to 1 over all levels.
                    masses = kernels.diagonal()[self.keys[is_member, j].astype(np.intp)]
                    weights = masses if weights is None else weights * masses
            kernel = mixed_kernel(ProductKernel(self.kernel), columns, bandwidth)
            log_volume = np.log(bandwidth[columns.is_numeric]).sum()
            yield _KeyGroup(is_member, kernel, columns.divisors(bandwidth), weights, log_volume)

    def _images(self, Z):
        """Return the points Z (n, n_columns) of the scale, and their images in the bounds.

        The result is a list of arrays (n, n_columns). Images that are too far for the kernel of
        any key are left out.
        """
        if self.scale.bounds is None:
            return [Z]
        max_factor = 1.0 if self.local_factors is None else self.local_factors.max()
        distances = self.distribution.support * self._scaled_bandwidth(max_factor)
        return list(reflections(Z, self.scale.scaled_bounds, distances))

    def _scaled_bandwidth(self, factor):
        """Return the bandwidths, of which those of numbers are multiplied by a factor."""
        return np.where(self.columns.is_numeric, factor, 1.0) * self.bandwidth

    # Distributions

    def blocks_of_weights(self, features, n_values=1):
        """Yield slices of the queries, and the weights (n, n_keys) of the keys for each.

        `features` (n_queries, n_features) are those of the queries. Blocks are as small as
        memory needs if there are `n_values` numbers for each pair of a query and a key.
        """
        for rows in blocks(len(features), max(1, _BLOCK_PAIRS // (len(self.keys) * n_values))):
            yield rows, self.weights_given(features[rows])

    def cdf(self, rows, weights=None, centers=0.0):
        """Compute the distribution function at rows (n, n_columns), from 0 to 1.

        By default the keys have the weights of the mixture at all rows, and `centers` is 0. For
        a mixture given features, `weights` (n, n_keys) has the weights of the keys for each
        row, which sum to 1, and `centers` (n,) the number that is added to the keys.
        """
        rows, _ = self.scale.clip(rows)
        Z = self.scale.apply(rows)
        if weights is None:
            # `attend` sums the masses below each row in blocks of rows and keys, which may be
            # in partitions of Dask. The local factor of a key gets into its block as a further
            # column. Rows need as many columns; the copy of the first one is not read.
            keys = self.keys
            if self.local_factors is not None:
                Z = np.column_stack([Z, Z[:, 0]])
                keys = np.column_stack([keys, self.local_factors])
            log_sums = _log_kernel_sums(Z, keys, self._masses_below, self.weights)
            probability = np.exp(log_sums - np.log(self.total_weight))
        else:
            probability = np.vecdot(weights, self._masses_below(Z, self.keys, centers))
        if self.background is not None:
            background = self.background_around(centers).cdf(rows)
            weight = self.background_weight
            probability = (1 - weight) * probability + weight * background
        # A level that did not occur in training has the code -1, and the probability 0.
        is_known = (rows[:, self.columns.categorical] >= 0).all(axis=1)
        return np.where(is_known, probability.clip(0, 1), 0.0)

    def _masses_below(self, Z, keys, centers=0.0):
        """Compute the mass of each key's kernel below each query, from 0 to 1, (n, n_keys).

        `Z` (n, n_columns) are queries on the scale, and `centers`, (n,) or one number for all
        queries, is added to the keys. If `keys` have a column more than the mixture, it holds
        their local factors. "Below" means at most the numbers and ordered levels of the query,
        and its unordered levels.
        """
        columns = self.columns
        # Without such a column, the product of no numbers is 1.
        factors, masses = keys[:, len(columns.kinds) :].prod(axis=1), 1.0
        for j in columns.numeric:
            masses = masses * self._masses_along(j, Z[:, j], keys[:, j], factors, centers)
        for j, kernels in self.level_kernels.items():
            below = kernels.cumsum(axis=0) if columns.kinds[j] == "ordered" else kernels
            masses = masses * below[Z[:, j].astype(np.intp)][:, keys[:, j].astype(np.intp)]
        return masses

    def _masses_along(self, j, z, key, factors, centers):
        """Compute the mass of each key's kernel below numbers z (n,) of column j, (n, n_keys).

        `key` and `factors` (n_keys,) are the keys in this column, and their local factors;
        `centers` is as for `_masses_below`.
        """
        bandwidth, bounds = self.bandwidth[j] * factors, self.scale.scaled_bounds

        def mass_below(z):
            # The mass below numbers z (n,), as if there were no bounds, (n, n_keys).
            with np.errstate(over="ignore"):
                return self.distribution.cdf(((z - centers)[:, None] - key) / bandwidth)

        if bounds is None:
            return mass_below(z)
        # The mass between the lower bound and the query, and between their mirror images.
        distance = self.distribution.support * self.bandwidth[j] * factors.max()
        query_images = reflections(z[:, None], bounds[[j]], distance)
        lower_images = reflections(bounds[[j], :1], bounds[[j]], distance)
        return sum(
            np.abs(mass_below(image[:, 0]) - mass_below(lower[:, 0]))
            for image, lower in zip(query_images, lower_images, strict=True)
        )

    def quantiles(self, weights, probabilities, centers):
        """Compute quantiles of a target for n queries, (n, n_probabilities).

        For each query, `weights` (n, n_keys) has the weights of the keys, NaN if no key has
        any, and `centers` (n,) the number that is added to the keys. `probabilities`
        (n_probabilities,) are the same for all queries.
        """
        # A quantile is the root of the distribution function less the probability. It is
        # between `low` and `high`, beyond which the kernels are 0.
        rows, centers = np.arange(len(weights))[:, None], centers[:, None]
        margin = self.distribution.support * self.bandwidth[0]
        low, high = centers + self.keys.min() - margin, centers + self.keys.max() + margin
        if self.background is not None:
            # Beyond all kernels there is only the background, Student's t with 2 degrees of
            # freedom, whose quantile may be further out.
            background_center, background_scale = self.background[:, 0]
            distance = background_scale * t_quantile(probabilities)
            low = np.minimum(low, centers + background_center + np.minimum(distance, 0))
            high = np.maximum(high, centers + background_center + np.maximum(distance, 0))
        if self.scale.bounds is not None:
            low, high = (ends.clip(*self.scale.bounds[0]) for ends in (low, high))

        def excess(y, row, probability):
            """Return the distribution function at `y` less the probability, elementwise."""
            queries = row.ravel()
            below = self.cdf(y.reshape(-1, 1), weights[queries], centers[queries, 0])
            return below.reshape(y.shape) - probability

        root = find_root(excess, (low, high), args=(rows, probabilities))
        # Where rounding keeps the distribution function from reaching an extreme probability,
        # the quantile is the end of the bracket.
        y = np.where(root.success, root.x, np.where(probabilities < 0.5, low, high))
        return np.where(np.isnan(weights[:, :1]), np.nan, y)

    def draw(self, random_state, positions, centers=0.0):
        """Draw n rows from the mixture, (n, n_columns), one around each of n keys.

        `positions` (n,) are those of the keys; -1 gives a row of NaN, for a query at which no
        key has weight. `centers`, (n,) or one number for all rows, is added to the keys. A row
        comes from the background instead, with the probability of the latter.
        """
        # 1. Numbers get noise from the kernel, which is reflected at the bounds.
        numeric, n = self.columns.numeric, len(positions)
        Z = np.array(self.keys[positions])
        Z = Z + np.reshape(centers, (-1, 1)) * self.columns.is_numeric
        factors = 1.0 if self.local_factors is None else self.local_factors[positions, None]
        noise = self.distribution.draw(random_state, (n, len(numeric)))
        Z[:, numeric] += noise * (factors * self.bandwidth[numeric])
        if self.scale.bounds is not None:
            for j in numeric:
                Z[:, j] = fold(Z[:, j], *self.scale.scaled_bounds[j])
        # 2. A level is drawn in proportion to its kernel with the level of the key.
        for j, kernels in self.level_kernels.items():
            cumulated = np.cumsum(kernels, axis=0)[:, Z[:, j].astype(np.intp)]
            uniform = random_state.uniform(size=n) * cumulated[-1]
            Z[:, j] = (cumulated <= uniform).sum(axis=0)
        rows = self.scale.invert(Z)
        # 3. Some rows are replaced by draws from the background.
        if self.background is not None:
            replaced = np.flatnonzero(random_state.uniform(size=n) < self.background_weight)
            background = self.background_around(np.broadcast_to(centers, n)[replaced])
            rows[replaced] = background.draw(random_state, len(replaced))
        rows[positions < 0] = np.nan
        return rows


class _KeyGroup(NamedTuple):
    """Keys with equal local factors, which are summed at one bandwidth."""

    is_member: Any  # mask (n_keys,) or slice that selects the keys of the group
    kernel: Any  # of all columns
    divisors: Any  # (n_columns,) columns are divided by these before the kernel compares them
    weights: Any  # of the group's keys; None for 1
    # Logarithm of the product of the bandwidths of numbers, by which densities divide kernels.
    log_volume: Any


def _log_kernel_sums(queries, keys, kernel, weights, bandwidth=1.0, leave_one_out=False):
    """Return the logarithm of the weighted sum of kernels with the keys, for each query, (n,).

    `leave_one_out` (n,) has the position of the key that each query leaves out, -1 for none.
    """
    # Only the sums of `attend` are used, so the keys have no values to be averaged.
    options = {"bandwidth": bandwidth, "sample_weight": weights, "leave_one_out": leave_one_out}
    _, log_sums = attend(queries, keys, keys[:, :0], kernel, empty="nan", **options)
    return log_sums


def draw_positions(weights, uniform):
    """Draw keys for each query, with probabilities in proportion to weights (n, n_keys).

    `uniform` (n, n_draws) are random numbers from 0 to 1. Returns the positions of the keys,
    (n, n_draws); -1 for a query whose weights are NaN.
    """
    positions = np.full(uniform.shape, -1)
    for i, cumulated in enumerate(np.cumsum(weights, axis=1)):
        # The cumulated weights are inverted: a key is drawn if the number falls in its step.
        if not np.isnan(cumulated[-1]):
            positions[i] = np.searchsorted(cumulated, uniform[i] * cumulated[-1], side="right")
    return positions
