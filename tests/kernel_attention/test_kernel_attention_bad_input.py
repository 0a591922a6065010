"""Data that say little, and parameters that make no sense."""

import numpy as np
import pytest

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention import _ridge
from sklearn_attention.kernels import Silverman

ESTIMATORS = [KernelAttentionRegressor, KernelAttentionClassifier]
QUICK = {"max_steps": 3, "n_folds": 1}
every_readout = pytest.mark.parametrize("readout", ["average", "solve"])
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


def make_data(estimator=KernelAttentionRegressor, n=40, n_features=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return X, (y > 0).astype(int) if estimator is KernelAttentionClassifier else y


def all_finite(model, X):
    """Everything that may be asked about X is finite."""
    if isinstance(model, KernelAttentionClassifier):
        found = [model.predict_proba(X)]
        np.testing.assert_allclose(found[0].sum(axis=1), 1)
    else:
        found = [*model.predict(X, return_std=True), model.predict_interval(X)]
    found += [model.transform(X), model.explain(X).weights, model.local_slopes(X)]
    return all(np.isfinite(part).all() for part in found)


@every_readout
class TestPoorTargets:
    def test_a_constant_is_predicted(self, readout):
        X, _ = make_data()
        for constant in (0.0, -1e9):
            model = KernelAttentionRegressor(readout, **QUICK).fit(X, np.full(40, constant))
            found = model.predict(X, return_std=True)
            np.testing.assert_allclose(found[0], constant, rtol=1e-12)
            np.testing.assert_allclose(found[1], 0, atol=1e-9 * abs(constant))
            np.testing.assert_allclose(model.predict_interval(X), constant, rtol=1e-9)

    def test_one_class_is_certain(self, readout):
        X, _ = make_data()
        model = KernelAttentionClassifier(readout, **QUICK).fit(X, ["only"] * 40)
        np.testing.assert_allclose(model.predict_proba(X), np.ones((40, 1)), rtol=1e-14)
        assert set(model.predict(X)) == {"only"}

    @pytest.mark.parametrize("n_folds", [1, "auto"])
    def test_a_class_of_one_row(self, readout, n_folds):
        X, y = make_data(KernelAttentionClassifier)
        y[7] = 2
        model = KernelAttentionClassifier(readout, max_steps=3, n_folds=n_folds).fit(X, y)
        assert model.predict_proba(X).shape == (40, 3)
        assert all_finite(model, X)


@every_estimator
@every_readout
class TestPoorRows:
    def test_answers_are_finite(self, estimator, readout):
        X, y = make_data(estimator, n=20, n_features=50)
        assert all_finite(estimator(readout, **QUICK).fit(X, y), X)  # more features than rows
        X, y = make_data(estimator)
        weight = 10.0 ** np.linspace(-30, 5, 40)
        assert all_finite(estimator(readout, **QUICK).fit(X, y, weight), X)
        # Numbers far from the data.
        far = np.array([[1e5, -1e5, 0.0], [0.0, 1e200, 0.0]])
        assert all_finite(estimator(readout, **QUICK).fit(X, y), far)
        # Copies that contradict each other, without noise.
        X, y = np.repeat(X[:10], 4, axis=0), np.tile(y[:10], 4)
        assert all_finite(estimator(readout, ridge=0.0, **QUICK).fit(X, y), X)

    @pytest.mark.parametrize("filler", [np.nan, 3.3])
    def test_a_column_without_news_changes_nothing(self, estimator, readout, filler):
        X, y = make_data(estimator)
        more = np.column_stack([X, np.full(40, filler)])
        model = estimator(readout, **QUICK).fit(more, y)
        assert all_finite(model, more)
        assert np.isinf(model.length_scales_[:, 3]).all()
        assert model.feature_relevance_["x3"] == 0
        moved = np.column_stack([X, np.linspace(-9, 9, 40)])
        np.testing.assert_array_equal(model.predict(moved), model.predict(more))

    def test_all_columns_constant(self, estimator, readout):
        _, y = make_data(estimator)
        model = estimator(readout, **QUICK).fit(np.ones((40, 2)), y)
        queries = np.array([[1.0, 1.0], [5.0, -3.0]])
        assert all_finite(model, queries)
        assert model.transform(queries).shape == (2, 0)
        assert (model.feature_relevance_ == 0).all()
        classifies = estimator is KernelAttentionClassifier
        found = model.predict_proba(queries)[:, 1] if classifies else model.predict(queries)
        np.testing.assert_allclose(found, y.mean(), atol=0.1)

    def test_many_rows_of_which_none_can_be_told_apart(self, estimator, readout, monkeypatch):
        # More than one block has.
        monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", 30)
        y = make_data(estimator, n=150)[1]
        X = np.random.default_rng(0).integers(2, size=(150, 2)).astype(float)
        model = estimator(readout, **QUICK).fit(X, y)
        assert all_finite(model, np.vstack([X[:5], X[:5] + 0.3]))

    @pytest.mark.parametrize("n", [1, 2, 7])
    def test_few_rows(self, estimator, readout, n):
        X, y = make_data(estimator)
        y[:2] = [0, 1]
        model = estimator(readout, max_steps=3).fit(X[:n], y[:n])
        assert all_finite(model, X[:4])
        if n == 1:
            np.testing.assert_allclose(model.predict(X[:4]), 0)


@pytest.mark.parametrize("encodings", ["standard", ("standard", "quantile")])
def test_compact_kernels_are_for_averages(encodings):
    X, y = make_data()
    model = KernelAttentionRegressor("average", kernel="tricube", encodings=encodings, **QUICK)
    assert all_finite(model.fit(X, y), X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"readout": "averages"}, "readout='averages' is unknown: did you mean 'average'"),
        ({"kernel": Silverman()}, r"kernel=Silverman\(\) is not"),
        ({"kernel": "tricube"}, "kernel='tricube' is not positive definite.*readout='solve'"),
        ({"encodings": "rank"}, r"encodings='rank' is unknown: choose from \['piece"),
        ({"encodings": 3}, "encodings=3"),
        ({"encodings": ()}, r"encodings=\(\) is not valid: name at least one"),
        ({"encodings": ["standard", "standard"]}, r"'standard', 'standard'\].*once"),
        (
            {"bandwidth": 0.5, "encodings": ("standard", "quantile")},
            r"bandwidth=0.5 is in the features' own units.*got encodings=\('standard', 'quan",
        ),
        ({"bandwidth": "loo"}, r"bandwidth='loo' is unknown: choose from \['learned'\]"),
        # Whatever the encodings are.
        ({"bandwidth": [1.0, np.nan, 1.0]}, "every bandwidth must be finite and greater"),
        ({"bandwidth": [1.0, 2.0], "encodings": "standard"}, r"shape \(2,\), but there are 3"),
        ({"n_folds": 21}, "fold, but only 40 rows have positive"),
        ({"max_steps": True}, "max_steps=True is not valid"),
        ({"ridge": True}, "ridge=True is not valid"),
        ({"boosting": True}, r"boosting=True is unknown: pass None, or 'auto'"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    model = KernelAttentionRegressor(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(*make_data())
    assert not hasattr(model, "keys_")


def test_n_folds_counts_rows_that_have_weight():
    X, y = make_data()
    weight = np.ones(40)
    weight[10:] = 0
    with pytest.raises(
        ValueError, match=r"n_folds=6 needs two rows in.*only 10 rows have positive"
    ):
        KernelAttentionRegressor(n_folds=6, max_steps=3).fit(X, y, weight)
    model = KernelAttentionRegressor(n_folds=5, max_steps=3).fit(X, y, weight)
    assert len(model.members_) == 5


def test_targets_whose_squares_are_infinite_are_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match=r"y has values as large as .*: divide it by its"):
        KernelAttentionRegressor(**QUICK).fit(X, 1e200 * y)
