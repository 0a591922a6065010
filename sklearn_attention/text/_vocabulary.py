"""Vocabularies: tokens, and translation to and from their ids."""

import functools
import re
import reprlib
import unicodedata
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ._check import check_sequences
from ._special import SPECIAL_TOKENS, UNKNOWN


def _lower_words(text):
    """Split a text into words in lower case and single punctuation marks."""
    return _word_or_mark().findall(text.lower())


@functools.cache
def _word_or_mark():
    """Return the pattern of a word or a punctuation mark."""
    # Vowels of Thai and Hindi, and accents that are characters of their own, belong to words.
    combining = (
        c for c in map(chr, range(0x300, 0x1F000)) if unicodedata.category(c)[0] == "M"
    )
    return re.compile(rf"\w+(?:[{''.join(combining)}]+\w*)*|[^\w\s]")


# For each tokenizer, `PIECES` has a function that splits a sequence into pieces, and `BETWEEN`
# the separator that joins them again.
PIECES = {
    "characters": iter,
    "words": str.split,
    "lower_words": _lower_words,
    "ids": np.ndarray.tolist,
}
BETWEEN = {"characters": "", "words": " ", "lower_words": " "}


def text_bytes(text):
    """Encode a text as UTF-8; raise ValueError if this is not possible."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"text={reprlib.repr(text)} cannot be encoded as UTF-8, because of half a "
            f"surrogate pair at position {error.start}: pass "
            "text.encode(errors='replace').decode()."
        ) from None


def tokenizers_library():
    """Import the library that learns and encodes byte pairs."""
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "tokenizer='byte_pairs' needs the tokenizers library: "
            'pip install "sklearn-attention[text]"'
        ) from error
    return tokenizers


class Vocabulary:
    """Tokens of texts, or of sequences of ids, and their numbers.

    It turns texts into ids and back; :func:`learn_vocabulary` makes one. In every vocabulary
    the ids 0 to 3 are those of the special tokens for padding, unknown pieces, start and end.

    Parameters
    ----------
    tokenizer : {"byte_pairs", "characters", "ids", "lower_words", "words"}
        Kind of tokens, as in :func:`learn_vocabulary`.
    learned : list of str, list of int, or str
        The tokens without special ones; for byte pairs it is the JSON of the library.

    Examples
    --------
    >>> from sklearn_attention.text import learn_vocabulary
    >>> vocabulary = learn_vocabulary("characters", ["banana"])
    >>> vocabulary.encode("nab")
    array([5, 4, 6])
    >>> vocabulary.decode([2, 6, 4, 3])  # start and end are left out
    'ba'
    """

    def __init__(self, tokenizer: str, learned: Sequence[str] | Sequence[int] | str) -> None:
        self.tokenizer = tokenizer
        self._learned = learned

    def __len__(self):
        """Return the number of tokens, special ones included."""
        return len(self.tokens)

    @property
    def kind(self):
        """Kind of the sequences: "text" or "ids"."""
        return "ids" if self.tokenizer == "ids" else "text"

    @functools.cached_property
    def tokens(self):
        """All tokens as str, in the order of their ids.

        Byte pairs are as the library writes them: it writes a space as ``Ġ``.
        """
        if self.tokenizer == "byte_pairs":
            ids = self._byte_pairs.get_vocab()
            return [*SPECIAL_TOKENS, *sorted(ids, key=ids.get)]
        return [*SPECIAL_TOKENS, *map(str, self._learned)]

    def encode(self, sequence) -> np.ndarray:
        """Encode one sequence as the ids of its tokens, without START and END.

        Parameters
        ----------
        sequence : str, or ndarray of int

        Returns
        -------
        ids : ndarray of int64 of shape (n_tokens,)
            Ids of the tokens, with UNKNOWN for tokens that are not in the vocabulary; byte
            pairs know all texts.
        """
        if self.tokenizer == "byte_pairs":
            # This raises an error that names the character, if there is no UTF-8 for it.
            text_bytes(sequence)
            # The tokens of the byte pairs follow the special tokens.
            ids = self._byte_pairs.encode(sequence).ids
            return np.array(ids, dtype=np.int64) + len(SPECIAL_TOKENS)
        if self.kind == "ids":
            sequence = np.asarray(sequence, dtype=np.int64)
        id_of_piece = self._id_of_piece
        ids = [id_of_piece.get(piece, UNKNOWN) for piece in PIECES[self.tokenizer](sequence)]
        return np.array(ids, dtype=np.int64)

    def encode_all(self, name, sequences, *, empty=False) -> list[Any]:
        """Encode all sequences that a user passed.

        Parameters
        ----------
        name : str
            Name of the parameter, for messages.
        sequences : list of str, or list of sequences of int
            Texts, or sequences of ids.
        empty : bool, default=False
            Whether a sequence may be empty.

        Returns
        -------
        ids : list of ndarray of int64
            Ids of the tokens of each sequence.

        Raises
        ------
        ValueError
            If `sequences` are not valid, or not of the kind of this vocabulary.
        """
        kind, sequences = check_sequences(name, sequences, empty=empty)
        if kind != self.kind:
            has, needs = ("ids", "texts") if kind == "ids" else ("texts", "ids")
            raise ValueError(
                f"{name} has {has}, but the vocabulary was learned from {needs}: pass {needs}."
            )
        return [self.encode(sequence) for sequence in sequences]

    def decode(self, ids) -> Any:
        """Return the sequence that has these tokens.

        Parameters
        ----------
        ids : array-like of int
            PADDING, START and END are left out. UNKNOWN becomes the replacement character in
            texts, and is left out of ids.

        Returns
        -------
        sequence : str, or list of int
            The text, or the ids as they were passed to :func:`learn_vocabulary`.

        Raises
        ------
        ValueError
            If an id is not in the vocabulary.
        """
        ids = np.asarray(ids, dtype=np.int64)
        wrong = ids[(ids < 0) | (ids >= len(self))]
        if len(wrong):
            raise ValueError(
                f"ids contain {wrong[0]}, but the vocabulary has {len(self)} tokens: pass "
                f"numbers from 0 to {len(self) - 1}."
            )
        ids = ids[(ids >= len(SPECIAL_TOKENS)) | (ids == UNKNOWN)]
        if self.kind == "ids":
            return [self._learned[i - len(SPECIAL_TOKENS)] for i in ids if i != UNKNOWN]
        if self.tokenizer == "byte_pairs":
            return self._decode_byte_pairs(ids)
        unknown = "\N{REPLACEMENT CHARACTER}"
        tokens = [unknown if i == UNKNOWN else self.tokens[i] for i in ids]
        return BETWEEN[self.tokenizer].join(tokens)

    def state(self) -> dict[str, Any]:
        """Return plain values, from which :meth:`from_state` builds the same vocabulary.

        Returns
        -------
        state : dict
            ``tokenizer``, a str, and ``learned``, a str, or an ndarray of ids.
        """
        learned = self._learned
        if self.kind == "ids":
            learned = np.array(learned, dtype=np.int64)
        elif self.tokenizer != "byte_pairs":
            learned = BETWEEN[self.tokenizer].join(learned)
        return {"tokenizer": self.tokenizer, "learned": learned}

    @classmethod
    def from_state(cls, state) -> Self:
        """Build a vocabulary from the values that :meth:`state` returns.

        Parameters
        ----------
        state : dict
            The result of :meth:`state`.

        Returns
        -------
        vocabulary : Vocabulary
            The same vocabulary as that whose state it is.
        """
        tokenizer, learned = state["tokenizer"], state["learned"]
        if tokenizer == "byte_pairs":
            return cls(tokenizer, learned)
        return cls(tokenizer, list(PIECES[tokenizer](learned)))

    def __reduce__(self):
        return Vocabulary.from_state, (self.state(),)

    @functools.cached_property
    def _id_of_piece(self):
        """Id of each token that was learned, as a dict."""
        return dict(zip(self._learned, range(len(SPECIAL_TOKENS), len(self)), strict=True))

    @functools.cached_property
    def _byte_pairs(self):
        """Tokenizer of the library. It has no special tokens, so that its ids start from 0."""
        return tokenizers_library().Tokenizer.from_str(self._learned)

    def _decode_byte_pairs(self, ids):
        """Decode ids of byte pairs, which may contain UNKNOWN."""
        # A character may consist of several tokens, so that all tokens between two unknown ones
        # are decoded together.
        runs = np.split(ids - len(SPECIAL_TOKENS), np.flatnonzero(ids == UNKNOWN))
        texts = [self._byte_pairs.decode(run[run >= 0].tolist()) for run in runs]
        return "\N{REPLACEMENT CHARACTER}".join(texts)
