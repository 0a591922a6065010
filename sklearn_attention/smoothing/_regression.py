"""What the regressors share: predictions, and everything that is known about them."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import attention
from .._blocks import blocks
from .._state import keeps_state_on_failure
from .._validation import check_in_open_interval, check_positive
from ..bandwidth import corrected_akaike, neighbor_distances, select_bandwidth
from ._inference import (
    jackknife_intervals,
    largest_deviations,
    normal_factor,
    standard_errors,
    weighted_quantiles,
)
from ._memory import MemoryEstimator
from ._significance import feature_significance

# Pairs of query and training row at a time, where all of them are needed.
_BLOCK_PAIRS = 2**20
# A spread below this share of the mean spread is rounding.
_SMALLEST_SPREAD = 1e-3


class SmootherRegressor(RegressorMixin, MemoryEstimator):
    """Base class of the regressors."""

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Remember the training data and choose the bandwidth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns.
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
        self : estimator
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
            Predictions.
        std : ndarray of the same shape
            Only returned if `return_std` is True: the root of the local average of squared
            leave-one-out errors, :math:`\hat\sigma(x)^2 = \sum_i w_i(x) R_i^2`.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        predictions = self._average(X)
        if not return_std:
            return predictions
        self._refuse_signed("return_std=True")
        squared = self._errors.reshape(self.values_.shape) ** 2
        # Local polynomials of squares could be negative: an average is not.
        variance, _ = attention.attend(
            X, self.keys_, squared, self.kernel_, **self._attention_options(X)
        )
        return predictions, np.sqrt(variance).astype(predictions.dtype)

    def predict_interval(self, X, coverage=0.9, *, heteroscedastic=False):
        r"""Intervals that contain a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        coverage : float, default=0.9
            Probability, between 0 and 1.
        heteroscedastic : bool, default=False
            Whether the intervals are to be wide where errors are large and narrow where
            they are small. They then have the coverage closer to everywhere, not only on
            average.

        Returns
        -------
        intervals : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends; infinite where there are fewer rows than the coverage
            needs.

        Notes
        -----
        Jackknife+ [1]_: predictions without each training row and that row's leave-one-out
        error, both in closed form. For rows drawn independently the coverage is at least
        :math:`1 - 2\alpha` for :math:`1 - \alpha` asked, and about :math:`1 - \alpha` as a
        rule. That holds for a bandwidth chosen beforehand; one chosen on the same rows
        makes their errors a little smaller than those of new rows, by about the share of
        the degrees of freedom spent on the choice: one in `n_samples` for each bandwidth.
        The heteroscedastic form divides every error by the local mean absolute error,
        itself smoothed with a bandwidth by leave-one-out, and multiplies by that at the
        query.

        References
        ----------
        .. [1] Barber, R. F., Candes, E. J., Ramdas, A. and Tibshirani, R. J. (2021).
           Predictive inference with the jackknife+. Annals of Statistics 49, 486-507.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        X = self._check_queries(X)
        errors, here, there = np.abs(self._errors), np.ones((len(X), 1)), 1.0
        if heteroscedastic:
            here, there = self._spread(X)
        weights = self._counts
        found = []
        for rows in self._query_blocks(X):
            left_out = self._local_rows(X[rows]).left_out
            scaled = (errors / there)[None] * here[rows, None]
            found.append(jackknife_intervals(left_out, scaled, weights, coverage))
        return self._like_targets(np.concatenate(found), len(X), 2)

    def predict_quantiles(self, X, quantiles=(0.1, 0.5, 0.9)):
        r"""Quantiles of the conditional distribution of the targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        quantiles : array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Probabilities, between 0 and 1.

        Returns
        -------
        y : ndarray of shape (n_queries, n_quantiles) or (n_queries, n_quantiles, n_outputs)
            Smallest values that the distribution function reaches each quantile at.

        Notes
        -----
        The distribution has the weights :math:`w_i(x)` of the average at the places
        :math:`\hat m(x) + r_i(x)`, with :math:`r_i(x)` the residual of row :math:`i` in the
        local fit at :math:`x`. In a local average these places are the targets themselves;
        in a local polynomial the targets moved along it to the query. Its mean is the
        prediction.
        """
        check_is_fitted(self)
        quantiles = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        for quantile in quantiles:
            check_in_open_interval("quantiles", quantile, 0, 1)

        def found(places, weights):
            return weighted_quantiles(places, weights, quantiles)

        return self._of_distribution(X, found, len(quantiles))

    def predict_cdf(self, X, y):
        """Conditional distribution function: probability that a target is at most `y`.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_thresholds,)
            Thresholds, the same for all queries and outputs.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_thresholds) or \
(n_queries, n_thresholds, n_outputs)
            See :meth:`predict_quantiles` for the distribution.
        """
        check_is_fitted(self)
        thresholds = np.atleast_1d(np.asarray(y, dtype=np.float64))
        if thresholds.ndim != 1 or np.isnan(thresholds).any():
            raise ValueError(
                f"y={y!r} are no thresholds: pass a list of numbers, the same for all queries."
            )

        def found(places, weights):
            return np.stack(
                [np.sum(weights * (places <= t), axis=1) for t in thresholds], axis=1
            )

        return self._of_distribution(X, found, len(thresholds))

    def confidence_band(
        self, X, coverage=0.9, *, simultaneous=False, n_resamples=1000, random_state=0
    ):
        r"""Confidence intervals for the curve, that is, for the mean of the targets.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        coverage : float, default=0.9
            Probability, between 0 and 1.
        simultaneous : bool, default=False
            Whether the band is to contain the curve at all queries at once, rather than at
            each of them.
        n_resamples : int, default=1000
            Random draws behind a simultaneous band.
        random_state : int, RandomState instance or None, default=0
            Makes these draws.

        Returns
        -------
        band : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends.

        Notes
        -----
        :math:`\hat m(x) \pm c\, \widehat{\text{se}}(x)` with
        :math:`\widehat{\text{se}}(x)^2 = \sum_i l_i(x)^2 R_i^2`, effective weights
        :math:`l_i` and leave-one-out errors :math:`R_i`: right whether or not the noise is
        the same everywhere. The factor :math:`c` is the normal quantile, or for a
        simultaneous band that of the largest deviation over the queries under random
        normal multiples of the errors (multiplier bootstrap).

        What is covered is the smoothed curve :math:`E\, \hat m(x)`. The bias of the smoother
        is not in the band: where the curve bends sharply, at the bandwidth that predicts
        best, the truth is covered less often. A smaller bandwidth has less bias.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        check_positive("n_resamples", n_resamples, integer=True)
        X = self._check_queries(X)
        errors, weights = self._errors, self._counts
        draws = np.zeros((len(weights), 0))
        if simultaneous:
            shape = len(weights), n_resamples
            draws = check_random_state(random_state).standard_normal(shape)
        centers, scales, largest = [], [], np.zeros((draws.shape[1], errors.shape[1]))
        for rows in self._query_blocks(X):
            local = self._local_rows(X[rows])
            scale = standard_errors(local.smoother, errors, weights)
            centers.append(local.values)
            scales.append(scale)
            if simultaneous:
                moves = largest_deviations(local.smoother, errors, weights, draws, scale)
                largest = np.maximum(largest, moves)
        factor = normal_factor(coverage)
        if simultaneous:
            factor = np.quantile(largest, coverage, axis=0, method="higher")
        center, width = np.concatenate(centers), factor * np.concatenate(scales)
        band = np.stack([center - width, center + width], axis=1)
        return self._like_targets(band, len(X), 2)

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
        check_is_fitted(self)
        return self._gradient(self._check_queries(X), self.values_)

    def feature_significance(self, n_resamples=199, random_state=0):
        """Test for every feature whether the prediction depends on it.

        See :class:`~sklearn_attention.smoothing.Significance` for what is returned, and
        for the method.

        Parameters
        ----------
        n_resamples : int, default=199
            Draws of the wild bootstrap; the smallest p-value is one over that plus one.
        random_state : int, RandomState instance or None, default=0
            Makes these draws.

        Returns
        -------
        significance : Significance
            Named tuple of ``statistics`` and ``p_values``.
        """
        check_is_fitted(self)
        check_positive("n_resamples", n_resamples, integer=True)
        return feature_significance(self, n_resamples, check_random_state(random_state))

    @property
    def effective_dof_(self):
        r"""Effective degrees of freedom, :math:`\operatorname{tr} S` over the training rows."""
        check_is_fitted(self)
        return float(self._training.leverage.sum())

    @property
    def loo_residuals_(self):
        """Targets less their leave-one-out predictions, of the targets' shape."""
        check_is_fitted(self)
        return self._errors.reshape(self.values_.shape).astype(self.values_.dtype)

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
        check_is_fitted(self)
        residuals = self._training.fitted - self.values_.reshape(len(self.keys_), -1)
        squared = np.average(np.mean(residuals**2, axis=1), weights=self._counts)
        scores = attention.Scores(np.nan, squared, self.effective_dof_)
        return float(corrected_akaike(scores, self._counts.sum()))

    @property
    def _counts(self):
        """How often each training row counts."""
        return np.ones(len(self.keys_)) if self.key_weights_ is None else self.key_weights_

    @property
    def _training(self):
        """Predictions of the training rows, with and without themselves; for all of them."""
        if "training" not in self._memo:
            self._memo["training"] = self._predict_training(
                self.values_, self._column_bandwidth
            )
        return self._memo["training"]

    @property
    def _errors(self):
        """Leave-one-out errors (n_samples, n_outputs)."""
        return self.values_.reshape(len(self.keys_), -1) - self._training.left_out

    def _predict_training(self, values, bandwidth, kernel=None):
        weights = self.key_weights_
        rows = np.arange(len(self.keys_)) if weights is None else np.flatnonzero(weights)
        smoother = attention.LeaveOneOut(
            self.keys_.astype(np.float64), values.reshape(len(self.keys_), -1),
            kernel or self.kernel_, bandwidth=bandwidth, degree=self.degree,
            sample_weight=weights, empty=self.empty, device=self.device,
        )  # fmt: skip
        scale = 1.0
        if hasattr(self, "n_neighbors_"):
            scale = self._training_scale(rows)
        found = smoother.predictions(scale)
        if len(rows) == len(self.keys_):
            return found
        # Rows of weight 0 are left out anyway.
        values = np.asarray(self._average(self.keys_)).reshape(len(self.keys_), -1)
        fields = values.copy(), values, np.zeros(len(self.keys_))
        for field, known in zip(fields, found, strict=True):
            field[rows] = known
        return attention.Predictions(*fields)

    def _training_scale(self, rows):
        """Distance of training rows to their neighbours, of which they are none."""
        columns = self._numeric
        Z = (self.keys_[:, columns] / self.bandwidth_[columns])[rows]
        return neighbor_distances(Z, Z, min(self.n_neighbors_ + 1, len(Z)))[:, -1]

    def _spread(self, X):
        """Local mean absolute errors: at queries, and at training rows without themselves."""
        sizes = np.abs(self._errors)
        if "spread" not in self._memo:
            bandwidth, _ = select_bandwidth(
                self.keys_, sizes, self.kernel_, degree=0, empty="nearest",
                sample_weight=self.key_weights_, random_state=self.random_state,
                device=self.device,
            )  # fmt: skip
            numeric = np.array([kind == "numeric" for kind in self.kinds_])
            bandwidth = np.where(numeric, bandwidth, 1.0)
            rows = attention.LeaveOneOut(
                self.keys_.astype(np.float64), sizes, self.kernel_, bandwidth=bandwidth,
                sample_weight=self.key_weights_, device=self.device,
            )  # fmt: skip
            there = np.broadcast_to(sizes.mean(axis=0), sizes.shape).copy()
            there[rows.rows] = rows.predictions().left_out
            self._memo["spread"] = bandwidth, there
        bandwidth, there = self._memo["spread"]
        options = self._attention_options(X) | {"bandwidth": bandwidth, "query_scale": None}
        options |= {"empty": "nearest"}
        here, _ = attention.attend(X, self.keys_, sizes, self.kernel_, **options)
        smallest = _SMALLEST_SPREAD * sizes.mean(axis=0) + np.finfo(np.float64).tiny
        return np.maximum(here, smallest), np.maximum(there, smallest)

    def _gradient(self, X, values):
        """Derivatives at queries, of the smoother of some values of the training rows."""
        options = self._attention_options(X)
        if self.degree:
            return attention.attend_local(
                X, self.keys_, values, self.kernel_, degree=self.degree, **options
            ).slopes
        for name in ("algorithm", "empty", "query_scale"):
            options.pop(name)
        if hasattr(self, "n_neighbors_"):
            raise ValueError(
                f"n_neighbors={self.n_neighbors_!r}: the bandwidth differs from place to "
                "place, and the derivative of such an average is not implemented: use a fixed "
                "bandwidth, or a local polynomial and its slope."
            )
        return attention.attend_gradient(X, self.keys_, values, self.kernel_, **options)

    def _of_distribution(self, X, statistic, n_values):
        """A statistic of the conditional distribution at each query."""
        X = self._check_queries(X)
        self._refuse_signed("a conditional distribution")
        values = self.values_.reshape(len(self.keys_), -1)
        found = []
        for rows in self._query_blocks(X):
            local = self._local_rows(X[rows])
            of_outputs = []
            for output in range(values.shape[1]):
                places = values[None, :, output]
                if self.degree:
                    places = local.values[:, None, output] + local.residuals[:, :, output]
                of_outputs.append(statistic(places, local.weights))
            found.append(np.stack(of_outputs, axis=2))
        return self._like_targets(np.concatenate(found), len(X), n_values)

    def _refuse_signed(self, what):
        if self.kernel_.signed:
            raise ValueError(
                f"kernel={self.kernel_!r} takes negative values, and {what} needs weights that "
                "are none: choose a positive kernel, such as 'gaussian'."
            )

    def _query_blocks(self, X):
        n_outputs = self.values_.reshape(len(self.keys_), -1).shape[1]
        return blocks(len(X), max(1, _BLOCK_PAIRS // (len(self.keys_) * n_outputs)))

    def _like_targets(self, found, n_queries, n_values):
        """Without the axis of outputs where targets have none, in their precision."""
        shape = (n_queries, n_values, *self.values_.shape[1:])
        return found.reshape(shape).astype(self.values_.dtype, copy=False)

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
