"""Kernel sums along one feature by running sums of moments in cells.

They are for compact kernels that are polynomials of the distance, such as Epanechnikov's.
After sorting, time is O(n + m) with a factor of the squared number of moments; memory is O(n)
for each moment.
"""

import math

import numpy as np

from ..._blocks import IN_CACHE, IN_MEMORY, blocks
from ._chebyshev import first_of_each

# Running sums restart at the first cell after this many rows, so that they do not have the
# rounding errors of rows that are far away.
_ROWS_OF_RUN = 2048
_ROUNDING = 1e-12


class WindowSums:
    r"""Sums of a kernel :math:`\sum_k c_k |u|^k` on :math:`|u| \le 1` in linear time."""

    # Within a cell, about as wide as a window, running sums of powers about its middle give
    # those of any range of keys. A polynomial about the query is one about that middle with
    # other coefficients.

    def __init__(self, line):
        polynomial, degree = line.kernel.polynomial, line.degree
        self.x, self.columns, self.degree = line.x, line.columns, degree
        self._size = len(polynomial) + 2 * degree
        self._peak, self._jumps = polynomial[0], sum(polynomial) > 1e-9
        self._is_even = not any(polynomial[1::2])
        self._sides = [
            self._expansion([c * side**k for k, c in enumerate(polynomial)]) for side in (-1, 1)
        ]

    def _expansion(self, polynomial):
        """Return the coefficients of p(t + s) u^e: of power i of s, power m of t, and e."""
        size, n_powers = self._size, 2 * self.degree + 1
        expansion = np.zeros((size, size, n_powers))
        for e in range(n_powers):
            for k, coefficient in enumerate(polynomial):
                for m in range(k + e + 1):
                    expansion[k + e - m, m, e] += coefficient * math.comb(k + e, m)
        return expansion.reshape(size, -1).T.copy()

    def __call__(self, queries, scale):
        """Return sums (n_powers, c, m) for sorted queries (m, 1), and error bounds (m,)."""
        x, columns, queries = self.x, self.columns, queries[:, 0]
        low, high = window(x, queries, scale, exact=self._jumps)
        first = first_of_each(np.floor(x / (2 * scale)))
        starts = np.append(first, len(x))
        cell = np.repeat(np.arange(len(first)), np.diff(starts))
        middle = (x[first] + x[starts[1:] - 1]) / 2
        t = (x - middle[cell]) / scale
        pieces = self._pieces(starts, cell, queries, low, high)
        sums = np.zeros((2 * self.degree + 1, len(columns), len(queries)))
        of_query = self._size * (2 + 2 * self.degree + len(columns))  # numbers at a time
        at_once = max(1, IN_MEMORY // (self._size * max(len(x), len(queries))))
        for block in blocks(len(columns), at_once):
            running, restart = self._running(starts, t, columns[block])
            for rows, start, stop, expansion in pieces:
                for pieces_block in blocks(len(rows), max(1, IN_CACHE // of_query)):
                    first_key, places = start[pieces_block], rows[pieces_block]
                    owner = cell[first_key]
                    s = (middle[owner] - queries[places]) / scale
                    inside = running[stop[pieces_block] - 1]
                    later = np.flatnonzero(first_key > restart[owner])
                    inside[later] -= running[first_key[later] - 1]
                    terms = self._about(s, inside, expansion)
                    # Sum by sum: NumPy is slow where it picks from many rows at once.
                    for e, c in np.ndindex(terms.shape[:2]):
                        sums[e, block.start + c][places] += terms[e, c]
        total_weight = np.append(0.0, np.cumsum(columns[0]))
        error = _ROUNDING * self._peak * (total_weight[high] - total_weight[low])
        return sums, error

    def cost(self, n_near):
        """Return nanoseconds for each key and query."""
        return 120 + self._size * (33 + 5 * (2 * self.degree + 1) * len(self.columns))

    def _about(self, s, inside, expansion):
        """Turn sums about the middles of cells into those about queries, (n_powers, c, m)."""
        powers = np.ones((self._size, len(s)))
        for k in range(1, self._size):
            np.multiply(powers[k - 1], s, out=powers[k])
        weights = (expansion @ powers).reshape(self._size, -1, len(s))
        inside = inside.reshape(len(s), -1).T.copy().reshape(self._size, -1, len(s))
        return np.einsum("jeq,jcq->ecq", weights, inside)

    def _pieces(self, starts, cell, queries, low, high):
        """Cut windows where cells end, and at the query: (queries, start, stop, expansion)."""
        filled_rows = np.flatnonzero(high > low)
        low, high = low[filled_rows], high[filled_rows]
        first = cell[low]
        # No window overlaps more than three cells, which are as wide but for rounding.
        cuts = [starts[np.minimum(first + k, len(starts) - 1)] for k in (1, 2, 3)]
        middle = low
        if not self._is_even:
            middle = np.searchsorted(self.x, queries[filled_rows], "left")
        pieces = []
        for bottom, top, expansion in (
            (low, middle, self._sides[0]),
            (middle, high, self._sides[1]),
        ):
            for begin, end in zip([np.zeros_like(low), *cuts], cuts, strict=False):
                start, stop = np.maximum(bottom, begin), np.minimum(top, end)
                filled = np.flatnonzero(stop > start)
                if len(filled):
                    rows = filled_rows[filled]
                    pieces.append((rows, start[filled], stop[filled], expansion))
        return pieces

    def _running(self, starts, t, columns):
        """Return running sums of columns times powers of the position, (n, size, n_columns).

        The second result is, for each cell, the key at which its running sums restart.
        """
        terms = np.empty((len(t), self._size, len(columns)))
        terms[:, 0] = columns.T
        for m in range(1, self._size):
            np.multiply(terms[:, m - 1], t[:, None], out=terms[:, m])
        flat = terms.reshape(len(t), -1)
        restart = np.empty_like(starts)
        cell = 0
        while cell < len(restart) - 1:
            last = np.searchsorted(starts, starts[cell] + _ROWS_OF_RUN)
            last = min(last, len(restart) - 1)
            rows = slice(starts[cell], starts[last])
            np.cumsum(flat[rows], axis=0, out=flat[rows])
            restart[cell:last] = rows.start
            cell = last
        return terms, restart


def window(x, queries, distance, *, exact=False):
    """Return ranges of sorted keys within a distance: the first key, and one past the last.

    If `exact`, a key belongs to a range if and only if ``|x - q| / distance <= 1``, which
    matters for a kernel that jumps there.
    """
    bottom, top = queries - distance, queries + distance
    if exact:
        for end, direction in ((bottom, -np.inf), (top, np.inf)):
            for _ in range(3):
                outward = np.nextafter(end, direction)
                is_inside = np.abs(outward - queries) / distance <= 1
                end[is_inside] = outward[is_inside]
            for _ in range(3):
                is_outside = np.abs(end - queries) / distance > 1
                end[is_outside] = np.nextafter(end[is_outside], -direction)
    return np.searchsorted(x, bottom, "left"), np.searchsorted(x, top, "right")
