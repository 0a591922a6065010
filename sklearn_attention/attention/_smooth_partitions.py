"""Kernel averages and local polynomials where an input is a collection of Dask.

Each partition of the keys is summed in a task, and a tree of tasks merges the :class:`Sums`, so
no task holds more than a partition of the keys and a block of queries.

* Queries in memory are computed at once. As for chunks of an array, sums are completed (see
  `Smoother.sums_of_part`) only for queries whose total weight is 0 within rounding.
* *Lazy* queries, which are a collection themselves, are not known when tasks are made. All
  their sums are complete, and their fields are Dask arrays that nothing has computed yet.

`fields`, `field_formats` and `location` are defined in `_smoother.py`. Time is that of the sums
over each partition, once for every block of queries.
"""

import functools
import uuid

import numpy as np

from .._blocks import blocks
from .._partitions import (
    align_partitions,
    as_array,
    concatenate_blocks,
    is_partitioned,
    partitions,
    reduce_partitions,
)
from ._arrays import cast_fields, result_dtype
from ._sums import Sums, require_sums


def smooth_partitions(smoother, queries, tables, query_scale, leave_one_out):
    """Compute the fields of a smoother where queries or tables are Dask collections.

    `tables` are keys, values and weights, the last of which may be None. Fields are arrays for
    queries in memory, and Dask arrays for lazy queries.
    """
    import dask

    _refuse_unsupported(query_scale, leave_one_out)
    keys, values, _ = tables = align_partitions("keys values sample_weight".split(), *tables)
    is_lazy = is_partitioned(queries) or leave_one_out
    queries = as_array(queries, "queries") if is_lazy else np.asarray(queries)
    if leave_one_out and len(queries) != len(keys):
        raise ValueError(
            f"leave_one_out=True needs the keys themselves as queries, but there are "
            f"{len(queries)} queries and {len(keys)} keys: pass the keys as queries, or False."
        )
    n_features, dtype = keys.shape[1], result_dtype([queries, keys, values])
    formats = smoother.field_formats(dtype, values.shape[1:], n_features)
    location, starts = smoother.locate([tables]), _starts(keys.chunks[0])
    key_partitions = [
        (start, *rows) for start, rows in zip(starts, partitions(*tables), strict=True)
    ]
    max_queries = smoother.max_queries(keys, values)

    def total(queries, complete, first=None):
        """Return the sums over all partitions about queries, as a Delayed object."""
        sum_keys = functools.partial(_sums_of_partition, smoother, complete, location, first)
        return reduce_partitions(sum_keys, Sums.plus, key_partitions, queries)

    if is_lazy:
        finish = functools.partial(_fields_of_sums, smoother, n_features, location, formats)
        delayed_finish = dask.delayed(finish)

        def lazy_fields_at(first, block):
            return delayed_finish(
                total(block, complete=True, first=first if leave_one_out else None)
            )

        return _lazy_fields(lazy_fields_at, queries, formats, max_queries)

    def fields_at(block):
        def computed_total(rows, *, complete):
            # Queries are a task of their own, so that they are sent to workers once.
            return total(dask.delayed(block[rows]), complete).compute()

        return smoother.fields_over_parts(computed_total, len(block), n_features, location)

    query_blocks = np.split(queries, range(max_queries, len(queries), max_queries))
    fields_of_blocks = zip(*map(fields_at, query_blocks), strict=True)
    return cast_fields(map(np.concatenate, fields_of_blocks), formats)


def _refuse_unsupported(query_scale, leave_one_out):
    """Raise ValueError for arguments that do not go with Dask collections."""
    if query_scale is not None:
        raise ValueError(
            "query_scale is not supported with collections of Dask: leave it out, and pass "
            "one bandwidth for all queries."
        )
    if leave_one_out is not True and leave_one_out is not False:
        raise ValueError(
            f"leave_one_out={leave_one_out!r} does not go with Dask collections: pass False, "
            "or True where the queries are the keys."
        )


def _sums_of_partition(smoother, complete, location, first, queries, start, *tables):
    """Sum over one partition, whose first key is number `start` among all keys.

    `tables` are the keys, values and weights of the partition. If the queries are keys
    themselves, each leaves itself out, and `first` is the number of the first query among all
    keys; otherwise `first` is None.
    """
    own_keys = None if first is None else np.arange(len(queries)) + first - start
    arguments = queries, tables, None, own_keys, location
    return smoother.sums_over_chunks(*arguments, complete=complete)


def _fields_of_sums(smoother, n_features, location, formats, sums):
    """Compute fields, of their final shapes and types, from complete sums over all keys."""
    sums = require_sums(sums).fall_back(smoother.empty)
    return tuple(cast_fields(smoother.finish(sums, n_features, location), formats))


def _lazy_fields(fields_at, queries, formats, max_queries):
    """Return the fields of a Dask array of queries, as Dask arrays with the same chunks.

    ``fields_at(first, block)`` returns those of one block of at most `max_queries` queries, as
    a Delayed object; `first` is the number of the block's first query. `formats` are those of
    `field_formats`: the shape and the type of each field.
    """
    import dask

    # Every partition of the keys is read once for each block of queries. So small chunks of
    # queries are joined, and large ones are cut.
    chunks, joined_sizes = queries.chunks[0], [0]
    for size in chunks:
        if joined_sizes[-1] + size > max_queries and joined_sizes[-1]:
            joined_sizes.append(0)
        joined_sizes[-1] += size
    sizes = [
        rows.stop - rows.start for size in joined_sizes for rows in blocks(size, max_queries)
    ] or [0]
    query_blocks = partitions(queries.rechunk({0: tuple(sizes)}))
    # The scheduler of a cluster starts few of the tasks that share a name at a time, also if
    # Dask fuses them. So all blocks have one name, and few are in memory at once.
    name, fields_of_blocks = f"queries-{uuid.uuid4().hex}", []
    for first, (block,) in zip(_starts(sizes), query_blocks, strict=True):
        in_memory = dask.delayed(np.asarray)(block, dask_key_name=(name, first))
        fields_of_blocks.append(fields_at(first, in_memory))
    fields = concatenate_blocks(fields_of_blocks, sizes, formats)
    return [field.rechunk({0: chunks}) for field in fields]


def _starts(sizes):
    """Return the position at which each block of these sizes begins."""
    return np.cumsum([0, *sizes[:-1]]).tolist()
