"""Texts and ids to tokens and back."""

import pickle
import re

import numpy as np
import pytest

from sklearn_attention.text import Vocabulary, learn_vocabulary
from sklearn_attention.text._special import END, PADDING, START, UNKNOWN

SPECIAL = ["<padding>", "<unknown>", "<start>", "<end>"]


def test_what_was_learned_from_comes_back(tokenizer, sequences, vocabulary):
    for sequence in sequences:
        ids = vocabulary.encode(sequence)
        assert ids.dtype == np.int64
        assert ids.min() > END
        expected = sequence
        if tokenizer == "words":
            expected = " ".join(sequence.split())
        if tokenizer == "lower_words":
            expected = " ".join(re.findall(r"\w+|[^\w\s]", sequence.lower()))
        assert vocabulary.decode(ids) == expected


@pytest.mark.parametrize("word", ["สวัสดี", "हिन्दी", "cafe\N{COMBINING ACUTE ACCENT}"])
def test_marks_of_letters_belong_to_words(word):
    vocabulary = learn_vocabulary("lower_words", [f"{word}, {word}!"])
    assert sorted(vocabulary.tokens[4:]) == sorted([word, ",", "!"])
    assert Vocabulary.from_state(vocabulary.state()).tokens == vocabulary.tokens


def test_special_tokens_come_first_and_are_left_out(sequences, vocabulary):
    assert vocabulary.tokens[:4] == SPECIAL
    assert len(vocabulary) == len(vocabulary.tokens) == len(set(vocabulary.tokens))
    inner = vocabulary.encode(sequences[0])
    around = np.concatenate([[START], inner, [END, PADDING, PADDING]])
    assert vocabulary.decode(around) == vocabulary.decode(inner)


def test_ids_of_tokens_are_their_positions():
    vocabulary = learn_vocabulary("words", ["the cat sat on the mat"])
    for position, token in enumerate(vocabulary.tokens[4:], 4):
        assert vocabulary.encode(token).tolist() == [position]
    ids = learn_vocabulary("ids", [[700, 3, 3], [3, 12], [700, 700, 9]])
    assert ids.tokens[4:] == ["3", "9", "12", "700"]
    assert ids.encode([9, 700]).tolist() == [5, 7]


def test_unknown_tokens_are_shown_in_texts_and_left_out_of_ids():
    characters = learn_vocabulary("characters", ["abc"])
    assert characters.encode("axé").tolist() == [4, UNKNOWN, UNKNOWN]
    assert characters.decode(characters.encode("axb")) == "a\N{REPLACEMENT CHARACTER}b"
    words = learn_vocabulary("words", ["one two"])
    assert words.decode(words.encode("one three")) == "one \N{REPLACEMENT CHARACTER}"
    ids = learn_vocabulary("ids", [[3, 3], [9]])
    assert ids.encode([3, 4, 9]).tolist() == [4, UNKNOWN, 5]
    assert ids.decode([4, UNKNOWN, 5]) == [3, 9]
    pairs = learn_vocabulary("byte_pairs", ["a cat is a cat"])
    found = pairs.decode([*pairs.encode("a é"), UNKNOWN, *pairs.encode("b"), UNKNOWN])
    assert found == "a é\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"


def test_state_holds_plain_values_and_makes_the_same_vocabulary(sequences, vocabulary):
    state = vocabulary.state()
    assert {type(value) for value in state.values()} <= {str, np.ndarray}
    for same in (Vocabulary.from_state(state), pickle.loads(pickle.dumps(vocabulary))):
        assert same.tokenizer == vocabulary.tokenizer
        assert same.tokens == vocabulary.tokens
        np.testing.assert_array_equal(
            same.encode(sequences[1]), vocabulary.encode(sequences[1])
        )


def test_everything_a_user_passes(sequences, vocabulary):
    encoded = vocabulary.encode_all("X", sequences)
    for ids, sequence in zip(encoded, sequences, strict=True):
        np.testing.assert_array_equal(ids, vocabulary.encode(sequence))
    other = ["a cat"] if vocabulary.kind == "ids" else [[3, 12]]
    with pytest.raises(ValueError, match=r"X has (ids|texts), but the vocabulary was learned"):
        vocabulary.encode_all("X", other)


@pytest.mark.parametrize("number", [-1, 10**6])
def test_numbers_that_are_no_tokens(number):
    vocabulary = learn_vocabulary("words", ["the cat sat on the mat"])
    with pytest.raises(ValueError, match=f"ids contain {number}, but the vocabulary has"):
        vocabulary.decode([5, number])


def test_the_number_after_the_last_token_is_refused(vocabulary):
    last = len(vocabulary) - 1
    assert vocabulary.decode([last])
    with pytest.raises(ValueError, match=f"ids contain {last + 1}, .* from 0 to {last}"):
        vocabulary.decode([last, last + 1])
