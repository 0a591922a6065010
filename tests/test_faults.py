"""Fits that go wrong on the way leave the estimator, its checkpoint and the process alone."""

import copy
import errno
import itertools
import os

import numpy as np
import pytest
import torch
from every_estimator import NETWORKS, answer, data_for, global_state
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
# Each network with one of the faults, and one network with all of them.
QUICK = {*zip(NETWORKS, itertools.cycle(FAULTS), strict=False)}
QUICK |= {("language model", fault) for fault in FAULTS}


@pytest.mark.parametrize(
    ("name", "fault"), slow_but(QUICK, itertools.product(NETWORKS, FAULTS))
)
def test_a_fit_that_fails_on_the_way(name, fault, tmp_path, monkeypatch):
    path, data = tmp_path / "checkpoint.pt", data_for(NETWORKS[name])
    model = copy.deepcopy(NETWORKS[name]).fit(*data)
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
    assert_goes_on(model, name, data)


@pytest.mark.parametrize("name", NETWORKS)
def test_an_interrupted_fit_goes_on(name, tmp_path):
    path, data = tmp_path / "checkpoint.pt", data_for(NETWORKS[name])
    model = copy.deepcopy(NETWORKS[name])
    model.set_params(training=Training(checkpoint=path), random_state=1)
    state = global_state()
    model.set_callbacks(Raising(KeyboardInterrupt, 2))
    with pytest.warns(UserWarning, match="The training was interrupted after"):
        model.fit(*data)
    assert global_state() == state
    assert len(model.training_history_["loss"]) == 1
    assert_goes_on(model, name, data)


def assert_goes_on(model, name, data):
    """To where a fit comes that nothing has disturbed."""
    model.set_callbacks().fit(*data)
    fresh = copy.deepcopy(NETWORKS[name]).set_params(random_state=1).fit(*data)
    np.testing.assert_array_equal(answer(model, data), answer(fresh, data))
