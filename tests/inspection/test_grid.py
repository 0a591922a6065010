"""Columns by name or by position, and rows that differ in one of them alone."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from sklearn_attention.inspection._grid import (
    column_of,
    feature_names,
    row_names,
    rows_along,
)

FRAME = pd.DataFrame({"size": [1, 2, 6], "age": [0.5, 0.1, 0.3], "kind": list("bab")})
ARRAY = FRAME[["size", "age"]].to_numpy()


def test_features_without_names_are_numbered():
    y = [0.0, 1.0, 2.0]
    assert feature_names(LinearRegression().fit(ARRAY, y)) == ["x0", "x1"]
    assert feature_names(LinearRegression().fit(FRAME[["age", "size"]], y)) == ["age", "size"]


@pytest.mark.parametrize(("feature", "name"), [("age", "age"), (1, "age"), (0, "size")])
def test_a_column_has_a_name_and_numbers(feature, name):
    written, found = column_of(FRAME, feature)
    assert written == name
    assert found.dtype == np.float64
    assert found.tolist() == FRAME[name].tolist()


def test_names_of_arrays():
    assert column_of(ARRAY, 1)[0] == "x1"
    assert column_of(ARRAY[:, :1], 0)[0] == "x"
    assert column_of(pd.DataFrame(ARRAY), 1)[0] == "x1"
    with pytest.raises(ValueError, match=r"X has shape \(3,\): pass a table"):
        column_of(ARRAY[:, 0], 0)


def test_an_index_names_rows():
    assert row_names(ARRAY) is None
    assert row_names(FRAME) == ["0", "1", "2"]
    assert row_names(FRAME.set_index(["kind", "size"])) == ["b, 1", "a, 2", "b, 6"]
    days = pd.date_range("2024-01-01", periods=3)
    assert row_names(FRAME.set_index(days))[1] == row_names(FRAME["size"].set_axis(days))[1]
    assert row_names(FRAME.set_index(days))[1] == "2024-01-02"


@pytest.mark.parametrize("feature", ["b", -1, [0, 1]])
def test_what_is_no_column(feature):
    with pytest.raises(ValueError, match=re.escape(f"feature={feature!r} is not a column")):
        column_of(FRAME, feature)


def test_categories_are_not_numbers():
    with pytest.raises(ValueError, match="feature='kind' is not numeric"):
        column_of(FRAME, "kind")


def test_rows_differ_in_one_feature():
    frame = FRAME.astype({"kind": "category"})
    rows = rows_along(frame, "age", np.array([7.0, 8.0]))
    assert rows.columns.tolist() == ["size", "age", "kind"]
    assert rows.to_numpy().tolist() == [[2, 7, "b"], [2, 8, "b"]]
    assert rows["kind"].dtype == frame["kind"].dtype
    assert FRAME["age"].tolist() == [0.5, 0.1, 0.3]
