"""Forms of rows, a table, sequences or texts: guessed of X, and as a network takes them."""

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
    # "text" for strings, and for lists of integers of different lengths; "steps" for three
    # dimensions, lists of tables, and lists of other numbers of different lengths; else
    # "features", for what is or should be a table.
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
    # Texts that are missing have their own error.
    if any(isinstance(item, str) for item in items):
        return "text"
    if not all(_is_sequence(item) for item in items):
        return "features"
    if any(_has_channels(item) for item in items):
        return "steps"
    # np.asarray of nothing is of floats.
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
    """True for a sequence with several numbers per step: array, frame, or nested lists."""
    if isinstance(item, list | tuple):
        return any(map(_is_sequence, item))
    return item.ndim > 1


def texts_of(X):
    """Texts to be read: the column of a frame that has no other, else X itself."""
    frame = narwhals_frame(X) if hasattr(X, "columns") else None
    return X if frame is None or len(frame.columns) != 1 else _cells(frame)


def _text_column(X):
    """The only column of a frame, if it is of texts of several words; else None."""
    frame = narwhals_frame(X)
    if frame is None or len(frame.columns) != 1:
        return None
    cells = _cells(frame)
    texts = [cell for cell in cells if isinstance(cell, str)]
    several = len(texts) == len(cells) and any(map(_has_words, texts))
    # Texts of which more than half differ are no levels.
    return texts if several and len(set(texts)) > 0.5 * len(texts) else None


def _has_words(text):
    """True for a text with a space, or letters of Thai and later scripts, which need none."""
    return any(c == " " or (c >= "\u0e00" and c.isalpha()) for c in text)


def _cells(frame):
    return next(frame.iter_columns()).to_list()


class Examples(NamedTuple):
    """Rows with targets (n_rows, n_outputs), numbers or numbers of classes, and weights."""

    rows: object
    targets: np.ndarray
    weights: np.ndarray

    def take(self, chosen):
        """The same of only some rows; `chosen` is an ndarray of int."""
        return Examples(self.rows.take(chosen), self.targets[chosen], self.weights[chosen])

    def of_mean_weight_1(self):
        """The same with weights that leave losses as large as without any."""
        return self._replace(weights=(self.weights / self.weights.mean()).astype(np.float32))

    def arrays(self):
        """All arrays, which identify a data set."""
        return *self.rows.arrays(), self.targets, self.weights


class TableRows:
    """Rows that all have the same tokens, one for every feature."""

    # Numbers (n_rows, n_numeric) are kept as passed, NaN where missing, and in units of their
    # spread, with places among their quantiles; codes of categories are -1 where missing.

    def __init__(self, numbers, standardised, places, codes):
        self._numbers, self._columns = numbers, (standardised, places, codes)
        self.n_numeric = numbers.shape[1]
        self.lengths = np.full(len(codes), self.n_numeric + codes.shape[1])

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """The same of only some rows; `rows` is an ndarray of int."""
        return TableRows(*(part[rows] for part in (self._numbers, *self._columns)))

    def cells(self):
        """Numbers, and behind them codes, with NaN for what is missing."""
        codes = self._columns[-1]
        return np.column_stack([self._numbers, np.where(codes < 0, np.nan, codes)])

    def arrays(self):
        """All inputs of a network, which identify a data set."""
        return self._columns

    def batch(self, rows):
        """Inputs of the network for some rows, (B, ...), and None: nothing is padding."""
        return tuple(part[rows] for part in self._columns), None


class SequenceRows:
    """Rows that are sequences of one step at least, end to end in one array (n_steps, ...)."""

    def __init__(self, steps, lengths):
        self.steps, self.lengths = steps, lengths
        self.starts = np.cumsum(lengths) - lengths

    def __len__(self):
        return len(self.lengths)

    def take(self, rows):
        """The same of only some rows; `rows` is an ndarray of int."""
        (steps,), real = self.batch(rows)
        steps = steps.reshape(-1, *steps.shape[2:]) if real is None else steps[real]
        return SequenceRows(steps, self.lengths[rows])

    def cut(self, length):
        """The same without what follows the first so many steps of each."""
        places = np.arange(len(self.steps)) - np.repeat(self.starts, self.lengths)
        return SequenceRows(self.steps[places < length], np.minimum(self.lengths, length))

    def arrays(self):
        """All arrays, which identify a data set."""
        return self.steps, self.lengths

    def batch(self, rows):
        """Inputs of the network for some rows, ((B, T, ...),), and which are real, (B, T).

        Padded to the longest of the batch; None where there is no padding.
        """
        lengths = self.lengths[rows]
        places = np.arange(lengths.max(initial=0))
        real = places < lengths[:, None]  # (B, T)
        # Padding repeats the first step of its row, which no result depends on.
        steps = self.steps[self.starts[rows][:, None] + np.where(real, places, 0)]
        return (steps,), None if real.all() else real


def learn_length(lengths, max_length, architecture):
    """Most tokens of a sequence; of training sequences the longest with learned positions."""
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
    """SequenceRows of at most that length, with a warning where that changes any."""
    n_longer = int((rows.lengths > (max_length or np.inf)).sum())
    if not n_longer:
        return rows
    name = "max_length" if estimator.max_length is not None else "the longest in training,"
    warn_user(
        f"{n_longer} of {len(rows)} sequences are longer than {name} {max_length}, and their "
        f"steps beyond it are ignored. Pass a larger {name} to use them.",
    )
    return rows.cut(max_length)
