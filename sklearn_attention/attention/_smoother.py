"""Sums over keys in memory, maps or partitions, and averages or polynomials from these."""

import functools
import math
import uuid
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._blocks import IN_MEMORY, ROWS_AT_ONCE, blocks, merged
from .._partitions import aligned, as_array, is_partitioned, joined, partitions, reduced
from .._spread import deviation_of, join_spreads, spread
from .._validation import check_bandwidth, check_choice
from ..kernels._base import as_kernel
from ._read import as_given, as_passed, check_own_keys, in_precision, read, result_dtype
from ._reduce import ALGORITHMS, Reduction
from ._solve import FURTHEST, Basis, local_fit
from ._sums import EMPTY_POLICIES

# Of the queries in a part whose sums are not accurate there, so large a share is summed
# pair by pair at once; where there are more, the sums over all parts may suffice.
_SHARE_SUMMED_AGAIN = 0.1


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

    def reduction(self, center, queries, keys, values, weights=None, scale=None, own=False):
        """What sums over some keys, of values less a center; and that, their mean for None."""
        problem, _ = read(
            queries, keys, values, self.kernel, bandwidth=self.bandwidth, query_scale=scale,
            sample_weight=weights, leave_one_out=own,
        )  # fmt: skip
        if self.degree:
            queries = problem.queries.clip(-FURTHEST, FURTHEST)
            problem, center = replace(problem, queries=queries).centred(center)
        options = {"empty": self.empty, "algorithm": self.algorithm}
        return Reduction(problem, self.degree, **options), center

    def part(self, center, queries, keys, values, weights, *options, final, whole=False):
        """Sums over some of the keys; None where nothing has weight.

        The final ones are accurate for each query and have fallbacks.
        """
        if weights is not None and not weights.any():
            return None
        sums, center = self.reduction(center, queries, keys, values, weights, *options)
        rows = np.arange(len(queries))
        found = sums.sums(rows, max_share=1.0 if final else _SHARE_SUMMED_AGAIN)
        if final:
            found = sums.with_fallbacks(found, rows, all_keys=whole)
        found = _with_weights(found, sums.problem.log_weight_scale)
        if whole or not self.degree:
            return Part(found, center, sums.extent, None)
        return Part(found, center, None, spread(keys, weights))

    def queries_at_once(self, keys, values):
        """Number of queries whose sums may be in memory."""
        if keys.ndim != 2:
            return ROWS_AT_ONCE
        n_columns = len(self.kernel.numeric_columns(keys.shape[1])) if self.degree else 0
        # As many monomials as there are up to twice the degree: of many features more than
        # can be listed, which is refused later.
        n_powers = math.comb(n_columns + 2 * self.degree, n_columns)
        n_values = values.shape[1] if values.ndim == 2 else 1
        return min(ROWS_AT_ONCE, max(1, 2 * IN_MEMORY // (n_powers * (1 + n_values))))

    def center(self, rows):
        """Mean of the values in the first of some parts that has weight, (p,)."""
        for values, weights in rows if self.degree else ():
            found = None
            if np.size(values):
                found = spread(np.reshape(values, (len(values), -1)), weights)
            if found is not None:
                return found.mean
        return 0.0

    def over_parts(self, total, n_queries, n_features, scale=None):
        """Fields from ``total(rows, final=)``, sums of some queries over all parts of keys."""
        found = checked(total(np.arange(n_queries), final=False))
        rows = np.flatnonzero(~found.sums.usable)
        if len(rows):
            found.sums.put(rows, total(rows, final=True).sums.fall_back(self.empty))
        return self.finish(found, n_features, scale)

    def finish(self, part, n_features, scale=None):
        """Averages and logarithms of the sums of weights, or fields of a `LocalFit`.

        From sums over all keys, with fallbacks in their places.
        """
        sums, columns = part.sums, self.kernel.numeric_columns(n_features)
        if not self.degree:
            with np.errstate(invalid="ignore", divide="ignore"):
                return [(sums.sums[0, 1:] / sums.sums[0, 0]).T, sums.log_total]
        extent = part.extent
        if extent is None:
            extent = self.kernel.rescale(deviation_of(part.spread)[None], self.bandwidth)
            extent = np.where(extent > 0, extent, np.inf)[0, columns]
        scale, basis = np.ones(1) if scale is None else scale, Basis(self.degree, len(columns))
        moments = basis.averages(sums.sums, scale, self.kernel.spread, extent)
        values, linear, ridge, distance = local_fit(moments)
        values, slopes = values + part.center, np.zeros((*values.shape, n_features))
        unit = np.broadcast_to(check_bandwidth(self.bandwidth, n_features), n_features)[columns]
        # Along features in very large units a slope may be beyond all numbers: infinite.
        with np.errstate(over="ignore"):
            slopes[:, :, columns] = linear / unit
        return [values, slopes, sums.log_total, ridge, distance]

    def fields(self, tables):
        """Shapes, but for queries, and types of the fields, from queries, keys and values."""
        dtype, shape = result_dtype(tables), tables[2].shape[1:]
        # Half precision would not hold the logarithms of small sums.
        logs = (), np.promote_types(dtype, np.float32)
        if not self.degree:
            return [(shape, dtype), logs]
        slopes = (*shape, tables[1].shape[1]), dtype
        return [(shape, dtype), slopes, logs, ((), dtype), ((), dtype)]


class Part(NamedTuple):
    """What is known of some of the keys."""

    sums: Any  # Sums about the queries
    center: Any  # (p,) which has been subtracted from the values
    extent: Any  # (d,) of the keys in bandwidths; None where their spread tells it
    spread: Any

    def plus(self, other):
        """The same of the keys of both."""
        keys = None if self.spread is None else join_spreads(self.spread, other.spread)
        return self._replace(sums=self.sums.plus(other.sums), spread=keys)

    def fall_back(self, empty):
        """The same with fallbacks in their places."""
        return self._replace(sums=self.sums.fall_back(empty))


def checked(part):
    """A part of the keys; ValueError for None."""
    if part is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    return part


def smooth(smoother, queries, keys, values, weights, scale, own):
    """Fields of an average or a local polynomial, in the library and precision of the input."""
    if is_partitioned(queries, keys, values, weights):
        return _over_partitions(smoother, queries, (keys, values, weights), scale, own)
    names = "queries", "keys", "values", "sample_weight", "query_scale"
    passed = queries, keys, values
    given = list(map(as_given, names, (*passed, weights, scale)))
    queries, keys, *_, scale = given
    at_once, fields = smoother.queries_at_once(*given[1:3]), []
    if queries.ndim == 0 or len(queries) <= at_once:
        fields = _some(smoother, *given, own)
    else:
        own = check_own_keys(own, queries, len(keys))
        for rows in _even_blocks(len(queries), at_once):
            some, left_out = (None if x is None else x[rows] for x in (scale, own))
            left_out = False if own is None else left_out
            fields.append(_some(smoother, queries[rows], *given[1:4], some, left_out))
        fields = map(np.concatenate, zip(*fields, strict=True))
    return as_passed(shaped(fields, smoother.fields(given[:3])), *passed)


def _some(smoother, queries, keys, values, weights, scale, own):
    """Fields at some queries, from chunks of the keys where these are many."""
    tables = keys, values, weights
    lengths = {len(x) if x.ndim else 0 for x in tables if x is not None}
    size = max(ROWS_AT_ONCE, *queries.shape[:1])
    if len(lengths) > 1 or max(lengths) <= size:
        found = checked(
            smoother.part(None, queries, *tables, scale, own, final=True, whole=True)
        )
        return smoother.finish(found.fall_back(smoother.empty), keys.shape[1], scale)
    chunks = list(_even_blocks(len(keys), size))
    own = check_own_keys(own, queries, len(keys))
    center = smoother.center([None if x is None else x[c] for x in tables[1:]] for c in chunks)

    def total(rows, *, final):
        some = None if scale is None else scale[rows]

        def part(chunk):
            left_out = False if own is None else in_part(own[rows] - chunk.start, chunk)
            rows_of = (None if x is None else x[chunk] for x in tables)
            return smoother.part(center, queries[rows], *rows_of, some, left_out, final=final)

        return merged(Part.plus, map(part, chunks))

    return smoother.over_parts(total, len(queries), keys.shape[1], scale)


def shaped(found, fields):
    """Arrays of the shapes and types of fields."""
    return [
        in_precision(x, dtype).reshape(len(x), *shape)
        for x, (shape, dtype) in zip(found, fields, strict=True)
    ]


def in_part(own, chunk):
    """Positions of own keys in a chunk of the keys, -1 for those of others."""
    return np.where((own >= 0) & (own < chunk.stop - chunk.start), own, -1)


def _even_blocks(n, size):
    """Slices of at most that size, which are about equal."""
    return blocks(n, -(-n // -(-n // size)))


def _with_weights(found, log_scale):
    """Sums, and fallbacks, for weights that are so many times larger."""
    nearest = found.nearest
    if nearest is not None:
        nearest = nearest._replace(sums=nearest.sums * math.exp(log_scale))
    return found._replace(shift=found.shift + log_scale, nearest=nearest)


def fastest_algorithm(queries, keys, kernel, *, bandwidth=1.0, query_scale=None, degree=0):
    """Name of the algorithm that "auto" stands for: "linear", "near" or "dense"."""
    smoother = Smoother(kernel, bandwidth, degree)
    return smoother.reduction(0.0, queries, keys, keys[:, :0], None, query_scale)[0].name


def _over_partitions(smoother, queries, tables, query_scale, leave_one_out):
    """Fields where some of the tables are Dask collections."""
    # Each partition of the keys is summed in a task, and a tree merges the sums: no task holds
    # more than a partition. Queries in memory go through the stages as those of arrays do.
    # Queries of a Dask collection are not known when tasks are made, so every partition of them
    # goes through all stages by itself.
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
    fields, n_features = smoother.fields([queries, keys, values]), keys.shape[1]
    rows = partitions(*tables)
    center = smoother.center(dask.compute(*own[1:]) for own in rows)
    rows = [(start, *own) for start, own in zip(_starts(keys.chunks[0]), rows, strict=True)]
    most = min(ROWS_AT_ONCE, smoother.queries_at_once(keys, values))

    def total(queries, final, first=None):
        part = functools.partial(_part, smoother, final, center, first)
        return reduced(part, Part.plus, rows, queries)

    if lazy:
        finish = dask.delayed(functools.partial(_finished, smoother, n_features, fields))
        return _lazily(
            queries, fields, most,
            lambda first, some: finish(total(some, True, first if leave_out else None)),
        )  # fmt: skip

    def at(some):
        def computed(rows, *, final):
            # As a task, queries travel once.
            return total(dask.delayed(some[rows]), final).compute()

        return smoother.over_parts(computed, len(some), n_features)

    found = map(at, np.split(queries, range(most, len(queries), most)))
    return shaped(map(np.concatenate, zip(*found, strict=True)), fields)


def _part(smoother, final, center, first, queries, start, *rows):
    """Sums over a partition of the keys, some at a time, of queries from place `first` on."""

    def part(chunk):
        own = False
        if first is not None:
            own = in_part(np.arange(len(queries)) + first - start - chunk.start, chunk)
        tables = (None if x is None else x[chunk] for x in rows)
        return smoother.part(center, queries, *tables, None, own, final=final)

    return merged(Part.plus, map(part, blocks(len(rows[0]), max(ROWS_AT_ONCE, len(queries)))))


def _finished(smoother, n_features, fields, found):
    """Fields, as those of arrays, from the sums over all keys."""
    found = checked(found).fall_back(smoother.empty)
    return tuple(shaped(smoother.finish(found, n_features), fields))


def _lazily(queries, fields, most, finish):
    """Dask arrays of the fields, for queries that are one."""
    import dask

    # Every partition of the keys is read once for so many queries.
    chunks, sizes = queries.chunks[0], [0]
    for size in chunks:
        if sizes[-1] + size > most and sizes[-1]:
            sizes.append(0)
        sizes[-1] += size
    sizes = [rows.stop - rows.start for size in sizes for rows in blocks(size, most)] or [0]
    groups = partitions(queries.rechunk({0: tuple(sizes)}))
    # Tasks of one name, however they are fused: of these, clusters begin few at a time.
    name, found = f"queries-{uuid.uuid4().hex}", []
    for first, (some,) in zip(_starts(sizes), groups, strict=True):
        read = dask.delayed(np.asarray)(some, dask_key_name=(name, first))
        found.append(finish(first, read))
    return [field.rechunk({0: chunks}) for field in joined(found, sizes, fields)]


def _starts(sizes):
    return np.cumsum([0, *sizes[:-1]]).tolist()
