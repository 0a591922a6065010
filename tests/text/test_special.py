"""Special tokens, whose numbers stored vocabularies and networks rely on."""

import unicodedata

from sklearn_attention.text._special import (
    END,
    PADDING,
    REPLACEMENT,
    SPECIAL_TOKENS,
    START,
    UNKNOWN,
)


def test_numbers_are_the_positions_of_the_names():
    assert (PADDING, UNKNOWN, START, END) == (0, 1, 2, 3)
    assert SPECIAL_TOKENS[PADDING] == "<padding>"
    assert SPECIAL_TOKENS[UNKNOWN] == "<unknown>"
    assert SPECIAL_TOKENS[START] == "<start>"
    assert SPECIAL_TOKENS[END] == "<end>"
    assert len(SPECIAL_TOKENS) == 4


def test_what_is_unknown_is_one_character_that_no_word_has():
    assert unicodedata.name(REPLACEMENT) == "REPLACEMENT CHARACTER"
    assert not REPLACEMENT.isalnum()
