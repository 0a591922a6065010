"""A training that was killed goes on as if it had not been."""

import copy
import os
import signal

import pytest
import torch

from sklearn_attention.nn import Dropout, Encoder
from sklearn_attention.training._network import torch_seed

PLAN = {"learning_rate": 0.01, "batch_size": 16, "max_epochs": 3, "patience": None}


def assert_equal(state, other):
    assert state.keys() == other.keys()
    assert all(torch.equal(state[name], other[name]) for name in state)


def interrupted_at(task, n_calls):
    """The loss of the task, which the user interrupts in a given call."""
    calls = iter(range(n_calls - 1))

    def batch_loss(module, rows):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return task.loss(module, rows)

    return batch_loss


class Attentive(torch.nn.Module):
    """A module with matrices for Muon, and with what else remembers something."""

    def __init__(self):
        super().__init__()
        self.encoder, self.norm = Encoder(2, 8, 2, 16, dropout=0.1), torch.nn.BatchNorm1d(8)
        self.dropout, self.head = Dropout(0.3), torch.nn.Linear(8, 1)

    def forward(self, x):
        tokens = self.encoder(x.repeat(1, 4)[:, None])[0][:, 0]
        return self.head(self.dropout(self.norm(tokens)))


# Plans, and at which calls of the loss their trainings are killed, one after the other.
STEADY = {"learning_rate": 0.02, "batch_size": 8}
MUON = {"optimizer": "muon", "learning_rate": 0.01, "batch_size": 16, "max_epochs": 5}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif(os.name == "nt", reason="has neither fork nor SIGKILL")
@pytest.mark.parametrize(
    ("plan", "kills"),
    [(STEADY | {"max_epochs": None, "max_steps": 37}, (20, 9)), (MUON, (6, 9))],
)
def test_killed_and_resumed_is_the_same_bit_for_bit(task, tmp_path, plan, kills):
    calls = []

    def fit(kill_at=None, checkpoint=tmp_path / "checkpoint.pt"):
        calls.clear()

        def batch_loss(module, rows):
            calls.append(rows)
            if len(calls) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return task.loss(module, rows)

        with torch_seed(0):
            module = Attentive()
        module, history = task.fit(
            module, **plan, batch_loss=batch_loss, random_state=3, threads=1,
            validation_loss=lambda module: task.loss(module, slice(None)),
            checkpoint=checkpoint,
        )  # fmt: skip
        history = history.loss, history.validation_loss, history.best_epoch, history.stopped
        return module.state_dict(), history, len(calls)

    state, history, n_calls = fit(checkpoint=None)
    for kill_at in kills:
        child = os.fork()
        if child == 0:
            fit(kill_at)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
    # It goes on in the midst, neither from the start nor from the end; then it is done.
    for n_least, n_most in ((1, n_calls - 1), (0, 0)):
        resumed, its_history, n_later = fit()
        assert_equal(resumed, state)
        assert its_history == history
        assert n_least <= n_later <= n_most


class TestFile:
    @pytest.mark.parametrize(
        "plan", [PLAN, {"learning_rate": 0.02, "batch_size": 10, "max_epochs": 3}]
    )
    def test_an_interrupted_training_goes_on(self, task, tmp_path, plan):
        path = tmp_path / "checkpoint.pt"
        _, history = task.fit(**plan, batch_loss=interrupted_at(task, 7), checkpoint=path)
        assert (history.stopped, len(history.loss)) == ("interrupted", 1)
        module, history = task.fit(**plan, checkpoint=path)
        assert (history.stopped, len(history.loss)) == ("max_epochs", 3)
        assert_equal(module.state_dict(), task.fit(**plan)[0].state_dict())
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]

    def test_early_stopping_goes_on_counting(self, task, tmp_path):
        plan = {"patience": 3, "max_epochs": 20, "checkpoint": str(tmp_path / "checkpoint.pt")}
        losses = [1.0, 3.0, 3.0, KeyboardInterrupt, 3.0, 0.5]

        def validation_loss(module):
            value = losses.pop(0)
            if value is KeyboardInterrupt:
                raise value
            return value

        best, _ = task.fit(**plan, validation_loss=validation_loss)
        module, history = task.fit(**plan, validation_loss=validation_loss)
        assert (history.stopped, history.best_epoch) == ("patience", 0)
        assert losses == [0.5]
        assert_equal(module.state_dict(), best.state_dict())

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("learning_rate", {"learning_rate": 0.5}),
            ("validation", {"validation_loss": lambda module: 0.0}),
            ("checkpoint_key", {"checkpoint_key": "other data"}),
            ("parameters", {"module": torch.nn.Linear(2, 1)}),
        ],
    )
    def test_another_training_that_has_not_ended_keeps_its_file(
        self, task, tmp_path, name, options
    ):
        path = tmp_path / "checkpoint.pt"
        task.fit(**PLAN, batch_loss=interrupted_at(task, 7), checkpoint=path)
        before = path.read_bytes()
        options = PLAN | copy.deepcopy(options)
        alone, _ = task.fit(**copy.deepcopy(options))
        match = rf"checkpoint=.*checkpoint\.pt.* not ended and differs in {name}"
        with pytest.warns(UserWarning, match=match):
            module, _ = task.fit(**options, checkpoint=path)
        assert_equal(module.state_dict(), alone.state_dict())
        assert path.read_bytes() == before

    def test_another_training_takes_the_file_of_one_that_has_ended(self, task, tmp_path):
        path = tmp_path / "checkpoint.pt"
        task.fit(**PLAN, checkpoint=path)
        before = path.read_bytes()
        task.fit(**PLAN, random_state=1, checkpoint=path)
        assert path.read_bytes() != before

    @pytest.mark.parametrize(
        ("path", "match"),
        [
            ("missing/a.pt", "lies in no folder"),
            (3, "checkpoint=3"),
            ("a\0.pt", r"checkpoint='a\\x00.pt' is not valid: pass the path of a file"),
        ],
    )
    def test_where_there_can_be_no_file(self, task, tmp_path, monkeypatch, path, match):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=match):
            task.fit(**PLAN, checkpoint=path)
