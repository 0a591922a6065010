"""Points in cells, and Chebyshev polynomials of their places there."""

import functools
import math

import numpy as np

from ..._blocks import IN_CACHE

# Binary digits of the width of cells.
_DIGITS = 8
# Cells further out are equal in double precision.
FURTHEST = 2**40


def cell_width(width):
    """A width no larger, of few binary digits: then borders of cells are exact."""
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**_DIGITS * fraction), exponent - _DIGITS)


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


class PointsInCells:
    """Points ordered by their cells, in chunks of equal size that lie in one cell."""

    # Points have the codes (n,) of cells and positions (n_axes, n) in these, from -1 to 1, and
    # `n_terms` polynomials along each axis. `codes` has the cells that hold points, ascending.

    def __init__(self, codes, place, n_terms):
        self._n_terms = n_terms
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
        first = first_of_each(codes)
        self.codes = codes[first]
        counts = np.diff(np.append(first, len(codes)))
        mean = len(codes) / len(first)
        self._size = size = 2 ** int(np.clip(round(math.log2(mean)), 2, 6))
        n_chunks = -(-counts // size)
        self._first = np.append(0, np.cumsum(n_chunks))
        self._cell = np.repeat(np.arange(len(first)), n_chunks)
        slot = np.arange(len(codes)) + np.repeat(self._first[:-1] * size - first, counts)
        # Where each point lies among the places of all chunks, of which some are empty.
        self._slot = np.empty_like(slot)
        self._slot[order] = slot
        self._place = self._in_chunks(place)

    def _in_chunks(self, columns):
        found = np.zeros((len(columns), len(self._cell) * self._size))
        found[:, self._slot] = columns
        return found.reshape(len(columns), -1, self._size)

    def _blocks(self, first, last):
        """Some chunks, and their polynomials along each axis, a block at a time."""
        step = max(1, IN_CACHE // (2 * self._n_terms * self._size))
        if len(self._cell) <= step:
            yield slice(first, last), [found[first:last] for found in self._all]
            return
        for start in range(first, last, step):
            chunks = slice(start, min(start + step, last))
            yield chunks, self._polynomials(chunks)

    @functools.cached_property
    def _all(self):
        return self._polynomials(slice(None))

    def _polynomials(self, chunks):
        """For each axis an array of shape (chunks, terms, rows)."""
        t = self._place[:, chunks]
        found = np.empty((self._n_terms, *t.shape))
        found[0], found[1] = 1.0, t
        twice = 2 * t
        for k in range(2, self._n_terms):
            np.multiply(twice, found[k - 1], out=found[k])
            found[k] -= found[k - 2]
        return np.ascontiguousarray(found.transpose(1, 2, 0, 3))

    def moments(self, columns):
        """Sums of columns (c, n) times polynomials, (n_cells + 1, c, n_terms[, n_terms]).

        The last axis is the points' first axis; the last cell is empty.
        """
        columns = self._in_chunks(columns).swapaxes(0, 1)
        shape = (self._n_terms,) * len(self._place)
        moments = np.zeros((len(self.codes) + 1, columns.shape[1], *shape))
        for chunks, (x, *y) in self._blocks(0, len(self._cell)):
            terms = columns[chunks]
            for polynomials in y:
                terms = terms[:, :, None] * polynomials[:, None]
            terms = terms.reshape(len(x), -1, self._size) @ x.swapaxes(1, 2)
            cell = self._cell[chunks]
            first = first_of_each(cell)
            sums = np.add.reduceat(terms.reshape(-1, *moments.shape[1:]), first)
            moments[cell[first]] += sums
        return moments

    def evaluate(self, part, polynomials, sums):
        """Write polynomials at the points of some cells, a slice, into `sums` of `empty`."""
        # Coefficients are (n_part, c, n_terms[, n_terms]), the last axis for the points' last
        # axis; the sums (n_polynomials, c, n_chunks, size).
        begin, end = self._first[part.start], self._first[part.stop]
        for chunks, (*x, y) in self._blocks(begin, end):
            cell = self._cell[chunks] - part.start
            for terms, to in zip(polynomials, sums, strict=False):
                found = terms[cell].reshape(len(cell), -1, self._n_terms) @ y
                for along in x:
                    found = found.reshape(len(cell), -1, *along.shape[1:])
                    found = (found * along[:, None]).sum(axis=2)
                to[: terms.shape[1], chunks] = found.swapaxes(0, 1)

    def empty(self, *shape):
        """Room for sums at all points."""
        return np.zeros((*shape, len(self._cell), self._size))

    def at_points(self, sums):
        """Sums in chunks as those of the points, (..., n)."""
        return sums.reshape(*sums.shape[:-2], -1)[..., self._slot]

    def totals(self, column):
        """Sums of a column in each cell, and 0 for the empty one."""
        cell = np.repeat(self._cell, self._size)[self._slot]
        return np.bincount(cell, column, len(self.codes) + 1)

    def spread(self, of_cells):
        """Numbers of the cells, for each of their points."""
        return np.repeat(of_cells[self._cell], self._size)[self._slot]


def between_cells(profile, offsets, width, n_terms, power):
    """Matrix (n_offsets * n_terms, n_terms) from terms of cells around to those of a cell."""
    # Of `profile`, the kernel of squared distances, times a power of the distance; the width of
    # cells is in the kernel's unit.
    nodes, coefficients = _interpolation(n_terms)
    u = (nodes[:, None] - nodes) * (width / 2) + offsets[:, None, None] * width
    values = profile(u * u)
    if power:
        values *= u**power
    values = coefficients @ (values @ coefficients.T).reshape(len(offsets), n_terms, n_terms)
    return values.reshape(-1, n_terms)


@functools.cache
def _interpolation(n_terms):
    """Chebyshev nodes, and the matrix from values there to coefficients."""
    angles = np.pi * (np.arange(n_terms) + 0.5) / n_terms
    coefficients = np.cos(np.outer(np.arange(n_terms), angles)) * 2 / n_terms
    coefficients[0] /= 2
    return np.cos(angles), coefficients
