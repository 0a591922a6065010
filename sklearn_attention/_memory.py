"""Copies of the arrays that estimators are given, and arrays that do not fit into memory."""

import contextlib
import math
import os
import tempfile
from pathlib import Path

import numpy as np

from ._blocks import blocks
from ._partitions import is_partitioned

# Where Linux says how much memory a container may have.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def own_copy(array):
    """An array in C order that only its owner writes into; maps and partitions stay."""
    if is_partitioned(array) or _is_map(array):
        return array
    return np.array(array, order="C")


def appended(rows, more):
    """Rows and further ones below them.

    Of a memory map one of a temporary file, which is gone when it is no longer used.
    """
    if not _is_map(rows) or is_partitioned(more):
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
    """Whether an array is a memory map, or a view of one."""
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
            f"{what} takes {sizes} numbers, {needed / 1e6:.0f} MB, but there are "
            f"{limit / 1e6:.0f} MB of memory: {remedy}."
        )


def _limit():
    """Bytes that this machine has, or its container may have; inf if unknown."""
    limits = [math.inf]
    with contextlib.suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(_CONTAINER.read_text("ascii")))
    return min(limits)
