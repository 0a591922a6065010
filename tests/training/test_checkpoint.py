"""A training that was killed goes on as if it had not been."""

import copy
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from sklearn_attention import Training

# Trains in processes of its own, some of which kill themselves in the loss of a given call.
# They are forked, for torch takes seconds to load.
SCRIPT = """
import os, signal, sys
import torch
from sklearn_attention.nn import Encoder
from sklearn_attention.nn import Dropout
from sklearn_attention import Training
from sklearn_attention.training import train
from sklearn_attention.training._network import torch_seed

root, cases = sys.argv[1], eval(sys.argv[2])
generator = torch.Generator().manual_seed(7)
x = torch.randn(50, 2, generator=generator)
y = torch.sin(x[:, 0])

class Attentive(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(2, 8, 2, 16, dropout=0.1), torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.encoder(x.repeat(1, 4)[:, None])[0][:, 0])

def fit(plan, checkpoint, kill_at, result):
    n_calls = 0

    def batch_loss(module, rows):
        nonlocal n_calls
        n_calls += 1
        if n_calls == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return (module(x[rows])[:, 0] - y[rows]).square().mean()

    with torch_seed(0):
        module = Attentive() if plan.optimizer == "muon" else torch.nn.Sequential(
            torch.nn.Linear(2, 8), torch.nn.BatchNorm1d(8), Dropout(0.3),
            torch.nn.Linear(8, 1),
        )
    history = train(
        module, batch_loss, 50, plan.set_params(checkpoint=checkpoint), random_state=3,
        threads=1,
        validation_loss=lambda module: (module(x)[:, 0] - y).square().mean(),
    )
    history = [history.loss, history.validation_loss, history.best_epoch, history.stopped]
    torch.save([module.state_dict(), history, n_calls], result)

def forked(*args):
    child = os.fork()
    if child == 0:
        try:
            fit(*args)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

torch.optim.Adam([torch.ones(1, requires_grad=True)])  # loads a lot, once for all
for name, (plan, kills) in cases.items():
    folder = f"{root}/{name}"
    os.mkdir(folder)
    path = f"{folder}/checkpoint.pt"
    assert forked(plan, None, 0, f"{folder}/uninterrupted.pt") == 0
    for kill_at in kills:
        assert forked(plan, path, kill_at, f"{folder}/killed.pt") == signal.SIGKILL
    assert forked(plan, path, 0, f"{folder}/resumed.pt") == 0
    assert forked(plan, path, 0, f"{folder}/again.pt") == 0
"""

# Plans, and at which calls of the loss their trainings are killed, one after the other.
GROWING = {"learning_rate": 0.02, "batch_size": (4, 16)}
MUON = {"optimizer": "muon", "learning_rate": 0.01, "batch_size": 16, "max_epochs": 5}
CASES = {
    "growing batches": (Training(**GROWING, max_epochs=6), (20, 9)),
    "max_steps": (Training(**GROWING, max_epochs=None, max_steps=37), (26,)),
    "constant": (Training(**MUON, schedule="constant"), (6, 9)),
    "muon": (Training(**MUON), (11,)),
}

PLAN = Training(learning_rate=0.01, batch_size=16, max_epochs=3, patience=None)


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


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder of the results of all cases."""
    root = tmp_path_factory.mktemp("trained")
    command = [sys.executable, "-c", SCRIPT, str(root), repr(CASES)]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=one_thread, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="has neither fork nor SIGKILL")
@pytest.mark.parametrize("case", CASES)
def test_killed_and_resumed_is_the_same_bit_for_bit(trained, case):
    names = ("uninterrupted", "resumed", "again")
    (state, history, n_calls), *others = (
        torch.load(trained / case / f"{name}.pt", weights_only=True) for name in names
    )
    for resumed, its_history, _ in others:
        assert_equal(resumed, state)
        assert its_history == history
    # It went on in the midst, neither from the start nor from the end; then it was done.
    (_, _, n_later), (_, _, n_again) = others
    assert 0 < n_later < n_calls
    assert n_again == 0
    assert not (trained / case / "killed.pt").exists()


class TestFile:
    @pytest.mark.parametrize(
        ("plan", "n_calls"),
        [
            (PLAN, 7),
            (Training(learning_rate=0.02, batch_size=(10, 25), max_epochs=3), 7),
        ],
        ids=["one size", "growing batches"],
    )
    def test_an_interrupted_training_goes_on(self, task, tmp_path, plan, n_calls):
        path = tmp_path / "checkpoint.pt"
        _, history = task.fit(plan, batch_loss=interrupted_at(task, n_calls), checkpoint=path)
        assert (history.stopped, len(history.loss)) == ("interrupted", 1)
        module, history = task.fit(plan, checkpoint=path)
        assert (history.stopped, len(history.loss)) == ("max_epochs", 3)
        assert_equal(module.state_dict(), task.fit(plan)[0].state_dict())

    def test_early_stopping_goes_on_counting(self, task, tmp_path):
        plan, path = Training(patience=3, max_epochs=20), str(tmp_path / "checkpoint.pt")
        losses = [1.0, 3.0, 3.0, KeyboardInterrupt, 3.0, 0.5]

        def validation_loss(module):
            value = losses.pop(0)
            if value is KeyboardInterrupt:
                raise value
            return value

        best, _ = task.fit(plan, validation_loss=validation_loss, checkpoint=path)
        module, history = task.fit(plan, validation_loss=validation_loss, checkpoint=path)
        assert (history.stopped, history.best_epoch) == ("patience", 0)
        assert losses == [0.5]
        assert_equal(module.state_dict(), best.state_dict())

    def test_checkpoints_change_nothing(self, task, tmp_path):
        module, _ = task.fit(PLAN, checkpoint=tmp_path / "a.pt")
        assert_equal(module.state_dict(), task.fit(PLAN)[0].state_dict())
        assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            (
                "learning_rate",
                {"plan": Training(learning_rate=0.5, batch_size=16, max_epochs=3)},
            ),
            ("max_epochs", {"plan": Training(learning_rate=0.01, batch_size=16, max_epochs=4)}),
            ("random_state", {"random_state": 1}),
            ("validation", {"validation_loss": lambda module: 0.0}),
            ("checkpoint_key", {"checkpoint_key": "other data"}),
            ("parameters", {"module": torch.nn.Linear(2, 1)}),
        ],
    )
    def test_another_training_that_has_not_ended_keeps_its_file(
        self, task, tmp_path, name, options
    ):
        path = tmp_path / "checkpoint.pt"
        task.fit(PLAN, batch_loss=interrupted_at(task, 7), checkpoint=path)
        before = path.read_bytes()
        options = {"plan": PLAN} | copy.deepcopy(options)
        alone, _ = task.fit(**copy.deepcopy(options))
        match = rf"checkpoint=.*checkpoint\.pt.* not ended and differs in {name}"
        with pytest.warns(UserWarning, match=match):
            module, _ = task.fit(**options, checkpoint=path)
        assert_equal(module.state_dict(), alone.state_dict())
        assert path.read_bytes() == before

    def test_another_training_takes_the_file_of_one_that_has_ended(self, task, tmp_path):
        path = tmp_path / "checkpoint.pt"
        task.fit(PLAN, checkpoint=path)
        before = path.read_bytes()
        module, _ = task.fit(PLAN, random_state=1, checkpoint=path)
        assert_equal(module.state_dict(), task.fit(PLAN, random_state=1)[0].state_dict())
        assert path.read_bytes() != before

    # Whose file it is when a training begins is left to chance.
    @pytest.mark.filterwarnings("ignore:.*of another training")
    def test_several_at_once(self, task, tmp_path):
        path = tmp_path / "checkpoint.pt"

        def fit(random_state):
            return task.fit(PLAN, random_state=random_state, checkpoint=path)[0]

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(fit, [0, 1, 2, 0] * 3))
        alone = [task.fit(PLAN, random_state=seed)[0].state_dict() for seed in range(3)]
        for module, seed in zip(found, [0, 1, 2, 0] * 3, strict=True):
            assert_equal(module.state_dict(), alone[seed])
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]

    @pytest.mark.parametrize(
        ("path", "match"),
        [
            ("missing/a.pt", "lies in no folder"),
            (".", "is a folder"),
            (3, "checkpoint=3"),
            ("a\0.pt", r"checkpoint='a\\x00.pt' is not valid: pass the path of a file"),
        ],
    )
    def test_where_there_can_be_no_file(self, task, tmp_path, monkeypatch, path, match):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=match):
            task.fit(PLAN, checkpoint=path)


def test_what_a_validation_remembers_goes_on_too(task, tmp_path):
    class Remembering:
        def __init__(self):
            self.seen = []

        def __call__(self, module):
            self.seen.append(float(task.loss(module, torch.arange(50))))
            return self.seen[-1]

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = list(state["seen"])

    class Interrupting(Remembering):
        def __call__(self, module):
            if len(self.seen) == 2:
                raise KeyboardInterrupt
            return super().__call__(module)

    plan, path = Training(max_epochs=4), tmp_path / "checkpoint.pt"
    whole, interrupted, resumed = Remembering(), Interrupting(), Remembering()
    task.fit(plan, validation_loss=whole)
    task.fit(plan, validation_loss=interrupted, checkpoint=path)
    task.fit(plan, validation_loss=resumed, checkpoint=path)
    assert len(interrupted.seen) == 2
    assert resumed.seen == whole.seen
