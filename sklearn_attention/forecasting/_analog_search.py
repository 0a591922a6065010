"""Lookback, bandwidth, and windows of all series or of the own, of least error."""

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from .._validation import check_bandwidth
from ._analogs import FEWEST_OWN, PAIRS, first_steps, log_kernel, normalized
from ._metrics import dividing
from ._origins import chunks, evenly_spread

# Of more windows than these, evenly spread ones are predicted, and predicted from.
_MOST_ROWS, _MOST_KEYS = 500, 4000
# Multiples of the keys' spread that are tried: first these, then some around the best.
_SCALES, _FINER = (
    2.0 ** np.arange(-7, 3.1, 0.5),
    2.0 ** np.array([-0.35, -0.2, -0.1, 0.1, 0.2, 0.35]),
)
# Multiples of the features' spread beside that of the windows. At the last they have no say.
_FEATURE_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e6)


def choose_analogs(analogs, origins, lookbacks, bandwidth):
    """Analogs of the lookback and bandwidth of least leave-one-out error, and this error.

    A bandwidth other than "loo" is the only one tried. The error is in units of windows of the
    first lookback, the shortest; NaN if no window can be predicted from others.
    """
    # The shortest windows tell; longer ones do not vary much less.
    origins = origins.take(origins.known >= lookbacks[-1])
    origins = replace(analogs, lookback=lookbacks[0]).comparable(origins)
    first, horizon = first_steps(origins), origins.horizon
    tried = {True: left_out(first, horizon)}
    counts = np.bincount(origins.series)
    if len(analogs.scale) > 1 and counts.max() >= FEWEST_OWN + horizon:
        tried[False] = left_out(first, horizon, origins.series)
    found, usual = [], None
    for lookback in lookbacks:
        analogs = replace(analogs, lookback=lookback)
        windows = analogs.windows(origins)
        usual = windows.unit if usual is None else usual
        # Errors in units of windows of different lengths are not alike.
        ratio = (windows.unit / usual)[:, 0]
        given, n_columns = None, windows.keys.shape[1]
        if not isinstance(bandwidth, str):
            given = np.broadcast_to(check_bandwidth(bandwidth, n_columns), n_columns).copy()
        for pooled, groups in tried.items():
            best, errors = search_bandwidth(
                groups, windows.keys, windows.values, lookback, analogs.kernel, given
            )
            rows = [rows for rows, _, _ in groups]
            error = np.mean(errors * ratio[np.concatenate(rows)] ** 2) if rows else np.nan
            found.append((float(error), replace(analogs, bandwidth=best, pooled=pooled)))
    error, analogs = min(found, key=lambda one: one[0])
    return analogs, error


def left_out(origins, horizon, series=None):
    """Windows to be predicted, those to predict from, and which of these each may be.

    `origins` are first steps that followed, (n_windows,): windows that share such steps, or
    would if they were of one series, do not predict one another. With `series`, (n_windows,), a
    window is predicted from those of its own series where there are enough. The windows to be
    predicted do not depend on it.
    """
    few = evenly_spread(len(origins), _MOST_KEYS)
    remaining, groups = few[evenly_spread(len(few), _MOST_ROWS)], []
    sources = [] if series is None else np.unique(series[remaining])
    for source, fewest in [(i, FEWEST_OWN) for i in sources] + [(None, 1)]:
        if source is None:
            rows, memory = remaining, few
        else:
            rows, memory = (
                remaining[series[remaining] == source],
                np.flatnonzero(series == source),
            )
            memory = memory[evenly_spread(len(memory), _MOST_KEYS)]
        apart = np.abs(origins[rows, None] - origins[memory]) >= horizon
        kept = apart.sum(axis=1) >= fewest
        if kept.any():
            groups.append((rows[kept], memory, apart[kept]))
            remaining = np.setdiff1d(remaining, rows[kept])
    return groups


def search_bandwidth(groups, keys, values, lookback, kernel, given=None):
    """Bandwidth (n_columns,) of least squared error, windows predicted from others.

    `groups` are those of :func:`left_out`; the first `lookback` columns of the keys are the
    window, the others features. A bandwidth that is given is the only one tried. With it the
    mean squared error of each window that was predicted, group by group; without any the
    bandwidth is the widest of those tried.
    """
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

    parts = [
        (rows[few], memory, apart[few])
        for rows, memory, apart in groups
        for few in chunks(np.arange(len(rows)), PAIRS, len(memory))
    ]
    windows = [distances(rows, memory, slice(lookback)) for rows, memory, _ in parts]
    features = [
        distances(rows, memory, slice(lookback, None)) if several else 0.0
        for rows, memory, _ in parts
    ]

    def errors(scale, feature_scale):
        found, bandwidth = [], candidate(scale, feature_scale)
        for (rows, memory, apart), steps, others in zip(parts, windows, features, strict=True):
            squared = (steps + others / feature_scale**2) / (scale**2 * lookback)
            log_weights = log_kernel(kernel, squared, keys[rows], keys[memory], bandwidth)
            weights = normalized(log_weights, squared, apart)
            found.append(np.mean((weights @ values[memory] - values[rows]) ** 2, axis=1))
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
