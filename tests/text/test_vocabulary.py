"""Texts and ids to tokens and back."""

import pickle
import re
import string
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_attention.text import (
    END,
    PADDING,
    START,
    TOKENIZERS,
    UNKNOWN,
    Vocabulary,
    learn_vocabulary,
)

TEXTS = ["the cat sat on the mat", "a cat is a cat", "  tabs\tand\nlines "]
IDS = [[700, 3, 3], [3, 12], [700, 700, 9]]
SPECIAL = ["<padding>", "<unknown>", "<start>", "<end>"]


def sequences_for(tokenizer):
    return IDS if tokenizer == "ids" else TEXTS


def learned(tokenizer, **options):
    return learn_vocabulary(tokenizer, sequences_for(tokenizer), **options)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_what_was_learned_from_comes_back(tokenizer):
    vocabulary = learned(tokenizer)
    for sequence in sequences_for(tokenizer):
        ids = vocabulary.encode(sequence)
        assert ids.dtype == np.int64
        assert ids.min() > END
        expected = sequence
        if tokenizer == "words":
            expected = " ".join(sequence.split())
        if tokenizer == "lower_words":
            expected = " ".join(re.findall(r"\w+|[^\w\s]", sequence.lower()))
        assert vocabulary.decode(ids) == expected


def test_rare_tokens_are_unknown():
    texts = ["A rose is a rose.", "is it?"]
    vocabulary = learn_vocabulary("lower_words", texts, min_count=2)
    assert vocabulary.tokens[4:] == ["a", "is", "rose"]
    assert vocabulary.decode(vocabulary.encode("It is A ROSE")) == "\ufffd is a rose"
    # Where none is frequent all count.
    whole = learn_vocabulary("words", texts, min_count=9).tokens
    assert whole == learn_vocabulary("words", texts).tokens


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_special_tokens_come_first_and_are_left_out(tokenizer):
    vocabulary = learned(tokenizer)
    assert vocabulary.tokens[:4] == SPECIAL
    assert len(vocabulary) == len(vocabulary.tokens) == len(set(vocabulary.tokens))
    inner = vocabulary.encode(sequences_for(tokenizer)[0])
    around = np.concatenate([[START], inner, [END, PADDING, PADDING]])
    assert vocabulary.decode(around) == vocabulary.decode(inner)


def test_ids_of_tokens_are_their_positions():
    vocabulary = learned("words")
    for position, token in enumerate(vocabulary.tokens[4:], 4):
        assert vocabulary.encode(token).tolist() == [position]
    ids = learned("ids")
    assert ids.tokens[4:] == ["3", "9", "12", "700"]
    assert ids.encode([9, 700]).tolist() == [5, 7]


@pytest.mark.parametrize("max_tokens", [5, 6, 8, 9, 10])
def test_the_most_frequent_are_kept(max_tokens):
    vocabulary = learn_vocabulary("characters", ["dccbbbaaaa", "ee"], max_tokens=max_tokens)
    assert vocabulary.tokens[4:] == ["a", "b", "c", "e", "d"][: max_tokens - 4]
    numbers = learn_vocabulary("ids", [[9, 9, 9, 1, 1, 5]], max_tokens=6)
    assert numbers.tokens[4:] == ["1", "9"]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_the_order_of_sequences_makes_no_difference(tokenizer):
    backwards = sequences_for(tokenizer)[::-1]
    assert learned(tokenizer).tokens == learn_vocabulary(tokenizer, backwards).tokens


def test_unknown_characters_and_words():
    characters = learn_vocabulary("characters", ["abc"])
    assert characters.encode("axé").tolist() == [4, UNKNOWN, UNKNOWN]
    assert characters.decode(characters.encode("axb")) == "a\N{REPLACEMENT CHARACTER}b"
    words = learn_vocabulary("words", ["one two"])
    assert words.decode(words.encode("one three")) == "one \N{REPLACEMENT CHARACTER}"


def test_unknown_ids_are_left_out():
    vocabulary = learned("ids")
    assert vocabulary.encode([3, 4, 9]).tolist() == [4, UNKNOWN, 5]
    assert vocabulary.decode([4, UNKNOWN, 5]) == [3, 9]


def test_nothing_is_unknown_to_byte_pairs():
    vocabulary = learned("byte_pairs")
    for text in ["naïve 😀", "<padding><unknown>", "\0\n\r \ufffd", string.printable]:
        ids = vocabulary.encode(text)
        assert ids.min() > END
        assert vocabulary.decode(ids) == text


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_byte_pairs_give_every_text_back(text):
    assert BYTE_PAIRS.decode(BYTE_PAIRS.encode(text)) == text


BYTE_PAIRS = learn_vocabulary("byte_pairs", TEXTS)


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


def test_unknown_among_byte_pairs_is_shown():
    ids = [*BYTE_PAIRS.encode("a é"), UNKNOWN, *BYTE_PAIRS.encode("b"), UNKNOWN]
    assert BYTE_PAIRS.decode(ids) == "a é\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_state_holds_plain_values_and_makes_the_same_vocabulary(tokenizer):
    vocabulary = learned(tokenizer)
    state = vocabulary.state()
    assert {type(value) for value in state.values()} <= {str, np.ndarray}
    for same in (Vocabulary.from_state(state), pickle.loads(pickle.dumps(vocabulary))):
        assert same.tokenizer == vocabulary.tokenizer
        assert same.tokens == vocabulary.tokens
        sequence = sequences_for(tokenizer)[1]
        np.testing.assert_array_equal(same.encode(sequence), vocabulary.encode(sequence))
        assert same.decode(same.encode(sequence)) == vocabulary.decode(
            vocabulary.encode(sequence)
        )


def test_a_state_keeps_characters_that_arrays_of_text_would_drop():
    vocabulary = learn_vocabulary("characters", ["a\0\0 \n"])
    assert Vocabulary.from_state(vocabulary.state()).tokens == vocabulary.tokens


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_everything_a_user_passes(tokenizer):
    vocabulary = learned(tokenizer)
    sequences = sequences_for(tokenizer)
    encoded = vocabulary.encode_all("X", sequences)
    for ids, sequence in zip(encoded, sequences, strict=True):
        np.testing.assert_array_equal(ids, vocabulary.encode(sequence))
    (nothing,) = vocabulary.encode_all("X", [sequences[0][:0]], empty=True)
    assert nothing.shape == (0,)
    assert nothing.dtype == np.int64
    assert vocabulary.decode(nothing) == sequences[0][:0]
    other = TEXTS if tokenizer == "ids" else IDS
    with pytest.raises(ValueError, match=r"X has (ids|texts), but the vocabulary was learned"):
        vocabulary.encode_all("X", other)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("letters", TEXTS), {}, "tokenizer='letters' is unknown: choose from"),
        (("words", TEXTS), {"max_tokens": 4}, "max_tokens=4 is not valid: pass an integer at"),
        (("words", TEXTS), {"max_tokens": 5.5}, "max_tokens=5.5 is not valid"),
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


@pytest.mark.parametrize("number", [-1, 10**6])
def test_numbers_that_are_no_tokens(number):
    vocabulary = learned("words")
    with pytest.raises(ValueError, match=f"ids contain {number}, but the vocabulary has"):
        vocabulary.decode([5, number])


def test_byte_pairs_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r'pip install "sklearn-attention\[text\]"'):
        learn_vocabulary("byte_pairs", TEXTS)
