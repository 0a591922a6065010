"""Forms of rows: "features" of a table, "steps" of sequences of numbers, or tokens of "text".

The form is guessed from X. A reader of this form turns X into TableRows or SequenceRows, from
which a network takes batches: TableRows have a token for each feature, and SequenceRows have
one for each step of a series or token of a text. Their attribute `lengths` (n_rows,) has the
number of tokens of each row.
"""

from typing import NamedTuple

import numpy as np

from .._base import warn_user
from .._frames import narwhals_frame, to_pandas

FORMS = ("features", "steps", "text")
# A user is warned of sequences that are at least this many tokens long and, since the time
# grows with the square of the length, at least this many times as long as the median sequence.
_MIN_LONG, _MIN_RATIO = 2000, 20
_REMEDY = (
    "pass a table (rows and features), an array of shape (n_samples, n_steps, n_channels), or "
    "a list of sequences or texts"
)


def form_of(X):
    """Guess the form of X: "features", "steps" or "text"; raise ValueError if it is ambiguous.

    The form is "text" for strings, and for lists of integers of different lengths. It is
    "steps" for arrays of three dimensions, lists of tables, and lists of other numbers of
    different lengths. For all else, which is or should be a table, it is "features".
    """
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
    """Return whether an item is a list, a tuple or an array, and not a single value."""
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
    """Return whether a text has a space, or letters of a script that needs no spaces."""
    # Unicode has these scripts from Thai on, whose first character is U+0E00.
    return any(c == " " or (c >= "\u0e00" and c.isalpha()) for c in text)


def _cells(frame):
    """Return the cells of the first column of a frame as a list."""
    return next(frame.iter_columns()).to_list()


class Examples(NamedTuple):
    """Rows that have weight, with their targets and weights."""

    rows: object  # TableRows or SequenceRows
    targets: np.ndarray  # (n_rows, n_targets): numbers, or positions among the sorted classes
    weights: np.ndarray  # (n_rows,)

    def take(self, positions):
        """Return the examples at `positions`, an ndarray of int."""
        targets, weights = self.targets[positions], self.weights[positions]
        return Examples(self.rows.take(positions), targets, weights)

    def with_network_rows(self, reader):
        """Return the examples with their rows in the form in which the network takes them."""
        return self._replace(rows=reader.network_rows(self.rows))

    def with_mean_weight_1(self):
        """Divide the weights by their mean, so that the learning rate fits any weights."""
        return self._replace(weights=(self.weights / self.weights.mean()).astype(np.float32))

    def arrays(self):
        """Return all arrays, by which a checkpoint recognises its data."""
        return *self.rows.arrays(), self.targets, self.weights


class TableRows:
    """Rows of a table, which have a token for every feature."""

    def __init__(self, numbers, standardised, positions, codes):
        """Store the cells of a table.

        Parameters
        ----------
        numbers : ndarray of shape (n_rows, n_numeric)
            Numbers as they were passed, NaN where they are missing.
        standardised : ndarray of shape (n_rows, n_numeric)
            The numbers in standard deviations from the mean of their column.
        positions : ndarray of shape (n_rows, n_numeric)
            Positions of the numbers among the quantiles of their column.
        codes : ndarray of int of shape (n_rows, n_categorical)
            Codes of levels, -1 where they are missing or unknown.
        """
        self._numbers, self._inputs = numbers, (standardised, positions, codes)
        self.n_numeric = numbers.shape[1]
        self.lengths = np.full(len(codes), self.n_numeric + codes.shape[1])

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """Return the TableRows at the positions `rows`, an ndarray of int."""
        return TableRows(self._numbers[rows], *(array[rows] for array in self._inputs))

    def cells(self):
        """Return numbers, then codes, (n_rows, n_features), with NaN for missing cells."""
        codes = self._inputs[-1]
        return np.column_stack([self._numbers, np.where(codes < 0, np.nan, codes)])

    def arrays(self):
        """Return the network's inputs, by which a checkpoint recognises its data."""
        return self._inputs

    def batch(self, rows):
        """Return the network's inputs for rows, and None in place of a mask: none is padded."""
        return tuple(array[rows] for array in self._inputs), None


class SequenceRows:
    """Rows that are sequences of steps; a step is a vector of numbers or the id of a token."""

    def __init__(self, steps, lengths):
        """Store the steps of all sequences, one sequence after the other, in one array.

        `steps` is (n_steps, ...), and `lengths` (n_rows,) has the number of steps of each
        sequence, which is at least 1.
        """
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
        """Return the network's input for rows, and a mask of the tokens that are not padding.

        Returns
        -------
        inputs : tuple of one ndarray of shape (B, T, ...)
            Steps, padded to the longest sequence of the batch. It is a tuple, since networks of
            tables have several inputs.
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
    """Return how many tokens of a sequence are read at most; None means all.

    `lengths` are those of training sequences, and `max_length` is the parameter. Learned
    positions exist only up to the longest training sequence.
    """
    if max_length is not None:
        return max_length
    longest, median = int(lengths.max()), int(np.median(lengths))
    if architecture.positions == "learned":
        return longest
    if longest >= max(_MIN_LONG, _MIN_RATIO * median):
        warn_user(
            f"X has sequences of up to {longest} tokens, but typically of {median}, and the "
            f"time grows with the square of the length. Pass max_length={_MIN_RATIO * median} "
            "to cut those that are longer.",
        )
    return None


def cut(rows, max_length, estimator):
    """Cut SequenceRows to `max_length` steps, and warn if any is cut; None cuts nothing."""
    n_longer = 0 if max_length is None else int((rows.lengths > max_length).sum())
    if not n_longer:
        return rows
    limit, remedy = f"max_length {max_length}", "Pass a larger max_length"
    if estimator.max_length is None:
        limit = f"the longest in training, {max_length}"
        remedy = "Fit with architecture__positions='sinusoidal', or with longer sequences,"
    warn_user(
        f"{n_longer} of {len(rows)} sequences are longer than {limit}, and their steps beyond "
        f"it are ignored. {remedy} to use them.",
    )
    return rows.cut(max_length)
