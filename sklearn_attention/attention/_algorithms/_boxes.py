"""Kernel sums in one or two features through Chebyshev interpolation between cells."""

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
        self._far = float(profile(np.array(grid.reach**2))) * self.columns[0].sum()
        self._range = self.points.min(axis=0), self.points.max(axis=0)
        # Results for all bandwidths of the same width: this, the keys in its cells, which
        # are not known of some, and moments of the columns from some on.
        self._keys, self._moments = (None, None, None), {}

    def plan(self, queries, scale):
        """Plan of the sums for some queries (m, n_axes), at a multiple of the bandwidth.

        The attribute `points` of the keys, for the keys themselves, spares some work.
        """
        grid = self.grid
        low, high = self._range
        if queries is not self.points and len(queries):
            low = np.minimum(low, queries.min(axis=0))
            high = np.maximum(high, queries.max(axis=0))
        extent = float((high - low).max())
        # No wider than all there is: powers of small distances need polynomials of these. And
        # no cell is unknown, though rounding may take a third of the width.
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
        furthest = math.ceil(min(grid.reach * scale, extent) / width)
        offsets = np.arange(-furthest, furthest + 1.0)
        return Plan(width / scale, offsets, rows, outside, _legs(keys, rows, offsets))

    def _rows(self, points, width):
        number, place = in_cells(points.T, width)
        code = number[0] if len(number) == 1 else number[0] + 1j * number[1]
        points = PointsInCells(code, place, self.grid.n_terms)
        return points, np.abs(number).max(axis=0) >= FURTHEST

    def __call__(self, plan):
        """Sums (n_powers, c, m) over all keys, and bounds (m,) on the error of the first.

        Of powers above the degree there are those of the first column only.
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
        for some in blocks(len(self.columns), at_once):
            if (some.start, some.stop) not in self._moments:
                self._moments = {(some.start, some.stop): keys.moments(self.columns[some])}
            moments = self._moments[some.start, some.stop]
            n_columns = moments.shape[1]
            step = max(1, IN_MEMORY // (of_cell * n_columns * n_low * len(plan.offsets)))
            low = rows.empty(n_low, n_columns)
            high = rows.empty(len(self.powers) - n_low if some.start == 0 else 0, 1)
            for part in blocks(len(rows.codes), step):
                for found, powers, terms in (
                    (low, self.powers[:n_low], moments),
                    (high, self.powers[n_low:], moments[:, :1]),
                ):
                    if len(found):
                        local = _carry(terms, plan.legs, between, powers, part)
                        rows.evaluate(part, local, found)
            sums[:n_low, some] = rows.at_points(low)
            if len(high):
                sums[n_low:, :1] = rows.at_points(high)
        return sums, self._error(plan)

    def n_pairs(self, plan):
        """Number of pairs of a query and a key in the cells within reach of each other."""
        near = self._keys[1].totals(np.ones(len(self.points)))
        for leg in plan.legs:
            near = np.append(near[leg].sum(axis=1), 0.0)
        return near @ plan.rows.totals(np.ones(len(plan.outside)))

    def _error(self, plan):
        apart = (np.abs(plan.offsets) - 1).clip(0) * plan.width
        largest = self.profile(apart**2)
        size = self._keys[1].totals(self.columns[0])
        for leg in plan.legs:
            size = np.append((size[leg] * largest).sum(axis=1), 0.0)
        error = plan.rows.spread(ROUNDING * size + self._far)
        error[plan.outside] = np.inf
        return error


class Grid(NamedTuple):
    """Cells, in units of the kernel."""

    width: float  # of a cell, at most
    n_terms: int  # Chebyshev polynomials along each axis, which leave what is below rounding
    reach: float  # distance beyond which the kernel is next to 0


class Plan(NamedTuple):
    """Queries in cells, and the keys' cells around them."""

    width: float  # of a cell, in units of the kernel
    offsets: Any  # (n_offsets,) of cells within reach, along each axis
    rows: Any  # the queries, as PointsInCells
    outside: Any  # (m,) whether a query's cell is not known
    # Along each axis the cells (n_targets, n_offsets) whose terms are added to each; -1 for
    # an empty one.
    legs: Any


def _legs(keys, queries, offsets):
    targets = queries.codes
    if not np.iscomplexobj(targets):
        return [_position(keys.codes, targets[:, None] + offsets)]
    # Stops have the number of the target along the first axis, and that of the source along
    # the second.
    behind = targets[:, None] + 1j * offsets
    stops = np.unique(behind)
    first = _position(keys.codes, stops[:, None] + offsets)
    some = (first >= 0).any(axis=1)
    return [first[some], _position(stops[some], behind)]


def _carry(terms, legs, between, powers, part):
    """Coefficients of the sums in some cells of queries, for each power."""
    *first, last = legs
    last = last[part]
    if not first:
        return [_carried(terms, last, between[e]) for (e,) in powers]
    needed = np.unique(last[last >= 0])
    last = np.where(last >= 0, np.searchsorted(needed, last), -1)
    along = {}
    for e in {e for e, _ in powers}:
        carried = _carried(terms, first[0][needed], between[e])
        along[e] = np.ascontiguousarray(carried.swapaxes(2, 3))
    return [_carried(along[e], last, between[f]) for e, f in powers]


def _carried(terms, source, between):
    """Terms from around each cell, times a matrix; those of an empty cell behind."""
    shape = terms.shape[1:]
    n_targets = _ROWS * (len(source) // _ROWS + 1)
    source = np.pad(source, ((0, n_targets - len(source)), (0, 0)), constant_values=-1)
    found = np.empty((n_targets, *shape))
    size = source.shape[1] * math.prod(shape)
    for part in blocks(n_targets, _ROWS * max(1, IN_CACHE // (_ROWS * size))):
        near = np.moveaxis(terms[source[part]], 1, -2).reshape(-1, _ROWS, len(between))
        found[part] = (near @ between).reshape(-1, *shape)
    return found


def _position(values, wanted):
    """Position of each wanted value among ascending ones; -1 where it is missing."""
    if not len(values):
        return np.full(np.shape(wanted), -1)
    place = np.searchsorted(values, wanted)
    place[place == len(values)] = 0
    return np.where(values[place] == wanted, place, -1)
