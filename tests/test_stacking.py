"""Boosted trees of awkward columns, weights and classes; weights against other searches."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from sklearn_attention import _blocks, _stacking
from sklearn_attention._stacking import fit_trees, nonnegative_weights, predict_scores


def make_rows(n=400, seed=0):
    # Of few values, as it takes long to bin many by weights.
    X = np.random.default_rng(seed).integers(0, 50, (n, 2)) / 50
    return X, np.floor(5 * X[:, 0]) + X[:, 1]


class TestColumnsWithoutValues:
    """A column that is left out changes nothing, whatever it has at queries."""

    @pytest.mark.parametrize(
        "there", [[], [3], range(0, 400, 4), range(19)],
        ids=["nowhere", "in one row", "where weights are 0", "in fewer rows than a leaf has"],
    )  # fmt: skip
    @pytest.mark.parametrize("unordered", [[], [2]])
    def test_trees_are_those_without_it(self, there, unordered):
        X, y = make_rows()
        weights = np.where(np.arange(400) % 4, np.linspace(1, 2, 400), 0.0)
        column = np.full(400, np.nan)
        column[there] = np.arange(len(there))
        trees = fit_trees(
            np.column_stack([X, column]), y, weights, unordered=unordered, max_iter=5
        )
        known = HistGradientBoostingRegressor(max_iter=5).fit(X, y, weights)
        for anything in (np.nan, 0.0, 7.0):
            queries = np.column_stack([X, np.full(400, anything)])
            np.testing.assert_array_equal(predict_scores(trees, queries), known.predict(X))

    # Of the rows that are drawn by these seeds, or by these weights, none has a value.
    @pytest.mark.parametrize(
        ("n", "n_values", "weight", "seed", "stops"),
        [(10_001, 1, None, 1, True), (250_000, 30, 1e-6, 0, False)],
    )
    def test_few_values_of_which_none_is_drawn(self, n, n_values, weight, seed, stops):
        X = np.column_stack([np.arange(n) % 7.0, np.full(n, np.nan)])
        X[:n_values, 1] = 1.0
        weights = None if weight is None else np.where(np.arange(n) < n_values, weight, 1.0)
        options = {"max_iter": 1, "random_state": seed, "early_stopping": stops}
        with pytest.raises(ValueError, match="window shape"):
            HistGradientBoostingRegressor(**options).fit(X, X[:, 0], weights)
        found = predict_scores(fit_trees(X, X[:, 0], weights, **options), X)
        assert np.ptp(found) > 0


def test_categories_have_as_many_levels_as_scikit_learn_takes():
    rng = np.random.default_rng(0)
    codes, effects = np.arange(1024) % 256.0, rng.normal(size=256)
    few = np.where(codes == 255, np.nan, codes)
    y = effects[codes.astype(int)]
    X = np.column_stack([codes, few])
    trees = fit_trees(X, y, unordered=[0, 1], max_iter=1)
    assert trees.is_categorical_.tolist() == [False, True]
    with pytest.raises(ValueError, match="cardinality <= 255 but actually has"):
        HistGradientBoostingRegressor(categorical_features=[0], max_iter=1).fit(X, y)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_equal_weights_are_none_but_for_quantiles(monkeypatch, loss):
    X, y = make_rows()
    passed, fit = [], HistGradientBoostingRegressor.fit

    def record(self, X, y, weights):
        passed.append(weights is not None)
        return fit(self, X, y, weights)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", record)
    found = predict_scores(fit_trees(X, y, np.ones(400), loss=loss, max_iter=5), X)
    known = HistGradientBoostingRegressor(loss=loss, max_iter=5).fit(X, y, np.ones(400))
    np.testing.assert_array_equal(found, known.predict(X))
    assert passed == [loss == "absolute_error", True]


def test_classes_that_were_not_seen_have_the_probabilities_given():
    X, _ = make_rows()
    trees = fit_trees(X, 2 * (X[:, 0] > 0.5), classifies=True, max_iter=5)
    found = np.exp(predict_scores(trees, X, np.array([0.2, 0.3, 0.4, 0.0])))
    np.testing.assert_allclose(found[:, [0, 2]], np.maximum(trees.predict_proba(X), 1e-6))
    np.testing.assert_allclose(found[:, [1, 3]], [[0.3, 1e-6]] * 400)


def test_classes_of_one_row_where_trees_stop_early():
    X = np.arange(20_002.0).reshape(-1, 2) % 7
    y = (X[:, 0] > 3).astype(int)
    y[0] = 2
    assert fit_trees(X, y, classifies=True, max_iter=1).classes_.tolist() == [0, 1, 2]


def make_predictions(seed=0, n=60):
    rng = np.random.default_rng(seed)
    targets = rng.standard_t(2, size=n)
    columns = targets[:, None] + rng.normal(size=(n, 3)) * [0.5, 1, 3]
    return columns, targets, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("limit", [None, 0.4])
def test_no_other_weights_have_less_loss(limit):
    columns, targets, weights = make_predictions()

    def loss(shares):
        errors = np.abs(targets - columns @ shares)
        if limit is None:
            return weights @ errors**2
        return weights @ np.where(errors < limit, errors**2 / 2, limit * errors - limit**2 / 2)

    found = nonnegative_weights(columns, targets, weights, limit)
    best = minimize(loss, np.full(3, 0.3), bounds=[(0, None)] * 3)
    assert (found >= 0).all()
    np.testing.assert_allclose(found, best.x, atol=1e-4 if limit is None else 0.01)


def test_probabilities_of_an_unknown_level_are_means_over_known_ones(monkeypatch):
    """Trees would send it down one branch, and be as sure of it as of a known level."""
    monkeypatch.setattr(_stacking, "_AVERAGED_ROWS", 4)
    rng = np.random.default_rng(0)
    codes, x = np.repeat(np.arange(8.0), 50), rng.uniform(size=400)
    y = (codes % 2 == (x > 0.9)).astype(int)
    X = np.column_stack([x, codes])
    trees = fit_trees(X, y, classifies=True, unordered=[1], max_iter=20)
    queries = np.column_stack([x[:30], np.full(30, np.nan)])
    known = [np.column_stack([x[:30], np.full(30, X[k, 1])]) for k in (0, 133, 266, 399)]
    expected = np.log(np.mean([trees.predict_proba(Q) for Q in known], axis=0))
    np.testing.assert_allclose(predict_scores(trees, queries, np.zeros(2)), expected)
    assert trees.predict_proba(queries).max(axis=1).min() > 0.9
    assert np.exp(expected).max() < 0.6


def test_trees_know_missing_cells_of_numbers_and_of_training_rows():
    """So they do in models that version 0.2.0 has saved."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=200), np.arange(200) % 5.0])
    y = rng.integers(2, size=200)

    def of_trees(trees, queries):
        return np.log(np.maximum(trees.predict_proba(queries), 1e-6))

    trees = fit_trees(X, y, classifies=True, unordered=[1], max_iter=5)
    without_x, without_level = (np.where([k == 0, k == 1], np.nan, X[:30]) for k in (0, 1))
    found = predict_scores(trees, without_x, np.zeros(2))
    np.testing.assert_array_equal(found, of_trees(trees, without_x))
    assert (
        predict_scores(trees, without_level, np.zeros(2)) != of_trees(trees, without_level)
    ).any()
    del trees.complete_, trees.known_rows_
    found = predict_scores(trees, without_level, np.zeros(2))
    np.testing.assert_array_equal(found, of_trees(trees, without_level))
    X[0, 1] = np.nan
    trees = fit_trees(X, y, classifies=True, unordered=[1], max_iter=5)
    found = predict_scores(trees, without_level, np.zeros(2))
    np.testing.assert_array_equal(found, of_trees(trees, without_level))


def test_trees_of_rare_classes_do_not_diverge():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(2, 1500, 4))
    rare = [np.abs(Z[:, 0]) < 0.03 for Z in (X, queries)]
    y, expected = (np.where(rng.random(1500) < 0.01, ~own, own) for own in rare)
    trees = fit_trees(X, y, classifies=True, early_stopping=False)
    usual = HistGradientBoostingClassifier(early_stopping=False).fit(X, y)
    losses = [log_loss(expected, model.predict_proba(queries)) for model in (trees, usual)]
    assert losses[0] < 0.8 * losses[1]


def test_an_unknown_level_has_the_mean_probability_of_known_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, 300), rng.normal(size=300)])
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    trees = fit_trees(X, y, classifies=True, unordered=[0], max_iter=5)
    queries = np.column_stack([np.full(4, np.nan), np.linspace(-1, 1, 4)])
    filled = [np.column_stack([np.full(4, row[0]), queries[:, 1]]) for row in trees.known_rows_]
    expected = np.log(np.mean([trees.predict_proba(rows) for rows in filled], axis=0))
    for rows_at_once in (_blocks.ROWS_AT_ONCE, 1):
        monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", rows_at_once)
        np.testing.assert_allclose(predict_scores(trees, queries, np.full(2, 0.5)), expected)
