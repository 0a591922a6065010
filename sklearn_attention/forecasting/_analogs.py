"""Analogs: kernel-weighted averages of what followed similar windows of all series.

Forecasts: Nadaraya-Watson regression on windows. The query is the window of the last `lookback`
steps of a series. The keys are windows of training series, which are remembered with the steps
that followed them, the values. All are relative to a level and in a unit of their own (see
`Windows`). A memory is the set of windows that a series is forecast from: all of them, or those
of the series.

Learns: the lookback, the memory and the bandwidth of least leave-one-out error
(`choose_analogs`). Every window is predicted from those that share no step to forecast with it.

Costs: the distances of a query from all windows of its memory, at most 20 000; a search
compares 250 queries with 4000 keys.
"""

from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product

import numpy as np

from .._blocks import evenly_spread
from .._column_stats import replace_zeros
from .._validation import check_bandwidth
from ..attention._tables import attention_weights, heaviest, weighted_quantiles
from ..kernels import Kernel, RadialKernel
from ._origins import PANEL, SEASONAL, STANDARD, Windows
from ._table import by_group, chunks, spread_over_phases

# A series needs 20 windows to be forecast from its own.
MIN_OWN_WINDOWS = 20
# In a panel each series is forecast from its own windows only if that saves 2 % of the error,
# since the windows of all series have to be kept then.
_COST_OF_OWN_WINDOWS = 1.02
# At most 20 000 windows of a series are remembered, or of all series if these are averaged
# together. On five sets of 8000 to 330 000 windows errors are 0.98 of those with all windows.
# The latest windows have less held-out error than evenly spread ones at 2 of 30 cuts.
MAX_WINDOWS = 20_000
# At most 4 million weights are computed at once, and 65 536 pairs of windows in a search, which
# stay in cache.
_MAX_WEIGHTS, PAIRS = 4_000_000, 2**16
# Windows whose standard deviation is less than 0.1 times the median one of their series are no
# analogs: what followed them would be measured in a unit close to 0.
_MIN_VARIATION = 0.1
# Windows before a jump are no analogs either. There the ratio of the standard deviation of the
# window to that of the window and what followed together is less than 0.3 times the median
# ratio.
_MIN_VARIATION_RATIO = 0.3
# A search predicts at most 250 windows from at most 4000, and compares at most 24 of the steps
# ahead: for half a day of 5 minutes that takes a third of the seconds.
_MAX_TESTS, MAX_KEYS, _MAX_STEPS = 250, 4000, 24
# Bandwidths are not tried for which the kernel at the median distance of a window from its
# nearest one is smaller than e^-5: a forecast would be what followed a single window. On 39
# sets errors are 0.997 of those with them.
_MIN_LOG_KERNEL = -5.0
# Bandwidths that are tried, in standard deviations of the keys: first these, then some factors
# around the best.
_FACTORS = 2.0 ** np.arange(-7, 3.1, 0.5)
_FINER_FACTORS = 2.0 ** np.array([-0.35, -0.2, -0.1, 0.1, 0.2, 0.35])
# Factors of the bandwidths of features beside those of windows. At the last features have no
# effect.
_FEATURE_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 1e6)


@dataclass(frozen=True, eq=False)
class Analogs:
    """Windows of training series in units of their own, with the steps that followed them.

    Attributes
    ----------
    lookback : int
        Steps of a window.
    kernel : Kernel
    normalize : str or None
        Level and unit of windows, as in `Windows.at_origins`.
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
        Number of steps in a season.
    share : float
        Share of the last season, relative to its mean, that is subtracted from values.
    last_share : float or ndarray of shape (horizon,)
        Share of the deviation of the last value from its level that is subtracted from values.
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

    def fit(self, origins, max_windows=MAX_WINDOWS):
        """Remember windows that end at origins, at most `max_windows` in each memory.

        They are sorted by series.
        """
        group = np.zeros_like(origins.series) if self.pooled else origins.series
        rows = [rows[spread_over_phases(len(rows), max_windows)] for _, rows in by_group(group)]
        windows = self.windows(self.comparable(origins.take(np.concatenate(rows))))
        return replace(
            self,
            keys=windows.keys,
            values=windows.values,
            series=windows.origins.series,
            steps=first_steps(windows.origins),
        )

    def forecast(self, origins, levels=None):
        """Forecast the mean and quantiles of what follows.

        Parameters
        ----------
        origins : Origins
        levels : sequence of float, default=None
            Levels of the quantiles; None for no quantiles.

        Returns
        -------
        mean : ndarray of shape (n_origins, horizon)
        quantiles : ndarray of shape (n_origins, horizon, n_levels) or None
        """
        queries, quantiles = self.windows(origins), None
        mean = np.empty((len(origins), origins.horizon))
        if levels is not None:
            quantiles = np.empty((*mean.shape, len(levels)))
        for rows, memory in self.memories(origins):
            values = self.values[memory]
            # Averages of differences from one value have no rounding errors if all are equal.
            first, differences = values[0], values - values[0]
            for chunk in chunks(rows, _MAX_WEIGHTS, len(values)):
                weights = self.weights(memory, queries.keys[chunk])
                mean[chunk] = first + weights @ differences
                if levels is not None:
                    quantiles[chunk] = np.stack(
                        [weighted_quantiles(column, weights, levels) for column in values.T],
                        axis=1,
                    )
        if levels is not None:
            quantiles = queries.restore(quantiles)
        return queries.restore(mean), quantiles

    def heaviest(self, origins, k):
        """Find the `k` windows with the largest weights in each forecast.

        Returns
        -------
        rows, windows : ndarray of int of shape (n,)
            Number of the origin, ascending, and of the window, the heaviest first.
        weights : ndarray of shape (n,)
        """
        queries, rows, windows, weights = self.windows(origins).keys, [], [], []
        for memory_rows, memory in self.memories(origins):
            numbers = np.arange(len(self.keys))[memory]
            top, top_weights = heaviest(
                partial(self.weights, memory), queries[memory_rows], len(numbers), k
            )
            rows.append(np.repeat(memory_rows, top.shape[1]))
            windows.append(numbers[top.ravel()])
            weights.append(top_weights.ravel())
        rows = np.concatenate(rows)
        order = np.argsort(rows, kind="stable")
        return rows[order], np.concatenate(windows)[order], np.concatenate(weights)[order]

    def windows(self, origins):
        """Make Windows before origins, as they are compared."""
        # Series of different sizes are only alike in units of their own.
        has_series_unit = self.normalize in ("last", "seasonal") and len(self.scale) > 1
        unit = origins.series_units(self.scale)[:, None] if has_series_unit else 1.0
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
        """Set the share of the last season that fits what followed best, by least squares."""
        if self.normalize not in SEASONAL:
            return self
        origins = self.sample(origins, MAX_KEYS)
        without_season = replace(self, share=0.0).windows(origins)
        with_season = replace(self, share=1.0).windows(origins)
        season = (with_season.level - without_season.level) / without_season.unit
        share = np.sum(season * without_season.values) / replace_zeros(np.sum(season**2))
        return replace(self, share=float(np.clip(share, 0, 1)))

    def sample(self, origins, max_windows):
        """Spread up to `max_windows` over origins, and choose those that can be compared."""
        return self.comparable(origins.take(spread_over_phases(len(origins), max_windows)))

    def comparable(self, origins):
        """Choose origins whose windows vary enough for what followed to be in their unit."""
        if self.normalize not in STANDARD:
            return origins
        past, later = origins.past(self.lookback), origins.targets()
        std, weight = past.std(axis=1), past.shape[1] / (past.shape[1] + later.shape[1])
        # The variance of both together is the mean of their variances plus that of their means.
        difference = past.mean(axis=1) - later.mean(axis=1)
        variance = weight * std**2 + (1 - weight) * later.var(axis=1)
        joint_std = np.sqrt(variance + weight * (1 - weight) * difference**2)
        ratio = np.where(joint_std > 0, std / replace_zeros(joint_std), 1.0)
        is_analog = np.empty(len(origins), dtype=bool)
        for _, rows in by_group(origins.series):
            varies = std[rows] >= _MIN_VARIATION * np.median(std[rows])
            min_ratio = _MIN_VARIATION_RATIO * np.median(ratio[rows])
            has_no_jump = varies & (ratio[rows] >= min_ratio)
            is_analog[rows] = has_no_jump if has_no_jump.any() else varies
        return origins.take(is_analog)

    def memories(self, origins):
        """Yield rows of origins, and the numbers of the windows that they are forecast from.

        Origins in a series with fewer than 20 windows are forecast from those of all series.
        """
        source = np.where(self.pooled, -1, origins.training_index)
        counts = np.bincount(self.series, minlength=len(self.scale))
        source = np.where(counts[source] >= MIN_OWN_WINDOWS, source, -1)
        for i, rows in by_group(source):
            if i >= 0:
                yield rows, slice(*np.searchsorted(self.series, [i, i + 1]))
            else:
                yield rows, spread_over_phases(len(self.keys), MAX_WINDOWS)

    def weights(self, memory, queries):
        """Compute weights of the windows of a memory for queries; (n_queries, n_windows).

        Rows sum to 1.
        """
        keys = self.keys[memory]
        weights = attention_weights(queries, keys, self.kernel, bandwidth=self.bandwidth)
        refuse_negative((weights < 0).any(), self.kernel)
        return weights


def first_steps(origins):
    """Return the first step to forecast of each origin, on the index of all series."""
    return origins.table.starts[origins.series] + origins.n_known


def refuse_negative(negative, kernel):
    """Raise if `negative`, whether a kernel took negative values, is True."""
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, which cannot be weights of what "
            "followed similar windows: choose a positive kernel, such as 'gaussian'."
        )


def choose_analogs(analogs, origins, lookbacks, bandwidth):
    """Choose lookback, memory and bandwidth of least leave-one-out error, in one or two ways.

    In the first way values are relative to the level. If the bandwidth is searched and the
    normalisation has a mean, there is a second way: values are also relative to a share of the
    deviation of the last value from the level.

    Parameters
    ----------
    analogs : Analogs
        Analogs without lookback, memory and bandwidth.
    origins : Origins
        Origins whose windows are learned from.
    lookbacks : list of int
        Lookbacks that are tried, ascending.
    bandwidth : "loo", float or array-like
        A number is the only one tried.

    Returns
    -------
    ways : list of (Analogs, float)
        The best analogs of each way with their mean squared error, in units of windows of the
        shortest lookback; NaN if no window can be predicted from others.
    """
    # 1. Pair windows with the memories that they are predicted from, by whether these are
    # pooled. The shortest windows decide which can be compared; longer ones do not vary much
    # less.
    shortest = replace(analogs, lookback=lookbacks[0])
    origins = origins.take(origins.n_known >= lookbacks[-1])
    sample, horizon = shortest.sample(origins, MAX_KEYS), origins.horizon
    tests = sample.take(spread_over_phases(len(sample), _MAX_TESTS))
    groups_of_memory = _groups_of_memory(shortest, origins, sample, tests)
    # 2. Search the bandwidth for each lookback and memory.
    steps, searches = evenly_spread(np.arange(horizon), _MAX_STEPS), isinstance(bandwidth, str)
    has_level = searches and analogs.normalize in (*SEASONAL, *STANDARD)
    results_of_ways = [[] for _ in range(1 + has_level)]
    for lookback in lookbacks:
        analogs = replace(analogs, lookback=lookback)
        sample_windows = analogs.windows(sample)
        key_stds = _key_stds(sample_windows.keys, lookback)
        if not searches:
            checked = check_bandwidth(bandwidth, len(key_stds))
            key_stds = np.broadcast_to(checked, len(key_stds)) / np.sqrt(lookback)
        for pooled, groups in groups_of_memory.items():
            pairs, unit_ratios = [], [np.empty(0)]
            for tested, memory, is_usable in groups:
                queries = analogs.windows(tested)
                keys = sample_windows if memory is sample else analogs.windows(memory)
                pairs.append(
                    (
                        *(queries.keys, queries.values[:, steps], queries.last_deviation),
                        *(keys.keys, keys.values[:, steps], keys.last_deviation),
                        is_usable,
                    )
                )
                unit_ratios.append((queries.unit / shortest.windows(tested).unit)[:, 0])
            ways = search_bandwidth(
                pairs, key_stds, lookback, analogs.kernel, searches, has_level
            )
            is_costly = not pooled and len(analogs.scale) >= PANEL
            for results, (best_bandwidth, errors, share) in zip(
                results_of_ways, ways, strict=True
            ):
                # Errors of different lookbacks are compared in the same units.
                errors = errors * np.concatenate(unit_ratios) ** 2 if pairs else [np.nan]
                size = np.sqrt(errors).mean() * (_COST_OF_OWN_WINDOWS if is_costly else 1)
                share_of_steps = np.broadcast_to(share, len(steps))
                fitted = replace(
                    analogs,
                    bandwidth=best_bandwidth,
                    pooled=pooled,
                    last_share=np.interp(np.arange(horizon), steps, share_of_steps),
                )
                results.append((size, float(np.mean(errors)), fitted))
    # 3. Choose the lookback and memory of least mean root, so that a few windows that hardly
    # vary do not decide. On 39 sets interval scores are 0.978 of those with the least mean
    # square.
    best_results = [min(results, key=lambda result: result[0]) for results in results_of_ways]
    return [(fitted, error) for _, error, fitted in best_results]


def _groups_of_memory(analogs, origins, sample, tests):
    """Pair tests with memories, by whether these are pooled; a dict of lists of groups.

    Memories that are not pooled are the windows of each series of the `origins`, if there are
    several series and enough windows; the `sample` of all serves the other tests.
    """
    groups_of_memory = {True: pair_with_memories(tests, [(sample, 1)])}
    has_enough = np.bincount(origins.series).max() >= MIN_OWN_WINDOWS + origins.horizon
    if len(analogs.scale) > 1 and has_enough:
        memories = [
            (analogs.sample(origins.take(origins.series == i), MAX_KEYS), MIN_OWN_WINDOWS)
            for i in np.unique(tests.series)
        ]
        groups_of_memory[False] = pair_with_memories(tests, [*memories, (sample, 1)])
    return groups_of_memory


def pair_with_memories(tests, memories):
    """Pair windows to be predicted with those that they are predicted from.

    A window is predicted from the first memory that has its series, and enough windows that
    share no step to forecast with it, or would if all were of one series.

    Parameters
    ----------
    tests : Origins
        Origins of the windows to be predicted.
    memories : list of (Origins, int)
        Windows of each memory, and the smallest number of them that is enough.

    Returns
    -------
    groups : list of (Origins, Origins, ndarray of bool of shape (n_tests, n_keys))
        Tests, their memory, and which windows of the memory each of them may use.
    """
    groups = []
    for memory, min_windows in memories:
        distance = np.abs(first_steps(tests)[:, None] - first_steps(memory))
        is_usable = distance >= tests.horizon
        is_served = np.isin(tests.series, memory.series) & (
            is_usable.sum(axis=1) >= min_windows
        )
        if is_served.any():
            groups.append((tests.take(is_served), memory, is_usable[is_served]))
            tests = tests.take(~is_served)
    return groups


def search_bandwidth(pairs, key_stds, lookback, kernel, searches=True, has_level=False):
    """Search the bandwidth of least squared error, in one or two ways.

    If windows have a level, the bandwidth is searched a second time for values from which the
    share of the deviation of least squared error is subtracted. The share is the least squares
    regression of values on deviations after kernel averages of both are subtracted, for a
    partially linear model (Robinson 1988, Econometrica 56, 931-954).

    Parameters
    ----------
    pairs : list of tuple
        Keys, values and deviations of windows to be predicted, those of windows to predict
        from, and which of these each may use.
    key_stds : ndarray of shape (n_columns,)
        Standard deviations of the keys: the first `lookback` columns are the window, the others
        features.
    lookback : int
    kernel : Kernel
    searches : bool, default=True
        Otherwise ``sqrt(lookback) * key_stds`` is the only bandwidth tried.
    has_level : bool, default=False

    Returns
    -------
    ways : list of tuple
        * bandwidth : ndarray of shape (n_columns,), without pairs the largest of those tried;
        * errors : ndarray of shape (n_queries,);
        * last_share : ndarray of shape (n_steps,).
    """

    def bandwidth_of(factor, feature_factor):
        bandwidth = factor * np.sqrt(lookback) * key_stds
        bandwidth[lookback:] *= feature_factor
        return bandwidth

    factors, finer_factors = (_FACTORS, _FINER_FACTORS) if searches else ([1.0], [])
    if not pairs:
        return [(bandwidth_of(factors[-1], 1.0), np.empty(0), 0.0)] * (1 + has_level)
    chunks_of_pairs = _chunks_of_pairs(pairs, key_stds, lookback)

    @cache
    def residuals(factor, feature_factor):
        """Subtract kernel averages from values and deviations; (n_queries, n_steps + 1)."""
        residuals_of_chunks, bandwidth = [], bandwidth_of(factor, feature_factor)
        for (
            to_windows,
            to_features,
            queries,
            keys,
            is_usable,
            values,
            targets,
        ) in chunks_of_pairs:
            squared = to_windows + to_features / feature_factor**2
            squared = squared / (factor**2 * lookback)
            log_weights = _log_kernel(kernel, squared, queries, keys, bandwidth)
            weights = normalized(log_weights, squared, is_usable)
            residuals_of_chunks.append(targets - weights @ values)
        return np.concatenate(residuals_of_chunks)

    if searches and isinstance(kernel, RadialKernel):
        factors = _wide_factors(kernel, factors, chunks_of_pairs, lookback)
    has_features = len(key_stds) > lookback
    feature_factors = _FEATURE_FACTORS if has_features and searches else (1.0,)
    ways = []
    for with_share in (False, True)[: 1 + has_level]:

        def mean_error(factors_tried, with_share=with_share):
            return _errors_and_shares(residuals(*factors_tried), with_share)[0].mean()

        factor, feature_factor = min(product(factors, feature_factors), key=mean_error)
        tried = [(factor, feature_factor)]
        tried += [(factor * finer, feature_factor) for finer in finer_factors]
        best = min(tried, key=mean_error)
        ways.append((bandwidth_of(*best), *_errors_and_shares(residuals(*best), with_share)))
    return ways


def _errors_and_shares(residuals, with_share):
    """Compute squared errors (n_queries,), and shares of deviations (n_steps,).

    `residuals` (n_queries, n_steps + 1) are those of values, and in the last column those of
    deviations. Shares are fitted by least squares, or 0.
    """
    values, deviation = residuals[:, :-1], residuals[:, -1:]
    share = np.zeros(values.shape[1])
    if with_share:
        share = np.sum(deviation * values, axis=0) / replace_zeros(np.sum(deviation**2))
        share = np.clip(share, 0, 1)
    return np.mean((values - share * deviation) ** 2, axis=1), share


def _chunks_of_pairs(pairs, key_stds, lookback):
    """Divide pairs of windows into chunks that stay in cache, with their squared distances.

    Returns a list of tuples: squared distances of the windows and of the features, in standard
    deviations, both (n_queries, n_keys); queries, keys and which keys are usable; and values of
    the keys and targets of the queries, with the deviations as their last column.
    """
    chunks_of_pairs = []
    for queries, targets, deviations, keys, values, key_deviations, is_usable in pairs:
        targets = np.column_stack([targets, deviations])
        values = np.column_stack([values, key_deviations])
        center = keys.mean(axis=0)
        scaled_queries, scaled_keys = (queries - center) / key_stds, (keys - center) / key_stds
        to_windows = squared_distances(scaled_queries[:, :lookback], scaled_keys[:, :lookback])
        to_features = squared_distances(scaled_queries[:, lookback:], scaled_keys[:, lookback:])
        for rows in chunks(np.arange(len(queries)), PAIRS, len(keys)):
            squared = to_windows[rows], to_features[rows]
            chunks_of_pairs.append(
                (*squared, queries[rows], keys, is_usable[rows], values, targets[rows])
            )
    return chunks_of_pairs


def _wide_factors(kernel, factors, chunks_of_pairs, lookback):
    """Select the factors of bandwidths with which several windows have weight in a forecast.

    The kernel at the median distance of a window from its nearest one is at least e^-5. If no
    factor is large enough, the largest is selected.
    """
    nearest = np.concatenate(
        [
            np.where(is_usable, to_windows, np.inf).min(axis=1)
            for to_windows, _, _, _, is_usable, *_ in chunks_of_pairs
        ]
    )
    squared = np.append(0.0, np.median(nearest) / (factors**2 * lookback))
    log_at_zero, *logs = kernel.log_profile(squared)
    is_wide = np.array(logs) - log_at_zero >= _MIN_LOG_KERNEL
    return factors[is_wide] if is_wide.any() else factors[-1:]


def _key_stds(keys, lookback):
    """Compute standard deviations of the columns of keys; all steps of a window share one."""
    std = keys.std(axis=0)
    std[:lookback] = np.sqrt(np.mean(std[:lookback] ** 2))
    return replace_zeros(std)


def _log_kernel(kernel, squared, queries, keys, bandwidth):
    """Compute the logarithms of a kernel; (n_queries, n_keys).

    Kernels of the distance need only `squared`, the squared distances in bandwidths.
    """
    if isinstance(kernel, RadialKernel):
        return kernel.log_profile(squared)
    queries, keys = (kernel.rescale(rows, bandwidth) for rows in (queries, keys))
    refuse_negative(kernel.signed is None and (kernel(queries, keys) < 0).any(), kernel)
    return kernel.log(queries, keys)


def squared_distances(queries, keys):
    """Compute squared distances of rows by a product of matrices; (n_queries, n_keys)."""
    lengths = [np.einsum("ij,ij->i", rows, rows) for rows in (queries, keys)]
    return np.maximum(np.add.outer(*lengths) - 2 * queries @ keys.T, 0.0)


def normalized(log_weights, squared, is_usable):
    """Normalise weights, so that rows sum to 1; (n_queries, n_keys).

    Windows that are not usable get no weight. If no usable window has a positive weight, the
    nearest ones share it. The result overwrites `log_weights`.

    Parameters
    ----------
    log_weights, squared : ndarray of shape (n_queries, n_keys)
        Logarithms of the weights, and squared distances.
    is_usable : ndarray of bool that broadcasts to (n_queries, n_keys)
    """
    np.copyto(log_weights, -np.inf, where=np.logical_not(is_usable))
    largest = log_weights.max(axis=1, keepdims=True)
    is_empty = np.isneginf(largest[:, 0])
    if is_empty.any():
        distances = np.where(is_usable, squared, np.inf)[is_empty]
        is_nearest = distances == distances.min(axis=1, keepdims=True)
        log_weights[is_empty], largest[is_empty] = np.where(is_nearest, 0.0, -np.inf), 0.0
    log_weights -= largest
    weights = np.exp(log_weights, out=log_weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
