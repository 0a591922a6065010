"""Kernel sums pair by pair: groups of neighbouring queries meet all keys, or near ones.

All pairs serve any kernel and any degree, where no other algorithm does. Time is O(n m);
memory is O(n + m), since a tile of weights stays in the processor's cache.
"""

import functools
import itertools
import math

import numpy as np

from ..._blocks import IN_CACHE, blocks
from ..._thread_pools import map_on_threads
from .._sums import Sums
from ._keys import ranges

# Maximum width of a group of queries, by degree: in bandwidths, or in standard deviations of
# the keys where windows are wider than these. Sums about the middle of a group lose as many
# digits as half of this width to the power of twice the degree has.
MAX_WIDTH = (32.0, 32.0, 4.0, 3.0)
# Pairs below which threads cost more than they save.
FEW_PAIRS = 2**18
# Logarithms of weights below `LOWEST` count as no weight: processors take ten times as long for
# numbers that are hardly normal. A sum of weights below `LEAST` may miss weights that matter.
LOWEST, LEAST = -600.0, 1e-200


class GroupedPairs:
    """Sums over pairs of queries and keys, at multiples (n,) of the bandwidth."""

    def __init__(self, problem, basis, extent):
        self._problem, self._basis, n_keys = problem, basis, len(problem.keys)
        self._numeric = problem.kernel.numeric_columns(problem.keys.shape[1])
        self._columns = np.column_stack([np.ones(n_keys), problem.values])
        self._places = problem.queries[:, self._numeric]
        self._extent = extent if basis.degree else np.inf
        # Weights of positive kernels are computed without shifts first, and again for queries
        # of little weight. Other kernels need no shift, or are larger than any number.
        self.is_quick = in_logarithms(problem.kernel) and problem.kernel.stationary

    def over_all(self, rows, width):
        """Sum over all keys about the queries at `rows`."""
        keys = np.arange(len(self._problem.keys))
        size = max(math.isqrt(IN_CACHE), IN_CACHE // len(keys))
        groups = [rows[block] for block in blocks(len(rows), size)]
        # Queries are sorted into groups of neighbours only if groups in the order of the rows
        # are too wide for sums about a middle.
        if len(rows) > size and (self.is_quick or self._basis.degree):
            unit = np.minimum(width[rows].min(), self._extent)
            with np.errstate(over="ignore"):
                too_wide = np.ptp(self._places[rows], axis=0) > self._max_width * unit
            if too_wide.any():
                groups = split(self._places, rows, max_rows=size)
        return self.over([(group, lambda: keys) for group in groups], rows, width)

    @property
    def _max_width(self):
        return MAX_WIDTH[self._basis.degree]

    def over(self, groups, rows, width):
        """Sum about the queries at `rows`, from groups of them and functions for their keys."""
        basis, places, n = self._basis, self._places, len(rows)
        position = np.empty(len(places), np.intp)
        position[rows] = np.arange(n)
        sums = np.zeros((basis.n_powers, self._columns.shape[1], n))
        total = Sums(np.full(n, -np.inf), sums, np.zeros(n))
        offset, unit = np.zeros((n, places.shape[1])), np.ones(n)

        def add(group):
            queries, keys = group[0], group[1]()
            if not len(keys):
                return
            min_width, narrow_groups = width[queries].min(), [queries]
            if basis.degree:
                with np.errstate(over="ignore"):
                    points = places[queries] / np.minimum(min_width, self._extent)
                rows_of_points = np.arange(len(points))
                narrow_groups = split(points, rows_of_points, max_width=self._max_width)
                narrow_groups = [queries[narrow] for narrow in narrow_groups]
            for queries in narrow_groups:
                to, middle = position[queries], (places[queries] / len(queries)).sum(axis=0)
                unit[to], offset[to] = width[queries].max(), places[queries] - middle
                is_narrow = np.abs(offset[to]).max(initial=0.0) <= MAX_WIDTH[0] * min_width
                arguments = keys, width, middle, width[queries].max()
                about = middle if is_narrow and self.is_quick else None
                new = self._about(queries, *arguments, about)
                total.put(to, new)
                inaccurate = np.flatnonzero(~new.is_accurate)
                if self.is_quick and len(inaccurate):
                    shifted = self._about(queries[inaccurate], *arguments, shifted=True)
                    total.put(to[inaccurate], shifted)

        is_large = n * len(self._problem.keys) > FEW_PAIRS
        # A user's own function may not be safe in threads.
        parallel = is_large and self._problem.kernel.signed is not None
        map_on_threads(add, groups, parallel=parallel)
        if basis.degree:
            _move(total.sums, offset / unit[:, None], unit / width[rows], basis)
        return total

    def _about(self, rows, keys, width, middle, unit, about=None, *, shifted=False):
        """Sum over keys about the middle (d,) of a group of neighbouring queries.

        Distances are divided by `unit`, and `width` has the multiples of the bandwidth. Kernels
        with a form of dot products are compared `about` the middle. Shifted weights are divided
        by the largest one of each query.
        """
        problem, basis, width = self._problem, self._basis, width[rows]
        tile_size, quick = max(64, IN_CACHE // len(rows)), self.is_quick and not shifted

        def sums_of_tiles():
            """Yield the sums over one tile of keys after the other.

            A block of keys is prepared at once; a tile of it is so small that the matrix of its
            weights (n_queries, tile_size) stays in cache.
            """
            for block in blocks(len(keys), IN_CACHE):
                block_keys = keys[block]
                # What is summed: 1 and the values, and for polynomials all products of terms.
                columns = self._columns.take(block_keys, axis=0)
                if basis.degree:
                    numbers = problem.keys.take(block_keys, axis=0)[:, self._numeric]
                    columns = basis.columns((numbers - middle) / unit, columns[:, 1:])
                compare = comparison(problem, rows, block_keys, width, about)
                left_out = left_out_pairs(problem, rows, block_keys)
                for tile in blocks(len(block_keys), tile_size):
                    weights, log_divisor, error_bound = shifted_weights(
                        problem, compare(tile), left_out(tile), quick=quick
                    )
                    yield Sums(log_divisor, (weights @ columns[tile]).T, error_bound)

        total = functools.reduce(Sums.plus, sums_of_tiles())
        sums = np.zeros((basis.n_powers, self._columns.shape[1], len(rows)))
        sums[:, 0], of_values = total.sums[: basis.n_powers], total.sums[basis.n_powers :]
        sums[: basis.size, 1:] = of_values.reshape(basis.size, -1, len(rows))
        return total._replace(sums=sums)


def in_logarithms(kernel):
    """Return True for a kernel that is positive at any distance, so best kept as logarithms."""
    return kernel.signed is False and not kernel.compact


def comparison(problem, rows, keys, width, about=None):
    """Return a function from a slice of `keys` to the weights (n, m), or to their logarithms.

    With the middle of the queries (d,), kernels that have a form of dot products take it.
    """
    kernel, logs = problem.kernel, in_logarithms(problem.kernel)
    x, y = problem.queries[rows], problem.keys.take(keys, axis=0)
    weights = problem.weights[keys]
    is_weighted = bool((weights != 1).any())
    join, weights = (np.add, np.log(weights)) if logs else (np.multiply, weights)
    is_one_width = width.min() == width.max()
    if is_one_width and width[0] != 1:
        x, y = (kernel.rescale(points, float(width[0])) for points in (x, y))
    product = None
    if is_one_width and about is not None:
        middle = np.zeros(x.shape[1])
        middle[kernel.numeric_columns(x.shape[1])] = about / width[0]
        with np.errstate(over="ignore"):  # keys that far away have no weight
            product = kernel.as_dot_product(x - middle, y - middle)
    if product is not None:
        queries = np.column_stack([product.queries, product.query_bias, np.ones(len(x))])
        bias = product.key_bias + weights
        product_keys = np.column_stack([product.keys, np.ones(len(y)), bias])
        return lambda tile: queries @ product_keys[tile].T
    if is_one_width:
        function = kernel.log if logs else kernel

        def compare(tile):
            return function(x, y[tile])

    else:
        form, squares = kernel.radial_form(x.shape[1]), np.square(width)[:, None]
        function = form.log_values if logs else form.values

        def compare(tile):
            return function(form.squared(x, y[tile]) / squares, x, y[tile])

    if not is_weighted:
        return compare
    return lambda tile: join(compare(tile), weights[tile])


def left_out_pairs(problem, rows, keys):
    """Return a function from a slice of `keys`, which ascend, to the pairs to leave out."""
    if problem.left_out is None:
        return lambda tile: None
    low, high = np.searchsorted(keys, problem.left_out[rows].T)
    row, column = np.repeat(np.arange(len(rows)), high - low), ranges(low, high)

    def pairs(tile):
        is_in_tile = (tile.start <= column) & (column < tile.stop)
        return (row[is_in_tile], column[is_in_tile] - tile.start) if is_in_tile.any() else None

    return pairs


def shifted_weights(problem, table, left_out, *, quick=False):
    """Return weights (n, m) divided by ``exp(shift)``, the shifts, and bounds of the errors.

    The weights are computed in place, from a table of :func:`comparison`. If they are quick,
    all shifts are 0. Shifts and bounds are (n,).
    """
    if not in_logarithms(problem.kernel):
        if left_out is not None:
            table[left_out] = 0.0
        if problem.kernel.signed is False:
            return table, np.zeros(len(table)), np.zeros(len(table))
        size = np.abs(table)
        largest = size.max(axis=1)
        # Sums below this have lost half of their digits.
        bound = np.finfo(np.float64).eps ** 0.5 * size.sum(axis=1)
        divisor = np.where(largest > 0, largest, 1.0)
        table /= divisor[:, None]
        with np.errstate(divide="ignore"):
            return table, np.log(largest), bound / divisor
    shift, bound = np.zeros(len(table)), np.full(len(table), LEAST * len(problem.keys))
    if left_out is not None:
        table[left_out] = -np.inf
    if not quick:
        shift, bound = table.max(axis=1), np.zeros(len(table))
        table -= np.where(shift > -np.inf, shift, 0.0)[:, None]
    return exponentials(table), shift, bound


def exponentials(table):
    """Compute exponentials of logarithms of weights in place; 0 at or below `LOWEST`."""
    np.exp(np.maximum(table, LOWEST, out=table), out=table)
    # A tiny weight, times a far key's powers or a huge value, may exceed all other terms.
    table -= np.exp(LOWEST)
    return table


def split(points, rows, *, max_rows=math.inf, max_width=math.inf):
    """Split rows into groups of at most `max_rows` neighbours, at most `max_width` wide.

    Points are (n, d), and the width is that along the longest axis.
    """
    remaining, groups = [rows], []
    while remaining:
        rows = remaining.pop()
        group = points[rows]
        ends = group.min(axis=0, initial=np.inf), group.max(axis=0, initial=-np.inf)
        with np.errstate(over="ignore"):
            extent = ends[1] - ends[0]
        axis = extent.argmax() if len(extent) else 0
        if len(rows) > max_rows:
            order = np.arange(len(rows))
            if len(extent):
                order = np.argpartition(group[:, axis], len(rows) // 2)
            remaining += [rows[order[len(rows) // 2 :]], rows[order[: len(rows) // 2]]]
        elif len(extent) and extent[axis] > max_width:
            low, high = (end[axis] for end in ends)
            # Between neighbouring numbers the middle rounds to one of them.
            is_below = group[:, axis] <= min(low / 2 + high / 2, np.nextafter(high, low))
            remaining += [rows[~is_below], rows[is_below]]
        elif len(rows):
            groups.append(rows)
    return groups


def _move(sums, offset, ratio, basis):
    """Turn sums about a middle into those about points at offsets (n, d) from it, in place.

    The unit changes as well: `ratio` (n,) is the unit before, divided by the new one.
    """
    powers = list(map(tuple, basis.powers.tolist()))
    place = {power: i for i, power in enumerate(powers)}
    for axis, i in itertools.product(range(offset.shape[1]), reversed(range(len(powers)))):
        power = powers[i]
        for lower in range(power[axis]):
            exponent = power[axis] - lower
            factor = math.comb(power[axis], lower) * (-offset[:, axis]) ** exponent
            sums[i] += factor * sums[place[*power[:axis], lower, *power[axis + 1 :]]]
    sums[basis.size :, 1:] = 0.0
    sums *= (ratio ** basis.powers.sum(axis=1)[:, None])[:, None]
