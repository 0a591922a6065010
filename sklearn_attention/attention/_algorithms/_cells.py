"""Cells of one width along each axis, counted from 0."""

import math

import numpy as np

# Cells further out cannot be told apart in double precision.
FURTHEST = 2**40


def cell_width(width, digits):
    """A width no larger, of few binary digits: then borders of cells are exact.

    Parameters
    ----------
    width : float
    digits : int
        A width of few digits serves for a range of bandwidths.

    Returns
    -------
    width : float
    """
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**digits * fraction), exponent - digits)


def in_cells(x, width):
    """Cells of some points, and places within these that lose no digits, wherever they are.

    Parameters
    ----------
    x : ndarray
        Along each axis.
    width : float
        Of :func:`cell_width`.

    Returns
    -------
    number : ndarray
        Of the cell along each axis, an integer; one that no other point has beyond the
        furthest cells.
    place : ndarray
        Of the point in its cell, from -1 to 1.
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
