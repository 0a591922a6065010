"""What form X has: a table, sequences of steps, or texts."""

import numpy as np

FORMS = ("features", "steps", "text")
_REMEDY = (
    "pass a table (rows and features), an array of shape (n_samples, n_steps, n_channels), or "
    "a list of sequences or texts"
)


def form_of(X):
    """Guess what the tokens of X are.

    Parameters
    ----------
    X : object
        What the user passed.

    Returns
    -------
    form : {"features", "steps", "text"}
        "text" for strings, and for lists of integers of different lengths; "steps" for
        three dimensions, lists of tables, and lists of other numbers of different lengths;
        "features" for all else, which is or should be a table.

    Raises
    ------
    ValueError
        If there is nothing in X, or it has too many dimensions.

    Examples
    --------
    >>> from sklearn_attention.transformer._forms import form_of
    >>> form_of([[1.0, 2.0], [3.0, 4.0]]), form_of([[1.0, 2.0], [3.0]]), form_of(["a b", "c"])
    ('features', 'steps', 'text')
    """
    n_axes = getattr(X, "ndim", None)
    if n_axes is not None and n_axes > 3:
        raise ValueError(f"X has {n_axes} dimensions, shape {tuple(X.shape)}: {_REMEDY}.")
    if n_axes == 3:
        return "steps"
    if isinstance(X, str | bytes):
        raise ValueError(f"X={X[:40]!r} is a single text: pass a list of texts, such as [X].")
    if not (isinstance(X, list | tuple) or n_axes == 1) or hasattr(X, "columns"):
        return "features"
    items = list(X)
    if not items:
        raise ValueError(f"X has no rows: {_REMEDY}.")
    if isinstance(items[0], str):
        return "text"
    if not all(_is_sequence(item) for item in items):
        return "features"
    if any(len(item) and _is_sequence(item[0]) for item in items):
        return "steps"
    if len({len(item) for item in items}) == 1:
        return "features"
    # np.asarray of nothing is of floats.
    kinds = {np.asarray(item).dtype.kind for item in items if len(item)}
    return "text" if kinds and kinds <= {"i", "u"} else "steps"


def _is_sequence(item):
    return isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim > 0)
