"""Threads of the libraries that compute: of OpenMP, and of linear algebra."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# OpenMP's name for ending threads and forgetting them (omp_pause_hard).
_PAUSE_HARD = 2


class _Own(threading.local):
    """Of each thread: how many contexts it is in."""

    def __init__(self):
        self.depth = 0


_lock = threading.Lock()
_own = _Own()
_active, _limits, _n_threads = 0, None, 1


@cache
def libraries(kind):
    """Libraries of "blas" or "openmp" that are loaded when this is first called."""
    # The search takes milliseconds.
    return ThreadpoolController().select(user_api=kind)


@contextmanager
def one_blas_thread():
    """Context in which NumPy's and SciPy's linear algebra use one thread each.

    It yields how many they had, or would have where contexts are nested.
    """
    # Both libraries have threads of their own, which spin while they wait for the next product.
    # With small matrices and alternating calls the threads of one keep those of the other from
    # work, and fits take many times as long as with one thread.
    # The setting belongs to the process: the first context stores the numbers before it, and
    # the last to leave restores them.
    global _active, _limits, _n_threads
    with _lock:
        if _active == 0:
            counts = [library.num_threads for library in libraries("blas").lib_controllers]
            _n_threads = min(counts, default=1) or 1
            _limits = libraries("blas").limit(limits=1)
            _let_others_set()
        _active += 1
        _own.depth += 1
    try:
        yield _n_threads
    finally:
        with _lock:
            _active -= 1
            _own.depth -= 1
            if _active == 0:
                _limits.restore_original_limits()
                _let_others_set()


def map_on_threads(function, items, *, parallel=True):
    """``[function(item) for item in items]``, on as many threads as linear algebra has."""
    # So the environment, joblib's workers and threadpoolctl say how many. Each takes whole
    # items, so that results do not depend on the number; no pool outlives the call. Without
    # `parallel` this thread takes all.
    with one_blas_thread() as n_threads:
        items = list(items)
        n_threads = min(n_threads, len(items)) if parallel else 1
        if n_threads < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(function, items))


def _let_others_set():
    """Give up threadpoolctl's controlling thread, the one that set the numbers first."""
    # The last context to leave restores the numbers, also after that thread has ended.
    with libraries("blas").limit(limits=None):
        pass


def _forget_other_threads():
    """After a fork: drop the contexts of other threads, which do not exist in the child."""
    global _lock, _active
    _lock = threading.Lock()
    if _active and not _own.depth:
        _limits.restore_original_limits()
    _active = _own.depth


def _end_threads():
    """End the threads of this thread's OpenMP; it starts new ones when it needs them."""
    # A forked process has no threads of its parent, but GNU's OpenMP assumes that it has, and
    # waits for them for ever. Other OpenMP libraries handle a fork themselves.
    for library in ThreadpoolController().select(prefix="libgomp").lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)
        if pause is not None:
            pause(_PAUSE_HARD)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads, after_in_child=_forget_other_threads)
