"""Tests of features: they find what matters, and nothing where nothing does."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import (
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    Significance,
)

SIZES = ["small", "medium", "large", "huge"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 80
    sizes = pd.Categorical.from_codes(rng.integers(4, size=n), SIZES, ordered=True)
    return pd.DataFrame({
        "length": rng.normal(size=n), "noise": rng.normal(size=n),
        "color": rng.choice(["red", "green", "blue"], n), "size": sizes,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("degree", "effect"), [(0, np.square), (1, lambda x: 2 * x), (2, lambda x: np.sin(3 * x))]
)
def test_numbers(degree, effect):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(80, 2))
    y = effect(X[:, 0]) + 0.3 * rng.normal(size=80)
    model = LocalPolynomialRegressor(bandwidth=0.4, degree=degree).fit(X, y)
    found = model.feature_significance(99)
    assert isinstance(found, Significance)
    assert found.p_values[0] <= 0.02
    assert found.p_values[1] > 0.1
    assert found.statistics.shape == found.p_values.shape == (2,)
    slopes = model.predict_gradient(X)
    np.testing.assert_allclose(found.statistics, np.mean(slopes**2, axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["color", "size"])
def test_statistic_of_a_category_is_the_difference_between_levels(frame, name):
    X, levels = frame[["length", name]], sorted(frame[name].unique())
    y = frame["length"].to_numpy() + 1.5 * (frame[name] == levels[0])
    model = NadarayaWatsonRegressor(bandwidth=[0.8, 0.2]).fit(X, y)
    here, moves = model.predict(X), []
    for level in levels:
        column = pd.Series([level] * len(X), X.index, dtype=X[name].dtype)
        moves.append(model.predict(X.assign(**{name: column})) - here)
    found = model.feature_significance(99)
    assert found.statistics[1] == pytest.approx(np.mean(np.square(moves)), rel=1e-9)
    assert found.p_values.max() < 0.05


def test_several_outputs_and_weights(frame):
    rng = np.random.default_rng(3)
    X = frame[["length", "noise"]].to_numpy()
    both = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 0])]) + 0.2 * rng.normal(size=(80, 2))
    weight = rng.integers(0, 3, size=80)
    model = LocalPolynomialRegressor(bandwidth=0.7).fit(X, both, weight)
    found = model.feature_significance(49)
    assert found.p_values[0] == pytest.approx(0.02)
    assert found.p_values[1] > 0.05
    slopes = model.predict_gradient(X)
    expected = np.average((slopes**2).sum(axis=1), axis=0, weights=weight)
    np.testing.assert_allclose(found.statistics, expected, rtol=1e-9)


def test_a_feature_that_is_constant_matters_never():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.full(40, 7.0)])
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, X[:, 0])
    found = model.feature_significance(9)
    assert found.statistics[1] == 0
    assert found.p_values.tolist() == [0.1, 1.0]
