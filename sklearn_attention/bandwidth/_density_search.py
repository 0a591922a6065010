"""Searches for the bandwidths of a density, or of a conditional density, by likelihood.

The criterion is the leave-one-out likelihood of `_density`. In a search, numeric columns are
centered and divided by their unit, a robust standard deviation, and bandwidths are in this
unit. A point is a vector of the logarithms of these bandwidths, and, for categories, of lambdas
divided by their largest value.

A column is integrated if the density integrates to 1 over it. The features of a conditional
density, which it is conditional on, are not integrated.
"""

import math
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats.qmc import Halton

from .._column_stats import order_columns
from .._columns import CONSTANT, Columns
from ..kernels._numerics import LARGEST
from ._background import background_warnings, center_and_scale, normal_std, reflections
from ._density import ConditionalLikelihood, DensityLikelihood
from ._minimize import STEP, WIDE_STEP, descend, minimize_scale
from ._samples import Sample, mass_warning, optimal_rate_factor, point_masses
from ._search import (
    MAX_SEARCH_ROWS,
    MIN_LEVEL_WEIGHT,
    BandwidthChoice,
    BandwidthRule,
    Trials,
    canonical_ratio,
    search_range,
)

# Number of common bandwidths of all columns, and of points around a rule of thumb, that are
# tried before the descents, which start from the best of each. The logarithms of the points
# differ from those of the rule by at most the second number.
_N_CANDIDATES, _MAX_LOG_RATIO = 16, 1.5
# Steps of the descents from several starts; a last descent goes on from the best point. Fits of
# 24 sets of 250 to 300 rows take 0.89 of the time of full descents, and 0.65 with 32 features;
# the mean log-density of new rows is the same to 2e-4.
_FIRST_STEPS = 8
# If there are more rows than this, the descent of all rows starts from the best point of a
# subset of this size. Fits of 28 sets of 600 to 1500 rows take 0.64 of the time; the mean
# log-density of new rows is the same to 4e-5.
_SUBSET_ROWS = 300
# Maximum number of rows of the sample if the criterion takes linear time.
MAX_ROWS_IN_LINEAR_TIME = 100_000
# Between two bounds, the largest Gaussian bandwidth is this fraction of the range. Up to there,
# mirror images of mirror images have no mass, and criteria leave them out.
_MAX_BOUNDED_BANDWIDTH = 0.2


@dataclass(frozen=True)
class DensitySearch(BandwidthRule):
    """The bandwidths of all features whose density estimate has the largest likelihood.

    A criterion that takes linear time is computed on a grid, which is refined in its valleys.
    Any other criterion is minimised in three steps, of which the best bandwidth is returned:

    1. A few steps of L-BFGS-B start from rules of thumb, and from the best common bandwidth of
       all features. If there are many rows, a subset of them chooses the only start.
    2. L-BFGS-B descends from the best bandwidth so far. Its variables are the logarithms of the
       bandwidths, and its gradients are exact.
    3. For kernels of bounded support, Powell's method goes on from the best bandwidth.
    """

    searches = True

    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows; all numeric columns have the same kernel."""
        # Calls of `make_criterion` add the rows, their weights, and bounds.
        make_criterion = partial(DensityLikelihood, kernel=kernel, columns=rows.columns)
        kernels = [kernel] * rows.X.shape[1]
        return _LikelihoodSearch(rows, make_criterion, kernels, observe).run()


@dataclass(frozen=True, eq=False)
class ConditionalSearch(BandwidthRule):
    """The bandwidths of features and target whose conditional density has the best likelihood.

    They are searched together.

    Parameters
    ----------
    target_kernel : SmoothingKernel
    bandwidth : ndarray of shape (n_features,), default=None
        Bandwidth of the features if it is fixed.
    target_bandwidth : float, default=None
        Bandwidth of the target if it is fixed.
    find_masses : bool, default=True
        Whether the search looks for point masses: values of the target that many rows share.
        Residuals, which are equal only after rounding, have none.
    """

    target_kernel: Any
    bandwidth: Any = None
    target_bandwidth: Any = None
    find_masses: bool = True
    searches = True

    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows with one target, whose bandwidth comes last.

        The kernel compares the numeric features.
        """
        # The target is the last column of a table with the features. All warnings are about the
        # target, so `describe`, which names a column in warnings, ignores the column.
        joint_rows = replace(
            rows,
            X=np.column_stack([rows.X, rows.values]),
            values=None,
            columns=rows.columns + Columns.numbers(1),
            describe=lambda column, value: ("the target", value),
        )
        kernels = [kernel] * rows.X.shape[1] + [self.target_kernel]
        # Bandwidths that are searched are NaN.
        fixed = np.full(len(kernels), np.nan)
        fixed[:-1] = np.nan if self.bandwidth is None else self.bandwidth
        fixed[-1] = np.nan if self.target_bandwidth is None else self.target_bandwidth
        is_integrated = np.arange(len(kernels)) == len(kernels) - 1  # only the target is

        def make_criterion(X, sample_weight, bounds):
            """Return the likelihood; `bounds` is None, since this search has no bounds."""
            return ConditionalLikelihood(
                X[:, :-1],
                X[:, -1],
                kernel,
                self.target_kernel,
                columns=rows.columns,
                sample_weight=sample_weight,
            )

        search = _LikelihoodSearch(
            joint_rows,
            make_criterion,
            kernels,
            observe,
            is_integrated=is_integrated,
            fixed=fixed,
            find_masses=self.find_masses,
        )
        return search.run()


class _LikelihoodSearch:
    """A search for the bandwidths with the largest leave-one-out likelihood.

    Parameters
    ----------
    rows : Rows
    make_criterion : callable
        ``make_criterion(X, sample_weight=..., bounds=...)`` returns the likelihood as a
        function of the bandwidth.
    kernels : list of Kernel
        The kernel of each column.
    observe : callable or None
    is_integrated : ndarray of bool of shape (n_columns,), default=None
        True for integrated columns; None if all of them are.
    fixed : ndarray of shape (n_columns,), default=None
        Bandwidths that are not searched; NaN for each column whose bandwidth is searched.
    find_masses : bool, default=True
        Whether the search looks for point masses, numbers that many rows share.
    """

    def __init__(
        self,
        rows,
        make_criterion,
        kernels,
        observe,
        *,
        is_integrated=None,
        fixed=None,
        find_masses=True,
    ):
        self._rows, self._columns = rows, rows.columns
        self._is_numeric = rows.columns.is_numeric
        self._make_criterion = make_criterion
        # ``describe(column, value)`` returns the name of a column and the value as the user
        # passed them, for warnings.
        self._describe = rows.describe or (lambda column, value: (f"column {column}", value))
        # `fixed` has the bandwidths that are not searched, and NaN for all others. Constant
        # columns have the fixed bandwidth 1.
        fixed = np.full(len(kernels), np.nan) if fixed is None else fixed
        self._fixed = np.where(np.array(rows.columns.kinds) == CONSTANT, 1.0, fixed)
        self._is_searched = np.isnan(self._fixed)
        # (n_columns,) bool: True if the density integrates to 1 over the column.
        all_columns = np.ones(len(kernels), dtype=bool)
        self._is_integrated = all_columns if is_integrated is None else is_integrated
        # A kernel smooths as a Gaussian one does at the Gaussian's bandwidth times this ratio.
        self._canonical_ratios = np.array([canonical_ratio(kernel) for kernel in kernels])
        self._has_kinks = any(math.isfinite(kernel.support) for kernel in kernels)
        self._trials = Trials("likelihood", rows, observe)
        # The units are computed before the sample is limited more.
        self._sample = sample = Sample("likelihood", rows, MAX_ROWS_IN_LINEAR_TIME)
        self._set_units()
        self._limit_sample(find_masses)
        # Prepare the criterion, and the range of bandwidths and lambdas to try.
        sample.X = self._in_units(sample.X)
        self._criterion = self._criterion_of(sample)
        self._low, self._high = self._range()
        # The lambdas of a point are divided by their largest values. A category with a single
        # level has the largest value 0, and is divided by 1 instead.
        self._max_lambda = np.where(self._is_numeric | (self._high == 0), 1.0, self._high)

    def _set_units(self):
        """Set the center and the unit of each column, and the bounds in units.

        Columns are centered so that a large offset costs no digits. The unit is robust, since
        outliers would enlarge a standard deviation.
        """
        sample = self._sample
        center, scale = center_and_scale(sample.X, self._columns, sample.sample_weight)
        self._background = np.array([center, scale])
        self._unit = np.where(self._is_numeric, normal_std(scale), 1.0)
        # The logarithm of the volume of a unit, over the integrated columns. A log-density in
        # units is that in the original columns plus this number.
        self._log_volume = np.log(self._unit[self._is_integrated]).sum()
        self._bounds = None
        if self._rows.bounds is not None:
            self._bounds = (self._rows.bounds - center[:, None]) / self._unit[:, None]

    def _limit_sample(self, find_masses):
        """Limit the number of rows, and leave out those at a point mass.

        Point masses, which are only looked for if `find_masses`, would make the best bandwidth
        0.
        """
        sample, n_images = self._sample, 1
        if self._bounds is not None:
            n_images = len(list(reflections(sample.X[:1], self._bounds)))
        sample.limit(self._max_rows(n_images))
        # The point masses as `point_masses` returns them: numbers that many rows share.
        self._masses, self._is_without_masses = [], False
        if find_masses:
            # True for rows that are at no point mass.
            is_regular, self._masses = point_masses(
                sample.X, self._columns, self._is_integrated
            )
            self._is_without_masses = not is_regular.all()
            sample.take(is_regular)

    def run(self):
        """Search, and return the BandwidthChoice."""
        with self._trials:
            if self._criterion.in_linear_time:
                self._search_on_grid()
            else:
                self._search_by_descents()
        best = self._trials.best
        # Bandwidths of the sample, which may have fewer rows, become bandwidths of all rows.
        rescaled = self._sample.rescale_to_all_rows(best)
        bandwidth = np.where(self._is_searched, rescaled, best) * self._unit
        # The value of a trial is minus the mean log-density in units.
        score = -self._trials.value - self._log_volume
        return BandwidthChoice(
            bandwidth, score, warnings=self._warnings(best), background=self._background
        )

    def _max_rows(self, n_images):
        """Return the maximum number of rows, with `n_images` images each, for a fast search."""
        weights = self._sample.sample_weight
        # Two rows tell whether the criterion takes linear time.
        criterion_of_two_rows = self._make_criterion(
            self._in_units(self._sample.X[:2]),
            sample_weight=None if weights is None else weights[:2],
            bounds=self._bounds,
        )
        if criterion_of_two_rows.in_linear_time:
            return MAX_ROWS_IN_LINEAR_TIME
        # The time is in proportion to the number of pairs of a row and an image of a row, which
        # is n_images * n_rows^2.
        return int(MAX_SEARCH_ROWS / math.sqrt(n_images))

    def _criterion_of(self, sample):
        """Return the likelihood of a sample as a function of the bandwidth in units."""
        return self._make_criterion(
            sample.X, sample_weight=sample.sample_weight, bounds=self._bounds
        )

    def _in_units(self, X):
        """Subtract the center of each column from X, and divide by its unit."""
        # Numbers are limited, so that their squares are finite also for rows that are extremely
        # far from all others.
        with np.errstate(over="ignore"):
            return ((X - self._background[0]) / self._unit).clip(-LARGEST, LARGEST)

    def _range(self):
        """Return the smallest and the largest bandwidths to try, arrays (n_columns,).

        Numeric columns have bandwidths in units, and categories have lambdas.
        """
        # The smallest lambda is MIN_LEVEL_WEIGHT times the largest one.
        high = self._columns.highest_lam
        low = MIN_LEVEL_WEIGHT * high
        for j in self._columns.numeric:
            # The kernel at the bandwidth `ratio` smooths as a Gaussian one at 1.
            column, ratio = self._sample.X[:, [j]], self._canonical_ratios[j]
            # For a density, outliers do not count in the range. If rounded values of an
            # integrated column repeat, the range begins at their distance.
            low[j], high[j] = search_range(
                column, ratio, of_density=True, is_integrated=self._is_integrated[j]
            )
            if self._bounds is not None:
                # A wider kernel would need mirror images of mirror images, which criteria leave
                # out. The extent is infinite unless the column has two bounds.
                extent = np.ptp(self._bounds[j])
                high[j] = min(high[j], _MAX_BOUNDED_BANDWIDTH * ratio * extent)
                low[j] = min(low[j], high[j])
        # The range of a fixed bandwidth is this bandwidth.
        is_fixed = ~self._is_searched
        low[is_fixed] = high[is_fixed] = (self._fixed / self._unit)[is_fixed]
        return low, high

    def _evaluate(self, bandwidth, eval_gradient=False):
        """Compute minus the likelihood at a bandwidth in units, and its gradient (n_columns,).

        The gradient is 0 unless `eval_gradient` is True. The bandwidth is kept in `_trials` if
        it is the best one so far. The callback gets the likelihood and the bandwidth, both in
        the units of the data.
        """
        result = self._criterion(bandwidth, eval_gradient)
        likelihood, gradient = result if eval_gradient else (result, np.zeros(len(bandwidth)))
        if not (np.isfinite(likelihood) and np.isfinite(gradient).all()):
            likelihood, gradient = -np.inf, np.zeros(len(bandwidth))
        self._trials.add(-likelihood, bandwidth)
        self._trials.report(likelihood - self._log_volume, bandwidth * self._unit)
        return -likelihood, -gradient

    def _search_on_grid(self):
        """Search the bandwidth of a single numeric column."""
        minimize_scale(
            lambda scales: [self._evaluate(scale)[0] for scale in scales[:, None]],
            self._low[0],
            self._high[0],
            step=STEP if len(self._sample) <= MAX_SEARCH_ROWS else WIDE_STEP,
        )

    def _search_by_descents(self):
        """Search all bandwidths by descents from several starts, then from the best point."""
        bounds = np.column_stack([self._to_point(self._low), self._to_point(self._high)])

        def objective(point):
            bandwidth = self._to_bandwidth(point)
            value, gradient = self._evaluate(bandwidth, eval_gradient=True)
            # By the chain rule: a bandwidth is its own derivative along its logarithm, and the
            # largest lambda is the derivative of a lambda along their ratio.
            return value, gradient * np.where(self._is_numeric, bandwidth, self._max_lambda)

        # Descents are relative to the size of the likelihood, which is 1 for a mean of
        # logarithms. They store their points in `_trials`.
        starts = self._starts()
        if len(starts) > 1:
            for start in starts:
                point = self._to_point(start)
                descend(objective, point, bounds, size=1.0, n_steps=_FIRST_STEPS)
        start = starts[0] if self._trials.best is None else self._trials.best
        descend(objective, self._to_point(start), bounds, size=1.0)
        # A kernel of bounded support makes a criterion with kinks and steps, at which a descent
        # by gradients ends. Powell's method, without gradients, goes on from there.
        if self._has_kinks and self._trials.best is not None:
            minimize(
                lambda point: self._evaluate(self._to_bandwidth(point))[0],
                self._to_point(self._trials.best),
                method="Powell",
                bounds=bounds,
                options={"xtol": 1e-2, "ftol": 1e-6},
            )

    def _starts(self):
        """Return a list of bandwidths from which descents start.

        With more than `_SUBSET_ROWS` rows, this is the best bandwidth of a subset. With fewer
        rows, the list has:

        * the rule of thumb;
        * the geometric means of the rule's and of the largest bandwidths. A feature on which
          the target does not depend has a very large best bandwidth, which is far from all
          other starts;
        * the best bandwidth of those that are equal in all numeric columns;
        * the best one of points around the rule.
        """
        n_rows, rate = len(self._sample), 1 / (self._is_numeric.sum() + 4)
        # The rule's bandwidths of Gaussian kernels are n^-rate units, and its lambdas shrink at
        # the square of this rate. `wide` has the same lambdas as `rule`.
        lambdas = self._high * n_rows ** (-2 * rate)
        # `_clip_to_range` takes bandwidths of numeric columns and lambdas of categories.
        rule = self._clip_to_range(self._canonical_ratios * n_rows**-rate, lambdas)
        wide = self._clip_to_range(np.sqrt(rule * self._high), lambdas)
        if n_rows > _SUBSET_ROWS:
            # A feature may have no effect on the subset, and a huge bandwidth, where the
            # gradient is 0. It may have an effect on all rows, so that the descent starts at
            # most at `wide`.
            return [np.minimum(self._best_of_subset(), wide)]
        starts = [rule, wide]
        for candidates in (self._common_candidates(lambdas), self._candidates_around(rule)):
            if candidates:
                starts.append(min(candidates, key=lambda h: self._evaluate(h)[0]))
        return starts

    def _clip_to_range(self, bandwidths, lambdas):
        """Return an array (n_columns,), clipped to the range of the search.

        It has the `bandwidths` of numeric columns, and the `lambdas` of categories.
        """
        return np.clip(np.where(self._is_numeric, bandwidths, lambdas), self._low, self._high)

    def _common_candidates(self, lambdas):
        """Return a list of bandwidths that are equal, in units, in all numeric columns."""
        if not self._is_numeric.any():
            return []
        ends = self._low[self._is_numeric].min(), self._high[self._is_numeric].max()
        return [self._clip_to_range(h, lambdas) for h in np.geomspace(*ends, _N_CANDIDATES)]

    def _candidates_around(self, rule):
        """Return a list of bandwidths around a rule of thumb, if several are searched."""
        is_searched = self._is_searched
        if is_searched.sum() < 2:
            return []
        # The dimensions of a Halton sequence differ. To make the result independent of the
        # order of columns in X, they get their dimensions in the order of their moments, or, if
        # moments are equal, of their products with all columns.
        order = order_columns(self._sample.X[:, is_searched], self._sample.X)
        order = np.flatnonzero(is_searched)[order]
        # Points fill the cube [0, 1]^n evenly, with n the number of searched columns. The first
        # point of the sequence, which is 0, is skipped.
        points = np.full((_N_CANDIDATES, len(rule)), 0.5)
        points[:, order] = Halton(len(order), scramble=False).random(_N_CANDIDATES + 1)[1:]
        # Numeric columns get multiples of the rule, and categories get fractions of the largest
        # lambda.
        bandwidths = rule * np.exp(_MAX_LOG_RATIO * (2 * points - 1))
        return list(map(self._clip_to_range, bandwidths, points * self._high))

    def _best_of_subset(self):
        """Return the best bandwidth (n_columns,) of a subset of the rows, rescaled to all."""
        search, sample = copy(self), copy(self._sample)
        # Rows are sorted by their distances from the center and taken at regular steps, so that
        # the order of the rows does not matter.
        Z = sample.X
        distances = np.square(Z[:, self._is_numeric]).sum(axis=1)
        order = np.lexsort([*Z[:, self._columns.categorical].T, distances])
        sample.take(order[np.linspace(0, len(order) - 1, _SUBSET_ROWS).astype(int)])
        search._sample, search._trials = sample, Trials("likelihood", self._rows)
        search._criterion = self._criterion_of(sample)
        with search._trials:
            search._search_by_descents()
        # Bandwidths shrink as rows become more, and lambdas shrink at the square of this rate.
        n_ratio = len(self._sample) / _SUBSET_ROWS
        factor = optimal_rate_factor(n_ratio, self._is_numeric.sum())
        best = search._trials.best * np.where(self._is_numeric, factor, factor**2)
        return np.clip(best, self._low, self._high)

    def _to_point(self, bandwidth):
        """Return the point (n_columns,) of a bandwidth in units, with lambdas of categories.

        It has the logarithms of bandwidths, and lambdas divided by their largest values.
        """
        logs = np.log(np.where(self._is_numeric, bandwidth, 1.0))
        return np.where(self._is_numeric, logs, bandwidth / self._max_lambda)

    def _to_bandwidth(self, point):
        """Return the bandwidth, in units, of a point; clip it to the range of the search."""
        bandwidths = np.exp(np.where(self._is_numeric, point, 0.0))
        bandwidths = np.where(self._is_numeric, bandwidths, point * self._max_lambda)
        return np.clip(bandwidths, self._low, self._high)

    def _warnings(self, bandwidth):
        """Return a list of at most one warning about the best bandwidth, in units.

        If several apply, the first one counts: of the background, point masses, and the floor.
        """
        weight = self._criterion.background_weight(bandwidth)
        warnings = background_warnings(weight, len(self._sample), len(self._fixed))
        if warnings and not self._trials.was_stopped:
            return warnings
        if self._masses:
            return [mass_warning(self._masses, self._describe, self._is_without_masses)]
        return self._floor_warnings(bandwidth)

    def _floor_warnings(self, bandwidth):
        """Return a list with the warning about bandwidths at the floor, if there are any.

        The floor is the smallest bandwidth that is tried. Columns without repeated values do
        not count, nor do those whose bandwidth was not searched.
        """
        n_rows = len(self._sample)
        is_at_floor = self._is_numeric & self._is_integrated & self._is_searched
        is_at_floor &= bandwidth < 1.05 * self._low
        is_at_floor &= [len(np.unique(column)) < n_rows for column in self._sample.X.T]
        if not is_at_floor.any():
            return []
        # The value, here 0.0, does not matter for the name.
        names = [self._describe(j, 0.0)[0] for j in np.flatnonzero(is_at_floor).tolist()]
        return [
            f"bandwidth='likelihood' ended at its floor in {', '.join(names)}, where some of "
            f"{n_rows} values repeat others exactly; a copy describes its original exactly, so "
            "the floor may be too small: pass a number, or a frame with such columns as "
            "ordered categories."
        ]
