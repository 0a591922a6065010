"""Epochs as tasks of scikit-learn's callbacks, and the line of progress."""

import io
import sys

import numpy as np
import pytest
from recorder import Recorder
from sklearn.callback import ScoringMonitor
from sklearn.model_selection import GridSearchCV

from sklearn_attention import Training, TransformerClassifier
from sklearn_attention.training import History, _report
from sklearn_attention.training._report import Progress

X = np.random.default_rng(0).normal(size=(48, 3))
Y = X[:, 0] > 0


class Clock:
    """Time that passes by so much with every look at it."""

    def __init__(self, tick):
        self.now, self.tick = 0.0, tick

    def monotonic(self):
        self.now += self.tick
        return self.now


@pytest.fixture
def clock(monkeypatch):
    def start(tick):
        one = Clock(tick)
        monkeypatch.setattr(_report, "time", one)
        return one

    return start


def network(verbose="auto", max_epochs=4):
    return TransformerClassifier(
        d_model=4, n_heads=1, n_layers=1, batch_size=12, max_epochs=max_epochs,
        baseline=False, random_state=0, training=Training(verbose=verbose),
    )  # fmt: skip


def history_of(n_epochs):
    return History(loss=[0.5] * n_epochs, validation_loss=[0.25] * n_epochs)


def test_what_the_lines_say(clock, capsys):
    now = clock(0.0)
    with Progress("Net", 3, 30, delay=5.0) as progress:
        for step in range(1, 31):
            now.now += 1.0
            progress.update(history_of(step // 10), step)
    assert capsys.readouterr().err.splitlines() == [
        "Net: epoch 1/3, 25 s left",
        "Net: epoch 2/3, loss 0.5, validation 0.25, 15 s left",
        "Net: epoch 3/3, loss 0.5, validation 0.25, 5 s left",
        "Net: epoch 3/3, loss 0.5, validation 0.25, 30 s in all",
    ]


def test_a_terminal_has_one_line(clock, monkeypatch):
    now = clock(0.0)
    monkeypatch.setenv("COLUMNS", "30")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("Net", 3, 30, delay=0.0) as progress:
        for step in range(1, 31):
            now.now += 0.1
            progress.update(history_of(0), step)
    start, *lines = stream.getvalue().split("\r")
    assert start == ""
    # Every 0.2 s, and one at the end.
    assert 10 <= len(lines) <= 16
    assert {len(line) for line in lines[:-1]} == {29}
    assert "\n" not in "".join(lines[:-1])
    assert lines[-1].endswith("\n")


@pytest.mark.parametrize(
    ("verbose", "tick", "shown"),
    [("auto", 0.01, False), ("auto", 3.0, True), (True, 0.01, True)],
)
def test_auto_waits_for_5_seconds(clock, capsys, verbose, tick, shown):
    clock(tick)
    network(verbose, max_epochs=2).fit(X, Y)
    out, err = capsys.readouterr()
    assert ("TransformerClassifier: epoch" in err) == bool(err) == shown
    assert out == ""


@pytest.mark.parametrize("verbose", ["auto", True])
def test_auto_leaves_the_word_to_searches_and_callbacks(clock, capsys, verbose):
    clock(3.0)
    short = network(verbose, max_epochs=2)
    GridSearchCV(short, {"learning_rate": [0.1]}, cv=2).fit(X, Y)
    assert bool(capsys.readouterr().err) == (verbose is True)
    short.set_callbacks(ScoringMonitor(scoring="accuracy")).fit(X, Y)
    assert bool(capsys.readouterr().err) == (verbose is True)


def test_every_epoch_is_a_task_with_an_estimator_that_predicts():
    recorder = Recorder(ask=lambda fitted: fitted.predict_proba(X)[0, 0])
    network().set_callbacks(recorder).fit(X, Y)
    assert recorder.begun == ["fit"] + ["epoch"] * 4
    assert recorder.ended == ["epoch"] * 4 + ["fit"]
    assert len(set(recorder.answers[:4])) == 4
    stopped = network().set_callbacks(Recorder(stop_after=2)).fit(X, Y).training_history_
    assert (stopped["stopped"], len(stopped["loss"])) == ("callback", 2)
