"""`TimeIndex`, the index of time of series: regular steps, and how they continue.

A step is a point in time at which a series has a value. Steps are equally spaced by the
frequency of the index: pandas' alias such as "MS" (month starts) or "D", or for whole numbers
their difference. Steps are numbered by their position, from 0 for the first step of any series:

    position  0           1           2           ...
    step      2024-01-01  2024-02-01  2024-03-01  ...   at the frequency "MS"

A gap is a step between the first and the last one that an index passed by a user lacks. In all
functions `what` is the name of the user's data in error messages, such as "y".
"""

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from ._frequency import (
    CV_ADVICE,
    as_integers,
    check_steps,
    date_range,
    frequency_of,
    list_steps,
    time_zone_advice,
)

# Advice for frames in long format whose columns have other names.
LONG_FORMAT_ADVICE = (
    "Where each row is of one of several series, rename the columns: 'unique_id' is the "
    "series, 'ds' the date and 'y' the value."
)


@dataclass(frozen=True, eq=False)
class TimeIndex:
    """A regular index of time as plain values, so that it can be stored and continued.

    Position 0 is the first step. The index continues after its last step at its frequency.

    Attributes
    ----------
    kind : {"datetime", "period", "integer", "position"}
        Timestamps, periods, whole numbers, or no index at all but the order of an array.
    values : ndarray of int64 of shape (n_steps,)
        Timestamps in `unit` since 1970 in UTC, ordinals of periods, or the numbers.
    freq : str, DateOffset or int
        pandas' alias of the frequency, or an offset with parameters that an alias lacks, such
        as holidays; the step of whole numbers.
    unit : str
        Resolution of timestamps, such as "ns"; "" for others.
    tz : str
        Time zone of timestamps; "" for none.
    name : object
        Name of the index.
    """

    kind: str
    values: np.ndarray
    freq: str | int | pd.DateOffset
    unit: str = ""
    tz: str = ""
    name: object = None

    @classmethod
    def of_positions(cls, n):
        """Make the index 0, 1, ..., n - 1 of series without an index."""
        return cls("position", np.arange(n, dtype=np.int64), 1)

    @classmethod
    def read(cls, index, *, reference=None, what="y"):
        """Make a TimeIndex of all steps from the first to the last of an index of pandas.

        Parameters
        ----------
        index : Index
            Ascending; steps may lack between others.
        reference : TimeIndex, default=None
            An index with the same frequency; None infers the frequency.
        what : str, default="y"
        """
        kind = kind_of(index, what)
        if reference is not None:
            reference.check_kind(index, what)
        check_order(index, what)
        freq = frequency_of(kind, index, what) if reference is None else reference.freq
        unit, tz = (index.unit, str(index.tz or "")) if kind == "datetime" else ("", "")
        time = cls(kind, as_integers(index).copy(), freq, unit, tz, index.name)
        if kind == "datetime":
            grid = date_range(index, time.offset, index[-1], what=what).as_unit(unit)
        else:
            time = replace(time, values=time.values[:1])
            grid = time.extended_to(index[-1], what).index
        off_grid = index[~index.isin(grid)]
        if len(off_grid):
            raise ValueError(
                f"{what} has an index that does not follow the frequency {time.freq!r} from "
                f"{index[0]} on, such as {list_steps(off_grid)}: {time_zone_advice(index)}"
                f"resample it to regular steps. {CV_ADVICE}"
            )
        return replace(time, values=as_integers(grid).copy())

    def __len__(self):
        return len(self.values)

    @property
    def index(self):
        """The steps as an index of pandas; timestamps have no frequency there."""
        if self.kind == "datetime":
            return self._timestamps(self.values).rename(self.name)
        return self.index_between(0, len(self))

    @property
    def offset(self):
        """The frequency as an offset of pandas; None for whole numbers and positions."""
        if self.kind == "period":
            return pd.PeriodDtype(self.freq).freq
        return to_offset(self.freq) if self.kind == "datetime" else None

    @property
    def _step(self):
        """Difference of neighbouring `values` of periods, whole numbers or positions."""
        return self.offset.n if self.kind == "period" else self.freq

    def index_between(self, start, stop):
        """Return the steps from position `start` to before `stop` as an index of pandas.

        The positions may lie beyond the last step.
        """
        if self.kind == "datetime":
            # Three stored steps before `start` determine how the index goes on.
            begin = max(0, min(start, len(self) - 1) - 1)
            first_steps = self._timestamps(self.values[begin : begin + 3])
            n_steps = max(start, stop) - begin
            index = date_range(first_steps, self.offset, n=n_steps)[start - begin :]
            return index.as_unit(self.unit).rename(self.name)
        first, step = int(self.values[0]) if len(self) else 0, self._step
        numbers = range(first + step * start, first + step * stop, step)
        if self.kind == "period":
            ordinals = np.array(numbers, dtype=np.int64)
            return pd.PeriodIndex.from_ordinals(ordinals, freq=self.freq, name=self.name)
        return pd.RangeIndex(numbers, name=self.name)

    def extended(self, n, what="the index"):
        """Append n steps."""
        if n <= 0:
            return self
        check_steps(f"{what} at frequency {self.freq!r}", len(self) + n)
        new_values = as_integers(self.index_between(len(self), len(self) + n))
        return replace(self, values=np.concatenate([self.values, new_values]))

    def extended_to(self, last, what="the index"):
        """Append the steps up to `last`, a timestamp, period or whole number."""
        if self.kind == "datetime":
            last_steps = self._timestamps(self.values[-2:])
            longer = date_range(last_steps, self.offset, last, what=what)
            return self.extended(len(longer) - len(last_steps), what)
        difference = getattr(last, "ordinal", last) - int(self.values[-1])
        return self.extended(difference // self._step, what)

    def find(self, index, what="X"):
        """Return the positions of the entries of an index of this kind, in any order.

        Positions may lie after the last step. Entries that are no steps get a negative number.
        """
        is_present = index.notna()
        if not is_present.any():
            return np.full(len(index), -1)
        if self.kind == "datetime":
            longer = self.extended_to(index.max(), what)
            return longer.index.get_indexer(index).astype(np.int64)
        values = np.where(is_present, as_integers(index), self.values[0] - 1)
        differences = values - self.values[0]
        return np.where(differences % self._step == 0, differences // self._step, -1)

    def positions(self, index, what="X"):
        """Return the positions of the entries of an index, or raise if some are no steps."""
        index = as_index(index)
        self.check_kind(index, what)
        found_positions = self.find(index, what)
        is_unknown = found_positions < 0
        if is_unknown.any():
            raise ValueError(
                f"{what} has steps that the series, which begins at "
                f"{self.index_between(0, 1)[0]} with frequency {self.freq!r}, does not have: "
                f"{list_steps(index[is_unknown])}. Remove them, or fit a series that has "
                f"them. {CV_ADVICE}"
            )
        return found_positions

    def name_steps(self, positions):
        """List the first few steps at some positions, for a message."""
        index = self.index_between(0, int(np.max(positions)) + 1)
        return list_steps(index[np.asarray(positions)])

    def check_kind(self, index, what) -> None:
        """Raise if an index differs in its kind, time zone or frequency of periods."""
        kind = kind_of(index, what)
        agrees = kind == self.kind or (kind, self.kind) == ("integer", "position")
        if kind == "datetime":
            agrees &= (index.tz is None) == (self.tz == "")
        elif kind == "period":
            agrees &= index.freqstr == self.freq
        if not agrees:
            dtype = self.index_between(0, 0).dtype
            remedy = "as by tz_localize, asfreq or to_timestamp"
            if self.kind == "position":
                dtype, remedy = "without index", "to rows that follow, as by to_numpy()"
            raise ValueError(
                f"{what} has an index of dtype {index.dtype}, but the series are {dtype}: "
                f"convert it, {remedy}."
            )

    def refuse_gaps(self, positions, what) -> None:
        """Raise if ascending positions leave out a step between the first and the last."""
        missing = np.setdiff1d(np.arange(positions[0], positions[-1] + 1), positions)
        if len(missing):
            advice = ""
            # The whole numbers of data in one index may count rows, which are no steps of time.
            # A name such as "y['a']" is that of one of several indexes.
            if self.kind == "integer" and "[" not in what:
                advice = "If the index counts rows, make their dates the index, by set_index. "
                advice = f"{advice}{LONG_FORMAT_ADVICE} "
            raise ValueError(
                f"{what} has gaps in its index: {self.name_steps(missing)} missing at "
                f"frequency {self.freq!r}. Pass missing='zero' where a step without a row is "
                f"0, or missing='interpolate' or missing='seasonal'. {advice}{CV_ADVICE}"
            )

    def _timestamps(self, values):
        """Convert stored integers to timestamps in the time zone of the index."""
        index = pd.DatetimeIndex(values.view(f"M8[{self.unit}]"))
        return index.tz_localize("UTC").tz_convert(self.tz) if self.tz else index


def kind_of(index, what):
    """Return the kind of an index, as in :class:`TimeIndex`, or raise if it is no time.

    The kind is "datetime", "period" or "integer".
    """
    if isinstance(index, pd.DatetimeIndex):
        return "datetime"
    if isinstance(index, pd.PeriodIndex):
        return "period"
    if pd.api.types.is_integer_dtype(index.dtype):
        return "integer"
    unreadable = index[index % 1 != 0] if index.dtype.kind == "f" else index
    raise ValueError(
        f"{what} has {list_steps(unreadable)} in its {index.name or 'index'!r}, of dtype "
        f"{index.dtype}, which cannot be read as a time: convert dates by "
        "pandas.to_datetime(index.map(str)), with dayfirst=True if days come first, and "
        "numbers by pandas.to_numeric(index), or number the steps by range(len(index))."
    )


def as_index(index):
    """Convert an index or a column of steps to an index, with dates and whole numbers as such.

    Dates may be text. What is neither a date nor a whole number stays as it is, so that an
    error can name it.
    """
    dtype_kind = index.dtype.kind
    if dtype_kind == "M":  # Timestamps of Arrow have this kind as well.
        return pd.DatetimeIndex(index)
    if dtype_kind == "f" and (index.to_numpy(np.float64, na_value=np.nan) % 1 == 0).all():
        return pd.Index(index).astype(np.int64)
    if dtype_kind != "O" or isinstance(index, pd.MultiIndex | pd.PeriodIndex):
        return index if isinstance(index, pd.Index) else pd.Index(index)
    index = pd.Index(index.tolist(), name=index.name)
    # A text that does not begin with year and month may be a number.
    is_iso_text = index.inferred_type == "string" and index.str.match(r"\d{4}-\d\d").all()
    with suppress(ValueError):
        if is_iso_text or index.inferred_type == "date":
            dates = pd.to_datetime(index, format="ISO8601")
            # Dates of several time zones have no common type in pandas 2.
            return dates if isinstance(dates, pd.DatetimeIndex) else index
    return index


def check_order(index, what):
    """Raise if an index lacks entries, or if the entries do not ascend."""
    if index.hasnans:
        raise ValueError(f"{what} has an index with missing entries (NaT): drop those rows.")
    refuse_repeated(index, what)
    if not index.is_monotonic_increasing:
        is_earlier = np.asarray(index[1:] < index[:-1])
        row = 1 + int(np.flatnonzero(is_earlier)[0])
        raise ValueError(
            f"{what} has an index that is not sorted ({list_steps(index[[row]])} comes after "
            f"{list_steps(index[[row - 1]])}): correct the times if they are mistyped, or "
            "sort by time, as sort_index() does."
        )


def refuse_repeated(index, what):
    """Raise if an index has an entry twice."""
    if not index.is_unique:
        repeated = index[index.duplicated()].unique()
        raise ValueError(
            f"{what} has an index with duplicates, {list_steps(repeated)}: keep one row for "
            "each step of a series, as drop_duplicates or a mean by groupby do. "
            f"{LONG_FORMAT_ADVICE}"
        )
