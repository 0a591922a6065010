"""Budgets that end too early, by the validation losses of a training."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from sklearn_attention import Training, TransformerRegressor
from sklearn_attention.training import History

X = np.random.default_rng(0).normal(size=(60, 2))
Y = 3 * X[:, 0]
MESSAGE = "still falling in the last of 4 epochs: more would probably help. Pass "


@pytest.mark.parametrize(
    ("losses", "stopped", "early"),
    [
        ([1.0, 0.8, 0.6, 0.5], "max_steps", True),
        ([1.0, 0.8, 0.6, 0.5], "interrupted", False),
        # The best is not the last.
        ([1.0, 0.8, 0.5, 0.6], "max_epochs", False),
        # A half or more of next to nothing.
        ([1.0, 0.9, 0.895, 0.891], "max_epochs", False),
        ([1.0, 0.9, 0.895, 0.889], "max_epochs", True),
        ([], "max_epochs", False),
    ],
)
def test_ends_too_early(losses, stopped, early):
    best = int(np.argmin(losses)) if losses else None
    history = History(validation_loss=losses, best_epoch=best, stopped=stopped)
    assert history.ends_too_early == early


def network(**training):
    return TransformerRegressor(
        d_model=8, n_heads=1, n_layers=1, dropout=0.0, learning_rate=3e-3, max_epochs=4,
        baseline=False, random_state=0, training=Training(**training),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("training", "remedy"),
    [({}, "max_epochs=8"), ({"max_steps": 22}, "training__max_steps=44")],
)
def test_the_warning_names_the_remedy(training, remedy):
    with pytest.warns(UserWarning, match=MESSAGE + remedy):
        network(**training).fit(X, Y)


def test_no_warning_where_nothing_is_held_out_or_in_searches():
    searched = GridSearchCV(network(), {"n_heads": [1]}, cv=2, error_score="raise", refit=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network(validation_fraction=None).fit(X, Y)
        searched.fit(X, Y)
    assert [str(warning.message) for warning in caught] == []
