"""Sums of products of kernels over all pairs of rows, and their derivatives."""

import math

import numpy as np

from .._blocks import blocks
from .._thread_pools import one_blas_thread
from ..kernels import Gaussian
from ..kernels._numerics import ROUNDED_UP, log, squared_distances
from ._algorithms._dense import LEAST, exponentials
from ._algorithms._keys import BLOCK_PAIRS

# Maximum rounding error of squared distances that are computed by products of matrices.
_TOLERANCE = 1e-10
# If squared distances are larger, tables are not taken for symmetric: the product of such a
# number and the smallest exponential is negligible.
_HUGE = 1e40


def positive_factors(kernel, n_features):
    """Return the positive radial factors of a kernel, with their columns.

    None if the kernel is no product of such factors alone.
    """
    factors, of_categories = kernel.radial_factors(n_features)
    is_positive = of_categories is None and not any(factor.signed for factor, _ in factors)
    return factors if is_positive else None


class PairSums:
    r"""Weighted sums over all rows, or over all other rows, about each row.

    :math:`S_c(i) = \sum_k w_k\, v_{kc} \prod_f K_f\bigl((x_i - x_k) / h\bigr) \prod_j
    T_j(l_{ij}, l_{kj})`, with columns v and tables T of the codes l (n, n_categories) passed to
    each call. All :math:`K_f` are positive kernels of the distance.
    """

    # `share` maps a function over blocks. With several `images` the rows are that many tables,
    # one after the other, all of them images of the first one; sums are about rows of the first
    # table, and each row leaves out its own images.

    def __init__(self, numbers, codes, kernel, weights, *, leave_out=True, share=map, images=1):
        d = numbers.shape[1]
        self.factors = positive_factors(kernel, d) if d else []
        if self.factors is None:
            raise ValueError(
                f"kernel={kernel!r} is not a product of positive kernels of the distance, and "
                "only for these can several bandwidths or lambdas be searched: choose a "
                "kernel such as 'gaussian', or pass numbers or 'scott' as bandwidth."
            )
        # The middle is subtracted, so that a common offset costs no digits.
        self.numbers = numbers - np.median(numbers, axis=0)
        self.codes, self.leave_out, self.share, self._images = codes, leave_out, share, images
        self.weights, self.log_scale = weights / weights.max(), math.log(weights.max())
        # Compact kernels, which are often 0, are multiplied. If some kernel is not compact, the
        # logarithms of all kernels are added.
        is_compact = [math.isfinite(factor.support) for factor, _ in self.factors]
        self.in_logs = not (is_compact and all(is_compact))
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
        """Return averages (n, c), logarithms of total weights (n,), and the function `vjp`.

        `tables` has the values (n_levels, n_levels) of each category and their slopes in a
        parameter. The first of `columns` (n, c) is 1 throughout; None is only that one. With
        `row_blocks`, `columns` is a function of a block. Averages are 0 if no row has weight.
        ``vjp(of_log_total, of_averages)``, which needs `slopes`, turns derivatives along the
        results into those along log-bandwidths and parameters of tables.
        """
        product, n_keys = _Product(self, bandwidth, tables), len(self.numbers)
        n = n_keys // self._images
        columns = np.ones((n_keys, 1)) if columns is None else columns
        symmetric_blocks, todo, lost = [], None, np.ones(n, dtype=bool)
        if row_blocks is None and self._images == 1 and not product.is_symmetric:
            todo = self.pair_blocks(bandwidth, both=True)
        elif row_blocks is None and self._images == 1:
            weighted = self.weights[:, None] * columns
            symmetric_blocks = list(
                self.share(
                    lambda block: _SymmetricBlock(product, weighted, *block, slopes),
                    self.pair_blocks(bandwidth),
                )
            )
            sums = np.zeros(weighted.shape)
            for block in symmetric_blocks:
                sums[block.rows] += block.of_rows
                sums[block.later] += block.of_later
            lost = (sums[:, 0] < LEAST) & self.in_logs
        if row_blocks is None:
            rows = np.flatnonzero(lost)
            row_blocks = (
                rows[block] for block in blocks(len(rows), max(1, BLOCK_PAIRS // n_keys))
            )
        if todo is None:
            todo = ((rows, np.arange(n_keys)) for rows in row_blocks)

        def sum_rows(block):
            rows, keys = block
            block_columns = columns(rows) if callable(columns) else columns
            return _BlockOfPairs(product, block_columns[keys], rows, keys, n, slopes)

        one_way_blocks = list(self.share(sum_rows, todo))
        shift = np.zeros(n)
        if not symmetric_blocks:
            sums = np.empty((n, one_way_blocks[0].sums.shape[1]))
        for block in one_way_blocks:
            sums[block.rows], shift[block.rows] = block.sums, block.shift
        total = sums[:, 0].copy()
        averages = sums / np.where(total > 0, total, 1.0)[:, None]
        inverse = np.divide(1.0, total, out=np.zeros(n), where=total > LEAST)

        @one_blas_thread()
        def vjp(of_log_total, of_averages=None):
            terms = np.zeros_like(averages) if of_averages is None else of_averages.copy()
            terms[:, 0] += of_log_total - np.vecdot(terms, averages)
            terms *= inverse[:, None]
            symmetric_terms = np.where(lost[:, None], 0.0, terms)
            one_way = self.share(lambda block: block.vjp(terms), one_way_blocks)
            symmetric = self.share(lambda block: block.vjp(symmetric_terms), symmetric_blocks)
            return sum(one_way) + sum(symmetric)

        return averages, log(total) + shift + self.log_scale, vjp

    def pair_blocks(self, bandwidth, *, both=False):
        """Yield blocks of rows, and these with the keys after them within the kernel's support.

        So each pair of rows is in one block, or in two if keys on `both` sides are yielded.
        """
        n = len(self.numbers)
        order, low, high = np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, n)
        for factor, members in self.factors:
            for j in members if math.isfinite(factor.support) else []:
                x = self.numbers[self._orders[j], j]
                support = ROUNDED_UP * factor.support * bandwidth[j]
                first, end = np.searchsorted(x, x - support), np.searchsorted(x, x + support)
                if (end - first).sum() < (high - low).sum():
                    order, low, high = self._orders[j], first, end
        # This number of rows and the keys around them make as many pairs as a block may have.
        low = low if both else np.arange(n)
        around = (high - low).mean()
        size = max(1, int((math.sqrt(around**2 + 4 * BLOCK_PAIRS) - around) / 2))
        for rows in blocks(n, size):
            yield order[rows], order[low[rows.start] : max(rows.stop, high[rows.stop - 1])]


class _Product:
    """The product of all kernels at one bandwidth, as a table between rows and keys."""

    def __init__(self, sums, bandwidth, tables):
        self.sums = sums
        with np.errstate(over="ignore"):
            x = sums.numbers / bandwidth
            largest = np.square(x).sum(axis=1).max()
        self.is_symmetric = largest < _HUGE and all((t == t.T).all() for t, _ in tables)
        # True if squared distances that are computed by products of matrices are accurate.
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
        """Return the product or its logarithm, (n_rows, n_keys)."""
        product, join = None, np.add if self.sums.in_logs else np.multiply
        for values in self._values(rows, keys):
            product = values if product is None else join(product, values, out=product)
        if product is None:
            product = np.full((len(rows), len(keys)), 0.0 if self.sums.in_logs else 1.0)
        return product

    def _values(self, rows, keys):
        for f, (factor, _) in enumerate(self.sums.factors):
            if f in self._sides:
                of_rows, of_keys = self._sides[f]
                yield of_rows.take(rows, axis=0) @ of_keys.take(keys, axis=0).T
            elif self.sums.in_logs:
                yield factor.log_profile(self._squared(rows, keys, f))
            else:
                yield factor.profile(self._squared(rows, keys, f))
        for codes, table, _ in self._levels:
            yield table[codes[rows]].take(codes[keys], axis=1)

    def vjp(self, outer, rows, keys):
        """Turn derivatives along the logarithm into those along log-bandwidths and tables."""
        d = self.sums.numbers.shape[1]
        gradient = np.zeros(d + len(self._levels))
        for f, (factor, members) in enumerate(self.sums.factors):
            terms, unit = outer, 1.0  # a Gaussian's slope is -1/2 everywhere
            if f not in self._sides:
                squared, unit = self._squared(rows, keys, f), -2.0
                terms = factor.log_slope(squared)
                terms *= outer
            if f in self._sides or (self._by_products and len(members) > 1):
                x, y = (self._x[f].take(positions, axis=0) for positions in (rows, keys))
                # Squares of differences follow from products and squares.
                sums = terms @ np.column_stack([y, y**2, np.ones(len(y))])
                products, squares = sums[:, : len(members)], sums[:, len(members) : -1]
                gradient[members] += unit * (
                    (squares + x**2 * sums[:, -1:] - 2 * x * products).sum(axis=0)
                )
                continue
            for k, j in enumerate(members):
                square = squared if len(members) == 1 else self._squared(rows, keys, f, k)
                gradient[j] -= 2 * np.vdot(terms, square)
        for j, (codes, _, slopes) in enumerate(self._levels):
            gradient[d + j] = np.vdot(outer, slopes[codes[rows]].take(codes[keys], axis=1))
        return gradient

    def _squared(self, rows, keys, f, k=None):
        """Return squared distances of a factor, or along its column `k`."""
        x, y = (self._x[f].take(positions, axis=0) for positions in (rows, keys))
        with np.errstate(over="ignore"):
            if k is None and x.shape[1] > 1:
                return squared_distances(x, y)
            difference = np.subtract.outer(x[:, k or 0], y[:, k or 0])
            return np.square(difference, out=difference)


class _SymmetricBlock:
    """Sums in both directions of a symmetric block: of rows, and of the keys after these."""

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

    def vjp(self, terms):
        """Turn derivatives along all sums (n, c) into those along log-bandwidths and tables."""
        rows, keys = self.rows, self._keys
        key_terms = terms.take(keys, axis=0)
        key_terms[: len(rows)] = 0.0  # pairs among the rows are in the sums of both already
        of_rows = terms.take(rows, axis=0), self._weighted.take(rows, axis=0)
        of_keys = self._weighted.take(keys, axis=0), key_terms
        outer = np.column_stack(of_rows) @ np.column_stack(of_keys).T
        outer *= self._table
        return self._product.vjp(outer, self.rows, self._keys)


class _BlockOfPairs:
    """Sums of rows over keys, divided by ``exp(shift)``."""

    def __init__(self, product, columns, rows, keys, n, slopes):
        sums, self._keys = product.sums, keys
        self.rows, self._product, self._columns = rows, product, columns
        place = np.empty(len(sums.numbers), dtype=np.intp)
        place[keys] = np.arange(len(keys))
        own_images = place[np.add.outer(np.arange(0, len(place), n), rows)]
        left_out = (slice(0), slice(0))
        if sums.leave_out:
            left_out = np.arange(len(rows)), own_images
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

    def vjp(self, terms):
        """Turn derivatives along all sums (n, c) into those along log-bandwidths and tables."""
        outer = terms[self.rows] @ self._columns.T
        outer *= self._table
        return self._product.vjp(outer, self.rows, self._keys)
