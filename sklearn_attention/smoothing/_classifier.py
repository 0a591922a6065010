"""Nadaraya-Watson classification: averages of the indicators of the classes."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from .._base import keeps_state_on_failure, with_callbacks
from .._labels import (
    ClassLabels,
    best_classes,
    check_labels,
    classes_of_outputs,
    indicators,
    multiply_class_weights,
    read_labels,
    refuse_new_classes,
    sorted_classes,
    split_classes,
)
from .._partitions import reduce_rows
from ..bandwidth._neighbors import AdaptiveBandwidth
from ..kernels import Kernel
from ._estimator import KernelSmoother
from ._fitted_smoother import refuse_negative

# Words of the message of `refuse_new_classes`: the parameter, the call that names all classes,
# and the remedy.
_WORDS_ABOUT_NEW_CLASSES = "y", "the first call of partial_fit", "name all of them there"


class NadarayaWatsonClassifier(ClassLabels, ClassifierMixin, KernelSmoother):
    r"""Classification by kernel-weighted votes of the training rows.

    Take it for one to about ten features if you want to see the weight of every training row.
    :class:`KernelAttentionClassifier` mostly predicts better if there are many features, but is
    slower.

    .. math:: \hat P(y = c \mid x) = \frac{\sum_i w_i K((x - x_i) / h)\, [y_i = c]}
                                          {\sum_j w_j K((x - x_j) / h)}

    Nadaraya-Watson regression on the indicators of the classes.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Similarity of rows, as for :class:`NadarayaWatsonRegressor`. Kernels that take negative
        values are refused.
    bandwidth : str, float, array-like or AdaptiveBandwidth, default="penalized-loo"
        As for :class:`NadarayaWatsonRegressor`; the squared error is the Brier score.
    per_feature, categorical_features, algorithm, gap, random_state
        As for :class:`NadarayaWatsonRegressor`.
    class_weight : dict, list of dict, "balanced" or None, default=None
        Factor of the `sample_weight` of the rows of each class; "balanced" is in inverse
        proportion to the frequency of the class, which :meth:`partial_fit` refuses. Several
        outputs have a dict each, whose factors multiply.
    empty : {"nearest", "nan"}, default="nearest"
        Prediction where no training row has weight: the nearest row's class, or NaN
        probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        The classes; a list if there are several outputs.
    values_ : ndarray of bool of shape (n_samples, n_indicators)
        Indicators of the classes, side by side for all outputs.
    bandwidth_, n_neighbors_, criterion_value_, bandwidth_search_, relevance_
        As for :class:`NadarayaWatsonRegressor`, like all that follow.
    kernel_, keys_, key_weights_, columns_, n_features_in_, feature_names_in_
        The kernel, the training rows, and the kinds, number and names of their columns.

    See Also
    --------
    NadarayaWatsonRegressor : The same for numbers.
    sklearn.neighbors.KNeighborsClassifier : Votes of a fixed number of neighbours.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_attention import NadarayaWatsonClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, y)
    >>> model.predict_proba(X[:1]).round(3)
    array([[1., 0., 0.]])
    >>> round(model.score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "gaussian",
        *,
        bandwidth: str | ArrayLike | AdaptiveBandwidth = "penalized-loo",
        per_feature: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        class_weight: dict[Any, Any] | Sequence[Any] | str | None = None,
        algorithm: str = "auto",
        empty: str = "nearest",
        gap: int = 0,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            kernel,
            bandwidth=bandwidth,
            per_feature=per_feature,
            categorical_features=categorical_features,
            algorithm=algorithm,
            empty=empty,
            gap=gap,
            random_state=random_state,
        )
        self.class_weight = class_weight

    # The Brier score adds up the classes' errors as they are.
    _standardizes_outputs = False

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the training data and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows. They are copied, but a memory map of floats stays where it is, and
            so do arrays and data frames of Dask.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: at a given bandwidth, weight 2 is the row twice and
            weight 0 its absence.

        Returns
        -------
        self : NadarayaWatsonClassifier

        Raises
        ------
        ValueError
            If data or parameters are not valid, or the kernel takes negative values. The
            estimator then is as it was before.
        """
        return self._fit_first_rows(X, y, classes=None, sample_weight=sample_weight)

    def _fit_first_rows(self, X, y, classes, sample_weight):
        """Fit rows in `fit`, or in the first call of `partial_fit`; return `self`.

        `classes` are all classes that may occur later, None for those in `y`.
        """
        # `read_labels` returns an array, whose length `_learn_rows` compares with that of X.
        # `check_labels` refuses targets that are no classes.
        X, y = self._learn_rows(X, y=read_labels(y), multi_output=True)
        y = check_labels(y)
        self.classes_ = sorted_classes(y, classes)
        if classes is not None:
            refuse_new_classes(y, self.classes_, *_WORDS_ABOUT_NEW_CLASSES)
        weights = multiply_class_weights(sample_weight, self.class_weight, y)
        return self._store(X, indicators(y, self.classes_, bool), weights)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y, classes=None, sample_weight=None) -> Self:
        """Append training rows.

        The result equals `fit` on all rows so far; bandwidth rules are applied again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their classes.
        classes : array-like of shape (n_classes,), or list of such, default=None
            All classes that will ever occur; needed in the first call if later rows bring
            classes that the first do not have.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; 1 where not given.

        Returns
        -------
        self : NadarayaWatsonClassifier
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} is computed from the frequencies of the "
                "classes in all rows, which partial_fit does not have: pass a dict of weights "
                "by class."
            )
        if not hasattr(self, "keys_"):
            return self._fit_first_rows(X, y, classes, sample_weight)
        # New levels of X are added to the known levels, by which `_read_rows` encodes X.
        self._extend_rows(X)
        X, y = self._read_rows(X, y=read_labels(y), multi_output=True)
        y = check_labels(y)
        first_classes = _class_lists(self.classes_)
        if classes is not None and _class_lists(sorted_classes(y, classes)) != first_classes:
            raise ValueError(
                f"classes={classes!r} differ from those of the first call, {self.classes_!r}: "
                "name all classes there, and leave them out from then on."
            )
        refuse_new_classes(y, self.classes_, *_WORDS_ABOUT_NEW_CLASSES)
        weights = multiply_class_weights(sample_weight, self.class_weight, y)
        return self._store(X, indicators(y, self.classes_, bool), weights, append=True)

    def predict_proba(self, X) -> Any:
        """Probability of each class for each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_classes), or list of such arrays
            Rows sum to 1. A list if there are several outputs.
        """
        return self._predict_rows(self._read_rows(X))

    def _predict_rows(self, X):
        """Predict probabilities of rows X, in which levels are codes.

        The result is that of `predict_proba`.
        """
        # The values of the smoother are indicators of the classes, of all outputs side by side.
        averages = self._smoother.predict(X)
        rounding = np.sqrt(np.finfo(averages.dtype).eps)
        # A kernel that may be negative is refused if it makes a negative probability. This
        # comparison computes averages that are in partitions of Dask.
        negative = self.kernel_.signed is not False and (averages < -rounding).any()
        refuse_negative(self.kernel, negative, "a probability")
        averages = np.clip(averages, 0, None)
        of_outputs = split_classes(averages, self.classes_)
        probabilities = [output / output.sum(axis=1, keepdims=True) for output in of_outputs]
        return probabilities if isinstance(self.classes_, list) else probabilities[0]

    def predict(self, X) -> np.ndarray:
        """Most probable class of each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; of equally probable ones the first. The dtype is object if outputs have
            classes of several types, such as texts and numbers.

        Raises
        ------
        ValueError
            If `empty` is "nan" and a query has no probabilities to choose by.
        """
        probabilities, rows_without_class = classes_of_outputs(self.predict_proba(X)), ()
        # With empty="nearest" every query has probabilities. Otherwise a query lacks them for
        # all outputs or for none, so that it is enough to look at the first output.
        if self._smoother.empty == "nan":
            first_output = probabilities[0]
            positions = np.arange(len(first_output))
            rows_without_class = reduce_rows(_nan_positions, np.append, first_output, positions)
        if len(rows_without_class):
            raise ValueError(
                f"empty='nan' leaves {len(rows_without_class)} rows of X without a class "
                f"(first: row {rows_without_class[0]}), since no training row is near: use "
                "predict_proba, empty='nearest' or a larger bandwidth."
            )
        return best_classes(probabilities, self.classes_)

    def _check_kernel(self):
        """Return a copy of the kernel; raise ValueError if it takes negative values."""
        kernel = super()._check_kernel()
        refuse_negative(self.kernel, kernel.signed, "a probability")
        return kernel


def _nan_positions(probabilities, positions):
    """Return those of the positions (n,) whose probabilities (n, n_classes) are NaN."""
    return positions[np.isnan(probabilities).any(axis=1)]


def _class_lists(classes):
    """Return a list of the classes for each output; such lists can be compared."""
    return [names.tolist() for names in classes_of_outputs(classes)]
