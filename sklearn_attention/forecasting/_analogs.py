"""Analogs: kernel-weighted averages of what followed similar windows of all series."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from .._explanation import heaviest
from ..kernels import Kernel, RadialKernel
from ._origins import chunks
from ._windows import Windows, by_group

# Windows that a series needs to have to be forecast from its own.
FEWEST_OWN = 20
# Pairs of windows at once, which stay in cache, and pairs by steps to forecast.
PAIRS, _TERMS = 2**16, 4_000_000
# Windows that vary less than this share of the median one of their series are no analogs: what
# followed them would be measured in a unit close to 0.
_LEAST_VARIATION = 0.1


@dataclass(frozen=True, eq=False)
class Analogs:
    """Remembered windows of training series, with what followed them.

    Attributes
    ----------
    lookback : int
        Steps of a window.
    kernel : Kernel
        Compares windows; positive.
    normalize : {"standard", "last", None}
        How windows are made alike.
    scale : ndarray of shape (n_series,)
        Unit of each training series, for "last" and several series.
    bandwidth : ndarray of shape (n_columns,)
        Divides the columns of keys.
    pooled : bool
        Whether a series is forecast from the windows of all series or from its own.
    keys : ndarray of shape (n_windows, n_columns)
        The steps of each window, then features of these steps that are known only up to now,
        then known features of the steps that followed.
    values : ndarray of shape (n_windows, horizon)
        What followed, in units of the window.
    series, steps : ndarray of int of shape (n_windows,)
        Which training series each window is of, ascending, and the position on their common
        index of the first step that followed.
    """

    lookback: int
    kernel: Kernel
    normalize: str | None
    scale: np.ndarray
    bandwidth: np.ndarray | None = None
    pooled: bool = True
    keys: np.ndarray | None = None
    values: np.ndarray | None = None
    series: np.ndarray | None = None
    steps: np.ndarray | None = None

    def fit(self, origins):
        """The same with the windows before origins, which are ordered by series, as memory."""
        windows = self.windows(self.comparable(origins))
        origins = windows.origins
        return replace(
            self, keys=windows.keys, values=windows.values, series=origins.series,
            steps=first_steps(origins),
        )  # fmt: skip

    def forecast(self, origins, levels=None):
        """Forecasts, (n, horizon), and quantiles of levels, (n, horizon, n_levels), or None."""
        queries, quantiles = self.windows(origins), None
        mean = np.empty((len(origins), origins.horizon))
        if levels is not None:
            quantiles = np.empty((*mean.shape, len(levels)))
        # Values are sorted once for many origins.
        most = PAIRS if levels is None else _TERMS
        for rows, memory in self.memories(origins):
            values = self.values[memory]
            # Relative to one of them, values that are all alike have no rounding errors.
            first, differences = values[0], values - values[0]
            for part in chunks(rows, most, len(values)):
                weights = self.weights(memory, queries.keys[part])
                mean[part] = first + weights @ differences
                if levels is not None:
                    quantiles[part] = distribution_quantiles(weights, values, levels)
        if levels is not None:
            quantiles = queries.restore(quantiles)
        return queries.restore(mean), quantiles

    def heaviest(self, origins, k):
        """Rows of origins, each k times, their heaviest windows, and the weights of these."""
        keys, parts = self.windows(origins).keys, []
        for rows, memory in self.memories(origins):
            n_windows, weights_of = memory.stop - memory.start, partial(self.weights, memory)
            found, weights = heaviest(weights_of, keys[rows], n_windows, k)
            repeated = np.repeat(rows, found.shape[1])
            parts.append((repeated, memory.start + found.ravel(), weights.ravel()))
        rows, found, weights = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], found[order], weights[order]

    def windows(self, origins):
        """Windows before origins, as they are compared."""
        # Series of different sizes are only alike in units of their own.
        own = self.normalize == "last" and len(self.scale) > 1
        unit = origins.units(self.scale)[:, None] if own else 1.0
        return Windows.before(origins, self.lookback, self.normalize, unit)

    def comparable(self, origins):
        """Those of origins whose windows vary enough for what followed to be in their unit."""
        if self.normalize != "standard":
            return origins
        deviation = origins.past(self.lookback).std(axis=1)
        kept = np.empty(len(origins), dtype=bool)
        for _, rows in by_group(origins.series):
            kept[rows] = deviation[rows] >= _LEAST_VARIATION * np.median(deviation[rows])
        return origins.take(kept)

    def memories(self, origins):
        """Rows of origins, each time with the slice of windows that they are forecast from."""
        own = np.where(self.pooled, -1, origins.identity)
        counts = np.bincount(self.series, minlength=len(self.scale))
        own = np.where(counts[own] >= FEWEST_OWN, own, -1)
        for i, rows in by_group(own):
            ends = np.searchsorted(self.series, [i, i + 1]) if i >= 0 else (0, len(self.keys))
            yield rows, slice(*ends)

    def weights(self, memory, queries):
        """Weights of a slice of windows for queries, (n_queries, n_windows); rows sum to 1."""
        keys, bandwidth = self.keys[memory], self.bandwidth
        squared = cdist(queries / bandwidth, keys / bandwidth, "sqeuclidean")
        return normalized(log_kernel(self.kernel, squared, queries, keys, bandwidth), squared)


def first_steps(origins):
    """First steps to forecast, on the index that is common to all series."""
    return origins.table.starts[origins.series] + origins.known


def log_kernel(kernel, squared, queries, keys, bandwidth):
    """Logarithm of a kernel between rows whose squared distances in bandwidths are known.

    Raises if it takes negative values, which is not known of all kernels beforehand.
    """
    if isinstance(kernel, RadialKernel):
        return kernel.log_profile(squared)
    queries, keys = (kernel.rescale(rows, bandwidth) for rows in (queries, keys))
    refuse_negative(kernel.signed is None and (kernel(queries, keys) < 0).any(), kernel)
    return kernel.log(queries, keys)


def refuse_negative(negative, kernel):
    """Raise if a kernel takes negative values."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, with which what followed is not "
            "averaged: choose a positive kernel, such as 'gaussian'."
        )


def normalized(weights, squared, apart=True):
    """Weights (n, m) of windows that are `apart`, whose rows sum to 1, from their logarithms.

    These are overwritten. Where none has weight the nearest by squared distances have.
    """
    np.copyto(weights, -np.inf, where=np.logical_not(apart))
    largest = weights.max(axis=1, keepdims=True)
    empty = np.isneginf(largest[:, 0])
    if empty.any():
        distances = np.where(apart, squared, np.inf)[empty]
        nearest = distances == distances.min(axis=1, keepdims=True)
        weights[empty], largest[empty] = np.where(nearest, 0.0, -np.inf), 0.0
    weights -= largest
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def distribution_quantiles(weights, values, levels):
    """Quantiles of values (n, horizon) under each row of weights (n_queries, n).

    The smallest values whose weight, with that of all smaller ones, reaches each level;
    (n_queries, horizon, n_levels).
    """
    order, levels = np.argsort(values, axis=0).T, np.asarray(levels)
    found = np.empty((len(weights), len(order), len(levels)))
    for steps in chunks(np.arange(len(order)), _TERMS, weights.size):
        ascending = order[steps]
        reached = np.cumsum(weights[:, ascending], axis=2)
        first = _first_reaching(reached, levels * reached[:, :, -1:])
        places = np.take_along_axis(values.T[steps], ascending, axis=1)
        found[:, steps] = np.take_along_axis(places[None], first, axis=2)
    return found


def _first_reaching(ascending, targets):
    """First positions on the last axis that reach targets, the last where none does."""
    low = np.zeros(targets.shape, dtype=np.int64)
    high = np.full(targets.shape, ascending.shape[-1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        less = np.take_along_axis(ascending, middle, axis=-1) < targets
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    return low
