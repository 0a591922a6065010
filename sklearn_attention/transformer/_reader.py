"""Readers of each form of rows, and rows with their targets and weights."""

import numpy as np
from sklearn.utils.validation import _check_y, check_consistent_length

from .._validation import check_key_weights, has_validation_set, weight_unit
from ._series_reader import SeriesReader
from ._table_reader import TableReader
from ._text_reader import TextReader

READERS = {"features": TableReader, "steps": SeriesReader, "text": TextReader}


def reader_of(estimator):
    """The reader of an estimator, which has its fields as fitted attributes."""
    kind = READERS[estimator.tokens_]
    return kind(**{name: getattr(estimator, f"{name}_") for name in kind.__annotations__})


def check_targets(estimator, y, sample_weight, **checks):
    """Targets and weights of rows, checked; all weights are 1 where there are none."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    y = _check_y(y, **checks, estimator=estimator)
    weights = check_key_weights(sample_weight, y, np.float32)
    return y, np.ones(len(y)) if weights is None else weights / weight_unit(weights)


def read_examples(estimator, X, y, sample_weight, **checks):
    """Rows that have weight, by the reader of an estimator, all targets and all weights."""
    rows, _ = reader_of(estimator).read(X, estimator)
    y, weights = check_targets(estimator, y, sample_weight, **checks)
    check_consistent_length(range(len(rows)), y)
    return rows.take(np.flatnonzero(weights)), y, weights


def read_validation(estimator, targets, X, y, sample_weight, **checks):
    """As :func:`read_examples`, in a list, which is empty where there is no validation set."""
    if not has_validation_set(X, y):
        if sample_weight is not None:
            raise ValueError("sample_weight_val was passed without X_val: pass both.")
        return []
    try:
        found = read_examples(estimator, X, y, sample_weight, **checks)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X_val and y_val do not fit: {error}") from error
    before, after = targets.shape, found[1].shape
    if before[1:] != after[1:]:
        raise ValueError(
            f"y_val has shape {after}, but y {before}: pass as many outputs in both."
        )
    return [found]
