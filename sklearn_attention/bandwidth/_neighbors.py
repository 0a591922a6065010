"""Bandwidths that reach to the k-th nearest neighbour."""

import numpy as np
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator

from .._column_stats import feature_std, is_outlier
from .._partitions import need_all_rows
from .._validation import check_positive
from ..attention._leave_one_out import LeaveOneOut
from ..kernels._numerics import ROUNDED_UP
from ..kernels._product_kernel import mixed_kernel
from ._criteria import SMOOTHER_CRITERIA, judge
from ._search import (
    MAX_KEYS,
    MAX_SEARCH_ROWS,
    BandwidthChoice,
    BandwidthRule,
    Trials,
    ValueSample,
    rate_lambdas,
)

# Numbers of neighbours that are tried, at most.
_N_CANDIDATES = 60
# Where so many rows are at one place that the k-th neighbour is at distance 0, the bandwidth is
# this share of the data's extent: it separates those rows from all others.
_SAME_PLACE = 1e-6


class _ByNeighbors(BandwidthRule):
    """Bandwidths that are the distance to a neighbour, in units of each feature's spread."""

    def choose(self, rows, kernel, observe=None):
        self._refuse(rows, kernel)
        columns, weights = rows.columns, rows.sample_weight
        # The unit of weights does not matter: rows with positive weight are counted.
        n_rows = len(rows.X) if weights is None else np.count_nonzero(weights)
        lambdas = rate_lambdas(n_rows, columns)
        units = np.where(columns.is_numeric, feature_std(rows.X, weights), lambdas)
        watch = None if observe is None else lambda value, k: observe(value, units, k)
        mixed = mixed_kernel(kernel, columns, units)
        n_neighbors, value = self._neighbors(rows, mixed, watch)
        return BandwidthChoice(units, value, n_neighbors=n_neighbors)

    def _refuse(self, rows, kernel):
        rows.refuse_gap()
        numeric = rows.columns.numeric
        if rows.values is None:
            raise ValueError(
                f"bandwidth={self!r} is only for estimators that average targets, not for "
                "densities: pass a number, or the name of a rule such as 'scott'."
            )
        if rows.needs_several:
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


class AdaptiveBandwidth(_ByNeighbors, BaseEstimator):
    r"""Bandwidth that is the distance of each query to its k-th nearest training row.

    Pass it as `bandwidth` to a smoother if rows are dense in some regions and sparse in others.
    If rows are spread evenly, a fixed bandwidth, which is the default, suits them better.

    .. math:: h(x) = \lVert x - x_{(k)} \rVert

    with :math:`x_{(k)}` the training row that is the :math:`k`-th nearest to the query, in
    units of each feature's spread. It is small where rows are dense and large where they
    are sparse, so that every average is over about as many rows. With a boxcar all
    :math:`k` rows have the same weight, with other compact kernels the last has hardly any.

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

    def _neighbors(self, rows, kernel, observe):
        weights = rows.sample_weight
        # Rows that searches leave out for an outlier are neighbours nevertheless.
        all_count = weights is None or np.any(rows.has_outliers)
        n_keys = len(rows.X) if all_count else np.count_nonzero(weights)
        n_neighbors = check_positive("n_neighbors", self.n_neighbors, integer=True)
        if n_neighbors > n_keys:
            raise ValueError(
                f"n_neighbors={n_neighbors} is more than the {n_keys} training rows of "
                "positive weight: pass at most that many."
            )
        return int(n_neighbors), None


class NeighborSearch(_ByNeighbors):
    """The number of neighbours whose adaptive bandwidth has the least leave-one-out error.

    At most half of the rows are tried, which are no neighbours of themselves; 2000 are scored.
    """

    searches = True

    def __repr__(self):
        return "'knn-loo'"

    def _neighbors(self, rows, kernel, observe):
        sample = ValueSample("knn-loo", rows, MAX_KEYS, fewest=3)
        left_out = LeaveOneOut(
            sample.X,
            sample.values,
            kernel,
            bandwidth=sample.spread,
            sample_weight=sample.sample_weight,
            rows=sample.positions(MAX_SEARCH_ROWS),
            **rows.options,
        )
        max_neighbors = max(len(sample) // 2, 2)
        candidates = np.geomspace(1, max_neighbors, _N_CANDIDATES).astype(int)
        candidates = np.unique(candidates).tolist()
        columns = rows.columns.numeric
        Z = sample.X[:, columns] / sample.spread[columns]
        # The row itself comes first, at no distance.
        distances = neighbor_distances(Z[left_out.rows], Z, candidates[-1] + 1)[:, 1:]
        with Trials("knn-loo", rows, observe) as trials:
            for k in candidates:
                scores = left_out.scores(distances[None, :, k - 1])
                error = judge("loo", scores, len(sample), sample.units.size)[0]
                trials.add(error, k, tie=-k)
                trials.report(sample.in_units(error, "loo"), k)
        return trials.best, sample.in_units(trials.value, "loo")


def neighbor_distances(queries, keys, n_neighbors):
    """Return the distances of queries to their nearest keys, (n_queries, n_neighbors).

    They are positive, even if rows are at one place.
    """
    distances, _ = KDTree(keys).query(queries, k=range(1, n_neighbors + 1))
    is_usual = ~is_outlier(keys)
    low = keys.min(axis=0, where=is_usual, initial=np.inf)
    extent = np.linalg.norm(keys.max(axis=0, where=is_usual, initial=-np.inf) - low) or 1.0
    return np.maximum(distances * ROUNDED_UP, _SAME_PLACE * extent)
