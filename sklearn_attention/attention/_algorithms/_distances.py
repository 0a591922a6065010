"""Every row predicted from all others by kernels of the distance."""

import functools
import math
from dataclasses import replace

import torch

from ..._blocks import blocks
from ...kernels import squared_distances
from .._average import unfinished
from .._own_key import Predictions, with_own_key
from .._partial import finish
from .._polynomial import Basis, local_unit
from .._threads import map_blocks, threads_for
from ._compact_blocks import compact_blocks, median_blocks
from ._fused import softmax_average

# Pairs of a block of rows, and of a block at several bandwidths: few enough for temporaries
# to stay in cache.
_TILE_PAIRS = _CHUNK_PAIRS = 2**17
# Moments need blocks whose rows lie close together: the data in so many parts.
_LOCAL_BLOCKS, _FEWEST_ROWS = 16, 16
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


class RadialRows:
    """Predictions for positive kernels of the distance."""

    def __init__(self, problem, form, degree, empty):
        self.problem, self.form, self.empty = problem, form, empty
        device = problem.keys.device
        columns = torch.tensor(form.columns, dtype=torch.long, device=device)
        keys, self.queries = problem.keys[:, columns], problem.queries[:, columns]
        self.basis = Basis(degree, len(columns))
        self.spread = form.kernel.spread
        zero = keys.new_zeros(1)
        self.peak = form.kernel.profile(zero).item()
        self.own_rest = 1.0
        if form.rest is not None:
            self.own_rest = form.rest(problem.keys[:1], problem.keys[:1]).item()
        self.reach = _reach(form.kernel)
        self.sorted = len(columns) == 1 and math.isfinite(self.reach)
        order = keys[:, 0].argsort(stable=True) if self.sorted else torch.arange(len(keys))
        order = order.to(device)
        self.keys, self.all_keys = keys[order].contiguous(), problem.keys[order]
        self.weights = problem.weights[order]
        position = torch.empty_like(order)
        position[order] = torch.arange(len(order), device=device)
        self.own = position[problem.own_key]
        # Without what the values have in common, sums of them cancel less.
        self.center = (problem.weights @ problem.values) / problem.weights.sum()
        self.values = problem.values[order] - self.center
        self.own_weights = problem.weights[problem.own_key]
        self.own_values = problem.values[problem.own_key] - self.center
        self.enough = _SMALLEST_SUM
        if self.sorted and math.isinf(form.kernel.support):
            total = self.weights.sum().item()
            # Moments give far rows the more to say.
            far = math.exp(_LOG_FAR) * self.reach ** (2 * degree)
            self.enough = far * total / _ROUNDING
        size = _TILE_PAIRS // len(keys)
        if degree:
            size = min(size, max(len(self.queries) // _LOCAL_BLOCKS, _FEWEST_ROWS))
        self.block_size, self.fallbacks = max(size, _FEWEST_ROWS), {}
        none = keys[:0]
        dot_product = form.kernel.as_dot_product(none, none) is not None
        self.fused = dot_product and form.rest is None and degree == 0
        if self.fused:
            n_blocks = min(_FUSED_BLOCKS, 1 + len(keys) // 600) if self.sorted else 1
            place = self.queries[:, 0].argsort(stable=True)
            self.fused_blocks = place.chunk(n_blocks)
            self.rank = place.argsort()
            self.log_weights = self.weights.log()

    @functools.cached_property
    def blocks(self):
        """Rows in blocks of neighbours."""
        if self.queries.shape[1] == 1:
            order = self.queries[:, 0].argsort(stable=True)
            found = order.split(self.block_size)
        else:
            found = median_blocks(self.queries, self.block_size)
        if self.basis.degree == 0 or self.queries.shape[1] == 0:
            return found
        # Moments about a middle that is far from most rows, for the sake of one, lose digits.
        widths = [
            (x.amax(dim=0) - x.amin(dim=0)).amax() for x in map(self.queries.__getitem__, found)
        ]
        radius = 2 * torch.stack(widths).median()
        if radius == 0:
            return found
        return [
            rows[box] for rows in found for box in compact_blocks(self.queries[rows], radius)
        ]

    @functools.cached_property
    def order(self):
        """Where each row is in the blocks, one after the other."""
        return torch.cat(list(self.blocks)).argsort()

    @torch.no_grad()
    def predict(self, scales, residuals, single):
        """`Predictions` of all rows, for each scale."""
        scales = torch.as_tensor(scales, device=self.keys.device)
        with threads_for(len(self.queries) * len(self.keys)):
            return self._predict(scales, residuals, single)

    def _predict(self, scales, residuals, single):
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
        scales = scales[:, None].expand(-1, len(rows)) if scales.ndim == 1 else scales[:, rows]
        window = self._window(x, scales.max().item())
        squared = squared_distances(x, self.keys[window])
        rest = None
        if self.form.rest is not None:
            rest = self.form.rest(self.problem.queries[rows], self.all_keys[window])
        middle = x.mean(dim=0)
        columns = self._columns(window, middle) * self.weights[window, None]
        lines = torch.arange(len(rows), device=x.device)
        found = []
        for part in blocks(len(scales), max(1, _CHUNK_PAIRS // max(squared.numel(), 1))):
            scale = scales[part]  # (c, r)
            near = self._window(x, scale.max().item())
            inside = slice(near.start - window.start, near.stop - window.start)
            weights = self._profile(squared[:, inside], scale)  # (c, r, k)
            if rest is not None:
                weights *= rest[:, inside]
            own = self.own[rows] - near.start
            seen = (own >= 0) & (own < weights.shape[2])
            weights[:, lines[seen], own[seen]] = 0
            sums = weights @ columns[inside]
            done = self._finish(sums.flatten(0, 1), rows, middle, scale.flatten(), residuals)
            found += zip(*(field.split(len(rows)) for field in done), strict=True)
        return found

    def _profile(self, squared, scale):
        # The least normal number, where an extreme square would be 0: 0 / 0 is no distance.
        squared_scale = (scale * scale).clamp_min(torch.finfo(scale.dtype).tiny)
        scaled = squared / squared_scale[:, :, None]
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
        terms = self.basis.terms(self.keys[keys] - middle)
        return self.basis.columns(terms, values)

    def _finish(self, sums, rows, middle, scale, residuals):
        """From sums over all other rows to predictions; a block of rows for each scale."""
        total = sums[:, 0] / self.peak
        averages = sums / torch.where(sums[:, :1] > 0, sums[:, :1], 1)
        alone = (sums[:, 0] < self.enough).nonzero()[:, 0]
        block, rows = rows, rows.repeat(len(sums) // len(rows))
        if len(alone):
            if math.isfinite(self.form.kernel.support):
                fallback = self._without_neighbours(block, middle)
                averages[alone] = fallback[alone % len(block)]
            else:
                columns = self._columns(slice(None), middle)
                averages[alone], total[alone] = self._look_alone(
                    rows[alone], columns, scale[alone]
                )
        own_values, own = self.own_values[rows], self.own_weights[rows] * self.own_rest
        share = torch.where(own > 0, own / (own + total), 0)
        if self.basis.degree == 0:
            gram, cross = averages[:, :1, None], averages[:, None, 1:]
        else:
            gram, cross = self.basis.moments(averages)
            unit = local_unit(self.spread * scale[:, None], self.keys, self.weights)
            shift = self.basis.shift(self.queries[rows] - middle, unit)
            gram, cross = shift @ gram @ shift.transpose(1, 2), shift @ cross
        found = with_own_key(gram, cross, share, own_values)
        return found.left_out + self.center, found.fitted + self.center, found.leverage

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
        problem = replace(
            self.problem,
            keys=self.all_keys,
            weights=self.weights,
            values=columns,
            own_key=self.own,
        )
        problem = replace(problem.take(rows), query_scale=scale)
        averages, log_sums = finish(unfinished(problem, "auto", self.empty), self.empty)
        log_sums = log_sums - self.problem.log_weight_scale - math.log(self.peak)
        return averages, log_sums.exp()


def _reach(kernel):
    """Distance beyond which the kernel is below a share of its peak, in bandwidths."""
    if math.isfinite(kernel.support) or not kernel.decreasing:
        return kernel.support  # what repeats is small in between, and large again
    distances = 2.0 ** torch.arange(-4, 14, 0.125, dtype=torch.float64)
    logs = kernel.log_profile(distances.square())
    peak = kernel.log_profile(distances.new_zeros(1))
    far = (logs - peak < _LOG_FAR).nonzero()
    return distances[far[0, 0]].item() if len(far) else math.inf
