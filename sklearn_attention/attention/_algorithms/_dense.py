"""Kernel sums pair by pair: neighbouring queries meet all keys, or those near them."""

import functools
import itertools
import math

import numpy as np

from ..._blocks import IN_CACHE, blocks
from ..._thread_pools import map_on_threads
from .._sums import Sums
from ._keys import ranges

# Bandwidths that neighbouring queries may lie apart, by the degree, or deviations of the keys
# where windows are wider than these: that power of half as many, twice the degree, times the
# rounding is what sums about the middle of a group lose.
APART = (32.0, 32.0, 4.0, 3.0)
# Pairs below which threads cost more than they save.
FEW_PAIRS = 2**18
# Logarithms below the first are as good as none, and processors take ten times as long for
# them, or for what is made of hardly normal numbers. A sum of weights below the second may
# miss some of them that matter.
LOWEST, LEAST = -600.0, 1e-200


class GroupedPairs:
    """Sums over pairs of queries and keys, at multiples (n,) of the bandwidth."""

    def __init__(self, problem, basis, extent):
        self._problem, self._basis, n_keys = problem, basis, len(problem.keys)
        self._numeric = problem.kernel.numeric_columns(problem.keys.shape[1])
        self._columns = np.column_stack([np.ones(n_keys), problem.values])
        self._places = problem.queries[:, self._numeric]
        self._extent = extent if basis.degree else np.inf
        # Weights are made without shifts first, and again for queries of little weight. Other
        # kernels are accurate anyway, or make larger numbers than there are.
        self.is_quick = in_logarithms(problem.kernel) and problem.kernel.stationary

    def over_all(self, rows, width):
        """Sums of the queries at `rows` over all keys."""
        keys = np.arange(len(self._problem.keys))
        size = max(math.isqrt(IN_CACHE), IN_CACHE // len(keys))
        groups = [rows[some] for some in blocks(len(rows), size)]
        # Neighbours are brought together only where others would be too far apart for sums
        # about a middle.
        if len(rows) > size and (self.is_quick or self._basis.degree):
            unit = np.minimum(width[rows].min(), self._extent)
            with np.errstate(over="ignore"):
                apart = np.ptp(self._places[rows], axis=0) > APART[self._basis.degree] * unit
            if apart.any():
                groups = split(self._places, rows, most=size)
        return self.over([(some, lambda: keys) for some in groups], rows, width)

    def over(self, groups, rows, width):
        """Sums of the queries at `rows`, from groups of them and functions for their keys."""
        basis, places, n = self._basis, self._places, len(rows)
        position = np.empty(len(places), np.intp)
        position[rows] = np.arange(n)
        sums = np.zeros((basis.n_powers, self._columns.shape[1], n))
        found = Sums(np.full(n, -np.inf), sums, np.zeros(n))
        offset, unit = np.zeros((n, places.shape[1])), np.ones(n)

        def add(group):
            queries, keys = group[0], group[1]()
            if not len(keys):
                return
            narrowest = width[queries].min()
            groups = [queries]
            if basis.degree:
                with np.errstate(over="ignore"):
                    points = places[queries] / np.minimum(narrowest, self._extent)
                groups = split(points, np.arange(len(points)), apart=APART[basis.degree])
                groups = [queries[part] for part in groups]
            for some in groups:
                to, middle = position[some], (places[some] / len(some)).sum(axis=0)
                unit[to], offset[to] = width[some].max(), places[some] - middle
                near = np.abs(offset[to]).max(initial=0.0) <= APART[0] * narrowest
                given = keys, width, middle, width[some].max()
                new = self._about(some, *given, middle if near and self.is_quick else None)
                found.put(to, new)
                unsure = np.flatnonzero(~new.sure)
                if self.is_quick and len(unsure):
                    found.put(to[unsure], self._about(some[unsure], *given, shifted=True))

        many = n * len(self._problem.keys) > FEW_PAIRS
        # A user's own function may not be safe in threads.
        map_on_threads(add, groups, parallel=many and self._problem.kernel.signed is not None)
        if basis.degree:
            _move(found.sums, offset / unit[:, None], unit / width[rows], basis)
        return found

    def _about(self, rows, keys, width, middle, unit, about=None, *, shifted=False):
        """Sums of neighbouring queries about the middle of their group, in a unit."""
        problem, basis, width = self._problem, self._basis, width[rows]
        tile, quick = max(64, IN_CACHE // len(rows)), self.is_quick and not shifted

        def tiles():
            for part in blocks(len(keys), IN_CACHE):
                some = keys[part]
                columns = self._columns.take(some, axis=0)
                if basis.degree:
                    u = (problem.keys.take(some, axis=0)[:, self._numeric] - middle) / unit
                    columns = basis.columns(u, columns[:, 1:])
                compare = comparison(problem, rows, some, width, about)
                left_out = left_out_pairs(problem, rows, some)
                for few in blocks(len(some), tile):
                    table = compare(few), left_out(few)
                    weights, shift, least = shifted_weights(problem, *table, quick=quick)
                    yield Sums(shift, (weights @ columns[few]).T, least)

        found = functools.reduce(Sums.plus, tiles())
        sums = np.zeros((basis.n_powers, self._columns.shape[1], len(rows)))
        sums[:, 0], of_values = found.sums[: basis.n_powers], found.sums[basis.n_powers :]
        sums[: basis.size, 1:] = of_values.reshape(basis.size, -1, len(rows))
        return found._replace(sums=sums)


def in_logarithms(kernel):
    """True for a kernel that is positive at any distance, so best handled as logarithms."""
    return kernel.signed is False and not kernel.compact


def comparison(problem, rows, keys, width, about=None):
    """Function from a slice of some keys to the weights (n, m), or to logarithms of these.

    With the middle of the queries (d,), by products of matrices for kernels that have such.
    """
    kernel, logs = problem.kernel, in_logarithms(problem.kernel)
    x, y = problem.queries[rows], problem.keys.take(keys, axis=0)
    weights = problem.weights[keys]
    weighted = bool((weights != 1).any())
    join, weights = (np.add, np.log(weights)) if logs else (np.multiply, weights)
    alike = width.min() == width.max()
    if alike and width[0] != 1:
        x, y = (kernel.rescale(points, float(width[0])) for points in (x, y))
    product = None
    if alike and about is not None:
        middle = np.zeros(x.shape[1])
        middle[kernel.numeric_columns(x.shape[1])] = about / width[0]
        with np.errstate(over="ignore"):  # keys that far away have no weight
            product = kernel.as_dot_product(x - middle, y - middle)
    if product is not None:
        left = np.column_stack([product.queries, product.query_bias, np.ones(len(x))])
        bias = product.key_bias + weights
        right = np.column_stack([product.keys, np.ones(len(y)), bias])
        return lambda some: left @ right[some].T
    if alike:
        function = kernel.log if logs else kernel

        def compare(some):
            return function(x, y[some])

    else:
        form, squares = kernel.radial_form(x.shape[1]), np.square(width)[:, None]
        function = form.log_values if logs else form.values

        def compare(some):
            return function(form.squared(x, y[some]) / squares, x, y[some])

    if not weighted:
        return compare
    return lambda some: join(compare(some), weights[some])


def left_out_pairs(problem, rows, keys):
    """Function from a slice of some keys, in order, to the pairs to leave out of a table."""
    if problem.left_out is None:
        return lambda some: None
    low, high = np.searchsorted(keys, problem.left_out[rows].T)
    row, column = np.repeat(np.arange(len(rows)), high - low), ranges(low, high)

    def pairs(some):
        is_here = (some.start <= column) & (column < some.stop)
        return (row[is_here], column[is_here] - some.start) if is_here.any() else None

    return pairs


def shifted_weights(problem, table, left_out, *, quick=False):
    """Weights (n, m) divided by ``exp(shift)``, these shifts (n,), and bounds on the errors.

    From a table of :func:`comparison`, in place. The quick ones have no shifts.
    """
    if not in_logarithms(problem.kernel):
        if left_out is not None:
            table[left_out] = 0.0
        if problem.kernel.signed is False:
            return table, np.zeros(len(table)), np.zeros(len(table))
        size = np.abs(table)
        largest = size.max(axis=1)
        # Sums below this have lost half of their digits.
        least = np.finfo(np.float64).eps ** 0.5 * size.sum(axis=1)
        divisor = np.where(largest > 0, largest, 1.0)
        table /= divisor[:, None]
        with np.errstate(divide="ignore"):
            return table, np.log(largest), least / divisor
    shift, least = np.zeros(len(table)), np.full(len(table), LEAST * len(problem.keys))
    if left_out is not None:
        table[left_out] = -np.inf
    if not quick:
        shift, least = table.max(axis=1), np.zeros(len(table))
        table -= np.where(shift > -np.inf, shift, 0.0)[:, None]
    return exponentials(table), shift, least


def exponentials(table):
    """Exponentials of logarithms of weights, in place; 0 at or below `LOWEST`."""
    np.exp(np.maximum(table, LOWEST, out=table), out=table)
    # Next to nothing, times a far key's powers or a huge value, may be more than all the rest.
    table -= np.exp(LOWEST)
    return table


def split(points, rows, *, most=math.inf, apart=math.inf):
    """Groups of at most so many rows, of points (n, d) at most so far apart along any axis."""
    todo, done = [rows], []
    while todo:
        rows = todo.pop()
        some = points[rows]
        ends = some.min(axis=0, initial=np.inf), some.max(axis=0, initial=-np.inf)
        with np.errstate(over="ignore"):
            extent = ends[1] - ends[0]
        axis = extent.argmax() if len(extent) else 0
        if len(rows) > most:
            order = np.arange(len(rows))
            if len(extent):
                order = np.argpartition(some[:, axis], len(rows) // 2)
            todo += [rows[order[len(rows) // 2 :]], rows[order[: len(rows) // 2]]]
        elif len(extent) and extent[axis] > apart:
            low, high = (end[axis] for end in ends)
            # Between neighbouring numbers the middle rounds to one of them.
            left = some[:, axis] <= min(low / 2 + high / 2, np.nextafter(high, low))
            todo += [rows[~left], rows[left]]
        elif len(rows):
            done.append(rows)
    return done


def _move(sums, offset, ratio, basis):
    """Sums about a middle as those about points at offsets from it, in place.

    Their unit is then another one, to which the one before has a ratio (n,).
    """
    powers = list(map(tuple, basis.powers.tolist()))
    place = {power: i for i, power in enumerate(powers)}
    for axis, i in itertools.product(range(offset.shape[1]), reversed(range(len(powers)))):
        power = powers[i]
        for lower in range(power[axis]):
            rest = power[axis] - lower
            factor = math.comb(power[axis], lower) * (-offset[:, axis]) ** rest
            sums[i] += factor * sums[place[*power[:axis], lower, *power[axis + 1 :]]]
    sums[basis.size :, 1:] = 0.0
    sums *= (ratio ** basis.powers.sum(axis=1)[:, None])[:, None]
