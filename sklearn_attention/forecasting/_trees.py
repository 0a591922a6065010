"""Boosted trees as a candidate that uses features, the calendar and lags.

Forecasts: gradient boosting (scikit-learn's HistGradientBoostingRegressor) on a table with a
row for each pair of an origin and a step ahead, of all series. The columns are features at the
step and their means over the seasons up to it, features not known beforehand at the origin, the
calendar, values whole seasons before the step, and the last value and means of the last
seasons. Targets are in units of the series, and relative to its mean, or where levels drift
relative to the mean of the last season.

Learns: 50 to 200 trees from one row for each step. For out-of-fold forecasts the blocks of
validation origins are held out in two groups, each forecast by half as many trees.

Costs: up to three fits, of at most 40 000 rows each.
"""

from dataclasses import dataclass, replace

import numpy as np

from .._stacking import fit_trees, predict_scores
from ._origins import Origins, out_of_fold_forecasts
from ._table import chunks, golden_fractions, means, positions, spread_over_phases, stds

# There is a tree for every 20 rows, but at least 50 and at most 200 trees. The learning rate is
# 24 / (number of trees), at most 0.2.
_ROWS_PER_TREE, _MIN_TREES, _MAX_TREES = 20, 50, 200
_SUM_OF_RATES, _MAX_RATE = 24, 0.2
# A tree has a leaf for every 50 rows, but at least 8 and at most 31 leaves.
_ROWS_PER_LEAF, _MIN_LEAVES, _MAX_LEAVES = 50, 8, 31
# Blocks are held out in two groups, for each of which half of the trees are fitted, at twice
# the rate.
_N_GROUPS, _TREES_SHARE_IF_HELD_OUT = 2, 0.5
# Trees are fitted to 60 to 40 000 rows. If there are fewer than 1000 steps, each of them has up
# to 4 rows with different origins.
_MIN_ROWS, _ENOUGH_ROWS, _MAX_ROWS, _MAX_DRAWS = 60, 1000, 40_000, 4
# At most 200 000 rows are forecast at once.
_CHUNK = 200_000
# A feature with more than 5 values is averaged over seasons.
_MAX_UNAVERAGED_VALUES = 5
# Levels drift if the mean square of values relative to the mean of the last season is less than
# half of the mean square relative to the mean of the series.
_DRIFT_RATIO = 0.5


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees on a table of rows of origin and step ahead, of all series.

    Attributes
    ----------
    seasons : tuple of float
    tried : bool
        Whether trees for one group of blocks are fitted first, to see whether they help.
    dated : bool
        Whether there are columns of the calendar.
    drifts : bool
        Whether levels drift.
    averaged : ndarray of int or None
        Columns of features that are averaged over seasons.
    level, unit : ndarray of shape (n_series,) or None
        Mean and standard deviation of each training series.
    fitted : estimator or None
    trial : tuple or None
        After a trial the three values that `_first_group` returns.
    """

    seasons: tuple
    tried: bool = False
    dated: bool = False
    drifts: bool = False
    averaged: np.ndarray | None = None
    level: np.ndarray | None = None
    unit: np.ndarray | None = None
    fitted: object = None
    trial: tuple | None = None

    names = ("trees",)

    def with_trial(self, validation):
        """Fit trees that hold out the first group of blocks, and forecast this group.

        Returns the candidate with these trees as its `trial`, and forecasts (n_validation, 1,
        horizon), NaN in the other group. Without a trial, or without enough rows, these are
        None.
        """
        if not self.tried:
            return self, None
        learn, n_groups, first = self._first_group(validation)
        if first.fitted is None:
            return self, None
        forecasts = out_of_fold_forecasts(
            lambda block: self if block % _N_GROUPS else first, validation
        )
        return replace(self, trial=(learn, n_groups, first)), forecasts

    def fit(self, validation):
        """Return a fitted candidate, and out-of-fold forecasts (n_validation, 1, horizon)."""
        trial = self._first_group(validation) if self.trial is None else self.trial
        learn, n_groups, first = trial
        without_group = [first, *(learn(group) for group in range(1, n_groups))]
        forecasts = out_of_fold_forecasts(
            lambda block: without_group[block % _N_GROUPS], validation
        )
        return learn(None), forecasts

    def _first_group(self, validation):
        """Prepare the table of rows, and fit trees that hold out the first group of blocks.

        Returns
        -------
        learn : callable
            ``learn(group)`` returns Trees that have not learned from the steps of a group of
            blocks, ``learn(None)`` those that have learned from all.
        n_groups : int
        first : Trees
            ``learn(0)``.
        """
        table, horizon = validation.origins.table, validation.origins.horizon
        has_many_values = [
            len(np.unique(table.features[:, i])) > _MAX_UNAVERAGED_VALUES
            for i in table.future_columns
        ]
        unfitted = replace(
            self,
            dated=calendar_of(table.time, 2).size > 0,
            averaged=table.future_columns[np.array(has_many_values, dtype=bool)],
            level=means(table.observations),
            unit=stds(table.observations),
            drifts=self._levels_drift(table),
            trial=None,
        )
        series, step, ahead = _rows_of(table, horizon)
        origins = Origins(table, series, step - ahead, 1)
        columns, level, unit = unfitted._columns(origins, ahead)
        targets = (table.value[table.first_rows[series] + step] - level) / unit
        in_block = validation.in_blocks(series, step)

        def learn(group):
            if group is None:
                return unfitted._fit_to(columns, targets, slice(None), 1)
            is_outside = ~in_block[:, group::_N_GROUPS].any(axis=1)
            return unfitted._fit_to(columns, targets, is_outside, _TREES_SHARE_IF_HELD_OUT)

        return learn, min(_N_GROUPS, validation.n_blocks), learn(0)

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon), NaN without trees or the dates they need."""
        horizon = origins.horizon
        forecasts = np.full((len(origins), 1, horizon), np.nan)
        lacks_dates = self.dated and not calendar_of(origins.table.time, 2).size
        if self.fitted is None or lacks_dates:
            return forecasts
        for rows in chunks(np.arange(len(origins)), _CHUNK, horizon):
            ahead = np.tile(np.arange(horizon), len(rows))
            columns, level, unit = self._columns(origins.take(np.repeat(rows, horizon)), ahead)
            values = level + unit * predict_scores(self.fitted, columns)
            forecasts[rows, 0] = values.reshape(-1, horizon)
        return forecasts

    def _fit_to(self, columns, targets, rows, trees_share):
        """Fit a share of the usual number of trees to some rows, unless these are too few.

        `columns` are (n_rows, n_columns), `targets` (n_rows,).
        """
        columns, targets = columns[rows], targets[rows]
        if len(targets) < _MIN_ROWS:
            return self
        n_trees = np.clip(len(targets) // _ROWS_PER_TREE, _MIN_TREES, _MAX_TREES)
        n_trees = int(max(_MIN_TREES, trees_share * n_trees))
        n_leaves = np.clip(len(targets) // _ROWS_PER_LEAF, _MIN_LEAVES, _MAX_LEAVES)
        trees = fit_trees(
            columns,
            targets,
            max_iter=n_trees,
            max_leaf_nodes=int(n_leaves),
            learning_rate=min(_SUM_OF_RATES / n_trees, _MAX_RATE),
            early_stopping=False,
            random_state=0,
        )
        return replace(self, fitted=trees)

    def _levels_drift(self, table):
        """Return True if values are much nearer to the mean of the last season than to theirs.

        Mean squares are in units of the standard deviations, and summed over series.
        """
        m, square_to_season, square_to_mean = self._season_steps[0], 0.0, 0.0
        for values, unit in zip(table.observations, stds(table.observations), strict=True):
            sums = np.cumsum(np.append(0.0, values - values.mean()))
            if len(values) > m:
                to_season = values[m:] - values.mean() - (sums[m:-1] - sums[: -m - 1]) / m
                square_to_season += np.mean((to_season / unit) ** 2)
                square_to_mean += np.mean(((values - values.mean()) / unit) ** 2)
        return bool(square_to_season < _DRIFT_RATIO * square_to_mean)

    @property
    def _season_steps(self):
        """Lengths of the seasons, rounded to whole steps."""
        return [max(1, round(season)) for season in self.seasons]

    def _columns(self, origins, ahead):
        """Make rows of the table.

        Parameters
        ----------
        origins : Origins
            Origin of each row.
        ahead : ndarray of int of shape (n_rows,)
            Steps from the first step to forecast to that of the row, 0 for the first.

        Returns
        -------
        columns : ndarray of shape (n_rows, n_columns)
        level, unit : ndarray of shape (n_rows,)
            Targets are (value - level) / unit.
        """
        table, series, n_known = origins.table, origins.series, np.maximum(origins.n_known, 1)
        step, sums = origins.n_known + ahead, _sums(table, table.value[:, None])

        def values_at(steps):
            values = table.value[table.first_rows[series] + np.maximum(steps, 0)]
            return np.where(steps >= 0, values, np.nan)

        # 1. Means of the last seasons, the last value and lags, relative to the level.
        season_means = [
            _mean_before(table, sums, series, n_known, m)[:, 0] for m in self._season_steps
        ]
        level = season_means[0] if self.drifts else origins.series_units(self.level, means)
        unit, last = origins.series_units(self.unit, stds), values_at(n_known - 1)
        values = [*season_means, last]
        for m in self._season_steps:
            lag = step - m * (ahead // m + 1)
            change = last - values_at(n_known - 1 - m)
            values += [values_at(lag), values_at(lag - m), change + level]
        columns = [(np.column_stack(values) - level[:, None]) / unit[:, None], ahead[:, None]]
        # 2. The calendar.
        if self.dated:
            position = table.starts[series] + step
            columns.append(calendar_of(table.time, position.max(initial=0) + 1)[position])
        # 3. Features at the step, or at the origin if they are not known beforehand, and their
        # means over the seasons up to the step.
        if table.n_features:
            past_columns = np.setdiff1d(np.arange(table.n_features), table.future_columns)
            at_step = table.features[table.feature_rows(series, step)]
            at_origin = table.features[table.feature_rows(series, n_known - 1)]
            columns += [at_step[:, table.future_columns], at_origin[:, past_columns]]
            sums = _sums(table, table.features[:, self.averaged])
            end = np.minimum(step, table.row_counts[series] - 1) + 1
            columns += [_mean_before(table, sums, series, end, m) for m in self._season_steps]
        return np.concatenate(columns, axis=1), level, unit


def calendar_of(time, n):
    """Compute columns of the calendar for the first `n` steps of an index; (n, n_columns).

    These are seconds of the day, the day of the week, sine and cosine of the day of the year,
    and the month. A column is left out if steps are so long that it would hardly change, and
    all are if the index has no dates.
    """
    if time.kind not in ("datetime", "period") or not len(time):
        return np.empty((n, 0))
    index = time.index_between(0, n)
    index = index.to_timestamp() if time.kind == "period" else index
    # Mean number of seconds of a step, however many steps there are. Clock changes may make it
    # longer by an hour.
    length = (index[-1] - index[0]).total_seconds() / max(1, n - 1)
    angle = 2 * np.pi * index.day_of_year / 365.25
    day, hour = 86_400, 3600
    column_of_period = [
        (day, index.hour * hour + index.minute * 60 + index.second),
        (7 * day, index.day_of_week),
        (300 * day, np.sin(angle)),
        (300 * day, np.cos(angle)),
        (300 * day, index.month),
    ]
    columns = [
        np.asarray(column, dtype=float)
        for period, column in column_of_period
        if length + hour < period
    ]
    return np.array(columns).reshape(-1, n).T


def _rows_of(table, horizon):
    """Choose rows to learn from, at most 40 000.

    Returns the series, the step, and its number of steps after the first step to forecast, each
    (n_rows,). The latter are spread evenly over the horizon.
    """
    series, step = positions(1, np.maximum(table.lengths - 1, 0))
    chosen = spread_over_phases(len(series), _MAX_ROWS)
    draws = int(np.clip(_ENOUGH_ROWS // max(1, len(series)), 1, min(_MAX_DRAWS, horizon)))
    series, step = np.tile(series[chosen], draws), np.tile(step[chosen], draws)
    ahead = (golden_fractions(len(step)) * horizon).astype(np.int64)
    is_within = step > ahead  # The origin is not before the series.
    return series[is_within], step[is_within], ahead[is_within]


def _sums(table, columns):
    """Sum columns (n_rows, n_columns) from the first step of a series up to each row.

    Each series is summed by itself, so that it does not depend on the others, not even by
    rounding.
    """
    spans = zip(table.first_rows, table.first_rows + table.row_counts, strict=True)
    sums = [np.cumsum(columns[start:stop], axis=0) for start, stop in spans]
    return np.concatenate(sums) if sums else columns


def _mean_before(table, sums, series, end, m):
    """Average columns over the last m steps before a step; (n_rows, n_columns).

    `sums` are those of `_sums`; `series` and `end` (n_rows,) are the series and the step after
    the last one that is averaged. Near the start of a series there are fewer than m steps.
    """
    begin, first = np.maximum(end - m, 0), table.first_rows[series]
    earlier = np.where((begin > 0)[:, None], sums[first + np.maximum(begin - 1, 0)], 0.0)
    return (sums[first + end - 1] - earlier) / (end - begin)[:, None]
