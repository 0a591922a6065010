"""Which tokens are learned, and which are left out."""

import re
import string
import sys

import numpy as np
import pytest

from sklearn_attention.text import _learn, learn_vocabulary
from sklearn_attention.text._learn import choose_tokenizer
from sklearn_attention.text._special import END

TEXTS = ["the cat sat on the mat", "a cat is a cat"]
IDS = [[700, 3, 3], [3, 12]]
BYTE_PAIRS = learn_vocabulary("byte_pairs", TEXTS)


def test_rare_tokens_are_unknown():
    texts = ["A rose is a rose.", "is it?"]
    vocabulary = learn_vocabulary("lower_words", texts, min_count=2)
    assert vocabulary.tokens[4:] == ["a", "is", "rose"]
    assert vocabulary.decode(vocabulary.encode("It is A ROSE")) == "\ufffd is a rose"
    # Where none is frequent all count.
    whole = learn_vocabulary("words", texts, min_count=9).tokens
    assert whole == learn_vocabulary("words", texts).tokens


def test_words_are_doubted_where_most_occur_once():
    # Marks do not count: each sentence has one word of its own.
    texts = {"X": ["今天很好。", "昨天不好。", "明天。"]}
    message = r"100% of the words in X .*'auto' takes characters. Pass 'characters', 'lower_w"
    with pytest.warns(UserWarning, match=message):
        assert choose_tokenizer("auto", texts, "lower_words") == "characters"
    for tokenizer in ("lower_words", "words"):
        with pytest.warns(
            UserWarning, match=r"texts will be unknown\. Pass tokenizer='characters' or"
        ):
            assert choose_tokenizer(tokenizer, texts) == tokenizer
    assert choose_tokenizer("characters", texts) == "characters"
    assert choose_tokenizer("auto", {"X": TEXTS}, "lower_words") == "lower_words"


@pytest.mark.parametrize("max_tokens", [5, 8, 10])
def test_the_most_frequent_are_kept(max_tokens):
    vocabulary = learn_vocabulary("characters", ["dccbbbaaaa", "ee"], max_tokens=max_tokens)
    assert vocabulary.tokens[4:] == ["a", "b", "c", "e", "d"][: max_tokens - 4]
    numbers = learn_vocabulary("ids", [[9, 9, 9, 1, 1, 5]], max_tokens=6)
    assert numbers.tokens[4:] == ["1", "9"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("letters", TEXTS), {}, "tokenizer='letters' is unknown: choose from"),
        (("words", TEXTS), {"max_tokens": 4}, "max_tokens=4 is not valid: pass an integer at"),
        (("words", TEXTS), {"min_count": "few"}, "min_count='few' is not valid"),
        (("byte_pairs", TEXTS), {"max_tokens": 259}, "max_tokens=259 .* at least 260"),
        (("words", IDS), {}, "tokenizer='words' does not fit .* pass tokenizer='ids'"),
        (("ids", TEXTS), {}, "tokenizer='ids' does not fit .* choose a tokenizer of texts"),
        (("words", [" ", "\n"]), {}, "all blank"),
        (("words", "to be"), {}, "single text"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        learn_vocabulary(*arguments, **options)


def test_nothing_is_unknown_to_byte_pairs():
    for text in ["naïve 😀", "<padding><unknown>", "\0\n\r \ufffd", string.printable]:
        ids = BYTE_PAIRS.encode(text)
        assert ids.min() > END
        assert BYTE_PAIRS.decode(ids) == text


def test_half_a_character_has_no_bytes():
    for refused in (BYTE_PAIRS.encode, lambda text: learn_vocabulary("byte_pairs", [text])):
        with pytest.raises(
            ValueError,
            match=r"pair at position 1: pass text\.encode\(errors='replace'\)\.decode\(\)\.",
        ):
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


def test_byte_pairs_of_a_long_run_are_learned_from_its_parts(monkeypatch):
    """The library would take time in proportion to the square of its length."""
    run = "".join(np.random.default_rng(0).choice(list("acgt"), 2500))
    parts = _learn._LONG_RUN.split(f"a {run} b")
    assert "".join(parts) == f"a {run} b"
    assert max(map(len, parts)) == 1000
    vocabulary = learn_vocabulary("byte_pairs", [run], max_tokens=300)
    assert vocabulary.decode(vocabulary.encode(run)) == run
    texts = ["to be or not to be, " * 60, "that is the question"]
    usual = learn_vocabulary("byte_pairs", texts, max_tokens=300)
    monkeypatch.setattr(_learn, "_LONG_RUN", re.compile("(?!)"))
    assert learn_vocabulary("byte_pairs", texts, max_tokens=300).tokens == usual.tokens
    others = learn_vocabulary("byte_pairs", [run], max_tokens=300).tokens
    assert len(set(vocabulary.tokens) ^ set(others)) < 6


@pytest.mark.filterwarnings("error")
def test_words_are_learned_where_half_of_them_occur_once():
    assert choose_tokenizer("auto", {"X": ["to be, or to"]}, "lower_words") == "lower_words"
    with pytest.raises(UserWarning, match="60% of the words in X occur only once"):
        choose_tokenizer("auto", {"X": ["to be, or not to"]}, "lower_words")
