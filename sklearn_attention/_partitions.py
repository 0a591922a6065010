"""Dask collections: rows in partitions, which may lie on other machines.

A collection is a Dask array or data frame. Its rows are in partitions, which are the blocks of
an array. A task is a call that is not computed yet; Dask's class of a task is Delayed.
Functions here take collections as well as tables in memory, unless they say otherwise.
"""

import functools
import itertools
import uuid

import numpy as np
from sklearn.utils.validation import validate_data

from ._blocks import merge_present

# Number of results of partitions that are merged in one task.
_FAN_IN = 4


def is_partitioned(*objects):
    """Return True if one of the objects is a Dask collection."""
    # Dask's protocol is asked, which does not need an import of Dask.
    return any(
        not isinstance(x, type) and callable(getattr(x, "__dask_graph__", None))
        for x in objects
    )


def is_frame(x):
    """Return True for a data frame of Dask."""
    return hasattr(type(x), "to_dask_array") and x.ndim == 2


def empty_table(x):
    """Return a table in memory without rows, with the names and types of a Dask collection."""
    if hasattr(type(x), "to_dask_array"):
        return x._meta
    if hasattr(type(x), "chunks"):
        return np.empty((0, *x.shape[1:]), x.dtype)
    return np.empty(0)  # a collection that `as_array` refuses


def map_partitions(function, x, empty_result):
    """Apply a function to each partition of a table; the result is a Dask collection.

    `empty_result` is what the function returns for the table without rows.
    """
    if is_frame(x):
        return with_type_checks("X", x).map_partitions(function, meta=empty_result)
    array = as_array(x, "X")
    return array.map_blocks(function, dtype=empty_result.dtype, meta=empty_result)


def as_array(x, name, chunks=None):
    """Convert a table to a Dask array of one or two dimensions, whose blocks are whole rows.

    `name` is that of the table in error messages. `chunks` are the numbers of rows of the
    blocks; None leaves the rows of a collection where they are.
    """
    import dask.array as da

    if hasattr(type(x), "to_dask_array"):
        # `to_dask_array(lengths=True)` fails for a few columns of Parquet files, since Dask
        # then reads several files as one partition, and lengths and partitions differ in
        # number.
        read = functools.partial(_to_numpy, name)
        x = with_type_checks(name, x).map_partitions(read, meta=read(x._meta))
    elif is_partitioned(x) and not isinstance(x, da.Array):
        raise TypeError(
            f"{name} is a Dask {type(x).__name__}: pass an array or a data frame of Dask."
        )
    elif not is_partitioned(x):
        x = da.from_array(np.asarray(x), chunks=-1)
    if np.isnan(x.shape[0]):
        x = _with_known_lengths(x)
    if chunks is not None and sum(chunks) != len(x):
        raise ValueError(
            f"{name} has {len(x)} rows, but there are {sum(chunks)} rows of X: pass both with "
            "the same rows."
        )
    rows = {} if chunks is None else {0: chunks}
    return x.rechunk(rows | {axis: -1 for axis in range(1, x.ndim)})


def read_partitions(estimator, X, y, dtypes, *, reset, need_y=False):
    """Validate rows and targets in partitions, as `validate_data` of scikit-learn does.

    Parameters
    ----------
    estimator : estimator
        Names and number of features are stored in it if `reset`, and otherwise compared with
        those that it has stored.
    X, y : array, data frame or Dask collection
        `y` may be None.
    dtypes : dtype or tuple of dtype
        Types that rows may have; others are converted to the first one.
    reset : bool
        Whether these are training rows.
    need_y : bool
        Whether `y` must not be None.

    Returns
    -------
    X, y : dask.array.Array
        `y` is None if it was None.
    """
    # Names and number of features are checked at once. The cells of training rows are checked
    # at once, too, by a pass over the partitions; those of queries are checked when they are
    # computed.
    remedy = "make numbers of all its cells, or, in a data frame, texts"
    check_numeric_types("X", X, remedy)
    # `_meta` is Dask's table without rows, from which scikit-learn reads the names of features.
    declared = getattr(X, "_meta", X) if hasattr(X, "columns") else X
    X = as_array(X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}, which is not two-dimensional: pass a table of shape "
            "(n_samples, n_features), such as X.reshape(-1, 1) for a single feature."
        )
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: pass at least one row and one column.")
    declared = declared if declared.ndim == 2 else X
    validate_data(estimator, declared, reset=reset, skip_check_array=True)
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
        _check_finite(X, y, getattr(declared, "columns", range(X.shape[1])))
    return X, y


def with_type_checks(name, x):
    """Make a frame or series of Dask check each partition when it is computed."""
    return x.map_partitions(functools.partial(_check_partition, name, x._meta), meta=x._meta)


def _check_partition(name, declared, rows):
    """Return the rows of a partition; raise ValueError if columns or types are not as declared.

    `declared` is the empty table of the collection, and `name` its name in messages.
    """
    expected, actual = (
        dict(x.dtypes) if x.ndim == 2 else {declared.name: x.dtype} for x in (declared, rows)
    )
    if list(expected) != list(actual):
        raise ValueError(
            f"{name} has columns {list(actual)} in a partition, but {list(expected)} in the "
            f"collection: give all partitions the same, by {name}.map_partitions("
            f"pandas.DataFrame.reindex, columns={name}.columns)."
        )
    for column, dtype in expected.items():
        is_number, actual_dtype = dtype.kind in "biuf", actual[column]
        # Texts and objects are not checked here, since their cells are read one by one later.
        is_checked = is_number or str(dtype) == "category"
        if is_checked and (actual_dtype.kind in "biuf") != is_number:
            raise ValueError(
                f"{name} has {actual_dtype} in column {column!r} of a partition, but {dtype} "
                f"in the collection: make all of one type, as by {name}.astype({{{column!r}: "
                f"'{dtype}'}})."
            )
    return rows


def check_numeric_types(name, table, remedy):
    """Raise ValueError if a column of a table has a type other than real numbers.

    The types of a Dask collection are those it declares. `name` is that of the table in
    messages, and `remedy` says what the user can do.
    """
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
    """Raise ValueError if X, whose columns are named, or y has NaN or infinity."""
    floats = [x for x in (X, y) if x is not None and x.dtype.kind == "f"]
    names = [f"X, in column {column!r}," for column in columns if X.dtype.kind == "f"]
    largest = reduce_rows(_max_absolute, np.maximum, *floats) if floats else []
    for name, size in itertools.zip_longest(names, largest, fillvalue="y"):
        refuse_not_finite(name, size)


def refuse_not_finite(name, largest):
    """Raise ValueError if the largest absolute value of a table is not finite."""
    if not np.isfinite(largest):
        kind = "NaN" if np.isnan(largest) else "infinity"
        raise ValueError(f"{name} contains {kind}: impute or drop those rows first.")


def to_memory(*tables):
    """Compute all Dask collections among the tables together; return all tables."""
    if not is_partitioned(*tables):
        return tables
    import dask

    def as_task(x):
        """Return the task that computes a collection as one table; return others as is."""
        if hasattr(type(x), "to_dask_array"):
            # Dask warns if frames are computed together with tasks, unless they are tasks too.
            return x.repartition(npartitions=1).to_delayed()[0]
        if not hasattr(type(x), "chunks"):
            return x
        # Blocks are copied, since a view of a part of a partition would keep all of it in
        # memory.
        copies = [dask.delayed(np.array)(block) for (block,) in partitions(x)]
        return dask.delayed(np.concatenate)(copies)

    return dask.compute(*map(as_task, tables), traverse=False)


def reduce_rows(function, merge, *tables):
    """Compute a statistic of rows, wherever they are.

    ``function(*tables)`` computes it from tables of the same rows in memory. If one of them is
    a Dask collection, it is called for each partition, and the results are merged by
    ``merge(a, b)``. For example, ``reduce_rows(np.sum, operator.add, x)`` is the sum of x.
    """
    if not is_partitioned(*tables):
        return function(*tables)
    return reduce_partitions(function, merge, partitions(*tables)).compute()


def reduce_columns(function, merge, X, names):
    """Compute a statistic of the named columns of a Dask frame, or of all columns of an array.

    `function` and `merge` are those of `reduce_rows`; the partitions of a frame are frames.
    """
    if is_frame(X):
        rows = [(frame,) for frame in with_type_checks("X", X)[names].to_delayed()]
    else:
        rows = partitions(as_array(X, "X"))
    return reduce_partitions(function, merge, rows).compute()


def need_all_rows(what, *tables, remedy="fit a sample, or X.compute() if that fits"):
    """Raise ValueError if rows that must be in memory are in partitions."""
    if is_partitioned(*tables):
        raise ValueError(
            f"{what} need all rows in memory, but these are in partitions of Dask: {remedy}."
        )


def align_partitions(names, *tables):
    """Convert tables of the same rows to Dask arrays with the same blocks of rows.

    The blocks are those of the first Dask collection. `names` are those of the tables in
    messages. A table that is None remains None.
    """
    named = list(zip(tables, names, strict=True))
    chunks = as_array(*max(named, key=lambda pair: is_partitioned(pair[0]))).chunks[0]
    return [None if x is None else as_array(x, name, chunks) for x, name in named]


def partitions(*tables):
    """Divide tables of the same rows into partitions.

    Returns a list with a tuple for each partition, which has for each table the Delayed object
    of its rows, or None for a table that is None.
    """
    tables = align_partitions(["a table"] * len(tables), *tables)
    n_partitions = next(x for x in tables if x is not None).numblocks[0]
    # Graphs are not optimized. If the same graph were fused in two ways, tasks of one name
    # would differ, and schedulers may fail.
    tasks = [
        n_partitions * [None] if x is None else x.to_delayed(optimize_graph=False).ravel()
        for x in tables
    ]
    return list(zip(*tasks, strict=True))


def reduce_partitions(function, merge, rows, *common):
    """Apply a function to each partition, and merge the results in a tree, as a Delayed object.

    `rows` has the tables of each partition, and `common` are further arguments; see
    `run_on_partitions`. ``merge(a, b)`` merges two results; results that are None are skipped.
    """
    import dask

    results = run_on_partitions(function, rows, *common)
    while len(results) > 1:
        groups = [results[k : k + _FAN_IN] for k in range(0, len(results), _FAN_IN)]
        results = [dask.delayed(merge_present)(merge, group) for group in groups]
    return results[0]


def run_on_partitions(function, rows, *common):
    """Apply a function to each partition in one task, which also reads the partition.

    Parameters
    ----------
    function : callable
        It is called with the common arguments, then with the tables of the partition.
    rows : list of tuple
        The tables of each partition, as from `partitions`.
    *common : object
        Arguments that are the same for all partitions; they may be Delayed objects.

    Returns
    -------
    results : list of Delayed
    """
    # The tasks that read and convert a partition are fused with the call of the function. If
    # they were separate tasks, schedulers would run many of them before the function, and
    # partitions would gather in memory.
    from dask import highlevelgraph as graphs
    from dask._task_spec import Task, TaskRef
    from dask.delayed import Delayed
    from dask.utils import funcname

    # 1. Merge the graphs of all arguments.
    inputs = [x.dask for arguments in (common, *rows) for x in arguments if is_partitioned(x)]
    distinct_graphs = {id(graph): graph for graph in inputs}.values()
    layers = graphs.HighLevelGraph.merge(*distinct_graphs).layers
    # 2. Make a task for the call of each partition. Its name is unique, since its graph is
    # fused and may differ from another one of the same function and tables; see `partitions`.
    name, calls = f"{funcname(function)}-{uuid.uuid4().hex}", {}
    for k, tables in enumerate(rows):
        arguments = (TaskRef(x.key) if is_partitioned(x) else x for x in (*common, *tables))
        calls[name, k] = Task((name, k), function, *arguments)
    # 3. Fuse each call with the tasks that only it needs, and keep all others.
    fused, nodes = _fuse_calls(calls, layers)
    fused_layers = {name: graphs.MaterializedLayer(fused)}
    for layer_name, layer in layers.items():
        unfused = {key: nodes[key] for key in layer if key in nodes}
        if unfused:  # the layer has another name, since some of its tasks may be missing
            unfused_layer = graphs.MaterializedLayer(unfused, layer.annotations)
            fused_layers[f"{layer_name}-{name}"] = unfused_layer
    dependencies = graphs.compute_layer_dependencies(fused_layers)
    graph = graphs.HighLevelGraph(fused_layers, dependencies)
    return [Delayed(key, graph, layer=name) for key in fused]


def _fuse_calls(calls, layers):
    """Fuse each call with the tasks of a Dask graph that no other task needs.

    `calls` has a task for each key, and `layers` are those of the graph. Returns the fused
    tasks by key, and the tasks of the graph that calls need and that were not fused.
    """
    from dask._task_spec import Alias, Task, convert_legacy_graph
    from dask.core import istask, reverse_dict
    from dask.optimization import cull

    nodes = {key: node for layer in layers.values() for key, node in layer.items()}
    nodes |= convert_legacy_graph(nodes)
    # In frames made of delayed tasks, the attribute `key` of an alias is not the key that it is
    # stored under, so aliases are made anew.
    aliases = {key: node for key, node in nodes.items() if isinstance(node, Alias)}
    nodes |= {key: Alias(key, node.target) for key, node in aliases.items()}
    nodes, dependencies = cull(nodes | calls, [*calls])
    dependents = reverse_dict(dependencies)
    # Data are not fused, since they would be sent with every task. Tasks in layers with
    # annotations are not fused, since users may have stated there on which machine they run.
    annotated = [layer for layer in layers.values() if layer.annotations]
    can_fuse = {key for key, node in nodes.items() if istask(node)}.difference(*annotated)
    fused = {}
    for key, call in calls.items():
        # Collect the call, and the tasks that only members of the collection need.
        members, pending = {}, [call]
        while pending:
            node = pending.pop()
            members[node.key] = nodes.pop(node.key)
            candidates = node.dependencies & can_fuse
            exclusive = (x for x in candidates if dependents[x] <= members.keys())
            pending += map(nodes.get, exclusive)
        fused[key] = Task.fuse(*members.values(), key=key)
    return fused, nodes


def map_rows(function, X, fields, *common):
    """Apply a function that returns several arrays to rows, or to each partition of them.

    Parameters
    ----------
    function : callable
        ``function(*common, rows)`` returns an array for each field, whose first axis is that of
        the rows.
    X : ndarray or dask.array.Array
        The rows.
    fields : list of (tuple of int, dtype)
        The shape of each array after its first axis, and its type.
    *common : object
        Arguments that are the same for all partitions.

    Returns
    -------
    arrays : list of ndarray or of dask.array.Array
        Lazy for rows in partitions.
    """
    if not is_partitioned(X):
        return function(*common, X)
    import dask

    results = run_on_partitions(function, partitions(X), *map(dask.delayed, common))
    return concatenate_blocks(results, X.chunks[0], fields)


def concatenate_blocks(results, sizes, fields):
    """Concatenate the results of partitions to a Dask array for each field.

    `results` has a Delayed object for each partition, a sequence of arrays, and `sizes` the
    numbers of their rows; `fields` is that of `map_rows`.
    """
    import dask.array as da

    arrays = []
    for k, (shape, dtype) in enumerate(fields):
        blocks = [
            da.from_delayed(result[k], (size, *shape), dtype)
            for size, result in zip(sizes, results, strict=True)
        ]
        arrays.append(da.concatenate(blocks))
    return arrays


def _to_numpy(name, rows):
    """Convert a pandas frame or series to an array; raise ValueError for pandas.NA.

    Unlike NaN, the missing value of pandas' own types is no number.
    """
    dtypes = rows.dtypes if rows.ndim == 2 else [rows.dtype]
    has_pandas_type = any(not isinstance(dtype, np.dtype) for dtype in dtypes)
    if has_pandas_type and rows.isna().any(axis=None):
        columns = rows.columns[rows.isna().any()] if rows.ndim == 2 else []
        where = f" in column {columns[0]!r}" if len(columns) else ""
        raise ValueError(f"{name} has missing values{where}: impute or drop those rows first.")
    return np.asarray(rows)


def _with_known_lengths(x):
    """Count the rows of each block of a Dask array, and return an array that knows them.

    Dask's own `compute_chunk_sizes` would change the user's array, and fuse tasks; see
    `partitions`.
    """
    import dask
    import dask.array as da

    blocks = x.to_delayed(optimize_graph=False).reshape(x.numblocks[0], -1)[:, 0]
    sizes = dask.compute(*run_on_partitions(len, [(block,) for block in blocks]))
    return da.Array(x.dask, x.name, (sizes, *x.chunks[1:]), meta=x._meta)


def _max_absolute(*tables):
    """Compute the largest absolute value of each column of all tables, without copying them."""
    maxima = [
        np.maximum(x.max(axis=0, initial=0.0), -x.min(axis=0, initial=0.0)) for x in tables
    ]
    return np.hstack(maxima)


def weights_or_ones(rows, weights):
    """Return the weights (n_rows,) of rows; 1 for each if `weights` is None."""
    if weights is not None:
        return weights
    if is_partitioned(rows):
        return np.ones_like(rows[:, 0], dtype=np.float64)
    return np.broadcast_to(1.0, len(rows))  # takes no memory
