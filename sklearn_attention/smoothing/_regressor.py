"""Nadaraya-Watson regression."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._state import keeps_state_on_failure
from ._memory import MemoryEstimator


class NadarayaWatsonRegressor(RegressorMixin, MemoryEstimator):
    r"""Regression by kernel-weighted averages of the training targets.

    .. math:: \hat m(x) = \frac{\sum_i w_i K((x - x_i) / h)\, y_i}
                               {\sum_j w_j K((x - x_j) / h)}

    Attention whose memory is the training data: keys are its rows, values its targets.
    Nothing is trained but the bandwidth :math:`h`.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        How rows are compared: a name or a kernel of :mod:`sklearn_attention.kernels`, a
        function ``f(X, Y) -> (n, m)``, or a kernel of
        :mod:`sklearn.gaussian_process.kernels`.
    bandwidth : {"loo", "scott", "silverman"}, float or array-like, default="loo"
        By how much features are divided before rows are compared: one number, or one for
        each feature, in the features' own units. The rules multiply each feature's standard
        deviation:

        - "loo" by the factor whose leave-one-out squared error is smallest. With more than
          2000 rows the search looks at a sample and rescales at the rate
          :math:`n^{-1/(d+4)}`;
        - "scott" by :math:`n^{-1/(d+4)}`, "silverman" by
          :math:`(n (d + 2) / 4)^{-1/(d+4)}`, times the ratio of the kernel's canonical
          bandwidth to the Gaussian's. :math:`n` is the sum of the weights.
    algorithm : {"auto", "dense"}, default="auto"
        How averages are computed; see :func:`sklearn_attention.attend`.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        What is predicted where no training row has weight: the nearest row's target, NaN,
        the mean of all targets, or an error.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that "loo" looks at in large data.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each feature, in its own units.
    loo_score_ : float
        Mean squared leave-one-out error at that bandwidth; only with "loo". In large
        data that of the sample, before the bandwidth is carried over.
    kernel_ : Kernel
        The kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows.
    values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The training targets.
    key_weights_ : ndarray of shape (n_samples,) or None
        Their weights.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    NadarayaWatsonClassifier : The same for classes.
    sklearn.neighbors.KNeighborsRegressor : Averages a fixed number of neighbours.
    sklearn.kernel_ridge.KernelRidge : Solves for the values instead of remembering them.

    Notes
    -----
    Standardise features whose units do not compare when passing a single number. A
    feature that is constant in training has spread 1 for the rules.

    References
    ----------
    .. [1] Nadaraya, E. A. (1964). On estimating regression. Theory of Probability and its
       Applications 9, 141-142.
    .. [2] Watson, G. S. (1964). Smooth regression analysis. Sankhya A 26, 359-372.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.5).fit(X, y)
    >>> model.predict([[1.5], [3.0]]).round(3)
    array([0.973, 0.138])
    >>> model.explain([[1.5]], k=2).indices
    array([[12, 13]])
    """

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Remember the training data and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: at a given bandwidth, weight 2 is the row twice and
            weight 0 its absence.

        Returns
        -------
        self : NadarayaWatsonRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        X, y = self._check_rows(X, y, reset=True, multi_output=True, y_numeric=True)
        return self._remember(X, _as_values(y, X.dtype), sample_weight)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None):
        """Append rows to the memory.

        The result equals `fit` on all rows seen so far; bandwidth rules are applied again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; 1 where not given.

        Returns
        -------
        self : NadarayaWatsonRegressor
            The fitted estimator.
        """
        append = hasattr(self, "keys_")
        X, y = self._check_rows(X, y, reset=not append, multi_output=True, y_numeric=True)
        if append and y.shape[1:] != self.values_.shape[1:]:
            raise ValueError(
                f"y has shape {y.shape}, but the targets remembered have shape "
                f"{self.values_.shape}: pass as many outputs as before."
            )
        return self._remember(X, _as_values(y, X.dtype), sample_weight, append=append)

    def predict(self, X):
        """Average the training targets, weighted for each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        return self._average(self._check_queries(X))

    def _targets(self, rows):
        return self.values_[rows]


def _as_values(y, dtype):
    """Targets in the precision of the features, which must be able to hold them."""
    with np.errstate(over="ignore"):
        values = y.astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            f"y has values too large for {dtype}, the precision of X: pass X as float64."
        )
    return values
