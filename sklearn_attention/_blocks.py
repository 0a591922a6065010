"""Blocks of rows, copies of rows, and a check of the memory that an array needs."""

import contextlib
import math
import os
import tempfile
from pathlib import Path

import numpy as np

# Numbers of 8 bytes that fit into a processor's cache, and that a computation may hold in
# memory at a time. A computation with several tables divides these numbers among them.
IN_CACHE, IN_MEMORY = 2**17, 2**25
# Number of rows, or of pairs of rows, that are processed together.
ROWS_AT_ONCE = IN_MEMORY // 32
# File in which Linux states how much memory a container may use.
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def blocks(n, size=None):
    """Yield slices that cover ``range(n)``, each of `size` numbers at most.

    The default size is `ROWS_AT_ONCE`.
    """
    size = ROWS_AT_ONCE if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def blocks_of_queries(n_queries, n_keys):
    """Yield slices of queries that have at most `ROWS_AT_ONCE` pairs with all keys each."""
    return blocks(n_queries, max(1, ROWS_AT_ONCE // n_keys))


def evenly_spread(rows, max_rows):
    """Return at most `max_rows` rows, evenly spread from the first to the last one."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), max_rows)).astype(int)]


def merge_present(merge, results):
    """Merge results by ``merge(a, b)``, skipping those that are None; None if all are."""
    merged = None
    for result in results:  # a generator makes the next result when the last one is merged
        if result is not None:
            merged = result if merged is None else merge(merged, result)
    return merged


def own_copy(array):
    """Copy an array in memory, in C order, so that others cannot change it.

    A memory map and an array of another library are returned as they are.
    """
    in_ram = isinstance(array, np.ndarray) and not _is_map(array)
    return np.array(array, order="C") if in_ram else array


def append_rows(rows, new_rows):
    """Concatenate rows and new rows.

    If the rows are a memory map, so is the result, in a temporary file that vanishes when the
    result is no longer used.
    """
    if not (_is_map(rows) and isinstance(new_rows, np.ndarray)):
        return np.concatenate([rows, new_rows])
    n_rows, dtype = len(rows), np.result_type(rows, new_rows)
    with tempfile.TemporaryFile() as file:
        shape = (n_rows + len(new_rows), *rows.shape[1:])
        combined = np.memmap(file, dtype, "w+", shape=shape)
    for block in blocks(n_rows):
        combined[block] = rows[block]
    combined[n_rows:] = new_rows
    return combined


def _is_map(array):
    """Return True for a memory map, or a view of one."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner, np.memmap):
            return True
        owner = owner.base
    return False


def check_memory(what, shape, remedy, itemsize=8):
    """Raise MemoryError if an array of this shape would be larger than all memory.

    `what` names the array in the message, and `remedy` says what the user can do. `itemsize` is
    the number of bytes of each entry.
    """
    needed, limit = math.prod(map(int, shape)) * itemsize, _memory_limit()
    if needed > limit:
        sizes = " x ".join(map(str, shape))
        raise MemoryError(
            f"{what} takes {needed / 1e6:.0f} MB of memory ({sizes} numbers), but there are "
            f"{limit / 1e6:.0f} MB: {remedy}."
        )


def _memory_limit():
    """Return the bytes of memory of this machine, or of its container; inf if unknown."""
    limits = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(_CONTAINER_LIMIT.read_text("ascii")))
    return min(limits)
