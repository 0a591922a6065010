"""Uncertainty of a regression smoother: intervals, bands, quantiles, tests of features."""

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state

from .._blocks import IN_MEMORY, blocks
from .._validation import (
    check_in_open_interval,
    check_list,
    check_positive,
    check_probabilities,
)
from ._fitted_smoother import FittedSmoother
from ._inference import JackknifeIntervals, weighted_quantiles
from ._local_errors import ROWS_OF_QUANTILES, ROWS_OF_SPREADS, local_sizes, widened
from ._robust import noise_variance
from ._significance import feature_significance
from ._training_rows import known_errors, left_out_errors

# Pairs of query and training row at a time, where all of them are needed.
_BLOCK_PAIRS = IN_MEMORY // 32
# Degree and share of the bandwidth of the curve a band is around, for predictions of degree 0,
# 1 and 2: measured, so that the bias is small beside the standard error and the band no wider
# than that takes. Parabolas of many features have too many coefficients.
_BANDS = ((1, 0.8), (2, 1.0), (2, 0.6))
_BAND_OF_MANY, _MANY_FEATURES = (1, 0.5), 10


class UncertaintyMixin:
    """Methods of regressors that say how uncertain their predictions are."""

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
        :math:`1 - 2\alpha` for a nominal :math:`1 - \alpha`, and about :math:`1 - \alpha` as a
        rule. That holds for a bandwidth chosen beforehand; one chosen on the same rows
        makes their errors a little smaller than those of new rows, by about the share of
        the degrees of freedom spent on the choice: one in `n_samples` for each bandwidth.
        The heteroscedastic form divides every error by the local mean absolute error,
        itself smoothed with a bandwidth by leave-one-out, widened to windows of twenty rows
        at least, and multiplies by that at the query.

        References
        ----------
        .. [1] Barber, R. F., Candes, E. J., Ramdas, A. and Tibshirani, R. J. (2021).
           Predictive inference with the jackknife+. Annals of Statistics 49, 486-507.
        """
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        X, smoother = self._read_rows(X), FittedSmoother.of(self)
        errors = np.abs(left_out_errors(smoother))
        here = np.ones((len(X), errors.shape[1]))
        if heteroscedastic:
            known_errors(smoother, "heteroscedastic=True")
            here, there = local_sizes(smoother, X, self.random_state)
            errors = errors / there
        # Of a row that has no prediction nothing can be said.
        errors = np.where(np.isnan(errors), np.inf, errors)
        intervals = JackknifeIntervals(errors, smoother.given_counts, coverage)
        found = [
            intervals.around(*smoother.left_out(X[rows]), here[rows])
            for rows in _query_blocks(X, smoother)
        ]
        return _like_targets(np.concatenate(found), smoother.values)

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
        The distribution is the prediction plus the leave-one-out errors :math:`R_i` around
        the query, less their mean, so that its mean is the prediction:

        .. math:: \sum_i w_i(x)\, \delta\bigl[\hat m(x) + R_i
                  - \textstyle\sum_j w_j(x) R_j\bigr]

        with kernel weights :math:`w_i(x)` in windows of forty rows at least: the targets in
        the window of the prediction itself are too few, and too near to a prediction made
        from them, to tell how far new ones lie. Of new targets 0.89 to 0.92 lay between the
        quantiles 0.05 and 0.95 in simulations with 100 to 500 rows. Unlike intervals of
        :meth:`predict_interval` quantiles follow the noise from place to place, also where it
        is skewed.
        """
        quantiles = check_probabilities("quantiles", quantiles)

        def found(errors, weights, shift):
            return weighted_quantiles(errors, weights, quantiles) + shift[:, None]

        return _distribution(FittedSmoother.of(self), self._read_rows(X), found)

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
        thresholds = check_list("y", y)

        def found(errors, weights, shift):
            places = shift[:, None] + errors
            below = [np.sum(weights * (places <= t), axis=1) for t in thresholds]
            return np.stack(below, axis=1) + 0 * shift[:, None]

        return _distribution(FittedSmoother.of(self), self._read_rows(X), found)

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
        The bandwidth that predicts best leaves a bias as large as the standard error. The
        band is therefore around another fit :math:`\tilde m`, with less bias and a larger
        standard error, its own, in the manner of [1]_: local lines at 0.8 times the
        bandwidth for predictions by local averages, parabolas at the same bandwidth for
        lines (lines at half of it in more than ten features), parabolas at 0.6 times the
        bandwidth for parabolas. So predictions need not be in the middle of the band.

        .. math:: \tilde m(x) \pm c\, \hat\sigma(x) \sqrt{\textstyle\sum_i l_i(x)^2 / w_i}

        with effective weights :math:`l_i`, and :math:`\hat\sigma(x)^2` the local average of
        squared leave-one-out errors in windows of twenty rows at least, so that the noise may
        differ from place to place. The factor :math:`c` is the normal quantile, or for a
        simultaneous band that of the largest deviation over the queries that independent
        normal errors make.

        The coverage is approximate. For 0.9, bands of 100 to 500 rows and one feature
        held smooth curves at 0.86 to 0.90 of places and curves with jumps and narrow peaks at
        0.88 to 0.93; simultaneous bands held all of a smooth curve in 0.86 to 0.91 of data
        sets. No band of a smoother follows a jump: of a curve with jumps or narrow peaks they
        held all in 0.14 (100 rows) to 0.75 (500 rows).

        References
        ----------
        .. [1] Calonico, S., Cattaneo, M. D. and Farrell, M. H. (2018). On the effect of bias
           estimation on coverage accuracy in nonparametric inference. Journal of the American
           Statistical Association 113, 767-779.
        """
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        check_positive("n_resamples", n_resamples, integer=True)
        X, smoother = self._read_rows(X), FittedSmoother.of(self)
        smoother.need_positive_weights("confidence_band")
        errors = known_errors(smoother, "confidence_band")
        many = smoother.degree == 1 and len(smoother.columns.numeric) > _MANY_FEATURES
        degree, share = _BAND_OF_MANY if many else _BANDS[smoother.degree]
        less_biased = smoother.replace(degree=degree, factor=share)
        counts = smoother.given_counts
        roots = np.sqrt(np.where(counts > 0, counts, 1.0))
        draws = np.zeros((len(roots), 0))
        if simultaneous:
            shape = len(roots), n_resamples
            draws = check_random_state(random_state).standard_normal(shape)
        centers, lengths, largest = [], [], np.zeros(draws.shape[1])
        for rows in _query_blocks(X, smoother):
            local = less_biased.local_rows(X[rows])
            effects = local.smoother / roots
            centers.append(local.values)
            lengths.append(np.linalg.norm(effects, axis=1))
            moves = np.abs(effects @ draws) / lengths[-1][:, None]
            largest = np.fmax(largest, np.fmax.reduce(moves))
        factor = norm.ppf((1 + coverage) / 2)
        if simultaneous:
            factor = np.quantile(largest, coverage, method="higher")
        variance = noise_variance(widened(smoother, ROWS_OF_SPREADS), X, errors)
        width = factor * np.sqrt(variance) * np.concatenate(lengths)[:, None]
        center = np.concatenate(centers)
        band = np.stack([center - width, center + width], axis=1)
        return _like_targets(band, smoother.values)

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
        check_positive("n_resamples", n_resamples, integer=True)
        return feature_significance(
            FittedSmoother.of(self), n_resamples, check_random_state(random_state)
        )


def _distribution(smoother, X, statistic):
    """A statistic of the conditional distribution at each query."""
    smoother.need_positive_weights("a conditional distribution")
    errors = known_errors(smoother, "a conditional distribution")
    wide, found = widened(smoother, ROWS_OF_QUANTILES), []
    # Outliers are targets, but have no say in where the others are.
    given = wide.replace(key_weights=smoother.given_weights)
    for rows in _query_blocks(X, smoother):
        weights = given.weights(X[rows])
        centers = smoother.predict(X[rows]).reshape(len(weights), -1)
        shifts = centers - wide.average(X[rows], errors)
        of_outputs = [
            statistic(own, weights, shift)
            for own, shift in zip(errors.T, shifts.T, strict=True)
        ]
        found.append(np.stack(of_outputs, axis=2))
    return _like_targets(np.concatenate(found), smoother.values)


def _query_blocks(X, smoother):
    return blocks(len(X), max(1, _BLOCK_PAIRS // smoother.values.size))


def _like_targets(found, values):
    """Without the axis of outputs where targets have none, in their precision."""
    shape = (*found.shape[:2], *values.shape[1:])
    return found.reshape(shape).astype(values.dtype, copy=False)
