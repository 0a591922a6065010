"""What form X has."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention.transformer._forms import form_of


@pytest.mark.parametrize(
    ("X", "form"),
    [
        (np.zeros((2, 3)), "features"),
        (np.zeros((2, 3), dtype=int), "features"),
        ([[1.0, 2.0], [3.0, 4.0]], "features"),
        ([np.zeros(2), np.zeros(2)], "features"),
        (pd.DataFrame({"a": [1, 2]}), "features"),
        (pd.DataFrame({"a": ["u", "v"]}), "features"),
        (pd.DataFrame({"a": ["u", "v w"]}), "text"),
        (pd.DataFrame({"a": ["很好", "不好"]}), "text"),
        (pd.DataFrame({"a": ["ดีมาก", "ไม่ดี"]}), "text"),
        (pd.DataFrame({"a": ["很好", "不好"] * 3}), "features"),
        (pd.DataFrame({"a": ["A–1", "A–2"]}), "features"),
        (np.zeros((2, 3, 1)), "steps"),
        (np.zeros((2, 3, 1), dtype=int), "steps"),
        ([np.zeros((2, 3)), np.zeros((4, 3))], "steps"),
        ([[[1, 2]], [[3, 4], [5, 6]]], "steps"),
        (((0.5, [1.0]), (1.5, [2.0, 3.0])), "steps"),  # whose error names a sequence
        ([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [2.0, 3.0]})], "steps"),
        ([pd.Series([1.0], [7]), pd.Series([2.0, 3.0], [7, 8])], "steps"),
        ([[1.0, 2.0], [3.0]], "steps"),
        ([np.zeros(2), [1]], "steps"),
        ([[1, 2], [3]], "text"),
        (["a", "b c"], "text"),
        (("a", "b c"), "text"),
        (np.array(["a", "b c"]), "text"),
        (np.array(["a", "b c"], dtype=object), "text"),
        (pd.Series(["a", "b c"]), "text"),
        (pd.Series([[1, 2], [3]]), "text"),
        (pd.Series([pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])]), "steps"),
    ],
)
def test_goes_by_what_there_is(X, form):
    assert form_of(X) == form
