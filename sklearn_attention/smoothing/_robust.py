"""Robust weights: rows with large residuals count less, or not at all.

The weight of a row with the leave-one-out residual r is Tukey's bisquare
``(1 - (r / (c s))^2)^2`` for ``|r| < c s``, and 0 beyond. The local scale s of residuals is an
S-estimate (Rousseeuw and Yohai 1984) in a window around the row, that is, in the kernel weights
of the rows around it.

The training rows come as `Rows`: a table X, the targets `values` (n, n_outputs), the weights
`sample_weight` (None for 1), and what the estimator smooths with. For its field `empty`,
"nearest" or "nan", see `FittedSmoother`.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from .._partitions import need_all_rows, weights_or_ones
from ..bandwidth._rules import SMOOTHER_RULES
from ..kernels._product_kernel import mixed_kernel
from ._errors import widen_windows
from ._fitted_smoother import FittedSmoother, single_member, weighed

# The factor c: residuals of at least this many local scales have weight 0. Averages of normal
# targets then keep 96 % of their efficiency.
_CUTOFF = 5.0
# The bisquare loss of the S-estimate is constant beyond the first number of scales, and the
# scale is where the mean loss is the second number. For normal errors it is the standard
# deviation, and up to half of all errors may be of any size (Rousseeuw and Yohai 1984).
_LOSS_CUTOFF, _BREAKDOWN_POINT = 1.5476, 0.5
# Number of steps of the iteration for the scale, which starts at the median.
_N_STEPS = 8
# A window for a local scale has at least this number times the square root of the number of all
# rows.
_ROWS_OF_SCALES = 3.0
# Maximum number of rows for which the weights of all pairs of rows are kept in memory.
_MAX_PAIRED_ROWS = 2000
# Number of times that the bandwidth is chosen, and rows are weighted by their residuals at it.
_N_PASSES = 3
# Rare values are taken for data, not for errors, if a target has at most this many different
# values: robust weights made the errors for counts 7 % larger, and doubled those for flags and
# for rain.
_FEW_VALUES = 12
# Residuals that are smaller than this, relative to the largest target, are rounding.
_ROUNDING = 1e-12


def doubts_of_robustness(rows):
    """Yield warnings about targets whose rare values robust=True takes for outliers."""
    for target in rows.values[weights_or_ones(rows.X, rows.sample_weight) > 0].T:
        (values, counts), n = np.unique(target, return_counts=True), len(target)
        # The target has few values, or one that more than half of the rows have.
        if 1 < len(values) <= min(_FEW_VALUES, n / 2) or n / 2 < counts.max() < n:
            mode = f"{counts.max() / n:.0%} of which are {values[counts.argmax()]:g}"
            yield (
                f"robust=True takes rare values for outliers, but y has {len(values)} values "
                f"in {n} rows, {mode}: pass robust=False, unless they are errors."
            )


def weight_robustly(rows, smoother, rule, kernel):
    """Return the `Rows` and the smoother of the training rows with robust weights.

    The weights are computed at bandwidths that the rule chooses for the kernel. The third
    result is an iterator of warnings about targets whose rare values count as outliers.
    """
    need_all_rows("errors of robust=True", rows.X)
    doubts = doubts_of_robustness(rows)
    robust_weights = robustness(rows, rule, kernel)
    rows = replace(rows, sample_weight=weighed(rows.sample_weight, robust_weights))
    settings = replace(smoother.error_settings, robustness=robust_weights)
    smoother = smoother.replace(key_weights=rows.sample_weight, error_settings=settings)
    return rows, smoother, doubts


def robustness(rows, rule, kernel):
    """Compute the robust weights (n_samples,) of rows, from 0 to 1.

    Each pass chooses a bandwidth for the rows with the weights of the pass before. New weights
    are computed from the leave-one-out residuals at this bandwidth.

    Parameters
    ----------
    rows : Rows
        The training rows.
    rule : BandwidthRule
        The rule that chooses bandwidths.
    kernel : Kernel
        The kernel of the numeric columns.
    """
    n_rows = np.count_nonzero(weights_or_ones(rows.X, rows.sample_weight))
    if n_rows < 2:
        raise ValueError(
            "robust=True compares each row with the others and needs two rows of positive "
            f"weight, got n_samples={n_rows}: pass more rows, or robust=False."
        )
    scales, robust_weights = _LocalScales(rows, kernel), None
    for _ in range(_N_PASSES):
        weights = weighed(rows.sample_weight, robust_weights)
        weighted = replace(rows, sample_weight=weights)
        choice = rule.choose(weighted.without_outliers(), kernel)
        smoother = _smoother_at(weighted, kernel, choice.bandwidth, choice.n_neighbors)
        robust_weights = scales.robust_weights(smoother.errors.loo_residuals)
    return robust_weights


def with_mean_weight_1(rows):
    """Return the rows with weights whose mean over the rows of positive weight is 1.

    Rules of thumb take the sum of the weights for the number of rows.
    """
    if rows.sample_weight is None:
        return rows
    mean = rows.sample_weight[rows.sample_weight > 0].mean()
    return replace(rows, sample_weight=rows.sample_weight / mean)


class _LocalScales:
    """Local scales of residuals of the training rows, in windows around each row.

    The windows are those of a rule of thumb, which depends on no target, widened until
    they have enough rows.
    """

    def __init__(self, rows, kernel):
        # Arguments are those of `robustness`.
        rows = with_mean_weight_1(rows)
        bandwidth = SMOOTHER_RULES["scott"].choose(rows.without_outliers(), kernel).bandwidth
        smoother = _smoother_at(rows, kernel, bandwidth)
        smoother.need_positive_weights("robust=True")
        self.row_weights = smoother.row_weights
        n_rows = np.count_nonzero(self.row_weights)
        wide = widen_windows(smoother, _ROWS_OF_SCALES * np.sqrt(n_rows))
        max_target = np.abs(smoother.values_2d).max(axis=0)
        # Smallest scale of each output, (n_outputs,), by which residuals may be divided.
        self.min_scale = _ROUNDING * max_target + np.finfo(float).tiny
        # ``average_around(values)`` averages values (n, n_values) in the window of each row. If
        # there are few rows, the weights of all pairs are computed once.
        self.average_around = partial(wide.average, smoother.keys)
        if len(self.row_weights) <= _MAX_PAIRED_ROWS:
            self.average_around = wide.weights(smoother.keys).__matmul__

    def robust_weights(self, residuals):
        """Return the robust weights (n,) of rows with leave-one-out residuals (n, n_outputs).

        A row with a NaN has the weight 1. With several outputs, the residual counts that is
        largest in units of its scale.
        """
        is_known = ~np.isnan(residuals).any(axis=1)
        sizes = np.where(is_known[:, None], np.abs(residuals), 0.0)
        scales = self.estimate(np.where(sizes > self.min_scale, sizes, 0.0), is_known)
        max_ratio = np.minimum((sizes / (_CUTOFF * scales)).max(axis=1), 1.0)
        return np.where(is_known, np.square(1 - np.square(max_ratio)), 1.0)

    def estimate(self, sizes, is_known):
        """Estimate the local scale around each row, (n, n_outputs).

        `sizes` (n, n_outputs) are absolute residuals, 0 for rounding, and `is_known` (n,) is
        False for rows without a residual, which are left out.
        """
        # 1. Averages are over the rows that have a residual. If a window has none, they are 0.
        known_weights = is_known[:, None].astype(np.float64)
        weight_of_known = self.average_around(known_weights)
        weight_of_known = np.where(weight_of_known > 0, weight_of_known, 1.0)

        def average(values):
            return self.average_around(known_weights * values) / weight_of_known

        # 2. The scale is where the mean bisquare loss in the window is `_BREAKDOWN_POINT`. The
        # iteration for it starts at the median of all rows. If most rows of a window are
        # outliers, it stops before it has reached their scale.
        scales = np.maximum([self._median(column) for column in sizes.T], self.min_scale)
        for _ in range(_N_STEPS):
            squares = np.square(np.minimum(sizes / (_LOSS_CUTOFF * scales), 1.0))
            loss = 1 - (1 - squares) ** 3
            factor = np.sqrt(average(loss) / _BREAKDOWN_POINT)
            scales = np.maximum(scales * factor, self.min_scale)
        # 3. If most residuals of a window are 0, they do not tell how large the others may be.
        # The mean size over all rows then takes the place of the scale.
        is_exact = average((sizes == 0).astype(np.float64)) > _BREAKDOWN_POINT
        mean = np.average(sizes, axis=0, weights=self.row_weights)
        return np.maximum(np.where(is_exact, mean, scales), self.min_scale)

    def _median(self, sizes):
        """Return the weighted median of the sizes (n,) that are not 0; 0 if all are 0."""
        is_counted = (sizes > 0) & (self.row_weights > 0)
        if not is_counted.any():
            return 0.0
        options = {"weights": self.row_weights[is_counted], "method": "inverted_cdf"}
        return np.quantile(sizes[is_counted], 0.5, **options)


def _smoother_at(rows, kernel, bandwidth, n_neighbors=None):
    """Return the `FittedSmoother` of `Rows` with a bandwidth (n_features,).

    The kernel is that of the numeric columns. If `n_neighbors` is passed, the bandwidth is
    adaptive: it is multiplied by the distance to this neighbour.
    """
    return FittedSmoother(
        rows.X,
        rows.values,
        rows.sample_weight,
        kernel=mixed_kernel(kernel, rows.columns, bandwidth),
        columns=rows.columns,
        member_fields=single_member(rows.degree, bandwidth),
        n_neighbors=n_neighbors,
        empty=rows.empty,
        algorithm=rows.algorithm,
    )
