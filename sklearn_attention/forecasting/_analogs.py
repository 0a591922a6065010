"""Windows as keys and values of an average: normalising, bandwidth, distribution."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax

from ..kernels import RadialKernel
from ._measures import dividing, spread_of
from ._origins import evenly_spread

NORMALIZE = ("last", "standard")
# Of more windows than these, evenly spread ones are predicted, and predicted from, as the
# bandwidth is chosen.
_MOST_ROWS, _MOST_KEYS = 500, 4000
# Windows that a series needs to have to be forecast from its own.
FEWEST_OWN = 20
# Multiples of the keys' spread that are tried: first these, then some around the best.
_SCALES, _FINER = (
    2.0 ** np.arange(-7, 3.1, 0.5),
    2.0 ** np.array([-0.35, -0.2, -0.1, 0.1, 0.2, 0.35]),
)
# Multiples of the features' spread beside that of the windows. At the last they have no say.
_FEATURE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e6)
# Windows that vary less than this share of the median one of their series are no analogs: what
# followed them would be measured in a unit close to 0.
_LEAST_VARIATION = 0.1


def units_of(past, normalize):
    """Level and unit of windows.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
    normalize : {"standard", "last", None}

    Returns
    -------
    level, unit : ndarray of shape (n_windows, 1)
        What is subtracted, and what divides then; the unit of a constant window is 1.
    """
    ones = np.ones((len(past), 1))
    if normalize is None:
        return 0 * ones, ones
    if normalize == "last":
        return past[:, -1:], ones
    level = past.mean(axis=1, keepdims=True)
    return level, dividing(spread_of(past, axis=1))[:, None]


def keys_of(origins, lookback, level, unit):
    """What windows are compared by.

    Parameters
    ----------
    origins : Origins
    lookback : int
    level, unit : ndarray of shape (n_windows, 1)

    Returns
    -------
    keys : ndarray of shape (n_windows, n_columns)
        The normalised window, features known only up to now in its steps, and those known
        beforehand in the steps to forecast.
    """
    parts = [(origins.past(lookback) - level) / unit]
    past, later = origins.past_features(lookback), origins.future_features()
    if past is not None:
        past = np.delete(past, origins.table.known, axis=2)
        parts.append(past.reshape(len(past), -1))
    if later is not None:
        parts.append(later.reshape(len(later), -1))
    return np.concatenate(parts, axis=1)


def comparable(past, series):
    """Which windows vary enough for what followed to be measured in their own unit.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
    series : ndarray of int of shape (n_windows,)
        Which series each is of.

    Returns
    -------
    kept : ndarray of bool of shape (n_windows,)
    """
    deviation = past.std(axis=1)
    kept = np.empty(len(past), dtype=bool)
    for one in np.unique(series):
        own = series == one
        kept[own] = deviation[own] >= _LEAST_VARIATION * np.median(deviation[own])
    return kept


def left_out(origins, horizon, series=None):
    """Windows to be predicted from others, and from which.

    Parameters
    ----------
    origins : ndarray of int of shape (n_windows,)
        The first step that followed. Windows that share such steps, or would if they were of
        one series, do not predict one another.
    horizon : int
    series : ndarray of int of shape (n_windows,), default=None
        Which series each window is of, if it is predicted from those of its own where there
        are enough.

    Returns
    -------
    groups : list of tuple
        Windows to be predicted, those to predict from, and which of these each of them may
        be predicted from. The windows to be predicted do not depend on `series`.
    """
    few = evenly_spread(len(origins), _MOST_KEYS)
    rest, groups = few[evenly_spread(len(few), _MOST_ROWS)], []
    sources = [] if series is None else np.unique(series[rest])
    for memory, fewest in [(i, FEWEST_OWN) for i in sources] + [(None, 1)]:
        if memory is None:
            rows, memory = rest, few
        else:
            rows, memory = rest[series[rest] == memory], np.flatnonzero(series == memory)
            memory = memory[evenly_spread(len(memory), _MOST_KEYS)]
        apart = np.abs(origins[rows, None] - origins[memory]) >= horizon
        kept = apart.sum(axis=1) >= fewest
        if kept.any():
            groups.append((rows[kept], memory, apart[kept]))
            rest = np.setdiff1d(rest, rows[kept])
    return groups


def search_bandwidth(groups, keys, values, lookback, kernel, given=None):
    """Bandwidth of least squared error, windows predicted from others.

    Parameters
    ----------
    groups : list of tuple
        Which from which; see :func:`left_out`.
    keys : ndarray of shape (n_windows, n_columns)
        The first `lookback` columns are the window, the others features.
    values : ndarray of shape (n_windows, horizon)
        What followed.
    lookback : int
    kernel : Kernel
        Positive.
    given : ndarray of shape (n_columns,), default=None
        The only bandwidth to try.

    Returns
    -------
    bandwidth : ndarray of shape (n_columns,)
        The widest of those tried, if there is no window to predict another from.
    errors : ndarray of shape (n_rows,)
        The mean squared error of each window that was predicted, group by group.
    """
    spread = _spread(keys, lookback) if given is None else given / np.sqrt(lookback)

    def candidate(scale, feature_scale):
        bandwidth = scale * np.sqrt(lookback) * spread
        bandwidth[lookback:] *= feature_scale
        return bandwidth

    scales, finer = (_SCALES, _FINER) if given is None else ([1.0], [])
    if not groups:
        return candidate(scales[-1], 1.0), np.empty(0)
    scaled = keys / spread
    columns = slice(lookback), slice(lookback, None)
    distances = [
        [cdist(scaled[rows, part], scaled[memory, part], "sqeuclidean") for part in columns]
        for rows, memory, _ in groups
    ]

    def errors(scale, feature_scale):
        found = []
        for (rows, memory, apart), (windows, features) in zip(groups, distances, strict=True):
            squared = (windows + features / feature_scale**2) / (scale**2 * lookback)
            if isinstance(kernel, RadialKernel):
                log_weights = kernel.log_profile(squared)
            else:
                units = kernel.rescale(keys, candidate(scale, feature_scale))
                refuse_negative((kernel(units[rows], units[memory]) < 0).any(), kernel)
                log_weights = kernel.log(units[rows], units[memory])
            weights = softmax(_of_those_apart(log_weights, squared, apart), axis=1)
            found.append(np.mean((weights @ values[memory] - values[rows]) ** 2, axis=1))
        return np.concatenate(found)

    def size(tried_at):
        return tried[tried_at].mean()

    several = given is None and keys.shape[1] > lookback
    feature_scales = _FEATURE_SCALES if several else (1.0,)
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


def _of_those_apart(log_weights, squared, apart):
    """Logarithms of the weights of windows that count; of the nearest where none has weight."""
    log_weights = np.where(apart, log_weights, -np.inf)
    lost = np.flatnonzero(np.isneginf(log_weights).all(axis=1))
    nearest = np.where(apart[lost], squared[lost], np.inf).argmin(axis=1)
    log_weights[lost, nearest] = 0.0
    return log_weights


def refuse_negative(negative, kernel):
    """Raise if a kernel takes negative values, which is not known of all beforehand.

    Parameters
    ----------
    negative : bool
        Whether it does.
    kernel : Kernel
    """
    if negative:
        raise ValueError(
            f"kernel={kernel!r} takes negative values, with which what followed is not "
            "averaged: choose a positive kernel, such as 'gaussian'."
        )


def distribution_quantiles(weights, values, levels):
    """Quantiles of the values under the weights of each query.

    Parameters
    ----------
    weights : ndarray of shape (n_queries, n_windows)
        Rows sum to 1.
    values : ndarray of shape (n_windows, horizon)
    levels : sequence of float

    Returns
    -------
    quantiles : ndarray of shape (n_queries, horizon, n_levels)
        The smallest values whose weight, with that of all smaller ones, reaches each level.
    """
    found = np.empty((len(weights), values.shape[1], len(levels)))
    for step, places in enumerate(values.T):
        order = np.argsort(places)
        reached = np.cumsum(weights[:, order], axis=1)
        for query, own in enumerate(reached):
            first = np.searchsorted(own, np.asarray(levels) * own[-1])
            found[query, step] = places[order[np.minimum(first, len(order) - 1)]]
    return found
