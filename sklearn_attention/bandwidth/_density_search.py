"""The bandwidths of all features, and of a target, that describe the rows best."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats.qmc import Halton

from .._columns import CONSTANT, Columns
from .._spread import own_order
from ..kernels._numerics import LARGEST
from ._background import NORMAL_BULK, bulk, reflections
from ._density import ConditionalLikelihood, DensityLikelihood
from ._minimize import STEP, WIDE_STEP, descend, minimize_scale
from ._search import (
    LOWEST_WORTH,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    BandwidthRule,
    Sample,
    Trials,
    canonical_ratio,
    search_range,
)

# What is tried before the descents, from the best of each: so many common scales of all
# features, and as many points around a rule of thumb, up to this logarithm away from it.
_N_TRIED, _AROUND = 16, 1.5
# More rows than this are sampled even where the criterion takes linear time.
MAX_LINE_ROWS = 100_000
# A number is a point mass if so many rows share it, and so many times as many as share the next
# smaller and larger ones. A search does without these rows if as many others are left.
_FEWEST_COPIES, _TIMES_NEIGHBORS, _FEWEST_APART = 10, 5, 10
# Where others do not describe more than this share of the rows, bandwidths mean nothing. It is
# 0 to 0.15 in ten columns, also with tails of t(2), and nearly 1 beyond what rows can tell.
_MOST = 0.5
# Between two bounds Gaussian bandwidths end at this share of the range: up to there, mirror
# images of mirror images, which criteria do without, have no mass.
_WIDEST = 0.2


@dataclass(frozen=True)
class DensitySearch(BandwidthRule):
    """The bandwidths of all features whose density estimate is best by leave-one-out."""

    # A criterion of linear time is computed on a grid, which is refined in its valleys.
    # Otherwise common scales of all features come first, then L-BFGS-B from the best of them,
    # over the logarithms of the bandwidths with exact gradients, then Powell's method for
    # kernels of bounded support. The best of all bandwidths tried is returned.

    searches = True

    def choose(self, rows, kernel, observe=None):
        def make(X, weights, bounds):
            return DensityLikelihood(
                X, kernel, columns=rows.columns, sample_weight=weights, bounds=bounds
            )

        kernels = [kernel] * rows.X.shape[1]
        return _Search(rows, make, kernels, observe).run()


@dataclass(frozen=True, eq=False)
class ConditionalSearch(BandwidthRule):
    """The bandwidths of features and target, together, whose conditional density is best."""

    # A bandwidth that is not None is fixed. Residuals have no point masses but rounding.

    target_kernel: Any
    bandwidth: Any = None
    target_bandwidth: Any = None
    has_masses: bool = True
    searches = True

    def choose(self, rows, kernel, observe=None):
        kernels = [kernel] * rows.X.shape[1] + [self.target_kernel]
        given = np.full(len(kernels), np.nan)
        given[:-1] = np.nan if self.bandwidth is None else self.bandwidth
        given[-1] = np.nan if self.target_bandwidth is None else self.target_bandwidth

        def make(Z, weights, _):
            return ConditionalLikelihood(
                Z[:, :-1], Z[:, -1], kernel, self.target_kernel,
                columns=rows.columns, sample_weight=weights,
            )  # fmt: skip

        joint = replace(
            rows, X=np.column_stack([rows.X, rows.values]), values=None,
            columns=rows.columns + Columns.numbers(1),
        )  # fmt: skip
        options = {"volume": slice(-1, None), "has_masses": self.has_masses}
        return _Search(joint, make, kernels, observe, given, **options).run()


def point_masses(X, columns, has_volume=None):
    """Rows (n,) that share no number with many; column, number and share of each such number.

    All rows if the others would be too few.
    """
    # Leave-one-out describes each copy by the others, so that a few make bandwidths vanish.
    # Rounded values and counts have about as many copies as their neighbours.
    apart, found = np.zeros(len(X), dtype=bool), []
    for j in columns.numeric:
        if has_volume is not None and not has_volume[j]:
            continue
        values, place, counts = np.unique(X[:, j], return_inverse=True, return_counts=True)
        around = np.pad(counts, 1, constant_values=1)
        least = _TIMES_NEIGHBORS * np.maximum(around[:-2], around[2:])
        many = (counts >= np.maximum(least, _FEWEST_COPIES)) & (len(values) > 1)
        apart |= many[place]
        found += [(j, values[own], counts[own] / len(X)) for own in np.flatnonzero(many)]
    kept = ~apart if (~apart).sum() >= _FEWEST_APART else np.ones_like(apart)
    return kept, found


class _Search:
    """Descends over the logarithms of bandwidths and the shares of lambdas."""

    # `make(rows, weights, bounds)` returns the criterion as a function of the bandwidth;
    # `given` has fixed bandwidths, else NaN; `volume` has the columns in which the density has
    # a volume.

    def __init__(
        self, rows, make, kernels, observe, given=None, *, volume=slice(None), has_masses=True
    ):
        self.columns, self.is_numeric = rows.columns, rows.columns.is_numeric
        self.describe = rows.describe or (lambda column, value: (f"column {column}", value))
        self.fixed = np.full(len(kernels), np.nan) if given is None else given
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
        two, weights = self._in_spreads(sample.X[:2]), sample.sample_weight
        of_two = make(two, None if weights is None else weights[:2], self.bounds)
        # So many rows that pairs with all images take no longer than without.
        most = int(MAX_SEARCH_ROWS / math.sqrt(n_images))
        sample.limit(MAX_LINE_ROWS if of_two.in_linear_time else most)
        self.masses, self.without = [], False
        if has_masses:
            kept, self.masses = point_masses(sample.X, self.columns, self.has_volume)
            self.without = not kept.all()
            sample.take(kept)
        sample.X = self._in_spreads(sample.X)
        self.criterion = make(sample.X, sample.sample_weight, self.bounds)
        self.low, self.high = self._bounds()
        # Where lambdas are shares of the largest; a single level's is 0.
        self.unit = np.where(self.is_numeric | (self.high == 0), 1.0, self.high)

    def run(self):
        with self.trials:
            if self.criterion.in_linear_time:
                self._along_line()
            else:
                self._descend_from_all()
        found = self.trials.best
        carried = self.sample.rescale_to_all_rows(found)
        bandwidth = np.where(np.isnan(self.fixed), carried, found) * self.spread
        score = -self.trials.value - self.log_volume
        return BandwidthChoice(
            bandwidth, score, warnings=self._warnings(found), background=self.background
        )

    def _in_spreads(self, X):
        # Where rows are further from most others, their squares are numbers still.
        with np.errstate(over="ignore"):
            return ((X - self.background[0]) / self.spread).clip(-LARGEST, LARGEST)

    def _bounds(self):
        high = self.columns.highest_lam
        low = LOWEST_WORTH * high
        for j in self.columns.numeric:
            column, ratio = self.sample.X[:, [j]], self.ratio[j]
            low[j], high[j] = search_range(
                column, ratio, of_density=True, has_volume=self.has_volume[j]
            )
            if self.bounds is not None:
                high[j] = min(high[j], _WIDEST * ratio * np.ptp(self.bounds[j]))
                low[j] = min(low[j], high[j])
        given = ~np.isnan(self.fixed)
        low[given] = high[given] = (self.fixed / self.spread)[given]
        return low, high

    def _evaluate(self, bandwidth, eval_gradient=False):
        """The function to minimise, at scaled bandwidths, and its gradient or zeros."""
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
            self.low[0], self.high[0], step=step,
        )  # fmt: skip

    def _descend_from_all(self):
        bounds = np.column_stack([self._point(self.low), self._point(self.high)])

        def objective(point):
            bandwidth = self._bandwidth(point)
            value, gradient = self._evaluate(bandwidth, eval_gradient=True)
            return value, gradient * np.where(self.is_numeric, bandwidth, self.unit)

        for start in self._starts():
            # Logarithms of densities have size 1.
            descend(objective, self._point(start), bounds, size=1.0)
        # A kernel of bounded support makes a criterion with kinks and steps, which a descent by
        # gradients takes for the bottom: there Powell's method goes on.
        if self.is_rough and self.trials.best is not None:
            minimize(
                lambda point: self._evaluate(self._bandwidth(point))[0],
                self._point(self.trials.best), method="Powell", bounds=bounds,
                options={"xtol": 1e-2, "ftol": 1e-6},
            )  # fmt: skip

    def _starts(self):
        """Bandwidths to descend from."""
        # The rule; a mixture, half way between the rule and no influence, since for a feature
        # that does not matter to a target other starts are far from there; the best common
        # scale; the best of points spread around the rule.
        rate = 1 / (self.is_numeric.sum() + 4)
        lam = self.high * len(self.sample) ** (-2 * rate)

        def bounded(scale, lam=lam):
            return np.clip(np.where(self.is_numeric, scale, lam), self.low, self.high)

        rule = bounded(self.ratio * len(self.sample) ** -rate)
        mixture = bounded(np.sqrt(rule * self.high))
        tried = []
        if self.is_numeric.any():
            ends = self.low[self.is_numeric].min(), self.high[self.is_numeric].max()
            tried.append([bounded(scale) for scale in np.geomspace(*ends, _N_TRIED)])
        free = np.isnan(self.fixed)
        if free.sum() > 1:
            # Of columns in an order of their own.
            order = np.flatnonzero(free)[own_order(self.sample.X[:, free], self.sample.X)]
            shares = np.full((_N_TRIED, len(rule)), 0.5)
            shares[:, order] = Halton(len(order), scramble=False).random(_N_TRIED + 1)[1:]
            around = rule * np.exp(_AROUND * (2 * shares - 1))
            tried.append(list(map(bounded, around, shares * self.high)))
        best = [min(points, key=lambda point: self._evaluate(point)[0]) for points in tried]
        return [rule, mixture, *best]

    def _point(self, bandwidth):
        logs = np.log(np.where(self.is_numeric, bandwidth, 1.0))
        return np.where(self.is_numeric, logs, bandwidth / self.unit)

    def _bandwidth(self, point):
        scales = np.exp(np.where(self.is_numeric, point, 0.0))
        values = np.where(self.is_numeric, scales, point * self.unit)
        return np.clip(values, self.low, self.high)

    def _warnings(self, bandwidth):
        X, n = self.sample.X, len(self.sample)
        if not self.trials.ended and (alone := self.criterion.alone(bandwidth)) > _MOST:
            return [
                f"bandwidth='likelihood': a wide background describes {alone:.0%} of {n} rows "
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
        where = "the target"
        if self.has_volume.all():
            where, value = self.describe(column, value)
        others = f" or one of {len(self.masses) - 1} other shared values"
        chosen = "was chosen without" if self.without else "has too few rows besides"
        return (
            f"bandwidth='likelihood' {chosen} those that have the value {value:g} of {where}, "
            f"which {share:.0%} of the rows share{others * (len(self.masses) > 1)}. A density "
            "spreads such a point mass: keep its share apart, and fit the other rows alone."
        )
