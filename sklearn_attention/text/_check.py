"""Checks of texts and of sequences of token ids that users pass."""

import functools
import reprlib
from collections.abc import Mapping, Set

import numpy as np
from scipy.sparse import issparse

from ._files import TextFiles


def check_sequences(name, sequences, *, empty=False):
    """Check sequences that a user passed as `name`; return their kind, and a list of them.

    The kind is "text" for a list of str, and "ids" for a list of int64 arrays. A ValueError
    names the first sequence that is neither, or that is of another kind than the first one.
    Empty sequences are refused unless `empty` is True.
    """
    if isinstance(sequences, TextFiles):
        return "text", sequences  # files are checked as they are read
    items = _list_of(name, sequences)
    kind = "text" if isinstance(items[0], str) else "ids"
    checked = []
    for position, item in enumerate(items):
        where = functools.partial(_where, name, position, item)
        # `_ids` has an error of its own for an item that is missing.
        if isinstance(item, str) != (kind == "text") and not _missing(item):
            first_kind = "sequences of ids" if kind == "ids" else "texts"
            raise ValueError(
                f"{where()} is of another kind than those before it, which are {first_kind}: "
                "pass only texts, or only sequences of ids."
            )
        checked.append(str(item) if isinstance(item, str) else _ids(where, item))
        if not empty and not len(checked[-1]):
            raise ValueError(f"{where()} is empty: leave it out, or pass at least one token.")
    return kind, checked


def _list_of(name, sequences):
    """Return `sequences` as a list; raise ValueError unless they are like a list."""
    shown = f"{name}={reprlib.repr(sequences)}"
    if isinstance(sequences, str | bytes):
        raise ValueError(f"{shown} is a single text: pass a list of texts, such as [{name}].")
    if hasattr(sequences, "__next__"):
        raise ValueError(f"{shown} can be read only once: pass list({name}).")
    no_list = isinstance(sequences, Mapping | Set) or issparse(sequences)
    if no_list or not hasattr(sequences, "__len__"):
        raise _refusal(f"{shown} is not a list")
    n_axes = getattr(sequences, "ndim", 1)
    has_integers = getattr(getattr(sequences, "dtype", None), "kind", "O") in "iu"
    if n_axes not in (1, 2) or (n_axes == 2 and not has_integers):
        raise _refusal(
            f"{name} has shape {sequences.shape}, which is not an array of ids of shape (n, T)",
            ", for example one column of a table",
        )
    items = list(sequences)
    if not items:
        raise ValueError(f"{shown} has no sequence: pass at least one.")
    return items


def _refusal(what, example=""):
    """Return the error for sequences that are neither texts nor ids.

    The message begins with `what`, which says what is wrong, and ends with an example of what
    to pass.
    """
    return ValueError(
        f"{what}: pass a list of texts, or a list of sequences of ids, which are integers from "
        f"0 on{example}."
    )


def _where(name, position, item):
    """Return the name of a sequence in messages, such as "X[3]='a text'".

    Call it only for errors, since it takes longer than the check of a sequence.
    """
    return f"{name}[{position}]={reprlib.repr(item)}"


def _ids(where, item):
    """Return one sequence of ids as an array; ``where()`` is its name in messages."""
    if _missing(item):
        raise ValueError(f"{where()} is missing: leave it out, or fill it in.")
    if isinstance(item, bytes | Mapping | Set) or not hasattr(item, "__len__"):
        raise _refusal(f"{where()} is not a sequence")
    try:
        ids = np.asarray(item) if len(item) else np.empty(0, dtype=np.int64)
    except ValueError:
        ids = np.empty((0, 0))
    has_integers = ids.dtype.kind in "iu"
    if not has_integers and ids.ndim == 1 and any(map(_missing, ids.tolist())):
        raise ValueError(f"{where()} has a missing value: leave it out, or fill it in.")
    if not has_integers or ids.ndim != 1 or ids.max(initial=0) > np.iinfo(np.int64).max:
        raise _refusal(f"{where()} is not a sequence of integers")
    if ids.min(initial=0) < 0:
        raise ValueError(
            f"{where()} has a negative id: ids are integers from 0 on. For series of numbers "
            "fit TransformerClassifier or TransformerRegressor with tokens='steps'."
        )
    return ids.astype(np.int64)


def _missing(value):
    """Return whether a value is None, NaN or NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
