#!/usr/bin/env python3
"""Break the core in one place at a time, and see whether a test notices.

Each mutation is made in a copy of the package, where the tests of its folder are run, those of
its own module first. Without any mutation they have to pass.

    .ci/mutations.py                        all of them: an hour or two
    .ci/mutations.py --folder nn --list     which there are
    .ci/mutations.py 3 17                   some, by their numbers
    .ci/mutations.py --tests ../other       the tests of another checkout
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sklearn_attention"
# Of all mutations, as many are to be noticed.
LEAST_SHARE = 0.95
# A run may take so much longer than one without a mutation, and so many seconds.
SLOWER, SECONDS = 3, 120


class Mutation(NamedTuple):
    """A change of one module that makes its results wrong."""

    module: str  # path in the package
    old: str  # occurs once
    new: str
    wrong: str

    @property
    def folder(self):
        """The folder of the package, and of the tests; "." for modules that all share."""
        return str(Path(self.module).parent).partition("/")[0]

    def of(self, source):
        """Return the module's source with the mutation."""
        if source.count(self.old) != 1:
            raise SystemExit(f"{self.module}: {self.old!r} is not there once")
        return source.replace(self.old, self.new)


MUTATIONS = [
    Mutation(
        "attention/_algorithms/_near_keys.py",
        "_NEGLIGIBLE, _FACTOR_PER_DEGREE = 1e-12, 1e-4",
        "_NEGLIGIBLE, _FACTOR_PER_DEGREE = 1e-9, 1e-4",
        "a thousand times as much is left out of a sum",
    ),
    Mutation(
        "attention/_algorithms/_near_keys.py",
        "math.log(problem.weights.sum()) - math.log(problem.weights.min())",
        "math.log(problem.weights.sum())",
        "the nearest key may weigh little",
    ),
    Mutation(
        "attention/_algorithms/_boxes.py",
        "min_distance = (np.abs(plan.offsets) - 1).clip(0) * plan.width",
        "min_distance = np.abs(plan.offsets) * plan.width",
        "bound on the error from the cells' middles, not their edges",
    ),
    Mutation(
        "attention/_algorithms/_nearest.py",
        "distances[inside(left_out[:, None], np.arange(len(keys)))] = np.inf",
        "distances[inside(left_out[:, None], np.arange(len(keys)))] *= 2",
        "a query's own key answers for it",
    ),
    Mutation(
        "attention/_algorithms/_nearest.py",
        "rows = rows[inside(limits, line.order[positions[rows]])]",
        "rows = rows[:0]",
        "a key that is left out is the nearest along a line",
    ),
    Mutation(
        "attention/_algorithms/_nearest.py",
        "is_nearest = (distances <= (smallest + rounding)[:, None]) & np.isfinite(distances)",
        "is_nearest = (distances <= smallest[:, None]) & np.isfinite(distances)",
        "rounding decides ties among pairs",
    ),
    Mutation(
        "attention/_algorithms/_nearest.py",
        "low, high = window(line.x, queries, distance + rounding)",
        "low, high = window(line.x, queries, distance)",
        "rounding decides ties along a line",
    ),
    Mutation(
        "attention/_sums.py",
        "np.where(terms.distance <= distance + rounding, terms.sums, 0.0)",
        "np.where(terms.distance <= distance, terms.sums, 0.0)",
        "rounding decides ties between parts of the keys",
    ),
    Mutation(
        "attention/_read.py",
        "size = np.abs(queries) + np.median(np.abs(keys), axis=0)",
        "size = np.abs(queries) + np.abs(keys).max(axis=0)",
        "one huge key makes all keys equally near",
    ),
    Mutation(
        "attention/_read.py",
        "return sorted({*numeric, *self.kernel.categorical_columns(n_features)})",
        "return list(range(n_features))",
        "columns that the kernel does not compare make keys near or far",
    ),
    Mutation(
        "attention/_read.py",
        "ranges = np.column_stack([own_key - gap, own_key + gap + 1]).clip(0)",
        "ranges = np.column_stack([own_key - gap, own_key + 1]).clip(0)",
        "rows of the gap are left out on one side only",
    ),
    Mutation(
        "attention/_algorithms/_keys.py",
        "if self.are_queries and np.array_equal(rows, np.arange(len(self.points))):",
        "if len(rows) == len(self.points) and self.problem.left_out is not None:",
        "queries beside the keys are taken for these",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "factor = math.comb(power[axis], lower) * (-offset[:, axis]) ** exponent",
        "factor = math.comb(power[axis], lower) * offset[:, axis] ** exponent",
        "sums move away from the query",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "np.full(len(table), TINY * len(problem.keys))",
        "np.zeros(len(table))",
        "sums that underflow are not made again with shifts",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "is_narrow = largest_offset <= MAX_PRODUCT_OFFSET * min_scale",
        "is_narrow = True",
        "products of places that are far apart lose digits",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "table -= np.exp(MIN_LOG_WEIGHT)",
        "table -= 0.0",
        "keys without weight count where they are far away",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "points = self._numeric_queries[rows] / np.minimum(min_scale, self._key_std)",
        "points = self._numeric_queries[rows] / min_scale",
        "sums lose digits where keys spread less than their queries",
    ),
    Mutation(
        "attention/_leave_one_out.py",
        "other_terms = np.where(shift > -np.inf, total_without, 0.0) * np.exp(shift - base)",
        "other_terms = total_without * np.exp(shift - base)",
        "a row without others is not fitted by itself",
    ),
    Mutation(
        "attention/_algorithms/_dense.py",
        "low, high = np.searchsorted(keys, problem.left_out[rows].T)",
        "low, high = problem.left_out[rows].T.clip(max=len(keys))",
        "other keys are left out where trees choose the keys near a query",
    ),
    Mutation(
        "attention/_solve.py",
        "of_mean += 2 * of_distance[:, None] * solved_mean",
        "of_mean += of_distance[:, None] * solved_mean",
        "half of what the distance of the rows adds to a derivative",
    ),
    Mutation(
        "attention/_tables.py",
        "change -= (weights * change).sum(axis=1, keepdims=True)",
        "change += (weights * change).sum(axis=1, keepdims=True)",
        "sign of what the sum of the weights adds",
    ),
    Mutation(
        "attention/_leave_one_out_gradient.py",
        "log_and_sign = self._sums.log_own + np.log(self._weights), 1.0",
        "log_and_sign = self._sums.log_own, 1.0",
        "a row's own weight is left out of its leverage",
    ),
    Mutation(
        "attention/_leave_one_out.py",
        "leverage = weight * (1 + (fitted.solved_mean * fitted.mean).sum(axis=1))",
        "leverage = weight * (1 - (fitted.solved_mean * fitted.mean).sum(axis=1))",
        "sign of what slopes add to a leverage",
    ),
    Mutation(
        "attention/_pair_sums.py",
        "self.of_later = table[:, len(rows) :].T @",
        "self.of_later = 0.999 * table[:, len(rows) :].T @",
        "a pair weighs less one way than the other",
    ),
    Mutation(
        "attention/_pair_sums.py",
        "is_one_way = (sums[:, 0] < TINY) & self.in_logs",
        "is_one_way = (sums[:, 0] < 0) & self.in_logs",
        "sums that underflow are not made again as logarithms",
    ),
    Mutation(
        "attention/_sums.py",
        "error_bound = self.error_bound * factor + sums.error_bound * other_factor",
        "error_bound = self.error_bound * factor + sums.error_bound",
        "what is trusted of one part stays in its own scale",
    ),
    Mutation(
        "attention/_leave_one_out.py",
        "log_weights = np.log(problem.weights[own_key])",
        "log_weights = np.log(problem.weights[problem.left_out[:, 0]])",
        "the first row of a gap stands for the row itself",
    ),
    Mutation(
        "attention/_doubled_windows.py",
        "adequacy = np.minimum(by_rows, np.maximum(by_points, inverse_leverage))",
        "adequacy = np.minimum(by_rows, by_points)",
        "rows that share a place do not determine the fit there",
    ),
    Mutation(
        "attention/_doubled_windows.py",
        "return np.where((adequacy < 1) & (adequacy > 1 - _ROUNDING), 1.0, adequacy)",
        "return adequacy",
        "rounding doubles a window of exactly the weight that it needs",
    ),
    Mutation(
        "attention/_doubled_windows.py",
        "_, labels = np.unique(labels * len(table) + levels, return_inverse=True)",
        "_, labels = np.unique(labels + levels, return_inverse=True)",
        "rows that differ are one design point",
    ),
    Mutation(
        "attention/_solve.py",
        "matrices[1:, 1:] - ratio * matrices[:1, 1:], columns[1:] - ratio * columns[:1]",
        "matrices[1:, 1:] - ratio * matrices[:1, 1:], columns[1:] - columns[:1]",
        "systems of two and more unknowns solved wrongly",
    ),
    Mutation(
        "attention/_doubled_windows.py",
        "np.where(adequacy < 1, wider.adequacy, np.inf)",
        "np.where(adequacy < 1, np.inf, wider.adequacy)",
        "windows are doubled once at most",
    ),
    Mutation(
        "bandwidth/_search.py",
        "np.where((is_far & has_outliers).any(axis=1), 0.0, weights)",
        "np.where((is_far & has_outliers).any(axis=1), weights, weights)",
        "rows with an outlier in a feature count in searches",
    ),
    Mutation(
        "bandwidth/_criteria.py",
        "return penalty, 0.0, scores.left_out * penalty * 2 * dof / n_samples",
        "return penalty, 0.0, scores.left_out * penalty * dof / n_samples",
        "slope of the penalty halved",
    ),
    Mutation(
        "bandwidth/_density.py",
        "self._log_mass = np.log(leave_one_out_mass(weights))",
        "self._log_mass = np.log(weights.sum())",
        "a row left out still counts among all",
    ),
    Mutation(
        "smoothing/_density.py",
        "if smallest < low or largest > high:",
        "if smallest < low:",
        "values above an upper bound are let in",
    ),
    Mutation(
        "smoothing/_mixtures.py",
        "return np.where(self.columns.is_numeric, factor, 1.0) * self.bandwidth",
        "return factor * self.bandwidth",
        "local factors on lambdas",
    ),
    Mutation(
        "smoothing/_mixtures.py",
        "np.abs(mass_below(image[:, 0]) - mass_below(lower[:, 0]))",
        "mass_below(image[:, 0])",
        "mass beyond a bound counts below it",
    ),
    Mutation(
        "smoothing/_scale.py",
        "log_slopes = log_slopes - np.log(sign * (rows[:, j] - bound) + offset)",
        "log_slopes = log_slopes - np.log(sign * (rows[:, j] - bound))",
        "slopes of logarithms without the offset",
    ),
    Mutation(
        "smoothing/_conditional_density.py",
        "self.degree_ = max(fits, key=",
        "self.degree_ = min(fits, key=",
        "the degree of the smaller likelihood",
    ),
    Mutation(
        "bandwidth/_samples.py",
        "neighbors = np.maximum(padded[:-2], padded[2:])",
        "neighbors = padded[2:]",
        "the last of many rounded numbers is a point mass",
    ),
    Mutation(
        "bandwidth/_neighbors.py",
        "Z[leave_one_out.rows], Z, candidates[-1] + 1)[:, 1:]",
        "Z[leave_one_out.rows], Z, candidates[-1] + 1)[:, :-1]",
        "a row left out is its own neighbour",
    ),
    Mutation(
        "bandwidth/_minimize.py",
        "size = abs(size) if 0 < abs(size) < np.inf else 1.0",
        "size = 1.0",
        "minimisers stop at once where a criterion is small",
    ),
    Mutation(
        "bandwidth/_samples.py",
        "lambda_factor = optimal_rate_factor(self._n_ratio, n_features) ** 2",
        "lambda_factor = optimal_rate_factor(self._n_ratio, n_features)",
        "lambdas shrink at the rate of bandwidths",
    ),
    Mutation(
        "bandwidth/_one_scale.py",
        "scores = scores._replace(trace=scores.trace / predicted_fraction)",
        "scores = scores._replace(trace=scores.trace)",
        "degrees of freedom of the rows that are predicted alone",
    ),
    Mutation(
        "bandwidth/_criteria.py",
        "SMOOTHER_CRITERIA[name](zero_rounding_errors(scores, size), n_samples)",
        "SMOOTHER_CRITERIA[name](scores, n_samples)",
        "searches follow the rounding errors of exact predictions",
    ),
    Mutation(
        "bandwidth/_search.py",
        "is_same = math.isclose(value, self.value, rel_tol=1e-12)",
        "is_same = value == self.value",
        "rounding decides among equally good bandwidths",
    ),
    Mutation(
        "smoothing/_density.py",
        "value = self.keys_[np.abs(scaled - value).argmin(), column]",
        "value = float(value)",
        "warnings name the logarithm of a value",
    ),
    Mutation(
        "attention/_read.py",
        "size[:, np.ptp(keys, axis=0) == 0] = 0.0",
        "size[:, :0] = 0.0",
        "a huge column that all keys share makes them equally near",
    ),
    Mutation(
        "bandwidth/_search_space.py",
        "np.where(has_outliers[self._numeric], 1.0, _IRRELEVANT)",
        "_IRRELEVANT",
        "bandwidths so wide that an outlier is in all windows",
    ),
    Mutation(
        "bandwidth/_per_feature.py",
        "return gain > _GAIN_OF_EACH * n_added",
        "return gain > 0",
        "bandwidths for each feature wherever chance makes them better",
    ),
    Mutation(
        "bandwidth/_per_feature.py",
        "mean = np.average(classes, axis=0, weights=weights)",
        "mean = np.average(classes, axis=0)",
        "shares of classes without weights",
    ),
    Mutation(
        "bandwidth/_per_feature.py",
        "sample_bandwidth = common_bandwidth / factor_to_all_rows",
        "sample_bandwidth = common_bandwidth",
        "one scale judged on a sample at the bandwidth for all rows",
    ),
    Mutation(
        "bandwidth/_background.py",
        "half > rounding, half, feature_std(X, sample_weight)",
        "half > rounding, half, feature_std(X)",
        "scale of a background without the rows' weights",
    ),
    Mutation(
        "bandwidth/_rules.py",
        "rule_lambdas(n_samples, varying, weights)",
        "rule_lambdas(n_samples, columns, weights)",
        "constant numbers count for the rate of lambdas",
    ),
    Mutation(
        "smoothing/_mixtures.py",
        "Z[:, numeric] += noise * (factors * self.bandwidth[numeric])",
        "Z[:, numeric] += noise * factors",
        "noise of samples without the bandwidth",
    ),
    Mutation(
        "smoothing/_mixtures.py",
        "logs = sensitivity * (np.average(log_density, weights=weights) - log_density)",
        "logs = sensitivity * (np.average(log_density) - log_density)",
        "mean of the pilot without weights",
    ),
    Mutation(
        "smoothing/_uncertainty.py",
        "place = math.ceil(coverage * (len(sizes) + 1) * (1 - _SLACK)) - 1",
        "place = math.ceil(coverage * len(sizes) * (1 - _SLACK)) - 1",
        "intervals end one error too near",
    ),
    Mutation(
        "smoothing/_fitted_smoother.py",
        'is_asked = self.widening and self.empty == "nearest"',
        "is_asked = self.widening",
        "windows are widened where those without weight are to show",
    ),
    Mutation(
        "smoothing/_fitted_smoother.py",
        "average[outside] += at_query - at_edge",
        "average[outside] += at_query - average[outside]",
        "beyond the rows the line's own value",
    ),
    Mutation(
        "smoothing/_additive.py",
        "return n_places <= _MAX_PLACES and len(x) >= _MIN_ROWS_PER_PLACE * n_places",
        "return n_places <= _MAX_PLACES",
        "few rows at each place are fitted by the additive stage alone",
    ),
    Mutation(
        "smoothing/_additive_mixture.py",
        "unsmoothed = projected - second_hat @ self.stage.projected_rows",
        "unsmoothed = projected + second_hat @ self.stage.projected_rows",
        "the second stage adds the first one instead of its residuals",
    ),
    Mutation(
        "smoothing/_additive_mixture.py",
        "return left_out[:, :n_outputs] + smoothed_hat[:, None] * self._loo_residuals[rows]",
        "return left_out[:, :n_outputs]",
        "residuals as if the row that is left out were there",
    ),
    Mutation(
        "smoothing/_additive_mixture.py",
        "rows = np.flatnonzero(is_known)[(sizes <= limits).all(axis=0)]",
        "rows = np.flatnonzero(is_known)",
        "a few huge errors choose the mixing weight",
    ),
    Mutation(
        "smoothing/_degrees.py",
        "min_step = _SURE_STEP if is_better_if_calm else _MIN_STEP",
        "min_step = 0.0",
        "autocorrelated noise is taken for a rough curve",
    ),
    Mutation(
        "smoothing/_degrees.py",
        "moves = np.bincount(places, residuals - narrow_residuals) / counts",
        "moves = residuals - narrow_residuals",
        "steps between neighbours in the order of rows, not of x",
    ),
    Mutation(
        "smoothing/_uncertainty.py",
        "intervals[:, 0] = np.fmin(intervals[:, 0], lower)",
        "intervals[:, 0] = np.fmax(intervals[:, 0], lower)",
        "lower ends of intervals lie within the band",
    ),
    Mutation(
        "smoothing/_uncertainty.py",
        "np.sqrt(dof / random_state.chisquare(dof, n_draws))",
        "1.0",
        "simultaneous bands take the estimated noise for the true one",
    ),
    Mutation(
        "smoothing/_degrees.py",
        "scores = scores._replace(trace=scores.trace * len(present) / len(predicted))",
        "scores = scores._replace(trace=scores.trace)",
        "degrees of freedom of some of the rows for those of all",
    ),
    Mutation(
        "smoothing/_polynomial.py",
        "window_source.bandwidth_factors(window_source.keys[rows], more=k) for k in (0, 1)",
        "window_source.bandwidth_factors(window_source.keys[rows], more=k) for k in (0, 0)",
        "a row left out is its own neighbour",
    ),
    Mutation(
        "smoothing/_significance.py",
        "return np.average(squares, weights=smoother.row_weights)",
        "return np.average(squares)",
        "statistic without the rows' weights",
    ),
    Mutation(
        "smoothing/_significance.py",
        "weights = smoother.row_weights[is_counted]",
        "weights = None",
        "ratio of errors without the rows' weights",
    ),
    Mutation(
        "smoothing/_significance.py",
        "np.sum(drawn >= observed)",
        "np.sum(drawn > observed)",
        "a feature that never changes is found to matter",
    ),
    Mutation(
        "smoothing/_significance.py",
        "if (drawn >= observed).sum() == _MAX_LARGER_DRAWS:",
        "if False:",
        "draws go on after enough of them are larger",
    ),
    Mutation(
        "smoothing/_uncertainty.py",
        "choose_again = self._smoother_of if any(chosen)",
        "choose_again = None if any(chosen)",
        "draws are smoothed at the bandwidth that suits the data",
    ),
    Mutation(
        "smoothing/_polynomial.py",
        "steps = _STEP * np.minimum",
        "steps = 1e3 * _STEP * np.minimum",
        "slopes are differences over a tenth of a bandwidth",
    ),
    Mutation(
        "smoothing/_noise.py",
        "return (coefficients**2 @ self.variances)[:, None]",
        "return (coefficients**2).sum(axis=1)[:, None]",
        "standard error without the rows' weights",
    ),
    Mutation(
        "smoothing/_errors.py",
        "for position in np.flatnonzero(~is_predicted) if len(rows) > 1 else ():",
        "for position in ():",
        "how far an error reaches is a ratio of rounding errors",
    ),
    Mutation(
        "smoothing/_fitted_smoother.py",
        "is_fitted = values is self.values and degree == self.degree",
        "is_fitted = False",
        "every prediction reads all rows again",
    ),
    Mutation(
        "smoothing/_model_error.py",
        "return squares + squared_slope * offset[:, None] ** 2",
        "return squares",
        "averages beyond the rows are wrong by no slope",
    ),
    Mutation(
        "smoothing/_uncertainty.py",
        "shifts = hat.values - scales * (weights_without_outliers @ standardized)",
        "shifts = hat.values",
        "mean of the distribution is not the prediction",
    ),
    Mutation(
        "smoothing/_errors.py",
        "lambdas = (1 - step) * smoother.bandwidth + step * columns.highest_lam",
        "lambdas = smoother.bandwidth",
        "distributions at a level of few rows are of these rows alone",
    ),
    Mutation(
        "smoothing/_density_level_effects.py",
        "stds = np.hypot(unit * np.sqrt((squares - mean**2).clip(0)), self._kernel_std)",
        "stds = unit * np.sqrt((squares - mean**2).clip(0))",
        "the kernel's width counts twice at a new level",
    ),
    Mutation(
        "smoothing/_robust.py",
        "rows.sample_weight[rows.sample_weight > 0].mean()",
        "rows.sample_weight.mean()",
        "rows of weight 0 count in the mean weight",
    ),
    Mutation(
        "attention/_tables.py",
        "np.asarray(quantiles) * cumulative[-1:].T * (1 - _SLACK)",
        "np.asarray(quantiles) * cumulative[-1:].T",
        "rounding decides a quantile at the edge between two values",
    ),
    Mutation(
        "smoothing/_mixtures.py",
        "factor = 1 / optimal_rate_factor(n_rows / max_rows, len(self.columns.numeric))",
        "factor = 1.0",
        "fewer rows keep the bandwidth of all rows",
    ),
    Mutation(
        "smoothing/_noise.py",
        "+ 2 * (order + 1) * n / (n - order - 2)",
        "+ 2 * (order + 1)",
        "autoregressions of short series have too many lags",
    ),
    Mutation(
        "smoothing/_model_error.py",
        "np.average(rise[cell], axis=0, weights=weights[cell])",
        "np.average(rise[cell], axis=0)",
        "outliers count in the part where a model's errors grow most",
    ),
    Mutation(
        "_sample_weight.py",
        "exceeds = (smallest < limits[0]) | (largest > limits[1])",
        "exceeds = smallest != smallest",
        "rows of no weight are divided by bandwidths as they are",
    ),
    Mutation(
        "_new_levels.py",
        "inflated = quantiles + np.sign(probabilities - 0.5) * growth",
        "inflated = quantiles + effects",
        "half-widths add up, not their squares",
    ),
    Mutation(
        "_new_levels.py",
        "return rows, level, unit, without_level - without_row + imbalance",
        "return rows, level, unit, without_level",
        "a new level adds the noise once more",
    ),
    Mutation(
        "_new_levels.py",
        "counts &= ~is_new[:, k]",
        "pass",
        "shops of a new town count twice",
    ),
    Mutation(
        "_new_levels.py",
        "is_missing = X[:, [category]] == MISSING",
        "is_missing = X[:, [category]] == np.inf",
        "a missing level is a new one",
    ),
    Mutation(
        "_new_levels.py",
        "return rows, level, unit, without_level - without_row + imbalance",
        "return rows, level, unit, without_level - without_row",
        "levels of one row count as levels without effect",
    ),
    Mutation(
        "_shapley.py",
        "return values[0, 0], (joining - leaving)[rank] / 2",
        "return values[0, 0], joining[rank]",
        "effects are those of one order of the features",
    ),
    Mutation(
        "_shapley.py",
        "masks = rank < np.arange(len(rank) + 1)[:, None]",
        "masks = rank <= np.arange(len(rank) + 1)[:, None]",
        "features join one step early, and the first has no effect",
    ),
    Mutation(
        "_shapley.py",
        "1 / (n * comb(n - 1, sizes[~is_member]))",
        "np.full((~is_member).sum(), 0.5 ** (n - 1))",
        "coalitions count alike, whatever their size",
    ),
    Mutation(
        "_typical_rows.py",
        "distances = squared_norms + 2 * points @ points[chosen].sum(axis=0)",
        "distances = squared_norms",
        "background rows are those in the middle",
    ),
    Mutation(
        "_shapley.py",
        'np.argsort(-np.round(changes / (changes.max() or 1.0), 9), kind="stable")',
        "np.arange(n_features)",
        "effects depend on the order of the columns",
    ),
    Mutation(
        "_shapley.py",
        "return effects, np.sqrt(np.tensordot(np.square(weights), np.square(left_out), 1))",
        "return effects, 0.3 * np.sqrt(np.square(weights) @ np.square(left_out))",
        "reported errors are too small",
    ),
    Mutation(
        "_shapley.py",
        "cumulative = np.cumsum(1 / (sizes * (n_features - sizes)))",
        "cumulative = np.cumsum(1.0 * sizes)",
        "random coalitions have other sizes than Shapley values weight them by",
    ),
    Mutation(
        "_shapley.py",
        "effects[1][cells] = np.hypot(std, error[is_member]).swapaxes(0, 1)",
        "effects[1][cells] = std.swapaxes(0, 1)",
        "reported errors lack those of values",
    ),
    Mutation(
        "inspection/_feature_effects.py",
        "ends = row[BASE_VALUE] + np.cumsum(moves)",
        "ends = np.cumsum(moves)",
        "bars begin at 0 instead of the typical row",
    ),
    Mutation(
        "inspection/_style.py",
        "math.ceil(13 * len(names) / room)",
        "math.ceil(5 * len(names) / room)",
        "names along an axis touch",
    ),
    Mutation(
        "inspection/_style.py",
        "label.set_parse_math(False)",
        "label.set_parse_math(True)",
        "two dollars in a name make a formula",
    ),
    Mutation(
        "inspection/_feature_effects.py",
        "values[unscaled] = frame[unscaled]",
        "pass",
        "pictures have values as a pipeline scaled them",
    ),
    Mutation(
        "_base.py",
        'if "__init__" in vars(kind):',
        'if "__new__" in vars(kind):',
        "parameters of a subclass are those of its base class",
    ),
    Mutation(
        "_stacking.py",
        "probabilities[rows[block]] = filled_probabilities.reshape(shape).mean(axis=1)",
        "probabilities[rows[block]] = filled_probabilities.reshape(shape).max(axis=1)",
        "probabilities of an unknown level are those of the surest known one",
    ),
    Mutation(
        "_labels.py",
        "best_classes(split_classes(values, estimator.classes_), estimator.classes_)",
        "best_classes(split_classes(values, estimator.classes_)[::-1], estimator.classes_)",
        "explained rows have the classes of the other output",
    ),
    Mutation(
        "_frames.py",
        "new = range(n_old, n_old + len(X))",
        "new = range(len(X))",
        "rows without labels are named as if they came first",
    ),
    Mutation(
        "kernel_attention/_leave_level_out.py",
        "tree_change = self._change_of_trees(number, known, new)",
        "tree_change = 0.0",
        "trees are taken to know a new level",
    ),
    Mutation(
        "kernel_attention/_leave_level_out.py",
        "solution = coefficients[remaining] - inverse[np.ix_(remaining, left_out)] @ solution",
        "solution = coefficients[remaining]",
        "rows that are left out still shape the others' coefficients",
    ),
    Mutation(
        "kernel_attention/_encodings.py",
        "return np.append(frequent, np.nan)",
        "return frequent",
        "a new level is nearer to all others than these are to each other",
    ),
    Mutation(
        "kernel_attention/_averages.py",
        "matrix_gradient -= (matrix_gradient * self.weights).sum(axis=1, keepdims=True)",
        "matrix_gradient -= matrix_gradient.mean(axis=1, keepdims=True)",
        "gradient of averages that forgets that weights sum to 1",
    ),
    Mutation(
        "kernel_attention/_boosting.py",
        "nonnegative_weights(predictions, targets, weights, limit)",
        "nonnegative_weights(predictions, targets, np.ones(len(weights)), limit)",
        "shares are found without the rows' weights",
    ),
    Mutation(
        "kernel_attention/_boosting.py",
        "required = max(min_gain * losses[0], CHANCE / 2 / n)",
        "required = min(min_gain * losses[0], CHANCE / 2 / n)",
        "trees are taken for a gain that chance makes",
    ),
    Mutation(
        "kernel_attention/_distribution.py",
        "np.sqrt(variance * (1 + sum_of_squares) / denominator)",
        "np.sqrt(variance / denominator)",
        "deviation of a new error without that of the mean",
    ),
    Mutation(
        "kernel_attention/_encodings.py",
        "mid_rank = (np.cumsum(counts) - counts / 2) / len(x)",
        "mid_rank = np.cumsum(counts) / len(x)",
        "ranks of the last of equal values, not of their middle",
    ),
    Mutation(
        "kernel_attention/_fitted.py",
        "total += np.outer(1 - total.sum(axis=1), weights_in_mean)",
        "total += np.outer(1 - total.mean(axis=1), weights_in_mean)",
        "weights of rows and of their mean do not sum to 1",
    ),
    Mutation(
        "kernel_attention/_pairs.py",
        "linear = coefficients @ keys / max(1, keys.shape[1])",
        "linear = coefficients @ keys",
        "slope of the linear part without its unit",
    ),
    Mutation(
        "kernel_attention/_boosting.py",
        "required *= 1.0 if n == len(held_out) else _EARLY_GAIN",
        "required *= 1.0",
        "the first fold alone declines trees of classes",
    ),
    Mutation(
        "kernel_attention/_mixed_rows.py",
        "totals = [sum(left), sum(right)]",
        "totals = [left[0], right[0]]",
        "the rough part of mixed rows compares them in the first encoding only",
    ),
    Mutation(
        "kernel_attention/_mixed_rows.py",
        "is_near = rate * min_distances[near_keys] < _MAX_EXPONENT",
        "is_near = rate * min_distances[near_keys] < 0.1 * _MAX_EXPONENT",
        "keys at a middle distance have no weight for mixed rows",
    ),
    Mutation(
        "kernel_attention/_ridge.py",
        "leaf_weights.flat[leaf_queries] = weights",
        "leaf_weights.flat[leaf_queries] = 1",
        "blocks of rows all have weight 1 for mixed rows",
    ),
    Mutation(
        "kernel_attention/_additive.py",
        "return coefficients[0] + add_mixed_terms(*terms, masks, mean)",
        "return 2 * coefficients[0] + add_mixed_terms(*terms, masks, mean)",
        "the constant of the additive part counts twice for mixed rows",
    ),
    Mutation(
        "kernel_attention/_kernel.py",
        "np.add(squared, distance if e else KINK, out=distance)",
        "np.add(squared, KINK, out=distance)",
        "the rough part compares rows in the last encoding only",
    ),
    Mutation(
        "kernel_attention/_kernel.py",
        "return slopes, kernel.constant * coefficients.sum(axis=0)",
        "return slopes, kernel.constant * coefficients.mean(axis=0)",
        "sums over keys have a constant part of another size",
    ),
    Mutation(
        "_columns.py",
        "encode_levels(column, columns.categories[j], is_ordered)",
        "encode_levels(column, columns.categories[j], ordered=False)",
        "unknown levels of an ordered category in a usual frame are not refused",
    ),
    Mutation(
        "kernel_attention/_partition.py",
        "np.outer(weights * slope, self.directions[split])",
        "np.outer(slope, self.directions[split])",
        "slope of a product without the other factor",
    ),
    Mutation(
        "forecasting/_season.py",
        "n_steps = origins.n_pattern_steps",
        "n_steps = origins.table.lengths[origins.series]",
        "seasons of what is to be forecast",
    ),
    Mutation(
        "forecasting/_season.py",
        "weight = _DECAY_PER_SEASON ** ((lengths[row] - 1 - step) // m)",
        "weight = _DECAY_PER_SEASON ** (step // m)",
        "old seasons count more than new ones",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "rank = int(np.ceil((len(scores) + 1) * coverage - ROUNDING))",
        "rank = int(np.ceil((len(scores) + 1) * coverage))",
        "a rank that is whole but for rounding is the next one",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "out_of_fold[fold] = unit_outside[series[fold]]",
        "out_of_fold[fold] = unit_of_origin[fold]",
        "residuals are in units that they have a part in",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "count = np.maximum(origins.n_known - first - origins.horizon + 1, 0)",
        "count = np.maximum(origins.n_known - first + 1, 0)",
        "intervals follow errors that come after them",
    ),
    Mutation(
        "forecasting/_ensemble_weights.py",
        "log_errors = np.log(mean) - np.log(np.minimum(best, 1e300))",
        "log_errors = np.log(mean)",
        "large series decide for all",
    ),
    Mutation(
        "forecasting/_own_analogs.py",
        "normalized(-ratio / (2 * t**2), squared, is_usable)",
        "normalized(-ratio / (2 * t), squared, is_usable)",
        "width of a Gaussian not squared",
    ),
    Mutation(
        "forecasting/_analog_search.py",
        "np.isin(tests.series, memory.series) & (",
        "(",
        "windows are predicted from those of another series as if from their own",
    ),
    Mutation(
        "forecasting/_table.py",
        "(np.arange(max_positions) + golden_fractions(max_positions))",
        "np.arange(max_positions)",
        "windows at equal distances may be of one phase of a season",
    ),
    Mutation(
        "forecasting/_forecaster.py",
        "replace(self.observed_, training_index=np.argsort(order))",
        "replace(self.observed_, training_index=order)",
        "series are forecast with what was learned of another one",
    ),
    Mutation(
        "forecasting/_season_length.py",
        "abs(shown - max(1, round(shown / season)) * season) < _SEASON_TOLERANCE * season",
        "abs(shown - season) < _SEASON_TOLERANCE * season",
        "a multiple of a season counts as another season",
    ),
    Mutation(
        "forecasting/_season_length.py",
        "second >= _CLEAR_PEAK / 2",
        "second >= -1",
        "a peak of the autocorrelation that does not come again is a season",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "growth = (last - first) * horizon / (horizon - 1) if horizon > 1 else last",
        "growth = (last - first) if horizon > 1 else last",
        "intervals are narrower where a further horizon begins",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "is_far = ~lacks_pattern[:, None] & (",
        "is_far = (",
        "a history that is too short for the season has jumped",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "return ends + _jump_on_side_of(levels, jump)",
        "return ends",
        "the interval after a jump does not contain the present",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "np.sqrt(np.maximum(ahead / half, 1))",
        "1.0",
        "ends far ahead are no farther than within half of the series",
    ),
    Mutation(
        "forecasting/_step_forecasts.py",
        "larger = np.maximum(distances, learned[table.training_index])",
        "larger = learned[table.training_index]",
        "a history that moved more than its series has ends that are too near",
    ),
    Mutation(
        "forecasting/_analog_search.py",
        "share = np.clip(share, 0, 1)",
        "share = np.clip(share, 0, 0.5)",
        "forecasts follow the last value too little",
    ),
    Mutation(
        "forecasting/_origins.py",
        "last_deviation = last_deviation - seasonal[:, :1] / unit",
        "last_deviation = last_deviation",
        "the season of the last value counts as its deviation",
    ),
    Mutation(
        "forecasting/_classical.py",
        "np.stack([repeated, repeated + change * (1 + steps // m)], axis=1)",
        "np.stack([repeated, repeated + change * (0 + steps // m)], axis=1)",
        "the last season is moved by no change",
    ),
    Mutation(
        "forecasting/_combination.py",
        "(1 - _UNVALIDATED_WEIGHT) * w + _UNVALIDATED_WEIGHT * is_last_season",
        "w + 0 * is_last_season",
        "thirteen months are forecast without a season",
    ),
    Mutation(
        "forecasting/_step_forecasts.py",
        "variance += np.var(forecasts, axis=0, ddof=1)",
        "variance += 0",
        "an event that never happened has an interval as narrow as a usual day",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "mean_ratio /= self._naive_scales_if_new(origins)",
        "mean_ratio /= 1",
        "residuals of a new series are not in its unit",
    ),
    Mutation(
        "forecasting/_feature_effects.py",
        "return [i for i in first.values() if x[:, i].any()]",
        "return list(range(x.shape[1]))",
        "a constant among the features changes forecasts",
    ),
    Mutation(
        "forecasting/_kernel_forecaster.py",
        "n_steps = min(self.horizon_, (length - 1 - min_lookback) // 2)",
        "n_steps = min(self.horizon_, (length + 1 - min_lookback) // 2)",
        "a short series has no window to learn from",
    ),
    Mutation(
        "forecasting/_kernel_forecaster.py",
        "pairs.append((origins.take(~overlaps), validation.tests.take(rows)))",
        "pairs.append((origins, validation.tests.take(rows)))",
        "intervals are calibrated on windows that were learned from",
    ),
    Mutation(
        "forecasting/_analogs.py",
        "weight * (1 - weight) * difference**2",
        "0 * difference**2",
        "jumps after quiet windows are repeated in their units",
    ),
    Mutation(
        "forecasting/_breaks.py",
        "if has_returned.any() or",
        "if",
        "a level that came back is a break",
    ),
    Mutation(
        "forecasting/_breaks.py",
        "changes - np.tile(usual, n_seasons)[:, :n_changes]",
        "changes",
        "changes of the season hide a break",
    ),
    Mutation(
        "forecasting/_breaks.py",
        "np.put_along_axis(sizes, repeated[:, None], 0.0, axis=1)",
        "pass",
        "in two seasons the change a season after a break hides it",
    ),
    Mutation(
        "forecasting/_checks.py",
        "np.diff(observed) > season_length",
        "np.diff(observed) > 2 * season_length",
        "a line in the place of one season is not warned of",
    ),
    Mutation(
        "forecasting/_origins.py",
        "int((horizon - 1) / (1 - fraction) + 1e-9) + 1",
        "horizon + 1",
        "no window is left to learn from beside those held out",
    ),
    Mutation(
        "forecasting/_feature_rows.py",
        "has_series = SERIES in X",
        "has_series = True",
        "features of one series need a column with its name",
    ),
    Mutation(
        "forecasting/_checks.py",
        "may_end = ~np.isin(np.arange(is_missing.shape[1]), table.future_columns)",
        "pass",
        "a feature that is published late is refused",
    ),
    Mutation(
        "forecasting/_panels.py",
        "copy.deepcopy(_fitted(fit_result, X)).update(X)",
        "_fitted(fit_result, X).update(X)",
        "an update changes forecasters that were stored before",
    ),
    Mutation(
        "forecasting/_panels.py",
        "model.log = bool(values.min() >= 0 and values.max() > 0)",
        "model.log = True",
        "a group with a negative value is refused",
    ),
    Mutation(
        "forecasting/_panels.py",
        "if all(frame.empty for frame in frames) and (frames or fit_result is None):",
        "if fit_result is None:",
        "a group without rows is asked for forecasts",
    ),
    Mutation(
        "forecasting/_panels.py",
        "np.average(scores, weights=n_series)",
        "np.mean(scores)",
        "small groups count as much as large ones",
    ),
    Mutation(
        "forecasting/_breaks.py",
        "return min(total / (_PSEUDO_CHANGES + len(after)), _MAX_RATIO)",
        "return total / (_PSEUDO_CHANGES + len(after))",
        "a series that moves more since a break has moved far more before",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "lasts = (is_far & is_far_at_first & (side == side[:, -1:])).all(axis=1)",
        "lasts = is_far[:, -1]",
        "an outlier at the end is a jump that lasts",
    ),
    Mutation(
        "forecasting/_analog_search.py",
        "return factors[is_wide] if is_wide.any() else factors[-1:]",
        "return factors",
        "a forecast is what followed a single window",
    ),
    Mutation(
        "forecasting/_ridges.py",
        "best += step",
        "best += 2 * step",
        "every second penalty is passed over",
    ),
    Mutation(
        "forecasting/_season_length.py",
        "shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0",
        "shift = 0.5 * (after - before) / curvature if curvature < 0 else 0.0",
        "top of a parabola on the wrong side",
    ),
    Mutation(
        "forecasting/_feature_rows.py",
        "keys, queries = self.series * base + self.step, series * base + step",
        "keys, queries = self.step, step",
        "features of one series become those of another",
    ),
    Mutation(
        "kernel_attention/_encodings.py",
        "np.count_nonzero(~has_column)",
        "np.count_nonzero(has_column)",
        "rare levels together are no level",
    ),
    Mutation(
        "kernel_attention/_ridge.py",
        "matters = level_effect >= _MIN_LEVEL_EFFECT * other_effect",
        "matters = other_effect >= _MIN_LEVEL_EFFECT * level_effect",
        "blocks of levels that do not matter",
    ),
    Mutation(
        "kernel_attention/_fitted.py",
        "is_dominant = n_copies > _MAX_COPIES * usual[target]",
        "is_dominant = n_copies > _MAX_COPIES",
        "oversampled rows of a class are observations",
    ),
    Mutation(
        "kernel_attention/_regressor.py",
        "in_sample_gain, fitted.training.weights[held_out]\n",
        "in_sample_gain, np.ones(len(errors))\n",
        "noisy rows of small weight widen all intervals",
    ),
    Mutation(
        "kernel_attention/_ridge.py",
        "rng.choice(known, _MAX_BLOCK_ROWS, replace=False)",
        "rng.choice(known, _MAX_BLOCK_ROWS, replace=True)",
        "rows are several times in a block",
    ),
    Mutation(
        "kernel_attention/_boosting.py",
        "return np.average(np.square(np.minimum(errors, limit)), weights=weights)",
        "return np.average(np.square(np.minimum(errors, limit)))",
        "trees are judged by rows that hardly weigh anything",
    ),
    Mutation(
        "_spline_ridge.py",
        'np.einsum("ij,ij->i", smoother, Z) * weights',
        'np.einsum("ij,ij->i", smoother, Z)',
        "rows are predicted without themselves as if all had weight 1",
    ),
    Mutation(
        "_spline_ridge.py",
        "if 2 < len(nodes) < n_nodes:",
        "if 2 < len(nodes) < 0:",
        "functions of few numbers are linear between them",
    ),
    Mutation(
        "_spline_ridge.py",
        "straight = np.linalg.qr(np.column_stack([root, root * line]))[0]",
        "straight = np.linalg.qr(np.column_stack([root, root]))[0]",
        "curves contain the line, which has a penalty of its own",
    ),
    Mutation(
        "kernel_attention/_additive.py",
        "penalties = reml_penalties(equations_without, columns.group)",
        "penalties = reml_penalties(equations, columns.group)",
        "penalties are learned from the rows that judge them",
    ),
    Mutation(
        "kernel_attention/_additive.py",
        "np.concatenate(arrays[:fold] + arrays[fold + 1 :] or arrays)",
        "np.concatenate(arrays)",
        "rows whose errors make intervals choose the weight of the additive part",
    ),
    Mutation(
        "kernel_attention/_leave_level_out.py",
        "(values[~left_out] for values in rows)",
        "(values for values in rows)",
        "additive parts predict rows without a level by rows of the level",
    ),
    Mutation(
        "kernel_attention/_fitted.py",
        "weight * getattr(member, method)(self.training, *arguments)",
        "getattr(member, method)(self.training, *arguments)",
        "the additive part is added to kernels, not mixed with them",
    ),
    Mutation(
        "kernel_attention/_averages.py",
        "is_nearest * self._row_weights",
        "is_nearest * 1.0",
        "the nearest rows count alike, whatever their weights",
    ),
    Mutation(
        "forecasting/_ensemble_weights.py",
        "rate /= 2",
        "rate /= 1",
        "a step of weights that went too far is taken again",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "scaled_residuals[is_counted], block[is_counted] == 0",
        "scaled_residuals[is_counted], block[is_counted] == 4",
        "the earliest errors widen intervals, not the latest",
    ),
    Mutation(
        "forecasting/_transform.py",
        "has_changes = any(np.ptp(series) > 0 for series in observations)",
        "has_changes = any(np.ptp(series) >= 0 for series in observations)",
        "one observation has a logarithm, whose size depends on the unit",
    ),
    Mutation(
        "forecasting/_feature_effects.py",
        "later = np.flatnonzero(np.isnan(table.value))",
        "later = np.arange(len(table.value))",
        "features of the past are made usual, too",
    ),
    Mutation(
        "forecasting/_ensemble_weights.py",
        "errors[~is_squared[series]] **= 0.5",
        "errors **= 0.5",
        "forecasts of rare sales are near the median",
    ),
    Mutation(
        "forecasting/_feature_effects.py",
        "(last >= first, rows - last)",
        "(last >= 0, rows - last)",
        "the last event of a series is that of the one before",
    ),
    Mutation(
        "forecasting/_forms.py",
        "return observed if n_columns > 1 and not is_empty.all() else table",
        "return observed",
        "a single series loses missing values at its ends",
    ),
    Mutation(
        "forecasting/_time.py",
        "(index.to_numpy(np.float64, na_value=np.nan) % 1 == 0).all()",
        "(index.to_numpy(np.float64, na_value=np.nan) % 1 == 0).any()",
        "half years become whole ones",
    ),
    Mutation(
        "forecasting/_candidate_attention.py",
        "np.abs(self.steps_left - number) >= origins.horizon",
        "np.abs(self.steps_left - number) > 0",
        "shocks that series share choose the bandwidth",
    ),
    Mutation(
        "forecasting/_candidate_attention.py",
        "attended[attended < MIN_WEIGHT] = 0.0",
        "attended[attended < MIN_WEIGHT] = MIN_WEIGHT",
        "weights below one in a hundred are not none",
    ),
    Mutation(
        "forecasting/_panel_ridge.py",
        "is_target = origins.target_steps < ends[series][:, None]",
        "is_target = origins.target_steps >= 0",
        "held-out corrections know the end of the series",
    ),
    Mutation(
        "forecasting/_calibration.py",
        "_MIN_UNIT_RATIO * unit_of_origin)",
        "0 * unit_of_origin)",
        "a jump counts twice in intervals",
    ),
    Mutation(
        "forecasting/_classical.py",
        "self.damping[:, None] ** np.arange(1, n_steps + 1)",
        "self.damping[:, None] ** np.arange(n_steps)",
        "the first step ahead is not damped",
    ),
    Mutation(
        "forecasting/_frequency.py",
        "check_memory(what, (*shape, 16),",
        "check_memory(what, shape,",
        "only one of the arrays of all steps is counted",
    ),
    Mutation(
        "forecasting/_classical.py",
        "bends = np.diff(x[:, n_first] / np.maximum(n_first, 1), prepend=0.0)",
        "bends = x[:, n_first] / np.maximum(n_first, 1)",
        "the first trend added to those before it",
    ),
    Mutation(
        "forecasting/_network.py",
        "std = x.std(dim=1, correction=0, keepdim=True)",
        "std = x.std(dim=1, correction=1, keepdim=True)",
        "deviation over one step less",
    ),
    Mutation(
        "forecasting/_backtest.py",
        "first = self.ends[self.seen_series].min()",
        "first = self.ends[self.seen_series].max()",
        "features between the ends of series are lost",
    ),
    Mutation(
        "forecasting/_residual_sizes.py",
        "np.sqrt(ahead * (1 + ahead / n_differences))",
        "np.sqrt(ahead)",
        "the drift of a random walk is taken to be known",
    ),
    Mutation(
        "forecasting/_analogs.py",
        "_MIN_VARIATION * np.median(std[rows])",
        "_MIN_VARIATION * np.median(std)",
        "windows of small series do not vary enough beside large ones",
    ),
    Mutation(
        "forecasting/_season.py",
        "1 - (m - 3) / (m - 1) * noise",
        "1 - noise",
        "patterns of three phases are shrunk",
    ),
    Mutation(
        "forecasting/_residual_sizes.py",
        "    last = np.minimum(last, origins.table.lengths)\n",
        "",
        "steps after the end of a series count as horizons",
    ),
    Mutation(
        "forecasting/_analog_search.py",
        "errors * np.concatenate(unit_ratios) ** 2",
        "errors * np.concatenate(unit_ratios)",
        "errors of lookbacks are in units that are not squared",
    ),
    Mutation(
        "nn/_attention.py",
        "weights.masked_fill(~mask, 0.0) if is_bool else weights * mask.exp()",
        "weights.masked_fill(~mask, 0.0) if is_bool else weights + mask",
        "mask of logits added to weights",
    ),
    Mutation(
        "nn/_linear_attention.py",
        "self.sums = self.sums * torch.exp(self.shift - shift).mT",
        "self.sums = self.sums",
        "sums stay in the old scale",
    ),
    Mutation(
        "nn/_linear_attention.py",
        "torch.exp(mask.to(dtype) - largest)",
        "torch.exp(mask.to(dtype))",
        "logits of a mask overflow, or all vanish",
    ),
    Mutation(
        "nn/_patches.py",
        "torch.cat([x[:, :1].expand(-1, n_missing, -1), x], dim=1)",
        "torch.cat([x[:, -1:].expand(-1, n_missing, -1), x], dim=1)",
        "filled with the last step, not the first",
    ),
    Mutation(
        "nn/_positions.py",
        "encoding[first:].to(x.dtype)",
        "encoding[: x.shape[1]].to(x.dtype)",
        "every step is counted from the first",
    ),
    Mutation(
        "nn/_transformer.py",
        'return (x if self.norm == "pre" else inner) + out',
        "return x + out",
        "the normalised stream is not added back",
    ),
    Mutation(
        "nn/_multi_head.py",
        "memory is None or source is not None else memory.n_tokens",
        "memory is None or source is None else memory.n_tokens",
        "stored tokens are not counted",
    ),
    Mutation(
        "nn/_random.py",
        ".mul_(n_values / (n_values - n_dropped))",
        "",
        "what is kept does not grow",
    ),
    Mutation(
        "nn/_attention.py",
        "mask = mask.to(queries.dtype)",
        "mask = mask.to(queries.dtype).clamp_min(-1e4)",
        "a masked key of large logit gets all the weight",
    ),
    Mutation(
        "nn/_attention.py",
        "torch.finfo(weights.dtype).eps ** 0.5 * weights.abs()",
        "torch.finfo(weights.dtype).eps * weights.abs()",
        "signed weights that cancel but for rounding are divided by their sum",
    ),
    Mutation(
        "training/_batches.py",
        "fraction = (number + 0.5) / sizes.repeat_interleave(sizes)",
        "fraction = (number + 0.5) / sizes.max()",
        "small strata are not spread over all rows",
    ),
    Mutation(
        "training/_optimizers.py",
        "length = 0.2 * rate * max(matrices[0].shape) ** 0.5",
        "length = 0.2 * rate * min(matrices[0].shape) ** 0.5",
        "length of a step by the shorter side",
    ),
    Mutation(
        "training/_batches.py",
        "most_pairs // longest**2",
        "most_pairs // longest",
        "pairs of tokens not squared",
    ),
    Mutation(
        "training/_training.py",
        "fallen = (step - peak) / (n_steps - 1 - peak) if step > peak else 0.0",
        "fallen = (step - peak) / (n_steps - peak) if step > peak else 0.0",
        "the last step is not at the end of the schedule",
    ),
    Mutation(
        "training/_training.py",
        "return self._sizes[: self.n_steps - epoch * len(self._sizes)]",
        "return self._sizes",
        "the last epoch takes more steps than max_steps",
    ),
    Mutation(
        "training/_train.py",
        "enabled=enabled, cache_enabled=False)",
        "enabled=enabled)",
        "weights rounded in the first step are those of all steps in the caller's autocast",
    ),
    Mutation(
        "training/_train.py",
        ", run.autocast(enabled=False):",
        ":",
        "gradients and validation losses are computed in the caller's autocast",
    ),
    Mutation(
        "_thread_pools.py",
        "limit.leave(limit.of_this_thread() - before)",
        "pass",
        "linear algebra keeps one thread after an interrupt",
    ),
    Mutation(
        "training/_network.py",
        "of_each_thread=True",
        "of_each_thread=False",
        "a thread that leaves takes torch's number of another thread",
    ),
    Mutation(
        "_base.py",
        "torch.set_autocast_enabled(device, enabled)",
        "pass",
        "torch computes in bfloat16 after an interrupt",
    ),
    Mutation(
        "training/_train.py",
        "total += len(rows) * self._step(rows.to(self.device), step)",
        "total += sizes[0] * self._step(rows.to(self.device), step)",
        "a smaller batch counts like the others",
    ),
    Mutation(
        "training/_train.py",
        "loss=[*history.loss, total / sum(sizes)]",
        "loss=[*history.loss, total / self.n_samples]",
        "rows that an epoch cut short did not see count in its loss",
    ),
    Mutation(
        "transformer/_fitted.py",
        "precision * deviation @ deviation / 2",
        "precision * deviation @ deviation",
        "derivative of the penalty is that of another",
    ),
    Mutation(
        "transformer/_series_baseline.py",
        "leverage = np.minimum((u**2 @ shrinkage)[:, None] + share, 1 - 1e-6)",
        "leverage = np.minimum((u**2 @ shrinkage)[:, None], 1 - 1e-6)",
        "a row's part in the mean is left out of its leverage",
    ),
    Mutation(
        "transformer/_network.py",
        "return torch.maximum(tau * residuals, (tau - 1) * residuals)",
        "return torch.maximum(tau * residuals, -tau * residuals)",
        "errors below a quantile count as those above it",
    ),
    Mutation(
        "transformer/_task.py",
        "unit = max(mean, 1e-300) * (2 if self.quantile is None else 1)",
        "unit = max(mean, 1e-300)",
        "a squared error counts twice",
    ),
    Mutation(
        "transformer/_network.py",
        "return without_padding.sum(dim=1) / is_token.sum(dim=1, keepdim=True)",
        "return without_padding.mean(dim=1)",
        "the mean is over padding too",
    ),
    Mutation(
        "transformer/_series_baseline.py",
        "left_out = targets - residual / (1 - leverage)",
        "left_out = targets - residual",
        "errors of rows that were learned from",
    ),
    Mutation(
        "transformer/_series_baseline.py",
        "margin = int(4 * dilation * (min(lengths) > 8 * dilation))",
        "margin = int(4 * dilation * (max(lengths) > 8 * dilation))",
        "short series have windows that are not whole",
    ),
    Mutation(
        "transformer/_network.py",
        "ramps = (u[..., None] - self.piece_starts).clamp(0, 1)",
        "ramps = (u[..., None] - self.piece_starts).clamp_min(0)",
        "pieces of a bent line go on where they should end",
    ),
    Mutation(
        "transformer/_series_baseline.py",
        "(indicators * logs).sum(axis=1) - 0.5 * logs.mean() / len(logs)",
        "(indicators * logs).sum(axis=1)",
        "probabilities of separable classes become certain",
    ),
    Mutation(
        "sequence/_seq2seq_network.py",
        "penalty = ((5 + n_written) / 6) ** length_penalty",
        "penalty = ((4 + n_written) / 6) ** length_penalty",
        "answers are taken to be shorter by one token",
    ),
    Mutation(
        "sequence/_token_counts.py",
        "counts += np.bincount(grams_at_beginning, minlength=len(keys))",
        "counts += np.bincount(grams_at_beginning, minlength=len(keys)) > 0",
        "a beginning that many texts share counts once",
    ),
    Mutation(
        "sequence/_fitted_language_model.py",
        "counted = model.counts_of(training).pair_log_proba(held_out)",
        "counted = model.counts_of(texts).pair_log_proba(held_out)",
        "the baseline is weighed by tokens that it has counted",
    ),
    Mutation(
        "sequence/_language_network.py",
        "return total / is_token.sum(dim=1, keepdim=True)",
        "return total / ids.shape[1]",
        "the mean is over padding too",
    ),
    Mutation(
        "sequence/_seq2seq_network.py",
        "n = int((target[:, 1:] != PADDING).sum())",
        "n = len(rows)",
        "blocks count by pairs, not by tokens",
    ),
    Mutation(
        "sequence/_sampling.py",
        "proba[np.cumsum(proba, axis=1) - proba >= top_p] = 0.0",
        "proba[np.cumsum(proba, axis=1) >= top_p] = 0.0",
        "the token that reaches the share is left out",
    ),
    Mutation(
        "sequence/_seq2seq.py",
        "n_shared, n_predicted, n_expected = totals[:, totals[2] > 0]",
        "n_shared, n_predicted, n_expected = totals",
        "n-grams longer than any text count as not found",
    ),
    Mutation(
        "sequence/_token_windows.py",
        "shared = np.arange(ids.shape[1]) < self.max_length - self.stride",
        "shared = np.arange(ids.shape[1]) <= self.max_length - self.stride",
        "one token of each later window does not count",
    ),
    Mutation(
        "sequence/_sampling.py",
        "np.cumsum(proba, axis=1) - proba >= top_p",
        "np.cumsum(proba, axis=1) - proba > top_p",
        "one token too many where probabilities sum to the share exactly",
    ),
    Mutation(
        "kernel_approximation/_positive_features.py",
        "covariance = 2 * rows.T @ rows / len(rows)",
        "covariance = rows.T @ rows / len(rows)",
        "directions suit sums of two rows with half their variance",
    ),
    Mutation(
        "text/_learn.py",
        "if share <= 0.5:",
        "if share < 0.5:",
        "words are doubted where exactly half of them occur once",
    ),
    Mutation(
        "text/_vocabulary.py",
        "(ids < 0) | (ids >= len(self))",
        "(ids < 0) | (ids > len(self))",
        "the number after the last token is taken for a token",
    ),
    Mutation(
        "inspection/_bandwidth.py",
        '0.01 if self.measure == "aicc" else 0.01 * abs(lowest)',
        "0.01 * abs(lowest)",
        "shaded bandwidths depend on the unit of the targets",
    ),
    Mutation(
        "inspection/_density.py",
        "1 - np.array(_SHARES), weights=weights, method",
        "1 - np.array(_SHARES), method",
        "contours ignore the weights of rows",
    ),
    Mutation(
        "inspection/_smooth.py",
        "np.linspace(np.nanmin(x), np.nanmax(x), grid_resolution)",
        "np.linspace(np.min(x), np.max(x), grid_resolution)",
        "one missing number leaves no range to draw",
    ),
]


def copy(package, tests, place):
    """Copy the package, and what its tests read, to a place of their own."""
    ignore = shutil.ignore_patterns("__pycache__", ".git", ".venv*", "_build", "gallery")
    for name in ("tests", "docs", "examples", "benchmarks", ".ci", ".github"):
        shutil.copytree(tests / name, place / name, ignore=ignore)
    shutil.copytree(package / PACKAGE, place / PACKAGE, ignore=ignore)
    for path in package.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, place)


def files_of_tests(place, folder, module=None):
    """Test files of a folder: a module's own, then those that name most of what it defines."""
    source = "" if module is None else (place / PACKAGE / module).read_text()
    names = set(re.findall(r"^ *(?:def|class) ([A-Za-z]\w+)", source, re.MULTILINE))
    own = "" if module is None else f"test{Path(module).stem}.py"

    def rank(path):
        words = Counter(re.findall(r"\w+", path.read_text()))
        return path.name != own, -sum(words[name] for name in names), path.name

    # Tests of this script fail with any mutation, which it finds only once.
    files = (place / "tests" / folder).glob("test_*.py")
    return sorted((path for path in files if path.name != "test_mutations.py"), key=rank)


def run(place, files, timeout=None):
    """Whether tests pass, the first that does not, and how many seconds they took."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "--no-header", *map(str, files)]
    environment = {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1", "CI": "1"}
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=place, env=os.environ | environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return False, f"time-out after {timeout:.0f} s", timeout
        raise
    if process.returncode not in (0, 1, 2):
        raise SystemExit(f"pytest ended with {process.returncode}:\n{output}")
    first = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+)", output, re.MULTILINE)
    passes = process.returncode == 0
    return passes, "" if passes else first[1] if first else output, time.monotonic() - start


def check(place, folder):
    """Stop unless the tests of a folder pass, and import the copy; the seconds they take."""
    where = "import sys, sklearn_attention; sys.stdout.write(sklearn_attention.__file__)"
    environment = os.environ | {"PYTHONPATH": str(place)}
    found = subprocess.check_output(
        [sys.executable, "-c", where], cwd=place, env=environment, text=True
    )
    if place.resolve() not in Path(found).resolve().parents:
        raise SystemExit(f"tests import {found}, which is not the copy")
    passes, first, seconds = run(place, files_of_tests(place, folder))
    if not passes:
        raise SystemExit(f"tests/{folder} fails without any mutation: {first}")
    print(f"      passes    {seconds:4.0f} s  {folder}", flush=True)
    return seconds


def try_mutation(number, clean, timeout):
    """Run the tests with one mutation, print what they say; whether it was noticed."""
    mutation = MUTATIONS[number]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "copy"
        shutil.copytree(clean, place)
        path = place / PACKAGE / mutation.module
        path.write_text(mutation.of(path.read_text()))
        survived, first, seconds = run(
            place, files_of_tests(place, mutation.folder, mutation.module), timeout
        )
    what = first or mutation.wrong
    said = "survived" if survived else "killed"
    print(f"{number:4}  {said:8}  {seconds:4.0f} s  {mutation.module}  {what}", flush=True)
    return not survived


def main():
    """Run some mutations, and exit with 1 where too few are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", type=int, nargs="*", help="of mutations; all by default")
    parser.add_argument("--folder", action="append", help="all mutations of a folder")
    parser.add_argument("--tests", type=Path, default=ROOT, help="checkout with the tests")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time")
    parser.add_argument("--list", action="store_true", help="print them, run nothing")
    options = parser.parse_args()
    numbers = options.numbers or range(len(MUTATIONS))
    if options.folder:
        numbers = [i for i in numbers if MUTATIONS[i].folder in options.folder]
    if options.list:
        for i in numbers:
            print(f"{i:4}  {MUTATIONS[i].module}: {MUTATIONS[i].wrong}")
        return 0
    start = time.monotonic()
    killed, total = Counter(), Counter(MUTATIONS[i].folder for i in numbers)
    for folder in total:
        with tempfile.TemporaryDirectory() as clean, ThreadPoolExecutor(options.jobs) as pool:
            copy(ROOT, options.tests.resolve(), Path(clean))
            timeout = SLOWER * check(Path(clean), folder) + SECONDS
            own = [i for i in numbers if MUTATIONS[i].folder == folder]
            found = [pool.submit(try_mutation, i, clean, timeout) for i in own]
            killed[folder] = sum(each.result() for each in found)
    for folder, n in total.items():
        print(f"{folder:18} {killed[folder]:3} of {n:3} killed")
    seconds = time.monotonic() - start
    print(f"{'all':18} {killed.total():3} of {total.total():3} killed in {seconds:.0f} s")
    return int(killed.total() < LEAST_SHARE * total.total())


if __name__ == "__main__":
    sys.exit(main())
