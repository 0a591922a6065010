"""Rows in blocks, copies of rows that are kept, and arrays that do not fit into memory."""

import contextlib
import math
import os
import tempfile
from pathlib import Path

import numpy as np

# Numbers, of 8 bytes, that stay in a processor's cache, and that a computation may hold in
# memory at a time. All sizes of blocks are parts of these, by how many tables are held.
IN_CACHE, IN_MEMORY = 2**17, 2**25
# Rows, or pairs of rows, that are in memory together, however many there are.
ROWS_AT_ONCE = IN_MEMORY // 32
# File of Linux with the memory that a container may have.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def blocks(n, size=None):
    """Slices of at most so many that cover ``range(n)``; None for `ROWS_AT_ONCE`."""
    size = ROWS_AT_ONCE if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def blocks_of_queries(n_queries, n_keys):
    """Slices of queries, so many at a time that there are few pairs of them with keys."""
    return blocks(n_queries, max(1, ROWS_AT_ONCE // n_keys))


def evenly_spread(rows, max_rows):
    """Return at most `max_rows` rows, evenly spread from the first to the last one."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), max_rows)).astype(int)]


def merged(merge, parts):
    """Parts merged into one, without those that are None; None where all are."""
    found = None
    for part in parts:  # one at a time, which may be made as they are merged
        if part is not None:
            found = part if found is None else merge(found, part)
    return found


def own_copy(array):
    """An array in C order that only its owner writes into; what lies elsewhere stays."""
    in_ram = isinstance(array, np.ndarray) and not _is_map(array)
    return np.array(array, order="C") if in_ram else array


def appended(rows, more):
    """Rows and further ones below them.

    Of a memory map one of a temporary file, which is gone when it is no longer used.
    """
    if not (_is_map(rows) and isinstance(more, np.ndarray)):
        return np.concatenate([rows, more])
    n_rows, dtype = len(rows), np.result_type(rows, more)
    with tempfile.TemporaryFile() as file:
        shape = (n_rows + len(more), *rows.shape[1:])
        found = np.memmap(file, dtype, "w+", shape=shape)
    for some in blocks(n_rows):
        found[some] = rows[some]
    found[n_rows:] = more
    return found


def _is_map(array):
    """True for a memory map, or a view of one."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner, np.memmap):
            return True
        owner = owner.base
    return False


def check_memory(what, shape, remedy, itemsize=8):
    """Raise MemoryError if an array is larger than all memory, before it is allocated."""
    needed, limit = math.prod(map(int, shape)) * itemsize, _limit()
    if needed > limit:
        sizes = " x ".join(map(str, shape))
        raise MemoryError(
            f"{what} takes {needed / 1e6:.0f} MB of memory ({sizes} numbers), but there are "
            f"{limit / 1e6:.0f} MB: {remedy}."
        )


def _limit():
    """Bytes that this machine has, or its container may have; inf if unknown."""
    limits = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(_CONTAINER.read_text("ascii")))
    return min(limits)
