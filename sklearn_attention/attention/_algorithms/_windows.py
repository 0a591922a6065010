"""Kernel sums along one feature over windows: compact kernels that are polynomials."""

import math

import numpy as np

from ..._blocks import IN_CACHE, IN_MEMORY, blocks
from ._chebyshev import first_of_each

# Running sums restart at a cell after so many rows, so that what is far away leaves no
# rounding here.
_FEWEST_ROWS = 2048
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
        """Coefficients of p(t + s) u^e: of power i of s, power m of t, and e."""
        size, n_powers = self._size, 2 * self.degree + 1
        found = np.zeros((size, size, n_powers))
        for e in range(n_powers):
            for k, coefficient in enumerate(polynomial):
                for m in range(k + e + 1):
                    found[k + e - m, m, e] += coefficient * math.comb(k + e, m)
        return found.reshape(size, -1).T.copy()

    def __call__(self, queries, scale):
        """Sums (n_powers, c, m) for sorted queries (m, 1), and bounds (m,) on their error."""
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
        for some in blocks(len(columns), at_once):
            running, anew = self._running(starts, t, columns[some])
            for rows, start, stop, expansion in pieces:
                for part in blocks(len(rows), max(1, IN_CACHE // of_query)):
                    owner, places = cell[start[part]], rows[part]
                    s = (middle[owner] - queries[places]) / scale
                    inside = running[stop[part] - 1]
                    later = np.flatnonzero(start[part] > anew[owner])
                    inside[later] -= running[start[part][later] - 1]
                    more = self._about(s, inside, expansion)
                    # Sum by sum: NumPy is slow where it picks from many rows at once.
                    for e, c in np.ndindex(more.shape[:2]):
                        sums[e, some.start + c][places] += more[e, c]
        near = np.append(0.0, np.cumsum(columns[0]))
        error = _ROUNDING * self._peak * (near[high] - near[low])
        return sums, error

    def cost(self, near):
        """Nanoseconds of each key and query."""
        return 120 + self._size * (33 + 5 * (2 * self.degree + 1) * len(self.columns))

    def _about(self, s, inside, expansion):
        """Sums about queries at s from those about the middles of cells, (n_powers, c, m)."""
        powers = np.ones((self._size, len(s)))
        for k in range(1, self._size):
            np.multiply(powers[k - 1], s, out=powers[k])
        weights = (expansion @ powers).reshape(self._size, -1, len(s))
        inside = inside.reshape(len(s), -1).T.copy().reshape(self._size, -1, len(s))
        return np.einsum("jeq,jcq->ecq", weights, inside)

    def _pieces(self, starts, cell, queries, low, high):
        """Every window cut where cells end, and at its query: (queries, start, stop, side)."""
        some = np.flatnonzero(high > low)
        low, high = low[some], high[some]
        first = cell[low]
        # No window overlaps more than three cells, which are as wide but for rounding.
        cuts = [starts[np.minimum(first + k, len(starts) - 1)] for k in (1, 2, 3)]
        middle = low if self._is_even else np.searchsorted(self.x, queries[some], "left")
        pieces = []
        for bottom, top, expansion in (
            (low, middle, self._sides[0]),
            (middle, high, self._sides[1]),
        ):
            for begin, end in zip([np.zeros_like(low), *cuts], cuts, strict=False):
                start, stop = np.maximum(bottom, begin), np.minimum(top, end)
                filled = np.flatnonzero(stop > start)
                if len(filled):
                    pieces.append((some[filled], start[filled], stop[filled], expansion))
        return pieces

    def _running(self, starts, t, columns):
        """Running sums of columns times powers of the position, (n, size, n_columns).

        And for each cell the key with which its sums restart.
        """
        terms = np.empty((len(t), self._size, len(columns)))
        terms[:, 0] = columns.T
        for m in range(1, self._size):
            np.multiply(terms[:, m - 1], t[:, None], out=terms[:, m])
        flat = terms.reshape(len(t), -1)
        anew = np.empty_like(starts)
        cell = 0
        while cell < len(anew) - 1:
            last = np.searchsorted(starts, starts[cell] + _FEWEST_ROWS)
            last = min(last, len(anew) - 1)
            rows = slice(starts[cell], starts[last])
            np.cumsum(flat[rows], axis=0, out=flat[rows])
            anew[cell:last] = rows.start
            cell = last
        return terms, anew


def window(x, queries, reach, *, exact=False):
    """Ranges of sorted keys within reach of each query: first key, and one past the last."""
    # Where `exact`, a key at the border is in if and only if ``|x - q| / reach <= 1``, which
    # matters to a kernel that jumps there.
    bottom, top = queries - reach, queries + reach
    if exact:
        for end, way in ((bottom, -np.inf), (top, np.inf)):
            for _ in range(3):
                further = np.nextafter(end, way)
                inside = np.abs(further - queries) / reach <= 1
                end[inside] = further[inside]
            for _ in range(3):
                outside = np.abs(end - queries) / reach > 1
                end[outside] = np.nextafter(end[outside], -way)
    return np.searchsorted(x, bottom, "left"), np.searchsorted(x, top, "right")
