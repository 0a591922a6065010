"""Kernel sums in one or two features by Chebyshev interpolation between cells.

They are for analytic kernels of one feature, and for Gaussians of two. Time is O(n + m) for
each sum, with a factor of the number of cells within the kernel's cutoff; memory is O(n + m).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..._blocks import IN_CACHE, IN_MEMORY, blocks
from ._chebyshev import FURTHEST, PointsInCells, between_cells, cell_width, in_cells
from ._keys import ROUNDING

# Rows of matrices that are multiplied at once: so few that no threads are started for them.
_ROWS = 8


class Boxes:
    r"""Sums of an analytic kernel in time linear in keys and queries.

    Between two cells :math:`K(x - q) \approx \sum_{k,l} B_{kl}\, T_k(x)\, T_l(q)`, where B
    depends on the offset of the cells (Fong and Darve 2009, J. Comput. Phys. 228, 8712-8725).
    So the keys of a cell are summed once, times each Chebyshev polynomial :math:`T_k`. In the
    plane the Gaussian is a product over both axes, and sums pass to the cells around along one
    axis after the other. `profile` is the kernel of squared distances along an axis.
    """

    def __init__(self, keys, profile, grid):
        self.points, self.columns = keys.points, keys.columns
        self.powers, self.degree = keys.powers, keys.degree
        self.profile, self.grid = profile, grid
        self._neglected = float(profile(np.array(grid.cutoff**2))) * self.columns[0].sum()
        self._range = self.points.min(axis=0), self.points.max(axis=0)
        # What bandwidths whose cells have the same width share: this width, the keys in cells,
        # a mask of keys whose cell is not known, and moments of blocks of columns.
        self._keys, self._moments = (None, None, None), {}

    def plan(self, queries, scale):
        """Plan the sums about queries (m, n_axes), at a multiple of the bandwidth.

        If the queries are the attribute `points` of the keys, their cells are known.
        """
        grid = self.grid
        low, high = self._range
        if queries is not self.points and len(queries):
            low = np.minimum(low, queries.min(axis=0))
            high = np.maximum(high, queries.max(axis=0))
        extent = float((high - low).max())
        # Cells are no wider than the range of the points: powers of small distances need
        # polynomials of these. And no cell is unknown, though rounding may take a third of the
        # width.
        largest = float(np.maximum(abs(low), abs(high)).max())
        widest = max(extent, 2 * largest / FURTHEST)
        width = cell_width(min(grid.width * scale, widest or np.inf))
        if self._keys[0] != width:
            keys, outside = self._rows(self.points, width)
            self._keys = width, keys, outside
            self._moments = {}
        _, keys, outside = self._keys
        rows = keys
        if queries is not self.points:
            rows, outside = self._rows(queries, width)
        n_cells = math.ceil(min(grid.cutoff * scale, extent) / width)
        offsets = np.arange(-n_cells, n_cells + 1.0)
        return Plan(width / scale, offsets, rows, outside, _legs(keys, rows, offsets))

    def _rows(self, points, width):
        number, place = in_cells(points.T, width)
        code = number[0] if len(number) == 1 else number[0] + 1j * number[1]
        points = PointsInCells(code, place, self.grid.n_terms)
        return points, np.abs(number).max(axis=0) >= FURTHEST

    def __call__(self, plan):
        """Return sums (n_powers, c, m) over all keys, and bounds (m,) of the first one's error.

        For powers above the degree, only the first column is summed.
        """
        keys, rows = self._keys[1], plan.rows
        highest = 1 + max(map(max, self.powers))
        between = [
            between_cells(self.profile, plan.offsets, plan.width, self.grid.n_terms, e)
            for e in range(highest)
        ]
        of_cell = self.grid.n_terms ** self.points.shape[1]
        n_low = sum(sum(power) <= self.degree for power in self.powers)
        at_once = max(1, IN_MEMORY // (of_cell * len(keys.codes)))
        sums = np.zeros((len(self.powers), len(self.columns), len(plan.outside)))
        for block in blocks(len(self.columns), at_once):
            key = block.start, block.stop
            if key not in self._moments:
                self._moments = {key: keys.moments(self.columns[block])}
            moments = self._moments[key]
            n_columns = moments.shape[1]
            step = max(1, IN_MEMORY // (of_cell * n_columns * n_low * len(plan.offsets)))
            low = rows.empty(n_low, n_columns)
            high = rows.empty(len(self.powers) - n_low if block.start == 0 else 0, 1)
            for cells in blocks(len(rows.codes), step):
                for values, powers, terms in (
                    (low, self.powers[:n_low], moments),
                    (high, self.powers[n_low:], moments[:, :1]),
                ):
                    if len(values):
                        coefficients = _local_terms(terms, plan.legs, between, powers, cells)
                        rows.evaluate(cells, coefficients, values)
            sums[:n_low, block] = rows.at_points(low)
            if len(high):
                sums[n_low:, :1] = rows.at_points(high)
        return sums, self._error(plan)

    def n_pairs(self, plan):
        """Count the pairs of a query and a key in cells within the cutoff of each other."""
        n_keys = self._keys[1].totals(np.ones(len(self.points)))
        for leg in plan.legs:
            n_keys = np.append(n_keys[leg].sum(axis=1), 0.0)
        return n_keys @ plan.rows.totals(np.ones(len(plan.outside)))

    def _error(self, plan):
        """Return bounds (m,) on the errors of the sums of weights."""
        min_distance = (np.abs(plan.offsets) - 1).clip(0) * plan.width
        largest = self.profile(min_distance**2)
        size = self._keys[1].totals(self.columns[0])
        for leg in plan.legs:
            size = np.append((size[leg] * largest).sum(axis=1), 0.0)
        error = plan.rows.spread(ROUNDING * size + self._neglected)
        error[plan.outside] = np.inf
        return error


class Grid(NamedTuple):
    """Cells, in units of the kernel."""

    width: float  # of a cell, at most
    n_terms: int  # Chebyshev polynomials along each axis, whose error is below rounding
    cutoff: float  # distance beyond which the kernel is negligible


class Plan(NamedTuple):
    """Queries in cells, and the keys' cells around them."""

    width: float  # of a cell, in units of the kernel
    offsets: Any  # (n_offsets,) of cells within the cutoff, along each axis
    rows: Any  # the queries, as PointsInCells
    outside: Any  # (m,) whether a query's cell is not known
    # Along each axis the cells (n_targets, n_offsets) whose terms are added to each; -1 for
    # an empty one.
    legs: Any


def _legs(keys, queries, offsets):
    """Return the cells whose terms are added to each cell, along one axis after the other."""
    targets = queries.codes
    if not np.iscomplexobj(targets):
        return [_position(keys.codes, targets[:, None] + offsets)]
    # Stops have the number of the target along the first axis, and that of the source along
    # the second.
    behind = targets[:, None] + 1j * offsets
    stops = np.unique(behind)
    first = _position(keys.codes, stops[:, None] + offsets)
    has_source = (first >= 0).any(axis=1)
    return [first[has_source], _position(stops[has_source], behind)]


def _local_terms(terms, legs, between, powers, cells):
    """Return the coefficients of the sums in a slice of the queries' cells, for each power."""
    *first, last = legs
    last = last[cells]
    if not first:
        return [_moved(terms, last, between[e]) for (e,) in powers]
    needed = np.unique(last[last >= 0])
    last = np.where(last >= 0, np.searchsorted(needed, last), -1)
    along_first = {}
    for e in {e for e, _ in powers}:
        moved = _moved(terms, first[0][needed], between[e])
        along_first[e] = np.ascontiguousarray(moved.swapaxes(2, 3))
    return [_moved(along_first[e], last, between[f]) for e, f in powers]


def _moved(terms, source, between):
    """Move terms of the cells around each cell to it; the last cell is empty.

    `source` (n_cells, n_offsets) has the positions of the cells around, -1 for an empty one.
    `between` is the matrix of `between_cells`.
    """
    shape = terms.shape[1:]
    n_targets = _ROWS * (len(source) // _ROWS + 1)
    source = np.pad(source, ((0, n_targets - len(source)), (0, 0)), constant_values=-1)
    moved = np.empty((n_targets, *shape))
    size = source.shape[1] * math.prod(shape)
    for cells in blocks(n_targets, _ROWS * max(1, IN_CACHE // (_ROWS * size))):
        around = np.moveaxis(terms[source[cells]], 1, -2).reshape(-1, _ROWS, len(between))
        moved[cells] = (around @ between).reshape(-1, *shape)
    return moved


def _position(values, targets):
    """Return the position of each target among ascending values; -1 if it is missing."""
    if not len(values):
        return np.full(np.shape(targets), -1)
    position = np.searchsorted(values, targets)
    position[position == len(values)] = 0
    return np.where(values[position] == targets, position, -1)
