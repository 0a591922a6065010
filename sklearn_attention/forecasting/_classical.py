"""Classical forecasts of many series at every origin: exponential smoothing and its kin.

At each origin with the parameters that did best up to it.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.signal import lfilter

from ._season import SeasonalAdjustment, groups_of

# Parameters that are tried; at every origin those with the least squared error so far count.
LEVEL_RATES = np.linspace(0.03, 0.99, 25)
TREND_RATES = tuple(product(np.linspace(0.08, 0.96, 9), (0.01, 0.05, 0.15, 0.4)))
DAMPINGS = (0.8, 0.9, 0.95, 0.98)
# Trends begin as the mean of so many first differences.
_FIRST_STEPS = 3
# Errors that differ by less than this share are the same but for rounding.
_ROUNDING = 1e-9
# Series that go through time together, whose states fit into the cache, and origins whose
# choices are compared at once.
_ROWS, _ORIGINS = 48, 100
# Steps from which on a series is filtered by itself, choice by choice.
_LONG = 3000


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


def smooth(tables):
    """States of the theta method, of Holt's method and of its damped form at some origins.

    Returns a list of the three :class:`Smoothed` for each triple of `tables`.
    """
    # A triple is series (n_rows, n_steps) that begin at the first column, and of each origin
    # the row and the last known step, (n_origins,); nothing after it is read. Theta is simple
    # smoothing with half the slope of a straight line.
    # With errors e_t = x_t - l_{t-1} - p b_{t-1} the states are l_t = l_{t-1} + p b_{t-1} + a
    # e_t and b_t = p b_{t-1} + a b e_t (Hyndman, Koehler, Ord and Snyder 2008). So the level is
    # x_t - (1 - a) e_t and, with b_t = a b s_t, errors have a recursion of their own: e_t = x_t
    # - x_{t-1} + (1 - a) e_{t-1} - p a b s_{t-1}, s_t = p s_{t-1} + e_t. Levels begin at the
    # first value, trends at the mean of the first three differences, or of those so far.
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
    found = np.empty((3, 3, len(row)))
    for own in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        first = block[own[0]] * _ROWS
        rows = longest_first[first : first + _ROWS]
        table = values[rows, : lengths[rows[0]]]
        found[:, :, own] = _states(table, lengths[rows], rank[row[own]] - first, last[own])
    parts = np.split(found, np.cumsum([len(own) for _, own, _ in tables])[:-1], axis=2)
    return [[Smoothed(*states) for states in part] for part in parts]


def _states(values, lengths, place, last):
    """Level, trend and damping of the three methods, (3, 3, n_origins).

    Rows come longest first, origins by their last step.
    """
    simple = [(alpha, 0.0, 1.0) for alpha in LEVEL_RATES]
    holt = [(*rates, 1.0) for rates in TREND_RATES]
    damped = [(*rates, phi) for rates, phi in product(TREND_RATES, DAMPINGS)]
    alpha, beta, phi = choices = np.array(simple + holt + damped).T
    borders = np.cumsum([0, len(simple), len(holt), len(damped)])
    x = values - values[:, :1]
    found = np.empty((3, 3, len(last)))
    pass_through = _filtered if len(x) == 1 and x.shape[1] >= _LONG else _errors
    for own, total, error, sums in pass_through(x, lengths, place, last, *choices):
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


def _filtered(x, lengths, place, last, alpha, beta, phi):
    """The same of one long series, where states after the first are those of linear filters."""
    n = _FIRST_STEPS + 1
    steps, changes = np.arange(n), np.diff(x[0])[n - 1 :]
    [(_, *first)] = _errors(
        x[:, :n], np.full(1, n), np.zeros_like(steps), steps, alpha, beta, phi
    )
    found, later = np.empty((3, len(last), len(alpha))), last >= n
    found[:, ~later] = np.array(first)[:, last[~later]]
    at, keep, phi = last[later] - n, 1 - alpha, phi * (beta > 0)
    rate = phi * alpha * beta
    for i, (total, error, sums) in enumerate(zip(*(own[-1] for own in first), strict=True)):
        poles = [1.0, rate[i] - keep[i] - phi[i], keep[i] * phi[i]]
        begin = (phi[i] - rate[i]) * sums + keep[i] * error, -poles[2] * sums
        summed, _ = lfilter([1.0], poles, changes, zi=begin)
        missed = summed - phi[i] * np.append(sums, summed[:-1])
        found[:, later, i] = total + np.cumsum(missed**2)[at], missed[at], summed[at]
    yield slice(0, len(last)), *found


def _slopes(values):
    """Slope of the least-squares line through all steps up to each; (n_series, n_steps)."""
    steps = np.arange(values.shape[1], dtype=float)
    n = steps + 1
    products = np.cumsum(values * steps, axis=1), np.cumsum(values, axis=1) * (n - 1) / 2
    return 12 * (products[0] - products[1]) / np.maximum(n * (n**2 - 1), 1)


# Lengths of the blocks whose means are forecast too, by the number of steps in a season.
_BLOCKS = {1: (2, 3), 4: (2, 4), 12: (2, 3, 4, 6)}
_OTHER_BLOCKS = (2, 4)
# Forecasts in the units before logarithms stay above this share of the mean.
_FLOOR = 0.05


@dataclass(frozen=True, eq=False)
class Classical:
    """Exponential smoothing, theta and the like, of seasonally adjusted series."""

    # At every origin parameters are those that were best so far. Series may be logarithms
    # (`logs`), so that trends of the series themselves are tried too. A `further` season than
    # the usual one is part of the names.

    season_length: float
    logs: bool
    further: bool = False

    @property
    def names(self):
        """Names of the forecasts."""
        raw = ("raw theta", "raw Holt", "raw damped") if self.logs else ()
        names = ("naive", "drift", "SES", "Holt", "damped", "theta", *raw)
        names = (*names, "median", "blocks", "classical mean")
        season = f", season of {self.season_length:.4g} steps" if self.further else ""
        return tuple(name + season for name in names)

    def fit(self, training):
        """Itself, and forecasts of validation origins with patterns from before their block."""
        validation = training.validation
        known = validation.known.copy()
        for block in range(training.n_blocks):
            rows = np.flatnonzero(training.block == block)
            origins = validation.take(rows).with_season_before(training.earliest(rows))
            known[rows] = origins.season_known
        return self, self.forecast(replace(validation, season_known=known))

    def forecast(self, origins):
        """Forecasts, (n_origins, n_names, horizon); the first step stands for itself."""
        season = SeasonalAdjustment.of(origins, self.season_length)
        known = np.maximum(origins.known, 1)
        lengths = np.zeros(len(season.series), dtype=np.int64)
        np.maximum.at(lengths, season.row, known)
        found = np.empty((len(origins), len(self.names), origins.horizon))
        for group in groups_of(lengths):
            place = np.full(len(lengths), -1)
            place[group] = np.arange(len(group))
            rows = np.flatnonzero(place[season.row] >= 0)
            table = season.adjusted(group, lengths[group])
            last = known[rows] - 1
            found[rows] = self._adjusted(table, place[season.row[rows]], last, origins.horizon)
        return found + season.at(season.row[:, None], origins.steps)[:, None]

    def _adjusted(self, table, row, last, horizon):
        """Forecasts of adjusted series (n_rows, n_steps) after some of their steps."""
        ahead = np.arange(1, horizon + 1)
        now, base = table[row, last][:, None], table[:, :1]
        sizes = _BLOCKS.get(round(self.season_length), _OTHER_BLOCKS)
        blocks = [blocks for size in sizes for blocks in _blocks(table, size, row, last)]
        tables = [(table, row, last), *(own for _, _, own in blocks)]
        if self.logs:
            raw = np.exp(np.clip(table - base, -50, 50))
            tables.append((raw, row, last))
        smoothed = smooth(tables)
        line, trend, calm = (method.path(horizon) for method in smoothed[0])
        naive = np.repeat(now, horizon, axis=1)
        level = np.repeat(smoothed[0][0].level[:, None], horizon, axis=1)
        drift = now + (now - base[row]) / np.maximum(last, 1)[:, None] * ahead
        parts = [naive, drift, level, trend, calm, line]
        central = [level, line, trend, calm]
        if self.logs:
            means = np.cumsum(raw, axis=1)[row, last] / (last + 1)
            floor = _FLOOR * means[:, None]
            for method in smoothed[-1]:
                parts.append(np.log(np.maximum(method.path(horizon), floor)) + base[row])
            central += [parts[-3], parts[-1]]
        median = np.median(central, axis=0)
        both = (line + calm) / 2
        of_blocks = np.repeat(both[None], len(sizes) + 1, axis=0)
        for (size, rows, (means, at, end)), methods in zip(blocks, smoothed[1:], strict=False):
            path = _between(size, means[at, end], methods, horizon)
            of_blocks[1 + sizes.index(size), rows] = path
        of_blocks = of_blocks.mean(axis=0)
        return np.stack([*parts, median, of_blocks, (median + of_blocks) / 2], axis=1)


def _blocks(table, size, row, last):
    """Sizes, origins, and means (n_rows, n_blocks) of blocks of steps that end there."""
    # Means have less noise, and their trend is that of the longer run. The row and the last
    # block of each origin are with the means.
    for shift in range(size):
        rows = np.flatnonzero(((last + 1) % size == shift) & ((last + 1) // size >= 2))
        if len(rows):
            end = (last[rows] + 1) // size
            used, at = np.unique(row[rows], return_inverse=True)
            steps = slice(shift, shift + size * end.max())
            means = table[used, steps].reshape(len(used), -1, size).mean(axis=2)
            yield size, rows, (means, at, end - 1)


def _between(size, now, methods, horizon):
    """Forecasts of steps, interpolated between those of blocks, (n_origins, horizon)."""
    n_ahead = -(-horizon // size) + 2
    both = (methods[0].path(n_ahead) + methods[2].path(n_ahead)) / 2
    both = np.concatenate([now[:, None], both], axis=1)
    # Centres of the blocks, in steps after the origin.
    centers = np.arange(n_ahead + 1) * size - (size - 1) / 2
    steps = np.arange(1, horizon + 1)
    left = np.clip(np.searchsorted(centers, steps) - 1, 0, n_ahead - 1)
    share = (steps - centers[left]) / size
    return both[:, left] * (1 - share) + both[:, left + 1] * share
