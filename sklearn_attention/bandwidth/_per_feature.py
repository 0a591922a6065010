"""One bandwidth for every feature, and the lambda of every category, by gradients."""

import math

import numpy as np

from ..attention._leave_one_out import LeaveOneOut
from ..attention._leave_one_out_gradient import LeaveOneOutGradient
from ..kernels import Gaussian
from ..kernels._compact import CompactKernel
from ..kernels._product_kernel import mixed_kernel
from ._criteria import SMOOTHER_CRITERIA, criterion_slopes
from ._minimize import descend
from ._search import (
    LOWEST_WORTH,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    Trials,
    ValueSample,
    canonical_ratio,
    search_range,
)

# Common scales tried before the descents, which start from the best of them, from a wider one,
# and from it without each feature in turn.
_N_SCALES, _WIDER, _OUT_OF_SIGHT = 8, 3.0, 30.0
# Steps of every descent but the one from the best point.
_FIRST_STEPS = 8
# What stands for infinity in a descent, which cannot step back from there.
_IN_PLACE_OF_INFINITY = 1e100
# A feature this many times wider than its extent makes no difference.
_IRRELEVANT = 1e3
# A category's worth is the weight of a row of another level relative to one of the same: where
# descents start.
_FIRST_WORTH = 0.3
# Multiples of the best bandwidths that are tried where windows are widened: gradients do not
# know of it.
_FACTORS = 2.0 ** (np.arange(-18, 13) / 6)
# Leaving a feature out may cost this share of the criterion's size.
_NO_LOSS = 1e-6


def search_bandwidths(criterion, rows, kernel, observe):
    """Bandwidths of numbers, all of one scale or not, and lambdas of categories."""
    sample = ValueSample(criterion, rows, MAX_SEARCH_ROWS)
    space = _Space(sample, rows, canonical_ratio(kernel))
    with Trials(criterion, rows, observe) as trials:
        _Descents(criterion, rows, kernel, space, trials).run()
        if trials.best is not None:
            _in_wide_windows(criterion, rows, kernel, space, trials)
    point = trials.best
    bandwidth = space.bandwidth(point)
    bandwidth = sample.rescale_to_all_rows(bandwidth, decreasing=kernel.decreasing)
    value = sample.in_units(trials.value, criterion)
    return BandwidthChoice(bandwidth, value, relevance=space.relevance(point))


def _in_wide_windows(criterion, rows, kernel, space, trials):
    """Multiply the best bandwidths by what is best where windows are widened, if they are."""
    sample, bandwidth = space.sample, space.bandwidth(trials.best)
    left_out = LeaveOneOut(
        sample.X, sample.values, mixed_kernel(kernel, rows.columns, bandwidth),
        bandwidth=rows.columns.divisors(bandwidth), sample_weight=sample.sample_weight,
        **rows.options,
    )  # fmt: skip
    if left_out.fewest == 1:
        return
    values = SMOOTHER_CRITERIA[criterion](left_out.scores(_FACTORS), len(sample))
    best = len(_FACTORS) - 1 - np.argmin(values[::-1])  # the widest of equally good ones
    trials.best, trials.value = trials.best.copy(), float(values[best])
    trials.best[: space.n_scales] += math.log(_FACTORS[best])
    trials.report(sample.in_units(trials.value, criterion), space.bandwidth(trials.best))


class _Space:
    """Points of the search: logarithms of scales on the spread, and of the worths."""

    def __init__(self, sample, rows, ratio):
        self.sample, self.ratio = sample, ratio
        self.columns, self.per_feature = rows.columns, rows.per_feature
        self.numeric, self.categorical = self.columns.numeric, self.columns.categorical
        self.spread = sample.spread[self.numeric]
        self.constant = np.ptp(sample.X[:, self.numeric], axis=0) == 0
        Z = sample.X[:, self.numeric] / self.spread
        n_numeric = len(self.numeric)
        self.low, self.high = search_range(Z, ratio) if n_numeric else (1.0, 1.0)
        # 1 where a number, a row, has a scale, a column.
        several = rows.per_feature
        self.has = np.eye(n_numeric) if several else np.ones((n_numeric, 1))[:, :n_numeric]
        self.n_scales = self.has.shape[1]
        ends = [(self.low, self.high)] * self.n_scales
        if several:
            ends = [search_range(column[:, None], ratio) for column in Z.T]
        lowest, highest = np.reshape(ends, (-1, 2)).T
        widest = highest * (_IRRELEVANT if several else 1.0)
        worths = np.full(len(self.categorical), LOWEST_WORTH)
        self.lowest = np.log(np.append(lowest, worths))
        self.highest = np.log(np.append(widest, np.ones_like(worths)))

    def common(self, scale):
        """The point at which all bandwidths are a scale times the spread."""
        worths = np.full(len(self.categorical), math.log(_FIRST_WORTH))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), worths))

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


class _Descents:
    """Descents from several starts, with a criterion and its gradient at every point."""

    def __init__(self, criterion, rows, kernel, space, trials):
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        self.space, self.trials, self.sample = space, trials, space.sample
        self.scores_at = LeaveOneOutGradient(
            self.sample.X, self.sample.values, kernel, rows.columns.kinds, degree=rows.degree,
            sample_weight=self.sample.sample_weight, empty=rows.empty,
        )  # fmt: skip

    def run(self):
        for start in self._starts():
            self._descend(start, n_steps=_FIRST_STEPS)
        if self.trials.best is None:
            return
        self._descend(self.trials.best)
        if self.space.per_feature:
            self._leave_out_features()

    def _starts(self):
        """Points to start from, the most promising first."""
        space = self.space
        if isinstance(self.kernel, CompactKernel) and space.numeric:
            return self._starts_by_gaussian()
        scales = np.geomspace(space.low, space.high, _N_SCALES)
        values = [self._value_at(space.common(scale)) for scale in scales]
        best = space.common(scales[np.argsort(values)[0]])
        wider = space.widen(best, _WIDER)
        return [best, wider, *space.without_each(best)]

    def _starts_by_gaussian(self):
        """Of compact kernels, whose derivatives are blind to rows beyond their edge.

        Those of a step are 0 throughout, so a search with a Gaussian comes first.
        """
        space, rows = self.space, self.rows
        trials = Trials(self.criterion, rows)
        gaussian = _Space(self.sample, rows, 1.0)
        _Descents(self.criterion, rows, Gaussian(), gaussian, trials).run()
        if trials.best is None:
            return []
        start, before = space.widen(trials.best, canonical_ratio(self.kernel)), None
        # Up to where every row has neighbours, if `empty` demands that.
        while not np.isfinite(self._value_at(start)) and not np.array_equal(start, before):
            start, before = space.widen(start, 2.0), start
        return [start, space.widen(start, 2.0), *space.without_each(start)]

    def _value_at(self, point):
        """The criterion at a point."""
        return self._evaluate(point)[0]

    def _evaluate(self, point):
        """The criterion at a point, and the terms of its gradient."""
        scores, pull = self.scores_at(*self.space.split(point))
        value = float(SMOOTHER_CRITERIA[self.criterion](scores, len(self.sample)))
        value = math.inf if math.isnan(value) else value
        self.trials.add(value, point.copy())
        return value, scores, pull

    def _with_gradient(self, point):
        value, scores, pull = self._evaluate(point)
        if not math.isfinite(value):
            return _IN_PLACE_OF_INFINITY, np.zeros_like(point)
        in_units = self.sample.in_units(value, self.criterion)
        self.trials.report(in_units, self.space.bandwidth(point))
        slopes = criterion_slopes(self.criterion, scores, len(self.sample))
        return value, self.space.gather(pull(slopes))

    def _descend(self, start, **options):
        bounds = np.column_stack([self.space.lowest, self.space.highest])
        # Logarithms have size 1, squares that of the best known.
        size = 1.0 if self.criterion == "aicc" else self.trials.value
        descend(self._with_gradient, start, bounds, size=size, **options)

    def _leave_out_features(self):
        """Widen for good what may be wide at no loss."""
        for j in range(len(self.space.highest)):
            trial, value = self.trials.best.copy(), self.trials.value
            trial[j] = self.space.highest[j]
            size = 1.0 if self.criterion == "aicc" else abs(value)
            if self._value_at(trial) <= value + _NO_LOSS * size:
                self.trials.best = trial
