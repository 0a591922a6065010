"""Work shared among threads by blocks of rows."""

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from .. import _thread_pools  # noqa: F401 (so that forks do not hang)
from .._validation import check_positive

# Pairs of query and key below which waiting for threads costs more than they save.
FEW_PAIRS = 2**18
# The same where passes over the pairs follow each other: threads that wait in between keep
# others from work, on a busy machine for longer than the work takes.
FEW_PAIRS_AGAIN_AND_AGAIN = 2**21


class _Own(threading.local):
    """Of each thread: the numbers that it has set, the innermost context's last."""

    def __init__(self):
        self.numbers = []


_lock = threading.Lock()
_active = 0
_threads_before = 1
_own = _Own()


def map_blocks(function, row_blocks, *, parallel=True):
    """``[function(rows) for rows in row_blocks]``, by as many threads as torch may use."""
    # torch would share each small operation among its threads and wait for the slowest,
    # hundreds of times for a block. Here each thread takes whole blocks. `function` releases
    # Python's lock in torch.
    row_blocks = list(row_blocks)
    with one_thread_per_operation() as n_threads:
        n_threads = min(n_threads, len(row_blocks)) if parallel else 1
        if n_threads < 2:
            return [function(rows) for rows in row_blocks]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(function, row_blocks))


def threads_for(n_pairs):
    """Context for repeated small computations on so many pairs each: one thread if few."""
    few = n_pairs <= FEW_PAIRS_AGAIN_AND_AGAIN
    return one_thread_per_operation() if few else contextlib.nullcontext()


def one_thread_per_operation():
    """Context in which torch uses one thread; yields how many it had."""
    return torch_threads(1)


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
