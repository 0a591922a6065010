"""Boosted trees stacked with kernel attention."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from sklearn_attention import Columns, KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention import _boosting
from sklearn_attention.kernel_attention._boosting import (
    _stacking_weights,
    predict_trees,
    stack_classifier,
    stack_regressor,
)

ESTIMATORS = [KernelAttentionRegressor, KernelAttentionClassifier]
# Hardly any learning: what trees add is what is tested.
QUICK = {"max_steps": 3, "encodings": "standard"}


def make_smooth(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)


def make_steps(n=400, seed=0, noise=0.1):
    """Steps in one feature, turned round by another."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    step = (np.floor(7 * X[:, 0]) + (X[:, 1] > 0.5)) % 2
    return X, step + noise * rng.normal(size=n)


def make_plain_steps(n=400, seed=0, noise=0.1):
    """A sum and a product of steps."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    a, b, c = (X[:, :3] > [0.5, 0.3, 0.7]).T
    return X, a + 1.5 * b * c + noise * rng.normal(size=n)


def make_classes(n=400, seed=0):
    X, y = make_steps(n, seed)
    return X, (y > 0.5).astype(int)


def make_data(estimator, n=400, seed=0):
    return (make_steps if estimator is KernelAttentionRegressor else make_classes)(n, seed)


def boosted(estimator, X, y, weight=None, **parameters):
    return estimator(boosting="auto", **QUICK | parameters).fit(X, y, weight)


def both(estimator, X, y, **parameters):
    """Without trees, and with them where they help."""
    plain = estimator(boosting=None, **QUICK | parameters).fit(X, y)
    return plain, boosted(estimator, X, y, **parameters)


@cache
def both_of_steps():
    """Fitted to steps; tests may ask but not change them."""
    return both(KernelAttentionRegressor, *make_steps(), n_folds=2)


@cache
def boosted_data(estimator):
    """Fitted with trees from one fold; tests may ask but not change it."""
    return boosted(estimator, *make_data(estimator), n_folds=1)


def fits_of_trees(monkeypatch):
    """A list to which each fit adds the number of its rows, that of its trees, and weights."""
    found, fit = [], _boosting.fit_trees

    def record(X, y, weights, **parameters):
        found.append((len(X), parameters.get("max_iter", 100), weights))
        return fit(X, y, weights, **parameters)

    monkeypatch.setattr(_boosting, "fit_trees", record)
    return found


def outputs(model, X):
    regression = isinstance(model, KernelAttentionRegressor)
    return model.predict(X) if regression else model.predict_proba(X)


class TestRegressor:
    def test_trees_where_they_win(self):
        queries, expected = make_steps(500, seed=1, noise=0)
        without, model = both_of_steps()
        assert model.boosting_share_ > 0.4
        assert len(model.boosters_[0]) == 2
        errors = [np.square(m.predict(queries) - expected).mean() for m in (without, model)]
        assert errors[1] < 0.7 * errors[0]

    def test_explanations_and_slopes_are_of_the_kernel_part(self):
        X, (without, model) = make_steps(20)[0], both_of_steps()
        np.testing.assert_array_equal(model.local_slopes(X[:9]), without.local_slopes(X[:9]))
        for found, expected in zip(model.explain(X[:9]), without.explain(X[:9]), strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_equals_a_stack_by_hand(self):
        X, y = make_steps()
        model = boosted_data(KernelAttentionRegressor)
        rows = np.delete(np.arange(len(X)), model.held_out_rows_)
        z = (y - y.mean()) / y.std()
        trees = HistGradientBoostingRegressor(early_stopping=False).fit(X[rows], z[rows])
        without = KernelAttentionRegressor(n_folds=1, boosting=None, **QUICK).fit(X, y)
        held_out = trees.predict(X[model.held_out_rows_]) * y.std()
        known = y[model.held_out_rows_] - y.mean()
        kernel = known - without.loo_residuals_
        stacked = np.linalg.lstsq(np.column_stack([kernel, held_out]), known)[0]
        # No error is so large that it would count less.
        np.testing.assert_allclose(model.boosting_share_, stacked[1], rtol=1e-6)
        found = stacked[0] * (without.predict(X) - y.mean())
        found += stacked[1] * trees.predict(X) * y.std() + y.mean()
        np.testing.assert_allclose(model.predict(X), found, rtol=1e-6)

    def test_outputs_have_their_own_trees(self):
        X, steps = make_steps()
        y = np.column_stack([X.sum(axis=1), steps])  # a plane, which the kernel hits
        without, model = both(KernelAttentionRegressor, X, y, n_folds=1)
        assert model.boosting_share_.shape == (2,)
        assert model.boosting_share_[0] == 0 < model.boosting_share_[1]
        assert [len(boosters) for boosters in model.boosters_] == [0, 1]
        found, expected = model.predict(X), without.predict(X)
        np.testing.assert_array_equal(found[:, 0], expected[:, 0])
        assert not np.allclose(found[:, 1], expected[:, 1])


class TestClassifier:
    def test_trees_where_they_win(self):
        X, y = make_classes(300)
        queries, expected = make_classes(300, seed=1)
        without, model = both(KernelAttentionClassifier, X, y, n_folds=2)
        assert len(model.boosters_[0]) == 2
        assert model.links_[0]["strengths"][-1] > 0
        losses = [log_loss(expected, m.predict_proba(queries)) for m in (without, model)]
        assert losses[1] < 0.9 * losses[0]

    def test_trees_do_not_learn_from_rows_of_their_fold(self):
        rng = np.random.default_rng(0)
        X, codes = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
        folds = [np.arange(0, 100), np.arange(100, 200)]
        # Classes are noise: only rows that were learned from could be told.
        known = X, Columns.numbers(2), np.eye(2)[codes], np.ones(400), folds
        boosters, link = stack_classifier(*known, np.zeros((200, 2)), np.array([0.5, 0.5]))
        assert boosters == []
        assert link is None


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestBoth:
    def test_missing_cells_and_categories(self, estimator):
        X, y = make_data(estimator)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["d"] = np.random.default_rng(1).choice(["r", "g", None], len(X))
        frame["a"] = pd.Series(np.floor(7 * X[:, 0])).map("level {:.0f}".format)
        frame.loc[::9, "c"] = np.nan
        model = boosted(estimator, frame, y, n_folds=1)
        assert model.boosters_[0][0].is_categorical_.tolist() == [True, False, False, True]
        new = frame.assign(a="new").iloc[:20]
        assert np.isfinite(outputs(model, new)).all()

    def test_a_column_without_a_value_changes_little(self, estimator):
        """A plant's yield has steps, and one of its sensors was not there when it was learned.

        Noise leaves .98 to be explained, and of three classes of steps all can be told.
        """
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.uniform(size=(450, 3)), columns=["heat", "pressure", "flow"])
        y = (X["heat"] > 0.4).astype(int) + (X["pressure"] > 0.6)
        if estimator is KernelAttentionRegressor:
            y = y + 0.1 * rng.normal(size=450)
        then, now = X[:300].assign(flow=np.nan), X[300:]
        model = boosted(estimator, then, y[:300], n_folds=1)
        assert model.boosters_[0]
        assert model.score(now, y[300:]) > 0.9

    def test_weight_0_is_absence(self, estimator):
        X, y = make_data(estimator, 200)
        weight = np.where(np.arange(200) % 8 == 0, 0.0, 1.0)
        model = boosted(estimator, X, y, weight, n_folds=1)
        kept = weight > 0
        other = boosted(estimator, X[kept], y[kept], n_folds=1)
        np.testing.assert_allclose(outputs(model, X), outputs(other, X), rtol=1e-8)

    def test_nothing_is_added_to_few_rows_a_given_bandwidth_or_a_constant(self, estimator):
        X, y = make_data(estimator)
        few = boosted(estimator, X[:49], y[:49])
        given = boosted(estimator, X, y, bandwidth=0.5)
        alike = boosted(estimator, X, np.zeros(400))
        assert few.boosters_ == given.boosters_ == alike.boosters_ == [[]]

    def test_weights_reach_the_trees_which_are_usual_where_they_help(
        self, monkeypatch, estimator
    ):
        found, weight = fits_of_trees(monkeypatch), np.repeat([1.0, 2.0], 150)
        regresses = estimator is KernelAttentionRegressor
        X, y = make_plain_steps(300) if regresses else make_classes(300)
        estimator(n_folds=1, **QUICK).fit(X, y, weight)
        (*_, hint), (*_, passed) = found
        assert hint is None
        np.testing.assert_allclose(passed.max() / passed.min(), 2)


@pytest.mark.parametrize(
    ("estimator", "make", "grown"),
    [
        (KernelAttentionRegressor, make_smooth, [(225, 12)]),
        (KernelAttentionRegressor, make_plain_steps, [(225, 12), (225, 100)]),
        (KernelAttentionClassifier, make_steps, [(225, 12), (225, 60)]),
    ],
)
def test_few_trees_tell_whether_more_are_grown(monkeypatch, estimator, make, grown):
    found, (X, y) = fits_of_trees(monkeypatch), make(300)
    y = y > 0.5 if estimator is KernelAttentionClassifier else y
    without, model = both(estimator, X, y, n_folds=1)
    assert [fit[:2] for fit in found] == grown
    assert len(model.boosters_[0]) == len(grown) - 1
    assert without.boosters_ == [[]]
    alike = np.array_equal(outputs(model, X), outputs(without, X))
    assert alike == (len(grown) == 1)


class TestShares:
    def test_are_those_of_weighted_least_squares(self):
        """Where no error is so large that it would count less."""
        rng = np.random.default_rng(0)
        columns, heavy = rng.normal(size=(300, 2)), np.arange(300) < 100
        weights = np.where(heavy, 9.0, 0.5)
        targets = np.where(heavy, columns @ [0.2, 0.8], columns @ [0.6, 0.3])
        root = np.sqrt(weights)
        expected = np.linalg.lstsq(columns * root[:, None], targets * root)[0]
        found = _stacking_weights(columns, targets, weights, 0.01)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_are_judged_by_the_rows_that_count(self):
        rng = np.random.default_rng(0)
        targets, is_heavy = rng.normal(size=300), np.arange(300) < 60
        # Trees predict the heavy rows well, and the kernel all others.
        good, bad = targets + 0.1 * rng.normal(size=300), rng.normal(size=300)
        kernel, trees = np.where(is_heavy, bad, good), np.where(is_heavy, good, bad)
        columns = np.column_stack([kernel, trees])
        weights = np.where(is_heavy, 1.0, 1e-4)
        shares = _stacking_weights(columns, targets, weights, 0.01)
        np.testing.assert_allclose(shares, [0, 1], atol=0.1)
        assert _stacking_weights(columns, targets, 1e-4 / weights, 0.01) is None

    def test_one_outlier_does_not_decide(self):
        rng = np.random.default_rng(0)
        targets = rng.normal(size=300)
        kernel = targets + 0.1 * rng.normal(size=300)
        trees = targets + 0.3 * rng.normal(size=300)
        targets[0] = trees[0] = 1e4
        shares = _stacking_weights(np.column_stack([kernel, trees]), targets, np.ones(300), 0)
        assert shares is None or shares[1] < 0.5


def test_a_category_of_many_levels_is_a_number():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 400, (600, 1)).astype(float)
    y = (X[:, 0] > 200).astype(float)
    columns = Columns(("unordered",), (tuple(range(400)),))
    folds = [np.arange(100), np.arange(100, 200)]
    weights, kernel = np.ones(600), np.full(200, y.mean())
    boosters, shares, _ = stack_regressor(X, columns, y, weights, folds, kernel)
    assert boosters[0].is_categorical_ is None
    assert shares[1] > 0.9
    unknown = predict_trees(boosters, np.array([[-1.0]]), columns)
    missing = np.mean([booster.predict(np.array([[np.nan]])) for booster in boosters])
    np.testing.assert_allclose(unknown, missing)


def test_one_fold_with_little_gain_does_not_decline_trees(monkeypatch):
    rng = np.random.default_rng(0)
    y, folds = rng.integers(0, 2, 1200), [np.arange(300), np.arange(300, 600)]
    # Log-odds by the trees: they tell little of the first fold, and much of the second.
    distance = np.concatenate([np.full(300, 0.25), np.full(900, 1.2)])
    log_odds = distance * (y - 0.5) + rng.normal(size=1200)
    trees = np.column_stack([-log_odds, log_odds]) / 2
    monkeypatch.setattr(_boosting, "_fit_without", lambda fold, *rest, **options: fold)
    monkeypatch.setattr(_boosting, "_predict", lambda fold, X, frequencies: trees[fold])
    scores = np.column_stack([y[:600] == 0, y[:600] == 1]) - 0.5 + rng.normal(size=(600, 2))
    data = np.zeros((1200, 1)), Columns.numbers(1), np.eye(2)[y], np.ones(1200), folds, scores
    boosters, link = stack_classifier(*data, np.full(2, 0.5))
    assert len(boosters) == 2
    assert link.strengths[2] > 0
    monkeypatch.setattr(_boosting, "_EARLY_GAIN", 1.0)
    assert stack_classifier(*data, np.full(2, 0.5)) == ([], None)
