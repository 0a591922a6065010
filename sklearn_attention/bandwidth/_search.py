"""Parts of all searches of a bandwidth: rows to evaluate, range of scales, and trials."""

import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from .._base import warn_user
from .._column_stats import (
    checked_std,
    column_stats,
    feature_std,
    is_outlier,
    std_above_rounding,
)
from .._columns import Columns
from .._partitions import is_partitioned, partitions, run_on_partitions, to_memory
from .._validation import check_choice, check_flag, check_gap
from ..attention._doubled_windows import DISTINCT
from ..attention._pair_sums import positive_factors
from ..attention._solve import Basis
from ..kernels import Gaussian
from ..kernels._numerics import LARGEST
from ..kernels._product_kernel import compared_columns
from ._criteria import SMOOTHER_CRITERIA
from ._minimize import PRECISION

# Where every bandwidth takes a pass over all pairs, more rows than this are sampled, or have
# their minima found on a sample first.
MAX_SEARCH_ROWS = 2000
# More rows than this are sampled once and for all.
MAX_KEYS = 20_000
# Pairs of one evaluation of a bandwidth: with many keys, fewer rows are predicted.
MAX_PAIRS = 3 * 10**7
# Of more rows than this only the spread is computed before they are sampled.
MANY_ROWS = 10_000_000
# The search starts at this share of the distance to the nearest other place, below which every
# row is predicted by its nearest neighbour, of the quarter of the rows where it is least. Where
# windows have the weight of several rows at least, it starts where nearly all are widened to
# these. It ends where all rows weigh alike, at this many times the extent of the data.
_LOWEST, _LOWEST_OF_SEVERAL, _HIGHEST = (0.2, 0.25), (0.65, 0.05), 3.0
# For a density it starts at this share of the width of most of the data at least, and ends as
# if the extent were so many times that width at most: what lies further out are outliers.
_NARROWEST, _LARGEST_EXTENT = 1e-6, 20.0
# Of more features, whose bandwidths take minutes to find, one for each is searched on demand.
_MOST_FEATURES = 50
# The smallest lambda, as a share of the largest, and the least weight of a row of another
# level, which at 0 itself would be ruled out altogether.
MIN_LEVEL_WEIGHT = 1e-6
# If there are fewer different rows than this, they are not searched for copies. If fewer than
# this remain without outliers, all rows are searched: with a tenth of the rows the bandwidths
# still had errors as small as those from all rows.
_FEW_ROWS = 10


class BandwidthChoice(NamedTuple):
    """Bandwidth that a search or a rule has chosen, with what it was chosen from.

    It is the result of :func:`select_bandwidth`.

    Attributes
    ----------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units; for a category its lambda.
    value : float or None
        The criterion there, of a sample if one was drawn; None if none was minimised.
    results : dict of ndarray or None
        For every bandwidth that was tried, in ascending order: ``bandwidth``
        (n_tried, n_features), ``criterion``, ``loo_error`` and ``degrees_of_freedom``; of
        searches of one factor on all features.
    warnings : list of str
        Warnings for the user.
    relevance : ndarray of shape (n_features,) or None
        Relevance of each feature to the kernel, from 0 (it does not matter) to 1; of searches
        of a bandwidth for each feature or category.
    n_neighbors : int or None
        The neighbour that an adaptive bandwidth reaches to.
    background : ndarray of shape (2, n_features) or None
        Centers and scales of the columns; of likelihoods of densities.
    """

    bandwidth: Any
    value: Any = None
    results: Any = None
    warnings: Any = ()
    relevance: Any = None
    n_neighbors: Any = None
    background: Any = None

    @property
    def attributes(self):
        """Attributes of an estimator that tell of the search."""
        attributes = {
            "criterion_value_": self.value,
            "bandwidth_search_": self.results,
            "relevance_": self.relevance,
        }
        return {name: value for name, value in attributes.items() if value is not None}

    def warn(self):
        """Warn the user; return the choice."""
        warn_user(*self.warnings)
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Rows that a bandwidth is for, and how an estimator averages their values."""

    X: Any
    columns: Columns
    values: Any = None  # (n_samples, n_values); None for densities
    sample_weight: Any = None
    degree: int = 0
    empty: str = "nearest"
    algorithm: str = "auto"
    per_feature: bool | str = False  # or "auto"
    gap: int = 0
    bounds: Any = None  # (n_features, 2); of densities
    standardize: bool = False
    random_state: Any = None
    # ``describe(column, value)`` returns a column's name, and a value as it was passed.
    describe: Any = None
    has_outliers: Any = False  # (n_features,) bool: True if `without_outliers` found some
    # Bandwidth (n_features,) that a search starts from, where the best one is nearly known.
    start: Any = None
    # Precision of the factor on all bandwidths, as a logarithm.
    precision: float = PRECISION

    def __post_init__(self):
        check_flag("per_feature", self.per_feature, "auto")
        check_gap(self.gap)

    @cached_property
    def spread(self):
        """Spread of the columns, for which rows are read once; None if none has weight."""
        return column_stats(self.X, self.sample_weight)

    def compared_by(self, *kernels):
        """Return the rows with the columns that kernels compare."""
        columns = compared_columns(self.columns, self.spread, *kernels)
        return self.but(columns=columns)

    def without_outliers(self):
        """Return the rows with weight 0 for each row that has an outlier in a numeric column.

        The unit and the range of a search, and its criterion, are then those of the other rows.
        If fewer than ten of these have weight, all rows are returned as they are.
        """
        is_far = is_outlier(self.X, self.sample_weight)
        has_outliers = is_far.any(axis=0) & self.columns.is_numeric
        if not has_outliers.any():
            return self
        weights = 1.0 if self.sample_weight is None else self.sample_weight
        weights = np.where((is_far & has_outliers).any(axis=1), 0.0, weights)
        if np.count_nonzero(weights) < _FEW_ROWS:
            return self
        return replace(self, sample_weight=weights, has_outliers=has_outliers)

    def but(self, **changes):
        """Return the same rows with other options."""
        changed = replace(self, **changes)
        vars(changed)["spread"] = self.spread
        return changed

    @property
    def many_scales(self):
        """True if a search has a bandwidth for each feature, or lambdas beside one factor."""
        return bool(self.columns.categorical) or self.needs_several

    @property
    def needs_several(self):
        """True if each feature is to have its own bandwidth in any case."""
        return not isinstance(self.per_feature, str) and bool(self.per_feature)

    def may_have_several(self, kernel):
        """Return True if a bandwidth for each feature is to be tried beside a common factor.

        That is so if `per_feature` is "auto" and there are several numbers, but not so many
        that gradients take long; if there are fewer coefficients than rows; and if the kernel
        is a product of positive factors, along which gradients are known.
        """
        n_features = len(self.columns.numeric)
        is_auto = isinstance(self.per_feature, str) and not self.gap
        if not (is_auto and 1 < n_features <= _MOST_FEATURES):
            return False
        n_coefficients = Basis(self.degree, n_features).size
        is_determined = n_coefficients < min(len(self.X), MAX_SEARCH_ROWS)
        return is_determined and positive_factors(kernel, n_features) is not None

    @property
    def options(self):
        """Options of :class:`~sklearn_attention.attention.LeaveOneOut`."""
        names = "degree", "empty", "algorithm"
        options = {name: getattr(self, name) for name in names}
        # Windows of rows in partitions are not widened.
        return options | {"widen": not is_partitioned(self.X)}

    def refuse_gap(self):
        """Raise ValueError for a gap, which only the search for one factor supports."""
        if self.gap:
            raise ValueError(
                f"gap={self.gap} is supported only if all features are numeric and have one "
                "common factor on their bandwidths (per_feature=False): pass gap=0, or one of "
                f"{', '.join(SMOOTHER_CRITERIA)} as bandwidth."
            )


class BandwidthRule(ABC):
    """A rule that the parameter `bandwidth` of an estimator names."""

    searches = False  # True if the rule tries several bandwidths
    # True if the rule can choose a bandwidth for polynomials of each degree.
    serves_each_degree = False

    @abstractmethod
    def choose(self, rows, kernel, observe=None):
        """Choose the bandwidth for rows.

        The kernel compares the numeric columns. ``observe(value, bandwidth)`` is called for
        each bandwidth on trial, with the number of neighbours if that is searched; it returns
        True to end the search. Raises ValueError if the rule does not serve such rows, options
        or kernels.
        """


def bandwidth_rule(name, value, rules):
    """Return the rule that the parameter `name` has as a value: a name, a rule or numbers."""
    if isinstance(value, str):
        return rules[check_choice(name, value, rules)]
    return value if isinstance(value, BandwidthRule) else GivenBandwidth(value)


@dataclass(frozen=True)
class GivenBandwidth(BandwidthRule):
    """Numbers that a user passed; categories without one have lambdas of the rules of thumb."""

    bandwidth: Any
    serves_each_degree = True

    def choose(self, rows, kernel, observe=None):
        rows.refuse_gap()
        lambdas = rate_lambdas(len(rows.X), rows.columns, rows.sample_weight)
        return BandwidthChoice(rows.columns.check_bandwidth(self.bandwidth, lambdas))


def rate_lambdas(n_samples, columns, sample_weight=None):
    """Return lambdas that shrink at the optimal rate, inf for numbers, (n_features,)."""
    lambdas = columns.highest_lam
    if columns.categorical:
        n = n_samples if sample_weight is None else float(np.sum(sample_weight))
        rate = min(1.0, n ** (-2 / (len(columns.numeric) + 4)))
        lambdas[columns.categorical] *= rate
    return lambdas


class _Ended(Exception):
    """Raised if `observe` ends the search."""


class Trials:
    """Candidates of a search: the best so far, and `observe`, which may end the search.

    ``with trials:`` continues after the block if the search is ended, and raises an error if no
    candidate was finite.
    """

    def __init__(self, name, rows, observe=None):
        self._name, self._rows, self._observe = name, rows, observe
        self.best, self.value, self._tie = None, np.inf, -np.inf
        self.ended = False

    def add(self, value, candidate, tie=0.0):
        """Keep a candidate with the smallest value, or the same value and the largest tie."""
        # Values that differ by rounding, which is below 1e-13 on flat curves, are the same.
        is_same = math.isclose(value, self.value, rel_tol=1e-12)
        is_better = tie < self._tie if is_same else value < self.value
        if is_better:
            self.best, self.value, self._tie = candidate, value, tie

    def report(self, *trial):
        """Report a trial to `observe`, and end the search if that returns True."""
        if self._observe is not None and self._observe(*trial):
            raise _Ended

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Go on if `observe` ended the search; raise an error if no candidate was finite."""
        if kind not in (None, _Ended):
            return False
        if self.best is None:
            rows = self._rows
            needs = (
                "the criterion is finite: pass numbers"
                if rows.values is None
                else (
                    f"empty={rows.empty!r} leaves every row with a prediction and degree="
                    f"{rows.degree} leaves degrees of freedom: pass empty='nearest', fewer "
                    "coefficients, more rows, or a number as bandwidth"
                )
            )
            message = f"bandwidth={self._name!r} found no bandwidth at which {needs}."
            raise ValueError(message) from None
        self.ended = kind is _Ended
        return True


def narrower(times, n_features, *, decreasing=True):
    """Return the factor on the best bandwidth for `times` as many rows, times^(-1/(d+4))."""
    # If the kernel does not decrease with the distance, the bandwidth is no size of a
    # neighbourhood, and stays.
    return times ** (-1 / (n_features + 4)) if decreasing else 1.0


class Sample:
    """Rows that a search evaluates: those of positive weight, or a sample of very many."""

    def __init__(self, name, rows, max_rows, fewest=2):
        self.random_state, self._columns = check_random_state(rows.random_state), rows.columns
        self.X, self.values, self.sample_weight = rows.X, rows.values, rows.sample_weight
        # The number of all rows divided by those here, and True if rows stay in their order.
        self._times, self._in_order = 1.0, rows.gap > 0
        spread = None
        if are_sampled(self.X):
            if len(self) > max_rows:
                spread = checked_std(rows.spread)
                self._draw(max_rows)
            else:  # the same as for rows in memory, to the last digit and random number
                tables = self.X, self.values, self.sample_weight
                self.X, self.values, self.sample_weight = to_memory(*tables)
        if self.sample_weight is not None:
            self.take(self.sample_weight > 0)
        if len(self) < fewest:
            number = {2: "two", 3: "three"}[fewest]
            raise ValueError(
                f"bandwidth={name!r} predicts each row from the others and needs {number} rows "
                f"of positive weight, got n_samples={len(self)}: pass more rows, or a number "
                "as bandwidth."
            )
        self.spread = feature_std(self.X, self.sample_weight) if spread is None else spread

    def __len__(self):
        return len(self.X)

    def limit(self, max_rows):
        """Draw `max_rows` rows if there are more."""
        if len(self) > max_rows:
            self._draw(max_rows)

    def positions(self, max_rows):
        """Draw positions of `max_rows` rows, ascending; None for all rows."""
        if max_rows >= len(self):
            return None
        return draw_rows(len(self), max_rows, self.random_state)

    def rescale_to_all_rows(self, bandwidth, *, decreasing=True):
        """Turn a bandwidth of these rows into one of all rows, by the optimal rate."""
        n_features = len(self._columns.numeric)
        # Lambdas shrink by the square of this rate.
        numeric = narrower(self._times, n_features, decreasing=decreasing)
        lambdas = narrower(self._times, n_features) ** 2
        return bandwidth * np.where(self._columns.is_numeric, numeric, lambdas)

    def _draw(self, n_rows):
        """Keep `n_rows` rows at random; consecutive ones if their order matters."""
        n_all, tables = len(self), (self.X, self.values, self.sample_weight)
        n_rows = min(n_rows, n_all)
        self._times *= n_all / n_rows
        if self._in_order:
            first = self.random_state.randint(n_all - n_rows + 1)
            rows = slice(first, first + n_rows)
            tables = to_memory(*(None if x is None else x[rows] for x in tables))
        else:
            tables = draw(n_rows, self.random_state, *tables)
        self.X, self.values, self.sample_weight = tables

    def take(self, rows):
        """Keep some rows only."""
        tables = self.X, self.values, self.sample_weight
        self.X, self.values, self.sample_weight = (
            None if x is None else x[rows] for x in tables
        )


class Units(NamedTuple):
    """Centre and scale of columns of values, in which criteria have about size 1."""

    center: np.ndarray
    scale: np.ndarray
    unit: float  # of all columns; 1 if each column has its own
    size: float  # smallest distance of a value from the centre, in which rounding is measured

    @classmethod
    def of(cls, values, sample_weight, *, of_each):
        """Take the deviation of each column as its unit, or a power of two for all columns."""
        spread = column_stats(values, sample_weight)
        deviation = std_above_rounding(spread)
        each = of_each and len(deviation) > 1
        unit = 1.0 if each else float(np.ldexp(1.0, np.frexp(deviation.max())[1]))
        # Constants have rounding errors in proportion to their size.
        constant = np.where(spread.largest > 0, spread.largest, 1.0)
        scale = np.where(deviation > 0, deviation if each else unit, constant)
        return cls(spread.mean, scale, unit, float((spread.largest / scale).min()))

    def reduce(self, values):
        """Subtract the centre, and divide first, so that no difference overflows."""
        return values / self.scale - self.center / self.scale

    def restore(self, value, criterion):
        """Turn a criterion of reduced values into one of values in their own unit."""
        if criterion == "aicc":
            return value + 2 * np.log(self.unit)
        with np.errstate(over="ignore", under="ignore"):
            return value * np.square(np.float64(self.unit))


class ValueSample(Sample):
    """A sample with values: copies of rows are joined, and criteria have size 1 in `units`."""

    def __init__(self, name, rows, max_rows, fewest=2):
        if not rows.values.shape[1]:
            raise ValueError(
                f"values has shape {rows.values.shape}, without any column to predict: pass at "
                "least one."
            )
        super().__init__(name, rows, max_rows, fewest)
        if not self._in_order:
            self._join_copies()
        self.limit(max_rows)
        self.units = Units.of(self.values, self.sample_weight, of_each=rows.standardize)
        self.values = self.units.reduce(self.values)

    def in_units(self, value, criterion):
        """Turn a criterion of the values in the search into one of the values as passed."""
        return float(self.units.restore(value, criterion))

    def subset(self, n_rows):
        """Return `n_rows` rows that are spread over the values, the same in any order."""
        subset = copy(self)
        subset.take(self.spread_out(n_rows))
        return subset

    def spread_out(self, n_rows):
        """Return positions of `n_rows` rows whose values spread as those of all rows."""
        order = np.lexsort([(self.X / self.spread).sum(axis=1), *self.values.T])
        return order[np.linspace(0, len(order) - 1, n_rows).astype(int)]

    def _join_copies(self):
        """Join rows that repeat others, and their weights, unless values are classes.

        If most values are distinct, a row that repeats another in all its columns is a copy.
        """
        X, values, n_features = self.X, self.values, self.X.shape[1]
        if len(np.unique(X[:, 0])) == len(X):
            return
        rows, place, counts = np.unique(
            np.column_stack([X, values]), axis=0, return_inverse=True, return_counts=True
        )
        if len(rows) == len(X) or len(rows) < _FEW_ROWS:
            return
        if len(np.unique(values, axis=0)) < DISTINCT * len(rows):
            return
        if self.sample_weight is not None:
            counts = np.bincount(place.ravel(), self.sample_weight)
        self.X, self.values = rows[:, :n_features], rows[:, n_features:]
        self.sample_weight = counts.astype(np.float64)


def are_sampled(X):
    """Return True for very many rows, or Dask rows, of which a sample is drawn at once."""
    return is_partitioned(X) or len(X) > MANY_ROWS


def draw(n_rows, random_state, *tables):
    """Draw rows at random, the same of all tables, into memory; tables may be None."""
    n_samples = len(tables[0])
    rows = draw_rows(n_samples, min(n_rows, n_samples), random_state)
    if not is_partitioned(*tables):
        return tuple(None if x is None else x[rows] for x in tables)
    import dask

    # Partitions draw their own, so that no positions travel.
    sizes = next(x for x in tables if is_partitioned(x)).chunks[0]
    counts = np.diff(np.searchsorted(rows, np.cumsum((0, *sizes))))
    seeds = random_state.randint(2**31, size=len(counts))
    drawn = zip(counts, seeds, partitions(*tables), strict=True)
    tasks = run_on_partitions(_drawn, [(count, seed, *rows) for count, seed, rows in drawn])
    columns = zip(*dask.compute(*tasks), strict=True)
    return tuple(None if tables[0] is None else np.concatenate(tables) for tables in columns)


def _drawn(count, seed, *tables):
    random_state = np.random.RandomState(seed)
    n_samples = next(len(x) for x in tables if x is not None)
    rows = draw_rows(n_samples, count, random_state)
    return [None if x is None else x[rows] for x in tables]


def draw_rows(n_samples, n_rows, random_state):
    """Draw ascending positions of `n_rows` rows; memory is that of these alone."""
    rows = sample_without_replacement(n_samples, n_rows, random_state=random_state)
    return np.sort(rows)


def search_range(Z, ratio, *, of_density=False, has_volume=True, fewest=1):
    """Return the smallest and largest scale to try, for rows in standard deviations.

    Windows have the weight of `fewest` rows at least, unless the rows of a place have it. A
    density has a volume along its columns, but not along those it is conditional on.
    """
    # The distance between distinct places sets the floor, so repeated rows do not pull it to 0.
    extent = np.linalg.norm(np.ptp(Z, axis=0))
    if extent == 0:
        return 0.5 * ratio, 2.0 * ratio
    places = np.unique(Z, axis=0) if Z.shape[1] > 1 else np.unique(Z)[:, None]
    fewest = min(fewest, len(places) - 1) if len(places) == len(Z) else 1
    share, quantile = _LOWEST if fewest == 1 else _LOWEST_OF_SEVERAL
    # Each place is its own nearest neighbour.
    gaps, floor = KDTree(places).query(places, k=[fewest + 1])[0], 0.0
    if of_density:
        # If most rows share their places, the places are a grid. A bandwidth below its steps
        # describes the grid.
        share = share if len(places) > len(Z) / 2 or not has_volume else 1.0
        width = np.subtract(*np.quantile(Z, [0.9, 0.1])) or extent
        floor, extent = _NARROWEST * width, min(extent, _LARGEST_EXTENT * width)
    low = max(
        share * ratio * np.quantile(gaps, quantile),
        floor,
        ratio * extent / LARGEST,  # whose square does not vanish
    )
    return low, _HIGHEST * ratio * extent


def canonical_ratio(kernel):
    """Return the factor on a Gaussian's bandwidth at which this kernel smooths as much."""
    canonical = getattr(kernel, "canonical_bandwidth", None)
    return 1.0 if canonical is None else canonical / Gaussian().canonical_bandwidth
