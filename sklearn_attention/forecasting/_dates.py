"""Dates in the place of a number of steps."""

import datetime
import re

import numpy as np
import pandas as pd

# A text ends with a time zone, which periods would drop.
_HAS_ZONE = re.compile(r":\d\d.*([+-]\d\d(:?\d\d)?|[A-Za-z]+)$")
_NO_DATE = (
    "X={!r} is no date: pass one such as '2024-06', a number of steps, an index, or features."
)


def is_date(X):
    """Whether something is a date, as text or as any of the objects for dates."""
    return isinstance(X, str | datetime.date | np.datetime64 | pd.Period)


def steps_until(time, date):
    """How many steps of an index are not after a date, counted from its first step.

    A text or a period stands for its end: "2024-06" and "2024" for that of the month and of the
    year, as in slices of pandas.
    """
    if time.kind not in ("datetime", "period"):
        raise ValueError(
            f"X={date!r} is a date, but the series have none: pass the number of steps."
        )
    last = _moment(date)
    if time.kind == "period":
        return _periods_until(time, last)
    if last.tz is None and time.tz:
        last = last.tz_localize(time.tz)
    first, end = time.between(0, 1)[0], time.between(len(time) - 1, len(time))[0]
    if (last.tz is None) != (end.tz is None):
        raise ValueError(
            f"X={date!r} has a time zone, but the series have none: drop it with "
            "tz_localize(None)."
        )
    last = last.tz_convert(time.tz) if time.tz else last
    if last < first:
        return 0
    if last <= end:
        return int(time.between(0, len(time)).searchsorted(last, side="right"))
    return len(time) - 1 + len(pd.date_range(end, last, freq=time.freq))


def _periods_until(time, last):
    if last.tz is not None:
        raise ValueError(
            f"X={last!r} has a time zone, but the series have periods, which have none: drop "
            "it with tz_localize(None)."
        )
    ordinal = pd.Period(last, freq=time.freq).ordinal
    return max(0, (ordinal - int(time.values[0])) // time.offset.n + 1)


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
