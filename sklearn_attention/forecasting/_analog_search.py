"""The search for lookback, memory and bandwidth of analogs with the least leave-one-out error.

Every window is predicted from those that share no step to forecast with it. A search compares
at most 250 queries with 4000 keys.
"""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from .._blocks import evenly_spread
from .._column_stats import replace_zeros
from .._validation import check_bandwidth
from ..kernels import RadialKernel
from ._analogs import MAX_KEYS, MIN_OWN_WINDOWS, first_steps, refuse_negative
from ._origins import PANEL, SEASONAL, STANDARD, Origins
from ._table import chunks, spread_over_phases

# In a panel each series is forecast from its own windows only if that saves 2 % of the error,
# since the windows of all series have to be kept then.
_COST_OF_OWN_WINDOWS = 1.02
# A search computes the weights of 65 536 pairs of a query and a key at once, which stay in
# cache.
PAIRS = 2**16
# A search predicts at most 250 windows, and compares at most 24 of the steps ahead: for half a
# day of 5 minutes that takes a third of the seconds.
_MAX_TESTS, _MAX_STEPS = 250, 24
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


class SearchGroup(NamedTuple):
    """Windows to be predicted in a search, and the memory that they are predicted from.

    Attributes
    ----------
    tests : Origins
        Origins of the windows to be predicted.
    memory : Origins
        Origins of the windows to predict from.
    is_usable : ndarray of bool of shape (n_tests, n_memory)
        False where both windows have a step to forecast in common.
    """

    tests: Origins
    memory: Origins
    is_usable: np.ndarray


class SearchArrays(NamedTuple):
    """Windows of a SearchGroup in arrays.

    An outcome is what followed a window: its values at the steps that are compared, and in the
    last column the deviation of the last value of the window from its level.

    Attributes
    ----------
    queries : ndarray of shape (n_queries, n_columns)
        Windows to be predicted.
    targets : ndarray of shape (n_queries, n_steps + 1)
        Their outcomes.
    keys : ndarray of shape (n_keys, n_columns)
        Windows to predict from.
    values : ndarray of shape (n_keys, n_steps + 1)
        Their outcomes.
    is_usable : ndarray of bool of shape (n_queries, n_keys)
    """

    queries: np.ndarray
    targets: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    is_usable: np.ndarray

    @classmethod
    def from_group(cls, analogs, group, steps):
        """Make the windows of a SearchGroup, and their outcomes at some `steps` ahead."""
        queries, keys = analogs.windows(group.tests), analogs.windows(group.memory)
        targets, values = (
            np.column_stack([windows.values[:, steps], windows.last_deviation])
            for windows in (queries, keys)
        )
        return cls(queries.keys, targets, keys.keys, values, group.is_usable)


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
        "loo" is searched; a number, or one for each column, is the only bandwidth tried.

    Returns
    -------
    ways : list of (Analogs, float)
        The best analogs of each way with their mean squared error, in units of windows of the
        shortest lookback; NaN if no window can be predicted from others.
    """
    # 1. Group windows by the memory that they are predicted from. The shortest windows decide
    # which can be compared; longer ones do not vary much less.
    shortest = replace(analogs, lookback=lookbacks[0])
    origins = origins.take(origins.n_known >= lookbacks[-1])
    sample, horizon = shortest.sample(origins, MAX_KEYS), origins.horizon
    tests = sample.take(spread_over_phases(len(sample), _MAX_TESTS))
    groups_by_pooling = _groups_by_pooling(shortest, origins, sample, tests)
    # 2. Search the bandwidth for each lookback and memory.
    steps, searches = evenly_spread(np.arange(horizon), _MAX_STEPS), isinstance(bandwidth, str)
    has_level = searches and analogs.normalize in (*SEASONAL, *STANDARD)
    results_of_ways = [[] for _ in range(1 + has_level)]
    for lookback in lookbacks:
        analogs = replace(analogs, lookback=lookback)
        key_stds = _key_stds(analogs.windows(sample).keys, lookback)
        if not searches:
            checked = check_bandwidth(bandwidth, len(key_stds))
            key_stds = np.broadcast_to(checked, len(key_stds)) / np.sqrt(lookback)
        for pooled, groups in groups_by_pooling.items():
            arrays = [SearchArrays.from_group(analogs, group, steps) for group in groups]
            ways = search_bandwidth(
                arrays, key_stds, lookback, analogs.kernel, searches, has_level
            )
            # Errors of different lookbacks are compared in the units of the shortest windows.
            unit_ratios = [
                (analogs.windows(group.tests).unit / shortest.windows(group.tests).unit)[:, 0]
                for group in groups
            ]
            is_costly = not pooled and len(analogs.scale) >= PANEL
            for results, (best_bandwidth, errors, share) in zip(
                results_of_ways, ways, strict=True
            ):
                errors = errors * np.concatenate(unit_ratios) ** 2 if groups else [np.nan]
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


def _groups_by_pooling(analogs, origins, sample, tests):
    """Group the windows to be predicted by their memory, for each choice of memories.

    Parameters
    ----------
    analogs : Analogs
    origins : Origins
        Origins of all windows that are learned from.
    sample : Origins
        Some of them, of all series.
    tests : Origins
        Origins of the windows to be predicted.

    Returns
    -------
    groups_by_pooling : dict
        A list of SearchGroup for True, where all windows are predicted from the sample, and
        one for False, where they are predicted from windows of their own series if these are
        enough, otherwise from the sample. Without a series that has enough, False is no key.
    """
    groups_by_pooling = {True: group_by_memory(tests, [(sample, 1)])}
    n_series = len(analogs.scale)
    has_enough = np.bincount(origins.series).max() >= MIN_OWN_WINDOWS + origins.horizon
    if n_series > 1 and has_enough:
        memories = [
            (analogs.sample(origins.take(origins.series == i), MAX_KEYS), MIN_OWN_WINDOWS)
            for i in np.unique(tests.series)
        ]
        groups_by_pooling[False] = group_by_memory(tests, [*memories, (sample, 1)])
    return groups_by_pooling


def group_by_memory(tests, memories):
    """Group windows to be predicted by the memory that they are predicted from.

    A window is predicted from the first memory that has windows of its series, and enough
    windows that have no step to forecast in common with it. Windows of all series count here,
    and have such a step in common if their origins are closer than a horizon in time.

    Parameters
    ----------
    tests : Origins
        Origins of the windows to be predicted.
    memories : list of (Origins, int)
        Windows of each memory, and the smallest number of them that is enough.

    Returns
    -------
    groups : list of SearchGroup
        Windows for which no memory is enough are in none of them.
    """
    groups = []
    for memory, min_windows in memories:
        distance = np.abs(first_steps(tests)[:, None] - first_steps(memory))
        is_usable = distance >= tests.horizon
        is_served = np.isin(tests.series, memory.series) & (
            is_usable.sum(axis=1) >= min_windows
        )
        if is_served.any():
            groups.append(SearchGroup(tests.take(is_served), memory, is_usable[is_served]))
            tests = tests.take(~is_served)
    return groups


def search_bandwidth(groups, key_stds, lookback, kernel, searches=True, has_level=False):
    """Search the bandwidth of least squared error, in one or two ways.

    If windows have a level, the bandwidth is searched a second time for values from which the
    share of the deviation of least squared error is subtracted. The share is the least squares
    regression of values on deviations after kernel averages of both are subtracted, for a
    partially linear model (Robinson 1988, Econometrica 56, 931-954).

    Parameters
    ----------
    groups : list of SearchArrays
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
        * bandwidth : ndarray of shape (n_columns,), without groups the largest of those tried;
        * errors : ndarray of shape (n_queries,), mean squares over steps;
        * last_share : ndarray of shape (n_steps,), 0 in the first way.
    """

    def bandwidth_of(factor, feature_factor):
        bandwidth = factor * np.sqrt(lookback) * key_stds
        bandwidth[lookback:] *= feature_factor
        return bandwidth

    factors, finer_factors = (_FACTORS, _FINER_FACTORS) if searches else ([1.0], [])
    if not groups:
        return [(bandwidth_of(factors[-1], 1.0), np.empty(0), 0.0)] * (1 + has_level)
    chunks_of_groups = _chunks_of_groups(groups, key_stds, lookback)

    @cache
    def residuals(factor, feature_factor):
        """Subtract kernel averages from the outcomes of queries; (n_queries, n_steps + 1)."""
        residuals_of_chunks, bandwidth = [], bandwidth_of(factor, feature_factor)
        for chunk in chunks_of_groups:
            arrays = chunk.arrays
            squared = chunk.window_distances + chunk.feature_distances / feature_factor**2
            squared = squared / (factor**2 * lookback)
            log_weights = _log_kernel(kernel, squared, arrays.queries, arrays.keys, bandwidth)
            weights = normalized(log_weights, squared, arrays.is_usable)
            residuals_of_chunks.append(arrays.targets - weights @ arrays.values)
        return np.concatenate(residuals_of_chunks)

    if searches and isinstance(kernel, RadialKernel):
        factors = _wide_factors(kernel, factors, chunks_of_groups, lookback)
    has_features = len(key_stds) > lookback
    feature_factors = _FEATURE_FACTORS if has_features and searches else (1.0,)
    ways = []
    for has_share in (False, True)[: 1 + has_level]:

        def mean_error(factors_tried, has_share=has_share):
            return _errors_and_shares(residuals(*factors_tried), has_share)[0].mean()

        factor, feature_factor = min(product(factors, feature_factors), key=mean_error)
        tried = [(factor, feature_factor)]
        tried += [(factor * finer, feature_factor) for finer in finer_factors]
        best = min(tried, key=mean_error)
        ways.append((bandwidth_of(*best), *_errors_and_shares(residuals(*best), has_share)))
    return ways


def _errors_and_shares(residuals, has_share):
    """Compute squared errors (n_queries,), and shares of deviations (n_steps,).

    `residuals` (n_queries, n_steps + 1) are those of values, and in the last column those of
    deviations. Shares are fitted by least squares if `has_share`, and 0 otherwise.
    """
    value_residuals, deviation_residuals = residuals[:, :-1], residuals[:, -1:]
    share = np.zeros(value_residuals.shape[1])
    if has_share:
        products = np.sum(deviation_residuals * value_residuals, axis=0)
        share = products / replace_zeros(np.sum(deviation_residuals**2))
        share = np.clip(share, 0, 1)
    return np.mean((value_residuals - share * deviation_residuals) ** 2, axis=1), share


class _Chunk(NamedTuple):
    """Some queries of a group with all its keys, and their distances.

    Attributes
    ----------
    arrays : SearchArrays
    window_distances : ndarray of shape (n_queries, n_keys)
        Squared distances of the windows, whose steps are divided by their standard deviation.
    feature_distances : ndarray of shape (n_queries, n_keys)
        The same of the features.
    """

    arrays: SearchArrays
    window_distances: np.ndarray
    feature_distances: np.ndarray


def _chunks_of_groups(groups, key_stds, lookback):
    """Divide the queries of groups into chunks whose distances stay in cache."""
    chunks_of_groups = []
    for group in groups:
        center = group.keys.mean(axis=0)
        scaled_queries = (group.queries - center) / key_stds
        scaled_keys = (group.keys - center) / key_stds
        window_distances = squared_distances(
            scaled_queries[:, :lookback], scaled_keys[:, :lookback]
        )
        feature_distances = squared_distances(
            scaled_queries[:, lookback:], scaled_keys[:, lookback:]
        )
        for rows in chunks(np.arange(len(group.queries)), PAIRS, len(group.keys)):
            arrays = group._replace(
                queries=group.queries[rows],
                targets=group.targets[rows],
                is_usable=group.is_usable[rows],
            )
            chunks_of_groups.append(
                _Chunk(arrays, window_distances[rows], feature_distances[rows])
            )
    return chunks_of_groups


def _wide_factors(kernel, factors, chunks_of_groups, lookback):
    """Select the factors of bandwidths with which several windows have weight in a forecast.

    The kernel at the median distance of a window from its nearest one is at least e^-5. If no
    factor is large enough, the largest is selected.
    """
    nearest = np.concatenate(
        [
            np.where(chunk.arrays.is_usable, chunk.window_distances, np.inf).min(axis=1)
            for chunk in chunks_of_groups
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
