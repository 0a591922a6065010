r"""Points in cells, and Chebyshev polynomials of their positions in these.

`_boxes.py` interpolates kernels with them. Along each axis a cell has an integer number, and a
point has a *position* from -1 to 1 in its cell, at which the Chebyshev polynomials :math:`T_0,
T_1, \dots` are evaluated. A cell is *unknown* if its number is `MAX_CELL_NUMBER` or more, that
is, if the point is so far from 0, in widths of cells, that its position has few digits.

Points of a cell are stored in *chunks* of equal size, which consist of *slots*: the last slots
of a cell may be empty. So all points are one array, and products of small matrices serve all
chunks at once. Time and memory are in proportion to the number of points times n_terms, the
number of polynomials along each axis.
"""

import functools
import math

import numpy as np

from ..._blocks import IN_CACHE

# Binary digits of the width of cells.
_DIGITS = 8
# Largest number of a cell that is known. In double precision, numbers of cells and positions in
# cells are accurate up to there.
MAX_CELL_NUMBER = 2**40


def cell_width(width):
    """Round a width down to few binary digits, so that borders of cells are exact."""
    fraction, exponent = math.frexp(width)
    return math.ldexp(math.floor(2**_DIGITS * fraction), exponent - _DIGITS)


def in_cells(x, width):
    """Return the number of each point's cell, and its position from -1 to 1 in the cell.

    Both have the shape of the coordinates x. A point whose number would be
    ``2 * MAX_CELL_NUMBER`` or more, or not finite, gets the number ``4 * MAX_CELL_NUMBER``
    instead, which no other point has.
    """
    # The start of the cell is subtracted before the division by its width, so that positions of
    # points far from 0 keep their digits.
    with np.errstate(over="ignore", invalid="ignore"):
        number = np.floor(x / width)
        position = 2 * ((x - number * width) / width) - 1
    is_unknown = ~(np.abs(number) < 2 * MAX_CELL_NUMBER)
    if is_unknown.any():
        number[is_unknown], position[is_unknown] = 4 * MAX_CELL_NUMBER, 0.0
    return number, position


def first_of_each(codes):
    """Return the index of the first of each run of equal values, which are sorted."""
    return np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))


class PointsInCells:
    """Points ordered by their cells, in chunks of equal size that lie in one cell.

    `point_codes` (n,) has an integer for each point's cell, `positions` (n_axes, n) are those
    in the cells, from -1 to 1, and `n_terms` is the number of polynomials along each axis. The
    attribute `codes` (n_cells,) has the cells that hold points, ascending.
    """

    def __init__(self, point_codes, positions, n_terms):
        self._n_terms = n_terms
        order = np.argsort(point_codes, kind="stable")
        sorted_codes = point_codes[order]
        first = first_of_each(sorted_codes)
        self.codes = sorted_codes[first]
        counts = np.diff(np.append(first, len(sorted_codes)))
        # A chunk has about as many slots as a cell has points on average: a power of two from
        # 4 to 64.
        mean_count = len(sorted_codes) / len(first)
        self._chunk_size = size = 2 ** int(np.clip(round(math.log2(mean_count)), 2, 6))
        n_chunks = -(-counts // size)
        # The first chunk of each cell and, at the end, the number of chunks; the cell of each
        # chunk.
        self._first_chunks = np.append(0, np.cumsum(n_chunks))
        self._cell_of_chunk = np.repeat(np.arange(len(first)), n_chunks)
        # The points of a cell, in sorted order, fill consecutive slots from the first slot of
        # its first chunk.
        slot = np.arange(len(sorted_codes)) + np.repeat(
            self._first_chunks[:-1] * size - first, counts
        )
        # The slot of each point, in the order of the points.
        self._slot_of_point = np.empty_like(slot)
        self._slot_of_point[order] = slot
        self._positions = self._in_chunks(positions)

    def _in_chunks(self, columns):
        """Put columns (c, n) into slots, (c, n_chunks, size); empty slots are 0."""
        slots = np.zeros((len(columns), len(self._cell_of_chunk) * self._chunk_size))
        slots[:, self._slot_of_point] = columns
        return slots.reshape(len(columns), -1, self._chunk_size)

    def _blocks(self, begin, end):
        """Yield blocks of the chunks from `begin` to `end`, with polynomials at their points.

        A block is a slice of chunks, and a list of polynomials (n_block, n_terms, size) for
        each axis. If those of all chunks stay in cache, they are computed once.
        """
        step = max(1, IN_CACHE // (2 * self._n_terms * self._chunk_size))
        if len(self._cell_of_chunk) <= step:
            yield (
                slice(begin, end),
                [table[begin:end] for table in self._all_polynomials],
            )
            return
        for start in range(begin, end, step):
            chunks = slice(start, min(start + step, end))
            yield chunks, self._polynomials(chunks)

    @functools.cached_property
    def _all_polynomials(self):
        """Polynomials (n_axes, n_chunks, n_terms, size) of all chunks."""
        return self._polynomials(slice(None))

    def _polynomials(self, chunks):
        """Evaluate the polynomials at points: (n_axes, n_chunks, n_terms, size)."""
        # The recurrence is T_k = 2 t T_(k - 1) - T_(k - 2).
        t = self._positions[:, chunks]
        polynomials = np.empty((self._n_terms, *t.shape))
        polynomials[0], polynomials[1] = 1.0, t
        twice = 2 * t
        for k in range(2, self._n_terms):
            np.multiply(twice, polynomials[k - 1], out=polynomials[k])
            polynomials[k] -= polynomials[k - 2]
        return np.ascontiguousarray(polynomials.transpose(1, 2, 0, 3))

    def moments(self, columns):
        """Sum columns (c, n) times polynomials in each cell.

        The moments are (n_cells + 1, c, n_terms), or (n_cells + 1, c, n_terms, n_terms) in the
        plane, where the last axis belongs to the points' first coordinate. The last cell has
        none of the points: it stands for cells without any.
        """
        columns = self._in_chunks(columns).swapaxes(0, 1)
        shape = (self._n_terms,) * len(self._positions)
        moments = np.zeros((len(self.codes) + 1, columns.shape[1], *shape))
        for chunks, (along_first, *along_second) in self._blocks(0, len(self._cell_of_chunk)):
            terms = columns[chunks]
            # In the plane, columns are first multiplied by the polynomials along the second
            # axis.
            for polynomials in along_second:
                terms = terms[:, :, None] * polynomials[:, None]
            terms = terms.reshape(len(terms), -1, self._chunk_size) @ along_first.swapaxes(1, 2)
            # The chunks of a cell follow each other.
            cell = self._cell_of_chunk[chunks]
            first = first_of_each(cell)
            sums = np.add.reduceat(terms.reshape(-1, *moments.shape[1:]), first)
            moments[cell[first]] += sums
        return moments

    def evaluate(self, cells, coefficients, sums):
        """Evaluate sums of polynomials at the points of a slice of cells, and write them.

        `coefficients` has an array (n_cells, c, n_terms), or (n_cells, c, n_terms, n_terms),
        for each sum; its last axis belongs to the points' last coordinate. `sums` (n_sums, c,
        n_chunks, size) was made by `empty`.
        """
        begin, end = self._first_chunks[cells.start], self._first_chunks[cells.stop]
        for chunks, (*along_first, along_last) in self._blocks(begin, end):
            cell = self._cell_of_chunk[chunks] - cells.start  # position in the slice
            for terms, sums_of_terms in zip(coefficients, sums, strict=False):
                values = terms[cell].reshape(len(cell), -1, self._n_terms) @ along_last
                for polynomials in along_first:  # in the plane
                    values = values.reshape(len(cell), -1, *polynomials.shape[1:])
                    values = (values * polynomials[:, None]).sum(axis=2)
                sums_of_terms[: terms.shape[1], chunks] = values.swapaxes(0, 1)

    def empty(self, *shape):
        """Return zeros for sums at all points, (*shape, n_chunks, size)."""
        return np.zeros((*shape, len(self._cell_of_chunk), self._chunk_size))

    def at_points(self, sums):
        """Return sums of chunks (..., n_chunks, size) in the order of the points, (..., n)."""
        return sums.reshape(*sums.shape[:-2], -1)[..., self._slot_of_point]

    def totals(self, column):
        """Sum a column (n,) in each cell, (n_cells + 1,); the last cell is empty."""
        cell = np.repeat(self._cell_of_chunk, self._chunk_size)[self._slot_of_point]
        return np.bincount(cell, column, len(self.codes) + 1)

    def cell_values(self, numbers):
        """Return, for each point, the number of its cell, (n,).

        `numbers` (n_cells + 1,) has a number for each cell, such as the sum of its weights.
        """
        return np.repeat(numbers[self._cell_of_chunk], self._chunk_size)[self._slot_of_point]


def between_cells(profile, offsets, width, n_terms, power):
    """Return the matrix from moments of cells to coefficients of a target cell along an axis.

    It is (n_offsets * n_terms, n_terms), for cells at `offsets` (n_offsets,) from the target;
    the width of cells is in units of the kernel. `profile`, the kernel of squared distances, is
    multiplied by a power of the difference.
    """
    # The kernel is evaluated at the differences u (n_offsets, n_terms, n_terms) between the
    # Chebyshev nodes of both cells, those of the target on the last axis. Its values are then
    # turned into coefficients in each of the two variables.
    nodes, coefficients = _interpolation(n_terms)
    u = (nodes[:, None] - nodes) * (width / 2) + offsets[:, None, None] * width
    values = profile(u * u)
    if power:
        values *= u**power
    values = coefficients @ (values @ coefficients.T).reshape(len(offsets), n_terms, n_terms)
    return values.reshape(-1, n_terms)


@functools.cache
def _interpolation(n_terms):
    """Return the Chebyshev nodes (n_terms,), and the matrix from values to coefficients."""
    angles = np.pi * (np.arange(n_terms) + 0.5) / n_terms
    coefficients = np.cos(np.outer(np.arange(n_terms), angles)) * 2 / n_terms
    coefficients[0] /= 2
    return np.cos(angles), coefficients
