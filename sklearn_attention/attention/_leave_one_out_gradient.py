"""Derivatives of leave-one-out errors in the bandwidth of every feature."""

import functools

import numpy as np

from .._blocks import IN_CACHE
from .._thread_pools import map_on_threads
from ..kernels import Constant
from ._algorithms._dense import split
from ._algorithms._nearest import nearest_by_pairs
from ._leave_one_out import Scores, own_share, with_themselves
from ._pair_sums import PairSums
from ._read import key_ranges, precision_of, rounding_of_distances
from ._solve import Basis, extent_of, local_unit, solve, solve_vjp

# Pairs below which threads cost more than they save, in passes that follow each other.
_FEW_PAIRS = 2**21


class LeaveOneOutGradient:
    r"""Leave-one-out errors and degrees of freedom of a smoother, with their derivatives.

    Weights are :math:`K\bigl((q - k) / h\bigr) \prod_j r_j^{\delta_j(q, k)}`, with a bandwidth
    :math:`h` per number and :math:`r_j \in [0, 1]` per category. :math:`\delta_j` is 1 for
    different levels of an unordered category, and the number of steps between those of an
    ordered one. Categories are codes; values (n, p); weights are positive.
    """

    def __init__(
        self, X, values, kernel, kinds, *, degree=0, sample_weight=None, empty="nearest"
    ):
        self._precision, X = precision_of(X), np.ascontiguousarray(X, dtype=np.float64)
        numeric = [j for j, kind in enumerate(kinds) if kind == "numeric"]
        categorical = [j for j, kind in enumerate(kinds) if kind in ("unordered", "ordered")]
        codes = X[:, categorical].astype(np.intp)
        self.steps = [
            _steps(kinds[j], n_levels)
            for j, n_levels in zip(categorical, codes.max(axis=0) + 1, strict=True)
        ]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.weights = np.ascontiguousarray(weights / np.max(weights))
        self.share = self.weights / self.weights.sum()
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.values = values - self.share @ values
        self.kernel = kernel if numeric else Constant()
        self.empty = empty
        share = functools.partial(map_on_threads, parallel=len(X) ** 2 > _FEW_PAIRS)
        self.sums = PairSums(X[:, numeric], codes, self.kernel, self.weights, map_blocks=share)
        self._passed, self.numbers = X[:, numeric], self.sums.numbers
        # The polynomials' coordinates are in units that no bandwidth changes.
        largest = np.abs(self.numbers).max(axis=0)
        self.unit = np.where(largest > 0, largest, 1.0)
        self.places = self.numbers / self.unit
        self.extent = extent_of(self.places, self.weights)
        self.basis = Basis(degree, len(numeric), len(X))
        # Moments are taken about the middle of neighbouring rows.
        size = max(1, IN_CACHE // len(X)) if self.basis.degree else len(X)
        self.blocks = split(self.places, np.arange(len(X)), max_rows=size)
        self.middles = np.empty_like(self.places)
        for rows in self.blocks:
            self.middles[rows] = self.places[rows].mean(axis=0)

    def __call__(self, log_bandwidth, log_level_weight=()):
        r"""Compute scores at log-bandwidths and :math:`\log r`, and the function `vjp`.

        ``vjp(slopes)`` turns derivatives along the scores into those along `log_bandwidth` and
        `log_level_weight`, one after the other. Scores are floats, NaN if a row has no
        prediction.
        """
        bandwidth = np.exp(np.asarray(log_bandwidth, dtype=np.float64))
        tables = [
            (np.exp(log_weight * steps), np.exp(log_weight * steps) * steps)
            for log_weight, steps in zip(log_level_weight, self.steps, strict=True)
        ]
        options = {"columns": self._columns(0)}
        if self.basis.degree:
            columns_of = {"columns": lambda rows: self._columns(rows[0])}
            options = columns_of | {"row_blocks": self.blocks}
        averages, log_total, sums_vjp = self.sums(bandwidth, tables, **options)
        self._fall_back(averages, log_total, bandwidth)
        scores, scores_vjp = self._scores(averages, log_total, bandwidth)

        def vjp(slopes):
            numbers, of_averages, of_log_total = scores_vjp(*slopes)
            gradient = sums_vjp(of_log_total, of_averages)
            gradient[: len(numbers)] += numbers
            return gradient

        return scores, vjp

    def _columns(self, row):
        """Return the columns that are averaged, about the middle of a row's block."""
        return self.basis.columns(self.places - self.middles[row], self.values)

    def _fall_back(self, averages, log_total, bandwidth):
        """Replace the averages of rows without any weight, in place."""
        empty = log_total == -np.inf
        if self.empty == "nan":
            averages[empty] = np.nan
            return
        scaled, passed = self.numbers / bandwidth, self._passed / bandwidth
        rounding = rounding_of_distances(passed, passed, self._precision)
        for block in self.blocks if empty.any() else ():
            rows = block[empty[block]]
            left_out = key_ranges(rows)
            _, is_nearest = nearest_by_pairs(scaled[rows], scaled, left_out, rounding[rows])
            weights = is_nearest * self.weights
            with np.errstate(invalid="ignore"):  # NaN where there is no other row
                weights /= weights.sum(axis=1, keepdims=True)
            # This is the nearest rows' average, as if they were all at this row.
            offset = self.places[rows] - self.middles[rows]
            averages[rows] = self.basis.columns(offset, weights @ self.values)

    def _scores(self, averages, log_total, bandwidth):
        """Compute the scores, and `vjp` to log-bandwidths, averages and log-totals."""
        basis, values = self.basis, self.values
        gram, cross = basis.moments(averages)
        if basis.degree:
            width = self.kernel.spread * bandwidth / self.unit
            unit = local_unit(width, self.extent)
            shift = basis.shift(self.places - self.middles, unit)
            gram, cross = shift @ gram @ shift.swapaxes(1, 2), shift @ cross
        terms = self.sums.log_own + np.log(self.weights), 1.0
        share = own_share(terms, log_total, 1.0)
        with_own = with_themselves(gram, cross, share, values)
        left_out, fitted = solve(gram, cross), solve(*with_own)
        reach = (fitted.solved_mean * fitted.mean).sum(axis=1)
        errors = [solution.value - values for solution in (left_out, fitted)]
        scores = [self.share @ np.square(error).mean(axis=1) for error in errors]
        leverage = share * (1 + reach)

        def vjp(of_left_out, of_fitted, of_trace):
            slopes = [
                2 / values.shape[1] * slope * self.share[:, None] * error
                for slope, error in zip((of_left_out, of_fitted), errors, strict=True)
            ]
            of_moments = solve_vjp(left_out, gram, cross, slopes[0], np.zeros(len(values)))
            joint = solve_vjp(fitted, *with_own, slopes[1], of_trace * share)
            of_share = of_trace * (1 + reach) + joint[0][:, 0, 0]
            of_share += np.vecdot(joint[1][:, 0], values)
            moments = zip(of_moments, joint, (gram, cross), strict=True)
            for of_without, of_joint, without in moments:
                of_without += (1 - share)[:, None, None] * of_joint
                of_share -= (of_joint * without).sum(axis=(1, 2))
            of_gram, of_cross = of_moments
            of_bandwidth = np.zeros(len(bandwidth))
            if basis.degree:
                # Where the unit is the kernel's width, terms fall as the bandwidth grows.
                along = (of_gram * gram).sum(axis=0)
                along = along.sum(axis=0) + along.sum(axis=1) + (of_cross * cross).sum((0, 2))
                along = along @ basis.powers[: basis.size]
                of_bandwidth = np.where(width < self.extent, -along, 0.0)
                of_gram = shift.swapaxes(1, 2) @ of_gram @ shift
                of_cross = shift.swapaxes(1, 2) @ of_cross
            of_averages = np.concatenate(
                [basis.of_products(of_gram), of_cross.reshape(len(of_cross), -1)], axis=1
            )
            return of_bandwidth, of_averages, -of_share * share * (1 - share)

        return Scores(*map(float, (*scores, leverage.sum()))), vjp


def _steps(kind, n_levels):
    """Return the numbers of steps between levels: 1 between any two unordered ones."""
    levels = np.arange(n_levels)
    steps = np.abs(levels[:, None] - levels)
    return steps.clip(max=1.0) if kind == "unordered" else steps.astype(np.float64)
