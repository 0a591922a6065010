"""Forms of X: a table, sequences of steps, or texts."""

import numpy as np

from .._columns import frame_of

FORMS = ("features", "steps", "text")
# Texts of which more than this share differ are no levels.
_MOST_LEVELS = 0.5
_REMEDY = (
    "pass a table (rows and features), an array of shape (n_samples, n_steps, n_channels), or "
    "a list of sequences or texts"
)


def form_of(X):
    """Guess the tokens of X: "features", "steps" or "text"; ValueError if X is ambiguous."""
    # "text" for strings, and for lists of integers of different lengths; "steps" for three
    # dimensions, lists of tables, and lists of other numbers of different lengths; else
    # "features", for what is or should be a table.
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
    if isinstance(items[0], str):
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
    frame = frame_of(X) if hasattr(X, "columns") else None
    return X if frame is None or len(frame.columns) != 1 else _cells(frame)


def _text_column(X):
    """The only column of a frame, if it is of texts of several words; else None."""
    frame = frame_of(X)
    if frame is None or len(frame.columns) != 1:
        return None
    cells = _cells(frame)
    texts = [cell for cell in cells if isinstance(cell, str)]
    several = len(texts) == len(cells) and any(map(_has_words, texts))
    return texts if several and len(set(texts)) > _MOST_LEVELS * len(texts) else None


def _has_words(text):
    """True for a text with a space, or letters of Thai and later scripts, which need none."""
    return any(c == " " or (c >= "\u0e00" and c.isalpha()) for c in text)


def _cells(frame):
    return next(frame.iter_columns()).to_list()
