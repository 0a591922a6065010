"""The form of rows is that of the fit."""

import numpy as np
import pandas as pd
import pytest
from slow_cases import slow_but
from tiny_encoders import TINY, regress

from sklearn_attention import Training, TransformerRegressor

pytestmark = pytest.mark.usefixtures("few_convolutions", "few_trees")


def objects(rows):
    """An array of objects, each of which is a row."""
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found


TEXTS = ["to be", "or not", "to be", "or not", "to be"]
NUMBERS = np.random.default_rng(0).normal(size=(5, 3))
RAGGED = [[1.0, 2.0], [3, 4], [5], [6.0, 0.5], [7.5]]
LEVELS = pd.DataFrame({"a": ["u v", "w x", "u v", "w x", "u v"], "b": np.arange(5.0)})
FORMS = {
    "array": ("auto", NUMBERS, "features"),
    "frame": ("auto", LEVELS, "features"),
    "frame of few texts": ("auto", pd.DataFrame({"a": TEXTS}), "features"),
    "frame of one level": ("features", pd.DataFrame({"a": TEXTS}), "features"),
    "lists": ("auto", NUMBERS.tolist(), "features"),
    "lists of integers": ("features", [[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]], "features"),
    "list of arrays": ("auto", list(NUMBERS), "features"),
    "3-d array": ("auto", NUMBERS[..., None], "steps"),
    "lists of lists": ("auto", NUMBERS[..., None].tolist(), "steps"),
    "lists of steps": ("auto", RAGGED, "steps"),
    "series of steps": ("auto", pd.Series(RAGGED, index=[3, 4, 5, 6, 7]), "steps"),
    "array of steps": ("auto", objects(RAGGED), "steps"),
    "table of steps": ("steps", NUMBERS, "steps"),
    "frame of steps": ("steps", pd.DataFrame(NUMBERS, columns=list("abc")), "steps"),
    "lists of as many steps": ("steps", [[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]], "steps"),
    "texts": ("auto", TEXTS, "text"),
    "series of texts": ("auto", pd.Series(TEXTS), "text"),
    "array of texts": ("auto", np.array(TEXTS), "text"),
    "frame of texts": ("text", pd.DataFrame({"a": TEXTS}), "text"),
    "ids": ("text", [[1, 2], [3, 4], [5], [5, 6], [7]], "text"),
    "series of ids": ("text", pd.Series([[1, 2], [3, 4], [5], [5, 6], [7]]), "text"),
    "array of ids": ("text", np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]]), "text"),
}
QUICK = {"frame of few texts", "lists of integers", "array of steps", "lists of steps", "ids"}


@pytest.mark.parametrize("name", slow_but(QUICK, FORMS))
def test_some_rows_are_predicted_as_all(name):
    tokens, X, form = FORMS[name]
    y = np.array([1.0, -2.0, 0.5, 3.0, 7.0])
    model = regress(X, y, tokens=tokens)
    assert model.tokens_ == form
    expected = model.predict(X)
    assert len(np.unique(expected)) > 1
    for first, last in [(0, 1), (0, 3), (1, 2), (1, 4), (2, 4)]:
        found = model.predict(X[first:last])
        np.testing.assert_allclose(found, expected[first:last], rtol=1e-4)


def test_rows_to_validate_with_have_the_form_of_the_fit():
    frame = pd.DataFrame({"a": ["to be", "or not"] * 6})
    y = np.arange(12.0)
    model = TransformerRegressor(**TINY | {"training": Training(max_steps=2)})
    model.fit(frame, y, X_val=frame[:3], y_val=y[:3])
    assert model.tokens_ == "features"


def test_a_fit_forgets_what_another_form_had():
    model = regress(NUMBERS)
    assert {"columns_", "n_features_in_"} <= vars(model).keys()
    model.fit(TEXTS, np.arange(5))
    assert not {"columns_", "scales_", "n_features_in_"} & vars(model).keys()
