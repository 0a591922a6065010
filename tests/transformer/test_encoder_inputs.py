"""How encoders of rows read what users pass, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from tiny_encoders import regress

from sklearn_attention import (
    Architecture,
    Training,
)

pytestmark = pytest.mark.usefixtures("few_convolutions", "few_trees")


def test_rows_of_a_table_as_series():
    X = np.random.default_rng(0).normal(size=(6, 4))
    model = regress(X, tokens="steps")
    assert model.n_features_in_ == 4
    expected = model.predict(X)
    of_3d = regress(X[..., None])
    assert not hasattr(of_3d, "n_features_in_")
    np.testing.assert_array_equal(of_3d.predict(X[..., None]), expected)
    frame = pd.DataFrame(X).add_prefix("x")
    np.testing.assert_array_equal(regress(frame, tokens="steps").predict(frame), expected)
    ragged = [X[0], X[1, :2]]
    np.testing.assert_allclose(model.predict(ragged)[0], expected[0], rtol=1e-5)


def test_ids_are_taken_as_they_are():
    X = [[70, 5], [5], [900, 5, 70]]
    model = regress(X, tokenizer="ids")
    assert model.tokens_ == "text"
    assert model.encoder_.reader.vocabulary["tokenizer"] == "ids"
    np.testing.assert_array_equal(model.encoder_.reader.vocabulary["learned"], [5, 70, 900])
    np.testing.assert_array_equal(model.predict([np.array([70, 1])]), model.predict([[70, 2]]))
    table = np.array([[1, 2], [2, 2]])
    assert regress(table).tokens_ == "features"
    assert regress(table, tokens="text").encoder_.reader.vocabulary["tokenizer"] == "ids"


class TestBadInput:
    @pytest.mark.parametrize(
        ("tokens", "X", "message"),
        [
            ("auto", [], "X has no rows"),
            ("auto", np.zeros((2, 3, 1, 1)), "X has 4 dimensions"),
            ("auto", "to be", "is a single text: pass a list"),
            ("auto", [[1.0, 2.0], []], r"X\[1\] is empty"),
            ("auto", [np.zeros((2, 3)), np.zeros((2, 2))], r"X\[1\] has shape \(2, 2\)"),
            ("auto", [[1.0, 2.0], [1.0, np.inf, 2.0]], r"X\[1\] is infinite at step 1"),
            ("auto", ["to be", None], r"X\[1\]=None is missing"),
            ("auto", [None, "to be"], r"X\[0\]=None is missing"),
            ("auto", ["to be", [5]], r"X\[1\]=\[5\] is of another kind"),
            ("features", [[1.0, 2.0], [3.0]], "X has cells of type list.* as many numbers in"),
            ("steps", ["a", "b c"], r"a sequence of numbers \(X\[0\] has texts"),
            ("text", np.zeros((2, 3)), r"an array of ids of shape \(n"),
        ],
    )
    def test_is_named(self, tokens, X, message):
        with pytest.raises(ValueError, match=message):
            regress(X, y=[0.0, 1.0], tokens=tokens)

    @pytest.mark.parametrize(
        ("fitted", "X", "message"),
        [
            (np.eye(3), ["a b"], "X has text, but was a table of features"),
            (np.zeros((3, 4, 2)), np.zeros((1, 4)), "steps of 1 channels, but of 2"),
            (["a b", "a", "b"], [[5, 6]], "X has ids, but the vocabulary was learned from"),
        ],
    )
    def test_predict_with_another_kind_than_fit(self, fitted, X, message):
        model = regress(fitted, tokens="text" if isinstance(fitted, list) else "auto")
        with pytest.raises(ValueError, match=message):
            model.predict(X)

    @pytest.mark.parametrize("X", [np.eye(3), ["a b", "c", "d"]])
    def test_as_many_targets_as_rows(self, X):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            regress(X, y=[0.0, 1.0])
        with pytest.raises(ValueError, match="NaN"):
            regress(X, y=[0.0, 1.0, np.nan])

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"tokenizer": "letters"}, "tokenizer='letters' is unknown"),
            (
                {"d_model": 6, "architecture": Architecture(positions="rotary")},
                "from d_model=6, but rotary positions",
            ),
            ({"training": Training(patience=3)}, "patience=3 needs rows that are held"),
        ],
    )
    def test_parameters_are_checked(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            regress([[1.0], [2.0, 3.0], [4.0]], **parameters)


@pytest.mark.parametrize("tokens", ["features", "steps"])
def test_predictions_have_the_digits_of_the_targets(tokens):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    y = 1e9 + 10 * X[:, 0].astype(np.float64)
    found = regress(X, y, tokens=tokens).predict(X)
    assert found.dtype == np.float64
    assert np.ptp(found) > 1e-3
    doubled = regress(X.astype(np.float64), y, tokens=tokens).predict(X)
    np.testing.assert_allclose(found - 1e9, doubled - 1e9, rtol=1e-3)
