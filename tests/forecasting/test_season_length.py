"""How many steps a season has."""

import numpy as np
import pandas as pd
import pytest
from pandas import offsets

from sklearn_attention.forecasting._forms import read_series
from sklearn_attention.forecasting._season_length import (
    autocorrelation,
    choose_season_length,
    list_seasons,
    mean_autocorrelation,
    season_of_autocorrelation,
)


@pytest.mark.parametrize(
    ("freq", "expected"),
    [
        (offsets.CustomBusinessDay(weekmask="Mon Tue Wed Sun", holidays=["2000-05-01"]), [4]),
        (offsets.CustomBusinessDay(weekmask="Mon Tue Wed Thu Fri Sat", n=6), [365.25 / 7]),
        (offsets.BusinessHour(start="08:00", end="20:00"), [12, 60]),
        (offsets.CustomBusinessHour(start="22:00", end="06:00", weekmask="1111110"), [8, 48]),
        (offsets.DateOffset(months=1), [12]), (offsets.DateOffset(n=2, months=3), [2]),
        (offsets.DateOffset(months=1, days=3), [1]), (offsets.DateOffset(years=1), [1]),
    ],
)  # fmt: skip
def test_of_calendars(freq, expected):
    index = pd.date_range("2000-01-01", periods=200, freq=freq)
    noise = np.random.default_rng(0).normal(size=200)
    table = read_series(pd.Series(noise, index))
    np.testing.assert_allclose(list_seasons(table, "auto"), expected)
    assert choose_season_length(table, "auto") == int(expected[0])


def shown_by(*series):
    """Season that series show."""
    return season_of_autocorrelation(mean_autocorrelation(series))


def test_of_the_autocorrelation():
    rng, steps = np.random.default_rng(0), np.arange(400)
    line = 1e6 + 3 * steps + rng.normal(size=400)
    for period in (4, 12):
        assert shown_by(line + 5 * np.sin(2 * np.pi * steps / period)) == period
    for values in (line, np.ones(50), 3.0 * np.arange(50), np.ones(3)):
        assert shown_by(values) == 1


def test_a_peak_that_does_not_come_again_is_chance():
    values = np.random.default_rng(0).normal(size=300)
    values[40:60] += 20 * np.hanning(20)
    values[100:120] += 20 * np.hanning(20)
    assert autocorrelation(values)[55:65].max() > 0.3
    assert shown_by(values) == 1


def test_of_several_series_it_is_that_of_most():
    rng, steps = np.random.default_rng(0), np.arange(120)
    series = [rng.normal(size=120) + 2 * np.sin(2 * np.pi * (steps + i) / 6) for i in range(10)]
    other = 3 * np.sin(2 * np.pi * steps / 24)
    assert shown_by(other, *series) == shown_by(*series, other) == 6
    assert shown_by(np.ones(120), *series) == 6
    # Shorter ones are not asked.
    assert shown_by(other, *(own[:100] for own in series)) == 24


def make(freq, n, period=None, *, periods=False):
    values = np.random.default_rng(0).normal(size=n)
    if period is not None:
        values += 5 * np.sin(2 * np.pi * np.arange(n) / period)
    index = pd.date_range("2000-01-03", periods=n, freq=freq)
    return read_series(pd.Series(values, index.to_period() if periods else index))


@pytest.mark.parametrize(
    ("freq", "n", "expected"),
    [
        ("D", 1000, [7.0, 365.25]),
        ("D", 700, [7.0]),  # not two years
        ("h", 300, [24.0]),  # not two weeks
        ("s", 200, [1.0]),
        ("10s", 1000, [360.0]),
        ("QE-NOV", 8, [4.0]),
    ],
)
def test_several_of_the_frequency(freq, n, expected):
    np.testing.assert_allclose(list_seasons(make(freq, n), "auto"), expected)
    if freq in ("D", "QE-NOV"):
        np.testing.assert_allclose(list_seasons(make(freq, n, periods=True), "auto"), expected)


def test_what_the_values_show_comes_after_the_usual_one():
    found = list_seasons(make("MS", 300, period=17.3), "auto")
    assert found[0] == 12
    assert found[1] == pytest.approx(17.3, abs=0.05)
    assert len(found) == 2
    # But neither twice, nor a multiple, nor one that is not there three times.
    for period in (12.2, 24, 36.3, 110):
        assert list_seasons(make("MS", 300, period=period), "auto") == [12.0]
