"""Reader of sequences of numbers, whose steps are joined to overlapping patches."""

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
    """Reader of sequences of numbers that have the channels of training sequences."""

    scales: dict  # `center` and `scale` of the channels, see `learn_channels`
    max_length: int | None  # how many steps of a sequence are read at most; None means all
    patch_length: int  # number of steps in a token

    form = "steps"

    @classmethod
    def learn(cls, X, has_weight, estimator, architecture):
        """Learn scales from the sequences with weight, and read these sequences.

        Arguments and results are those of :meth:`TableReader.learn`, but for SequenceRows in
        place of TableRows.
        """
        sequences = _sequences(X, estimator, reset=True)
        _warn_of_layout(sequences)
        check_consistent_length(sequences, has_weight)
        sequences = [sequences[row] for row in np.flatnonzero(has_weight)]
        scales = learn_channels(sequences)
        rows = step_rows(sequences, scales)
        max_length = learn_length(rows.lengths, estimator.max_length, architecture)
        rows = cut(rows, max_length, estimator)
        patch_length = architecture.patch_length
        if patch_length == "auto":
            # A patch has at most 16 steps, and the median sequence is as long as about eight
            # patches.
            patch_length = min(max(1, int(np.median(rows.lengths)) // 8), 16)
        return cls(scales, max_length, int(patch_length)), rows

    def read(self, X, estimator):
        """Read sequences as SequenceRows, and return them with the dtype of their numbers."""
        sequences = _sequences(X, estimator, reset=False)
        n_channels, expected = sequences[0].shape[1], len(self.scales["center"])
        if n_channels != expected:
            raise ValueError(
                f"X has steps of {n_channels} channels, but of {expected} when fitted: pass "
                f"arrays of shape (T, {expected})."
            )
        dtype = np.result_type(*{sequence.dtype for sequence in sequences})
        return cut(step_rows(sequences, self.scales), self.max_length, estimator), dtype

    def network_rows(self, rows):
        """Return rows in the form in which the network takes them: their steps are patches."""
        return join_patches(rows, self.patch_length)

    def token_arguments(self):
        """Return the arguments of StepTokens."""
        return {"n_channels": len(self.scales["center"]) * self.patch_length}


def read_steps(X):
    """Read sequences as a list of arrays (T_i, d), with NaN for missing values.

    Sequences of float32 stay float32, and all others become float64. A ValueError names the
    sequence that is not valid.
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
    """Learn ``center`` and ``scale`` (d,) of channels: mean and standard deviation."""
    channels = np.concatenate(sequences).astype(np.float64).T
    stats = np.array([mean_and_scale(x[~np.isnan(x)]) for x in channels])
    return {"center": stats[:, 0], "scale": stats[:, 1]}


def step_rows(sequences, scales):
    """Standardise sequences (T_i, d), and return them as SequenceRows."""
    steps = (np.concatenate(sequences) - scales["center"]) / scales["scale"]
    # Much larger numbers would be infinite in single precision.
    steps = np.clip(steps, -1e15, 1e15).astype(np.float32)
    return SequenceRows(steps, np.array([len(sequence) for sequence in sequences]))


def join_patches(rows, length):
    """Join every `length` steps in a row to a patch; return SequenceRows of patches.

    A patch begins half a patch after the one before it. If a step has d channels, a patch has
    length * d channels, which are NaN for steps after the end of the sequence.
    """
    if length == 1:
        return rows
    stride = length // 2
    n_patches = 1 - (-np.maximum(rows.lengths - length, 0) // stride)
    first_patch = np.cumsum(n_patches) - n_patches
    sequence = np.repeat(np.arange(len(rows)), n_patches)  # position of each patch's sequence
    starts = (np.arange(n_patches.sum()) - first_patch[sequence]) * stride
    offsets = starts[:, None] + np.arange(length)  # steps since the start of the sequence
    is_step = offsets < rows.lengths[sequence][:, None]
    steps = rows.steps[np.where(is_step, rows.starts[sequence][:, None] + offsets, 0)]
    steps[~is_step] = np.nan
    return SequenceRows(steps.reshape(len(steps), np.prod(steps.shape[1:])), n_patches)


def _sequences(X, estimator, *, reset):
    """Read sequences as arrays (T_i, d); each row of a table is a sequence.

    The columns of a table are checked as scikit-learn checks features. `reset` is True in a
    fit, which stores their number and names.
    """
    if _is_table(X):
        X = numeric_table(X)
        checks = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
        if reset or hasattr(estimator, "n_features_in_"):
            X = validate_data(estimator, X, reset=reset, **checks)
        else:
            X = check_array(X, input_name="X", **checks)
    return read_steps(X)


def _is_table(X):
    """Return whether X is an array or a frame of numbers, which scikit-learn can check."""
    n_axes = getattr(X, "ndim", None)
    if n_axes is None:
        return hasattr(X, "__array__")
    return n_axes == 2 or (n_axes == 1 and getattr(X.dtype, "kind", "O") in "biuf")


def _warn_of_layout(sequences):
    """Warn if sequences have more channels than steps, as if both axes were swapped."""
    n_steps, n_channels = max(map(len, sequences)), sequences[0].shape[1]
    if n_steps < n_channels:
        warn_user(
            f"X is read as sequences of at most {n_steps} steps with {n_channels} channels "
            "each, (n_samples, n_steps, n_channels): where channels come first, as in aeon, "
            "pass X.transpose(0, 2, 1), or [x.T for x in X] of a list.",
        )


def _read(position, sequence):
    """Read the sequence at a position of X as an array of numbers, (T,) or (T, d)."""
    where = f"X[{position}]"
    try:
        steps = np.asarray(as_numbers(where, sequence, "pass numbers"))
        steps = steps if steps.dtype == np.float32 else steps.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where} is not a sequence of numbers ({error}): pass an array of shape (T,) or "
            "(T, d), of numbers only."
        ) from error
    if steps.ndim not in (1, 2):
        raise ValueError(
            f"{where} has {steps.ndim} dimensions: pass an array of shape (T,) or (T, d)."
        )
    if not steps.size:
        raise ValueError(
            f"{where} is empty, of shape {steps.shape}: leave it out, or pass at least one "
            "step."
        )
    if np.isinf(steps).any():
        step = int(np.argwhere(np.isinf(steps))[0, 0])
        raise ValueError(
            f"{where} is infinite at step {step}: pass a finite number, or NaN for a missing "
            "one."
        )
    return steps
