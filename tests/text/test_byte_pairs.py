"""Byte pairs know every text, and join what is frequent."""

import string
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_attention.text import learn_vocabulary
from sklearn_attention.text._special import END

TEXTS = ["the cat sat on the mat", "a cat is a cat"]
BYTE_PAIRS = learn_vocabulary("byte_pairs", TEXTS)


def test_nothing_is_unknown_to_byte_pairs():
    for text in ["naïve 😀", "<padding><unknown>", "\0\n\r \ufffd", string.printable]:
        ids = BYTE_PAIRS.encode(text)
        assert ids.min() > END
        assert BYTE_PAIRS.decode(ids) == text


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_byte_pairs_give_every_text_back(text):
    assert BYTE_PAIRS.decode(BYTE_PAIRS.encode(text)) == text


def test_half_a_character_has_no_bytes():
    for refused in (BYTE_PAIRS.encode, lambda text: learn_vocabulary("byte_pairs", [text])):
        with pytest.raises(ValueError, match="half a character at position 1"):
            refused("a\ud800")
    assert learn_vocabulary("characters", ["a\ud800"]).encode("\ud800").tolist() == [5]


def test_byte_pairs_join_what_is_frequent():
    texts = ["low lower lowest"] * 20
    assert len(learn_vocabulary("byte_pairs", texts, max_tokens=260)) == 260
    joined = learn_vocabulary("byte_pairs", texts, max_tokens=263)
    assert len(joined) == 263
    assert joined.tokens[-3:] == ["lo", "low", "Ġlow"]
    assert len(joined.encode("low")) == 1


def test_byte_pairs_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r'pip install "sklearn-attention\[text\]"'):
        learn_vocabulary("byte_pairs", TEXTS)
