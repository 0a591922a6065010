"""Seasonal forecasts against loops."""

import numpy as np
import pytest
from forecasting_training import check_knows_nothing_later

from sklearn_attention.forecasting import Origins, Table, seasonal_naive
from sklearn_attention.forecasting._profiles import SeasonalProfiles

HORIZON = 9
COUNTS = 2, 4, 8


def make(n=70, seed=0):
    return np.random.default_rng(seed).normal(size=n)


def slow_season(values, known, step, age, m):
    """The step of a season so many seasons before the last one."""
    whole = int(np.ceil((step + 1) / m - 1e-9)) + age
    place = known + step - round(m * whole)
    return values[place] if place >= 0 else np.nan


def slow_level(values, known, age, m):
    """Mean of the season that ends so many seasons ago."""
    end = known - round(m * age)
    return values[end - round(m) : end].mean() if end >= round(m) else np.nan


@pytest.mark.parametrize("m", [4, 7, 6.4, 12])
def test_are_those_of_a_loop(m):
    series = [make(), make(60, seed=1)]
    origins = Origins.within(Table.of(series), HORIZON, lookback=1, ahead=0)
    profiles = SeasonalProfiles(m)
    found = profiles.forecast(origins)
    assert len(profiles.names) == found.shape[1] == 1 + len(COUNTS)
    for row, i, known in zip(found, origins.series, origins.known, strict=True):
        values = series[i]
        seasons = np.array(
            [
                [slow_season(values, known, step, age, m) for step in range(HORIZON)]
                for age in range(8)
            ]
        )
        np.testing.assert_array_equal(row[0], seasons[0])
        levels = np.array([slow_level(values, known, age, m) for age in range(8)])
        relative = seasons - levels[:, None]
        for forecast, count in zip(row[1:], COUNTS, strict=True):
            expected = relative[:count].mean(axis=0) + levels[0]
            np.testing.assert_allclose(forecast, expected, atol=1e-12)


def test_only_what_is_known_is_repeated():
    values = make()
    profiles = SeasonalProfiles(7.3)
    origin = Origins.at_ends(Table.of([values]), HORIZON).at(np.array([0]), np.array([65]))
    changed = np.where(np.arange(70) < 65, values, 1e6)
    again = Origins.at_ends(Table.of([changed]), HORIZON).at(np.array([0]), np.array([65]))
    np.testing.assert_array_equal(profiles.forecast(again), profiles.forecast(origin))


def test_a_pattern_is_repeated_at_the_level_of_today():
    steps = np.arange(60)
    pattern = np.array([0.0, 3.0, -1.0, -2.0])
    level = 10.0 * (steps >= 56)
    found = SeasonalProfiles(4).forecast(
        Origins.at_ends(Table.of([level + pattern[steps % 4]]), 4)
    )
    np.testing.assert_allclose(found[0], np.tile(10 + pattern, (4, 1)))


def test_nothing_later_matters():
    table = Table.of([make(), 5 + make(40, seed=1)])
    check_knows_nothing_later(SeasonalProfiles(6.4).forecast, table, HORIZON)


def test_seasonal_naive_repeats_the_last_season():
    past = np.arange(12.0).reshape(2, 6)
    for season in range(1, 7):
        expected = [[row[6 - season + step % season] for step in range(9)] for row in past]
        np.testing.assert_array_equal(seasonal_naive(past, 9, season), expected)
    with pytest.raises(ValueError, match="season_length=7 is longer"):
        seasonal_naive(past, 2, 7)
