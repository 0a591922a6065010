r"""Sums of products of kernels over all pairs of rows, and their derivatives.

For rows :math:`x_i` with weights :math:`w_k` and columns :math:`v_{kc}`, `PairSums` computes

.. math:: S_c(i) = \sum_k w_k\, v_{kc}\, K_{ik}, \qquad
          K_{ik} = \prod_f K_f\bigl((x_i - x_k) / h\bigr) \prod_j T_j(l_{ij}, l_{kj})

with positive kernels :math:`K_f` of the distance, and tables :math:`T_j` of the similarity of
two levels of a category. The first column is 1, so :math:`A_c(i) = S_c(i) / S_0(i)` are
weighted *averages*, and :math:`S_0` are *totals*. Searches of a bandwidth for each feature use
them: derivatives are along *log-bandwidths* :math:`\log h_j`, and along one parameter of each
table. Time is O(n^2) for n rows, or in proportion to the pairs within the support of a compact
kernel; memory is that of all tables :math:`K_{ik}` if derivatives are wanted.

A *symmetric block* sums each pair of its rows and keys in both directions at once. A *one-way
block* sums over keys about rows only: for columns that differ from block to block, and for rows
whose sum in a symmetric block is so small that weights may have vanished. `vjp`, the adjoint of
the derivative, turns derivatives along results into derivatives along parameters.
"""

import math

import numpy as np

from .._blocks import blocks
from .._thread_pools import one_blas_thread
from ..kernels import Gaussian
from ..kernels._numerics import ROUNDED_UP, log, squared_distances
from ._algorithms._dense import TINY, exponentials
from ._algorithms._keys import BLOCK_PAIRS

# Maximum rounding error of squared distances that are computed by products of matrices.
_TOLERANCE = 1e-10
# If squared distances are larger, K is not taken for symmetric, and pairs are summed one way:
# the product of such a number and the smallest exponential is negligible.
_HUGE = 1e40


def positive_factors(kernel, n_features):
    """Return the positive radial factors of a kernel, as pairs of a factor and its columns.

    None if the kernel is no product of such factors alone.
    """
    factors, category_kernel = kernel.radial_factors(n_features)
    is_positive = category_kernel is None and not any(factor.signed for factor, _ in factors)
    return factors if is_positive else None


class PairSums:
    """Weighted averages and totals over all rows, or over all other rows, about each row.

    Parameters
    ----------
    numbers : array of shape (n_keys, d)
        Rows, which the kernel compares.
    codes : int array of shape (n_keys, n_categories)
        Levels of categories, which the tables passed to each call compare.
    kernel : Kernel
        Product of positive kernels of the distance.
    weights : array of shape (n_keys,)
    leave_out : bool, default=True
        Whether each row leaves out itself, with its images.
    map_blocks : callable, default=map
        Maps a function over blocks, for example on threads.
    n_images : int, default=1
        Number of tables of n rows of which `numbers` is made, one after the other. All are
        images of the first one, such as mirror images. Sums are about rows of the first table.
    """

    def __init__(
        self, numbers, codes, kernel, weights, *, leave_out=True, map_blocks=map, n_images=1
    ):
        d = numbers.shape[1]
        self.factors = positive_factors(kernel, d) if d else []
        if self.factors is None:
            raise ValueError(
                f"kernel={kernel!r} is not a product of positive kernels of the distance, and "
                "only for these can several bandwidths or lambdas be searched: choose a "
                "kernel such as 'gaussian', or pass numbers or 'scott' as bandwidth."
            )
        # The medians are subtracted, so that a common offset costs no digits.
        self.numbers = numbers - np.median(numbers, axis=0)
        self.codes, self.leave_out = codes, leave_out
        # `map_blocks` stands for `map`, and may use threads. The rows are `n_images` tables,
        # such as the rows themselves and their mirror images.
        self._map_blocks, self._n_images = map_blocks, n_images
        # Weights are divided by the largest one, whose logarithm is `log_weight_unit`.
        self.weights, self.log_weight_unit = weights / weights.max(), math.log(weights.max())
        # Compact kernels, which are often 0, are multiplied. If some kernel is not compact, the
        # logarithms of all kernels are added.
        is_compact = [math.isfinite(factor.support) for factor, _ in self.factors]
        self.in_logs = not (is_compact and all(is_compact))
        # This is the logarithm of the kernel between a row and itself.
        distance = np.zeros(1)
        self.log_own = sum(float(f.log_profile(distance)[0]) for f, _ in self.factors)
        # Along the columns of compact kernels, the keys within the support are next to each
        # other in these orders.
        self._orders = {
            j: np.argsort(numbers[:, j], kind="stable")
            for factor, columns in self.factors
            for j in columns
            if math.isfinite(factor.support)
        }

    @one_blas_thread()
    def __call__(self, bandwidth, tables=(), columns=None, row_blocks=None, slopes=True):
        """Compute averages, totals and their derivatives at one bandwidth.

        Parameters
        ----------
        bandwidth : array of shape (d,)
        tables : list of pairs of arrays of shape (n_levels, n_levels)
            Values of each category's table, and their derivatives along its parameter.
        columns : array of shape (n_keys, c) or callable
            Columns v, the first of which is 1 throughout; None for a single column of 1. With
            `row_blocks`, a function that returns the columns for a block.
        row_blocks : list of arrays of int
            Rows in blocks that have columns of their own; None for the same columns.
        slopes : bool, default=True
            Whether `vjp` will be called.

        Returns
        -------
        averages : array of shape (n, c)
            0 for a row whose total is 0.
        log_totals : array of shape (n,)
        vjp : callable
            ``vjp(of_log_totals, of_averages)`` returns the derivatives along log-bandwidths and
            parameters of tables (d + n_categories,), from those along the results.
        """
        product = _Product(self, bandwidth, tables)
        columns = np.ones((len(self.numbers), 1)) if columns is None else columns
        sums, shift, blocks_of_pairs, is_one_way = self._sum_pairs(
            product, columns, bandwidth, row_blocks, slopes
        )
        one_way_blocks, symmetric_blocks = blocks_of_pairs
        total = sums[:, 0].copy()
        averages = sums / np.where(total > 0, total, 1.0)[:, None]
        inverse_total = np.divide(1.0, total, out=np.zeros(len(total)), where=total > TINY)

        @one_blas_thread()
        def vjp(of_log_totals, of_averages=None):
            # For p_ik = w_k K_ik / S_0(i), dlog S_0(i) / dlog K_ik = p_ik, and dA_c(i) /
            # dlog K_ik = p_ik (v_kc - A_c(i)). So the derivative along log K_ik is w_k K_ik
            # times the product of a row of these coefficients and v_k.
            coefficients = (
                np.zeros_like(averages) if of_averages is None else of_averages.copy()
            )
            coefficients[:, 0] += of_log_totals - np.vecdot(coefficients, averages)
            coefficients *= inverse_total[:, None]
            symmetric_coefficients = np.where(is_one_way[:, None], 0.0, coefficients)
            one_way = self._map_blocks(lambda block: block.vjp(coefficients), one_way_blocks)
            symmetric = self._map_blocks(
                lambda block: block.vjp(symmetric_coefficients), symmetric_blocks
            )
            return sum(one_way) + sum(symmetric)

        return averages, log(total) + shift + self.log_weight_unit, vjp

    def _sum_pairs(self, product, columns, bandwidth, row_blocks, slopes):
        """Sum over all pairs, in symmetric blocks if they can be, and one way otherwise.

        Pairs are summed one way if columns differ between blocks, if keys are images, or if K
        is not symmetric. Rows whose sum is too small are summed one way as well, with weights
        that cannot vanish.

        `product` is the :class:`_Product`, and the other arguments are as for a call. Returns
        the sums (n, c), their shift (n,), a pair of the one-way and the symmetric blocks, and
        True (n,) for rows that were summed one way.
        """
        n_keys, has_images = len(self.numbers), self._n_images > 1
        n, all_keys = n_keys // self._n_images, np.arange(n_keys)
        symmetric_blocks, is_one_way = [], np.ones(n, dtype=bool)
        if row_blocks is not None:
            pairs = ((rows, all_keys) for rows in row_blocks)
        elif not has_images and not product.is_symmetric:
            pairs = self.pair_blocks(bandwidth, both=True)
        else:
            if not has_images:
                weighted = self.weights[:, None] * columns
                symmetric_blocks, sums = self._sum_both_ways(
                    product, weighted, bandwidth, slopes
                )
                is_one_way = (sums[:, 0] < TINY) & self.in_logs
            one_way_rows = np.flatnonzero(is_one_way)
            row_slices = blocks(len(one_way_rows), max(1, BLOCK_PAIRS // n_keys))
            pairs = ((one_way_rows[block], all_keys) for block in row_slices)
        one_way_blocks = self._sum_one_way(product, columns, pairs, slopes)
        shift = np.zeros(n)
        if not symmetric_blocks:
            sums = np.empty((n, one_way_blocks[0].sums.shape[1]))
        for block in one_way_blocks:
            sums[block.rows], shift[block.rows] = block.sums, block.shift
        return sums, shift, (one_way_blocks, symmetric_blocks), is_one_way

    def _sum_one_way(self, product, columns, pairs, slopes):
        """Return one-way blocks for pairs of rows and keys.

        `columns` and `slopes` are as for a call; `columns` may be a function of the rows.
        """
        n = len(self.numbers) // self._n_images

        def sum_block(block):
            rows, keys = block
            block_columns = columns(rows) if callable(columns) else columns
            return _OneWayBlock(product, block_columns[keys], rows, keys, n, slopes)

        return list(self._map_blocks(sum_block, pairs))

    def _sum_both_ways(self, product, weighted, bandwidth, slopes):
        """Return symmetric blocks, and the sums (n, c) over the pairs in all of them.

        `weighted` (n, c) are the columns times the weights. `slopes` is as for a call.
        """

        def sum_block(block):
            return _SymmetricBlock(product, weighted, *block, slopes)

        symmetric_blocks = list(self._map_blocks(sum_block, self.pair_blocks(bandwidth)))
        sums = np.zeros(weighted.shape)
        for block in symmetric_blocks:
            sums[block.rows] += block.of_rows
            sums[block.later] += block.of_later
        return symmetric_blocks, sums

    def pair_blocks(self, bandwidth, *, both=False):
        """Yield blocks of pairs within the kernel's support, as rows and keys.

        Both are in an order along one column. Keys are the rows themselves, followed by later
        ones within the support, so each pair of rows is in one block. If `both`, earlier keys
        come before the rows, and each pair is in two blocks.
        """
        # The column is taken whose compact kernel leaves the fewest pairs. In its order, the
        # keys within the support of a row are at the positions from `low` to `high` - 1.
        n = len(self.numbers)
        order, low, high = np.arange(n), np.zeros(n, dtype=np.intp), np.full(n, n)
        for factor, columns in self.factors:
            for j in columns if math.isfinite(factor.support) else []:
                x = self.numbers[self._orders[j], j]
                support = ROUNDED_UP * factor.support * bandwidth[j]
                first, end = np.searchsorted(x, x - support), np.searchsorted(x, x + support)
                if (end - first).sum() < (high - low).sum():
                    order, low, high = self._orders[j], first, end
        # A block of this many rows, and the keys around them, has BLOCK_PAIRS pairs: the size
        # solves size * (size + n_around) = BLOCK_PAIRS.
        low = low if both else np.arange(n)
        n_around = (high - low).mean()
        size = max(1, int((math.sqrt(n_around**2 + 4 * BLOCK_PAIRS) - n_around) / 2))
        for rows in blocks(n, size):
            yield order[rows], order[low[rows.start] : max(rows.stop, high[rows.stop - 1])]


class _Product:
    """The product K of all kernels at one bandwidth, as a table between rows and keys.

    `pair_sums` are the :class:`PairSums`, and `bandwidth` and `tables` the arguments of its
    call. Rows and keys of the methods are positions.
    """

    def __init__(self, pair_sums, bandwidth, tables):
        self.pair_sums = pair_sums
        with np.errstate(over="ignore"):
            scaled = pair_sums.numbers / bandwidth
            largest = np.square(scaled).sum(axis=1).max()  # squared distance of a row from 0
        # K_ik = K_ki, as computed, if all tables are symmetric, and if no distance overflows.
        self.is_symmetric = largest < _HUGE and all((t == t.T).all() for t, _ in tables)
        # True if squared distances that are computed by products of matrices are accurate.
        self._by_products = 2 * np.finfo(np.float64).eps * largest <= _TOLERANCE
        # For each factor, the coordinates of the rows in its columns, in bandwidths.
        self._scaled = [
            np.ascontiguousarray(scaled[:, columns]) for _, columns in pair_sums.factors
        ]
        # A Gaussian's logarithm is x'y - x'x / 2 - y'y / 2 and a constant: a product of the
        # rows (x, -x'x / 2, 1) and of the columns (y, 1, log K(y, 0)).
        self._gaussian_factors = {}
        for f, (factor, _) in enumerate(pair_sums.factors):
            if self._by_products and isinstance(factor, Gaussian):
                x, ones = self._scaled[f], np.ones(len(pair_sums.numbers))
                half = np.vecdot(x, x) / 2
                of_keys = np.column_stack([x, ones, factor.log_profile(2 * half)])
                self._gaussian_factors[f] = np.column_stack([x, -half, ones]), of_keys
        # For each category its codes, its table (if sums are in logarithms, that of logarithms,
        # -inf for 0), and the derivative of the logarithm along the table's parameter.
        self._categories = [
            (
                codes,
                log(value) if pair_sums.in_logs else value,
                np.divide(slope, value, out=np.zeros_like(value), where=value > 0),
            )
            for codes, (value, slope) in zip(pair_sums.codes.T, tables, strict=True)
        ]

    def __call__(self, rows, keys):
        """Return K, or its logarithm if sums are `in_logs`, (n_rows, n_keys)."""
        product, join = None, np.add if self.pair_sums.in_logs else np.multiply
        for values in self._values(rows, keys):
            product = values if product is None else join(product, values, out=product)
        if product is None:
            product = np.full((len(rows), len(keys)), 0.0 if self.pair_sums.in_logs else 1.0)
        return product

    def _values(self, rows, keys):
        """Yield the values, or their logarithms, of one kernel after the other."""
        for f, (factor, _) in enumerate(self.pair_sums.factors):
            if f in self._gaussian_factors:  # a Gaussian is not compact, so sums are in logs
                of_rows, of_keys = self._gaussian_factors[f]
                yield of_rows.take(rows, axis=0) @ of_keys.take(keys, axis=0).T
            elif self.pair_sums.in_logs:
                yield factor.log_profile(self._squared(rows, keys, f))
            else:
                yield factor.profile(self._squared(rows, keys, f))
        for codes, table, _ in self._categories:
            yield table[codes[rows]].take(codes[keys], axis=1)

    def vjp(self, of_log_product, rows, keys):
        """Turn derivatives along log K into those along log-bandwidths and tables.

        `of_log_product` (n_rows, n_keys) are those between rows and keys; the result is
        (d + n_categories,).
        """
        d = self.pair_sums.numbers.shape[1]
        gradient = np.zeros(d + len(self._categories))
        # With squared differences u^2 of a column in bandwidths and the slope s of log K along
        # the squared distance, the derivative along the log-bandwidth is the sum of -2 s u^2.
        for f, (factor, columns) in enumerate(self.pair_sums.factors):
            is_gaussian = f in self._gaussian_factors
            weights, multiple = of_log_product, 1.0  # a Gaussian's slope is -1/2 everywhere
            if not is_gaussian:
                squared, multiple = self._squared(rows, keys, f), -2.0
                weights = factor.log_slope(squared)
                weights *= of_log_product
            if is_gaussian or (self._by_products and len(columns) > 1):
                x, y = (self._scaled[f].take(positions, axis=0) for positions in (rows, keys))
                gradient[columns] += multiple * _sum_of_squares(weights, x, y)
                continue
            for k, j in enumerate(columns):
                square = squared if len(columns) == 1 else self._squared(rows, keys, f, k)
                gradient[j] -= 2 * np.vdot(weights, square)
        for j, (codes, _, log_slopes) in enumerate(self._categories):
            slopes = log_slopes[codes[rows]].take(codes[keys], axis=1)
            gradient[d + j] = np.vdot(of_log_product, slopes)
        return gradient

    def _squared(self, rows, keys, f, k=None):
        """Return squared distances (n_rows, n_keys) of factor `f`, or along its column `k`."""
        x, y = (self._scaled[f].take(positions, axis=0) for positions in (rows, keys))
        with np.errstate(over="ignore"):
            if k is None and x.shape[1] > 1:
                return squared_distances(x, y)
            difference = np.subtract.outer(x[:, k or 0], y[:, k or 0])
            return np.square(difference, out=difference)


def _sum_of_squares(weights, x, y):
    """Sum weights (n, m) times (x_ij - y_kj)^2 over all pairs, for each column j, (d,)."""
    # A square of a difference is y^2 + x^2 - 2 x y, whose terms are products of matrices.
    sums = weights @ np.column_stack([y, y**2, np.ones(len(y))])
    products, squares = sums[:, : x.shape[1]], sums[:, x.shape[1] : -1]
    return (squares + x**2 * sums[:, -1:] - 2 * x * products).sum(axis=0)


class _SymmetricBlock:
    """Sums in both directions between rows, and keys that are these rows and later ones.

    `of_rows` (n_rows, c) are the sums about the rows over all keys of the block, and `of_later`
    (n_later, c) the sums about the later rows over the block's rows. Sums are quick: tiny
    weights may vanish.
    """

    def __init__(self, product, weighted, rows, keys, slopes):
        """Sum over a block; `weighted` (n, c) are columns times weights.

        The table of kernels is kept for derivatives only if `slopes`.
        """
        self.rows, self.later, self._keys = rows, keys[len(rows) :], keys
        self._product, self._weighted = product, weighted
        table = product(rows, keys)
        table = exponentials(table) if product.pair_sums.in_logs else table
        if product.pair_sums.leave_out:
            np.fill_diagonal(table, 0.0)
        self.of_rows = table @ weighted.take(keys, axis=0)
        self.of_later = table[:, len(rows) :].T @ weighted.take(rows, axis=0)
        self._table = table if slopes else None

    def vjp(self, coefficients):
        """Return derivatives along log-bandwidths and tables.

        `coefficients` (n, c) are the derivatives along all sums.
        """
        rows, keys = self.rows, self._keys
        of_later = coefficients.take(keys, axis=0)
        of_later[: len(rows)] = 0.0  # pairs among the rows are in the sums of both already
        # With the coefficients a, the derivative along log K_ik is
        # K_ik (a_i' w_k v_k + w_i v_i' a_k).
        row_factors = coefficients.take(rows, axis=0), self._weighted.take(rows, axis=0)
        key_factors = self._weighted.take(keys, axis=0), of_later
        of_log_product = np.column_stack(row_factors) @ np.column_stack(key_factors).T
        of_log_product *= self._table
        return self._product.vjp(of_log_product, self.rows, self._keys)


class _OneWayBlock:
    """Sums (n_rows, c) about rows over keys, divided by ``exp(shift)``.

    Weights in logarithms are divided by the largest one, so that not all of them vanish.
    """

    def __init__(self, product, columns, rows, keys, n, slopes):
        """Sum over a block; `columns` (n_keys, c) are those of its keys.

        The images of a row are `n` keys apart. The table of kernels is kept for derivatives
        only if `slopes`.
        """
        pair_sums, self._keys = product.pair_sums, keys
        self.rows, self._product, self._columns = rows, product, columns
        table, self.shift = product(rows, keys), 0.0
        left_out = (slice(0), slice(0))  # no pairs
        if pair_sums.leave_out:
            # Each row leaves out the columns of the table that have its images.
            column_of_key = np.empty(len(pair_sums.numbers), dtype=np.intp)
            column_of_key[keys] = np.arange(len(keys))
            own_images = np.add.outer(np.arange(0, len(column_of_key), n), rows)
            left_out = np.arange(len(rows)), column_of_key[own_images]
        if pair_sums.in_logs:
            table += np.log(pair_sums.weights[keys])
            table[left_out] = -np.inf
            self.shift = table.max(axis=1)
            table -= np.where(self.shift > -np.inf, self.shift, 0.0)[:, None]
            table = exponentials(table)
        else:
            table *= pair_sums.weights[keys]
            table[left_out] = 0.0
        self.sums = table @ columns
        self._table = table if slopes else None

    def vjp(self, coefficients):
        """Return derivatives along log-bandwidths and tables, as for a symmetric block."""
        of_log_product = coefficients[self.rows] @ self._columns.T
        of_log_product *= self._table
        return self._product.vjp(of_log_product, self.rows, self._keys)
