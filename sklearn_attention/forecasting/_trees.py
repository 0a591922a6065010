"""Boosted trees as a candidate that uses features, the calendar and lags.

Forecasts: gradient boosting (scikit-learn's HistGradientBoostingRegressor) on a table with a
row for each pair of an origin and a step ahead, of all series. Its columns are

* the last value, means of the last seasons, and values whole seasons before the step;
* the number of steps ahead, and the calendar at the step;
* future covariates at the step and their means over the seasons up to it, and past covariates
  at the origin.

The target of a row is (value at the step - level) / unit. The unit is the standard deviation of
the series. The level is its mean, or the mean of the last season before the origin if levels
drift, that is, if they move away from the mean of the series over time.

Learns: 50 to 200 trees from one row for each step. For out-of-fold forecasts the blocks of
validation origins are held out in two groups, the even and the odd ones. Each group is forecast
by half as many trees, which have not learned from its steps.

Costs: up to three fits, of at most 40 000 rows each.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

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
# Block b is in group b % 2. If a group is held out, half of the trees are fitted, at twice the
# rate.
_N_GROUPS, _SHARE_OF_TREES_IF_HELD_OUT = 2, 0.5
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


class TrainingRows(NamedTuple):
    """Rows that trees learn from.

    Attributes
    ----------
    columns : ndarray of shape (n_rows, n_columns)
    targets : ndarray of shape (n_rows,)
    in_block : ndarray of bool of shape (n_rows, n_blocks)
        True where the step of a row is a target of a block of validation origins.
    """

    columns: np.ndarray
    targets: np.ndarray
    in_block: np.ndarray


class Trial(NamedTuple):
    """Trees that were fitted first, and what further ones are fitted with.

    Attributes
    ----------
    prepared : Trees
        Trees that are not fitted, but have measured the series.
    rows : TrainingRows
    without_first_group : Trees
        Trees that have not learned from the first group of blocks.
    """

    prepared: "Trees"
    rows: TrainingRows
    without_first_group: "Trees"


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees on a table of rows of origin and step ahead, of all series.

    Attributes
    ----------
    seasons : tuple of float
        Numbers of steps in the seasons.
    tried : bool
        Whether trees for one group of blocks are fitted first, to see whether they help.
    has_calendar : bool
        Whether there are columns of the calendar.
    levels_drift : bool
        Whether levels drift.
    averaged_columns : ndarray of int or None
        Columns of features that are averaged over seasons.
    level, unit : ndarray of shape (n_series,) or None
        Mean and standard deviation of each training series.
    fitted : estimator or None
        The trees of scikit-learn; None before the fit, and if there are too few rows.
    trial : Trial or None
        Result of a trial, None otherwise.
    """

    seasons: tuple
    tried: bool = False
    has_calendar: bool = False
    levels_drift: bool = False
    averaged_columns: np.ndarray | None = None
    level: np.ndarray | None = None
    unit: np.ndarray | None = None
    fitted: object = None
    trial: Trial | None = None

    names = ("trees",)

    def with_trial(self, validation):
        """Fit trees that hold out the first group of blocks, and forecast this group.

        Returns the candidate with the `trial`, and forecasts (n_validation, 1, horizon), NaN in
        the other group. If it is not to be tried, or there are too few rows, the candidate is
        unchanged, and forecasts are None.
        """
        if not self.tried:
            return self, None
        trial = self._new_trial(validation)
        if trial.without_first_group.fitted is None:
            return self, None
        # `self` is not fitted: its forecasts are NaN.
        forecasts = out_of_fold_forecasts(
            lambda block: self if block % _N_GROUPS else trial.without_first_group, validation
        )
        return replace(self, trial=trial), forecasts

    def fit(self, validation):
        """Return a fitted candidate, and out-of-fold forecasts (n_validation, 1, horizon)."""
        trial = self._new_trial(validation) if self.trial is None else self.trial
        without_group = [trial.without_first_group]
        for group in range(1, min(_N_GROUPS, validation.n_blocks)):
            without_group.append(trial.prepared._fit_without(group, trial.rows))
        forecasts = out_of_fold_forecasts(
            lambda block: without_group[block % _N_GROUPS], validation
        )
        return trial.prepared._fit_to(trial.rows), forecasts

    def _new_trial(self, validation):
        """Measure the series, make the rows to learn from, and fit without the first group."""
        table, horizon = validation.origins.table, validation.origins.horizon
        has_many_values = [
            len(np.unique(table.features[:, column])) > _MAX_UNAVERAGED_VALUES
            for column in table.future_columns
        ]
        prepared = replace(
            self,
            # The length of a step can be told from two steps.
            has_calendar=calendar_of(table.time, 2).size > 0,
            averaged_columns=table.future_columns[np.array(has_many_values, dtype=bool)],
            level=means(table.observations),
            unit=stds(table.observations),
            levels_drift=self._do_levels_drift(table),
            trial=None,
        )
        series, step, ahead = _rows_of(table, horizon)
        origins = Origins(table, series, step - ahead, 1)
        columns, level, unit = prepared._columns(origins, ahead)
        targets = (table.value[table.first_rows[series] + step] - level) / unit
        rows = TrainingRows(columns, targets, validation.in_blocks(series, step))
        return Trial(prepared, rows, prepared._fit_without(0, rows))

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon), NaN without trees or the dates they need."""
        horizon = origins.horizon
        forecasts = np.full((len(origins), 1, horizon), np.nan)
        lacks_dates = self.has_calendar and not calendar_of(origins.table.time, 2).size
        if self.fitted is None or lacks_dates:
            return forecasts
        for rows in chunks(np.arange(len(origins)), _CHUNK, horizon):
            ahead = np.tile(np.arange(horizon), len(rows))
            columns, level, unit = self._columns(origins.take(np.repeat(rows, horizon)), ahead)
            values = level + unit * predict_scores(self.fitted, columns)
            forecasts[rows, 0] = values.reshape(-1, horizon)
        return forecasts

    def _fit_without(self, group, rows):
        """Fit half of the trees to the TrainingRows that are outside of a group of blocks."""
        is_outside = ~rows.in_block[:, group::_N_GROUPS].any(axis=1)
        outside = TrainingRows(*(array[is_outside] for array in rows))
        return self._fit_to(outside, _SHARE_OF_TREES_IF_HELD_OUT)

    def _fit_to(self, rows, share_of_trees=1):
        """Fit a share of the usual number of trees to TrainingRows, unless they are too few."""
        columns, targets = rows.columns, rows.targets
        if len(targets) < _MIN_ROWS:
            return self
        n_trees = np.clip(len(targets) // _ROWS_PER_TREE, _MIN_TREES, _MAX_TREES)
        n_trees = int(max(_MIN_TREES, share_of_trees * n_trees))
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

    def _do_levels_drift(self, table):
        """Return True if values are nearer to the mean of the season before than to their own.

        Mean squares are in units of the standard deviation of each series, and summed over
        series.
        """
        m, square_to_season, square_to_mean = self._season_steps[0], 0.0, 0.0
        for values, unit in zip(table.observations, stds(table.observations), strict=True):
            centered = values - values.mean()
            sums = np.cumsum(np.append(0.0, centered))
            if len(values) > m:
                to_season = centered[m:] - (sums[m:-1] - sums[: -m - 1]) / m
                square_to_season += np.mean((to_season / unit) ** 2)
                square_to_mean += np.mean((centered / unit) ** 2)
        return bool(square_to_season < _DRIFT_RATIO * square_to_mean)

    @property
    def _season_steps(self):
        """Lengths of the seasons, rounded to whole steps."""
        return [max(1, round(season)) for season in self.seasons]

    def _columns(self, origins, ahead):
        """Make the columns of rows, and the units of their targets.

        Parameters
        ----------
        origins : Origins
            Origin of each row.
        ahead : ndarray of int of shape (n_rows,)
            Number of the step of the row among the steps to forecast, 0 for the first.

        Returns
        -------
        columns : ndarray of shape (n_rows, n_columns)
        level, unit : ndarray of shape (n_rows,)
            Targets are (value - level) / unit.
        """
        table, series = origins.table, origins.series
        n_known, step = np.maximum(origins.n_known, 1), origins.n_known + ahead
        sums = _sums(table, table.value[:, None])

        def values_at(steps):
            """Return values at steps of each row's series, NaN before its start; (n_rows,)."""
            values = table.value[table.first_rows[series] + np.maximum(steps, 0)]
            return np.where(steps >= 0, values, np.nan)

        # 1. The last values: means of the last seasons, and the last value. For each season of
        # m steps, the latest known value of the same phase as the step, the value m steps
        # before that, and the last value minus that of m steps before it. All but this
        # difference are relative to the level.
        season_means = [
            _mean_before(table, sums, series, n_known, m)[:, 0] for m in self._season_steps
        ]
        level = (
            season_means[0] if self.levels_drift else origins.series_units(self.level, means)
        )
        unit, last = origins.series_units(self.unit, stds), values_at(n_known - 1)
        values = [*season_means, last]
        for m in self._season_steps:
            same_phase = step - m * (ahead // m + 1)
            change = last - values_at(n_known - 1 - m)
            # The level is subtracted from all values below.
            values += [values_at(same_phase), values_at(same_phase - m), change + level]
        columns = [(np.column_stack(values) - level[:, None]) / unit[:, None], ahead[:, None]]
        # 2. The calendar at the step.
        if self.has_calendar:
            position = table.starts[series] + step
            columns.append(calendar_of(table.time, position.max(initial=0) + 1)[position])
        # 3. Future covariates at the step, past covariates at the origin, and means of future
        # covariates over the seasons up to the step.
        if table.n_features:
            past_columns = np.setdiff1d(np.arange(table.n_features), table.future_columns)
            at_step = table.features[table.feature_rows(series, step)]
            at_origin = table.features[table.feature_rows(series, n_known - 1)]
            columns += [at_step[:, table.future_columns], at_origin[:, past_columns]]
            feature_sums = _sums(table, table.features[:, self.averaged_columns])
            end = np.minimum(step, table.row_counts[series] - 1) + 1
            columns += [
                _mean_before(table, feature_sums, series, end, m) for m in self._season_steps
            ]
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
    """Choose pairs of a step and an origin to learn from, at most 40 000.

    Returns
    -------
    series, step : ndarray of int of shape (n_rows,)
        Series, and number of the step in it.
    ahead : ndarray of int of shape (n_rows,)
        Number of the step among the steps to forecast, 0 for the first. It is drawn evenly from
        the horizon.
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

    `sums` are the result of `_sums`; `series` and `end` (n_rows,) are the series and the step
    after the last one that is averaged. Near the start of a series fewer steps are averaged.
    """
    begin, first = np.maximum(end - m, 0), table.first_rows[series]
    earlier = np.where((begin > 0)[:, None], sums[first + np.maximum(begin - 1, 0)], 0.0)
    return (sums[first + end - 1] - earlier) / (end - begin)[:, None]
