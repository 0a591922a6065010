"""Dask collections: rows in partitions, which may lie on other machines."""

import functools
import itertools
import uuid

import numpy as np
from sklearn.utils.validation import validate_data

from ._blocks import merged

# Results of partitions that are merged in one task.
_FAN_IN = 4


def is_partitioned(*collections):
    """True if one of some objects is a Dask collection."""
    # By Dask's protocol, which does without an import of Dask.
    return any(
        not isinstance(x, type) and callable(getattr(x, "__dask_graph__", None))
        for x in collections
    )


def is_frame(x):
    """True for a data frame of Dask."""
    return hasattr(type(x), "to_dask_array") and x.ndim == 2


def head(x):
    """The table without rows that tells names and types of a Dask collection."""
    if hasattr(type(x), "to_dask_array"):
        return x._meta
    if hasattr(type(x), "chunks"):
        return np.empty((0, *x.shape[1:]), x.dtype)
    return np.empty(0)  # of what `as_array` refuses


def each_part(function, x, found):
    """The table of what a function makes of each partition; of the one without rows `found`."""
    if is_frame(x):
        return uniform("X", x).map_partitions(function, meta=found)
    return as_array(x, "X").map_blocks(function, dtype=found.dtype, meta=found)


def as_array(x, name, chunks=None):
    """A Dask array of one or two dimensions, whose blocks are whole rows.

    `name` is for messages; with `chunks` each block has so many rows.
    """
    import dask.array as da

    if hasattr(type(x), "to_dask_array"):
        # Not by `to_dask_array(lengths=True)`: that fails where a few columns of Parquet are
        # read in fewer partitions than the frame says it has.
        read = functools.partial(_array_of, name)
        x = uniform(name, x).map_partitions(read, meta=read(x._meta))
    elif is_partitioned(x) and not isinstance(x, da.Array):
        raise TypeError(
            f"{name} is a Dask {type(x).__name__}: pass an array or a data frame of Dask."
        )
    elif not is_partitioned(x):
        x = da.from_array(np.asarray(x), chunks=-1)
    if np.isnan(x.shape[0]):
        x = _of_known_length(x)
    if chunks is not None and sum(chunks) != len(x):
        raise ValueError(
            f"{name} has {len(x)} rows, but there are {sum(chunks)} rows of X: pass both with "
            "the same rows."
        )
    rows = {} if chunks is None else {0: chunks}
    return x.rechunk(rows | {axis: -1 for axis in range(1, x.ndim)})


def read_partitions(estimator, X, y, dtypes, *, reset, need_y=False):
    """Rows, and targets if there are any, of an estimator in partitions.

    With `reset` they are training rows, whose features are stored.
    """
    # Names and number of features are checked at once, cells of training rows by a pass over
    # the partitions, and those of queries when they are computed.
    remedy = "make numbers of all its cells, or, in a data frame, texts"
    check_numeric_types("X", X, remedy)
    # Of a data frame the empty one that tells names.
    shape = getattr(X, "_meta", X) if hasattr(X, "columns") else X
    X = as_array(X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, which is not two-dimensional: pass a table of shape "
            "(n_samples, n_features), such as X.reshape(-1, 1) for a single feature."
        )
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: pass at least one row and one column.")
    validate_data(
        estimator, shape if shape.ndim == 2 else X, reset=reset, skip_check_array=True
    )
    dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,)
    X = X if X.dtype in dtypes else X.astype(dtypes[0])
    if y is not None:
        y = as_array(y, "y", X.chunks[0])
        if y.ndim > 2 or y.shape[1:] == (0,):
            raise ValueError(
                f"y has shape {y.shape}: pass an array of shape (n_samples,), or (n_samples, "
                "n_outputs) with at least one column for each output."
            )
    elif need_y:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but it is None.")
    if reset or y is not None:
        _check_finite(X, y, getattr(shape, "columns", range(X.shape[1])))
    return X, y


def uniform(name, x):
    """A frame or series of Dask, whose partitions are checked when they are computed."""
    return x.map_partitions(functools.partial(_as_declared, name, x._meta), meta=x._meta)


def _as_declared(name, declared, rows):
    """A partition; an error if it has other columns than its collection, or other types."""
    known, found = (
        dict(x.dtypes) if x.ndim == 2 else {declared.name: x.dtype} for x in (declared, rows)
    )
    if list(known) != list(found):
        raise ValueError(
            f"{name} has columns {list(found)} in a partition, but {list(known)} in the "
            f"collection: give all partitions the same, by {name}.map_partitions("
            f"pandas.DataFrame.reindex, columns={name}.columns)."
        )
    for column, dtype in known.items():
        is_number, own = dtype.kind in "biuf", found[column]
        # What is in texts and objects is judged by its cells.
        if (is_number or str(dtype) == "category") and (own.kind in "biuf") != is_number:
            raise ValueError(
                f"{name} has {own} in column {column!r} of a partition, but {dtype} in the "
                f"collection: make all of one type, as by {name}.astype({{{column!r}: "
                f"'{dtype}'}})."
            )
    return rows


def check_numeric_types(name, table, remedy):
    """Raise ValueError if the types of a table tell that it does not hold real numbers."""
    # Of collections the empty one that tells names and types.
    table = getattr(table, "_meta", table)
    if hasattr(type(table), "columns"):
        dtypes = table.dtypes.items()
    else:
        dtypes = [(None, table.dtype)] if hasattr(type(table), "dtype") else []
    for column, dtype in dtypes:
        if dtype.kind not in "biuf":
            named = "" if column is None else f"{column!r} "
            raise ValueError(
                f"{name} has a column that is not numeric, {named}of {dtype}, in partitions of "
                f"Dask: {remedy}."
            )


def _check_finite(X, y, columns):
    """Raise ValueError if tables in partitions, X of some columns, have other numbers."""
    floats = [x for x in (X, y) if x is not None and x.dtype.kind == "f"]
    names = [f"X, in column {column!r}," for column in columns if X.dtype.kind == "f"]
    largest = over(_largest, np.maximum, *floats) if floats else []
    for name, size in itertools.zip_longest(names, largest, fillvalue="y"):
        refuse_not_finite(name, size)


def refuse_not_finite(name, largest):
    """Raise ValueError if the largest absolute value of a table is not finite."""
    if not np.isfinite(largest):
        kind = "NaN" if np.isnan(largest) else "infinity"
        raise ValueError(f"{name} contains {kind}: impute or drop those rows first.")


def in_memory(*collections):
    """Arrays of what may be Dask collections, computed together."""
    if not is_partitioned(*collections):
        return collections
    import dask

    def whole(x):
        if hasattr(type(x), "to_dask_array"):
            # Of expressions, which Dask would rather not compute together with tasks.
            return x.repartition(npartitions=1).to_delayed()[0]
        if not hasattr(type(x), "chunks"):
            return x
        # Copies, as a part of a partition would keep all of it.
        copies = [dask.delayed(np.array)(own) for (own,) in partitions(x)]
        return dask.delayed(np.concatenate)(copies)

    return dask.compute(*map(whole, collections), traverse=False)


def over(function, merge, *tables):
    """What a function finds in the rows of some tables: at once, or merged of partitions."""
    if not is_partitioned(*tables):
        return function(*tables)
    return reduced(function, merge, partitions(*tables)).compute()


def over_columns(function, merge, X, names):
    """The same in the named columns of a frame, as it is, or in all of an array."""
    if is_frame(X):
        parts = [(part,) for part in uniform("X", X)[names].to_delayed()]
    else:
        parts = partitions(as_array(X, "X"))
    return reduced(function, merge, parts).compute()


def need_all_rows(what, *tables, remedy="fit a sample, or X.compute() if that fits"):
    """Raise ValueError if rows that must be in memory are in partitions."""
    if is_partitioned(*tables):
        raise ValueError(
            f"{what} need all rows in memory, but these are in partitions of Dask: {remedy}."
        )


def aligned(names, *tables):
    """Tables in the partitions of the first that is in any; None for None."""
    named = list(zip(tables, names, strict=True))
    chunks = as_array(*max(named, key=lambda own: is_partitioned(own[0]))).chunks[0]
    return [None if x is None else as_array(x, name, chunks) for x, name in named]


def partitions(*tables):
    """The partitions of some tables of the same rows, as tasks to be.

    For each partition the tuple of that part of every table.
    """
    tables = aligned(["a table"] * len(tables), *tables)
    n_partitions = next(x for x in tables if x is not None).numblocks[0]
    # Graphs as they are: fused in one way here and in another there, tasks of one name would
    # differ, which schedulers do not like.
    tasks = [
        n_partitions * [None] if x is None else x.to_delayed(optimize_graph=False).ravel()
        for x in tables
    ]
    return list(zip(*tasks, strict=True))


def reduced(function, merge, rows, *common):
    """Results of a function for each partition, merged in a tree; not computed yet.

    Arguments are those of `each`; a result of None is not merged.
    """
    import dask

    found = each(function, rows, *common)
    while len(found) > 1:
        groups = [found[k : k + _FAN_IN] for k in range(0, len(found), _FAN_IN)]
        found = [dask.delayed(merged)(merge, group) for group in groups]
    return found[0]


def each(function, rows, *common):
    """Results of a function for each partition, as tasks to be that read it themselves.

    The function is called with the common arguments, then with the rows of the partition.
    """
    # Reading and converting a partition become part of its task: if they were tasks, schedulers
    # would run many of them before the function, and partitions gather in memory.
    from dask import highlevelgraph as graphs
    from dask._task_spec import Alias, Task, TaskRef, convert_legacy_graph
    from dask.core import istask, reverse_dict
    from dask.delayed import Delayed
    from dask.optimization import cull
    from dask.utils import funcname

    given = [x.dask for own in (common, *rows) for x in own if is_partitioned(x)]
    different = {id(graph): graph for graph in given}.values()
    layers = graphs.HighLevelGraph.merge(*different).layers
    # A name of its own: see `partitions`.
    name, calls, fused = f"{funcname(function)}-{uuid.uuid4().hex}", {}, {}
    for k, own in enumerate(rows):
        arguments = (TaskRef(x.key) if is_partitioned(x) else x for x in (*common, *own))
        calls[name, k] = Task((name, k), function, *arguments)
    nodes = {key: node for layer in layers.values() for key, node in layer.items()}
    nodes |= convert_legacy_graph(nodes)
    # Frames of delayed tasks have aliases that do not know the key that they stand for.
    aliases = {key: node for key, node in nodes.items() if isinstance(node, Alias)}
    nodes |= {key: Alias(key, node.target) for key, node in aliases.items()}
    nodes, below = cull(nodes | calls, [*calls])
    above, placed = reverse_dict(below), [x for x in layers.values() if x.annotations]
    # Not data, which would be sent with every task, nor nodes that users have placed.
    movable = {key for key, node in nodes.items() if istask(node)}.difference(*placed)
    for key, call in calls.items():
        part, found = {}, [call]
        while found:
            node = found.pop()
            part[node.key] = nodes.pop(node.key)
            ours = (x for x in node.dependencies & movable if above[x] <= part.keys())
            found += map(nodes.get, ours)
        fused[key] = Task.fuse(*part.values(), key=key)
    own = {name: graphs.MaterializedLayer(fused)}
    for of, layer in layers.items():
        left = {key: nodes[key] for key in layer if key in nodes}
        if left:  # under another name, since it is not all of the layer
            own[f"{of}-{name}"] = graphs.MaterializedLayer(left, layer.annotations)
    graph = graphs.HighLevelGraph(own, graphs.compute_layer_dependencies(own))
    return [Delayed(key, graph, layer=name) for key in fused]


def mapped(function, X, fields, *common):
    """Arrays of what a function makes of rows: at once, or of each partition, computed later.

    ``function(*common, rows)`` returns one for each field, of a shape but for rows and a type.
    """
    if not is_partitioned(X):
        return function(*common, X)
    import dask

    found = each(function, partitions(X), *map(dask.delayed, common))
    return joined(found, X.chunks[0], fields)


def joined(blocks, sizes, fields):
    """Arrays of Dask from tasks that make a block of each, of so many rows."""
    import dask.array as da

    return [
        da.concatenate([
            da.from_delayed(own[k], (size, *shape), dtype)
            for size, own in zip(sizes, blocks, strict=True)
        ])
        for k, (shape, dtype) in enumerate(fields)
    ]  # fmt: skip


def _array_of(name, rows):
    """An array of a frame or series of pandas, whose own missing values have none."""
    dtypes = rows.dtypes if rows.ndim == 2 else [rows.dtype]
    own = [not isinstance(dtype, np.dtype) for dtype in dtypes]
    if any(own) and rows.isna().any(axis=None):
        columns = rows.columns[rows.isna().any()] if rows.ndim == 2 else []
        where = f" in column {columns[0]!r}" if len(columns) else ""
        raise ValueError(f"{name} has missing values{where}: impute or drop those rows first.")
    return np.asarray(rows)


def _of_known_length(x):
    """The same array of Dask, whose blocks have been counted.

    Its `compute_chunk_sizes` changes the user's array, and fuses tasks; see `partitions`.
    """
    import dask
    import dask.array as da

    blocks = x.to_delayed(optimize_graph=False).reshape(x.numblocks[0], -1)[:, 0]
    sizes = dask.compute(*each(len, [(block,) for block in blocks]))
    return da.Array(x.dask, x.name, (sizes, *x.chunks[1:]), meta=x._meta)


def _largest(*tables):
    """The largest absolute value of each column of all tables; without a copy of these."""
    return np.hstack([
        np.maximum(x.max(axis=0, initial=0.0), -x.min(axis=0, initial=0.0)) for x in tables
    ])  # fmt: skip
