"""Classical candidates: exponential smoothing, the theta method and naive forecasts.

Forecasts: at every origin, of seasonally adjusted series,

- the last value ("naive"), and the line from the first value through it ("drift");
- simple exponential smoothing ("SES"), Holt's method and its damped form (Hyndman, Koehler, Ord
  and Snyder 2008, Forecasting with Exponential Smoothing), and "theta", which is simple
  smoothing with half the slope of a straight line as its trend (Assimakopoulos and Nikolopoulos
  2000, International Journal of Forecasting 16, 521-530);
- "median", the median of the last four, "blocks", theta and damped forecasts of means of blocks
  of steps, and "classical mean", the mean of both.

`LastSeason` repeats the last season of short series.

Learns: nothing in `fit`. At each origin the smoothing parameters are those of the least squared
one-step errors up to the origin, and the seasonal pattern is that of `SeasonalAdjustment`.

Costs: one pass over time for all origins of a series, in which the errors of all choices of
parameters are updated at every step.
"""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ._season import SeasonalAdjustment, groups_by_length


def methods_of(level_rates, trend_rates, trend_shares, dampings):
    """List the parameters that simple smoothing, Holt's method and its damped form try.

    Returns three arrays of shape (n_choices, 3), one for each method. The columns are the rate
    alpha of the level, the share beta of it that is the rate of the trend, and the damping phi,
    1 for none.
    """
    choices = (
        product(level_rates, (0.0,), (1.0,)),
        product(trend_rates, trend_shares, (1.0,)),
        product(trend_rates, trend_shares, dampings),
    )
    return tuple(np.array(list(parameters)) for parameters in choices)


# On sixteen panels cut before their last horizon errors are 0.998 of those with 205 choices.
METHODS = methods_of(
    np.linspace(0.03, 0.99, 17), np.linspace(0.08, 0.96, 7), (0.01, 0.05, 0.25), (0.8, 0.95)
)
# Trends begin as the mean of the first three differences.
_FIRST_STEPS = 3
# Sums of squared errors that differ relatively by less than 1e-9 are the same but for rounding.
_ROUNDING = 1e-9
# 100 series go through time together, so that their states fit into the cache, and the choices
# of 100 origins are compared at once.
_MAX_ROWS, _MAX_ORIGINS = 100, 100


@dataclass(frozen=True, eq=False)
class Smoothed:
    """States of exponential smoothing at some origins.

    The forecast k steps ahead is level + (phi + phi² + ... + phi^k) trend, with the damping
    phi. All fields are of shape (n_origins,).
    """

    level: np.ndarray
    trend: np.ndarray
    damping: np.ndarray

    def path(self, n_steps):
        """Forecast the next steps; (n_origins, n_steps)."""
        growth = np.cumsum(self.damping[:, None] ** np.arange(1, n_steps + 1), axis=1)
        return self.level[:, None] + self.trend[:, None] * growth


def smooth(tables, methods):
    """Smooth series exponentially, and return the states at origins.

    Parameters
    ----------
    tables : list of (ndarray, ndarray, ndarray)
        Series (n_rows, n_steps), which begin at the first column, and for each origin its row
        and its last known step, both (n_origins,). Nothing after the last known step is read.
    methods : sequence of ndarray of shape (n_choices, 3)
        Those of `methods_of`, or some of them. Simple smoothing comes first, and becomes theta.

    Returns
    -------
    smoothed : list of list of Smoothed
        For each table one for each method.
    """
    if not tables:
        return []
    # 1. Put the series of all tables below one another, and number their rows and origins.
    n_rows = np.cumsum([0, *(len(series) for series, _, _ in tables)])
    values = np.zeros((n_rows[-1], max(series.shape[1] for series, _, _ in tables)))
    for (series, _, _), start, stop in zip(tables, n_rows, n_rows[1:], strict=False):
        values[start:stop, : series.shape[1]] = series
    row = np.concatenate([rows + n for (_, rows, _), n in zip(tables, n_rows, strict=False)])
    last = np.concatenate([last_steps for _, _, last_steps in tables])
    lengths = np.zeros(len(values), dtype=np.int64)
    np.maximum.at(lengths, row, last + 1)
    # 2. Smooth blocks of rows, the longest first, with their origins in the order of time.
    longest_first = np.argsort(-lengths, kind="stable")
    rank = np.empty_like(longest_first)
    rank[longest_first] = np.arange(len(rank))
    block = rank[row] // _MAX_ROWS
    order = np.lexsort((last, block))
    states = np.empty((len(methods), 3, len(row)))
    for origins in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        first_rank = block[origins[0]] * _MAX_ROWS
        rows = longest_first[first_rank : first_rank + _MAX_ROWS]
        block_values = values[rows, : lengths[rows[0]]]
        row_in_block = rank[row[origins]] - first_rank
        states[:, :, origins] = _states(
            block_values, methods, lengths[rows], row_in_block, last[origins]
        )
    # 3. Divide the origins by table again.
    ends = np.cumsum([len(rows) for _, rows, _ in tables])[:-1]
    return [
        [Smoothed(*method_states) for method_states in table_states]
        for table_states in np.split(states, ends, axis=2)
    ]


def _states(values, methods, lengths, row, last):
    """Compute level, trend and damping by each method; (n_methods, 3, n_origins).

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_steps)
        Series, the longest first.
    methods : sequence of ndarray of shape (n_choices, 3)
    lengths : ndarray of int of shape (n_rows,)
    row, last : ndarray of int of shape (n_origins,)
        Series of each origin and its last known step, ascending.
    """
    alpha, beta, phi = choices = np.concatenate(methods).T
    borders = np.cumsum([0, *map(len, methods)])
    x = values - values[:, :1]
    states = np.empty((len(methods), 3, len(last)))
    for batch, total, error, error_sum in _errors(x, lengths, row, last, *choices):
        now, positions = values[row[batch], last[batch]], np.arange(len(total))
        for method_states, start, stop in zip(states, borders, borders[1:], strict=False):
            # The first choice whose squared error is the least, but for rounding, counts.
            method_total = total[:, start:stop]
            min_total = method_total.min(axis=1, keepdims=True)
            best = start + (method_total <= min_total / (1 - _ROUNDING)).argmax(axis=1)
            method_states[0, batch] = now - (1 - alpha[best]) * error[positions, best]
            method_states[1, batch] = (alpha * beta)[best] * error_sum[positions, best]
            method_states[2, batch] = phi[best]
    states[0, 1] = _slopes(x)[row, last] / 2
    return states


def _errors(x, lengths, row, last, alpha, beta, phi):
    """Go through time, and yield the one-step errors of all choices at the origins.

    With errors e_t = x_t - l_{t-1} - phi b_{t-1} the states are l_t = l_{t-1} + phi b_{t-1} +
    alpha e_t and b_t = phi b_{t-1} + alpha beta e_t (Hyndman et al. 2008). So the level is x_t
    - (1 - alpha) e_t and the trend b_t = alpha beta s_t. Errors have a recursion of their own:
    e_t = x_t - x_{t-1} + (1 - alpha) e_{t-1} - phi alpha beta s_{t-1}, with the damped sum s_t
    = phi s_{t-1} + e_t. Levels begin at the first value, and trends at the mean of the first
    three differences, or of those so far.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_steps)
        Series minus their first value, the longest first.
    lengths : ndarray of int of shape (n_rows,)
    row, last : ndarray of int of shape (n_origins,)
    alpha, beta, phi : ndarray of shape (n_choices,)

    Yields
    ------
    batch : slice
        Origins.
    total, error, error_sum : ndarray of shape (n_batch, n_choices)
        The sum of squared errors up to each origin, and e_t and s_t there.
    """
    n_rows, n_steps = x.shape
    has_trend, n_choices = beta > 0, len(alpha)
    # All arrays have the same shape and layout, although factors do not depend on the row: this
    # loop takes most of the time, and broadcasting would slow it down.
    error_factor, sum_factor, phi = (
        np.tile(factor, (n_rows, 1))
        for factor in (1 - alpha, phi * alpha * beta, phi * has_trend)
    )
    error, error_sum, total, scratch = (np.zeros((n_rows, n_choices)) for _ in range(4))
    # e_t and s_t are linear in the first trend. `impulse` has what a first trend of 1 adds to
    # them at step t, and `bends` how much the estimate of the first trend changes there.
    impulse = np.zeros(n_choices), np.divide(1, alpha * beta, where=has_trend, out=0 * alpha)
    n_first = np.minimum(np.arange(n_steps), _FIRST_STEPS)[: _FIRST_STEPS + 1]
    bends = np.diff(x[:, n_first] / np.maximum(n_first, 1), prepend=0.0)
    changes = np.ascontiguousarray(np.diff(x, prepend=0.0).T)[:, :, None]
    n_active = np.searchsorted(-lengths, -np.arange(n_steps))
    origin_ends = np.searchsorted(last, np.arange(n_steps), side="right")
    collected, first_of_batch, start = [], 0, 0
    for t, (m, end) in enumerate(zip(n_active, origin_ends, strict=True)):
        if m < len(error):  # Shorter series have ended.
            error, error_sum, total, scratch = error[:m], error_sum[:m], total[:m], scratch[:m]
            error_factor, sum_factor, phi = error_factor[:m], sum_factor[:m], phi[:m]
        if t:
            np.multiply(error, error_factor, error)
            np.multiply(error_sum, sum_factor, scratch)
            np.subtract(error, scratch, error)
            np.add(error, changes[t, :m], error)
            np.multiply(error_sum, phi, error_sum)
            np.add(error_sum, error, error_sum)
            np.multiply(error, error, scratch)
            np.add(total, scratch, total)
        if 0 < t <= _FIRST_STEPS:
            impulse_error = error_factor[0] * impulse[0] - sum_factor[0] * impulse[1]
            impulse = impulse_error, phi[0] * impulse[1] + impulse_error
            error += bends[:m, t, None] * impulse[0]
            error_sum += bends[:m, t, None] * impulse[1]
        if end > start:
            rows = row[start:end]
            collected.append((total[rows], error[rows], error_sum[rows]))
            start = end
        if end - first_of_batch >= _MAX_ORIGINS or (collected and t == n_steps - 1):
            arrays = (np.concatenate(steps) for steps in zip(*collected, strict=True))
            yield slice(first_of_batch, end), *arrays
            collected, first_of_batch = [], end


def _slopes(values):
    """Compute the slope of the least-squares line through all steps up to each one.

    `values` and the result are of shape (n_series, n_steps).
    """
    steps = np.arange(values.shape[1], dtype=float)
    n = steps + 1
    products = np.cumsum(values * steps, axis=1)
    mean_products = np.cumsum(values, axis=1) * (n - 1) / 2
    return 12 * (products - mean_products) / np.maximum(n * (n**2 - 1), 1)


# Lengths of the blocks whose means are forecast too, by the number of steps in a season. On the
# 1428 monthly series of M3 errors without blocks are 1.009 of those with them, and interval
# scores 1.011.
_BLOCK_SIZES = {1: (2, 3), 4: (2, 4), 12: (2, 3, 4, 6)}
_OTHER_BLOCK_SIZES = (2, 4)


@dataclass(frozen=True, eq=False)
class Classical:
    """Exponential smoothing, theta and the like, of seasonally adjusted series.

    Attributes
    ----------
    season_length : float
    named_by_season : bool
        Whether the season is part of the names, since it is not the usual one.
    blocks : bool
        Whether means of blocks of steps are forecast, too.
    methods : tuple of ndarray
        Parameters that are tried, those of `methods_of`.
    """

    season_length: float
    named_by_season: bool = False
    blocks: bool = True
    methods: tuple = field(default_factory=lambda: METHODS)

    @property
    def names(self):
        """Names of the forecasts."""
        names = "naive", "drift", "SES", "Holt", "damped", "theta", "median"
        names = (*names, "blocks", "classical mean") if self.blocks else names
        suffix = f", season of {self.season_length:.4g} steps" if self.named_by_season else ""
        return tuple(name + suffix for name in names)

    def fit(self, validation):
        """Return the candidate itself, and out-of-fold forecasts of the validation origins.

        Their seasonal patterns are learned from the steps before the block of the origin.
        """
        tests = validation.tests
        n_pattern_steps = tests.n_known.copy()
        for rows, _ in validation.folds():
            origins = tests.take(rows).with_patterns_before(validation.first_test_step(rows))
            n_pattern_steps[rows] = origins.n_pattern_steps
        return self, self.forecast(replace(tests, n_pattern_steps=n_pattern_steps))

    def forecast(self, origins):
        """Forecast; (n_origins, n_names, horizon).

        At an origin before the first step of a series the first value counts as known.
        """
        season = SeasonalAdjustment.learn(origins, self.season_length)
        pattern_of_origin = season.pattern_of_origin
        n_known = np.maximum(origins.n_known, 1)
        lengths = np.zeros(len(season.series), dtype=np.int64)
        np.maximum.at(lengths, pattern_of_origin, n_known)
        forecasts = np.empty((len(origins), len(self.names), origins.horizon))
        for group in groups_by_length(lengths):
            row_of_pattern = np.full(len(lengths), -1)
            row_of_pattern[group] = np.arange(len(group))
            rows = np.flatnonzero(row_of_pattern[pattern_of_origin] >= 0)
            adjusted = season.adjusted(group, lengths[group])
            row, last = row_of_pattern[pattern_of_origin[rows]], n_known[rows] - 1
            forecasts[rows] = self._adjusted(adjusted, row, last, origins.horizon)
        patterns = season.patterns_at(pattern_of_origin[:, None], origins.target_steps)
        return forecasts + patterns[:, None]

    def _adjusted(self, table, row, last, horizon):
        """Forecast seasonally adjusted series; (n_origins, n_names, horizon).

        `table` (n_rows, n_steps) has the series; `row` and `last` (n_origins,) are the row and
        the last known step of each origin.
        """
        now, blocks = table[row, last][:, None], []
        sizes = _BLOCK_SIZES.get(round(self.season_length), _OTHER_BLOCK_SIZES)
        if self.blocks:
            blocks = [block for size in sizes for block in _blocks(table, size, row, last)]
        (smoothed,) = smooth([(table, row, last)], self.methods)
        theta, holt, damped = (method.path(horizon) for method in smoothed)
        naive = np.repeat(now, horizon, axis=1)
        level = np.repeat(smoothed[0].level[:, None], horizon, axis=1)
        slope = (now - table[row, :1]) / np.maximum(last, 1)[:, None]
        drift = now + slope * np.arange(1, horizon + 1)
        median = np.median([level, theta, holt, damped], axis=0)
        forecasts = [naive, drift, level, holt, damped, theta, median]
        if self.blocks:
            block_states = smooth([means for _, _, means in blocks], self.methods[::2])
            # Where a series has no two blocks of a size, forecasts without blocks stand in.
            by_size = np.repeat(((theta + damped) / 2)[None], len(sizes) + 1, axis=0)
            for (size, rows, means), states in zip(blocks, block_states, strict=True):
                by_size[1 + sizes.index(size), rows] = _between(size, means, states, horizon)
            block_mean = by_size.mean(axis=0)
            forecasts += [block_mean, (median + block_mean) / 2]
        return np.stack(forecasts, axis=1)


def _blocks(table, size, row, last):
    """Average blocks of `size` steps, the last of which ends at the last known step.

    Means have less noise than steps, and show the trend of a longer run. `table`, `row` and
    `last` are those of `Classical._adjusted`.

    Yields
    ------
    size : int
    rows : ndarray of int
        Origins of this phase that have at least two blocks.
    means : (ndarray of shape (n_rows, n_blocks), ndarray, ndarray)
        Means, and for each of the origins its row of the means and its last block.
    """
    for shift in range(size):
        rows = np.flatnonzero(((last + 1) % size == shift) & ((last + 1) // size >= 2))
        if len(rows):
            end = (last[rows] + 1) // size
            series, row_of_means = np.unique(row[rows], return_inverse=True)
            steps = slice(shift, shift + size * end.max())
            means = table[series, steps].reshape(len(series), -1, size).mean(axis=2)
            yield size, rows, (means, row_of_means, end - 1)


def _between(size, blocks, smoothed, horizon):
    """Interpolate between forecasts of the means of blocks; (n_origins, horizon).

    `blocks` are means as `_blocks` yields them, and `smoothed` their two Smoothed states, by
    theta and by Holt's damped method, whose forecasts are averaged.
    """
    means, row, last = blocks
    n_ahead = -(-horizon // size) + 2
    paths = sum(method.path(n_ahead) for method in smoothed) / 2
    paths = np.concatenate([means[row, last][:, None], paths], axis=1)
    # Centres of the blocks, in steps after the origin.
    centers = np.arange(n_ahead + 1) * size - (size - 1) / 2
    steps = np.arange(1, horizon + 1)
    before = np.clip(np.searchsorted(centers, steps) - 1, 0, n_ahead - 1)
    weight_after = (steps - centers[before]) / size
    return paths[:, before] * (1 - weight_after) + paths[:, before + 1] * weight_after


@dataclass(frozen=True, eq=False)
class LastSeason:
    """The last `season` steps again, and moved by their mean change from the season before."""

    season: int

    names = ("last season", "last season, moved")

    def fit(self, validation):
        """Return the candidate itself, which learns nothing, and its forecasts."""
        return self, self.forecast(validation.tests)

    def forecast(self, origins):
        """Forecast; (n_origins, 2, horizon).

        Forecasts are NaN if less than a season is known. The moved ones are also NaN if less
        than a quarter of the season before it is known.
        """
        m, steps = self.season, np.arange(origins.horizon)
        before, last = np.split(origins.past(2 * m), 2, axis=1)
        n_before = np.clip(origins.n_known - m, -1, m)[:, None]
        is_known = np.arange(m) >= m - n_before
        change = np.where(is_known, last - before, 0.0).sum(axis=1, keepdims=True)
        change = np.where(n_before >= max(1, m // 4), change / np.maximum(n_before, 1), np.nan)
        repeated = np.where(n_before >= 0, last[:, steps % m], np.nan)
        return np.stack([repeated, repeated + change * (1 + steps // m)], axis=1)
