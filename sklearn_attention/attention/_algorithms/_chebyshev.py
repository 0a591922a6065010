"""Points in cells, and Chebyshev polynomials of their positions in these."""

import functools
import math

import numpy as np

from ..._blocks import IN_CACHE

# Binary digits of the width of cells.
_DIGITS = 8
# Cells whose number is larger cannot be told apart in double precision.
FURTHEST = 2**40


def cell_width(width):
    """Round a width down to few binary digits, so that borders of cells are exact."""
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**_DIGITS * fraction), exponent - _DIGITS)


def in_cells(x, width):
    """Return the cells of points along each axis, and positions from -1 to 1 in these.

    Cells are integers.
    """
    # Positions within cells lose no digits, wherever the points are. Points beyond the furthest
    # cells have no known cell.
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.floor(x / width)
        place = 2 * ((x - number * width) / width) - 1
    unknown = ~(np.abs(number) < 2 * FURTHEST)
    if unknown.any():
        number[unknown], place[unknown] = 4 * FURTHEST, 0.0
    return number, place


def first_of_each(codes):
    """Return the index of the first of equal values, which are sorted."""
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
        # The slot of each point in the chunks; the last slots of a cell may be empty.
        self._slot = np.empty_like(slot)
        self._slot[order] = slot
        self._place = self._in_chunks(place)

    def _in_chunks(self, columns):
        slots = np.zeros((len(columns), len(self._cell) * self._size))
        slots[:, self._slot] = columns
        return slots.reshape(len(columns), -1, self._size)

    def _blocks(self, first, last):
        """Yield blocks of chunks, and the polynomials of these along each axis."""
        step = max(1, IN_CACHE // (2 * self._n_terms * self._size))
        if len(self._cell) <= step:
            yield slice(first, last), [along_axis[first:last] for along_axis in self._all]
            return
        for start in range(first, last, step):
            chunks = slice(start, min(start + step, last))
            yield chunks, self._polynomials(chunks)

    @functools.cached_property
    def _all(self):
        return self._polynomials(slice(None))

    def _polynomials(self, chunks):
        """Evaluate the polynomials: for each axis an array (n_chunks, n_terms, size)."""
        t = self._place[:, chunks]
        polynomials = np.empty((self._n_terms, *t.shape))
        polynomials[0], polynomials[1] = 1.0, t
        twice = 2 * t
        for k in range(2, self._n_terms):
            np.multiply(twice, polynomials[k - 1], out=polynomials[k])
            polynomials[k] -= polynomials[k - 2]
        return np.ascontiguousarray(polynomials.transpose(1, 2, 0, 3))

    def moments(self, columns):
        """Sum columns (c, n) times polynomials, (n_cells + 1, c, n_terms[, n_terms]).

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

    def evaluate(self, cells, coefficients, sums):
        """Evaluate polynomials at the points of a slice of cells; write them into `sums`.

        Coefficients are (n_cells, c, n_terms[, n_terms]), the last axis for the points' last
        axis; the sums, of `empty`, are (n_polynomials, c, n_chunks, size).
        """
        begin, end = self._first[cells.start], self._first[cells.stop]
        for chunks, (*x, y) in self._blocks(begin, end):
            cell = self._cell[chunks] - cells.start
            for terms, sums_of_terms in zip(coefficients, sums, strict=False):
                values = terms[cell].reshape(len(cell), -1, self._n_terms) @ y
                for along_axis in x:
                    values = values.reshape(len(cell), -1, *along_axis.shape[1:])
                    values = (values * along_axis[:, None]).sum(axis=2)
                sums_of_terms[: terms.shape[1], chunks] = values.swapaxes(0, 1)

    def empty(self, *shape):
        """Return zeros for sums at all points."""
        return np.zeros((*shape, len(self._cell), self._size))

    def at_points(self, sums):
        """Return the sums of chunks in the order of the points, (..., n)."""
        return sums.reshape(*sums.shape[:-2], -1)[..., self._slot]

    def totals(self, column):
        """Sum a column in each cell; the sum of the empty one, the last, is 0."""
        cell = np.repeat(self._cell, self._size)[self._slot]
        return np.bincount(cell, column, len(self.codes) + 1)

    def spread(self, of_cells):
        """Return, for each point, the number that its cell has."""
        return np.repeat(of_cells[self._cell], self._size)[self._slot]


def between_cells(profile, offsets, width, n_terms, power):
    """Return the matrix (n_offsets * n_terms, n_terms) from terms of cells to those of another.

    `profile`, the kernel of squared distances, is multiplied by a power of the distance.
    The cells lie at `offsets` from the other one; their width is in bandwidths.
    """
    nodes, coefficients = _interpolation(n_terms)
    u = (nodes[:, None] - nodes) * (width / 2) + offsets[:, None, None] * width
    values = profile(u * u)
    if power:
        values *= u**power
    values = coefficients @ (values @ coefficients.T).reshape(len(offsets), n_terms, n_terms)
    return values.reshape(-1, n_terms)


@functools.cache
def _interpolation(n_terms):
    """Return the Chebyshev nodes, and the matrix from values at these to coefficients."""
    angles = np.pi * (np.arange(n_terms) + 0.5) / n_terms
    coefficients = np.cos(np.outer(np.arange(n_terms), angles)) * 2 / n_terms
    coefficients[0] /= 2
    return np.cos(angles), coefficients
