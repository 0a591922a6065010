"""Which tokens are learned, and which are left out."""

import pytest

from sklearn_attention.text import learn_vocabulary

TEXTS = ["the cat sat on the mat", "a cat is a cat"]
IDS = [[700, 3, 3], [3, 12]]


def test_rare_tokens_are_unknown():
    texts = ["A rose is a rose.", "is it?"]
    vocabulary = learn_vocabulary("lower_words", texts, min_count=2)
    assert vocabulary.tokens[4:] == ["a", "is", "rose"]
    assert vocabulary.decode(vocabulary.encode("It is A ROSE")) == "\ufffd is a rose"
    # Where none is frequent all count.
    whole = learn_vocabulary("words", texts, min_count=9).tokens
    assert whole == learn_vocabulary("words", texts).tokens


@pytest.mark.parametrize("max_tokens", [5, 6, 8, 9, 10])
def test_the_most_frequent_are_kept(max_tokens):
    vocabulary = learn_vocabulary("characters", ["dccbbbaaaa", "ee"], max_tokens=max_tokens)
    assert vocabulary.tokens[4:] == ["a", "b", "c", "e", "d"][: max_tokens - 4]
    numbers = learn_vocabulary("ids", [[9, 9, 9, 1, 1, 5]], max_tokens=6)
    assert numbers.tokens[4:] == ["1", "9"]


def test_the_order_of_sequences_makes_no_difference(tokenizer, sequences, vocabulary):
    backwards = learn_vocabulary(tokenizer, sequences[::-1])
    assert backwards.tokens == vocabulary.tokens


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
