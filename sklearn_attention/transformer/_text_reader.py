"""Texts and sequences of token ids: what users pass, and ids as a network takes them."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._base import warn_user
from ..text import Vocabulary, learn_vocabulary
from ..text._check import check_sequences
from ..text._learn import choose_tokenizer
from ..text._special import UNKNOWN
from ._forms import SequenceRows, cut, learn_length, texts_of


@dataclass(frozen=True, eq=False)
class TextReader:
    """Reads texts, or sequences of ids, by a vocabulary's state, up to `max_length` tokens."""

    vocabulary: dict
    max_length: int | None

    form = "text"

    @classmethod
    def learn(cls, X, kept, estimator, architecture):
        """A reader, and the rows that it was learned from, which the mask `kept` chooses."""
        kind, texts = check_sequences("X", texts_of(X), empty=True)
        if kind == "ids" and estimator.tokens == "auto" and estimator.tokenizer != "ids":
            warn_user(
                "X has sequences of integers, which are read as token ids: pass tokens='text' "
                "if they are ids, and tokens='steps' if they are series of numbers."
            )
        check_consistent_length(texts, kept)
        texts = [texts[row] for row in np.flatnonzero(kept)]
        full = [text for text in texts if len(text)]
        if not full:
            raise ValueError("X has only empty texts: pass some that have tokens.")
        tokenizer = "ids"
        if kind == "text":
            tokenizer = choose_tokenizer(estimator.tokenizer, {"X": full}, "lower_words")
        # Words that occur once are learned as the unknown one, so that it is learned too.
        fewest = 2 if tokenizer in ("words", "lower_words") else 1
        options = {"max_tokens": estimator.max_tokens, "min_count": fewest}
        vocabulary = learn_vocabulary(tokenizer, full, **options)
        rows = _text_rows(vocabulary, texts)
        max_length = learn_length(rows.lengths, estimator.max_length, architecture)
        return cls(vocabulary.state(), max_length), cut(rows, max_length, estimator)

    def read(self, X, estimator):
        """SequenceRows of texts or ids, as they were in training; the precision is double."""
        rows = _text_rows(Vocabulary.from_state(self.vocabulary), texts_of(X))
        return cut(rows, self.max_length, estimator), np.dtype(np.float64)

    def tokens_of(self, rows):
        """Rows as the network takes them."""
        return rows

    def token_arguments(self):
        """Arguments of the network's tokens."""
        return {"n_tokens": len(Vocabulary.from_state(self.vocabulary))}


def _text_rows(vocabulary, X):
    """Texts as token ids; a blank one is one unknown token."""
    encoded = vocabulary.encode_all("X", X, empty=True)
    encoded = [ids if len(ids) else np.array([UNKNOWN]) for ids in encoded]
    return SequenceRows(np.concatenate(encoded), np.array([len(ids) for ids in encoded]))
