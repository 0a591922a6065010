"""Kernel sums along one feature through Chebyshev interpolation between cells."""

import math

import numpy as np

from ..._blocks import blocks
from ._cells import Cells
from ._windows import window

# Rows, and numbers of neighbouring cells, at a time: what is made of them stays in the
# processor's cache.
_BLOCK_ROWS, _BLOCK_NUMBERS = 2**14, 2**17
# Largest width of a cell, in bandwidths. Towards singularities of the kernel it is narrower,
# so that coefficients of Chebyshev polynomials fall as fast as those of the Gaussian.
_WIDTH, _WIDTH_IN_STRIPS = 2.0, 0.6
# Weights of the kernel below this share of its peak are left out.
_FAR = 1e-20
_ROUNDING = 1e-13


class BoxSums:
    r"""Sums of an analytic kernel in time linear in keys and queries.

    Between two cells the kernel is a polynomial of few terms in either position [1]_,

    .. math:: K(x - q) \approx \sum_{k,l} B_{kl}(\text{offset of the cells})\, T_k(x)\, T_l(q),

    so that a cell's keys are summed once, times each Chebyshev polynomial :math:`T_k`.

    Parameters
    ----------
    kernel : RadialKernel
        With an `analytic_strip`, and light tails.
    degree : int
    n_terms : int, default=20
        Chebyshev polynomials; 20 leave rounding alone.

    References
    ----------
    .. [1] Fong, W. and Darve, E. (2009). The black-box fast multipole method. Journal of
       Computational Physics 228, 8712-8725.
    """

    def __init__(self, kernel, degree, n_terms=20):
        self.degree, self.n_terms = degree, n_terms
        self.width = min(_WIDTH, _WIDTH_IN_STRIPS * kernel.analytic_strip)
        self.reach = reach(kernel, 2 * degree)
        furthest = math.ceil(self.reach / self.width)
        self._offsets = np.arange(-furthest, furthest + 1)
        nodes = np.cos(np.pi * (np.arange(n_terms) + 0.5) / n_terms)
        # From values at the nodes to coefficients.
        coefficients = _chebyshev(nodes, n_terms) * 2 / n_terms
        coefficients[0] /= 2
        # From the terms of cells within reach to those of the sums: a matrix for each power.
        u = (nodes[:, None] - nodes) * self.width / 2  # (source, target)
        u = u + self._offsets[:, None, None] * self.width
        values = kernel.profile(u * u)
        self._between = [
            (coefficients @ (values * u**e) @ coefficients.T).reshape(-1, n_terms)
            for e in range(2 * degree + 1)
        ]
        # The largest weight between cells of each offset, on which rounding is seen.
        apart = (np.abs(self._offsets) - 1).clip(0) * self.width
        self._largest = kernel.profile(apart**2)

    def __call__(self, x, columns, queries, scale):
        """Sums for sorted queries over sorted keys.

        Parameters
        ----------
        x : ndarray of shape (n,)
        columns : ndarray of shape (c, n)
        queries : ndarray of shape (m,)
        scale : float

        Returns
        -------
        sums : ndarray of shape (2 * degree + 1, c, m)
            Powers above `degree` of the first column alone.
        error : ndarray of shape (m,)
            Bound on the error of the first sum.
        """
        cells = Cells(x, self.width * scale, self.reach * scale)
        starts, number, place = (
            (cells.starts, cells.number, cells.place)
            if queries is x
            else cells.of_queries(queries)
        )
        moments = self._moments(cells, columns)
        terms, size = self._local(cells, number, moments)
        sums = self._evaluate(terms, starts, place, len(columns))
        truncated = _FAR * self._largest.max() * columns[0].sum()
        return sums, np.repeat(_ROUNDING * size + truncated, np.diff(starts))

    def cost(self, x, n_columns, queries, scale):
        """How long it takes, about, on one core.

        Parameters
        ----------
        x : ndarray of shape (n,)
        n_columns : int
        queries : ndarray of shape (m,)
            Some, that stand for all.
        scale : float

        Returns
        -------
        nanoseconds : float
            For each key and query.
        """
        n_sums = 2 * self.degree + 1 + (self.degree + 1) * (n_columns - 1)
        low, high = window(x, queries, self.width * scale / 2)
        cells_per_row = (1 / (high - low).clip(1)).mean()
        return 40 + n_sums * (14 + 35 * len(self._offsets) * cells_per_row)

    def _moments(self, cells, columns):
        """Sums of columns times Chebyshev polynomials, (n_columns, n_cells + 1, n_terms).

        The last cell is empty.
        """
        moments = np.zeros((len(columns), len(cells.number) + 1, self.n_terms))
        for first, last in _whole_cells(cells.starts):
            rows = slice(cells.starts[first], cells.starts[last])
            starts = cells.starts[first:last] - rows.start
            t = cells.place[rows]
            below, term = np.ones_like(t), t
            for k in range(self.n_terms):
                for c, column in enumerate(columns):
                    moments[c, first:last, k] = np.add.reduceat(below * column[rows], starts)
                below, term = term, 2 * t * term - below
        return moments

    def _local(self, cells, number, moments):
        """Chebyshev coefficients of the sums in each cell of queries."""
        n_columns, n_cells = len(moments), len(cells.number)
        terms = np.zeros((2 * self.degree + 1, n_columns, len(number), self.n_terms))
        size = np.empty(len(number))
        for part in blocks(len(number), max(1, _BLOCK_NUMBERS // len(self._between[0]))):
            wanted = number[part, None] + self._offsets
            source = np.searchsorted(cells.number, wanted).clip(max=n_cells - 1)
            source[cells.number[source] != wanted] = n_cells
            for c in range(n_columns):
                near = moments[c].take(source, axis=0)
                if c == 0:
                    size[part] = near[:, :, 0] @ self._largest
                near = near.reshape(len(source), -1)
                for e in range(1 + self.degree * (1 if c else 2)):
                    terms[e, c, part] = near @ self._between[e]
        return terms, size

    def _evaluate(self, terms, starts, place, n_columns):
        wanted = [
            (e, c)
            for e in range(2 * self.degree + 1)
            for c in range(n_columns if e <= self.degree else 1)
        ]
        sums = np.zeros((2 * self.degree + 1, n_columns, len(place)))
        for first, last in _whole_cells(starts):
            rows = slice(starts[first], starts[last])
            cell = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            t = place[rows]
            below, term = np.ones_like(t), t
            local = np.ascontiguousarray(terms[:, :, first:last].transpose(3, 0, 1, 2))
            for k in range(self.n_terms):
                for e, c in wanted:
                    sums[e, c, rows] += local[k, e, c].take(cell) * below
                below, term = term, 2 * t * term - below
        return sums


def reach(kernel, power=0):
    """Distance, in bandwidths, beyond which a kernel times a power of it is next to 0."""
    if math.isfinite(kernel.support):
        return kernel.support
    distances = np.arange(0.125, 256, 0.125)
    peak = kernel.profile(np.zeros(1))[0]
    seen = kernel.profile(distances**2) * np.maximum(distances, 1) ** power > _FAR * peak
    return math.inf if seen[-1] else float(distances[np.flatnonzero(seen)[-1]]) + 0.125


def _chebyshev(t, n_terms):
    return np.cos(np.outer(np.arange(n_terms), np.arccos(t)))


def _whole_cells(starts):
    """Ranges of cells with few rows together, at least one cell each."""
    first, n_cells = 0, len(starts) - 1
    while first < n_cells:
        last = int(np.searchsorted(starts, starts[first] + _BLOCK_ROWS, "right")) - 1
        last = min(max(last, first + 1), n_cells)
        yield first, last
        first = last
