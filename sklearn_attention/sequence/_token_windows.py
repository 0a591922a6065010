"""Texts as one stream of tokens, and the windows that a model sees of it."""

import hashlib
import tempfile

import numpy as np

from ..text._files import TextFiles, with_files
from ..text._special import END, PADDING, START


class TokenStream:
    """Several texts, each START + tokens + END, one after the other in `ids`."""

    # Pairs of a token and the next one of the same text are learned. A run, a text or a part of
    # one, has `n_pairs` of them from `first` on.

    def __init__(self, ids, first, n_pairs):
        self.ids, self.first, self.n_pairs = ids, first, n_pairs

    @classmethod
    def of(cls, texts):
        """The stream of texts, which have neither START nor END."""
        parts = [part for text in texts for part in ([START], text, [END])]
        return cls._of_lengths(np.concatenate(parts).astype(np.int64), [*map(len, texts)])

    @classmethod
    def read(cls, name, X, vocabulary):
        """The stream of texts, sequences of ids, or paths of files that a user passed."""
        texts = with_files(name, X, vocabulary.tokenizer)
        if not isinstance(texts, TextFiles):
            return cls.of(vocabulary.encode_all(name, texts))
        kind, n_tokens = np.min_scalar_type(len(vocabulary) - 1), []
        # It has no name, and is gone with the last array that maps it.
        with tempfile.TemporaryFile() as file:

            def write(ids):
                return file.write(np.array(ids, dtype=kind)) // kind.itemsize

            for pieces in texts.texts():
                write([START])
                n_tokens.append(sum(write(*vocabulary.encode_all(name, [p])) for p in pieces))
                write([END])
            file.flush()
            return cls._of_lengths(np.memmap(file, dtype=kind, mode="r"), n_tokens)

    @classmethod
    def _of_lengths(cls, ids, n_tokens):
        n_pairs = np.array(n_tokens, dtype=np.int64) + 1
        return cls(ids, np.cumsum(n_pairs + 1) - (n_pairs + 1), n_pairs)

    def digest(self):
        """What tells the pairs from others, whatever type the ids have."""
        found = hashlib.sha256(np.stack([self.first, self.n_pairs]))
        for start in range(0, len(self.ids), 2**20):
            found.update(self.ids[start : start + 2**20].astype(np.int64))
        return found.hexdigest()

    def __len__(self):
        """Number of runs."""
        return len(self.n_pairs)

    def select(self, runs):
        """The stream of some of the runs."""
        return TokenStream(self.ids, self.first[runs], self.n_pairs[runs])

    def hold_out(self, fraction, length):
        """Two streams: one to learn from, and stretches that are spread evenly over all."""
        # The stretches have this share of the pairs, at least one and at most all but one.
        # There are up to ten, of `length` pairs or more where more than one is that long.
        total = int(self.n_pairs.sum())
        n_held = min(max(1, round(fraction * total)), total - 1)
        n_stretches = min(max(1, n_held // length), 10)
        each = np.arange(n_stretches + 1)
        n_before, learned_before = each * n_held // n_stretches, each * (total - n_held)
        # Half as much stands before the first stretch, and after the last, as between two.
        first = (learned_before + (total - n_held) // 2)[:-1] // n_stretches + n_before[:-1]
        last = first + np.diff(n_before)
        run_first = np.cumsum(self.n_pairs) - self.n_pairs
        edges = np.unique(np.concatenate([run_first, first, last, [total]]))
        begin, n_pairs = edges[:-1], np.diff(edges)
        run = np.searchsorted(run_first, begin, side="right") - 1
        place = self.first[run] + begin - run_first[run]
        held = np.searchsorted(first, begin, side="right") > np.searchsorted(
            last, begin, side="right"
        )
        return [TokenStream(self.ids, place[part], n_pairs[part]) for part in (~held, held)]

    def state(self):
        """Plain arrays, small ones, that :meth:`from_state` makes the stream of."""
        ids = np.array(self.ids, dtype=np.min_scalar_type(self.ids.max()))
        return {"ids": ids, "first": self.first, "n_pairs": self.n_pairs}

    @classmethod
    def from_state(cls, state):
        """The stream of such arrays."""
        return cls(**state)

    def places(self):
        """Position in `ids` of the first token of each pair, and its position in its run."""
        before = np.cumsum(self.n_pairs) - self.n_pairs
        offset = np.arange(self.n_pairs.sum()) - np.repeat(before, self.n_pairs)
        return np.repeat(self.first, self.n_pairs) + offset, offset


class TokenWindows:
    """Windows of a stream, of `max_length` pairs at most, each within one text.

    Between starts are `stride` pairs. A pair of several windows counts in the first.
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
        """Tokens and those that follow them, (B, T) each, of some windows."""
        # PADDING is where a window has ended, and follows where a pair counts in another
        # window.
        number = self._number[rows]
        ids, following = self._cut(rows, number * self.stride)
        shared = np.arange(ids.shape[1]) < self.max_length - self.stride
        following[(number > 0)[:, None] & shared] = PADDING
        return ids, following

    def moved(self, rows, shifts):
        """Tokens and those that follow, of windows moved along their texts; all pairs count."""
        # `shifts` (B,), from -1/2 to 1/2, move each window by up to half of the spacing at
        # which windows without overlap are spread evenly. No window leaves its text.
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
        ids = (stream.ids[places + i].astype(np.int64) for i in (0, 1))
        return tuple(np.where(real, part, PADDING) for part in ids)


def context_start(n_tokens, max_length):
    """Start of the context from which the token after so many, START included, is predicted."""
    # It moves on by half of `max_length` when that many tokens are exceeded, so that the keys
    # and values of the tokens can be stored while a text is written.
    stride = context_stride(max_length)
    return stride * -(-max(n_tokens - max_length, 0) // stride)


def context_stride(max_length):
    """Number of tokens by which the context moves on at once."""
    return max(1, max_length // 2)
