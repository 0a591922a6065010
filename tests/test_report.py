"""Epochs as tasks of scikit-learn's callbacks, and the line of progress."""

import re

import numpy as np
import pytest
from recorder import Recorder
from sklearn.callback import ScoringMonitor
from sklearn.model_selection import GridSearchCV

from sklearn_attention import Training, TransformerClassifier

X = np.random.default_rng(0).normal(size=(48, 3))
Y = X[:, 0] > 0


def network(verbose="auto", max_epochs=4):
    return TransformerClassifier(
        d_model=4, n_heads=1, n_layers=1, batch_size=12, max_epochs=max_epochs,
        baseline=False, random_state=0, training=Training(verbose=verbose),
    )  # fmt: skip


def test_what_the_lines_say(clock, capsys):
    clock(3.0)
    network(max_epochs=2).fit(X, Y)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"TransformerClassifier: epoch 1/2, \d+ s left", first)
    number = r"[\d.e-]+"
    losses = rf"loss {number}, validation {number}"
    assert re.fullmatch(rf"TransformerClassifier: epoch 2/2, {losses}, \d+ s in all", last)


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
