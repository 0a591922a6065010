"""Forms of rows: guessed in a fit, those of its predictions, and their lengths."""

import numpy as np
import pandas as pd
import pytest
from tiny_encoders import regress

from sklearn_attention import Architecture
from sklearn_attention.transformer._forms import form_of


@pytest.mark.parametrize(
    ("X", "form"),
    [
        (np.zeros((2, 3)), "features"),
        ([np.zeros(2), np.zeros(2)], "features"),
        (pd.DataFrame({"a": ["u", "v"]}), "features"),
        (pd.DataFrame({"a": ["u", "v w"]}), "text"),
        (pd.DataFrame({"a": ["很好", "不好"]}), "text"),
        (pd.DataFrame({"a": ["很好", "不好"] * 3}), "features"),
        (pd.DataFrame({"a": ["A–1", "A–2"]}), "features"),
        ([np.zeros((2, 3)), np.zeros((4, 3))], "steps"),
        (((0.5, [1.0]), (1.5, [2.0, 3.0])), "steps"),  # whose error names a sequence
        ([pd.Series([1.0], [7]), pd.Series([2.0, 3.0], [7, 8])], "steps"),
        ([np.zeros(2), [1]], "steps"),
        ([[1, 2], [3]], "text"),
        (np.array(["a", "b c"], dtype=object), "text"),
        (pd.Series([[1, 2], [3]]), "text"),
        (pd.Series([pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])]), "steps"),
    ],
)
def test_the_form_is_guessed_from_the_rows(X, form):
    assert form_of(X) == form


pytestmark = pytest.mark.usefixtures("few_convolutions", "few_trees")


def objects(rows):
    """An array of objects, each of which is a row."""
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found


TEXTS = ["to be", "or not", "to be", "or not", "to be"]
RAGGED = [[1.0, 2.0], [3, 4], [5], [6.0, 0.5], [7.5]]
LEVELS = pd.DataFrame({"a": ["u v", "w x", "u v", "w x", "u v"], "b": np.arange(5.0)})
FORMS = {
    "frame": ("auto", LEVELS, "features"),
    "frame of few texts": ("auto", pd.DataFrame({"a": TEXTS}), "features"),
    "lists of integers": ("features", [[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]], "features"),
    "array of steps": ("auto", objects(RAGGED), "steps"),
    "frame of texts": ("text", pd.DataFrame({"a": TEXTS}), "text"),
    "ids": ("text", [[1, 2], [3, 4], [5], [5, 6], [7]], "text"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_slice_of_rows_is_predicted_as_within_all_rows(name):
    tokens, X, form = FORMS[name]
    y = np.array([1.0, -2.0, 0.5, 3.0, 7.0])
    model = regress(X, y, tokens=tokens)
    assert model.tokens_ == form
    expected = model.predict(X)
    assert len(np.unique(expected)) > 1
    for first, last in [(0, 1), (1, 4)]:
        found = model.predict(X[first:last])
        np.testing.assert_allclose(found, expected[first:last], rtol=1e-4)


@pytest.mark.parametrize(
    "X", [np.arange(24.0).reshape(2, 6, 2), ["a b c d e f", "f e d c b a"]]
)
def test_long_sequences_are_cut_at_their_end_with_a_warning(X):
    with pytest.warns(UserWarning, match="2 of 2 sequences are longer than max_length 4"):
        model = regress(X, max_length=4)
    short = X[:, :4] if isinstance(X, np.ndarray) else [text[:7] for text in X]
    with pytest.warns(UserWarning, match="1 of 1 sequences"):
        found = model.predict(X[:1])
    np.testing.assert_array_equal(found, model.predict(short[:1]))


@pytest.mark.slow
def test_long_sequences_that_take_all_the_time_are_named():
    X = [np.zeros(10)] * 5 + [np.zeros(2100)]
    with pytest.warns(UserWarning, match="up to 2100 tokens, .* of 10, .* max_length=200"):
        regress(X)
    with pytest.warns(UserWarning, match="longer than max_length 200"):
        regress(X, max_length=200)


def test_learned_positions_end_where_training_ended():
    X = [np.arange(3.0), np.arange(5.0)]
    model = regress(X, architecture=Architecture(positions="learned"))
    assert model.encoder_.reader.max_length == 5
    message = r"longer than the longest in training, 5, .* Fit with architecture__positions="
    with pytest.warns(UserWarning, match=message):
        found = model.predict([np.arange(9.0)])
    np.testing.assert_array_equal(found, model.predict([np.arange(5.0)]))
    # The remedy that the warning names predicts without a warning.
    model.set_params(architecture__positions="sinusoidal").fit(X, [0.0, 1.0])
    assert model.predict([np.arange(9.0)]).shape == (1,)


def test_warning_of_cut_sequences_names_the_line_that_predicts():
    model = regress(["abc", "ab"], tokenizer="characters", max_length=3, baseline=False)
    with pytest.warns(UserWarning, match="longer than max_length") as caught:
        model.predict(["abcdef"])
    assert caught[0].filename == __file__
