"""Means and deviations of columns, however many rows there are."""

import numpy as np

from ._blocks import blocks

# Rows at a time.
_BLOCK_ROWS = 2**20


def mean_and_deviation(X, weights=None):
    """Mean and standard deviation of each column, by passes over blocks of rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        May be a memory map.
    weights : ndarray of shape (n_samples,), default=None

    Returns
    -------
    mean : ndarray of shape (n_columns,)
    deviation : ndarray of shape (n_columns,)
        0 for a column that is constant but for rounding.
    """
    rows = list(blocks(len(X), _BLOCK_ROWS))
    largest = np.max([np.abs(X[some]).max(axis=0) for some in rows], axis=0)
    # In units of a power of two, so that no sum or square overflows, and none vanishes.
    exponent = np.frexp(largest.astype(np.float64))[1]
    heaviest = None if weights is None else weights.max()

    def average(function):
        found, total = np.zeros(X.shape[1]), 0.0
        for some in rows:
            own = None if weights is None else weights[some] / heaviest
            mass = some.stop - some.start if own is None else own.sum()
            if mass > 0:
                scaled = np.ldexp(np.asarray(X[some], dtype=np.float64), -exponent)
                total += mass
                change = np.average(function(scaled), axis=0, weights=own) - found
                found = found + change * (mass / total)
        return found

    mean = average(lambda scaled: scaled)
    deviation = np.sqrt(average(lambda scaled: (scaled - mean) ** 2))
    # What is left of a constant after rounding is no spread.
    rounding = 4 * np.finfo(np.float64).eps * np.ldexp(largest, -exponent)
    deviation = np.where(deviation > rounding, deviation, 0.0)
    return np.ldexp(mean, exponent), np.ldexp(deviation, exponent)
