"""Base class of the regressors: predictions, and statistics of the fit.

All of them are computed from the smoother of a fit (`_fitted_smoother`): its keys are the
training rows, its values their targets. S is the smoother matrix, whose products with the
targets are the predictions of the training rows.
"""

import operator
from typing import Any, Self

import numpy as np

from .._base import keeps_state_on_failure, with_callbacks
from .._blocks import blocks, merge_present
from .._column_stats import mean_squares, min_max_sum
from .._labels import NumericTargets, r2_or_nan
from .._partitions import reduce_rows
from .._validation import check_numeric_target, check_target_bounds, is_one_of
from ..attention._leave_one_out import Scores
from ..bandwidth import corrected_akaike
from ..bandwidth._samples import Units
from ._estimator import KernelSmoother
from ._summary import summarize
from ._uncertainty import UncertaintyMixin, standard_deviations


class SmootherRegressor(NumericTargets, UncertaintyMixin, KernelSmoother):
    """Base class of the regressors."""

    # The parameter of an estimator; files of version 0.2.0 have none.
    bounds = None

    def _learn_bounds(self, values, weights):
        """Set the bounds of predictions by the parameter and the targets."""
        check_target_bounds(self.bounds)
        self.bounds_ = _bounds_of_targets(self.bounds, values, weights)

    def _clip(self, predictions):
        """Clip predictions to the bounds.

        If there are several outputs, they are the last axis: (n, ..., n_outputs).
        """
        bounds = getattr(self, "bounds_", None)
        return predictions if bounds is None else predictions.clip(*bounds)

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
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
            Non-negative weights: at a given bandwidth, weight 2 is the row twice for
            predictions, and weight 0 its absence. Intervals, bands and standard errors take
            the variance of the noise to be in inverse proportion to weights, whatever their
            unit.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        y = check_numeric_target(y)
        X, y = self._learn_rows(X, y=y, multi_output=True, y_numeric=True)
        return self._store(X, _as_values(y, X.dtype), sample_weight)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y, sample_weight=None) -> Self:
        """Append training rows.

        The result equals `fit` on all rows so far; bandwidth rules are applied again.

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
        y = check_numeric_target(y)
        # New levels of categories get codes before the rows are read as codes.
        self._extend_rows(X)
        X, y = self._read_rows(X, y=y, multi_output=True, y_numeric=True)
        if y.shape[1:] != self.values_.shape[1:]:
            raise ValueError(
                f"y has shape {y.shape}, but the training targets have shape "
                f"{self.values_.shape}: pass the same number of outputs."
            )
        return self._store(X, _as_values(y, X.dtype), sample_weight, append=True)

    def predict(self, X, return_std: bool = False) -> Any:
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
            leave-one-out errors, :math:`\hat\sigma(x)^2 = s(x)^2 \sum_i k_i(x) R_i^2`,
            each divided by the expected size of errors at its row, and multiplied by that at
            the query, :math:`s(x)`: see :meth:`predict_interval`. Takes all pairs of queries
            and rows.
        """
        X, smoother = self._read_rows(X), self._smoother
        predictions = self._predict_rows(X)
        if not return_std:
            return predictions
        smoother.need_positive_weights("return_std=True")
        std = standard_deviations(smoother, X).reshape(predictions.shape)
        return predictions, std.astype(predictions.dtype)

    def _predict_rows(self, X):
        """Predict rows X, in which levels are codes; the result is that of `predict`."""
        return self._clip(self._smoother.predict(X))

    def predict_gradient(self, X) -> np.ndarray:
        """Compute derivatives of the regression curve with respect to each feature.

        For averages and local parabolas it is the derivative of the prediction, and for local
        lines and cubics the slope of the polynomial at the query, since errors are smallest so:
        see Notes. For an average of several degrees (``degree="auto"``) it is the average of
        these.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        gradient : ndarray of shape (n_queries, n_features) or \
(n_queries, n_outputs, n_features)
            In units of the target for one unit of the feature; 0 for categories.

        Notes
        -----
        Along six curves with 50 to 800 rows the derivative of the prediction had 0.79 times the
        error of the local slope for parabolas, and 1.05 and 1.07 times for lines and cubics.
        Derivatives of parabolas are differences over 1e-4 bandwidths to both sides. Where
        weights are those of a boxcar, the local slope is the derivative.
        """
        return self._smoother.gradient(self._read_rows(X), self.values_)

    def summary(self, significance: bool = False) -> Any:
        """Table of the fit: bandwidths, degrees of freedom, errors.

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
        degree                        2 (0.71), 3 (0.17), 1 (0.11)
        rows                          60
        bandwidth                     given
        effective degrees of freedom  13.3
        residual standard error       0.07812
        R2                            0.990
        R2 by leave-one-out           0.984
        <BLANKLINE>
        feature  kind     bandwidth
        x0       numeric  0.3
        """
        p_values = self.feature_significance().p_values if significance else None
        return summarize(self, p_values)

    @property
    def effective_dof_(self):
        r"""Effective degrees of freedom, :math:`\operatorname{tr} S` over the training rows."""
        leverage = self._smoother.training_predictions.leverage
        return float(reduce_rows(np.sum, operator.add, leverage))

    @property
    def fitted_values_(self):
        """Predictions of the training rows, of the targets' shape."""
        fitted = self._smoother.training_predictions.fitted
        return self._clip(fitted.reshape(self.values_.shape).astype(self.values_.dtype))

    @property
    def residuals_(self):
        """Targets less the predictions of their rows, of the targets' shape."""
        return self.values_ - self.fitted_values_

    @property
    def loo_residuals_(self):
        """Targets less their leave-one-out predictions, of the targets' shape."""
        smoother = self._smoother
        left_out = smoother.training_predictions.left_out.reshape(self.values_.shape)
        return (self.values_ - self._clip(left_out)).astype(self.values_.dtype)

    @property
    def loo_score_(self):
        """R2 of the leave-one-out predictions, the mean over outputs; NaN if one is missing."""
        left_out = self.values_ - self.loo_residuals_  # the leave-one-out predictions
        return r2_or_nan(self.values_, left_out, self._smoother.key_weights)

    @property
    def aicc_(self):
        r"""Corrected Akaike criterion of the fit [1]_.

        It is :math:`\ln(\text{RSS} / n) + (1 + \operatorname{tr} S / n) /
        (1 - (\operatorname{tr} S + 2) / n)` with the smoother matrix S of the training rows.
        The residual sums of squares, RSS, of several outputs are averaged, each in units of the
        variance of its output.

        References
        ----------
        .. [1] Hurvich, C. M., Simonoff, J. S. and Tsai, C.-L. (1998). Smoothing parameter
           selection in nonparametric regression using an improved Akaike information
           criterion. Journal of the Royal Statistical Society B 60, 271-293.
        """
        smoother = self._smoother
        units = Units.from_values(smoother.values_2d, smoother.key_weights, each_column=True)
        residuals = (smoother.training_predictions.fitted - smoother.values_2d) / units.scale
        squared = np.mean(mean_squares(residuals, smoother.key_weights))
        scores = Scores(left_out=np.nan, fitted=squared, trace=self.effective_dof_)
        return float(units.restore_criterion(corrected_akaike(scores, smoother.n_rows), "aicc"))


def _bounds_of_targets(bounds, values, weights):
    """Return the bounds of predictions, (2,) or (2, n_outputs); None if there are none.

    Parameters
    ----------
    bounds : "auto", pair or None
        The parameter. With "auto", an output whose values are all whole numbers of at least 0
        has the lower bound 0. If no value is above 1, it has the upper bound 1.
    values : array of shape (n_rows,) or (n_rows, n_outputs)
        The targets.
    weights : array of shape (n_rows,) or None
        Weights of the rows; those of weight 0 do not count.
    """
    if bounds is None:
        return None
    smallest, largest, is_whole = reduce_rows(_range_of_rows, _merge_ranges, values, weights)
    if is_one_of(bounds, "auto"):
        is_count = is_whole & (smallest >= 0)
        lower = np.where(is_count, 0.0, -np.inf)
        upper = np.where(is_count & (largest == 1), 1.0, np.inf)
    else:
        ends = np.array(tuple(bounds), dtype=np.float64)  # None becomes NaN
        ends = np.where(np.isnan(ends), [-np.inf, np.inf], ends)
        lower, upper = (np.full(np.shape(smallest), end) for end in ends)
        if (smallest < lower).any() or (largest > upper).any():
            raise ValueError(
                f"bounds={bounds!r} do not contain y, which is from {np.min(smallest):g} to "
                f"{np.max(largest):g}: pass wider bounds, or remove the rows outside."
            )
    learned = np.stack([lower, upper]).astype(values.dtype)
    return learned if np.isfinite(learned).any() else None


def _range_of_rows(values, weights):
    """Return the smallest and the largest value, and True if all are whole numbers.

    Each has the shape (n_outputs,), or () if the values (n_rows,) have no axis of outputs. The
    result is None if no row has weight.
    """

    def range_of_block(block):
        present = values[block] if weights is None else values[block][weights[block] > 0]
        if not len(present):
            return None
        is_whole = (present == np.rint(present)).all(axis=0)
        return present.min(axis=0), present.max(axis=0), is_whole

    return merge_present(_merge_ranges, map(range_of_block, blocks(len(values))))


def _merge_ranges(a, b):
    """Merge results of `_range_of_rows` for two sets of rows."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] & b[2]


def _as_values(y, dtype):
    """Return the targets in the precision of the features; refuse those that it cannot hold."""
    if y.dtype == dtype:
        return y
    # Ends are floats, since the absolute value of the smallest int64 is no int64.
    largest = max(abs(float(end)) for end in min_max_sum(y.ravel())[:2])
    if largest > float(np.finfo(dtype).max):
        raise ValueError(
            f"y has values too large for {dtype}, the precision of X: pass X as float64."
        )
    return y.astype(dtype)
