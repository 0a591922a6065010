"""Averages of local polynomials of several degrees: which, and with which weights."""

import functools

import numpy as np

from .._blocks import evenly_spread
from ..attention._solve import Basis
from ..bandwidth._criteria import corrected_akaike, zero_rounding_errors
from ..bandwidth._samples import Units, draw, optimal_rate_factor
from ..bandwidth._search import MAX_PAIRS, MAX_SEARCH_ROWS
from ._fitted_smoother import Member

# The highest degree in one feature, and in up to so many; of lines in more. Cubics of two
# features and parabolas of many have more coefficients than windows have rows.
_HIGHEST, _HIGHEST_OF_SEVERAL, _SEVERAL = 3, 2, 4
# The best bandwidths of averages are at least 0.7 times that of lines, and those of parabolas
# and cubics at least 1.2 times, on curves of four kinds with 60 to 8000 rows and in two and
# three features. They may be wide where lines are not: a cubic may describe all rows.
_MIN_RATIO_TO_LINES = 0.6
# Precision, as a logarithm, of the bandwidths of smoothers that are averaged. With 5e-4 for
# lines errors of 82 data sets are 0.9999 times as large, in 1.3 times the seconds; with 0.005
# for the other degrees errors of 352 data sets are the same.
AVERAGED_PRECISION = 0.05
# A degree of less weight is left out.
_LEAST_WEIGHT = 1e-3


def degrees_to_average(rows, n_rows, rule, kernel):
    """Return the degrees that "auto" stands for, 1 first, for rows of positive weight."""
    n_features = len(rows.columns.numeric)
    if not n_features or kernel.signed:
        return [0]
    highest = _HIGHEST if n_features == 1 else _HIGHEST_OF_SEVERAL
    highest = 1 if n_features > _SEVERAL else highest
    # The criterion needs more rows than coefficients.
    degrees = [k for k in range(highest + 1) if Basis(k, n_features).size + 2 < n_rows]
    if not (rule.serves_each_degree and 1 in degrees):
        return [1]
    return [1, *(k for k in degrees if k != 1)]


def choose_members(degrees, rule, kernel, smoother_at, report, rows, predictor=None):
    """Choose a bandwidth for each degree, and average the smoothers.

    Returns the choice of the heaviest, the average, and whether a callback ended the search.
    ``smoother_at(degree, bandwidth, n_neighbors)`` makes a smoother, and
    ``predictor(smoother)`` what a callback is to see of it.
    """
    ended, choices, smoothers = False, [], []

    def observe(degree, value, *bandwidth):
        nonlocal ended
        candidate = smoother_at(degree, *bandwidth)
        candidate = candidate if predictor is None else predictor(candidate)
        ended = bool(report.done("bandwidth", smoother_=candidate))
        return ended

    for degree in degrees:
        watch = functools.partial(observe, degree)
        choice = rule.choose(rows.with_options(degree=degree), kernel, watch)
        if degree == 1 and len(degrees) > 1:
            # The searches for the other degrees begin at a multiple of this bandwidth.
            is_numeric = rows.columns.is_numeric
            start = np.where(is_numeric, _MIN_RATIO_TO_LINES, 1.0) * choice.bandwidth
            per_feature = choice.results is None and rows.may_be_per_feature(kernel)
            rows = rows.with_options(start=start, per_feature=per_feature or rows.per_feature)
        choices.append(choice)
        smoothers.append(smoother_at(degree, choice.bandwidth, choice.n_neighbors))
        if ended:
            break
    best, smoother = averaged(smoothers, rows)
    return choices[best], smoother, ended


def averaged(smoothers, rows):
    """Return the position of the heaviest of smoothers of the same rows, and their average."""
    if len(smoothers) == 1:
        return 0, smoothers[0]
    criteria, n = _corrected_akaike(smoothers, rows)
    if np.isfinite(criteria).any():
        weights = np.exp(-n * (criteria - criteria.min()))
        weights /= weights.sum()
    else:
        weights = np.array([float(smoother.degree == 1) for smoother in smoothers])
    weights = np.where(weights > _LEAST_WEIGHT, weights, 0.0)
    weights /= weights.sum()
    best = int(weights.argmax())
    members = [
        Member(smoother.degree, smoother.bandwidth, float(weight))
        for smoother, weight in zip(smoothers, weights, strict=True)
        if weight or smoother.degree == 1  # which is all there is beyond the rows
    ]
    return best, smoothers[best].with_members(sorted(members, key=lambda own: own.degree))


def _corrected_akaike(smoothers, rows):
    """Compute the criterion of each smoother, and the number of rows that it is of."""
    first, factor = smoothers[0], 1.0
    tables = rows.X, rows.values, rows.sample_weight
    if not first.is_in_memory:  # a sample, at the bandwidths that it needs
        random_state = np.random.RandomState(rows.random_state)
        n_all, tables = len(first.keys), draw(MAX_SEARCH_ROWS, random_state, *tables)
        factor = 1 / optimal_rate_factor(n_all / len(tables[0]), len(rows.columns.numeric))
    keys, table, weights = tables
    units = Units.from_values(table, weights, each_column=rows.standardize)
    table, criteria = units.standardize(table), []
    present = np.arange(len(keys)) if weights is None else np.flatnonzero(weights)
    smoothers = [
        smoother.replace(keys=keys, values=table, key_weights=weights, factor=factor)
        for smoother in smoothers
    ]
    predicted = present
    if any(smoother.fastest != "linear" for smoother in smoothers):
        max_predicted = max(MAX_SEARCH_ROWS, MAX_PAIRS // len(keys))
        predicted = evenly_spread(present, max_predicted)
    for smoother in smoothers:
        scores = smoother.leave_one_out(rows=predicted).scores([1.0])
        scores = zero_rounding_errors(scores, units.size)
        scores = scores._replace(trace=scores.trace * len(present) / len(predicted))
        criteria.append(corrected_akaike(scores, len(present))[0])
    return np.array(criteria), len(predicted)
