r"""Errors of predictions: leave-one-out residuals, and how large errors are at queries.

The expected size of an error at a query is

.. math:: \sqrt{u^2 + v}\, \sqrt{1 + b^2}.

The first factor is the noise of a target, with variance :math:`u^2` (1 unless rows have
weights), and that of the fit, with variance :math:`v = \sum_i l_i^2 / w_i` for the hat-matrix
weights :math:`l_i` and the weights :math:`w_i` of the rows, of mean 1. Both are in units of the
noise of a row of mean weight. The second factor has the error b of the model, which
``_model_error`` defines.

The rows are the training rows, the keys of a `FittedSmoother`, and the queries X are rows that
are predicted. The window of a query is the kernel weights of the rows around it. With a gap,
leave-one-out also leaves out this number of rows before and after each, since the noise of
neighbours in time is correlated.
"""

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from .._blocks import blocks_of_queries, evenly_spread
from .._new_levels import LevelEffects, with_new_levels
from .._partitions import need_all_rows, weights_or_ones
from ..bandwidth import select_bandwidth
from ._model_error import BANDWIDTH_FACTORS, ModelError, RowDistances, row_distances
from ._noise import Noise, autoregression

# Windows for scales and for distributions of residuals have at least this many rows: the
# residual of a single row, which also affects those of its neighbours, then hardly matters.
_ROWS_OF_SCALES, _ROWS_OF_DISTRIBUTIONS = 20, 40
# If no window is wide enough, lambdas (bandwidths of categories) move by these fractions of the
# way to where rows of all levels count alike.
_STEPS_TO_ALL_LEVELS = 1 - 2.0 ** -np.arange(1, 12)
# The factor on the bandwidth at which windows have enough rows is found on a sample of at most
# this many rows.
_MAX_SAMPLED_ROWS = 2000
# A scale below this fraction of the mean absolute residual is rounding.
_MIN_RELATIVE_SCALE = 1e-3
# Variances of leave-one-out predictions are computed for a sample of the rows, with at most
# this many pairs of a sampled row and any row.
_MAX_PAIRS = 2 * 10**7
# Smallest 1 - leverage at which a row can be predicted without itself.
_MIN_ONE_MINUS_LEVERAGE = 1e-7
# Distances from the nearest row are usual up to this many times their median, in one feature:
# 19 in 20 rows have no larger distance if rows are spread evenly.
_USUAL_MEDIANS = 4.0
# Smallest mean slope of the loss in `noise_variance`; it is 0.85 in normal noise.
_MIN_MEAN_SLOPE = 0.25
# Arguments of `FittedSmoother.leave_one_out` for averages, whatever the smoother's degree.
_AVERAGE_OPTIONS = {"degree": 0, "empty": "nearest"}


@dataclasses.dataclass(frozen=True)
class ErrorSettings:
    """What the errors of a fit depend on, beside the smoother that predicts.

    The weights of the smoother are the products of given weights and robust weights.
    """

    gap: int = 0  # number of rows before and after each whose noise is correlated with its own
    given_weights: Any = None  # (n_rows,) weights that were passed to `fit`; None for 1
    # (n_rows,) numbers in [0, 1] that multiply the given weights; None for 1.
    robustness: Any = None
    random_state: Any = 0  # draws the rows on which a bandwidth for residuals is searched

    def take(self, rows):
        """Return the settings for some of the rows: positions, a mask or a slice."""
        given_weights, robustness = (
            None if weights is None else weights[rows]
            for weights in (self.given_weights, self.robustness)
        )
        return dataclasses.replace(self, given_weights=given_weights, robustness=robustness)


class Errors:
    """Errors of the predictions of a `FittedSmoother`.

    What depends on the training rows alone is computed when it is first asked for, and kept.
    """

    def __init__(self, smoother):
        self.smoother, self.settings = smoother, smoother.error_settings

    @property
    def given_weights(self):
        """Weights of the rows that were passed to `fit`; None for 1."""
        if self.settings.robustness is None:
            return self.smoother.key_weights
        return self.settings.given_weights

    @property
    def given_row_weights(self):
        """Weights (n_rows,) that were passed to `fit`, as an array also if all are 1.

        Robust weights are not in them, since outliers are targets too.
        """
        return weights_or_ones(self.smoother.keys, self.given_weights)

    @cached_property
    def loo_residuals(self):
        """Values of the rows less their leave-one-out predictions, (n_rows, n_outputs)."""
        smoother = self.smoother
        need_all_rows("intervals, bands, quantiles and tests", smoother.keys)
        left_out = smoother.training_predictions.left_out
        if self.settings.gap:
            rows, left_out = np.flatnonzero(smoother.row_weights), left_out.copy()
            left_out[rows] = smoother.predict_left_out(rows, gap=self.settings.gap)
        return smoother.values_2d - left_out

    def need_all_residuals(self, what):
        """Raise ValueError if a row has no leave-one-out residual; `what` needs all.

        A row has none if no other row is in its window.
        """
        n_unknown = int(np.isnan(self.loo_residuals).any(axis=1).sum())
        if n_unknown:
            raise ValueError(
                f"{what} needs every leave-one-out error, but {n_unknown} of "
                f"{len(self.loo_residuals)} training rows cannot be predicted from the other "
                "rows: fit with more rows, a larger bandwidth or empty='nearest' (got "
                f"{self.smoother.empty!r})."
            )

    # Variances

    @cached_property
    def noise(self):
        """The `Noise` of the rows, whose unit is the noise of a row of mean weight.

        If the setting `gap` is not 0, it is an autoregression of at most `gap` lags.
        """
        weights = self.given_row_weights
        has_weight = weights > 0
        mean_weight = weights[has_weight].mean()
        variances = np.where(has_weight, mean_weight / np.where(has_weight, weights, 1), 1)
        if not self.settings.gap:
            return Noise(variances)
        # An autoregression is fitted to the residuals of each output, in units of their local
        # scale, so that their variance is constant. Rows of weight 0 have the residual 0.
        residuals = np.where(has_weight, self.loo_residuals.T / np.sqrt(variances), 0).T
        mean_squares = self.scale_windows.average(self.smoother.keys, residuals**2)
        scales = scales_above_rounding(np.sqrt(mean_squares), residuals)
        standardized = residuals / scales
        gap = self.settings.gap
        return Noise(variances, tuple(autoregression(series, gap) for series in standardized.T))

    @cached_property
    def standardized(self):
        """Leave-one-out residuals divided by their expected size, (n_rows, n_outputs).

        They are 0 for rows of weight 0.
        """
        has_weight = self.smoother.row_weights > 0
        standardized = np.zeros_like(self.loo_residuals)
        # Each row of positive weight has a variance, and the mean distance of the rows that its
        # prediction without itself rests on.
        variances, distances = self._loo_variances
        expected = np.sqrt(variances * (1 + self.model_error.squares(distances)))
        standardized[has_weight] = self.loo_residuals[has_weight] / expected
        return standardized

    def expected_size(self, X, hat_weights):
        """Return the expected size of errors at queries, (n_queries, n_outputs).

        ``hat_weights`` (n_queries, n_rows) are the rows of the hat matrix at the queries.
        """
        target, fit, model = self.variance_terms(X, hat_weights)
        return np.sqrt((target + fit) * model)

    def variance_terms(self, X, hat_weights):
        """Return the terms u², v and 1 + b² of the expected size of errors at queries.

        Their shapes are (n_queries, 1), (n_queries, n_outputs or 1) and (n_queries, n_outputs).
        Arguments are those of `expected_size`.
        """
        target = self._target_variance(X)
        fit = self.noise.variances_of_sums(hat_weights)
        return target, fit, 1 + self._model_error_sizes(X, hat_weights) ** 2

    def _target_variance(self, X):
        """Return the variance u² of the noise of new targets at queries, (n_queries, 1).

        A new target is as precise as the rows around it, whose variances are averaged.
        """
        if self.given_weights is None:
            return np.ones((len(X), 1))
        nearest = self.smoother.replace(empty="nearest")
        return nearest.average(X, self.noise.variances[:, None])

    def _model_error_sizes(self, X, hat_weights):
        """Return the sizes b of the model's errors at queries, (n_queries, n_outputs)."""
        edge, outside = self.smoother.move_to_edge(X)
        if not len(outside):
            return self.model_error.sizes(X, hat_weights)
        # A prediction beyond the rows is that at their edge, plus the change of a local line
        # from there. So b is the size at the edge, plus the growth of the line's size from
        # there.
        line = self.smoother.extrapolating_line
        line_at_query = line.local_rows(X[outside]).effects
        line_at_edge = line.local_rows(edge[outside]).effects
        edge_weights = hat_weights.copy()
        edge_weights[outside] -= line_at_query - line_at_edge
        sizes, line_error = self.model_error.sizes(edge, edge_weights), line.errors.model_error
        size_at_query = line_error.sizes(X[outside], line_at_query)
        growth = size_at_query - line_error.sizes(edge[outside], line_at_edge)
        sizes[outside] += growth.clip(0)
        return sizes

    @cached_property
    def model_error(self):
        """The `ModelError`, which computes the errors b of the model at queries."""
        _, distances = self._loo_variances
        return ModelError(self.smoother, self.loo_residuals, self.noise.variances, distances)

    @cached_property
    def _loo_variances(self):
        """Variances u² + v of leave-one-out residuals, (n, n_outputs), and `RowDistances`.

        Both are those of the n rows of positive weight. If there are very many, they are
        computed for a sample, and the other rows get the median of the sample.
        """
        smoother, noise = self.smoother, self.noise
        rows = np.flatnonzero(smoother.row_weights)
        sample = evenly_spread(np.arange(len(rows)), max(100, _MAX_PAIRS // len(rows)))
        scaled_rows = smoother.scaled_rows(smoother.keys)
        results_of_blocks = []
        for block in blocks_of_queries(len(sample), len(smoother.keys)):
            predicted = rows[sample[block]]
            hat_weights, is_predicted = self._loo_hat_weights(predicted, rows, scaled_rows)
            variances = noise.variances_of_sums(hat_weights)
            variances = np.where(is_predicted[:, None], variances, 1.0)
            distances = row_distances(scaled_rows[predicted], scaled_rows, hat_weights)
            results_of_blocks.append(np.column_stack([*distances, variances]))
        # Three columns are the distances, and one for each output the variances v.
        results_of_sample = np.concatenate(results_of_blocks)
        results = np.tile(np.median(results_of_sample, axis=0), (len(rows), 1))
        results[sample] = results_of_sample
        target_variances = _loo_averages(smoother, noise.variances[:, None])[rows]
        return target_variances + results[:, 3:], RowDistances(*results[:, :3].T)

    def _loo_hat_weights(self, predicted, rows, scaled_rows):
        """Return the hat weights (n_predicted, n_rows) of rows that the others predict.

        The second result (n_predicted,) is False for a row that the others do not predict,
        since it alone determines its prediction. Its hat weights are those of the nearest row.
        `predicted` are positions of rows, `rows` those of all rows of positive weight, and
        `scaled_rows` all rows in bandwidths.
        """
        # With an adaptive bandwidth, the next neighbour replaces the row that is left out.
        smoother, more = self.smoother, 0 if self.smoother.n_neighbors is None else 1
        hat_weights = smoother.local_rows(smoother.keys[predicted], more).effects
        # The prediction without a row has the hat weights of the others, divided by
        # 1 - leverage, so that their sum is 1.
        diagonal = np.arange(len(predicted)), predicted
        one_minus_leverage = 1 - hat_weights[diagonal]
        hat_weights[diagonal] = 0.0
        is_predicted = one_minus_leverage > _MIN_ONE_MINUS_LEVERAGE
        hat_weights /= np.where(is_predicted, one_minus_leverage, 1.0)[:, None]
        # Otherwise the weights of the others are rounding errors.
        for position in np.flatnonzero(~is_predicted) if len(rows) > 1 else ():
            own_row = predicted[position]
            other_rows = rows[rows != own_row]
            differences = scaled_rows[other_rows] - scaled_rows[own_row]
            nearest = other_rows[(differences**2).sum(axis=1).argmin()]
            hat_weights[position] = 0.0
            hat_weights[position, nearest] = 1.0
        return hat_weights, is_predicted

    # Local averages of residuals

    @cached_property
    def scale_windows(self):
        """`WideAverages` in windows of enough rows for the local scale of their residuals."""
        return self._wide_averages(_ROWS_OF_SCALES)

    @cached_property
    def distribution_windows(self):
        """`WideAverages` in windows of enough rows for the distribution of their residuals."""
        return self._wide_averages(_ROWS_OF_DISTRIBUTIONS)

    def _wide_averages(self, n_rows):
        """Return averages whose windows have at least `n_rows` rows."""
        return WideAverages(widen_windows(self.smoother, n_rows), self._isolation)

    @cached_property
    def _isolation(self):
        """The `Isolation` of queries from the rows."""
        return Isolation.from_smoother(self.smoother)

    @cached_property
    def mean_sizes(self):
        """Averages of the absolute standardized residuals, for heteroscedastic intervals.

        They are a pair: the `WideAverages` in whose windows queries average these sizes, and
        the leave-one-out averages at the rows, (n_rows, n_outputs).
        """
        # The sizes have a bandwidth of their own. Rows count alike, also outliers.
        self.need_all_residuals("heteroscedastic=True")
        sizes, smoother = np.abs(self.standardized), self.smoother.unweighted
        bandwidth, *_ = select_bandwidth(
            smoother.keys,
            sizes,
            smoother.kernel,
            sample_weight=smoother.key_weights,
            random_state=self.settings.random_state,
            empty="nearest",
            algorithm=smoother.algorithm,
        )
        # Only numbers get new bandwidths; the lambdas of categories are those of the kernel.
        bandwidth = np.where(smoother.columns.is_numeric, bandwidth, smoother.bandwidth)
        size_smoother = smoother.replace(values=sizes, bandwidth=bandwidth, n_neighbors=None)
        size_smoother = widen_windows(size_smoother, _ROWS_OF_SCALES)
        sizes_at_rows = scales_above_rounding(_loo_averages(size_smoother, sizes), sizes)
        averages = WideAverages(size_smoother, Isolation.from_smoother(size_smoother))
        return averages, sizes_at_rows

    # Other errors

    @cached_property
    def band_errors(self):
        """`Errors` of the smoother that bands are around, which has less bias."""
        errors = Errors(self.smoother.band_smoother)
        # Its noise is that around the curve that predicts best.
        errors.noise = self.noise
        return errors

    @cached_property
    def level_effects(self):
        """The `LevelEffects` of new levels: those that no row of positive weight has."""
        return _SmootherLevelEffects(self)


class _SmootherLevelEffects(LevelEffects):
    """Effects of levels that did not occur in training on the predictions of a smoother."""

    def __init__(self, errors):
        # `errors` are the `Errors` of the smoother.
        smoother = errors.smoother
        self._smoother, self._residuals = smoother, errors.loo_residuals
        weighted, n_outputs = np.flatnonzero(smoother.row_weights), self._residuals.shape[1]
        super().__init__(smoother.keys, weighted, weighted, smoother.columns, n_outputs)

    def _errors(self, category, rows, groups):
        """Return errors of rows whose level is left out, and their leave-one-out residuals.

        Both have the shape (n_rows, n_outputs). The base class defines the arguments.
        """
        smoother, predicted = self._smoother, []
        for group, is_left_out in groups:
            queries = with_new_levels(smoother.keys[group], category)
            predicted.append(smoother.take(~is_left_out).predict(queries))
        predictions = np.concatenate(predicted).reshape(len(rows), -1)
        return smoother.values_2d[rows] - predictions, self._residuals[rows]

    def _weights_near(self, category, X, rows):
        """Return the weights of training rows at queries X, (n_queries, n_rows)."""
        return self._smoother.take(rows).replace(empty="nearest").weights(X)


def noise_variance(averages, X, residuals, robustness=None):
    """Return the variance of the noise around queries, (n_queries, n_outputs).

    Parameters
    ----------
    averages : FittedSmoother or WideAverages
        Averages the squared residuals around each query.
    X : ndarray of shape (n_queries, n_features)
        The queries.
    residuals : ndarray of shape (n_rows, n_outputs)
        Leave-one-out residuals.
    robustness : ndarray of shape (n_rows,), default=None
        Robust weights of the rows, from 0 to 1; None if the fit is not robust.
    """
    # With residuals r_i and robustness b_i = b(r_i), it is the local average of psi(r_i)^2 =
    # (b_i r_i)^2, divided by the square of that of psi'(r_i) = b_i (5 - 4 / sqrt(b_i)) (Huber
    # 1973, Annals of Statistics 1, 799-821). Averages already weight rows by b_i.
    if robustness is None:
        return averages.average(X, residuals**2)
    weights = robustness[:, None]
    slopes = 5 * weights - 4 * np.sqrt(weights)
    tables = np.hstack([(weights * residuals) ** 2, weights**2, slopes, weights])
    *squares, squared_weight, slope, total = averages.average(X, tables).T
    slope = np.maximum(slope / total, _MIN_MEAN_SLOPE)
    return (squares / (squared_weight * slope**2)).T


def scales_above_rounding(scales, residuals):
    """Return scales (n, n_outputs) that may be divided by.

    A scale that is rounding, relative to the residuals (n_rows, n_outputs) of the output, is
    replaced by the smallest one that is not.
    """
    mean_sizes = np.abs(residuals).mean(axis=0)
    return np.maximum(scales, _MIN_RELATIVE_SCALE * mean_sizes + np.finfo(np.float64).tiny)


def _loo_averages(smoother, values):
    """Average values (n_rows, n_values) around each row without its own, (n_rows, n_values).

    Rows of weight 0 get the mean of all.
    """
    leave_one_out = smoother.leave_one_out(values, **_AVERAGE_OPTIONS)
    averages = np.broadcast_to(values.mean(axis=0), values.shape).copy()
    averages[leave_one_out.rows] = leave_one_out.predictions().left_out
    return averages


@dataclasses.dataclass(frozen=True)
class WideAverages:
    """Averages of values of the rows in wide windows, which grow where no row is near."""

    smoother: Any  # `FittedSmoother` that has these windows where rows are near
    isolation: Any  # `Isolation` of queries from the rows, which says how far rows are

    def average(self, X, values):
        """Average values (n_rows, n_values) of the rows at queries, (n_queries, n_values)."""
        return self.smoother.average(X, values, self._scale(X))

    def weights(self, X):
        """Return the weights (n_queries, n_rows) of the rows in averages at queries."""
        return self.smoother.weights(X, self._scale(X))

    def weighted_by(self, key_weights):
        """Return the averages in which rows have other weights, (n_rows,)."""
        smoother = self.smoother.replace(key_weights=key_weights)
        return dataclasses.replace(self, smoother=smoother)

    def _scale(self, X):
        """Return the factors (n_queries,) on the bandwidth; None for the smoother's own."""
        # Adaptive windows reach to rows everywhere, and other kernels have no distance.
        smoother = self.smoother
        if smoother.n_neighbors is not None or smoother.radial_form is None:
            return None
        return 1 + self.isolation.excess(smoother.scaled_rows(X)) / smoother.factor


def widen_windows(smoother, n_rows):
    """Widen the windows of a smoother, so that its averages are over `n_rows` rows at least.

    Returns a smoother in which all rows of positive weight count alike.
    """
    smoother = smoother.unweighted
    rows = evenly_spread(np.flatnonzero(smoother.row_weights), _MAX_SAMPLED_ROWS)
    adaptive_factors = smoother.bandwidth_factors(smoother.keys[rows])

    def has_enough_rows(leave_one_out, factor):
        # The mean weight of a row in its own average is one over the number of rows in it, and
        # the trace is the sum of these weights.
        scale = factor if adaptive_factors is None else factor * adaptive_factors
        return leave_one_out.scores([scale]).trace[0] <= len(rows) / n_rows

    leave_one_out = smoother.leave_one_out(rows=rows, **_AVERAGE_OPTIONS)
    for factor in BANDWIDTH_FACTORS:
        if has_enough_rows(leave_one_out, factor):
            return smoother.replace(factor=factor, empty="nearest")
    # If a level of a category has fewer rows, rows of other levels count as well.
    wide, columns = smoother, smoother.columns
    for step in _STEPS_TO_ALL_LEVELS if columns.categorical else ():
        lambdas = (1 - step) * smoother.bandwidth + step * columns.highest_lam
        wide = smoother.with_bandwidth(
            np.where(columns.is_numeric, smoother.bandwidth, lambdas)
        )
        if has_enough_rows(wide.leave_one_out(rows=rows, **_AVERAGE_OPTIONS), factor):
            break
    return wide.replace(factor=factor, empty="nearest")


class Isolation:
    """How much further queries are from the nearest row than rows are from each other.

    Parameters
    ----------
    scaled_rows : ndarray of shape (n_rows, d)
        Rows of positive weight, in bandwidths.
    """

    def __init__(self, scaled_rows):
        # There is no distance without columns, or between fewer than two rows.
        self._tree, self.usual_distance = None, 0.0
        if scaled_rows.shape[1] and len(scaled_rows) > 1:
            self._tree = KDTree(scaled_rows)
            distances = self._tree.query(scaled_rows, k=[2])[0]
            n_medians = _USUAL_MEDIANS ** (1 / scaled_rows.shape[1])
            self.usual_distance = np.median(distances) * n_medians

    @classmethod
    def from_smoother(cls, smoother):
        """Return the isolation from the rows of positive weight of a smoother."""
        return cls(smoother.scaled_rows(smoother.keys[smoother.row_weights > 0]))

    def excess(self, scaled_rows):
        """Return by how much the distances of queries exceed the usual distance, (n_queries,).

        `scaled_rows` (n_queries, d) are the queries, in bandwidths. A distance is that to the
        nearest row.
        """
        if self._tree is None:
            return np.zeros(len(scaled_rows))
        distances, _ = self._tree.query(scaled_rows)
        return np.maximum(distances - self.usual_distance, 0.0)
