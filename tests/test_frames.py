"""Tables of any form become frames: cells become numbers or are named, and rows have labels."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_attention import (
    Columns,
    NadarayaWatsonRegressor,
)
from sklearn_attention._frames import numeric_table


def test_objects_are_numbers():
    """In place of them; other columns, the index and the names stay as they are."""
    cells = [1, 2.5, True, Decimal("0.5"), "3.5", None, pd.NA, np.nan]
    frame = pd.DataFrame({"a": range(8), "b": pd.Series(cells, dtype=object)}, range(8, 0, -1))
    frame["b"] = cells
    encoded = Columns.numbers(2).encode(frame)
    np.testing.assert_array_equal(encoded["b"], [1, 2.5, 1, 0.5, 3.5, *[np.nan] * 3])
    pd.testing.assert_frame_equal(encoded[["a"]], frame[["a"]])
    # Of which columns are a category is asked of texts alone.
    mixed = pd.DataFrame({"n": pd.Series([1, 2.5], dtype=object), "c": ["a", "b"]})
    assert Columns.learn(mixed).kinds == ("numeric", "unordered")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["x", 1], r"texts in column 'b', such as 'x', not numeric \(.*encode it first"),
        ([1, {}], r"cells of type dict in column 'b', such as \{\}"),
        ([1, pd.NaT], "dates or times in column 'b', such as NaT"),
        (pd.Series([1, 10**400], dtype=object), r"cells of type int in column 'b'.* too large"),
    ],
)
def test_what_is_no_number_is_named(cells, words):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series(cells)})
    with pytest.raises((TypeError, ValueError), match=f"X has {words}"):
        Columns.numbers(2).encode(frame)


def test_columns_of_one_name_and_dicts_are_no_tables():
    twice = pd.DataFrame(np.ones((4, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match=r"^X has columns of the same name, .*: rename"):
        numeric_table(twice)
    with pytest.raises(TypeError, match=r"^X is a dict, .*: pass pandas.DataFrame\(X\)"):
        numeric_table({"a": [1.0]})


def test_remedies_for_tables_of_other_kinds():
    X = pd.DataFrame({"age": [1.0, 2.0, 3.0], "city": ["Rome", "Oslo", "Bern"]})
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(
        TypeError, match=r"X is a list of dicts.*: pass pandas.DataFrame\(X\)\."
    ):
        model.predict(X.to_dict("records"))
    for sparse_output in (True, False):
        encoder = OneHotEncoder(sparse_output=sparse_output)
        pipeline = make_pipeline(encoder, clone(model))
        if sparse_output:
            with pytest.raises(TypeError, match=r"OneHotEncoder in front sparse_output=False"):
                pipeline.fit(X[["city"]], [1.0, 2.0, 3.0])
        else:
            pipeline.fit(X[["city"]], [1.0, 2.0, 3.0])


def test_further_rows_of_labelled_ones_are_named_by_their_labels_or_positions():
    labels = [f"house {i}" for i in range(4)]
    first = pd.DataFrame({"a": np.arange(4.0), "b": 0.0}, labels)
    further = pd.DataFrame({"a": np.arange(4.0, 7), "b": 0.0})
    for names in ([4, 5, 6], ["x", "y", "z"]):
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit(first, first["a"])
        model.partial_fit(further.set_axis(names), further["a"].to_numpy())
        values = model.explain(first[:1], k=7).set_index("row")["value"]
        np.testing.assert_array_equal(values[[*labels, *names]], np.arange(7.0))
