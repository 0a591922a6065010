"""Means and deviations of columns, however many rows there are."""

from typing import NamedTuple

import numpy as np

from ._blocks import blocks
from ._partitions import in_memory, is_partitioned, merged, partitions, reduced


class Spread(NamedTuple):
    """Mean and standard deviation of columns over some rows, which those of others may join.

    Attributes
    ----------
    mass : float
        Sum of the weights.
    mean, deviation : ndarray of shape (n_columns,)
    largest : ndarray of shape (n_columns,)
        The largest absolute value.
    """

    mass: float
    mean: np.ndarray
    deviation: np.ndarray
    largest: np.ndarray


def mean_and_deviation(X, weights=None):
    """Mean and standard deviation of each column, block by block of rows.

    Parameters
    ----------
    X : ndarray or dask.array.Array of shape (n_samples, n_columns)
        May be a memory map.
    weights : ndarray of shape (n_samples,), default=None

    Returns
    -------
    mean : ndarray of shape (n_columns,)
    deviation : ndarray of shape (n_columns,)
        0 for a column that is constant but for rounding.
    """
    if is_partitioned(X):
        (found,) = in_memory(reduced(spread, join_spreads, partitions(X, weights)))
    else:
        found = spread(X, weights)
    return found.mean, deviation_of(found)


def feature_spread(X, weights=None):
    """Standard deviation of each feature, and 1 for one that is constant, (n_features,).

    Always positive: a constant feature tells no rows apart at any bandwidth.
    """
    _, deviation = mean_and_deviation(X, weights)
    return np.where(deviation > 0, deviation, 1.0)


def spread(X, weights=None):
    """Mean and deviation of the columns of rows in memory, or in a map.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    weights : ndarray of shape (n_samples,), default=None

    Returns
    -------
    spread : Spread or None
        None if nothing has weight.
    """
    return merged(
        join_spreads,
        (
            _of_block(X[rows], None if weights is None else weights[rows])
            for rows in blocks(len(X))
        ),
    )


def join_spreads(a, b):
    """Mean and deviation over the rows of both.

    Parameters
    ----------
    a, b : Spread

    Returns
    -------
    spread : Spread
    """
    mass = a.mass + b.mass
    share_a, share_b = a.mass / mass, b.mass / mass
    mean = share_a * a.mean + share_b * b.mean
    within = np.hypot(np.sqrt(share_a) * a.deviation, np.sqrt(share_b) * b.deviation)
    # In halves, whose difference does not overflow.
    between = 2 * np.sqrt(share_a * share_b) * np.abs(b.mean / 2 - a.mean / 2)
    largest = np.maximum(a.largest, b.largest)
    return Spread(mass, mean, np.hypot(within, between), largest)


def deviation_of(spread):
    """Standard deviations, 0 for columns that are constant but for rounding.

    Parameters
    ----------
    spread : Spread

    Returns
    -------
    deviation : ndarray of shape (n_columns,)
    """
    # What is left of a constant after rounding is no spread.
    rounding = 4 * np.finfo(np.float64).eps * spread.largest
    return np.where(spread.deviation > rounding, spread.deviation, 0.0)


def _of_block(X, weights):
    heaviest = 1.0 if weights is None else weights.max(initial=0.0)
    if not len(X) or heaviest == 0:
        return None
    X = np.asarray(X, dtype=np.float64)
    largest = np.abs(X).max(axis=0)
    # In units of a power of two, so that no sum or square overflows, and none vanishes.
    exponent = np.frexp(largest)[1]
    scaled = np.ldexp(X, -exponent)
    shares = None if weights is None else weights / heaviest
    mean = np.average(scaled, axis=0, weights=shares)
    deviation = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=shares))
    mass = float(len(X)) if weights is None else float(shares.sum()) * float(heaviest)
    return Spread(mass, np.ldexp(mean, exponent), np.ldexp(deviation, exponent), largest)
