"""Numbers of threads of OpenMP, of linear algebra and of torch.

BLAS, the library of linear algebra, and OpenMP compute on several threads. How many they take
is a number of the process, which other code may change at the same time.
"""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from threadpoolctl import OpenBLASController, ThreadpoolController

# Value of omp_pause_hard in OpenMP: end all threads and forget their state.
_PAUSE_HARD = 2

_context_numbers = itertools.count()  # so that no two contexts are equal
_limits = []  # every instance of `ThreadLimit`


class ThreadLimit:
    """A number of threads of the process, which contexts change for a while.

    Several threads may enter contexts. The first context to be entered stores the number before
    it, and the last one to be left restores this number. Leaving a context twice has no effect,
    so that contexts that an interrupt has kept from ending can be left later.

    Parameters
    ----------
    read, write : callable
        ``read()`` returns the present number, and ``write(number)`` sets it.
    of_each_thread : bool
        Whether each thread has its own number.
    """

    def __init__(self, read, write, *, of_each_thread):
        self.read, self.write, self.of_each_thread = read, write, of_each_thread
        self.contexts, self.before = {}, None  # {(thread, count): number}, in order of entry
        # The lock is reentrant, since Python may end another context of this thread, when it
        # frees memory, while the thread holds the lock.
        self.lock = threading.RLock()
        _limits.append(self)

    @contextmanager
    def set(self, number):
        """Change the number in a context, and yield the number before."""
        context = threading.get_ident(), next(_context_numbers)
        try:
            with self.lock:
                # A new thread takes the number of the process when it first reads it or
                # computes. It has to do so here, since later another thread that leaves its
                # context may have changed the number.
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
        """Leave contexts, and skip those that have been left already."""
        with self.lock:
            leaving = self.contexts.keys() & contexts
            if leaving:
                # The number is set before contexts are removed. If an interrupt comes in
                # between, the contexts remain and can be left later.
                remaining = {c: n for c, n in self.contexts.items() if c not in leaving}
                self.write(self._innermost(remaining))
                for context in leaving:
                    del self.contexts[context]

    def of_this_thread(self):
        """Return the set of contexts that this thread has entered."""
        return {context for context in [*self.contexts] if context[0] == threading.get_ident()}

    def _innermost(self, contexts):
        """Return the number of the last context that holds for this thread.

        Without such a context it is the number before all contexts.
        """
        thread, number = threading.get_ident(), self.before
        for context, inner in contexts.items():
            if context[0] == thread or not self.of_each_thread:
                number = inner
        return number


def contexts_of_this_thread():
    """Return the set of contexts of all limits that this thread has entered."""
    return {context for limit in _limits for context in limit.of_this_thread()}


def leave_contexts_since(before):
    """Leave the contexts that this thread entered after ``before = contexts_of_this_thread()``.

    They are still there if an interrupt kept them from ending.
    """
    for limit in _limits:
        limit.leave(limit.of_this_thread() - before)


@cache
def libraries(kind):
    """Return threadpoolctl's controller of the loaded libraries of "blas" or "openmp".

    The search for libraries takes milliseconds, so that its result is cached. Libraries that
    are loaded after the first call are missing.
    """
    return ThreadpoolController().select(user_api=kind)


def _numbers_of_blas():
    return [library.num_threads for library in libraries("blas").lib_controllers]


def _set_numbers_of_blas(numbers):
    if numbers == _numbers_of_blas():  # in nested contexts; reading is faster than setting
        return
    for library, n_threads in zip(libraries("blas").lib_controllers, numbers, strict=True):
        library.set_num_threads(n_threads)
    _let_others_set()


_blas = ThreadLimit(_numbers_of_blas, _set_numbers_of_blas, of_each_thread=False)


@contextmanager
def one_blas_thread():
    """Make NumPy's and SciPy's linear algebra use one thread each in a context.

    It yields the number of threads outside of all such contexts.
    """
    # Both libraries have threads, which spin while they wait for the next product. If calls of
    # small matrices alternate between the libraries, the spinning threads of one starve the
    # threads of the other, and fits take many times as long as with one thread.
    with _blas.set([1] * len(libraries("blas").lib_controllers)):
        yield min(_blas.before, default=1) or 1


def map_on_threads(function, items, *, parallel=True):
    """Compute ``[function(item) for item in items]`` on as many threads as linear algebra has.

    The environment, joblib's workers and threadpoolctl can change this number. Each item is
    computed by one thread, so that results do not depend on the number. The threads end with
    the call. If `parallel` is False, all items are computed by the calling thread.
    """
    with one_blas_thread() as n_threads:
        items = list(items)
        n_threads = min(n_threads, len(items)) if parallel else 1
        if n_threads < 2:
            return [function(item) for item in items]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(function, items))


def _let_others_set():
    """Let all threads set numbers of threads, not only this one.

    threadpoolctl 3.7 lets only the thread set them that did it first, but the last context may
    be left by another thread.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear()


def _forget_other_threads():
    """Drop the contexts of other threads, which do not exist in a child after a fork."""
    for limit in _limits:
        limit.lock = threading.RLock()
        limit.leave(limit.contexts.keys() - limit.of_this_thread())


def _end_threads():
    """End the threads of this thread's OpenMP; it starts new ones when it needs them."""
    # A forked process does not have the threads of its parent, but GNU's OpenMP assumes that
    # they exist, and waits for them forever. Other OpenMP libraries handle a fork themselves.
    for library in ThreadpoolController().select(prefix="libgomp").lib_controllers:
        pause = getattr(library.dynlib, "omp_pause_resource_all", None)
        if pause is not None:
            pause(_PAUSE_HARD)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_threads, after_in_child=_forget_other_threads)
