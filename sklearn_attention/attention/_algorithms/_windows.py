r"""Kernel sums along one feature by running sums of moments in cells.

They are taken for compact kernels that are polynomials of the distance, such as Epanechnikov's:
:math:`K(u) = \sum_k c_k |u|^k` for :math:`|u| \le 1`, where u is the difference of key and
query in bandwidths times a scale. After sorting n queries and m keys, time is O(n + m) with a
factor of M^2, and memory is O(m M) for each column; M = 1 + degree of the kernel + 2 degree of
the local polynomial is the number of *moments*.

The line is divided into *cells*, about as wide as a window. With the position t of a key from
the middle of its cell and the position s of this middle from the query, u = t + s. So for each
*side* of the query, on which |u| is u or -u,

.. math:: K(u)\, u^e = \sum_{i, j} E_{ije}\, s^i\, t^j

with an *expansion* E (M, M, n_powers) that follows from the binomial theorem. Sums over a range
of keys in a cell need only its *moments* :math:`\sum t^j C_c`, for the columns C that are
summed; these are the difference of two *running sums*. A window is cut into *pieces*, each in
one cell and on one side.
"""

import math

import numpy as np

from ..._blocks import IN_CACHE, IN_MEMORY, blocks
from ._chebyshev import first_of_each

# Running sums restart at the first cell after this many keys, so that they do not have the
# rounding errors of keys that are far away.
_KEYS_OF_RUN = 2048
# Bound on the rounding error of a sum, relative to the kernel's peak times the weights.
_ROUNDING = 1e-12


class WindowSums:
    """Sums over the keys of a `Line` for a kernel that is a polynomial of the distance."""

    def __init__(self, line):
        polynomial, degree = line.kernel.polynomial, line.degree
        self.x, self.columns, self.degree = line.x, line.columns, degree
        self._n_moments = len(polynomial) + 2 * degree
        # True if the kernel is not 0 at the end of its support.
        self._jumps = sum(polynomial) > 1e-9
        self._peak = polynomial[0]
        self._is_even = not any(polynomial[1::2])
        # Expansions for keys before the query and after it.
        self._expansions = [
            self._expand([c * side**k for k, c in enumerate(polynomial)]) for side in (-1, 1)
        ]

    def _expand(self, polynomial):
        """Return the expansion E of a kernel that is this polynomial of u on one side.

        The result (M n_powers, M) has a row for each power of t and each exponent e, and a
        column for each power of s.
        """
        size, n_powers = self._n_moments, 2 * self.degree + 1
        expansion = np.zeros((size, size, n_powers))
        for e in range(n_powers):
            for k, coefficient in enumerate(polynomial):
                for m in range(k + e + 1):
                    expansion[k + e - m, m, e] += coefficient * math.comb(k + e, m)
        return expansion.reshape(size, -1).T.copy()

    def __call__(self, queries, scale):
        """Return sums (n_powers, c, n) about sorted queries (n, 1), and error bounds (n,).

        The bounds are those of the first sum, that of the weights.
        """
        x, columns, queries = self.x, self.columns, queries[:, 0]
        low, high = window(x, queries, scale, exact=self._jumps)
        # 1. Keys are divided into cells: cell i has the keys from starts[i] to starts[i + 1].
        first = first_of_each(np.floor(x / (2 * scale)))
        starts = np.append(first, len(x))
        cell = np.repeat(np.arange(len(first)), np.diff(starts))
        middle = (x[first] + x[starts[1:] - 1]) / 2
        t = (x - middle[cell]) / scale
        # 2. Each piece of a window adds its moments about the cell's middle, moved to the
        # query.
        pieces = self._pieces(starts, cell, queries, low, high)
        sums = np.zeros((2 * self.degree + 1, len(columns), len(queries)))
        numbers_per_query = self._n_moments * (2 + 2 * self.degree + len(columns))
        max_pieces = max(1, IN_CACHE // numbers_per_query)
        max_columns = max(1, IN_MEMORY // (self._n_moments * max(len(x), len(queries))))
        for block in blocks(len(columns), max_columns):
            running, first_of_run = self._running_sums(starts, t, columns[block])
            for rows, start, stop, expansion in pieces:
                for piece_block in blocks(len(rows), max_pieces):
                    first_key, query = start[piece_block], rows[piece_block]
                    piece_cell = cell[first_key]
                    s = (middle[piece_cell] - queries[query]) / scale
                    # The moments are the running sums at the last key of the piece, less those
                    # before its first key, unless running sums restart there.
                    moments = running[stop[piece_block] - 1]
                    later = np.flatnonzero(first_key > first_of_run[piece_cell])
                    moments[later] -= running[first_key[later] - 1]
                    terms = self._about_queries(s, moments, expansion)
                    # Each sum is added on its own: NumPy is slow where it writes to many rows.
                    for e, c in np.ndindex(terms.shape[:2]):
                        sums[e, block.start + c][query] += terms[e, c]
        total_weight = np.append(0.0, np.cumsum(columns[0]))
        error = _ROUNDING * self._peak * (total_weight[high] - total_weight[low])
        return sums, error

    def cost(self, n_near):
        """Return nanoseconds for a key and a query together, whatever `n_near` is."""
        return 120 + self._n_moments * (33 + 5 * (2 * self.degree + 1) * len(self.columns))

    def _about_queries(self, s, moments, expansion):
        """Turn moments (n, M, c) about the middles of cells into sums (n_powers, c, n).

        `s` (n,) are the positions of these middles from the queries, and `expansion` is E.
        """
        powers_of_s = np.ones((self._n_moments, len(s)))
        for k in range(1, self._n_moments):
            np.multiply(powers_of_s[k - 1], s, out=powers_of_s[k])
        weights = (expansion @ powers_of_s).reshape(self._n_moments, -1, len(s))
        moments = moments.reshape(len(s), -1).T.copy().reshape(self._n_moments, -1, len(s))
        return np.einsum("jeq,jcq->ecq", weights, moments)

    def _pieces(self, starts, cell, queries, low, high):
        """Cut the windows of queries where cells end, and at the query.

        `starts` (n_cells + 1,) are the first keys of the cells and, at the end, the number of
        keys; `cell` (n_keys,) is the cell of each key. `low` and `high` (n,) are the first key
        of each query's window, and one past its last.

        Returns tuples of the positions of queries, the first key of each piece, one past its
        last key, and the expansion. Each tuple has at most one piece for each query.
        """
        filled_rows = np.flatnonzero(high > low)
        low, high = low[filled_rows], high[filled_rows]
        first = cell[low]
        # Up to rounding, a cell is as wide as a window, which overlaps three cells at most.
        cuts = [starts[np.minimum(first + k, len(starts) - 1)] for k in (1, 2, 3)]
        # An even kernel has the same expansion on both sides, so windows are not cut at
        # queries.
        middle = low
        if not self._is_even:
            middle = np.searchsorted(self.x, queries[filled_rows], "left")
        before, after = self._expansions
        pieces = []
        for bottom, top, expansion in ((low, middle, before), (middle, high, after)):
            for begin, end in zip([np.zeros_like(low), *cuts], cuts, strict=False):
                start, stop = np.maximum(bottom, begin), np.minimum(top, end)
                filled = np.flatnonzero(stop > start)
                if len(filled):
                    rows = filled_rows[filled]
                    pieces.append((rows, start[filled], stop[filled], expansion))
        return pieces

    def _running_sums(self, starts, t, columns):
        """Return running sums (m, M, n_columns) over the keys of columns times powers of t.

        They restart after each *run*, of about `_KEYS_OF_RUN` keys in consecutive cells. The
        second result (n_cells,) is, for each cell, the first key of its run. `starts`
        (n_cells + 1,) are the first keys of the cells and, at the end, the number of keys.
        """
        terms = np.empty((len(t), self._n_moments, len(columns)))
        terms[:, 0] = columns.T
        for power in range(1, self._n_moments):
            np.multiply(terms[:, power - 1], t[:, None], out=terms[:, power])
        flat = terms.reshape(len(t), -1)
        n_cells = len(starts) - 1
        first_of_run = np.empty(n_cells, dtype=starts.dtype)
        cell = 0
        while cell < n_cells:
            end = min(np.searchsorted(starts, starts[cell] + _KEYS_OF_RUN), n_cells)
            run = slice(starts[cell], starts[end])
            np.cumsum(flat[run], axis=0, out=flat[run])
            first_of_run[cell:end] = run.start
            cell = end
        return terms, first_of_run


def window(x, queries, distance, *, exact=False):
    """Return the range of sorted keys x within a distance (n,) of each query (n,).

    The results are the first key and one past the last, (n,) each. If `exact`, a key belongs to
    a range if and only if ``|x - q| / distance <= 1`` as it is rounded, which matters for a
    kernel that jumps there.
    """
    bottom, top = queries - distance, queries + distance
    if exact:
        # Each end is moved to the last number that is inside, a few numbers away at most.
        for end, direction in ((bottom, -np.inf), (top, np.inf)):
            for _ in range(3):
                outward = np.nextafter(end, direction)
                is_inside = np.abs(outward - queries) / distance <= 1
                end[is_inside] = outward[is_inside]
            for _ in range(3):
                is_outside = np.abs(end - queries) / distance > 1
                end[is_outside] = np.nextafter(end[is_outside], -direction)
    return np.searchsorted(x, bottom, "left"), np.searchsorted(x, top, "right")
