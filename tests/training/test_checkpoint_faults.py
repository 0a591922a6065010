"""Damaged and foreign checkpoints, and writes that do not end."""

import builtins
import copy
import errno
import hashlib
import io
import os
import random
import signal

import pytest
import torch

from sklearn_attention.training import _checkpoint as checkpoint_module

FORMAT = b"sklearn-attention checkpoint 4\n"
PLAN = {"learning_rate": 0.01, "batch_size": 16, "max_epochs": 3}
needs_fork = pytest.mark.skipif(os.name == "nt", reason="has neither fork nor SIGKILL")


@pytest.fixture
def path(task, tmp_path):
    """A checkpoint in the midst of a training."""
    path = tmp_path / "checkpoint.pt"
    epochs = iter([1.0, 0.9])

    def interrupted(module):
        value = next(epochs, None)
        if value is None:
            raise KeyboardInterrupt
        return value

    _, history = task.fit(**PLAN, validation_loss=interrupted, checkpoint=path)
    assert len(history.loss) == 2
    return path


def resume(task, path, module=None):
    return task.fit(module, **PLAN, validation_loss=lambda module: 0.5, checkpoint=path)


def assert_refused(task, path, module=None):
    with pytest.raises(
        ValueError, match=rf"checkpoint=.*{path.name}.* is damaged.*: delete it"
    ):
        resume(task, path, module)


def signed(payload):
    """A file with a valid digest."""
    return hashlib.sha256(FORMAT + payload).digest() + payload


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def damaged(content, n):
    """The content cut, without a stretch, with one twice, and with a flipped bit, n times."""
    draw = random.Random(0)
    for _ in range(n):
        i, j = sorted(draw.sample(range(len(content)), 2))
        yield content[:i]
        yield content[:i] + content[j:]
        yield content[:j] + content[i:]
        yield content[:i] + bytes([content[i] ^ 1 << draw.randrange(8)]) + content[i + 1 :]


def test_every_damage_is_noticed(task, path):
    content = path.read_bytes()
    for wrong in damaged(content, 12):
        path.write_bytes(wrong)
        assert_refused(task, path)
    path.write_bytes(content)
    assert resume(task, path)[1].stopped == "max_epochs"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        saved(torch.ones(3)),
        signed(b"no checkpoint"),
        signed(saved({"fingerprint": {}})),
        signed(saved(torch.ones(3))),
    ],
    ids=["empty", "tensor", "signed text", "a part", "signed tensor"],
)
def test_foreign_files_are_named(task, path, content):
    path.write_bytes(content)
    assert_refused(task, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("part", ["last", "optimizers"])
def test_forged_parts_are_refused_and_change_nothing(task, path, part):
    content = torch.load(io.BytesIO(path.read_bytes()[32:]), weights_only=True)
    content["state"][part] = torch.ones(3)
    path.write_bytes(signed(saved(content)))
    module = task.module()
    before = copy.deepcopy(module.state_dict())
    assert_refused(task, path, module)
    torch.testing.assert_close(module.state_dict(), before, rtol=0, atol=0)


class Shout:
    """Code that pickles could run."""

    def __reduce__(self):
        return (os.mkdir, ("shouted",))


@pytest.mark.parametrize("sign", [bytes, signed])
def test_no_code_runs(task, path, monkeypatch, sign):
    monkeypatch.chdir(path.parent)
    path.write_bytes(sign(saved({"fingerprint": Shout(), "ended": False, "state": {}})))
    assert_refused(task, path)
    assert [found.name for found in path.parent.iterdir()] == [path.name]


class Faulty:
    """A file whose writes go wrong once so many have been made, in the midst of one."""

    def __init__(self, file, n_whole, fault):
        self._file, self._n_whole, self._fault = file, n_whole, fault

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        if self._n_whole == 0:
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            self._fault()
        self._n_whole -= 1
        self._file.write(data)


def go_wrong(monkeypatch, where, fault):
    """Let the next checkpoint go wrong in its write of a given number, or in a call of os."""
    if isinstance(where, int):
        faulty = lambda *args: Faulty(builtins.open(*args), where, fault)  # noqa: E731
        monkeypatch.setattr(checkpoint_module, "open", faulty, raising=False)
    else:
        monkeypatch.setattr(os, where, lambda *_: fault())


everywhere = pytest.mark.parametrize("where", [0, 1, "fsync", "replace"])


@everywhere
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "no space left"), KeyboardInterrupt()], ids=["full", "^C"]
)
def test_a_write_that_fails_leaves_the_file(task, path, monkeypatch, where, error):
    before = path.read_bytes()

    def fault():
        raise error

    with monkeypatch.context() as patch:
        go_wrong(patch, where, fault)
        if isinstance(error, KeyboardInterrupt):
            assert resume(task, path)[1].stopped == "interrupted"
        else:
            with pytest.raises(OSError, match="no space left"):
                resume(task, path)
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
    assert resume(task, path)[1].stopped == "max_epochs"


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@needs_fork
@everywhere
def test_a_process_killed_while_it_writes_leaves_the_file(task, path, monkeypatch, where):
    before = path.read_bytes()
    child = os.fork()
    if child == 0:
        go_wrong(monkeypatch, where, lambda: os.kill(os.getpid(), signal.SIGKILL))
        resume(task, path)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert path.read_bytes() == before
    assert resume(task, path)[1].stopped == "max_epochs"
