"""Cells of one width along each axis, counted from 0."""

import math

import numpy as np

# Cells further out are equal in double precision.
FURTHEST = 2**40


def cell_width(width, digits):
    """A width no larger, of few binary digits: then borders of cells are exact.

    A width of few digits serves for a range of bandwidths.
    """
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**digits * fraction), exponent - digits)


def in_cells(x, width):
    """Cells of points along each axis, as integers, and positions from -1 to 1 within these."""
    # Positions within cells lose no digits, wherever the points are. Beyond the furthest cells
    # each point has a cell to itself.
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.floor(x / width)
        place = 2 * ((x - number * width) / width) - 1
    unknown = ~(np.abs(number) < 2 * FURTHEST)
    if unknown.any():
        number[unknown], place[unknown] = 4 * FURTHEST, 0.0
    return number, place


def first_of_each(codes):
    """Index at which each value begins among sorted ones."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
