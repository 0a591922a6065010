"""Averages and local polynomials where keys or queries are Dask collections."""

import functools
import uuid

import numpy as np

from .._blocks import ROWS_AT_ONCE, blocks, merged
from .._partitions import aligned, as_array, is_partitioned, joined, partitions, reduced
from ._smoother import Part, checked, in_part, reduce, shaped


def smooth(smoother, queries, keys, values, weights, query_scale, leave_one_out):
    """Fields of an average or a local polynomial, wherever the rows of tables are."""
    tables = keys, values, weights
    if is_partitioned(queries, *tables):
        return _over_partitions(smoother, queries, tables, query_scale, leave_one_out)
    return reduce(smoother, queries, *tables, query_scale, leave_one_out)


def _over_partitions(smoother, queries, tables, query_scale, leave_one_out):
    """Fields where some of the tables are Dask collections."""
    # Each partition of the keys is summed in a task, and a tree merges the sums: no task holds
    # more than a partition. Queries in memory go through the stages as those of arrays do.
    # Queries of a Dask collection are not known when tasks are made, so every partition of them
    # goes through all stages by itself.
    import dask

    if query_scale is not None:
        raise ValueError(
            "query_scale does not go with Dask collections: pass one bandwidth for all queries."
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
