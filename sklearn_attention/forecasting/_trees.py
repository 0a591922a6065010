"""Boosted trees on features, calendar and lags of each step ahead, for all series."""

from dataclasses import dataclass, replace

import numpy as np

from .._stacking import fit_trees, predict_scores
from ._origins import Origins, out_of_fold_forecasts
from ._table import chunks, golden_fractions, means, positions, spread_over_phases, stds

# The number of trees is a twentieth of the number of rows, within 50 and 200. The learning rate
# is 24 by the number of trees, and at most 0.2.
_ROWS_OF_TREE, _FEWEST_TREES, _MOST_TREES = 20, 50, 200
_SUM_OF_RATES, _HIGHEST_RATE = 24, 0.2
# Leaves of a tree: for so many rows each, at least and at most.
_ROWS_OF_LEAF, _FEWEST_LEAVES, _MOST_LEAVES = 50, 8, 31
# Blocks are held out in so many groups, each from one fit, of half the trees at twice the rate.
_PARTS, _SHARE_IF_HELD_OUT = 2, 0.5
# A row is learned from for each step; where there are few steps, several with different
# origins. Forecasts at once.
_FEWEST, _ENOUGH, _MOST, _MOST_DRAWS, _CHUNK = 60, 1000, 40_000, 4, 200_000
# A feature with more values is averaged.
_FEW_VALUES = 5
# A level drifts where values are nearer to it, by this share of mean squares, than to the mean.
_DRIFTS = 0.5


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees on a table of rows of origin and step ahead, of all series."""

    # Columns are features at the step and their means over the seasons up to it, those not
    # known beforehand at the origin, the calendar, values whole seasons before the step, and
    # the last value and means of the last seasons. Targets are in units of the series, and
    # where levels drift relative to the mean of the last season.

    seasons: tuple
    tried: bool = False  # whether a part is to show if they help
    dated: bool = False  # whether there is a calendar
    drifts: bool = False
    averaged: np.ndarray | None = None  # columns of features
    level: np.ndarray | None = None  # of each training series
    unit: np.ndarray | None = None
    fitted: object = None
    # Of a trial: a function that learns, the number of parts, and what it learned from one.
    trial: tuple | None = None

    names = ("trees",)

    def with_trial(self, validation):
        """The same with trees for the first part of the blocks, and forecasts of these."""
        # None without a trial, and where there is too little to learn from.
        if not self.tried:
            return self, None
        learn, n_parts = self._learner(validation)
        first = learn(0)
        if first.fitted is None:
            return self, None
        return replace(self, trial=(learn, n_parts, first)), out_of_fold_forecasts(
            lambda block: self if block % _PARTS else first, validation
        )

    def fit(self, validation):
        """Learn, and forecast validation origins by trees learned apart from them."""
        if self.trial is None:
            learn, n_parts = self._learner(validation)
            first = learn(0)
        else:
            learn, n_parts, first = self.trial
        parts = [first, *map(learn, range(1, n_parts))]
        return learn(None), out_of_fold_forecasts(
            lambda block: parts[block % _PARTS], validation
        )

    def _learner(self, validation):
        """A function that learns from all but a part of the blocks, and the number of parts."""
        table, horizon = validation.origins.table, validation.origins.horizon
        several = [
            len(np.unique(table.features[:, i])) > _FEW_VALUES for i in table.future_columns
        ]
        blank = replace(
            self,
            dated=calendar_of(table.time, 2).size > 0,
            averaged=table.future_columns[np.array(several, dtype=bool)],
            level=means(table.observations),
            unit=stds(table.observations),
            drifts=self._drifts(table),
            trial=None,
        )
        series, step, ahead = _rows_of(table, horizon)
        columns, level, unit = blank._columns(Origins(table, series, step - ahead, 1), ahead)
        aim = (table.value[table.first_rows[series] + step] - level) / unit
        block = validation.in_blocks(series, step)

        def learn(part):
            apart = slice(None) if part is None else ~block[:, part::_PARTS].any(axis=1)
            return blank._learned(
                columns, aim, apart, 1 if part is None else _SHARE_IF_HELD_OUT
            )

        return learn, min(_PARTS, validation.n_blocks)

    def forecast(self, origins):
        """Forecasts at some origins; (n_origins, 1, horizon)."""
        horizon = origins.horizon
        found = np.full((len(origins), 1, horizon), np.nan)
        undated = self.dated and not calendar_of(origins.table.time, 2).size
        if self.fitted is None or undated:
            return found
        for rows in chunks(np.arange(len(origins)), _CHUNK, horizon):
            ahead = np.tile(np.arange(horizon), len(rows))
            columns, level, unit = self._columns(origins.take(np.repeat(rows, horizon)), ahead)
            values = level + unit * predict_scores(self.fitted, columns)
            found[rows, 0] = values.reshape(-1, horizon)
        return found

    def _learned(self, columns, aim, rows, share):
        """Fit a share of the usual trees; the same without trees where there are few rows."""
        columns, aim = columns[rows], aim[rows]
        if len(aim) < _FEWEST:
            return self
        n_trees = np.clip(len(aim) // _ROWS_OF_TREE, _FEWEST_TREES, _MOST_TREES)
        n_trees = int(max(_FEWEST_TREES, share * n_trees))
        n_leaves = np.clip(len(aim) // _ROWS_OF_LEAF, _FEWEST_LEAVES, _MOST_LEAVES)
        trees = fit_trees(
            columns,
            aim,
            max_iter=n_trees,
            max_leaf_nodes=int(n_leaves),
            learning_rate=min(_SUM_OF_RATES / n_trees, _HIGHEST_RATE),
            early_stopping=False,
            random_state=0,
        )
        return replace(self, fitted=trees)

    def _drifts(self, table):
        """True if levels drift."""
        m, around, apart = self._steps[0], 0.0, 0.0
        for values, unit in zip(table.observations, stds(table.observations), strict=True):
            sums = np.cumsum(np.append(0.0, values - values.mean()))
            if len(values) > m:
                missed = values[m:] - values.mean() - (sums[m:-1] - sums[: -m - 1]) / m
                around += np.mean((missed / unit) ** 2)
                apart += np.mean(((values - values.mean()) / unit) ** 2)
        return bool(around < _DRIFTS * apart)

    @property
    def _steps(self):
        """Whole numbers of steps of the seasons."""
        return [max(1, round(season)) for season in self.seasons]

    def _columns(self, origins, ahead):
        """Columns (n, n_columns), and level and unit (n,) of targets.

        An origin for each row, `ahead` (n,) is counted from 0.
        """
        table, series, n_known = origins.table, origins.series, np.maximum(origins.n_known, 1)
        step, sums = origins.n_known + ahead, _sums(table, table.value[:, None])

        def at(steps):
            values = table.value[table.first_rows[series] + np.maximum(steps, 0)]
            return np.where(steps >= 0, values, np.nan)

        lately = [_mean_before(table, sums, series, n_known, m)[:, 0] for m in self._steps]
        level, unit = (
            origins.series_units(self.level, means),
            origins.series_units(self.unit, stds),
        )
        level, last = lately[0] if self.drifts else level, at(n_known - 1)
        own = [*lately, last]
        for m in self._steps:
            lag = step - m * (ahead // m + 1)
            own += [at(lag), at(lag - m), last - at(n_known - 1 - m) + level]
        columns = [(np.column_stack(own) - level[:, None]) / unit[:, None], ahead[:, None]]
        if self.dated:
            place = table.starts[series] + step
            columns.append(calendar_of(table.time, place.max(initial=0) + 1)[place])
        if table.n_features:
            unknown = np.setdiff1d(np.arange(table.n_features), table.future_columns)
            then = table.features[table.feature_rows(series, step)]
            now = table.features[table.feature_rows(series, n_known - 1)]
            columns += [then[:, table.future_columns], now[:, unknown]]
            sums = _sums(table, table.features[:, self.averaged])
            end = np.minimum(step, table.row_counts[series] - 1) + 1
            columns += [_mean_before(table, sums, series, end, m) for m in self._steps]
        return np.concatenate(columns, axis=1), level, unit


def calendar_of(time, n):
    """Calendar columns (n, n_columns) of the first steps of an index; none without dates."""
    # Seconds of the day, the day of the week, sine and cosine of the day of the year, and the
    # month: those that differ between its steps, however many there are, of which clocks may
    # take an hour.
    if time.kind not in ("datetime", "period") or not len(time):
        return np.empty((n, 0))
    index = time.index_between(0, n)
    index = index.to_timestamp() if time.kind == "period" else index
    length = (index[-1] - index[0]).total_seconds() / max(1, n - 1)
    angle = 2 * np.pi * index.day_of_year / 365.25
    day, hour = 86_400, 3600
    columns = [
        (day, index.hour * hour + index.minute * 60 + index.second),
        (7 * day, index.day_of_week),
        (300 * day, np.sin(angle)),
        (300 * day, np.cos(angle)),
        (300 * day, index.month),
    ]
    columns = [np.asarray(own, dtype=float) for most, own in columns if length + hour < most]
    return np.array(columns).reshape(-1, n).T


def _rows_of(table, horizon):
    """Series, step and steps ahead from 0 of rows to learn from, (n_rows,) each."""
    series, step = positions(1, np.maximum(table.lengths - 1, 0))
    kept = spread_over_phases(len(series), _MOST)
    draws = int(np.clip(_ENOUGH // max(1, len(series)), 1, min(_MOST_DRAWS, horizon)))
    series, step = (np.tile(own[kept], draws) for own in (series, step))
    ahead = (golden_fractions(len(step)) * horizon).astype(np.int64)
    inside = step > ahead
    return series[inside], step[inside], ahead[inside]


def _sums(table, columns):
    """Sums of columns from the first step of a series up to each row."""
    # Of one series after the other, so that none depends on the others, not even by rounding.
    spans = zip(table.first_rows, table.first_rows + table.row_counts, strict=True)
    parts = [np.cumsum(columns[start:stop], axis=0) for start, stop in spans]
    return np.concatenate(parts) if parts else columns


def _mean_before(table, sums, series, end, m):
    """Means (n_rows, n_columns) over up to m steps of series before some, by sums of them."""
    begin, first = np.maximum(end - m, 0), table.first_rows[series]
    earlier = np.where((begin > 0)[:, None], sums[first + np.maximum(begin - 1, 0)], 0.0)
    return (sums[first + end - 1] - earlier) / (end - begin)[:, None]
