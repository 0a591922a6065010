"""Reader of texts and of sequences of token ids, which become ids of a learned vocabulary."""

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
    """Reader of texts, or of sequences of ids."""

    vocabulary: dict  # the state of a Vocabulary
    max_length: int | None  # how many tokens of a text are read at most; None means all

    form = "text"

    @classmethod
    def learn(cls, X, has_weight, estimator, architecture):
        """Learn a vocabulary from the texts with weight, and read these texts.

        Arguments and results are those of :meth:`TableReader.learn`, but for SequenceRows in
        place of TableRows.
        """
        kind, texts = check_sequences("X", texts_of(X), empty=True)
        if kind == "ids" and estimator.tokens == "auto" and estimator.tokenizer != "ids":
            warn_user(
                "X has sequences of integers, which are read as token ids: pass tokens='text' "
                "if they are ids, and tokens='steps' if they are series of numbers."
            )
        check_consistent_length(texts, has_weight)
        texts = [texts[row] for row in np.flatnonzero(has_weight)]
        nonempty = [text for text in texts if len(text)]
        if not nonempty:
            raise ValueError("X has only empty texts: pass some that have tokens.")
        tokenizer = "ids"
        if kind == "text":
            tokenizer = choose_tokenizer(estimator.tokenizer, {"X": nonempty}, "lower_words")
        # Words that occur once count as unknown, so that a vector is learned for unknown words.
        min_count = 2 if tokenizer in ("words", "lower_words") else 1
        vocabulary = learn_vocabulary(
            tokenizer, nonempty, max_tokens=estimator.max_tokens, min_count=min_count
        )
        rows = _text_rows(vocabulary, texts)
        max_length = learn_length(rows.lengths, estimator.max_length, architecture)
        return cls(vocabulary.state(), max_length), cut(rows, max_length, estimator)

    def read(self, X, estimator):
        """Read texts or ids as SequenceRows, and return them with the precision, double."""
        rows = _text_rows(Vocabulary.from_state(self.vocabulary), texts_of(X))
        return cut(rows, self.max_length, estimator), np.dtype(np.float64)

    def network_rows(self, rows):
        """Return rows in the form in which the network takes them: they are as they were."""
        return rows

    def token_arguments(self):
        """Return the arguments of TextTokens."""
        return {"n_tokens": len(Vocabulary.from_state(self.vocabulary))}


def _text_rows(vocabulary, X):
    """Encode texts as SequenceRows of token ids; a blank text becomes one unknown token."""
    encoded = vocabulary.encode_all("X", X, empty=True)
    encoded = [ids if len(ids) else np.array([UNKNOWN]) for ids in encoded]
    return SequenceRows(np.concatenate(encoded), np.array([len(ids) for ids in encoded]))
