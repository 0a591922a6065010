"""Work shared among threads by blocks of rows."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

# Pairs of query and key below which waiting for threads costs more than they save.
FEW_PAIRS = 2**18
# The same where one look at the pairs follows another: threads that wait in between keep
# others from work, on a busy machine for longer than the work takes.
FEW_PAIRS_AGAIN_AND_AGAIN = 2**21

_lock = threading.Lock()
_active = 0
_threads_before = 1


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


@contextlib.contextmanager
def one_thread_per_operation():
    """Set torch to one thread, for threads that start within; yields how many it had.

    The setting is both the calling thread's and, for threads to come, the process's. So
    the number before is taken once, when nobody else is within, and everybody who leaves
    restores it for their own thread.
    """
    global _active, _threads_before
    with _lock:
        if _active == 0:
            _threads_before = torch.get_num_threads()
        _active += 1
        torch.set_num_threads(1)
    try:
        yield _threads_before
    finally:
        with _lock:
            _active -= 1
            torch.set_num_threads(_threads_before)
