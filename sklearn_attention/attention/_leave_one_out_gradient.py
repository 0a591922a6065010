"""Derivatives of leave-one-out errors in the bandwidth of every feature."""

import math

import numpy as np
import torch

from ..kernels import Constant, Gaussian, squared_distances
from ._algorithms._compact_blocks import in_order, median_blocks
from ._algorithms._fused import softmax_average
from ._algorithms._tiles import fallback_averages, shifted_weights, sums_logarithms
from ._leave_one_out import Scores, own_share, with_own_key
from ._read import Problem
from ._solve import Basis, Moments, extent_of, local_unit
from ._threads import threads_for

# Moments are taken about the middle of so many neighbouring rows.
_LOCAL_BLOCK_ROWS = 64
# As attention, log-weights are rounded by this at most, and no row may outweigh the others.
_ATTENTION_TOLERANCE, _MAX_OWN_SHARE = 1e-10, 0.99


class LeaveOneOutGradient:
    r"""Errors and degrees of freedom of a smoother, with their derivatives.

    The bandwidth of each number :math:`h_j` and what each category is worth,
    :math:`r_j \in [0, 1]`, multiply into the weights

    .. math:: w(q, k) = K\bigl((q - k) / h\bigr) \prod_j r_j^{\delta_j(q, k)}

    with :math:`\delta_j` 1 for different levels of an unordered category, and the number
    of steps between those of an ordered one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes. All pairs of rows are held in memory at once.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares the numeric columns.
    kinds : list of {"numeric", "unordered", "ordered"}
        What each column is.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of keys and of errors.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        As for :func:`attend`; "raise" is "nan" here.
    """

    def __init__(
        self, X, values, kernel, kinds, *, degree=0, sample_weight=None, empty="nearest"
    ):
        X = torch.as_tensor(np.ascontiguousarray(X, dtype=np.float64))
        numeric = [j for j, kind in enumerate(kinds) if kind == "numeric"]
        self.numbers = X[:, numeric]
        if kernel.stationary:
            self.numbers = self.numbers - self.numbers.median(dim=0).values
        self.steps = [
            (X[:, None, j] != X[None, :, j]).double()
            if kind == "unordered"
            else (X[:, None, j] - X[None, :, j]).abs()
            for j, kind in enumerate(kinds)
            if kind != "numeric"
        ]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.weights = torch.as_tensor(np.ascontiguousarray(weights / np.max(weights)))
        values = torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64))
        self.values = values - (self.weights @ values) / self.weights.sum()
        self.kernel = kernel if numeric else Constant()
        self.empty = "nan" if empty == "raise" else empty
        form = self.kernel.radial_form(len(numeric))
        self.radial = None if form is None or form.rest is not None else form.kernel
        self.is_log = sums_logarithms(self.kernel)
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
        r"""Errors and degrees of freedom, and a function for their derivatives.

        Parameters
        ----------
        log_bandwidth : ndarray of shape (n_numeric,)
            :math:`\log h_j`.
        log_worth : ndarray of shape (n_categorical,)
            :math:`\log r_j`.

        Returns
        -------
        scores : Scores
            Floats; NaN where a row has no prediction.
        pull : callable
            ``pull(slopes)`` returns the derivatives of something with respect to
            ``log_bandwidth`` and ``log_worth``, one after the other, from those with
            respect to the scores. Once only.
        """
        log_bandwidth = torch.tensor(np.asarray(log_bandwidth, float), requires_grad=True)
        log_worth = torch.tensor(np.asarray(log_worth, float))
        with threads_for(len(self.numbers) ** 2):
            parts = _gaussian_sums(self, log_bandwidth) or [
                _BlockSums(self, rows, log_bandwidth, log_worth) for rows in self.blocks
            ]
            found = in_order([part.sums for part in parts], self.blocks)
            found = [field.requires_grad_() for field in found]
            totals = self._totals(log_bandwidth, *found)

        def pull(slopes):
            slopes = torch.as_tensor(slopes, dtype=torch.float64)
            with threads_for(len(self.numbers) ** 2):
                numbers, *outer = torch.autograd.grad(
                    totals, [log_bandwidth, *found], slopes, materialize_grads=True
                )
                worth = torch.zeros_like(log_worth)
                for part in parts:
                    more = part.pull(*(field[part.rows] for field in outer))
                    numbers, worth = numbers + more[0], worth + more[1]
            return torch.cat([numbers, worth]).numpy()

        return Scores(*totals.detach().tolist()), pull

    def problem(self, scaled):
        """Each row among all others, in units of the bandwidths."""
        own_key = torch.arange(len(scaled))
        given = self.values, self.weights, 0.0, own_key
        return Problem(self.kernel, scaled, scaled, *given, query_scale=None, single=False)

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


def _gaussian_sums(smoother, log_bandwidth):
    """The Gaussian's sums of all rows as attention; None where that is not accurate."""
    if type(smoother.radial) is not Gaussian or smoother.steps or smoother.basis.degree:
        return None
    sums = _GaussianSums(smoother, log_bandwidth.detach())
    return [sums] if sums.accurate else None


class _GaussianSums:
    r"""Averages over all other rows for all rows, by the Gaussian.

    :math:`\partial w / \partial \log h_j = w \Delta_j^2`, so the derivatives are averages of
    more values by the same weights: :math:`v \Delta_j^2` and :math:`\Delta_j^2`.
    """

    def __init__(self, smoother, log_bandwidth):
        x = smoother.numbers / log_bandwidth.exp()
        (self.rows,) = smoother.blocks
        norms, log_weights = x.square().sum(dim=1), smoother.weights.log()
        self.accurate = 2 * torch.finfo(x.dtype).eps * norms.max() <= _ATTENTION_TOLERANCE
        if not self.accurate:
            return
        ones = x.new_ones((len(x), 1))
        values = torch.cat([ones, smoother.values], dim=1)
        squares = torch.cat([ones, x, x * x], dim=1)
        columns = (values[:, :, None] * squares[:, None]).flatten(1)
        averages, log_sums = softmax_average(x, x, columns, log_weights - norms / 2)
        share = (norms / 2 + log_weights - log_sums).exp()[:, None]
        self.accurate = bool((share < _MAX_OWN_SHARE).all())
        averages = ((averages - share * columns) / (1 - share)).unflatten(
            1, (values.shape[1], -1)
        )
        self._averages, means, second = averages.split([1, x.shape[1], x.shape[1]], dim=2)
        # About each row: E[D^2] = x^2 E[1] - 2 x E[k] + E[k^2], and the same with values.
        around = x[:, None]
        self._spread = around**2 * self._averages - 2 * around * means + second  # (n, 1 + p, d)
        log_total = log_sums + torch.log1p(-share[:, 0]) - norms / 2
        self.sums = self._averages[:, :, 0], log_total, torch.zeros_like(log_total)

    def pull(self, of_averages, of_log_total, of_log_own):
        """Derivatives along log-bandwidths, as of :class:`_BlockSums`."""
        spread = self._spread[:, :1]
        moves = self._spread - self._averages * spread
        moved = torch.einsum("nc,ncd->d", of_averages, moves) + of_log_total @ spread[:, 0]
        return moved, spread.new_zeros(0)


class _BlockSums:
    """Averages over all other rows, for some rows, and how they change with the bandwidths."""

    def __init__(self, smoother, rows, log_bandwidth, log_worth):
        self.rows, self._smoother = rows, smoother
        self._own = torch.arange(len(rows)), rows
        with torch.enable_grad():
            self._leaf, self._table = self._kernel(log_bandwidth)
        table = self._table.detach()
        log_own = table[self._own] if smoother.is_log else table[self._own].abs().log()
        problem = smoother.problem(self._scaled).take(rows)
        # What derivatives of the table are multiplied by, before all is divided by the total.
        factor = problem.weights
        for worth, steps in zip(log_worth, smoother.steps, strict=True):
            log_worths = worth * steps[rows]
            if smoother.is_log:
                table = table + log_worths
            else:
                factor = factor * log_worths.exp()
                table = table * log_worths.exp()
        weights, shift = shifted_weights(problem, table)
        if smoother.is_log:
            factor = weights
        else:
            factor = factor * (-shift).exp()[:, None]
            factor[self._own] = 0
        middle = smoother.middles[rows[0]]
        terms = smoother.basis.terms(smoother.places - middle)
        self._columns = smoother.basis.columns(terms, smoother.values)
        sums = weights @ self._columns
        total = sums[:, :1]
        alone = total[:, 0] == 0
        total = torch.where(total == 0, 1, total)
        self._averages = sums / total
        self._factor = factor / total
        if alone.any():
            self._factor[alone] = 0
            answers = fallback_averages(problem, self._columns, smoother.empty)
            self._averages[alone] = answers[alone]
        log_total = torch.where(alone, -math.inf, shift + total[:, 0].abs().log())
        self.sums = self._averages, log_total, log_own

    def _kernel(self, log_bandwidth):
        """The table of the numbers' kernel or of its logarithm, and what it depends on."""
        smoother = self._smoother
        scaled = smoother.numbers / log_bandwidth.exp()
        self._scaled = scaled.detach()
        if smoother.radial is None:
            if not scaled.shape[1]:
                return log_bandwidth, scaled.new_zeros((len(self.rows), len(scaled)))
            kernel = smoother.kernel.log if smoother.is_log else smoother.kernel
            return log_bandwidth, kernel(scaled[self.rows], scaled)
        squared = squared_distances(self._scaled[self.rows], self._scaled).requires_grad_()
        profile = smoother.radial.log_profile if smoother.is_log else smoother.radial.profile
        return squared, profile(squared)

    def pull(self, of_averages, of_log_total, of_log_own):
        """Derivatives along log-bandwidths and log-worths, from those along the sums."""
        smoother = self._smoother
        common = of_log_total - (of_averages * self._averages).sum(dim=1)
        outer = (of_averages @ self._columns.T).add_(common[:, None]).mul_(self._factor)
        along_logs = outer if smoother.is_log else outer * self._table.detach()
        worths = [(along_logs * steps[self.rows]).sum() for steps in smoother.steps]
        worths = torch.stack(worths) if worths else outer.new_zeros(0)
        if not self._table.requires_grad:  # a step function is flat
            return 0.0, worths
        if smoother.radial is not None:
            (outer,) = torch.autograd.grad(self._table, self._leaf, outer)
            return _through_distances(outer, self._scaled[self.rows], self._scaled), worths
        own = of_log_own if smoother.is_log else of_log_own / self._table.detach()[self._own]
        outer[self._own] = own
        return torch.autograd.grad(self._table, self._leaf, outer)[0], worths


def _through_distances(outer, queries, keys):
    """Derivatives with respect to log-bandwidths, from those to squared distances.

    The distances are sums of squares over features, so that no pair of rows is looked at
    again: all is in the rows' and columns' sums and one matrix product.
    """
    squares = outer.sum(dim=1) @ queries.square() + outer.sum(dim=0) @ keys.square()
    return -2 * (squares - 2 * (queries * (outer @ keys)).sum(dim=0))
