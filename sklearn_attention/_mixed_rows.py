"""Rows of numbers and categories, read the same way in fit and in predict."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._base import AttentionEstimator
from ._columns import Columns
from ._validation import check_numeric


class MixedRows(AttentionEstimator):
    """Base class of estimators that read rows of numbers and categories."""

    _held = (("columns_", Columns),)
    # A parameter of some of them.
    categorical_features = "from_dtype"
    # Whether it matters to them that a category is ordered.
    _ordered_categories = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _learn_rows(self, X, dtype=np.float64, **checks):
        """Training rows as numbers and codes, and targets if there are any."""
        with check_numeric("X"):
            columns = Columns.learn(
                X, self.categorical_features, ordered=self._ordered_categories
            )
            checked = validate_data(self, columns.encode(X), **checks, dtype=dtype)
        self.columns_ = columns
        return checked

    def _read_rows(self, X, dtype=np.float64, **checks):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        if self.columns_.categorical and hasattr(X, "columns"):
            # Before levels are looked up: columns in another order are the better news.
            validate_data(self, X, reset=False, skip_check_array=True)
        with check_numeric("X"):
            X = self.columns_.encode(X)
            return validate_data(self, X, **checks, reset=False, dtype=dtype)


def check_key_weights(sample_weight, X):
    """Weights of the training rows as an array, or None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        What the user passed.
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    weights : ndarray of shape (n_samples,) or None
    """
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero for every row: leave at least one above 0.")
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if weights.max() > np.finfo(np.float64).max / len(weights):
        raise ValueError("sample_weight sums to infinity: divide it by its largest value.")
    return weights
