"""Means, standard deviations, squares and ranges of columns, for any number of rows.

Rows may lie in memory, in a memory map, which is read block by block, or in partitions of Dask.
Rows of weight 0 are ignored.
"""

from typing import NamedTuple

import numpy as np

from ._blocks import blocks, merge_present
from ._partitions import reduce_rows

# A number is an outlier if it is more than _OUTLIER_FACTOR times the distance between two
# quantiles away from the nearer one. The quantiles are computed from at most _MAX_SAMPLED rows.
# With the factor 100 hardly any lognormal or Cauchy number is an outlier; with 5, tails of 4 %
# of the rows lost their shape.
_QUANTILES, _MAX_SAMPLED, _OUTLIER_FACTOR = (0.05, 0.95), 2000, 100.0
# A prime. Rows are sampled by steps of this length, so that periodic rows do no harm.
_STEP = 1_000_003


class ColumnStats(NamedTuple):
    """Statistics of columns over the rows of positive weight."""

    mass: float  # sum of the weights, or number of rows
    mean: np.ndarray  # of each column, (n_columns,)
    std: np.ndarray  # standard deviation of each column, (n_columns,)
    largest: np.ndarray  # largest absolute value of each column, (n_columns,)


def column_stats(X, weights=None):
    """Compute the ColumnStats of rows anywhere; None if no row has weight."""
    return reduce_rows(stats_in_memory, merge_stats, X, weights)


def feature_std(X, weights=None):
    """Compute the positive standard deviation of each feature, (n_features,)."""
    return checked_std(column_stats(X, weights))


def stats_in_memory(X, weights=None):
    """Compute the ColumnStats of rows in memory or in a map; None if no row has weight."""
    return merge_present(
        merge_stats,
        (
            _block_stats(X[block], None if weights is None else weights[block])
            for block in blocks(len(X))
        ),
    )


def merge_stats(a, b):
    """Compute the ColumnStats of all rows from those of two disjoint sets of rows."""
    mass = a.mass + b.mass
    share_a, share_b = a.mass / mass, b.mass / mass
    mean = share_a * a.mean + share_b * b.mean
    within = np.hypot(np.sqrt(share_a) * a.std, np.sqrt(share_b) * b.std)
    # The means are halved, so that their difference does not overflow.
    between = 2 * np.sqrt(share_a * share_b) * np.abs(b.mean / 2 - a.mean / 2)
    largest = np.maximum(a.largest, b.largest)
    return ColumnStats(mass, mean, np.hypot(within, between), largest)


def mean_and_scale(X, weights=None):
    """Compute the mean and the standard deviation of columns, for standardization.

    The standard deviation is 1 for a column that is constant up to rounding. Without any weight
    the means are 0 and the standard deviations 1.
    """
    stats = stats_in_memory(X, weights) if X.size else None
    if stats is None:
        return np.zeros(X.shape[1:]), np.ones(X.shape[1:])
    exceeds_rounding = stats.std > 1e-12 * stats.largest
    return stats.mean, np.where(exceeds_rounding, stats.std, 1.0)


def replace_zeros(sizes):
    """Replace zeros by 1, so that the sizes can divide; sizes are not negative."""
    return np.where(sizes > 0, sizes, 1.0)


def mean_squares(X, weights=None):
    """Compute the mean square of each column of rows anywhere, (n_columns,)."""
    stats = column_stats(X, weights)
    return stats.std**2 + stats.mean**2


def min_max_sum(x, weights=None):
    """Compute the minimum, maximum and sum of each column over rows of positive weight.

    The sum is not weighted.
    """
    return reduce_rows(_min_max_sum, _merge_min_max_sum, x, weights)


def is_outlier(X, weights=None):
    """Return a mask (n_rows, n_columns) of numbers that are very far from most of their column.

    Numbers in rows without weight are no outliers.
    """
    # Compute the limits from the quantiles of a sample.
    rows = np.arange(min(len(X), _MAX_SAMPLED)) * _STEP % len(X)
    rows = rows if weights is None else rows[weights[rows] > 0]
    ordered = np.sort(X[rows if len(rows) else slice(None)], axis=0)
    low, high = (ordered[round(p * (len(ordered) - 1))] for p in _QUANTILES)
    with np.errstate(over="ignore"):
        margin = np.where(high > low, _OUTLIER_FACTOR * (high - low), np.inf)
        low, high = low - margin, high + margin
    # Compare each number only if the minimum or the maximum of a column is an outlier.
    smallest, largest = min_max_sum(X, weights)[:2]
    if (smallest >= low).all() and (largest <= high).all():
        return np.broadcast_to(np.False_, X.shape)  # takes no memory
    has_weight = True if weights is None else (weights > 0)[:, None]
    return ((X < low) | (X > high)) & has_weight


def _min_max_sum(x, weights):
    x = x if weights is None else x[weights > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        return (x.min(axis=0), x.max(axis=0), x.sum(axis=0)) if len(x) else None


def _merge_min_max_sum(a, b):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] + b[2]


def std_above_rounding(stats):
    """Return standard deviations, 0 for columns that are constant up to rounding."""
    rounding = 4 * np.finfo(np.float64).eps * stats.largest
    return np.where(stats.std > rounding, stats.std, 0.0)


def positive_std(stats):
    """Return standard deviations, 1 for columns that are constant up to rounding."""
    return replace_zeros(std_above_rounding(stats))


def checked_std(stats, name="X"):
    """Return `positive_std`, and raise ValueError if one is too small for a bandwidth.

    `name` is that of the table in the message.
    """
    std = positive_std(stats)
    tiny = np.flatnonzero(std < np.finfo(np.float64).tiny)
    if len(tiny):
        raise ValueError(
            f"{name} has a standard deviation of {std[tiny[0]]:.3g} in the columns "
            f"{tiny.tolist()}, too small for a bandwidth: multiply them by a large number."
        )
    return std


def order_columns(X, values):
    """Order columns by their moments, so that the order in the table does not matter.

    Returns positions (n_columns,) of the columns of X (n, n_columns); `values` (n, n_outputs)
    are the targets.
    """
    Z, values = standardize(X), standardize(values)
    moments = [np.mean(Z**power, axis=0) for power in (3, 4)]
    # In balanced designs the moments of all columns are equal. So the order also depends on
    # products of columns with values, and on products of two columns with values.
    single = np.abs(np.stack([Z.T @ values, (Z**2).T @ values])).sum(axis=2)
    pairs = sum(np.abs((Z.T * output) @ Z) for output in values.T).sum(axis=1)
    keys = np.stack([*moments, *single / len(Z), pairs / len(Z)])
    # Keys are rounded, since sums of the same numbers in another order differ in their last
    # digits.
    return np.lexsort(np.round(keys[::-1], 9))


def standardize(X):
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0."""
    stats = stats_in_memory(X)
    std = positive_std(stats)
    return X / std - stats.mean / std


def _block_stats(X, weights):
    """Compute the ColumnStats of a block of rows; None if no row has weight."""
    if weights is not None:
        X, weights = X[weights > 0], weights[weights > 0]
    if not len(X):
        return None
    max_weight = 1.0 if weights is None else weights.max()
    X = np.asarray(X, dtype=np.float64)
    largest = np.abs(X).max(axis=0)
    # Columns are divided by powers of two, so that no sum or square overflows or vanishes.
    exponent = np.frexp(largest)[1]
    scaled = np.ldexp(X, -exponent)
    relative_weights = None if weights is None else weights / max_weight
    # The first row is subtracted, so that the mean of a constant is exactly the constant.
    mean = scaled[0] + np.average(scaled - scaled[0], axis=0, weights=relative_weights)
    std = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=relative_weights))
    mass = float(len(X))
    if weights is not None:
        mass = float(relative_weights.sum()) * float(max_weight)
    return ColumnStats(mass, np.ldexp(mean, exponent), np.ldexp(std, exponent), largest)
