"""Seeds of torch, and how many threads it uses."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sklearn_attention import _thread_pools
from sklearn_attention.nn import Dropout
from sklearn_attention.training._network import torch_seed, torch_threads


def draw_of_every_kind():
    layers = [torch.nn.Linear(3, 2), torch.nn.TransformerEncoderLayer(4, 2)]
    ones = torch.ones(50)
    return [
        *(parameter for layer in layers for parameter in layer.parameters()),
        torch.rand(3), torch.randn(2, 2), torch.randint(5, (4,)), torch.randperm(9),
        torch.nn.Dropout(0.3)(ones), Dropout(0.3)(ones), ones.clone().normal_(),
        torch.nn.init.orthogonal_(torch.empty(3, 4)),
    ]  # fmt: skip


def test_torch_seed_is_that_of_torch_within_and_leaves_no_trace():
    before = torch.get_rng_state()
    with torch_seed(5):
        drawn = draw_of_every_kind()
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for own, as_usual in zip(drawn, draw_of_every_kind(), strict=True):
            assert torch.equal(own, as_usual)
    with pytest.raises(ZeroDivisionError), torch_seed(5):
        raise ZeroDivisionError
    assert torch.equal(torch.get_rng_state(), before)


def test_torch_seed_concerns_its_own_thread():
    before = torch.get_rng_state()
    with ThreadPoolExecutor(1) as pool, torch_seed(5):
        assert torch.equal(pool.submit(torch.get_rng_state).result(), before)
        other = pool.submit(torch.rand, 3).result()
        own = torch.rand(3)
    torch.set_rng_state(before)
    assert torch.equal(torch.rand(3), other)
    torch.set_rng_state(before)
    with torch_seed(5):
        assert torch.equal(torch.rand(3), own)


@pytest.mark.usefixtures("four_threads_of_torch")
class TestTorchThreads:
    def test_within_and_after(self):
        with torch_threads(2) as before:
            assert before == 4
            assert torch.get_num_threads() == 2
            with pytest.raises(ZeroDivisionError), torch_threads(1):
                raise ZeroDivisionError
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 4

    def test_contexts_that_an_interrupt_kept_from_ending_are_left(self):
        with torch_threads(3):
            before = _thread_pools.contexts_of_this_thread()
            interrupted = [torch_threads(2), torch_threads(1)]
            for context in interrupted:
                context.__enter__()
            _thread_pools.leave_contexts_since(before)
            assert torch.get_num_threads() == 3
            interrupted[0].__exit__(None, None, None)
            assert torch.get_num_threads() == 3
            with torch_threads(2) as number:
                assert number == 3
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
