"""Texts as one stream of tokens, and the windows of it that a language model learns from.

A *stream* has the ids of all texts end to end. A *pair* is a token and the next one of the same
text, which a model predicts. A *run* is a text or a stretch of one, and has consecutive pairs.
For the texts "ab" and "c" the stream is START a b END START c END. It has two runs, with the
pairs START-a, a-b, b-END, and START-c, c-END.
"""

import hashlib
import tempfile

import numpy as np

from ..text._files import TextFiles, with_files
from ..text._special import END, PADDING, START


class TokenStream:
    """The ids of several texts, each START + tokens + END, one after the other.

    Run i has `n_pairs[i]` pairs, and the first token of its first pair is ``ids[first[i]]``.
    """

    def __init__(self, ids, first, n_pairs):
        self.ids, self.first, self.n_pairs = ids, first, n_pairs

    @classmethod
    def of(cls, texts):
        """Join texts, arrays of ids without START and END, to a stream."""
        pieces = []
        for text in texts:
            pieces += [[START], text, [END]]
        ids = np.concatenate(pieces).astype(np.int64)
        return cls._of_lengths(ids, [len(text) for text in texts])

    @classmethod
    def read(cls, name, X, vocabulary):
        """Encode texts, sequences of ids, or paths of files that a user passed as `name`."""
        texts = with_files(name, X, vocabulary.tokenizer)
        if not isinstance(texts, TextFiles):
            return cls.of(vocabulary.encode_all(name, texts))
        # The ids of files are not held in memory, but in the smallest type, in a temporary
        # file. The file has no name, and disappears with the last array that maps it.
        dtype, n_tokens = np.min_scalar_type(len(vocabulary) - 1), []
        with tempfile.TemporaryFile() as file:

            def write(ids):
                """Append ids to the file, and return their number."""
                return file.write(np.array(ids, dtype=dtype)) // dtype.itemsize

            for pieces in texts.texts():
                write([START])
                encoded = (vocabulary.encode_all(name, [piece])[0] for piece in pieces)
                n_tokens.append(sum(map(write, encoded)))
                write([END])
            file.flush()
            return cls._of_lengths(np.memmap(file, dtype=dtype, mode="r"), n_tokens)

    @classmethod
    def _of_lengths(cls, ids, n_tokens):
        """Return the stream of all ids; `n_tokens` of each text are without START and END."""
        n_pairs = np.array(n_tokens, dtype=np.int64) + 1
        n_ids = n_pairs + 1
        return cls(ids, np.cumsum(n_ids) - n_ids, n_pairs)

    def digest(self):
        """Return a hash of the pairs, which does not depend on the type of the ids."""
        digest = hashlib.sha256(np.stack([self.first, self.n_pairs]))
        for start in range(0, len(self.ids), 2**20):
            digest.update(self.ids[start : start + 2**20].astype(np.int64))
        return digest.hexdigest()

    def __len__(self):
        """Return the number of runs."""
        return len(self.n_pairs)

    def select(self, runs):
        """Return the stream of the runs that are selected by positions or by a mask."""
        return TokenStream(self.ids, self.first[runs], self.n_pairs[runs])

    def hold_out(self, fraction, length):
        """Hold out stretches that are spread evenly over the stream.

        Parameters
        ----------
        fraction : float
            Fraction of the pairs to hold out; at least one pair is, and at most all but one.
        length : int
            Smallest number of pairs of a stretch, if there are several; there are up to ten.

        Returns
        -------
        training, held_out : TokenStream
            Their runs end where a text or a stretch does.
        """
        # Pairs are counted over all runs, from 0 to `total`.
        total = int(self.n_pairs.sum())
        n_held = min(max(1, round(fraction * total)), total - 1)
        n_stretches = min(max(1, n_held // length), 10)
        stretch = np.arange(n_stretches + 1)
        held_before = stretch * n_held // n_stretches
        learned_pairs = stretch * (total - n_held)
        # Before the first stretch and after the last one are half as many pairs as between two.
        learned_before = (learned_pairs + (total - n_held) // 2)[:-1] // n_stretches
        first = learned_before + held_before[:-1]
        end = first + np.diff(held_before)
        # The stream is cut wherever a run or a stretch begins or ends.
        run_first = np.cumsum(self.n_pairs) - self.n_pairs
        cuts = np.unique(np.concatenate([run_first, first, end, [total]]))
        start, n_pairs = cuts[:-1], np.diff(cuts)
        run = np.searchsorted(run_first, start, side="right") - 1
        position = self.first[run] + start - run_first[run]  # in `ids`
        # A piece is held out if more stretches have begun by its start than have ended.
        n_begun = np.searchsorted(first, start, side="right")
        is_held = n_begun > np.searchsorted(end, start, side="right")
        pieces = TokenStream(self.ids, position, n_pairs)
        return pieces.select(~is_held), pieces.select(is_held)

    def state(self):
        """Return plain arrays, of small types, from which :meth:`from_state` rebuilds this."""
        ids = np.array(self.ids, dtype=np.min_scalar_type(self.ids.max()))
        return {"ids": ids, "first": self.first, "n_pairs": self.n_pairs}

    @classmethod
    def from_state(cls, state):
        """Build the stream of a state, which :meth:`state` returned."""
        return cls(**state)

    def places(self):
        """Return the positions of the first tokens of all pairs, in `ids` and in their runs.

        Both are arrays (n_pairs,) in the order of the stream.
        """
        pairs_before = np.cumsum(self.n_pairs) - self.n_pairs
        offset = np.arange(self.n_pairs.sum()) - np.repeat(pairs_before, self.n_pairs)
        return np.repeat(self.first, self.n_pairs) + offset, offset


class TokenWindows:
    """Windows of a stream, each of at most `max_length` pairs of one run.

    Windows of a run begin `stride` pairs after one another, and overlap if the stride is
    shorter than a window. A pair that several windows share counts in the first one.
    """

    def __init__(self, stream, max_length, stride=None):
        self.stream, self.max_length = stream, max_length
        self.stride = max_length if stride is None else stride
        # For each run: the number of pairs that do not fit into its first window.
        n_remaining = np.maximum(stream.n_pairs - max_length, 0)
        n_windows = 1 - (-n_remaining // self.stride)
        # For each window: its run, and its number in this run.
        self._run = np.repeat(np.arange(len(n_windows)), n_windows)
        windows_before = np.cumsum(n_windows) - n_windows
        self._number = np.arange(len(self._run)) - windows_before[self._run]
        # Pairs between the starts of windows of a run, if they are spread evenly from its first
        # pair to its last one.
        self._spacing = n_remaining / np.maximum(n_windows - 1, 1)

    def __len__(self):
        return len(self._run)

    @property
    def lengths(self):
        """Largest number of pairs that each window can have, int64 of shape (n_windows,)."""
        return np.minimum(self.stream.n_pairs, self.max_length)[self._run]

    def batch(self, rows):
        """Return tokens and the tokens that follow, (B, T) each, of the windows `rows`.

        Both are PADDING after the end of a window. The token that follows is PADDING as well
        if a pair counts in an earlier window.
        """
        number = self._number[rows]
        ids, following = self._cut(rows, number * self.stride)
        shared = np.arange(ids.shape[1]) < self.max_length - self.stride
        following[(number > 0)[:, None] & shared] = PADDING
        return ids, following

    def moved(self, rows, shifts):
        """Return tokens and the tokens that follow of windows that are moved along their runs.

        `shifts` (B,), from -1/2 to 1/2, are in units of the distance at which windows without
        overlap are spread evenly. No window leaves its run. Results are those of :meth:`batch`,
        but all pairs count.
        """
        run = self._run[rows]
        starts = np.rint((self._number[rows] + shifts) * self._spacing[run]).astype(np.int64)
        last_start = np.maximum(self.stream.n_pairs[run] - self.max_length, 0)
        return self._cut(rows, np.clip(starts, 0, last_start))

    def _cut(self, rows, starts):
        """Return tokens and the tokens that follow, (B, T) each, from `starts` (B,) in runs."""
        stream, run = self.stream, self._run[rows]
        lengths = np.minimum(stream.n_pairs[run] - starts, self.max_length)
        offsets = np.arange(lengths.max())
        is_pair = offsets < lengths[:, None]  # (B, T)
        positions = np.where(is_pair, (stream.first[run] + starts)[:, None] + offsets, 0)
        ids = stream.ids[positions].astype(np.int64)
        following = stream.ids[positions + 1].astype(np.int64)
        return np.where(is_pair, ids, PADDING), np.where(is_pair, following, PADDING)


def context_start(n_tokens, max_length):
    """Return where the context begins from which the token after `n_tokens` is predicted.

    START is one of these tokens. The start is 0 as long as all tokens fit into `max_length`.
    Then it moves on by half of `max_length` at once, so that the cached keys and values of a
    text that is generated can be used for many tokens.
    """
    stride = context_stride(max_length)
    return stride * -(-max(n_tokens - max_length, 0) // stride)


def context_stride(max_length):
    """Return the number of tokens by which the context moves on at once."""
    return max(1, max_length // 2)
