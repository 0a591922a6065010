"""What does not fit into memory is refused before it is asked for."""

import math

import numpy as np
import pytest

from sklearn_attention import (
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    TransformerRegressor,
    _memory,
)


def data(n_features=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, n_features)), rng.normal(size=50)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(_memory, "_limit", lambda: 1e6)


def test_a_matrix_of_queries_and_keys(little_memory):
    X, y = data()
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    many = np.broadcast_to(X[0], (10_000, 2))
    expected = r"takes 10000 x 50 numbers, 4 MB, but there are 1 MB .*: pass some queries at"
    with pytest.raises(MemoryError, match=expected):
        model.smoother_matrix(many)
    lines = LocalPolynomialRegressor(bandwidth=1.0).fit(X, y)
    with pytest.raises(MemoryError, match=r"10000 x 50 x 4 numbers, 16 MB"):
        lines.smoother_matrix(many)
    assert model.predict(many).shape == lines.predict(many).shape == (10_000,)


def test_parabolas_of_many_features():
    X, y = data(n_features=300)
    model = LocalPolynomialRegressor(bandwidth=30.0, degree=2)
    with pytest.raises(MemoryError, match="degree=2 for 300 features, with 45451 coefficients"):
        model.fit(X, y)
    assert not hasattr(model, "keys_")


def test_attention_maps(little_memory):
    X, y = data(n_features=60)
    options = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "baseline": False}
    model = TransformerRegressor(**options).fit(X, y)
    with pytest.raises(MemoryError, match=r"maps together takes 50 x 1 x 2 x 60 x 60 numbers"):
        model.attention_maps(X)
    assert model.attention_maps(X[:2]).shape[0] == 2


def test_the_limit_is_known_here():
    assert 0 < _memory._limit() < math.inf


def test_a_container_may_have_less(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000000")
    monkeypatch.setattr(_memory, "_CONTAINER", tmp_path / "memory.max")
    assert _memory._limit() == 1e6
    (tmp_path / "memory.max").write_text("max")
    assert _memory._limit() > 1e6
