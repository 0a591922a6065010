"""Effects of features: against all orders, for estimators of tables, and their relations."""

import copy
import dataclasses
import itertools
import pickle

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pytest
from every_estimator import EVERY, data_for, fitted
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import (
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    TransformerClassifier,
    TransformerRegressor,
    _shapley,
)
from sklearn_attention._base import AttentionEstimator
from sklearn_attention._columns import Columns
from sklearn_attention._shapley import FeatureEffectsMixin
from sklearn_attention.kernel_attention import _mixed_rows, _ridge

TABLES = (
    "average", "votes", "lines", "best average", "best line", "kernel attention",
    "classes by kernel attention", "regressor", "classifier",
)  # fmt: skip
LIGHT = {"n_folds": 1, "max_steps": 3, "boosting": None}


class Formula(FeatureEffectsMixin, AttentionEstimator):
    """An estimator of a table of numbers that predicts by a formula."""

    def __init__(self, formula=None):
        self.formula = formula

    def fit(self, X, weights=None):
        self.keys_, self.key_weights_ = np.array(X, dtype=np.float64), weights
        self.columns_, self.n_features_in_ = Columns.numbers(X.shape[1]), X.shape[1]
        return self

    def _read_rows(self, X):
        return np.asarray(X, dtype=np.float64)

    def _predict_rows(self, rows):
        return self.formula(rows)


def fitted_formula(formula, X, weights=None):
    return Formula(formula).fit(X, weights)


def by_all_orders(formula, row, background):
    """Shapley values of one row by their definition."""
    n, orders = len(row), list(itertools.permutations(range(len(row))))
    effects = np.zeros(n)
    for order in orders:
        mixed = np.array(background, dtype=float)
        for j in order:
            before = formula(mixed).mean()
            mixed[:, j] = row[j]
            effects[j] += (formula(mixed).mean() - before) / len(orders)
    return effects


def products(X):
    return X[:, 0] * X[:, 1] * X[:, 2] + np.sin(X[:, 3]) * X[:, 1] + X[:, 2] ** 2


def uniform(n_rows, n_features, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n_rows, n_features))


def log_odds(probabilities):
    probabilities = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-6, 1 - 1e-6)
    return np.log(probabilities) - np.log1p(-probabilities)


def table_of_shops(n=60):
    """Numbers of which some are missing, texts, levels in an order, and labels of rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=n), "city": rng.choice(["Oslo", "Rome"], n)})
    X["grade"] = pd.Categorical.from_codes(rng.integers(3, size=n), list("abc"), ordered=True)
    X.index = pd.Index([f"shop {i}" for i in range(n)], name="shop")
    y = X["size"] + 2 * (X["city"] == "Rome") + X["grade"].cat.codes
    X.loc[X.index[::9], "size"] = np.nan
    return X, y


class TestFormulas:
    def test_values_are_means_over_all_orders(self):
        background, rows = uniform(7, 4), uniform(3, 4, seed=1)
        model = fitted_formula(products, background)
        effects = model.explain_features(rows)
        assert effects.columns.tolist() == ["base value", "x0", "x1", "x2", "x3"]
        np.testing.assert_allclose(effects["base value"], products(background).mean())
        expected = [by_all_orders(products, row, background) for row in rows]
        np.testing.assert_allclose(effects.iloc[:, 1:], expected, atol=1e-12)

    def test_random_coalitions_are_exact_for_pairs_of_features(self):
        background, rows = uniform(5, 10), uniform(4, 10, seed=1)

        def formula(X):
            return X @ np.arange(10) + X[:, 0] * X[:, 9] + np.sin(X[:, 3]) * X[:, 4]

        effects, std = fitted_formula(formula, background).explain_features(
            rows, return_std=True
        )
        parts = rows - background.mean(axis=0)
        expected = parts * np.arange(10)
        for i, j, f in ((0, 9, lambda x: x), (3, 4, np.sin)):
            pair = lambda X, i=i, j=j, f=f: f(X[:, 0]) * X[:, 1]  # noqa: E731
            for row, effect in zip(rows, expected, strict=True):
                effect[[i, j]] += by_all_orders(pair, row[[i, j]], background[:, [i, j]])
        np.testing.assert_allclose(effects.iloc[:, 1:], expected, atol=1e-12)
        assert (std < 1e-12).all(axis=None)

    def test_random_coalitions_are_right_to_the_reported_error(self, monkeypatch):
        background, rows = uniform(20, 9), uniform(20, 9, seed=1)

        def formula(X):
            return np.where(X[:, 0] > 0, X[:, 1] * X[:, 2] * X[:, 3], X[:, 4:8].max(axis=1))

        model = fitted_formula(formula, background)
        effects, std = model.explain_features(rows, return_std=True)
        assert (std["base value"] == 0).all()
        monkeypatch.setattr(_shapley, "MAX_EXACT", 9)
        exact, none = model.explain_features(rows, return_std=True)
        assert (none < 1e-12).all(axis=None)
        errors = (effects - exact).abs()
        assert (errors > 1e-6).any(axis=None)
        assert (errors <= 2 * std + 1e-12).mean(axis=None) >= 0.9
        # They are drawn until errors are small, or there are eight pairs for each feature.
        np.testing.assert_allclose(effects.sum(axis=1), formula(rows), rtol=1e-12)

    @pytest.mark.parametrize("n_features", [4, 10])
    def test_errors_contain_those_of_the_values_of_coalitions(self, n_features, monkeypatch):
        error = 0.001

        def off(self, rows, background, masks):
            return FeatureEffectsMixin._mean_scores(self, rows, background, masks) + error

        X = uniform(30, n_features)
        X[:, 2] = 1.0
        model = fitted_formula(lambda X: X.sum(axis=1), X)
        monkeypatch.setattr(Formula, "_mean_scores", off)
        effects, std = model.explain_features(X[:3], return_std=True)
        np.testing.assert_allclose(std.drop(columns=["base value", "x2"]), 0.001)
        assert (std[["base value", "x2"]] == 0).all(axis=None)
        np.testing.assert_allclose(effects.sum(axis=1), X[:3].sum(axis=1))
        # Predictions of mixed rows take the place of what errs by more than the tolerance.
        error = 0.25
        model = fitted_formula(lambda X: X.sum(axis=1), X)
        again, std = model.explain_features(X[:3], return_std=True)
        np.testing.assert_allclose(again, effects, atol=1e-9)
        assert (std < 1e-9).all(axis=None)

    @pytest.mark.parametrize(("interact", "n_rounds"), [(False, 1), (True, 2)])
    def test_more_coalitions_are_drawn_where_errors_are_large(self, interact, n_rounds):
        n_predicted = []

        def formula(X):
            n_predicted.append(len(X))
            return X[:, :5].prod(axis=1) if interact else X.sum(axis=1)

        model = fitted_formula(formula, uniform(10, 12))
        model.explain_features(np.zeros((1, 12)))
        n_predicted.clear()
        model.explain_features(np.ones((1, 12)))
        # The row is predicted first, and then mixed rows of four pairs for each feature.
        assert len(n_predicted) == 1 + n_rounds
        assert 0.8 < sum(n_predicted[1:]) / (n_rounds * 10 * 2 * 4 * 12) <= 1

    @pytest.mark.parametrize("n_features", [4, 11])
    def test_what_says_nothing_has_no_effect(self, n_features):
        X = uniform(30, n_features)
        X[:, 1] = 2.0
        X[::3, 2] = np.nan
        effects, std = fitted_formula(
            lambda X: X[:, 0] + X[:, 1] + np.where(np.isnan(X[:, 2]), 1.0, X[:, 2] ** 2), X
        ).explain_features(X[:5], return_std=True)
        assert (effects["x1"] == 0).all()
        assert (std["x1"] == 0).all()
        assert (effects["x2"].abs() > 0.01).any()
        assert (effects["x3"].abs() <= 2 * std["x3"] + 1e-12).all()

    def test_a_row_like_the_background_has_no_effects(self):
        model = fitted_formula(products, uniform(5, 4))
        row = uniform(1, 4)
        effects = model.explain_features(row, background=row)
        assert effects.iloc[0].tolist() == [products(row)[0], 0, 0, 0, 0]

    def test_sizes_of_random_coalitions_are_those_of_shapley_values(self):
        masks = _shapley.random_coalitions(4000, 7, np.random.default_rng(0))
        shares = np.bincount(masks.sum(axis=1), minlength=7)[1:] / 4000
        weights = 1 / (np.arange(1, 7) * np.arange(6, 0, -1))
        np.testing.assert_allclose(shares, weights / weights.sum(), atol=0.001)
        np.testing.assert_allclose(masks.mean(axis=0), 0.5, atol=0.03)

    def test_means_over_two_orders(self):
        rank = np.array([2, 0, 1])
        start, added = _shapley.effects_in_order(
            lambda masks: np.column_stack([masks[:, 0] * masks[:, 1], 5 + 4 * masks[:, 2]]),
            rank,
        )
        assert start.tolist() == [0, 5]
        # In one order the first feature joins last, in the other one it joins first.
        assert added.tolist() == [[0.5, 0], [0.5, 0], [0, 4]]

    def test_copies_share_equally(self):
        X = uniform(40, 3)
        copies = X[:, [0, 1, 2, 0]]
        effects = fitted_formula(
            lambda X: (X[:, 0] + X[:, 3]) ** 3 + X[:, 1], copies
        ).explain_features(copies[:6])
        np.testing.assert_allclose(effects["x0"], effects["x3"], atol=1e-12)

    def test_order_of_columns_changes_nothing(self):
        X, order = uniform(80, 10), np.random.default_rng(1).permutation(10)

        def formula(X):
            return np.where(X[:, 0] > 0, X[:, 1] * X[:, 2] * X[:, 3], X[:, 4:8].max(axis=1))

        effects, std = fitted_formula(formula, X).explain_features(X[:5], return_std=True)
        moved = fitted_formula(lambda X: formula(X[:, np.argsort(order)]), X[:, order])
        again, std_again = moved.explain_features(X[:5, order], return_std=True)
        for table, other in ((effects, again), (std, std_again)):
            np.testing.assert_allclose(other.iloc[:, 1:], table.iloc[:, 1 + order], atol=1e-10)

    def test_other_rows_and_units_change_nothing(self):
        X, units = uniform(80, 9), 10.0 ** np.arange(-4, 5) * [1, -1, 1, -1, 1, -1, 1, -1, 1]

        def formula(X):
            return products(X) + X[:, 8] * X[:, 7] * X[:, 6]

        effects = fitted_formula(formula, X).explain_features(X[:5])
        reverse = fitted_formula(formula, X[::-1]).explain_features(X[4:2:-1])
        np.testing.assert_allclose(reverse, effects[4:2:-1], atol=1e-10)
        scaled = fitted_formula(lambda Z: formula((Z - 3) / units), X * units + 3)
        np.testing.assert_allclose(
            scaled.explain_features(X[:5] * units + 3), effects, atol=1e-6
        )


class TestBackground:
    def test_it_is_distributed_as_all_rows(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=600), rng.exponential(size=600)])
        model = fitted_formula(lambda X: X[:, 0] ** 2 + X[:, 1], X)
        model.explain_features(X[:1])
        rows = model._background
        assert rows.shape == (50, 2)
        assert {*map(tuple, rows)} <= {*map(tuple, X)}
        assert len({*map(tuple, rows)}) == 50
        for column, cells in zip(X.T, rows.T, strict=True):
            levels = np.quantile(column, np.linspace(0.1, 0.9, 9))
            below = (cells[:, None] <= levels).mean(axis=0)
            np.testing.assert_allclose(below, np.linspace(0.1, 0.9, 9), atol=0.05)
        predictions = model.formula(X)
        assert model.formula(model._background).mean() == pytest.approx(
            predictions.mean(), abs=0.1
        )
        assert model.formula(model._background).std() == pytest.approx(
            predictions.std(), rel=0.25
        )

    def test_the_order_of_features_needs_few_rows_at_a_time(self, monkeypatch):
        X, sizes = uniform(20, 30), []
        monkeypatch.setattr(_shapley, "_NUMBERS_AT_ONCE", 20 * 30 * 4)

        def predict(rows):
            sizes.append(len(rows))
            return rows[:, [3]] + 2 * rows[:, [7]]

        order = _shapley._order_by_influence(X, predict(X), predict)
        assert order[:2].tolist() == [7, 3]
        assert max(sizes) == 80

    def test_few_rows_are_all_taken(self):
        weights = np.arange(40.0)
        model = fitted_formula(products, uniform(40, 4), weights)
        model.explain_features(uniform(1, 4))
        np.testing.assert_array_equal(model._background, model.keys_[1:])


@pytest.mark.usefixtures("few_convolutions", "few_rates", "few_trees")
@pytest.mark.parametrize("name", TABLES)
class TestEveryEstimator:
    def test_rows_sum_to_predictions(self, name):
        model, (X, _) = copy.copy(fitted(name)), data_for(EVERY[name])
        effects, std = model.explain_features(X[:4], return_std=True)
        if is_classifier(model):
            expected = log_odds(model.predict_proba(X[:4]).max(axis=1))
        else:
            expected = model.predict(X[:4])
        np.testing.assert_allclose(effects.sum(axis=1), expected, atol=1e-9)
        assert (std < 1e-4).all(axis=None)
        assert effects["x0"].abs().max() > 0.01
        again = model.explain_features(X[1:2])
        np.testing.assert_allclose(again.iloc[0], effects.iloc[1], atol=1e-6)

    def test_files_have_the_background_and_fits_choose_another(self, name):
        model, (X, y) = copy.copy(fitted(name)), data_for(EVERY[name])
        effects = model.explain_features(X[:2])
        loaded = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(loaded._background, model._background)
        np.testing.assert_allclose(loaded.explain_features(X[:2]), effects, atol=1e-9)
        if name in ("average", "votes", "lines"):
            assert copy.copy(loaded).fit(X + 1, y)._background is None
            assert loaded.partial_fit(X + 1, y)._background is None


class TestData:
    @pytest.mark.parametrize(
        "model",
        [
            KernelAttentionRegressor(**LIGHT),
            pytest.param(TransformerRegressor(max_epochs=1), marks=pytest.mark.slow),
        ],
        ids=["kernel attention", "transformer"],
    )
    def test_categories_and_missing_cells(self, model):
        X, y = table_of_shops()
        model = clone(model).fit(X, y)
        queries = X[:3].assign(city=["Rome", "Lima", None])
        effects = model.explain_features(queries)
        assert effects.index.equals(queries.index)
        assert effects.columns.tolist() == ["base value", *X]
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(queries), atol=1e-9)
        if isinstance(model, KernelAttentionRegressor):
            assert effects["city"].iloc[0] > 0.3
            renamed = X.assign(city=X["city"].map({"Oslo": "b", "Rome": "a"}))
            other = clone(model).fit(renamed, y).explain_features(renamed[:2])
            np.testing.assert_allclose(other, model.explain_features(X[:2]), atol=1e-6)

    def test_frames_of_polars(self):
        X, y = table_of_shops()
        X = X.drop(columns="grade")
        model = KernelAttentionRegressor(**LIGHT).fit(X, y)
        effects, std = model.explain_features(
            pl.DataFrame(X[:3].to_dict("list")), return_std=True
        )
        assert isinstance(effects, pl.DataFrame)
        assert isinstance(std, pl.DataFrame)
        np.testing.assert_allclose(effects, model.explain_features(X[:3]), atol=1e-9)

    def test_an_unknown_level_has_an_effect(self):
        X = pd.DataFrame({"city": ["Oslo", "Rome"] * 20, "size": np.arange(40.0)})
        y = 5.0 * (X["city"] == "Rome")
        model = NadarayaWatsonRegressor(bandwidth=[0.1, 50.0]).fit(X, y)
        rows = pd.DataFrame({"city": ["Lima", "Rome"], "size": [20.0, 20.0]})
        effects = model.explain_features(rows)
        assert effects["city"].tolist() == pytest.approx([0, 2.0], abs=0.3)
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(rows))

    def test_several_outputs_have_a_frame_each(self):
        X = uniform(60, 3)
        y = np.column_stack([X[:, 0], -2 * X[:, 1]])
        model = LocalPolynomialRegressor(bandwidth=0.5, degree=1).fit(X, y)
        effects, std = model.explain_features(X[:4], return_std=True)
        assert [len(effects), len(std)] == [2, 2]
        for j, frame in enumerate(effects):
            np.testing.assert_allclose(frame.sum(axis=1), model.predict(X[:4])[:, j])
        assert (effects[1]["x1"].abs() > effects[1]["x0"].abs()).all()
        alone = clone(model).fit(X, y[:, 1]).explain_features(X[:4])
        np.testing.assert_allclose(alone.sum(axis=1), effects[1].sum(axis=1), atol=1e-9)

    def test_classes(self):
        X = uniform(90, 2)
        y = np.array(["low", "middle", "top"])[np.digitize(X[:, 0], [-0.3, 0.3])]
        model = NadarayaWatsonClassifier(bandwidth=0.2).fit(X, y)
        probabilities = model.predict_proba(X[:5])
        for j, label in enumerate(["low", "middle", "top"]):
            effects = model.explain_features(X[:5], class_label=label)
            expected = log_odds(probabilities[:, j])
            np.testing.assert_allclose(effects.sum(axis=1), expected, atol=1e-9)
            assert effects["base value"].nunique() == 1
        expected = log_odds(probabilities.max(axis=1))
        np.testing.assert_allclose(model.explain_features(X[:5]).sum(axis=1), expected)

    def test_classes_of_several_outputs(self):
        X = uniform(60, 2)
        y = np.column_stack([X[:, 0] > 0, np.digitize(X[:, 1], [-0.3, 0.3])]).astype(int)
        model = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, y)
        probabilities = model.predict_proba(X[:5])
        for labels, chosen in ((None, None), ([1, 2], [1, 2]), (1, [1, 1])):
            frames = model.explain_features(X[:5], class_label=labels)
            for j, frame in enumerate(frames):
                p = probabilities[j]
                p = p.max(axis=1) if chosen is None else p[:, chosen[j]]
                np.testing.assert_allclose(frame.sum(axis=1), log_odds(p), atol=1e-9)

    def test_behind_a_pipeline(self):
        X, y = table_of_shops()
        X = X[["size"]].fillna(0).assign(age=np.arange(len(X)))
        model = make_pipeline(StandardScaler(), NadarayaWatsonRegressor(bandwidth=0.5))
        model.set_output(transform="pandas").fit(X, y)
        effects = model[-1].explain_features(model[:-1].transform(X[:3]))
        assert effects.columns.tolist() == ["base value", "size", "age"]
        assert effects.index.equals(X.index[:3])
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(X[:3]))

    def test_single_precision(self):
        X, y = (a.astype(np.float32) for a in data_for(EVERY["average"]))
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
        effects = model.explain_features(X[:3])
        assert (effects.dtypes == np.float64).all()
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(X[:3]), rtol=1e-9)

    def test_queries_in_partitions(self):
        X, y = data_for(EVERY["average"])
        chunked = dask.array.from_array(X, chunks=(30, 2))
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
        effects = model.explain_features(X[:3])
        np.testing.assert_allclose(model.explain_features(chunked[:3]), effects, atol=1e-9)

    def test_training_rows_in_partitions(self):
        X, y = data_for(EVERY["average"])
        chunked = dask.array.from_array(X, chunks=(30, 2))
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
        distant = clone(model).fit(chunked, dask.array.from_array(y, chunks=30))
        with pytest.raises(
            ValueError, match=r"effects of features need all rows .*: pass a back"
        ):
            distant.explain_features(X[:3])
        given = distant.explain_features(X[:3], background=X[:10])
        expected = model.explain_features(X[:3], background=X[:10])
        np.testing.assert_allclose(given, expected, atol=1e-9)

    def test_a_given_background(self):
        X, y = data_for(EVERY["average"])
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
        effects = model.explain_features(X[:3], background=X[10:30])
        np.testing.assert_allclose(effects["base value"], model.predict(X[10:30]).mean())
        assert model._background is None


class TestErrors:
    def test_parameters(self):
        X, y = data_for(EVERY["average"])
        model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
        with pytest.raises(ValueError, match=r"class_label=1 is for classifiers: omit it"):
            model.explain_features(X[:2], class_label=1)
        with pytest.raises(ValueError, match="return_std='yes' is not valid"):
            model.explain_features(X[:2], return_std="yes")
        with pytest.raises(ValueError, match="background does not fit: X has 1 features"):
            model.explain_features(X[:2], background=X[:, :1])
        model = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, y > 0)
        for label in ("c", pd.NA, [True, True], X):
            with pytest.raises(
                ValueError, match=r"(?s)class_label=.* is not a class: pass one of \["
            ):
                model.explain_features(X[:2], class_label=label)

    def test_a_feature_with_the_name_of_the_base_value(self):
        X, y = table_of_shops()
        X = X[["size"]].fillna(0).rename(columns={"size": "base value"})
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
        with pytest.raises(ValueError, match=r"X has a column named 'base value'.*: rename it"):
            model.explain_features(X[:2])

    def test_rows_without_a_prediction(self):
        X = np.column_stack([np.arange(20.0), np.arange(20.0)])
        model = NadarayaWatsonRegressor("epanechnikov", bandwidth=2.0, empty="nan")
        model.fit(X, X[:, 0])
        with pytest.raises(ValueError, match=r"empty='nan' leaves \d+ rows of X, or mixed"):
            model.explain_features(X[:1])
        effects = model.set_params(empty="nearest").fit(X, X[:, 0]).explain_features(X[:1])
        assert effects.notna().all(axis=None)

    @pytest.mark.filterwarnings("ignore")
    def test_an_encoder_of_a_file_without_training_rows(self):
        X, y = data_for(EVERY["regressor"])
        model = TransformerRegressor(d_model=4, n_heads=1, n_layers=1, max_epochs=1).fit(X, y)
        assert model.encoder_.reader.sample.shape == (60, 2)
        reader = dataclasses.replace(model.encoder_.reader, sample=None)
        model.encoder_ = dataclasses.replace(model.encoder_, reader=reader)
        with pytest.raises(ValueError, match=r"background=None, .* hold no rows: pass a table"):
            model.explain_features(X[:2])
        effects = model.explain_features(X[:2], background=X[:20])
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(X[:2]), atol=1e-9)

    @pytest.mark.filterwarnings("ignore")
    def test_what_is_no_table(self):
        model = TransformerClassifier(d_model=4, n_heads=1, n_layers=1, max_epochs=1)
        model.fit(["good", "bad day"] * 10, [1, 0] * 10)
        with pytest.raises(ValueError, match=r"tokens='text' were fitted: call attention_maps"):
            model.explain_features(["good"])


def compare_ways(model, rows, background, monkeypatch, atol=1e-5):
    """Compare effects by products of kernels with those by predictions of mixed rows."""
    options = {"background": background, "return_std": True}
    if is_classifier(model):
        options["class_label"] = np.ravel(model.classes_[-1])[-1].item()
    fast = model.explain_features(rows, **options)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_mean_scores", FeatureEffectsMixin._mean_scores)
        slow = model.explain_features(rows, **options)
    for found, expected in zip(fast, slow, strict=True):
        np.testing.assert_allclose(found, expected, atol=atol)
    return fast


class TestKernelAttention:
    """Products of kernels against predictions of mixed rows."""

    @pytest.mark.parametrize(
        "options",
        [{}, {"kernel": "matern52"}, {"readout": "average"}, {"boosting": "auto"}],
        ids=["default", "not Gaussian", "average", "trees"],
    )
    def test_numbers(self, options, monkeypatch):
        X, y = table_of_shops(90)
        model = KernelAttentionRegressor(**LIGHT | options).fit(X, y)
        rows = X[:4].assign(city=["Rome", "Lima", None, "Oslo"])
        effects, std = compare_ways(model, rows, X[10:30], monkeypatch)
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(rows), atol=1e-9)
        assert (std < 1e-5).all(axis=None)

    def test_additive_parts_and_trees_take_part(self, monkeypatch):
        X = np.random.default_rng(2).normal(size=(250, 2))
        y = X[:, 0] ** 2 + 3 * (X[:, 1] > 0.3) + 0.3 * uniform(250, 1)[:, 0]
        model = KernelAttentionRegressor(n_folds=2, max_steps=2).fit(X, y)
        assert model.additive_share_ > 0
        assert model.boosting_share_ > 0
        compare_ways(model, X[:4], X[10:30], monkeypatch)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_classes(self, n_classes, monkeypatch):
        X, y = table_of_shops(90)
        labels = np.digitize(y, [0.5, 2.0][: n_classes - 1])
        model = KernelAttentionClassifier(**LIGHT).fit(X, labels)
        compare_ways(model, X[:4], X[10:30], monkeypatch)

    def test_several_outputs_and_blocks_of_rows(self, monkeypatch):
        monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", 40)
        monkeypatch.setattr(_mixed_rows, "_MAX_KEYS", 7)
        X = uniform(90, 3)
        model = KernelAttentionRegressor(**LIGHT).fit(
            X, np.column_stack([X[:, 0], X[:, 1] ** 2])
        )
        assert len(model.members_[0].rows) > 2
        monkeypatch.setattr(_shapley, "_SCORES_AT_ONCE", 1)
        effects, _ = model.explain_features(X[:3], return_std=True)
        monkeypatch.undo()
        again, _ = model.explain_features(X[:3], return_std=True)
        np.testing.assert_allclose(effects, again, atol=1e-9)
        model._background = None
        with monkeypatch.context() as patch:
            patch.setattr(
                KernelAttentionRegressor, "_mean_scores", FeatureEffectsMixin._mean_scores
            )
            slow, _ = model.explain_features(X[:3], return_std=True)
        # The points at which blocks pass into each other are in single precision.
        np.testing.assert_allclose(again, slow, atol=1e-5)

    @pytest.mark.parametrize("unit", [1e-10, 1e-250])
    def test_tiny_targets(self, unit):
        X = uniform(60, 3)
        y = np.column_stack([X[:, 0] + X[:, 1] * X[:, 2], np.sin(X[:, 2])])
        model = KernelAttentionRegressor(encodings="standard", bandwidth=0.5, n_folds=1)
        for targets in (y[:, :1], y):
            model.fit(X, targets * unit)
            found = model.partial_dependence(X, 0, [0.0, 1.0]).average
            for number, value in enumerate([0.0, 1.0]):
                moved = np.column_stack([np.full(60, value), X[:, 1:]])
                expected = model.predict(moved).reshape(60, -1).mean(axis=0)
                np.testing.assert_allclose(found[:, number] / unit, expected / unit, atol=1e-9)

    def test_random_coalitions(self, monkeypatch):
        X, y = make_friedman1(80, 10, random_state=0)
        X[:60, 7] = 0.5
        X[:60, 8] = 0.5
        model = KernelAttentionRegressor(**LIGHT).fit(X, y)
        # A row that differs in all features from the background, and one that does in nine.
        rows = np.vstack([X[70], np.where(np.arange(10) == 7, 0.5, X[71])])
        effects, std = compare_ways(model, rows, X[:20], monkeypatch)
        assert (std.iloc[0, 1:] > 1e-4).all()
        assert effects["x7"].iloc[1] == std["x7"].iloc[1] == 0
        np.testing.assert_allclose(effects.sum(axis=1), model.predict(rows), atol=1e-9)


@pytest.mark.slow
def test_effects_of_a_sum_are_found():
    X, _ = make_friedman1(800, 6, random_state=0)

    def effects_of(X):
        return np.column_stack([
            5 * np.sin(3 * X[:, 0]), 8 * (X[:, 1] - 0.5) ** 2, 4 * X[:, 2], -3 * X[:, 3],
            0 * X[:, 4:],
        ])  # fmt: skip

    y = effects_of(X).sum(axis=1) + np.random.default_rng(0).normal(size=800)
    model = KernelAttentionRegressor().fit(X[:700], y[:700])
    effects = model.explain_features(X[700:]).to_numpy()[:, 1:]
    truth = effects_of(X[700:]) - effects_of(X[:700]).mean(axis=0)
    assert np.corrcoef(effects.ravel(), truth.ravel())[0, 1] > 0.98
    classes = KernelAttentionClassifier().fit(X[:700], y[:700] > np.median(y))
    effects = classes.explain_features(X[700:], class_label=True).to_numpy()[:, 1:]
    assert np.corrcoef(effects.ravel(), truth.ravel())[0, 1] > 0.9
