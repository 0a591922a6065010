"""`Table`, the panel in long format that series of every form become.

A panel is one or several series. In long format each row is one step of one series. A step is
an equally spaced point in time, and is numbered by its position on the index of time that all
series of a table share. Two series, observed at the positions 0, 1, 2 and 1, 2:

    series  0  0  0  1  1
    step    0  1  2  1  2
    value   5  7  6  3  4

`Form` remembers in which form a user passed the series, since forecasts come back in it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .._column_stats import mean_and_scale, replace_zeros
from ._frequency import check_steps
from ._time import TimeIndex

# Columns of a tidy frame, a frame in long format: series, time and values.
SERIES, TIME, TARGET = "unique_id", "ds", "y"


@dataclass(frozen=True, eq=False)
class Form:
    """The form in which a user passed the series, and in which forecasts come back.

    Attributes
    ----------
    kind : str
        - "array": a 1-D array, one series.
        - "table": a 2-D array with a series in each column.
        - "windows": a 2-D array with a series in each row.
        - "series": one Series.
        - "frame": a frame with a series in each column (wide format).
        - "arrays": a dict of arrays.
        - "dict": a dict of Series.
        - "long": a Series with an index of series and time.
        - "long_frame": a frame of one column with such an index.
        - "tidy": a frame with columns of series, time and values.
    dtype : {"float32", "float64"}
        Type of the forecasts.
    labels : list
        Names of the levels of the columns of a "frame". For series in long format: name of the
        level (or column) of series, name of that of time, and name of the column of values; the
        first is None for a "tidy" frame without a column of series.
    index : Index or None
        Index of the rows of the forecasts; None for the index that continues that of the
        series.
    rows : Index or None
        Row labels of a "tidy" frame of forecasts; None numbers the rows.
    library : str
        Library of the frames: "pandas", "polars" or another.
    """

    kind: str = "arrays"
    dtype: str = "float64"
    labels: list = field(default_factory=list)
    index: object = None
    rows: object = None
    library: str = "pandas"

    @property
    def aligned(self):
        """True if all series share their rows, so that forecasts begin where the rows end."""
        return self.kind in ("array", "series", "table", "frame")

    @property
    def long(self):
        """True if the series are in long format."""
        return self.kind in ("long", "long_frame", "tidy")

    @property
    def single(self):
        """True for a tidy frame of one series, without a column of series."""
        return self.kind == "tidy" and self.labels[0] is None

    @property
    def named_rows(self):
        """True for a tidy frame with a column of series."""
        return self.kind == "tidy" and not self.single

    @property
    def named(self):
        """True if the user passed names of the series."""
        return (self.long and not self.single) or self.kind in ("frame", "dict", "arrays")


@dataclass(frozen=True, eq=False)
class Table:
    """A panel in long format: one row for each step of each series, with its covariates.

    Rows are sorted by series, then by step. The steps of a series follow one another without
    gaps. The last rows of a series may have no observation: they hold future covariates.

    Attributes
    ----------
    time : TimeIndex
        The index of time, from the first step of any series to the last step of any series.
    names : list
        Name of each series.
    series, step : ndarray of int of shape (n_rows,)
        Position of the row's series in `names`, and position of its step on `time`.
    value : ndarray of float64 of shape (n_rows,)
        Observed value of the series at the step; NaN where there is no observation.
    features : ndarray of shape (n_rows, n_features)
        Covariates of the step, past and future ones.
    form : Form
        Form in which the user passed the series.
    training_index : ndarray of int of shape (n_series,)
        Position of each series among the training series, in the order in which the forecaster
        learned from them; -1 for a series that it did not learn from.
    future_columns : ndarray of int
        Columns of `features` that are future covariates, whose values are known before the
        step. The other columns are past covariates, known only up to the origin of a forecast.
    """

    time: TimeIndex
    names: list
    series: np.ndarray
    step: np.ndarray
    value: np.ndarray
    features: np.ndarray
    form: Form
    training_index: np.ndarray
    future_columns: np.ndarray

    @classmethod
    def from_arrays(
        cls, observations, starts=None, training_index=None, features=None, future_columns=()
    ):
        """Make a table of series that are given as a list of arrays, one for each series.

        Parameters
        ----------
        observations : list of ndarray of shape (n_steps_of_series,)
        starts : ndarray of int of shape (n_series,), default=None
            Position of the first step of each series; None for 0.
        training_index : ndarray of int of shape (n_series,), default=None
            None if the series are training series in this order.
        features : list of ndarray of shape (n_rows_of_series, n_features), default=None
            Covariates; there may be more rows than observations.
        future_columns : sequence of int, default=()
        """
        lengths = np.array([len(values) for values in observations])
        if starts is None:
            starts = np.zeros_like(lengths)
        if training_index is None:
            training_index = np.arange(len(observations))
        if features is None:
            features = [np.empty((n, 0)) for n in lengths]
        row_counts = np.array([len(rows) for rows in features])
        series, step = positions(starts, row_counts)
        value = np.full(len(step), np.nan)
        value[step - starts[series] < lengths[series]] = np.concatenate(observations)
        time = TimeIndex.of_positions(int((starts + row_counts).max()))
        return cls(
            time,
            list(range(len(observations))),
            series,
            step,
            value,
            np.concatenate(features),
            Form(),
            training_index,
            np.asarray(future_columns, dtype=np.int64),
        )

    @classmethod
    def from_steps(cls, time, names, series, step, value, form):
        """Make a table without covariates of rows in any order, and fill gaps with NaN.

        `series`, `step` and `value` (n_rows,) are as in the table. Steps that lack between the
        first and the last step of a series get rows with NaN.
        """
        stops = np.zeros(len(names), dtype=np.int64)
        np.maximum.at(stops, series, step + 1)
        starts = stops.copy()
        np.minimum.at(starts, series, step)
        row_counts = stops - starts
        check_steps("the series, with the steps between,", row_counts.sum())
        series_of_row, step_of_row = positions(starts, row_counts)
        value_of_row = np.full(len(series_of_row), np.nan)
        # Rows are numbered from the first series on, and steps from the start of time.
        row_of_step_0 = np.cumsum(row_counts) - stops
        value_of_row[row_of_step_0[series] + step] = value
        return cls(
            time,
            names,
            series_of_row,
            step_of_row,
            value_of_row,
            np.empty((len(series_of_row), 0)),
            form,
            np.arange(len(names)),
            np.empty(0, dtype=np.int64),
        )

    def __len__(self):
        return len(self.names)

    @property
    def n_features(self):
        """Number of features."""
        return self.features.shape[1]

    @cached_property
    def row_counts(self):
        """Number of rows of each series; (n_series,)."""
        return np.bincount(self.series, minlength=len(self))

    @cached_property
    def first_rows(self):
        """Number of the first row of each series; (n_series,)."""
        return np.cumsum(self.row_counts) - self.row_counts

    @cached_property
    def lengths(self):
        """Number of steps of each series up to its last observation; (n_series,)."""
        lengths = np.zeros(len(self), dtype=np.int64)
        rows = np.flatnonzero(~np.isnan(self.value))
        series = self.series[rows]
        np.maximum.at(lengths, series, rows + 1 - self.first_rows[series])
        return lengths

    @cached_property
    def starts(self):
        """Position of the first step of each series, 0 without rows; (n_series,)."""
        starts = np.zeros(len(self), dtype=np.int64)
        has_rows = self.row_counts > 0
        starts[has_rows] = self.step[self.first_rows[has_rows]]
        return starts

    @property
    def ends(self):
        """Position after the last observation of each series; (n_series,)."""
        return self.starts + self.lengths

    @property
    def next_steps(self):
        """Position of the first step to forecast of each series; (n_series,)."""
        return np.full(len(self), len(self.time)) if self.form.aligned else self.ends

    def next_steps_of(self, n_series):
        """Return the next step of these series, and 0 for new ones up to `n_series`."""
        return np.append(self.next_steps, np.zeros(n_series - len(self), dtype=np.int64))

    @cached_property
    def observations(self):
        """Values of each series up to its last observation; a list of arrays."""
        spans = zip(self.first_rows, self.first_rows + self.lengths, strict=True)
        return [self.value[start:stop] for start, stop in spans]

    @property
    def learned_names(self):
        """Names of the training series, in the order in which they were learned from."""
        pairs = zip(self.training_index, self.names, strict=True)
        return [name for i, name in sorted(pairs, key=lambda pair: pair[0]) if i >= 0]

    def order_of_content(self):
        """Sort the series by what they contain, so that the order of passing has no effect.

        The keys are the length, the start, the centre of mass of the absolute changes, the mean
        and, for equal series, the name. Only the mean depends on the unit of a series.

        Returns
        -------
        order : ndarray of int of shape (n_series,)
        """
        centers = []
        for values in self.observations:
            changes = np.abs(np.diff(values))
            changes = changes / (changes.max(initial=0) or 1.0)
            centers.append(changes @ np.arange(len(changes)) / (changes.sum() or 1.0))
        # The order must not depend on rounding, which differs between units.
        centers = np.round(centers, 6)
        names = np.array([str(name) for name in self.names])
        # The last key counts first.
        keys = names, means(self.observations), centers, self.starts, self.lengths
        return np.lexsort(keys)

    def feature_rows(self, series, steps):
        """Return the rows that hold the covariates of some steps of series.

        `steps` count from the start of the series. The first row of a series stands for steps
        before it, and the last row for steps after it.
        """
        return self.first_rows[series] + np.clip(steps, 0, self.row_counts[series] - 1)

    def with_observations(self, observations):
        """Replace the values up to the last observation of each series, a list of arrays."""
        value = np.full(len(self.value), np.nan)
        value[positions(self.first_rows, self.lengths)[1]] = np.concatenate(observations)
        return self._with_lengths(self.lengths, value=value)

    def with_forecasts(self, forecasts):
        """Append forecasts (n_series, horizon) to the observations of each series."""
        horizon = forecasts.shape[1]
        longer = self.resized(np.maximum(self.row_counts, self.lengths + horizon))
        value = longer.value.copy()
        value[(longer.first_rows + self.lengths)[:, None] + np.arange(horizon)] = forecasts
        return longer._with_lengths(self.lengths + horizon, value=value)

    def resized(self, row_counts):
        """Cut or extend each series to `row_counts` (n_series,) rows.

        New rows have no value, and the covariates of the last row of their series.
        """
        series, row_of_series = positions(0, row_counts)
        # Adding 0 keeps the value of a row that exists.
        added = np.where(row_of_series < self.row_counts[series], 0.0, np.nan)
        longer = self.take_rows(self.feature_rows(series, row_of_series))
        step = self.starts[series] + row_of_series
        return replace(longer, step=step, value=longer.value + added)

    def take_rows(self, rows):
        """Keep some of the rows; the series and their numbers stay."""
        return replace(
            self,
            series=self.series[rows],
            step=self.step[rows],
            value=self.value[rows],
            features=self.features[rows],
        )

    def observed_between(self, start, stop):
        """Cut each series to its observations from position `start` to before `stop`.

        Rows without an observation are kept between the first and the last observation.
        """
        is_observed = (self.step >= start) & (self.step < stop) & ~np.isnan(self.value)
        rows = np.flatnonzero(is_observed)
        first = np.full(len(self), len(self.value))
        end = np.zeros(len(self), dtype=np.int64)
        np.minimum.at(first, self.series[rows], rows)
        np.maximum.at(end, self.series[rows], rows + 1)
        return self.take_rows(positions(first, np.maximum(end - first, 0))[1])

    def take_series(self, series, start=0):
        """Keep some of the series, in this order, as training series of a new table.

        Position `start` of the index of time becomes position 0.
        """
        row_counts = self.row_counts[series]
        rows = positions(self.first_rows[series], row_counts)[1]
        return replace(
            self.take_rows(rows),
            names=[self.names[i] for i in series],
            training_index=np.arange(len(series)),
            series=np.repeat(np.arange(len(series)), row_counts),
            step=self.step[rows] - start,
            time=replace(self.time, values=self.time.values[start:]),
        )

    def append(self, later):
        """Append the rows of another table, which follow those of this one.

        The series of `later` are those of this table, then new ones, which get the training
        index -1.
        """
        series = np.concatenate([self.series, later.series])
        order = np.argsort(series, kind="stable")
        # Columns of a wide format may end with missing values: their steps count as past.
        n_steps = int(later.step.max(initial=-1)) + 1
        if self.form.aligned:
            n_steps = max(n_steps, len(later.time))
        index_of_new = np.full(len(later) - len(self), -1)
        return replace(
            self,
            time=self.time.extended(max(0, n_steps - len(self.time))),
            names=later.names,
            series=series[order],
            step=np.concatenate([self.step, later.step])[order],
            value=np.concatenate([self.value, later.value])[order],
            features=np.concatenate([self.features, later.features])[order],
            training_index=np.append(self.training_index, index_of_new),
        )

    def _with_lengths(self, lengths, **changes):
        """Replace fields, and set the lengths, which NaN among the values would shorten."""
        table = replace(self, **changes)
        vars(table)["lengths"] = lengths
        return table


def positions(first, counts):
    """Enumerate consecutive positions in each series, such as steps or rows.

    Parameters
    ----------
    first : int or ndarray of shape (n_series,)
        First position in each series.
    counts : ndarray of shape (n_series,)
        Number of positions in each series.

    Returns
    -------
    series, position : ndarray of int of shape (counts.sum(),)
        Sorted by series, then by position.
    """
    series = np.repeat(np.arange(len(counts)), counts)
    n_before = np.cumsum(counts) - counts
    return series, np.arange(len(series)) + (first - n_before)[series]


def by_group(labels):
    """Yield each distinct label with the positions that have this label, both ascending."""
    order = np.argsort(labels, kind="stable")
    groups, first = np.unique(labels[order], return_index=True)
    return zip(groups, np.split(order, first)[1:], strict=True)


def chunks(rows, max_cost, cost_per_row=1):
    """Split rows into parts of about equal length, each of at most `max_cost`; at least one."""
    n_chunks = -(-len(rows) * cost_per_row // max_cost) or 1
    return np.array_split(rows, n_chunks)


def golden_fractions(n):
    """Return the fractional parts of multiples of the golden ratio: evenly spread in [0, 1)."""
    return np.arange(n) * (np.sqrt(5) - 1) / 2 % 1


def spread_over_phases(n, max_positions):
    """Choose positions below n that are evenly spread over time and over phases of any season.

    Positions at equal distances could all have the same phase. So 0, ..., n - 1 is divided into
    `max_positions` stretches of equal length, and the position within each stretch is a golden
    fraction of its length. The last position is chosen too. If n is not larger than
    `max_positions`, all positions are chosen.

    Returns
    -------
    chosen : ndarray of int of shape (min(n, max_positions),)
        Ascending.
    """
    if n <= max_positions:
        return np.arange(n)
    if 2 * max_positions > n:
        # More than half are chosen: the positions that are left out are spread instead.
        left_out = spread_over_phases(n - 1, n - max_positions)
        return np.delete(np.arange(n), n - 2 - left_out)
    # The fractions begin with 0. They are counted from the end, so that the last position is
    # chosen.
    places = (np.arange(max_positions) + golden_fractions(max_positions)) * (n / max_positions)
    return n - 1 - places.astype(np.int64)[::-1]


def naive_scales(observations):
    """Return the mean absolute error of the naive forecast of each series; (n_series,).

    The naive forecast is the last value. The scale is 1 for a constant series and for a single
    value, so that errors can be divided by it.
    """
    return replace_zeros(mean_absolute_changes(observations))


def mean_absolute_changes(observations):
    """Return the mean absolute change from step to step of each series, 0 for one value."""
    changes = [np.abs(np.diff(values)) for values in observations]
    return np.array([sizes.mean() if len(sizes) else 0.0 for sizes in changes])


def mean_differences(past, n_known):
    """Average the absolute differences between the last known steps; (n_origins,).

    Parameters
    ----------
    past : ndarray of shape (n_origins, n_steps)
        Last known values. Steps before the start of a series repeat its first value, and do not
        count.
    n_known : ndarray of shape (n_origins,)
        Number of known steps of the series.
    """
    n_differences = np.clip(n_known - 1, 1, past.shape[1] - 1)
    return np.abs(np.diff(past, axis=1)).sum(axis=1) / n_differences


def means(observations):
    """Return the mean of each series; (n_series,)."""
    return np.array([values.mean() for values in observations])


def stds(observations):
    """Return the standard deviation of each series, 1 in the place of 0; (n_series,)."""
    return np.array([mean_and_scale(values)[1] for values in observations])
