"""Vocabularies, learned from sequences."""

import numbers
import re
from collections import Counter
from itertools import chain

from .._base import warn_user
from .._validation import check_choice, check_positive
from ._check import check_sequences
from ._special import SPECIAL_TOKENS
from ._vocabulary import PIECES, Vocabulary, text_bytes, tokenizers_library

# A run of 1000 letters without a space. Longer runs are split into runs of this length before
# byte pairs are learned.
_LONG_RUN = re.compile(r"(\S{1000})")
TOKENIZERS = ("byte_pairs", "characters", "ids", "lower_words", "words")


def learn_vocabulary(
    tokenizer, sequences, *, max_tokens=None, min_count: int = 1
) -> Vocabulary:
    """Learn which tokens sequences are made of, and number them.

    Transformers for texts call it in `fit`; call it to train a network of your own.

    Parameters
    ----------
    tokenizer : {"characters", "words", "lower_words", "byte_pairs", "ids"}
        Kind of tokens. "characters" are single characters. "words" are the words of texts that
        are split at whitespace. "lower_words" are words in lower case, and punctuation marks.
        "byte_pairs" are frequent sequences of bytes [1]_: no piece of a text is unknown, but
        the ``tokenizers`` library is needed. "ids" are integers, for sequences of ids.
    sequences : list of str, or list of sequences of int
        Texts, or sequences of ids.
    max_tokens : int, default=None
        Largest number of tokens, the four special ones included. The most frequent tokens are
        kept; among equally frequent ones, those that are first in sorted order. None keeps all,
        or 8000 byte pairs.
    min_count : int, default=1
        Smallest number of occurrences of a token that is kept; rarer ones become the unknown
        one. If no token occurs that often, all are kept. It has no effect on byte pairs.

    Returns
    -------
    vocabulary : Vocabulary
        The tokens and their numbers.

    Raises
    ------
    ValueError
        If sequences and tokenizer do not fit one another, or no token would be left.
    ImportError
        If `tokenizer` is "byte_pairs" and the library is missing.

    References
    ----------
    .. [1] Sennrich, R., Haddow, B. and Birch, A. (2016). Neural machine translation of rare
       words with subword units. ACL 54, 1715-1725.

    Examples
    --------
    >>> from sklearn_attention.text import learn_vocabulary
    >>> vocabulary = learn_vocabulary("words", ["to be or not to be"], max_tokens=6)
    >>> vocabulary.tokens
    ['<padding>', '<unknown>', '<start>', '<end>', 'be', 'to']
    >>> vocabulary.encode("to do")
    array([5, 1])
    """
    check_choice("tokenizer", tokenizer, TOKENIZERS)
    if max_tokens is not None:
        # Byte pairs include a token for every byte.
        minimum = len(SPECIAL_TOKENS) + (256 if tokenizer == "byte_pairs" else 1)
        max_tokens = check_positive("max_tokens", max_tokens, integer=True, minimum=minimum)
    if not isinstance(min_count, numbers.Real):
        raise ValueError(f"min_count={min_count!r} is not valid: pass an integer, 1 or more.")
    kind, sequences = check_sequences("sequences", sequences)
    needed = "ids" if tokenizer == "ids" else "text"
    if kind != needed:
        remedy = "pass tokenizer='ids'" if kind == "ids" else "choose a tokenizer of texts"
        raise ValueError(
            f"tokenizer={tokenizer!r} does not fit sequences of kind {kind!r}: {remedy}."
        )
    if tokenizer == "byte_pairs":
        n_learned = (max_tokens or 8000) - len(SPECIAL_TOKENS)
        return Vocabulary(tokenizer, _learn_byte_pairs(sequences, n_learned))
    counts = Counter(chain.from_iterable(map(PIECES[tokenizer], sequences)))
    if not counts:
        raise ValueError("the sequences are all blank: pass texts that have words.")
    # Pieces are sorted, so that the order of the sequences makes no difference.
    frequent = {piece: n for piece, n in counts.items() if n >= min_count}
    pieces = sorted(frequent or counts, key=lambda piece: (-counts[piece], piece))
    if max_tokens is not None:
        pieces = pieces[: max_tokens - len(SPECIAL_TOKENS)]
    return Vocabulary(tokenizer, sorted(pieces) if tokenizer == "ids" else pieces)


def _learn_byte_pairs(texts, n_tokens):
    """Learn up to `n_tokens` byte pairs, the 256 bytes included; return the library's JSON."""
    n_bytes = sum(len(text_bytes(text)) for text in texts)
    library = tokenizers_library()
    byte_level = library.pre_tokenizers.ByteLevel
    model = library.Tokenizer(library.models.BPE())
    model.pre_tokenizer = byte_level(add_prefix_space=False)
    model.decoder = library.decoders.ByteLevel()
    # The library does not know our special tokens, since a text may contain their names. It
    # reserves memory for all tokens at once: so `vocab_size` is at most the number that the
    # texts can have, as each token but the bytes joins two others.
    trainer = library.trainers.BpeTrainer(
        vocab_size=min(n_tokens, 256 + n_bytes),
        initial_alphabet=sorted(byte_level.alphabet()),
        show_progress=False,
    )
    # The library takes time in proportion to the square of the longest run of letters.
    model.train_from_iterator(chain.from_iterable(map(_LONG_RUN.split, texts)), trainer)
    return model.to_str()


def choose_tokenizer(tokenizer, texts, words="words"):
    """Choose the tokenizer of texts, and warn if words cannot be learned.

    Parameters
    ----------
    tokenizer : str
        Name of a tokenizer, or "auto": it chooses `words` if these can be learned, else
        "characters".
    texts : dict of str to list of str
        Texts by the names of parameters; empty if there are only ids.
    words : {"words", "lower_words"}, default="words"
        Kind of words that "auto" chooses if these can be learned.
    """
    # Words cannot be learned if more than half of them occur only once, as in dates, numbers
    # and Chinese sentences. The share of words that occur only once is the expected share of
    # unknown words in new texts (Good and Turing).
    chosen = words if tokenizer == "auto" else tokenizer
    if not texts or chosen not in ("words", "lower_words"):
        return tokenizer
    share, name = max((_share_seen_once(chosen, X), name) for name, X in texts.items())
    if share <= 0.5:
        return chosen
    remedy = (
        "many words of new texts will be unknown. Pass tokenizer='characters' or 'byte_pairs'."
    )
    if tokenizer == "auto":
        remedy = (
            f"tokenizer='auto' takes characters. Pass 'characters', {chosen!r} or "
            "'byte_pairs' to choose yourself."
        )
        chosen = "characters"
    warn_user(f"{share:.0%} of the words in {name} occur only once: {remedy}")
    return chosen


def _share_seen_once(tokenizer, texts):
    """Return the share of words that occur only once; punctuation marks do not count."""
    pieces = chain.from_iterable(map(PIECES[tokenizer], texts))
    counts = Counter(piece for piece in pieces if any(map(str.isalnum, piece)))
    return sum(count == 1 for count in counts.values()) / max(1, counts.total())
