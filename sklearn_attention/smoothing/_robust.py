"""Weights of rows by their residuals, with which outliers among the targets do not count."""

from dataclasses import replace
from functools import partial

import numpy as np

from ..bandwidth._rules import SMOOTHER_RULES
from ..kernels._product_kernel import mixed_kernel
from ._errors import widened
from ._fitted_smoother import FittedSmoother, counts_of, weighed

# A row has no weight from so many local standard deviations on: averages of normal targets then
# keep 96 % of their efficiency.
_REACH = 5.0
# Up to where squares are bounded, so that their mean is one half at the standard deviation of
# normal errors, however large up to half of all errors are: Rousseeuw and Yohai (1984).
_BEND, _BREAKDOWN = 1.5476, 0.5
# From the median, so many steps approach that, and stop short where most rows are outliers.
_STEPS = 8
# Scales are of this many rows times the root of all: ever more rows, ever closer to each other.
_ROWS_OF_SCALES = 3.0
# Up to so many rows the weights of all pairs are kept.
_MOST_PAIRED = 2000
# How often the bandwidth is chosen, and rows are weighed by their errors at it.
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
    """Weights (n_samples,) of rows by their errors, for the choice of their bandwidth."""
    # b_i = max(1 - (r_i / (c s_i))^2, 0)^2 with leave-one-out errors r_i of the rows so weighed
    # and their local scale s_i. The rule chooses the bandwidth; the kernel compares numeric
    # columns.
    n_rows = np.count_nonzero(counts_of(rows.X, rows.sample_weight))
    if n_rows < 2:
        raise ValueError(
            "robust=True compares each row with the others and needs two rows of positive "
            f"weight, got n_samples={n_rows}: pass more rows, or robust=False."
        )
    scales, weights = _Scales(rows, kernel), None
    for _ in range(_PASSES):
        some = replace(rows, sample_weight=weighed(rows.sample_weight, weights))
        choice = rule.choose(some.without_outliers(), kernel)
        smoother = _smoother(some, kernel, choice.bandwidth, choice.n_neighbors)
        weights = scales.weights(smoother.errors.left_out)
    return weights


def with_mean_weight_1(rows):
    """Return the rows for a rule of thumb, which takes the sum of weights for their number."""
    if rows.sample_weight is None:
        return rows
    mean = rows.sample_weight[rows.sample_weight > 0].mean()
    return replace(rows, sample_weight=rows.sample_weight / mean)


class _Scales:
    """Local scales of errors of rows, all of which count as given."""

    # Their windows are those of a rule of thumb, which knows neither errors nor outliers.

    def __init__(self, rows, kernel):
        rows = with_mean_weight_1(rows)
        bandwidth = SMOOTHER_RULES["scott"].choose(rows.without_outliers(), kernel).bandwidth
        smoother = _smoother(rows, kernel, bandwidth)
        smoother.need_positive_weights("robust=True")
        self.counts = smoother.counts
        n_rows = np.count_nonzero(self.counts)
        wide = widened(smoother, _ROWS_OF_SCALES * np.sqrt(n_rows))
        self.least = _ROUNDING * np.abs(smoother.table).max(axis=0) + np.finfo(float).tiny
        self.around = partial(wide.average, smoother.keys)
        if len(self.counts) <= _MOST_PAIRED:
            self.around = wide.weights(smoother.keys).__matmul__

    def weights(self, errors):
        """Robustness of rows that have such errors; 1 where an error is not known."""
        known = ~np.isnan(errors).any(axis=1)
        sizes = np.where(known[:, None], np.abs(errors), 0.0)
        scales = self.local(np.where(sizes > self.least, sizes, 0.0), known)
        furthest = np.minimum((sizes / (_REACH * scales)).max(axis=1), 1.0)
        return np.where(known, np.square(1 - np.square(furthest)), 1.0)

    def local(self, sizes, known):
        """Scales (n, n_outputs)."""
        known = known[:, None].astype(np.float64)
        share = self.around(known)
        # Around a row without an error there may be none that has one.
        share = np.where(share > 0, share, 1.0)

        def around(values):
            return self.around(known * values) / share

        # From below, and not up to what they are where outliers are most of the rows.
        scales = np.maximum([self._median(own) for own in sizes.T], self.least)
        for _ in range(_STEPS):
            squares = np.square(np.minimum(sizes / (_BEND * scales), 1.0))
            factor = np.sqrt(around(1 - (1 - squares) ** 3) / _BREAKDOWN)
            scales = np.maximum(scales * factor, self.least)
        # Where most errors are 0, nothing is known of how large the others may be nearby.
        exact = around((sizes == 0).astype(np.float64)) > _BREAKDOWN
        mean = np.average(sizes, axis=0, weights=self.counts)
        return np.maximum(np.where(exact, mean, scales), self.least)

    def _median(self, sizes):
        """Median of the sizes that are not 0; 0 if all are."""
        some = (sizes > 0) & (self.counts > 0)
        options = {"weights": self.counts[some], "method": "inverted_cdf"}
        return np.quantile(sizes[some], 0.5, **options) if some.any() else 0.0


def _smoother(rows, kernel, bandwidth, n_neighbors=None):
    """The smoother of some rows at a bandwidth."""
    kernel = mixed_kernel(kernel, rows.columns, bandwidth)
    members = ((rows.degree, bandwidth, 1.0),)
    return FittedSmoother(
        rows.X, rows.values, rows.sample_weight, kernel, rows.columns, members, n_neighbors,
        rows.empty, rows.algorithm,
    )  # fmt: skip
