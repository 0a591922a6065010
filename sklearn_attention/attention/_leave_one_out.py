"""Every row predicted from all others, at many bandwidths, from one look at the pairs."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from .._blocks import blocks
from ..kernels import squared_distances
from ._attend import unfinished
from ._compact_blocks import median_blocks
from ._fused import softmax_average
from ._local import attend_local, local_rows
from ._part import finish
from ._polynomial import Basis, solve
from ._task import prepare
from ._threads import map_blocks

# Rows and pairs of a block: few enough for its temporaries to stay in cache. Moments need
# blocks whose rows lie close together.
_BLOCK_ROWS, _LOCAL_BLOCK_ROWS = 128, 32
_TILE_PAIRS = 2**16
_DENSE_PAIRS = 2**20
# Above this share the row itself leaves too little behind to be taken out again.
_MAX_OWN_SHARE = 0.9
# Sorted rows go to the fused kernel in this many blocks, each with the keys within reach.
_FUSED_BLOCKS = 8
# How far rounding may move a log-weight there.
_FUSED_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-11}
# Sorted rows are looked at up to where the kernel has fallen to this share of its peak. A
# row whose weights sum to so little that the others could matter is looked at alone.
_LOG_FAR = -50.0
_ROUNDING = 1e-12
# Sums of weights below this have lost digits.
_SMALLEST_SUM = 1e-250


class Scores(NamedTuple):
    """What criteria of a bandwidth are made of, one entry for each bandwidth.

    Attributes
    ----------
    left_out : array of shape (n_scales,)
        Mean squared error of predicting each row from all others.
    fitted : array of shape (n_scales,)
        Mean squared residual.
    trace : array of shape (n_scales,)
        Trace of the smoother matrix, the effective degrees of freedom.
    """

    left_out: Any
    fitted: Any
    trace: Any


class Predictions(NamedTuple):
    """Predictions of the rows that are remembered.

    Attributes
    ----------
    left_out : array of shape (n_rows, n_values)
        Each row's prediction from all others.
    fitted : array of shape (n_rows, n_values)
        Its prediction from all rows.
    leverage : array of shape (n_rows,)
        Its own share in that: the diagonal of the smoother matrix.
    """

    left_out: Any
    fitted: Any
    leverage: Any


class LeaveOneOut:
    """Predicts each row from all others, at one bandwidth after the other.

    What the bandwidths have in common is computed once: checks, an order of the rows in
    which neighbours lie together, and for kernels of the distance the distances of a block
    of rows, which serve all bandwidths while they are in cache. A single feature is sorted,
    so that only rows within reach are looked at.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    bandwidth : float or ndarray of shape (n_features,), default=1.0
        What the scales asked for later multiply; in the features' own units.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors. Rows of weight 0 are not predicted.
    rows : int ndarray of shape (n_rows,), default=None
        The rows to predict, from all other rows; None for all.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        As for :func:`attend`; "raise" is "nan" here.
    device : str, default="auto"
        Where to compute.

    Attributes
    ----------
    rows : ndarray of int
        The rows that are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import LeaveOneOut
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> scores = LeaveOneOut(X, np.sin(9 * X), Gaussian()).scores([0.02, 0.1, 0.5])
    >>> scores.left_out.round(4), scores.trace.round(1)
    (array([0.002 , 0.0664, 0.4755]), array([20.7,  4.5,  1.3]))
    """

    def __init__(
        self,
        X,
        values,
        kernel,
        *,
        bandwidth=1.0,
        degree=0,
        sample_weight=None,
        rows=None,
        empty="nearest",
        device="auto",
    ):
        rows = np.arange(len(X)) if rows is None else np.asarray(rows)
        if sample_weight is not None:
            rows = rows[np.asarray(sample_weight)[rows] > 0]
        self.rows = rows
        self._empty = "nan" if empty == "raise" else empty
        options = {"sample_weight": sample_weight, "device": device}
        self._task, _, _ = prepare(
            X[rows], X, values, kernel, bandwidth=bandwidth, leave_one_out=rows, **options
        )
        self._given = (X, values, kernel, degree, bandwidth, options)
        form = None if kernel.signed is not False else kernel.radial_form(X.shape[1])
        self._fast = (
            None if form is None else _RadialRows(self._task, form, degree, self._empty)
        )

    @torch.no_grad()
    def scores(self, scales, *, residuals=True, single=False):
        """Errors and degrees of freedom at some bandwidths.

        Parameters
        ----------
        scales : array-like of shape (n_scales,) or (n_scales, n_rows)
            Multiples of the bandwidth; in the second form one for each row.
        residuals : bool, default=True
            Whether `fitted` and `trace` are wanted; they are NaN otherwise.
        single : bool, default=False
            Whether single precision will do, which is faster where it is implemented.

        Returns
        -------
        scores : Scores
            NaN where a row has no prediction.
        """
        scales = np.asarray(scales, dtype=np.float64)
        truth, weights = self._task.values[self._task.own_key], self._row_weights
        found = [
            (
                weights @ (predicted.left_out - truth).square().mean(dim=1),
                weights @ (predicted.fitted - truth).square().mean(dim=1)
                if residuals
                else math.nan,
                predicted.leverage.sum() if residuals else math.nan,
            )
            for predicted in self._predict(scales, residuals, single)
        ]
        left_out, fitted, trace = np.array(found, dtype=np.float64).reshape(-1, 3).T
        total = float(weights.sum())
        return Scores(left_out / total, fitted / total, trace)

    @torch.no_grad()
    def predictions(self, scale=1.0):
        """Each row predicted from all others and from all rows, at one bandwidth.

        Parameters
        ----------
        scale : float or array of shape (n_rows,), default=1.0
            Multiple of the bandwidth.

        Returns
        -------
        predictions : Predictions
            Arrays, in the order of `rows`.
        """
        (found,) = self._predict(np.asarray(scale, dtype=np.float64)[None], True, False)
        return Predictions(*(field.cpu().numpy() for field in found))

    @property
    def _row_weights(self):
        return self._task.weights[self._task.own_key]

    def _predict(self, scales, residuals, single):
        if self._fast is None:
            return [self._by_attention(scale, residuals) for scale in scales]
        scales = torch.as_tensor(scales, device=self._task.keys.device)
        return self._fast.predict(scales, residuals, single)

    def _by_attention(self, scale, residuals):
        """For kernels of any kind: the average itself, once for every bandwidth."""
        X, values, kernel, degree, bandwidth, options = self._given
        if scale.ndim:
            raise ValueError(
                f"kernel={kernel!r} does not depend on the distance alone, which a scale of "
                "each row divides: choose a radial kernel such as 'gaussian'."
            )
        options = options | {"bandwidth": scale * np.asarray(bandwidth), "empty": self._empty}
        return by_attention(X, values, kernel, degree, self.rows, residuals, options)


def by_attention(X, values, kernel, degree, rows, residuals, options):
    """Predictions of some rows by :func:`attend` and its like, for any kernel.

    Parameters
    ----------
    X, values : ndarray
        Keys and values, (n, d) and (n, p).
    kernel : Kernel
    degree : int
    rows : ndarray of int
        What to predict.
    residuals : bool
        Whether to compute more than the predictions without each row.
    options : dict
        Bandwidth and other options of :func:`attend`.

    Returns
    -------
    predictions : Predictions
        Of tensors.
    """
    left_out = _average(X[rows], X, values, kernel, degree, options, leave_one_out=rows)
    fitted, leverage = left_out * math.nan, left_out[:, 0] * math.nan
    if residuals:
        parts = []
        for part in blocks(len(rows), max(1, _DENSE_PAIRS // len(X))):
            found = local_rows(X[rows[part]], X, values, kernel, degree=degree, **options)
            own = rows[part]
            parts.append((found.values, found.smoother[np.arange(len(own)), own]))
        fitted, leverage = (np.concatenate(field) for field in zip(*parts, strict=True))
    return Predictions(*map(torch.as_tensor, (left_out, fitted, leverage)))


def _average(queries, keys, values, kernel, degree, options, **more):
    from ._attend import attend

    if degree == 0:
        return np.asarray(attend(queries, keys, values, kernel, **options, **more)[0])
    fit = attend_local(queries, keys, values, kernel, degree=degree, **options, **more)
    return np.asarray(fit.values)


class _RadialRows:
    """Predictions for positive kernels of the distance."""

    def __init__(self, task, form, degree, empty):
        self.task, self.form, self.empty = task, form, empty
        device = task.keys.device
        columns = torch.tensor(form.columns, dtype=torch.long, device=device)
        keys, self.queries = task.keys[:, columns], task.queries[:, columns]
        self.basis = Basis(degree, len(columns))
        self.unit = form.kernel.spread
        zero = keys.new_zeros(1)
        self.peak = form.kernel.profile(zero).item()
        self.own_rest = 1.0
        if form.rest is not None:
            self.own_rest = form.rest(task.keys[:1], task.keys[:1]).item()
        self.reach = _reach(form.kernel)
        self.sorted = len(columns) == 1 and math.isfinite(self.reach)
        order = keys[:, 0].argsort(stable=True) if self.sorted else torch.arange(len(keys))
        order = order.to(device)
        self.keys, self.all_keys = keys[order].contiguous(), task.keys[order]
        self.weights = task.weights[order]
        position = torch.empty_like(order)
        position[order] = torch.arange(len(order), device=device)
        self.own = position[task.own_key]
        # Without what the values have in common, sums of them cancel less.
        self.center = (task.weights @ task.values) / task.weights.sum()
        self.values = task.values[order] - self.center
        self.own_weights = task.weights[task.own_key]
        self.own_values = task.values[task.own_key] - self.center
        self.enough = _SMALLEST_SUM
        if self.sorted and math.isinf(form.kernel.support):
            total = self.weights.sum().item()
            self.enough = math.exp(_LOG_FAR) * total / _ROUNDING
        most = _LOCAL_BLOCK_ROWS if degree else _BLOCK_ROWS
        size = min(most, max(_LOCAL_BLOCK_ROWS, _TILE_PAIRS // len(keys)))
        self.blocks = median_blocks(self.queries, size)
        self.order = torch.cat(self.blocks).argsort()
        self.fallbacks = {}
        none = keys[:0]
        dot_product = form.kernel.as_dot_product(none, none) is not None
        self.fused = dot_product and form.rest is None and degree == 0
        if self.fused:
            n_blocks = min(_FUSED_BLOCKS, 1 + len(keys) // 600) if self.sorted else 1
            place = self.queries[:, 0].argsort(stable=True)
            self.fused_blocks = place.chunk(n_blocks)
            self.rank = place.argsort()
            self.log_weights = self.weights.log()

    def predict(self, scales, residuals, single):
        """`Predictions` of all rows, for each scale."""
        if self.fused and scales.ndim == 1:
            found = [self._fuse(scale, single) for scale in scales]
            rest = [scale for scale, done in zip(scales, found, strict=True) if done is None]
            by_tiles = iter(self._by_tiles(torch.stack(rest), residuals) if rest else ())
            return [next(by_tiles) if done is None else done for done in found]
        return self._by_tiles(scales, residuals)

    def _by_tiles(self, scales, residuals):
        # Threads that share small blocks wait for each other more than they help.
        largest = scales.max().item()
        pairs = sum(self._n_pairs(rows, largest) for rows in self.blocks) / len(self.blocks)
        parallel = pairs > _TILE_PAIRS / 2 and self.keys.device.type == "cpu"
        found = map_blocks(
            lambda rows: self._block(rows, scales, residuals), self.blocks, parallel=parallel
        )
        return [
            Predictions(
                *(torch.cat(parts)[self.order] for parts in zip(*of_scale, strict=True))
            )
            for of_scale in zip(*found, strict=True)
        ]

    def _fuse(self, scale, single):
        """Predictions at one scale, as attention; None where that is not accurate."""
        dtype = torch.float32 if single else torch.float64
        found = [self._fuse_block(rows, scale, dtype) for rows in self.fused_blocks]
        if any(block is None for block in found):
            return None
        left_out, share = (torch.cat(field)[self.rank] for field in zip(*found, strict=True))
        alone = (~(share <= _MAX_OWN_SHARE)).nonzero()[:, 0]
        if len(alone):
            columns = self._columns(slice(None), None)
            averages, total = self._look_alone(alone, columns, scale.expand(len(alone)))
            left_out[alone] = averages[:, 1:]
            share[alone] = self.own_weights[alone] / (self.own_weights[alone] + total)
        fitted = left_out + share[:, None] * (self.own_values - left_out)
        return Predictions(left_out + self.center, fitted + self.center, share)

    def _fuse_block(self, rows, scale, dtype):
        x = self.queries[rows]
        window = self._window(x, scale)
        middle = x.mean(dim=0)
        q, k = ((places - middle) / scale for places in (x, self.keys[window]))
        furthest = [torch.linalg.vector_norm(places, dim=1).amax() for places in (q, k)]
        error = torch.finfo(dtype).eps * furthest[1] * (furthest[0] + furthest[1] / 2)
        if error > _FUSED_TOLERANCE[dtype]:
            return None
        form = self.form.kernel.as_dot_product(q, k)
        bias = form.key_bias + self.log_weights[window]
        averages, log_sums = softmax_average(
            form.queries.to(dtype), form.keys.to(dtype), self.values[window].to(dtype),
            bias.to(dtype),
        )  # fmt: skip
        log_peak = self.form.kernel.log_profile(x.new_zeros(1))
        own_score = log_peak - form.query_bias + self.own_weights[rows].log()
        share = (own_score - log_sums).exp()
        rest = (1 - share).clamp_min(1 - _MAX_OWN_SHARE)[:, None]
        return (averages - share[:, None] * self.own_values[rows]) / rest, share

    def _n_pairs(self, rows, scale):
        window = self._window(self.queries[rows], scale)
        return len(rows) * (window.stop - window.start)

    def _block(self, rows, scales, residuals):
        """Predictions of a block of neighbouring rows, for each scale."""
        x = self.queries[rows]
        scales = scales if scales.ndim == 1 else scales[:, rows]
        window = self._window(x, scales.max().item())
        squared = squared_distances(x, self.keys[window])
        rest = None
        if self.form.rest is not None:
            rest = self.form.rest(self.task.queries[rows], self.all_keys[window])
        middle = x.mean(dim=0)
        columns = self._columns(window, middle) * self.weights[window, None]
        lines = torch.arange(len(rows), device=x.device)
        found = []
        for scale in scales:
            near = self._window(x, scale.max().item())
            inside = slice(near.start - window.start, near.stop - window.start)
            weights = self._profile(squared[:, inside], scale)
            if rest is not None:
                weights *= rest[:, inside]
            own = self.own[rows] - near.start
            seen = (own >= 0) & (own < weights.shape[1])
            weights[lines[seen], own[seen]] = 0
            sums = weights @ columns[inside]
            found.append(self._finish(sums, rows, middle, scale, residuals))
        return found

    def _profile(self, squared, scale):
        scaled = squared * (1 / scale**2 if scale.ndim == 0 else 1 / scale[:, None] ** 2)
        if math.isfinite(self.form.kernel.support):
            return self.form.kernel.profile(scaled)
        return self.form.kernel.log_profile(scaled).exp_()

    def _window(self, x, scale):
        """Keys within reach of a block of rows, where they are sorted."""
        if not self.sorted:
            return slice(0, len(self.keys))
        distance = self.reach * scale * (1 + 1e-9)
        ends = torch.stack([x.amin() - distance, x.amax() + distance])
        low, high = torch.searchsorted(self.keys[:, 0], ends).tolist()
        return slice(low, high)

    def _columns(self, keys, middle):
        """What is summed: values and ones, or moments about the block's middle."""
        values = self.values[keys]
        if self.basis.degree == 0:
            return torch.cat([torch.ones_like(values[:, :1]), values], dim=1).T.contiguous().T
        terms = self.basis.terms((self.keys[keys] - middle) / self.unit)
        return self.basis.columns(terms, values)

    def _finish(self, sums, rows, middle, scale, residuals):
        """From sums over all other rows to predictions."""
        total = sums[:, 0] / self.peak
        averages = sums / torch.where(sums[:, :1] > 0, sums[:, :1], 1)
        alone = (sums[:, 0] < self.enough).nonzero()[:, 0]
        if len(alone):
            if math.isfinite(self.form.kernel.support):
                averages[alone] = self._without_neighbours(rows, middle)[alone]
            else:
                columns = self._columns(slice(None), middle)
                each = scale.expand(len(alone)) if scale.ndim == 0 else scale[alone]
                averages[alone], total[alone] = self._look_alone(rows[alone], columns, each)
        own_values, own = self.own_values[rows], self.own_weights[rows] * self.own_rest
        share = torch.where(own > 0, own / (own + total), 0)
        if self.basis.degree == 0:
            left_out = averages[:, 1:]
            fitted = left_out + share[:, None] * (own_values - left_out)
            return left_out + self.center, fitted + self.center, share
        gram, cross = self.basis.moments(averages)
        scale = scale.reshape(-1, 1)
        shift = self.basis.shift((self.queries[rows] - middle) / self.unit, scale)
        gram, cross = shift @ gram @ shift.transpose(1, 2), shift @ cross
        left_out = solve(gram, cross).value + self.center
        if not residuals:
            return left_out, left_out * math.nan, share * math.nan
        # About the row itself, all terms but the constant are 0: it only adds there.
        gram, cross = gram * (1 - share[:, None, None]), cross * (1 - share[:, None, None])
        gram[:, 0, 0] += share
        cross[:, 0] += share[:, None] * own_values
        solution = solve(gram, cross)
        leverage = share * (1 + (solution.pull * solution.mean).sum(dim=1))
        return left_out, solution.value + self.center, leverage

    def _without_neighbours(self, rows, middle):
        """What the policy answers for a block of rows, whatever the bandwidth."""
        block = rows[0].item()
        if block not in self.fallbacks:
            columns = self._columns(slice(None), middle)
            tiny = torch.full_like(rows, 1, dtype=torch.float64) * _SMALLEST_SUM
            self.fallbacks[block] = self._look_alone(rows, columns, tiny)[0]
        return self.fallbacks[block]

    def _look_alone(self, rows, columns, scale):
        """Averages and sums of rows without neighbours, over all keys and in log space."""
        task = replace(
            self.task,
            keys=self.all_keys,
            weights=self.weights,
            values=columns,
            own_key=self.own,
        )
        task = replace(task.take(rows), query_scale=scale)
        averages, log_sums = finish(unfinished(task, "auto", self.empty), self.empty)
        log_sums = log_sums - self.task.log_weight_scale - math.log(self.peak)
        return averages, log_sums.exp()


def _reach(kernel):
    """Distance beyond which the kernel is below a share of its peak, in bandwidths."""
    if math.isfinite(kernel.support):
        return kernel.support
    distances = 2.0 ** torch.arange(-4, 14, 0.125, dtype=torch.float64)
    logs = kernel.log_profile(distances.square())
    peak = kernel.log_profile(distances.new_zeros(1))
    far = (logs - peak < _LOG_FAR).nonzero()
    return distances[far[0, 0]].item() if len(far) else math.inf
