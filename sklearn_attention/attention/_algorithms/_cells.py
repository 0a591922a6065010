"""Cells of one width along each axis, counted from 0."""

import math

import numpy as np

# Cells further out cannot be told apart in double precision.
FURTHEST = 2**40


def cell_width(width, digits):
    """A width no larger, of few binary digits: then borders of cells are exact.

    A width of few digits serves for a range of bandwidths.
    """
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**digits * fraction), exponent - digits)


def in_cells(x, width):
    """Cells of some points, and places within these that lose no digits, wherever they are.

    Along each axis the number of the cell, an integer, which beyond the furthest cells is
    one that no other point has; and the place in it, from -1 to 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.floor(x / width)
        place = 2 * ((x - number * width) / width) - 1
    unknown = ~(np.abs(number) < 2 * FURTHEST)
    if unknown.any():
        number[unknown], place[unknown] = 4 * FURTHEST, 0.0
    return number, place


def first_of_each(codes):
    """Where each value begins among sorted ones."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
