"""How many steps a season has."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.forecasting._read import read_series
from sklearn_attention.forecasting._season import (
    _refined,
    season_of,
    season_of_values,
    seasons_of,
)


@pytest.mark.parametrize(
    ("freq", "expected"),
    [
        ("MS", 12), ("ME", 12), ("BME", 12), ("QS", 4), ("QE-NOV", 4), ("W-MON", 52),
        ("B", 5), ("D", 7), ("h", 24), ("10min", 144), ("30min", 48), ("15s", 240),
        ("2MS", 6), ("2h", 12),
    ],
)  # fmt: skip
def test_of_the_frequency(freq, expected):
    index = pd.date_range("2000-01-01", periods=2 * expected, freq=freq)
    noise = np.random.default_rng(0).normal(size=len(index))
    assert season_of(read_series(pd.Series(noise, index)), "auto") == expected
    if freq in ("MS", "QE-NOV"):
        periods = pd.Series(noise, index.to_period())
        assert season_of(read_series(periods), "auto") == expected


@pytest.mark.parametrize("period", [4, 7, 12, 24])
def test_of_the_autocorrelation(period):
    steps = np.arange(400)
    noise = np.random.default_rng(0).normal(size=400)
    values = 1e6 + 3 * steps + 5 * np.sin(2 * np.pi * steps / period) + noise
    assert season_of_values(values) == period


def test_of_a_period_that_is_no_whole_number_of_steps():
    for name in ("sine", "square", "growing_sine"):
        assert season_of_values(make_periodic_series(name, 1000)) == 63


def test_there_may_be_none():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=300), np.ones(50), 3.0 * np.arange(50), np.ones(3)):
        assert season_of_values(values) == 1


def test_a_year_of_weeks_needs_two():
    index = pd.date_range("2000-01-03", periods=60, freq="W-MON")
    values = np.sin(2 * np.pi * np.arange(60) / 6)
    assert season_of(read_series(pd.Series(values, index)), "auto") == 6


def test_as_given():
    assert season_of(read_series(np.ones(9)), 5) == 5
    with pytest.raises(ValueError, match="season_length=0"):
        season_of(read_series(np.ones(9)), 0)


class TestSeveral:
    def make(self, freq, n, period=None):
        values = np.random.default_rng(0).normal(size=n)
        if period is not None:
            values += 5 * np.sin(2 * np.pi * np.arange(n) / period)
        return read_series(pd.Series(values, pd.date_range("2000-01-03", periods=n, freq=freq)))

    @pytest.mark.parametrize(
        ("freq", "n", "expected"),
        [
            ("MS", 60, [12.0]),
            ("D", 1000, [7.0, 365.25]),
            ("D", 700, [7.0]),  # not two years
            ("h", 1000, [24.0, 168.0]),
            ("h", 300, [24.0]),  # not two weeks
            ("W-MON", 200, [365.25 / 7]),
            ("2W-MON", 100, [365.25 / 14]),
            ("s", 200, [1.0]),
            ("10s", 1000, [360.0]),
        ],
    )
    def test_of_the_frequency(self, freq, n, expected):
        np.testing.assert_allclose(seasons_of(self.make(freq, n), "auto"), expected)

    def test_what_the_values_show_comes_after_the_usual_one(self):
        found = seasons_of(self.make("MS", 300, period=17.3), "auto")
        assert found[0] == 12
        assert found[1] == pytest.approx(17.3, abs=0.05)
        assert len(found) == 2

    def test_what_the_values_show_is_not_named_twice(self):
        assert seasons_of(self.make("MS", 300, period=12.2), "auto") == [12.0]

    def test_of_plain_values(self):
        values = 5 * np.sin(2 * np.pi * np.arange(300) / 17.3)
        assert seasons_of(read_series(values), "auto") == [pytest.approx(17.3, abs=0.05)]
        assert seasons_of(read_series(np.arange(9.0)), "auto") == [1.0]

    def test_as_given(self):
        assert seasons_of(self.make("MS", 60), 5.5) == [5.5]


class TestRefined:
    def test_a_square_wave(self):
        values = np.where(np.sin(0.137 * np.arange(1000)) >= 0, 1.0, -1.0)
        season = season_of_values(values)
        assert _refined(values, season) == pytest.approx(2 * np.pi / 0.137, abs=0.05)

    @pytest.mark.parametrize("period", [6.4, 23.7, 101.3])
    def test_a_noisy_sine(self, period):
        noise = np.random.default_rng(0).normal(size=1000)
        values = np.sin(2 * np.pi * np.arange(1000) / period) + 0.3 * noise
        found = _refined(values, round(period))
        assert found == pytest.approx(period, rel=0.005)

    def test_a_whole_number_stays(self):
        values = np.tile(np.random.default_rng(0).normal(size=12), 20)
        assert _refined(values, 12) == pytest.approx(12, abs=0.01)
