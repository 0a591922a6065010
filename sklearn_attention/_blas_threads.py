"""Linear algebra by one thread."""

import os
import threading
from contextlib import contextmanager

from ._thread_pools import libraries


class _Own(threading.local):
    """Of each thread: how many contexts it is in."""

    def __init__(self):
        self.depth = 0


_lock = threading.Lock()
_own = _Own()
_active, _limits = 0, None


@contextmanager
def one_blas_thread():
    """Context in which NumPy's and SciPy's linear algebra use one thread each.

    Both have threads of their own, which wait for the next product by spinning. Where matrices
    are small and the two libraries take turns, they keep each other from work: fits take many
    times as long as by one thread.

    The setting is the whole process's. So whoever comes first takes the numbers before, and
    whoever leaves last restores them.
    """
    global _active, _limits
    with _lock:
        if _active == 0:
            _limits = libraries("blas").limit(limits=1)
            _let_others_set()
        _active += 1
        _own.depth += 1
    try:
        yield
    finally:
        with _lock:
            _active -= 1
            _own.depth -= 1
            if _active == 0:
                _limits.restore_original_limits()
                _let_others_set()


def _let_others_set():
    """Give up what threadpoolctl keeps to the thread that set numbers first, if it lives.

    Whoever leaves last is to restore them, and others may come after this thread. Contexts
    give it up at their end; this one changes nothing else.
    """
    with libraries("blas").limit(limits=None):
        pass


def _forget_other_threads():
    """After a fork: other threads are not here, nor do they leave their contexts."""
    global _lock, _active
    _lock = threading.Lock()
    if _active and not _own.depth:
        _limits.restore_original_limits()
    _active = _own.depth


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
