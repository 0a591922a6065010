"""What missing values are filled with."""

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_series

from sklearn_attention import KernelForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._missing import fill_line, fill_seasonal, fill_values

STEPS = np.arange(60)
EXACT = 5 + 0.3 * STEPS + np.tile([0.0, 4.0, -1.0, 2.0, 7.0, 1.0], 10)


def without(values, places):
    values = values.copy()
    values[places] = np.nan
    return values


def slow_fill(values, season):
    """Each missing value from one season before and one after, by loops."""
    n, filled = len(values), values.copy()
    for t in np.flatnonzero(np.isnan(values)):
        guesses = []
        for other in (-season, season):
            pairs = [
                (u, values[u] - values[u + other])
                for u in range(n)
                if 0 <= u + other < n and not np.isnan(values[u] - values[u + other])
            ]
            beside = values[t + other] if 0 <= t + other < n else np.nan
            if pairs and not np.isnan(beside):
                guesses.append(beside + np.interp(t, *zip(*pairs, strict=True)))
        filled[t] = np.mean(guesses) if guesses else fill_line(values)[t]
    return filled


@pytest.mark.parametrize("places", [[9], [20, 21, 22], range(12, 20), [3, 10, 16], [58], [1]])
def test_a_trend_and_a_season_are_filled_in_exactly(places):
    found = fill_seasonal(without(EXACT, list(places)), 6)
    np.testing.assert_allclose(found, EXACT)
    assert np.abs(fill_line(without(EXACT, list(places))) - EXACT).max() > 0.5


@pytest.mark.parametrize("season", [1, 2, 6, 29, 59, 60, 100])
def test_it_is_a_loop(season):
    rng = np.random.default_rng(0)
    values = without(rng.normal(size=60), rng.choice(np.arange(1, 59), 25, replace=False))
    expected = fill_line(values) if season == 1 else slow_fill(values, season)
    np.testing.assert_allclose(fill_seasonal(values, season), expected)


def test_without_neighbours_a_season_away_values_are_on_the_line():
    gap = without(EXACT, slice(20, 40))
    found = fill_seasonal(gap, 6)
    np.testing.assert_allclose(
        found[[*range(26), *range(34, 60)]], EXACT[[*range(26), *range(34, 60)]]
    )
    np.testing.assert_allclose(found[26:34], fill_line(gap)[26:34])


def test_the_season_is_found_before_gaps_are_filled():
    series = make_series(n=96)
    holes = series.copy()
    holes.iloc[[7, 30, 31, 50]] = np.nan
    filled = pd.Series(fill_seasonal(holes.to_numpy(), 12), series.index, name="load")
    model = KernelForecaster(3, missing="seasonal").fit(holes)
    assert model.season_length_ == 12
    expected = KernelForecaster(3).fit(filled)
    pd.testing.assert_series_equal(model.predict(), expected.predict())
    recent = model.predict(history=holes)
    pd.testing.assert_series_equal(recent, expected.predict(history=filled))
    own = KernelForecaster(3, missing="seasonal", season_length=6).fit(holes)
    by_six = fill_seasonal(holes.to_numpy(), 6)
    np.testing.assert_array_equal(own.observed_.value, by_six)


def test_gaps_are_filled_series_by_series():
    first, second = without(EXACT, [3, 4]), EXACT[:20] * 2
    table = Table.of([first, second, without(EXACT, [9])], starts=np.array([5, 0, 0]))
    options = {"season_length": 6, "what": "y"}
    line = fill_values(table, missing="interpolate", **options)
    expected = [fill_line(first), second, fill_line(table.values[2])]
    np.testing.assert_array_equal(line.value, np.concatenate(expected))
    seasonal = fill_values(table, missing="seasonal", **options)
    np.testing.assert_allclose(seasonal.values[0], EXACT)
    with pytest.raises(ValueError, match=r"y has missing values \(NaN\) in 0 at 8, 9: pass"):
        fill_values(table, missing="raise", **options)
    assert fill_values(line, missing="raise", **options) is line
    assert np.isnan(table.value).sum() == 3
