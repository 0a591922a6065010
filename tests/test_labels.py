"""Classes as indicators, and back, of one output and of several."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_attention import (
    KernelAttentionClassifier,
    NadarayaWatsonClassifier,
    TransformerClassifier,
)
from sklearn_attention._labels import (
    best_classes,
    check_labels,
    distinct_labels,
    indicators,
    read_labels,
    sorted_classes,
    split_classes,
)

LABELS = [
    np.array(["b", "a", "c", "a"]),
    np.array([[1, 7], [0, 7], [1, 9], [1, 8]]),
    np.array([[3], [4], [3], [3]]),
]
CLASSIFIERS = [
    NadarayaWatsonClassifier(bandwidth=0.05),
    KernelAttentionClassifier(max_steps=2, n_folds=1),
    pytest.param(
        TransformerClassifier(
            d_model=8, n_heads=2, n_layers=1, max_epochs=2, class_weight="balanced"
        ),
        marks=pytest.mark.slow,
    ),
]
every_classifier = pytest.mark.parametrize(
    "classifier", CLASSIFIERS, ids=lambda own: type(own).__name__
)
X = np.random.default_rng(0).uniform(size=(60, 2))
# A text, a number and a flag of each row; and whether it is of the rarer of two classes.
OUTPUTS = pd.DataFrame(
    {
        "text": np.where(X[:, 0] > 0.5, "high", "low"),
        "number": np.digitize(X[:, 1], [0.3, 0.6]),
        "flag": X[:, 0] > X[:, 1],
    }
)
RARE = np.where(X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=60) > 0.8, "rare", "usual")


@pytest.mark.parametrize("y", LABELS, ids=["one", "two", "column"])
def test_winners_of_indicators_are_the_labels(y):
    classes = sorted_classes(y)
    assert isinstance(classes, list) == (y.ndim == 2)
    found = indicators(y, classes, np.float32)
    assert found.dtype == np.float32
    assert found.shape == (4, sum(len(np.unique(column)) for column in np.atleast_2d(y.T)))
    np.testing.assert_array_equal(best_classes(split_classes(found, classes), classes), y)


def test_of_equal_scores_the_first_class_wins():
    scores = np.array([[0.4, 0.2, 0.4], [0.0, 0.5, 0.5]])
    assert best_classes([scores], np.array(["x", "y", "z"])).tolist() == ["x", "y"]


def test_a_column_of_labels_is_one_output():
    with pytest.warns(UserWarning, match="column-vector"):
        assert check_labels(LABELS[2]).shape == (4,)
    with pytest.raises(ValueError, match="Unknown label type"):
        check_labels(np.array([0.5, 1.5]))


@pytest.mark.parametrize("kind", [str, int, bool, np.float32])
def test_a_list_of_an_arrays_labels_is_that_array(kind):
    y = np.array([1, 0, 1]).astype(kind)
    found = read_labels(list(y))
    assert found.dtype.kind == y.dtype.kind
    np.testing.assert_array_equal(found, y)


@every_classifier
def test_outputs_have_classes_of_their_own_type(classifier):
    cells = OUTPUTS.to_numpy(dtype=object)
    for y in (OUTPUTS, cells.tolist(), OUTPUTS[["number", "flag"]]):
        model = clone(classifier).fit(X, y)
        kinds = "".join(known.dtype.kind for known in model.classes_)
        assert kinds == "Oib"[-len(kinds) :]
        assert [p.shape[1] for p in model.predict_proba(X)] == [2, 3, 2][-len(kinds) :]
        found, expected = model.predict(X), np.array(y, dtype=object)
        assert {type(cell) for cell in found[:, -1]} == {bool}
        assert ((found == expected).mean(axis=0) > 0.7).all()
        assert model.score(X, y) == (found == expected).all(axis=1).mean()
    for name, kind in {"text": "O", "number": "i", "flag": "b"}.items():
        y = OUTPUTS[name].to_numpy(dtype=object)
        model = clone(classifier).fit(X, y)
        assert model.classes_.dtype.kind == kind
        assert model.score(X, y) > 0.7


DAYS = pd.period_range("2020-01-01", periods=2, freq="D").repeat(30)


@pytest.mark.parametrize(
    ("y", "words", "classes"),
    [
        (
            ["a", 1] * 30,
            r"mixes labels of different types, such as.*'a' and 1: convert all of",
            ["1", "a"],
        ),
        (
            [["a", True], ["b", 2]] * 30,
            r"1\] mixes labels of different types, such.* True and 2",
            ["2", "True"],
        ),
        ([Decimal(1), Decimal(2)] * 30, "mixes labels of different types, such as", ["1", "2"]),
        (DAYS, "mixes labels of different types, such as", ["2020-01-01", "2020-01-02"]),
    ],
)
def test_labels_that_have_no_class_are_named(y, words, classes):
    model = NadarayaWatsonClassifier(bandwidth=0.05)
    for given in (y, np.array(y, dtype=object)):
        with pytest.raises(ValueError, match=words) as error:
            model.fit(X, given)
        # The remedy, followed.
        _, _, cast = str(error.value).rpartition(" by ")
        texts = eval(cast.rstrip("."), {"numpy": np, "y": given})
        assert clone(model).fit(X, texts).classes_.tolist() == classes
    with pytest.raises(ValueError, match="mixes labels of different types, such as"):
        model.fit(X, RARE).score(X, [row if np.ndim(y) == 1 else row[1] for row in y])


def weighted_and_plain(classifier, class_weight, factors, y, sample_weight=None):
    """Probabilities with weights of classes, and with those of their rows."""
    weighted = clone(classifier).set_params(class_weight=class_weight)
    found = weighted.fit(X, y, sample_weight).predict_proba(X)
    weights = factors if sample_weight is None else factors * sample_weight
    plain = clone(classifier).set_params(class_weight=None).fit(X, y, weights)
    return found, plain.predict_proba(X)


@every_classifier
def test_weights_of_classes_are_weights_of_their_rows(classifier):
    factors, n = np.where(RARE == "rare", 4.0, 1.0), np.sum(RARE == "rare")
    balanced = np.where(RARE == "rare", 30 / n, 30 / (60 - n))
    two = np.column_stack([RARE, np.where(X[:, 1] > 0.5, "top", "low")])
    product = factors * np.where(two[:, 1] == "top", 2.0, 1.0)
    for pair in (
        weighted_and_plain(classifier, {"rare": 4.0}, factors, RARE, np.linspace(1, 2, 60)),
        weighted_and_plain(classifier, "balanced", balanced, RARE),
        weighted_and_plain(classifier, [{"rare": 4.0}, {"top": 2.0}], product, two),
    ):
        np.testing.assert_allclose(*pair, rtol=1e-6)


@every_classifier
def test_other_weights_of_classes_are_refused(classifier):
    refused = "class_weight=.* is not valid: pass 'balanced'"
    for given, words in (
        *((given, refused) for given in ("x", [1], {"rare": -1.0}, {"rare": np.nan}, 3)),
        ({"rare": 0.0, "usual": 0.0}, r"class_weight=.* is zero for every row of y"),
    ):
        with pytest.raises(ValueError, match=words):
            clone(classifier).set_params(class_weight=given).fit(X, RARE)


def test_class_weights_of_rows_that_come_one_after_the_other():
    y = OUTPUTS["number"].to_numpy() % 2
    model = NadarayaWatsonClassifier(bandwidth=0.2, class_weight={1: 5.0})
    later = clone(model).partial_fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])
    np.testing.assert_allclose(later.predict_proba(X), model.fit(X, y).predict_proba(X))
    model.set_params(class_weight="balanced")
    with pytest.raises(ValueError, match=r"partial_fit does not have: pass a dict"):
        clone(model).partial_fit(X, y)


def test_labels_of_another_type_are_unknown():
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, OUTPUTS)
    with pytest.raises(
        ValueError, match=r"y has classes \['0', '1', '2'\] that the first call"
    ):
        model.partial_fit(X, OUTPUTS.astype({"number": str}))
    model.partial_fit(X, OUTPUTS)
    np.testing.assert_array_equal(model.values_[:60], model.values_[60:])


@pytest.mark.parametrize("cell", [np.ones(2), {1}, b"a"], ids=str)
def test_labels_that_are_no_labels(cell):
    labels = np.empty(4, dtype=object)
    labels[:] = [cell] * 4
    with pytest.raises(ValueError, match=r"^y has a label of type \w+, such as .*: pass"):
        read_labels(pd.Series(labels))


def test_labels_that_are_missing_or_of_other_shapes_are_named():
    arrays = pytest.importorskip("dask.array")
    assert distinct_labels(arrays.from_array(np.array([2, 1, 2, 5]), chunks=2)).tolist() == [
        1,
        2,
        5,
    ]
    rows, model = np.arange(4.0)[:, None], NadarayaWatsonClassifier(bandwidth=1.0)
    flags = np.array([True, False, pd.NA, True], dtype=object)
    for y in (
        pd.DataFrame({"a": [pd.NA, 1, 1, 1], "b": 1}), [["u", None], ["v", 1]] * 2,
        arrays.from_array(flags, chunks=2),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"^y has missing labels"):
            model.fit(rows, y)
    with pytest.raises(ValueError, match=r"y has shape \(4, 2\), which is not"):
        model.fit(rows, rows[:, 0] > 1).score(rows, np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"^y=None is not valid: pass the class"):
        model.score(rows, None)


def test_rows_of_an_explanation_have_the_classes_that_were_passed():
    y = OUTPUTS[["number", "flag"]].to_numpy(dtype=object)
    model = NadarayaWatsonClassifier(bandwidth=0.2).fit(X, y)
    indices, _, values = model.explain(X[:9], k=4)
    np.testing.assert_array_equal(values, y[indices])
