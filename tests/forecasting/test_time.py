"""What the steps of a series are, and how they go on."""

import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import skops.io
from pandas import offsets
from slow_cases import slow_but

from sklearn_attention import _blocks
from sklearn_attention.forecasting import TimeIndex
from sklearn_attention.forecasting._inputs import count_steps_until
from sklearn_attention.forecasting._time import as_index, kind_of

STORED_BY_PANDAS_3 = pytest.mark.skipif(
    pd.__version__ < "3", reason="pandas 2 does not make this offset anew from its parts"
)


@pytest.mark.parametrize(("tz", "known"), [(None, True), ("Europe/Berlin", False)])
@pytest.mark.parametrize(
    "freq",
    slow_but(["ME", "W-MON", "10min"], ["ME", "B", "W-MON", "10min", "h", "QS", "2MS", "BME"]),
)
def test_it_continues_as_pandas_does(freq, tz, known):
    dates = pd.date_range("2000-01-31", periods=60, freq=freq, tz=tz, name="t")
    seen = dates[:40] if known else pd.DatetimeIndex(dates[:40], freq=None)
    time = TimeIndex.read(seen)
    for start, stop in [(0, 40), (0, 60), (40, 60), (45, 60), (39, 41), (3, 3)]:
        found = time.index_between(start, stop)
        pd.testing.assert_index_equal(found, dates[start:stop], exact=True)
        # Without one, another name of the same frequency may be found: QS-OCT is QS-JAN.
        assert found.freq == dates.freq if known else found.freq is not None
        assert found.name == "t"
    np.testing.assert_array_equal(time.positions(dates[[3, 50, 44]]), [3, 50, 44])
    np.testing.assert_array_equal(time.extended(20).values, dates.asi8)


@pytest.mark.parametrize("freq", ["D", "W-SUN", "MS"])
@pytest.mark.parametrize(
    ("tz", "start"), [("America/Santiago", "2024-06-02"), ("America/Havana", "2024-01-07")]
)
def test_days_go_on_where_clocks_change_at_midnight(tz, start, freq):
    clock = pd.date_range(start, periods=300, freq=freq)
    # Of what the clock repeats the first is meant, as in resample of pandas.
    first = np.ones(300, dtype=bool)
    days = clock.tz_localize(tz, nonexistent="shift_forward", ambiguous=first)
    moved = np.flatnonzero(days.hour)
    for begin in (0, *moved[:1]):  # the series may begin, and end, by a step that was moved
        for n in (9, *moved[:1] + 1):
            time, then = TimeIndex.read(days[begin:][: max(n, 3)]), days[begin:]
            assert time.index_between(0, len(then)).equals(then)
            np.testing.assert_array_equal(time.positions(then[[-1, 11]]), [len(then) - 1, 11])
            np.testing.assert_array_equal(time.extended_to(then[-1]).values, then.asi8)


def test_a_date_that_the_clock_skips_or_repeats_may_be_the_last():
    days = pd.date_range("2024-03-01", "2024-09-20", freq="D")
    days = days.tz_localize("America/Santiago", nonexistent="shift_forward")
    hours = pd.date_range("2024-04-01", periods=400, freq="h", tz="America/Santiago")
    time = TimeIndex.read(days[:9])
    assert count_steps_until(time, pd.Timestamp("2024-09-08")) == 192
    assert count_steps_until(time, "2024-04-06") == 37
    assert count_steps_until(TimeIndex.read(hours[:9]), "2024-04-06") == 6 * 24 + 1


@pytest.mark.parametrize(
    "freq",
    [
        offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu Sun", n=2),
        offsets.CustomBusinessMonthEnd(holidays=["2024-12-31"]),
        offsets.CustomBusinessHour(start=["09:00", "14:00"], end=["12:00", "18:00"]),
        offsets.DateOffset(hours=6), offsets.Easter(),
        pytest.param(offsets.DateOffset(months=3, day=15), marks=STORED_BY_PANDAS_3),
    ],
    ids=repr,
)  # fmt: skip
def test_frequencies_keep_their_parameters(freq):
    dates = pd.date_range("2024-01-15", periods=60, freq=freq, tz="Europe/Berlin")
    time = TimeIndex.read(dates[:40])
    stored = skops.io.dumps(asdict(time))
    types = skops.io.get_untrusted_types(data=stored)
    time = TimeIndex(**skops.io.loads(stored, trusted=types))
    assert time.index_between(0, 60).equals(dates)
    assert time.index_between(45, 60).equals(dates[45:])
    np.testing.assert_array_equal(time.positions(dates[[50, 44]]), [50, 44])
    later = TimeIndex.read(pd.DatetimeIndex(dates[40:42], freq=None), reference=time)
    assert later.index_between(0, 20).equals(dates[40:])


@pytest.mark.parametrize("tz", [None, "America/Santiago"])
@pytest.mark.parametrize(
    ("start", "freq", "found"),
    [
        ("2020-03-15", offsets.DateOffset(years=1), "<DateOffset: months=12>"),
        (
            "2024-01-01", offsets.CustomBusinessDay(weekmask="Sun Mon Tue Wed Thu"),
            "<CustomBusinessDay>",
        ),
    ],
)  # fmt: skip
def test_days_of_months_and_weeks_are_recognised(start, freq, found, tz):
    dates = pd.date_range(start, periods=60, freq=freq)
    dates = pd.DatetimeIndex(dates.tz_localize(tz, nonexistent="shift_forward"), freq=None)
    time = TimeIndex.read(dates[:30])
    assert time.index_between(0, 60).equals(dates)
    series = pd.Series(np.arange(30.0), dates[:30]).drop(dates[7])
    with pytest.raises(ValueError, match=f"missing at frequency .*{re.escape(found)}"):
        read_whole(series.index)


@pytest.mark.parametrize(("freq", "tz"), [("MS", "UTC"), ("D", None), ("ME", None)])
def test_local_dates_in_utc_are_refused(freq, tz):
    local = pd.date_range("2024-01-01", periods=120, freq=freq, tz="Europe/Berlin")
    dates = pd.DatetimeIndex(local.tz_convert(tz), freq=None)
    with pytest.raises(ValueError, match="dates of a time zone, stored in UTC") as error:
        TimeIndex.read(dates)
    advised = re.search(r"as by index\.(.*); else", str(error.value))[1]
    found = TimeIndex.read(eval(f"dates.{advised}")).index_between(0, 120)
    assert found.equals(local)


DAYS = pd.date_range("2024-01-01", periods=30, freq="B")


def read_whole(index, reference=None):
    """An index that must not lack steps."""
    time = TimeIndex.read(index, reference=reference)
    time.refuse_gaps(time.find(index), "y")
    return time


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (DAYS.delete([4, 9]), "gaps.*2024-01-05, 2024-01-12 missing.*'B'.*missing='zero'"),
        (pd.Index([1, 2, 3, 5, 6]), "gaps.*4 missing at frequency 1"),
        (DAYS.append(DAYS[:2]), "duplicates, 2024-01-01, 2024-01-02.*groupby"),
        (DAYS[[0, 2, 1, 3]], "not sorted.*2024-01-02.*after 2024-01-03.*sort_index"),
        (
            pd.to_datetime(["2000-01-03", "2000-02-05", "2000-03-27", "2001-01-30"]),
            "no frequency.*2000-01-03.*widest gap between 2000-03-27, 2001-01-30.*asfreq",
        ),
        (pd.Index(["a", "b"]), r"a, b in its 'index'.*dtype.*to_datetime\(index.map\(str\)"),
        (pd.Index([1.0, 2.5], name="year"), "2.5 in its 'year', of dtype float64.*number the"),
        (pd.Index(["8", "9"]), r"8, 9 in its 'index'.*pandas.to_numeric\(index\)"),
    ],
)
def test_irregular_indexes_are_refused(index, message):
    with pytest.raises(ValueError, match=f"(?s)y has.*{message}"):
        read_whole(index)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (DAYS.tz_localize("UTC"), "UTC., but the series are datetime64.[un]s.: .*tz_localize"),
        (pd.DatetimeIndex(["2024-01-06", "2023-12-29"]), "2024-01-06, 2023-12-29"),
        (pd.RangeIndex(3), "int64, but the series are datetime64"),
        (DAYS.to_period("D"), "period.D., but the series are datetime64"),
    ],
)
def test_foreign_steps_are_refused(index, message):
    with pytest.raises(ValueError, match=f"X has.*{message}"):
        TimeIndex.read(DAYS).positions(index)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024-03-31", periods=40, freq="10min", tz="Europe/Berlin"),
        pd.period_range("2015-01", periods=40, freq="M"),
        pd.Index(np.arange(40) * 3 + 7),
    ],
    ids=["times", "periods", "numbers"],
)
def test_steps_are_found_later_and_not_before(index):
    time = TimeIndex.read(index[3:30])
    assert time.extended_to(index[36]).index.equals(index[3:37])
    assert time.extended_to(index[12]) is time
    np.testing.assert_array_equal(time.find(index[[36, 3, 29]]), [33, 0, 26])
    assert (time.find(index[:3]) < 0).all()
    if index.dtype.kind != "i":
        assert time.find(index[[3]].insert(1, pd.NaT)).tolist() == [0, -1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pd.Index([2001.0, 2002.0]), [2001, 2002]),
        (pd.CategoricalIndex(["2024-01-01", "2024-01-02"]), DAYS[:2]),
        (pd.Index(["2024-01-01T00:00Z", "2024-01-02T00:00Z"]), DAYS[:2].tz_localize("UTC")),
        (pd.Index([day.date() for day in DAYS]), DAYS),
        (pd.Index(DAYS.astype("timestamp[us][pyarrow]")), DAYS),
        (DAYS.to_period("D").astype(object), DAYS.to_period("D")),
    ],
)
def test_steps_written_in_other_ways(given, expected):
    found = as_index(given.rename("when"))
    assert found.name == "when"
    assert kind_of(found, "y") == kind_of(pd.Index(expected), "y")
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    "given",
    [
        ["2024", "2025"], ["20240101", "20240102"], ["2024-01-01", "2024-01-32"], [1.0, 2.5],
        ["2024-03-30T00:00+01:00", "2024-03-31T00:00+02:00"], [None, DAYS[0].date()],
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:In a future version of pandas, parsing")
def test_what_may_be_no_date_stays(given):
    assert list(as_index(pd.Index(given))) == given


def test_years_that_are_not_in_order_are_no_steps_back():
    years = pd.date_range("1900", periods=120, freq="YS", tz="Europe/Berlin")
    order = np.append([119, 0], np.random.default_rng(0).permutation(np.arange(1, 119)))
    with pytest.raises(ValueError, match=r"y has an index that is not sorted \(1900-01-01"):
        TimeIndex.read(years[order])


def test_steps_that_do_not_fit_with_all_arrays_of_them_are_refused(monkeypatch):
    monkeypatch.setattr(_blocks, "_memory_limit", lambda: 1e6)
    time = TimeIndex.read(pd.date_range("2024", periods=3))
    with pytest.raises(MemoryError, match="pass fewer steps, without a date far off"):
        time.extended_to(pd.Timestamp("2124"))
