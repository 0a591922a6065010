"""Texts as one stream of tokens, and the windows of it that a language model learns from.

A *stream* has the ids of all texts, one after the other. A *pair* is a token and the next one
of the same text, which a model predicts from it and from earlier tokens. A *run* is a text or a
part of one, and has consecutive pairs. For the texts "ab" and "c" the stream is START a b END
START c END. It has two runs, with the pairs START-a, a-b, b-END, and START-c, c-END.
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
    def from_texts(cls, texts):
        """Make a stream of texts, which are arrays of ids without START and END."""
        pieces = []
        for text in texts:
            pieces += [[START], text, [END]]
        ids = np.concatenate(pieces).astype(np.int64)
        return cls._from_ids(ids, [len(text) for text in texts])

    @classmethod
    def read(cls, name, X, vocabulary):
        """Encode texts, sequences of ids, or paths of files that a user passed as `name`."""
        texts = with_files(name, X, vocabulary.tokenizer)
        if not isinstance(texts, TextFiles):
            return cls.from_texts(vocabulary.encode_all(name, texts))
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
            return cls._from_ids(np.memmap(file, dtype=dtype, mode="r"), n_tokens)

    @classmethod
    def _from_ids(cls, ids, n_tokens):
        """Make a stream of the ids of all texts, START and END included.

        `n_tokens` has the number of tokens of each text, without START and END.
        """
        n_pairs = np.array(n_tokens, dtype=np.int64) + 1
        n_ids = n_pairs + 1
        return cls(ids, np.cumsum(n_ids) - n_ids, n_pairs)

    def digest(self):
        """Compute a hash of the ids and runs, which does not depend on the type of the ids."""
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

    def hold_out(self, fraction, min_length):
        """Hold out stretches of pairs that are spread evenly over the stream.

        Parameters
        ----------
        fraction : float
            Fraction of the pairs to hold out; at least one pair is, and at most all but one.
        min_length : int
            A stretch has at least this many pairs, unless there is only one stretch. There are
            at most ten stretches.

        Returns
        -------
        training, held_out : TokenStream
            Streams with the same `ids` as this one. A run in which a stretch begins or ends is
            cut there into shorter runs.
        """
        total = int(self.n_pairs.sum())
        n_held = min(max(1, round(fraction * total)), total - 1)
        n_learned = total - n_held
        n_stretches = min(max(1, n_held // min_length), 10)
        # 1. Place the stretches. Pairs are numbered from 0 over all runs, and `stretch_end` is
        # the pair after a stretch. If 4 of 10 pairs are held out in 2 stretches, these are the
        # pairs 1, 2 and 6, 7: up to rounding, the gap before the first stretch and that after
        # the last one are half as long as the gaps between stretches.
        number = np.arange(n_stretches + 1)
        held_before = number * n_held // n_stretches
        learned_before = (number[:-1] * n_learned + n_learned // 2) // n_stretches
        stretch_first = learned_before + held_before[:-1]
        stretch_end = learned_before + held_before[1:]
        # 2. Cut the runs into pieces wherever a stretch begins or ends. `cuts` has the first
        # pair of each piece, and the number of all pairs.
        run_first = np.cumsum(self.n_pairs) - self.n_pairs
        cuts = np.unique(np.concatenate([run_first, stretch_first, stretch_end, [total]]))
        piece_first, n_pairs = cuts[:-1], np.diff(cuts)
        run = np.searchsorted(run_first, piece_first, side="right") - 1
        position = self.first[run] + piece_first - run_first[run]  # in `ids`
        pieces = TokenStream(self.ids, position, n_pairs)
        # 3. Hold out the pieces within stretches: by their first pair, more stretches have
        # begun than have ended.
        n_begun = np.searchsorted(stretch_first, piece_first, side="right")
        n_ended = np.searchsorted(stretch_end, piece_first, side="right")
        is_held = n_begun > n_ended
        return pieces.select(~is_held), pieces.select(is_held)

    def state(self):
        """Return plain arrays, of small types, from which :meth:`from_state` rebuilds this."""
        ids = np.array(self.ids, dtype=np.min_scalar_type(self.ids.max()))
        return {"ids": ids, "first": self.first, "n_pairs": self.n_pairs}

    @classmethod
    def from_state(cls, state):
        """Rebuild a stream from what :meth:`state` returned."""
        return cls(**state)

    def pair_positions(self):
        """Return the positions of all pairs in `ids`, and their positions in their runs.

        The position of a pair is that of its first token. Both results are arrays (n_pairs,) in
        the order of the stream.
        """
        pairs_before = np.cumsum(self.n_pairs) - self.n_pairs
        offset = np.arange(self.n_pairs.sum()) - np.repeat(pairs_before, self.n_pairs)
        return np.repeat(self.first, self.n_pairs) + offset, offset


class TokenWindows:
    """Windows of a stream, each of at most `max_length` pairs of one run.

    A window begins `stride` pairs after the one before it in the same run. If the stride is
    shorter than a window, windows overlap; a pair that several windows share counts only in the
    first of them.
    """

    def __init__(self, stream, max_length, stride=None):
        """Cut each run of a TokenStream into windows; a stride of None is `max_length`."""
        self.stream, self.max_length = stream, max_length
        self.stride = max_length if stride is None else stride
        # For each run: the number of pairs that do not fit into its first window.
        n_remaining = np.maximum(stream.n_pairs - max_length, 0)
        n_windows = 1 - (-n_remaining // self.stride)
        # For each window: its run, and its number in this run.
        self._run = np.repeat(np.arange(len(n_windows)), n_windows)
        windows_before = np.cumsum(n_windows) - n_windows
        self._number = np.arange(len(self._run)) - windows_before[self._run]
        # For each run: the distance in pairs between the starts of its windows, if the first
        # window began with the first pair, the last one ended with the last pair, and all
        # distances were equal.
        self._spacing = n_remaining / np.maximum(n_windows - 1, 1)

    def __len__(self):
        return len(self._run)

    @property
    def lengths(self):
        """Largest number of pairs that each window can have, int64 of shape (n_windows,)."""
        return np.minimum(self.stream.n_pairs, self.max_length)[self._run]

    def batch(self, indices):
        """Return the pairs of some windows, as two arrays of ids (B, T).

        The first array has the first tokens of the pairs, and the second the tokens that follow
        them. Both are PADDING after the end of a window. The second is PADDING as well where a
        pair counts in an earlier window.

        Parameters
        ----------
        indices : ndarray of int of shape (B,)
            Positions of the windows among all windows.
        """
        number = self._number[indices]
        ids, following = self._pairs_from(self._run[indices], number * self.stride)
        shared = np.arange(ids.shape[1]) < self.max_length - self.stride
        following[(number > 0)[:, None] & shared] = PADDING
        return ids, following

    def moved_batch(self, indices, shifts):
        """Return the pairs of some windows as :meth:`batch`, from windows that are moved.

        No window leaves its run, and all pairs count.

        Parameters
        ----------
        indices : ndarray of int of shape (B,)
            Positions of the windows among all windows.
        shifts : ndarray of float of shape (B,)
            By how much each window is moved, from -1/2 to 1/2. The unit is the distance between
            the starts of windows that are spread evenly over their run.
        """
        run = self._run[indices]
        starts = np.rint((self._number[indices] + shifts) * self._spacing[run])
        last_start = np.maximum(self.stream.n_pairs[run] - self.max_length, 0)
        return self._pairs_from(run, np.clip(starts.astype(np.int64), 0, last_start))

    def _pairs_from(self, runs, starts):
        """Return up to `max_length` pairs of each of the runs (B,): tokens, and next tokens.

        Both are arrays (B, T) padded with PADDING, as :meth:`batch` returns them. `starts` (B,)
        are the positions of the first of these pairs in their runs.
        """
        stream = self.stream
        lengths = np.minimum(stream.n_pairs[runs] - starts, self.max_length)
        offsets = np.arange(lengths.max())
        is_pair = offsets < lengths[:, None]  # (B, T)
        # Any position serves where there is no pair.
        positions = np.where(is_pair, (stream.first[runs] + starts)[:, None] + offsets, 0)
        ids = stream.ids[positions].astype(np.int64)
        following = stream.ids[positions + 1].astype(np.int64)
        return np.where(is_pair, ids, PADDING), np.where(is_pair, following, PADDING)


def context_start(n_tokens, max_length):
    """Return the position of the first token of the context after `n_tokens` tokens.

    The next token is predicted from this context. The tokens are counted with START. The
    position is 0 as long as all tokens fit into `max_length`. Then the context moves on by half
    of `max_length` at a time, so that keys and values that are cached while a text is generated
    can be used for many tokens.
    """
    stride = context_stride(max_length)
    return stride * -(-max(n_tokens - max_length, 0) // stride)


def context_stride(max_length):
    """Return the number of tokens by which the context moves on at a time."""
    return max(1, max_length // 2)
