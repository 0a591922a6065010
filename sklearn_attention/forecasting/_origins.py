"""Moments in series, windows before them, and forecasts at them."""

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._base import warn_user
from .._blocks import check_memory, evenly_spread
from .._column_stats import mean_and_scale
from .._validation import check_positive
from ._table import Table, naive_scales, positions

# So many series make a panel.
PANEL = 30
# Steps already observed are forecast with the pattern that a series had before it grew by so
# much: 4000 steps take a third of the seconds, 8000 a fifth, and errors are 0.997 to 1.003.
_GROWN = 1.25
_BLOCKS = 5
# There are about 400 validation origins in all: at most 100 of a series, and at least 6 of a
# long and 12 of a short one. In panels 6 origins of a long series are a horizon apart.
_ABOUT, _MOST, _FEWEST, _FEWEST_OF_SHORT = 400, 100, 6, 12
# A series of at least 10 horizons is long. Then its last 60 % are validated, and in panels its
# last 6 horizons, since recent errors of many series suffice.
_LONG, _SHARE, _PANEL_SPAN = 10, 0.6, 6
# Changes from which on a series that mostly is at its least value has events.
_FEWEST_CHANGES = 4
# Steps there have to be before a validation origin.
_LEAST_KNOWN = 4


@dataclass(frozen=True, eq=False)
class Origins:
    """Moments in series to forecast from.

    Attributes
    ----------
    table : Table
        Steps from an origin on are targets, never inputs.
    series : ndarray of int of shape (n_origins,)
        Series of each origin, by position.
    known : ndarray of int of shape (n_origins,)
        Number of known steps of the series, and position of the first step to forecast. At 0
        the first step counts as known.
    horizon : int
        Number of steps to forecast.
    season_known : ndarray of int of shape (n_origins,), default=None
        Number of steps of the series that seasonal patterns are learned from at each origin;
        None for those known.
    """

    table: Table
    series: np.ndarray
    known: np.ndarray
    horizon: int
    season_known: np.ndarray | None = None

    def __post_init__(self):
        if self.season_known is None:
            object.__setattr__(self, "season_known", self.known)

    @classmethod
    def at_ends(cls, table, horizon):
        """The end of each series of a table."""
        return cls(table, np.arange(len(table)), table.lengths, horizon)

    @classmethod
    def within(cls, table, horizon, lookback=1):
        """All origins with enough steps before and after them."""
        counts = np.maximum(table.lengths - lookback - horizon + 1, 0)
        return cls(table, *positions(lookback, counts), horizon)

    def __len__(self):
        return len(self.series)

    def take(self, rows):
        """Some of the origins."""
        return self.at(self.series[rows], self.known[rows], self.season_known[rows])

    def with_season_before(self, ends):
        """The same origins, where patterns are learned before some steps."""
        return replace(self, season_known=np.minimum(self.known, ends[self.series]))

    def with_few_seasons(self):
        """The same origins, where patterns are learned anew after a series has grown."""
        # Patterns of every step would take the square of their number.
        count = np.floor(np.log(np.maximum(self.known, 1)) / np.log(_GROWN))
        return replace(
            self, season_known=np.minimum(self.known, np.ceil(_GROWN**count).astype(np.int64))
        )

    def at(self, series, known, season_known=None):
        """Other origins in the same table, with the same horizon."""
        return Origins(self.table, series, known, self.horizon, season_known)

    def joined(self, others):
        """These origins, and others of the same table after them."""
        parts = [
            (origins.series, origins.known, origins.season_known) for origins in (self, others)
        ]
        return self.at(*map(np.concatenate, zip(*parts, strict=True)))

    @property
    def identity(self):
        """Position of each origin's series among the training series; -1 for others."""
        return self.table.identity[self.series]

    def flagged(self, flags):
        """Return the flag (n_training_series,) of each origin's series, False for new ones."""
        return (self.identity >= 0) & flags[self.identity]

    def units(self, learned, measure=naive_scales):
        """Units (n_origins,) as learned from training series, of others by what is known."""
        # `learned` (n_training_series,) is NaN of those that are measured so far as well.
        identity = self.identity
        units = learned[identity]
        other = np.flatnonzero((identity < 0) | np.isnan(units))
        if len(other):
            pairs = np.column_stack([self.series, self.known])[other]
            pairs, place = np.unique(pairs, axis=0, return_inverse=True)
            past = [self.table.values[i][: max(n, 1)] for i, n in pairs]
            units[other] = measure(past)[place]
        return units

    def been_negative(self):
        """True where a known value is negative; (n_origins,)."""
        count = np.append(0, np.cumsum(self.table.value < 0))
        first = self.table.first[self.series]
        return count[first + np.maximum(self.known, 1)] > count[first]

    @property
    def steps_left(self):
        """Number of observed steps after each origin; (n_origins,)."""
        return self.table.lengths[self.series] - self.known

    @property
    def steps(self):
        """Positions of the steps to forecast; (n_origins, horizon)."""
        return self.known[:, None] + np.arange(self.horizon)

    def past(self, length):
        """The last steps known, (n_origins, length), the first of a series for earlier ones."""
        check_memory("lookback at every step", (len(self), length), "pass a smaller lookback")
        start = self.table.first[self.series] + self.known - length
        if not 0 < length <= len(self.table.value) or (self.known < length).any():
            return self._values(self.known[:, None] - length + np.arange(length))
        return sliding_window_view(self.table.value, length)[start]  # rows are copied at once

    def before(self, lags):
        """Steps known so far before each to forecast, (n_origins, horizon), NaN for none."""
        steps = self.steps - lags
        return np.where(steps >= 0, self._values(steps), np.nan)

    def targets(self):
        """Values of the steps to forecast; (n_origins, horizon)."""
        last = self.table.lengths[self.series][:, None] - 1
        values = self._values(np.minimum(self.steps, last))
        return np.where(self.steps <= last, values, np.nan)

    def _values(self, steps):
        """Values of some steps of each series, (n_origins, n_steps), the first for earlier."""
        return self.table.value[self.table.first[self.series][:, None] + np.maximum(steps, 0)]

    def past_features(self, length):
        """Features of the last steps known, (n_origins, length, n_features), or None."""
        if self.table.n_features == 0:
            return None
        return self._features(self.known[:, None] - length + np.arange(length))

    def future_features(self):
        """Known features of the steps to forecast, (n_origins, horizon, n_known), or None."""
        if self.table.n_features == 0 or len(self.table.known) == 0:
            return None
        return self._features(self.steps)[:, :, self.table.known]

    def _features(self, steps):
        return self.table.features[self.table.feature_rows(self.series[:, None], steps)]


def chunks(rows, most, cost=1):
    """Rows in about equal parts, at least one, of at most some cost, `cost` for each row."""
    return np.array_split(rows, -(-len(rows) * cost // most) or 1)


def golden_fractions(n):
    """Return multiples of the golden ratio, less whole numbers: evenly spread, (n,)."""
    return np.arange(n) * (np.sqrt(5) - 1) / 2 % 1


def spread_over_phases(n, most):
    """Choose at most so many of n positions, evenly spread, and of each phase of any season.

    Positions at equal distances may all have one phase. One of each of `most` stretches of
    equal length is chosen, at a place in its stretch that `golden_fractions` say. The last
    position is among them.
    """
    if n <= most:
        return np.arange(n)
    if 2 * most > n:  # those that are not chosen are spread
        return np.delete(np.arange(n), n - 2 - spread_over_phases(n - 1, n - most))
    places = (np.arange(most) + golden_fractions(most)) * (n / most)
    return n - 1 - places.astype(np.int64)[::-1]


def split_at_ends(origins, fraction):
    """Origins to train on, and the last of each series, about so large a share, held out."""
    # At least one of each is held out, and targets of the first end before those of the second
    # begin. Of series too short for both all is held out where others are long enough.
    counts = np.bincount(origins.series, minlength=len(origins.table))
    held_out = np.maximum(1, np.floor(counts * fraction).astype(np.int64))
    last = np.zeros_like(counts)
    np.maximum.at(last, origins.series, origins.known)
    first = (last + 1 - held_out)[origins.series]
    return origins.take(origins.known + origins.horizon <= first), origins.take(
        origins.known >= first
    )


def fewest_windows(horizon, fraction):
    """Return how many windows of one series :func:`split_at_ends` leaves some to train on."""
    # Of n windows n - floor(fraction n) have to be at least `horizon`. Rounding may ask for one
    # window more than that.
    return max(horizon + 1, int((horizon - 1) / (1 - fraction) + 1e-9) + 1)


@dataclass(frozen=True, eq=False)
class Validation:
    """Origins to learn from, and validation origins in contiguous blocks of time."""

    # `origins` are all with a whole horizon after them and a step before, `tests` are the
    # validation origins, `block` (n_validation,) numbers the block of each, and `scale`
    # (n_series,) is the unit of each series.

    origins: Origins
    tests: Origins
    block: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, table, horizon, lookback, share=_SHARE):
        """Validation on all series of a table, in five blocks of time."""
        # Blocks are counted from the end of each series. The last origins of a long series are
        # one horizon before its end, and its first so that they span `share` of it, in panels
        # six horizons. Of a short series it is half a horizon and three horizons; where the
        # series ends within a horizon the remaining steps count. Before an origin there are
        # `lookback` steps where a third of the series is as long.
        lengths, has_many_series = table.lengths, len(table) >= PANEL
        about = min(_ABOUT // len(lengths), _MOST)
        parts = [np.empty((3, 0), dtype=np.int64)]
        for i, n in enumerate(lengths):
            before = max(min(lookback, n // 3), _LEAST_KNOWN)
            if n >= _LONG * horizon:
                span = _PANEL_SPAN * horizon if has_many_series else int(share * n)
                nearest, farthest, fewest = horizon, min(span, n - before), _FEWEST
            else:
                nearest, farthest = max(1, horizon // 2), min(3 * horizon, n - before)
                fewest = _FEWEST_OF_SHORT
            nearest = min(nearest, farthest)
            if nearest < 1:
                continue  # too short to be validated
            width = farthest - nearest + 1
            gaps = nearest + evenly_spread(np.arange(width), max(about, fewest))
            block = (gaps - nearest) * _BLOCKS // width
            parts.append([np.full_like(gaps, i), n - gaps, block])
        series, known, block = np.concatenate(parts, axis=1)
        tests, scale = Origins(table, series, known, horizon), naive_scales(table.values)
        return cls(Origins.within(table, horizon), tests, block, scale)

    @property
    def is_panel(self):
        """True if there are many series that are not mostly 0, and some to be validated on."""
        return np.sum(~self.mostly_least) >= PANEL and len(self.block) > 0

    @property
    def are_long(self):
        """True if most series are long."""
        lengths = self.tests.table.lengths
        return np.median(lengths) >= _LONG * self.tests.horizon

    @cached_property
    def mostly_least(self):
        """True for series that mostly are at their least value, as counts at 0; (n_series,)."""
        # Those that hardly ever changed are none.
        pairs = [
            (own == own.min(), np.sum(own[1:] != own[:-1])) for own in self.tests.table.values
        ]
        return np.array([2 * low.sum() > len(low) and n >= _FEWEST_CHANGES for low, n in pairs])

    @property
    def n_blocks(self):
        """Number of blocks."""
        return int(self.block.max()) + 1 if len(self.block) else 0

    def earliest(self, rows=slice(None)):
        """First of some validation origins in each series, its end if none; (n_series,)."""
        first = self.tests.table.lengths.copy()
        np.minimum.at(first, self.tests.series[rows], self.tests.known[rows])
        return first

    @cached_property
    def _spans(self):
        """First step forecast in each block of each series, and the one after the last.

        Both (n_series, n_blocks); inf and -inf for none.
        """
        shape = len(self.scale), self.n_blocks
        first, end = np.full(shape, np.inf), np.full(shape, -np.inf)
        at = self.tests.series, self.block
        np.minimum.at(first, at, self.tests.known)
        np.maximum.at(end, at, self.tests.known + self.origins.horizon)
        return first, end

    def overlap(self, block):
        """Bound the steps known at origins whose targets overlap with those of a block.

        Returns the first number of steps, and the one after the last; each (n_series,).
        """
        first, end = self._spans
        return first[:, block] - self.origins.horizon + 1, end[:, block]

    def overlapping(self, series, known, block):
        """True where targets of origins (n,) overlap with those of a block; (n,)."""
        first, end = (spans[series, block] for spans in self._spans)
        return (known > first - self.origins.horizon) & (known < end)

    def folds(self):
        """Rows of validation origins, in each block and not overlapping with that block."""
        tests = self.tests
        for block in range(self.n_blocks):
            overlaps = self.overlapping(tests.series, tests.known, block)
            yield np.flatnonzero(self.block == block), np.flatnonzero(~overlaps)

    def within(self, series, steps):
        """True for steps of a series that are forecast in the blocks; (n_steps, n_blocks)."""
        first, end = (spans[series] for spans in self._spans)
        return (steps[:, None] >= first) & (steps[:, None] < end)


def held_out(learn, validation):
    """Forecast validation origins; (n_validation, 1, horizon).

    `learn(block)` is a candidate that has not learned from what overlaps with a block.
    """
    tests = validation.tests
    forecasts = np.full((len(tests), 1, tests.horizon), np.nan)
    for block, (rows, _) in enumerate(validation.folds()):
        forecasts[rows] = learn(block).forecast(tests.take(rows))
    return forecasts


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts at some origins, with quantiles, candidates and weights.

    Attributes
    ----------
    origins : Origins
    mean : ndarray of shape (n_origins, horizon)
        The forecasts.
    disagreement : ndarray of shape (n_origins, horizon), default=None
        Mean distance of candidates from their mean; None with only one forecast, or without
        `levels`.
    quantiles : ndarray of shape (n_origins, horizon, n_levels), default=None
        Of the levels passed; None where there is no distribution.
    every : ndarray of shape (n_origins, n_candidates, horizon), default=None
        Forecasts of the candidates, NaN where one has none.
    weights : ndarray of shape (n_origins, n_candidates), default=None
        Their weights.
    """

    origins: Origins
    mean: np.ndarray
    disagreement: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    every: np.ndarray | None = None
    weights: np.ndarray | None = None

    @classmethod
    def at(cls, origins, candidates, full=False):
        """Combined forecasts; the last known value where no candidate has one."""
        weights, attention = candidates.weights_at(origins), candidates.attention
        is_partial = not full and attention is None
        every = candidates.each(origins, weights.any(axis=0) if is_partial else None)
        if attention is not None:
            weights = attention.weights(origins, every, weights)
        there = ~np.isnan(every).any(axis=2)
        lost = np.flatnonzero(~(there & (weights > 0)).any(axis=1))
        if len(lost) and is_partial:  # too short for all that have weight
            every[lost] = candidates.each(origins.take(lost))
        mean = combine(every, weights, origins.past(1))
        spread = disagreement(every) if full else None
        return cls(origins, mean, spread, every=every, weights=weights)

    @classmethod
    def joined(cls, parts):
        """Join Forecasts at origins in one table that have means and quantiles only."""
        origins = reduce(Origins.joined, (part.origins for part in parts))
        mean, quantiles = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("mean", "quantiles")
        )
        return cls(origins, mean, quantiles=quantiles)

    def take(self, rows):
        """Those of some origins."""
        parts = (self.mean, self.disagreement, self.quantiles, self.every, self.weights)
        parts = (None if part is None else part[rows] for part in parts)
        return Forecasts(self.origins.take(rows), *parts)

    def moved(self, by):
        """The same with means and quantiles moved by (n_origins, horizon)."""
        quantiles = None if self.quantiles is None else self.quantiles + by[:, :, None]
        return replace(self, mean=self.mean + by, quantiles=quantiles)


def combine(forecasts, weights, otherwise):
    """Weighted averages of forecasts (n_origins, n_candidates, horizon), as far as there are.

    Where all that have weight are NaN, the others are averaged; where all are, `otherwise`.
    """
    there = ~np.isnan(forecasts).any(axis=2)
    weights = np.where(there, weights, 0.0)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, there)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total > 0, total, 1.0)
    combined = np.einsum("nc,nch->nh", weights, np.where(there[:, :, None], forecasts, 0.0))
    return np.where(total > 0, combined, otherwise)


def disagreement(forecasts):
    """Mean distances of candidates from their mean, without weights; (n_origins, horizon).

    0 where no candidate has a forecast.
    """
    equal = np.ones(forecasts.shape[:2])
    mean = combine(forecasts, equal, otherwise=0.0)
    return combine(np.abs(forecasts - mean[:, None]), equal, otherwise=0.0)


def mean_differences(past, known):
    """Average absolute differences of the last steps known, (n_origins, n_steps); (n_origins,).

    `known` (n_origins,) are the steps of the series so far: before the first there are no
    differences.
    """
    n_differences = np.clip(known - 1, 1, past.shape[1] - 1)
    return np.abs(np.diff(past, axis=1)).sum(axis=1) / n_differences


# How windows are made alike: those in units of their own spread, and those after which values
# are relative to the last season.
STANDARD = ("standard", "standard_seasonal")
SEASONAL = ("seasonal", "standard_seasonal")
NORMALIZE = ("auto", "last", "seasonal", "standard", "standard_seasonal")

# "auto" takes so many seasons, and at least over the horizon and so many steps, but over
# no more than this share of the longest series.
_SEASONS, _FEWEST_STEPS, _LARGEST_SHARE = 3, 10, 0.25
# A season is short if it has at most 24 steps. With windows of a year of weeks, learned from
# two or three years, errors become larger.
_MAX_SHORT_SEASON = 24
# Windows that there have to be to learn from.
_FEWEST_WINDOWS = 2


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows before origins, relative to a level and in a unit, (n, 1)."""

    # `keys` (n, n_columns) are the steps of each window, then perhaps features of these steps
    # that are known only up to now, and known features of the steps to forecast. `level`, (n,
    # 1) or (n, horizon), is that of the targets. `deviation` (n, 1) is the difference of the
    # last step from its level, in the unit.

    origins: Origins
    keys: np.ndarray
    level: np.ndarray
    unit: np.ndarray
    deviation: np.ndarray

    @classmethod
    def before(
        cls, origins, lookback, normalize, unit=1.0, season=1, share=1.0, last_share=0.0,
        features=True,
    ):  # fmt: skip
        """Windows of `lookback` steps before origins."""
        # `normalize` is one of NORMALIZE, None, or the number of last steps whose mean is the
        # level. `unit`, a number or (n, 1), is ignored for those of STANDARD. For those of
        # SEASONAL targets are relative to a share of the last season, whose mean is the rest.
        # To the level is added what share of the deviation `last_share` says, (horizon,).
        keys, as_they_are = origins.past(lookback), np.ndim(unit) == 0 and unit == 1
        n_level = {"standard": lookback, "last": 1, None: 0}.get(normalize, normalize)
        if normalize in SEASONAL:
            n_level = season
        level, unit = np.zeros((len(keys), 1)), np.broadcast_to(unit, (len(keys), 1))
        if n_level:
            level = keys[:, -n_level:].mean(axis=1, keepdims=True)
        if normalize in STANDARD:
            unit, as_they_are = mean_and_scale(keys.T)[1][:, None], False
        keys -= level
        if not as_they_are:
            keys /= unit
        deviation = keys[:, -1:]
        if normalize in SEASONAL:
            last = share * (origins.past(season + 1) - level)
            deviation = deviation - last[:, :1] / unit
            level = level + last[:, 1 + np.arange(origins.horizon) % season]
        level = level + last_share * unit * deviation
        if features and origins.table.n_features:
            keys = np.concatenate([keys, *_features(origins, lookback)], axis=1)
        return cls(origins, keys, level, unit, deviation)

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


def short_season(season_length):
    """Return the season if it is so short that two of them suffice, otherwise 1."""
    return season_length if season_length <= _MAX_SHORT_SEASON else 1


def least_length(horizon):
    """Steps that a series needs to have for windows of it to be learned from."""
    return 2 * horizon + _FEWEST_WINDOWS


def choose_lookback(length, lookback, horizon, season_length, seasons=_SEASONS):
    """Number of steps of a window."""
    # "auto" is so many seasons, at least the horizon and 10 steps, and at most a quarter of the
    # longest series, which has `length` steps, or a short season. A number shrinks, with a
    # warning, where the longest series has no room for it, and without `least_length` that is a
    # ValueError.
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
        most = max(int(_LARGEST_SHARE * length), short_season(season_length))
        return max(1, min(wanted, most, longest))
    lookback = check_positive("lookback", lookback, integer=True)
    if lookback > longest:
        warn_user(
            f"lookback={lookback} leaves too few windows in a series of {length} steps with "
            f"horizon={horizon}: {longest} is used instead. Pass longer series, or a lookback "
            f"of at most {longest}."
        )
    return min(lookback, longest)
