"""Derivatives of leave-one-out errors in the bandwidth of every feature."""

import functools

import numpy as np
import torch

from ..kernels import Constant
from ._algorithms._compact_blocks import in_order, median_blocks
from ._algorithms._tiles import fallback_weights
from ._leave_one_out import Scores, own_share, with_own_key
from ._pair_sums import PairSums
from ._read import Problem
from ._solve import Basis, Moments, extent_of, local_unit
from ._threads import FEW_PAIRS_AGAIN_AND_AGAIN, map_blocks, threads_for

# Moments are taken about the middle of so many neighbouring rows.
_LOCAL_BLOCK_ROWS = 64


class LeaveOneOutGradient:
    r"""Leave-one-out errors and degrees of freedom of a smoother, with their derivatives.

    Weights are :math:`K\bigl((q - k) / h\bigr) \prod_j r_j^{\delta_j(q, k)}`, with a bandwidth
    :math:`h` per number and :math:`r_j \in [0, 1]` per category. :math:`\delta_j` is 1 for
    different levels of an unordered category, and the number of steps between those of an
    ordered one. Categories are codes; values (n, p); weights are positive.
    """

    # Compares all pairs, in blocks.

    def __init__(
        self, X, values, kernel, kinds, *, degree=0, sample_weight=None, empty="nearest"
    ):
        X = np.ascontiguousarray(X, dtype=np.float64)
        numeric = [j for j, kind in enumerate(kinds) if kind == "numeric"]
        categorical = [j for j, kind in enumerate(kinds) if kind in ("unordered", "ordered")]
        codes = X[:, categorical].astype(np.intp)
        self.steps = [
            _steps(kinds[j], n_levels)
            for j, n_levels in zip(categorical, codes.max(axis=0) + 1, strict=True)
        ]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        weights = np.ascontiguousarray(weights / np.max(weights))
        self.weights = torch.from_numpy(weights)
        values = torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64))
        self.values = values - (self.weights @ values) / self.weights.sum()
        self.kernel = kernel if numeric else Constant()
        self.empty = empty
        many = len(X) ** 2 > FEW_PAIRS_AGAIN_AND_AGAIN
        share = functools.partial(map_blocks, parallel=many)
        self.sums = PairSums(X[:, numeric], codes, self.kernel, weights, share=share)
        self.numbers = torch.from_numpy(self.sums.numbers)
        # The polynomials' coordinates are in units that no bandwidth changes.
        largest = self.numbers.abs().amax(dim=0)
        self.unit = torch.where(largest > 0, largest, 1.0)
        self.places = self.numbers / self.unit
        self.basis = Basis(degree, len(numeric), len(X))
        size = _LOCAL_BLOCK_ROWS if self.basis.degree else len(X)
        self.blocks = median_blocks(self.places, size)
        middles = [self.places[rows].mean(dim=0).expand(len(rows), -1) for rows in self.blocks]
        (self.middles,) = in_order(zip(middles, strict=True), self.blocks)

    def __call__(self, log_bandwidth, log_worth=()):
        r"""Scores at log-bandwidths and :math:`\log r`, and ``pull``, their derivatives."""
        # `pull(slopes)`, to be called once, turns derivatives along the scores into those along
        # log_bandwidth and log_worth, one after the other. Scores are floats; NaN where a row
        # has no prediction.
        bandwidth = np.exp(np.asarray(log_bandwidth, dtype=np.float64))
        tables = [worth * steps for worth, steps in zip(log_worth, self.steps, strict=True)]
        tables = [
            (np.exp(logs), np.exp(logs) * steps)
            for logs, steps in zip(tables, self.steps, strict=True)
        ]
        given = {"columns": self._columns(0)}
        if self.basis.degree:
            blocks = [rows.numpy() for rows in self.blocks]
            given = {"columns": lambda rows: self._columns(rows[0]), "row_blocks": blocks}
        with threads_for(len(self.numbers) ** 2):
            averages, *logs, pull_sums = self.sums(bandwidth, tables, **given)
            self._answer_for_empty(averages, logs[0], bandwidth)
            found = [torch.from_numpy(x).requires_grad_() for x in (averages, *logs)]
            log_bandwidth = torch.from_numpy(np.log(bandwidth)).requires_grad_()
            totals = self._totals(log_bandwidth, *found)

        def pull(slopes):
            slopes = torch.as_tensor(slopes, dtype=torch.float64)
            with threads_for(len(self.numbers) ** 2):
                numbers, of_averages, *of_logs = (
                    slope.numpy()
                    for slope in torch.autograd.grad(
                        totals, [log_bandwidth, *found], slopes, materialize_grads=True
                    )
                )
                gradient = pull_sums(of_logs[0], of_averages, of_logs[1])
            gradient[: len(numbers)] += numbers
            return gradient

        return Scores(*totals.detach().tolist()), pull

    def _columns(self, row):
        """Columns to be averaged, about the middle of a row's block."""
        terms = self.basis.terms(self.places - self.middles[row])
        return self.basis.columns(terms, self.values).numpy()

    def _answer_for_empty(self, averages, log_total, bandwidth):
        """Averages of the rows without any weight, in place."""
        if np.isfinite(log_total).all():
            return
        if self.empty == "nan":
            averages[log_total == -np.inf] = np.nan
            return
        scaled = self.numbers / torch.from_numpy(bandwidth)
        given = self.values, self.weights, 0.0, torch.arange(len(averages))
        problem = Problem(self.kernel, scaled, scaled, *given, query_scale=None, single=False)
        for block in self.blocks:
            rows = block[log_total[block] == -np.inf]
            if not len(rows):
                continue
            weights = fallback_weights(problem.take(rows))
            weights = weights / weights.sum(dim=1, keepdim=True)
            # The nearest rows' average, as if they were all at this one.
            terms = self.basis.terms(self.places[rows] - self.middles[rows])
            averages[rows] = self.basis.columns(terms, weights @ self.values)

    def _totals(self, log_bandwidth, averages, log_total, log_own):
        """Mean squared errors without and with each row, and the trace."""
        gram, cross = self.basis.moments(averages)
        if self.basis.degree:
            width = self.kernel.spread * log_bandwidth.exp() / self.unit
            unit = local_unit(width, extent_of(self.places, self.weights))
            shift = self.basis.shift(self.places - self.middles, unit)
            gram, cross = shift @ gram @ shift.transpose(1, 2), shift @ cross
        own = log_own + self.weights.log(), torch.ones_like(log_total)
        share = own_share(own, log_total, torch.ones_like(log_total))
        moments = Moments(gram, cross, None)
        found = with_own_key(moments, share, slice(None), values=self.values)
        left_out, fitted, leverage = found
        share = self.weights / self.weights.sum()
        errors = [(x - self.values).square().mean(dim=1) for x in (left_out, fitted)]
        return torch.stack([*(share @ error for error in errors), leverage.sum()])


def _steps(kind, n_levels):
    """Numbers of steps between levels: 1 between any two unordered ones."""
    levels = np.arange(n_levels)
    steps = np.abs(levels[:, None] - levels)
    return steps.clip(max=1.0) if kind == "unordered" else steps.astype(np.float64)
