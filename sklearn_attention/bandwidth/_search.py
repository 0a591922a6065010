"""What all searches for a bandwidth share: the rows, a rule, its result, and its trials.

Terms of all modules of this folder:

* A bandwidth (n_columns,) has for each numeric column the h of its kernel, in the unit of the
  column, and for each category its lambda: 0 if levels are not smoothed at all, and the largest
  one, `Columns.highest_lam`, if all levels count equally.
* The level weight of a category is that of a row of another level relative to a row of the same
  level, from 0 to 1. Lambdas are computed from it.
* A scale is a common factor c on the standard deviations of all numeric columns, h_j = c std_j.
* A Gaussian and another kernel smooth equally at bandwidths with a certain ratio; see
  `canonical_ratio`.
* ``observe(value, bandwidth)`` is a callback for each bandwidth that is tried, with the value
  of the criterion. It returns True to end the search.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from .._base import warn_user
from .._column_stats import column_stats, is_outlier
from .._columns import Columns
from .._partitions import is_partitioned
from .._validation import check_choice, check_flag, check_gap
from ..attention._pair_sums import positive_factors
from ..attention._solve import Basis
from ..kernels import Gaussian
from ..kernels._numerics import LARGEST
from ..kernels._product_kernel import compared_columns
from ._criteria import SMOOTHER_CRITERIA
from ._minimize import PRECISION

# If each bandwidth takes a pass over all pairs of rows, and there are more rows than this, the
# search evaluates a sample, or finds the minima approximately on a sample first.
MAX_SEARCH_ROWS = 2000
# Maximum number of rows of a sample in any search for one scale. Its rows are the keys from
# which rows are predicted.
MAX_KEYS = 20_000
# Maximum number of pairs of rows in one evaluation; with many keys, fewer rows are predicted.
MAX_PAIRS = 3 * 10**7
# The smallest scale is a fraction of a quantile of the distances to the nearest other row; each
# pair is the fraction and the quantile. At 0.2 of the lower quartile, each row is predicted by
# its nearest neighbour.
_MIN_SCALE = 0.2, 0.25
# If a window needs the weight of several rows, distances are those to the last of them. At 0.65
# of the 0.05 quantile, nearly all windows are doubled.
_MIN_SCALE_OF_SEVERAL_ROWS = 0.65, 0.05
# The largest scale is this multiple of the extent of the rows. There all have about the same
# weight.
_MAX_SCALE = 3.0
# For a density the smallest scale is at least the first multiple, and the extent at most the
# second multiple, of the distance between the quantiles 0.1 and 0.9: rows further out are
# outliers.
_MIN_DENSITY_SCALE, _MAX_DENSITY_EXTENT = 1e-6, 20.0
# Maximum number of features for which per_feature="auto" searches a bandwidth for each one.
# With more features this takes minutes.
_MAX_AUTO_FEATURES = 50
# The smallest level weight, and the smallest lambda as a fraction of the largest. At 0 a search
# by logarithms would rule out other levels.
MIN_LEVEL_WEIGHT = 1e-6
# If fewer rows than this remain without outliers, all rows are searched. With a tenth of the
# rows the bandwidths still had errors as small as those from all rows.
_MIN_ROWS_WITHOUT_OUTLIERS = 10


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
        (n_tried, n_features), ``criterion``, ``loo_error`` and ``degrees_of_freedom``. Only
        from searches for one factor on all features.
    warnings : list of str
        Warnings for the user.
    relevance : ndarray of shape (n_features,) or None
        Relevance of each feature to the kernel, from 0 (it does not matter) to 1. Only from
        searches for a bandwidth of each feature or category.
    n_neighbors : int or None
        The neighbour that an adaptive bandwidth reaches to.
    background : ndarray of shape (2, n_features) or None
        Centers and scales of the columns in the background of a density. Only from searches by
        likelihood.
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
        """Fitted attributes of an estimator that describe the search, as a dict."""
        attributes = {
            "criterion_value_": self.value,
            "bandwidth_search_": self.results,
            "relevance_": self.relevance,
        }
        return {name: value for name, value in attributes.items() if value is not None}

    def warn(self):
        """Warn the user, and return the choice."""
        warn_user(*self.warnings)
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Rows for which a bandwidth is chosen, and how an estimator averages their targets."""

    X: Any  # (n_samples, n_columns), categories as codes; may be in partitions of Dask
    columns: Columns
    values: Any = None  # targets (n_samples, n_values); None for densities
    sample_weight: Any = None  # (n_samples,), or None
    degree: int = 0  # of the local polynomials
    empty: str = "nearest"
    algorithm: str = "auto"
    # True for a bandwidth of each numeric column, False for one scale, or "auto".
    per_feature: bool | str = False
    # Number of rows before and after each row that are left out with it; for ordered rows whose
    # noise is correlated.
    gap: int = 0
    bounds: Any = None  # (n_columns, 2); of densities
    standardize: bool = False  # whether each column of targets is divided by its own std
    random_state: Any = None
    # ``describe(column, value)`` returns a column's name, and a value as the user passed it.
    describe: Any = None
    has_outliers: Any = False  # (n_columns,) bool: True if `without_outliers` found some
    # Bandwidth (n_columns,) near which a search starts; None if nothing is known about it.
    start: Any = None
    # Precision of the best scale, as a difference of logarithms.
    precision: float = PRECISION

    def __post_init__(self):
        check_flag("per_feature", self.per_feature, "auto")
        check_gap(self.gap)

    @cached_property
    def stats(self):
        """ColumnStats of X, from one pass over the rows; None if no row has weight."""
        return column_stats(self.X, self.sample_weight)

    def compared_by(self, *kernels):
        """Return the rows with the columns that kernels compare; see `compared_columns`."""
        columns = compared_columns(self.columns, self.stats, *kernels)
        return self.with_options(columns=columns)

    def without_outliers(self):
        """Return the rows with weight 0 for each row that has an outlier in a numeric column.

        A search with the result computes its units, its range and its criterion without
        outliers. If fewer than ten rows with weight remain, the rows are returned unchanged.
        """
        is_far = is_outlier(self.X, self.sample_weight)
        has_outliers = is_far.any(axis=0) & self.columns.is_numeric
        if not has_outliers.any():
            return self
        weights = 1.0 if self.sample_weight is None else self.sample_weight
        weights = np.where((is_far & has_outliers).any(axis=1), 0.0, weights)
        if np.count_nonzero(weights) < _MIN_ROWS_WITHOUT_OUTLIERS:
            return self
        # Predictions are from all rows. So a search limits the bandwidths of the columns in
        # `has_outliers` (n_columns,): at a huge bandwidth, rows with outliers would get weight.
        return replace(self, sample_weight=weights, has_outliers=has_outliers)

    def with_options(self, **changes):
        """Return the same rows with other options; X and its weights must not change."""
        changed = replace(self, **changes)
        vars(changed)["stats"] = self.stats  # fills the cached property
        return changed

    @property
    def has_several_parameters(self):
        """True if a search is for more than one scale: lambdas, or several bandwidths."""
        return bool(self.columns.categorical) or self.is_per_feature

    @property
    def is_per_feature(self):
        """True if `per_feature` is True, not False or "auto"."""
        return not isinstance(self.per_feature, str) and bool(self.per_feature)

    def may_be_per_feature(self, kernel):
        """Return True if per_feature="auto" has to compare one scale with several bandwidths.

        This is so if

        * there are several numeric columns, but not so many that gradients take long;
        * a local polynomial has fewer coefficients than there are rows;
        * the kernel is a product of positive factors, whose gradients are known;
        * no `gap` leaves out neighbouring rows, which only the search for one scale supports.
        """
        n_features = len(self.columns.numeric)
        is_auto = isinstance(self.per_feature, str) and not self.gap
        if not (is_auto and 1 < n_features <= _MAX_AUTO_FEATURES):
            return False
        n_coefficients = Basis(self.degree, n_features).size
        is_determined = n_coefficients < min(len(self.X), MAX_SEARCH_ROWS)
        # `positive_factors` returns None if the kernel is no product of such factors.
        return is_determined and positive_factors(kernel, n_features) is not None

    @property
    def options(self):
        """Options of :class:`~sklearn_attention.attention.LeaveOneOut`, as a dict."""
        # With "widen", windows with too few rows are doubled; rows in partitions do not allow
        # this.
        return {
            "degree": self.degree,
            "empty": self.empty,
            "algorithm": self.algorithm,
            "widen": not is_partitioned(self.X),
        }

    def refuse_gap(self):
        """Raise ValueError if `gap` is not 0, which only the search for one scale supports."""
        if self.gap:
            raise ValueError(
                f"gap={self.gap} is supported only if all features are numeric and have one "
                "common factor on their bandwidths (per_feature=False): pass gap=0, or one of "
                f"{', '.join(SMOOTHER_CRITERIA)} as bandwidth."
            )


class BandwidthRule(ABC):
    """A value of the parameter `bandwidth` of an estimator, which chooses bandwidths."""

    searches = False  # True if the rule tries several bandwidths
    # True if the rule can choose a bandwidth for polynomials of each degree.
    serves_each_degree = False

    @abstractmethod
    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows.

        The kernel compares the numeric columns. ``observe(value, bandwidth)`` is called for
        each bandwidth that is tried, with the number of neighbours as a third argument if that
        is searched; it returns True to end the search. Rows, options or kernels that the rule
        does not support raise ValueError.
        """


def bandwidth_rule(name, value, rules):
    """Return the BandwidthRule for the value of the parameter `name`.

    The value is a name in the dict `rules`, a rule, or a bandwidth.
    """
    if isinstance(value, str):
        return rules[check_choice(name, value, rules)]
    return value if isinstance(value, BandwidthRule) else FixedBandwidth(value)


@dataclass(frozen=True)
class FixedBandwidth(BandwidthRule):
    """Bandwidth that a user passed; lambdas are those of the rules of thumb if it has none."""

    bandwidth: Any
    serves_each_degree = True

    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows; no bandwidths are tried and observed."""
        rows.refuse_gap()
        lambdas = rule_lambdas(len(rows.X), rows.columns, rows.sample_weight)
        return BandwidthChoice(rows.columns.check_bandwidth(self.bandwidth, lambdas))


def rule_lambdas(n_samples, columns, sample_weight=None):
    """Return the lambdas (n_columns,) of the rules of thumb, inf for numeric columns.

    `n_samples` is the number of rows, and `sample_weight` (n_samples,) has their weights. The
    largest lambda of a category is multiplied by n^(-2 / (d + 4)), the rate at which the
    optimal lambda shrinks, with d numeric columns and n the sum of the weights.
    """
    lambdas = columns.highest_lam  # a new array, which may be changed
    if columns.categorical:
        n = n_samples if sample_weight is None else float(np.sum(sample_weight))
        rate = min(1.0, n ** (-2 / (len(columns.numeric) + 4)))
        lambdas[columns.categorical] *= rate
    return lambdas


class _SearchStopped(Exception):
    """The callback `observe` has ended the search."""


class Trials:
    """Candidates of a search: it keeps the best one, and calls `observe` for each.

    ``with trials:`` goes on after the block if `observe` has ended the search, and raises an
    error if no candidate had a finite value.

    Attributes
    ----------
    best : object
        The best candidate so far, or None.
    value : float
        Its value, inf without a candidate.
    was_stopped : bool
        Whether `observe` has ended the search.
    """

    def __init__(self, name, rows, observe=None):
        # The rule's name, and the options of the rows, appear in the error message.
        self._name, self._rows, self._observe = name, rows, observe
        self.best, self.value, self._tie = None, np.inf, -np.inf
        self.was_stopped = False

    def add(self, value, candidate, tie=0.0):
        """Keep the candidate if its value is the smallest so far.

        Of candidates with the same value, the one with the smallest `tie` is kept.
        """
        # Values that differ by rounding, which is below 1e-13 on flat curves, are the same.
        is_same = math.isclose(value, self.value, rel_tol=1e-12)
        is_better = tie < self._tie if is_same else value < self.value
        if is_better:
            self.best, self.value, self._tie = candidate, value, tie

    def report(self, *trial):
        """Call `observe` with the arguments; end the search if it returns True."""
        if self._observe is not None and self._observe(*trial):
            raise _SearchStopped

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Suppress `_SearchStopped`; raise ValueError if no candidate had a finite value."""
        if kind not in (None, _SearchStopped):
            return False
        if self.best is None:
            # The message says what holds at no bandwidth, and what to pass instead. A search
            # for a density, whose rows have no targets, has neither `empty` nor `degree`.
            rows, condition_and_remedy = self._rows, "the criterion is finite: pass numbers"
            if rows.values is not None:
                condition_and_remedy = (
                    f"empty={rows.empty!r} leaves every row with a prediction and degree="
                    f"{rows.degree} leaves degrees of freedom: pass empty='nearest', fewer "
                    "coefficients, more rows, or a number as bandwidth"
                )
            raise ValueError(
                f"bandwidth={self._name!r} found no bandwidth at which {condition_and_remedy}."
            ) from None
        self.was_stopped = kind is _SearchStopped
        return True


def search_range(Z, ratio, *, min_rows=1, of_density=False, is_integrated=True):
    """Return the smallest and the largest scale that a search tries, as floats.

    The smallest scale is a fraction of the distances between neighbouring rows. The largest one
    is a multiple of the extent of the rows, the diagonal of the box around them.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Numeric columns, divided by their standard deviations.
    ratio : float
        The canonical ratio: the scale at which the kernel smooths as a Gaussian one does at
        scale 1.
    min_rows : int, default=1
        Smallest number of rows that a window has to contain for a prediction; 1 is assumed if
        rows repeat others.
    of_density : bool, default=False
        Whether the bandwidth is that of a density, not of a regression.
    is_integrated : bool, default=True
        Whether the density integrates to 1 over these columns; False for features on which it
        is conditional.
    """
    extent = np.linalg.norm(np.ptp(Z, axis=0))
    if extent == 0:  # all rows are equal, and any scale will do
        return 0.5 * ratio, 2.0 * ratio
    # 1. Compute the distances to the nearest other row, or to a further one if a window needs
    # several rows. They are those between design points, so that repeated rows do not make
    # them 0. Each design point is its own nearest neighbour, which does not count.
    design_points = np.unique(Z, axis=0) if Z.shape[1] > 1 else np.unique(Z)[:, None]
    min_rows = min(min_rows, len(design_points) - 1) if len(design_points) == len(Z) else 1
    distances, _ = KDTree(design_points).query(design_points, k=[min_rows + 1])
    # 2. The smallest scale is a fraction of a quantile of these distances.
    fraction, quantile = _MIN_SCALE if min_rows == 1 else _MIN_SCALE_OF_SEVERAL_ROWS
    min_density_scale = 0.0
    if of_density:
        # If most rows repeat others, the design points are a grid, and a bandwidth below its
        # step would describe the grid, not the distribution.
        if len(design_points) <= len(Z) / 2 and is_integrated:
            fraction = 1.0
        # For a density, the range is also limited by the distance between the quantiles 0.1 and
        # 0.9, on which outliers have no effect.
        width = np.subtract(*np.quantile(Z, [0.9, 0.1])) or extent
        min_density_scale = _MIN_DENSITY_SCALE * width
        extent = min(extent, _MAX_DENSITY_EXTENT * width)
    low = max(
        fraction * ratio * np.quantile(distances, quantile),
        min_density_scale,
        ratio * extent / LARGEST,  # at a smaller scale, squared distances would overflow
    )
    return low, _MAX_SCALE * ratio * extent


def canonical_ratio(kernel):
    """Return the factor on a Gaussian's bandwidth at which this kernel smooths equally.

    It is 1 if the kernel has no canonical bandwidth; see
    :class:`~sklearn_attention.kernels.SmoothingKernel`.
    """
    canonical = getattr(kernel, "canonical_bandwidth", None)
    return 1.0 if canonical is None else canonical / Gaussian().canonical_bandwidth
