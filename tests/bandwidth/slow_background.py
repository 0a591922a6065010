"""The wide background of densities, and sums in bounds, one number at a time."""

import math

import numpy as np
from scipy.stats import t

from sklearn_attention import Columns


def slow_background(X, x, columns=None, weights=None, bounds=None):
    """Its share beside some rows, and its density at a row."""
    columns = columns or Columns.numbers(X.shape[1])
    weights = np.ones(len(X)) if weights is None else weights
    density = 1.0
    for j, kind in enumerate(columns.kinds):
        if kind != "numeric":
            density /= columns.n_levels[j]
            continue
        low, center, high = (_quantile(X[:, j], level, weights) for level in (0.1, 0.5, 0.9))
        component = t(2, center, (high - low) / 2)
        ends = (-math.inf, math.inf) if bounds is None else bounds[j]
        density *= component.pdf(x[j]) / (component.cdf(ends[1]) - component.cdf(ends[0]))
    return 1 / (1 + weights.sum() ** 2 / (weights**2).sum()), density


def _quantile(x, level, weights):
    """Mean of the first value with so much weight up to it, and the last from it on."""
    order = np.argsort(x)
    x, shares = x[order], np.cumsum(weights[order]) / weights.sum()
    first = x[np.flatnonzero(shares >= level - 1e-12)[0]]
    below = np.append(0, shares[:-1])
    last = x[np.flatnonzero(below <= level + 1e-12)[-1]]
    return (first + last) / 2
