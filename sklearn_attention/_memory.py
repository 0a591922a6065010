"""Arrays that do not fit into memory."""

import contextlib
import math
import os
from pathlib import Path

# File of Linux with the memory that a container may have.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


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
