"""The bandwidth at which a criterion of the smoother is smallest."""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from .. import attention
from .._partitions import in_memory, is_partitioned, partitions
from .._validation import check_choice
from ..attention._algorithms._linear import form_along
from ..kernels import CompactKernel
from ._criteria import SMOOTHER_CRITERIA
from ._minimize import minimize_scale
from ._rules import canonical_ratio, feature_spread

# Where every bandwidth takes a pass over all pairs, more rows than this lay out the curve by a
# sample of this many, and all rows are used near its minima alone.
MAX_SEARCH_ROWS = 2000
# More rows than this are sampled once and for all; the bandwidth found is carried over at
# the rate n^(-1/(d+4)) at which optimal bandwidths shrink, where the kernel is one of
# distance: for others a bandwidth is no size of neighbourhood.
MAX_KEYS = 20_000
# The same where a bandwidth takes time that is linear in the rows, of one or two features.
MAX_KEYS_IN_LINEAR_TIME = {1: 1_000_000, 2: 50_000}
# Of more rows than this nothing but the spread is asked before they are sampled.
MANY_ROWS = 10_000_000
# Pairs of one evaluation of a bandwidth: with many keys, fewer rows are predicted.
_MAX_PAIRS = 5 * 10**7
# How far, in logarithms, the minimum may be from that of a sample.
_NEAR = 0.4
# The search starts at this share of the distance to the nearest other place, below which every
# row is predicted by its nearest neighbour alone, and ends where all rows weigh alike, at this
# many times the extent of the data.
_LOWEST, _HIGHEST = 0.2, 3.0
# Distance of the first bandwidths tried, as logarithms, up to so many rows: the curves of few
# rows of a single feature are bumpy, more so those of polynomials, which extrapolate in sparse
# tails, and those of compact kernels have kinks. By compactness, and for degrees above 0.
_STEPS = {
    (False, False): {500: 0.16, np.inf: 0.35},
    (False, True): {2000: 0.15, np.inf: 0.35},
    (True, False): {500: 0.08, 20_000: 0.15, np.inf: 0.35},
    (True, True): {500: 0.04, 2000: 0.05, 20_000: 0.15, np.inf: 0.35},
}
_STEP_IN_PLANE = 0.25
# Bandwidths that are evaluated together: all at once take as long, and callbacks hear nothing.
_SCALES = 4
# Rows that are equal are copies if so large a share of the different ones have values of
# their own.
_DISTINCT, _FEWEST_DIFFERENT = 0.9, 10
# Errors this small beside the values are rounding.
_ROUNDING = 1e-26
# The curve is flat where its minimum without the penalty takes so many times the degrees of
# freedom; an average of no more than these is the mean.
_FLAT, _NO_DEPENDENCE = 2.0, 1.05
_NARROWEST = (
    "bandwidth={!r} ended at the narrowest bandwidth tried, where rows are predicted by their "
    "nearest neighbours: neighbouring rows may be copies of each other, or their noise "
    "dependent. Drop copies (sample_weight can count them), or pass a number."
)
_MEAN = (
    "bandwidth={!r} ended where all rows weigh alike and predictions are the mean: no "
    "dependence on X was found."
)
_FLAT_MINIMUM = (
    "bandwidth='penalized-loo': the leave-one-out error is flat. It is smallest at {:.0f} "
    "degrees of freedom, and penalised at {:.0f}: rows next to each other may have dependent "
    "noise. The attribute bandwidth_search_ has the whole curve."
)


class BandwidthChoice(NamedTuple):
    """A bandwidth, and what it was chosen from.

    Attributes
    ----------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units.
    value : float
        The criterion there, of a sample if one was drawn.
    results : dict of ndarray
        For every bandwidth that was tried, in ascending order: ``bandwidth``
        (n_tried, n_features), ``criterion``, ``loo_error`` and ``degrees_of_freedom``.
    doubts : list of str
        What users are to be warned of: that the search ended at the narrowest bandwidth, or
        where averages are the mean; or, along a single feature, that the minimum of
        "penalized-loo" is flat, since plain leave-one-out would take more than twice the
        degrees of freedom.
    """

    bandwidth: Any
    value: float
    results: Any
    doubts: Any


def leave_one_out_error(X, values, kernel, bandwidth, *, degree=0, **options):
    r"""Mean squared error of predicting each row from all others.

    .. math:: \text{CV}(h) = \frac{\sum_i w_i \lVert v_i - \hat v_{-i}(x_i) \rVert^2}
                                  {p \sum_i w_i}

    Closed form: no model is fitted again.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    bandwidth : float or ndarray of shape (n_features,)
        In the features' own units.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    **options
        ``sample_weight``, ``empty`` and ``device`` of
        :class:`sklearn_attention.attention.LeaveOneOut`.

    Returns
    -------
    error : float
        Infinite where a row has no neighbours and the policy gives no answer.
    """
    rows = attention.LeaveOneOut(
        X, values, kernel, bandwidth=bandwidth, degree=degree, **options
    )
    error = rows.scores([1.0]).left_out[0]
    return np.inf if np.isnan(error) else float(error)


def select_bandwidth(
    X,
    values,
    kernel,
    criterion="loo",
    *,
    degree=0,
    sample_weight=None,
    random_state=None,
    observe=None,
    standardize=False,
    gap=0,
    **options,
):
    r"""One scale on every feature's spread, at which a criterion is smallest.

    .. math:: h_j = c\, \hat\sigma_j,\quad c = \arg\min_c \text{criterion}(c\, \hat\sigma)

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys, at least two rows of positive weight.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        Leave-one-out error, the same penalised for degrees of freedom, generalised
        cross-validation, or the corrected Akaike criterion.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. For "gcv" and "aicc" the number of rows is that of rows
        with positive weight, whatever they sum to.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the sample where there are many rows.
    observe : callable, default=None
        Called for each bandwidth on trial as ``observe(value, bandwidth)``; returns whether
        to end the search there.
    standardize : bool, default=False
        Whether several columns of values count in units of their own deviation, and the
        criterion with them.
    gap : int, default=0
        How many rows before and after each are left out with it [1]_: for rows in an order in
        which their noise is alike. Of many rows a stretch is drawn.
    **options
        ``empty`` and ``device`` of :class:`sklearn_attention.attention.LeaveOneOut`.

    Returns
    -------
    choice : BandwidthChoice

    Raises
    ------
    ValueError
        If there are fewer than two rows, or no bandwidth predicts every row.

    Notes
    -----
    Equal bandwidths are taken the widest. Rows that repeat others in features and values,
    where nearly all values are distinct, are left out together: a copy would predict its twin
    perfectly. Along a single feature most kernels take linear time, and all rows are used, up
    to a million; with the Gaussian of two features up to 50 000. Otherwise of more than 2000
    rows a sample of 2000 tells first where the minima are, at bandwidths larger by the rate of
    optimal ones, and more than 20 000 are replaced by a sample of these. Of more than ten
    million rows, which may be memory maps, rows that repeat others are looked for in the
    sample alone.

    References
    ----------
    .. [1] Burman, P., Chow, E. and Nolan, D. (1994). A cross-validatory method for dependent
       data. Biometrika 81, 351-358.
    """
    check_choice("bandwidth", criterion, SMOOTHER_CRITERIA)
    linear = form_along(kernel, X.shape[1], degree) is not None and not gap
    most = MAX_KEYS_IN_LINEAR_TIME[min(X.shape[1], 2)] if linear else MAX_KEYS
    data = SearchData(
        X, values, criterion, sample_weight, random_state, most, standardize, in_order=gap > 0
    )
    if data.n_samples < 2 * gap + 2:
        raise ValueError(
            f"gap={gap} leaves out {2 * gap + 1} rows for each, of n_samples={data.n_samples} "
            "of positive weight: pass a smaller gap."
        )
    options |= {"degree": degree, "gap": gap}
    curve = _Curve(data, kernel, criterion, linear, observe, options)
    low, high = search_range(data.X / data.spread, canonical_ratio(kernel))
    scale, value = minimize_scale(curve, low, high, **curve.layout())
    if not np.isfinite(value):
        raise ValueError(
            f"bandwidth={criterion!r} found no bandwidth at which empty="
            f"{options.get('empty')!r} leaves every row with a prediction and degree={degree} "
            "leaves degrees of freedom: use empty='nearest', fewer coefficients or more rows, "
            "or pass a number."
        )
    scales = np.array(sorted(curve.tried))
    columns = np.array([curve.tried[scale] for scale in scales.tolist()]).T
    results = {"bandwidth": scales[:, None] * data.spread}
    results |= zip(("criterion", "loo_error", "degrees_of_freedom"), columns, strict=True)
    # The scale may be rounded otherwise than the one that was tried.
    best = np.abs(scales - scale).argmin()
    doubts = [_NARROWEST.format(criterion)] if scale < 1.05 * low else []
    freedoms, errors = results["degrees_of_freedom"], results["loo_error"]
    if degree == 0 and freedoms[best] < _NO_DEPENDENCE and value > 0:
        doubts.append(_MEAN.format(criterion))
    if criterion == "penalized-loo" and X.shape[1] == 1:
        plain = freedoms[np.flatnonzero(errors == errors.min())[-1]]
        if plain > _FLAT * max(freedoms[best], 2.0):
            doubts.append(_FLAT_MINIMUM.format(plain, freedoms[best]))
    bandwidth = results["bandwidth"][best] * (data.rate if kernel.decreasing else 1.0)
    return BandwidthChoice(bandwidth, float(results["criterion"][best]), results, doubts)


class _Curve:
    """A criterion as a function of the scale, and what it was at all that were tried."""

    def __init__(self, data, kernel, criterion, linear, observe, options):
        self.data, self.kernel, self.criterion = data, kernel, criterion
        self.linear, self.observe, self.options = linear, observe, options
        # Where time is linear in the rows, all of them are predicted.
        rows = None if linear else data.sample(max(_MAX_PAIRS // data.n_samples, 2))
        self.smoother = self._smoother(data.X, data.values, data.sample_weight, rows=rows)
        self.tried = {}

    def __call__(self, scales):
        values = np.full(len(scales), np.inf)  # of those that nobody has seen
        for first in range(0, len(scales), _SCALES):
            own = slice(first, first + _SCALES)
            if self._look(scales[own], values[own]):
                return values, True
        return values, False

    def _look(self, scales, values):
        """Fill in the values at some scales; tell whether to stop."""
        data, scores = self.data, self.smoother.scores(scales)
        # Of the rows that are predicted, to the trace of all.
        share = len(self.smoother.rows) / data.n_samples
        scores = scores._replace(trace=scores.trace / share)
        for k, value in enumerate(self._values(scores, data.n_samples)):
            values[k] = value
            told = data.in_units(value, self.criterion)
            error = data.in_units(scores.left_out[k], "loo")
            self.tried[float(scales[k])] = (told, error, scores.trace[k])
            if self.observe is not None and self.observe(told, scales[k] * data.spread):
                return True
        return False

    def layout(self):
        """Options of :func:`minimize_scale`: steps, or a sample that lays out the curve."""
        data, n_features = self.data, self.data.X.shape[1]
        if self.linear and n_features > 1:
            return {"step": _STEP_IN_PLANE}
        if self.linear:
            compact = isinstance(self.kernel, CompactKernel)
            steps = _STEPS[compact, self.options["degree"] > 0]
            return {"step": next(step for n, step in steps.items() if data.n_samples <= n)}
        if data.n_samples <= MAX_SEARCH_ROWS or self.options["gap"]:
            return {}
        rows = data.sample(MAX_SEARCH_ROWS)
        weights = None if data.sample_weight is None else data.sample_weight[rows]
        sample = self._smoother(data.X[rows], data.values[rows], weights)
        wider = (data.n_samples / len(rows)) ** (1 / (n_features + 4))
        wider = wider if self.kernel.decreasing else 1.0

        def approximate(scales):
            return self._values(sample.scores(scales * wider, single=True), len(rows))

        return {"approximate": approximate, "error": _NEAR}

    def _smoother(self, X, values, sample_weight, **options):
        options |= {"bandwidth": self.data.spread, "sample_weight": sample_weight}
        return attention.LeaveOneOut(X, values, self.kernel, **options, **self.options)

    def _values(self, scores, n_samples):
        """The criterion, where what is left of exact predictions is nothing at all."""
        exact = scores.left_out < _ROUNDING
        left_out = np.where(exact, 0.0, scores.left_out)
        # Criteria take its logarithm.
        fitted = np.where(exact, np.finfo(np.float64).tiny, scores.fitted)
        scores = scores._replace(left_out=left_out, fitted=fitted)
        return SMOOTHER_CRITERIA[self.criterion](scores, n_samples)


class SearchData:
    """Rows that a search evaluates: those with weight, sampled where they are very many.

    Parameters
    ----------
    X, values, sample_weight : ndarray or None
        As for :func:`select_bandwidth`.
    criterion : str
        For messages.
    random_state : int, numpy.random.RandomState or None
        Draws the sample.
    max_rows : int, default=20000
        How many rows are not too many.
    standardize : bool, default=False
        Whether several columns of values are divided by their deviations.
    in_order : bool, default=False
        Whether rows keep their neighbours: copies are not joined then, and one stretch of
        rows is the sample.
    """

    def __init__(
        self, X, values, criterion, sample_weight, random_state, max_rows=MAX_KEYS,
        standardize=False, in_order=False,
    ):  # fmt: skip
        self.random_state = check_random_state(random_state)
        self.rate, spread = 1.0, None
        if are_sampled(X):
            spread = feature_spread(X, sample_weight)
            X, values, sample_weight = self._draw(max_rows, in_order, X, values, sample_weight)
        if sample_weight is not None:
            kept = sample_weight > 0
            X, values, sample_weight = X[kept], values[kept], sample_weight[kept]
        if len(X) < 2:
            raise ValueError(
                f"bandwidth={criterion!r} predicts each row from the others and needs two "
                f"rows of positive weight, got n_samples={len(X)}: pass a number as bandwidth."
            )
        self.spread = feature_spread(X, sample_weight) if spread is None else spread
        if not in_order:
            X, values, sample_weight = _joined(X, values, sample_weight)
        if len(X) > max_rows:
            X, values, sample_weight = self._draw(max_rows, in_order, X, values, sample_weight)
        # By a power of two, so that errors neither overflow nor vanish.
        self.size = 2.0 ** int(np.frexp(np.abs(values).max())[1])
        values = values / self.size
        if standardize and values.shape[1] > 1:
            values, self.size = values / feature_spread(values, sample_weight), 1.0
        self.X, self.values, self.sample_weight = X, values, sample_weight
        self.n_samples = len(X)

    def _draw(self, n_rows, in_order, X, values, sample_weight):
        """Sample of the rows, or a stretch of them; how bandwidths go from there to all."""
        n_rows = min(n_rows, len(X))
        self.rate = (len(X) / n_rows) ** (-1 / (X.shape[1] + 4))
        tables = X, values, sample_weight
        if not in_order:
            return draw(n_rows, self.random_state, *tables)
        first = self.random_state.randint(len(X) - n_rows + 1)
        rows = slice(first, first + n_rows)
        return in_memory(*(None if x is None else x[rows] for x in tables))

    def in_units(self, value, criterion):
        """A criterion of the values in the search as one of the values as given."""
        if criterion == "aicc":
            return float(value + 2 * np.log(self.size))
        with np.errstate(over="ignore", under="ignore"):
            return float(value * np.square(np.float64(self.size)))

    def sample(self, n_rows):
        """Positions of at most so many rows; None for all."""
        if n_rows >= self.n_samples:
            return None
        return draw_rows(self.n_samples, n_rows, self.random_state)


def are_sampled(X):
    """Whether nothing but the spread is asked of rows before some of them are drawn.

    Parameters
    ----------
    X : ndarray or dask.array.Array of shape (n_samples, n_features)

    Returns
    -------
    sampled : bool
        True for very many rows, and for any in partitions.
    """
    return is_partitioned(X) or len(X) > MANY_ROWS


def draw(n_rows, random_state, *tables):
    """The same rows of some tables, at random, in memory.

    Parameters
    ----------
    n_rows : int
        How many to draw; at most all.
    random_state : numpy.random.RandomState
    *tables : ndarray, dask.array.Array or None
        Of as many rows each.

    Returns
    -------
    tables : tuple of ndarray or None
    """
    n_samples = len(tables[0])
    rows = draw_rows(n_samples, min(n_rows, n_samples), random_state)
    if not is_partitioned(*tables):
        return tuple(None if x is None else x[rows] for x in tables)
    import dask

    # Partitions draw their own, so that no positions travel.
    sizes = next(x for x in tables if is_partitioned(x)).chunks[0]
    counts = np.diff(np.searchsorted(rows, np.cumsum((0, *sizes))))
    seeds = random_state.randint(2**31, size=len(counts))
    found = dask.compute(*(
        dask.delayed(_drawn)(count, seed, *own)
        for count, seed, own in zip(counts, seeds, partitions(*tables), strict=True)
    ))  # fmt: skip
    return tuple(
        None if own[0] is None else np.concatenate(own) for own in zip(*found, strict=True)
    )


def _drawn(count, seed, *tables):
    random_state = np.random.RandomState(seed)
    n_samples = next(len(x) for x in tables if x is not None)
    rows = draw_rows(n_samples, count, random_state)
    return [None if x is None else x[rows] for x in tables]


def draw_rows(n_samples, n_rows, random_state):
    """Ascending positions of some rows, in the memory that these take.

    Parameters
    ----------
    n_samples, n_rows : int
        How many rows there are, and how many to draw.
    random_state : numpy.random.RandomState

    Returns
    -------
    rows : int ndarray of shape (n_rows,)
    """
    rows = sample_without_replacement(n_samples, n_rows, random_state=random_state)
    return np.sort(rows)


def search_range(Z, ratio):
    """Smallest and largest scale worth trying.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Keys in units of each feature's spread.
    ratio : float
        Widening of the kernel against a Gaussian.

    Returns
    -------
    low, high : float
        Floor and ceiling of the search. The floor is set by the distance between
        different places, so that repeated rows cannot pull it to 0.
    """
    extent = np.linalg.norm(np.ptp(Z, axis=0))
    if extent == 0:
        return 0.5 * ratio, 2.0 * ratio
    if Z.shape[1] == 1:
        steps = np.diff(np.unique(Z))
        gaps = np.minimum(np.append(steps, np.inf), np.append(np.inf, steps))
    else:
        places = np.unique(Z, axis=0)
        gaps = KDTree(places).query(places, k=2)[0][:, 1]
    return _LOWEST * ratio * np.quantile(gaps, 0.25), _HIGHEST * ratio * extent


def _joined(X, values, sample_weight):
    """Rows that repeat others as one with their weight, unless values are classes or counts.

    Where most values are distinct, a row that repeats another in all its columns is a copy.
    """
    if len(np.unique(X[:, 0])) == len(X):
        return X, values, sample_weight
    rows, place, counts = np.unique(
        np.column_stack([X, values]), axis=0, return_inverse=True, return_counts=True
    )
    if len(rows) == len(X) or len(rows) < _FEWEST_DIFFERENT:
        return X, values, sample_weight
    if len(np.unique(values, axis=0)) < _DISTINCT * len(rows):
        return X, values, sample_weight
    if sample_weight is not None:
        counts = np.bincount(place.ravel(), sample_weight)
    n_features = X.shape[1]
    return rows[:, :n_features], rows[:, n_features:], counts.astype(np.float64)
