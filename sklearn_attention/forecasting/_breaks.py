"""Breaks of the level of a series, and series that are moved to the level after their break.

A break is a change from one step to the next that is far larger than all other changes. After
it the level differs more from the previous level than it ever did, and it does not return. The
steps before a break tell how a series moves about its level, but not where the level is now.
"""

import numpy as np

from ._season import min_pattern_steps, seasonal_patterns
from ._table import by_group

# There are at least 3 steps after a break, and 8 before it.
_MIN_AFTER, _MIN_BEFORE = 3, 8
# The difference of levels at a break is at least 1.5 times that at any earlier step. Its change
# is at least c^(1/n) times any of the n others: by chance one is with a probability of 1 / c.
_MIN_RATIO, _RARE = 1.5, 1e6
# The ratio of changes after a break to those before it is at most 2, and shrunk to 1 as if 3
# further changes had been as large as before.
_USUAL_CHANGES, _MAX_RATIO = 3, 2.0


def aligned(table, season_length, min_ratio, max_since):
    """Move the steps before a break of each series to the level after it.

    Parameters
    ----------
    table : Table
        With features nothing is moved, since these may explain a break.
    season_length : int
    min_ratio : float
        Least ratio of a break to the largest other change; infinite for no breaks.
    max_since : int
        Most steps since a break.

    Returns
    -------
    table : Table
    since : ndarray of shape (n_series,)
        Steps since the break; infinite without one.
    """
    since, values = np.full(len(table), np.inf), list(table.observations)
    if table.n_features or np.isinf(min_ratio):
        return table, since
    for i, first in _largest_changes(table, season_length, min_ratio):
        if len(values[i]) - first > max_since:
            continue
        moved = _moved(values[i], first, season_length)
        if moved is not None:
            since[i] = len(values[i]) - first
            values[i] = np.maximum(moved, 0.0) if values[i].min() >= 0 else moved
    return (table.with_observations(values) if np.isfinite(since).any() else table), since


def _largest_changes(table, season_length, min_ratio):
    """Yield series with a change that is far larger than all others, and the step after it."""
    for length, rows in by_group(table.lengths):
        first, stop = max(_MIN_BEFORE, length // 2), length - _MIN_AFTER + 1
        if stop <= first:
            continue
        values = table.value[table.first_rows[rows][:, None] + np.arange(length)]
        changes, n_changes = _without_season(np.diff(values, axis=1), season_length)
        sizes = np.abs(changes)
        place = first - 1 + sizes[:, first - 1 : stop - 1].argmax(axis=1)
        largest = np.take_along_axis(sizes, place[:, None], axis=1)[:, 0]
        np.put_along_axis(sizes, place[:, None], 0.0, axis=1)
        if n_changes < length - 1:
            # A season later the break is subtracted from another change.
            repeated = np.minimum(place + season_length, length - 2)
            np.put_along_axis(sizes, repeated[:, None], 0.0, axis=1)
        ratio = max(min_ratio, _RARE ** (1 / n_changes))
        for k in np.flatnonzero(largest > ratio * sizes.max(axis=1)):
            yield rows[k], place[k] + 1


def _without_season(changes, season_length):
    """Subtract the median change of each phase, or the change a season before.

    The change a season before is subtracted if there are too few seasons for a median. The
    first season, which has none before it, becomes 0. Returns the changes (n_series,
    n_changes), and how many of a series are compared.
    """
    n_series, n_changes = changes.shape
    if season_length == 1 or n_changes < 2 * season_length - 1:
        return changes, n_changes
    if n_changes < min_pattern_steps(season_length):
        differences = np.zeros_like(changes)
        differences[:, season_length:] = (
            changes[:, season_length:] - changes[:, :-season_length]
        )
        return differences, n_changes - season_length
    n_seasons = -(-n_changes // season_length)
    whole = np.full((n_series, n_seasons * season_length), np.nan)
    whole[:, :n_changes] = changes
    usual = np.nanmedian(whole.reshape(n_series, n_seasons, season_length), axis=1)
    usual -= usual.mean(axis=1, keepdims=True)
    return changes - np.tile(usual, n_seasons)[:, :n_changes], n_changes


def _moved(values, first, season_length):
    """Move the steps before `first` to the level after them; None if that is no new level."""
    n, known = len(values), values[:first]
    pattern = np.zeros(season_length)
    if season_length > 1 and first >= min_pattern_steps(season_length):
        phase = np.arange(first)[None] % season_length
        pattern = seasonal_patterns(known[None], np.array([first]), phase, season_length)[0]
    elif 1 < season_length <= first:
        pattern = np.roll(known[-season_length:] - known[-season_length:].mean(), first)
    adjusted = values - np.resize(pattern, n)
    # A level is the mean over as many steps as there are after the break, at most a third of
    # those before it. The usual difference of levels, which is due to a trend, is subtracted.
    length = min(n - first, first // 3)
    sums = np.cumsum(np.append(0.0, adjusted))
    levels = (sums[length:] - sums[:-length]) / length
    differences = levels[length : first - length + 1] - levels[: first - 2 * length + 1]
    usual = np.median(differences)
    level = levels[first - length]
    shift = levels[first] - level - usual
    has_returned = np.sign(shift) * (adjusted[first:] - level) <= np.abs(shift) / 2
    if has_returned.any() or np.abs(shift) <= _MIN_RATIO * np.abs(differences - usual).max():
        return None
    before = level + shift + _ratio_of_changes(values, first, season_length) * (known - level)
    return np.concatenate([before, values[first:]])


def _ratio_of_changes(values, first, season_length):
    """Compare changes after a break with those at the same phases of the season before it."""
    sizes = np.abs(np.diff(values))
    after = np.arange(first, len(sizes))
    n_seasons = -(-(after - first + 2) // season_length)
    same = after - season_length * n_seasons
    after, same = after[same >= 0], same[same >= 0]
    usual = sizes[same].mean() if len(same) else 0.0
    if usual == 0:
        return 1.0
    ratio = (_USUAL_CHANGES + sizes[after].sum() / usual) / (_USUAL_CHANGES + len(after))
    return min(ratio, _MAX_RATIO)
