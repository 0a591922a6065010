"""Averages and local lines with 50 digits, as defined and without any regard for rounding."""

import mpmath
import numpy as np
from mpmath import mpf

mpmath.mp.dps = 50
# The definitions' own numbers: the variance below which a direction is thin, 1e6 roundings of
# a double, and the square of the distance at which polynomials are read, for each term.
_THIN, _ROUNDING, _FURTHEST = mpf("1e-4"), mpf(10) ** 6 * mpf(2) ** -52, 9


def numbers(table):
    """Nested lists of the same numbers with more digits."""
    return [numbers(row) for row in table] if np.ndim(table) else mpf(float(table))


def _of_distance(profile):
    return lambda u: profile(mpmath.sqrt(mpmath.fsum(x * x for x in u)))


KERNELS = {
    "gaussian": _of_distance(lambda r: mpmath.exp(-r * r / 2) / mpmath.sqrt(2 * mpmath.pi)),
    "logistic": _of_distance(lambda r: 1 / (mpmath.exp(r) + 2 + mpmath.exp(-r))),
    "matern32": _of_distance(
        lambda r: (1 + r * mpf(3) ** 0.5) * mpmath.exp(-r * mpf(3) ** 0.5)
    ),
    "epanechnikov": _of_distance(lambda r: mpf(3) / 4 * max(1 - r * r, 0)),
    "laplacian": lambda u: mpmath.exp(-mpmath.fsum(map(abs, u))),
}


def exact_weights(kernel, query, keys, bandwidth, sample_weight):
    """Weights of all keys at a query, all of them as :func:`numbers` makes them."""
    return [
        weight * KERNELS[kernel]([(a - b) / bandwidth for a, b in zip(query, key, strict=True)])
        for key, weight in zip(keys, sample_weight, strict=True)
    ]


def exact_average(weights, columns):
    """Weighted averages of columns (n_keys, p)."""
    total = mpmath.fsum(weights)
    shares = [weight / total for weight in weights]
    return [
        mpmath.fdot(zip(shares, column, strict=True)) for column in zip(*columns, strict=True)
    ]


def exact_deviations(keys, sample_weight):
    """Weighted deviations of keys along each axis; infinite where there is none."""
    mean = exact_average(sample_weight, keys)
    squares = [[(x - a) ** 2 for x, a in zip(key, mean, strict=True)] for key in keys]
    found = map(mpmath.sqrt, exact_average(sample_weight, squares))
    return [x if x > mpf("1e-60") else mpmath.inf for x in found]


def exact_line(query, keys, values, weights, unit):
    """Value at a query and slopes (p, d) of the local line, and the squared distance.

    The unit has one number for each feature, in those of the features.
    """
    u = [[(x - q) / h for x, q, h in zip(key, query, unit, strict=True)] for key in keys]
    mean, average = exact_average(weights, u), exact_average(weights, values)
    centred = [[x - a for x, a in zip(row, mean, strict=True)] for row in u]
    deviations = [[v - a for v, a in zip(row, average, strict=True)] for row in values]
    axes = range(len(mean))
    covariance = mpmath.matrix(
        [exact_average(weights, [[row[i] * x for x in row] for row in centred]) for i in axes]
    )
    with_values = [
        exact_average(
            weights,
            [[row[i] * v for v in own] for row, own in zip(centred, deviations, strict=True)],
        )
        for i in axes
    ]
    largest = max(1, *exact_average(weights, [[x * x for x in row] for row in u]))
    least = max(_THIN, _ROUNDING * largest * max(map(abs, mean)))
    smallest = min(mpmath.eigsy(covariance, eigvals_only=True))
    for i in axes:
        covariance[i, i] += max(0, least - smallest)
    inverse = mpmath.inverse(covariance)
    slopes, pull = inverse * mpmath.matrix(with_values), inverse * mpmath.matrix(mean)
    distance = mpmath.fdot(zip(pull, mean, strict=True))
    furthest = _FURTHEST * len(mean)
    read = mpmath.sqrt(furthest / distance) if distance > furthest else 1
    columns = range(len(average))
    value = [
        average[c] - read * mpmath.fsum(mean[i] * slopes[i, c] for i in axes) for c in columns
    ]
    return value, [[slopes[i, c] / unit[i] for i in axes] for c in columns], distance
