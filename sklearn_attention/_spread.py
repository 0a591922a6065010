"""Means and deviations of columns, however many rows there are."""

from typing import NamedTuple

import numpy as np

from ._blocks import blocks, merged
from ._partitions import over

# The numbers of most rows lie between two quantiles, which are computed of 2000 rows at most. A
# number is an outlier if it is a hundred times the distance of the quantiles away from them.
# Hardly any lognormal or Cauchy number is that far; with a limit of five times, tails of 4 % of
# the rows lost their shape.
_MOST_ROWS, _TELLING_ROWS, _OUTLYING = (0.05, 0.95), 2000, 100.0


class Spread(NamedTuple):
    """Mean, standard deviation and largest absolute value of columns over rows of some mass."""

    mass: float
    mean: np.ndarray
    deviation: np.ndarray
    largest: np.ndarray


def whole_spread(X, weights=None):
    """Spread of all rows, block by block, or partition by partition; None as for `spread`."""
    return over(spread, join_spreads, X, weights)


def feature_spread(X, weights=None):
    """Positive standard deviation of each feature, (n_features,)."""
    return feature_deviation(whole_spread(X, weights))


def spread(X, weights=None):
    """Spread of rows in memory, or in a map; None if nothing has weight."""
    return merged(
        join_spreads,
        (_of_block(X[s], None if weights is None else weights[s]) for s in blocks(len(X))),
    )


def join_spreads(a, b):
    """Spread of the rows of both."""
    mass = a.mass + b.mass
    share_a, share_b = a.mass / mass, b.mass / mass
    mean = share_a * a.mean + share_b * b.mean
    within = np.hypot(np.sqrt(share_a) * a.deviation, np.sqrt(share_b) * b.deviation)
    # In halves, whose difference does not overflow.
    between = 2 * np.sqrt(share_a * share_b) * np.abs(b.mean / 2 - a.mean / 2)
    largest = np.maximum(a.largest, b.largest)
    return Spread(mass, mean, np.hypot(within, between), largest)


def level_and_spread(X, weights=None):
    """Mean of columns, and a deviation that may divide: 1 where there is only rounding.

    0 and 1 where nothing has weight.
    """
    found = spread(X, weights) if X.size else None
    if found is None:
        return np.zeros(X.shape[1:]), np.ones(X.shape[1:])
    clear = found.deviation > 1e-12 * found.largest
    return found.mean, np.where(clear, found.deviation, 1.0)


def dividing(spread):
    """Spreads that may divide: 1 in the place of 0."""
    return np.where(spread > 0, spread, 1.0)


def mean_squares(X, weights=None):
    """Mean square of each column, over any number of rows."""
    found = whole_spread(X, weights)
    return found.deviation**2 + found.mean**2


def ends(x, weights=None):
    """Smallest and largest number of each column, over rows of positive weight, and the sum."""
    return over(_ends, _joined_ends, x, weights)


def outlying(X, weights=None):
    """Return a mask (n_rows, n_columns) of numbers that are very far from most of their column.

    Numbers in rows without weight are no outliers.
    """
    # By steps of a prime, so that it does not matter if rows are periodic.
    rows = np.arange(min(len(X), _TELLING_ROWS)) * 1_000_003 % len(X)
    rows = rows if weights is None else rows[weights[rows] > 0]
    ordered = np.sort(X[rows if len(rows) else slice(None)], axis=0)
    low, high = (ordered[round(share * (len(ordered) - 1))] for share in _MOST_ROWS)
    with np.errstate(over="ignore"):
        reach = np.where(high > low, _OUTLYING * (high - low), np.inf)
        low, high = low - reach, high + reach
    smallest, largest = ends(X, weights)[:2]
    if (smallest >= low).all() and (largest <= high).all():
        return np.broadcast_to(False, X.shape)  # takes no memory
    present = True if weights is None else (weights > 0)[:, None]
    return ((X < low) | (X > high)) & present


def _ends(x, weights):
    x = x if weights is None else x[weights > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        return (x.min(axis=0), x.max(axis=0), x.sum(axis=0)) if len(x) else None


def _joined_ends(a, b):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] + b[2]


def deviation_of(spread):
    """Standard deviations, 0 for columns that are constant but for rounding."""
    # Rounding errors of a constant are no spread.
    rounding = 4 * np.finfo(np.float64).eps * spread.largest
    return np.where(spread.deviation > rounding, spread.deviation, 0.0)


def positive_deviation(spread):
    """Standard deviations, and 1 for a constant feature."""
    return dividing(deviation_of(spread))


def feature_deviation(spread, name="X"):
    """As `positive_deviation`, of features X; refuses what is too small for bandwidths."""
    deviation = positive_deviation(spread)
    small = np.flatnonzero(deviation < np.finfo(np.float64).tiny)
    if len(small):
        raise ValueError(
            f"{name} has a standard deviation of {deviation[small[0]]:.3g} in the columns "
            f"{small.tolist()}, too small for a bandwidth: multiply them by a large number."
        )
    return deviation


def own_order(X, values):
    """Order columns by their moments, in the same way wherever they stand in the table."""
    Z, values = (standardized(table) for table in (X, values))
    moments = [np.mean(Z**power, axis=0) for power in (3, 4)]
    # With values, and in products of two columns with them: designs are balanced.
    alone = np.abs(np.stack([Z.T @ values, (Z**2).T @ values])).sum(axis=2)
    pairs = sum(np.abs((Z.T * own) @ Z) for own in values.T).sum(axis=1)
    keys = np.stack([*moments, *alone / len(Z), pairs / len(Z)])
    # Rounded, since sums of the same numbers in another order differ in their last digits.
    return np.lexsort(np.round(keys[::-1], 9))


def standardized(X):
    """Columns of mean 0 and deviation 1; constant ones of 0."""
    found = spread(X)
    deviation = positive_deviation(found)
    return X / deviation - found.mean / deviation


def _of_block(X, weights):
    if weights is not None:
        X, weights = X[weights > 0], weights[weights > 0]
    if not len(X):
        return None
    heaviest = 1.0 if weights is None else weights.max()
    X = np.asarray(X, dtype=np.float64)
    largest = np.abs(X).max(axis=0)
    # In units of a power of two, so that no sum or square overflows, and none vanishes.
    exponent = np.frexp(largest)[1]
    scaled = np.ldexp(X, -exponent)
    shares = None if weights is None else weights / heaviest
    # From the first row, so that the mean of a constant is the constant.
    mean = scaled[0] + np.average(scaled - scaled[0], axis=0, weights=shares)
    deviation = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=shares))
    mass = float(len(X)) if weights is None else float(shares.sum()) * float(heaviest)
    return Spread(mass, np.ldexp(mean, exponent), np.ldexp(deviation, exponent), largest)
