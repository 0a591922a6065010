"""Searches for several bandwidths: one for each numeric column, and lambdas, by gradients.

`_search_space` defines the points of a search: vectors of the logarithms of scales, which are
bandwidths in standard deviations, and of level weights.

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
from ._search import MAX_SEARCH_ROWS, BandwidthChoice, Trials, canonical_ratio
from ._search_space import SearchSpace

# Number of common scales of all columns that are tried before the descents.
_N_COMMON_SCALES = 8
# Descents start from the best common scale, from this multiple of it, and from points at which
# one feature hardly matters.
_WIDENING = 3.0
# Maximum number of starting points at which one feature hardly matters.
_MAX_STARTS_WITHOUT_FEATURE = 3
# Maximum number of steps of every descent but the last one.
_FIRST_STEPS = 8
# If there are more rows than this, the search begins with a subset of this size.
_SUBSET_ROWS = 300
# This number replaces an infinite criterion. Descents can step back from it.
_IN_PLACE_OF_INFINITY = 1e100
# Gradients do not know that windows are doubled, and those of compact kernels are of no use. In
# these cases the best bandwidths are multiplied by the best factor between these two numbers.
_FACTOR_RANGE = 1 / 4, 2.0
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
    callback or None.
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
    # The point is added with a huge value, so that it is the best one if the criterion is
    # finite nowhere. This happens, for example, if all errors are 0 and have no logarithm.
    trials.add(_IN_PLACE_OF_INFINITY, search.common_point)
    choice = search.run()
    is_gain = search.is_gain(sample_bandwidth, search.space.bandwidth(trials.best))
    return choice if is_gain else None


class _GradientSearch:
    """A search for several bandwidths of a sample, by descents from several starting points.

    The criterion and its gradient are computed once at each point. `trials` keeps the best
    point.
    """

    # The best point with a common scale, if it is known from another search.
    common_point = None

    def __init__(self, criterion, rows, kernel, sample, trials):
        # `criterion` is a name; the kernel compares the numeric columns of the rows, of which
        # `sample` is a ValueSample.
        self.criterion, self.rows, self.kernel = criterion, rows, kernel
        self.sample, self.trials = sample, trials
        self.space = SearchSpace(sample, rows, canonical_ratio(kernel))
        # Called with the results of `log_parameters`, it returns Scores and their `vjp`.
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
        # `rows.start` is the best bandwidth of local lines, if that is known. One descent from
        # this start suffices for other polynomials. Averages (degree 0) may need other features
        # than lines.
        self._is_near_start = rows.start is not None and rows.degree > 0
        # Dicts by the bytes of a point: of the criterion, and of the criterion with its
        # gradient.
        self._values, self._gradients = {}, {}

    def run(self):
        """Search the best bandwidths of the sample, and return the BandwidthChoice of all rows.

        If no trial has a finite criterion, the `with` block of the trials ends with an error.
        """
        with self.trials as trials:
            self.minimize()
            if trials.best is not None:
                self._multiply_by_best_factor()
        value = self.sample.restore_criterion(trials.value, self.criterion)
        bandwidth = self.rescale_to_all_rows(self.space.bandwidth(trials.best))
        return BandwidthChoice(bandwidth, value, relevance=self.space.relevance(trials.best))

    def minimize(self):
        """Minimise the criterion by descents, which keep their points in `trials`.

        Windows with too few rows are not doubled.
        """
        if self._is_compact:
            # The criterion has kinks or steps, at which descents would end too early.
            self._minimize_for_gaussian()
            return
        self.find_start()
        if self.trials.best is None:
            return
        if self.space.per_feature and len(self.sample) > _SUBSET_ROWS:
            # A feature whose scale is large, and would grow in a descent, probably does not
            # matter. Its scale is set to the limit, at which the kernel ignores the feature,
            # and stays there if the criterion does not grow. A descent would need many steps to
            # get there.
            best = self.trials.best
            _, gradient = self._value_and_gradient(best)
            is_growing = gradient <= 0
            # A large scale smooths more than a Gaussian kernel whose bandwidth is the standard
            # deviation of the feature.
            is_large = best > math.log(self.space.canonical_ratio)
            self._enlarge_to_limits(np.flatnonzero(is_growing & is_large))
        self._descend(self.trials.best)
        if self.space.per_feature:
            # Features may also be superfluous after the descent. The largest scales come first.
            self._enlarge_to_limits(np.argsort(-self.trials.best, kind="stable"))

    def find_start(self):
        """Try points, and keep them in `trials`; the last descent starts from the best one.

        * Usually a few steps of descents are made from several starting points.
        * If the bandwidth of local lines is known, other polynomials start near this bandwidth.
          With few rows, a few steps of one descent are made. With many rows, two points are
          compared: a multiple of this bandwidth, and the best point of a subset of rows.
        """
        if not self._is_near_start:
            for start in self._starts():
                self._descend(start, n_steps=_FIRST_STEPS)
            return
        # `rows.start` is a bandwidth of all rows. Divided by this factor, it suits the sample.
        factor_to_all_rows = self.rescale_to_all_rows(np.ones_like(self.rows.start))
        # A feature that does not matter to lines has a huge scale, where the gradient is 0. It
        # may matter to parabolas, so that scales start at most at the largest ones at which a
        # feature has some effect.
        start = self.space.nearest_point(self.rows.start / factor_to_all_rows)
        start = np.minimum(start, self.space.log_max_visible)
        if len(self.sample) <= _SUBSET_ROWS:
            self._descend(start, n_steps=_FIRST_STEPS)
            return
        for point in (self.space.multiply_scales(start, _WIDENING), *self._best_of_subset()):
            self._value_at(point)  # adds the point to `trials`

    def is_gain(self, common_bandwidth, bandwidth):
        """Return True if several bandwidths are better than a common scale by more than chance.

        Both arguments are bandwidths (n_columns,) of the sample: the best one with a common
        scale, and the best one with a scale for each feature.
        """
        n_added = len(self.rows.columns.numeric) - 1
        leave_one_outs = [self._leave_one_out(h) for h in (common_bandwidth, bandwidth)]
        if self.rows.values.dtype == bool:
            # For classes, squared errors do not tell whether a few rows are nearly impossible.
            before, after = map(self._log_likelihood, leave_one_outs)
            if not after - before > _GAIN_OF_CLASSES * n_added:
                return False
        # The criterion and the leave-one-out error both have to decrease by enough, since near
        # interpolation only the latter measures a gain.
        scores = [leave_one_out.scores(np.ones(1)) for leave_one_out in leave_one_outs]
        # The fields of each Scores have one entry, for scale 1. The rows of `values` and `logs`
        # are the two bandwidths, and their columns are the two measures.
        values = [(self._criterion(score)[0], score.left_out[0]) for score in scores]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values)
            if self.criterion == "aicc":  # this criterion is a logarithm already
                logs[:, 0] = np.array(values)[:, 0]
            gain = len(self.sample) * (logs[0] - logs[1]).min()
        return gain > _GAIN_OF_EACH * n_added

    def _log_likelihood(self, leave_one_out):
        """Return the log-likelihood of classes, where each row is predicted from all others.

        The targets of a row are 1 for its class and 0 for other classes. One row, with the mean
        of all targets, is added to those that predict, so that no probability is 0.
        """
        sample, (center, scale) = self.sample, self.sample.units[:2]
        weights = sample.sample_weight
        # The weight of the row that is added, 1 / (n + 1) if all rows have the same weight.
        mixing_weight = background_mixing_weight(len(sample), weights)
        # Standardized targets, and their predictions, are turned back into the unit of 0 and 1.
        classes = (sample.values * scale + center).round()
        probabilities = leave_one_out.predictions().left_out * scale + center
        mean = np.average(classes, axis=0, weights=weights)
        probabilities = (1 - mixing_weight) * probabilities + mixing_weight * mean
        logs = np.where(classes, np.log(np.where(classes, probabilities, 1.0)), 0.0)
        # With several outputs, a row has one class of each output, and so several targets of 1.
        # The mean of their logarithms is taken.
        log_likelihoods = logs.sum(axis=1) / classes.sum(axis=1)
        return len(sample) * np.average(log_likelihoods, weights=weights)

    def _leave_one_out(self, bandwidth):
        """Return the LeaveOneOut of the sample, which smooths with `bandwidth` at scale 1.

        The bandwidth (n_columns,) has lambdas for categories. The kernel has the lambdas, and
        only numeric columns are divided by their bandwidths, so that scales multiply these.
        """
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
        """Return the criterion, with the shape of the fields of the Scores."""
        # The largest absolute value of the scaled targets.
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
        widened = self.space.multiply_scales(best, _WIDENING)
        # At each of these points, one feature hardly matters. Those with the smallest criterion
        # are kept.
        points = self.space.points_without_feature(best)
        if len(points) > _MAX_STARTS_WITHOUT_FEATURE:
            points = sorted(points, key=self._value_at)[:_MAX_STARTS_WITHOUT_FEATURE]
        return [best, widened, *points]

    def _minimize_for_gaussian(self):
        """Search the best point of a Gaussian kernel, and add that of this kernel to `trials`.

        Both points smooth equally, since their scales have the canonical ratio.
        """
        gaussian_trials = Trials(self.criterion, self.rows)
        rows = self.rows
        if rows.start is not None:  # the start becomes a bandwidth of a Gaussian kernel
            ratios = np.where(rows.columns.is_numeric, self.space.canonical_ratio, 1.0)
            rows = replace(rows, start=rows.start / ratios)
        search = _GradientSearch(self.criterion, rows, Gaussian(), self.sample, gaussian_trials)
        search.minimize()
        best = gaussian_trials.best
        if best is None:
            return
        point = self.space.multiply_scales(best, self.space.canonical_ratio)
        # `_value_at` adds the point to `self.trials`. A row without neighbours makes the
        # criterion infinite; then all scales are doubled, until they reach their limits.
        while not np.isfinite(self._value_at(point)):
            doubled = self.space.multiply_scales(point, 2.0)
            if np.array_equal(doubled, point):
                return
            point = doubled

    def _best_of_subset(self):
        """Return a list with the best point of a subset of rows, rescaled to the sample.

        The list is empty if the criterion of the subset is finite nowhere.
        """
        subset, trials = self.sample.subset(_SUBSET_ROWS), Trials(self.criterion, self.rows)
        # This search keeps the points that it tries in `trials`.
        _GradientSearch(self.criterion, self.rows, self.kernel, subset, trials).find_start()
        if trials.best is None:
            return []
        n_ratio, n_features = len(self.sample) / len(subset), len(self.rows.columns.numeric)
        # The best bandwidth shrinks by this factor if there are `n_ratio` times as many rows.
        # The factor is 1 if the kernel does not decrease with the distance.
        factor = optimal_rate_factor(n_ratio, n_features, decreasing=self.kernel.decreasing)
        point = self.space.multiply_scales(trials.best, factor)
        # A feature that does not matter to the subset has a huge scale, where the gradient is
        # 0. It may matter to all rows, so that scales start at most at the largest ones at
        # which a feature has some effect.
        return [np.minimum(point, self.space.log_max_visible)]

    def _best_common_point(self):
        """Return the best point with equal scales: `common_point`, or the best of a grid."""
        if self.common_point is not None:
            return self.common_point
        scales = np.geomspace(self.space.min_scale, self.space.max_scale, _N_COMMON_SCALES)
        # Of equally good scales the largest is taken.
        points = [self.space.common_point(scale) for scale in scales[::-1]]
        return min(points, key=self._value_at)

    def _value_at(self, point):
        """Return the criterion at a point; add the point to `trials` when it is first seen."""
        key = point.tobytes()
        if key not in self._values:
            self._values[key] = self._evaluate(point)[0]
        return self._values[key]

    def _evaluate(self, point):
        """Evaluate the criterion at a point, and add the point to `trials`.

        Returns the criterion, its Scores, and the function ``vjp(slopes)``, which turns
        derivatives with respect to the Scores into those with respect to both results of
        `log_parameters`.
        """
        scores, vjp = self._scores_and_vjp(*self.space.log_parameters(point))
        value = float(self._criterion(scores))
        # Of equally good points the one with the largest scales is taken.
        self.trials.add(value, point.copy(), tie=-point.sum())
        return value, scores, vjp

    def _value_and_gradient(self, point):
        """Return the criterion at a point and its gradient; evaluate them only once."""
        key = point.tobytes()
        if key not in self._gradients:
            self._gradients[key] = self._evaluate_gradient(point)
        return self._gradients[key]

    def _evaluate_gradient(self, point):
        """Evaluate the criterion and its gradient (n_coordinates,); report the trial.

        If the criterion is infinite, a huge number and the gradient 0 are returned.
        """
        value, scores, vjp = self._evaluate(point)
        if not math.isfinite(value):
            return _IN_PLACE_OF_INFINITY, np.zeros_like(point)
        reported_value = self.sample.restore_criterion(value, self.criterion)
        self.trials.report(reported_value, self.space.bandwidth(point))
        # The chain rule has three factors. `slopes` are derivatives of the criterion with
        # respect to the Scores. `vjp` turns them into derivatives with respect to logarithms of
        # bandwidths and level weights. `log_parameters_vjp` turns these into derivatives with
        # respect to the coordinates of the point.
        size = self.sample.units.size
        slopes = criterion_slopes(self.criterion, scores, len(self.sample), size)
        return value, self.space.log_parameters_vjp(vjp(slopes))

    def _descend(self, start, **options):
        """Minimise the criterion from a point; the options are those of `descend`."""
        bounds = np.column_stack([self.space.log_lowest, self.space.log_highest])
        # Descents are relative to the size of the criterion. AICc is a logarithm, whose size is
        # 1. The size of another criterion is its best value so far.
        size = 1.0 if self.criterion == "aicc" else self.trials.value
        descend(self._value_and_gradient, start, bounds, size=size, **options)

    def _enlarge_to_limits(self, coordinates):
        """Enlarge coordinates of the best point to their limits if that costs nothing.

        At these limits, features have no effect. If the criterion becomes worse when all of the
        `coordinates` (positions in a point) are enlarged, each half of them is tried.
        """
        trial, value = self.trials.best.copy(), self.trials.value
        trial[coordinates] = self.space.log_highest[coordinates]
        if np.array_equal(trial, self.trials.best):
            return
        # A loss of the fraction _NO_LOSS of this size counts as nothing.
        size = 1.0 if self.criterion == "aicc" else abs(value)
        if self._value_at(trial) <= value + _NO_LOSS * size:
            self.trials.best = trial
        elif len(coordinates) > 1:
            for half in np.array_split(coordinates, 2):
                self._enlarge_to_limits(half)

    def _multiply_by_best_factor(self):
        """Multiply all bandwidths by the factor with the smallest criterion.

        Descents ignore doubled windows, and minimise the criterion of a Gaussian in place of a
        compact kernel. The factor corrects for this. If there is neither, nothing is done.
        """
        space, trials = self.space, self.trials
        # Scale 1 stands for the best bandwidth, so that scales are factors on this bandwidth.
        leave_one_out = self._leave_one_out(space.bandwidth(trials.best))
        if not self._is_compact:
            value = trials.value
            if leave_one_out.min_rows > 1:  # windows need several rows, and may be doubled
                (value,) = self._criterion(leave_one_out.scores(np.ones(1)))
            if math.isclose(value, trials.value, rel_tol=_MIN_EFFECT_OF_DOUBLING):
                return
        factor, trials.value = minimize_scale(
            lambda factors: self._criterion(leave_one_out.scores(factors)),
            *_FACTOR_RANGE,
            step=math.log(2) / 4,
            precision=STEP,  # so coarse that the grid is not refined
        )
        trials.best = trials.best.copy()
        trials.best[: space.n_scales] += math.log(factor)
        value = self.sample.restore_criterion(trials.value, self.criterion)
        trials.report(value, space.bandwidth(trials.best))
