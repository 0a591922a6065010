"""Series of any form as rows of series and step."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .._column_stats import mean_and_scale, replace_zeros
from ._time import TimeIndex, check_steps

_COLUMNS = "series", "step", "value", "features"


@dataclass(frozen=True, eq=False)
class Form:
    """The form of the series as passed, which forecasts take too."""

    # `kind` is "array" (one), "table" (a 2-D array, a column each), "windows" (a 2-D array, a
    # row each), "series", "frame" (a column each), "arrays" and "dict" (by name), "long" and
    # "long_frame" (one below the other) or "tidy" (a row for each observation, with columns of
    # series and time). `labels` are names of the levels of a frame's columns, or of the two
    # levels of a long index and of the column; the first is None for a tidy frame without a
    # column of series. `index` is that of the rows of forecasts; None continues that of the
    # series. `rows` are labels of the rows of a tidy frame; None numbers them. `library` is
    # that of frames, "pandas" or another.

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
        """True if all series are one below the other."""
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
        """True if series have names that were passed."""
        return (self.long and not self.single) or self.kind in ("frame", "dict", "arrays")


@dataclass(frozen=True, eq=False)
class Table:
    """Series with their features, in rows by series, then by step.

    Steps of a series follow one another without gaps.

    Attributes
    ----------
    time : TimeIndex
        The steps, from the first of any series to the last of any.
    names : list
        Name of each series.
    series, step : ndarray of int of shape (n_rows,)
        Series of each row, by position, and its position on `time`.
    value : ndarray of float64 of shape (n_rows,)
        Observations; NaN where there is none, as in rows after the end of a series, which have
        features that are known beforehand.
    features : ndarray of shape (n_rows, n_features)
        Without columns if there are none.
    form : Form
        The form that the series came in.
    identity : ndarray of int of shape (n_series,)
        Position of each among the training series, in the order in which they were learned
        from; -1 for others.
    known : ndarray of int
        Columns of the features that are known beforehand.
    """

    time: TimeIndex
    names: list
    series: np.ndarray
    step: np.ndarray
    value: np.ndarray
    features: np.ndarray
    form: Form
    identity: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, values, starts=None, identity=None, features=None, known=()):
        """A table of training series, which begin at one step unless `starts` is passed."""
        lengths = np.array(list(map(len, values)))
        starts = np.zeros_like(lengths) if starts is None else starts
        identity = np.arange(len(values)) if identity is None else identity
        features = [np.empty((n, 0)) for n in lengths] if features is None else features
        counts = np.array(list(map(len, features)))
        series, step = positions(starts, counts)
        value = np.full(len(step), np.nan)
        value[step - starts[series] < lengths[series]] = np.concatenate(values)
        time = TimeIndex.of_positions(int((starts + counts).max()))
        names, known = list(range(len(values))), np.asarray(known, dtype=np.int64)
        rows = series, step, value, np.concatenate(features)
        return cls(time, names, *rows, Form(), identity, known)

    @classmethod
    def placed(cls, time, names, series, step, value, form):
        """A table of values at some steps of series, with missing ones between."""
        ends = np.zeros(len(names), dtype=np.int64)
        np.maximum.at(ends, series, step + 1)
        begins = ends.copy()
        np.minimum.at(begins, series, step)
        check_steps("the series, with the steps between,", (ends - begins).sum())
        rows, steps = positions(begins, ends - begins)
        values = np.full(len(rows), np.nan)
        values[(np.cumsum(ends - begins) - ends)[series] + step] = value
        identity, known = np.arange(len(names)), np.empty(0, dtype=np.int64)
        features = np.empty((len(rows), 0))
        return cls(time, names, rows, steps, values, features, form, identity, known)

    def __len__(self):
        return len(self.names)

    @property
    def n_features(self):
        """Number of features."""
        return self.features.shape[1]

    @cached_property
    def counts(self):
        """Rows of each series; (n_series,)."""
        return np.bincount(self.series, minlength=len(self))

    @cached_property
    def first(self):
        """The row that each series begins at; (n_series,)."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def lengths(self):
        """Steps of each series up to its last observation; (n_series,)."""
        lengths = np.zeros(len(self), dtype=np.int64)
        rows = np.flatnonzero(~np.isnan(self.value))
        series = self.series[rows]
        np.maximum.at(lengths, series, rows + 1 - self.first[series])
        return lengths

    @cached_property
    def starts(self):
        """Position of the first step of each series; (n_series,)."""
        starts = np.zeros(len(self), dtype=np.int64)
        there = self.counts > 0
        starts[there] = self.step[self.first[there]]
        return starts

    @property
    def ends(self):
        """Position after the last observation of each series; (n_series,)."""
        return self.starts + self.lengths

    @property
    def next_steps(self):
        """Position that forecasts of each series begin at; (n_series,)."""
        return np.full(len(self), len(self.time)) if self.form.aligned else self.ends

    def begins(self, n):
        """Position that so many series go on from: these, and new ones, which begin at 0."""
        return np.append(self.next_steps, np.zeros(n - len(self), dtype=np.int64))

    @cached_property
    def values(self):
        """Observations of each series; a list of arrays."""
        spans = zip(self.first, self.first + self.lengths, strict=True)
        return [self.value[start:stop] for start, stop in spans]

    @property
    def learned_names(self):
        """Names of the training series, in the order in which they were learned from."""
        pairs = zip(self.identity, self.names, strict=True)
        return [name for i, name in sorted(pairs, key=lambda pair: pair[0]) if i >= 0]

    def order_of_content(self):
        """Order the series by length, start, and when and around what they moved; (n_series,).

        The order in which series are passed does not matter, nor do the units of series, but
        for those that only differ by their units. Names decide about equal ones.
        """
        changes = [np.abs(np.diff(values)) for values in self.values]
        changes = [own / (own.max(initial=0) or 1.0) for own in changes]
        middle = [own @ np.arange(len(own)) / (own.sum() or 1.0) for own in changes]
        middle = np.round(middle, 6)  # rounding of units must not decide
        names = np.array([str(name) for name in self.names])
        return np.lexsort((names, means(self.values), middle, self.starts, self.lengths))

    def feature_rows(self, series, steps):
        """Rows of some steps; the first and last of a series stand for steps beyond them."""
        return self.first[series] + np.clip(steps, 0, self.counts[series] - 1)

    def with_values(self, values):
        """The same with other values of the steps observed."""
        value = np.full(len(self.value), np.nan)
        value[positions(self.first, self.lengths)[1]] = np.concatenate(values)
        return self._as_long(self.lengths, value=value)

    def extended(self, forecasts):
        """The series with forecasts after their ends."""
        n = forecasts.shape[1]
        longer = self.resized(np.maximum(self.counts, self.lengths + n))
        value = longer.value.copy()
        value[(longer.first + self.lengths)[:, None] + np.arange(n)] = forecasts
        return longer._as_long(self.lengths + n, value=value)

    def resized(self, counts):
        """So many rows of each series, where the last features are repeated."""
        series, place = positions(0, counts)
        value = np.where(place < self.counts[series], 0.0, np.nan)
        longer = self.of_rows(self.feature_rows(series, place))
        return replace(longer, step=self.starts[series] + place, value=longer.value + value)

    def of_rows(self, rows):
        """Some of the rows, of the same series."""
        return replace(
            self, series=self.series[rows], step=self.step[rows], value=self.value[rows],
            features=self.features[rows],
        )  # fmt: skip

    def between(self, first, last):
        """Rows from the first to the last observation of each series in a stretch of steps."""
        inside = (self.step >= first) & (self.step < last) & ~np.isnan(self.value)
        rows = np.flatnonzero(inside)
        begin, end = np.full(len(self), len(self.value)), np.zeros(len(self), dtype=np.int64)
        np.minimum.at(begin, self.series[rows], rows)
        np.maximum.at(end, self.series[rows], rows + 1)
        return self.of_rows(positions(begin, np.maximum(end - begin, 0))[1])

    def take(self, which, begin=0):
        """Some of the series as training series of their own."""
        counts = self.counts[which]
        some = self.of_rows(positions(self.first[which], counts)[1])
        return replace(
            some, names=[self.names[i] for i in which], identity=np.arange(len(which)),
            series=np.repeat(np.arange(len(which)), counts), step=some.step - begin,
            time=replace(self.time, values=self.time.values[begin:]),
        )  # fmt: skip

    def append(self, later):
        """These rows, and those of another table that follow."""
        pairs = [[getattr(table, name) for table in (self, later)] for name in _COLUMNS]
        series, step, value, features = map(np.concatenate, pairs)
        order = np.argsort(series, kind="stable")
        # Columns may end with missing values, before which nothing is forecast.
        stop = max(int(later.step.max(initial=-1)) + 1, self.form.aligned * len(later.time))
        further = np.full(len(later) - len(self), -1)
        return replace(
            self, time=self.time.extended(max(0, stop - len(self.time))),
            names=later.names, series=series[order], step=step[order], value=value[order],
            features=features[order], identity=np.append(self.identity, further),
        )  # fmt: skip

    def _as_long(self, lengths, **changes):
        """The same with changes, where lengths are known whatever is missing."""
        table = replace(self, **changes)
        vars(table)["lengths"] = lengths
        return table


def positions(first, counts):
    """So many consecutive positions in each series: series and steps, ascending.

    `first` is a number or, like `counts`, of shape (n_series,).
    """
    series = np.repeat(np.arange(len(counts)), counts)
    return series, np.arange(len(series)) + (first + counts - np.cumsum(counts))[series]


def naive_scales(values):
    """Mean absolute errors of the naive forecast, the last value; (n_series,).

    1 for constant series and single values, so that they may divide.
    """
    return replace_zeros(mean_steps(values))


def mean_steps(values):
    """Mean absolute differences between neighbours of series, 0 of single values."""
    return np.array([np.abs(np.diff(x)).mean() if len(x) > 1 else 0.0 for x in values])


def means(values):
    """Means of series; (n_series,)."""
    return np.array([series.mean() for series in values])


def deviations(values):
    """Standard deviations of series, 1 in the place of 0; (n_series,)."""
    return np.array([mean_and_scale(series)[1] for series in values])
