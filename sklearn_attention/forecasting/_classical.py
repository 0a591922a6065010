"""Classical forecasts of many series at every origin: exponential smoothing and its kin.

At each origin with the parameters that did best up to it.
"""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ._season import SeasonalAdjustment, groups_by_length


def methods_of(level_rates, trend_rates, trend_shares, dampings):
    """List the parameters that simple smoothing, Holt's method and its damped form try.

    At every origin those with the least squared error so far count. Returns three arrays
    (n_choices, 3) of the rate of the level, the share of it that is the rate of the trend, and
    the damping, 1 for none.
    """
    choices = (
        product(level_rates, (0.0,), (1.0,)),
        product(trend_rates, trend_shares, (1.0,)),
        product(trend_rates, trend_shares, dampings),
    )
    return tuple(np.array(list(own)) for own in choices)


# On sixteen panels cut before their last horizon errors are 0.998 of those with 205 choices.
METHODS = methods_of(
    np.linspace(0.03, 0.99, 17), np.linspace(0.08, 0.96, 7), (0.01, 0.05, 0.25), (0.8, 0.95)
)
# Trends begin as the mean of so many first differences.
_FIRST_STEPS = 3
# Errors that differ by less than this share are the same but for rounding.
_ROUNDING = 1e-9
# Series that go through time together, whose states fit into the cache, and origins whose
# choices are compared at once.
_ROWS, _ORIGINS = 100, 100


@dataclass(frozen=True, eq=False)
class Smoothed:
    """States of exponential smoothing at some origins, each (n_origins,)."""

    # A forecast of k steps is the level, plus the trend times the sum of the first k powers of
    # the damping.

    level: np.ndarray
    trend: np.ndarray
    damping: np.ndarray

    def path(self, n_steps):
        """Forecasts, (n_origins, n_steps)."""
        growth = np.cumsum(self.damping[:, None] ** np.arange(1, n_steps + 1), axis=1)
        return self.level[:, None] + self.trend[:, None] * growth


def smooth(tables, methods):
    """States of the theta method, of Holt's method and of its damped form at some origins.

    `methods` are those of :func:`methods_of`, or some of them, simple smoothing first, which
    becomes the theta method. Returns a list of a :class:`Smoothed` for each of them, for each
    triple of `tables`.
    """
    # A triple is series (n_rows, n_steps) that begin at the first column, and of each origin
    # the row and the last known step, (n_origins,); nothing after it is read. Theta is simple
    # smoothing with half the slope of a straight line.
    # With errors e_t = x_t - l_{t-1} - p b_{t-1} the states are l_t = l_{t-1} + p b_{t-1} + a
    # e_t and b_t = p b_{t-1} + a b e_t (Hyndman, Koehler, Ord and Snyder 2008). So the level is
    # x_t - (1 - a) e_t and, with b_t = a b s_t, errors have a recursion of their own: e_t = x_t
    # - x_{t-1} + (1 - a) e_{t-1} - p a b s_{t-1}, s_t = p s_{t-1} + e_t. Levels begin at the
    # first value, trends at the mean of the first three differences, or of those so far.
    if not tables:
        return []
    n_rows = np.cumsum([0, *(len(own) for own, _, _ in tables)])
    values = np.zeros((n_rows[-1], max(own.shape[1] for own, _, _ in tables)))
    for (own, _, _), start, stop in zip(tables, n_rows, n_rows[1:], strict=False):
        values[start:stop, : own.shape[1]] = own
    row = np.concatenate([own + n for (_, own, _), n in zip(tables, n_rows, strict=False)])
    last = np.concatenate([own for _, _, own in tables])
    lengths = np.zeros(len(values), dtype=np.int64)
    np.maximum.at(lengths, row, last + 1)
    longest_first = np.argsort(-lengths, kind="stable")
    rank = np.empty_like(longest_first)
    rank[longest_first] = np.arange(len(rank))
    block = rank[row] // _ROWS
    order = np.lexsort((last, block))
    found = np.empty((len(methods), 3, len(row)))
    for own in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        first = block[own[0]] * _ROWS
        rows = longest_first[first : first + _ROWS]
        table = values[rows, : lengths[rows[0]]]
        found[:, :, own] = _states(
            table, methods, lengths[rows], rank[row[own]] - first, last[own]
        )
    parts = np.split(found, np.cumsum([len(own) for _, own, _ in tables])[:-1], axis=2)
    return [[Smoothed(*states) for states in part] for part in parts]


def _states(values, methods, lengths, place, last):
    """Level, trend and damping by each method, (n_methods, 3, n_origins).

    Rows come longest first, origins by their last step.
    """
    alpha, beta, phi = choices = np.concatenate(methods).T
    borders = np.cumsum([0, *map(len, methods)])
    x = values - values[:, :1]
    found = np.empty((len(methods), 3, len(last)))
    for own, total, error, sums in _errors(x, lengths, place, last, *choices):
        now, origins = values[place[own], last[own]], np.arange(len(total))
        for states, start, stop in zip(found, borders, borders[1:], strict=False):
            part = total[:, start:stop]
            least = part.min(axis=1, keepdims=True)
            best = start + (part <= least / (1 - _ROUNDING)).argmax(axis=1)
            states[0, own] = now - (1 - alpha[best]) * error[origins, best]
            states[1, own] = (alpha * beta)[best] * sums[origins, best]
            states[2, own] = phi[best]
    found[0, 1] = _slopes(x)[place, last] / 2
    return found


def _errors(x, lengths, place, last, alpha, beta, phi):
    """Squared errors so far, the last error and its damped sum by choice, at the origins.

    In batches, each with the slice of the origins that it holds.
    """
    n_rows, n_steps = x.shape
    trended, n_choices = beta > 0, len(alpha)
    # Arrays of one shape and layout are worth their memory: most of the time goes here.
    keep, rate, phi = (
        np.tile(own, (n_rows, 1)) for own in (1 - alpha, phi * alpha * beta, phi * trended)
    )
    error, sums, total, scratch = (np.zeros((n_rows, n_choices)) for _ in range(4))
    # Added to the errors and sums of later steps by a trend of 1 at the first.
    impulse = np.zeros(n_choices), np.divide(1, alpha * beta, where=trended, out=0 * alpha)
    n_first = np.minimum(np.arange(n_steps), _FIRST_STEPS)[: _FIRST_STEPS + 1]
    bends = np.diff(x[:, n_first] / np.maximum(n_first, 1), prepend=0.0)
    changes = np.ascontiguousarray(np.diff(x, prepend=0.0).T)[:, :, None]
    going = np.searchsorted(-lengths, -np.arange(n_steps))
    ends = np.searchsorted(last, np.arange(n_steps), side="right")
    batch, first, start = [], 0, 0
    for t, (m, end) in enumerate(zip(going, ends, strict=True)):
        if m < len(error):
            error, sums, total, scratch = error[:m], sums[:m], total[:m], scratch[:m]
            keep, rate, phi = keep[:m], rate[:m], phi[:m]
        if t:
            np.multiply(error, keep, error)
            np.multiply(sums, rate, scratch)
            np.subtract(error, scratch, error)
            np.add(error, changes[t, :m], error)
            np.multiply(sums, phi, sums)
            np.add(sums, error, sums)
            np.multiply(error, error, scratch)
            np.add(total, scratch, total)
        if 0 < t <= _FIRST_STEPS:
            ahead = keep[0] * impulse[0] - rate[0] * impulse[1]
            impulse = ahead, phi[0] * impulse[1] + ahead
            error += bends[:m, t, None] * impulse[0]
            sums += bends[:m, t, None] * impulse[1]
        if end > start:
            own = place[start:end]
            batch.append((total[own], error[own], sums[own]))
            start = end
        if end - first >= _ORIGINS or (batch and t == n_steps - 1):
            yield slice(first, end), *(np.concatenate(own) for own in zip(*batch, strict=True))
            batch, first = [], end


def _slopes(values):
    """Slope of the least-squares line through all steps up to each; (n_series, n_steps)."""
    steps = np.arange(values.shape[1], dtype=float)
    n = steps + 1
    products = np.cumsum(values * steps, axis=1), np.cumsum(values, axis=1) * (n - 1) / 2
    return 12 * (products[0] - products[1]) / np.maximum(n * (n**2 - 1), 1)


# Lengths of the blocks whose means are forecast too, by the number of steps in a season. On the
# 1428 monthly series of M3 errors are 1.009 of these without the blocks, and the interval score
# 1.011.
_BLOCKS = {1: (2, 3), 4: (2, 4), 12: (2, 3, 4, 6)}
_OTHER_BLOCKS = (2, 4)


@dataclass(frozen=True, eq=False)
class Classical:
    """Exponential smoothing, theta and the like, of seasonally adjusted series."""

    # At every origin parameters are those of `methods` that were best so far. If the season is
    # `further`, not the usual one, it is part of the names. With `blocks` means of blocks of
    # steps are forecast too.

    season_length: float
    further: bool = False
    blocks: bool = True
    methods: tuple = field(default_factory=lambda: METHODS)

    @property
    def names(self):
        """Names of the forecasts."""
        names = "naive", "drift", "SES", "Holt", "damped", "theta", "median"
        names = (*names, "blocks", "classical mean") if self.blocks else names
        season = f", season of {self.season_length:.4g} steps" if self.further else ""
        return tuple(name + season for name in names)

    def fit(self, validation):
        """Return itself, and forecasts of validation origins by patterns before their block."""
        tests = validation.tests
        n_pattern_steps = tests.n_known.copy()
        for rows, _ in validation.folds():
            origins = tests.take(rows).with_patterns_before(validation.first_test_step(rows))
            n_pattern_steps[rows] = origins.n_pattern_steps
        return self, self.forecast(replace(tests, n_pattern_steps=n_pattern_steps))

    def forecast(self, origins):
        """Forecast, (n_origins, n_names, horizon); the first step stands for itself."""
        season = SeasonalAdjustment.learn(origins, self.season_length)
        n_known = np.maximum(origins.n_known, 1)
        lengths = np.zeros(len(season.series), dtype=np.int64)
        np.maximum.at(lengths, season.pattern_of_origin, n_known)
        forecasts = np.empty((len(origins), len(self.names), origins.horizon))
        for group in groups_by_length(lengths):
            place = np.full(len(lengths), -1)
            place[group] = np.arange(len(group))
            rows = np.flatnonzero(place[season.pattern_of_origin] >= 0)
            table = season.adjusted(group, lengths[group])
            row, last = place[season.pattern_of_origin[rows]], n_known[rows] - 1
            forecasts[rows] = self._adjusted(table, row, last, origins.horizon)
        return (
            forecasts
            + season.patterns_at(season.pattern_of_origin[:, None], origins.target_steps)[
                :, None
            ]
        )

    def _adjusted(self, table, row, last, horizon):
        """Forecast adjusted series (n_rows, n_steps) after some of their steps."""
        now, blocks = table[row, last][:, None], []
        sizes = _BLOCKS.get(round(self.season_length), _OTHER_BLOCKS)
        if self.blocks:
            blocks = [block for size in sizes for block in _blocks(table, size, row, last)]
        (smoothed,) = smooth([(table, row, last)], self.methods)
        theta, holt, damped = (method.path(horizon) for method in smoothed)
        naive = np.repeat(now, horizon, axis=1)
        level = np.repeat(smoothed[0].level[:, None], horizon, axis=1)
        slope = (now - table[row, :1]) / np.maximum(last, 1)[:, None]
        drift = now + slope * np.arange(1, horizon + 1)
        median = np.median([level, theta, holt, damped], axis=0)
        each = [naive, drift, level, holt, damped, theta, median]
        if self.blocks:
            of_blocks = smooth([means for _, _, means in blocks], self.methods[::2])
            # Where a series has no two blocks of a size, forecasts without blocks stand in.
            by_size = np.repeat(((theta + damped) / 2)[None], len(sizes) + 1, axis=0)
            for (size, rows, means), both in zip(blocks, of_blocks, strict=True):
                by_size[1 + sizes.index(size), rows] = _between(size, means, both, horizon)
            of_blocks = by_size.mean(axis=0)
            each += [of_blocks, (median + of_blocks) / 2]
        return np.stack(each, axis=1)


def _blocks(table, size, row, last):
    """Average blocks of `size` steps, which end at the last known step of an origin.

    Yields the size, the origins, and for these the means (n_rows, n_blocks), and of each origin
    the row of the means and its last block. Means have less noise than steps, and a trend of
    the longer run.
    """
    for shift in range(size):
        rows = np.flatnonzero(((last + 1) % size == shift) & ((last + 1) // size >= 2))
        if len(rows):
            end = (last[rows] + 1) // size
            series, row_of_means = np.unique(row[rows], return_inverse=True)
            steps = slice(shift, shift + size * end.max())
            means = table[series, steps].reshape(len(series), -1, size).mean(axis=2)
            yield size, rows, (means, row_of_means, end - 1)


def _between(size, blocks, both, horizon):
    """Interpolate between forecasts of blocks, as `_blocks` yields them; (n_origins, horizon).

    `both` are :class:`Smoothed` means, by the theta method and by Holt's damped method.
    """
    means, row, last = blocks
    n_ahead = -(-horizon // size) + 2
    paths = sum(method.path(n_ahead) for method in both) / 2
    paths = np.concatenate([means[row, last][:, None], paths], axis=1)
    # Centres of the blocks, in steps after the origin.
    centers = np.arange(n_ahead + 1) * size - (size - 1) / 2
    steps = np.arange(1, horizon + 1)
    before = np.clip(np.searchsorted(centers, steps) - 1, 0, n_ahead - 1)
    share = (steps - centers[before]) / size
    return paths[:, before] * (1 - share) + paths[:, before + 1] * share


@dataclass(frozen=True, eq=False)
class LastSeason:
    """The last season again, and moved by its mean change from the season before it."""

    season: int

    names = ("last season", "last season, moved")

    def fit(self, validation):
        """Forecast validation origins; nothing is learned."""
        return self, self.forecast(validation.tests)

    def forecast(self, origins):
        """Forecasts (n, 2, horizon), NaN without a season, or a quarter of the one before."""
        m, steps = self.season, np.arange(origins.horizon)
        before, last = np.split(origins.past(2 * m), 2, axis=1)
        n_before = np.clip(origins.n_known - m, -1, m)[:, None]
        is_known = np.arange(m) >= m - n_before
        change = np.where(is_known, last - before, 0.0).sum(axis=1, keepdims=True)
        change = np.where(n_before >= max(1, m // 4), change / np.maximum(n_before, 1), np.nan)
        repeated = np.where(n_before >= 0, last[:, steps % m], np.nan)
        return np.stack([repeated, repeated + change * (1 + steps // m)], axis=1)
