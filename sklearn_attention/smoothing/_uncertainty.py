"""Uncertainty of a regression smoother: intervals, bands, quantiles, tests of features.

The keys are the training rows, and the queries X are rows that are predicted. A leave-one-out
residual is the target of a key less its prediction from all others. It is standardised if it is
divided by the expected size of errors at the key. The hat weights of a query are the numbers by
which the targets are multiplied in its prediction. `_errors` computes all of these.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import t
from sklearn.utils import check_random_state

from .._blocks import blocks_of_queries
from .._progress import Progress, progress_delay
from .._validation import (
    check_in_open_interval,
    check_positive,
    check_probabilities,
    check_size,
    check_thresholds,
)
from ..attention._tables import weighted_quantiles
from ._additive_mixture import AdditiveMixture
from ._errors import noise_variance, scales_above_rounding
from ._significance import feature_significance

# For queries with a level that did not occur in training, distribution functions are
# interpolated between quantiles at these probabilities, of which the smallest is about one in a
# million.
_PROBABILITIES = expit(np.linspace(-14, 14, 401))
# Relative tolerance of a number of rows, so that its rounding does not move the end of an
# interval to the next value.
_SLACK = 1e-12


class UncertaintyMixin:
    """Methods of regressors for the uncertainty of their predictions."""

    def predict_interval(
        self, X, coverage: float = 0.9, *, heteroscedastic: bool = False
    ) -> np.ndarray:
        r"""Intervals that contain a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        coverage : float, default=0.9
            Probability, between 0 and 1.
        heteroscedastic : bool, default=False
            Whether intervals are wide where errors are large and narrow where they are small.
            Their coverage then holds more nearly everywhere, not only on average.

        Returns
        -------
        intervals : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends; infinite where there are fewer rows than the coverage
            needs.

        Notes
        -----
        Intervals are those of the jackknife+ [1]_. They are computed from predictions without
        each training row and from the leave-one-out error of that row, both in closed form.
        Each error is divided by the expected size of errors at its row, and multiplied by that
        at the query:

        .. math:: s(x) = \sqrt{u(x)^2 + \textstyle\sum_i l_i(x)^2 / w_i}\;
                  \sqrt{1 + \Bigl(\textstyle\sum_i |l_i(x)|\Bigr)^2\, e(r(x) / r_0)^2}

        The first factor is the noise of a target and of the fit, with effective weights
        :math:`l_i` of the rows and weights :math:`w_i` of mean 1. The second factor is the
        error of the model where there are few rows. Here :math:`r` is the distance of the rows
        that the prediction rests on: the root mean square, weighted by :math:`|l_i|`, in
        bandwidths of the features along which the kernel falls. Its median at the rows is
        :math:`r_0`. If the bandwidth is multiplied by :math:`r / r_0`, rows among the data rest
        on rows that are as far away, and their leave-one-out errors are larger. The growth of
        the squared errors is :math:`e^2`: half of it is the mean growth, and half the growth in
        the quarter of the rows where it is largest. Far from all rows the width grows at least
        in proportion to the distance, as if errors grew by :math:`\sqrt 2` over half of the
        extent of the rows. Averages rest on rows on one side there, so that they are wrong by a
        slope that explains all that the rows explain. Where there are no rows, nothing
        determines the curve: errors can be larger if the curve is unlike all within the data,
        such as an exponential or a hidden peak.

        Weights are precisions: only their ratios matter, and the variance of the noise is
        in inverse proportion to them. A new target is taken to be as precise as the rows around
        it: :math:`u(x)^2` is one over the local average of weights of mean 1. Every row
        of positive weight counts once, whatever its weight.

        For rows that are drawn independently the coverage is about its nominal value
        :math:`1 - \alpha`, and at least :math:`1 - 2\alpha` where the sizes that errors are
        divided by do not depend on the targets. This holds for a bandwidth that was chosen
        beforehand. A bandwidth that was chosen on the same rows makes their errors a little
        smaller than those of new rows, by about one in `n_samples` for each bandwidth. If the
        estimator has a `gap`, errors are those of rows that are predicted across the gap, and
        variances of fits allow for autocorrelation, as in :meth:`confidence_band`.

        With `heteroscedastic`, every error is also divided by the local mean absolute error,
        and multiplied by that at the query. This mean has a bandwidth of its own, chosen by
        leave-one-out, in windows of at least twenty rows. All this takes all pairs
        of queries and rows; results for the rows are computed once.

        Where the pointwise :meth:`confidence_band` of the same coverage is outside of this
        interval, its ends are those of the interval: a target is never known better than its
        mean.

        A level of an unordered category that no training row has, such as a new shop, has an
        effect of its own, from the same distribution as the effects of the M known levels. Of
        these m, at most forty, are left out, in at most ten groups: a row is predicted as if
        its level were new, by the rows of levels outside its group. The variance of the effect
        is

        .. math:: \tau(x)^2 = \max\Bigl(0,\; \frac{1}{m} \sum_{g=1}^m \Bigl[\sum_{i \in g}
                  v_i(x)\, (e_i^2 - r_i^2) + \overline{r_g^2}\Bigr] - \overline{r^2}\Bigr),

        where :math:`e_i` are errors of these predictions and :math:`r_i` leave-one-out errors,
        whose squares have the means :math:`\overline{r_g^2}` in level g and
        :math:`\overline{r^2}` in all. The weights :math:`v_i(x)` of the rows of a level are
        larger near the query, and sum to 1. The ends are at distances from the prediction whose
        squares are larger by those of :math:`\tau(x)` times a quantile of Student's t with
        :math:`m - 1` degrees of freedom, at least 2. Variances of several categories with new
        levels add up, but shops do not count beside a new town, which has new shops. Quantiles
        allow for the effect in the same way; bands and standard deviations do by a normal
        distribution with the same 0.95 quantile. A missing cell, if no training row has one,
        stands for one of the known levels, which differ from their mean by
        :math:`(M - 1) / M` of :math:`\tau(x)`, with normal quantiles. If a category has one
        level alone, nothing is known of how levels differ, and nothing is added.

        References
        ----------
        .. [1] Barber, R. F., Candes, E. J., Ramdas, A. and Tibshirani, R. J. (2021).
           Predictive inference with the jackknife+. Annals of Statistics 49, 486-507.
        """
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        X, smoother = self._read_rows(X), self._smoother
        errors = smoother.errors
        # 1. The sizes of standardised residuals are divided by their local mean at the key, and
        # multiplied by that at the query.
        sizes, size_factors = np.abs(errors.standardized), np.ones((len(X), 1))
        if heteroscedastic:
            averages, sizes_at_keys = errors.mean_sizes
            size_factors = scales_above_rounding(averages.average(X, sizes), sizes)
            sizes = sizes / sizes_at_keys
        # A key that cannot be predicted without itself has a residual of any size.
        has_weight, interval_blocks = errors.given_row_weights > 0, []
        sizes = np.where(np.isnan(sizes), np.inf, sizes)[has_weight]
        # 2. Intervals follow from predictions without each key and from the sizes.
        for rows in _query_blocks(X, smoother):
            _, hat_weights, left_out = smoother.left_out(X[rows])
            scale = size_factors[rows] * errors.expected_size(X[rows], hat_weights)
            block = jackknife_intervals(left_out[:, has_weight], sizes, scale, coverage)
            interval_blocks.append(block)
        # 3. They are wider at levels that did not occur in training, around the predictions.
        intervals = np.concatenate(interval_blocks)
        centers = smoother.predict(X).reshape(len(X), -1)
        probabilities = (1 - coverage) / 2, (1 + coverage) / 2
        effects = errors.level_effects.distribution(X)
        intervals = effects.inflate(intervals, centers, probabilities)
        # 4. They contain the band: a target is never better known than its mean.
        if not (smoother.kernel.signed or np.isnan(errors.loo_residuals).any()):
            lower, upper = np.swapaxes(_confidence_band(smoother, X, coverage), 0, 1)
            intervals[:, 0] = np.fmin(intervals[:, 0], lower)
            intervals[:, 1] = np.fmax(intervals[:, 1], upper)
        return self._clip(_like_targets(intervals, smoother.values))

    def predict_quantiles(self, X, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> np.ndarray:
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
            Smallest values at which the distribution function reaches each quantile.

        Notes
        -----
        The distribution is the prediction plus the leave-one-out errors :math:`R_i` around
        the query, less their mean, so that its mean is the prediction:

        .. math:: \sum_i k_i(x)\, \delta\bigl[\hat m(x) + s(x) (R_i
                  - \textstyle\sum_j k_j(x) R_j)\bigr]

        Errors are divided by their expected size at their row and multiplied by that at the
        query, :math:`s(x)`, as in :meth:`predict_interval`, so that quantiles are further apart
        where there are few rows. The kernel weights :math:`k_i(x)` are those of windows that
        hold at least forty rows, which count alike whatever their weights. The window of the
        prediction itself has too few targets, and they are too near to a prediction made from
        them to show how far away new ones lie. If a level of a category has fewer rows, rows of
        other levels count as well. In simulations with 100 to 500 rows, 0.89 to 0.92 of new
        targets lay between the quantiles 0.05 and 0.95. Unlike intervals of
        :meth:`predict_interval`, quantiles follow the noise from place to place, also where it
        is skewed.
        """
        probabilities = check_probabilities("quantiles", quantiles)
        X, smoother = self._read_rows(X), self._smoother
        quantiles = _quantiles(smoother, X, probabilities)
        return self._clip(_like_targets(quantiles, smoother.values))

    def predict_cdf(self, X, y) -> np.ndarray:
        """Conditional distribution function: probability that a target is at most `y`.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_thresholds,) or (n_queries, n_thresholds)
            Thresholds, the same for all queries, or those of each. Those of a query are the
            same for all outputs.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_thresholds) or \
(n_queries, n_thresholds, n_outputs)
            Of every query at all of its thresholds. See :meth:`predict_quantiles` for the
            distribution.
        """
        X, smoother = self._read_rows(X), self._smoother
        thresholds = check_thresholds("y", y, len(X))

        def probabilities_below(rows, residuals, weights, shift, scale):
            """Return the probabilities of at most the thresholds; see `_statistics`."""
            targets = shift[:, None] + scale[:, None] * residuals
            probabilities = [
                np.sum(weights * (targets <= threshold[:, None]), axis=1)
                for threshold in thresholds[rows].T
            ]
            # Adding 0 times the shift keeps the NaN of a query without any key in its window.
            return np.stack(probabilities, axis=1).clip(max=1) + 0 * shift[:, None]

        probabilities = _statistics(smoother, X, probabilities_below)
        new = np.flatnonzero(smoother.errors.level_effects.is_new(X).any(axis=1))
        if len(new):
            probabilities[new] = _cdf_at_new_levels(smoother, X[new], thresholds[new])
        probabilities = _like_targets(probabilities, smoother.values)
        bounds = getattr(self, "bounds_", None)
        if bounds is None:
            return probabilities
        # No target is below the lower bound, and all are at most the upper one.
        lower, upper = bounds
        thresholds = thresholds if probabilities.ndim == 2 else thresholds[:, :, None]
        probabilities = np.where(thresholds >= upper, 1.0, probabilities)
        return np.where(thresholds < lower, 0.0, probabilities)

    def confidence_band(
        self,
        X,
        coverage: float = 0.9,
        *,
        simultaneous: bool = False,
        n_resamples: int = 1000,
        random_state: int | np.random.RandomState | None = 0,
    ) -> np.ndarray:
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
            Number of random draws for a simultaneous band.
        random_state : int, RandomState instance or None, default=0
            Makes these draws.

        Returns
        -------
        band : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends.

        Notes
        -----
        The bandwidth that predicts best leaves a bias as large as the standard error. The
        band is therefore around another fit :math:`\tilde m`, which has less bias and a larger
        standard error, in the manner of [1]_. If predictions are local averages, it has local
        lines at 0.8 times the bandwidth; if they are lines, parabolas at the same bandwidth
        (lines at half of it in more than ten features); if they are parabolas, parabolas at 0.6
        times the bandwidth. So predictions need not be in the middle of the band.

        .. math:: \tilde m(x) \pm c\, \hat\sigma(x) \sqrt{v(x) + (u(x)^2 + v(x)) (g(x) - 1)},
                  \quad v(x) = \textstyle\sum_i l_i(x)^2 / w_i

        with effective weights :math:`l_i`, and :math:`\hat\sigma(x)^2` the local average of
        squared leave-one-out errors, times weights, in windows of twenty rows at least, so
        that the noise may differ from place to place. The term with :math:`g` is the error of
        the model off the rows, by which :meth:`predict_interval` widens too: :math:`g` is the
        square of its second factor, for the fit :math:`\tilde m`, and 1 among the rows. The
        factor :math:`c` is the quantile of Student's t with :math:`n - \operatorname{tr} S`
        degrees of freedom, or for a simultaneous band that of the largest deviation over the
        queries that normal errors make, divided by an estimate of their standard deviation
        with as many.

        Weights are precisions, in any unit: the noise of row i has a variance in proportion
        to :math:`1 / w_i`. Rows are independent, unless the estimator has a `gap`: the noise
        then is an autoregression of up to so many lags, in the rows' order, as AICc chooses it
        for the leave-one-out errors across the gap, and with its autocorrelations
        :math:`\rho` there is :math:`v = \sum_{ij} \rho_{i - j} l_i l_j / \sqrt{w_i w_j}`.

        The coverage is approximate. With one feature and 100 to 500 rows, bands of coverage 0.9
        contained smooth curves at 0.86 to 0.90 of the places, and curves with jumps and narrow
        peaks at 0.88 to 0.93. Simultaneous bands contained the whole of a smooth curve in 0.86
        to 0.91 of data sets. They do not follow jumps: they contained the whole of a curve with
        jumps or narrow peaks in 0.14 (100 rows) to 0.75 (500 rows) of data sets.

        References
        ----------
        .. [1] Calonico, S., Cattaneo, M. D. and Farrell, M. H. (2018). On the effect of bias
           estimation on coverage accuracy in nonparametric inference. Journal of the American
           Statistical Association 113, 767-779.
        """
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        check_positive("n_resamples", n_resamples, integer=True)
        X, smoother = self._read_rows(X), self._smoother
        smoother.need_positive_weights("confidence_band")
        smoother.errors.need_all_residuals("confidence_band")
        n_draws = 0
        if simultaneous:
            # A draw has a number for each key and output, and needs memory for three of them.
            n_draws = check_size(
                "n_resamples", n_resamples, 3, smoother.errors.loo_residuals.size
            )
        band = _confidence_band(smoother, X, coverage, n_draws, random_state)
        return self._clip(_like_targets(band, smoother.values))

    def feature_significance(
        self, n_resamples: int = 199, random_state: int | np.random.RandomState | None = 0
    ) -> Any:
        """Test for every feature whether the prediction depends on it.

        See :class:`~sklearn_attention.Significance` for the method. If the fit chose anything
        by the targets (a bandwidth, weights of degrees, `robust`), so does each draw. A feature
        that matters then takes as long as `n_resamples` fits. Draws stop early once the p-value
        is clearly large, so a feature that does not matter takes about forty fits. After five
        seconds a line on stderr shows the progress.

        Parameters
        ----------
        n_resamples : int, default=199
            Maximum number of draws of the wild bootstrap for each feature; the smallest
            p-value is 1 / (n_resamples + 1).
        random_state : int, RandomState instance or None, default=0
            Makes these draws.

        Returns
        -------
        significance : Significance
            Named tuple of ``statistics`` and ``p_values``.
        """
        smoother = self._smoother
        smoother.errors.need_all_residuals("feature_significance")
        # A draw has a number for each key, and needs memory for three of them.
        n_resamples = check_size("n_resamples", n_resamples, 3, len(smoother.keys))
        # The targets may have chosen a bandwidth, robust weights, penalties of an additive
        # stage, and weights of degrees. If they have chosen nothing, draws need no fit.
        chosen = (
            hasattr(self, "criterion_value_"),
            smoother.error_settings.robustness is not None,
            isinstance(smoother, AdditiveMixture),
            len(smoother.members) > 1,
        )
        choose_again = self._smoother_of if any(chosen) else None
        name, n_draws = type(self).__name__, smoother.keys.shape[1] * n_resamples
        with Progress(name, n_draws, delay=progress_delay("auto", self)) as progress:
            return feature_significance(
                smoother, n_resamples, check_random_state(random_state), choose_again, progress
            )


def _confidence_band(smoother, X, coverage, n_draws=0, random_state=None):
    """Return the band around the curve at queries, (n_queries, 2, n_outputs).

    `coverage` is the probability at each query, or, with `n_draws` random draws of the noise,
    that at all queries at once.
    """
    errors = smoother.errors
    band_errors, noise = errors.band_errors, errors.band_errors.noise
    random_state = check_random_state(random_state)
    # 1. Draw normal noise of the keys for a simultaneous band.
    draws = (
        noise.draws(n_draws, random_state) if n_draws else np.zeros((1, len(smoother.keys), 0))
    )
    # 2. Compute the curve, its standard errors in units of the noise, and for each draw the
    # largest deviation that it makes at any query, in standard errors.
    centers, stds, max_deviations = [], [], 0.0
    for rows in _query_blocks(X, smoother):
        hat = band_errors.smoother.local_rows(X[rows])
        # The terms are u^2, v and g of the formula of `confidence_band`.
        target, fit, model = band_errors.variance_terms(X[rows], hat.effects)
        deviations = np.abs(hat.effects @ draws) / np.sqrt(fit.T)[:, :, None]
        max_deviations = np.fmax(max_deviations, np.fmax.reduce(deviations, axis=1))
        centers.append(hat.values)
        stds.append(np.sqrt(fit + (target + fit) * (model - 1)))
    # 3. The half-width is a quantile times the standard error in units of the targets. The
    # variance of the noise is estimated, with as many degrees of freedom as the fit leaves.
    dof = max(smoother.n_rows - smoother.training_predictions.leverage.sum(), 1.0)
    factor = t.ppf((1 + coverage) / 2, dof)
    if n_draws:
        max_deviations = max_deviations * np.sqrt(dof / random_state.chisquare(dof, n_draws))
        factor = np.quantile(max_deviations, coverage, axis=1, method="higher")
    residuals = errors.loo_residuals / np.sqrt(noise.variances)[:, None]
    variance = noise_variance(errors.scale_windows, X, residuals, errors.settings.robustness)
    half_width = factor * np.sqrt(variance) * np.concatenate(stds)
    level_effect_std = errors.level_effects.distribution(X).normal_std
    half_width = np.hypot(half_width, factor * level_effect_std)
    center = np.concatenate(centers)
    return np.stack([center - half_width, center + half_width], axis=1)


def jackknife_intervals(left_out, sizes, scale, coverage):
    """Return jackknife+ intervals of queries, lower and upper ends, (n_queries, 2, n_outputs).

    They are infinite if there are too few rows for the coverage.

    Parameters
    ----------
    left_out : ndarray of shape (n_queries, n_rows, n_outputs)
        Predictions of the queries without each row.
    sizes : ndarray of shape (n_rows, n_outputs)
        Absolute leave-one-out residuals, in units of their expected size.
    scale : ndarray of shape (n_queries, n_outputs)
        Expected size of errors at the queries.
    coverage : float
        Probability of an interval.
    """
    # With predictions m_i(x) without row i, sizes R_i and the scale s(x), the upper end is the
    # value of m_i(x) + s(x) R_i at a place (a position from 0) in increasing order. The lower
    # end is the value of m_i(x) - s(x) R_i at the same place in decreasing order, that is,
    # minus the value of s(x) R_i - m_i(x) at this place in increasing order.
    place = math.ceil(coverage * (len(sizes) + 1) * (1 - _SLACK)) - 1
    if place >= len(sizes):
        return np.stack([np.full_like(scale, -np.inf), np.full_like(scale, np.inf)], axis=1)
    half_widths = scale[:, None] * sizes
    negative_lower, upper = half_widths - left_out, half_widths + left_out
    negative_lower.partition(place, axis=1)
    upper.partition(place, axis=1)
    return np.stack([-negative_lower[:, place], upper[:, place]], axis=1)


def standard_deviations(smoother, X):
    """Return standard deviations of targets at queries X, (n_queries, n_outputs).

    They are the local standard deviation of the standardised residuals times the expected size
    of errors at the query. At levels that did not occur in training, the variance of the
    effects of levels is added to the squares.
    """
    errors = smoother.errors
    errors.need_all_residuals("return_std=True")
    scales = [
        errors.expected_size(X[rows], smoother.local_rows(X[rows]).effects)
        for rows in _query_blocks(X, smoother)
    ]
    # `noise_variance` averages the squares of residuals, in windows in which all rows count
    # alike. A local polynomial of squares could be negative.
    robustness = errors.settings.robustness
    variance = noise_variance(smoother.unweighted, X, errors.standardized, robustness)
    std = np.sqrt(variance) * np.concatenate(scales)
    return np.hypot(std, errors.level_effects.distribution(X).normal_std)


def _quantiles(smoother, X, probabilities):
    """Return quantiles of targets at queries, (n_queries, n_probabilities, n_outputs)."""

    def quantiles_and_median(rows, residuals, weights, shift, scale):
        """Return the quantiles of an output, and its median last; see `_statistics`."""
        with_median = np.append(probabilities, 0.5)
        residual_quantiles = weighted_quantiles(residuals, weights, with_median)
        return shift[:, None] + scale[:, None] * residual_quantiles

    quantiles = _statistics(smoother, X, quantiles_and_median)
    # The effects of new levels move quantiles away from the median.
    quantiles, medians = quantiles[:, :-1], quantiles[:, -1]
    effects = smoother.errors.level_effects.distribution(X)
    return effects.inflate(quantiles, medians, probabilities)


def _cdf_at_new_levels(smoother, X, thresholds):
    """Return probabilities of targets of at most `thresholds` (n_queries, n_thresholds).

    The shape is (n_queries, n_thresholds, n_outputs). Effects of new levels move quantiles, so
    that probabilities are interpolated between these.
    """
    quantiles = _quantiles(smoother, X, _PROBABILITIES)
    probabilities = np.empty((*thresholds.shape, quantiles.shape[2]))
    for query, output in np.ndindex(len(X), quantiles.shape[2]):
        points = quantiles[query, :, output], _PROBABILITIES
        probabilities[query, :, output] = np.interp(thresholds[query], *points, left=0, right=1)
    return probabilities


def _statistics(smoother, X, statistic):
    """Compute k statistics, such as quantiles, of the distribution of targets at queries.

    The distribution of one output at a query is discrete: it has the value ``shift + scale *
    residuals[i]`` with the probability ``weights[i]``, for the standardised residual of key i.

    Parameters
    ----------
    smoother : FittedSmoother
        The smoother that predicts.
    X : ndarray of shape (n_queries, n_features)
        The queries.
    statistic : callable
        ``statistic(rows, residuals, weights, shift, scale)`` returns the statistics of an
        output, (m, k), for a block of m queries. Their positions are `rows`, a slice;
        `residuals` have the shape (n_keys,), `weights` (m, n_keys), `shift` and `scale` (m,).

    Returns
    -------
    statistics : ndarray of shape (n_queries, k, n_outputs)
    """
    smoother.need_positive_weights("a conditional distribution")
    errors, statistics = smoother.errors, []
    errors.need_all_residuals("a conditional distribution")
    windows, standardized = errors.distribution_windows, errors.standardized
    # New targets may be outliers too, so residuals of outliers, whose robust weight is 0, are
    # values of the distribution. The shift is such that the mean without outliers is the
    # prediction.
    has_weight = errors.given_row_weights > 0
    windows_with_outliers = windows.weighted_by(has_weight.astype(np.float64))
    for rows in _query_blocks(X, smoother):
        weights = weights_without_outliers = windows_with_outliers.weights(X[rows])
        if errors.settings.robustness is not None:
            weights_without_outliers = windows.weights(X[rows])
        hat = smoother.local_rows(X[rows])  # predictions, and rows of the hat matrix
        scales = errors.expected_size(X[rows], hat.effects)
        shifts = hat.values - scales * (weights_without_outliers @ standardized)
        output_statistics = [
            statistic(rows, residuals, weights, shift, scale)
            for residuals, shift, scale in zip(standardized.T, shifts.T, scales.T, strict=True)
        ]
        statistics.append(np.stack(output_statistics, axis=2))
    return np.concatenate(statistics)


def _query_blocks(X, smoother):
    """Yield slices of the queries, so short that results for all pairs fit in memory."""
    return blocks_of_queries(len(X), smoother.values.size)


def _like_targets(results, values):
    """Return results (n, k, n_outputs) in the precision of the targets.

    If the targets `values` have one dimension, the results have no axis of outputs: (n, k).
    """
    shape = (*results.shape[:2], *values.shape[1:])
    return results.reshape(shape).astype(values.dtype, copy=False)
