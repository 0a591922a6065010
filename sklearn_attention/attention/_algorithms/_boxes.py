r"""Kernel sums in one or two features by Chebyshev interpolation between cells.

They are taken for analytic kernels of one feature, and for Gaussians of two. For n queries and
m keys time is O(n + m) for each sum, with a factor of the number of cells within the kernel's
cutoff; memory is O(n + m).

The line, or the plane, is divided into *cells* of equal width. For a key x in one cell and a
query q in another,

.. math:: K(x - q)\, (x - q)^e \approx \sum_{k,l} B_{kl}\, T_k(x)\, T_l(q)

with Chebyshev polynomials T of the positions in the cells, and a matrix B that depends only on
e and on the offset between the cells (Fong and Darve 2009, J. Comput. Phys. 228, 8712-8725). So
three steps give all sums: *moments* :math:`\sum_i T_k(x_i) C_{ci}` of each cell of keys, for
the columns C that are summed; *coefficients*, which B makes of the moments of all cells around
a cell of queries; and the polynomials :math:`T_l` with these coefficients at the queries.

In the plane a Gaussian is a product over both axes. Then moments are passed on along one axis
after the other, in *legs*: from a cell of keys at (a, b) along the first axis to the *stop* at
(c, b), and along the second axis to the cell of queries at (c, d). *Terms* are moments or
coefficients of a cell, n_terms along each axis.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..._blocks import IN_CACHE, IN_MEMORY, blocks
from ._chebyshev import MAX_CELL_NUMBER, PointsInCells, between_cells, cell_width, in_cells
from ._keys import ROUNDING

# Rows of each product of matrices in a stack: so few that no threads are started for them.
_ROWS_OF_PRODUCT = 8


class Boxes:
    """Sums of an analytic kernel over keys (`LinearTimeKeys`) in cells.

    `profile` is the kernel of squared distances along one axis, and `grid` the :class:`Grid` of
    the cells.
    """

    def __init__(self, keys, profile, grid):
        self.points, self.columns = keys.points, keys.columns
        self.powers, self.degree = keys.powers, keys.degree
        self.profile, self.grid = profile, grid
        # This bounds the sum of the weights that a query gives to keys beyond the cutoff.
        self._neglected_weight = (
            float(profile(np.array(grid.cutoff**2))) * self.columns[0].sum()
        )
        self._range = self.points.min(axis=0), self.points.max(axis=0)
        # The keys in cells and a mask of keys in unknown cells depend on the cells' width. So
        # do the moments, which are kept for one block of columns: {(start, stop): moments}.
        self._width, self._keys, self._keys_are_outside, self._moments = None, None, None, {}

    def plan(self, queries, scale):
        """Plan the sums about queries (n, n_axes), at a scale: a multiple of the bandwidth.

        If the queries are the attribute `points` of the keys, their cells are known.
        """
        grid = self.grid
        low, high = self._range
        if queries is not self.points and len(queries):
            low = np.minimum(low, queries.min(axis=0))
            high = np.maximum(high, queries.max(axis=0))
        width = _width_of_cells(grid.width * scale, low, high)
        # The cells of the keys are kept until a call needs cells of another width.
        if self._width != width:
            self._width, self._moments = width, {}
            self._keys, self._keys_are_outside = self._in_cells(self.points, width)
        # The queries as `PointsInCells`, and a mask of queries in unknown cells.
        rows, is_outside = self._keys, self._keys_are_outside
        if queries is not self.points:
            rows, is_outside = self._in_cells(queries, width)
        # Cells are passed on as far as the kernel reaches, or as the points extend.
        extent = float((high - low).max())
        n_cells = math.ceil(min(grid.cutoff * scale, extent) / width)
        offsets = np.arange(-n_cells, n_cells + 1.0)
        return Plan(width / scale, offsets, rows, is_outside, _legs(self._keys, rows, offsets))

    def _in_cells(self, points, width):
        """Return the `PointsInCells`, and True (n,) for points in unknown cells."""
        number, position = in_cells(points.T, width)
        # In the plane the code of a cell is complex: its number along the first axis is the
        # real part, and that along the second axis the imaginary part.
        code = number[0] if len(number) == 1 else number[0] + 1j * number[1]
        points_in_cells = PointsInCells(code, position, self.grid.n_terms)
        return points_in_cells, np.abs(number).max(axis=0) >= MAX_CELL_NUMBER

    def __call__(self, plan):
        """Return sums (n_powers, c, n) over all keys, and bounds (n,) of the first one's error.

        Powers above the degree are summed for the first column only, the weights.
        """
        keys, rows = self._keys, plan.rows
        max_exponent = max(map(max, self.powers))
        matrices = [
            between_cells(self.profile, plan.offsets, plan.width, self.grid.n_terms, e)
            for e in range(max_exponent + 1)
        ]
        # Blocks of columns, and of the queries' cells, keep the terms of cells within memory.
        numbers_per_cell = self.grid.n_terms ** self.points.shape[1]
        n_low = sum(sum(power) <= self.degree for power in self.powers)
        max_columns = max(1, IN_MEMORY // (numbers_per_cell * len(keys.codes)))
        sums = np.zeros((len(self.powers), len(self.columns), len(plan.is_outside)))
        for block in blocks(len(self.columns), max_columns):
            moments = self._moments_of(block)
            n_columns = moments.shape[1]
            n_numbers = numbers_per_cell * n_columns * n_low * len(plan.offsets)
            max_cells = max(1, IN_MEMORY // n_numbers)
            sums_to_degree = rows.empty(n_low, n_columns)
            n_high = len(self.powers) - n_low if block.start == 0 else 0
            sums_above_degree = rows.empty(n_high, 1)
            for cells in blocks(len(rows.codes), max_cells):
                for cell_sums, powers, terms in (
                    (sums_to_degree, self.powers[:n_low], moments),
                    (sums_above_degree, self.powers[n_low:], moments[:, :1]),
                ):
                    if len(cell_sums):
                        coefficients = _coefficients(terms, plan.legs, matrices, powers, cells)
                        rows.evaluate(cells, coefficients, cell_sums)
            sums[:n_low, block] = rows.at_points(sums_to_degree)
            if n_high:
                sums[n_low:, :1] = rows.at_points(sums_above_degree)
        return sums, self._error(plan)

    def _moments_of(self, block):
        """Return the moments of a block of columns; those of the last block are kept."""
        key = block.start, block.stop
        if key not in self._moments:
            self._moments = {key: self._keys.moments(self.columns[block])}
        return self._moments[key]

    def n_pairs(self, plan):
        """Count the pairs of a query and a key in cells within the cutoff of each other."""
        n_keys = self._keys.totals(np.ones(len(self.points)))
        for leg in plan.legs:
            n_keys = np.append(n_keys[leg].sum(axis=1), 0.0)
        return n_keys @ plan.rows.totals(np.ones(len(plan.is_outside)))

    def _error(self, plan):
        """Return bounds (n,) on the errors of the sums of weights.

        They are inf for queries in unknown cells.
        """
        # Rounding errors are relative to a sum over the cells around: their total weights times
        # the largest value of the kernel at the offset. Cells beyond the cutoff are neglected.
        min_distance = (np.abs(plan.offsets) - 1).clip(0) * plan.width
        largest = self.profile(min_distance**2)
        # Legs pass on weights as they do terms, from cells of keys to stops or cells of
        # queries. Position -1 is an empty cell, of weight 0, which is appended.
        weight = self._keys.totals(self.columns[0])
        for leg in plan.legs:
            weight = np.append((weight[leg] * largest).sum(axis=1), 0.0)
        error = plan.rows.cell_values(ROUNDING * weight + self._neglected_weight)
        error[plan.is_outside] = np.inf
        return error


def _width_of_cells(width, low, high):
    """Return the width of cells for points from `low` to `high` (n_axes,), at most `width`.

    It is limited to the range of the points. In a cell that is wider than this range, the
    points are close together relative to the width, and powers of their distances lose digits.
    """
    max_width = float((high - low).max())
    # If the range is tiny relative to the distance of the points from 0, the limit is larger:
    # numbers of cells, which are distances from 0 divided by the width, must not exceed
    # MAX_CELL_NUMBER. The factor 2 allows for rounding.
    largest = float(np.maximum(abs(low), abs(high)).max())
    max_width = max(max_width, 2 * largest / MAX_CELL_NUMBER)
    return cell_width(min(width, max_width or np.inf))


class Grid(NamedTuple):
    """How finely a kernel is interpolated; lengths are in units of the kernel."""

    width: float  # largest width of a cell
    n_terms: int  # Chebyshev polynomials along each axis, whose error is below rounding
    cutoff: float  # distance beyond which the kernel is negligible


class Plan(NamedTuple):
    """Queries in cells, and the keys' cells around them."""

    width: float  # width of a cell, in units of the kernel
    offsets: Any  # (n_offsets,) offsets of cells within the cutoff, along each axis
    rows: Any  # the queries, as PointsInCells
    is_outside: Any  # (n,) True for a query in an unknown cell
    # For each leg the positions (n_targets, n_offsets) of the cells whose terms are added to
    # each target: a stop, or a cell of queries. -1 is an empty cell.
    legs: Any


def _legs(keys, queries, offsets):
    """Return the legs of a plan, along one axis after the other; see :class:`Plan`.

    `keys` and `queries` are `PointsInCells`, and `offsets` those of cells within the cutoff.
    """
    targets = queries.codes
    if not np.iscomplexobj(targets):
        return [_position(keys.codes, targets[:, None] + offsets)]
    stops_of_targets = targets[:, None] + 1j * offsets
    stops = np.unique(stops_of_targets)
    first_leg = _position(keys.codes, stops[:, None] + offsets)
    has_source = (first_leg >= 0).any(axis=1)
    return [first_leg[has_source], _position(stops[has_source], stops_of_targets)]


def _coefficients(terms, legs, matrices, powers, cells):
    """Return the coefficients of the sums in a slice of the queries' cells, for each power.

    `terms` (n_cells + 1, c, n_terms), or (n_cells + 1, c, n_terms, n_terms) in the plane, are
    the moments of the keys' cells. `legs` are those of a :class:`Plan`, and `matrices` those of
    `between_cells` for each exponent. The result is a list of arrays like `terms`, but for the
    cells of the slice, which come first.
    """
    *first_legs, last_leg = legs
    last_leg = last_leg[cells]
    if not first_legs:
        return [_moved(terms, last_leg, matrices[e]) for (e,) in powers]
    # Only stops on the way to these cells are computed, once for each exponent along the first
    # axis.
    (first_leg,) = first_legs
    stops = np.unique(last_leg[last_leg >= 0])
    last_leg = np.where(last_leg >= 0, np.searchsorted(stops, last_leg), -1)
    terms_at_stops = {}
    for e in {e for e, _ in powers}:
        moved = _moved(terms, first_leg[stops], matrices[e])
        # The last axis of terms is the one along which they are moved.
        terms_at_stops[e] = np.ascontiguousarray(moved.swapaxes(2, 3))
    return [_moved(terms_at_stops[e], last_leg, matrices[f]) for e, f in powers]


def _moved(terms, sources, matrix):
    """Move terms of the cells around each target to the target, along their last axis.

    For each target, the terms of the cells around it are multiplied by `matrix` and added.

    Parameters
    ----------
    terms : array of shape (n_cells + 1, ..., n_terms)
        Those of an empty cell, which is the last one, are 0.
    sources : int array of shape (n_targets, n_offsets)
        Positions of the cells around each target; -1 for a cell without keys, the empty one.
    matrix : array of shape (n_offsets * n_terms, n_terms)
        The result of `between_cells`.

    Returns
    -------
    moved : array of shape (n_padded, ..., n_terms)
        One or more empty targets are added at the end, so that n_padded is a multiple of
        `_ROWS_OF_PRODUCT`, and the last one is the empty cell of the next leg.
    """
    shape = terms.shape[1:]
    n_rows = _ROWS_OF_PRODUCT
    n_targets = n_rows * (len(sources) // n_rows + 1)
    sources = np.pad(sources, ((0, n_targets - len(sources)), (0, 0)), constant_values=-1)
    moved = np.empty((n_targets, *shape))
    numbers_per_target = sources.shape[1] * math.prod(shape)
    for targets in blocks(
        n_targets, n_rows * max(1, IN_CACHE // (n_rows * numbers_per_target))
    ):
        around = np.moveaxis(terms[sources[targets]], 1, -2).reshape(-1, n_rows, len(matrix))
        moved[targets] = (around @ matrix).reshape(-1, *shape)
    return moved


def _position(values, targets):
    """Return the position of each target among ascending values; -1 if it is missing."""
    if not len(values):
        return np.full(np.shape(targets), -1)
    position = np.searchsorted(values, targets)
    position[position == len(values)] = 0
    return np.where(values[position] == targets, position, -1)
