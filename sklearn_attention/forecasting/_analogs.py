"""Analogs: kernel-weighted averages of what followed similar windows of all series."""

from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product

import numpy as np

from .._blocks import evenly_spread
from .._column_stats import replace_zeros
from .._validation import check_bandwidth
from ..attention._tables import attention_weights, heaviest, weighted_quantiles
from ..kernels import Kernel, RadialKernel
from ._origins import PANEL, SEASONAL, STANDARD, Origins, Windows
from ._table import Table, by_group, chunks, spread_over_phases

# Windows that a series needs to have to be forecast from its own.
FEWEST_OWN = 20
# In a panel each series is forecast from its own windows only if that saves 2 % of the error,
# since the windows of all series have to be kept then.
_LEAST_SAVED = 1.02
# At most 20 000 windows of a series are remembered, or of all series if these are averaged
# together. On five sets of 8000 to 330 000 windows errors are 0.98 of those with all windows.
# The latest windows have less held-out error than evenly spread ones at 2 of 30 cuts.
MAX_WINDOWS = 20_000
# Weights, and pairs of windows in a search, which stay in cache, that are computed at once.
_MAX_WEIGHTS, PAIRS = 4_000_000, 2**16
# Windows that vary less than this share of the median one of their series are no analogs: what
# followed them would be measured in a unit close to 0.
_LEAST_VARIATION = 0.1
# Windows before a jump are no analogs either. There the ratio of the variation of the window to
# that of the window and what followed together is less than this share of the median ratio.
_LEAST_RATIO = 0.3
# A search predicts at most 250 windows from at most 4000, and compares at most 24 of the steps
# ahead: for half a day of 5 minutes that takes a third of the seconds.
_MAX_TESTS, MAX_KEYS, _MAX_STEPS = 250, 4000, 24
# Bandwidths are not tried for which the kernel at the median distance of a window from its
# nearest one is smaller than e^-5: a forecast would be what followed a single window. On 39
# sets errors are 0.997 of those with them.
_MIN_LOG = -5.0
# Multiples of the keys' spread that are tried: first these, then some around the best.
_SCALES = 2.0 ** np.arange(-7, 3.1, 0.5)
_FINER = 2.0 ** np.array([-0.35, -0.2, -0.1, 0.1, 0.2, 0.35])
# Multiples of the features' spread beside that of the windows. At the last they have no effect.
_FEATURE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e6)


@dataclass(frozen=True, eq=False)
class Analogs:
    """Windows of training series in units of their own, with the steps that followed them.

    Attributes
    ----------
    lookback : int
        Steps of a window.
    kernel : Kernel
    normalize : str or None
    scale : ndarray of shape (n_series,)
        The unit of series for "last" and "seasonal".
    bandwidth : ndarray of shape (n_columns,)
        Divides the columns of the keys.
    pooled : bool
        Whether series are forecast from the windows of all.
    keys : ndarray of shape (n_windows, n_columns)
        Steps of the windows, features of these steps that are known only up to now, and known
        features of the steps that followed.
    values : ndarray of shape (n_windows, horizon)
        What followed, in units of the window.
    series, steps : ndarray of int of shape (n_windows,)
        Training series, ascending, and position of the first step that followed.
    season : int
        Steps of the season to which values are relative.
    share : float
        To what share they are.
    last_share : float or ndarray of shape (horizon,)
        What share of the deviation of the last value from its level they are relative to.
    """

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
    last_share: float | np.ndarray = 0.0

    def fit(self, origins, most=MAX_WINDOWS):
        """Remember at most `most` windows before origins, which are ordered by series."""
        group = np.zeros_like(origins.series) if self.pooled else origins.series
        rows = [rows[spread_over_phases(len(rows), most)] for _, rows in by_group(group)]
        windows = self.windows(self.comparable(origins.take(np.concatenate(rows))))
        return replace(
            self,
            keys=windows.keys,
            values=windows.values,
            series=windows.origins.series,
            steps=first_steps(windows.origins),
        )

    def forecast(self, origins, levels=None):
        """Forecast; (n, horizon), and quantiles of levels, (n, horizon, n_levels), or None."""
        queries, quantiles = self.windows(origins), None
        mean = np.empty((len(origins), origins.horizon))
        if levels is not None:
            quantiles = np.empty((*mean.shape, len(levels)))
        for rows, memory in self.memories(origins):
            values = self.values[memory]
            # Relative to one of them, values that are all alike have no rounding errors.
            first, differences = values[0], values - values[0]
            for part in chunks(rows, _MAX_WEIGHTS, len(values)):
                weights = self.weights(memory, queries.keys[part])
                mean[part] = first + weights @ differences
                if levels is not None:
                    quantiles[part] = np.stack(
                        [weighted_quantiles(column, weights, levels) for column in values.T],
                        axis=1,
                    )
        if levels is not None:
            quantiles = queries.restore(quantiles)
        return queries.restore(mean), quantiles

    def heaviest(self, origins, k):
        """Rows of origins, each k times, their heaviest windows, and the weights of these."""
        keys, parts = self.windows(origins).keys, []
        for rows, memory in self.memories(origins):
            places = np.arange(len(self.keys))[memory]
            top, weights = heaviest(partial(self.weights, memory), keys[rows], len(places), k)
            repeated = np.repeat(rows, top.shape[1])
            parts.append((repeated, places[top.ravel()], weights.ravel()))
        rows, windows, weights = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], windows[order], weights[order]

    def windows(self, origins):
        """Return Windows before origins, as they are compared."""
        # Series of different sizes are only alike in units of their own.
        own = self.normalize in ("last", "seasonal") and len(self.scale) > 1
        unit = origins.series_units(self.scale)[:, None] if own else 1.0
        return Windows.at_origins(
            origins,
            self.lookback,
            self.normalize,
            unit,
            self.season,
            self.share,
            self.last_share,
        )

    def with_share(self, origins):
        """Return the same with the share of the last season that fits what followed best."""
        if self.normalize not in SEASONAL:
            return self
        origins = self.sample(origins, MAX_KEYS)
        mean, last = (replace(self, share=s).windows(origins) for s in (0.0, 1.0))
        season = (last.level - mean.level) / mean.unit
        share = np.sum(season * mean.values) / replace_zeros(np.sum(season**2))
        return replace(self, share=float(np.clip(share, 0, 1)))

    def sample(self, origins, most):
        """Choose about `most` of the origins whose windows can be compared."""
        return self.comparable(origins.take(spread_over_phases(len(origins), most)))

    def comparable(self, origins):
        """Choose origins whose windows vary enough for what followed to be in their unit."""
        if self.normalize not in STANDARD:
            return origins
        past, later = origins.past(self.lookback), origins.targets()
        deviation, share = past.std(axis=1), past.shape[1] / (past.shape[1] + later.shape[1])
        difference = past.mean(axis=1) - later.mean(axis=1)
        both = share * deviation**2 + (1 - share) * later.var(axis=1)
        both = np.sqrt(both + share * (1 - share) * difference**2)
        ratio = np.where(both > 0, deviation / replace_zeros(both), 1.0)
        is_analog = np.empty(len(origins), dtype=bool)
        for _, rows in by_group(origins.series):
            varies = deviation[rows] >= _LEAST_VARIATION * np.median(deviation[rows])
            is_calm = varies & (ratio[rows] >= _LEAST_RATIO * np.median(ratio[rows]))
            is_analog[rows] = is_calm if is_calm.any() else varies
        return origins.take(is_analog)

    def memories(self, origins):
        """Yield rows of origins, with the windows that they are forecast from."""
        source = np.where(self.pooled, -1, origins.training_index)
        counts = np.bincount(self.series, minlength=len(self.scale))
        source = np.where(counts[source] >= FEWEST_OWN, source, -1)
        for i, rows in by_group(source):
            if i >= 0:
                yield rows, slice(*np.searchsorted(self.series, [i, i + 1]))
            else:
                yield rows, spread_over_phases(len(self.keys), MAX_WINDOWS)

    def weights(self, memory, queries):
        """Return weights of some windows for queries, (n_queries, n_windows); rows sum to 1."""
        keys = self.keys[memory]
        weights = attention_weights(queries, keys, self.kernel, bandwidth=self.bandwidth)
        refuse_negative((weights < 0).any(), self.kernel)
        return weights


def first_steps(origins):
    """Return first steps to forecast, on the index that is common to all series."""
    return origins.table.starts[origins.series] + origins.n_known


def refuse_negative(negative, kernel):
    """Raise if a kernel takes negative values, which is not known of all beforehand."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, which cannot be weights of what "
            "followed similar windows: choose a positive kernel, such as 'gaussian'."
        )


def choose_analogs(analogs, origins, lookbacks, bandwidth):
    """Choose lookback, memory and bandwidth of least leave-one-out error, in one or two ways.

    Values are relative to the level, and with a bandwidth that is searched perhaps also to a
    share of the deviation of the last value from it.

    Parameters
    ----------
    analogs : Analogs
        Without these.
    origins : Origins
        Of the windows to learn from.
    lookbacks : list of int
        To be tried, ascending.
    bandwidth : "loo", float or array-like
        A number is the only one tried.

    Returns
    -------
    ways : list of (Analogs, float)
        With mean squared errors in units of windows of the shortest lookback; NaN if no window
        can be predicted from others.
    """
    # The shortest windows decide which can be compared; longer ones do not vary much less.
    shortest = replace(analogs, lookback=lookbacks[0])
    origins = origins.take(origins.n_known >= lookbacks[-1])
    sample, horizon = shortest.sample(origins, MAX_KEYS), origins.horizon
    tests = sample.take(spread_over_phases(len(sample), _MAX_TESTS))
    groups = {True: left_out(tests, [(sample, 1)])}
    enough = np.bincount(origins.series).max() >= FEWEST_OWN + horizon
    if len(analogs.scale) > 1 and enough:
        memories = [
            (shortest.sample(origins.take(origins.series == i), MAX_KEYS), FEWEST_OWN)
            for i in np.unique(tests.series)
        ]
        groups[False] = left_out(tests, [*memories, (sample, 1)])
    steps, searches = evenly_spread(np.arange(horizon), _MAX_STEPS), isinstance(bandwidth, str)
    has_level = searches and analogs.normalize in (*SEASONAL, *STANDARD)
    results = [[] for _ in range(1 + has_level)]
    for lookback in lookbacks:
        analogs = replace(analogs, lookback=lookback)
        windows_of_sample = analogs.windows(sample)
        spread = _spread(windows_of_sample.keys, lookback)
        if not searches:
            given = check_bandwidth(bandwidth, len(spread))
            spread = np.broadcast_to(given, len(spread)) / np.sqrt(lookback)
        for pooled, pairs in groups.items():
            pairs_of_windows, ratios = [], [np.empty(0)]
            for queries, memory, usable in pairs:
                tested = analogs.windows(queries)
                known = windows_of_sample if memory is sample else analogs.windows(memory)
                parts = [
                    part
                    for windows in (tested, known)
                    for part in (windows.keys, windows.values[:, steps], windows.last_deviation)
                ]
                pairs_of_windows.append((*parts, usable))
                # Errors in units of windows of different lengths are not alike.
                ratios.append((tested.unit / shortest.windows(queries).unit)[:, 0])
            ways = search_bandwidth(
                pairs_of_windows, spread, lookback, analogs.kernel, searches, has_level
            )
            # Of lookbacks and memories the one with the least mean root is chosen, so that a
            # few windows that hardly vary do not decide. On 39 sets interval scores are 0.978
            # of those with the least mean square.
            is_costly = not pooled and len(analogs.scale) >= PANEL
            for way, (best, errors, share) in zip(results, ways, strict=True):
                errors = errors * np.concatenate(ratios) ** 2 if pairs else np.array([np.nan])
                size = np.sqrt(errors).mean() * (_LEAST_SAVED if is_costly else 1)
                fitted = replace(
                    analogs,
                    bandwidth=best,
                    pooled=pooled,
                    last_share=np.interp(
                        np.arange(horizon), steps, np.broadcast_to(share, len(steps))
                    ),
                )
                way.append((size, float(errors.mean()), fitted))
    best = [min(way, key=lambda result: result[0]) for way in results]
    return [(analogs, error) for _, error, analogs in best]


def left_out(tests, memories):
    """Pair windows to be predicted with those that they are predicted from.

    A window is predicted from the first of `memories`, pairs of Origins and the fewest windows
    needed of them, that has its series and enough windows which share no step to forecast with
    it, or would if all were of one series. Yields both as Origins, and which each may use.
    """
    groups = []
    for memory, fewest in memories:
        usable = np.abs(first_steps(tests)[:, None] - first_steps(memory)) >= tests.horizon
        enough = np.isin(tests.series, memory.series) & (usable.sum(axis=1) >= fewest)
        if enough.any():
            groups.append((tests.take(enough), memory, usable[enough]))
            tests = tests.take(~enough)
    return groups


def search_bandwidth(pairs, spread, lookback, kernel, searches=True, has_level=False):
    """Search the bandwidth (n_columns,) of least squared error, in one or two ways.

    If windows have a level, it is searched a second time for values from which the share of the
    deviation of least squared error is subtracted. That is the least squares regression of
    values on deviations after kernel averages of both are subtracted, for a partially linear
    model (Robinson 1988, Econometrica 56, 931-954).

    Parameters
    ----------
    pairs : list of tuple
        Keys, values and deviations of windows to be predicted, those of windows to predict
        from, and which of these each may use.
    spread : ndarray of shape (n_columns,)
        Of the keys: the first `lookback` columns are the window, the others features.
    lookback : int
    kernel : Kernel
    searches : bool, default=True
        Otherwise ``sqrt(lookback) * spread`` is the only one tried.
    has_level : bool, default=False

    Returns
    -------
    ways : list of tuple
        * bandwidth : ndarray of shape (n_columns,), without pairs the widest of those tried;
        * errors : ndarray of shape (n_queries,);
        * last_share : ndarray of shape (n_steps,).
    """

    def candidate(scale, feature_scale):
        bandwidth = scale * np.sqrt(lookback) * spread
        bandwidth[lookback:] *= feature_scale
        return bandwidth

    scales, finer = (_SCALES, _FINER) if searches else ([1.0], [])
    if not pairs:
        return [(candidate(scales[-1], 1.0), np.empty(0), 0.0)] * (1 + has_level)
    has_features, parts = len(spread) > lookback, []
    for queries, targets, deviations, keys, values, deviations_of_keys, usable in pairs:
        targets = np.column_stack([targets, deviations])
        values = np.column_stack([values, deviations_of_keys])
        center = keys.mean(axis=0)
        scaled = (queries - center) / spread, (keys - center) / spread
        of_windows, of_features = (
            squared_distances(*(rows[:, columns] for rows in scaled))
            for columns in (slice(lookback), slice(lookback, None))
        )
        for rows in chunks(np.arange(len(queries)), PAIRS, len(keys)):
            squared = of_windows[rows], of_features[rows]
            parts.append((*squared, queries[rows], keys, usable[rows], values, targets[rows]))

    @cache
    def residuals(scale, feature_scale):
        """Values and deviations minus their kernel averages, (n_queries, n_steps + 1)."""
        missed, bandwidth = [], candidate(scale, feature_scale)
        for of_windows, of_features, queries, keys, usable, values, targets in parts:
            squared = (of_windows + of_features / feature_scale**2) / (scale**2 * lookback)
            weights = _log_kernel(kernel, squared, queries, keys, bandwidth)
            weights = normalized(weights, squared, usable)
            missed.append(targets - weights @ values)
        return np.concatenate(missed)

    def errors(scales_tried, with_share):
        """Squared errors (n_queries,), and the shares of deviations (n_steps,) if wanted."""
        missed = residuals(*scales_tried)
        values, deviation = missed[:, :-1], missed[:, -1:]
        share = np.zeros(values.shape[1])
        if with_share:
            share = np.sum(deviation * values, axis=0) / replace_zeros(np.sum(deviation**2))
            share = np.clip(share, 0, 1)
        return np.mean((values - share * deviation) ** 2, axis=1), share

    feature_scales = _FEATURE_SCALES if has_features and searches else (1.0,)
    if searches and isinstance(kernel, RadialKernel):
        nearest = np.concatenate(
            [
                np.where(usable, of_windows, np.inf).min(axis=1)
                for of_windows, _, _, _, usable, *_ in parts
            ]
        )
        squared = np.append(0.0, np.median(nearest) / (scales**2 * lookback))
        at_zero, *logs = kernel.log_profile(squared)
        is_wide = np.array(logs) - at_zero >= _MIN_LOG
        scales = scales[is_wide] if is_wide.any() else scales[-1:]
    ways = []
    for with_share in (False, True)[: 1 + has_level]:

        def size(scales_tried, with_share=with_share):
            return errors(scales_tried, with_share)[0].mean()

        best = min(product(scales, feature_scales), key=size)
        best = min([best, *((best[0] * s, best[1]) for s in finer)], key=size)
        ways.append((candidate(*best), *errors(best, with_share)))
    return ways


def _spread(keys, lookback):
    """Measure one spread for all steps of the window, and one for each feature."""
    spread = keys.std(axis=0)
    spread[:lookback] = np.sqrt(np.mean(spread[:lookback] ** 2))
    return replace_zeros(spread)


def _log_kernel(kernel, squared, queries, keys, bandwidth):
    """Return logarithms of a kernel; squared distances in bandwidths are known."""
    if isinstance(kernel, RadialKernel):
        return kernel.log_profile(squared)
    queries, keys = (kernel.rescale(rows, bandwidth) for rows in (queries, keys))
    refuse_negative(kernel.signed is None and (kernel(queries, keys) < 0).any(), kernel)
    return kernel.log(queries, keys)


def squared_distances(queries, keys):
    """Return squared distances of rows, by a product of matrices; (n_queries, n_keys)."""
    lengths = [np.einsum("ij,ij->i", rows, rows) for rows in (queries, keys)]
    return np.maximum(np.add.outer(*lengths) - 2 * queries @ keys.T, 0.0)


def normalized(weights, squared, usable):
    """Return weights whose rows sum to 1, from their logarithms, which are overwritten.

    All are (n_queries, n_keys). Windows that are not `usable` have no weight. Where none has,
    the nearest by squared distances have.
    """
    np.copyto(weights, -np.inf, where=np.logical_not(usable))
    largest = weights.max(axis=1, keepdims=True)
    empty = np.isneginf(largest[:, 0])
    if empty.any():
        distances = np.where(usable, squared, np.inf)[empty]
        nearest = distances == distances.min(axis=1, keepdims=True)
        weights[empty], largest[empty] = np.where(nearest, 0.0, -np.inf), 0.0
    weights -= largest
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


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

    def fit(self, validation):
        """Store the series and choose the temperature."""
        tests, table = validation.tests, validation.origins.table
        fitted = replace(self, values=table.observations)
        forecasts = np.full((len(_TEMPERATURES), len(tests), tests.horizon), np.nan)
        for i, rows, keys in fitted._memories(tests, np.arange(len(table))):
            block = validation.block[rows, None]
            left_out = validation.overlapping(i, keys.origins.n_known, block)
            enough = (~left_out).sum(axis=1) >= FEWEST_OWN
            rows, left_out = rows[enough], left_out[enough]
            some = tests.take(rows)
            forecasts[:, rows] = fitted._average(some, keys, _TEMPERATURES, left_out)
        missed = (forecasts - tests.targets()) / validation.scale[tests.series, None]
        best = np.nansum(missed**2, axis=(1, 2)).argmin()
        return replace(fitted, temperature=_TEMPERATURES[best]), forecasts[best][:, None]

    def forecast(self, origins):
        """Forecasts (n, 1, horizon); NaN where a series is too short or not known."""
        forecasts = np.full((len(origins), 1, origins.horizon), np.nan)
        for _, rows, keys in self._memories(origins, origins.table.training_index):
            for part in chunks(rows, PAIRS, len(keys)):
                some = origins.take(part)
                forecasts[part, 0] = self._average(some, keys, [self.temperature])[0]
        return forecasts

    def _memories(self, origins, training_index):
        """Training series, the rows of origins in them, and windows with what followed."""
        source = np.where(origins.n_known >= self.lookback, training_index[origins.series], -1)
        for i, rows in by_group(source):
            table = Table.from_arrays([self.values[i]])
            remembered = Origins.within(table, origins.horizon, self.lookback)
            if i >= 0 and len(remembered) >= FEWEST_OWN:
                chosen = spread_over_phases(len(remembered), MAX_KEYS)
                yield i, rows, self._windows(remembered.take(chosen))

    def _windows(self, origins):
        season = min(self.lookback, max(1, round(self.season_length)))
        return Windows.at_origins(origins, self.lookback, season, features=False)

    def _average(self, origins, keys, temperatures, left_out=False):
        """Forecasts at each temperature, (n, horizon), from windows that are not left out."""
        queries = self._windows(origins)
        squared, usable = squared_distances(queries.keys, keys.keys), ~np.asarray(left_out)
        nearest = squared.min(axis=1, keepdims=True, where=usable, initial=np.inf)
        # Rounding must not distinguish one exact repetition from another.
        lengths = [np.square(windows.keys).sum(axis=1) for windows in (queries, keys)]
        floor = 1e-12 * (lengths[0][:, None] + lengths[1].max()) + 1e-300
        ratio = squared / np.maximum(nearest, floor)
        return [
            queries.level + normalized(-ratio / (2 * t**2), squared, usable) @ keys.values
            for t in temperatures
        ]
