"""Sums over pairs of rows of products of kernels, and their derivatives; with NumPy."""

import math

import numpy as np

from .._blocks import blocks
from .._thread_pools import one_blas_thread
from ..kernels import Gaussian
from ..kernels._numerics import ROUNDED_UP, log, squared_distances
from ._algorithms._dense import LEAST, exponentials
from ._algorithms._keys import BLOCK_PAIRS

# Squared distances by products of matrices are rounded by this at most.
_TOLERANCE = 1e-10
# Squares of this size, times the exponentials above, are nothing.
_HUGE = 1e40


def positive_factors(kernel, n_features):
    """Positive kernels of the distance, by columns, whose product a kernel is; None if none."""
    factors, rest = kernel.radial_factors(n_features)
    positive = rest is None and not any(factor.signed for factor, _ in factors)
    return factors if positive else None


class PairSums:
    r"""Weighted sums over all rows, or all others, about each row.

    :math:`S_c(i) = \sum_k w_k\, v_{kc} \prod_f K_f\bigl((x_i - x_k) / h\bigr) \prod_j
    T_j(l_{ij}, l_{kj})`, with columns v and tables T of the codes l (n, n_categories) passed to
    each call. All :math:`K_f` are positive kernels of the distance.
    """

    # `share` maps a function over blocks. With several `images` the rows are so many tables in
    # turn, all images of the first; sums are about rows of the first, and own images are left
    # out.

    def __init__(self, numbers, codes, kernel, weights, *, leave_out=True, share=map, images=1):
        d = numbers.shape[1]
        self.factors = positive_factors(kernel, d) if d else []
        if self.factors is None:
            raise ValueError(
                f"kernel={kernel!r} is not a product of positive kernels of the distance, and "
                "only for these can several bandwidths or lambdas be searched: choose a "
                "kernel such as 'gaussian', or pass numbers or 'scott' as bandwidth."
            )
        # From the middle, so that no digits are lost to where the rows are.
        self.numbers = numbers - np.median(numbers, axis=0)
        self.codes, self.leave_out, self.share, self._images = codes, leave_out, share, images
        self.weights, self.log_scale = weights / weights.max(), math.log(weights.max())
        # Kernels of bounded support, which are often 0, are multiplied; where there are others
        # too, all are added as logarithms.
        bounded = [math.isfinite(factor.support) for factor, _ in self.factors]
        self.in_logs = not (bounded and all(bounded))
        at_itself = np.zeros(1)
        self.log_own = sum(float(f.log_profile(at_itself)[0]) for f, _ in self.factors)
        self._orders = {
            j: np.argsort(numbers[:, j], kind="stable")
            for factor, members in self.factors
            for j in members
            if math.isfinite(factor.support)
        }

    @one_blas_thread()
    def __call__(self, bandwidth, tables=(), columns=None, row_blocks=None, slopes=True):
        """Averages (n, c) and log_total (n,), and derivatives `pull`."""
        # `tables` has the values (n_levels, n_levels) of each category and their slopes in a
        # parameter. The first of `columns` (n, c) is 1 throughout; None is only that one. With
        # `row_blocks`, `columns` is a function of a block. Averages are 0 where no row has
        # weight. `pull(of_log_total, of_averages)`, which needs `slopes`, turns derivatives
        # along the sums into those along log-bandwidths and parameters of tables.
        product, n_keys = _Product(self, bandwidth, tables), len(self.numbers)
        n = n_keys // self._images
        columns = np.ones((n_keys, 1)) if columns is None else columns
        mutual, todo, lost = [], None, np.ones(n, dtype=bool)
        if row_blocks is None and self._images == 1 and not product.is_symmetric:
            todo = self.near(bandwidth, both=True)
        elif row_blocks is None and self._images == 1:
            weighted = self.weights[:, None] * columns
            mutual = list(
                self.share(
                    lambda block: _Mutual(product, weighted, *block, slopes),
                    self.near(bandwidth),
                )
            )
            sums = np.zeros(weighted.shape)
            for block in mutual:
                sums[block.rows] += block.of_rows
                sums[block.later] += block.of_later
            lost = (sums[:, 0] < LEAST) & self.in_logs
        if row_blocks is None:
            rows = np.flatnonzero(lost)
            row_blocks = (
                rows[some] for some in blocks(len(rows), max(1, BLOCK_PAIRS // n_keys))
            )
        if todo is None:
            todo = ((rows, np.arange(n_keys)) for rows in row_blocks)

        def sum_rows(block):
            rows, keys = block
            own = columns(rows) if callable(columns) else columns
            return _BlockOfPairs(product, own[keys], rows, keys, n, slopes)

        one_way = list(self.share(sum_rows, todo))
        shift = np.zeros(n)
        if not mutual:
            sums = np.empty((n, one_way[0].sums.shape[1]))
        for block in one_way:
            sums[block.rows], shift[block.rows] = block.sums, block.shift
        total = sums[:, 0].copy()
        averages = sums / np.where(total > 0, total, 1.0)[:, None]
        inverse = np.divide(1.0, total, out=np.zeros(n), where=total > LEAST)

        @one_blas_thread()
        def pull(of_log_total, of_averages=None):
            terms = np.zeros_like(averages) if of_averages is None else of_averages.copy()
            terms[:, 0] += of_log_total - np.vecdot(terms, averages)
            terms *= inverse[:, None]
            kept = np.where(lost[:, None], 0.0, terms)
            found = self.share(lambda block: block.pull(terms), one_way)
            return sum(found) + sum(self.share(lambda block: block.pull(kept), mutual))

        return averages, log(total) + shift + self.log_scale, pull

    def near(self, bandwidth, *, both=False):
        """Blocks of rows, and these with the keys after them that are within their reach.

        Of rows in some order. So each pair of rows is in one block, or in two for `both` sides.
        """
        n = len(self.numbers)
        order, low, high = np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, n)
        for factor, members in self.factors:
            for j in members if math.isfinite(factor.support) else []:
                x, reach = (
                    self.numbers[self._orders[j], j],
                    ROUNDED_UP * factor.support * bandwidth[j],
                )
                first, end = np.searchsorted(x, x - reach), np.searchsorted(x, x + reach)
                if (end - first).sum() < (high - low).sum():
                    order, low, high = self._orders[j], first, end
        # So many rows, and the keys around them, make as many pairs as a block may have.
        low = low if both else np.arange(n)
        around = (high - low).mean()
        size = max(1, int((math.sqrt(around**2 + 4 * BLOCK_PAIRS) - around) / 2))
        for rows in blocks(n, size):
            yield order[rows], order[low[rows.start] : max(rows.stop, high[rows.stop - 1])]


class _Product:
    """The product of all kernels at one bandwidth, as a table between some rows and keys."""

    def __init__(self, sums, bandwidth, tables):
        self.sums = sums
        with np.errstate(over="ignore"):
            x = sums.numbers / bandwidth
            largest = np.square(x).sum(axis=1).max()
        self.is_symmetric = largest < _HUGE and all((t == t.T).all() for t, _ in tables)
        # Whether squared distances by products of matrices have their digits.
        self._by_products = 2 * np.finfo(np.float64).eps * largest <= _TOLERANCE
        self._x = [np.ascontiguousarray(x[:, members]) for _, members in sums.factors]
        self._sides = {}
        for f, (factor, _) in enumerate(sums.factors):
            if self._by_products and isinstance(factor, Gaussian):
                x, ones = self._x[f], np.ones(len(sums.numbers))
                half = np.vecdot(x, x) / 2
                right = np.column_stack([x, ones, factor.log_profile(2 * half)])
                self._sides[f] = np.column_stack([x, -half, ones]), right
        self._levels = [
            (
                codes,
                log(value) if sums.in_logs else value,
                np.divide(slope, value, out=np.zeros_like(value), where=value > 0),
            )
            for codes, (value, slope) in zip(sums.codes.T, tables, strict=True)
        ]

    def __call__(self, rows, keys):
        """The product or its logarithm, (n_rows, n_keys)."""
        found, join = None, np.add if self.sums.in_logs else np.multiply
        for values in self._values(rows, keys):
            found = values if found is None else join(found, values, out=found)
        if found is None:
            found = np.full((len(rows), len(keys)), 0.0 if self.sums.in_logs else 1.0)
        return found

    def _values(self, rows, keys):
        for f, (factor, _) in enumerate(self.sums.factors):
            if f in self._sides:
                left, right = self._sides[f]
                yield left.take(rows, axis=0) @ right.take(keys, axis=0).T
            elif self.sums.in_logs:
                yield factor.log_profile(self._squared(rows, keys, f))
            else:
                yield factor.profile(self._squared(rows, keys, f))
        for codes, table, _ in self._levels:
            yield table[codes[rows]].take(codes[keys], axis=1)

    def pull(self, outer, rows, keys):
        """Derivatives along log-bandwidths and tables, from those along the logarithm."""
        d = self.sums.numbers.shape[1]
        gradient = np.zeros(d + len(self._levels))
        for f, (factor, members) in enumerate(self.sums.factors):
            terms, unit = outer, 1.0  # a Gaussian's slope is -1/2 everywhere
            if f not in self._sides:
                squared, unit = self._squared(rows, keys, f), -2.0
                terms = factor.log_slope(squared)
                terms *= outer
            if f in self._sides or (self._by_products and len(members) > 1):
                x, y = (self._x[f].take(some, axis=0) for some in (rows, keys))
                # The squares of differences, from their products.
                found = terms @ np.column_stack([y, y**2, np.ones(len(y))])
                products, squares = found[:, : len(members)], found[:, len(members) : -1]
                gradient[members] += unit * (
                    (squares + x**2 * found[:, -1:] - 2 * x * products).sum(axis=0)
                )
                continue
            for k, j in enumerate(members):
                square = squared if len(members) == 1 else self._squared(rows, keys, f, k)
                gradient[j] -= 2 * np.vdot(terms, square)
        for j, (codes, _, slopes) in enumerate(self._levels):
            gradient[d + j] = np.vdot(outer, slopes[codes[rows]].take(codes[keys], axis=1))
        return gradient

    def _squared(self, rows, keys, f, k=None):
        """Squared distances of a factor, or along one of its columns."""
        x, y = (self._x[f].take(some, axis=0) for some in (rows, keys))
        with np.errstate(over="ignore"):
            if k is None and x.shape[1] > 1:
                return squared_distances(x, y)
            difference = np.subtract.outer(x[:, k or 0], y[:, k or 0])
            return np.square(difference, out=difference)


class _Mutual:
    """Both directions of a symmetric block: rows over keys, and later keys over rows."""

    def __init__(self, product, weighted, rows, keys, slopes):
        self.rows, self.later, self._keys = rows, keys[len(rows) :], keys
        self._product, self._weighted = product, weighted
        table = product(rows, keys)
        table = exponentials(table) if product.sums.in_logs else table
        if product.sums.leave_out:
            np.fill_diagonal(table, 0.0)
        self.of_rows = table @ weighted.take(keys, axis=0)
        self.of_later = table[:, len(rows) :].T @ weighted.take(rows, axis=0)
        self._table = table if slopes else None

    def pull(self, terms):
        """Derivatives along log-bandwidths and tables, from those along all sums (n, c)."""
        rows, keys = self.rows, self._keys
        there = terms.take(keys, axis=0)
        there[: len(rows)] = 0.0  # pairs among the rows are in the sums of both already
        left = np.column_stack([terms.take(rows, axis=0), self._weighted.take(rows, axis=0)])
        outer = left @ np.column_stack([self._weighted.take(keys, axis=0), there]).T
        outer *= self._table
        return self._product.pull(outer, self.rows, self._keys)


class _BlockOfPairs:
    """Sums of some rows over keys, divided by ``exp(shift)``."""

    def __init__(self, product, columns, rows, keys, n, slopes):
        sums, self._keys = product.sums, keys
        self.rows, self._product, self._columns = rows, product, columns
        place = np.empty(len(sums.numbers), dtype=np.intp)
        place[keys] = np.arange(len(keys))
        own = place[np.add.outer(np.arange(0, len(place), n), rows)]
        left_out = (np.arange(len(rows)), own) if sums.leave_out else (slice(0), slice(0))
        table, self.shift = product(rows, self._keys), 0.0
        if sums.in_logs:
            table += np.log(sums.weights[keys])
            table[left_out] = -np.inf
            self.shift = table.max(axis=1)
            table -= np.where(self.shift > -np.inf, self.shift, 0.0)[:, None]
            table = exponentials(table)
        else:
            table *= sums.weights[keys]
            table[left_out] = 0.0
        self.sums = table @ columns
        self._table = table if slopes else None

    def pull(self, terms):
        """Derivatives along log-bandwidths and tables, from those along all sums (n, c)."""
        outer = terms[self.rows] @ self._columns.T
        outer *= self._table
        return self._product.pull(outer, self.rows, self._keys)
