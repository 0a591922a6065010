"""Threads of the libraries that compute: of OpenMP, and of linear algebra."""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import OpenBLASController, ThreadpoolController

# OpenMP's name for ending threads and forgetting them (omp_pause_hard).
_PAUSE_HARD = 2


# A lock that a thread may take twice, as Python may end a context whenever it frees memory.
_lock = threading.RLock()
_contexts = set()  # those of `one_blas_thread` that are active: (their thread, a number)
_numbers = itertools.count()
_n_before = None  # threads of each library before the first of these contexts


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
    global _n_before
    context = threading.get_ident(), next(_numbers)
    try:
        with _lock:
            _contexts.add(context)
            if _n_before is None:
                _n_before = [
                    library.num_threads for library in libraries("blas").lib_controllers
                ]
                _set_threads([1] * len(_n_before))
            n_threads = min(_n_before, default=1) or 1
        yield n_threads
    finally:
        _leave({context})


def contexts_of_this_thread():
    """The contexts of `one_blas_thread` that this thread is in."""
    return {context for context in _contexts.copy() if context[0] == threading.get_ident()}


def leave_contexts_since(before):
    """Leave those that this thread entered after ``before = contexts_of_this_thread()``."""
    # An interrupt may come while a context ends, and keep it from ending.
    _leave(contexts_of_this_thread() - before)


def _leave(contexts):
    global _n_before
    with _lock:
        _contexts.difference_update(contexts)
        if not _contexts and _n_before is not None:
            _set_threads(_n_before)
            _n_before = None


def _set_threads(numbers):
    for library, n_threads in zip(libraries("blas").lib_controllers, numbers, strict=True):
        library.set_num_threads(n_threads)
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
    """Give up threadpoolctl's controlling thread, if it is this one, so that any may set."""
    # The last context to leave may be in another thread than the one that set the numbers.
    # threadpoolctl before 3.7 has no controlling thread.
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear()


def _forget_other_threads():
    """After a fork: drop the contexts of other threads, which do not exist in the child."""
    global _lock
    _lock = threading.RLock()
    _leave(_contexts - contexts_of_this_thread())


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
