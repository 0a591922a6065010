"""Averages and local polynomials of keys in memory, on disk or in partitions of Dask."""

import functools
import math
import uuid
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import IN_MEMORY, ROWS_AT_ONCE, blocks, merge_present
from .._column_stats import merge_stats, stats_in_memory, std_above_rounding
from .._partitions import (
    align_partitions,
    as_array,
    concatenate_blocks,
    is_partitioned,
    partitions,
    reduce_partitions,
    reduce_rows,
)
from .._validation import check_bandwidth, check_choice
from ..kernels._base import as_kernel
from ._algorithms._line import Line
from ._read import as_given, as_passed, check_own_keys, in_precision, read_keys, result_dtype
from ._reduce import ALGORITHMS, Reduction, form_along
from ._solve import MAX_DISTANCE, Basis, extent_of, local_fit
from ._sums import EMPTY_POLICIES, Sums

# If the fast sums over one part of the keys are inaccurate for a larger share of the queries,
# they are not computed again for this part: the sums over all parts may be accurate.
_MAX_SHARE_SUMMED_AGAIN = 0.1


class Location(NamedTuple):
    """Where all keys and values are."""

    center: Any = 0.0  # (n_values,) mean of the values, which is subtracted from them
    extent: Any = None  # (n_numeric,) standard deviations of the keys, in bandwidths


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
        self,
        queries,
        keys,
        values,
        weights,
        scale=None,
        leave_one_out=False,
        location=None,
        *,
        complete,
    ):
        """Sum over some of the keys; None if none of them has weight.

        `scale` and `leave_one_out` are as for :func:`attend`; `location` is that of all keys.
        If `complete`, every query for which the fast algorithm is inaccurate is summed again,
        and sums over the nearest keys are added as a fallback. Otherwise sums may be
        inaccurate, and those over all parts show whether this matters.
        """
        if weights is not None and not weights.any():
            return None
        prepared = PreparedKeys(self, keys, values, weights, location)
        reduction = prepared.reduction(queries, scale, leave_one_out)
        rows = np.arange(len(queries))
        sums = reduction.sums(rows, max_share=1.0 if complete else _MAX_SHARE_SUMMED_AGAIN)
        if complete:
            sums = reduction.with_fallbacks(sums, rows, all_keys=False)
        return sums.times(prepared.table.log_weight_scale)

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
        """Find where all keys and values are by one pass over them, unless for averages."""
        if not self.degree:
            return Location()
        spreads = (
            reduce_rows(_spread_of_part, _join_spreads, *tables) for tables in tables_of_parts
        )
        of_keys, of_values = merge_present(_join_spreads, spreads) or (None, None)
        if of_keys is None:
            return Location()
        extent = self.kernel.rescale(std_above_rounding(of_keys)[None], self.bandwidth)[0]
        extent = np.where(extent > 0, extent, np.inf)
        return Location(of_values.mean, extent[self.kernel.numeric_columns(len(extent))])

    def over_parts(self, total, n_queries, n_features, location, scale=None):
        """Compute fields from ``total(rows, complete=)``, sums over all parts of the keys."""
        sums = checked(total(np.arange(n_queries), complete=False))
        rows = np.flatnonzero(~sums.is_nonzero)
        if len(rows):
            sums.put(rows, total(rows, complete=True).fall_back(self.empty))
        return self.finish(sums, n_features, location, scale)

    def finish(self, sums, n_features, location, scale=None):
        """Compute averages and log-normalizers, or the fields of a `LocalFit`.

        The sums are those over all keys, with fallbacks in their places.
        """
        columns = self.kernel.numeric_columns(n_features)
        if not self.degree:
            with np.errstate(invalid="ignore", divide="ignore"):
                return [(sums.sums[0, 1:] / sums.sums[0, 0]).T, sums.log_total]
        scale, basis = np.ones(1) if scale is None else scale, Basis(self.degree, len(columns))
        moments = basis.averages(sums.sums, scale, self.kernel.spread, location.extent)
        values, linear, ridge, distance = local_fit(moments)
        values, slopes = values + location.center, np.zeros((*values.shape, n_features))
        unit = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)[columns]
        # Along features in very large units a slope may be beyond all numbers: infinite.
        with np.errstate(over="ignore"):
            slopes[:, :, columns] = linear / unit
        return [values, slopes, sums.log_total, ridge, distance]

    def fields(self, dtype, value_shape, n_features):
        """Return the shape, without the queries, and the type of each field."""
        # Half precision would not hold the logarithms of small sums.
        log_field = (), np.promote_types(dtype, np.float32)
        if not self.degree:
            return [(value_shape, dtype), log_field]
        slopes = (*value_shape, n_features), dtype
        return [(value_shape, dtype), slopes, log_field, ((), dtype), ((), dtype)]


def checked(sums):
    """Return sums over all keys; raise ValueError for None."""
    if sums is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    return sums


class PreparedKeys:
    """Keys and values that a smoother has read, for any queries.

    Without a location, these are all keys.
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
            extent = extent_of(table.keys[:, columns], table.weights)
            location = Location(table.value_center, extent)
        self.smoother, self.table, self.location = smoother, table, location
        self.value_shape = values.shape[1:]

    @functools.cached_property
    def _line(self):
        """The line on which the keys lie; None if there is none, or it is not used."""
        smoother, form = self.smoother, None
        if smoother.algorithm == "auto":
            n_features = self.table.keys.shape[1]
            form = form_along(smoother.kernel, n_features, smoother.degree, n_pairs=0)
        return None if form is None else Line.of(self.table, form, smoother.degree)

    def reduction(self, queries, scale=None, leave_one_out=False):
        """Return the sums over the keys about queries, which are checked."""
        smoother, problem = self.smoother, self.table.problem(queries, leave_one_out, scale)
        if smoother.degree:
            problem = replace(
                problem, queries=problem.queries.clip(-MAX_DISTANCE, MAX_DISTANCE)
            )
        return Reduction(
            problem,
            smoother.degree,
            extent=self.location.extent,
            line=self._line,
            empty=smoother.empty,
            algorithm=smoother.algorithm,
        )

    def fields(self, queries, scale=None, leave_one_out=False):
        """Compute the fields of the smoother at queries."""
        reduction = self.reduction(queries, scale, leave_one_out)
        rows = np.arange(len(queries))
        sums = reduction.with_fallbacks(reduction.sums(rows), rows)
        sums = sums.fall_back(self.smoother.empty).times(self.table.log_weight_scale)
        n_features = self.table.keys.shape[1]
        return self.smoother.finish(sums, n_features, self.location, scale)


def smooth(smoother, queries, keys, values, weights=None, scale=None, leave_one_out=False):
    """Compute the fields of a smoother, in the library and precision of the input."""
    if is_partitioned(queries, keys, values, weights):
        return _over_partitions(
            smoother, queries, (keys, values, weights), scale, leave_one_out
        )
    names = "queries", "keys", "values", "sample_weight", "query_scale"
    passed = queries, keys, values
    queries, *tables, scale = map(as_given, names, (*passed, weights, scale))
    lengths = {len(x) if x.ndim else 0 for x in tables if x is not None}
    # If lengths differ, reading the keys raises the error.
    if len(lengths) > 1 or max(lengths) <= ROWS_AT_ONCE:
        fields_at = PreparedKeys(smoother, *tables).fields
    else:
        chunks = list(_even_blocks(len(tables[0]), ROWS_AT_ONCE))
        location = smoother.locate(_rows_of(chunk, *tables) for chunk in chunks)
        fields_at = functools.partial(_over_chunks, smoother, tables, chunks, location)
    max_queries = smoother.max_queries(*tables[:2])
    fields = _in_blocks(fields_at, max_queries, len(tables[0]), queries, scale, leave_one_out)
    keys, values = tables[:2]
    shapes = smoother.fields(
        result_dtype([queries, keys, values]), values.shape[1:], keys.shape[1]
    )
    return as_passed(shaped(fields, shapes), *passed)


def prepare(smoother, keys, values, weights=None):
    """Read keys once for many calls of :func:`smooth_prepared`; None if they are too many."""
    is_small = not is_partitioned(keys, values, weights) and keys.size <= ROWS_AT_ONCE // 4
    return PreparedKeys(smoother, keys, values, weights) if is_small else None


def smooth_prepared(prepared, queries, scale=None):
    """Compute the fields at queries, as :func:`smooth`, for keys that were read before."""
    table, smoother = prepared.table, prepared.smoother
    queries = as_given("queries", queries)
    max_queries = smoother.max_queries(table.keys, table.values)
    fields = _in_blocks(prepared.fields, max_queries, None, queries, scale)
    dtype = result_dtype([queries, np.empty(0, table.dtype)])
    return shaped(fields, smoother.fields(dtype, prepared.value_shape, table.keys.shape[1]))


def _in_blocks(fields_at, max_queries, n_keys, queries, scale, leave_one_out=False):
    """Compute the fields of at most `max_queries` queries at a time."""
    if queries.ndim == 0 or len(queries) <= max_queries:
        return fields_at(queries, scale, leave_one_out)
    own_keys, fields_of_blocks = check_own_keys(leave_one_out, queries, n_keys), []
    for rows in _even_blocks(len(queries), max_queries):
        block_scale, block_keys = _rows_of(rows, scale, own_keys)
        block_keys = False if own_keys is None else block_keys
        fields_of_blocks.append(fields_at(queries[rows], block_scale, block_keys))
    return list(map(np.concatenate, zip(*fields_of_blocks, strict=True)))


def _over_chunks(smoother, tables, chunks, location, queries, scale, leave_one_out):
    """Compute fields of queries in memory from many keys, chunk by chunk."""
    own_keys = check_own_keys(leave_one_out, queries, len(tables[0]))

    def total(rows, *, complete):
        row_scale, row_keys = _rows_of(rows, scale, own_keys)

        def sums_of_chunk(chunk):
            left_out = False
            if own_keys is not None:
                left_out = in_chunk(row_keys - chunk.start, chunk)
            return smoother.sums_of_part(
                queries[rows],
                *_rows_of(chunk, *tables),
                row_scale,
                left_out,
                location,
                complete=complete,
            )

        return merge_present(Sums.plus, map(sums_of_chunk, chunks))

    return smoother.over_parts(total, len(queries), tables[0].shape[1], location, scale)


def _rows_of(rows, *tables):
    """Return some rows of tables, and None for None."""
    return [None if x is None else x[rows] for x in tables]


def _spread_of_part(keys, values, weights):
    """Return the spreads of keys and of values in some rows; None if no row has weight."""
    columns = [x.reshape(len(x), math.prod(x.shape[1:])) for x in (keys, values)]
    # Numbers that are not finite are refused when they are summed.
    with np.errstate(invalid="ignore", over="ignore"):
        spreads = [stats_in_memory(x, weights) for x in columns]
    return None if spreads[0] is None else spreads


def _join_spreads(*spreads_of_parts):
    return [merge_stats(*spreads) for spreads in zip(*spreads_of_parts, strict=True)]


def shaped(fields, shapes):
    """Return arrays of given shapes, without the queries, and types."""
    return [
        in_precision(x, dtype).reshape(len(x), *shape)
        for x, (shape, dtype) in zip(fields, shapes, strict=True)
    ]


def in_chunk(positions, chunk):
    """Return positions of keys from the start of a chunk, -1 for keys of other chunks."""
    is_in_chunk = (positions >= 0) & (positions < chunk.stop - chunk.start)
    return np.where(is_in_chunk, positions, -1)


def _even_blocks(n, size):
    """Return slices of about equal lengths, which are at most `size`."""
    return blocks(n, -(-n // -(-n // size)))


def fastest_algorithm(queries, keys, kernel, *, bandwidth=1.0, query_scale=None, degree=0):
    """Return the name of the algorithm that "auto" takes: "linear", "near" or "dense"."""
    prepared = PreparedKeys(Smoother(kernel, bandwidth, degree), keys, keys[:, :0])
    return prepared.reduction(queries, query_scale).name


def _over_partitions(smoother, queries, tables, query_scale, leave_one_out):
    """Compute fields where queries, keys, values or weights are Dask collections."""
    # Each partition of the keys is summed in a task, and a tree merges the sums: no task holds
    # more than a partition. For queries in memory, sums are completed where they are not
    # usable, as for arrays. Queries of a Dask collection are not known when tasks are made, so
    # all their sums are complete.
    import dask

    if query_scale is not None:
        raise ValueError(
            "query_scale is not supported with collections of Dask: leave it out, and pass "
            "one bandwidth for all queries."
        )
    leave_out = leave_one_out is True
    if not leave_out and leave_one_out is not False:
        raise ValueError(
            f"leave_one_out={leave_one_out!r} does not go with Dask collections: pass False, "
            "or True where the queries are the keys."
        )
    keys, values, _ = tables = align_partitions("keys values sample_weight".split(), *tables)
    lazy = is_partitioned(queries) or leave_out
    queries = as_array(queries, "queries") if lazy else np.asarray(queries)
    if leave_out and len(queries) != len(keys):
        raise ValueError(
            f"leave_one_out=True needs the keys themselves as queries, but there are "
            f"{len(queries)} queries and {len(keys)} keys: pass the keys as queries, or False."
        )
    n_features, dtype = keys.shape[1], result_dtype([queries, keys, values])
    fields = smoother.fields(dtype, values.shape[1:], n_features)
    location, starts = smoother.locate([tables]), _starts(keys.chunks[0])
    rows = [(start, *rows) for start, rows in zip(starts, partitions(*tables), strict=True)]
    max_queries = smoother.max_queries(keys, values)

    def total(queries, complete, first=None):
        sum_over = functools.partial(_sums_of_partition, smoother, complete, location, first)
        return reduce_partitions(sum_over, Sums.plus, rows, queries)

    if lazy:
        finish = functools.partial(_finished, smoother, n_features, location, fields)
        finish = dask.delayed(finish)
        return _lazily(
            queries,
            fields,
            max_queries,
            lambda first, some: finish(
                total(some, complete=True, first=first if leave_out else None)
            ),
        )

    def fields_at(block):
        def computed(rows, *, complete):
            # As a task, queries travel once.
            return total(dask.delayed(block[rows]), complete).compute()

        return smoother.over_parts(computed, len(block), n_features, location)

    query_blocks = np.split(queries, range(max_queries, len(queries), max_queries))
    fields_of_blocks = zip(*map(fields_at, query_blocks), strict=True)
    return shaped(map(np.concatenate, fields_of_blocks), fields)


def _sums_of_partition(smoother, complete, location, first, queries, start, *tables):
    """Sum over a partition of the keys, whose first key is number `start`, chunk by chunk.

    If the queries are keys themselves, each leaves itself out, and `first` is the number of the
    first one; otherwise `first` is None.
    """

    def sums_of_chunk(chunk):
        left_out = False
        if first is not None:
            own_keys = np.arange(len(queries)) + first - start
            left_out = in_chunk(own_keys - chunk.start, chunk)
        chunk_tables = _rows_of(chunk, *tables)
        options = None, left_out, location
        return smoother.sums_of_part(queries, *chunk_tables, *options, complete=complete)

    return merge_present(Sums.plus, map(sums_of_chunk, blocks(len(tables[0]), ROWS_AT_ONCE)))


def _finished(smoother, n_features, location, fields, sums):
    """Compute fields, of the shapes of those of arrays, from the sums over all keys."""
    sums = checked(sums).fall_back(smoother.empty)
    return tuple(shaped(smoother.finish(sums, n_features, location), fields))


def _lazily(queries, fields, max_queries, finish):
    """Return Dask arrays of the fields, for queries that are one."""
    import dask

    # Every partition of the keys is read once for each group of queries.
    chunks, sizes = queries.chunks[0], [0]
    for size in chunks:
        if sizes[-1] + size > max_queries and sizes[-1]:
            sizes.append(0)
        sizes[-1] += size
    sizes = [
        rows.stop - rows.start for size in sizes for rows in blocks(size, max_queries)
    ] or [0]
    groups = partitions(queries.rechunk({0: tuple(sizes)}))
    # Clusters start tasks of one name few at a time, however these are fused.
    name, finished = f"queries-{uuid.uuid4().hex}", []
    for first, (group,) in zip(_starts(sizes), groups, strict=True):
        in_memory = dask.delayed(np.asarray)(group, dask_key_name=(name, first))
        finished.append(finish(first, in_memory))
    return [field.rechunk({0: chunks}) for field in concatenate_blocks(finished, sizes, fields)]


def _starts(sizes):
    """Return the position at which each of some parts begins."""
    return np.cumsum([0, *sizes[:-1]]).tolist()
