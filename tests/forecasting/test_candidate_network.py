"""The network over candidate forecasts: its start, and its training."""

import numpy as np
import pytest

from sklearn_attention.forecasting import _candidate_network as network
from sklearn_attention.forecasting._candidate_attention import Inputs

HORIZON = 3


def make_inputs(n=40, seed=0):
    """Inputs whose targets are the first of four candidates, two higher."""
    rng = np.random.default_rng(seed)
    candidates = rng.normal(size=(n, 4, HORIZON))
    unit, level = 10 ** rng.uniform(-1, 2, (n, 1)), rng.normal(size=(n, HORIZON))
    past, statistics = rng.normal(size=(n, 16)), rng.normal(size=(n, 5))
    return Inputs(past, candidates, statistics, candidates[:, 0] + 2, unit, level)


def train(inputs, learned=None, series=None, logs=False, seed=0):
    n = len(inputs.past)
    learned = np.ones((n, HORIZON), bool) if learned is None else learned
    return network.train(
        inputs, learned, np.arange(n) if series is None else series, logs, seed
    )


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.setattr(network, "_BATCH", 32)
    return lambda n: monkeypatch.setattr(network, "_STEPS", n)


def test_targets_that_are_not_learned_from_do_not_matter(steps):
    steps(5)
    inputs = make_inputs()
    learned = np.random.default_rng(1).random((40, HORIZON)) < 0.5
    expected = train(inputs, learned)
    inputs.targets[~learned] = 1e6
    inputs.targets[:, -1] = np.where(learned[:, -1], inputs.targets[:, -1], np.nan)
    found = train(inputs, learned)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    missing = make_inputs()
    missing.targets[learned[:, 0], 0] = np.nan
    learned[:, 0] = False
    found, expected = (train(own, learned) for own in (missing, make_inputs()))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
