"""Rows that represent all of them: their features and their predictions."""

import numpy as np
import pytest

from sklearn_attention._typical_rows import MAX_CANDIDATES, typical_rows


def test_few_rows_are_all_taken():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    np.testing.assert_array_equal(typical_rows(X, None, (), lambda X: X), X)


def test_levels_and_missing_cells_have_their_frequencies():
    rng = np.random.default_rng(0)
    codes, numbers = rng.choice(4, 500, p=[0.1, 0.2, 0.3, 0.4]), rng.normal(size=500)
    numbers[rng.random(500) < 0.3] = np.nan
    X = np.column_stack([codes, numbers])
    rows = typical_rows(X, None, [0], lambda X: X[:, :1])
    frequencies = np.bincount(rows[:, 0].astype(int)) / 50
    np.testing.assert_allclose(frequencies, np.bincount(codes) / 500, atol=0.021)
    assert np.isnan(rows[:, 1]).mean() == pytest.approx(np.isnan(numbers).mean(), abs=0.021)


def test_rows_count_by_their_weights():
    X = np.linspace(0, 1, 400)[:, None]
    weights = np.where(X[:, 0] < 0.5, 1.0, 3.0) * 1e300
    weights[:100] = 0
    rows = typical_rows(X, weights, (), lambda X: X)
    assert rows.min() > X[99, 0]
    assert (rows > 0.5).mean() == pytest.approx(600 / 700, abs=0.03)


def test_the_most_frequent_levels_are_represented():
    codes = np.concatenate([np.repeat([0.0, 1.0], 250), 2 + np.arange(500.0)])
    rows = typical_rows(codes[:, None], None, [0], lambda X: 1.0 * (X < 1))
    frequencies = np.bincount(rows[:, 0].astype(int))[:2] / 50
    np.testing.assert_allclose(frequencies, 0.25, atol=0.021)


def test_many_rows_are_sampled():
    X = np.random.default_rng(0).uniform(size=(6000, 2))
    n_rows = []

    def predict(rows):
        n_rows.append(len(rows))
        return rows[:, :1]

    typical_rows(X, None, (), predict)
    assert n_rows == [MAX_CANDIDATES]
