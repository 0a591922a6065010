"""The background of a density estimate, and mirror images of rows in its bounds.

A density estimate is a mixture of a kernel density and of a background, a wide density that
gives every row some probability. The background has the mixing weight of one row more. Along a
numeric column it is Student's t with 2 degrees of freedom, whose distribution function is
elementary: with z = (x - center) / scale, the number v = tanh(arcsinh(z / sqrt(2))) has the
uniform distribution from -1 to 1, so that the probability of at most x is (1 + v) / 2.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from .._column_stats import feature_std

# The scale of a column is half the distance between these quantiles, and this is the distance
# for the standard normal distribution.
_QUANTILES = 0.1, 0.9
_NORMAL_QUANTILE_RANGE = 2.563
# If the background describes a larger fraction of the rows than this, bandwidths mean nothing.
# The fraction is 0 to 0.15 in ten columns, also with tails of t(2), and nearly 1 in more
# columns than the number of rows allows.
_MAX_BACKGROUND_WEIGHT = 0.5


class Background(NamedTuple):
    """Product of Student's t with 2 degrees of freedom for numbers, and uniform categories.

    A number x has the density (2 + (x - m)^2 / s^2)^(-3/2) / s with the center m and the scale
    s of its column; levels of a category are equally likely. Within bounds the density is
    truncated: its integral over them is 1.
    """

    center: Any  # m, (n_columns,), or (n_columns, n) if each row has its own
    scale: Any  # s, (n_columns,)
    columns: Any
    bounds: Any = None  # (n_columns, 2), or None

    def log_density(self, X):
        """Compute the log-densities of rows, (n,)."""
        # The sum starts from 0 * X, which keeps the type and the partitions of a Dask array.
        log_density = 0.0 * X[:, 0] - np.log(self._n_levels()).sum()
        for j in self.columns.numeric:
            center, scale = self.center[j], self.scale[j]
            # The density is root^-3 / scale with root = (2 + z^2)^(1/2). Halves of the numbers
            # are subtracted, and `hypot` squares z, so that no intermediate result overflows. z
            # itself may overflow, and the log-density is then -inf.
            with np.errstate(over="ignore"):
                root = np.hypot(np.sqrt(2), 2 * ((X[:, j] / 2 - center / 2) / scale))
            # The bounds become numbers from -1 to 1. The probability of the range between them
            # is (high - low) / 2. The density is divided by it, so that its integral over the
            # range is 1.
            low, high = self._uniform_bounds(j)
            log_divisor = np.log(scale) + np.log((high - low) / 2)
            log_density = log_density - 3 * np.log(root) - log_divisor
        return log_density

    def cdf(self, X):
        """Compute the distribution function at rows, (n,).

        This is the probability that each number, and each ordered level, is at most that of the
        row. An unordered category counts with the probability of its level.
        """
        probability = 1.0
        for j in self.columns.numeric:
            low, high = self._uniform_bounds(j)
            # The number v is uniform between `low` and `high`, the v of the bounds.
            v = np.tanh(np.arcsinh((X[:, j] - self.center[j]) / self.scale[j] / np.sqrt(2)))
            probability = probability * (v.clip(low, high) - low) / (high - low)
        for j, n_levels in zip(self.columns.categorical, self._n_levels(), strict=True):
            n_lower_levels = X[:, j] if self.columns.kinds[j] == "ordered" else 0.0
            probability = probability * (n_lower_levels + 1) / n_levels
        return probability

    def draw(self, random_state, n):
        """Draw rows from the density, (n, n_columns)."""
        X = np.empty((n, len(self.columns.kinds)))
        for j, n_levels in zip(self.columns.categorical, self._n_levels(), strict=True):
            X[:, j] = random_state.randint(n_levels, size=n)
        for j in self.columns.numeric:
            # The number v, which is between -1 and 1, is uniform between those of the bounds.
            v = random_state.uniform(*self._uniform_bounds(j), size=n)
            X[:, j] = self.center[j] + self.scale[j] * t_quantile((v + 1) / 2)
        # Rounding errors may move numbers beyond the bounds.
        return X if self.bounds is None else X.clip(*self.bounds.T)

    def _n_levels(self):
        """Return the number of levels of each category, in a list."""
        return [self.columns.n_levels[j] for j in self.columns.categorical]

    def _uniform_bounds(self, j):
        """Return the v of the bounds of a column, a pair of numbers or of arrays (n,)."""
        bounds = np.array([-np.inf, np.inf]) if self.bounds is None else self.bounds[j]
        # The bounds become a column, since the center of a column of X may be an array (n,).
        z = (bounds.reshape(2, 1) - self.center[j]) / self.scale[j]
        return np.tanh(np.arcsinh(z / np.sqrt(2)))


def t_quantile(probability):
    """Compute quantiles of Student's t with 2 degrees of freedom."""
    v = 2 * np.asarray(probability) - 1
    return v * np.sqrt(2 / np.maximum((1 - v) * (1 + v), np.finfo(np.float64).tiny))


def center_and_scale(X, columns, sample_weight=None):
    """Compute center and scale of the background in each column, (n_columns,) each.

    The center is the median. The scale is half the distance between the quantiles 0.1 and 0.9,
    or the standard deviation if these are equal. Categories have the center 0 and the scale 1.
    """
    center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if columns.numeric:
        X = np.asarray(X[:, columns.numeric], dtype=np.float64)
        levels = _QUANTILES[0], 0.5, _QUANTILES[1]
        options = {"axis": 0, "method": "inverted_cdf", "weights": sample_weight}
        # The mean of quantiles from below and from above is taken, so that a column and its
        # negative have the same scale.
        quantiles = np.quantile(X, levels, **options) / 2
        quantiles -= np.quantile(-X, levels[::-1], **options) / 2
        half = quantiles[2] / 2 - quantiles[0] / 2
        # A smaller distance is a rounding error: the quantiles are equal.
        rounding = 4 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
        center[columns.numeric] = quantiles[1]
        scale[columns.numeric] = np.where(half > rounding, half, feature_std(X, sample_weight))
    return center, scale


def normal_std(scale):
    """Return the standard deviation of a normal distribution that has a scale."""
    return 2 * scale / _NORMAL_QUANTILE_RANGE


def background_mixing_weight(n_samples, sample_weight=None):
    """Compute the mixing weight of the background, 1 / (n + 1): that of one row more.

    For weighted rows, n is the effective number of rows, (sum w)^2 / sum w^2.
    """
    if sample_weight is not None:
        relative_weights = sample_weight / sample_weight.max()
        n_samples = np.square(relative_weights.sum()) / np.square(relative_weights).sum()
    return 1 / (1 + float(n_samples))


def leave_one_out_mass(weights):
    """Compute for each row the sum of the weights of all other rows, (n,)."""
    masses, heaviest = weights.sum() - weights, weights.argmax()
    # If one row has most of the weight, its difference has lost digits and is summed instead.
    if masses[heaviest] < weights[heaviest]:
        masses[heaviest] = np.delete(weights, heaviest).sum()
    return masses


def background_warnings(weight, n_rows, n_columns):
    """Return a list with a warning if the background describes a large fraction of the rows.

    `weight` is the fraction that it describes better than the other rows do.
    """
    if weight <= _MAX_BACKGROUND_WEIGHT:
        return []
    return [
        f"bandwidth='likelihood': a wide background describes {weight:.0%} of {n_rows} rows "
        "better than all other rows do, which are no basis of a choice in "
        f"{n_columns} columns. Pass fewer columns, more rows, or 'scott'."
    ]


def reflections(X, bounds, distances=0.0):
    """Yield X, and then tables (n, n_columns) of the mirror images of its rows in the bounds.

    `bounds` is (n_columns, 2), infinite where there is no bound. If several columns have
    bounds, there is a table for each combination of the images of the columns. A column between
    two bounds has infinitely many images. Only the first one beyond each bound is yielded, and
    all that lie within `distances` (n_columns,) of a bound.
    """
    distances, images_of_columns = np.broadcast_to(distances, X.shape[1]), []
    for x, (low, high), distance in zip(X.T, bounds, distances, strict=True):
        images, extent = [x], high - low
        if np.isfinite(extent):
            # The images of order k lie from (k - 1) to k extents beyond either bound. With odd
            # k they are mirrored; with even k they are shifted.
            for k in range(1, int(distance / extent) + 2):
                below, above = (2 * low - x, 2 * high - x) if k % 2 else (x, x)
                shift = (k - k % 2) * extent
                images += [below - shift, above + shift]
        elif np.isfinite(low) or np.isfinite(high):
            images.append(2 * (low if np.isfinite(low) else high) - x)
        images_of_columns.append(images)
    for images in itertools.product(*images_of_columns):
        yield np.stack(images, axis=1)  # a Dask array if X is one


def fold(x, low, high):
    """Reflect numbers at bounds, which may be infinite, until they lie within them."""
    if np.isfinite(high - low):
        # The distance from `low` is a triangle wave of x with the period 2 (high - low).
        x = low + np.abs((x - high) % (2 * (high - low)) - (high - low))
    elif np.isfinite(low):
        x = low + np.abs(x - low)
    elif np.isfinite(high):
        x = high - np.abs(high - x)
    return np.clip(x, low, high)
