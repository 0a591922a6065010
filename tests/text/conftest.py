"""A vocabulary of every tokenizer, and what it was learned from."""

import pytest

from sklearn_attention.text import learn_vocabulary
from sklearn_attention.text._learn import TOKENIZERS

TEXTS = ["the cat sat on the mat", "a cat is a cat", "  tabs\tand\nlines "]
IDS = [[700, 3, 3], [3, 12], [700, 700, 9]]


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return request.param


@pytest.fixture
def sequences(tokenizer):
    return IDS if tokenizer == "ids" else TEXTS


@pytest.fixture
def vocabulary(tokenizer, sequences):
    return learn_vocabulary(tokenizer, sequences)
