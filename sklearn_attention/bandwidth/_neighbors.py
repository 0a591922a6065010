"""Bandwidths that reach to the k-th nearest neighbour, wherever that is."""

import numpy as np
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator

from .. import attention
from .._validation import check_positive
from ._search import MAX_SEARCH_ROWS, SearchData

# How many numbers of neighbours are tried.
_N_CANDIDATES = 60
# Where so many rows are at one place that the k-th neighbour is no distance away, the
# bandwidth is this share of the data's extent: it tells those rows from all others.
_SAME_PLACE = 1e-6
# A hair more than the distance, so that rounding does not shut the neighbour itself out.
_AND_A_HAIR = 1 + 1e-10


class AdaptiveBandwidth(BaseEstimator):
    r"""A bandwidth that differs from place to place: the distance to a neighbour.

    .. math:: h(x) = \lVert x - x_{(k)} \rVert

    with :math:`x_{(k)}` the training row that is the :math:`k`-th nearest to the query, in
    units of each feature's spread. It is small where rows are dense and large where they
    are sparse, so that every average is over about as many rows. A boxcar gives all
    :math:`k` the same weight, other compact kernels the last hardly any.

    Parameters
    ----------
    n_neighbors : int, default=10
        Which neighbour, :math:`k`. At the training rows themselves, the row is its own
        first.

    See Also
    --------
    sklearn_attention.NadarayaWatsonRegressor : Takes it as ``bandwidth``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention.bandwidth import AdaptiveBandwidth
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [20.0]])
    >>> model = NadarayaWatsonRegressor("boxcar", bandwidth=AdaptiveBandwidth(2))
    >>> model.fit(X, X[:, 0]).predict([[0.4], [13.0]])
    array([ 0.5, 15. ])
    """

    def __init__(self, n_neighbors=10):
        self.n_neighbors = n_neighbors


def neighbor_distances(queries, keys, n_neighbors):
    """Distance of each query to each of its nearest neighbours.

    Parameters
    ----------
    queries : ndarray of shape (n_queries, n_features)
    keys : ndarray of shape (n_keys, n_features)
    n_neighbors : int
        How many, at most all keys.

    Returns
    -------
    distances : ndarray of shape (n_queries, n_neighbors)
        Positive, also where rows are at one place.
    """
    distances, _ = KDTree(keys).query(queries, k=range(1, n_neighbors + 1))
    extent = np.linalg.norm(np.ptp(keys, axis=0)) or 1.0
    return np.maximum(distances * _AND_A_HAIR, _SAME_PLACE * extent)


def select_neighbors(
    X,
    values,
    kernel,
    *,
    columns=None,
    degree=0,
    sample_weight=None,
    random_state=None,
    observe=None,
    **options,
):
    """Number of neighbours whose adaptive bandwidth has the smallest leave-one-out error.

    Parameters
    ----------
    X, values, kernel, degree, sample_weight, random_state
        As for :func:`select_bandwidth`; the kernel is one of distance.
    columns : list of int, default=None
        The columns that distances are measured in; None for all.
    observe : callable, default=None
        Called for each number on trial as ``observe(value, n_neighbors)``; returns whether
        to end the search there.
    **options
        ``empty`` and ``device`` of :class:`sklearn_attention.attention.LeaveOneOut`.

    Returns
    -------
    n_neighbors : int
    value : float
        The mean squared leave-one-out error there; with more than 2000 rows that of
        predicting a sample of them.

    Raises
    ------
    ValueError
        If there are fewer than three rows of positive weight, or no number predicts every
        row.

    Notes
    -----
    A row left out is not its own neighbour. At most half of the rows are tried.
    """
    data = SearchData(X, values, "knn-loo", sample_weight, random_state)
    n = data.n_samples
    if n < 3:
        raise ValueError(
            f"bandwidth='knn-loo' needs three rows of positive weight, got n_samples={n}: "
            "pass a number as bandwidth."
        )
    smoother = attention.LeaveOneOut(
        data.X, data.values, kernel, bandwidth=data.spread, degree=degree,
        sample_weight=data.sample_weight, rows=data.sample(MAX_SEARCH_ROWS), **options,
    )  # fmt: skip
    candidates = np.unique(np.geomspace(1, max(n // 2, 2), _N_CANDIDATES).astype(int)).tolist()
    columns = slice(None) if columns is None else columns
    Z = data.X[:, columns] / data.spread[columns]
    # The row itself comes first, at no distance.
    distances = neighbor_distances(Z[smoother.rows], Z, candidates[-1] + 1)[:, 1:]
    best, lowest = None, np.inf
    for n_neighbors in candidates:
        scores = smoother.scores(distances[None, :, n_neighbors - 1])
        error = float(scores.left_out[0])
        if error < lowest:
            best, lowest = n_neighbors, error
        if observe is not None and observe(data.in_units(error, "loo"), n_neighbors):
            break
    if best is None:
        raise ValueError(
            f"bandwidth='knn-loo' found no number of neighbours at which empty="
            f"{options.get('empty')!r} leaves every row with a prediction: use "
            "empty='nearest' or pass a number."
        )
    return best, data.in_units(lowest, "loo")


def check_neighbors(n_neighbors, n_keys):
    """Return the number of neighbours if there are as many keys, else raise ValueError.

    Parameters
    ----------
    n_neighbors : int
        What the user passed.
    n_keys : int
        Rows of positive weight.

    Returns
    -------
    n_neighbors : int
    """
    check_positive("n_neighbors", n_neighbors, integer=True)
    if n_neighbors > n_keys:
        raise ValueError(
            f"n_neighbors={n_neighbors} is more than the {n_keys} training rows of positive "
            "weight: pass at most that many."
        )
    return int(n_neighbors)
