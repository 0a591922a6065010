"""The wide background of a density estimate, and its bounds."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from .._column_stats import feature_std

# Quantiles between which the bulk of a column lies, and how many standard deviations of a
# normal column that is.
_BULK = 0.1, 0.9
NORMAL_BULK = 2.563


class Background(NamedTuple):
    """Product of Student's t with 2 degrees of freedom, as wide as the bulk of the rows.

    A number x has the density (2 + (x - m)^2 / s^2)^(-3/2) / s with the center m and the scale
    s of its column; levels of a category are equally likely. Within bounds the mass is 1.
    """

    center: Any  # m, (n_features,), or (n_features, n) if each row has its own
    scale: Any  # s, (n_features,)
    columns: Any
    bounds: Any = None  # (n_features, 2), or None

    def log_density(self, X):
        """Compute the log-densities of rows, (n,)."""
        # In partitions where the rows are.
        log_density = 0.0 * X[:, 0] - np.log(self._n_levels()).sum()
        for j in self.columns.numeric:
            center, scale = self.center[j], self.scale[j]
            # By halves, which do not overflow; nor does this root of the square.
            with np.errstate(over="ignore"):
                distance = np.hypot(np.sqrt(2), 2 * ((X[:, j] / 2 - center / 2) / scale))
            low, high = self._transformed_bounds(j)
            mass = np.log(scale) + np.log((high - low) / 2)
            log_density = log_density - 3 * np.log(distance) - mass
        return log_density

    def cdf(self, X):
        """Compute probabilities of at most the numbers and ordered levels of rows, (n,)."""
        probability = 1.0
        for j in self.columns.numeric:
            low, high = self._transformed_bounds(j)
            v = np.tanh(np.arcsinh((X[:, j] - self.center[j]) / self.scale[j] / np.sqrt(2)))
            probability = probability * (v.clip(low, high) - low) / (high - low)
        for j, n_levels in zip(self.columns.categorical, self._n_levels(), strict=True):
            below = X[:, j] if self.columns.kinds[j] == "ordered" else 0.0
            probability = probability * (below + 1) / n_levels
        return probability

    def draw(self, random_state, n):
        """Draw rows from the density, (n, n_features)."""
        X = np.empty((n, len(self.columns.kinds)))
        for j, n_levels in zip(self.columns.categorical, self._n_levels(), strict=True):
            X[:, j] = random_state.randint(n_levels, size=n)
        for j in self.columns.numeric:
            v = random_state.uniform(*self._transformed_bounds(j), size=n)
            X[:, j] = self.center[j] + self.scale[j] * t_quantile((v + 1) / 2)
        return X if self.bounds is None else X.clip(*self.bounds.T)

    def _n_levels(self):
        return [self.columns.n_levels[j] for j in self.columns.categorical]

    def _transformed_bounds(self, j):
        """Return the bounds of a column on (-1, 1), over which the density is uniform."""
        bounds = np.array([-np.inf, np.inf]) if self.bounds is None else self.bounds[j]
        z = (bounds.reshape(2, 1) - self.center[j]) / self.scale[j]  # of one center, or many
        return np.tanh(np.arcsinh(z / np.sqrt(2)))


def t_quantile(probability):
    """Compute quantiles of Student's t with 2 degrees of freedom."""
    v = 2 * np.asarray(probability) - 1
    return v * np.sqrt(2 / np.maximum((1 - v) * (1 + v), np.finfo(np.float64).tiny))


def bulk(X, columns, sample_weight=None):
    """Compute center and scale of each column: the median, and half the width of the bulk.

    If most rows are equal, the scale is the standard deviation. Categories have 0 and 1.
    """
    center, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if columns.numeric:
        X = np.asarray(X[:, columns.numeric], dtype=np.float64)
        levels, options = (_BULK[0], 0.5, _BULK[1]), {"axis": 0, "method": "inverted_cdf"}
        if sample_weight is not None:
            options["weights"] = sample_weight
        # From either side, so that a column and its negative have the same.
        quantiles = np.quantile(X, levels, **options) / 2
        quantiles -= np.quantile(-X, levels[::-1], **options) / 2
        half = quantiles[2] / 2 - quantiles[0] / 2
        rounding = 4 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
        center[columns.numeric] = quantiles[1]
        scale[columns.numeric] = np.where(half > rounding, half, feature_std(X, sample_weight))
    return center, scale


def background_share(n_samples, sample_weight=None):
    """Compute the mass of the background, 1 / (n + 1): that of one row more.

    For weighted rows, n is the number of equally weighted rows with the same variance.
    """
    if sample_weight is not None:
        shares = sample_weight / sample_weight.max()
        n_samples = np.square(shares.sum()) / np.square(shares).sum()
    return 1 / (1 + float(n_samples))


def mass_of_others(weights):
    """Compute the sum of the weights of all other rows, for each row."""
    masses, heaviest = weights.sum() - weights, weights.argmax()
    if masses[heaviest] < weights[heaviest]:  # a difference that has lost digits
        masses[heaviest] = np.delete(weights, heaviest).sum()
    return masses


def reflections(X, bounds, distances=0.0):
    """Yield the rows, then their mirror images in bounds (n_features, 2), as tables like X.

    Between two bounds images have images: the first ones, and all within `distances`
    (n_features,) of the bounds.
    """
    distances, images_of_columns = np.broadcast_to(distances, X.shape[1]), []
    for x, (low, high), distance in zip(X.T, bounds, distances, strict=True):
        images, extent = [x], high - low
        if np.isfinite(extent):
            for k in range(1, int(distance / extent) + 2):
                mirrored = [2 * low - x, 2 * high - x] if k % 2 else [x, x]
                shift = (k - k % 2) * extent
                images += [mirrored[0] - shift, mirrored[1] + shift]
        elif np.isfinite(low) or np.isfinite(high):
            images.append(2 * (low if np.isfinite(low) else high) - x)
        images_of_columns.append(images)
    for images in itertools.product(*images_of_columns):
        yield np.stack(images, axis=1)  # of Dask too


def fold(x, low, high):
    """Move numbers to where their mirror images lie within bounds."""
    if np.isfinite(high - low):
        x = low + np.abs((x - high) % (2 * (high - low)) - (high - low))
    elif np.isfinite(low):
        x = low + np.abs(x - low)
    elif np.isfinite(high):
        x = high - np.abs(high - x)
    return np.clip(x, low, high)
