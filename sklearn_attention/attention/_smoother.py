"""Averages and local polynomials of keys in memory, on disk or in partitions of Dask."""

import functools
import math
import uuid
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import IN_MEMORY, ROWS_AT_ONCE, blocks, merged
from .._partitions import aligned, as_array, is_partitioned, joined, over, partitions, reduced
from .._spread import deviation_of, join_spreads, spread
from .._validation import check_bandwidth, check_choice
from ..kernels._base import as_kernel
from ._read import as_given, as_passed, check_own_keys, in_precision, read, result_dtype
from ._reduce import ALGORITHMS, Reduction
from ._solve import FURTHEST, Basis, local_fit
from ._sums import EMPTY_POLICIES, Sums

# If the fast sums over one part of the keys are inaccurate for a larger share of the queries,
# they are not computed again for this part: the sums over all parts may be accurate.
_MAX_SHARE_SUMMED_AGAIN = 0.1


class Location(NamedTuple):
    """Where all keys and values are, if the keys are summed part by part."""

    center: Any = None  # (n_values,) mean of the values, which is subtracted from them
    extent: Any = None  # (n_numeric,) standard deviations of the keys, in bandwidths


_UNKNOWN = Location()


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

    def reduction(
        self, queries, keys, values, weights=None, scale=None, own=False, location=_UNKNOWN
    ):
        """Check the tables; return the sums over these keys that can be computed.

        Without a location, these are all keys.
        """
        problem, _ = read(
            queries, keys, values, self.kernel, bandwidth=self.bandwidth, query_scale=scale,
            sample_weight=weights, leave_one_out=own,
        )  # fmt: skip
        if self.degree:
            problem = replace(problem, queries=problem.queries.clip(-FURTHEST, FURTHEST))
            problem = problem.centred(location.center)
        options = {"empty": self.empty, "algorithm": self.algorithm}
        return Reduction(problem, self.degree, extent=location.extent, **options)

    def sums_of_part(self, queries, keys, values, weights, *options, complete):
        """Sum over some of the keys; None if none of them has weight.

        Complete sums are accurate for every query, and have sums over the nearest keys besides.
        """
        if weights is not None and not weights.any():
            return None
        reduction = self.reduction(queries, keys, values, weights, *options)
        rows = np.arange(len(queries))
        sums = reduction.sums(rows, max_share=1.0 if complete else _MAX_SHARE_SUMMED_AGAIN)
        if complete:
            sums = reduction.with_fallbacks(sums, rows, all_keys=False)
        return sums.times(reduction.problem.log_weight_scale)

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
            return _UNKNOWN
        spreads = (over(_spread_of_part, _join_spreads, *tables) for tables in tables_of_parts)
        of_keys, of_values = merged(_join_spreads, spreads) or (None, None)
        if of_keys is None:
            return Location(0.0)
        extent = self.kernel.rescale(deviation_of(of_keys)[None], self.bandwidth)[0]
        extent = np.where(extent > 0, extent, np.inf)
        return Location(of_values.mean, extent[self.kernel.numeric_columns(len(extent))])

    def over_parts(self, total, n_queries, n_features, location, scale=None):
        """Compute fields from ``total(rows, complete=)``, sums over all parts of the keys."""
        sums = checked(total(np.arange(n_queries), complete=False))
        rows = np.flatnonzero(~sums.usable)
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

    def fields(self, queries, keys, values):
        """Return the shape, without the queries, and the type of each field."""
        dtype, shape = result_dtype([queries, keys, values]), values.shape[1:]
        # Half precision would not hold the logarithms of small sums.
        log_field = (), np.promote_types(dtype, np.float32)
        if not self.degree:
            return [(shape, dtype), log_field]
        slopes = (*shape, keys.shape[1]), dtype
        return [(shape, dtype), slopes, log_field, ((), dtype), ((), dtype)]


def checked(sums):
    """Return sums over all keys; raise ValueError for None."""
    if sums is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    return sums


def smooth(smoother, queries, keys, values, weights=None, scale=None, own=False):
    """Compute the fields of a smoother, in the library and precision of the input."""
    if is_partitioned(queries, keys, values, weights):
        return _over_partitions(smoother, queries, (keys, values, weights), scale, own)
    names = "queries", "keys", "values", "sample_weight", "query_scale"
    tables = list(map(as_given, names, (queries, keys, values, weights, scale)))
    max_queries = smoother.max_queries(*tables[1:3])
    if tables[0].ndim == 0 or len(tables[0]) <= max_queries:
        fields = _over_keys(smoother, *tables, own)
    else:
        own, parts = check_own_keys(own, tables[0], len(tables[1])), []
        for rows in _even_blocks(len(tables[0]), max_queries):
            own_scale, own_keys = _rows_of(rows, tables[4], own)
            own_keys = False if own is None else own_keys
            parts.append(
                _over_keys(smoother, tables[0][rows], *tables[1:4], own_scale, own_keys)
            )
        fields = map(np.concatenate, zip(*parts, strict=True))
    fields = shaped(fields, smoother.fields(*tables[:3]))
    return as_passed(fields, queries, keys, values)


def _over_keys(smoother, queries, keys, values, weights, scale, own):
    """Compute fields of queries in memory, chunk by chunk if there are many keys."""
    tables = keys, values, weights
    lengths = {len(x) if x.ndim else 0 for x in tables if x is not None}
    size = max(ROWS_AT_ONCE, *queries.shape[:1])
    if len(lengths) > 1 or max(lengths) <= size:  # if lengths differ, `read` raises the error
        reduction = smoother.reduction(queries, *tables, scale, own)
        rows, problem = np.arange(len(queries)), reduction.problem
        sums = reduction.with_fallbacks(reduction.sums(rows), rows).fall_back(smoother.empty)
        location = Location(problem.value_center, reduction.extent)
        sums = sums.times(problem.log_weight_scale)
        return smoother.finish(sums, keys.shape[1], location, scale)
    own = check_own_keys(own, queries, len(keys))
    chunks = list(_even_blocks(len(keys), size))
    location = smoother.locate(_rows_of(chunk, *tables) for chunk in chunks)

    def total(rows, *, complete):
        own_scale, own_keys = _rows_of(rows, scale, own)

        def part(chunk):
            left_out = False if own is None else in_part(own_keys - chunk.start, chunk)
            options = own_scale, left_out, location
            chunk_tables = _rows_of(chunk, *tables)
            return smoother.sums_of_part(
                queries[rows], *chunk_tables, *options, complete=complete
            )

        return merged(Sums.plus, map(part, chunks))

    return smoother.over_parts(total, len(queries), keys.shape[1], location, scale)


def _rows_of(rows, *tables):
    """Return some rows of tables, and None for None."""
    return [None if x is None else x[rows] for x in tables]


def _spread_of_part(keys, values, weights):
    """Return the spreads of keys and of values in some rows; None if no row has weight."""
    columns = [x.reshape(len(x), math.prod(x.shape[1:])) for x in (keys, values)]
    # Numbers that are not finite are refused when they are summed.
    with np.errstate(invalid="ignore", over="ignore"):
        spreads = [spread(x, weights) for x in columns]
    return None if spreads[0] is None else spreads


def _join_spreads(one, other):
    return [join_spreads(*both) for both in zip(one, other, strict=True)]


def shaped(fields, shapes):
    """Return arrays of given shapes, without the queries, and types."""
    return [
        in_precision(x, dtype).reshape(len(x), *shape)
        for x, (shape, dtype) in zip(fields, shapes, strict=True)
    ]


def in_part(own, chunk):
    """Return positions of own keys in a chunk of the keys, -1 for keys of other chunks."""
    return np.where((own >= 0) & (own < chunk.stop - chunk.start), own, -1)


def _even_blocks(n, size):
    """Return slices of about equal lengths, which are at most `size`."""
    return blocks(n, -(-n // -(-n // size)))


def fastest_algorithm(queries, keys, kernel, *, bandwidth=1.0, query_scale=None, degree=0):
    """Return the name of the algorithm that "auto" takes: "linear", "near" or "dense"."""
    smoother = Smoother(kernel, bandwidth, degree)
    return smoother.reduction(queries, keys, keys[:, :0], scale=query_scale).name


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
    keys, values, _ = tables = aligned("keys values sample_weight".split(), *tables)
    lazy = is_partitioned(queries) or leave_out
    queries = as_array(queries, "queries") if lazy else np.asarray(queries)
    if leave_out and len(queries) != len(keys):
        raise ValueError(
            f"leave_one_out=True needs the keys themselves as queries, but there are "
            f"{len(queries)} queries and {len(keys)} keys: pass the keys as queries, or False."
        )
    fields, n_features = smoother.fields(queries, keys, values), keys.shape[1]
    location, starts = smoother.locate([tables]), _starts(keys.chunks[0])
    rows = [(start, *part) for start, part in zip(starts, partitions(*tables), strict=True)]
    max_queries = smoother.max_queries(keys, values)

    def total(queries, complete, first=None):
        part = functools.partial(_sums_of_partition, smoother, complete, location, first)
        return reduced(part, Sums.plus, rows, queries)

    if lazy:
        finish = functools.partial(_finished, smoother, n_features, location, fields)
        finish = dask.delayed(finish)
        return _lazily(
            queries, fields, max_queries,
            lambda first, some: finish(total(some, True, first if leave_out else None)),
        )  # fmt: skip

    def fields_at(block):
        def computed(rows, *, complete):
            # As a task, queries travel once.
            return total(dask.delayed(block[rows]), complete).compute()

        return smoother.over_parts(computed, len(block), n_features, location)

    parts = map(fields_at, np.split(queries, range(max_queries, len(queries), max_queries)))
    return shaped(map(np.concatenate, zip(*parts, strict=True)), fields)


def _sums_of_partition(smoother, complete, location, first, queries, start, *tables):
    """Sum over a partition of the keys, chunk by chunk.

    The queries are the keys from position `first` on, each of which leaves itself out; None if
    they are no keys. The partition has the keys from position `start` on.
    """

    def part(chunk):
        own = False
        if first is not None:
            own = in_part(np.arange(len(queries)) + first - start - chunk.start, chunk)
        options = None, own, location
        return smoother.sums_of_part(
            queries, *_rows_of(chunk, *tables), *options, complete=complete
        )

    chunks = blocks(len(tables[0]), max(ROWS_AT_ONCE, len(queries)))
    return merged(Sums.plus, map(part, chunks))


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
    return [field.rechunk({0: chunks}) for field in joined(finished, sizes, fields)]


def _starts(sizes):
    """Return the position at which each of some parts begins."""
    return np.cumsum([0, *sizes[:-1]]).tolist()
