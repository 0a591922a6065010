"""Base class of the regressors: predictions, and statistics of the fit."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._base import keeps_state_on_failure
from .._blocks import blocks
from .._partitions import in_memory, is_partitioned
from .._validation import check_numeric_target
from ..bandwidth import corrected_akaike
from ..bandwidth._neighbors import neighbor_distances
from ._smoother import KernelSmoother
from ._summary import explained, summarize
from ._uncertainty import UncertaintyMixin

# Pairs of query and training row at a time, where all of them are needed.
_BLOCK_PAIRS = 2**20


class SmootherRegressor(RegressorMixin, UncertaintyMixin, KernelSmoother):
    """Base class of the regressors."""

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Store the training data and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns. They are copied, but
            a memory map of floats stays where it is, as does one of targets, and so do
            arrays and data frames of Dask.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: at a given bandwidth, weight 2 is the row twice and
            weight 0 its absence.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        check_numeric_target(y)
        X, y = self._learn_rows(X, self._dtypes, y=y, multi_output=True, y_numeric=True)
        return self._store(X, _as_values(y, X.dtype), sample_weight)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None):
        """Append training rows.

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
        self : estimator
            The fitted estimator.
        """
        if not hasattr(self, "keys_"):
            return self.fit(X, y, sample_weight)
        check_numeric_target(y)
        X, y = self._read_more_rows(X, y, y_numeric=True)
        if y.shape[1:] != self.values_.shape[1:]:
            raise ValueError(
                f"y has shape {y.shape}, but the targets remembered have shape "
                f"{self.values_.shape}: pass as many outputs as before."
            )
        return self._store(X, _as_values(y, X.dtype), sample_weight, append=True)

    def predict(self, X, return_std=False):
        r"""Predict the targets of queries.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        return_std : bool, default=False
            Whether to return the standard deviation of the predictive distribution too:
            noise and uncertainty of the curve together.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Predictions; a Dask array if `X` is a Dask collection.
        std : ndarray of the same shape
            Only returned if `return_std` is True: the root of the local average of squared
            leave-one-out errors, :math:`\hat\sigma(x)^2 = \sum_i w_i(x) R_i^2`.
        """
        X = self._read_rows(X, self._dtypes)
        predictions = self._predictions(X)
        if not return_std:
            return predictions
        self._refuse_signed("return_std=True")
        self._refuse_unknown_errors("return_std=True")
        squared = self._errors.reshape(self.values_.shape) ** 2
        # Local polynomials of squares could be negative: an average is not.
        return predictions, np.sqrt(self._average(X, squared)).astype(predictions.dtype)

    def score(self, X, y, sample_weight=None):
        """R2 of the predictions, the mean over outputs.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_queries,), default=None
            How much each row counts.

        Returns
        -------
        score : float
        """
        # Once, or each look at the predictions would compute them.
        y, found, sample_weight = in_memory(y, self.predict(X), sample_weight)
        return r2_score(y, found, sample_weight=sample_weight)

    def predict_gradient(self, X):
        """Derivative of the prediction with respect to each feature.

        For local polynomials the local slope.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        gradient : ndarray of shape (n_queries, n_features) or \
(n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories.
        """
        return self._gradient(self._read_rows(X, self._dtypes), self.values_)

    def summary(self, significance=False):
        """Table of what was fitted, and how well.

        Parameters
        ----------
        significance : bool, default=False
            Whether to test every feature, by :meth:`feature_significance`.

        Returns
        -------
        summary : SmootherSummary
            Prints as a table; its numbers are attributes.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_attention import LocalPolynomialRegressor
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
        >>> LocalPolynomialRegressor(bandwidth=0.3).fit(X, y).summary()
        LocalPolynomialRegressor
        kernel                        Gaussian()
        degree                        1
        rows                          60
        bandwidth                     given
        effective degrees of freedom  9.5
        residual standard error       0.08518
        R2                            0.987
        R2 by leave-one-out           0.983
        <BLANKLINE>
        feature  kind     bandwidth
        x0       numeric  0.3
        """
        check_is_fitted(self)
        p_values = self.feature_significance().p_values if significance else None
        return summarize(self, p_values)

    @property
    def effective_dof_(self):
        r"""Effective degrees of freedom, :math:`\operatorname{tr} S` over the training rows."""
        (total,) = in_memory(self._training.leverage.sum())
        return float(total)

    @property
    def fitted_values_(self):
        """Predictions of the training rows, of the targets' shape."""
        return self._training.fitted.reshape(self.values_.shape).astype(self.values_.dtype)

    @property
    def residuals_(self):
        """Targets less the predictions of their rows, of the targets' shape."""
        return self.values_ - self.fitted_values_

    @property
    def loo_residuals_(self):
        """Targets less their leave-one-out predictions, of the targets' shape."""
        errors = self._columns_of_values - self._training.left_out
        return errors.reshape(self.values_.shape).astype(self.values_.dtype)

    @property
    def loo_score_(self):
        """R2 of the leave-one-out predictions, the mean over outputs; NaN if one is missing."""
        check_is_fitted(self)
        return explained(self.values_, self.values_ - self.loo_residuals_, self._counts)

    @property
    def aicc_(self):
        r"""Corrected Akaike criterion, with the trace of the degree in use [1]_.

        :math:`\ln(\text{RSS} / n) + (1 + \operatorname{tr} S / n) /
        (1 - (\operatorname{tr} S + 2) / n)`

        References
        ----------
        .. [1] Hurvich, C. M., Simonoff, J. S. and Tsai, C.-L. (1998). Smoothing parameter
           selection in nonparametric regression using an improved Akaike information
           criterion. Journal of the Royal Statistical Society B 60, 271-293.
        """
        residuals = self._training.fitted - self._columns_of_values
        squared = np.average(np.mean(residuals**2, axis=1), weights=self._counts)
        squared, n_samples = in_memory(squared, np.count_nonzero(self._counts))
        scores = attention.Scores(np.nan, squared, self.effective_dof_)
        return float(corrected_akaike(scores, n_samples))

    @property
    def _training(self):
        """Predictions of the training rows, with and without themselves; for all of them."""
        check_is_fitted(self)
        if is_partitioned(self.keys_):
            return self._training_in_partitions()
        if "training" not in self._memo:
            divisors = self.columns_.divisors(self.bandwidth_)
            self._memo["training"] = self._predict_training(self.values_, divisors)
        return self._memo["training"]

    @property
    def _errors(self):
        """Leave-one-out errors (n_samples, n_outputs)."""
        check_is_fitted(self)
        self._need_rows_in_memory("intervals, bands, quantiles and tests")
        return self._columns_of_values - self._training.left_out

    def _training_in_partitions(self):
        """Predictions of the training rows, by sums that travel; computed when asked for."""
        if self.degree_:
            raise ValueError(
                f"degree={self.degree_!r}: what local polynomials predict for their own rows "
                "is not known in partitions of Dask: use degree=0, or fit rows in memory."
            )
        keys, options = self.keys_, self._attention_options(self.keys_)
        tables = keys, keys, self._columns_of_values, self.kernel_
        left_out, log_others = attention.attend(*tables, leave_one_out=True, **options)
        fitted, log_all = attention.attend(*tables, **options)
        # A row of weight 0 that no other reaches has no share in nothing.
        reached = log_all > -np.inf
        log_rest = np.where(reached, log_others, 0.0) - np.where(reached, log_all, 0.0)
        return attention.Predictions(left_out, fitted, -np.expm1(log_rest))

    def _predict_training(self, values, bandwidth, kernel=None, keys=None):
        """Of the training rows, or of others in their place."""
        keys = (self.keys_ if keys is None else keys).astype(np.float64)
        values = values.reshape(len(keys), -1)
        options = {"degree": self.degree_, "empty": self.empty, "bandwidth": bandwidth}
        options |= {"sample_weight": self.key_weights_, "device": self.device}
        smoother = attention.LeaveOneOut(keys, values, kernel or self.kernel_, **options)
        rows = smoother.rows
        if hasattr(self, "n_neighbors_"):
            # Left out, a row is no neighbour of itself, and the bandwidth is another.
            Z = self._in_spreads(self.keys_[rows])
            further = neighbor_distances(Z, Z, min(self.n_neighbors_ + 1, len(Z)))[:, -1]
            left_out = smoother.predictions(further).left_out
            own = []
            for part in blocks(len(rows), max(1, _BLOCK_PAIRS // len(keys))):
                scale, places = self._query_scale(self.keys_[rows[part]]), rows[part]
                local = attention.local_rows(
                    keys[places], keys, values, kernel or self.kernel_, query_scale=scale,
                    **options,
                )  # fmt: skip
                own.append((local.values, local.smoother[np.arange(len(places)), places]))
            fitted, leverage = (np.concatenate(field) for field in zip(*own, strict=True))
            found = attention.Predictions(left_out, fitted, leverage)
        else:
            found = smoother.predictions()
        if len(rows) == len(keys):
            return found
        # Rows of weight 0 are left out anyway.
        everywhere = self._predictions(self.keys_).reshape(len(keys), -1)
        fields = everywhere.copy(), everywhere, np.zeros(len(keys))
        for field, known in zip(fields, found, strict=True):
            field[rows] = known
        return attention.Predictions(*fields)

    def _gradient(self, X, values):
        """Derivatives at queries, of the smoother of some values of the training rows."""
        if self.degree_:
            return self._local_fit(X, values).slopes
        options = self._attention_options(X)
        del options["empty"], options["query_scale"]
        if hasattr(self, "n_neighbors_"):
            raise ValueError(
                f"n_neighbors={self.n_neighbors_!r}: the bandwidth differs from place to "
                "place, and the derivative of such an average is not implemented: use a fixed "
                "bandwidth, or a local polynomial and its slope."
            )
        self._need_rows_in_memory("derivatives of averages")
        return attention.attend_gradient(X, self.keys_, values, self.kernel_, **options)

    def _refuse_signed(self, what):
        if self.kernel_.signed:
            raise ValueError(
                f"kernel={self.kernel_!r} takes negative values, and {what} needs weights that "
                "are none: choose a positive kernel, such as 'gaussian'."
            )

    def _targets(self, rows):
        return self.values_[rows]


def _as_values(y, dtype):
    """Targets in the precision of the features, which must be able to hold them."""
    if y.dtype != dtype:
        (largest,) = in_memory(np.abs(y).max())
        if largest > np.finfo(dtype).max:
            raise ValueError(
                f"y has values too large for {dtype}, the precision of X: pass X as float64."
            )
    return y.astype(dtype, copy=False)
