"""Averages and local polynomials where keys or queries are Dask collections."""

import functools

import numpy as np

from .._blocks import blocks
from .._partitions import aligned, as_array, is_partitioned, partitions, reduced
from . import _chunks
from ._linear_time import has_linear_time

# Queries of a task, at most.
_MOST_QUERIES = 2**20


def over_partitions(method, queries, keys, values, sample_weight, query_scale, leave_one_out):
    """Answers of a method where some of its tables are Dask collections.

    For each block of queries, every partition of the keys makes its sums in a task of its own,
    and a tree merges them: no task has more than a partition, and only sums travel.

    Parameters
    ----------
    method : object
        With ``kernel`` and the ``options`` of :class:`Chunks`. It prepares what all tasks
        need by ``context(keys, values, weights)``, makes sums by ``part(chunks, context)``,
        joins them by ``merge(a, b)`` and answers by ``finish(sums, queries, context)``, with
        arrays that ``fields(keys, values, dtype)`` tells the shapes and types of.
    queries, keys, values, sample_weight : array-like or Dask collection
    query_scale : object
        There is none.
    leave_one_out : bool
        Whether the queries are the keys, each of which is left out of its own sums.

    Returns
    -------
    fields : list of dask.array.Array or of ndarray
        Lazy if the queries are a Dask collection.

    Raises
    ------
    ValueError
        If queries have scales, or one key each to be left out.
    """
    import dask

    if query_scale is not None:
        raise ValueError(
            "query_scale does not go with Dask collections: pass one bandwidth for all queries."
        )
    tables = aligned(keys, values, sample_weight, names=("keys", "values", "sample_weight"))
    leave_out = leave_one_out is True and is_partitioned(tables[0])
    if not leave_out and leave_one_out is not False:
        raise ValueError(
            f"leave_one_out={leave_one_out!r} does not go with Dask collections: pass False, "
            "or True where the queries are the keys."
        )
    lazy = is_partitioned(queries) or leave_out
    queries = as_array(queries, "queries") if lazy else np.asarray(queries)
    if leave_out and len(queries) != len(tables[0]):
        raise ValueError(
            f"leave_one_out=True needs the keys themselves as queries, but there are "
            f"{len(queries)} queries and {len(tables[0])} keys."
        )
    dtype = np.result_type(*(x.dtype for x in (queries, *tables[:2])))
    fields = method.fields(*tables[:2], dtype if dtype.kind == "f" else np.float64)
    answer = _Answer(method, tables, leave_out, fields)
    if not lazy:
        # As a task, queries travel once.
        rows_of_tasks = list(blocks(len(queries), _MOST_QUERIES)) or [slice(0, 0)]
        found = [
            answer(rows.start, dask.delayed(queries[rows])).compute() for rows in rows_of_tasks
        ]
        return [np.concatenate(field) for field in zip(*found, strict=True)]
    return _lazily(answer, queries, fields)


class _Answer:
    """Tasks that answer for some queries, from all partitions of the keys."""

    def __init__(self, method, tables, leave_out, fields):
        import dask

        self._method, self._leave_out, self._fields = method, leave_out, fields
        keys = tables[0]
        self._starts = _starts(keys.chunks[0] if is_partitioned(keys) else [len(keys)])
        self._rows = partitions(*tables)
        step = -(-len(keys) // _chunks.SAMPLE)
        ahead = has_linear_time(method.kernel, keys.shape[1])
        ahead &= method.options["algorithm"] == "auto" and len(self._rows) > 1
        sample = [
            dask.delayed(_thinned)(own, weights, -start % step, step)
            for start, (own, _, weights) in zip(self._starts, self._rows, strict=True)
        ]
        # Computed before all else: otherwise every partition would have to wait for it.
        self._context, sample = dask.compute(method.context(*tables), sample if ahead else [])
        self._sample = dask.delayed((step, *_concatenated(sample)) if ahead else None)

    def __call__(self, first, queries):
        """The task for queries from a position on."""
        import dask

        own = first if self._leave_out else None
        seen = dask.delayed(_seen)(self._method, queries, own, self._sample)
        arguments = [
            (self._method, queries, None if own is None else own - start, *rows, seen)
            for start, rows in zip(self._starts, self._rows, strict=True)
        ]
        part = functools.partial(_part, self._context)
        sums = reduced(part, self._method.merge, arguments)
        return dask.delayed(_finished)(self._method, sums, queries, self._context, self._fields)


def _lazily(answer, queries, fields):
    """Dask arrays of the fields, for queries that are one."""
    import dask.array as da

    # Every partition of the keys is asked once for so many queries.
    chunks, sizes = queries.chunks[0], [0]
    for size in chunks:
        if sizes[-1] + size > _MOST_QUERIES and sizes[-1]:
            sizes.append(0)
        sizes[-1] += size
    sizes = [
        rows.stop - rows.start for size in sizes for rows in blocks(size, _MOST_QUERIES)
    ] or [0]
    groups = partitions(queries.rechunk({0: tuple(sizes)}))
    found = [answer(first, some) for first, (some,) in zip(_starts(sizes), groups, strict=True)]
    arrays = []
    for k, (shape, dtype) in enumerate(fields):
        of_groups = [
            da.from_delayed(group[k], (size, *shape), dtype)
            for size, group in zip(sizes, found, strict=True)
        ]
        arrays.append(da.concatenate(of_groups).rechunk({0: chunks}))
    return arrays


def _starts(sizes):
    return np.cumsum([0, *sizes[:-1]]).tolist()


def _thinned(keys, weights, first, step):
    # Views would keep the partition.
    return [None if x is None else x[first::step].copy() for x in (keys, weights)]


def _concatenated(sample):
    keys, weights = zip(*sample, strict=True)
    return np.concatenate(keys), None if weights[0] is None else np.concatenate(weights)


def _seen(method, queries, first, sample):
    """Logarithm of what the weights of all keys sum to at least, by a sample of them."""
    if sample is None:
        return None
    step, keys, weights = sample
    if weights is not None and not weights.any():
        return None
    own = False
    if first is not None:
        rows = first + np.arange(len(queries))
        own = np.where(rows % step == 0, rows // step, -1)
    chunks = _chunks.Chunks(
        queries, keys, keys[:, :0], method.kernel, sample_weight=weights, leave_one_out=own,
        **method.options,
    )  # fmt: skip
    part = chunks.total("nan")
    with np.errstate(divide="ignore"):
        return part.shift + np.log(part.denominator)


def _part(context, method, queries, first, keys, values, weights, seen):
    """Sums over a partition; None where nothing there has weight."""
    if not len(keys) or (weights is not None and not weights.any()):
        return None
    own = False
    if first is not None and -len(queries) < first < len(keys):
        own = first + np.arange(len(queries))
        own = np.where((own >= 0) & (own < len(keys)), own, -1)
    chunks = _chunks.Chunks(
        queries, keys, values, method.kernel, sample_weight=weights, leave_one_out=own,
        seen=seen, **method.options,
    )  # fmt: skip
    return method.part(chunks, context)


def _finished(method, sums, queries, context, fields):
    if sums is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    found = method.finish(sums, queries, context)
    return tuple(
        np.asarray(x, kind).reshape(len(queries), *shape)
        for x, (shape, kind) in zip(found, fields, strict=True)
    )
