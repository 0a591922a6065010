"""The bandwidth at which a criterion of the smoother is smallest."""

import functools
import warnings

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state

from .. import attention
from .._validation import check_choice
from ._criteria import SMOOTHER_CRITERIA
from ._minimize import minimize_scale
from ._rules import canonical_ratio, feature_spread

# Up to here every bandwidth on trial is tried on all rows. More rows are looked at through
# a sample of this many first, and then near the bandwidth found there.
MAX_SEARCH_ROWS = 2000
# More rows than this are sampled once and for all; the bandwidth found is carried over at
# the rate n^(-1/(d+4)) at which optimal bandwidths shrink, where the kernel is one of
# distance: for others a bandwidth is no size of neighbourhood.
MAX_KEYS = 20_000
# Pairs of one look at a bandwidth: with many keys, fewer rows are predicted.
_MAX_PAIRS = 5 * 10**7
# From here on counting a feature into bins is faster than a pass over all pairs.
_MANY_ROWS = 200
# How far, in logarithms, the bottom of the curve may be from that of the curve at a glance:
# of the same rows in bins, and of a sample.
_CLOSE, _NEAR = 0.03, 0.4
# Numbers of bins: what most curves need, and what wiggly ones do.
_BINS = 1024, 16_384
# The search starts at this share of the distance to the nearest other place: from there
# down, every row is predicted by its nearest neighbour alone.
_LOWEST = 0.2
# It ends where all rows weigh alike, at this many times the extent of the data.
_HIGHEST = 3.0


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
    error = rows.scores([1.0], residuals=False).left_out[0]
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
    criterion : {"loo", "gcv", "aicc"}, default="loo"
        Leave-one-out error, generalised cross-validation, or the corrected Akaike
        criterion.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. For "gcv" and "aicc" the number of rows is that of rows
        with positive weight, whatever they sum to.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the rows to look at where there are many.
    observe : callable, default=None
        Called for each bandwidth on trial as ``observe(value, bandwidth)``; returns whether
        to end the search there.
    **options
        ``empty`` and ``device`` of :class:`sklearn_attention.attention.LeaveOneOut`.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units.
    value : float
        The criterion at the minimum. With more than 20 000 rows that of a sample, before
        the bandwidth is carried over.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or no bandwidth predicts every row.

    Warns
    -----
    UserWarning
        If the search ends at its floor while rows are repeated exactly: a copy predicts
        its twin perfectly and pulls the bandwidth to 0.

    Notes
    -----
    Up to 2000 rows are looked at as they are. Of more rows a sample of 2000 lays out the
    curve, at bandwidths larger by the rate of optimal ones, and its valleys are followed to
    the bottom on all rows. A single feature is laid out on counts in bins instead.
    """
    check_choice("bandwidth", criterion, SMOOTHER_CRITERIA)
    data = SearchData(X, values, criterion, sample_weight, random_state)
    search = _Search(data, kernel, criterion, degree, options)
    single = data.n_samples > MAX_SEARCH_ROWS

    def evaluate(scales):
        found = search.exact(scales, single=single)
        for k, (scale, value) in enumerate(zip(scales, found, strict=True)):
            if observe is not None and observe(
                value * data.unit(criterion), scale * data.spread
            ):
                found[k + 1 :] = np.inf  # nobody has seen those
                return found, True
        return found, False

    low, high = search_range(data.X / data.spread, canonical_ratio(kernel))
    scale, value = minimize_scale(evaluate, low, high, glances=search.glances, **search.effort)
    if not np.isfinite(value):
        raise ValueError(
            f"bandwidth={criterion!r} found no bandwidth at which empty="
            f"{options.get('empty')!r} leaves every row with a prediction and degree={degree} "
            "leaves degrees of freedom: use empty='nearest', fewer coefficients or more rows, "
            "or pass a number."
        )
    if single:
        value = search.exact(np.array([scale]))[0]
    value *= data.unit(criterion)
    if criterion == "aicc":
        value += 2 * np.log(data.size)
    if scale < low * 1.05:
        warn_of_copies(data.X, data.values, criterion)
    if kernel.decreasing:
        scale *= data.rate
    return scale * data.spread, float(value)


class SearchData:
    """The rows a search looks at: those with weight, sampled where they are very many.

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
    """

    def __init__(self, X, values, criterion, sample_weight, random_state, max_rows=MAX_KEYS):
        if sample_weight is not None:
            kept = sample_weight > 0
            X, values, sample_weight = X[kept], values[kept], sample_weight[kept]
        if len(X) < 2:
            raise ValueError(
                f"bandwidth={criterion!r} predicts each row from the others and needs two "
                f"rows of positive weight, got n_samples={len(X)}: pass a number as bandwidth."
            )
        self.random_state = check_random_state(random_state)
        self.spread = feature_spread(X, sample_weight)
        self.rate = 1.0
        if len(X) > max_rows:
            self.rate = (len(X) / max_rows) ** (-1 / (X.shape[1] + 4))
            rows = self.random_state.choice(len(X), max_rows, replace=False)
            X, values = X[rows], values[rows]
            sample_weight = None if sample_weight is None else sample_weight[rows]
        # By a power of two, so that errors neither overflow nor vanish.
        self.size = 2.0 ** int(np.frexp(np.abs(values).max())[1])
        self.X, self.values, self.sample_weight = X, values / self.size, sample_weight
        self.n_samples = len(X)

    def unit(self, criterion):
        """What errors of the values looked at are multiplied by to be errors as given."""
        with np.errstate(over="ignore", under="ignore"):
            return 1.0 if criterion == "aicc" else np.square(np.float64(self.size))

    def sample(self, n_rows):
        """Positions of at most so many rows; None for all."""
        if n_rows >= self.n_samples:
            return None
        return np.sort(self.random_state.choice(self.n_samples, n_rows, replace=False))


class _Search:
    """A criterion as a function of the scale: exactly, and at a glance."""

    def __init__(self, data, kernel, criterion, degree, options):
        self.data, self.kernel, self.degree, self.options = data, kernel, degree, options
        self.criterion = SMOOTHER_CRITERIA[criterion]
        self.residuals = criterion != "loo"
        rows = data.sample(max(_MAX_PAIRS // data.n_samples, 2))
        self.rows = self._rows(data.X, data.values, data.sample_weight, rows)
        self.effort = {}
        self.glances = self._make_glances()

    def exact(self, scales, single=False):
        scores = self.rows.scores(scales, residuals=self.residuals, single=single)
        # Of the rows that are predicted, to the trace of all.
        share = len(self.rows.rows) / self.data.n_samples
        return self.criterion(scores._replace(trace=scores.trace / share), self.data.n_samples)

    def _rows(self, X, values, sample_weight, rows=None):
        return attention.LeaveOneOut(
            X, values, self.kernel, bandwidth=self.data.spread, degree=self.degree,
            sample_weight=sample_weight, rows=rows, **self.options,
        )  # fmt: skip

    def _make_glances(self):
        data, kernel = self.data, self.kernel
        form = kernel.radial_form(data.X.shape[1])
        one = form is not None and len(form.columns) == 1 and form.rest is None
        if one and kernel.signed is False and data.n_samples >= _MANY_ROWS:
            self.effort = {"reach": _CLOSE, "rounds": 1}
            x = data.X[:, form.columns[0]] / data.spread[form.columns[0]]
            return [functools.partial(self._binned, x, form.kernel, n) for n in _BINS]
        if data.n_samples <= MAX_SEARCH_ROWS:
            return ()
        self.effort = {"reach": _NEAR, "rounds": 2}
        rows = data.sample(MAX_SEARCH_ROWS)
        weights = None if data.sample_weight is None else data.sample_weight[rows]
        sample = self._rows(data.X[rows], data.values[rows], weights)
        wider = 1.0
        if kernel.decreasing:
            wider = (data.n_samples / len(rows)) ** (1 / (data.X.shape[1] + 4))

        def glance(scales):
            scores = sample.scores(scales * wider, residuals=self.residuals, single=True)
            return self.criterion(scores, len(rows))

        return (glance,)

    def _binned(self, x, kernel, n_bins, scales):
        data = self.data
        scores = attention.binned_scores(
            x, data.values, kernel, scales, data.sample_weight,
            degree=self.degree, n_bins=n_bins,
        )  # fmt: skip
        return self.criterion(scores, self.data.n_samples)


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
    low = _LOWEST * ratio * np.quantile(gaps, 0.25)
    return max(low, 1e-6 * extent), _HIGHEST * ratio * extent


def warn_of_copies(X, values, criterion):
    """Warn if rows are repeated, where that has pulled a bandwidth to its floor.

    Parameters
    ----------
    X, values : ndarray of shape (n_samples, n_columns)
    criterion : str
        For the message.
    """
    rows = np.column_stack([X, values])
    n_copies = len(rows) - len(np.unique(rows, axis=0))
    if n_copies:
        warnings.warn(
            f"bandwidth={criterion!r} ended at its floor while {n_copies} of {len(rows)} rows "
            "repeat another exactly; a copy predicts its twin perfectly, so the floor may be "
            "too small: drop the copies (sample_weight can count them) or pass a number.",
            stacklevel=2,
        )
