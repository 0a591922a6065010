"""Partial dependence beside that of scikit-learn, which predicts all rows for each value."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention.kernel_attention import _mixed_rows, _ridge

QUICK = {"n_folds": 2, "max_steps": 2, "random_state": 0}


def make_rows(n=90, seed=0):
    """A table of a number, a category, a number that is often missing, and its targets."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "size": rng.normal(size=n), "color": rng.choice(["red", "blue", "green"], n),
        "often": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    })  # fmt: skip
    effect = X["color"].map({"red": 0.0, "blue": 1.0, "green": 3.0})
    return X, (np.sin(2 * X["size"]) + effect + rng.normal(size=n) / 10).to_numpy()


def check_values(model, X, feature, values, predict):
    """Compare individual predictions with those of rows that have the values."""
    found = model.partial_dependence(X, feature, values)
    np.testing.assert_array_equal(found.grid_values[0], values)
    for number, value in enumerate(values):
        expected = np.reshape(predict(X.assign(**{feature: value})), (len(X), -1)).T
        np.testing.assert_allclose(found.individual[:, :, number], expected, atol=1e-5)
    np.testing.assert_allclose(found.average, found.individual.mean(axis=1))


@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "matern52"}, {"readout": "average"}, {"boosting": None}],
    ids=["default", "not Gaussian", "average", "without trees"],
)
def test_regressors(options):
    X, y = make_rows()
    model = KernelAttentionRegressor(**QUICK | options).fit(X, y)
    check_values(model, X[:20], "size", [-1.0, 0.5, 30.0], model.predict)
    check_values(model, X[:20], "color", ["red", "green", "pink"], model.predict)
    check_values(model, X[:20], "often", [0.0, np.nan], model.predict)


def test_additive_parts_and_trees_take_part():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(250, 2)), columns=["size", "other"])
    y = X["size"] ** 2 + 3 * (X["other"] > 0.3) + 0.3 * rng.normal(size=250)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    assert model.additive_share_ > 0
    assert model.boosting_share_ > 0
    check_values(model, X[:10], "other", [-1.0, 0.2, 0.4], model.predict)


def test_several_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(_ridge, "_MAX_BLOCK_ROWS", 40)
    monkeypatch.setattr(_mixed_rows, "_MAX_KEYS", 7)
    X, y = make_rows()
    model = KernelAttentionRegressor(**QUICK, boosting=None).fit(
        X, np.column_stack([y, -(y**2)])
    )
    assert len(model.members_[0].rows) > 2
    # The points at which blocks pass into each other are in single precision.
    found = model.partial_dependence(X[:20], "size", [-1.0, 0.5])
    for number, value in enumerate([-1.0, 0.5]):
        expected = model.predict(X[:20].assign(size=value)).T
        np.testing.assert_allclose(found.individual[:, :, number], expected, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(n_classes):
    X, y = make_rows()
    labels = np.digitize(y, [1.0, 2.5][: n_classes - 1])
    model = KernelAttentionClassifier(**QUICK).fit(X, labels)

    def predict(X):
        probabilities = model.predict_proba(X)
        return probabilities[:, 1] if n_classes == 2 else probabilities

    check_values(model, X[:20], "size", [-1.0, 0.5], predict)
    check_values(model, X[:20], "color", ["red", "green"], predict)


def test_classes_of_several_outputs_stand_side_by_side():
    X, y = make_rows()
    labels = np.column_stack([y > 1, np.digitize(y, [0.5, 2.0])])
    model = KernelAttentionClassifier(**QUICK).fit(X, labels)
    check_values(model, X[:9], "size", [0.5], lambda X: np.hstack(model.predict_proba(X)))


def test_usual_values_are_those_of_scikit_learn():
    X, y = make_friedman1(150, random_state=0)
    X[:, 1] = X[:, 1].round(1)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    for feature in (0, 1):
        found = model.partial_dependence(X, feature)
        expected = partial_dependence(model, X, [feature], kind="both", method="brute")
        np.testing.assert_allclose(found.grid_values[0], expected.grid_values[0])
        np.testing.assert_allclose(found.average, expected.average, atol=1e-5)
        np.testing.assert_allclose(found.individual, expected.individual, atol=1e-5)


def test_usual_values_of_a_category_are_its_levels():
    X, y = make_rows()
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    found = model.partial_dependence(X, 1)
    assert found.grid_values[0].tolist() == ["blue", "green", "red"]
    assert found.average.argmax() == 1


def test_single_precision_stays():
    X, y = make_friedman1(60, random_state=0)
    model = KernelAttentionRegressor(**QUICK).fit(X.astype(np.float32), y.astype(np.float32))
    found = model.partial_dependence(X.astype(np.float32), 0, [0.1])
    assert found.individual.dtype == found.average.dtype == np.float32


@pytest.mark.parametrize("feature", ["colour", 3, -1, None, True, 1.0])
def test_unknown_features_are_refused(feature):
    X, y = make_rows(40)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match=r"is none of \['size', 'color', 'often'\]"):
        model.partial_dependence(X, feature)


def test_scikit_learn_draws_it():
    X, y = make_rows(40)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    dependence = model.partial_dependence(X, "size", np.linspace(-1, 1, 5))
    display = PartialDependenceDisplay(
        [dependence], features=[(0,)], feature_names=list(X), target_idx=0, deciles={}
    ).plot()
    np.testing.assert_allclose(display.lines_[0, 0].get_ydata(), dependence.average[0])


@pytest.mark.parametrize("values", [[], 5.0, [[1.0, 2.0]], [np.inf], ["x"]])
def test_values_that_are_no_list_of_finite_numbers_are_refused(values):
    X, y = make_rows(40)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="of feature 'size' are not a list of one or more"):
        model.partial_dependence(X, "size", values)


def test_a_number_that_is_always_missing_has_no_usual_values():
    X, y = make_rows(40)
    model = KernelAttentionRegressor(**QUICK).fit(X.assign(often=np.nan), y)
    with pytest.raises(ValueError, match="the feature is not always missing"):
        model.partial_dependence(X.assign(often=np.nan), "often")


def test_codes_of_levels_are_refused():
    X, y = make_rows(40)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="which is none of its levels in the fit"):
        model.partial_dependence(X, "color", [1, 2])
