r"""Kernel sums pair by pair: groups of neighbouring queries meet all keys, or near ones.

All pairs serve any kernel and any degree, where no other algorithm does. For n queries and m
keys time is O(n m); memory is O(n + m), since only a tile of weights is held, which stays in
the processor's cache.

* Powers of distances are summed about the *middle* :math:`c` of a group, :math:`\sum_i w_i
  K(q, k_i) (k_i - c)^\alpha`: one product of matrices serves the whole group. The binomial
  theorem then moves the sums from c to each query.
* Kernels that are positive at any distance are computed as logarithms. *Quick* weights are
  exponentials of these. *Shifted* weights are divided by the largest weight of their query, so
  that they cannot all vanish; quick sums that are too small are computed again in this way.
* If queries and keys are close to the middle, distances of a Gaussian are products of matrices.

A *scale* (n,) multiplies the bandwidth of each query. *Rows* and *keys* are positions.
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
# Products of matrices give distances without cancellation if all coordinates of the queries are
# within this distance of their middle, in bandwidths.
MAX_PRODUCT_OFFSET = 32.0
# Weights whose logarithm is below `MIN_LOG_WEIGHT` count as 0: processors take ten times as
# long for numbers that are hardly normal. So quick sums below `TINY` may miss weights that
# matter; shifted weights below it do not matter.
MIN_LOG_WEIGHT, TINY = -600.0, 1e-200


class GroupedPairs:
    """Sums over pairs of queries and keys of a problem, at scales of the queries.

    `key_std` (n_numeric,) has the standard deviations of the keys in bandwidths; `basis` has
    the terms whose products are summed.
    """

    def __init__(self, problem, basis, key_std):
        self._problem, self._basis, n_keys = problem, basis, len(problem.keys)
        self._numeric = problem.kernel.numeric_columns(problem.keys.shape[1])
        self._ones_and_values = np.column_stack([np.ones(n_keys), problem.values])
        self._numeric_queries = problem.queries[:, self._numeric]
        self._key_std = key_std if basis.degree else np.inf
        self._max_width = MAX_WIDTH[basis.degree]
        # Kernels in logarithms are quick at first, and shifted where a sum is too small. Those
        # that are not stationary, such as dot products, may be larger than any number, so they
        # are shifted at once. Other kernels are no exponentials.
        self.is_quick = in_logarithms(problem.kernel) and problem.kernel.stationary

    def over_all(self, rows, scales):
        """Compute `Sums` over all keys about the queries at `rows`, in their order."""
        keys = np.arange(len(self._problem.keys))
        size = max(math.isqrt(IN_CACHE), IN_CACHE // len(keys))
        groups = [rows[block] for block in blocks(len(rows), size)]
        # Queries are sorted into groups of neighbours only if groups in the order of the rows
        # are too wide for sums about a middle. Widths are relative to the bandwidth, or to the
        # standard deviation of the keys if the bandwidth is wider than all keys.
        if len(rows) > size and (self.is_quick or self._basis.degree):
            unit = np.minimum(scales[rows].min(), self._key_std)
            with np.errstate(over="ignore"):
                too_wide = np.ptp(self._numeric_queries[rows], axis=0) > self._max_width * unit
            if too_wide.any():
                groups = split(self._numeric_queries, rows, max_rows=size)
        return self.over([(group, lambda: keys) for group in groups], rows, scales)

    def over(self, groups, rows, scales):
        """Compute `Sums` about the queries at `rows`, in the order of the rows.

        `groups` divides these queries into groups of neighbours: pairs of rows, and of a
        function that returns the positions of the keys to sum over.
        """
        basis, n = self._basis, len(rows)
        position = np.empty(len(self._numeric_queries), np.intp)  # of each query in `rows`
        position[rows] = np.arange(n)
        sums = np.zeros((basis.n_powers, self._ones_and_values.shape[1], n))
        total = Sums(shift=np.full(n, -np.inf), sums=sums, error_bound=np.zeros(n))
        # Each query is at an offset (d,) from the middle of its group. The unit of a group is
        # its largest scale, which divides the distances in its sums.
        offset, unit = np.zeros((n, self._numeric_queries.shape[1])), np.ones(n)

        def add(group):
            """Write the sums about the queries of a group, their offsets and their units."""
            group_rows, keys_of_group = group
            keys = keys_of_group()
            if not len(keys):
                return
            min_scale = scales[group_rows].min()
            for queries in self._narrow_groups(group_rows, min_scale):
                points, target = self._numeric_queries[queries], position[queries]
                middle, group_unit = (points / len(queries)).sum(axis=0), scales[queries].max()
                unit[target], offset[target] = group_unit, points - middle
                largest_offset = np.abs(offset[target]).max(initial=0.0)
                is_narrow = largest_offset <= MAX_PRODUCT_OFFSET * min_scale
                arguments = keys, scales, middle, group_unit
                new_sums = self._about(
                    queries, *arguments, quick=self.is_quick, by_products=is_narrow
                )
                total.put(target, new_sums)
                inaccurate = np.flatnonzero(~new_sums.is_accurate)
                if self.is_quick and len(inaccurate):
                    shifted_sums = self._about(queries[inaccurate], *arguments, quick=False)
                    total.put(target[inaccurate], shifted_sums)

        is_large = n * len(self._problem.keys) > FEW_PAIRS
        # A user's own function may not be safe in threads.
        parallel = is_large and self._problem.kernel.signed is not None
        map_on_threads(add, groups, parallel=parallel)
        if basis.degree:
            _move(total.sums, offset / unit[:, None], unit / scales[rows], basis)
        return total

    def _narrow_groups(self, rows, min_scale):
        """Split a group that is too wide for sums of powers about its middle.

        `rows` are its queries, and `min_scale` is their smallest scale. The result is a list of
        arrays of rows. The width is limited relative to the window, or to the keys if the
        window is wider than these, since sums lose digits if a query is far from the middle.
        """
        if not self._basis.degree:
            return [rows]
        with np.errstate(over="ignore"):
            points = self._numeric_queries[rows] / np.minimum(min_scale, self._key_std)
        groups = split(points, np.arange(len(points)), max_width=self._max_width)
        return [rows[group] for group in groups]

    def _about(self, rows, keys, scales, middle, unit, *, quick, by_products=False):
        """Compute `Sums` over keys about the middle (d,) of a group of neighbouring queries.

        The sums are (n_powers, 1 + p, n_rows). Powers are of distances from the middle, divided
        by `unit`; those above the degree are summed for the weights only. Weights are quick
        ones or shifted ones. `by_products` allows products of matrices in place of distances,
        for quick weights only: shifted ones are taken where products may be inaccurate.
        """
        basis = self._basis
        middle_of_products = middle if by_products and quick else None
        tiles = self._sums_of_tiles(
            rows, keys, scales[rows], middle, unit, middle_of_products, quick=quick
        )
        total = functools.reduce(Sums.plus, tiles)
        # `total.sums` (n_powers + P p, n_rows) has the sums of the weights times each of the
        # powers, then for each of the P terms the sums of the weights times term and values.
        sums = np.zeros((basis.n_powers, self._ones_and_values.shape[1], len(rows)))
        sums[:, 0], of_values = total.sums[: basis.n_powers], total.sums[basis.n_powers :]
        sums[: basis.size, 1:] = of_values.reshape(basis.size, -1, len(rows))
        return total._replace(sums=sums)

    def _sums_of_tiles(
        self, rows, keys, row_scales, middle, unit, middle_of_products, *, quick
    ):
        """Yield `Sums` over one tile of keys after the other, with sums (n_columns, n_rows).

        A block of keys is prepared at once; a tile of it is so small that the matrix of its
        weights (n_rows, tile_size) stays in cache. Arguments are as for `_about`;
        `middle_of_products` is the middle if products of matrices are allowed, else None.
        """
        problem, basis = self._problem, self._basis
        tile_size = max(64, IN_CACHE // len(rows))
        for block in blocks(len(keys), IN_CACHE):
            block_keys = keys[block]
            # These columns are summed: 1 and the values, or for polynomials the products of two
            # terms, and of a term and a value.
            columns = self._ones_and_values.take(block_keys, axis=0)
            if basis.degree:
                numbers = problem.keys.take(block_keys, axis=0)[:, self._numeric]
                columns = basis.products((numbers - middle) / unit, columns[:, 1:])
            compare = comparison(problem, rows, block_keys, row_scales, middle_of_products)
            left_out = left_out_pairs(problem, rows, block_keys)
            for tile in blocks(len(block_keys), tile_size):
                weights, log_divisor, error_bound = shifted_weights(
                    problem, compare(tile), left_out(tile), quick=quick
                )
                sums = (weights @ columns[tile]).T
                yield Sums(shift=log_divisor, sums=sums, error_bound=error_bound)


def in_logarithms(kernel):
    """Return True for a kernel that is positive at any distance, so best kept as logarithms."""
    return kernel.signed is False and not kernel.compact


def comparison(problem, rows, keys, scales, middle=None):
    """Return a function that computes the weights of keys for the queries at `rows`.

    The function takes a slice of `keys`, the positions of keys, and returns a table (n_rows,
    n_slice): the kernel times the keys' weights. For kernels `in_logarithms` the table has the
    logarithm of this product.

    `scales` (n_rows,) are those of the queries. If all scales are equal and `middle`
    (n_numeric,), the middle of the queries, is passed, kernels with a form of dot products are
    computed as a product of matrices. Such kernels are always in logarithms.
    """
    kernel, logs = problem.kernel, in_logarithms(problem.kernel)
    x, y = problem.queries[rows], problem.keys.take(keys, axis=0)
    weights = problem.weights[keys]
    is_weighted = bool((weights != 1).any())
    apply_weights, weights = (np.add, np.log(weights)) if logs else (np.multiply, weights)
    if scales.min() < scales.max():
        # Scales differ only for radial kernels. There each query's distances are divided by its
        # scale; the rows x and y themselves serve the kernel's categories.
        form, squared_scales = kernel.radial_form(x.shape[1]), np.square(scales)[:, None]
        evaluate_form = form.log_values if logs else form.values

        def compare(tile):
            return evaluate_form(form.squared(x, y[tile]) / squared_scales, x, y[tile])

    else:
        if scales[0] != 1:
            x, y = (kernel.rescale(points, float(scales[0])) for points in (x, y))
        product = None  # as for a kernel without a form of dot products
        if middle is not None:
            center = np.zeros(x.shape[1])
            center[kernel.numeric_columns(x.shape[1])] = middle / scales[0]
            with np.errstate(over="ignore"):  # keys that far away have no weight
                product = kernel.as_dot_product(x - center, y - center)
        if product is not None:
            return _product_of_matrices(product, weights)
        evaluate = kernel.log if logs else kernel

        def compare(tile):
            return evaluate(x, y[tile])

    if not is_weighted:
        return compare
    return lambda tile: apply_weights(compare(tile), weights[tile])


def _product_of_matrices(form, log_weights):
    """Return the function of :func:`comparison` for a kernel in its form of dot products.

    `log_weights` (n_keys,) are the logarithms of the keys' weights.
    """
    # The row (q, a, 1) of a query times the column (k, 1, b) of a key is q'k + a + b, with the
    # biases a of the query and b of the key.
    query_ones, key_ones = np.ones(len(form.queries)), np.ones(len(form.keys))
    query_factors = np.column_stack([form.queries, form.query_bias, query_ones])
    key_factors = np.column_stack([form.keys, key_ones, form.key_bias + log_weights])
    return lambda tile: query_factors @ key_factors[tile].T


def left_out_pairs(problem, rows, keys):
    """Return a function that finds the pairs of a query and a key to leave out.

    The function takes a slice of `keys`, positions that ascend, and returns the rows and the
    columns of these pairs in a table of :func:`comparison`, or None for no pair.
    """
    if problem.left_out is None:
        return lambda tile: None
    # Ranges of keys become ranges of columns, and these the rows and columns of all pairs.
    low, high = np.searchsorted(keys, problem.left_out[rows].T)
    row, column = np.repeat(np.arange(len(rows)), high - low), ranges(low, high)

    def pairs(tile):
        is_in_tile = (tile.start <= column) & (column < tile.stop)
        return (row[is_in_tile], column[is_in_tile] - tile.start) if is_in_tile.any() else None

    return pairs


def shifted_weights(problem, table, left_out, *, quick=False):
    """Turn a table of :func:`comparison` into weights divided by ``exp(shift)``, in place.

    `left_out` are the rows and columns of pairs without weight, or None.

    Returns
    -------
    weights : array of shape (n, m)
    shift : array of shape (n,)
        Logarithm of the largest absolute weight of each query; 0 for quick weights, and for
        positive kernels that are not in logarithms.
    error_bound : array of shape (n,)
        Bound on the error of the sum of a query's weights, divided as these are; 0 if it is
        exact.
    """
    if not in_logarithms(problem.kernel):
        if left_out is not None:
            table[left_out] = 0.0
        if problem.kernel.signed is False:
            return table, np.zeros(len(table)), np.zeros(len(table))
        size = np.abs(table)
        largest = size.max(axis=1)
        # Sums below this bound have lost half of their digits, since signed weights cancel.
        bound = np.finfo(np.float64).eps ** 0.5 * size.sum(axis=1)
        divisor = np.where(largest > 0, largest, 1.0)
        table /= divisor[:, None]
        with np.errstate(divide="ignore"):
            return table, np.log(largest), bound / divisor
    shift, bound = np.zeros(len(table)), np.full(len(table), TINY * len(problem.keys))
    if left_out is not None:
        table[left_out] = -np.inf
    if not quick:
        shift, bound = table.max(axis=1), np.zeros(len(table))
        table -= np.where(shift > -np.inf, shift, 0.0)[:, None]
    return exponentials(table), shift, bound


def exponentials(table):
    """Compute weights from their logarithms, in place; 0 at or below `MIN_LOG_WEIGHT`."""
    np.exp(np.maximum(table, MIN_LOG_WEIGHT, out=table), out=table)
    # A tiny weight, times a far key's powers or a huge value, may exceed all other terms.
    table -= np.exp(MIN_LOG_WEIGHT)
    return table


def split(points, rows, *, max_rows=math.inf, max_width=math.inf):
    """Split rows of points (n, d) into groups of neighbours; return a list of arrays of rows.

    Groups are halved along their longest axis until they have at most `max_rows` rows, and are
    at most `max_width` wide along it.
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
            # Rounding must not put the middle at the upper end: no half may be empty.
            is_below = group[:, axis] <= min(low / 2 + high / 2, np.nextafter(high, low))
            remaining += [rows[~is_below], rows[is_below]]
        elif len(rows):
            groups.append(rows)
    return groups


def _move(sums, offset, ratio, basis):
    """Turn sums about middles into sums about the queries, in place, by the binomial theorem.

    Queries are at offsets (n, d) from the middles, in the unit of the sums. The unit changes as
    well: `ratio` (n,) is the old unit divided by the new one.
    """
    # (u - o)^a = sum_l binom(a, l) (-o)^(a - l) u^l along each axis, for the offset o. Higher
    # powers are replaced first, since they need the lower ones about the middle.
    powers = list(map(tuple, basis.powers.tolist()))
    index = {power: i for i, power in enumerate(powers)}
    for axis, i in itertools.product(range(offset.shape[1]), reversed(range(len(powers)))):
        power = powers[i]
        for lower in range(power[axis]):
            exponent = power[axis] - lower
            factor = math.comb(power[axis], lower) * (-offset[:, axis]) ** exponent
            sums[i] += factor * sums[index[*power[:axis], lower, *power[axis + 1 :]]]
    # Powers above the degree are summed for the weights only.
    sums[basis.size :, 1:] = 0.0
    sums *= (ratio ** basis.powers.sum(axis=1)[:, None])[:, None]
