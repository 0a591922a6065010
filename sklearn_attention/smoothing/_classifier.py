"""Nadaraya-Watson classification."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._labels import ClassLabels, check_labels, known_classes
from .._state import keeps_state_on_failure
from ._memory import MemoryEstimator


class NadarayaWatsonClassifier(ClassLabels, ClassifierMixin, MemoryEstimator):
    r"""Classification by kernel-weighted votes of the training rows.

    .. math:: \hat P(y = c \mid x) = \frac{\sum_i w_i K((x - x_i) / h)\, [y_i = c]}
                                          {\sum_j w_j K((x - x_j) / h)}

    Nadaraya-Watson regression on the indicators of the classes.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        How rows are compared, as for :class:`NadarayaWatsonRegressor`. Kernels that take
        negative values are refused.
    bandwidth : str, float, array-like or AdaptiveBandwidth, default="penalized-loo"
        As for :class:`NadarayaWatsonRegressor`; the squared error is the Brier score.
    per_feature : bool, default=False
        As for :class:`NadarayaWatsonRegressor`.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        As for :class:`NadarayaWatsonRegressor`.
    algorithm : {"auto", "dense"}, default="auto"
        How averages are computed; see :func:`sklearn_attention.attend`.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        What answers where no training row has weight: the nearest row's class, NaN
        probabilities, the classes' frequencies, or an error.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that "loo" looks at in large data.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        The classes; a list if there are several outputs.
    bandwidth_, n_neighbors_, criterion_value_, bandwidth_search_, relevance_, columns_
        As for :class:`NadarayaWatsonRegressor`.
    kernel_ : Kernel
        The kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows.
    values_ : ndarray of shape (n_samples, n_indicators)
        Indicators of the classes, side by side for all outputs.
    key_weights_ : ndarray of shape (n_samples,) or None
        The weights of the training rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

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

    # The Brier score adds up the classes' errors as they are.
    _standardizes_outputs = False

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Remember the training data and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: at a given bandwidth, weight 2 is the row twice and
            weight 0 its absence.

        Returns
        -------
        self : NadarayaWatsonClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid, or the kernel takes negative values. The
            estimator then is as it was before.
        """
        X, y = self._check_labels(X, y, reset=True)
        self.classes_ = known_classes(y)
        return self._remember(X, self._indicators(y, X.dtype), sample_weight)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Append rows to the memory.

        The result equals `fit` on all rows seen so far; bandwidth rules are applied again.

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
            The fitted estimator.
        """
        append = hasattr(self, "keys_")
        X, y = self._check_labels(X, y, reset=not append)
        known = known_classes(y, classes)
        if not append:
            self.classes_ = known
        elif classes is not None and not _same_classes(known, self.classes_):
            raise ValueError(
                f"classes={classes!r} differ from those of the first call, {self.classes_!r}: "
                "name all classes there, and leave them out from then on."
            )
        values = self._indicators(y, X.dtype)
        return self._remember(X, values, sample_weight, append=append)

    def predict_proba(self, X):
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
        check_is_fitted(self)
        averages = self._average(self._check_queries(X))
        if (averages < -np.sqrt(np.finfo(averages.dtype).eps)).any():
            raise ValueError(
                f"kernel={self.kernel!r} gave negative weights, which make no probabilities: "
                "choose a kernel that is positive everywhere, such as 'gaussian'."
            )
        averages = np.clip(averages, 0, None)
        probabilities = [
            block / block.sum(axis=1, keepdims=True) for block in self._of_outputs(averages)
        ]
        return probabilities if isinstance(self.classes_, list) else probabilities[0]

    def predict(self, X):
        """Most probable class of each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; of equally probable ones the first.

        Raises
        ------
        ValueError
            If `empty` is "nan" and a query has no probabilities to choose by.
        """
        probabilities = self.predict_proba(X)
        several = isinstance(self.classes_, list)
        blocks = probabilities if several else [probabilities]
        lost = np.flatnonzero(np.isnan(blocks[0]).any(axis=1))
        if len(lost):
            raise ValueError(
                f"empty='nan': {len(lost)} queries have no class (first: row {lost[0]}): use "
                "predict_proba, empty='nearest' or a larger bandwidth."
            )
        return self._winners(blocks)

    def _check_labels(self, X, y, *, reset):
        X, y = self._check_rows(X, y, reset=reset, multi_output=True)
        return X, check_labels(y)

    def _check_kernel(self):
        kernel = super()._check_kernel()
        if kernel.signed:
            raise ValueError(
                f"kernel={self.kernel!r} takes negative values, which make no probabilities: "
                "choose a kernel that is positive everywhere, such as 'gaussian'."
            )
        return kernel

    def _indicators(self, y, dtype):
        n_outputs = 1 if y.ndim == 1 else y.shape[1]
        if n_outputs != len(self._classes_of_outputs):
            raise ValueError(
                f"y has {n_outputs} outputs, but the classes remembered are of "
                f"{len(self._classes_of_outputs)}: pass as many outputs as before."
            )
        outputs = y.T if y.ndim == 2 else [y]
        for labels, known in zip(outputs, self._classes_of_outputs, strict=True):
            unknown = np.setdiff1d(labels, known)
            if len(unknown):
                raise ValueError(
                    f"y has labels that are not among the known classes: {unknown!r}; name "
                    "all classes in the first call of partial_fit."
                )
        return super()._indicators(y, dtype)


def _same_classes(ours, theirs):
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))
    return np.array_equal(ours, theirs)
