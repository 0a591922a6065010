"""How many threads torch uses, for a while."""

import contextlib
import os
import threading

import torch

from .. import _thread_pools  # noqa: F401 (so that forks do not hang)
from .._validation import check_positive


class _Own(threading.local):
    """Of each thread: the numbers that it has set, the innermost context's last."""

    def __init__(self):
        self.numbers = []


_lock = threading.Lock()
_active = 0
_threads_before = 1
_own = _Own()


@contextlib.contextmanager
def torch_threads(n_threads):
    """Let torch use so many threads, here and in new threads; yields the number before."""
    # The setting is both the calling thread's and, for threads to come, the process's. So the
    # number before is taken once, by the first context, and every thread that leaves restores
    # it for itself; but a context within another restores the other's.
    global _active, _threads_before
    n_threads = check_positive("n_threads", n_threads, integer=True)
    with _lock:
        # A new thread takes the process's number when it first reads it or computes: here, not
        # within, where another thread that leaves may have changed it.
        current = torch.get_num_threads()
        if _active == 0:
            _threads_before = current
        _active += 1
        before = _own.numbers[-1] if _own.numbers else _threads_before
        _own.numbers.append(n_threads)
        torch.set_num_threads(n_threads)
    try:
        yield before
    finally:
        with _lock:
            _active -= 1
            _own.numbers.pop()
            torch.set_num_threads(before)


def _forget_other_threads():
    """After a fork: other threads are not here, nor do they leave their contexts."""
    global _lock, _active
    _lock = threading.Lock()
    if _active and not _own.numbers:
        torch.set_num_threads(_threads_before)
    _active = len(_own.numbers)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
