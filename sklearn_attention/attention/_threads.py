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
# The same where one look at the pairs follows another: threads that wait in between keep
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
    """``[function(rows) for rows in row_blocks]``, several at a time.

    torch would share each small operation among its threads and wait for the slowest at
    its end, hundreds of times for a block. Here each thread takes whole blocks, as many
    threads as torch is set to use.

    Parameters
    ----------
    function : callable
        From a block to anything; releases Python's lock in torch.
    row_blocks : iterable of slice
    parallel : bool, default=True
        False for one after the other.

    Returns
    -------
    results : list
        In the order of the blocks.
    """
    row_blocks = list(row_blocks)
    with one_thread_per_operation() as n_threads:
        n_threads = min(n_threads, len(row_blocks)) if parallel else 1
        if n_threads < 2:
            return [function(rows) for rows in row_blocks]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(function, row_blocks))


def threads_for(n_pairs):
    """Context for many small computations on so many pairs each: one thread if few.

    Parameters
    ----------
    n_pairs : int

    Returns
    -------
    context : context manager
    """
    few = n_pairs <= FEW_PAIRS_AGAIN_AND_AGAIN
    return one_thread_per_operation() if few else contextlib.nullcontext()


def one_thread_per_operation():
    """Context in which torch uses one thread; yields how many it had."""
    return torch_threads(1)


@contextlib.contextmanager
def torch_threads(n_threads):
    """Let torch use so many threads, here and in threads that start within.

    The setting is both the calling thread's and, for threads to come, the process's. So
    the number before is taken once, when nobody else is within, and everybody who leaves
    restores it for their own thread; but a context within another restores the other's.

    Parameters
    ----------
    n_threads : int
        Where workers share a machine, the processors that each of them may have.

    Yields
    ------
    n_before : int
        How many torch had.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention.attention._threads import torch_threads
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    global _active, _threads_before
    n_threads = check_positive("n_threads", n_threads, integer=True)
    with _lock:
        # A new thread takes the process's number when it first asks or computes: here, not
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
