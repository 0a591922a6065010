"""Sums over pairs of rows of products of kernels, and their derivatives; with NumPy."""

import math

import numpy as np

from .._blocks import IN_CACHE, blocks
from .._thread_pools import one_blas_thread
from ..kernels import Gaussian
from ..kernels._numerics import squared_distances, with_slopes

# Pairs at a time: the temporaries stay in the processor's cache, and are small enough for
# memory to be reused rather than returned to the system. One kernel of all numbers has few,
# and what torch differentiates is better in large blocks.
_BLOCK_PAIRS, _PAIRS_OF_ONE_KERNEL, _PAIRS_WITH_TORCH = (
    IN_CACHE // 8,
    IN_CACHE // 4,
    2 * IN_CACHE,
)
# Exponentials of less are slow, and so is what is made of them where it is hardly a normal
# number. Sums below the second could miss something that matters.
_LOWEST_LOG, _LEAST = -600.0, 1e-200
# Squared distances by products of matrices are rounded by this at most.
_TOLERANCE = 1e-10
# Squares of this size, times the exponentials above, are nothing.
_HUGE = 1e40
# Beyond its support, by this share, a kernel is 0 whatever rounding does.
_EDGE = 1 + 1e-9


class PairSums:
    r"""Weighted sums over all rows, or all others, about each row.

    :math:`S_c(i) = \sum_k w_k\, v_{kc} \prod_f K_f\bigl((x_i - x_k) / h\bigr) \prod_j
    T_j(l_{ij}, l_{kj})`, with columns v and tables T of the codes l (n, n_categories) passed to
    each call.
    """

    # `share` maps a function over blocks. With several `images` the rows are so many tables in
    # turn, all images of the first; sums are about rows of the first, and own images are left
    # out.

    def __init__(self, numbers, codes, kernel, weights, *, leave_out=True, share=map, images=1):
        # From the middle, so that no digits are lost to where the rows are.
        self.numbers = numbers - (np.median(numbers, axis=0) if kernel.stationary else 0.0)
        self.codes, self.leave_out, self.share, self._images = codes, leave_out, share, images
        d = numbers.shape[1]
        self.weights, self.log_scale = weights / weights.max(), math.log(weights.max())
        self.factors, self.rest = kernel.radial_factors(d) if d else ([], None)
        self.signed = kernel.signed is not False
        # Kernels of bounded support, which are often 0, are multiplied, and so are signed
        # ones; where there are others too, all are added as logarithms.
        bounded = [math.isfinite(factor.support) for factor, _ in self.factors]
        self.in_logs = not (self.signed or (self.rest is None and bounded and all(bounded)))
        self.is_gaussian = len(self.factors) == 1 and all(
            isinstance(factor, Gaussian) and len(members) == d
            for factor, members in self.factors
        )
        self._is_symmetric = self.factors and self.rest is None and not self.signed
        at_itself = np.zeros(1)
        self.log_own = sum(
            math.log(abs(factor.profile(at_itself)[0]))
            if self.signed
            else float(factor.log_profile(at_itself)[0])
            for factor, _ in self.factors
        )
        self._orders = {
            j: np.argsort(numbers[:, j], kind="stable")
            for factor, members in self.factors
            for j in members
            if math.isfinite(factor.support)
        }

    @one_blas_thread()
    def __call__(self, bandwidth, tables=(), columns=None, row_blocks=None, slopes=True):
        """Averages (n, c), log_total (n,) and log_own (n,), and derivatives `pull`."""
        # `tables` has the values (n_levels, n_levels) of each category and their slopes in a
        # parameter. The first of `columns` (n, c) is 1 throughout; None is only that one. With
        # `row_blocks`, `columns` is a function of the position of a block. Averages are 0 where
        # no row has weight; log_own is the kernel at the row itself. Without `slopes` there are
        # no derivatives. `pull(of_log_total, of_averages, of_log_own)`, to be called once,
        # turns derivatives along the sums into those along log-bandwidths and parameters of
        # tables.
        product, parts = _Product(self, bandwidth, tables), []
        n_keys = len(self.numbers)
        n = n_keys // self._images
        columns = np.ones((n_keys, 1)) if columns is None else columns
        if self._images > 1:
            row_blocks = map(
                np.arange(n).__getitem__, blocks(n, max(1, _BLOCK_PAIRS // n_keys))
            )
        if row_blocks is None and not tables and self._is_symmetric and product.is_small:
            parts.append(_BothWays(product, columns, slopes))
            size = max(1, _BLOCK_PAIRS // n)
            row_blocks = [parts[0].lost[some] for some in blocks(len(parts[0].lost), size)]
        if row_blocks is None:
            todo = self.near(bandwidth, 1)
        else:
            images = n * np.arange(self._images)
            todo = (
                (rows, np.arange(n_keys), np.add.outer(images, rows)) for rows in row_blocks
            )

        def sum_rows(block):
            rows, keys, places = block
            own = columns(rows) if callable(columns) else columns
            return _RowSums(product, own[keys], rows, keys, places, slopes)

        parts += self.share(sum_rows, todo)
        averages = np.empty((n, parts[0].averages.shape[1]))
        log_total, log_own = np.empty(n), np.empty(n)
        for part in parts:
            averages[part.rows], log_total[part.rows] = part.averages, part.log_total
            log_own[part.rows] = part.log_own

        @one_blas_thread()
        def pull(of_log_total, of_averages=None, of_log_own=None):
            def of(part):
                given = (of_log_total, of_averages, of_log_own)
                return part.pull(*(x if x is None else x[part.rows] for x in given))

            return sum(self.share(of, parts))

        return averages, log_total + self.log_scale, log_own, pull

    def near(self, bandwidth, times):
        """Blocks of rows, the keys within reach of each, and where the rows are among these.

        With ``times`` 2 each pair of rows is in one block, and rows lead the keys.
        """
        n = len(self.numbers)
        order, low, high = np.arange(n), np.zeros(n, np.intp), np.full(n, n)
        for factor, members in self.factors:
            for j in members if math.isfinite(factor.support) else []:
                x = self.numbers[self._orders[j], j]
                reach = _EDGE * factor.support * bandwidth[j]
                first, end = np.searchsorted(x, x - reach), np.searchsorted(x, x + reach)
                if (end - first).sum() < (high - low).sum():
                    order, low, high = self._orders[j], first, end
        # So many rows, and the keys around them, make as many pairs as a block may have.
        around = (high - low).mean() / times
        n_pairs = _BLOCK_PAIRS if len(self.factors) > 1 else _PAIRS_OF_ONE_KERNEL
        n_pairs = n_pairs if self.rest is None else _PAIRS_WITH_TORCH
        size = max(1, int((math.sqrt(around**2 + 4 * n_pairs) - around) / 2))
        for rows in blocks(n, size):
            start = rows.start if times == 2 else low[rows.start]
            keys = order[start : max(rows.stop, high[rows.stop - 1])]
            yield order[rows], keys, np.arange(rows.start, rows.stop) - start


class _Product:
    """The product of all kernels at one bandwidth, as a table between some rows and others."""

    def __init__(self, sums, bandwidth, tables):
        self.sums, self.bandwidth = sums, np.asarray(bandwidth, dtype=np.float64)
        with np.errstate(over="ignore"):
            self.x = sums.numbers / self.bandwidth
            self.norms = np.square(self.x).sum(axis=1)
        self._x = [np.ascontiguousarray(self.x[:, members]) for _, members in sums.factors]
        self.is_small = self.norms.max() < _HUGE
        self.far = 2 * np.finfo(np.float64).eps * self.norms > _TOLERANCE
        values = [_log(value) if sums.in_logs else value for value, _ in tables]
        self._levels = list(zip(sums.codes.T, values, strict=True))
        self._slopes = [
            np.divide(slope, value, out=np.zeros_like(value), where=value > 0)
            for value, slope in tables
        ]

    def squares(self, rows, keys):
        """Squared distances for each factor, (n_rows, n_keys)."""
        return [self._squared(rows, keys, f) for f in range(len(self._x))]

    def __call__(self, squares, rows, keys):
        """The product or its logarithm but for `rest`, (n_rows, n_keys)."""
        in_logs, found = self.sums.in_logs, None
        join = np.add if in_logs else np.multiply
        for (factor, _), squared in zip(self.sums.factors, squares, strict=True):
            values = factor.log_profile(squared) if in_logs else factor.profile(squared)
            found = values if found is None else join(found, values, out=found)
        for codes, table in self._levels:
            values = table[codes[rows]].take(codes[keys], axis=1)
            found = values if found is None else join(found, values, out=found)
        nothing = np.zeros if in_logs else np.ones
        return nothing((len(rows), len(keys))) if found is None else found

    def log_slopes(self, squares, rows, keys):
        """Derivatives of the logarithm along log-bandwidths: columns, tables; in place."""
        for f, ((factor, members), squared) in enumerate(
            zip(self.sums.factors, squares, strict=True)
        ):
            slope = factor.log_slope(squared)
            slope *= -2
            for k, j in enumerate(members):
                square = squared if len(members) == 1 else self._squared(rows, keys, f, k)
                square *= slope
                yield j, square

    def pull(self, outer, rows, keys):
        """Derivatives along log-bandwidths and tables, from those along the logarithm."""
        d = self.x.shape[1]
        gradient = np.zeros(d + len(self._levels))
        accurate = not self.far.any()
        for f, (factor, members) in enumerate(self.sums.factors):
            if isinstance(factor, Gaussian) and accurate:
                terms = -0.5 * outer
            else:
                squared = self._squared(rows, keys, f)
                terms = factor.log_slope(squared)
                terms *= outer
            if accurate and (len(members) > 1 or isinstance(factor, Gaussian)):
                x, y = (self._x[f].take(some, axis=0) for some in (rows, keys))
                # The squares of differences are in the rows' and columns' sums.
                sums = terms.sum(axis=1) @ x**2 + terms.sum(axis=0) @ y**2
                gradient[members] -= 2 * (sums - 2 * (x * (terms @ y)).sum(axis=0))
                continue
            for k, j in enumerate(members):
                square = squared if len(members) == 1 else self._squared(rows, keys, f, k)
                gradient[j] -= 2 * np.vdot(terms, square)
        for j, ((codes, _), slopes) in enumerate(zip(self._levels, self._slopes, strict=True)):
            gradient[d + j] = np.vdot(outer, slopes[codes[rows]].take(codes[keys], axis=1))
        return gradient

    def rest(self, rows, keys):
        """The kernel that is none of distances, and `pull` along log-bandwidths, by torch."""
        kernel, x = self.sums.rest, self.sums.numbers / self.bandwidth
        compare = kernel.log if self.sums.in_logs else kernel
        table, pull = with_slopes(compare, x[rows], x[keys], list(range(x.shape[1])))

        def along(of_table):
            of_rows, of_keys = pull(of_table)
            return -(of_rows * x[rows]).sum(axis=0) - (of_keys * x[keys]).sum(axis=0)

        return table, along

    def _squared(self, rows, keys, f, k=None):
        """Squared distances of a factor, or along one of its columns."""
        queries, keys = (self._x[f].take(some, axis=0) for some in (rows, keys))
        with np.errstate(over="ignore"):
            if k is None and queries.shape[1] > 1:
                return squared_distances(queries, keys)
            difference = np.subtract.outer(queries[:, k or 0], keys[:, k or 0])
            return np.square(difference, out=difference)


class _BothWays:
    """Sums for all rows of a symmetric product, which compute each pair once.

    For rows that are `lost` they are not accurate.
    """

    def __init__(self, product, columns, slopes):
        sums, (n, d) = product.sums, product.x.shape
        columns = sums.weights * columns.T
        moments = sums.is_gaussian
        tables = self._gaussian(product) if moments else self._tables(product, slopes)
        if moments and slopes:  # moments about the middle have the derivatives
            powers = np.vstack([np.ones(n), product.x.T, product.x.T**2])
            columns = (columns[:, None] * powers).reshape(-1, n)
        found = np.zeros((1 + d if slopes and not moments else 1, len(columns), n))

        def visit(block):
            rows, keys, _ = block
            own, later = np.arange(len(rows)), keys[len(rows) :]
            here, there, parts = columns[:, keys], columns[:, rows], []
            for j, table in tables(rows, keys):
                if sums.leave_out:
                    table[own, own] = 0
                parts.append((j, here @ table.T, there @ table[:, len(rows) :]))
            return rows, later, parts

        for rows, later, parts in sums.share(visit, sums.near(product.bandwidth, 2)):
            for j, of_rows, of_later in parts:
                found[j][:, rows] += of_rows
                found[j][:, later] += of_later
        if moments:
            found = found.reshape(-1, 1 + 2 * d if slopes else 1, n).swapaxes(0, 1)
            mean, square = found[1 : 1 + d], found[1 + d :]
            if slopes:
                x = product.x.T[:, None]
                found = np.concatenate([found[:1], x**2 * found[:1] - 2 * x * mean + square])
        total = found[0, 0]
        lost = sums.in_logs & (total < _LEAST) | moments & product.far
        self.lost, self.rows = np.flatnonzero(lost), np.flatnonzero(~lost)
        found = found[:, :, self.rows]
        found /= np.where(total[self.rows] > 0, total[self.rows], 1.0)
        self._along, self.averages = found[1:], found[0].T
        self.log_total = _log(total[self.rows])
        self.log_own = sums.log_own
        if moments:
            self.log_total += sums.log_own

    @staticmethod
    def _gaussian(product):
        """The Gaussian but for its peak, by products of matrices."""
        ones, half = np.ones(len(product.x)), product.norms / 2
        left = np.column_stack([product.x, -half, ones])
        right = np.vstack([product.x.T, ones, -half])

        rounded = product.far.any()

        def tables(rows, keys):
            logs = left[rows] @ right[:, keys]
            # Rounding may put a row that is far out at any distance from itself.
            yield 0, _exp(np.minimum(logs, 0.0, out=logs) if rounded else logs)

        return tables

    @staticmethod
    def _tables(product, slopes):
        """The product, and it times the derivatives of its logarithm."""

        def tables(rows, keys):
            squares = product.squares(rows, keys)
            table = product(squares, rows, keys)
            table = _exp(table) if product.sums.in_logs else table
            yield 0, table
            if slopes:
                for j, slope in product.log_slopes(squares, rows, keys):
                    slope *= table
                    yield 1 + j, slope

        return tables

    def pull(self, of_log_total, of_averages, of_log_own):
        """Derivatives along log-bandwidths; nothing where there is nothing to sum."""
        terms = np.zeros_like(self.averages.T)
        if of_averages is not None:
            terms += of_averages.T
            of_log_total = of_log_total - np.vecdot(of_averages, self.averages)
        terms[0] += of_log_total
        return np.einsum("cn,jcn->j", terms, self._along)


class _RowSums:
    """Sums for some rows, each in its own scale."""

    def __init__(self, product, columns, rows, keys, own, slopes):
        self.rows, self._keys, self._product, self._columns = rows, keys, product, columns
        sums, self._own = product.sums, (np.arange(len(rows)), own)
        table = product(product.squares(rows, keys), rows, keys)
        self.log_own, self._rest = sums.log_own, None
        if sums.rest is not None:
            rest, _ = self._rest = product.rest(rows, keys)
            table = table + rest if sums.in_logs else table * rest
            self._own_rest = rest[self._own]
            own_logs = self._own_rest if sums.in_logs else _log(np.abs(self._own_rest))
            self.log_own = self.log_own + own_logs
        weights, shift = self._weights(sums, table)
        averages = weights @ columns
        total = averages[:, 0].copy()
        averages /= np.where(total == 0, 1.0, total)[:, None]
        self.averages, self.log_total = averages, _log(np.abs(total)) + shift
        if slopes:
            weights /= np.where(total == 0, 1.0, total)[:, None]
            weights[total == 0] = 0
            self._shares = weights

    def _weights(self, sums, table):
        """Weights divided by ``exp(shift)``, and that shift."""
        left_out = self._own if sums.leave_out else (slice(0), slice(0))
        if not sums.in_logs:
            table *= sums.weights[self._keys]
            table[left_out] = 0
            if not sums.signed:
                return table, 0.0
            largest = np.abs(table).max(axis=1)
            table /= np.where(largest > 0, largest, 1.0)[:, None]
            return table, _log(largest)
        table += np.log(sums.weights[self._keys])
        table[left_out] = -np.inf
        shift = table.max(axis=1)
        nothing = shift == -np.inf
        table -= np.where(nothing, 0.0, shift)[:, None]
        table = _exp(table)
        table[nothing] = 0
        return table, shift

    def pull(self, of_log_total, of_averages, of_log_own):
        """Derivatives along log-bandwidths and tables."""
        if of_averages is None:
            outer = of_log_total[:, None] * self._shares
        else:
            of_log_total = of_log_total - np.vecdot(of_averages, self.averages)
            outer = of_averages @ self._columns.T
            outer += of_log_total[:, None]
            outer *= self._shares
        gradient = self._product.pull(outer, self.rows, self._keys)
        if self._rest is not None:
            gradient[: len(self._product.bandwidth)] += self._pull_rest(outer, of_log_own)
        return gradient

    def _pull_rest(self, outer, of_log_own):
        table, pull = self._rest
        if of_log_own is not None:
            outer[self._own] = of_log_own
        if not self._product.sums.in_logs:
            outer = np.divide(outer, table, out=np.zeros_like(outer), where=table != 0)
        return pull(outer)


def _exp(logs):
    """Exponentials, in place."""
    return np.exp(np.maximum(logs, _LOWEST_LOG, out=logs), out=logs)


def _log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)
