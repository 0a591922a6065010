"""Frequencies of timestamps, inferred and stored, and the steps at a frequency."""

import numpy as np
import pandas as pd
import pytest
from pandas.tseries.frequencies import to_offset

from sklearn_attention.forecasting._frequency import (
    check_steps,
    date_range,
    frequency_of,
    infer_offset,
    list_steps,
    time_zone_advice,
)


@pytest.mark.parametrize("freq", ["h", "15min", "D", "B", "W-WED", "MS", "ME", "QS-FEB", "YS"])
def test_a_frequency_is_inferred_with_and_without_gaps(freq):
    index = pd.DatetimeIndex(pd.date_range("2020-01-01", periods=40, freq=freq).to_numpy())
    assert to_offset(frequency_of("datetime", index, "y")) == to_offset(freq)
    assert to_offset(frequency_of("datetime", index.delete([5, 6, 30]), "y")) == to_offset(freq)


def test_the_same_day_of_each_month_and_some_weekdays_have_offsets():
    tenths = pd.date_range("2020-01-10", periods=12, freq=pd.DateOffset(months=1))
    assert infer_offset(pd.DatetimeIndex(tenths.to_numpy())) == pd.DateOffset(months=1)
    days = pd.date_range("2024-01-01", periods=60, freq="D")
    open_days = days[days.day_of_week.isin([1, 3, 5])]
    offset = infer_offset(pd.DatetimeIndex(open_days.to_numpy()))
    assert offset.weekmask == "Tue Thu Sat"
    # What is stored has the days of the week as plain text.
    assert frequency_of("datetime", open_days, "y") == offset


def test_timestamps_without_a_frequency_are_named():
    index = pd.DatetimeIndex(["2024-01-01", "2024-01-02", "2024-01-15", "2024-03-01"])
    with pytest.raises(ValueError, match="between 2024-01-15, 2024-03-01"):
        frequency_of("datetime", index, "y")


def test_steps_follow_the_local_clock_or_the_time_that_has_passed():
    days = pd.date_range("2024-03-29", periods=2, freq="D", tz="Europe/Berlin")
    continued = date_range(days, to_offset("D"), n=4)
    assert set(continued.hour) == {0}
    hours = date_range(days, to_offset("24h"), n=4)
    assert list(hours.hour) == [0, 0, 0, 1]
    # Two o'clock is skipped on one day, and is there on the next.
    nights = pd.date_range("2024-03-30 02:00", periods=1, tz="Europe/Berlin")
    assert list(date_range(nights, to_offset("D"), n=3).hour) == [2, 3, 2]


def test_dates_of_a_time_zone_in_utc_are_recognised():
    local = pd.date_range("2024-03-25", periods=12, freq="D", tz="Europe/Berlin")
    assert "tz_convert('Europe/Berlin')" in time_zone_advice(local.tz_convert("UTC"))
    assert time_zone_advice(local) == ""


def test_messages_name_five_steps_and_count_the_others():
    steps = pd.date_range("2024-01-01", periods=7)
    assert list_steps(steps[:2]) == "2024-01-01, 2024-01-02"
    assert list_steps(steps).endswith("2024-01-05 and 2 more")
    assert list_steps(pd.Index(np.arange(2))) == "0, 1"


def test_steps_that_do_not_fit_in_memory_are_refused():
    with pytest.raises(MemoryError, match="pass fewer steps"):
        check_steps("y", 10**14)
