"""Regular indexes, the steps of series: how they continue, and dates on them."""

import datetime
import re
import reprlib
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from .._blocks import check_memory

_MIDNIGHT = " 00:00:00"
# What else leaves rows out.
_FOLDS = "In cross-validation pass cv=TimeSeriesSplit(...), whose folds have no gaps."
# A text ends with a time zone, which periods would drop.
_HAS_ZONE = re.compile(r":\d\d.*([+-]\d\d(:?\d\d)?|[A-Za-z]+)$")
_NO_DATE = (
    "X={!r} is no date: pass one such as '2024-06', a number of steps, an index, or features."
)
_NAMED = 5  # dates that a message names before it only counts
_WEEK = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
# Parameters of offsets that change nothing.
_NOTHING = ([], datetime.timedelta(0))
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
    freq : str or int
        pandas' alias of the frequency, or its class, such as "CustomBusinessDay", if it has
        parameters that an alias lacks; the step of whole numbers.
    unit : str
        Resolution of timestamps, such as "ns"; "" for others.
    tz : str
        Time zone of timestamps; "" for none.
    name : object
        Name of the index.
    options : dict
        Parameters of the class, such as its holidays, as plain values; None for an alias.
    """

    kind: str
    values: np.ndarray
    freq: str | int
    unit: str = ""
    tz: str = ""
    name: object = None
    options: dict | None = None

    @classmethod
    def of_positions(cls, n):
        """The index of n steps without one: 0, 1, 2, ..."""
        return cls("position", np.arange(n, dtype=np.int64), 1)

    @classmethod
    def read(cls, index, *, like=None, what="y"):
        """Read an index, which must be regular and agree with another one, if there is one."""
        time = read_with_gaps(index, like=like, what=what)
        refuse_gaps(time, index, what)
        return time

    def __len__(self):
        return len(self.values)

    @property
    def offset(self):
        """The frequency as an offset of pandas; None for whole numbers and positions."""
        if self.kind == "period":
            return pd.PeriodDtype(self.freq).freq
        if self.kind != "datetime":
            return None
        if self.options is None:
            return to_offset(self.freq)
        if self.freq not in pd.offsets.__all__:
            raise ValueError(f"freq={self.freq!r} is no class of pandas.offsets.")
        return getattr(pd.offsets, self.freq)(**self.options)

    @property
    def _freq_code(self):
        """The frequency as it is written in code."""
        if self.options is None:
            return repr(self.freq)
        given = [f"{key}={reprlib.repr(value)}" for key, value in self.options.items()]
        return f"pandas.offsets.{self.freq}({', '.join(given)})"

    @property
    def _step(self):
        """Difference of neighbours among ordinals, or among whole numbers."""
        return self.offset.n if self.kind == "period" else self.freq

    def between(self, start, stop):
        """The steps from one position to before another, which may lie beyond the end."""
        if self.kind != "datetime":
            first = int(self.values[0]) if len(self) else 0
            numbers = range(first + self._step * start, first + self._step * stop, self._step)
            if self.kind == "period":
                return pd.PeriodIndex.from_ordinals(
                    np.array(numbers, dtype=np.int64), freq=self.freq, name=self.name
                )
            return pd.RangeIndex(numbers, name=self.name)
        begin = max(0, min(start, len(self) - 1) - 1)
        near = self._timestamps(self.values[begin : begin + 3])
        index = _regular(near, self.offset, n=max(start, stop) - begin)[start - begin :]
        return index.as_unit(self.unit).rename(self.name)

    def positions(self, index, what="X"):
        """Positions of the entries of an index on this one, in any order; later ones too."""
        index = as_index(index)
        _check_same_kind(kind_of(index, what), index, self, what)
        _refuse_repeated(index, what)
        if len(index) == 0:
            return np.empty(0, dtype=np.int64)
        if self.kind != "datetime":
            offsets = numbers_of(index) - self.values[0]
            found = np.where(offsets % self._step == 0, offsets // self._step, -1)
        else:
            if self.tz:
                index = index.tz_convert(self.tz)
            last = self._timestamps(self.values[-1:])[0]
            start = len(self) - 1 if index.min() > last else 0
            known = self.between(start, len(self) + self._n_later(index.max(), what))
            found = known.get_indexer(index)
            found = np.where(found >= 0, found + start, -1)
        if (found < 0).any():
            first = self.between(0, 1)[0]
            raise ValueError(
                f"{what} has steps that are none of the series', which begins at {first} with "
                f"frequency {self._freq_code}: {_name(index[found < 0])}. Remove them, or "
                "fit a series that has them."
            )
        return found.astype(np.int64)

    def extended(self, n, what="the index"):
        """The same index with n further steps."""
        if n == 0:
            return self
        check_steps(f"{what} at frequency {self._freq_code}", len(self) + n)
        later = numbers_of(self.between(len(self), len(self) + n))
        return replace(self, values=np.concatenate([self.values, later]))

    def reaching(self, number, what="the index"):
        """The same index, with further steps up to a number such as `values` has."""
        if number <= self.values[-1]:
            return self
        if self.kind == "datetime":
            return self.extended(self._n_later(self._timestamps(np.array([number]))[0], what))
        return self.extended(-(-int(number - self.values[-1]) // self._step), what)

    def find(self, numbers):
        """Positions of numbers such as `values` has; (n,)."""
        places = np.minimum(np.searchsorted(self.values, numbers), len(self) - 1)
        return np.where(self.values[places] == numbers, places, -1)

    def name_steps(self, positions):
        """Names of the first few of some steps, for a message."""
        return _name(self.between(0, int(np.max(positions)) + 1)[np.asarray(positions)])

    def _n_later(self, moment, what):
        """Number of steps after the last, up to a moment."""
        last = self._timestamps(self.values[-2:])
        return max(0, len(_regular(last, self.offset, moment, what=what)) - len(last))

    def _grid(self, index, what):
        """The regular index from the first to the last entry."""
        if self.kind == "datetime":
            return _regular(index, self.offset, index[-1], what=what)
        span = int(self.values[-1]) - int(self.values[0]) if len(self) else -1
        n_steps = span // self._step + 1
        check_steps(f"{what} up to {_name(index[-1:])} at frequency {self._freq_code}", n_steps)
        return self.between(0, n_steps)

    def _timestamps(self, values):
        index = pd.DatetimeIndex(values.view(f"M8[{self.unit}]"))
        return index.tz_localize("UTC").tz_convert(self.tz) if self.tz else index


def read_with_gaps(index, *, like=None, what="y"):
    """The :class:`TimeIndex` that an index lies on, which may lack steps between its ends."""
    kind = kind_of(index, what)
    if like is not None:
        _check_same_kind(kind, index, like, what)
    _check_increasing(index, what)
    freq, options = _frequency(kind, index, what) if like is None else (like.freq, like.options)
    unit = index.unit if kind == "datetime" else ""
    tz = "" if kind != "datetime" or index.tz is None else str(index.tz)
    time = TimeIndex(kind, numbers_of(index).copy(), freq, unit, tz, index.name, options)
    grid = time._grid(index, what)
    if not index.isin(grid).all():
        _refuse_irregular(index, grid, time, what)
    return replace(time, values=numbers_of(grid.as_unit(unit) if unit else grid).copy())


def refuse_gaps(time, index, what, code="{}.{}"):
    """Raise if steps lack between the ends of an index, with code that fills them by 0.

    `code` is about one of several indexes that were passed together, each of an `s`.
    """
    if len(time) == len(index):
        return
    grid, freq = time._grid(index, what), time._freq_code
    steps = f"range(s.index.min(), s.index.max() + 1, {freq})"
    if time.kind == "period":
        steps = "pandas.period_range(s.index.min(), s.index.max())"
    owner = what.partition("[")[0]
    fill = f"pipe(lambda s: s.reindex({steps}, fill_value=0))"
    if time.kind == "datetime":
        # pandas' asfreq refuses steps that a change of clocks moved.
        fill = f"asfreq({freq}, fill_value=0)"
        if grid.freq is None:
            fill = f"resample({freq}).asfreq(fill_value=0)"
    raise ValueError(
        f"{what} has gaps in its index: {_name(grid.difference(index))} missing at frequency "
        f"{freq}. Pass missing='interpolate' or missing='seasonal', which fill them, or fill "
        f"them, on dates of pandas, by zeros: {code.format(owner, fill)}. {_FOLDS}"
    )


def clearest(indexes):
    """The longest of several indexes, or all as one if it has no frequency but that of gaps."""
    longest = max(indexes, key=len)
    dated = isinstance(longest, pd.DatetimeIndex) and not longest.hasnans
    if dated and inferred(longest) is None:
        return longest.append(indexes).unique().sort_values()
    return longest


def kind_of(index, what):
    """Kind of an index, as :class:`TimeIndex` has it: "datetime", "period" or "integer"."""
    if isinstance(index, pd.DatetimeIndex):
        return "datetime"
    if isinstance(index, pd.PeriodIndex):
        return "period"
    if pd.api.types.is_integer_dtype(index.dtype):
        return "integer"
    wrong = index[index % 1 != 0] if index.dtype.kind == "f" else index
    remedy = "drop it, or number the steps by range(len(index))"
    if index.dtype.kind == "O":
        dates = "pandas.to_datetime(index.map(str)), with dayfirst=True if days come first"
        remedy = f"convert it by {dates}, or by pandas.to_numeric(index)"
    raise ValueError(
        f"{what} has {_name(wrong)} in its {index.name or 'index'!r}, of dtype {index.dtype}, "
        f"which is no step of time: {remedy}."
    )


def as_index(index):
    """An index, or a column, of steps: dates as such, also of text, and whole numbers."""
    kind = index.dtype.kind
    if kind == "M":  # timestamps of Arrow as well
        return pd.DatetimeIndex(index)
    if kind == "f" and (index.to_numpy(np.float64, na_value=np.nan) % 1 == 0).all():
        return pd.Index(index).astype(np.int64)
    if kind != "O" or isinstance(index, pd.MultiIndex | pd.PeriodIndex):
        return index
    index = pd.Index(index.tolist(), name=index.name)
    # A text that does not begin with year and month may be a number.
    text = index.inferred_type == "string" and index.str.match(r"\d{4}-\d\d").all()
    with suppress(ValueError):  # what is no date stays, for an error that names it
        if text or index.inferred_type == "date":
            return pd.to_datetime(index, format="ISO8601")
    return index


def numbers_of(index):
    """The entries of an index as whole numbers, as :class:`TimeIndex` keeps them."""
    return index.asi8 if hasattr(index, "asi8") else index.to_numpy(np.int64)


def _check_same_kind(kind, index, known, what):
    if kind != known.kind and not (kind == "integer" and known.kind == "position"):
        raise ValueError(
            f"{what} has an index of dtype {index.dtype}, but the forecaster was fitted on "
            f"one of kind {known.kind!r}: pass the same kind of index."
        )
    if kind == "datetime" and (index.tz is None) != (known.tz == ""):
        zones = [zone or "no time zone" for zone in (str(index.tz or ""), known.tz)]
        raise ValueError(
            f"{what} has timestamps with {zones[0]}, but the forecaster was "
            f"fitted with {zones[1]}: pass the same, by tz_localize or tz_convert."
        )
    if kind == "period" and index.freqstr != known.freq:
        raise ValueError(
            f"{what} has periods of frequency {index.freqstr!r}, but the forecaster was fitted "
            f"on {known.freq!r}: use asfreq({known.freq!r})."
        )


def _check_increasing(index, what):
    if index.hasnans:
        raise ValueError(f"{what} has an index with missing entries (NaT): drop those rows.")
    _refuse_repeated(index, what)
    if not index.is_monotonic_increasing:
        later = 1 + int(np.flatnonzero(np.asarray(index[1:] < index[:-1]))[0])
        raise ValueError(
            f"{what} has an index that is not sorted ({index[later]} comes after "
            f"{index[later - 1]}): sort by time, as sort_index() does."
        )


def _refuse_repeated(index, what):
    if not index.is_unique:
        repeated = index[index.duplicated()].unique()
        raise ValueError(
            f"{what} has an index with duplicates, {_name(repeated)}: keep one row each, for "
            "example with groupby(level=0).mean()."
        )


def _frequency(kind, index, what):
    """The frequency of an index, and parameters that it has beside its alias."""
    if kind == "period":
        return index.freqstr, None
    if kind == "integer":
        if len(index) < 2:
            return 1, None
        # The usual step; the caller names entries that do not agree with it.
        steps, counts = np.unique(np.diff(index.to_numpy(np.int64)), return_counts=True)
        return int(steps[counts.argmax()]), None
    offset = inferred(index)
    return _plain(_offset_with_gaps(index, what) if offset is None else offset, what)


def _plain(offset, what):
    """The alias of an offset; or its class, and its parameters as plain values."""
    options, name = dict(offset.kwds), type(offset).__name__
    if name == "DateOffset" and options and options.keys() <= _TIMES:
        offset = to_offset(offset.n * pd.Timedelta(**options))
    # An alias has no calendar.
    calendar = options.pop("calendar", None)
    if calendar is not None:
        # What was passed as calendar may have a week of its own.
        options["weekmask"] = " ".join(_WEEK[calendar.weekmask])
    else:
        with suppress(ValueError):
            if to_offset(offset.freqstr) == offset:
                return offset.freqstr, None
    options |= {} if offset.n == 1 else {"n": offset.n}
    for key, value in options.items():
        if isinstance(value, tuple):
            options[key] = [str(part).removesuffix(":00") for part in value]
    options = {key: value for key, value in options.items() if value not in _NOTHING}
    own = type(offset) is getattr(pd.offsets, name, None)
    if not own or not all(type(value) in (int, bool, str, list) for value in options.values()):
        raise ValueError(
            f"{what} has an index of frequency {name}, which is none of pandas.offsets with "
            "numbers and texts as parameters, and cannot be stored: pass such a one, such as "
            "CustomBusinessDay(weekmask=..., holidays=...), or number the steps by "
            "reset_index(drop=True)."
        )
    return name, options


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
    if not days.is_unique:
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
    raise ValueError(
        f"{what} has timestamps of no frequency that can be inferred, such as "
        f"{_name(index[:3])}: {_of_zone(index)}pass them with one by asfreq, or resample to "
        f"regular steps. {_FOLDS}"
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


def _refuse_irregular(index, grid, time, what):
    raise ValueError(
        f"{what} has an index that does not go on at frequency {time._freq_code} as of "
        f"{index[0]}, {_name(index[~index.isin(grid)])} for one: {_of_zone(index)}resample it "
        f"to regular steps. {_FOLDS}"
    )


def _of_zone(index):
    """Advice where times look like dates of a time zone in UTC; empty for others."""
    # Days, or longer steps, have two times: that of summer and that of winter.
    shortest = pd.Timedelta(23, "h") * (len(index) - 1)
    dated = isinstance(index, pd.DatetimeIndex) and index[-1] - index[0] >= shortest
    if not dated or len(set(index.time)) != 2:
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
    if time.kind not in ("datetime", "period"):
        raise ValueError(f"X={date!r} is a date, but series have none: pass a number of steps.")
    last = _moment(date)
    if last.tz is not None and not time.tz:
        raise ValueError(
            f"X={date!r} has a time zone, but the series have none: drop it with "
            "tz_localize(None)."
        )
    if time.kind == "period":
        ordinal = pd.Period(last, freq=time.freq).ordinal
        return max(0, (ordinal - int(time.values[0])) // time.offset.n + 1)
    if last.tz is None and time.tz:
        last = last.tz_localize(time.tz, ambiguous=False, nonexistent="shift_forward")
    steps = time.between(0, len(time) + time._n_later(last, f"X={date!r}"))
    return int((steps <= last).sum())  # of any resolution


def _moment(date):
    """The last moment of a date."""
    try:
        if type(date) is datetime.date:
            moment = pd.Period(date, "D")
        elif isinstance(date, str) and not _HAS_ZONE.search(date):
            # As long as what is written: a day, a month, a quarter, a year.
            moment = pd.Period(date)
        else:
            moment = date if isinstance(date, pd.Period) else pd.Timestamp(date)
    except ValueError as error:
        raise ValueError(_NO_DATE.format(date)) from error
    if moment is pd.NaT:
        raise ValueError(_NO_DATE.format(date))
    return moment.end_time if isinstance(moment, pd.Period) else moment
