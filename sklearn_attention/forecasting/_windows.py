"""Windows before origins, made alike, with what followed them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._base import warn_user
from .._spread import level_and_spread
from .._validation import check_positive
from ._origins import Origins

# How windows are made alike: those in units of their own spread, and those after which values
# are relative to the last season.
STANDARD = ("standard", "standard_seasonal")
SEASONAL = ("seasonal", "standard_seasonal")
NORMALIZE = ("auto", "last", "seasonal", "standard", "standard_seasonal")

# "auto" takes so many seasons, and at least over the horizon and so many steps, but over
# no more than this share of the longest series.
_SEASONS, _FEWEST_STEPS, _LARGEST_SHARE = 3, 10, 0.25
# Windows that there have to be to learn from.
_FEWEST_WINDOWS = 2


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows before origins, relative to a level and in a unit, (n, 1)."""

    # `keys` (n, n_columns) are the steps of each window, then perhaps features of these steps
    # that are known only up to now, and known features of the steps to forecast. `level`, (n,
    # 1) or (n, horizon), is that of the targets.

    origins: Origins
    keys: np.ndarray
    level: np.ndarray
    unit: np.ndarray

    @classmethod
    def before(cls, origins, lookback, normalize, unit=1.0, season=1, share=1.0, features=True):
        """Windows of `lookback` steps before origins."""
        # `normalize` is one of NORMALIZE, None, or the number of last steps whose mean is the
        # level. `unit`, a number or (n, 1), is ignored for those of STANDARD. For those of
        # SEASONAL targets are relative to a share of the last season, whose mean is the rest.
        keys, as_they_are = origins.past(lookback), np.ndim(unit) == 0 and unit == 1
        n_level = {"standard": lookback, "last": 1, None: 0}.get(normalize, normalize)
        if normalize in SEASONAL:
            n_level = season
        level, unit = np.zeros((len(keys), 1)), np.broadcast_to(unit, (len(keys), 1))
        if n_level:
            level = keys[:, -n_level:].mean(axis=1, keepdims=True)
        if normalize in STANDARD:
            unit, as_they_are = level_and_spread(keys.T)[1][:, None], False
        keys -= level
        if not as_they_are:
            keys /= unit
        if features and origins.table.n_features:
            keys = np.concatenate([keys, *_features(origins, lookback)], axis=1)
        if normalize in SEASONAL:
            last = origins.past(season)[:, np.arange(origins.horizon) % season]
            level = level + share * (last - level)
        return cls(origins, keys, level, unit)

    def __len__(self):
        return len(self.keys)

    @cached_property
    def values(self):
        """Targets, relative to the level and in the unit; (n, horizon)."""
        return (self.origins.targets() - self.level) / self.unit

    def restore(self, values):
        """The reverse, of shape (n, horizon) or (n, horizon, n_levels)."""
        more = tuple(range(2, values.ndim))
        level, unit = np.expand_dims(self.level, more), np.expand_dims(self.unit, more)
        return level + unit * values


def _features(origins, lookback):
    """Features of the steps of each window, and of the steps to forecast, if they are known."""
    past, later = origins.past_features(lookback), origins.future_features()
    parts = [np.delete(past, origins.table.known, axis=2), *([] if later is None else [later])]
    return [part.reshape(len(part), part.shape[1] * part.shape[2]) for part in parts]


def by_group(labels):
    """Each label with the positions that have it, ascending."""
    order = np.argsort(labels, kind="stable")
    groups, first = np.unique(labels[order], return_index=True)
    return zip(groups, np.split(order, first)[1:], strict=True)


def least_length(horizon):
    """Steps that a series needs to have for windows of it to be learned from."""
    return 2 * horizon + _FEWEST_WINDOWS


def choose_lookback(length, lookback, horizon, season_length, seasons=_SEASONS):
    """Number of steps of a window."""
    # "auto" is so many seasons, at least the horizon and 10 steps, and at most a quarter of the
    # longest series, which has `length` steps. A number shrinks, with a warning, where the
    # longest series has no room for it, and without `least_length` that is a ValueError.
    # Two windows to learn from, and one held out after them.
    longest = length - 2 * horizon - (_FEWEST_WINDOWS - 1)
    if longest < 1:
        raise ValueError(
            f"the longest series has {length} sample{'s' if length > 1 else ''}, but "
            f"horizon={horizon} needs at least {least_length(horizon)}: pass a longer "
            "series or a smaller horizon."
        )
    if isinstance(lookback, str) and lookback == "auto":
        wanted = max(seasons * season_length, horizon, _FEWEST_STEPS)
        return max(1, min(wanted, int(_LARGEST_SHARE * length), longest))
    lookback = check_positive("lookback", lookback, integer=True)
    if lookback > longest:
        warn_user(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: it shrinks to {longest}."
        )
    return min(lookback, longest)
