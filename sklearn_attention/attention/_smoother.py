"""Kernel averages and local polynomials, of keys in memory, on disk or in partitions of Dask.

A `Smoother` is a kernel, a bandwidth and a degree. At every query it computes *fields*: for
degree 0 the average and the log-normalizer, otherwise the five fields of :class:`LocalFit`.
They follow from :class:`Sums`, and sums over parts of the keys add up. So `smooth` sums

* up to `ROWS_AT_ONCE` keys at once (`PreparedKeys`);
* more keys in memory, or a memory map, chunk by chunk (`_over_chunks`);
* a collection of Dask partition by partition, in tasks (`_smooth_partitions.py`).

Many queries are taken in blocks, too. Memory is O(n + m) for n queries and m keys.

The *location* of the keys and values is what polynomials need of all of them before a part is
summed: the mean of the values, and the standard deviations of the keys. A *query scale*
multiplies the bandwidth of one query.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import IN_MEMORY, ROWS_AT_ONCE, blocks, merge_present
from .._column_stats import merge_stats, stats_in_memory, std_above_rounding
from .._partitions import is_partitioned, reduce_rows
from .._validation import check_bandwidth, check_choice
from ..kernels._base import as_kernel
from ._algorithms._line import Line
from ._arrays import as_numpy, as_passed, cast_fields, result_dtype
from ._read import check_own_keys, read_keys
from ._reduce import ALGORITHMS, Reduction, form_along
from ._smooth_partitions import smooth_partitions
from ._solve import MAX_DISTANCE, Basis, local_fit, std_of_keys
from ._sums import EMPTY_POLICIES, Sums, require_sums

# If the fast sums over one part of the keys are inaccurate for a larger share of the queries,
# they are not computed again for this part: the sums over all parts may be accurate.
_MAX_RECOMPUTED_SHARE = 0.1


class Location(NamedTuple):
    """Where all keys and values are; averages do not need it."""

    center: Any = 0.0  # (n_values,) mean of the values, which is subtracted from them
    key_std: Any = None  # (n_numeric,) standard deviations of the keys, in bandwidths


@dataclass(frozen=True)
class Smoother:
    """Configuration of a kernel average or of a local polynomial."""

    kernel: Any
    bandwidth: Any
    degree: int
    empty: str = "nearest"
    algorithm: str = "auto"

    def __post_init__(self):
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_choice("empty", self.empty, EMPTY_POLICIES)
        object.__setattr__(self, "kernel", as_kernel(self.kernel))

    def sums_of_part(
        self, queries, keys, values, weights, query_scale, leave_one_out, location, *, complete
    ):
        """Sum over one part of the keys; return `Sums`, or None if no key has weight.

        `query_scale` and `leave_one_out` are as for :func:`attend`; `location` is that of all
        keys, None for averages. If `complete`, every query for which the fast algorithm is
        inaccurate is summed again, and sums over the nearest keys are added as a fallback.
        Otherwise the sums of a part may stay inaccurate: the caller compares the total over all
        parts with its error bound, and completes the queries where it is too small.
        """
        if weights is not None and not weights.any():
            return None
        prepared = PreparedKeys(self, keys, values, weights, location)
        reduction = prepared.reduction(queries, query_scale, leave_one_out)
        rows = np.arange(len(queries))
        sums = reduction.sums(rows, max_share=1.0 if complete else _MAX_RECOMPUTED_SHARE)
        if complete:
            sums = reduction.with_fallbacks(sums, rows, keys_are_part=True)
        # The weights of a part are in a unit of its own, which is undone before sums are added.
        return sums.times(prepared.table.log_weight_unit)

    def sums_over_chunks(
        self, queries, tables, query_scale, own_keys, location, *, chunks=None, complete
    ):
        """Sum over keys chunk by chunk; return `Sums`, or None if no key has weight.

        `tables` are keys, values and weights. `chunks` are slices of their rows; None for
        slices of at most `ROWS_AT_ONCE`. A chunk without weight is skipped. `own_keys`
        (n_queries,) has the row of the tables that each query leaves out, and any number
        outside their rows for none; None if no query leaves out a key. `query_scale`,
        `location` and `complete` are as for `sums_of_part`.
        """
        chunks = blocks(len(tables[0]), ROWS_AT_ONCE) if chunks is None else chunks

        def sums_of_chunk(chunk):
            left_out = False
            if own_keys is not None:
                left_out = _positions_in_chunk(own_keys, chunk)
            chunk_tables = _rows_of(chunk, *tables)
            options = query_scale, left_out, location
            return self.sums_of_part(queries, *chunk_tables, *options, complete=complete)

        return merge_present(Sums.plus, map(sums_of_chunk, chunks))

    def max_queries(self, keys, values):
        """Return the largest number of queries whose sums may be in memory."""
        if keys.ndim != 2:
            return ROWS_AT_ONCE
        n_columns = len(self.kernel.numeric_columns(keys.shape[1])) if self.degree else 0
        # This is the number of monomials up to twice the degree. For many features these cannot
        # be listed, and `Basis` refuses them later.
        n_powers = math.comb(n_columns + 2 * self.degree, n_columns)
        n_values = values.shape[1] if values.ndim == 2 else 1
        return min(ROWS_AT_ONCE, max(1, 2 * IN_MEMORY // (n_powers * (1 + n_values))))

    def locate(self, tables_of_parts):
        """Return the location of keys and values, by one pass over all parts of them.

        Each part is a tuple of keys, values and weights. Averages need no pass.
        """
        if not self.degree:
            return Location()
        stats_of_parts = (
            reduce_rows(_stats_of_part, _merge_stats_of_parts, *tables)
            for tables in tables_of_parts
        )
        stats = merge_present(_merge_stats_of_parts, stats_of_parts)
        if stats is None:
            return Location()
        key_stats, value_stats = stats
        key_std = self.kernel.rescale(std_above_rounding(key_stats)[None], self.bandwidth)[0]
        # Along a column that is constant over the keys, only the kernel sets the unit.
        key_std = np.where(key_std > 0, key_std, np.inf)
        return Location(value_stats.mean, key_std[self.kernel.numeric_columns(len(key_std))])

    def fields_over_parts(self, total, n_queries, n_features, location, query_scale=None):
        """Compute fields from sums over parts of the keys.

        ``total(rows, complete=...)`` returns the sums over all parts, about the queries at
        `rows`; for `complete` see `sums_of_part`. Complete sums take more time, so they are
        only asked for queries whose total weight is 0 within rounding.
        """
        sums = require_sums(total(np.arange(n_queries), complete=False))
        rows = np.flatnonzero(~sums.is_nonzero)
        if len(rows):
            sums.put(rows, total(rows, complete=True).fall_back(self.empty))
        return self.finish(sums, n_features, location, query_scale)

    def finish(self, sums, n_features, location, query_scale=None):
        """Compute averages and log-normalizers, or the fields of a `LocalFit`.

        `sums` are those over all keys, and of the nearest keys for a query without weights.
        `location` is only used for polynomials.
        """
        if not self.degree:
            with np.errstate(invalid="ignore", divide="ignore"):
                return [(sums.sums[0, 1:] / sums.sums[0, 0]).T, sums.log_total]
        columns = self.kernel.numeric_columns(n_features)
        query_scale = np.ones(1) if query_scale is None else query_scale
        basis = Basis(self.degree, len(columns))
        moments = basis.averages(sums.sums, query_scale, self.kernel.spread, location.key_std)
        values, slopes_per_bandwidth, ridge, squared_distance = local_fit(moments)
        values = values + location.center
        slopes = np.zeros((*values.shape, n_features))
        unit = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)[columns]
        # Along features in very large units a slope may be beyond all numbers: infinite.
        with np.errstate(over="ignore"):
            slopes[:, :, columns] = slopes_per_bandwidth / unit
        return [values, slopes, sums.log_total, ridge, squared_distance]

    def field_formats(self, dtype, value_shape, n_features):
        """Return the format of each field: its shape at one query, and its type.

        `dtype` is the type of the results, and `value_shape` the shape of one key's value.
        """
        # Half precision would not hold the logarithms of small sums.
        log_field = (), np.promote_types(dtype, np.float32)
        if not self.degree:
            return [(value_shape, dtype), log_field]
        slopes = (*value_shape, n_features), dtype
        return [(value_shape, dtype), slopes, log_field, ((), dtype), ((), dtype)]


class PreparedKeys:
    """Keys and values that a smoother has checked and scaled, for any queries.

    They are a `KeyTable`, the attribute `table`. If `location` is None, these are all keys, and
    their own location is computed.
    """

    def __init__(self, smoother, keys, values, weights=None, location=None):
        degree, kernel = smoother.degree, smoother.kernel
        table = read_keys(
            keys, values, kernel, bandwidth=smoother.bandwidth, sample_weight=weights
        )
        if degree:
            table = table.centred(None if location is None else location.center)
        if location is None:
            columns = kernel.numeric_columns(table.keys.shape[1]) if degree else []
            key_std = std_of_keys(table.keys[:, columns], table.weights)
            location = Location(table.value_center, key_std)
        self.smoother, self.table, self.location = smoother, table, location
        self.value_shape = values.shape[1:]  # of one key's value

    @functools.cached_property
    def _line(self):
        """The keys in order, if sums along one feature take linear time; otherwise None."""
        smoother, form = self.smoother, None
        if smoother.algorithm == "auto":
            n_features = self.table.keys.shape[1]
            # Zero pairs exclude sums in two features, whose cells depend on the queries.
            form = form_along(smoother.kernel, n_features, smoother.degree, n_pairs=0)
        return None if form is None else Line.of(self.table, form, smoother.degree)

    def reduction(self, queries, query_scale=None, leave_one_out=False):
        """Check queries; return the :class:`Reduction` that sums over the keys about them.

        The arguments are those of :func:`attend`.
        """
        smoother = self.smoother
        problem = self.table.problem(queries, leave_one_out, query_scale)
        if smoother.degree:
            # Polynomials need products of coordinates, which would overflow.
            problem = replace(
                problem, queries=problem.queries.clip(-MAX_DISTANCE, MAX_DISTANCE)
            )
        return Reduction(
            problem,
            smoother.degree,
            key_std=self.location.key_std,
            line=self._line,
            empty=smoother.empty,
            algorithm=smoother.algorithm,
        )

    def fields(self, queries, query_scale=None, leave_one_out=False):
        """Compute the fields of the smoother at queries."""
        reduction = self.reduction(queries, query_scale, leave_one_out)
        rows = np.arange(len(queries))
        sums = reduction.with_fallbacks(reduction.sums(rows), rows)
        sums = sums.fall_back(self.smoother.empty).times(self.table.log_weight_unit)
        n_features = self.table.keys.shape[1]
        return self.smoother.finish(sums, n_features, self.location, query_scale)


def smooth(smoother, queries, keys, values, weights=None, scale=None, leave_one_out=False):
    """Compute the fields of a smoother, in the library and precision of the input.

    `weights` and `scale` are `sample_weight` and `query_scale` of :func:`attend`.
    """
    if is_partitioned(queries, keys, values, weights):
        return smooth_partitions(
            smoother, queries, (keys, values, weights), scale, leave_one_out
        )
    names = "queries", "keys", "values", "sample_weight", "query_scale"
    passed = queries, keys, values
    queries, *tables, scale = map(as_numpy, names, (*passed, weights, scale))
    keys, values, _ = tables
    # A single number counts as 0 rows. For it, and if lengths differ, reading the keys raises
    # the error.
    lengths = {len(x) if x.ndim else 0 for x in tables if x is not None}
    if len(lengths) > 1 or max(lengths) <= ROWS_AT_ONCE:
        fields_at = PreparedKeys(smoother, *tables).fields
    else:
        chunks = list(_even_blocks(len(keys), ROWS_AT_ONCE))
        location = smoother.locate(_rows_of(chunk, *tables) for chunk in chunks)
        fields_at = functools.partial(_over_chunks, smoother, tables, chunks, location)
    max_queries = smoother.max_queries(keys, values)
    fields = _in_blocks(fields_at, max_queries, queries, scale, leave_one_out, len(keys))
    dtype = result_dtype([queries, keys, values])
    formats = smoother.field_formats(dtype, values.shape[1:], keys.shape[1])
    return as_passed(cast_fields(fields, formats), *passed)


def prepare(smoother, keys, values, weights=None):
    """Read keys once for many calls of :func:`smooth_prepared`; None if they are too many."""
    is_small = not is_partitioned(keys, values, weights) and keys.size <= ROWS_AT_ONCE // 4
    return PreparedKeys(smoother, keys, values, weights) if is_small else None


def smooth_prepared(prepared, queries, scale=None):
    """Compute the fields at queries, as :func:`smooth`, for keys that were read before.

    `scale` is `query_scale` of :func:`attend`.
    """
    table, smoother = prepared.table, prepared.smoother
    queries = as_numpy("queries", queries)
    max_queries = smoother.max_queries(table.keys, table.values)
    fields = _in_blocks(prepared.fields, max_queries, queries, scale)
    dtype = result_dtype([queries, table.dtype])
    formats = smoother.field_formats(dtype, prepared.value_shape, table.keys.shape[1])
    return cast_fields(fields, formats)


def fastest_algorithm(queries, keys, kernel, *, bandwidth=1.0, query_scale=None, degree=0):
    """Return the name of the algorithm that "auto" takes: "linear", "near" or "dense"."""
    prepared = PreparedKeys(Smoother(kernel, bandwidth, degree), keys, keys[:, :0])
    return prepared.reduction(queries, query_scale).name


def _in_blocks(fields_at, max_queries, queries, query_scale, leave_one_out=False, n_keys=None):
    """Compute the fields of at most `max_queries` queries at a time.

    ``fields_at(queries, query_scale, leave_one_out)`` returns those of one block.
    `leave_one_out` is as for :func:`attend`, there and here: True, False, or the position of
    each query's own key. `n_keys`, the number of keys, is needed only to check these.
    """
    # Reading the queries refuses a single number.
    if queries.ndim == 0 or len(queries) <= max_queries:
        return fields_at(queries, query_scale, leave_one_out)
    own_keys = check_own_keys(leave_one_out, queries, n_keys)
    fields_of_blocks = []
    for rows in _even_blocks(len(queries), max_queries):
        block_scale, block_keys = _rows_of(rows, query_scale, own_keys)
        block_keys = False if own_keys is None else block_keys
        fields_of_blocks.append(fields_at(queries[rows], block_scale, block_keys))
    return list(map(np.concatenate, zip(*fields_of_blocks, strict=True)))


def _over_chunks(smoother, tables, chunks, location, queries, query_scale, leave_one_out):
    """Compute fields of queries in memory from many keys, chunk by chunk.

    `tables` are keys, values and weights, and `chunks` slices of their rows.
    """
    own_keys = check_own_keys(leave_one_out, queries, len(tables[0]))

    def total(rows, *, complete):
        arguments = queries[rows], tables, *_rows_of(rows, query_scale, own_keys), location
        return smoother.sums_over_chunks(*arguments, chunks=chunks, complete=complete)

    n_queries, n_features = len(queries), tables[0].shape[1]
    return smoother.fields_over_parts(total, n_queries, n_features, location, query_scale)


def _rows_of(rows, *tables):
    """Return the rows of each table, and None for a table that is None."""
    return [None if x is None else x[rows] for x in tables]


def _positions_in_chunk(rows, chunk):
    """Return positions from the start of a chunk, and -1 for rows outside the chunk."""
    positions = rows - chunk.start
    is_in_chunk = (positions >= 0) & (positions < chunk.stop - chunk.start)
    return np.where(is_in_chunk, positions, -1)


def _even_blocks(n, size):
    """Return slices of about equal lengths, which are at most `size`."""
    n_blocks = -(-n // size)
    return blocks(n, -(-n // n_blocks))


def _stats_of_part(keys, values, weights):
    """Return the `ColumnStats` of keys and of values in one part; None if no row has weight."""
    columns = [x.reshape(len(x), math.prod(x.shape[1:])) for x in (keys, values)]
    # Numbers that are not finite are refused when they are summed.
    with np.errstate(invalid="ignore", over="ignore"):
        stats = [stats_in_memory(x, weights) for x in columns]
    return None if stats[0] is None else stats


def _merge_stats_of_parts(first, second):
    """Merge the statistics of keys, and those of values, of two parts."""
    return [merge_stats(*stats) for stats in zip(first, second, strict=True)]
