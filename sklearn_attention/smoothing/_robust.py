"""Weights of rows by their residuals, with which outliers among the targets do not count."""

from dataclasses import replace
from functools import partial

import numpy as np

from ..bandwidth._search import ValueSample, canonical_ratio, rate_lambdas, search_range
from ..kernels._product_kernel import mixed_kernel
from ._fitted_smoother import FittedSmoother, counts_of, weighed
from ._local_errors import widened

# A row has no weight from so many local standard deviations on: averages of normal targets then
# keep 96 % of their efficiency.
_REACH = 5.0
# Up to where squares are bounded, so that their mean is one half at the standard deviation of
# normal errors, however large up to half of all errors are: Rousseeuw and Yohai (1984).
_BEND, _BREAKDOWN = 1.5476, 0.5
_MOST_STEPS, _SETTLED = 20, 0.01
# Scales are of this many rows times the root of all: ever more rows, ever closer to each other.
_ROWS_OF_SCALES = 3.0
# Up to so many rows the weights of all pairs are kept.
_MOST_PAIRED = 2000
# Searches of the bandwidth; weights that move less in between are settled.
_MOST_SEARCHES, _SAME_WEIGHTS = 3, 0.01
# The first weights are of the best of so many bandwidths for a sample, after passes at each;
# larger errors, in standard deviations, count as these.
_BANDWIDTHS, _SAMPLED_ROWS, _PASSES, _LARGEST_ERROR = 11, 1000, 2, 3.0
# Errors this small relative to the targets are rounding.
_ROUNDING = 1e-12
# Least mean slope of the loss in `noise_variance`; .85 in normal noise.
_LEAST_SLOPE = 0.25


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
    weights = _first_weights(rows, kernel)
    for _ in range(_MOST_SEARCHES):
        some = replace(rows, sample_weight=weighed(rows.sample_weight, weights))
        choice = rule.choose(some, kernel)
        smoother = _smoother(some, kernel, choice.bandwidth, choice.n_neighbors)
        given = smoother.replace(key_weights=rows.sample_weight)
        before, weights = weights, _Scales(given).weights(smoother.errors)
        if np.abs(weights - before).max() < _SAME_WEIGHTS:
            break
    return weights


def noise_variance(smoother, X, errors):
    """Variance (n, n_outputs) of the noise that enters the variances of predictions."""
    # With errors r_i and robustness b_i = b(r_i), the local average of psi(r_i)^2 = (b_i r_i)^2
    # over the square of that of psi'(r_i) = b_i (5 - 4 / sqrt(b_i)) (Huber 1973, Annals of
    # Statistics 1, 799-821). To the smoother all rows count alike.
    if smoother.robustness is None:
        return smoother.average(X, errors**2)
    weights = smoother.robustness[:, None]
    slopes = 5 * weights - 4 * np.sqrt(weights)
    tables = np.hstack([(weights * errors) ** 2, weights**2, slopes, weights])
    *squares, kept, slope, total = smoother.average(X, tables).T
    slope = np.maximum(slope / total, _LEAST_SLOPE)
    return (squares / (kept * slope**2)).T


def _first_weights(rows, kernel):
    """Weights of rows by how far they are from the best of robust fits to a sample."""
    lines = replace(rows, degree=min(rows.degree, 1), gap=0, empty="nearest", widen=False)
    sample = ValueSample("robust", lines, _SAMPLED_ROWS)
    drawn = replace(
        lines, X=sample.X, values=sample.as_given, sample_weight=sample.sample_weight
    )
    numbers = rows.columns.is_numeric
    lambdas = rate_lambdas(len(sample), rows.columns, sample.sample_weight)
    ratio = canonical_ratio(kernel)
    low, high = search_range((sample.X / sample.spread)[:, numbers], ratio)
    # From wide to narrow. Narrow windows may be full of outliers that wide ones have left out,
    # and wide ones leave out what narrow ones follow: each begins with the weights of the one
    # before, and with all rows.
    fits, weights = [], None
    for scale in np.geomspace(high, low, _BANDWIDTHS):
        bandwidth = np.where(numbers, scale * sample.spread, lambdas)
        fits.append(_RobustFit(drawn, kernel, bandwidth))
        if weights is not None:
            fits.append(_RobustFit(drawn, kernel, bandwidth, weights))
        weights = fits[-1].weights
    unit = np.min([fit.deviation for fit in fits], axis=0)
    best = min(fits, key=lambda fit: fit.criterion(unit))
    smoother = _smoother(lines, kernel, best.smoother.bandwidth)
    scales = _Scales(smoother)
    # Of all rows, by the fit to some of them, and then by their own.
    weights = scales.weights(smoother.table - best.smoother.predict(rows.X))
    return scales.weights(_weighed(smoother, weights).errors)


class _RobustFit:
    """Rows weighed by their residuals in passes at one bandwidth."""

    def __init__(self, rows, kernel, bandwidth, weights=None):
        plain = _smoother(rows, kernel, bandwidth)
        self.scales = _Scales(plain)
        self.smoother = _weighed(plain, weights)
        for _ in range(_PASSES):
            self.weights = self.scales.weights(self.smoother.errors)
            self.smoother = _weighed(plain, self.weights)
        self.sizes = np.abs(self.smoother.errors)
        self.deviation = self.scales.deviation(self.sizes)

    def criterion(self, unit):
        """Penalised leave-one-out error, as of the search, of errors that are bounded."""
        bounded = np.minimum(self.sizes / unit, _LARGEST_ERROR)
        leverage = self.smoother.training.leverage
        freedom = leverage.sum() / np.count_nonzero(self.weights)
        return self.scales.overall(bounded**2).mean() * np.exp(freedom**2)


class _Scales:
    """Local scales of errors of the rows of a smoother, all of which count as given."""

    def __init__(self, smoother):
        smoother.need_positive_weights("robust=True")
        self.counts = smoother.counts
        n_rows = np.count_nonzero(self.counts)
        # Scales are of rows, none of which is far from all.
        wide = widened(smoother, _ROWS_OF_SCALES * np.sqrt(n_rows)).replace(remoteness=None)
        self.least = _ROUNDING * np.abs(smoother.table).max(axis=0) + np.finfo(float).tiny
        self.around = partial(wide.average, smoother.keys)
        if len(self.counts) <= _MOST_PAIRED:
            self.around = wide.weights(smoother.keys).__matmul__

    def weights(self, errors):
        """Robustness of rows that have such errors; 1 where an error is not known."""
        known = ~np.isnan(errors).any(axis=1)
        sizes = np.where(known[:, None], np.abs(errors), 0.0)
        scales = self._local(np.where(sizes > self.least, sizes, 0.0), known)
        furthest = np.minimum((sizes / (_REACH * scales)).max(axis=1), 1.0)
        return np.where(known, np.square(1 - np.square(furthest)), 1.0)

    def overall(self, sizes):
        """Their mean over all rows."""
        return np.average(sizes, axis=0, weights=self.counts)

    def deviation(self, sizes):
        """One scale for all rows, (n_outputs,)."""
        return self._settled(sizes, self.overall, np.maximum(self.overall(sizes), self.least))

    def _local(self, sizes, known):
        """Scales (n, n_outputs)."""
        known = known[:, None].astype(np.float64)
        share = self.around(known)
        # Around a row without an error there may be none that has one.
        share = np.where(share > 0, share, 1.0)

        def around(values):
            return self.around(known * values) / share

        scales = self._settled(sizes, around, self.deviation(sizes))
        # Where most errors are 0, nothing is known of how large the others may be nearby.
        exact = around((sizes == 0).astype(np.float64)) > _BREAKDOWN
        return np.maximum(np.where(exact, self.overall(sizes), scales), self.least)

    def _settled(self, sizes, average, scales):
        """Scales at which the average of bounded squares is one half."""
        for _ in range(_MOST_STEPS):
            squares = np.square(np.minimum(sizes / (_BEND * scales), 1.0))
            factor = np.sqrt(average(1 - (1 - squares) ** 3) / _BREAKDOWN)
            scales = np.maximum(scales * factor, self.least)
            if np.abs(factor - 1).max() < _SETTLED:
                break
        return scales


def _weighed(smoother, weights):
    """The smoother whose rows have these weights besides their own."""
    return smoother.replace(key_weights=weighed(smoother.key_weights, weights))


def _smoother(rows, kernel, bandwidth, n_neighbors=None):
    """The smoother of some rows at a bandwidth."""
    kernel = mixed_kernel(kernel, rows.columns, bandwidth)
    return FittedSmoother(
        rows.X, rows.values, rows.sample_weight, kernel, rows.columns, bandwidth, n_neighbors,
        rows.degree, rows.empty, rows.algorithm, rows.widen,
    )  # fmt: skip
