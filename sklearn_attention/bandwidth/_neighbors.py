"""Adaptive bandwidths: the distance of a query to its k-th nearest training row.

Distances are computed in the numeric columns, each divided by its standard deviation.
"""

from abc import abstractmethod

import numpy as np
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator

from .._column_stats import feature_std, is_outlier
from .._partitions import need_all_rows
from .._validation import check_positive
from ..attention._leave_one_out import LeaveOneOut
from ..kernels._numerics import ROUNDED_UP
from ..kernels._product_kernel import mixed_kernel
from ._criteria import SMOOTHER_CRITERIA, evaluate_criterion
from ._samples import ValueSample
from ._search import (
    MAX_KEYS,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    BandwidthRule,
    Trials,
    rule_lambdas,
)

# Maximum number of candidates for the number of neighbours.
_MAX_CANDIDATES = 60
# Smallest distance, as a fraction of the extent of the data. If so many rows are equal that the
# k-th neighbour is at distance 0, it separates these rows from all others.
_MIN_DISTANCE = 1e-6


class _NeighborRule(BandwidthRule):
    """Base class of the rules that choose the number of neighbours of an adaptive bandwidth."""

    def choose(self, rows, kernel, observe=None):
        """Return the BandwidthChoice for Rows, with a number of neighbours.

        Its `bandwidth` (n_columns,) has the standard deviations of numeric columns, in which
        distances are measured, and the lambdas of categories.
        """
        self._refuse_unsupported(rows, kernel)
        columns, weights = rows.columns, rows.sample_weight
        # Lambdas do not depend on the unit of the weights, since rows of positive weight are
        # counted.
        n_rows = len(rows.X) if weights is None else np.count_nonzero(weights)
        lambdas = rule_lambdas(n_rows, columns)
        # The standard deviations of numeric columns, and the lambdas of categories.
        units = np.where(columns.is_numeric, feature_std(rows.X, weights), lambdas)

        def observe_neighbors(value, n_neighbors):
            """Call `observe` with the units, in place of a bandwidth, and `n_neighbors`."""
            return observe(value, units, n_neighbors)

        # The kernel of all columns, with kernels of the lambdas for categories.
        mixed = mixed_kernel(kernel, columns, units)
        callback = None if observe is None else observe_neighbors
        n_neighbors, value = self._choose_neighbors(rows, mixed, callback)
        return BandwidthChoice(units, value, n_neighbors=n_neighbors)

    @abstractmethod
    def _choose_neighbors(self, rows, kernel, observe):
        """Return the number of neighbours, and the value of the criterion or None.

        The kernel compares all columns. ``observe(value, n_neighbors)``, or None, is called for
        each number that is tried.
        """

    def _refuse_unsupported(self, rows, kernel):
        """Raise ValueError for rows, options or kernels that have no adaptive bandwidth.

        These are rows with a `gap`, without targets or in partitions of Dask, a bandwidth of
        each feature, and kernels that are no function of a distance.
        """
        rows.refuse_gap()
        numeric = rows.columns.numeric
        if rows.values is None:
            raise ValueError(
                f"bandwidth={self!r} is only for estimators that average targets, not for "
                "densities: pass a number, or the name of a rule such as 'scott'."
            )
        if rows.is_per_feature:
            raise ValueError(
                f"per_feature=True has no meaning with bandwidth={self!r}, which is one "
                "distance for all features, each divided by its standard deviation: pass "
                f"per_feature=False, or one of {', '.join(SMOOTHER_CRITERIA)} as bandwidth."
            )
        rules = ", ".join(("scott", "silverman", *SMOOTHER_CRITERIA))
        need_all_rows(
            f"distances to neighbours (bandwidth={self!r})",
            rows.X,
            remedy=f"pass a number, or one of {rules} as bandwidth",
        )
        if not numeric or kernel.radial_form(len(numeric)) is None:
            raise ValueError(
                f"bandwidth={self!r} needs distances, but kernel={kernel!r} has none on these "
                f"{rows.X.shape[1]} columns: choose a radial kernel such as 'gaussian', and "
                "pass at least one numeric column."
            )


class AdaptiveBandwidth(_NeighborRule, BaseEstimator):
    r"""Bandwidth that is the distance of each query to its k-th nearest training row.

    Pass it as `bandwidth` to a smoother if rows are dense in some regions and sparse in others.
    If rows are spread evenly, a fixed bandwidth, which is the default, suits them better.

    .. math:: h(x) = \lVert x - x_{(k)} \rVert

    with :math:`x_{(k)}` the training row that is the :math:`k`-th nearest to the query, where
    each feature is divided by its standard deviation. It is small where rows are dense and
    large where they are sparse, so that every average is over about as many rows. With a boxcar
    all :math:`k` rows have the same weight; with other compact kernels the last one has hardly
    any.

    Parameters
    ----------
    n_neighbors : int, default=10
        The neighbour :math:`k` whose distance is the bandwidth. A training row is its own
        first neighbour.

    See Also
    --------
    sklearn_attention.NadarayaWatsonRegressor : Takes it as ``bandwidth``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention import AdaptiveBandwidth
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [20.0]])
    >>> model = NadarayaWatsonRegressor("boxcar", bandwidth=AdaptiveBandwidth(2))
    >>> model.fit(X, X[:, 0]).predict([[0.4], [13.0]])
    array([ 0.5, 15. ])
    """

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def _choose_neighbors(self, rows, kernel, observe):
        """Return the parameter `n_neighbors`, and None; raise ValueError with fewer rows."""
        weights = rows.sample_weight
        # Rows of weight 0 are no neighbours, unless the weight is 0 only because of an outlier.
        are_all_neighbors = weights is None or np.any(rows.has_outliers)
        n_keys = len(rows.X) if are_all_neighbors else np.count_nonzero(weights)
        n_neighbors = check_positive("n_neighbors", self.n_neighbors, integer=True)
        if n_neighbors > n_keys:
            raise ValueError(
                f"n_neighbors={n_neighbors} is more than the {n_keys} training rows of "
                "positive weight: pass at most that many."
            )
        return int(n_neighbors), None


class NeighborSearch(_NeighborRule):
    """The number of neighbours with the smallest leave-one-out error.

    At most `MAX_SEARCH_ROWS` rows are predicted. A predicted row is not its own neighbour. The
    largest number that is tried is half the number of rows.
    """

    searches = True

    def __repr__(self):
        return "'knn-loo'"

    def _choose_neighbors(self, rows, kernel, observe):
        """Return the best number of neighbours, and its mean squared leave-one-out error."""
        # 1. Choose candidates for the number of neighbours, from 1 to half the number of rows.
        # The sample has at most MAX_KEYS rows, from which others are predicted.
        sample = ValueSample("knn-loo", rows, MAX_KEYS, min_rows=3)
        max_neighbors = max(len(sample) // 2, 2)
        candidates = np.geomspace(1, max_neighbors, _MAX_CANDIDATES).astype(int)
        candidates = np.unique(candidates).tolist()
        # `bandwidth` is the unit of distances. So the scale of a row, a factor on the bandwidth
        # of the row, is its distance to the k-th neighbour.
        leave_one_out = LeaveOneOut(
            sample.X,
            sample.values,
            kernel,
            bandwidth=sample.std,
            sample_weight=sample.sample_weight,
            rows=sample.positions(MAX_SEARCH_ROWS),
            **rows.options,
        )
        # 2. Compute the distances of the predicted rows to their neighbours. The nearest one is
        # the row itself.
        columns = rows.columns.numeric
        Z = sample.X[:, columns] / sample.std[columns]
        distances = neighbor_distances(Z[leave_one_out.rows], Z, candidates[-1] + 1)[:, 1:]
        # 3. Evaluate the candidates. Of equally good ones the largest is taken. `size` is the
        # largest absolute value of the scaled targets; errors far below its square are rounding
        # errors.
        size = sample.units.size
        with Trials("knn-loo", rows, observe) as trials:
            for k in candidates:
                # Scales are (1, n_rows): one for each predicted row. So there is one error.
                scores = leave_one_out.scores(distances[None, :, k - 1])
                (error,) = evaluate_criterion("loo", scores, len(sample), size)
                trials.add(error, k, tie=-k)
                # The callback gets the error of the targets in their own unit.
                trials.report(sample.restore_criterion(error, "loo"), k)
        return trials.best, sample.restore_criterion(trials.value, "loo")


def neighbor_distances(queries, keys, n_neighbors):
    """Compute the distances of queries to their nearest keys, (n_queries, n_neighbors).

    The distances of a query are in ascending order. They are positive even if a key equals the
    query.
    """
    distances, _ = KDTree(keys).query(queries, k=range(1, n_neighbors + 1))
    is_typical = ~is_outlier(keys)  # outliers do not count in the extent
    low = keys.min(axis=0, where=is_typical, initial=np.inf)
    high = keys.max(axis=0, where=is_typical, initial=-np.inf)
    extent = np.linalg.norm(high - low) or 1.0
    # The factor, which is slightly above 1, keeps the k-th neighbour within the support of a
    # compact kernel. The minimum distance separates equal rows from all others.
    return np.maximum(distances * ROUNDED_UP, _MIN_DISTANCE * extent)
