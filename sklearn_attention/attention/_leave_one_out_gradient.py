"""How leave-one-out errors change with the bandwidth of every feature."""

import math

import numpy as np
import torch

from ..kernels import Gaussian, squared_distances
from ._algorithms._compact_blocks import median_blocks
from ._algorithms._fused import softmax_average
from ._leave_one_out import Scores
from ._polynomial import Basis, local_unit, solve
from ._threads import threads_for

_LOCAL_BLOCK_ROWS = 64
# Squared distance at which no kernel that falls with the distance weighs anything: what a
# row is given to itself, to be left out.
_FAR = 1e100
# As attention, log-weights are rounded by this at most, and no row may outweigh the others.
_ATTENTION_TOLERANCE = 1e-10
_MAX_OWN_SHARE = 0.99


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
        X = torch.as_tensor(np.asarray(X, dtype=np.float64))
        numeric = [j for j, kind in enumerate(kinds) if kind == "numeric"]
        self.numbers = X[:, numeric] - X[:, numeric].median(dim=0).values
        self.steps = [
            (X[:, None, j] != X[None, :, j]).double()
            if kind == "unordered"
            else (X[:, None, j] - X[None, :, j]).abs()
            for j, kind in enumerate(kinds)
            if kind != "numeric"
        ]
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.weights = torch.as_tensor(weights / np.max(weights))
        values = torch.as_tensor(np.asarray(values, dtype=np.float64))
        self.values = values - (self.weights @ values) / self.weights.sum()
        self.kernel, self.empty = kernel, empty
        form = kernel.radial_form(len(numeric)) if numeric else None
        self.radial = None if form is None or form.rest is not None else form.kernel
        # Heavy tails weigh something at any distance.
        self.fades = (
            self.radial is not None
            and self.radial.decreasing
            and (self.radial.profile(torch.tensor(_FAR, dtype=torch.float64)) < 1e-30)
        )
        self.positive = not numeric or (kernel.signed is False and math.isinf(kernel.support))
        self.basis = Basis(degree, len(numeric))
        everything = torch.arange(len(X))
        whole = self.basis.degree == 0
        self.blocks = [everything] if whole else median_blocks(self.numbers, _LOCAL_BLOCK_ROWS)

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
        with self._threads():
            found = self._by_attention(np.asarray(log_bandwidth, dtype=np.float64))
        if found is not None:
            return found
        log_bandwidth = torch.tensor(np.asarray(log_bandwidth, float), requires_grad=True)
        log_worth = torch.tensor(np.asarray(log_worth, float), requires_grad=True)
        with self._threads():
            return self._by_autograd(log_bandwidth, log_worth)

    def _threads(self):
        return threads_for(len(self.numbers) ** 2)

    def _by_autograd(self, log_bandwidth, log_worth):
        scaled = self.numbers / log_bandwidth.exp()
        if self.basis.degree == 0 and self.radial is not None:
            scaled = scaled.detach()
        squared, sums = [], []
        for rows in self.blocks:
            sums.append(
                self._sums(rows, scaled, *self._kernel(rows, scaled, log_worth, squared))
            )
        totals = torch.stack(sums).sum(dim=0) / torch.stack(
            [self.weights.sum(), self.weights.sum(), torch.ones(()).double()]
        )
        scores = Scores(*totals.detach().tolist())

        def pull(slopes):
            leaves = [log_bandwidth, log_worth, *squared]
            slopes = torch.as_tensor(slopes, dtype=torch.float64)
            found = [None] * len(leaves)
            if totals.requires_grad:  # a step function is flat
                with self._threads():
                    found = torch.autograd.grad(totals, leaves, slopes, allow_unused=True)
            found = [
                torch.zeros_like(leaf) if part is None else part
                for leaf, part in zip(leaves, found, strict=True)
            ]
            numbers, worth, *outer = found
            for rows, part in zip(self.blocks, outer, strict=False):
                numbers = numbers + _through_distances(part, scaled[rows], scaled)
            return torch.cat([numbers, worth]).detach().numpy()

        return scores, pull

    @torch.no_grad()
    def _by_attention(self, log_bandwidth):
        r"""The Gaussian's errors and derivatives; None where they would not be accurate.

        :math:`\partial w / \partial \log h_j = w \Delta_j^2`, so the derivatives are the same
        average of more values: :math:`v \Delta_j^2` and :math:`\Delta_j^2`.
        """
        if type(self.radial) is not Gaussian or self.steps or self.basis.degree:
            return None
        x = self.numbers / torch.as_tensor(log_bandwidth).exp()
        norms = x.square().sum(dim=1)
        if 2 * torch.finfo(x.dtype).eps * norms.max() > _ATTENTION_TOLERANCE:
            return None
        v, w = self.values, self.weights
        n_values = v.shape[1]
        products = (v[:, :, None] * torch.cat([x, x * x], dim=1)[:, None, :]).flatten(1)
        columns = torch.cat([v, x, x * x, products], dim=1)
        averages, log_sums = softmax_average(x, x, columns, -0.5 * norms + w.log())
        share = (0.5 * norms + w.log() - log_sums).exp()[:, None]
        if not (share < _MAX_OWN_SHARE).all():
            return None
        fitted, means, squares, products = averages.split(
            [n_values, x.shape[1], x.shape[1], products.shape[1]], dim=1
        )
        left_out = (fitted - share * v) / (1 - share)
        # About each row: E[D^2] = x^2 - 2 x E[k] + E[k^2], and the same with values.
        spread = x * x - 2 * x * means + squares  # (n, d)
        first, second = products.reshape(len(x), n_values, -1).chunk(2, dim=2)
        around = x[:, None]
        with_values = around**2 * fitted[:, :, None] - 2 * around * first + second  # (n, p, d)
        errors = left_out - v, fitted - v
        total = w.sum()
        scores = Scores(
            *((w @ error.square().mean(dim=1) / total).item() for error in errors),
            share.sum().item(),
        )

        def pull(slopes):
            moved = (
                (with_values - left_out[:, :, None] * spread[:, None])
                / (1 - share)[:, :, None],
                with_values - fitted[:, :, None] * spread[:, None],
            )
            gradient = -slopes[2] * (share * spread).sum(dim=0)
            for slope, error, move in zip(slopes, errors, moved, strict=False):
                weighted = error * (2 * w / (n_values * total))[:, None]
                gradient = gradient + slope * torch.einsum("np,npd->d", weighted, move)
            return gradient.numpy()

        return scores, pull

    def _kernel(self, rows, scaled, log_worth, squared):
        """Log-kernel, or kernel where it may be 0, of rows with all others; and their own."""
        own = torch.arange(len(rows)), rows
        categories = None
        for worth, steps in zip(log_worth, self.steps, strict=True):
            part = worth * steps[rows]
            categories = part if categories is None else categories + part
        if self.radial is not None:
            distances = squared_distances(scaled.detach()[rows], scaled.detach())
            distances[own] = _FAR
            squared.append(distances.requires_grad_())
            profile = self.radial.log_profile if self.positive else self.radial.profile
            kernel, itself = profile(distances), profile(distances.new_zeros(1))
            if not self.fades:
                kernel = self._leave_out(kernel, own)
        elif scaled.shape[1]:
            kernel = (self.kernel.log if self.positive else self.kernel)(scaled[rows], scaled)
            itself = kernel[own]
            kernel = self._leave_out(kernel, own)
        else:
            kernel, itself = scaled.new_zeros((len(rows), len(scaled))), scaled.new_zeros(1)
            kernel[own] = -math.inf
        if categories is not None:
            kernel = kernel + categories if self.positive else kernel * categories.exp()
        return (kernel, itself) if self.positive else (kernel, itself.abs().log())

    def _leave_out(self, kernel, own):
        nothing = torch.tensor(-math.inf if self.positive else 0.0, dtype=kernel.dtype)
        return kernel.index_put(own, nothing)

    def _sums(self, rows, scaled, kernel, own_log):
        """Sums over a block of rows: squared errors without and with them, leverages."""
        weights, shift = kernel, 0.0
        if self.positive:
            shift = kernel.detach().amax(dim=1)
            shift = torch.where(shift > -math.inf, shift, 0)
            weights = (kernel - shift[:, None]).exp()
        middle = scaled[rows].mean(dim=0)
        terms = self.basis.terms(scaled - middle)
        columns = self.basis.columns(terms, self.values) * self.weights[:, None]
        sums = weights @ columns
        total = sums[:, 0]
        empty = total == 0
        if empty.any():
            sums = torch.where(empty[:, None], self._fallback(rows, scaled, columns), sums)
            averages = sums / torch.where(empty, sums[:, 0], total)[:, None]
        else:
            averages = sums / total[:, None]
        log_total = torch.where(empty, 1.0, total.abs()).log()
        share = torch.sigmoid(own_log + self.weights[rows].log() - shift - log_total)
        share = torch.where(empty, 1.0, share)
        return self._errors(rows, averages, share, scaled[rows] - middle, scaled)

    def _errors(self, rows, averages, share, offset, scaled):
        truth, weights = self.values[rows], self.weights[rows]
        if self.basis.degree == 0:
            left_out = averages[:, 1:]
            fitted, leverage = left_out + share[:, None] * (truth - left_out), share
        else:
            gram, cross = self.basis.moments(averages)
            unit = local_unit(self.kernel.spread, scaled, self.weights)
            shift = self.basis.shift(offset, unit)
            gram, cross = shift @ gram @ shift.transpose(1, 2), shift @ cross
            left_out = solve(gram, cross).value
            rest = 1 - share[:, None, None]
            own = torch.zeros_like(gram)
            own[:, 0, 0] = 1
            with_own = own[:, :, :1] * truth[:, None, :]
            solution = solve(
                gram * rest + own * share[:, None, None],
                cross * rest + with_own * share[:, None, None],
            )
            fitted = solution.value
            leverage = share * (1 + (solution.pull * solution.mean).sum(dim=1))
        return torch.stack(
            [
                weights @ (left_out - truth).square().mean(dim=1),
                weights @ (fitted - truth).square().mean(dim=1),
                leverage.sum(),
            ]
        )

    def _fallback(self, rows, scaled, columns):
        """Sums that answer for rows without neighbours."""
        if self.empty == "mean":
            return columns.sum(dim=0) - columns[rows]
        if self.empty != "nearest":
            return torch.full((len(rows), columns.shape[1]), math.nan, dtype=columns.dtype)
        distances = squared_distances(scaled[rows], scaled)
        distances[torch.arange(len(rows)), rows] = math.inf
        near = distances == distances.amin(dim=1, keepdim=True)
        return near.double() @ columns


def _through_distances(outer, queries, keys):
    """Derivatives with respect to log-bandwidths, from those to squared distances.

    The distances are sums of squares over features, so that no pair of rows is looked at
    again: all is in the rows' and columns' sums and one matrix product.
    """
    squares = outer.sum(dim=1) @ queries.square() + outer.sum(dim=0) @ keys.square()
    return -2 * (squares - 2 * (queries * (outer @ keys)).sum(dim=0))
