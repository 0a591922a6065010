"""Weights of rows by their residuals, so that outliers among the targets do not count."""

from dataclasses import replace
from functools import partial

import numpy as np

from ..bandwidth._rules import SMOOTHER_RULES
from ..kernels._product_kernel import mixed_kernel
from ._errors import widened
from ._fitted_smoother import FittedSmoother, counts_of, weighed

# Residuals of at least this many local standard deviations have weight 0: averages of normal
# targets then keep 96 % of their efficiency.
_CUTOFF = 5.0
# The bisquare loss is bounded beyond the first number of scales. Its mean is the second number,
# one half, at the standard deviation of normal errors, so that up to half of all errors may be
# of any size (Rousseeuw and Yohai 1984).
_BEND, _BREAKDOWN = 1.5476, 0.5
# Number of steps from the median to this scale; they stop short if most rows are outliers.
_STEPS = 8
# A local scale is computed from this number times the square root of the number of rows.
_ROWS_OF_SCALES = 3.0
# Maximum number of rows for which the weights of all pairs are kept in memory.
_MAX_PAIRED_ROWS = 2000
# Number of times that the bandwidth is chosen, and rows are weighted by their errors at it.
_PASSES = 3
# If a target has at most this many different values, its rare values are no errors: robust
# weights made the errors of counts 7 % larger, and doubled those of flags and of rain.
_FEW_VALUES = 12
# Errors this small relative to the targets are rounding.
_ROUNDING = 1e-12


def doubts_of_robustness(rows):
    """Yield warnings about targets whose rare values `robust` takes for outliers."""
    for target in rows.values[counts_of(rows.X, rows.sample_weight) > 0].T:
        (values, counts), n = np.unique(target, return_counts=True), len(target)
        if 1 < len(values) <= min(_FEW_VALUES, n / 2) or n / 2 < counts.max() < n:
            mode = f"{counts.max() / n:.0%} of which are {values[counts.argmax()]:g}"
            yield (
                f"robust=True takes rare values for outliers, but y has {len(values)} values "
                f"in {n} rows, {mode}: pass robust=False, unless they are errors."
            )


def robustness(rows, rule, kernel):
    """Compute weights (n_samples,) of rows by their errors, with which a bandwidth is chosen.

    The weight is ``b_i = max(1 - (r_i / (c s_i))^2, 0)^2`` with leave-one-out errors r_i of the
    weighted rows and their local scale s_i. The rule chooses the bandwidth; the kernel compares
    numeric columns.
    """
    n_rows = np.count_nonzero(counts_of(rows.X, rows.sample_weight))
    if n_rows < 2:
        raise ValueError(
            "robust=True compares each row with the others and needs two rows of positive "
            f"weight, got n_samples={n_rows}: pass more rows, or robust=False."
        )
    scales, weights = _Scales(rows, kernel), None
    for _ in range(_PASSES):
        weighted = replace(rows, sample_weight=weighed(rows.sample_weight, weights))
        choice = rule.choose(weighted.without_outliers(), kernel)
        smoother = _smoother(weighted, kernel, choice.bandwidth, choice.n_neighbors)
        weights = scales.weights(smoother.errors.loo_residuals)
    return weights


def with_mean_weight_1(rows):
    """Return the rows for a rule of thumb, which takes the sum of weights for their number."""
    if rows.sample_weight is None:
        return rows
    mean = rows.sample_weight[rows.sample_weight > 0].mean()
    return replace(rows, sample_weight=rows.sample_weight / mean)


class _Scales:
    """Local scales of errors, for which rows have their own weights.

    The windows are those of a rule of thumb, which depends on neither errors nor outliers.
    """

    def __init__(self, rows, kernel):
        rows = with_mean_weight_1(rows)
        bandwidth = SMOOTHER_RULES["scott"].choose(rows.without_outliers(), kernel).bandwidth
        smoother = _smoother(rows, kernel, bandwidth)
        smoother.need_positive_weights("robust=True")
        self.counts = smoother.counts
        n_rows = np.count_nonzero(self.counts)
        wide = widened(smoother, _ROWS_OF_SCALES * np.sqrt(n_rows))
        largest = np.abs(smoother.table).max(axis=0)
        self.min_scale = _ROUNDING * largest + np.finfo(float).tiny
        self.around = partial(wide.average, smoother.keys)
        if len(self.counts) <= _MAX_PAIRED_ROWS:
            self.around = wide.weights(smoother.keys).__matmul__

    def weights(self, errors):
        """Return the robustness weights of rows with these errors; 1 if an error is NaN."""
        is_known = ~np.isnan(errors).any(axis=1)
        sizes = np.where(is_known[:, None], np.abs(errors), 0.0)
        scales = self.local(np.where(sizes > self.min_scale, sizes, 0.0), is_known)
        largest = np.minimum((sizes / (_CUTOFF * scales)).max(axis=1), 1.0)
        return np.where(is_known, np.square(1 - np.square(largest)), 1.0)

    def local(self, sizes, is_known):
        """Compute local scales (n, n_outputs) of absolute errors."""
        is_known = is_known[:, None].astype(np.float64)
        share = self.around(is_known)
        # No row around a row without an error may have one.
        share = np.where(share > 0, share, 1.0)

        def around(values):
            return self.around(is_known * values) / share

        # Scales grow from the median, and stop too early if most rows are outliers.
        scales = np.maximum([self._median(column) for column in sizes.T], self.min_scale)
        for _ in range(_STEPS):
            squares = np.square(np.minimum(sizes / (_BEND * scales), 1.0))
            factor = np.sqrt(around(1 - (1 - squares) ** 3) / _BREAKDOWN)
            scales = np.maximum(scales * factor, self.min_scale)
        # If most errors nearby are 0, they do not tell how large the others may be.
        is_exact = around((sizes == 0).astype(np.float64)) > _BREAKDOWN
        mean = np.average(sizes, axis=0, weights=self.counts)
        return np.maximum(np.where(is_exact, mean, scales), self.min_scale)

    def _median(self, sizes):
        """Return the weighted median of the sizes that are not 0; 0 if all are."""
        is_counted = (sizes > 0) & (self.counts > 0)
        if not is_counted.any():
            return 0.0
        options = {"weights": self.counts[is_counted], "method": "inverted_cdf"}
        return np.quantile(sizes[is_counted], 0.5, **options)


def _smoother(rows, kernel, bandwidth, n_neighbors=None):
    """Return the smoother of rows at a bandwidth."""
    kernel = mixed_kernel(kernel, rows.columns, bandwidth)
    members = ((rows.degree, bandwidth, 1.0),)
    return FittedSmoother(
        rows.X, rows.values, rows.sample_weight, kernel, rows.columns, members, n_neighbors,
        rows.empty, rows.algorithm,
    )  # fmt: skip
