"""Copies of rows are found, and change nothing."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention._copies import join_copies


def make(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])
    X[::7, 1] = np.nan
    return X, rng.normal(size=n), rng.uniform(0.5, 2, n)


def slow(X, y, weights):
    """The first of equal rows, and the sum of their weights, by a dictionary."""
    found = {}
    for i, row in enumerate(np.column_stack([X, y])):
        kept, total = found.get(row.tobytes(), (i, 0.0))
        found[row.tobytes()] = kept, total + weights[i]
    return zip(*found.values(), strict=True)


def test_are_joined_wherever_they_are():
    X, y, weights = make()
    again = np.random.default_rng(1).integers(0, 40, 100)
    X, y, weights = X[again], y[again], np.random.default_rng(2).uniform(size=100)
    rows, totals = join_copies(X, y, weights)
    kept, expected = slow(X, y, weights)
    np.testing.assert_array_equal(rows, kept)
    np.testing.assert_allclose(totals, expected)


def test_rows_that_differ_in_one_cell_are_not_copies():
    X, y, weights = make()
    for column in range(2):
        other = X.copy()
        other[:, column] += 0.5
        both = np.concatenate([X, other]), np.tile(y, 2), np.tile(weights, 2)
        rows, _ = join_copies(*both)
        n_equal = 0 if column == 0 else np.isnan(X[:, 1]).sum()
        assert len(rows) == 80 - n_equal
    rows, _ = join_copies(np.tile(X, (2, 1)), np.concatenate([y, y + 1]), np.tile(weights, 2))
    assert len(rows) == 80


def test_several_targets_all_count():
    X, y, weights = make()
    targets = np.column_stack([y, y])
    other = np.column_stack([y, y + 1])
    twice = np.tile(X, (2, 1)), np.concatenate([targets, other]), np.tile(weights, 2)
    assert len(join_copies(*twice)[0]) == 80


def test_equal_rows_of_few_values_are_observations():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 2)).astype(float), rng.integers(0, 3, 200)
    rows, weights = join_copies(X, y, np.ones(200))
    np.testing.assert_array_equal(rows, np.arange(200))
    np.testing.assert_array_equal(weights, 1)


@pytest.mark.parametrize("estimator", [KernelAttentionRegressor, KernelAttentionClassifier])
def test_copies_change_nothing(estimator):
    X, y, _ = make()
    y = np.sin(X[:, 0]) + 0.3 * y
    y = (y > 0).astype(int) if estimator is KernelAttentionClassifier else y
    options = {"max_steps": 5, "n_folds": 2}
    once = estimator(**options).fit(X, y)
    thrice = estimator(**options).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_array_equal(thrice.predict(X), once.predict(X))
    assert thrice.explain(X, k=40).indices.max() < 40
