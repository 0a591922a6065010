"""Linear algebra by one thread, and what is left of that afterwards."""

import os
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_attention import KernelAttentionRegressor, _thread_pools
from sklearn_attention._thread_pools import map_on_threads, one_blas_thread
from sklearn_attention.kernel_attention import _members, _ridge


def numbers_of_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def several_threads():
    before = threadpool_limits(3, user_api="blas")
    _thread_pools._let_others_set()
    if numbers_of_threads() != {3}:
        pytest.skip("the number of threads cannot be set here")
    yield
    before.restore_original_limits()
    _thread_pools._let_others_set()


def test_whoever_leaves_last_restores():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert numbers_of_threads() == {3}
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert numbers_of_threads() == {1}
    second.__exit__(None, None, None)
    assert numbers_of_threads() == {3}


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_threads_one_after_the_other_restore_too(is_interrupted):
    """Also if an interrupt within threadpoolctl kept a limit from being taken back."""
    if is_interrupted:
        threadpool_limits(3, user_api="blas")
    entered, leave, found = threading.Event(), threading.Event(), []

    def other():
        with one_blas_thread():
            found.append(numbers_of_threads())
            entered.set()
            leave.wait(10)
        found.append(numbers_of_threads())

    with one_blas_thread():
        worker = threading.Thread(target=other)
        worker.start()
        entered.wait(10)
    assert numbers_of_threads() == {1}
    leave.set()
    worker.join()
    assert found == [{1}, {3}]
    worker = threading.Thread(target=other)
    worker.start()
    worker.join()
    assert found[2:] == [{1}, {3}]


def test_contexts_that_an_interrupt_kept_from_ending_are_left():
    before = _thread_pools.contexts_of_this_thread()
    interrupted = one_blas_thread()
    interrupted.__enter__()
    assert numbers_of_threads() == {1}
    _thread_pools.leave_contexts_since(before)
    assert numbers_of_threads() == {3}
    interrupted.__exit__(None, None, None)
    with one_blas_thread():
        assert numbers_of_threads() == {1}
    assert numbers_of_threads() == {3}


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_leaves_the_contexts_of_other_threads_behind():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread(), _thread_pools._blas.lock:
            entered.set()
            leave.wait(10)

    worker = threading.Thread(target=other)
    worker.start()
    entered.wait(10)
    child = os.fork()
    if child == 0:
        free = _thread_pools._blas.lock.acquire(timeout=5)
        active = len(_thread_pools._blas.contexts)
        os._exit(0 if free and numbers_of_threads() == {3} and active == 0 else 1)
    leave.set()
    worker.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_fits_and_predictions_use_one_thread(monkeypatch):
    seen = []

    def listen(where, name):
        usual = getattr(where, name)

        def listening(*args, **kwargs):
            seen.append((name, numbers_of_threads()))
            return usual(*args, **kwargs)

        monkeypatch.setattr(where, name, listening)

    X = np.random.default_rng(0).normal(size=(40, 2))
    listen(_members, "_inverse")
    listen(_ridge.RidgeMember, "predict")
    model = KernelAttentionRegressor(max_steps=2, n_folds=2).fit(X, X[:, 0])
    assert numbers_of_threads() == {3}
    model.predict(X)
    assert {name for name, _ in seen} == {"_inverse", "predict"}
    assert all(number == {1} for _, number in seen)
    assert numbers_of_threads() == {3}


def test_items_are_shared_among_as_many_threads_as_linear_algebra_has():
    """Also within another context, and in the order of the items."""

    def thread(item):
        time.sleep(0.01)
        return item, threading.get_ident()

    for n_threads in (1, 3):
        with threadpool_limits(n_threads), one_blas_thread():
            found = map_on_threads(thread, iter(range(12)))
            alone = map_on_threads(thread, range(3), parallel=False)
        assert [item for item, _ in found] == list(range(12))
        assert len({ident for _, ident in found}) <= n_threads
        assert len({ident for _, ident in alone}) == 1
    assert len({ident for _, ident in found}) > 1
    with pytest.raises(ZeroDivisionError):
        map_on_threads(lambda item: 1 / item, [1, 0])
