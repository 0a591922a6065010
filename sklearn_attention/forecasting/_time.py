"""Regular indexes, the steps of series: how they continue, and dates on them."""

import datetime
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from .._blocks import check_memory

_MIDNIGHT = " 00:00:00"
# What else leaves rows out, or before the others.
FOLDS = "In cross-validation pass cv=TimeSeriesSplit(...), whose folds are stretches of time."
# A text ends with a time zone, which periods would drop. Matched from the beginning, it takes
# time in proportion to the length of the text.
_HAS_ZONE = re.compile(r"[^:]*:\d\d.*([+-]\d\d(:?\d\d)?|[A-Za-z])$")
# The remedy for tables whose columns are no series.
OF_SERIES = (
    "Where each row is of one of several series, rename the columns: 'unique_id' is the "
    "series, 'ds' the date and 'y' the value."
)
_NAMED = 5  # dates that a message names before it only counts
_WEEK = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
# Parts of a DateOffset that are no dates: they add up to a duration.
_TIMES = {"hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"}


@dataclass(frozen=True, eq=False)
class TimeIndex:
    """A regular index as plain values, so that it can be stored and continued.

    Position 0 is the first step. The index continues beyond its last step at its frequency.

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
        """The index of n steps without one: 0, 1, 2, ..."""
        return cls("position", np.arange(n, dtype=np.int64), 1)

    @classmethod
    def read(cls, index, *, like=None, what="y"):
        """All steps from the first to the last of an index, which may lack some.

        The frequency is that of another TimeIndex `like` it, if there is one.
        """
        kind = kind_of(index, what)
        if like is not None:
            like.check_kind(index, what)
        check_order(index, what)
        freq = _frequency(kind, index, what) if like is None else like.freq
        unit = index.unit if kind == "datetime" else ""
        tz = str(index.tz or "") if kind == "datetime" else ""
        time = cls(kind, numbers_of(index).copy(), freq, unit, tz, index.name)
        if kind == "datetime":
            grid = _regular(index, time.offset, index[-1], what=what).as_unit(unit)
        else:
            time = replace(time, values=time.values[:1])
            grid = time.reaching(index[-1], what).index
        wrong = index[~index.isin(grid)]
        if len(wrong):
            raise ValueError(
                f"{what} has an index that does not follow the frequency {time.freq!r} from "
                f"{index[0]} on, such as {_name(wrong)}: {_of_zone(index)}resample it to "
                f"regular steps. {FOLDS}"
            )
        return replace(time, values=numbers_of(grid).copy())

    def __len__(self):
        return len(self.values)

    @property
    def index(self):
        """The steps as an index of pandas, timestamps without their frequency."""
        if self.kind == "datetime":
            return self._timestamps(self.values).rename(self.name)
        return self.between(0, len(self))

    @property
    def offset(self):
        """The frequency as an offset of pandas; None for whole numbers and positions."""
        if self.kind == "period":
            return pd.PeriodDtype(self.freq).freq
        return to_offset(self.freq) if self.kind == "datetime" else None

    @property
    def _step(self):
        """Difference of neighbours among ordinals, or among whole numbers."""
        return self.offset.n if self.kind == "period" else self.freq

    def between(self, start, stop):
        """The steps from one position to before another, which may lie beyond the end."""
        if self.kind == "datetime":
            begin = max(0, min(start, len(self) - 1) - 1)
            near = self._timestamps(self.values[begin : begin + 3])
            index = _regular(near, self.offset, n=max(start, stop) - begin)[start - begin :]
            return index.as_unit(self.unit).rename(self.name)
        first, step = int(self.values[0]) if len(self) else 0, self._step
        numbers = range(first + step * start, first + step * stop, step)
        if self.kind == "period":
            ordinals = np.array(numbers, dtype=np.int64)
            return pd.PeriodIndex.from_ordinals(ordinals, freq=self.freq, name=self.name)
        return pd.RangeIndex(numbers, name=self.name)

    def extended(self, n, what="the index"):
        """The same index with n further steps."""
        if n <= 0:
            return self
        check_steps(f"{what} at frequency {self.freq!r}", len(self) + n)
        later = numbers_of(self.between(len(self), len(self) + n))
        return replace(self, values=np.concatenate([self.values, later]))

    def reaching(self, last, what="the index"):
        """The same index, with further steps up to one of any index."""
        if self.kind == "datetime":
            near = self._timestamps(self.values[-2:])
            more = len(_regular(near, self.offset, last, what=what)) - len(near)
        else:
            more = (getattr(last, "ordinal", last) - int(self.values[-1])) // self._step
        return self.extended(more, what)

    def find(self, index, what="X"):
        """Positions of the entries of an index of this kind, in any order; -1 for no steps."""
        there = index.notna()
        if not there.any():
            return np.full(len(index), -1)
        if self.kind == "datetime":
            longer = self.reaching(index.max(), what)
            return longer.index.get_indexer(index).astype(np.int64)
        offsets = np.where(there, numbers_of(index), self.values[0] - 1) - self.values[0]
        return np.where(offsets % self._step == 0, offsets // self._step, -1)

    def positions(self, index, what="X"):
        """Positions of the entries of an index on this one, in any order; later ones too."""
        index = as_index(index)
        self.check_kind(index, what)
        found = self.find(index, what)
        if (found < 0).any():
            raise ValueError(
                f"{what} has steps that the series, which begins at {self.between(0, 1)[0]} "
                f"with frequency {self.freq!r}, does not have: {_name(index[found < 0])}. "
                "Remove them, or fit a series that has them. " + FOLDS
            )
        return found

    def name_steps(self, positions):
        """Names of the first few of some steps, for a message."""
        return _name(self.between(0, int(np.max(positions)) + 1)[np.asarray(positions)])

    def check_kind(self, index, what) -> None:
        """Raise if an index is of another kind, zone or frequency of periods than this one."""
        kind = kind_of(index, what)
        alike = kind == self.kind or (kind, self.kind) == ("integer", "position")
        if kind == "datetime":
            alike &= (index.tz is None) == (self.tz == "")
        elif kind == "period":
            alike &= index.freqstr == self.freq
        if not alike:
            own, remedy = self.between(0, 0).dtype, "as by tz_localize, asfreq or to_timestamp"
            if self.kind == "position":
                own, remedy = "without index", "to rows that follow, as by to_numpy()"
            raise ValueError(
                f"{what} has an index of dtype {index.dtype}, but the series are {own}: "
                f"convert it, {remedy}."
            )

    def refuse_gaps(self, step, what) -> None:
        """Raise if steps lack between ascending positions."""
        lost = np.setdiff1d(np.arange(step[0], step[-1] + 1), step)
        if len(lost):
            # Whole numbers may count rows, which are no steps.
            advice = "If the index counts rows, make their dates the index, by set_index. "
            advice = f"{advice}{OF_SERIES} " * (self.kind == "integer" and "[" not in what)
            raise ValueError(
                f"{what} has gaps in its index: {self.name_steps(lost)} missing at frequency "
                f"{self.freq!r}. Pass missing='zero' where a step without a row is 0, or "
                f"missing='interpolate' or missing='seasonal'. {advice}{FOLDS}"
            )

    def _timestamps(self, values):
        index = pd.DatetimeIndex(values.view(f"M8[{self.unit}]"))
        return index.tz_localize("UTC").tz_convert(self.tz) if self.tz else index


def clearest(indexes):
    """The longest of several indexes, or all as one if it has no frequency but that of gaps."""
    longest = max(indexes, key=len)
    dated = isinstance(longest, pd.DatetimeIndex) and not longest.hasnans
    if dated and inferred(longest) is None:
        return longest.append(indexes).unique().sort_values()
    return longest


def kind_of(index, what):
    """Kind of an index, as :class:`TimeIndex` has it: "datetime", "period" or "integer"."""
    for kind, name in ((pd.DatetimeIndex, "datetime"), (pd.PeriodIndex, "period")):
        if isinstance(index, kind):
            return name
    if pd.api.types.is_integer_dtype(index.dtype):
        return "integer"
    wrong = index[index % 1 != 0] if index.dtype.kind == "f" else index
    raise ValueError(
        f"{what} has {_name(wrong)} in its {index.name or 'index'!r}, of dtype {index.dtype}, "
        "which cannot be read as a time: convert dates by pandas.to_datetime(index.map(str)), "
        "with dayfirst=True if days come first, and numbers by pandas.to_numeric(index), or "
        "number the steps by range(len(index))."
    )


def as_index(index):
    """An index, or a column, of steps: dates as such, also of text, and whole numbers."""
    kind = index.dtype.kind
    if kind == "M":  # timestamps of Arrow as well
        return pd.DatetimeIndex(index)
    if kind == "f" and (index.to_numpy(np.float64, na_value=np.nan) % 1 == 0).all():
        return pd.Index(index).astype(np.int64)
    if kind != "O" or isinstance(index, pd.MultiIndex | pd.PeriodIndex):
        return index if isinstance(index, pd.Index) else pd.Index(index)
    index = pd.Index(index.tolist(), name=index.name)
    # A text that does not begin with year and month may be a number.
    text = index.inferred_type == "string" and index.str.match(r"\d{4}-\d\d").all()
    with suppress(ValueError):  # what is no date stays, for an error that names it
        if text or index.inferred_type == "date":
            dates = pd.to_datetime(index, format="ISO8601")
            # Those of several zones have no common type in pandas 2.
            return dates if isinstance(dates, pd.DatetimeIndex) else index
    return index


def numbers_of(index):
    """The entries of an index as whole numbers, as :class:`TimeIndex` keeps them."""
    return index.asi8 if hasattr(index, "asi8") else index.to_numpy(np.int64)


def check_order(index, what):
    """Raise if an index lacks entries, or if these do not ascend."""
    if index.hasnans:
        raise ValueError(f"{what} has an index with missing entries (NaT): drop those rows.")
    refuse_repeated(index, what)
    if not index.is_monotonic_increasing:
        later = 1 + int(np.flatnonzero(np.asarray(index[1:] < index[:-1]))[0])
        raise ValueError(
            f"{what} has an index that is not sorted ({_name(index[[later]])} comes after "
            f"{_name(index[[later - 1]])}): correct the times if they are mistyped, or sort by "
            "time, as sort_index() does."
        )


def refuse_repeated(index, what):
    """Raise if an index has an entry twice."""
    if not index.is_unique:
        repeated = index[index.duplicated()].unique()
        raise ValueError(
            f"{what} has an index with duplicates, {_name(repeated)}: keep one row for each "
            f"step of a series, as drop_duplicates or a mean by groupby do. {OF_SERIES}"
        )


def _frequency(kind, index, what):
    """The frequency of an index, as :class:`TimeIndex` has it."""
    if kind == "period":
        return index.freqstr
    if kind == "integer":
        # The usual step; the caller names entries that do not agree with it.
        steps, counts = np.unique(np.diff(numbers_of(index)), return_counts=True)
        return int(steps[counts.argmax()]) if len(steps) else 1
    offset = inferred(index)
    return _alias(_offset_with_gaps(index, what) if offset is None else offset)


def _alias(offset):
    """The alias of an offset, or itself if it has parameters that an alias lacks."""
    if type(offset) is pd.DateOffset and offset.kwds and offset.kwds.keys() <= _TIMES:
        offset = to_offset(offset.n * pd.Timedelta(**offset.kwds))
    options = dict(offset.kwds)
    calendar = options.pop("calendar", None)
    if calendar is not None:
        # It may have a week of its own, which pandas does not store.
        options["weekmask"] = " ".join(_WEEK[calendar.weekmask])
        return type(offset)(offset.n, **options)
    with suppress(ValueError):
        if to_offset(offset.freqstr) == offset:
            return offset.freqstr
    return offset


def inferred(index):
    """The offset of timestamps, or of such without gaps; None if there is none."""
    if index.freq is not None or len(index) < 3:
        return index.freq
    days = index.tz_localize(None).normalize()
    with warnings.catch_warnings():
        # pandas announces that the alias will be an offset, which is understood as well.
        warnings.simplefilter("ignore")
        # Steps that a change of clocks moved are regular by the days that they are on.
        freq = pd.infer_freq(index) or pd.infer_freq(days)
    return _of_dates(days) if freq is None else to_offset(freq)


def _of_dates(days):
    """Offset of days that are the same in each month, or in each week; None for others."""
    if not days.is_unique or not days.is_monotonic_increasing:
        return None
    months, counts = 12 * days.year + days.month, np.bincount(days.day_of_week, minlength=7)
    offset = pd.DateOffset(months=int(months[1] - months[0]))
    if days.day.nunique() > 1:
        if counts[counts > 0].min() < 2:
            return None
        offset = pd.offsets.CustomBusinessDay(weekmask=" ".join(_WEEK[counts > 0]))
    regular = pd.date_range(days[0], periods=len(days), freq=offset)
    return offset if regular.equals(days) else None


def _offset_with_gaps(index, what):
    """The offset of a stretch of timestamps, if all lie on its grid."""
    n, size = len(index), len(index) // 2
    while size >= 3:
        for start in range(0, n - size + 1, size):
            offset = inferred(index[start : start + size])
            if offset is None:
                continue
            grid = _regular(index, offset, index[-1], what=what)
            if len(grid) <= 2 * n and index.isin(grid).all():
                return offset
        size //= 2
    widest = int(np.diff(index.asi8).argmax())
    raise ValueError(
        f"{what} has timestamps of no frequency that can be inferred, such as "
        f"{_name(index[:3])}, with the widest gap between {_name(index[widest : widest + 2])}: "
        f"{_of_zone(index)}correct them if they are mistyped, pass them with a frequency by "
        f"asfreq, or resample to regular steps. {FOLDS}"
    )


def check_steps(what, *shape):
    """Raise MemoryError if so many steps do not fit, with all arrays that are made of them."""
    check_memory(what, (*shape, 16), "pass fewer steps, without a date far off, or longer ones")


def _regular(index, offset, until=None, n=None, what="the index"):
    """The timestamps of a frequency from the first of some on: until a moment, or so many."""
    if until is not None and isinstance(offset, pd.offsets.Tick):
        n_steps = int(1e9 * (until.timestamp() - index[0].timestamp()) / offset.nanos)
        check_steps(f"{what} up to {until} at frequency {offset.freqstr!r}", n_steps)
    if index.tz is None:
        return pd.date_range(index[0], until, n, freq=offset)
    # Days and longer go by the clock of the zone, shorter steps by that of UTC. What the clock
    # skips is moved on to when it goes on, which is the only time of day that is later than
    # others; of what it repeats the first is meant.
    fixed = isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)
    zone = "UTC" if fixed else index.tz
    clock = index.tz_convert(zone).tz_localize(None)
    first, days = clock[0], clock.normalize()
    if not (fixed or isinstance(offset, pd.offsets.BusinessHour)):
        first = days[0] + (clock - days).min()
    if until is not None:
        until = until.tz_convert(zone).tz_localize(None)
    clock = pd.date_range(first, until, n, freq=offset)
    found = clock.tz_localize(
        zone, ambiguous=np.ones(len(clock), dtype=bool), nonexistent="shift_forward"
    )
    lost = clock.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").hasnans
    # pandas knows no frequency of steps that were moved.
    return pd.DatetimeIndex(found.tz_convert(index.tz), freq=None if lost else offset)


def _of_zone(index):
    """Advice where times look like dates of a time zone in UTC; empty for others."""
    # Days, or longer steps, have two times: that of summer and that of winter.
    if not isinstance(index, pd.DatetimeIndex) or len(set(index.time)) != 2:
        return ""
    if (index[-1] - index[0]) / (len(index) - 1) < pd.Timedelta(23, "h"):
        return ""
    localize = "" if index.tz else "tz_localize('UTC')."
    return (
        "if these are dates of a time zone, stored in UTC, convert them to it, as by index."
        f"{localize}tz_convert('Europe/Berlin'); else "
    )


def _name(index):
    names = [str(entry) for entry in index[:_NAMED]]
    if all(name.endswith(_MIDNIGHT) for name in names):
        names = [name.removesuffix(_MIDNIGHT) for name in names]
    more = len(index) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def is_date(X):
    """True for a date, as text or as any of the objects for dates."""
    return isinstance(X, str | datetime.date | np.datetime64 | pd.Period)


def steps_until(time, date):
    """Number of steps of an index that are not after a date, from its first step."""
    # A text or a period stands for its end: "2024-06" and "2024" for that of the month and of
    # the year, as in slices of pandas.
    is_text = isinstance(date, str) and not _HAS_ZONE.match(date)
    try:
        if is_text and not date[:4].isdigit():
            raise ValueError(date)  # days or months may come first
        is_span = is_text or type(date) is datetime.date
        last = pd.Period(date, None if is_text else "D") if is_span else date
        last = last.end_time if isinstance(last, pd.Period) else pd.Timestamp(last)
        if last is pd.NaT:
            raise ValueError(last)
    except ValueError as error:
        raise ValueError(
            f"X={date!r:.60} is not a date: pass one such as '2024-06'."
        ) from error
    if time.offset is None or (last.tz is not None and not time.tz):
        wrong = "has a time zone, but the series have none: remove it by tz_localize(None)"
        if time.offset is None:
            wrong = "is a date, but the series have none: pass a number of steps"
        raise ValueError(f"X={date!r} {wrong}.")
    if time.kind == "period":
        last = pd.Period(last, freq=time.freq)
    elif last.tz is None and time.tz:
        last = last.tz_localize(time.tz, ambiguous=False, nonexistent="shift_forward")
    # Of any resolution.
    return int((time.reaching(last, f"X={date!r}").index <= last).sum())
