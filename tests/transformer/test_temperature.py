"""Certainty is measured on rows held out."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss

from sklearn_attention import TransformerClassifier
from sklearn_attention.transformer._temperature import choose_temperature


def draw(temperature, n=4000, seed=0):
    """Logits that are too large by a factor, and classes by the right ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3)) * 2
    right = np.exp(log_softmax(logits, axis=1))
    classes = (right.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return temperature * logits, classes


@pytest.mark.parametrize("temperature", [1.5, 4.0])
def test_finds_how_much_too_sure_logits_are(temperature):
    logits, classes = draw(temperature)
    found = choose_temperature(logits, classes, np.ones(len(classes)))
    assert abs(np.log(found / temperature)) < 0.1


def test_is_the_minimum_of_the_weighted_log_loss():
    logits, classes = draw(3.0, n=60)
    weights = np.random.default_rng(1).random(60)
    found = choose_temperature(logits, classes, weights)

    def loss(t):
        return log_loss(classes, np.exp(log_softmax(logits / t, axis=1)), sample_weight=weights)

    grid = np.geomspace(1, 20, 300)
    assert loss(found) <= min(map(loss, grid)) + 1e-6


def test_never_makes_surer():
    logits, classes = draw(0.3)
    assert choose_temperature(logits, classes, np.ones(len(classes))) == 1.0
    assert choose_temperature(np.eye(3), np.arange(3), np.ones(3)) == 1.0


def test_probabilities_of_noise_are_not_certain():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 6)), rng.integers(2, size=400)
    options = {"d_model": 16, "n_layers": 1, "max_epochs": 40, "learning_rate": 1e-2}
    model = TransformerClassifier(**options).fit(X[:200], y[:200])
    assert model.temperature_ >= 1
    assert log_loss(y[200:], model.predict_proba(X[200:])) < 0.8
    whole = TransformerClassifier(**options, validation_fraction=None).fit(X[:200], y[:200])
    assert whole.temperature_ == 1
    assert log_loss(y[200:], whole.predict_proba(X[200:])) > 1
