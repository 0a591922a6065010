"""Searches for several bandwidths: one for each numeric column, and lambdas, by gradients.

A point of a search is a vector: the logarithms of scales, then the logarithms of level weights.
A scale is the bandwidth of a numeric column divided by the standard deviation of the column;
columns have a scale each, or share one. The level weight w of a category is the kernel's value
between different levels (neighbouring ones of an ordered category), relative to that between
equal ones. It is lambda for an ordered category, and lambda / ((c - 1) (1 - lambda)) for an
unordered one with c levels.

A search computes the criterion of a sample, and its gradient. L-BFGS-B descends from several
starting points, and `Trials.best` is the best of all points at which the criterion was
computed. Its bandwidth is rescaled to all rows. The criterion of a descent ignores that
LeaveOneOut doubles windows with too few rows; a last step corrects for this.
"""

import math
from dataclasses import replace

import numpy as np

from ..attention._leave_one_out import LeaveOneOut
from ..attention._leave_one_out_gradient import LeaveOneOutGradient
from ..kernels import Gaussian
from ..kernels._compact import CompactKernel
from ..kernels._product_kernel import mixed_kernel
from ._background import background_mixing_weight
from ._criteria import criterion_slopes, evaluate_criterion
from ._minimize import STEP, descend, minimize_scale
from ._samples import ValueSample, optimal_rate_factor
from ._search import (
    MAX_SEARCH_ROWS,
    MIN_LEVEL_WEIGHT,
    BandwidthChoice,
    Trials,
    canonical_ratio,
    search_range,
)

# Number of common scales of all columns that are tried before the descents.
_N_COMMON_SCALES = 8
# Descents start from the best common scale, from this multiple of it, and from points at which
# one feature hardly matters, since its bandwidth is the second multiple of the best one.
_WIDENING, _WITHOUT_FEATURE = 3.0, 30.0
# Maximum number of starting points at which one feature hardly matters.
_MAX_STARTS_WITHOUT_FEATURE = 3
# Maximum number of steps of every descent but the last one.
_FIRST_STEPS = 8
# If there are more rows than this, the search begins with a subset of this size.
_SUBSET_ROWS = 300
# This number replaces an infinite criterion. Descents can step back from it.
_IN_PLACE_OF_INFINITY = 1e100
# A feature does not matter if its bandwidth is this multiple of its extent.
_IRRELEVANT = 1e3
# Level weight of all categories at which descents start.
_FIRST_LEVEL_WEIGHT = 0.3
# Gradients do not know that windows are doubled, and those of compact kernels are of no use. In
# these cases the best bandwidths are multiplied by the best factor between these two numbers.
_FACTORS = 1 / 4, 2.0
# Doubled windows matter if criteria with and without them differ by more than this fraction.
# Otherwise the best factor improves criteria by at most 0.8 %, on 82 data sets.
_MIN_EFFECT_OF_DOUBLING = 1e-4
# A feature is left out if this increases the criterion by at most this fraction of its size.
_NO_LOSS = 1e-6
# Several bandwidths replace one scale if, for each bandwidth that is added, they lower the
# logarithm of the criterion, times the number of rows, by this much.
_GAIN_OF_EACH = 4.0
# For classes they must raise the leave-one-out log-likelihood by this much as well.
_GAIN_OF_CLASSES = 2.0


def search_bandwidths(criterion, rows, kernel, observe):
    """Search lambdas and bandwidths, with one scale or several, and return the BandwidthChoice.

    The arguments are the criterion's name, Rows, the kernel of their numeric columns, and the
    callback.
    """
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    trials = Trials(criterion, rows, observe)
    return _GradientSearch(criterion, rows, kernel, sample, trials).run()


def search_per_feature(criterion, rows, kernel, observe, common_bandwidth):
    """Search a bandwidth for each numeric column, and return the BandwidthChoice, or None.

    The result is None if it is not clearly better than `common_bandwidth` (n_columns,), the
    best bandwidth for one scale. The other arguments are those of `search_bandwidths`.
    """
    rows = replace(rows, per_feature=True, start=None)
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    trials = Trials(criterion, rows, observe)
    search = _GradientSearch(criterion, rows, kernel, sample, trials)
    # The bandwidth of all rows is turned into one of the sample.
    factor_to_all_rows = search.rescale_to_all_rows(np.ones_like(common_bandwidth))
    sample_bandwidth = common_bandwidth / factor_to_all_rows
    search.common_point = search.space.nearest_point(sample_bandwidth)
    # This point is the best one if the criterion is finite nowhere, as if all errors are 0 and
    # have no logarithm.
    trials.add(_IN_PLACE_OF_INFINITY, search.common_point)
    choice = search.run()
    is_gain = search.is_gain(sample_bandwidth, search.space.bandwidth(trials.best))
    return choice if is_gain else None


class _SearchSpace:
    """Points of a search, their limits, and the bandwidths that they stand for.

    Attributes
    ----------
    per_feature : bool
        Whether each numeric column has its own scale.
    ratio : float
        The canonical ratio of the kernel.
    n_scales : int
        Number of scales; the other coordinates of a point belong to level weights.
    min_scale, max_scale : float
        Range of a common scale of all numeric columns.
    log_lowest, log_highest : ndarray of shape (n_coordinates,)
        Limits of points.
    log_max_visible : ndarray of shape (n_coordinates,)
        The highest point at which each feature has some effect.
    """

    def __init__(self, sample, rows, ratio):
        self.ratio, self.per_feature = ratio, rows.is_per_feature
        self._columns = rows.columns
        self._numeric, self._categorical = rows.columns.numeric, rows.columns.categorical
        self._std = sample.std[self._numeric]
        self._is_constant = np.ptp(sample.X[:, self._numeric], axis=0) == 0
        # 1. Find the range of each scale.
        Z, n_numeric = sample.X[:, self._numeric] / self._std, len(self._numeric)
        self.min_scale, self.max_scale = search_range(Z, ratio) if n_numeric else (1.0, 1.0)
        # The entry [i, j] of the matrix `_has_scale` is 1 if numeric column i has scale j.
        if self.per_feature:
            self._has_scale = np.eye(n_numeric)
            ranges = [search_range(column[:, None], ratio) for column in Z.T]
        else:
            self._has_scale = np.ones((n_numeric, min(n_numeric, 1)))
            ranges = [(self.min_scale, self.max_scale)] * min(n_numeric, 1)
        self.n_scales = self._has_scale.shape[1]
        lowest, max_visible = np.reshape(ranges, (-1, 2)).T
        # 2. Let the bandwidth of a feature that does not matter grow far above its extent. It
        # must not if rows with outliers in the feature were left out of the search, since these
        # rows would get weight in predictions.
        highest = max_visible
        if self.per_feature:
            has_outliers = np.broadcast_to(rows.has_outliers, len(rows.columns.kinds))
            factor = np.where(has_outliers[self._numeric], 1.0, _IRRELEVANT)
            highest = max_visible * factor
        # 3. Add the range of level weights.
        min_weights = np.full(len(self._categorical), MIN_LEVEL_WEIGHT)
        max_weights = np.ones_like(min_weights)
        self.log_lowest = np.log(np.append(lowest, min_weights))
        self.log_highest = np.log(np.append(highest, max_weights))
        self.log_max_visible = np.log(np.append(max_visible, max_weights))

    def common_point(self, scale):
        """Return the point at which all scales are equal; level weights are those of starts."""
        level_weights = np.full(len(self._categorical), math.log(_FIRST_LEVEL_WEIGHT))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), level_weights))

    def nearest_point(self, bandwidth):
        """Return the point nearest to a bandwidth (n_columns,), with lambdas of categories."""
        level_weights = bandwidth[self._categorical].copy()  # lambdas of ordered categories
        for k, j in enumerate(self._categorical):
            if self._columns.kinds[j] == "unordered":
                n_other_levels = max(self._columns.n_levels[j], 2) - 1
                divisor = n_other_levels * (1 - level_weights[k])
                level_weights[k] /= max(divisor, MIN_LEVEL_WEIGHT)
        # A common scale is the geometric mean of those of all numeric columns.
        log_scales = np.log(bandwidth[self._numeric] / self._std) @ self._has_scale
        log_scales = log_scales / self._has_scale.sum(axis=0)
        with np.errstate(divide="ignore"):
            return self.clip(np.append(log_scales, np.log(level_weights)))

    def widen(self, point, factor):
        """Multiply all scales by a factor, within their limits."""
        point = point.copy()
        point[: self.n_scales] += math.log(factor)
        return self.clip(point)

    def points_without_feature(self, point):
        """Return a list of points; at each, one scale is so large that it hardly matters."""
        if self.n_scales < 2:
            return []
        moves = np.log(_WITHOUT_FEATURE) * np.eye(len(point))[: self.n_scales]
        return [self.clip(point + move) for move in moves]

    def clip(self, point):
        return np.clip(point, self.log_lowest, self.log_highest)

    def split(self, point):
        """Return the logarithms of all bandwidths (n_numeric,), and of all level weights."""
        log_scales, log_level_weights = point[: self.n_scales], point[self.n_scales :]
        return np.log(self._std) + self._has_scale @ log_scales, log_level_weights

    def split_vjp(self, gradient):
        """Turn derivatives with respect to both results of `split` into those along the point.

        `gradient` has the derivatives (n_numeric + n_categorical,) in one array.
        """
        n_numeric = len(self._numeric)
        return np.append(gradient[:n_numeric] @ self._has_scale, gradient[n_numeric:])

    def bandwidth(self, point):
        """Return the bandwidth (n_columns,) of a point, with lambdas of categories."""
        log_bandwidth, log_level_weights = self.split(point)
        bandwidth = np.ones(len(self._columns.kinds))
        bandwidth[self._numeric] = np.exp(log_bandwidth)
        for j, level_weight in zip(self._categorical, np.exp(log_level_weights), strict=True):
            bandwidth[j] = level_weight
            if self._columns.kinds[j] == "unordered":
                # Solve w = lambda / ((c - 1) (1 - lambda)) for lambda.
                odds = level_weight * (max(self._columns.n_levels[j], 2) - 1)
                bandwidth[j] = odds / (1 + odds)
        return bandwidth

    def relevance(self, point):
        """Return the `relevance` (n_columns,) of a BandwidthChoice; see `select_bandwidth`."""
        log_bandwidth, log_level_weights = self.split(point)
        relevance = np.zeros(len(self._columns.kinds))
        # Scales of a Gaussian kernel that smooths as much.
        scales = np.exp(log_bandwidth) / (self.ratio * self._std)
        varying_relevance = -np.expm1(-(scales**-2.0))
        relevance[self._numeric] = np.where(self._is_constant, 0.0, varying_relevance)
        relevance[self._categorical] = 1 - np.exp(log_level_weights)
        return relevance


class _GradientSearch:
    """A search for several bandwidths of a sample, by descents from several starting points.

    The criterion and its gradient are computed once at each point. `trials` keeps the best
    point.
    """

    # The best point with a common scale, if it is known from another search.
    common_point = None

    def __init__(self, criterion, rows, kernel, sample, trials):
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        self.sample, self.trials = sample, trials
        self.space = _SearchSpace(sample, rows, canonical_ratio(kernel))
        self._scores_and_vjp = LeaveOneOutGradient(
            sample.X,
            sample.values,
            kernel,
            rows.columns.kinds,
            degree=rows.degree,
            sample_weight=sample.sample_weight,
            empty=rows.empty,
        )
        self._is_compact = isinstance(kernel, CompactKernel) and bool(rows.columns.numeric)
        # If the bandwidth of local lines is known, one descent from it suffices for other
        # polynomials. Averages may need other features than lines.
        self._is_near_start = rows.start is not None and rows.degree > 0
        # By the bytes of a point: the criterion, and the criterion with its gradient.
        self._values, self._gradients = {}, {}

    def run(self):
        """Search the best bandwidths of the sample, and return the BandwidthChoice of all rows.

        Leaving the block of the trials raises an error if no trial had a finite criterion.
        """
        with self.trials as trials:
            self.minimize()
            if trials.best is not None:
                self._multiply_by_best_factor()
        value = self.sample.restore_criterion(trials.value, self.criterion)
        bandwidth = self.rescale_to_all_rows(self.space.bandwidth(trials.best))
        return BandwidthChoice(bandwidth, value, relevance=self.space.relevance(trials.best))

    def minimize(self):
        """Minimise the criterion by descents, ignoring that windows may be doubled."""
        if self._is_compact:
            # The criterion has kinks or steps, at which descents end for no good reason.
            self._minimize_for_gaussian()
            return
        self.find_start()
        if self.trials.best is None:
            return
        if self.space.per_feature and len(self.sample) > _SUBSET_ROWS:
            # Features that matter the less the larger their scales are left out if that costs
            # nothing. A descent would take many steps to enlarge the scales.
            best = self.trials.best
            is_growing = self._value_and_gradient(best)[1] <= 0
            is_large = best > math.log(self.space.ratio)
            self._leave_features_out(np.flatnonzero(is_growing & is_large))
        self._descend(self.trials.best)
        if self.space.per_feature:
            self._leave_features_out(np.argsort(-self.trials.best, kind="stable"))

    def find_start(self):
        """Try points, of which the last descent starts from the best one.

        Usually the points are those of a few steps of descents from several starting points. A
        search for local polynomials other than lines starts near the bandwidth of lines, if
        that is known. With few rows, a few steps of one descent follow. With many rows, two
        points are compared: this bandwidth, widened, and the best one of a subset.
        """
        if not self._is_near_start:
            for start in self._starts():
                self._descend(start, n_steps=_FIRST_STEPS)
            return
        factor_to_all_rows = self.rescale_to_all_rows(np.ones_like(self.rows.start))
        # A feature that does not matter to lines may matter to parabolas, so that bandwidths
        # start where the feature has some effect.
        start = self.space.nearest_point(self.rows.start / factor_to_all_rows)
        start = np.minimum(start, self.space.log_max_visible)
        if len(self.sample) <= _SUBSET_ROWS:
            self._descend(start, n_steps=_FIRST_STEPS)
            return
        for point in (self.space.widen(start, _WIDENING), *self._best_of_subset()):
            self._value_at(point)

    def is_gain(self, common_bandwidth, bandwidth):
        """Return True if several bandwidths gain more on a common scale than by chance.

        Both are bandwidths (n_columns,) of the sample.
        """
        n_added = len(self.rows.columns.numeric) - 1
        leave_one_outs = [self._leave_one_out(h) for h in (common_bandwidth, bandwidth)]
        if self.rows.values.dtype == bool:
            # For classes, squared errors do not tell whether a few rows are nearly impossible.
            before, after = map(self._log_likelihood, leave_one_outs)
            if not after - before > _GAIN_OF_CLASSES * n_added:
                return False
        # The gain is the smaller one of the criterion and of the leave-one-out error. Near
        # interpolation only the latter measures a gain.
        scores = [leave_one_out.scores(np.ones(1)) for leave_one_out in leave_one_outs]
        # The rows of both arrays are the two bandwidths, their columns the two measures.
        values = [(self._criterion(score)[0], score.left_out[0]) for score in scores]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
            if self.criterion == "aicc":  # which is a logarithm
                logs[:, 0] = np.array(values)[:, 0]
            gain = len(self.sample) * (logs[0] - logs[1]).min()
        return gain > _GAIN_OF_EACH * n_added

    def _log_likelihood(self, leave_one_out):
        """Return the log-likelihood of the classes, each row predicted by all others.

        The targets of a row are 1 for its class and 0 for others. So that no probability is 0,
        one row with the mean of all targets is added to the others.
        """
        sample, (center, scale) = self.sample, self.sample.units[:2]
        weights = sample.sample_weight
        mixing_weight = background_mixing_weight(len(sample), weights)
        # Standardized targets are turned into 0 and 1.
        classes = (sample.values * scale + center).round()
        probabilities = leave_one_out.predictions().left_out * scale + center
        mean = np.average(classes, axis=0, weights=weights)
        probabilities = (1 - mixing_weight) * probabilities + mixing_weight * mean
        logs = np.where(classes, np.log(np.where(classes, probabilities, 1.0)), 0.0)
        # With several outputs each row has a class of each, over which logarithms are averaged.
        log_likelihoods = logs.sum(axis=1) / classes.sum(axis=1)
        return len(sample) * np.average(log_likelihoods, weights=weights)

    def _leave_one_out(self, bandwidth):
        """Return the LeaveOneOut of the sample in which scale 1 stands for the bandwidth."""
        sample, columns = self.sample, self.rows.columns
        return LeaveOneOut(
            sample.X,
            sample.values,
            mixed_kernel(self.kernel, columns, bandwidth),
            bandwidth=columns.divisors(bandwidth),
            sample_weight=sample.sample_weight,
            **self.rows.options,
        )

    def _criterion(self, scores):
        size = self.sample.units.size
        return evaluate_criterion(self.criterion, scores, len(self.sample), size)

    def rescale_to_all_rows(self, bandwidth):
        """Turn a bandwidth (n_columns,) of the sample into one of all rows."""
        decreasing = self.kernel.decreasing
        return self.sample.rescale_to_all_rows(bandwidth, decreasing=decreasing)

    def _starts(self):
        """Return a list of points from which descents start."""
        if len(self.sample) > _SUBSET_ROWS:
            return [*self._best_of_subset(), self._best_common_point()]
        best = self._best_common_point()
        widened = self.space.widen(best, _WIDENING)
        # Some of the points without one of the features: those with the smallest criterion.
        points = self.space.points_without_feature(best)
        if len(points) > _MAX_STARTS_WITHOUT_FEATURE:
            points = sorted(points, key=self._value_at)[:_MAX_STARTS_WITHOUT_FEATURE]
        return [best, widened, *points]

    def _minimize_for_gaussian(self):
        """Try the best bandwidths of a Gaussian kernel, rescaled for this kernel."""
        trials = Trials(self.criterion, self.rows)
        rows = self.rows
        if rows.start is not None:
            ratios = np.where(rows.columns.is_numeric, self.space.ratio, 1.0)
            rows = replace(rows, start=rows.start / ratios)
        _GradientSearch(self.criterion, rows, Gaussian(), self.sample, trials).minimize()
        if trials.best is not None:
            point, previous = self.space.widen(trials.best, self.space.ratio), None
            # A row without neighbours makes the criterion infinite; then all scales are doubled
            # until they reach their limits.
            while not np.isfinite(self._value_at(point)) and not np.array_equal(
                point, previous
            ):
                point, previous = self.space.widen(point, 2.0), point

    def _best_of_subset(self):
        """Return the best point of a subset of rows, rescaled, in a list that may be empty."""
        subset, trials = self.sample.subset(_SUBSET_ROWS), Trials(self.criterion, self.rows)
        _GradientSearch(self.criterion, self.rows, self.kernel, subset, trials).find_start()
        if trials.best is None:
            return []
        n_ratio, n_features = len(self.sample) / len(subset), len(self.rows.columns.numeric)
        factor = optimal_rate_factor(n_ratio, n_features, decreasing=self.kernel.decreasing)
        point = self.space.widen(trials.best, factor)
        # A feature that does not matter to a few rows may matter to all, so that it starts
        # where it has some effect.
        return [np.minimum(point, self.space.log_max_visible)]

    def _best_common_point(self):
        """Return the best point with equal scales, of those on a grid unless it is known."""
        if self.common_point is not None:
            return self.common_point
        scales = np.geomspace(self.space.min_scale, self.space.max_scale, _N_COMMON_SCALES)
        # Of equally good scales the largest is taken.
        points = [self.space.common_point(scale) for scale in scales[::-1]]
        return min(points, key=self._value_at)

    def _value_at(self, point):
        """Return the criterion at a point, which is evaluated once."""
        key = point.tobytes()
        if key not in self._values:
            self._values[key] = self._evaluate(point)[0]
        return self._values[key]

    def _evaluate(self, point):
        """Evaluate the criterion at a point; return it, its Scores and their `vjp`."""
        scores, vjp = self._scores_and_vjp(*self.space.split(point))
        value = float(self._criterion(scores))
        # Of equally good points the one with the largest scales is taken.
        self.trials.add(value, point.copy(), tie=-point.sum())
        return value, scores, vjp

    def _value_and_gradient(self, point):
        """Return the criterion at a point and its gradient, which are evaluated once."""
        key = point.tobytes()
        if key not in self._gradients:
            self._gradients[key] = self._evaluate_gradient(point)
        return self._gradients[key]

    def _evaluate_gradient(self, point):
        """Evaluate the criterion at a point and its gradient, and report the trial."""
        value, scores, vjp = self._evaluate(point)
        if not math.isfinite(value):
            return _IN_PLACE_OF_INFINITY, np.zeros_like(point)
        reported_value = self.sample.restore_criterion(value, self.criterion)
        self.trials.report(reported_value, self.space.bandwidth(point))
        # By the chain rule: from the criterion to the Scores, to bandwidths and level weights,
        # to the point.
        size = self.sample.units.size
        slopes = criterion_slopes(self.criterion, scores, len(self.sample), size)
        return value, self.space.split_vjp(vjp(slopes))

    def _descend(self, start, **options):
        """Minimise the criterion from a point, with options of `descend`."""
        bounds = np.column_stack([self.space.log_lowest, self.space.log_highest])
        # AICc is a logarithm, whose size is 1. Other criteria have the size of the best value.
        size = 1.0 if self.criterion == "aicc" else self.trials.value
        descend(self._value_and_gradient, start, bounds, size=size, **options)

    def _leave_features_out(self, coordinates):
        """Enlarge coordinates of the best point to their limits if that costs nothing.

        If all of them together cost something, each half of them is tried.
        """
        trial, value = self.trials.best.copy(), self.trials.value
        trial[coordinates] = self.space.log_highest[coordinates]
        if np.array_equal(trial, self.trials.best):
            return
        size = 1.0 if self.criterion == "aicc" else abs(value)
        if self._value_at(trial) <= value + _NO_LOSS * size:
            self.trials.best = trial
        elif len(coordinates) > 1:
            for half in np.array_split(coordinates, 2):
                self._leave_features_out(half)

    def _multiply_by_best_factor(self):
        """Multiply all bandwidths by the factor with the smallest criterion.

        This corrects for what descents do not know: doubled windows, and compact kernels.
        Without these nothing is done.
        """
        space, trials = self.space, self.trials
        left_out = self._leave_one_out(space.bandwidth(trials.best))
        if not self._is_compact:
            value = trials.value
            if left_out.fewest > 1:  # windows need several rows, and may be doubled
                value = self._criterion(left_out.scores(np.ones(1)))[0]
            if math.isclose(value, trials.value, rel_tol=_MIN_EFFECT_OF_DOUBLING):
                return
        factor, trials.value = minimize_scale(
            lambda factors: self._criterion(left_out.scores(factors)),
            *_FACTORS,
            step=math.log(2) / 4,
            precision=STEP,
        )
        trials.best = trials.best.copy()
        trials.best[: space.n_scales] += math.log(factor)
        value = self.sample.restore_criterion(trials.value, self.criterion)
        trials.report(value, space.bandwidth(trials.best))
