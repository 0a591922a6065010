"""The bandwidths of all features, and of a target, that describe the rows best."""

import math
import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.stats.qmc import Halton
from sklearn.utils import check_random_state

from .._columns import Columns
from .._validation import check_choice
from ._density import conditional_likelihood, density_least_squares, density_likelihood
from ._rules import canonical_ratio, feature_spread, rule_bandwidth
from ._search import MAX_SEARCH_ROWS, search_range

CRITERIA = ("likelihood", "least_squares")
# What is tried before the descents: so many common scales of all features, and so many
# points around a rule of thumb, up to this logarithm away from it. From how many of the best
# of either a descent starts.
_SCALES = 16
_POINTS, _AROUND = 16, 1.5
_BEST = 2
_MAX_STEPS = 40
# A kernel of bounded support makes a criterion with kinks and steps, which a descent by
# gradients takes for the bottom: there a compass looks beyond, with steps of these sizes.
_COMPASS = (0.4, 0.2, 0.1, 0.05, 0.02)
_MAX_ROUNDS = 20
# The smallest lambda, as a share of the largest: at 0 itself another level would rule a
# row out altogether.
_LOWEST_LAM = 1e-6


class _Stop(Exception):
    """The caller has seen enough."""


def mixed_rule_bandwidth(X, kernel, rule="scott", *, columns=None, sample_weight=None):
    r"""Bandwidths of numbers and lambdas of categories by a rule of thumb.

    Numeric columns have :func:`rule_bandwidth`. The lambdas shrink at the rate of its
    square, which is the optimal one [1]_:

    .. math:: \lambda_j = \lambda_j^{\max} \min(1, n^{-2/(d+4)})

    with :math:`\lambda_j^{\max}` the lambda at which levels are not told apart, and :math:`d`
    the number of numeric columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    kernel : Kernel
        Of the numeric columns.
    rule : {"scott", "silverman"}, default="scott"
        See :func:`rule_bandwidth`.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights; :math:`n` is their sum.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)

    References
    ----------
    .. [1] Li, Q. and Racine, J. (2003). Nonparametric estimation of distributions with
       categorical and continuous data. Journal of Multivariate Analysis 86, 266-292.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import Columns
    >>> from sklearn_attention.bandwidth import mixed_rule_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0, 0], [1.0, 1], [2.0, 0], [3.0, 1]])
    >>> columns = Columns(("numeric", "unordered"), (None, ("a", "b")))
    >>> mixed_rule_bandwidth(X, Gaussian(), columns=columns).round(3)
    array([0.847, 0.287])
    """
    check_choice("rule", rule, ("scott", "silverman"))
    columns = columns or Columns.numbers(X.shape[1])
    numeric = columns.numeric
    n = len(X) if sample_weight is None else float(np.sum(sample_weight))
    bandwidth = columns.highest_lam * min(1.0, n ** (-2 / (len(numeric) + 4)))
    if numeric:
        bandwidth[numeric] = rule_bandwidth(X[:, numeric], kernel, rule, sample_weight)
    return bandwidth


def density_bandwidth(
    X, kernel, criterion="likelihood",
    *, columns=None, sample_weight=None, random_state=None, observe=None,
):  # fmt: skip
    """Bandwidth of every feature whose density estimate is best by leave-one-out.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows, at least two of positive weight; categories as codes from 0.
    kernel : SmoothingKernel
        Compares each numeric column.
    criterion : {"likelihood", "least_squares"}, default="likelihood"
        See :func:`density_likelihood` and :func:`density_least_squares`.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Non-negative weights.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the 2000 rows to look at where there are more. The bandwidths found are then
        carried over at the rate :math:`n^{-1/(d+4)}`, the lambdas at its square.
    observe : callable, default=None
        Called in place of each evaluation as ``observe(evaluate, bandwidth)``; returns
        ``evaluate(bandwidth)`` and whether to end the search there.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        Of each numeric column the bandwidth, of each categorical one the lambda.
    score : float
        The criterion there, of the rows looked at.

    Warns
    -----
    UserWarning
        If a bandwidth ends at its floor while values of the feature are repeated exactly.

    Notes
    -----
    Common scales of all features are tried first, then L-BFGS-B descends from the best of
    them over the logarithms of the bandwidths with exact gradients. The best bandwidths of
    all that were tried are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import density_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 10.0]
    >>> bandwidth, likelihood = density_bandwidth(X, Gaussian())
    >>> bandwidth.round(1)
    array([0.5, 5.9])
    """
    check_choice("criterion", criterion, CRITERIA)
    evaluate = density_likelihood if criterion == "likelihood" else density_least_squares
    sign = -1.0 if criterion == "likelihood" else 1.0

    def function(rows, bandwidth, weights):
        score, gradient = evaluate(
            rows, kernel, bandwidth, columns=columns, sample_weight=weights
        )
        return sign * score, sign * gradient

    search = _Search(
        X, columns, sample_weight, random_state,
        ratio=np.full(X.shape[1], canonical_ratio(kernel)), name=f"bandwidth={criterion!r}",
        is_rough=math.isfinite(kernel.support),
    )  # fmt: skip
    bandwidth, score = search.run(function, observe)
    volume = search.spread.prod()
    return bandwidth, -score - math.log(volume) if sign < 0 else score / volume


def conditional_bandwidth(
    X, y, kernel, target_kernel,
    *, bandwidth=None, target_bandwidth=None, columns=None,
    sample_weight=None, random_state=None, observe=None,
):  # fmt: skip
    """Bandwidths of features and target whose conditional density is best by leave-one-out.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows, at least two of positive weight; categories as codes from 0.
    y : ndarray of shape (n_samples,)
        Targets.
    kernel : Kernel
        Compares the numeric columns of rows, all at once; positive, and with gradients.
    target_kernel : SmoothingKernel
        Spreads the targets.
    bandwidth : ndarray of shape (n_features,), default=None
        Of the features, if it is not to be searched.
    target_bandwidth : float, default=None
        Of the target, if it is not to be searched.
    columns, sample_weight, random_state, observe
        As for :func:`density_bandwidth`, with the target as one dimension more.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
    target_bandwidth : float
    likelihood : float
        :func:`conditional_likelihood` there, of the rows looked at.

    Warns
    -----
    UserWarning
        As :func:`density_bandwidth`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import conditional_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))  # the second does not matter
    >>> y = X[:, 0] + 0.5 * rng.normal(size=200)
    >>> bandwidth, _, _ = conditional_bandwidth(X, y, Gaussian(), Gaussian())
    >>> bool(bandwidth[1] > 5 * bandwidth[0])
    True
    """
    n_features = X.shape[1]
    columns = columns or Columns.numbers(n_features)
    fixed = np.full(n_features + 1, np.nan)
    if bandwidth is not None:
        fixed[:-1] = bandwidth
    if target_bandwidth is not None:
        fixed[-1] = target_bandwidth
    ratio = np.full(n_features + 1, canonical_ratio(kernel))
    ratio[-1] = canonical_ratio(target_kernel)
    search = _Search(
        np.column_stack([X, y]), columns + Columns.numbers(1), sample_weight, random_state,
        ratio=ratio, fixed=fixed, name="bandwidth='likelihood'",
        is_rough=math.isfinite(kernel.support) or math.isfinite(target_kernel.support),
    )  # fmt: skip

    def function(rows, bandwidth, weights):
        score, gradient = conditional_likelihood(
            rows[:, :-1], rows[:, -1], kernel, bandwidth[:-1], target_kernel, bandwidth[-1],
            columns=columns, sample_weight=weights,
        )  # fmt: skip
        return -score, -gradient

    found, score = search.run(function, observe)
    return found[:-1], float(found[-1]), -score - math.log(search.spread[-1])


class _Search:
    """Descends over the logarithms of bandwidths and the shares of lambdas."""

    def __init__(
        self, X, columns, sample_weight, random_state,
        *, ratio, name, is_rough, fixed=None,
    ):  # fmt: skip
        if sample_weight is not None:
            kept = sample_weight > 0
            X, sample_weight = X[kept], sample_weight[kept]
        n_samples, n_features = X.shape
        if n_samples < 2:
            raise ValueError(
                f"{name} describes each row by the others and needs two rows of positive "
                f"weight, got n_samples={n_samples}: pass a number as bandwidth."
            )
        self.columns = columns or Columns.numbers(n_features)
        self.is_numeric = self.columns.is_numeric
        self.fixed = np.full(n_features, np.nan) if fixed is None else fixed
        self.name, self.is_rough, self.n_samples, self.ratio = name, is_rough, n_samples, ratio
        self.spread = np.where(self.is_numeric, feature_spread(X, sample_weight), 1.0)
        if n_samples > MAX_SEARCH_ROWS:
            random_state = check_random_state(random_state)
            rows = random_state.choice(n_samples, MAX_SEARCH_ROWS, replace=False)
            X = X[rows]
            sample_weight = None if sample_weight is None else sample_weight[rows]
        # In units of the spread, and from the middle, nothing overflows or is rounded off.
        center = np.where(self.is_numeric, X.mean(axis=0), 0.0)
        self.rows, self.weights = (X - center) / self.spread, sample_weight
        self.low, self.high = self._bounds()

    def _bounds(self):
        high = self.columns.highest_lam
        low = _LOWEST_LAM * high
        for j in self.columns.numeric:
            low[j], high[j] = search_range(self.rows[:, [j]], self.ratio[j])
        given = ~np.isnan(self.fixed)
        low[given] = high[given] = (self.fixed / self.spread)[given]
        return low, high

    def run(self, function, observe):
        """Best bandwidths, in the features' own units, and the criterion there."""
        tried = []

        def evaluate(bandwidth):
            value, gradient = function(self.rows, bandwidth / self.spread, self.weights)
            finite = np.isfinite(value) and np.isfinite(gradient).all()
            return (value, gradient) if finite else (np.inf, np.zeros(len(gradient)))

        def objective(point):
            bandwidth = self._bandwidth(point)
            if observe is None:
                (value, gradient), stop = evaluate(bandwidth * self.spread), False
            else:
                (value, gradient), stop = observe(evaluate, bandwidth * self.spread)
            tried.append((value, len(tried), bandwidth))
            if stop:
                raise _Stop
            return value, gradient * np.where(self.is_numeric, bandwidth, self._lam_unit)

        bounds = list(zip(self._point(self.low), self._point(self.high), strict=True))
        try:

            def value(start):
                return objective(self._point(start))[0]

            starts = self._descents(value)
            for start in sorted(starts, key=value)[:_BEST] if self.is_rough else starts:
                _descend(objective, self._point(start), bounds)
            if self.is_rough:
                _, _, bandwidth = min(tried, key=lambda entry: entry[:2])
                _descend(objective, _compass(objective, self._point(bandwidth), bounds), bounds)
        except _Stop:
            pass
        value, _, bandwidth = min(tried, key=lambda entry: entry[:2])
        self._warn_of_copies(bandwidth)
        return bandwidth * self._shrinkage() * self.spread, value

    def _descents(self, evaluate):
        """Where to descend from.

        The rule; a mixture, half way between the rule and no influence at all, since where
        a feature does not matter to a target it is a long way there from elsewhere; the
        best valleys of a common scale; the best of points that are spread around the rule.
        """
        rate = 1 / (self.is_numeric.sum() + 4)
        lam = self.high * len(self.rows) ** (-2 * rate)

        def bounded(scale, lam=lam):
            return np.clip(np.where(self.is_numeric, scale, lam), self.low, self.high)

        rule = bounded(self.ratio * len(self.rows) ** -rate)
        starts = [rule, bounded(np.sqrt(rule * self.high))]
        if self.is_numeric.any():
            ends = self.low[self.is_numeric].min(), self.high[self.is_numeric].max()
            scales = [bounded(scale) for scale in np.geomspace(*ends, _SCALES)]
            values = np.array([evaluate(scale) for scale in scales])
            padded = np.concatenate([[np.inf], values, [np.inf]])
            valleys = (values <= padded[:-2]) & (values <= padded[2:]) & np.isfinite(values)
            best = [k for k in np.argsort(values, kind="stable") if valleys[k]]
            starts += [scales[k] for k in best[:_BEST]]
        if np.isnan(self.fixed).sum() > 1:
            spread = Halton(len(rule), scramble=False).random(_POINTS + 1)[1:]
            points = [
                bounded(rule * np.exp(_AROUND * (2 * share - 1)), share * self.high)
                for share in spread
            ]
            values = np.array([evaluate(point) for point in points])
            starts += [points[k] for k in np.argsort(values, kind="stable")[:_BEST]]
        return starts

    @property
    def _lam_unit(self):
        return np.where(self.high > 0, self.high, 1.0)

    def _point(self, bandwidth):
        logs = np.log(np.where(self.is_numeric, bandwidth, 1.0))
        return np.where(self.is_numeric, logs, bandwidth / self._lam_unit)

    def _bandwidth(self, point):
        scales = np.exp(np.where(self.is_numeric, point, 0.0))
        values = np.where(self.is_numeric, scales, point * self._lam_unit)
        return np.clip(values, self.low, self.high)

    def _shrinkage(self):
        """From the rows looked at to all rows."""
        rate = np.where(self.is_numeric, 1.0, 2.0) / (self.is_numeric.sum() + 4)
        shrinkage = (self.n_samples / len(self.rows)) ** -rate
        return np.where(np.isnan(self.fixed), shrinkage, 1.0)

    def _warn_of_copies(self, bandwidth):
        n = len(self.rows)
        at_floor = (
            self.is_numeric
            & np.isnan(self.fixed)
            & (bandwidth < 1.05 * self.low)
            & np.array([len(np.unique(column)) < n for column in self.rows.T])
        )
        if at_floor.any():
            warnings.warn(
                f"{self.name} ended at its floor in the columns {np.flatnonzero(at_floor)}, "
                f"where some of {n} values repeat others exactly; a copy describes its twin "
                "perfectly, so the floor may be too small: pass a number, or a frame with "
                "such columns as ordered categories.",
                stacklevel=2,
            )


def _descend(objective, point, bounds):
    minimize(
        objective, point, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": _MAX_STEPS, "ftol": 1e-9, "gtol": 1e-6},
    )  # fmt: skip


def _compass(objective, point, bounds):
    """Walk along the axes and the diagonal, with ever smaller steps, while that helps."""
    low, high = np.transpose(bounds)
    ways = np.vstack([np.eye(len(point)), np.ones(len(point))])
    ways = np.concatenate([ways, -ways])
    best, _ = objective(point)
    n_rounds = 0
    for step in _COMPASS:
        improved = True
        while improved and n_rounds < _MAX_ROUNDS:
            n_rounds += 1
            moves = np.clip(point + step * ways, low, high)
            values = [objective(move)[0] for move in moves]
            improved = min(values) < best
            if improved:
                best, point = min(values), moves[int(np.argmin(values))]
    return point
