"""The level and the spread of numbers, in which a network sees them."""

import numpy as np


def level_and_spread(numbers, weights=None):
    """Mean and standard deviation of numbers (n,).

    0 and 1 of no numbers; a spread of 1 where there is none, so that it can be divided by.
    """
    if not len(numbers):
        return 0.0, 1.0
    level = np.average(numbers, weights=weights)
    off = numbers - level
    farthest = np.abs(off).max()
    if farthest <= 1e-12 * np.abs(numbers).max():
        return float(level), 1.0
    # Squares of large numbers overflow where the numbers do not.
    spread = farthest * np.sqrt(np.average(np.square(off / farthest), weights=weights))
    return float(level), float(spread)
