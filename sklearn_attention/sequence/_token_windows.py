"""Texts as one stream of tokens, and the windows that a model sees of it."""

import numpy as np

from ..text import END, PADDING, START


class TokenStream:
    """Several texts, each START + tokens + END, one after the other.

    What is learned and judged are pairs of a token and the next one of the same text.

    Parameters
    ----------
    ids : ndarray of int64 of shape (n_ids,)
        The tokens of all texts.
    first : ndarray of int64 of shape (n_runs,)
        Where the pairs of a run, a text or a part of one, begin in `ids`.
    n_pairs : ndarray of int64 of shape (n_runs,)
        How many pairs follow there.
    """

    def __init__(self, ids, first, n_pairs):
        self.ids, self.first, self.n_pairs = ids, first, n_pairs

    @classmethod
    def of(cls, texts):
        """The stream of some texts.

        Parameters
        ----------
        texts : list of ndarray of int64
            Without START and END.

        Returns
        -------
        stream : TokenStream
        """
        parts = [part for text in texts for part in ([START], text, [END])]
        n_pairs = np.array([len(text) + 1 for text in texts], dtype=np.int64)
        first = np.cumsum(n_pairs + 1) - (n_pairs + 1)
        return cls(np.concatenate(parts).astype(np.int64), first, n_pairs)

    def split(self, fraction):
        """Cut off the last share of the pairs, within a text if need be.

        Parameters
        ----------
        fraction : float
            Between 0 and 1; both parts get at least one pair.

        Returns
        -------
        before, after : TokenStream
        """
        total = int(self.n_pairs.sum())
        n_before = min(max(1, round((1 - fraction) * total)), total - 1)
        done = np.cumsum(self.n_pairs) - self.n_pairs
        n_first = np.clip(n_before - done, 0, self.n_pairs)
        left, right = n_first > 0, n_first < self.n_pairs
        before = TokenStream(self.ids, self.first[left], n_first[left])
        first, n_last = self.first + n_first, self.n_pairs - n_first
        return before, TokenStream(self.ids, first[right], n_last[right])


class TokenWindows:
    """Windows of a stream, none of which reaches from one text into another.

    Parameters
    ----------
    stream : TokenStream
    max_length : int
        Most pairs of a window. A text that has no more is one window.
    stride : int, default=None
        From the start of a window to that of the next one; None is `max_length`. Where
        windows overlap, a pair counts in the first one that has it.
    """

    def __init__(self, stream, max_length, stride=None):
        self.stream, self.max_length = stream, max_length
        self.stride = max_length if stride is None else stride
        left = np.maximum(stream.n_pairs - max_length, 0)
        n_windows = 1 - (-left // self.stride)
        self._run = np.repeat(np.arange(len(n_windows)), n_windows)
        before = np.cumsum(n_windows) - n_windows
        self._number = np.arange(len(self._run)) - before[self._run]
        # Evenly spread, the first and the last window of a text reach its ends.
        self._spacing = left / np.maximum(n_windows - 1, 1)

    def __len__(self):
        return len(self._run)

    @property
    def lengths(self):
        """Most pairs that each window can have: ndarray of int64 of shape (n_windows,)."""
        return np.minimum(self.stream.n_pairs, self.max_length)[self._run]

    def batch(self, rows):
        """Some windows as they are.

        Parameters
        ----------
        rows : ndarray of int of shape (B,)

        Returns
        -------
        ids, following : ndarray of int64 of shape (B, T)
            Tokens, and those that follow them. PADDING is where a window has ended, and also
            follows where a pair counts in another window.
        """
        number = self._number[rows]
        ids, following = self._cut(rows, number * self.stride)
        shared = np.arange(ids.shape[1]) < self.max_length - self.stride
        following[(number > 0)[:, None] & shared] = PADDING
        return ids, following

    def moved(self, rows, shifts):
        """Some windows, each moved along its text.

        Parameters
        ----------
        rows : ndarray of int of shape (B,)
        shifts : ndarray of float of shape (B,)
            From -1/2 to 1/2, in units of the spacing at which windows without overlap are
            evenly spread over their text; but no window leaves it.

        Returns
        -------
        ids, following : ndarray of int64 of shape (B, T)
            As for :meth:`batch`; all pairs count.
        """
        run = self._run[rows]
        starts = np.rint((self._number[rows] + shifts) * self._spacing[run]).astype(np.int64)
        last = np.maximum(self.stream.n_pairs[run] - self.max_length, 0)
        return self._cut(rows, np.clip(starts, 0, last))

    def _cut(self, rows, starts):
        stream, run = self.stream, self._run[rows]
        lengths = np.minimum(stream.n_pairs[run] - starts, self.max_length)
        steps = np.arange(lengths.max())
        real = steps < lengths[:, None]  # (B, T)
        places = np.where(real, (stream.first[run] + starts)[:, None] + steps, 0)
        return tuple(np.where(real, stream.ids[places + i], PADDING) for i in (0, 1))


def context_start(n_tokens, max_length):
    """Where the context begins from which the token after some others is predicted.

    It moves on by half of `max_length` whenever that many tokens are exceeded, so that a text
    can be written with keys and values remembered.

    Parameters
    ----------
    n_tokens : int
        How many tokens there are, START included.
    max_length : int

    Returns
    -------
    start : int
        0 for up to `max_length` tokens.
    """
    stride = context_stride(max_length)
    return stride * -(-max(n_tokens - max_length, 0) // stride)


def context_stride(max_length):
    """By how many tokens the context moves on at once.

    Parameters
    ----------
    max_length : int

    Returns
    -------
    stride : int
    """
    return max(1, max_length // 2)
