"""Mixtures of kernels: densities, the densities of a target, and their distributions."""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize.elementwise import find_root
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from .._columns import Columns
from ..attention._average import attend
from ..attention._leave_one_out import at_rows
from ..bandwidth._background import Background, background_share, fold, reflections, t_quantile
from ..bandwidth._search import draw_rows, narrower
from ..kernels import Gaussian, ProductKernel
from ..kernels._categorical import level_table
from ..kernels._product_kernel import mixed_kernel

# Local factors are powers of two in so many steps each, so that rows of one factor are summed
# as fast as of one bandwidth; from so many powers of two on, of the sparsest rows, in one.
_STEPS_OF_FACTORS, _COARSE = 8, 2

# Steps of a table of a kernel. The error of a cubic spline falls with their fourth power: here
# it is below 1e-10 of the peak.
_STEPS = 2**13
# A kernel without bounds ends where it is this small.
_NEGLIGIBLE = 1e-18
_LONGEST_REACH = 1e3


class KernelDistribution:
    """Distribution function of a positive smoothing kernel, and its inverse.

    In closed form for the Gaussian kernel, else from a table of the density.
    """

    def __init__(self, kernel):
        self.reach = kernel_reach(kernel)
        self._closed = type(kernel) is Gaussian
        if not self._closed:
            self._grid = np.linspace(0, self.reach, _STEPS + 1)
            density = CubicSpline(self._grid, kernel.profile(self._grid**2))
            self._mass = density.antiderivative()
            self._half = np.maximum.accumulate(self._mass(self._grid))

    def cdf(self, u):
        """Probability of being at most `u`."""
        if self._closed:
            return ndtr(u)
        mass = self._mass(np.minimum(np.abs(u), self.reach)) / self._half[-1]
        return 0.5 + 0.5 * np.copysign(np.clip(mass, 0, 1), u)

    def ppf(self, probability):
        """Quantile: where the distribution function has a given value."""
        if self._closed:
            return ndtri(probability)
        mass = np.abs(2 * np.asarray(probability) - 1) * self._half[-1]
        return np.copysign(np.interp(mass, self._half, self._grid), probability - 0.5)

    def draw(self, random_state, shape):
        """Independent draws from the kernel."""
        # In the middle of the cells a generator draws from: 0, whose quantile is infinite,
        # is none of them.
        return self.ppf(random_state.uniform(size=shape) + 2.0**-54)


class KernelMixture:
    r"""Mixtures of a positive smoothing kernel around centers, with weights for each center.

    :math:`F(y) = \sum_i w_i\, F_K((y - c - e_i) / g)`, of values e_i and the bandwidth g.
    Kernels are reflected at bounds (low, high). A background has a share of the mass, a center
    relative to c, and a scale.
    """

    def __init__(self, values, kernel, bandwidth, bounds=None, background=(0.0, 0.0, 1.0)):
        self.values, self.bandwidth, self.bounds = values, bandwidth, bounds
        self.distribution = KernelDistribution(kernel)
        self.share, self._center, self._scale = background

    def wide(self, centers):
        """The background around centers (n,)."""
        center, scale = [np.ravel(centers) + self._center], [self._scale]
        bounds = None if self.bounds is None else self.bounds[None]
        return Background(center, scale, Columns.numbers(1), bounds)

    def images(self, y):
        """Places, and their mirror images in the bounds."""
        return _images(y, self.bounds, self._reach)

    @property
    def _reach(self):
        return self.distribution.reach * self.bandwidth

    def cdf(self, weights, y, centers):
        """Distribution functions at y (...), of weights (..., n_keys) around centers (...)."""

        def below(places):
            steps = (places - centers)[..., None] - self.values
            return np.einsum(
                "...i,...i", weights, self.distribution.cdf(steps / self.bandwidth)
            )

        found = _mass_up_to(y, below, self.bounds, self._reach)
        if not self.share:
            return found
        y = y if self.bounds is None else y.clip(*self.bounds)
        shape = np.shape(y)
        wide = self.wide(np.broadcast_to(centers, shape)).cdf(np.reshape(y, (-1, 1)))
        return (1 - self.share) * found + self.share * wide.reshape(shape)

    def draw(self, weights, places, centers, random_state):
        """A draw for each of (n, n_places) shares of the cumulated weights."""
        y = (
            centers[:, None]
            + self._values_at(weights, places)
            + self.noise(random_state, places.shape)
        )
        if self.bounds is not None:
            y = fold(y, *self.bounds)
        if self.share:
            rows, columns = np.nonzero(random_state.uniform(size=y.shape) < self.share)
            drawn = self.wide(centers[rows]).draw(random_state, len(rows))[:, 0]
            y[rows, columns] = np.where(np.isnan(y[rows, columns]), np.nan, drawn)
        return y

    def noise(self, random_state, shape):
        """Draws from the kernel, to be added to values."""
        return self.distribution.draw(random_state, shape) * self.bandwidth

    def _values_at(self, weights, places):
        """Values at (n, n_places) shares of the cumulated weights; NaN where these are."""
        found = np.full(places.shape, np.nan)
        for i, shares in enumerate(np.cumsum(weights, axis=1)):
            if not np.isnan(shares[-1]):
                drawn = np.searchsorted(shares, places[i] * shares[-1], side="right")
                found[i] = self.values[drawn]
        return found

    def quantiles(self, weights, probability, centers):
        """Places at which the distribution functions reach (n_places,) probabilities."""
        centers = centers[:, None]
        low = centers + self.values.min() - self._reach
        high = centers + self.values.max() + self._reach
        if self.share:
            # Beyond all kernels there is only the background.
            far = self._scale * t_quantile(probability)
            low = np.minimum(low, centers + self._center + np.minimum(far, 0))
            high = np.maximum(high, centers + self._center + np.maximum(far, 0))
        if self.bounds is not None:
            low, high = (np.clip(x, *self.bounds) for x in (low, high))
        rows = np.arange(len(weights))[:, None]

        def excess(y, row, probability):
            return self.cdf(weights[row], y, centers[row, 0]) - probability

        found = find_root(excess, (low, high), args=(rows, probability))
        # By rounding, the most extreme probabilities may be those of no place at all.
        ends = np.where(probability < 0.5, low, high)
        y = np.where(found.success, found.x, ends)
        return np.where(np.isnan(weights[:, :1]), np.nan, y)


def _images(y, bounds, reach):
    """Places, and their mirror images in bounds (low, high), as far as a kernel reaches."""
    if bounds is None:
        return [y]
    images = reflections(np.reshape(y, (-1, 1)), bounds[None], reach)
    return [image.reshape(np.shape(y)) for image in images]


def _mass_up_to(y, below, bounds, reach):
    """Mass of kernels up to places, of which `below` is the distribution function."""
    if bounds is None:
        return below(y)
    # From the lower bound to a place, and between their images.
    ends = y.clip(*bounds), np.float64(bounds[0])
    pairs = zip(*(_images(end, bounds, reach) for end in ends), strict=True)
    return sum(np.abs(below(image) - below(low)) for image, low in pairs)


@dataclass(frozen=True)
class Scale:
    """The scale on which rows are compared: some columns by logarithms of their distance."""

    # z = log(x - a + o) with a lower bound a, and -log(b - x + o) with an upper one b.

    bounds: Any  # (n_features, 2) or None
    offsets: Any  # (n_features,), NaN for columns as they are; or None

    @property
    def columns(self):
        """Columns of logarithms: position, sign, bound and offset of each."""
        if self.offsets is None:
            return []
        found = []
        for j in np.flatnonzero(~np.isnan(self.offsets)).tolist():
            low, high = self.bounds[j]
            lower = bool(np.isfinite(low))
            found.append((j, 1 if lower else -1, low if lower else high, self.offsets[j]))
        return found

    @property
    def ends(self):
        """The bounds on the scale."""
        if not self.columns:
            return self.bounds
        ends = self.bounds.copy()
        for j, sign, _, offset in self.columns:
            ends[j, 0 if sign > 0 else 1] = sign * np.log(offset)
        return ends

    def apply(self, X):
        """Rows on the scale."""
        if not self.columns:
            return X
        columns = list(X.T)
        for j, sign, bound, offset in self.columns:
            columns[j] = sign * np.log(sign * (X[:, j] - bound) + offset)
        return np.stack(columns, axis=1)  # of Dask too

    def invert(self, Z):
        """The rows at places on the scale."""
        columns = list(Z.T)
        for j, sign, bound, offset in self.columns:
            with np.errstate(over="ignore"):
                distance = np.exp(sign * Z[:, j]) - offset
            columns[j] = bound + sign * distance.clip(0, np.finfo(np.float64).max)
        return np.stack(columns, axis=1) if self.columns else Z

    def log_slopes(self, X):
        """Logarithms of the volume on the scale of a unit of volume, (n,)."""
        found = 0.0 * X[:, 0]
        for j, sign, bound, offset in self.columns:
            found = found - np.log(sign * (X[:, j] - bound) + offset)
        return found


@dataclass(frozen=True)
class DensityEstimate:
    """A density from kernels about rows."""

    keys: Any
    weights: Any  # None for 1
    kernel: Any
    columns: Any
    bandwidth: Any  # (n_features,)
    scale: Any  # on which the rows are
    background: Any  # center and scale of each column, or None
    row_factors: Any  # (n_keys,), on the bandwidths of numbers

    @property
    def mass(self):
        """Sum of the weights."""
        return len(self.keys) if self.weights is None else float(self.weights.sum())

    @property
    def wide(self):
        """The background, of rows in their units."""
        return Background(*self.background, self.columns, self.scale.bounds)

    @property
    def bounds(self):
        """Bounds of the rows, (n_features, 2), or None."""
        return self.scale.ends

    @property
    def share(self):
        """Mass of the background."""
        return background_share(len(self.keys), self.weights)

    @property
    def tables(self):
        """Kernels of categories at every level and key, by their columns."""
        columns = self.columns
        return {
            j: level_table(columns.kinds[j], columns.n_levels[j], self.bandwidth[j])[0]
            for j in columns.categorical
        }

    @property
    def is_adaptive(self):
        """True if factors differ from 1."""
        return not self.row_factors.min() == self.row_factors.max() == 1

    def take(self, rows):
        """The estimate from some of the rows, at the same bandwidths."""
        weights = None if self.weights is None else self.weights[rows]
        own = {"keys": self.keys[rows], "row_factors": self.row_factors[rows]}
        return replace(self, weights=weights, **own)

    def part(self, most, random_state):
        """The estimate from so many rows at most, at bandwidths as wide as these need."""
        n_rows = len(self.keys)
        if n_rows <= most:
            return self
        rows = draw_rows(n_rows, most, check_random_state(random_state))
        wider = 1 / narrower(n_rows / most, len(self.columns.numeric))
        return replace(self.take(rows), bandwidth=self._widths(wider))

    def factors(self, sensitivity, log_density):
        """Local factors of the rows, which have such a density."""
        # A row of weight 0 may lie where no other reaches; its factor does not matter.
        weights = np.isfinite(log_density) * (1.0 if self.weights is None else self.weights)
        log_density = np.where(weights == 0, 0.0, log_density)
        logs = sensitivity * (np.average(log_density, weights=weights) - log_density)
        logs /= np.log(2)
        steps = np.where(np.abs(logs) < _COARSE, _STEPS_OF_FACTORS, 1)
        return np.exp2(np.round(logs * steps) / steps)

    def log_density(self, X):
        """Logarithms of the density of rows within bounds, whose levels are known."""
        log_sums = [self._log_sums(image) for image in self._images(X)]
        return self._mixed(X, functools.reduce(np.logaddexp, log_sums) - np.log(self.mass))

    def cdf(self, X):
        """Probabilities of at most rows within bounds, whose levels are known, (n,)."""
        queries, keys = self._with_factors(self.scale.apply(X))
        masses = functools.partial(self._masses, KernelDistribution(self.kernel), self.tables)
        options = {"sample_weight": self.weights, "empty": "nan"}
        _, log_sums = attend(queries, keys, keys[:, :0], masses, **options)
        probability = np.exp(log_sums - np.log(self.mass))
        if self.background is None:
            return probability
        return (1 - self.share) * probability + self.share * self.wide.cdf(X)

    def _masses(self, distribution, tables, X, keys):
        """Mass of the kernel of each key that is at most each query, (n_queries, n_keys)."""
        columns, masses = self.columns, 1.0
        factors = keys[:, len(columns.kinds) :].prod(axis=1)
        for j in columns.numeric:
            widths, own = self.bandwidth[j] * factors, keys[:, j]

            def below(places, widths=widths, own=own):
                with np.errstate(over="ignore"):
                    return distribution.cdf((places[..., None] - own) / widths)

            bounds = None if self.bounds is None else self.bounds[j]
            reach = distribution.reach * widths.max()
            masses = masses * _mass_up_to(X[:, j], below, bounds, reach)
        for j, table in tables.items():
            table = table.cumsum(axis=0) if columns.kinds[j] == "ordered" else table
            levels, own = (x[:, j].astype(np.intp) for x in (X, keys))
            masses = masses * table[levels][:, own]
        return masses

    def left_out(self):
        """Logarithms of the density of each of the rows by all others."""
        images = list(self._images(self.keys))
        log_sums = functools.reduce(np.logaddexp, map(self._log_sums, images))
        log_own = functools.reduce(np.logaddexp, map(self._log_own, images))
        mass = self.mass - (1.0 if self.weights is None else self.weights)
        with np.errstate(divide="ignore"):
            others = np.log(-np.expm1(np.minimum(log_own - log_sums, 0.0)))
            return self._mixed(self.keys, log_sums + others - np.log(mass))

    def score(self):
        """Mean of that in units of the rows."""
        left_out = self.left_out() + self.scale.log_slopes(self.scale.invert(self.keys))
        return float(np.average(left_out, weights=self.weights))

    def _mixed(self, X, log_density):
        if self.background is None:
            return log_density
        own = self.scale.invert(X)
        log_background = self.wide.log_density(own) - self.scale.log_slopes(own)
        log_background = log_background + np.log(self.share)
        return np.logaddexp(log_density + np.log1p(-self.share), log_background)

    def _images(self, X):
        """Rows, and their mirror images in bounds as far as a kernel reaches."""
        widths = self._widths(self.row_factors.max())
        reach = kernel_reach(self.kernel) * widths
        return [X] if self.bounds is None else reflections(X, self.bounds, reach)

    def _widths(self, factor):
        """Bandwidths of numbers times a factor, and lambdas."""
        return np.where(self.columns.is_numeric, factor, 1.0) * self.bandwidth

    def _log_sums(self, X):
        """Logarithms of the sums of the kernels."""
        found = []
        for rows, factor in self._alike():
            kernel, divisors, weights, log_volume = self._kernels(rows, factor)
            keys = self.keys[rows]
            options = {"bandwidth": divisors, "sample_weight": weights, "empty": "nan"}
            _, log_sums = attend(X, keys, keys[:, :0], kernel, **options)
            found.append(log_sums - log_volume)
        return functools.reduce(np.logaddexp, found)

    def _log_own(self, X):
        """Logarithm of the kernel of each row at that row of a table."""
        found = np.full(len(self.keys), -np.inf)
        for rows, factor in self._alike():
            kernel, divisors, weights, log_volume = self._kernels(rows, factor)
            found[rows] = at_rows(kernel.log, X[rows] / divisors, self.keys[rows] / divisors)
            with np.errstate(divide="ignore"):
                found[rows] += (0.0 if weights is None else np.log(weights)) - log_volume
        return found

    def _alike(self):
        """Rows that have the same factor, and that."""
        if not self.is_adaptive:
            return [(slice(None), 1.0)]
        factors = self.row_factors
        if self.weights is not None:
            factors = np.where(self.weights > 0, factors, 0.0)
        return [(factors == own, own) for own in np.unique(factors) if own]

    def _kernels(self, rows, factor):
        """The kernel of rows of one factor, its divisors, weights and the log of its volume."""
        columns, widths = self.columns, self._widths(factor)
        weights = None if self.weights is None else self.weights[rows]
        kernel = mixed_kernel(ProductKernel(self.kernel), columns, widths)
        for j, table in self.tables.items():
            if columns.kinds[j] == "ordered":  # over all levels each row has mass 1
                own = table.diagonal()[self.keys[rows, j].astype(np.intp)]
                weights = own if weights is None else weights * own
        log_volume = np.log(widths[columns.is_numeric]).sum()
        return kernel, columns.divisors(widths), weights, log_volume

    def _with_factors(self, X):
        """Queries and rows, with the factors as one more column if they differ."""
        if not self.is_adaptive:
            return X, self.keys
        return np.column_stack([X, X[:, 0]]), np.column_stack([self.keys, self.row_factors])


def kernel_reach(kernel):
    """Return the distance, in bandwidths, beyond which a kernel is 0 or negligible."""
    if math.isfinite(kernel.support):
        return float(kernel.support)
    reach = 1.0
    while kernel.profile(np.float64(reach**2)) * reach > _NEGLIGIBLE:
        reach *= 1.25
        if reach > _LONGEST_REACH:
            raise ValueError(
                f"kernel={kernel!r} falls too slowly to be tabulated: choose a kernel with "
                "lighter tails, such as 'gaussian' or 'logistic'."
            )
    return reach
