r"""Derivatives of leave-one-out errors in the bandwidth of every feature.

They are taken for searches of a bandwidth :math:`h_j` for each number and a *level weight*
:math:`r_j` in [0, 1] for each category. The weight of row k about row i is

.. math:: w_k\, K\bigl((x_i - x_k) / h\bigr) \prod_j r_j^{\delta_j(i, k)}

where :math:`\delta_j` is 1 for different levels of an unordered category, and the number of
steps between those of an ordered one. Time is O(n^2) for n rows, and so is memory for the
derivatives (`_pair_sums.py`).

Computed forwards are averages of products of the polynomial's terms about the *middle* of
blocks of rows, moments about each row, solutions without and with the row, and :class:`Scores`.
Every step returns its `vjp`, which turns derivatives along its results into derivatives along
its arguments, and is called in the reverse order. `of_x` is a derivative along x.
"""

import functools

import numpy as np

from .._blocks import IN_CACHE
from .._thread_pools import map_on_threads
from ..kernels import Constant
from ._algorithms._dense import split
from ._algorithms._nearest import nearest_by_pairs
from ._arrays import precision_of
from ._leave_one_out import Scores, add_own_rows, own_weight
from ._pair_sums import PairSums
from ._read import key_ranges, rounding_of_distances
from ._solve import Basis, local_unit, solve, solve_vjp, std_of_keys

# Pairs below which threads cost more than they save, in passes that follow each other.
_FEW_PAIRS = 2**21


class LeaveOneOutGradient:
    """Leave-one-out errors and degrees of freedom of a smoother, with their derivatives.

    `kinds` has "numeric", "unordered" or "ordered" for each column of X, in which categories
    are codes; columns of other kinds are ignored. Values are (n, p); weights are positive.
    """

    def __init__(
        self, X, values, kernel, kinds, *, degree=0, sample_weight=None, empty="nearest"
    ):
        self._precision, X = precision_of(X), np.ascontiguousarray(X, dtype=np.float64)
        numeric = [j for j, kind in enumerate(kinds) if kind == "numeric"]
        categorical = [j for j, kind in enumerate(kinds) if kind in ("unordered", "ordered")]
        codes = X[:, categorical].astype(np.intp)
        # For each category, the exponents delta of the level weight, (n_levels, n_levels).
        self._steps = [
            _steps(kinds[j], n_levels)
            for j, n_levels in zip(categorical, codes.max(axis=0) + 1, strict=True)
        ]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self._weights = np.ascontiguousarray(weights / np.max(weights))
        self._normalized_weights = self._weights / self._weights.sum()
        values = np.ascontiguousarray(values, dtype=np.float64)
        self._values = values - self._normalized_weights @ values
        self._kernel = kernel if numeric else Constant()
        self._empty = empty
        map_blocks = functools.partial(map_on_threads, parallel=len(X) ** 2 > _FEW_PAIRS)
        self._numbers_as_passed = X[:, numeric]
        self._sums = PairSums(
            self._numbers_as_passed, codes, self._kernel, self._weights, map_blocks=map_blocks
        )
        # Numbers less their medians, which are also divided by units that no bandwidth changes.
        self._numbers = self._sums.numbers
        largest = np.abs(self._numbers).max(axis=0)
        self._row_unit = np.where(largest > 0, largest, 1.0)
        self._scaled_rows = self._numbers / self._row_unit
        # The standard deviations (d,) of the scaled rows bound the local unit from above.
        self._row_std = std_of_keys(self._scaled_rows, self._weights)
        self._basis = Basis(degree, len(numeric), len(X))
        # Products of the polynomial's terms are averaged about the middles of blocks of
        # neighbouring rows, and moved to each row afterwards. `_middles` has a middle for each
        # row, that of its block.
        size = max(1, IN_CACHE // len(X)) if self._basis.degree else len(X)
        self._blocks = split(self._scaled_rows, np.arange(len(X)), max_rows=size)
        self._middles = np.empty_like(self._scaled_rows)
        for rows in self._blocks:
            self._middles[rows] = self._scaled_rows[rows].mean(axis=0)

    def __call__(self, log_bandwidth, log_level_weight=()):
        r"""Compute scores at log-bandwidths and :math:`\log r`, and the function `vjp`.

        ``vjp(slopes)`` turns derivatives along the scores into those along `log_bandwidth` and
        `log_level_weight`, one after the other. Scores are floats, NaN if a row has no
        prediction.
        """
        bandwidth = np.exp(np.asarray(log_bandwidth, dtype=np.float64))
        # Tables r^delta of each category, and their derivatives along log r.
        tables = [
            (np.exp(log_weight * steps), np.exp(log_weight * steps) * steps)
            for log_weight, steps in zip(log_level_weight, self._steps, strict=True)
        ]
        options = {"columns": self._columns(0)}
        if self._basis.degree:

            def columns_of_block(rows):
                return self._columns(rows[0])

            options = {"columns": columns_of_block, "row_blocks": self._blocks}
        averages, log_total, sums_vjp = self._sums(bandwidth, tables, **options)
        self._fall_back(averages, log_total, bandwidth)
        gram, cross, moments_vjp = self._moments(averages, bandwidth)
        scores, scores_vjp = self._scores(gram, cross, log_total)

        def vjp(slopes):
            of_gram, of_cross, of_log_total = scores_vjp(*slopes)
            of_averages, of_log_bandwidth = moments_vjp(of_gram, of_cross)
            gradient = sums_vjp(of_log_total, of_averages)
            gradient[: len(bandwidth)] += of_log_bandwidth
            return gradient

        return scores, vjp

    def _columns(self, row):
        """Return the columns (n, n_powers + P p) that are averaged for a row's block.

        They are products of the terms of all rows about the middle of this block.
        """
        return self._basis.products(self._scaled_rows - self._middles[row], self._values)

    def _fall_back(self, averages, log_total, bandwidth):
        """Replace the averages of rows without any weight, in place, by the policy `empty`.

        Averages (n, n_powers + P p) are those of the products in :class:`Basis`.
        """
        is_empty = log_total == -np.inf
        if self._empty == "nan":
            averages[is_empty] = np.nan
            return
        # Rounding errors of distances are those of the numbers before their medians were
        # subtracted.
        scaled, passed = self._numbers / bandwidth, self._numbers_as_passed / bandwidth
        rounding = rounding_of_distances(passed, passed, self._precision)
        if not is_empty.any():
            return
        for block in self._blocks:
            rows = block[is_empty[block]]
            left_out = key_ranges(rows)  # of each row, the row itself
            _, is_nearest = nearest_by_pairs(scaled[rows], scaled, left_out, rounding[rows])
            weights = is_nearest * self._weights
            with np.errstate(invalid="ignore"):  # NaN where there is no other row
                weights /= weights.sum(axis=1, keepdims=True)
            # All nearest rows are treated as if they were at this row. So the averages are the
            # products at the row's own offset from the middle, with averages of the values.
            offset = self._scaled_rows[rows] - self._middles[rows]
            averages[rows] = self._basis.products(offset, weights @ self._values)

    def _moments(self, averages, bandwidth):
        """Return moments about each row in the local unit, from averages about the middles.

        `averages` are (n, n_powers + P p), those of the products in :class:`Basis`. Returns
        `gram` (n, P, P), `cross` (n, P, p) and `vjp`: ``vjp(of_gram, of_cross)`` returns the
        derivatives along `averages` and along the log-bandwidths (d,). Only the unit depends on
        the bandwidths here.
        """
        basis = self._basis
        gram, cross = basis.moments(averages)
        if basis.degree:
            # The kernel's standard deviation, `spread` at bandwidth 1, in units of scaled rows.
            kernel_std = self._kernel.spread * bandwidth / self._row_unit
            unit = local_unit(kernel_std, self._row_std)
            shift = basis.shift(self._scaled_rows - self._middles, unit)
            gram, cross = shift @ gram @ shift.swapaxes(1, 2), shift @ cross

        def vjp(of_gram, of_cross):
            of_log_bandwidth = np.zeros(len(bandwidth))
            if basis.degree:
                # A term with power a of a coordinate is proportional to unit^-a, so its
                # derivative along the log-unit is -a times the term. Where the unit is the
                # kernel's standard deviation, it is proportional to the bandwidth.
                of_pairs = (of_gram * gram).sum(axis=0)  # (P, P)
                of_terms = of_pairs.sum(axis=0) + of_pairs.sum(axis=1)  # (P,)
                of_terms += (of_cross * cross).sum((0, 2))
                of_log_unit = -(of_terms @ basis.powers[: basis.size])
                of_log_bandwidth = np.where(kernel_std < self._row_std, of_log_unit, 0.0)
                of_gram = shift.swapaxes(1, 2) @ of_gram @ shift
                of_cross = shift.swapaxes(1, 2) @ of_cross
            of_averages = np.concatenate(
                [basis.linear_forms(of_gram), of_cross.reshape(len(of_cross), -1)], axis=1
            )
            return of_averages, of_log_bandwidth

        return gram, cross, vjp

    def _scores(self, gram, cross, log_total):
        """Compute :class:`Scores` and their `vjp`.

        `gram` (n, P, P) and `cross` (n, P, p) are the moments about each row without the row,
        and `log_total` (n,) the logarithms of the other rows' weights. ``vjp(of_left_out,
        of_fitted, of_trace)`` turns the derivatives along the three scores into those along
        `gram`, `cross` and `log_total`.
        """
        values = self._values
        # The logarithms of the rows' own terms w_i K(x_i, x_i) in the sums of weights, and
        # their sign.
        log_and_sign = self._sums.log_own + np.log(self._weights), 1.0
        weight = own_weight(log_and_sign, log_total, 1.0)
        moments_with_row = add_own_rows(gram, cross, weight, values)
        left_out, fitted = solve(gram, cross), solve(*moments_with_row)
        # The squared distance mu' C^-1 mu, times the shrinkage.
        distance = (fitted.solved_mean * fitted.mean).sum(axis=1)
        errors = [solution.value - values for solution in (left_out, fitted)]
        mean_squares = [
            self._normalized_weights @ np.square(error).mean(axis=1) for error in errors
        ]
        leverage = weight * (1 + distance)

        def vjp(of_left_out, of_fitted, of_trace):
            of_values = [
                2 / values.shape[1] * of_score * self._normalized_weights[:, None] * error
                for of_score, error in zip((of_left_out, of_fitted), errors, strict=True)
            ]
            of_moments = solve_vjp(left_out, gram, cross, of_values[0], np.zeros(len(values)))
            of_gram_with_row, of_cross_with_row = solve_vjp(
                fitted, *moments_with_row, of_values[1], of_trace * weight
            )
            # The moments with the row are gram' = (1 - s) gram + s e0 e0' and cross' =
            # (1 - s) cross + s e0 v', with the own weight s, the row's values v, and the unit
            # vector e0. First come the terms with e0, then those with 1 - s.
            of_weight = of_trace * (1 + distance) + of_gram_with_row[:, 0, 0]
            of_weight += np.vecdot(of_cross_with_row[:, 0], values)
            of_moments_with_row = of_gram_with_row, of_cross_with_row
            for of_without, of_with, without in zip(
                of_moments, of_moments_with_row, (gram, cross), strict=True
            ):
                of_without += (1 - weight)[:, None, None] * of_with
                of_weight -= (of_with * without).sum(axis=(1, 2))
            of_gram, of_cross = of_moments
            # For s = t / (t + T) with the total T, ds / dlog T = -s (1 - s).
            return of_gram, of_cross, -of_weight * weight * (1 - weight)

        return Scores(*map(float, (*mean_squares, leverage.sum()))), vjp


def _steps(kind, n_levels):
    """Return the numbers of steps (n_levels, n_levels) between levels.

    It is 1 between any two levels of an unordered category.
    """
    levels = np.arange(n_levels)
    steps = np.abs(levels[:, None] - levels)
    return steps.clip(max=1.0) if kind == "unordered" else steps.astype(np.float64)
