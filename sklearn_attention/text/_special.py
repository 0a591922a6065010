"""Tokens that stand for no piece of a text, the same in every vocabulary, and padding."""

import numbers
from typing import Any

import numpy as np

from .._blocks import check_memory

PADDING, UNKNOWN, START, END = 0, 1, 2, 3
# Names under which they are shown, in the order of their ids.
SPECIAL_TOKENS = ("<padding>", "<unknown>", "<start>", "<end>")


def pad(sequences, *, length=None) -> Any:
    """Fill sequences of ids at their ends, so that all have one length.

    Use it to make batches for a network of your own.

    Parameters
    ----------
    sequences : list of array-like of int
        Sequences of ids.
    length : int, default=None
        Length of the rows; None is that of the longest sequence.

    Returns
    -------
    ids : ndarray of int64 of shape (n_sequences, length)
        Ids of the sequences, and 0, the id of padding, after their ends.
    is_token : ndarray of bool of shape (n_sequences, length)
        False where there is padding.

    Raises
    ------
    ValueError
        If a sequence is longer than `length`.

    Examples
    --------
    >>> from sklearn_attention.text import pad
    >>> ids, is_token = pad([[5, 6, 7], [8]])
    >>> ids
    array([[5, 6, 7],
           [8, 0, 0]])
    >>> is_token.sum(axis=1)
    array([3, 1])
    """
    try:
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    except TypeError:
        raise ValueError(
            "sequences is not a list of lists of ids: pass [[5, 6], [7]]."
        ) from None
    longest = int(lengths.max(initial=0))
    length = longest if length is None else length
    if not isinstance(length, numbers.Integral):
        raise ValueError(f"length={length!r} is not valid: pass an integer, or None.")
    if longest > length:
        raise ValueError(
            f"length={length!r} is too short for a sequence of {longest} tokens: pass at "
            "least that, or cut the sequence."
        )
    check_memory(f"length={length}", (len(lengths) + 1, length), "pass a smaller number")
    is_token = np.arange(length) < lengths[:, None]
    ids = np.full(is_token.shape, PADDING, dtype=np.int64)
    if lengths.any():
        ids[is_token] = np.concatenate([np.asarray(sequence) for sequence in sequences])
    return ids, is_token
