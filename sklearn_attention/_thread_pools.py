"""Threads of the libraries that compute: of OpenMP, of linear algebra, and of torch."""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import OpenBLASController, ThreadpoolController

# OpenMP's name for ending threads and forgetting them (omp_pause_hard).
_PAUSE_HARD = 2

_numbers = itertools.count()
_limits = []  # every instance of `ThreadLimit`


class ThreadLimit:
    """A number of threads that belongs to the process, and that contexts of threads change.

    The first context stores the number before it, and the last to leave restores it. To leave
    a context twice does no harm, so that those that an interrupt kept from ending can be left.

    Parameters
    ----------
    read, write : callable
        ``read()`` is the number in force, and ``write(number)`` sets it.
    of_each_thread : bool
        Whether every thread has a number of its own.
    """

    def __init__(self, read, write, *, of_each_thread):
        self.read, self.write, self.of_each_thread = read, write, of_each_thread
        self.contexts, self.before = {}, None  # {(thread, count): number}, in order of entry
        # A thread may take it twice, as Python may end a context whenever it frees memory.
        self.lock = threading.RLock()
        _limits.append(self)

    @contextmanager
    def set(self, number):
        """Context in which the number is another; yields the one before."""
        context = threading.get_ident(), next(_numbers)
        try:
            with self.lock:
                # A new thread takes the process's number when it first reads it or computes:
                # here, not within, where another thread that leaves may have changed it.
                current = self.read()
                if not self.contexts:
                    self.before = current
                before = self._innermost(self.contexts)
                self.contexts[context] = number
                self.write(number)
            yield before
        finally:
            self.leave({context})

    def leave(self, contexts):
        """Leave contexts; those that are left already are skipped."""
        with self.lock:
            left = self.contexts.keys() & contexts
            if left:
                # The number first: an interrupt after it leaves the contexts to be left.
                remaining = {c: n for c, n in self.contexts.items() if c not in left}
                self.write(self._innermost(remaining))
                for context in left:
                    del self.contexts[context]

    def of_this_thread(self):
        """The contexts that this thread is in."""
        return {context for context in [*self.contexts] if context[0] == threading.get_ident()}

    def _innermost(self, contexts):
        """The number of the last of these contexts that counts here, or before all."""
        thread, number = threading.get_ident(), self.before
        for context, inner in contexts.items():
            if context[0] == thread or not self.of_each_thread:
                number = inner
        return number


def contexts_of_this_thread():
    """The contexts of every limit that this thread is in."""
    return {context for limit in _limits for context in limit.of_this_thread()}


def leave_contexts_since(before):
    """Leave those that this thread entered after ``before = contexts_of_this_thread()``."""
    # An interrupt may come while a context ends, and keep it from ending.
    for limit in _limits:
        limit.leave(limit.of_this_thread() - before)


@cache
def libraries(kind):
    """Libraries of "blas" or "openmp" that are loaded when this is first called."""
    # The search takes milliseconds.
    return ThreadpoolController().select(user_api=kind)


def _numbers_of_blas():
    return [library.num_threads for library in libraries("blas").lib_controllers]


def _set_numbers_of_blas(numbers):
    if numbers == _numbers_of_blas():  # contexts are nested: to read is faster than to set
        return
    for library, n_threads in zip(libraries("blas").lib_controllers, numbers, strict=True):
        library.set_num_threads(n_threads)
    _let_others_set()


_blas = ThreadLimit(_numbers_of_blas, _set_numbers_of_blas, of_each_thread=False)


@contextmanager
def one_blas_thread():
    """Context in which NumPy's and SciPy's linear algebra use one thread each.

    It yields how many they had, or would have where contexts are nested.
    """
    # Both libraries have threads of their own, which spin while they wait for the next product.
    # With small matrices and alternating calls the threads of one keep those of the other from
    # work, and fits take many times as long as with one thread.
    with _blas.set([1] * len(libraries("blas").lib_controllers)):
        yield min(_blas.before, default=1) or 1


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
    for limit in _limits:
        limit.lock = threading.RLock()
        limit.leave(limit.contexts.keys() - limit.of_this_thread())


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
