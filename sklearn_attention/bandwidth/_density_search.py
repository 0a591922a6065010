"""The bandwidths of all features, and of a target, that describe the rows best."""

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
from ._background import NORMAL_BULK, bulk, reflections
from ._density import ConditionalLikelihood, DensityLikelihood
from ._minimize import STEP, WIDE_STEP, descend, minimize_scale
from ._search import (
    MAX_SEARCH_ROWS,
    MIN_LEVEL_WEIGHT,
    BandwidthChoice,
    BandwidthRule,
    Sample,
    Trials,
    canonical_ratio,
    narrower,
    search_range,
)

# Before the descents so many common scales of all features are tried, and as many points around
# a rule of thumb, up to this logarithm away from it; descents start from the best of each.
_N_TRIED, _AROUND = 16, 1.5
# Steps of the descents from several starts; a last descent goes on from the best point. Fits of
# 24 sets of 250 to 300 rows take 0.89 of the time of full descents, and 0.65 with 32 features;
# the mean log-density of new rows is the same to 2e-4.
_FIRST_STEPS = 8
# If there are more rows, so many of them choose where the descent of all rows starts. Fits of
# 28 sets of 600 to 1500 rows take 0.64 of the time; the mean log-density of new rows is the
# same to 4e-5.
_FIRST_ROWS = 300
# More rows than this are sampled even where the criterion takes linear time.
MAX_LINE_ROWS = 100_000
# A number is a point mass if so many rows share it, and so many times as many as share the next
# smaller and larger ones. A search leaves these rows out if as many other rows remain.
_MIN_COPIES, _TIMES_NEIGHBORS, _MIN_REMAINING = 10, 5, 10
# If the background describes a larger share of the rows than this, bandwidths mean nothing. It
# is 0 to 0.15 in ten columns, also with tails of t(2), and nearly 1 beyond what rows can tell.
_MAX_BACKGROUND = 0.5
# Between two bounds Gaussian bandwidths end at this share of the range: up to there, mirror
# images of mirror images, which criteria do without, have no mass.
_WIDEST = 0.2


@dataclass(frozen=True)
class DensitySearch(BandwidthRule):
    """The bandwidths of all features whose density estimate is best by leave-one-out.

    A criterion of linear time is computed on a grid, which is refined in its valleys. Otherwise
    common scales of all features come first, then L-BFGS-B from the best of them, over the
    logarithms of the bandwidths with exact gradients, then Powell's method for kernels of
    bounded support. The best of all bandwidths tried is returned.
    """

    searches = True

    def choose(self, rows, kernel, observe=None):
        make = partial(DensityLikelihood, kernel=kernel, columns=rows.columns)
        kernels = [kernel] * rows.X.shape[1]
        return _Search(rows, make, kernels, observe).run()


@dataclass(frozen=True, eq=False)
class ConditionalSearch(BandwidthRule):
    """The bandwidths of features and target, together, whose conditional density is best.

    A bandwidth that is not None is fixed. Equal residuals are due to rounding, so that they
    have no point masses.
    """

    target_kernel: Any
    bandwidth: Any = None
    target_bandwidth: Any = None
    has_masses: bool = True
    searches = True

    def choose(self, rows, kernel, observe=None):
        kernels = [kernel] * rows.X.shape[1] + [self.target_kernel]
        fixed = np.full(len(kernels), np.nan)
        fixed[:-1] = np.nan if self.bandwidth is None else self.bandwidth
        fixed[-1] = np.nan if self.target_bandwidth is None else self.target_bandwidth

        def make(Z, sample_weight, bounds):
            return ConditionalLikelihood(
                Z[:, :-1],
                Z[:, -1],
                kernel,
                self.target_kernel,
                columns=rows.columns,
                sample_weight=sample_weight,
            )

        joint = replace(
            rows,
            X=np.column_stack([rows.X, rows.values]),
            values=None,
            columns=rows.columns + Columns.numbers(1),
            describe=lambda column, value: ("the target", value),
        )
        options = {"volume": slice(-1, None), "has_masses": self.has_masses}
        return _Search(joint, make, kernels, observe, fixed, **options).run()


def point_masses(X, columns, has_volume=None):
    """Find numbers that many rows share, in columns along which the density has a volume.

    Returns True (n,) for rows without such a number, or for all rows if too few are, and a list
    of column, number and share of the rows, one for each such number.
    """
    # Leave-one-out describes each copy by the others, so that a few make bandwidths vanish.
    # Rounded values and counts have about as many copies as their neighbours.
    is_mass, masses = np.zeros(len(X), dtype=bool), []
    for j in columns.numeric:
        if has_volume is not None and not has_volume[j]:
            continue
        values, group, counts = np.unique(X[:, j], return_inverse=True, return_counts=True)
        around = np.pad(counts, 1, constant_values=1)
        neighbors = np.maximum(around[:-2], around[2:])
        is_shared = counts >= np.maximum(_TIMES_NEIGHBORS * neighbors, _MIN_COPIES)
        is_shared &= len(values) > 1
        is_mass |= is_shared[group]
        masses += [(j, values[k], counts[k] / len(X)) for k in np.flatnonzero(is_shared)]
    has_enough = (~is_mass).sum() >= _MIN_REMAINING
    return ~is_mass if has_enough else np.ones_like(is_mass), masses


class _Search:
    """Descends over the logarithms of bandwidths and the shares of lambdas.

    `make(rows, sample_weight=, bounds=)` returns the criterion as a function of the bandwidth;
    `fixed` has fixed bandwidths, else NaN; along the columns of `volume` the density has a
    volume.
    """

    def __init__(
        self, rows, make, kernels, observe, fixed=None, *, volume=slice(None), has_masses=True
    ):
        self.make = make
        self.rows, self.columns, self.is_numeric = rows, rows.columns, rows.columns.is_numeric
        self.describe = rows.describe or (lambda column, value: (f"column {column}", value))
        self.fixed = np.full(len(kernels), np.nan) if fixed is None else fixed
        self.fixed = np.where(np.array(self.columns.kinds) == CONSTANT, 1.0, self.fixed)
        self.ratio = np.array([canonical_ratio(kernel) for kernel in kernels])
        self.is_rough = any(math.isfinite(kernel.support) for kernel in kernels)
        self.trials = Trials("likelihood", rows, observe)
        self.sample = sample = Sample("likelihood", rows, MAX_LINE_ROWS)
        center, scale = bulk(sample.X, self.columns, sample.sample_weight)
        self.background = np.array([center, scale])
        # In units of the spread of most rows, and from their middle, nothing is rounded off.
        self.spread = np.where(self.is_numeric, 2 * scale / NORMAL_BULK, 1.0)
        self.has_volume = np.zeros(len(kernels), dtype=bool)
        self.has_volume[volume] = True
        self.log_volume = np.log(self.spread[volume]).sum()
        self.bounds, n_images = None, 1
        if rows.bounds is not None:
            self.bounds = (rows.bounds - center[:, None]) / self.spread[:, None]
            n_images = len(list(reflections(sample.X[:1], self.bounds)))
        weights = None if sample.sample_weight is None else sample.sample_weight[:2]
        two_rows = self._in_spreads(sample.X[:2])
        of_two_rows = make(two_rows, sample_weight=weights, bounds=self.bounds)
        # So many rows that pairs with all images take no longer than without images.
        max_rows = int(MAX_SEARCH_ROWS / math.sqrt(n_images))
        sample.limit(MAX_LINE_ROWS if of_two_rows.in_linear_time else max_rows)
        self.masses, self.without = [], False
        if has_masses:
            is_apart, self.masses = point_masses(sample.X, self.columns, self.has_volume)
            self.without = not is_apart.all()
            sample.take(is_apart)
        sample.X = self._in_spreads(sample.X)
        self.criterion = self._criterion_of(sample)
        self.low, self.high = self._range()
        # Lambdas are shares of the largest; that of a single level is 0.
        self.unit = np.where(self.is_numeric | (self.high == 0), 1.0, self.high)

    def run(self):
        with self.trials:
            if self.criterion.in_linear_time:
                self._along_line()
            else:
                self._descend()
        best = self.trials.best
        rescaled = self.sample.rescale_to_all_rows(best)
        bandwidth = np.where(np.isnan(self.fixed), rescaled, best) * self.spread
        score = -self.trials.value - self.log_volume
        return BandwidthChoice(
            bandwidth, score, warnings=self._warnings(best), background=self.background
        )

    def _criterion_of(self, sample):
        return self.make(sample.X, sample_weight=sample.sample_weight, bounds=self.bounds)

    def _in_spreads(self, X):
        # Where rows are further from most others, their squares are numbers still.
        with np.errstate(over="ignore"):
            return ((X - self.background[0]) / self.spread).clip(-LARGEST, LARGEST)

    def _range(self):
        """Return the smallest and the largest bandwidths and lambdas worth trying."""
        high = self.columns.highest_lam
        low = MIN_LEVEL_WEIGHT * high
        for j in self.columns.numeric:
            column, ratio = self.sample.X[:, [j]], self.ratio[j]
            low[j], high[j] = search_range(
                column, ratio, of_density=True, has_volume=self.has_volume[j]
            )
            if self.bounds is not None:
                high[j] = min(high[j], _WIDEST * ratio * np.ptp(self.bounds[j]))
                low[j] = min(low[j], high[j])
        is_fixed = ~np.isnan(self.fixed)
        low[is_fixed] = high[is_fixed] = (self.fixed / self.spread)[is_fixed]
        return low, high

    def _evaluate(self, bandwidth, eval_gradient=False):
        """Compute the function to minimise, at scaled bandwidths, and its gradient or zeros."""
        result = self.criterion(bandwidth, eval_gradient)
        value, gradient = result if eval_gradient else (result, np.zeros(len(bandwidth)))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            value, gradient = -np.inf, np.zeros(len(bandwidth))
        self.trials.add(-value, bandwidth)
        self.trials.report(value - self.log_volume, bandwidth * self.spread)
        return -value, -gradient

    def _along_line(self):
        step = STEP if len(self.sample) <= MAX_SEARCH_ROWS else WIDE_STEP
        minimize_scale(
            lambda scales: [self._evaluate(scale)[0] for scale in scales[:, None]],
            self.low[0],
            self.high[0],
            step=step,
        )

    def _descend(self):
        bounds = np.column_stack([self._point(self.low), self._point(self.high)])

        def objective(point):
            bandwidth = self._bandwidth(point)
            value, gradient = self._evaluate(bandwidth, eval_gradient=True)
            return value, gradient * np.where(self.is_numeric, bandwidth, self.unit)

        # Logarithms of densities have size 1.
        starts = self._starts()
        for start in starts if len(starts) > 1 else []:
            descend(objective, self._point(start), bounds, size=1.0, n_steps=_FIRST_STEPS)
        start = starts[0] if self.trials.best is None else self.trials.best
        descend(objective, self._point(start), bounds, size=1.0)
        # A kernel of bounded support makes a criterion with kinks and steps, which a descent by
        # gradients takes for the bottom: there Powell's method goes on.
        if self.is_rough and self.trials.best is not None:
            minimize(
                lambda point: self._evaluate(self._bandwidth(point))[0],
                self._point(self.trials.best),
                method="Powell",
                bounds=bounds,
                options={"xtol": 1e-2, "ftol": 1e-6},
            )

    def _starts(self):
        """Return bandwidths to descend from.

        They are the rule; a mixture, half way between the rule and no influence, since for a
        feature that does not matter to a target other starts are far from there; the best
        common scale; the best of points spread around the rule. Of many rows they are what is
        best for some of them.
        """
        rate = 1 / (self.is_numeric.sum() + 4)
        lam = self.high * len(self.sample) ** (-2 * rate)

        def bounded(scale, lam=lam):
            return np.clip(np.where(self.is_numeric, scale, lam), self.low, self.high)

        rule = bounded(self.ratio * len(self.sample) ** -rate)
        mixture = bounded(np.sqrt(rule * self.high))
        if len(self.sample) > _FIRST_ROWS:
            # What does not matter to a few rows may matter to all, and is looked at again.
            return [np.minimum(self._best_for_few_rows(), mixture)]
        tried = []
        if self.is_numeric.any():
            ends = self.low[self.is_numeric].min(), self.high[self.is_numeric].max()
            tried.append([bounded(scale) for scale in np.geomspace(*ends, _N_TRIED)])
        free = np.isnan(self.fixed)
        if free.sum() > 1:
            # The order of the columns must not matter.
            order = np.flatnonzero(free)[order_columns(self.sample.X[:, free], self.sample.X)]
            shares = np.full((_N_TRIED, len(rule)), 0.5)
            shares[:, order] = Halton(len(order), scramble=False).random(_N_TRIED + 1)[1:]
            around = rule * np.exp(_AROUND * (2 * shares - 1))
            tried.append(list(map(bounded, around, shares * self.high)))
        best = [min(points, key=lambda point: self._evaluate(point)[0]) for points in tried]
        return [rule, mixture, *best]

    def _best_for_few_rows(self):
        """Return the best bandwidths for some of the rows, as narrow as all rows need them."""
        search, sample = copy(self), copy(self.sample)
        # They are spread over the distances from the middle: the same in any order of rows.
        Z = sample.X
        distances = np.square(Z[:, self.is_numeric]).sum(axis=1)
        order = np.lexsort([*Z[:, self.columns.categorical].T, distances])
        sample.take(order[np.linspace(0, len(order) - 1, _FIRST_ROWS).astype(int)])
        search.sample, search.trials = sample, Trials("likelihood", self.rows)
        search.criterion = self._criterion_of(sample)
        with search.trials:
            search._descend()
        factor = narrower(len(self.sample) / _FIRST_ROWS, self.is_numeric.sum())
        best = search.trials.best * np.where(self.is_numeric, factor, factor**2)
        return np.clip(best, self.low, self.high)

    def _point(self, bandwidth):
        logs = np.log(np.where(self.is_numeric, bandwidth, 1.0))
        return np.where(self.is_numeric, logs, bandwidth / self.unit)

    def _bandwidth(self, point):
        scales = np.exp(np.where(self.is_numeric, point, 0.0))
        values = np.where(self.is_numeric, scales, point * self.unit)
        return np.clip(values, self.low, self.high)

    def _warnings(self, bandwidth):
        X, n = self.sample.X, len(self.sample)
        share = self.criterion.background_weight(bandwidth)
        if share > _MAX_BACKGROUND and not self.trials.ended:
            return [
                f"bandwidth='likelihood': a wide background describes {share:.0%} of {n} rows "
                f"better than all other rows do, which are no basis of a choice in "
                f"{len(self.fixed)} columns. Pass fewer columns, more rows, or 'scott'."
            ]
        if self.masses:
            return [self._of_masses()]
        at_floor = self.is_numeric & self.has_volume & np.isnan(self.fixed)
        at_floor &= bandwidth < 1.05 * self.low
        at_floor &= [len(np.unique(column)) < n for column in X.T]
        if not at_floor.any():
            return []
        names = [self.describe(column, 0.0)[0] for column in np.flatnonzero(at_floor).tolist()]
        return [
            f"bandwidth='likelihood' ended at its floor in {', '.join(names)}, where some of "
            f"{n} values repeat others exactly; a copy describes its original exactly, so the "
            "floor may be too small: pass a number, or a frame with such columns as ordered "
            "categories."
        ]

    def _of_masses(self):
        column, value, share = max(self.masses, key=lambda mass: mass[2])
        column, value = self.describe(column, value)
        more = f" or one of {len(self.masses) - 1} other shared values"
        chosen = "was chosen without" if self.without else "has too few rows besides"
        return (
            f"bandwidth='likelihood' {chosen} those that have the value {value:g} of {column}, "
            f"which {share:.0%} of the rows share{more * (len(self.masses) > 1)}. A density "
            "spreads such a point mass: keep its share apart, and fit the other rows alone."
        )
