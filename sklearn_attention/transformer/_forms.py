"""Forms of rows: "features" of a table, "steps" of sequences of numbers, or tokens of "text".

The form is guessed from X. A reader of this form turns X into TableRows or SequenceRows, from
which a network takes batches: TableRows have one token per feature, SequenceRows one per step
or token of a text. `lengths` are the numbers of tokens of the rows.
"""

from typing import NamedTuple

import numpy as np

from .._base import warn_user
from .._frames import narwhals_frame, to_pandas

FORMS = ("features", "steps", "text")
_REMEDY = (
    "pass a table (rows and features), an array of shape (n_samples, n_steps, n_channels), or "
    "a list of sequences or texts"
)


def form_of(X):
    """Guess the tokens of X: "features", "steps" or "text"; ValueError if X is ambiguous."""
    # The form is "text" for strings, and for lists of integers of different lengths; it is
    # "steps" for three dimensions, lists of tables, and lists of other numbers of different
    # lengths; else it is "features", for what is or should be a table.
    X = X if hasattr(X, "columns") else to_pandas(X)
    n_axes = getattr(X, "ndim", None)
    if n_axes is not None and n_axes > 3:
        raise ValueError(f"X has {n_axes} dimensions, shape {tuple(X.shape)}: {_REMEDY}.")
    if n_axes == 3:
        return "steps"
    if isinstance(X, str | bytes):
        raise ValueError(f"X={X[:40]!r} is a single text: pass a list of texts, such as [X].")
    if hasattr(X, "columns"):
        return "text" if _text_column(X) is not None else "features"
    if not (isinstance(X, list | tuple) or n_axes == 1):
        return "features"
    items = list(X)
    if not items:
        raise ValueError(f"X has no rows: {_REMEDY}.")
    # One string is enough: the reader of texts has an error of its own for missing texts.
    if any(isinstance(item, str) for item in items):
        return "text"
    if not all(_is_sequence(item) for item in items):
        return "features"
    if any(_has_channels(item) for item in items):
        return "steps"
    # Empty items are left out, since np.asarray makes floats of them.
    kinds = {np.asarray(item).dtype.kind for item in items if len(item)}
    if len({len(item) for item in items}) == 1 and n_axes is None:
        if kinds and kinds <= {"i", "u"}:
            raise ValueError(
                "X is a list of lists of integers of one length, which may be rows of a table, "
                "series of numbers or sequences of token ids: pass tokens='features', 'steps' "
                "or 'text', or an array for a table."
            )
        return "features"
    return "text" if kinds and kinds <= {"i", "u"} else "steps"


def _is_sequence(item):
    return isinstance(item, list | tuple) or getattr(item, "ndim", 0) > 0


def _has_channels(item):
    """Return whether an array, a frame or nested lists have several numbers per step."""
    if isinstance(item, list | tuple):
        return any(map(_is_sequence, item))
    return item.ndim > 1


def texts_of(X):
    """Return the texts to read: the cells of a frame of one column, or else X itself."""
    frame = narwhals_frame(X) if hasattr(X, "columns") else None
    return X if frame is None or len(frame.columns) != 1 else _cells(frame)


def _text_column(X):
    """Return the only column of a frame as a list of texts; None if it is a category."""
    frame = narwhals_frame(X)
    if frame is None or len(frame.columns) != 1:
        return None
    cells = _cells(frame)
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells) or not any(map(_has_words, texts)):
        return None
    # Levels of a category repeat: texts are those of which more than half differ.
    return texts if len(set(texts)) > 0.5 * len(texts) else None


def _has_words(text):
    """Return whether a text has a space, or letters of a script that needs no spaces.

    These are the scripts from Thai on, in the order of Unicode.
    """
    return any(c == " " or (c >= "\u0e00" and c.isalpha()) for c in text)


def _cells(frame):
    return next(frame.iter_columns()).to_list()


class Examples(NamedTuple):
    """Rows with targets (n_rows, n_targets), numbers or positions of classes, and weights."""

    rows: object  # TableRows or SequenceRows
    targets: np.ndarray
    weights: np.ndarray

    def take(self, positions):
        """Return the examples at `positions`, an ndarray of int."""
        targets, weights = self.targets[positions], self.weights[positions]
        return Examples(self.rows.take(positions), targets, weights)

    def with_tokens_of(self, reader):
        """Return the examples with the rows that the network takes of a reader."""
        return self._replace(rows=reader.tokens_of(self.rows))

    def of_mean_weight_1(self):
        """Return the examples with weights of mean 1, so that learning rates fit."""
        return self._replace(weights=(self.weights / self.weights.mean()).astype(np.float32))

    def arrays(self):
        """Return all arrays, by which a checkpoint recognises its data."""
        return *self.rows.arrays(), self.targets, self.weights


class TableRows:
    """Rows that all have the same tokens, one for every feature.

    Arguments are arrays: the `numbers` (n_rows, n_numeric) as they were passed, NaN where
    missing; the same numbers `standardised`; their `positions` among the quantiles; and `codes`
    (n_rows, n_categorical) of levels, -1 where missing.
    """

    def __init__(self, numbers, standardised, positions, codes):
        self._numbers, self._inputs = numbers, (standardised, positions, codes)
        self.n_numeric = numbers.shape[1]
        self.lengths = np.full(len(codes), self.n_numeric + codes.shape[1])

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """Return the TableRows at the positions `rows`, an ndarray of int."""
        return TableRows(self._numbers[rows], *(array[rows] for array in self._inputs))

    def cells(self):
        """Return numbers, and to their right codes, with NaN for missing cells."""
        codes = self._inputs[-1]
        return np.column_stack([self._numbers, np.where(codes < 0, np.nan, codes)])

    def arrays(self):
        """Return the inputs of a network for all rows, by which checkpoints recognise data."""
        return self._inputs

    def batch(self, rows):
        """Return the inputs of the network for rows, and None, since nothing is padding."""
        return tuple(array[rows] for array in self._inputs), None


class SequenceRows:
    """Rows that are sequences of at least one step, end to end in one array (n_steps, ...).

    A step is a vector of numbers or the id of a token. `lengths` (n_rows,) counts steps.
    """

    def __init__(self, steps, lengths):
        self.steps, self.lengths = steps, lengths
        self.starts = np.cumsum(lengths) - lengths

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """Return the SequenceRows at the positions `rows`, an ndarray of int."""
        (steps,), is_token = self.batch(rows)
        steps = steps.reshape(-1, *steps.shape[2:]) if is_token is None else steps[is_token]
        return SequenceRows(steps, self.lengths[rows])

    def cut(self, length):
        """Return the first `length` steps of each sequence."""
        offsets = np.arange(len(self.steps)) - np.repeat(self.starts, self.lengths)
        return SequenceRows(self.steps[offsets < length], np.minimum(self.lengths, length))

    def arrays(self):
        """Return all arrays, by which a checkpoint recognises its data."""
        return self.steps, self.lengths

    def batch(self, rows):
        """Return the input of the network for rows, and where it is no padding.

        Returns
        -------
        inputs : tuple of one ndarray of shape (B, T, ...)
            Steps, padded to the longest sequence of the batch.
        is_token : ndarray of bool of shape (B, T), or None
            False for padding; None if nothing is padding.
        """
        lengths = self.lengths[rows]
        offsets = np.arange(lengths.max(initial=0))
        is_token = offsets < lengths[:, None]  # (B, T)
        # Padding may have any value, and repeats the first step of its row.
        steps = self.steps[self.starts[rows][:, None] + np.where(is_token, offsets, 0)]
        return (steps,), None if is_token.all() else is_token


def learn_length(lengths, max_length, architecture):
    """Return the largest number of tokens of a sequence that are read, None for all.

    `lengths` are those of training sequences. Learned positions exist only up to the longest.
    """
    if max_length is not None:
        return max_length
    longest, typical = int(lengths.max()), int(np.median(lengths))
    if architecture.positions == "learned":
        return longest
    times = 20
    # A sequence of 2000 tokens takes long.
    if longest >= max(2000, times * typical):
        warn_user(
            f"X has sequences of up to {longest} tokens, but typically of {typical}, and the "
            f"time grows with the square of the length. Pass max_length={times * typical} to "
            "cut those that are longer.",
        )
    return None


def cut(rows, max_length, estimator):
    """Cut SequenceRows to `max_length`, None for any length, and warn if this changes any."""
    n_longer = int((rows.lengths > (max_length or np.inf)).sum())
    if not n_longer:
        return rows
    name = "max_length" if estimator.max_length is not None else "the longest in training,"
    warn_user(
        f"{n_longer} of {len(rows)} sequences are longer than {name} {max_length}, and their "
        f"steps beyond it are ignored. Pass a larger {name} to use them.",
    )
    return rows.cut(max_length)
