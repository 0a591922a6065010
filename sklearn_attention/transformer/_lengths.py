"""Lengths of sequences, and cuts of those that are too long."""

import numpy as np

from .._base import warn_user

# From so many tokens on a sequence takes long, if these are so many times a typical sequence's.
_MANY_TOKENS, _TIMES = 2000, 20


def learn_length(lengths, max_length, learned_positions):
    """Most tokens of a sequence; of training sequences the longest with learned positions."""
    if max_length is not None:
        return max_length
    longest, typical = int(lengths.max()), int(np.median(lengths))
    if learned_positions:
        return longest
    if longest >= max(_MANY_TOKENS, _TIMES * typical):
        warn_user(
            f"X has sequences of up to {longest} tokens, but typically of {typical}, and time "
            f"grows with the square: max_length={_TIMES * typical} cuts those that are longer.",
        )
    return None


def cut(rows, max_length, estimator):
    """SequenceRows of at most that length, with a warning where that changes any."""
    n_longer = int((rows.lengths > (max_length or np.inf)).sum())
    if not n_longer:
        return rows
    name = "max_length" if estimator.max_length is not None else "the longest in training,"
    warn_user(
        f"{n_longer} of {len(rows)} sequences are longer than {name} {max_length}: "
        "only so many of their first steps are used.",
    )
    return rows.cut(max_length)
