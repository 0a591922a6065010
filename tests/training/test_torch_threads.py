"""How many threads torch uses, and gets back."""

import contextlib
import os
import threading

import pytest
import torch

from sklearn_attention.training import _torch_threads
from sklearn_attention.training._torch_threads import torch_threads


@pytest.mark.usefixtures("four_threads_of_torch")
class TestTorchThreads:
    def test_within_and_after(self):
        with torch_threads(2) as before:
            assert before == 4
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 4

    def test_after_an_error(self):
        with pytest.raises(ZeroDivisionError), torch_threads(2):
            raise ZeroDivisionError
        assert torch.get_num_threads() == 4

    def test_one_within_another_restores_the_other(self):
        with torch_threads(3):
            with torch_threads(1):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 4

    def test_threads_that_overlap_have_their_own_and_leave_the_first_number(self):
        entered, leave = threading.Event(), threading.Event()
        seen = []

        def other():
            with torch_threads(2):
                entered.set()
                leave.wait(10)
                seen.append(torch.get_num_threads())
            seen.append(torch.get_num_threads())

        worker = threading.Thread(target=other)
        with torch_threads(1):
            worker.start()
            entered.wait(10)
        leave.set()
        worker.join()
        assert seen == [2, 4]
        assert torch.get_num_threads() == 4

    @pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
    @pytest.mark.parametrize("n_own", [0, 1])
    def test_a_fork_leaves_the_contexts_of_other_threads_behind(self, n_own):
        entered, leave = threading.Event(), threading.Event()

        def other():
            with torch_threads(2), _torch_threads._lock:
                entered.set()
                leave.wait(10)

        worker = threading.Thread(target=other)
        with torch_threads(3) if n_own else contextlib.nullcontext():
            worker.start()
            entered.wait(10)
            child = os.fork()
            if child == 0:
                inside = torch.get_num_threads()
                free = _torch_threads._lock.acquire(timeout=5)
                os._exit(10 * inside + _torch_threads._active if free else 0)
            leave.set()
            worker.join()
            _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == (31 if n_own else 40)
        assert torch.get_num_threads() == 4

    @pytest.mark.parametrize("n_threads", [0, 1.5, True])
    def test_bad_input_is_named(self, n_threads):
        match = f"n_threads={n_threads} is not valid"
        with pytest.raises(ValueError, match=match), torch_threads(n_threads):
            pass
