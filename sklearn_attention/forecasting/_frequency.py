"""Frequencies of timestamps: how they are inferred, and the steps at a frequency.

A frequency is pandas' offset, such as `MonthBegin`, or the alias of one, such as "MS". In all
functions `what` is the name of the user's data in error messages, such as "y".
"""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from .._blocks import check_memory

# Advice in messages about gaps and order, since splits of other kinds leave out rows, or put
# later rows before earlier ones.
CV_ADVICE = (
    "In cross-validation pass cv=TimeSeriesSplit(...), whose folds are stretches of time."
)
_MAX_NAMED = 5  # A message names up to five steps, and counts further ones.
_MIDNIGHT = " 00:00:00"
_WEEKDAYS = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
# Units of a DateOffset that add up to a fixed duration; the others are calendar units.
_CLOCK_UNITS = {"hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"}


def frequency_of(kind, index, what):
    """Return the frequency of an index, as :class:`TimeIndex` stores it."""
    if kind == "period":
        return index.freqstr
    if kind == "integer":
        # The most frequent difference; the caller names the entries that do not agree with it.
        differences, counts = np.unique(np.diff(as_integers(index)), return_counts=True)
        return int(differences[counts.argmax()]) if len(differences) else 1
    offset = infer_offset(index)
    return _storable(_infer_despite_gaps(index, what) if offset is None else offset)


def infer_offset(index):
    """Return the offset of timestamps without gaps; None if no frequency fits."""
    if index.freq is not None or len(index) < 3:
        return index.freq
    days = index.tz_localize(None).normalize()
    with warnings.catch_warnings():
        # pandas announces that it will return an offset in the place of the alias, which
        # `to_offset` accepts as well.
        warnings.simplefilter("ignore")
        # Steps that a change of clocks moved are regular if only their dates are compared.
        freq = pd.infer_freq(index) or pd.infer_freq(days)
    return _offset_of_days(days) if freq is None else to_offset(freq)


def _offset_of_days(days):
    """Return the offset of the same day of each month, or of some weekdays; None for others."""
    if not days.is_unique or not days.is_monotonic_increasing:
        return None
    if days.day.nunique() == 1:
        months = 12 * days.year + days.month
        offset = pd.DateOffset(months=int(months[1] - months[0]))
    else:
        counts = np.bincount(days.day_of_week, minlength=7)
        if counts[counts > 0].min() < 2:
            return None
        offset = pd.offsets.CustomBusinessDay(weekmask=" ".join(_WEEKDAYS[counts > 0]))
    regular = pd.date_range(days[0], periods=len(days), freq=offset)
    return offset if regular.equals(days) else None


def _infer_despite_gaps(index, what):
    """Return the offset of a stretch of timestamps without gaps, if it fits all timestamps.

    Halves of the index are tried first, then quarters, and so on.
    """
    n, size = len(index), len(index) // 2
    while size >= 3:
        for start in range(0, n - size + 1, size):
            offset = infer_offset(index[start : start + size])
            if offset is None:
                continue
            grid = date_range(index, offset, index[-1], what=what)
            if len(grid) <= 2 * n and index.isin(grid).all():
                return offset
        size //= 2
    widest = int(np.diff(index.asi8).argmax())
    raise ValueError(
        f"{what} has timestamps of no frequency that can be inferred, such as "
        f"{list_steps(index[:3])}, with the widest gap between "
        f"{list_steps(index[widest : widest + 2])}: {time_zone_advice(index)}correct them if "
        "they are mistyped, pass them with a frequency by asfreq, or resample to regular "
        f"steps. {CV_ADVICE}"
    )


def _storable(offset):
    """Return the alias of an offset, or the offset if it has parameters that no alias has.

    Such parameters are holidays, for example.
    """
    if type(offset) is pd.DateOffset and offset.kwds and offset.kwds.keys() <= _CLOCK_UNITS:
        offset = to_offset(offset.n * pd.Timedelta(**offset.kwds))
    parameters = dict(offset.kwds)
    calendar = parameters.pop("calendar", None)
    if calendar is not None:
        # The days of the week may be those of the calendar, which pandas does not store.
        parameters["weekmask"] = " ".join(_WEEKDAYS[calendar.weekmask])
        return type(offset)(offset.n, **parameters)
    with suppress(ValueError):
        if to_offset(offset.freqstr) == offset:
            return offset.freqstr
    return offset


def date_range(index, offset, until=None, n=None, what="the index"):
    """Return regular timestamps from the first entry of an index.

    Parameters
    ----------
    index : DatetimeIndex
        Its first entries tell the time zone and the time of day.
    offset : DateOffset
        Frequency.
    until : Timestamp, default=None
        Last moment; None if `n` is passed.
    n : int, default=None
        Number of timestamps.
    what : str, default="the index"
    """
    if until is not None and isinstance(offset, pd.offsets.Tick):
        n_steps = int(1e9 * (until.timestamp() - index[0].timestamp()) / offset.nanos)
        check_steps(f"{what} up to {until} at frequency {offset.freqstr!r}", n_steps)
    if index.tz is None:
        return pd.date_range(index[0], until, n, freq=offset)
    # Days and longer steps follow the local clock, shorter steps follow UTC. A time that the
    # local clock skips is moved to the moment at which the clock goes on. It is the only time
    # of day that is later than others. Of a time that the clock repeats the first is meant.
    follows_utc = isinstance(offset, pd.offsets.Tick) and not isinstance(offset, pd.offsets.Day)
    zone = "UTC" if follows_utc else index.tz
    clock_times = index.tz_convert(zone).tz_localize(None)
    first, days = clock_times[0], clock_times.normalize()
    if not (follows_utc or isinstance(offset, pd.offsets.BusinessHour)):
        # The first entry may have been moved: the earliest time of day is the regular one.
        first = days[0] + (clock_times - days).min()
    if until is not None:
        until = until.tz_convert(zone).tz_localize(None)
    regular = pd.date_range(first, until, n, freq=offset)
    timestamps = regular.tz_localize(
        zone, ambiguous=np.ones(len(regular), dtype=bool), nonexistent="shift_forward"
    )
    # pandas knows no frequency of timestamps that were moved.
    were_moved = regular.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").hasnans
    return pd.DatetimeIndex(
        timestamps.tz_convert(index.tz), freq=None if were_moved else offset
    )


def check_steps(what, *shape):
    """Raise MemoryError if `shape` numbers, with the arrays made of them, do not fit."""
    check_memory(what, (*shape, 16), "pass fewer steps, without a date far off, or longer ones")


def time_zone_advice(index):
    """Return advice if times look like dates of a time zone in UTC, otherwise an empty text."""
    # Dates of a time zone, stored in UTC, have two times of day: in summer and in winter.
    if not isinstance(index, pd.DatetimeIndex) or len(set(index.time)) != 2:
        return ""
    if (index[-1] - index[0]) / (len(index) - 1) < pd.Timedelta(23, "h"):
        return ""
    localize = "" if index.tz else "tz_localize('UTC')."
    return (
        "if these are dates of a time zone, stored in UTC, convert them to it, as by index."
        f"{localize}tz_convert('Europe/Berlin'); else "
    )


def list_steps(index):
    """List the first entries of an index for a message, and count the others."""
    names = [str(entry) for entry in index[:_MAX_NAMED]]
    if all(name.endswith(_MIDNIGHT) for name in names):
        names = [name.removesuffix(_MIDNIGHT) for name in names]
    n_unnamed = len(index) - len(names)
    return ", ".join(names) + (f" and {n_unnamed} more" if n_unnamed else "")


def as_integers(index):
    """Return the entries of an index as the whole numbers that :class:`TimeIndex` stores."""
    return index.asi8 if hasattr(index, "asi8") else index.to_numpy(np.int64)
