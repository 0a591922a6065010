"""What users may pass as texts and as sequences of ids, and what they are told otherwise."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention.text._check import check_sequences

TEXTS = ["to be", "or not"]
IDS = [[5, 0, 7], [7, 2, 1]]


@pytest.mark.parametrize(
    "given", [tuple(TEXTS), np.array(TEXTS), pd.Series(TEXTS, index=[4, 2])]
)
def test_texts(given):
    kind, sequences = check_sequences("X", given)
    assert kind == "text"
    assert sequences == TEXTS
    assert all(type(text) is str for text in sequences)


@pytest.mark.parametrize(
    "given",
    [
        IDS,
        np.array(IDS, dtype=np.uint8),
        list(np.array(IDS, dtype=np.int32)),
        pd.Series(IDS),
        [pd.Series(ids, index=[3, 1, 2]) for ids in IDS],
    ],
)
def test_ids(given):
    kind, sequences = check_sequences("X", given)
    assert kind == "ids"
    assert [ids.dtype for ids in sequences] == [np.int64] * 2
    assert [ids.tolist() for ids in sequences] == IDS


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("to be", r"X='to be' is a single text: pass a list of texts"),
        ([], r"X=\[\] has no sequence: pass at least one"),
        (None, "X=None is not a list: pass"),
        ({"a": 1}, r"X=\{'a': 1\} is not a list: pass"),
        ((text for text in TEXTS), r"can be read only once: pass list\(X\)"),
        (pd.DataFrame({"a": TEXTS}), r"X has shape \(2, 1\).* one column of a table"),
        (np.ones((2, 3)), r"X has shape \(2, 3\), which"),
        (["to be", ""], r"X\[1\]='' is empty: leave it out"),
        ([[1], []], r"X\[1\]=\[\] is empty"),
        (["to be", [1]], r"X\[1\]=\[1\] is of another kind .* which are texts"),
        ([[1], "to be"], r"X\[1\]='to be' is of another kind .* which are sequences of ids"),
        (pd.Series(["to be", pd.NA], dtype="string"), r"X\[1\]=<NA> is missing"),
        ([[1, np.nan]], r"X\[0\]=\[1, nan\] has a missing value"),
        ([[1], [1.5]], r"X\[1\]=\[1.5\] is not a sequence of integers"),
        ([[1], [True]], r"X\[1\]=\[True\] is not a sequence of integers"),
        ([[2**63]], "a sequence of integers"),
        ([[1], [3, -2]], r"X\[1\]=\[3, -2\] has a negative id"),
        ([1, 2], r"X\[0\]=1 is not a sequence: pass"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        check_sequences("X", given)


def test_sequences_may_be_empty_where_that_means_something():
    assert check_sequences("prefixes", ["", "a"], empty=True) == ("text", ["", "a"])
    kind, ((), ids) = check_sequences("prefixes", [[], [1]], empty=True)
    assert kind == "ids"
    assert ids.tolist() == [1]
