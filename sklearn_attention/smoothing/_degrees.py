"""Averages of local polynomials of several degrees: which, and with which weights.

In the average, a smoother of one degree becomes a `Member`: a degree, a bandwidth and a weight.
The weight falls with the corrected Akaike criterion of the smoother.
"""

import functools
import operator

import numpy as np

from .._blocks import evenly_spread
from .._partitions import weights_or_ones
from ..attention._solve import Basis
from ..bandwidth._criteria import corrected_akaike, zero_rounding_errors
from ..bandwidth._rules import SMOOTHER_RULES
from ..bandwidth._samples import Units, draw, optimal_rate_factor
from ..bandwidth._search import MAX_PAIRS, MAX_SEARCH_ROWS
from ._fitted_smoother import Member

# Highest degree in one numeric feature, in two to four, and in more: cubics of two features and
# parabolas of many have more coefficients than windows have rows.
_MAX_DEGREE_IN_ONE, _MAX_DEGREE_IN_FEW, _MAX_DEGREE_IN_MANY = 3, 2, 1
_FEW_FEATURES = 4
# Smallest ratio of a bandwidth that is tried for another degree to the best one for lines. On
# curves of four kinds with 60 to 8000 rows, and in two and three features, the best ratio was
# at least 0.7 for averages and at least 1.2 for parabolas and cubics. It may be much larger,
# since a cubic may describe all rows.
_MIN_RATIO_TO_LINES = 0.6
# Precision of the logarithm of bandwidths, if several degrees are averaged. With 5e-4 for
# lines, the errors on 82 data sets were 0.9999 times as large, in 1.3 times the seconds; with
# 0.005 for the other degrees, the errors on 352 data sets were the same.
AVERAGED_PRECISION = 0.05
# Degrees of a smaller weight are dropped.
_MIN_WEIGHT = 1e-3
# A curve is rough if narrow averages have at most this ratio of mean squared leave-one-out
# residuals to those of the average of degrees ...
_MAX_RATIO_OF_ROUGH = 0.97
# ... and either move two neighbouring rows by the first number of residual standard deviations,
# or by the second while they gain nothing over the calm rows. Calm is this share of the rows,
# those whose larger residual is smallest. There is no gain if their ratio of mean squares is
# below 1 by less than a sampling error: the last number over the square root of the number of
# rows. Where noise is autocorrelated, narrow averages follow it everywhere, and gain over calm
# rows.
_SURE_STEP, _MIN_STEP = 2.0, 0.8
_CALM_SHARE, _SAMPLING_ERROR = 0.75, 0.6
# Chosen on 288 curves with autocorrelated noise (coefficients 0.3 to 0.95, 60 to 500 rows), of
# which 4 count as rough, 264 ordinary curves, of which 2 do, and blocks, bumps and Doppler's
# curve with 256 rows and a signal-to-noise ratio of 7, where squared errors become 0.69, 0.10
# and 0.51 times as large. In fewer rows than these, two neighbours may agree by chance.
_MIN_ROWS_OF_ROUGH = 50
# Median of the absolute value of a standard normal variable.
_MEDIAN_OF_NORMAL = 0.6745


def degrees_to_average(rows, n_rows, rule, kernel):
    """Return the degrees that degree="auto" averages: [0], or a list that begins with 1.

    Parameters
    ----------
    rows : Rows
        The training rows.
    n_rows : int
        Number of rows of positive weight.
    rule : BandwidthRule
        The rule that chooses bandwidths; not every rule has one for each degree.
    kernel : Kernel
        The kernel of the numeric columns. One with negative values only averages, degree 0.
    """
    n_features = len(rows.columns.numeric)
    if not n_features or kernel.signed:
        return [0]
    if n_features == 1:
        max_degree = _MAX_DEGREE_IN_ONE
    else:
        is_few = n_features <= _FEW_FEATURES
        max_degree = _MAX_DEGREE_IN_FEW if is_few else _MAX_DEGREE_IN_MANY
    # The denominator of the corrected Akaike criterion is positive only with more rows.
    degrees = [k for k in range(max_degree + 1) if Basis(k, n_features).size + 2 < n_rows]
    if not (rule.serves_each_degree and 1 in degrees):
        return [1]
    return [1, *(k for k in degrees if k != 1)]


def choose_members(degrees, rule, kernel, smoother_at, report, rows, predictor=None):
    """Choose a bandwidth for each degree, and average the smoothers at these.

    If several degrees do not follow a rough curve, narrow averages take their place.

    Parameters
    ----------
    degrees : list of int
        The degrees, beginning with 1 if there are several.
    rule : BandwidthRule
        The rule that chooses bandwidths.
    kernel : Kernel
        The kernel of the numeric columns.
    smoother_at : callable
        ``smoother_at(degree, bandwidth, n_neighbors)`` returns the `FittedSmoother` of one
        degree at a bandwidth.
    report : Report
        Reports each bandwidth that is tried to callbacks.
    rows : Rows
        The rows that bandwidths are chosen for.
    predictor : callable, default=None
        ``predictor(smoother)`` returns the smoother that callbacks see instead of the one that
        is tried, by default the latter itself.

    Returns
    -------
    choice : BandwidthChoice
        The choice for the smoother of largest weight.
    smoother : FittedSmoother
        The average, or narrow averages.
    ended : bool
        True if a callback ended the search.
    """
    ended, choices, smoothers = False, [], []

    def observe(degree, value, *bandwidth):
        """Report a bandwidth that was tried; return True if a callback ends the search.

        `bandwidth` is the bandwidth, and the number of neighbours if it is adaptive.
        """
        nonlocal ended
        candidate = smoother_at(degree, *bandwidth)
        candidate = candidate if predictor is None else predictor(candidate)
        ended = bool(report.done("bandwidth", smoother_=candidate))
        return ended

    for degree in degrees:
        observe_degree = functools.partial(observe, degree)
        choice = rule.choose(rows.with_options(degree=degree), kernel, observe_degree)
        if degree == 1 and len(degrees) > 1:
            # The searches for the other degrees begin at a multiple of this bandwidth. If that
            # of lines was searched for each feature, so are theirs.
            is_numeric = rows.columns.is_numeric
            start = np.where(is_numeric, _MIN_RATIO_TO_LINES, 1.0) * choice.bandwidth
            per_feature = choice.results is None and rows.may_be_per_feature(kernel)
            rows = rows.with_options(start=start, per_feature=per_feature or rows.per_feature)
        choices.append(choice)
        smoothers.append(smoother_at(degree, choice.bandwidth, choice.n_neighbors))
        if ended:
            break
    best, smoother = averaged(smoothers, rows)
    choice = choices[best]
    if len(degrees) > 1 and rule.searches and not ended:
        narrow = _narrow_averages(smoother, rows, kernel, smoother_at)
        if narrow is not None:
            # Warnings are those of the rule that the user named.
            choice = narrow[0]._replace(warnings=choice.warnings)
            smoother = narrow[1]
    return choice, smoother, ended


def _narrow_averages(smoother, rows, kernel, smoother_at):
    """Return narrow averages if a curve of one feature is rough; otherwise None.

    A curve is rough if it has jumps, or peaks of one or two rows. All windows in which
    polynomials of higher degree are fitted, and all bandwidths of a criterion that penalises
    degrees of freedom, are too wide for these. Averages whose bandwidth has the smallest
    leave-one-out error then take the place of the average of degrees. They are compared by
    leave-one-out residuals, in a way that autocorrelated noise does not pass for such a curve.

    Parameters
    ----------
    smoother : FittedSmoother
        The average of several degrees.
    rows : Rows
        The rows that its bandwidths were chosen for.
    kernel : Kernel
        The kernel of the feature.
    smoother_at : callable
        Returns the `FittedSmoother` of one degree at a bandwidth, as for `choose_members`.

    Returns
    -------
    (choice, smoother) : tuple of BandwidthChoice and FittedSmoother, or None
        The choice of the bandwidth, and the averages with a line of weight 0, which
        extrapolates.
    """
    if not (
        len(rows.columns.numeric) == 1
        and rows.X.shape[1] == rows.values.shape[1] == 1
        and smoother.is_in_memory
        and smoother.error_settings.robustness is None
        and not rows.gap
        and _MIN_ROWS_OF_ROUGH <= smoother.n_rows <= MAX_SEARCH_ROWS
    ):
        return None
    choice = SMOOTHER_RULES["loo"].choose(rows.with_options(degree=0, start=None), kernel)
    narrow = smoother_at(0, choice.bandwidth)
    weights = weights_or_ones(rows.X, rows.sample_weight)
    present = weights > 0
    residuals, narrow_residuals = (
        np.sqrt(weights) * (rows.values - candidate.training_predictions.left_out)[:, 0]
        for candidate in (smoother, narrow)
    )
    if not _is_rough(rows.X[present, 0], residuals[present], narrow_residuals[present]):
        return None
    line = smoother.extrapolating_line
    members = [Member(0, choice.bandwidth, 1.0), Member(1, line.bandwidth, 0.0)]
    return choice, narrow.with_members(members)


def _is_rough(x, residuals, narrow_residuals):
    """Return True if narrow averages follow a rough curve, and the average of degrees does not.

    `x` (n_rows,) is the feature. The others are the leave-one-out residuals (n_rows,) of the
    average of degrees and of the narrow averages, times the square roots of the weights.
    """
    # 1. Mean squares are compared over all rows, and over the calm ones.
    larger = np.maximum(np.abs(residuals), np.abs(narrow_residuals))
    is_calm = larger <= np.quantile(larger, _CALM_SHARE)
    squares, narrow_squares = np.square(residuals), np.square(narrow_residuals)
    is_better = narrow_squares.mean() < _MAX_RATIO_OF_ROUGH * squares.mean()
    max_ratio = 1 - _SAMPLING_ERROR / np.sqrt(len(x))
    is_better_if_calm = narrow_squares[is_calm].mean() <= max_ratio * squares[is_calm].mean()
    # 2. A step is the smaller move at two neighbouring places, if both are in one direction.
    # The move at a place is the mean over its rows, so that copies of rows are no neighbours.
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    moves = np.bincount(places, residuals - narrow_residuals) / counts
    steps = [np.minimum(sign * moves[1:], sign * moves[:-1]).max(initial=0) for sign in (-1, 1)]
    std = np.median(np.abs(residuals)) / _MEDIAN_OF_NORMAL
    min_step = _SURE_STEP if is_better_if_calm else _MIN_STEP
    return bool(is_better and max(steps) > min_step * std)


def averaged(smoothers, rows):
    """Average smoothers of the same rows; return the position of the heaviest, and the average.

    The weight of a smoother is in proportion to exp(-n c), with the number n of rows that are
    predicted, and the smoother's corrected Akaike criterion c. A smoother of degree 1 has all
    the weight if no criterion is finite; it is kept at any weight, since it extrapolates for
    the average. `rows` are the `Rows` that bandwidths were chosen for.
    """
    if len(smoothers) == 1:
        return 0, smoothers[0]
    criteria, n_predicted = _corrected_akaike(smoothers, rows)
    if np.isfinite(criteria).any():
        weights = np.exp(-n_predicted * (criteria - criteria.min()))
        weights /= weights.sum()
    else:
        weights = np.array([float(smoother.degree == 1) for smoother in smoothers])
    weights = np.where(weights > _MIN_WEIGHT, weights, 0.0)
    weights /= weights.sum()
    best = int(weights.argmax())
    members = [
        Member(smoother.degree, smoother.bandwidth, float(weight))
        for smoother, weight in zip(smoothers, weights, strict=True)
        if weight or smoother.degree == 1
    ]
    members.sort(key=operator.attrgetter("degree"))
    return best, smoothers[best].with_members(members)


def _corrected_akaike(smoothers, rows):
    """Compute the corrected Akaike criterion of each smoother.

    `rows` are the `Rows` that bandwidths were chosen for. Returns the criteria (n_smoothers,)
    and the number of rows that are predicted for them.
    """
    # 1. Rows in partitions are represented by a sample, whose bandwidths are wider, as fewer
    # rows need them.
    factor, tables = 1.0, (rows.X, rows.values, rows.sample_weight)
    if not smoothers[0].is_in_memory:
        random_state = np.random.RandomState(rows.random_state)
        tables = draw(MAX_SEARCH_ROWS, random_state, *tables)
        ratio = len(rows.X) / len(tables[0])
        factor = 1 / optimal_rate_factor(ratio, len(rows.columns.numeric))
    keys, values, weights = tables
    units = Units.from_values(values, weights, each_column=rows.standardize)
    smoothers = [
        smoother.replace(
            keys=keys, values=units.standardize(values), key_weights=weights, factor=factor
        )
        for smoother in smoothers
    ]
    # 2. If sums do not take linear time, some of the rows are predicted, from all rows.
    present = np.arange(len(keys)) if weights is None else np.flatnonzero(weights)
    predicted = present
    if any(smoother.algorithm_name != "linear" for smoother in smoothers):
        max_predicted = max(MAX_SEARCH_ROWS, MAX_PAIRS // len(keys))
        predicted = evenly_spread(present, max_predicted)
    # 3. The scores of each smoother are the mean squared residual and the trace of the hat
    # matrix. The mean may be that of some rows, but the trace is a sum over all rows.
    criteria = []
    for smoother in smoothers:
        scores = smoother.leave_one_out(rows=predicted).scores([1.0])
        scores = zero_rounding_errors(scores, units.size)
        scores = scores._replace(trace=scores.trace * len(present) / len(predicted))
        criteria.append(corrected_akaike(scores, len(present))[0])
    return np.array(criteria), len(predicted)
