"""Threads of the libraries that compute: of OpenMP, and of linear algebra."""

import contextlib
import os
from functools import cache

from threadpoolctl import ThreadpoolController

# Numbers of a table below which trees fit and predict by one thread: more save less than half
# a second, and on a busy machine wait for one another many times as long.
_FEW_CELLS = 2**19
# OpenMP's name for ending threads and forgetting them (omp_pause_hard).
_PAUSE_HARD = 2


def tree_threads(n_cells):
    """Context for trees on a table of so many numbers: one thread if few."""
    few = n_cells < _FEW_CELLS
    return libraries("openmp").limit(limits=1) if few else contextlib.nullcontext()


@cache
def libraries(kind):
    """Libraries of "blas" or "openmp" that are loaded when this is first called."""
    # The search takes milliseconds.
    return ThreadpoolController().select(user_api=kind)


def _end_threads():
    """End the threads of this thread's OpenMP; it starts new ones when it needs them."""
    # A forked process has no threads of its parent, but GNU's OpenMP assumes that it has, and
    # waits for them for ever. Other OpenMP libraries handle a fork themselves.
    for library in ThreadpoolController().select(prefix="libgomp").lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)
        if pause is not None:
            pause(_PAUSE_HARD)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads)
