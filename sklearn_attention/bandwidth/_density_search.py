"""The bandwidths of all features, and of a target, that describe the rows best."""

import math
import warnings

import numpy as np
from scipy.optimize import minimize
from scipy.stats.qmc import Halton
from sklearn.utils import check_random_state

from .._columns import Columns
from .._validation import check_choice
from ._density import ConditionalLikelihood, DensityLeastSquares, DensityLikelihood
from ._minimize import minimize_scale
from ._rules import canonical_ratio, feature_spread, rule_bandwidth
from ._search import MAX_SEARCH_ROWS, are_sampled, draw

CRITERIA = ("likelihood", "least_squares")
# What is tried before the descents: so many common scales of all features, and so many
# points around a rule of thumb, up to this logarithm away from it. From how many of the best
# of either a descent starts.
_SCALES = 16
_POINTS, _AROUND = 16, 1.5
_BEST = 2
_MAX_STEPS = 40
# Descents that come this near to where another ended, in logarithms, end there too.
_SAME = 0.05
# A kernel of bounded support makes a criterion with kinks and steps, which a descent by
# gradients takes for the bottom: there Powell's method looks beyond, along so many rounds.
_ROUNDS = 4
# Distance, as logarithms, of the first bandwidths tried in linear time, and that with more
# than `MAX_SEARCH_ROWS`, whose curves are smoother.
_STEP, _LONG_STEP = 0.15, 0.35
# More rows than this are sampled even where the criterion takes linear time.
MAX_LINE_ROWS = 100_000
# The search starts at this share of the distance to the nearest other place, at least at
# this one of the width of the data, and ends at this many times their extent.
_LOWEST, _NARROWEST, _HIGHEST = 0.2, 1e-6, 3.0
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
    bandwidth = columns.highest_lam
    if columns.categorical:
        n = len(X) if sample_weight is None else float(np.sum(sample_weight))
        bandwidth *= min(1.0, n ** (-2 / (len(numeric) + 4)))
    if numeric:
        X = X[:, numeric] if columns.categorical else X
        bandwidth[numeric] = rule_bandwidth(X, kernel, rule, sample_weight)
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
        See :class:`DensityLikelihood` and :class:`DensityLeastSquares`.
    columns : sklearn_attention.Columns, default=None
        What each column is; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Non-negative weights.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the 2000 rows to look at where there are more, or 100 000 if the criterion
        takes linear time. The bandwidths found are then carried over at the rate
        :math:`n^{-1/(d+4)}`, the lambdas at its square.
    observe : callable, default=None
        Called for each bandwidth on trial as ``observe(score, bandwidth)``; returns whether
        to end the search there.

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
    Where the criterion takes linear time, it is laid out on a grid, which is made finer in
    its valleys. Otherwise common scales of all features are tried first, then L-BFGS-B
    descends from the best of them over the logarithms of the bandwidths with exact
    gradients, and Powell's method follows where the kernel is of bounded support. The best
    bandwidths of all that were tried are returned.

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
    columns = columns or Columns.numbers(X.shape[1])
    search = _Search(
        X, columns, sample_weight, random_state,
        ratio=np.full(X.shape[1], canonical_ratio(kernel)), name=f"bandwidth={criterion!r}",
        is_rough=math.isfinite(kernel.support),
    )  # fmt: skip
    kind = DensityLikelihood if criterion == "likelihood" else DensityLeastSquares

    def make(rows, weights):
        return kind(rows, kernel, columns=columns, sample_weight=weights)

    return search.run(make, np.log(search.spread).sum(), observe)


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
        :class:`ConditionalLikelihood` there, of the rows looked at.

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
    columns = columns or Columns.numbers(X.shape[1])
    kernels = [kernel] * X.shape[1] + [target_kernel]
    fixed = np.full(len(kernels), np.nan)
    fixed[:-1] = np.nan if bandwidth is None else bandwidth
    fixed[-1] = np.nan if target_bandwidth is None else target_bandwidth
    search = _Search(
        np.column_stack([X, y]), columns + Columns.numbers(1), sample_weight, random_state,
        ratio=np.array([canonical_ratio(k) for k in kernels]), fixed=fixed,
        name="bandwidth='likelihood'", is_rough=any(math.isfinite(k.support) for k in kernels),
    )  # fmt: skip

    def make(rows, weights):
        return ConditionalLikelihood(
            rows[:, :-1], rows[:, -1], kernel, target_kernel,
            columns=columns, sample_weight=weights,
        )  # fmt: skip

    found, likelihood = search.run(make, math.log(search.spread[-1]), observe)
    return found[:-1], float(found[-1]), likelihood


def _range(x, ratio):
    """Smallest and largest bandwidth worth trying for one feature."""
    places, extent = np.unique(x), np.ptp(x)
    if extent == 0:
        return 0.5 * ratio, 2.0 * ratio
    steps = np.diff(places)
    gaps = np.minimum(np.append(steps, np.inf), np.append(np.inf, steps))
    # Where most rows share their places these are a grid, and what is narrower than its
    # steps describes the grid.
    share = _LOWEST if len(places) > len(x) / 2 else 1.0
    # Most of the extent may be that of outliers.
    width = np.subtract(*np.quantile(x, [0.9, 0.1]))
    low = max(share * ratio * np.quantile(gaps, 0.25), _NARROWEST * (width or extent))
    return low, _HIGHEST * ratio * extent


class _Search:
    """Descends over the logarithms of bandwidths and the shares of lambdas."""

    def __init__(self, X, columns, weights, random_state, *, ratio, name, is_rough, fixed=None):
        self.random_state = check_random_state(random_state)
        # By what all rows are more than those looked at.
        self.times, spread, n_features = 1.0, None, X.shape[1]
        if are_sampled(X):
            spread = feature_spread(X, weights)
            X, weights = self._draw(MAX_LINE_ROWS, X, weights)
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        if len(X) < 2:
            raise ValueError(
                f"{name} describes each row by the others and needs two rows of positive "
                f"weight, got n_samples={len(X)}: pass a number as bandwidth."
            )
        self.columns, self.is_numeric = columns, columns.is_numeric
        self.fixed = np.full(n_features, np.nan) if fixed is None else fixed
        self.name, self.is_rough, self.ratio = name, is_rough, ratio
        spread = feature_spread(X, weights) if spread is None else spread
        self.spread = np.where(self.is_numeric, spread, 1.0)
        # In units of the spread, and from the middle, nothing overflows or is rounded off.
        center = np.where(self.is_numeric, X.mean(axis=0), 0.0)
        self.rows, self.weights = (X - center) / self.spread, weights

    def run(self, make, log_volume, observe):
        """Best bandwidths, in the features' own units, and the criterion there.

        Parameters
        ----------
        make : callable
            ``make(rows, weights)`` returns the criterion as a function of the bandwidth.
        log_volume : float
            Logarithm of the units that the criterion is to be in.
        observe : callable or None
            As for :func:`density_bandwidth`.
        """
        of_two = make(self.rows[:2], None if self.weights is None else self.weights[:2])
        n_most = MAX_LINE_ROWS if of_two.in_linear_time else MAX_SEARCH_ROWS
        if len(self.rows) > n_most:
            self.rows, self.weights = self._draw(n_most, self.rows, self.weights)
        self.criterion = make(self.rows, self.weights)
        self.low, self.high = self._bounds()
        # Where lambdas are shares of the largest; a single level's is 0.
        self.unit = np.where(self.is_numeric | (self.high == 0), 1.0, self.high)
        self.observe, self.log_volume, self.tried = observe, log_volume, []
        try:
            if self.criterion.in_linear_time:
                step = _STEP if len(self.rows) <= MAX_SEARCH_ROWS else _LONG_STEP
                minimize_scale(self._on_line, self.low[0], self.high[0], step=step)
            else:
                self._descend_from_all()
        except _Stop:
            pass
        value, bandwidth = self._best()
        self._warn_of_copies(bandwidth)
        score = self.criterion.rescale(self.criterion.sign * value, log_volume)
        return bandwidth * self._shrinkage() * self.spread, score

    def _draw(self, n_rows, X, weights):
        """Sample of the rows."""
        self.times *= len(X) / min(n_rows, len(X))
        return draw(n_rows, self.random_state, X, weights)

    def _bounds(self):
        high = self.columns.highest_lam
        low = _LOWEST_LAM * high
        for j in self.columns.numeric:
            low[j], high[j] = _range(self.rows[:, j], self.ratio[j])
        given = ~np.isnan(self.fixed)
        low[given] = high[given] = (self.fixed / self.spread)[given]
        return low, high

    def _evaluate(self, bandwidth, eval_gradient=False):
        """The function to minimise, at scaled bandwidths, and its gradient or zeros."""
        found, sign = self.criterion(bandwidth, eval_gradient), self.criterion.sign
        value, gradient = found if eval_gradient else (found, np.zeros(len(bandwidth)))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            value, gradient = sign * np.inf, np.zeros(len(bandwidth))
        self.tried.append((sign * value, bandwidth))
        if self.observe is not None:
            score = self.criterion.rescale(value, self.log_volume)
            if self.observe(score, bandwidth * self.spread):
                raise _Stop
        return sign * value, sign * gradient

    def _best(self):
        return min(self.tried, key=lambda entry: entry[0])

    def _on_line(self, scales):
        return [self._evaluate(scale)[0] for scale in scales[:, None]], False

    def _descend_from_all(self):
        bounds = list(zip(self._point(self.low), self._point(self.high), strict=True))
        bottoms = []

        def objective(point):
            bandwidth = self._bandwidth(point)
            value, gradient = self._evaluate(bandwidth, eval_gradient=True)
            return value, gradient * np.where(self.is_numeric, bandwidth, self.unit)

        def stop_where_others_ended(intermediate_result):
            if any(np.abs(intermediate_result.x - x).max() < _SAME for x in bottoms):
                raise StopIteration

        for start in self._starts():
            found = minimize(
                objective, self._point(start), jac=True, method="L-BFGS-B", bounds=bounds,
                callback=stop_where_others_ended,
                options={"maxiter": _MAX_STEPS, "ftol": 1e-9, "gtol": 1e-6},
            )  # fmt: skip
            bottoms.append(found.x)
        if self.is_rough:
            minimize(
                lambda point: self._evaluate(self._bandwidth(point))[0],
                self._point(self._best()[1]), method="Powell", bounds=bounds,
                options={"xtol": 1e-2, "ftol": 1e-6, "maxiter": _ROUNDS},
            )  # fmt: skip

    def _starts(self):
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
            values = np.array([self._evaluate(scale)[0] for scale in scales])
            padded = np.pad(values, 1, constant_values=np.inf)
            valleys = (values <= padded[:-2]) & (values <= padded[2:]) & np.isfinite(values)
            best = [k for k in np.argsort(values, kind="stable") if valleys[k]]
            starts += [scales[k] for k in best[:_BEST]]
        if np.isnan(self.fixed).sum() > 1:
            shares = Halton(len(rule), scramble=False).random(_POINTS + 1)[1:]
            around = rule * np.exp(_AROUND * (2 * shares - 1))
            points = [bounded(*pair) for pair in zip(around, shares * self.high, strict=True)]
            starts += sorted(points, key=lambda point: self._evaluate(point)[0])[:_BEST]
        return starts

    def _point(self, bandwidth):
        logs = np.log(np.where(self.is_numeric, bandwidth, 1.0))
        return np.where(self.is_numeric, logs, bandwidth / self.unit)

    def _bandwidth(self, point):
        scales = np.exp(np.where(self.is_numeric, point, 0.0))
        values = np.where(self.is_numeric, scales, point * self.unit)
        return np.clip(values, self.low, self.high)

    def _shrinkage(self):
        """From the rows looked at to all rows."""
        rate = np.where(self.is_numeric, 1.0, 2.0) / (self.is_numeric.sum() + 4)
        shrinkage = self.times**-rate
        return np.where(np.isnan(self.fixed), shrinkage, 1.0)

    def _warn_of_copies(self, bandwidth):
        n = len(self.rows)
        at_floor = self.is_numeric & np.isnan(self.fixed) & (bandwidth < 1.05 * self.low)
        at_floor &= [len(np.unique(column)) < n for column in self.rows.T]
        if at_floor.any():
            warnings.warn(
                f"{self.name} ended at its floor in the columns {np.flatnonzero(at_floor)}, "
                f"where some of {n} values repeat others exactly; a copy describes its twin "
                "perfectly, so the floor may be too small: pass a number, or a frame with "
                "such columns as ordered categories.",
                stacklevel=2,
            )
