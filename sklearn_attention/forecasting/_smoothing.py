"""Exponential smoothing of many series, with the parameters that did best up to each origin."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.signal import lfilter

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
