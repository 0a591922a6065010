"""One bandwidth for every feature, and the lambda of every category, by gradients."""

import math

import numpy as np
from scipy.optimize import minimize

from .. import attention
from .._columns import Columns
from .._validation import check_choice
from ..kernels import CompactKernel, Gaussian
from ._criteria import SMOOTHER_CRITERIA, criterion_slopes
from ._rules import canonical_ratio
from ._search import MAX_SEARCH_ROWS, SearchData, search_range

# Common scales tried before the descents, which start from the best of them, from a wider one,
# from others drawn about it, and from it without each feature in turn.
_N_SCALES = 8
_WIDER, _N_RANDOM, _JITTER, _OUT_OF_SIGHT = 3.0, 1, 0.7, 30.0
# Steps of every descent, and of the one from the best point.
_FIRST_STEPS, _MAX_STEPS = 8, 200
# What stands for infinity in a descent, which cannot step back from there.
_CLIFF = 1e100
# A feature this many times wider than its extent makes no difference.
_IRRELEVANT = 1e3
# A category's worth is the weight of a row of another level beside one of the same.
_LOWEST_WORTH, _FIRST_WORTH = 1e-6, 0.3
# Leaving a feature out may cost this share of the criterion's size.
_NO_LOSS = 1e-6


class _Stop(Exception):
    """The caller has seen enough."""


def select_bandwidths(
    X,
    values,
    kernel,
    criterion="loo",
    *,
    columns=None,
    per_feature=True,
    degree=0,
    sample_weight=None,
    random_state=None,
    observe=None,
    empty="nearest",
):
    r"""Bandwidth of each feature and lambda of each category by a criterion.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares the numeric columns.
    criterion : {"loo", "penalized-loo", "gcv", "aicc"}, default="loo"
        See :func:`select_bandwidth`.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    per_feature : bool, default=True
        Whether every number has its own bandwidth, or all share one scale on their spread.
    degree, sample_weight, random_state, observe, empty
        As for :func:`select_bandwidth`.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        Bandwidths of the numbers and lambdas of the categories.
    value : float
        The criterion at the minimum, of the sample if one is drawn.
    relevance : ndarray of shape (n_features,)
        See Notes.

    Raises
    ------
    ValueError, TypeError
        As :func:`select_bandwidth`; if the kernel has no gradient.

    Notes
    -----
    The criterion's exact gradient in the logarithms drives L-BFGS-B from several starts. A
    feature whose bandwidth may be as large as a thousand times its extent at no loss gets
    that: the criterion cannot see it. With more than 2000 rows a sample of these is used, and
    the bandwidths are carried over at the rate :math:`n^{-1/(d+4)}`, lambdas at its square.

    The relevance of a feature lies between 0 (differences make no difference) and 1:
    :math:`1 - \exp(-\hat\sigma_j^2 / h_j^2)`, what a Gaussian kernel takes off for the
    typical difference of two rows; for categories, what it takes off for the next level.
    """
    check_choice("bandwidth", criterion, SMOOTHER_CRITERIA)
    columns = columns or Columns.numbers(X.shape[1])
    data = SearchData(X, values, criterion, sample_weight, random_state, MAX_SEARCH_ROWS)
    options = {"degree": degree, "sample_weight": data.sample_weight, "empty": empty}
    common = (data, criterion, options)
    space = _Space(data, columns, per_feature, canonical_ratio(kernel))
    descent = _Descent(space, kernel, *common, observe)
    try:
        descent.run(_starts(space, kernel, *common))
    except _Stop:
        pass
    if not np.isfinite(descent.value):
        raise ValueError(
            f"bandwidth={criterion!r} found no bandwidths at which empty={empty!r} leaves "
            f"every row with a prediction and degree={degree} leaves degrees of freedom: use "
            "empty='nearest', fewer coefficients or more rows, or pass numbers."
        )
    bandwidth = space.bandwidth(descent.point)
    if kernel.decreasing:
        bandwidth[space.numeric] *= data.rate
    bandwidth[space.categorical] *= data.rate**2
    value = data.in_units(descent.value, criterion)
    return bandwidth, value, space.relevance(descent.point)


def _starts(space, kernel, *common):
    """Points to start from, the most promising first."""
    probe = _Descent(space, kernel, *common)
    if isinstance(kernel, CompactKernel) and space.numeric:
        # The derivatives of a compact kernel are blind to rows beyond its edge, and those
        # of a step see nothing at all: a Gaussian finds the way.
        gaussian = _Space(space.data, space.columns, space.per_feature, 1.0)
        guide = _Descent(gaussian, Gaussian(), *common)
        guide.run(_starts(gaussian, Gaussian(), *common))
        if guide.point is None:
            return []
        start, before = space.widen(guide.point, canonical_ratio(kernel)), None
        # Up to where every row has neighbours, if `empty` demands that.
        while not np.isfinite(probe.value_at(start)) and not np.array_equal(start, before):
            start, before = space.widen(start, 2.0), start
        return [start, space.widen(start, 2.0), *space.without_each(start)]
    scales = np.geomspace(space.low, space.high, _N_SCALES)
    scales = scales[np.argsort([probe.value_at(space.common(scale)) for scale in scales])]
    best = space.common(scales[0])
    wider = space.widen(best, _WIDER)
    draws = space.data.random_state.normal(scale=_JITTER, size=(_N_RANDOM, len(best)))
    drawn = [space.clip(best + draw) for draw in draws]
    return [best, wider, *drawn, *space.without_each(best)]


class _Space:
    """Points of the search: logarithms of scales on the spread, and of the worths."""

    def __init__(self, data, columns, per_feature, ratio):
        self.data, self.columns, self.per_feature = data, columns, per_feature
        self.numeric, self.categorical = columns.numeric, columns.categorical
        self.spread, self.ratio = data.spread[self.numeric], ratio
        self.constant = np.ptp(data.X[:, self.numeric], axis=0) == 0
        Z = data.X[:, self.numeric] / self.spread
        n_numeric = len(self.numeric)
        self.low, self.high = search_range(Z, ratio) if n_numeric else (1.0, 1.0)
        # Which numbers have which scale.
        self.has = np.eye(n_numeric) if per_feature else np.ones((n_numeric, 1))[:, :n_numeric]
        self.n_scales = self.has.shape[1]
        ends = [(self.low, self.high)] * self.n_scales
        if per_feature:
            ends = [search_range(column[:, None], ratio) for column in Z.T]
        lowest, highest = np.reshape(ends, (-1, 2)).T
        widest = highest * (_IRRELEVANT if per_feature else 1.0)
        worths = np.full(len(self.categorical), _LOWEST_WORTH)
        self.lowest = np.log(np.append(lowest, worths))
        self.highest = np.log(np.append(widest, np.ones_like(worths)))

    def common(self, scale):
        """The point at which all bandwidths are a scale times the spread."""
        worths = np.full(len(self.categorical), math.log(_FIRST_WORTH))
        return self.clip(np.append(np.full(self.n_scales, math.log(scale)), worths))

    def widen(self, point, factor):
        point = point.copy()
        point[: self.n_scales] += math.log(factor)
        return self.clip(point)

    def without_each(self, point):
        """The point with one feature after the other out of sight."""
        if self.n_scales < 2:
            return []
        out_of_sight = np.log(_OUT_OF_SIGHT) * np.eye(len(point))[: self.n_scales]
        return [self.clip(point + move) for move in out_of_sight]

    def clip(self, point):
        return np.clip(point, self.lowest, self.highest)

    def split(self, point):
        """Logarithms of the bandwidths and of the worths."""
        scales, worths = point[: self.n_scales], point[self.n_scales :]
        return np.log(self.spread) + self.has @ scales, worths

    def gather(self, gradient):
        """Derivatives along the point from those along bandwidths and worths."""
        n_numeric = len(self.numeric)
        return np.append(gradient[:n_numeric] @ self.has, gradient[n_numeric:])

    def bandwidth(self, point):
        """Bandwidths and lambdas of all columns."""
        log_bandwidth, worths = self.split(point)
        bandwidth = np.empty(len(self.columns.kinds))
        bandwidth[self.numeric] = np.exp(log_bandwidth)
        for j, worth in zip(self.categorical, np.exp(worths), strict=True):
            others = max(self.columns.n_levels[j], 2) - 1
            unordered = self.columns.kinds[j] == "unordered"
            bandwidth[j] = worth * others / (1 + worth * others) if unordered else worth
        return bandwidth

    def relevance(self, point):
        log_bandwidth, worths = self.split(point)
        relevance = np.empty(len(self.columns.kinds))
        width = np.exp(log_bandwidth) / (self.ratio * self.spread)
        relevance[self.numeric] = np.where(self.constant, 0.0, -np.expm1(-(width**-2.0)))
        relevance[self.categorical] = 1 - np.exp(worths)
        return relevance


class _Descent:
    """Descents from several starts, of which the best point that was tried is kept."""

    def __init__(self, space, kernel, data, criterion, options, observe=None):
        self.data, self.space, self.criterion, self.observe = data, space, criterion, observe
        self.smoother = attention.LeaveOneOutGradient(
            data.X, data.values, kernel, space.columns.kinds, **options
        )
        self.point, self.value = None, math.inf

    def run(self, starts):
        for start in starts:
            self._descend(start, _FIRST_STEPS)
        if self.point is None:
            return
        self._descend(self.point, _MAX_STEPS)
        if self.space.per_feature:
            self._leave_out_features()

    def value_at(self, point):
        """The criterion at a point."""
        return self._evaluate(point)[0]

    def _evaluate(self, point):
        """The criterion at a point, and what its gradient is made of."""
        scores, pull = self.smoother(*self.space.split(point))
        value = float(SMOOTHER_CRITERIA[self.criterion](scores, self.data.n_samples))
        value = math.inf if math.isnan(value) else value
        if value < self.value:
            self.point, self.value = point.copy(), value
        return value, scores, pull

    def _with_gradient(self, point):
        value, scores, pull = self._evaluate(point)
        if not math.isfinite(value):
            return _CLIFF, np.zeros_like(point)
        if self.observe is not None:
            told = self.data.in_units(value, self.criterion)
            if self.observe(told, self.space.bandwidth(point)):
                raise _Stop
        slopes = criterion_slopes(self.criterion, scores, self.data.n_samples)
        return value, self.space.gather(pull(slopes))

    def _descend(self, start, n_steps):
        bounds = np.column_stack([self.space.lowest, self.space.highest])
        minimize(
            self._with_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": n_steps, "ftol": 1e-10, "gtol": 1e-12},
        )  # fmt: skip

    def _leave_out_features(self):
        """Widen for good what may be wide at no loss."""
        for j in range(len(self.point)):
            trial, value = self.point.copy(), self.value
            trial[j] = self.space.highest[j]
            size = 1.0 if self.criterion == "aicc" else abs(value)
            if self.value_at(trial) <= value + _NO_LOSS * size:
                self.point, self.value = trial, min(self.value, value)
