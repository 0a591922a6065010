"""Sequences of numbers: what users pass, and steps as a network takes them."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from .._base import warn_user
from .._column_stats import mean_and_scale
from .._frames import numeric_table
from .._validation import as_numbers
from ._forms import SequenceRows, cut, learn_length


@dataclass(frozen=True, eq=False)
class SeriesReader:
    """Reads sequences of numbers by `scales` of their channels, up to `max_length` steps."""

    scales: dict
    max_length: int | None
    patch_length: int

    form = "steps"

    @classmethod
    def learn(cls, X, kept, estimator, architecture):
        """A reader, and the rows that it was learned from, which the mask `kept` chooses.

        scikit-learn's checks are of tables, whose rows are sequences, as of the estimator.
        """
        sequences = _sequences(X, estimator, reset=True)
        _warn_of_layout(sequences)
        check_consistent_length(sequences, kept)
        sequences = [sequences[row] for row in np.flatnonzero(kept)]
        scales = learn_channels(sequences)
        rows = step_rows(sequences, scales)
        max_length = learn_length(rows.lengths, estimator.max_length, architecture)
        rows = cut(rows, max_length, estimator)
        patch_length = architecture.patch_length
        if patch_length == "auto":
            # Or as many as leave eight patches.
            patch_length = min(max(1, int(np.median(rows.lengths)) // 8), 16)
        return cls(scales, max_length, int(patch_length)), rows

    def read(self, X, estimator):
        """SequenceRows of sequences of the channels that were learned, and their precision."""
        sequences = _sequences(X, estimator, reset=False)
        n_channels, expected = sequences[0].shape[1], len(self.scales["center"])
        if n_channels != expected:
            raise ValueError(
                f"X has steps of {n_channels} channels, but of {expected} when fitted: pass "
                f"arrays of shape (T, {expected})."
            )
        dtype = np.result_type(*{sequence.dtype for sequence in sequences})
        return cut(step_rows(sequences, self.scales), self.max_length, estimator), dtype

    def tokens_of(self, rows):
        """Rows as the network takes them: steps in patches."""
        return patched(rows, self.patch_length)

    def token_arguments(self):
        """Arguments of the network's tokens."""
        return {"n_channels": len(self.scales["center"]) * self.patch_length}


def read_steps(X):
    """Sequences as arrays (T_i, d), NaN where a value is missing.

    They are float32 where they were, else float64. A ValueError names the sequence at fault.
    """
    if not hasattr(X, "__len__") or isinstance(X, str | bytes | dict | set):
        raise ValueError(
            f"X of type {type(X).__name__} has no sequences: pass an array, or a list of "
            "arrays, one for each sequence."
        )
    sequences = [_read(position, sequence) for position, sequence in enumerate(X)]
    if not sequences:
        raise ValueError("X has no sequences: pass at least one.")
    first = sequences[0].shape[1:]
    for position, sequence in enumerate(sequences):
        if sequence.shape[1:] != first:
            raise ValueError(
                f"X[{position}] has shape {sequence.shape}, but those before it have steps of "
                f"shape {first}: pass sequences with the same number of channels."
            )
    return [sequence.reshape(len(sequence), -1) for sequence in sequences]


def learn_channels(sequences):
    """Mean and standard deviation of each channel, ``center`` and ``scale``."""
    channels = np.concatenate(sequences).astype(np.float64).T
    measures = np.array([mean_and_scale(x[~np.isnan(x)]) for x in channels])
    return {"center": measures[:, 0], "scale": measures[:, 1]}


def step_rows(sequences, scales):
    """SequenceRows of sequences (T_i, d), in units of the scales."""
    steps = (np.concatenate(sequences) - scales["center"]) / scales["scale"]
    # Further than that, single precision would call it infinite.
    steps = np.clip(steps, -1e15, 1e15).astype(np.float32)
    return SequenceRows(steps, np.array([len(sequence) for sequence in sequences]))


def patched(rows, length):
    """SequenceRows of overlapping patches of steps, each of which begins half of one later.

    Steps then have `length` times as many channels; NaN behind the end of a sequence.
    """
    if length == 1:
        return rows
    stride = length // 2
    counts = 1 - (-np.maximum(rows.lengths - length, 0) // stride)
    first = np.cumsum(counts) - counts
    own = np.repeat(np.arange(len(rows)), counts)
    begins = (np.arange(counts.sum()) - first[own]) * stride
    places = begins[:, None] + np.arange(length)  # (n_patches, length)
    there = places < rows.lengths[own][:, None]
    steps = rows.steps[np.where(there, rows.starts[own][:, None] + places, 0)]
    steps[~there] = np.nan
    return SequenceRows(steps.reshape(len(steps), np.prod(steps.shape[1:])), counts)


def _sequences(X, estimator, *, reset):
    """Sequences as arrays; the rows of a table, whose columns are checked, are some too."""
    if _is_table(X):
        X = numeric_table(X)
        checks = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
        if reset or hasattr(estimator, "n_features_in_"):
            X = validate_data(estimator, X, reset=reset, **checks)
        else:
            X = check_array(X, input_name="X", **checks)
    return read_steps(X)


def _is_table(X):
    """True for arrays and frames of numbers, which scikit-learn checks as tables."""
    n_axes = getattr(X, "ndim", None)
    if n_axes is None:
        return hasattr(X, "__array__")
    return n_axes == 2 or (n_axes == 1 and getattr(X.dtype, "kind", "O") in "biuf")


def _warn_of_layout(sequences):
    """Warn where sequences have more channels than steps, as when both are exchanged."""
    n_steps, n_channels = max(map(len, sequences)), sequences[0].shape[1]
    if n_steps < n_channels:
        warn_user(
            f"X is read as sequences of at most {n_steps} steps with {n_channels} channels "
            "each, (n_samples, n_steps, n_channels): where channels come first, as in aeon, "
            "pass X.transpose(0, 2, 1), or [x.T for x in X] of a list.",
        )


def _read(position, sequence):
    """One sequence as an array of numbers."""
    where = f"X[{position}]"
    try:
        found = np.asarray(as_numbers(where, sequence, "pass numbers"))
        found = found if found.dtype == np.float32 else found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where} is not a sequence of numbers ({error}): pass an array of shape (T,) or "
            "(T, d), of numbers only."
        ) from error
    if found.ndim not in (1, 2):
        raise ValueError(
            f"{where} has {found.ndim} dimensions: pass an array of shape (T,) or (T, d)."
        )
    if not found.size:
        raise ValueError(
            f"{where} is empty, of shape {found.shape}: leave it out, or pass at least one "
            "step."
        )
    if np.isinf(found).any():
        step = int(np.argwhere(np.isinf(found))[0, 0])
        raise ValueError(
            f"{where} is infinite at step {step}: pass a finite number, or NaN for a missing "
            "one."
        )
    return found
