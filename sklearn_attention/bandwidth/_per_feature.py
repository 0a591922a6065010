"""One bandwidth for every feature, and the lambda of every category, by gradients."""

import math
from dataclasses import replace

import numpy as np

from ..attention._leave_one_out import LeaveOneOut
from ..attention._leave_one_out_gradient import LeaveOneOutGradient
from ..kernels import Gaussian
from ..kernels._compact import CompactKernel
from ..kernels._product_kernel import mixed_kernel
from ._background import background_share
from ._criteria import criterion_slopes, judge
from ._minimize import STEP, descend, minimize_scale
from ._search import (
    MAX_SEARCH_ROWS,
    MIN_LEVEL_WEIGHT,
    BandwidthChoice,
    Trials,
    ValueSample,
    canonical_ratio,
    narrower,
    search_range,
)

# Number of common scales that are tried before the descents. These start from the best of
# them, from one that is wider by the second factor, and from points at which one feature is
# wider by the third factor.
_N_SCALES, _WIDER, _OUT_OF_SIGHT = 8, 3.0, 30.0
# Maximum number of steps of every descent but the last one; number of rows above which the
# search begins with a subset of this size; and number of starts with one feature left out.
_FIRST_STEPS, _FIRST_ROWS, _N_WITHOUT = 8, 300, 3
# A criterion that is infinite counts as this number, from which a descent can step back.
_IN_PLACE_OF_INFINITY = 1e100
# A feature this many times wider than its extent makes no difference.
_IRRELEVANT = 1e3
# Level weights at which descents start.
_FIRST_LEVEL_WEIGHT = 0.3
# Gradients do not know that windows are doubled, and those of compact kernels are of no use. In
# these cases the best bandwidths are multiplied by the best factor between these two numbers.
_FACTORS = 1 / 4, 2.0
# If doubled windows matter, criteria with and without them differ by more than this share.
# Otherwise the best factor improves criteria by at most 0.8 %, on 82 data sets.
_NOT_DOUBLED = 1e-4
# Leaving a feature out may cost this share of the criterion's size.
_NO_LOSS = 1e-6
# Bandwidths for each feature replace one scale if, for each bandwidth that is added, they lower
# the logarithm of the criterion, times the number of rows, by this much.
_GAIN_OF_EACH = 4.0
# For classes they must raise the leave-one-out log-likelihood by this much as well.
_GAIN_OF_CLASSES = 2.0


def search_bandwidths(criterion, rows, kernel, observe):
    """Search bandwidths of numbers, with one scale or several, and lambdas of categories."""
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    return _Search(criterion, rows, kernel, sample, Trials(criterion, rows, observe)).run()


def search_several(criterion, rows, kernel, observe, of_one_scale):
    """Search a bandwidth for each number; None if the best common scale is about as good."""
    rows = replace(rows, per_feature=True, start=None)
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    search = _Search(criterion, rows, kernel, sample, Trials(criterion, rows, observe))
    of_sample = of_one_scale / search.rescale_to_all_rows(np.ones_like(of_one_scale))
    search.common = search.space.point(of_sample)
    # This point is taken if no other is finite, as if errors are 0 and have no logarithm.
    search.trials.add(_IN_PLACE_OF_INFINITY, search.common)
    choice = search.run()
    is_gain = search.is_gain(of_sample, search.space.bandwidth(search.trials.best))
    return choice if is_gain else None


class _Space:
    """Points of the search: logarithms of scales, followed by those of level weights.

    A scale multiplies the standard deviation of one number, or of all numbers. The level weight
    of a category is that of a row of another level, relative to one of the same level. `ratio`
    is the factor on a Gaussian's bandwidth at which the kernel smooths as much.
    """

    def __init__(self, sample, rows, ratio):
        self.sample, self.ratio = sample, ratio
        self.columns, self.per_feature = rows.columns, rows.needs_several
        self.numeric, self.categorical = self.columns.numeric, self.columns.categorical
        self.spread = sample.spread[self.numeric]
        self.is_constant = np.ptp(sample.X[:, self.numeric], axis=0) == 0
        Z, n_numeric = sample.X[:, self.numeric] / self.spread, len(self.numeric)
        # Ends of the range of a common scale, or of the scale of each number.
        self.min_scale, self.max_scale = search_range(Z, ratio) if n_numeric else (1.0, 1.0)
        if self.per_feature:
            # The entry [i, j] is 1 if number i has scale j.
            self.has_scale = np.eye(n_numeric)
            ranges = [search_range(column[:, None], ratio) for column in Z.T]
        else:
            self.has_scale = np.ones((n_numeric, min(n_numeric, 1)))
            ranges = [(self.min_scale, self.max_scale)] * min(n_numeric, 1)
        self.n_scales = self.has_scale.shape[1]
        lowest, max_visible = np.reshape(ranges, (-1, 2)).T
        highest = max_visible
        if self.per_feature:
            # A feature that does not matter gets a bandwidth far above its extent, unless rows
            # with outliers in it were left out, which would get weight in predictions.
            has_outliers = np.broadcast_to(rows.has_outliers, len(self.columns.kinds))
            factor = np.where(has_outliers[self.numeric], 1.0, _IRRELEVANT)
            highest = max_visible * factor
        min_weights = np.full(len(self.categorical), MIN_LEVEL_WEIGHT)
        max_weights = np.ones_like(min_weights)
        self.log_lowest = np.log(np.append(lowest, min_weights))
        self.log_highest = np.log(np.append(highest, max_weights))
        self.log_max_visible = np.log(np.append(max_visible, max_weights))

    def common(self, scale):
        """Return the point at which all bandwidths are a scale times the spread."""
        level_weights = np.full(len(self.categorical), math.log(_FIRST_LEVEL_WEIGHT))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), level_weights))

    def point(self, bandwidth):
        """Return the point nearest to bandwidths and lambdas of all columns."""
        level_weights = bandwidth[self.categorical].copy()
        for k, j in enumerate(self.categorical):
            if self.columns.kinds[j] == "unordered":
                n_other_levels = max(self.columns.n_levels[j], 2) - 1
                odds = n_other_levels * (1 - level_weights[k])
                level_weights[k] /= max(odds, MIN_LEVEL_WEIGHT)
        scales = np.log(bandwidth[self.numeric] / self.spread) @ self.has_scale
        with np.errstate(divide="ignore"):
            return self.clip(
                np.append(scales / self.has_scale.sum(axis=0), np.log(level_weights))
            )

    def widen(self, point, factor):
        point = point.copy()
        point[: self.n_scales] += math.log(factor)
        return self.clip(point)

    def without_each(self, point):
        """Return the points with one feature after the other out of sight."""
        if self.n_scales < 2:
            return []
        out_of_sight = np.log(_OUT_OF_SIGHT) * np.eye(len(point))[: self.n_scales]
        return [self.clip(point + move) for move in out_of_sight]

    def clip(self, point):
        return np.clip(point, self.log_lowest, self.log_highest)

    def split(self, point):
        """Return logarithms of the bandwidths, and of the level weights."""
        scales, level_weights = point[: self.n_scales], point[self.n_scales :]
        return np.log(self.spread) + self.has_scale @ scales, level_weights

    def gather(self, gradient):
        """Turn derivatives along bandwidths and level weights into those along the point."""
        n_numeric = len(self.numeric)
        return np.append(gradient[:n_numeric] @ self.has_scale, gradient[n_numeric:])

    def bandwidth(self, point):
        """Return the bandwidths and lambdas of all columns."""
        log_bandwidth, level_weights = self.split(point)
        bandwidth = np.ones(len(self.columns.kinds))
        bandwidth[self.numeric] = np.exp(log_bandwidth)
        for j, level_weight in zip(self.categorical, np.exp(level_weights), strict=True):
            bandwidth[j] = level_weight
            if self.columns.kinds[j] == "unordered":
                odds = level_weight * (max(self.columns.n_levels[j], 2) - 1)
                bandwidth[j] = odds / (1 + odds)
        return bandwidth

    def relevance(self, point):
        log_bandwidth, level_weights = self.split(point)
        relevance = np.zeros(len(self.columns.kinds))
        width = np.exp(log_bandwidth) / (self.ratio * self.spread)
        relevance[self.numeric] = np.where(self.is_constant, 0.0, -np.expm1(-(width**-2.0)))
        relevance[self.categorical] = 1 - np.exp(level_weights)
        return relevance


class _Search:
    """Descents from several starts, with a criterion and its gradient at every point."""

    common = None  # the best point of one scale, if it is known

    def __init__(self, criterion, rows, kernel, sample, trials):
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        self.sample, self.trials = sample, trials
        self.space = _Space(sample, rows, canonical_ratio(kernel))
        self.scores_at = LeaveOneOutGradient(
            sample.X,
            sample.values,
            kernel,
            rows.columns.kinds,
            degree=rows.degree,
            sample_weight=sample.sample_weight,
            empty=rows.empty,
        )
        self._is_compact = isinstance(kernel, CompactKernel) and bool(self.space.numeric)
        # One descent suffices from about the bandwidth of lines, but averages may need other
        # features.
        self._is_near_start = rows.start is not None and rows.degree > 0
        # Of points as bytes: the value, and the value with the gradient.
        self._values, self._gradients = {}, {}

    def run(self):
        """Search on the sample; return the best bandwidths, rescaled to all rows.

        Leaving the block of the trials raises an error if no trial had a finite criterion.
        """
        with self.trials as trials:
            self.search()
            if trials.best is not None:
                self._scale()
        value = self.sample.in_units(trials.value, self.criterion)
        bandwidth = self.rescale_to_all_rows(self.space.bandwidth(trials.best))
        return BandwidthChoice(bandwidth, value, relevance=self.space.relevance(trials.best))

    def search(self):
        """Try points by descents."""
        if self._is_compact:
            # Criteria have kinks, or steps, at which descents end by rounding.
            self._as_for_a_gaussian()
            return
        self.begin()
        if self.trials.best is None:
            return
        if self.space.per_feature and len(self.sample) > _FIRST_ROWS:
            # Descents take many steps to widen features that matter less the wider they are.
            best = self.trials.best
            widens = self._with_gradient(best)[1] <= 0
            self._leave_out(np.flatnonzero(widens & (best > math.log(self.space.ratio))))
        self._descend(self.trials.best)
        if self.space.per_feature:
            self._leave_out(np.argsort(-self.trials.best, kind="stable"))

    def begin(self):
        """Find a point from which the last descent starts.

        Usually a few steps of a descent go from each of several points. If the bandwidth of
        lines is known, parabolas start near it: by a descent for few rows, and otherwise by the
        best of this bandwidth, widened, and of the best one of a subset.
        """
        if not self._is_near_start:
            for start in self._starts():
                self._descend(start, n_steps=_FIRST_STEPS)
            return
        factor_to_all_rows = self.rescale_to_all_rows(np.ones_like(self.rows.start))
        # A feature that does not matter to lines may matter to parabolas, so that bandwidths
        # start where the feature has some effect.
        start = self.space.point(self.rows.start / factor_to_all_rows)
        start = np.minimum(start, self.space.log_max_visible)
        if len(self.sample) <= _FIRST_ROWS:
            self._descend(start, n_steps=_FIRST_STEPS)
            return
        for point in (self.space.widen(start, _WIDER), *self._best_for_subset()):
            self._value_at(point)

    def is_gain(self, before, after):
        """Return True if bandwidths for each number gain more than they do by chance."""
        # Near interpolation only leave-one-out errors measure the gain. For classes, squared
        # errors do not tell whether a few rows are nearly impossible.
        n_more, both = len(self.space.numeric) - 1, (before, after)
        leave_one_outs = [self._left_out(bandwidth) for bandwidth in both]
        if self.rows.values.dtype == bool:
            gain = np.subtract(*map(self._log_likelihood, leave_one_outs[::-1]))
            if not gain > _GAIN_OF_CLASSES * n_more:
                return False
        scores = [leave_one_out.scores(np.ones(1)) for leave_one_out in leave_one_outs]
        values = [(self._criterion(score)[0], score.left_out[0]) for score in scores]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
            if self.criterion == "aicc":
                logs[:, 0] = np.array(values)[:, 0]
            gain = len(self.sample) * (logs[0] - logs[1]).min()
        return gain > _GAIN_OF_EACH * n_more

    def _log_likelihood(self, leave_one_out):
        """Return the log-likelihood of all classes, each row predicted by the others.

        One more row is added that has the mean of all classes.
        """
        sample, (center, scale) = self.sample, self.sample.units[:2]
        weights = sample.sample_weight
        share = background_share(len(sample), weights)
        classes = (sample.values * scale + center).round()
        probabilities = leave_one_out.predictions().left_out * scale + center
        mean = np.average(classes, axis=0, weights=weights)
        probabilities = (1 - share) * probabilities + share * mean
        logs = np.where(classes, np.log(np.where(classes, probabilities, 1.0)), 0.0)
        of_rows = logs.sum(axis=1) / classes.sum(axis=1)
        return len(sample) * np.average(of_rows, weights=weights)

    def _left_out(self, bandwidth):
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
        return judge(self.criterion, scores, len(self.sample), self.sample.units.size)

    def rescale_to_all_rows(self, bandwidth):
        """Turn bandwidths of the sample into those of all rows."""
        decreasing = self.kernel.decreasing
        return self.sample.rescale_to_all_rows(bandwidth, decreasing=decreasing)

    def _starts(self):
        """Return several points to start from."""
        if len(self.sample) > _FIRST_ROWS:
            return [*self._best_for_subset(), self._best_common_scale()]
        best = self._best_common_scale()
        return [best, self.space.widen(best, _WIDER), *self._without_each(best)]

    def _as_for_a_gaussian(self):
        """Try the best bandwidths of a Gaussian kernel, rescaled for this kernel."""
        trials = Trials(self.criterion, self.rows)
        rows = self.rows
        if rows.start is not None:
            narrow = np.where(rows.columns.is_numeric, self.space.ratio, 1.0)
            rows = replace(rows, start=rows.start / narrow)
        _Search(self.criterion, rows, Gaussian(), self.sample, trials).search()
        if trials.best is not None:
            point, before = self.space.widen(trials.best, self.space.ratio), None
            # Windows are widened until every row has neighbours, if `empty` demands that.
            while not np.isfinite(self._value_at(point)) and not np.array_equal(point, before):
                point, before = self.space.widen(point, 2.0), point

    def _best_for_subset(self):
        """Return the best point of a subset of the rows, rescaled to all of them."""
        subset, trials = self.sample.subset(_FIRST_ROWS), Trials(self.criterion, self.rows)
        _Search(self.criterion, self.rows, self.kernel, subset, trials).begin()
        if trials.best is None:
            return []
        times, decreasing = len(self.sample) / len(subset), self.kernel.decreasing
        factor = narrower(times, len(self.space.numeric), decreasing=decreasing)
        point = self.space.widen(trials.best, factor)
        # A feature that does not matter to a few rows may matter to all, and is tried again.
        return [np.minimum(point, self.space.log_max_visible)]

    def _best_common_scale(self):
        if self.common is not None:
            return self.common
        scales = np.geomspace(self.space.min_scale, self.space.max_scale, _N_SCALES)
        points = map(self.space.common, scales[::-1])  # of equally good ones the widest
        return min(points, key=self._value_at)

    def _without_each(self, point):
        """Return the best of the points that have one feature out of sight each."""
        points = self.space.without_each(point)
        if len(points) <= _N_WITHOUT:
            return points
        return sorted(points, key=self._value_at)[:_N_WITHOUT]

    def _value_at(self, point):
        """Return the criterion at a point, which is evaluated once."""
        key = point.tobytes()
        if key not in self._values:
            self._values[key] = self._evaluate(point)[0]
        return self._values[key]

    def _evaluate(self, point):
        """Evaluate the criterion at a point; return it, its scores and their `vjp`."""
        scores, vjp = self.scores_at(*self.space.split(point))
        value = float(self._criterion(scores))
        # Of equally good points the widest is taken.
        self.trials.add(value, point.copy(), tie=-point.sum())
        return value, scores, vjp

    def _with_gradient(self, point):
        """Return the criterion at a point and its gradient, which are evaluated once."""
        key = point.tobytes()
        if key not in self._gradients:
            self._gradients[key] = self._evaluate_gradient(point)
        return self._gradients[key]

    def _evaluate_gradient(self, point):
        value, scores, vjp = self._evaluate(point)
        if not math.isfinite(value):
            return _IN_PLACE_OF_INFINITY, np.zeros_like(point)
        in_units = self.sample.in_units(value, self.criterion)
        self.trials.report(in_units, self.space.bandwidth(point))
        size = self.sample.units.size
        slopes = criterion_slopes(self.criterion, scores, len(self.sample), size)
        return value, self.space.gather(vjp(slopes))

    def _descend(self, start, **options):
        bounds = np.column_stack([self.space.log_lowest, self.space.log_highest])
        # Logarithms have size 1, and squares have the size of the best one so far.
        size = 1.0 if self.criterion == "aicc" else self.trials.value
        descend(self._with_gradient, start, bounds, size=size, **options)

    def _leave_out(self, features):
        """Widen features to the end of their range if that costs nothing.

        If all of them together cost something, each half of them is tried.
        """
        trial, value = self.trials.best.copy(), self.trials.value
        trial[features] = self.space.log_highest[features]
        if np.array_equal(trial, self.trials.best):
            return
        size = 1.0 if self.criterion == "aicc" else abs(value)
        if self._value_at(trial) <= value + _NO_LOSS * size:
            self.trials.best = trial
        elif len(features) > 1:
            for half in np.array_split(features, 2):
                self._leave_out(half)

    def _scale(self):
        """Multiply bandwidths by the best factor if gradients did not see doubled windows."""
        space, trials = self.space, self.trials
        left_out = self._left_out(space.bandwidth(trials.best))
        if not self._is_compact:
            value = trials.value
            if left_out.fewest > 1:
                value = self._criterion(left_out.scores(np.ones(1)))[0]
            if math.isclose(value, trials.value, rel_tol=_NOT_DOUBLED):
                return
        factor, trials.value = minimize_scale(
            lambda factors: self._criterion(left_out.scores(factors)),
            *_FACTORS,
            step=math.log(2) / 4,
            precision=STEP,
        )
        trials.best = trials.best.copy()
        trials.best[: space.n_scales] += math.log(factor)
        value = self.sample.in_units(trials.value, self.criterion)
        trials.report(value, space.bandwidth(trials.best))
