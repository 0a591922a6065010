"""Rows of numbers and categories, read the same way in fit and in predict."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._base import AttentionEstimator
from ._columns import encode_categories, learn_categories
from ._validation import check_numeric


class MixedRows(AttentionEstimator):
    """Base class of estimators that read rows of numbers and categories."""

    # Whether it matters to them that a category is ordered.
    _ordered_categories = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _learn_rows(self, X, dtype=np.float64, **checks):
        """Training rows as numbers and codes, and targets if there are any."""
        categories, kinds = learn_categories(X, ordered=self._ordered_categories)
        X = encode_categories(X, categories, kinds)
        with check_numeric("X"):
            checked = validate_data(self, X, **checks, dtype=dtype)
        n_features = self.n_features_in_
        self.categories_ = categories
        self.kinds_ = ["numeric"] * n_features if kinds is None else kinds
        return checked

    def _read_rows(self, X, dtype=np.float64, **checks):
        """Queries as numbers and codes, and targets if there are any."""
        check_is_fitted(self)
        learned = learn_categories(X, ordered=self._ordered_categories)[0]
        if self.categories_ is None and learned is not None:
            raise ValueError(
                "X has categorical columns, but was numeric when fitted: convert them to "
                "numbers, or fit with categories."
            )
        if self.categories_ is not None and hasattr(X, "columns"):
            # Before levels are looked up: columns in another order are the better news.
            validate_data(self, X, reset=False, skip_check_array=True)
        X = encode_categories(X, self.categories_, self.kinds_)
        with check_numeric("X"):
            return validate_data(self, X, **checks, reset=False, dtype=dtype)

    @property
    def _n_levels(self):
        if self.categories_ is None:
            return [0] * self.n_features_in_
        return [0 if levels is None else len(levels) for levels in self.categories_]

    @property
    def _numeric(self):
        return [j for j, kind in enumerate(self.kinds_) if kind == "numeric"]


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
