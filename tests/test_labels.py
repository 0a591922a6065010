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
    check_labels,
    distinct,
    indicators,
    known_classes,
    read_labels,
    split_classes,
    winners,
)

LABELS = [
    np.array(["b", "a", "c", "a"]),
    np.array([[1, 7], [0, 7], [1, 9], [1, 8]]),
    np.array([[3], [4], [3], [3]]),
]


@pytest.mark.parametrize("y", LABELS, ids=["one", "two", "column"])
def test_winners_of_indicators_are_the_labels(y):
    classes = known_classes(y)
    assert isinstance(classes, list) == (y.ndim == 2)
    found = indicators(y, classes, np.float32)
    assert found.dtype == np.float32
    assert found.shape == (4, sum(len(np.unique(column)) for column in np.atleast_2d(y.T)))
    np.testing.assert_array_equal(winners(split_classes(found, classes), classes), y)


def test_of_equal_scores_the_first_class_wins():
    scores = np.array([[0.4, 0.2, 0.4], [0.0, 0.5, 0.5]])
    assert winners([scores], np.array(["x", "y", "z"])).tolist() == ["x", "y"]


def test_classes_may_be_given():
    classes = known_classes(LABELS[0], ["c", "b", "a", "d"])
    assert classes.tolist() == ["a", "b", "c", "d"]
    assert indicators(LABELS[0], classes, bool).sum(axis=0).tolist() == [2, 1, 1, 0]


def test_missing_labels_of_frames_and_lists():
    for y in (pd.DataFrame({"a": [pd.NA, 1], "b": [0, 1]}), [["u", None], ["v", 1]]):
        with pytest.raises(ValueError, match="y has missing labels"):
            NadarayaWatsonClassifier(bandwidth=1.0).fit([[0.0], [1.0]], y)


def test_a_column_of_labels_is_one_output():
    with pytest.warns(UserWarning, match="column-vector"):
        assert check_labels(LABELS[2]).shape == (4,)
    with pytest.raises(ValueError, match="Unknown label type"):
        check_labels(np.array([0.5, 1.5]))


def labels_of_types(X):
    """A text, a number and a flag of each row."""
    return pd.DataFrame(
        {
            "text": np.where(X[:, 0] > 0.5, "high", "low"),
            "number": np.digitize(X[:, 1], [0.3, 0.6]),
            "flag": X[:, 0] > X[:, 1],
        }
    )


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


@every_classifier
class TestOutputsOfSeveralTypes:
    def test_have_classes_of_their_own_type(self, classifier):
        X = np.random.default_rng(0).uniform(size=(60, 2))
        frame = labels_of_types(X)
        cells = frame.to_numpy(dtype=object)
        for y in (frame, cells, cells.tolist(), frame[["number", "flag"]]):
            model = clone(classifier).fit(X, y)
            kinds = "".join(known.dtype.kind for known in model.classes_)
            assert kinds == "Oib"[-len(kinds) :]
            assert [p.shape[1] for p in model.predict_proba(X)] == [2, 3, 2][-len(kinds) :]
            found, expected = model.predict(X), np.array(y, dtype=object)
            assert {type(cell) for cell in found[:, -1]} == {bool}
            assert ((found == expected).mean(axis=0) > 0.7).all()
            assert model.score(X, y) == (found == expected).all(axis=1).mean()

    def test_one_output_of_objects(self, classifier):
        X = np.random.default_rng(0).uniform(size=(60, 2))
        for name, kind in {"text": "O", "number": "i", "flag": "b"}.items():
            y = labels_of_types(X)[name].to_numpy(dtype=object)
            model = clone(classifier).fit(X, y)
            assert model.classes_.dtype.kind == kind
            assert model.score(X, y) > 0.7

    @pytest.mark.parametrize("container", [list, lambda y: np.array(y, dtype=object)])
    def test_types_within_one_are_refused(self, classifier, container):
        X = np.random.default_rng(0).uniform(size=(40, 2))
        for y, words in (
            (["a", 1] * 20, "y has labels that are not all .* such as 'a' and 1"),
            ([["a", True], ["b", 2]] * 20, r"y\[:, 1\] has .* such as True and 2"),
        ):
            with pytest.raises(ValueError, match=words) as error:
                clone(classifier).fit(X, container(y))
            # The remedy, followed.
            _, _, cast = str(error.value).rpartition(" by ")
            texts = eval(cast.rstrip("."), {"numpy": np, "y": y})
            assert clone(classifier).fit(X, texts).classes_.tolist() in (
                ["1", "a"],
                ["2", "True"],
            )


@every_classifier
class TestClassWeight:
    """Weights of classes are weights of their rows."""

    def data(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(60, 2))
        return X, np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0.8, "rare", "usual")

    def both(self, classifier, class_weight, factors, y, sample_weight=None):
        """Probabilities with weights of classes, and with those of their rows."""
        X, _ = self.data()
        weighted = clone(classifier).set_params(class_weight=class_weight)
        found = weighted.fit(X, y, sample_weight).predict_proba(X)
        weights = factors if sample_weight is None else factors * sample_weight
        plain = clone(classifier).set_params(class_weight=None).fit(X, y, weights)
        return found, plain.predict_proba(X)

    def test_times_those_of_rows(self, classifier):
        _, y = self.data()
        factors, rows = np.where(y == "rare", 4.0, 1.0), np.linspace(1, 2, 60)
        for weights in (None, rows):
            pair = self.both(classifier, {"rare": 4.0}, factors, y, weights)
            np.testing.assert_allclose(*pair, rtol=1e-6)

    def test_balanced(self, classifier):
        _, y = self.data()
        n = np.sum(y == "rare")
        pair = self.both(
            classifier, "balanced", np.where(y == "rare", 30 / n, 30 / (60 - n)), y
        )
        np.testing.assert_allclose(*pair, rtol=1e-6)

    def test_of_several_outputs_they_multiply(self, classifier):
        X, y = self.data()
        y = np.column_stack([y, np.where(X[:, 1] > 0.5, "top", "low")])
        factors = np.where(y[:, 0] == "rare", 3.0, 1.0) * np.where(y[:, 1] == "top", 2.0, 1.0)
        pair = self.both(classifier, [{"rare": 3.0}, {"top": 2.0}], factors, y)
        np.testing.assert_allclose(*pair, rtol=1e-6)

    @pytest.mark.parametrize("given", ["x", [1], {"rare": -1.0}, {"rare": np.nan}, 3])
    def test_others_are_refused(self, classifier, given):
        with pytest.raises(ValueError, match=r"class_weight=.* is not valid: pass 'balanced'"):
            clone(classifier).set_params(class_weight=given).fit(*self.data())

    def test_some_class_has_weight(self, classifier):
        none = dict.fromkeys(["rare", "usual"], 0.0)
        with pytest.raises(ValueError, match=r"class_weight=.* is zero for every row of y"):
            clone(classifier).set_params(class_weight=none).fit(*self.data())


def test_class_weights_of_rows_that_come_one_after_the_other():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, 2)), rng.integers(0, 2, 40)
    model = NadarayaWatsonClassifier(bandwidth=0.2, class_weight={1: 5.0})
    later = clone(model).partial_fit(X[:25], y[:25]).partial_fit(X[25:], y[25:])
    np.testing.assert_allclose(later.predict_proba(X), model.fit(X, y).predict_proba(X))
    model.set_params(class_weight="balanced")
    with pytest.raises(ValueError, match=r"partial_fit does not have: pass a dict"):
        clone(model).partial_fit(X, y)


def test_labels_of_another_type_are_unknown():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    y = labels_of_types(X)
    model = NadarayaWatsonClassifier(bandwidth=0.5).fit(X, y)
    with pytest.raises(
        ValueError, match=r"y has classes \['0', '1', '2'\] that the first call"
    ):
        model.partial_fit(X, y.astype({"number": str}))
    np.testing.assert_array_equal(model.partial_fit(X, y).values_[:40], model.values_[40:])


def test_labels_in_partitions_are_found():
    da = pytest.importorskip("dask.array")
    y = da.from_array(np.array([2, 1, 2, 5]), chunks=2)
    assert distinct(y).tolist() == [1, 2, 5]


def test_labels_of_pandas_keep_their_type():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    for dtype, kind in {"Int64": "i", "boolean": "b", "string": "O", "category": "i"}.items():
        y = pd.Series(X[:, 0] > 0.5).astype(int).astype(dtype)
        model = NadarayaWatsonClassifier(bandwidth=0.1).fit(X, y)
        assert model.classes_.dtype.kind == kind
        assert model.score(X, y) > 0.8


def test_labels_that_have_no_class_are_named():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    model = NadarayaWatsonClassifier(bandwidth=0.1)
    for y in ([Decimal(1), Decimal(2)] * 20, pd.period_range("2020", periods=2).repeat(20)):
        with pytest.raises(ValueError, match="y has labels that are not all texts") as error:
            model.fit(X, y)
        # The remedy, followed.
        _, _, cast = str(error.value).rpartition(" by ")
        texts = eval(cast.rstrip("."), {"numpy": np, "y": y})
        assert model.fit(X, texts).classes_.tolist() == sorted({*map(str, y)})
        with pytest.raises(ValueError, match="y has labels that are not all texts"):
            model.score(X, y)


@pytest.mark.parametrize("cell", [np.ones(2), [1.0], {1}, b"a"], ids=str)
def test_labels_that_are_no_labels(cell):
    labels = np.empty(4, dtype=object)
    labels[:] = [cell] * 4
    with pytest.raises(ValueError, match=r"^y has a label of type \w+, such as .*: pass"):
        read_labels(pd.Series(labels))


def test_labels_of_partitions_and_of_other_shapes_are_named():
    arrays = pytest.importorskip("dask.array")
    X, flags = np.arange(8.0)[:, None], np.array([True, False, pd.NA, True] * 2, dtype=object)
    model = NadarayaWatsonClassifier(bandwidth=1.0)
    with pytest.raises(ValueError, match=r"^y has missing labels .*drop those rows"):
        model.fit(X, arrays.from_array(flags, chunks=4))
    with pytest.raises(ValueError, match=r"^y has shape \(8, 2\): pass one label"):
        model.fit(X, X[:, 0] > 3).score(X, np.ones((8, 2)))
    with pytest.raises(ValueError, match=r"^y=None is not valid: pass the class"):
        model.score(X, None)
