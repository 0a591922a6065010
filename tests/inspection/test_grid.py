"""Columns by name or by position, and rows that differ in one of them alone."""

import re

import pandas as pd
import pytest

from sklearn_attention.inspection._grid import column_of

FRAME = pd.DataFrame({"size": [1, 2, 6], "age": [0.5, 0.1, 0.3], "kind": list("bab")})
ARRAY = FRAME[["size", "age"]].to_numpy()


def test_names_of_arrays():
    assert column_of(ARRAY, 1)[0] == "x1"
    assert column_of(ARRAY[:, :1], 0)[0] == "x"
    assert column_of(pd.DataFrame(ARRAY), 1)[0] == "x1"
    with pytest.raises(ValueError, match=r"X has shape \(3,\): pass a table"):
        column_of(ARRAY[:, 0], 0)


@pytest.mark.parametrize("feature", ["b", -1, [0, 1]])
def test_what_is_no_column(feature):
    with pytest.raises(ValueError, match=re.escape(f"feature={feature!r} is not a column")):
        column_of(FRAME, feature)
    with pytest.raises(ValueError, match="feature='kind' is not numeric"):
        column_of(FRAME, "kind")
