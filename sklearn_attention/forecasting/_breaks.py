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
# The difference of levels at a break is at least 1.5 times that at any earlier step. The change
# at a break is at least c^(1/n) times as large as the largest of the n others, which happens by
# chance with a probability of 1 / c.
_MIN_RATIO, _CHANCE_INVERSE = 1.5, 1e6
# The ratio of changes after a break to those before it is at most 2. It is shrunk to 1 with a
# pseudo-count of 3 changes.
_PSEUDO_CHANGES, _MAX_RATIO = 3, 2.0


def aligned(table, season_length, min_ratio, max_since):
    """Move the steps before a break of each series to the level after it.

    Parameters
    ----------
    table : Table
        With features nothing is moved, since these may explain a break.
    season_length : int
    min_ratio : float
        Smallest ratio of the change at a break to the largest other change; with infinity no
        change is a break.
    max_since : int
        Largest number of steps since a break; earlier breaks are ignored.

    Returns
    -------
    table : Table
    since : ndarray of shape (n_series,)
        Number of steps since the break; infinite for a series without a break.
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
    """Find series with a change in their second half that is far larger than all others.

    Yields the number of each such series, and the first step after the change.
    """
    for length, rows in by_group(table.lengths):
        first, stop = max(_MIN_BEFORE, length // 2), length - _MIN_AFTER + 1
        if stop <= first:
            continue
        values = table.value[table.first_rows[rows][:, None] + np.arange(length)]
        changes, n_changes = _without_season(np.diff(values, axis=1), season_length)
        # Compare the largest change with the largest of the others.
        sizes = np.abs(changes)
        position = first - 1 + sizes[:, first - 1 : stop - 1].argmax(axis=1)
        largest = np.take_along_axis(sizes, position[:, None], axis=1)[:, 0]
        np.put_along_axis(sizes, position[:, None], 0.0, axis=1)
        if n_changes < length - 1:
            # The change a season before was subtracted, and so was the break from the change a
            # season later.
            repeated = np.minimum(position + season_length, length - 2)
            np.put_along_axis(sizes, repeated[:, None], 0.0, axis=1)
        ratio = max(min_ratio, _CHANCE_INVERSE ** (1 / n_changes))
        for k in np.flatnonzero(largest > ratio * sizes.max(axis=1)):
            yield rows[k], position[k] + 1


def _without_season(changes, season_length):
    """Subtract the season from the changes (n_series, n_changes) of series of one length.

    That is the median change of the same phase, or, if there are too few seasons for a median,
    the change a season before.

    Returns
    -------
    changes : ndarray of shape (n_series, n_changes)
        0 in the first season if it has no season before it.
    n_compared : int
        Number of changes of a series from which the season was subtracted.
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
    padded = np.full((n_series, n_seasons * season_length), np.nan)
    padded[:, :n_changes] = changes
    usual = np.nanmedian(padded.reshape(n_series, n_seasons, season_length), axis=1)
    usual -= usual.mean(axis=1, keepdims=True)
    return changes - np.tile(usual, n_seasons)[:, :n_changes], n_changes


def _moved(values, first, season_length):
    """Move the steps of a series before a break to the level after it.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
    first : int
        First step after the break.
    season_length : int

    Returns
    -------
    moved : ndarray of shape (n_steps,) or None
        None if the level after the break is not new, or has returned.
    """
    n, before = len(values), values[:first]
    # 1. Subtract the seasonal pattern of the steps before the break.
    pattern = np.zeros(season_length)
    if season_length > 1 and first >= min_pattern_steps(season_length):
        phase = np.arange(first)[None] % season_length
        pattern = seasonal_patterns(before[None], np.array([first]), phase, season_length)[0]
    elif 1 < season_length <= first:
        pattern = np.roll(before[-season_length:] - before[-season_length:].mean(), first)
    adjusted = values - np.resize(pattern, n)
    # 2. Measure the shift of the level. A level is the mean over as many steps as there are
    # after the break, at most a third of those before it. The median difference of levels
    # before the break, which is due to a trend, is subtracted.
    length = min(n - first, first // 3)
    sums = np.cumsum(np.append(0.0, adjusted))
    levels = (sums[length:] - sums[:-length]) / length
    differences = levels[length : first - length + 1] - levels[: first - 2 * length + 1]
    usual = np.median(differences)
    level = levels[first - length]
    shift = levels[first] - level - usual
    # 3. Move the steps before the break, unless a step after it lies on the old level's side of
    # the middle, or the shift is hardly larger than earlier ones.
    has_returned = np.sign(shift) * (adjusted[first:] - level) <= np.abs(shift) / 2
    if has_returned.any() or np.abs(shift) <= _MIN_RATIO * np.abs(differences - usual).max():
        return None
    ratio = _ratio_of_changes(values, first, season_length)
    return np.concatenate([level + shift + ratio * (before - level), values[first:]])


def _ratio_of_changes(values, first, season_length):
    """Divide changes after a break by those at the same phases of the season before it.

    `values` (n_steps,) is a series, and `first` its first step after the break. The ratio is
    shrunk to 1 by the pseudo-count, at most 2, and 1 if there are no such changes.
    """
    sizes = np.abs(np.diff(values))
    after = np.arange(first, len(sizes))
    n_seasons = -(-(after - first + 2) // season_length)
    same_phase = after - season_length * n_seasons
    after, same_phase = after[same_phase >= 0], same_phase[same_phase >= 0]
    usual = sizes[same_phase].mean() if len(same_phase) else 0.0
    if usual == 0:
        return 1.0
    total = _PSEUDO_CHANGES + sizes[after].sum() / usual
    return min(total / (_PSEUDO_CHANGES + len(after)), _MAX_RATIO)
