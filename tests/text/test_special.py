"""Special tokens, whose numbers stored vocabularies and networks rely on, and padding."""

import numpy as np
import pytest

from sklearn_attention.text import pad
from sklearn_attention.text._special import END, PADDING, SPECIAL_TOKENS, START, UNKNOWN


def test_numbers_are_the_positions_of_the_names():
    assert (PADDING, UNKNOWN, START, END) == (0, 1, 2, 3)
    assert SPECIAL_TOKENS == ("<padding>", "<unknown>", "<start>", "<end>")


@pytest.mark.parametrize("length", [None, 5])
def test_padding_is_behind_the_end(length):
    sequences = [[4, 0, 6], np.array([7]), []]
    ids, real = pad(sequences, length=length)
    assert ids.dtype == np.int64
    assert real.dtype == bool
    assert ids.shape == real.shape == (3, length or 3)
    for row, mask, sequence in zip(ids, real, sequences, strict=True):
        assert row[: len(sequence)].tolist() == list(sequence)
        assert (row[len(sequence) :] == PADDING).all()
        assert mask.tolist() == [True] * len(sequence) + [False] * (len(row) - len(sequence))


@pytest.mark.parametrize(
    ("sequences", "length", "message"),
    [
        ([[1], [1, 2, 3]], 2, "length=2 is too short for a sequence of 3 tokens"),
        ([[1]], 2.5, "length=2.5 is not valid"),
        ([1, 2], None, "a list of lists of ids"),
    ],
)
def test_what_cannot_be_padded(sequences, length, message):
    with pytest.raises(ValueError, match=message):
        pad(sequences, length=length)
