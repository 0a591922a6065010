"""Sources and targets as arrays of token ids."""

import numpy as np

from .._base import warn_user
from ..text import learn_vocabulary
from ..text._check import check_sequences
from ..text._learn import choose_tokenizer
from ..text._special import END, START


def learn_vocabularies(X, y, tokenizer, max_tokens, *, shared):
    """The vocabularies of sources and of targets, or twice the one that both share.

    `tokenizer` is for texts, "auto" or a name; sequences of ids need none.
    """
    (kind, X), (other, y) = check_sequences("X", X), check_sequences("y", y)
    check_count(X, y)
    parts = (("X", kind, X), ("y", other, y))
    tokenizer = choose_tokenizer(tokenizer, {n: part for n, k, part in parts if k == "text"})
    if not shared:
        return tuple(
            learn_vocabulary("ids" if k == "ids" else tokenizer, part, max_tokens=max_tokens)
            for k, part in ((kind, X), (other, y))
        )
    if kind != other:
        raise ValueError(
            f"shared_vocabulary=True does not fit X of kind {kind!r} and y of kind {other!r}: "
            "pass False."
        )
    tokenizer = "ids" if kind == "ids" else tokenizer
    vocabulary = learn_vocabulary(tokenizer, [*X, *y], max_tokens=max_tokens)
    return vocabulary, vocabulary


def check_count(X, y, suffix=""):
    """Raise ValueError if there are not as many targets as sources."""
    if len(X) != len(y):
        raise ValueError(
            f"X{suffix} has {len(X)} sequences, but y{suffix} has {len(y)}: pass one target "
            "for each source."
        )


def read_pairs(X, y, vocabularies, max_length, suffix=""):
    """Sources and targets as tokens, of `max_length` at most, END included."""
    # Targets begin with START. One that is cut has no END, since it would continue. `suffix` is
    # that of the names of X and y in messages.
    sources = read_sources(X, vocabularies[0], max_length, f"X{suffix}")
    targets = vocabularies[1].encode_all(f"y{suffix}", y)
    _warn_of_long(f"y{suffix}", targets, max_length)
    check_count(sources, targets, suffix)
    return sources, [np.array([START, *tokens, END][: max_length + 1]) for tokens in targets]


def read_sources(X, vocabulary, max_length, name="X"):
    """Sources as tokens, with END; warns of those that are cut."""
    sources = vocabulary.encode_all(name, X)
    _warn_of_long(name, sources, max_length)
    return [np.append(tokens[: max_length - 1], END) for tokens in sources]


def _warn_of_long(name, sequences, max_length):
    n_long = sum(len(tokens) >= max_length for tokens in sequences)
    if n_long:
        warn_user(
            f"{n_long} of {len(sequences)} sequences in {name} have more than "
            f"{max_length - 1} tokens: max_length={max_length!r} leaves out what comes after. "
            "Pass a larger one to read all.",
        )
