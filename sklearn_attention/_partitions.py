"""Dask collections: rows in partitions, which may lie on other machines."""

import functools

import numpy as np

# Results of partitions that are merged in one task.
_FAN_IN = 4


def is_partitioned(*collections):
    """Whether one of some objects is a Dask collection.

    Parameters
    ----------
    *collections : object

    Returns
    -------
    partitioned : bool
    """
    # Dask's protocol, so that nobody has to import it to find out.
    return any(
        not isinstance(x, type) and callable(getattr(x, "__dask_graph__", None))
        for x in collections
    )


def as_array(x, name, chunks=None):
    """A Dask array of one or two dimensions, whose blocks are whole rows.

    Parameters
    ----------
    x : dask array, data frame or series, or array-like
    name : str
        For messages.
    chunks : tuple of int, default=None
        How many rows each block is to have; None for as many as there are in `x`.

    Returns
    -------
    x : dask.array.Array
    """
    import dask.array as da

    if hasattr(type(x), "to_dask_array"):
        x = x.to_dask_array(lengths=True)
    elif is_partitioned(x) and not isinstance(x, da.Array):
        raise TypeError(
            f"{name} is a Dask {type(x).__name__}: pass an array or a data frame of Dask."
        )
    elif not is_partitioned(x):
        x = da.from_array(np.asarray(x), chunks=-1)
    if np.isnan(x.shape).any():
        x = x.compute_chunk_sizes()
    if chunks is not None and sum(chunks) != len(x):
        raise ValueError(
            f"{name} has {len(x)} rows, but there are {sum(chunks)} rows of X: pass as many."
        )
    rows = {} if chunks is None else {0: chunks}
    return x.rechunk(rows | {axis: -1 for axis in range(1, x.ndim)})


def in_memory(*collections):
    """Arrays of what may be Dask collections, computed together.

    Parameters
    ----------
    *collections : object

    Returns
    -------
    arrays : tuple
    """
    if not is_partitioned(*collections):
        return collections
    import dask

    return dask.compute(*collections)


def partitions(*tables):
    """The partitions of some tables of the same rows, as tasks to be.

    Parameters
    ----------
    *tables : dask.array.Array, ndarray or None
        Of equal blocks of rows.

    Returns
    -------
    rows : list of tuple
        For each partition that part of every table; None for None.
    """
    import dask

    if not is_partitioned(*tables):
        return [tuple(None if x is None else dask.delayed(x) for x in tables)]
    tables = [None if x is None else x.to_delayed().ravel() for x in tables]
    n_partitions = next(len(x) for x in tables if x is not None)
    return [tuple(None if x is None else x[k] for x in tables) for k in range(n_partitions)]


def reduced(function, merge, arguments):
    """What a function returns for each partition, merged in a tree; not computed yet.

    Parameters
    ----------
    function : callable
        Returns what is to be merged, or None for nothing.
    merge : callable
        ``merge(a, b)``.
    arguments : list of tuple
        Arguments of the function, for each partition.

    Returns
    -------
    merged : dask.delayed.Delayed
    """
    import dask

    found = [dask.delayed(function)(*own) for own in arguments]
    while len(found) > 1:
        groups = [found[k : k + _FAN_IN] for k in range(0, len(found), _FAN_IN)]
        found = [dask.delayed(_merged)(merge, group) for group in groups]
    return found[0]


def _merged(merge, parts):
    parts = [part for part in parts if part is not None]
    return functools.reduce(merge, parts) if parts else None
