"""Fits that go wrong on the way leave the estimator, its checkpoint and the process alone."""

import copy
import errno
import functools
import itertools
import os
import pickle
import random
import signal
import time

import numpy as np
import pytest
import torch
from every_estimator import EVERY, NETWORKS, answer, data_for, fitted, global_state
from slow_cases import slow_but

from sklearn_attention import Training
from sklearn_attention.training import _train

FAULTS = {
    "a full disk": OSError(errno.ENOSPC, "no space left"),
    "an interrupt": KeyboardInterrupt(),
    "a callback": RuntimeError("of the callback"),
    "a gradient": FloatingPointError("the gradient in epoch 1"),
}


class Raising:
    """A callback that raises as an epoch begins."""

    max_propagation_depth = None

    def __init__(self, error, epoch):
        self._error, self._epoch, self._n_begun = error, epoch, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self._n_begun += context.task_name == "epoch"
        if self._n_begun == self._epoch:
            raise self._error

    def on_fit_task_end(self, estimator, context):
        pass


def bring_about(fault, error, model, monkeypatch):
    """Let the fault occur after the first epoch, or as soon as it can."""
    if fault == "a full disk":

        def full(_):
            raise error

        monkeypatch.setattr(os, "fsync", full)
    elif fault == "a gradient":
        usual = _train._Run._gradient

        def endless(run, rows):
            loss, norm = usual(run, rows)
            return loss, norm * (torch.inf if len(run.history.loss) == 1 else 1)

        monkeypatch.setattr(_train._Run, "_gradient", endless)
    else:
        # An interrupt later on ends the training with an estimator that can be used.
        model.set_callbacks(Raising(error, 1 if fault == "an interrupt" else 2))


pytestmark = pytest.mark.usefixtures("few_trees", "few_rates")
# Each network with one of the faults.
QUICK = {*zip(NETWORKS, itertools.cycle(FAULTS), strict=False)}


@pytest.mark.parametrize(
    ("name", "fault"), slow_but(QUICK, itertools.product(NETWORKS, FAULTS))
)
def test_a_fit_that_fails_on_the_way(name, fault, tmp_path, monkeypatch):
    path, data = tmp_path / "checkpoint.pt", data_for(NETWORKS[name])
    model = copy.deepcopy(fitted(name))
    before, attributes, state = answer(model, data), set(vars(model)), global_state()
    model.set_params(training=Training(checkpoint=path), random_state=1)
    error = FAULTS[fault]
    with monkeypatch.context() as patch:
        bring_about(fault, error, model, patch)
        message = str(error.args[-1]) if error.args else "^$"
        with pytest.raises(type(error), match=message):
            model.fit(*data)
    np.testing.assert_array_equal(answer(model, data), before)
    assert set(vars(model)) - {"_skl_callbacks"} == attributes - {"_skl_callbacks"}
    assert global_state() == state
    # Whatever was saved is whole, and it goes on from there.
    assert all(found.name == "checkpoint.pt" for found in tmp_path.iterdir())
    assert path.exists() == (fault in ("a callback", "a gradient"))
    model.set_callbacks().fit(*data)
    np.testing.assert_array_equal(answer(model, data), undisturbed(name))


@functools.cache
def undisturbed(name):
    """What a network says whose fit nothing has disturbed."""
    data = data_for(NETWORKS[name])
    return answer(copy.deepcopy(NETWORKS[name]).set_params(random_state=1).fit(*data), data)


def interrupt_fits(frame):
    """Whether an interrupt comes within a fit, rather than in a test after it."""
    while frame is not None:
        if frame.f_code.co_name == "fit_or_nothing":
            return True
        frame = frame.f_back
    return False


def test_an_interrupt_leaves_the_modes_of_torch_and_numpy():
    """It may come while a context ends, which then puts nothing back."""

    class Interrupted(Raising):
        def on_fit_task_begin(self, estimator, context):
            np.seterr(all="ignore")
            torch.set_grad_enabled(False)
            torch.autocast("cpu", torch.bfloat16, cache_enabled=False).__enter__()
            super().on_fit_task_begin(estimator, context)

    errors, model = np.geterr(), copy.deepcopy(NETWORKS["regressor"])
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupted(KeyboardInterrupt(), 1)).fit(*data_for(model))
    assert np.geterr() == errors
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_autocast_cache_enabled()
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0


def state_of(model):
    """Attributes as what is stored of them; kept results may be computed again."""
    state = {name: value for name, value in vars(model).items() if name != "_memo"}
    return {name: pickle.dumps(value) for name, value in state.items()}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="has no timers that send signals")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["average", "density", "kernel attention", "regressor"])
def test_interrupts_at_any_moment_leave_the_estimator(name):
    """Those of fits that go well, and of fits that fail, which put the attributes back."""
    draw, data = random.Random(0), data_for(EVERY[name])
    model = copy.deepcopy(EVERY[name]).fit(*data)
    start = time.perf_counter()
    copy.deepcopy(model).fit(*data)
    seconds, n_interrupts = time.perf_counter() - start, 0

    def interrupt(_, frame):
        if interrupt_fits(frame):
            raise KeyboardInterrupt

    usual = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(60):
            fails = number % 2
            given = [part[:0] for part in data] if fails else data
            other = copy.deepcopy(model)
            before = state_of(other)
            delay = draw.random() * (2e-3 if fails else seconds)
            signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
            try:
                other.fit(*given)
            # torch raises RuntimeError at the end of a context that an interrupt kept from
            # beginning.
            except (KeyboardInterrupt, RuntimeError, ValueError) as error:
                n_interrupts += isinstance(error, KeyboardInterrupt)
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert state_of(other) == before
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
    assert n_interrupts > 0
