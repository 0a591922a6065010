"""Analogs: kernel-weighted averages of what followed similar windows of all series."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from .._spread import dividing
from .._validation import check_bandwidth
from ..attention._tables import heaviest
from ..kernels import Kernel, RadialKernel
from ._origins import SEASONAL, STANDARD, Origins, Windows, by_group, chunks, evenly_spread
from ._table import Table

# Windows that a series needs to have to be forecast from its own.
FEWEST_OWN = 20
# Pairs of windows at once, which stay in cache, and pairs by steps to forecast.
PAIRS, _TERMS = 2**16, 4_000_000
# Windows that vary less than this share of the median one of their series are no analogs: what
# followed them would be measured in a unit close to 0.
_LEAST_VARIATION = 0.1
# Of more windows than these, evenly spread ones are predicted, and predicted from, and of more
# steps ahead, evenly spread ones: half a day of 5 minutes takes a third of the seconds.
_MOST_ROWS, MOST_KEYS, _MOST_STEPS = 250, 4000, 24
# Multiples of the keys' spread that are tried: first these, then some around the best.
_SCALES = 2.0 ** np.arange(-7, 3.1, 0.5)
_FINER = 2.0 ** np.array([-0.35, -0.2, -0.1, 0.1, 0.2, 0.35])
# Multiples of the features' spread beside that of the windows. At the last they have no effect.
_FEATURE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e6)


@dataclass(frozen=True, eq=False)
class Analogs:
    """Windows of training series in units of their own, with the steps that followed them."""

    # `scale` (n_series,) is the unit of series for "last" and "seasonal"; `bandwidth`
    # (n_columns,) divides the columns of `keys` (n_windows, n_columns): the steps of the
    # window, features of these steps known only up to now, then known features of the steps
    # that followed. `values` (n_windows, horizon) followed, in units of the window. `series`
    # and `steps` (n_windows,) are the ascending training series and the position of the first
    # step that followed. If `pooled`, series are forecast from the windows of all. `season` and
    # `share` are the steps of the season to which values are relative, and to what share.

    lookback: int
    kernel: Kernel
    normalize: str | None
    scale: np.ndarray
    bandwidth: np.ndarray | None = None
    pooled: bool = True
    keys: np.ndarray | None = None
    values: np.ndarray | None = None
    series: np.ndarray | None = None
    steps: np.ndarray | None = None
    season: int = 1
    share: float = 1.0

    def fit(self, origins):
        """The same with the windows before origins, which are ordered by series, as memory."""
        windows = self.windows(self.comparable(origins))
        origins = windows.origins
        return replace(
            self, keys=windows.keys, values=windows.values, series=origins.series,
            steps=first_steps(origins),
        )  # fmt: skip

    def forecast(self, origins, levels=None):
        """Forecasts, (n, horizon), and quantiles of levels, (n, horizon, n_levels), or None."""
        queries, quantiles = self.windows(origins), None
        mean = np.empty((len(origins), origins.horizon))
        if levels is not None:
            quantiles = np.empty((*mean.shape, len(levels)))
        # Values are sorted once for many origins.
        most = PAIRS if levels is None else _TERMS
        for rows, memory in self.memories(origins):
            values = self.values[memory]
            # Relative to one of them, values that are all alike have no rounding errors.
            first, differences = values[0], values - values[0]
            for part in chunks(rows, most, len(values)):
                weights = self.weights(memory, queries.keys[part])
                mean[part] = first + weights @ differences
                if levels is not None:
                    quantiles[part] = distribution_quantiles(weights, values, levels)
        if levels is not None:
            quantiles = queries.restore(quantiles)
        return queries.restore(mean), quantiles

    def heaviest(self, origins, k):
        """Rows of origins, each k times, their heaviest windows, and the weights of these."""
        keys, parts = self.windows(origins).keys, []
        for rows, memory in self.memories(origins):
            n_windows, weights_of = memory.stop - memory.start, partial(self.weights, memory)
            found, weights = heaviest(weights_of, keys[rows], n_windows, k)
            repeated = np.repeat(rows, found.shape[1])
            parts.append((repeated, memory.start + found.ravel(), weights.ravel()))
        rows, found, weights = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], found[order], weights[order]

    def windows(self, origins):
        """Windows before origins, as they are compared."""
        # Series of different sizes are only alike in units of their own.
        own = self.normalize in ("last", "seasonal") and len(self.scale) > 1
        unit = origins.units(self.scale)[:, None] if own else 1.0
        return Windows.before(
            origins, self.lookback, self.normalize, unit, self.season, self.share
        )

    def with_share(self, origins):
        """The same with the share of the last season that what followed these has best."""
        if self.normalize not in SEASONAL:
            return self
        origins = origins.take(evenly_spread(len(origins), MOST_KEYS))
        mean, last = (replace(self, share=s).windows(origins) for s in (0.0, 1.0))
        season = (last.level - mean.level) / mean.unit
        share = np.sum(season * mean.values) / dividing(np.sum(season**2))
        return replace(self, share=float(np.clip(share, 0, 1)))

    def comparable(self, origins):
        """Those of origins whose windows vary enough for what followed to be in their unit."""
        if self.normalize not in STANDARD:
            return origins
        deviation = origins.past(self.lookback).std(axis=1)
        kept = np.empty(len(origins), dtype=bool)
        for _, rows in by_group(origins.series):
            kept[rows] = deviation[rows] >= _LEAST_VARIATION * np.median(deviation[rows])
        return origins.take(kept)

    def memories(self, origins):
        """Rows of origins, each time with the slice of windows that they are forecast from."""
        source = np.where(self.pooled, -1, origins.identity)
        counts = np.bincount(self.series, minlength=len(self.scale))
        source = np.where(counts[source] >= FEWEST_OWN, source, -1)
        for i, rows in by_group(source):
            ends = np.searchsorted(self.series, [i, i + 1]) if i >= 0 else (0, len(self.keys))
            yield rows, slice(*ends)

    def weights(self, memory, queries):
        """Weights of a slice of windows for queries, (n_queries, n_windows); rows sum to 1."""
        keys, bandwidth = self.keys[memory], self.bandwidth
        squared = cdist(queries / bandwidth, keys / bandwidth, "sqeuclidean")
        return normalized(log_kernel(self.kernel, squared, queries, keys, bandwidth), squared)


def first_steps(origins):
    """First steps to forecast, on the index that is common to all series."""
    return origins.table.starts[origins.series] + origins.known


def log_kernel(kernel, squared, queries, keys, bandwidth):
    """Logarithm of a kernel between rows whose squared distances in bandwidths are known.

    Raises if it takes negative values, which is not known of all kernels beforehand.
    """
    if isinstance(kernel, RadialKernel):
        return kernel.log_profile(squared)
    queries, keys = (kernel.rescale(rows, bandwidth) for rows in (queries, keys))
    refuse_negative(kernel.signed is None and (kernel(queries, keys) < 0).any(), kernel)
    return kernel.log(queries, keys)


def refuse_negative(negative, kernel):
    """Raise if a kernel takes negative values."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, with which what followed is not "
            "averaged: choose a positive kernel, such as 'gaussian'."
        )


def normalized(weights, squared, apart=True):
    """Weights (n, m) of windows that are `apart`, whose rows sum to 1, from their logarithms.

    These are overwritten. Where none has weight the nearest by squared distances have.
    """
    np.copyto(weights, -np.inf, where=np.logical_not(apart))
    largest = weights.max(axis=1, keepdims=True)
    empty = np.isneginf(largest[:, 0])
    if empty.any():
        distances = np.where(apart, squared, np.inf)[empty]
        nearest = distances == distances.min(axis=1, keepdims=True)
        weights[empty], largest[empty] = np.where(nearest, 0.0, -np.inf), 0.0
    weights -= largest
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def distribution_quantiles(weights, values, levels):
    """Quantiles (n_queries, horizon, n_levels) of values (n, horizon) with such weights."""
    # By weights (n_queries, n): the smallest values whose weight, with that of all smaller
    # ones, reaches each level.
    order, levels = np.argsort(values, axis=0).T, np.asarray(levels)
    found = np.empty((len(weights), len(order), len(levels)))
    for steps in chunks(np.arange(len(order)), _TERMS, weights.size):
        ascending = order[steps]
        reached = np.cumsum(weights[:, ascending], axis=2)
        first = _first_reaching(reached, levels * reached[:, :, -1:])
        places = np.take_along_axis(values.T[steps], ascending, axis=1)
        found[:, steps] = np.take_along_axis(places[None], first, axis=2)
    return found


def _first_reaching(ascending, targets):
    """First positions on the last axis that reach targets, the last where none does."""
    low = np.zeros(targets.shape, dtype=np.int64)
    high = np.full(targets.shape, ascending.shape[-1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        less = np.take_along_axis(ascending, middle, axis=-1) < targets
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    return low


def choose_analogs(analogs, origins, lookbacks, bandwidth):
    """Analogs of the lookback and bandwidth of least leave-one-out error, and this error."""
    # A bandwidth other than "loo" is the only one tried. The error is in units of windows of
    # the shortest lookback, the first; NaN if no window can be predicted from others.
    # The shortest windows decide; longer ones do not vary much less.
    origins = origins.take(origins.known >= lookbacks[-1])
    origins = replace(analogs, lookback=lookbacks[0]).comparable(origins)
    first, horizon = first_steps(origins), origins.horizon
    tried = {True: left_out(first, horizon)}
    counts = np.bincount(origins.series)
    if len(analogs.scale) > 1 and counts.max() >= FEWEST_OWN + horizon:
        tried[False] = left_out(first, horizon, origins.series)
    found, unit, steps = [], None, evenly_spread(horizon, _MOST_STEPS)
    for lookback in lookbacks:
        analogs = replace(analogs, lookback=lookback)
        windows = analogs.windows(origins)
        unit = windows.unit if unit is None else unit
        # Errors in units of windows of different lengths are not alike.
        ratio = (windows.unit / unit)[:, 0]
        given, n_columns = None, windows.keys.shape[1]
        if not isinstance(bandwidth, str):
            given = np.broadcast_to(check_bandwidth(bandwidth, n_columns), n_columns).copy()
        for pooled, groups in tried.items():
            best, errors = search_bandwidth(
                groups, windows.keys, windows.values[:, steps], lookback, analogs.kernel, given
            )
            rows = [rows for rows, _, _ in groups]
            error = np.mean(errors * ratio[np.concatenate(rows)] ** 2) if rows else np.nan
            found.append((float(error), replace(analogs, bandwidth=best, pooled=pooled)))
    error, analogs = min(found, key=lambda one: one[0])
    return analogs, error


def left_out(origins, horizon, series=None):
    """Windows to be predicted, those to predict from, and which of these each may use."""
    # `origins` (n_windows,) are the first steps that followed: windows that share such steps,
    # or would if they were of one series, do not predict one another. With `series`
    # (n_windows,), a window is predicted from those of its own series where there are enough;
    # the windows to be predicted do not depend on it.
    few = evenly_spread(len(origins), MOST_KEYS)
    remaining, groups = few[evenly_spread(len(few), _MOST_ROWS)], []
    sources = [] if series is None else np.unique(series[remaining])
    for source, fewest in [(i, FEWEST_OWN) for i in sources] + [(None, 1)]:
        rows, memory = remaining, few
        if source is not None:
            rows, memory = rows[series[rows] == source], np.flatnonzero(series == source)
            memory = memory[evenly_spread(len(memory), MOST_KEYS)]
        apart = np.abs(origins[rows, None] - origins[memory]) >= horizon
        kept = apart.sum(axis=1) >= fewest
        if kept.any():
            groups.append((rows[kept], memory, apart[kept]))
            remaining = np.setdiff1d(remaining, rows[kept])
    return groups


def search_bandwidth(groups, keys, values, lookback, kernel, given=None):
    """Bandwidth (n_columns,) of least squared error, and errors of windows, group by group."""
    # `groups` are those of `left_out`; the first `lookback` columns of the keys are the window,
    # the others features. A bandwidth that is passed is the only one tried. Without windows
    # that can be predicted it is the widest of those tried.
    spread = _spread(keys, lookback) if given is None else given / np.sqrt(lookback)

    def candidate(scale, feature_scale):
        bandwidth = scale * np.sqrt(lookback) * spread
        bandwidth[lookback:] *= feature_scale
        return bandwidth

    scales, finer = (_SCALES, _FINER) if given is None else ([1.0], [])
    if not groups:
        return candidate(scales[-1], 1.0), np.empty(0)
    scaled, several = keys / spread, keys.shape[1] > lookback

    def distances(rows, memory, columns):
        return cdist(scaled[rows, columns], scaled[memory, columns], "sqeuclidean")

    # What is remembered is copied once for all that is tried.
    parts = [
        (rows[few], memory, apart[few], keys_of_memory, values_of_memory)
        for rows, memory, apart in groups
        for keys_of_memory, values_of_memory in [(keys[memory], values[memory])]
        for few in chunks(np.arange(len(rows)), PAIRS, len(memory))
    ]
    windows = [distances(rows, memory, slice(lookback)) for rows, memory, *_ in parts]
    features = [
        distances(rows, memory, slice(lookback, None)) if several else 0.0
        for rows, memory, *_ in parts
    ]

    def errors(scale, feature_scale):
        found, bandwidth = [], candidate(scale, feature_scale)
        for part, steps, others in zip(parts, windows, features, strict=True):
            rows, _, apart, known, followed = part
            squared = (steps + others / feature_scale**2) / (scale**2 * lookback)
            log_weights = log_kernel(kernel, squared, keys[rows], known, bandwidth)
            weights = normalized(log_weights, squared, apart)
            found.append(np.mean((weights @ followed - values[rows]) ** 2, axis=1))
        return np.concatenate(found)

    def size(tried_at):
        return tried[tried_at].mean()

    feature_scales = _FEATURE_SCALES if several and given is None else (1.0,)
    tried = {(s, f): errors(s, f) for s in scales for f in feature_scales}
    scale, feature_scale = min(tried, key=size)
    tried |= {(scale * s, feature_scale): errors(scale * s, feature_scale) for s in finer}
    best = min(tried, key=size)
    return candidate(*best), tried[best]


def _spread(keys, lookback):
    """One spread for all steps of the window, and one for each feature."""
    spread = keys.std(axis=0)
    spread[:lookback] = np.sqrt(np.mean(spread[:lookback] ** 2))
    return dividing(spread)


# Temperatures that are tried.
_TEMPERATURES = (0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class OwnAnalogs:
    """Kernel average of what followed the windows of the same series."""

    # Windows of `lookback` steps and their targets are relative to the mean of their last
    # season. Weights are Gaussian, exp(-d_j^2 / (2 t^2 d_1^2)), in units of the
    # distance d_1 of the nearest window, so that the average is as smooth where all windows are
    # far. The temperature t is the one with the least error at validation origins, for all
    # series together; windows whose targets overlap with the forecasts are left out there.

    lookback: int
    season_length: float
    temperature: float = 1.0
    values: list | None = None  # the training series

    @property
    def names(self):
        """Names of the forecasts."""
        return (f"analogs of {self.lookback} steps",)

    def fit(self, training):
        """Store the series and choose the temperature."""
        validation, table = training.validation, training.origins.table
        fitted = replace(self, values=table.values)
        found = np.full((len(_TEMPERATURES), len(validation), validation.horizon), np.nan)
        for i, rows, keys in fitted._memories(validation, np.arange(len(table))):
            block = training.block[rows, None]
            left_out = training.overlapping(i, keys.origins.known, block)
            enough = (~left_out).sum(axis=1) >= FEWEST_OWN
            rows, left_out = rows[enough], left_out[enough]
            some = validation.take(rows)
            found[:, rows] = fitted._average(some, keys, _TEMPERATURES, left_out)
        missed = (found - validation.targets()) / training.scale[validation.series, None]
        best = np.nansum(missed**2, axis=(1, 2)).argmin()
        return replace(fitted, temperature=_TEMPERATURES[best]), found[best][:, None]

    def forecast(self, origins):
        """Forecasts (n, 1, horizon); NaN where a series is too short or not known."""
        found = np.full((len(origins), 1, origins.horizon), np.nan)
        for _, rows, keys in self._memories(origins, origins.table.identity):
            for part in chunks(rows, PAIRS, len(keys)):
                some = origins.take(part)
                found[part, 0] = self._average(some, keys, [self.temperature])[0]
        return found

    def _memories(self, origins, identity):
        """Training series, the rows of origins in them, and windows with what followed."""
        source = np.where(origins.known >= self.lookback, identity[origins.series], -1)
        for i, rows in by_group(source):
            table = Table.of([self.values[i]])
            remembered = Origins.within(table, origins.horizon, self.lookback)
            if i >= 0 and len(remembered) >= FEWEST_OWN:
                few = evenly_spread(len(remembered), MOST_KEYS)
                yield i, rows, self._windows(remembered.take(few))

    def _windows(self, origins):
        season = min(self.lookback, max(1, round(self.season_length)))
        return Windows.before(origins, self.lookback, season, features=False)

    def _average(self, origins, keys, temperatures, left_out=False):
        """Forecasts at each temperature, (n, horizon), from windows that are not left out."""
        queries = self._windows(origins)
        lengths = [np.einsum("ij,ij->i", own, own) for own in (queries.keys, keys.keys)]
        squared = np.add.outer(*lengths) - 2 * queries.keys @ keys.keys.T
        squared, apart = np.maximum(squared, 0), ~np.asarray(left_out)
        nearest = squared.min(axis=1, keepdims=True, where=apart, initial=np.inf)
        # Rounding must not distinguish one exact repetition from another.
        floor = 1e-12 * (lengths[0][:, None] + lengths[1].max()) + 1e-300
        ratio = squared / np.maximum(nearest, floor)
        return [
            queries.level + normalized(-ratio / (2 * t**2), squared, apart) @ keys.values
            for t in temperatures
        ]
