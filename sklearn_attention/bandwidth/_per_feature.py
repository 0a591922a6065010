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
    LOWEST_WORTH,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    Trials,
    ValueSample,
    canonical_ratio,
    narrower,
    search_range,
)

# Common scales tried before the descents, which start from the best of them, from a wider one,
# and from it without each feature in turn.
_N_SCALES, _WIDER, _OUT_OF_SIGHT = 8, 3.0, 30.0
# Steps of every descent but the one from the best point. That of more than so many rows starts
# from what is best for some of them.
_FIRST_STEPS, _FIRST_ROWS, _N_WITHOUT = 8, 300, 3
# What stands for infinity in a descent, which cannot step back from there.
_IN_PLACE_OF_INFINITY = 1e100
# A feature this many times wider than its extent makes no difference.
_IRRELEVANT = 1e3
# A category's worth is the weight of a row of another level relative to one of the same: where
# descents start.
_FIRST_WORTH = 0.3
# Gradients do not know that windows are doubled, and compact kernels have none that are of use.
# There the best bandwidths are multiplied by the best factor between these two, 1 among them.
_FACTORS = 1 / 4, 2.0
# If doubled windows matter, criteria with and without them differ by more than this share.
# Otherwise the best factor improves criteria by at most 0.8 %, on 82 data sets.
_NOT_DOUBLED = 1e-4
# Leaving a feature out may cost this share of the criterion's size.
_NO_LOSS = 1e-6
# Bandwidths for each feature are taken in place of one scale where they lower the logarithm of
# the criterion, times the rows, by so much for each that is more.
_GAIN_OF_EACH = 4.0
# And of classes raise the log-likelihood of rows left out by so much.
_GAIN_OF_CLASSES = 2.0


def search_bandwidths(criterion, rows, kernel, observe):
    """Bandwidths of numbers, all of one scale or not, and lambdas of categories."""
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    return _Search(criterion, rows, kernel, sample, Trials(criterion, rows, observe)).run()


def search_several(criterion, rows, kernel, observe, of_one_scale):
    """A bandwidth for each number, or None if the best of one scale are about as good."""
    rows = replace(rows, per_feature=True, start=None)
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    search = _Search(criterion, rows, kernel, sample, Trials(criterion, rows, observe))
    of_sample = of_one_scale / search.rescale_to_all_rows(np.ones_like(of_one_scale))
    search.common = search.space.point(of_sample)
    # If there is no other, as where errors are 0 and have no logarithm.
    search.trials.add(_IN_PLACE_OF_INFINITY, search.common)
    found = search.run()
    is_gain = search.is_gain(of_sample, search.space.bandwidth(search.trials.best))
    return found if is_gain else None


class _Space:
    """Points of the search: logarithms of scales on the spread, and of the worths."""

    def __init__(self, sample, rows, ratio):
        self.sample, self.ratio = sample, ratio
        self.columns, self.per_feature = rows.columns, rows.needs_several
        self.numeric, self.categorical = self.columns.numeric, self.columns.categorical
        self.spread = sample.spread[self.numeric]
        self.constant = np.ptp(sample.X[:, self.numeric], axis=0) == 0
        Z = sample.X[:, self.numeric] / self.spread
        n_numeric = len(self.numeric)
        self.low, self.high = search_range(Z, ratio) if n_numeric else (1.0, 1.0)
        # 1 where a number, a row, has a scale, a column.
        several = self.per_feature
        self.has = np.eye(n_numeric) if several else np.ones((n_numeric, 1))[:, :n_numeric]
        self.n_scales = self.has.shape[1]
        ends = [(self.low, self.high)] * self.n_scales
        if several:
            ends = [search_range(column[:, None], ratio) for column in Z.T]
        lowest, highest = np.reshape(ends, (-1, 2)).T
        # The search does not see rows with outliers. A bandwidth far above the extent of the
        # other rows would bring them into the windows of predictions.
        limited = np.broadcast_to(rows.has_outliers, len(self.columns.kinds))[self.numeric]
        widest = highest * (np.where(limited, 1.0, _IRRELEVANT) if several else 1.0)
        worths = np.full(len(self.categorical), LOWEST_WORTH)
        self.lowest = np.log(np.append(lowest, worths))
        self.highest = np.log(np.append(widest, np.ones_like(worths)))
        self.visible = np.log(np.append(highest, np.ones_like(worths)))

    def common(self, scale):
        """The point at which all bandwidths are a scale times the spread."""
        worths = np.full(len(self.categorical), math.log(_FIRST_WORTH))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), worths))

    def point(self, bandwidth):
        """The point nearest to bandwidths and lambdas of all columns."""
        worths = bandwidth[self.categorical].copy()
        for k, j in enumerate(self.categorical):
            if self.columns.kinds[j] == "unordered":
                others = max(self.columns.n_levels[j], 2) - 1
                worths[k] /= max(others * (1 - worths[k]), LOWEST_WORTH)
        scales = np.log(bandwidth[self.numeric] / self.spread) @ self.has
        with np.errstate(divide="ignore"):
            return self.clip(np.append(scales / self.has.sum(axis=0), np.log(worths)))

    def widen(self, point, factor):
        point = point.copy()
        point[: self.n_scales] += math.log(factor)
        return self.clip(point)

    def without_each(self, point):
        """The point with one feature after the other out of sight."""
        if self.n_scales < 2:
            return []
        out_of_sight = np.log(_OUT_OF_SIGHT) * np.eye(len(point))[: self.n_scales]
        return [self.clip(point + move) for move in out_of_sight]

    def clip(self, point):
        return np.clip(point, self.lowest, self.highest)

    def split(self, point):
        """Logarithms of the bandwidths and of the worths."""
        scales, worths = point[: self.n_scales], point[self.n_scales :]
        return np.log(self.spread) + self.has @ scales, worths

    def gather(self, gradient):
        """Derivatives along the point from those along bandwidths and worths."""
        n_numeric = len(self.numeric)
        return np.append(gradient[:n_numeric] @ self.has, gradient[n_numeric:])

    def bandwidth(self, point):
        """Bandwidths and lambdas of all columns."""
        log_bandwidth, worths = self.split(point)
        bandwidth = np.ones(len(self.columns.kinds))
        bandwidth[self.numeric] = np.exp(log_bandwidth)
        for j, worth in zip(self.categorical, np.exp(worths), strict=True):
            others = max(self.columns.n_levels[j], 2) - 1
            unordered = self.columns.kinds[j] == "unordered"
            bandwidth[j] = worth * others / (1 + worth * others) if unordered else worth
        return bandwidth

    def relevance(self, point):
        log_bandwidth, worths = self.split(point)
        relevance = np.zeros(len(self.columns.kinds))
        width = np.exp(log_bandwidth) / (self.ratio * self.spread)
        relevance[self.numeric] = np.where(self.constant, 0.0, -np.expm1(-(width**-2.0)))
        relevance[self.categorical] = 1 - np.exp(worths)
        return relevance


class _Search:
    """Descents from several starts, with a criterion and its gradient at every point."""

    common = None  # the best point of one scale, if it is known

    def __init__(self, criterion, rows, kernel, sample, trials):
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        self.sample, self.trials = sample, trials
        self.space = _Space(sample, rows, canonical_ratio(kernel))
        self.scores_at = LeaveOneOutGradient(
            sample.X, sample.values, kernel, rows.columns.kinds, degree=rows.degree,
            sample_weight=sample.sample_weight, empty=rows.empty,
        )  # fmt: skip
        self._is_compact = isinstance(kernel, CompactKernel) and bool(self.space.numeric)
        # One descent suffices from about the bandwidth of lines, but averages may need other
        # features.
        self._is_near_start = rows.start is not None and rows.degree > 0
        # Of points as bytes: the value, and the value with the gradient.
        self._values, self._gradients = {}, {}

    def run(self):
        """What is best where the best of the first descents goes on."""
        with self.trials as trials:
            self.search()
            if trials.best is not None:
                self._scale()
        value = self.sample.in_units(trials.value, self.criterion)
        bandwidth = self.rescale_to_all_rows(self.space.bandwidth(trials.best))
        return BandwidthChoice(bandwidth, value, relevance=self.space.relevance(trials.best))

    def search(self):
        """Trials of points, by descents."""
        if self._is_compact:
            # Criteria have kinks, or steps, on which descents end wherever rounding leads them.
            self._as_for_a_gaussian()
            return
        self.begin()
        if self.trials.best is None:
            return
        if self.space.per_feature and len(self.sample) > _FIRST_ROWS:
            # Descents take many steps to widen features further that matter less the wider.
            best = self.trials.best
            widens = self._with_gradient(best)[1] <= 0
            self._leave_out(np.flatnonzero(widens & (best > math.log(self.space.ratio))))
        self._descend(self.trials.best)
        if self.space.per_feature:
            self._leave_out(np.argsort(-self.trials.best, kind="stable"))

    def begin(self):
        """Descend a few steps from each of several points, or try those that are best known."""
        if not self._is_near_start:
            for start in self._starts():
                self._descend(start, n_steps=_FIRST_STEPS)
            return
        of_all = self.rescale_to_all_rows(np.ones_like(self.rows.start))
        # What does not matter to lines may matter to parabolas.
        start = np.minimum(self.space.point(self.rows.start / of_all), self.space.visible)
        if len(self.sample) <= _FIRST_ROWS:
            self._descend(start, n_steps=_FIRST_STEPS)
            return
        for point in (self.space.widen(start, _WIDER), *self._best_for_some()):
            self._value_at(point)

    def is_gain(self, before, after):
        """True if bandwidths are better than those for each number are by chance."""
        # Near interpolation only errors of rows that are left out tell what it is worth, and
        # squared errors of classes not whether a few rows are nearly impossible.
        more, found = len(self.space.numeric) - 1, [*map(self._left_out, (before, after))]
        if self.rows.values.dtype == bool:
            gain = np.subtract(*map(self._log_likelihood, found[::-1]))
            if not gain > _GAIN_OF_CLASSES * more:
                return False
        scores = [own.scores(np.ones(1)) for own in found]
        values = [(self._criterion(own)[0], own.left_out[0]) for own in scores]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
            if self.criterion == "aicc":
                logs[:, 0] = np.array(values)[:, 0]
            gain = len(self.sample) * (logs[0] - logs[1]).min()
        return gain > _GAIN_OF_EACH * more

    def _log_likelihood(self, leave_one_out):
        """Log-likelihood of all classes by other rows, of which one is as all are."""
        sample, (center, scale) = self.sample, self.sample.units[:2]
        weights = sample.sample_weight
        share = background_share(len(sample), weights)
        classes = (sample.values * scale + center).round()
        found = leave_one_out.predictions().left_out * scale + center
        found = (1 - share) * found + share * np.average(classes, axis=0, weights=weights)
        own = np.where(classes, np.log(np.where(classes, found, 1.0)), 0.0).sum(axis=1)
        return len(sample) * np.average(own / classes.sum(axis=1), weights=weights)

    def _left_out(self, bandwidth):
        sample, columns = self.sample, self.rows.columns
        return LeaveOneOut(
            sample.X, sample.values, mixed_kernel(self.kernel, columns, bandwidth),
            bandwidth=columns.divisors(bandwidth), sample_weight=sample.sample_weight,
            **self.rows.options,
        )  # fmt: skip

    def _criterion(self, scores):
        return judge(self.criterion, scores, len(self.sample), self.sample.units.size)

    def rescale_to_all_rows(self, bandwidth):
        """Bandwidths for all rows from those of the sample."""
        decreasing = self.kernel.decreasing
        return self.sample.rescale_to_all_rows(bandwidth, decreasing=decreasing)

    def _starts(self):
        """Return several points to start from."""
        if len(self.sample) > _FIRST_ROWS:
            return [*self._best_for_some(), self._best_common_scale()]
        best = self._best_common_scale()
        return [best, self.space.widen(best, _WIDER), *self._without_each(best)]

    def _as_for_a_gaussian(self):
        """Try what is best for a Gaussian kernel, as wide as this one needs it."""
        trials = Trials(self.criterion, self.rows)
        rows = self.rows
        if rows.start is not None:
            narrow = np.where(rows.columns.is_numeric, self.space.ratio, 1.0)
            rows = replace(rows, start=rows.start / narrow)
        other = _Search(self.criterion, rows, Gaussian(), self.sample, trials)
        other.search()
        if trials.best is not None:
            point, before = self.space.widen(trials.best, self.space.ratio), None
            # Up to where every row has neighbours, if `empty` demands that.
            while not np.isfinite(self._value_at(point)) and not np.array_equal(point, before):
                point, before = self.space.widen(point, 2.0), point

    def _best_for_some(self):
        """The point that is best for some of the rows, as narrow as all need it."""
        some, trials = self.sample.part(_FIRST_ROWS), Trials(self.criterion, self.rows)
        _Search(self.criterion, self.rows, self.kernel, some, trials).begin()
        if trials.best is None:
            return []
        times, decreasing = len(self.sample) / len(some), self.kernel.decreasing
        factor = narrower(times, len(self.space.numeric), decreasing=decreasing)
        point = self.space.widen(trials.best, factor)
        # What does not matter to a few rows may matter to all, and is looked at again.
        return [np.minimum(point, self.space.visible)]

    def _best_common_scale(self):
        if self.common is not None:
            return self.common
        scales = np.geomspace(self.space.low, self.space.high, _N_SCALES)
        points = map(self.space.common, scales[::-1])  # of equally good ones the widest
        return min(points, key=self._value_at)

    def _without_each(self, point):
        """The point with one of those features out of sight without which it is best."""
        points = self.space.without_each(point)
        few = len(points) <= _N_WITHOUT
        return points if few else sorted(points, key=self._value_at)[:_N_WITHOUT]

    def _value_at(self, point):
        """Return the criterion at a point, which is evaluated once."""
        key = point.tobytes()
        if key not in self._values:
            self._values[key] = self._evaluate(point)[0]
        return self._values[key]

    def _evaluate(self, point):
        """The criterion at a point, and the terms of its gradient."""
        scores, pull = self.scores_at(*self.space.split(point))
        value = float(self._criterion(scores))
        # Of equally good points the widest is taken.
        self.trials.add(value, point.copy(), tie=-point.sum())
        return value, scores, pull

    def _with_gradient(self, point):
        """Return the criterion at a point and its gradient, which are evaluated once."""
        key = point.tobytes()
        if key not in self._gradients:
            self._gradients[key] = self._evaluate_gradient(point)
        return self._gradients[key]

    def _evaluate_gradient(self, point):
        value, scores, pull = self._evaluate(point)
        if not math.isfinite(value):
            return _IN_PLACE_OF_INFINITY, np.zeros_like(point)
        in_units = self.sample.in_units(value, self.criterion)
        self.trials.report(in_units, self.space.bandwidth(point))
        size = self.sample.units.size
        slopes = criterion_slopes(self.criterion, scores, len(self.sample), size)
        return value, self.space.gather(pull(slopes))

    def _descend(self, start, **options):
        bounds = np.column_stack([self.space.lowest, self.space.highest])
        # Logarithms have size 1, squares that of the best known.
        size = 1.0 if self.criterion == "aicc" else self.trials.value
        descend(self._with_gradient, start, bounds, size=size, **options)

    def _leave_out(self, features):
        """Widen for good those that may be wide at no loss: all, or some of each half."""
        trial, value = self.trials.best.copy(), self.trials.value
        trial[features] = self.space.highest[features]
        if np.array_equal(trial, self.trials.best):
            return
        size = 1.0 if self.criterion == "aicc" else abs(value)
        if self._value_at(trial) <= value + _NO_LOSS * size:
            self.trials.best = trial
        elif len(features) > 1:
            for half in np.array_split(features, 2):
                self._leave_out(half)

    def _scale(self):
        """Multiply bandwidths by what is best where gradients did not tell."""
        space, trials = self.space, self.trials
        left_out = self._left_out(space.bandwidth(trials.best))
        if not self._is_compact:
            value = trials.value
            if left_out.fewest > 1:
                value = self._criterion(left_out.scores(np.ones(1)))[0]
            if math.isclose(value, trials.value, rel_tol=_NOT_DOUBLED):
                return
        factor, trials.value = minimize_scale(
            lambda factors: self._criterion(left_out.scores(factors)), *_FACTORS,
            step=math.log(2) / 4, precision=STEP,
        )  # fmt: skip
        trials.best = trials.best.copy()
        trials.best[: space.n_scales] += math.log(factor)
        value = self.sample.in_units(trials.value, self.criterion)
        trials.report(value, space.bandwidth(trials.best))
