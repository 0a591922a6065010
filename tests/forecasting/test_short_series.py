"""Series that are shorter than a few seasons or horizons."""

import warnings

import numpy as np
import pandas as pd
import pytest
from slow_cases import slow_but

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting._season_length import choose_lookback

FORECASTERS = [KernelForecaster, TransformerForecaster]


def make_months(n, seed=0):
    """Months with a season from 80 to 120 and little noise."""
    t, noise = np.arange(n), np.random.default_rng(seed).normal(size=n)
    index = pd.date_range("2020-01-01", periods=n, freq="MS")
    return pd.Series(100 + 20 * np.sin(2 * np.pi * t / 12) + noise, index)


@pytest.mark.filterwarnings("ignore:horizon=12 is more")
@pytest.mark.parametrize("n", slow_but((25,), (24, 25, 30, 36)))
@pytest.mark.parametrize("model", FORECASTERS)
def test_two_years_of_months_show_their_season(model, n):
    series = make_months(n + 12)
    forecast, lower, upper = model(12).fit(series[:n]).predict(coverage=0.9).to_numpy().T
    assert np.abs(forecast - series[n:]).mean() < 3
    assert np.mean((lower <= series[n:]) & (series[n:] <= upper)) > 0.6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [4, 5, 7, 9, 12])
@pytest.mark.parametrize("lookback", ["auto", 2])
def test_analogs_of_a_few_steps_are_forecast_from_forecasts(n, lookback):
    series = np.random.default_rng(n).normal(size=n).cumsum()
    at_once = {4: 1, 5: 1, 7: 2, 9: 3, 12: 5}[n]
    with pytest.warns(UserWarning, match=f"of up to {n} steps: {at_once} are"):
        model = KernelForecaster(10, lookback=lookback).fit(series)
    forecast = model.predict(coverage=0.9)
    assert forecast.shape == (10, 3)
    assert np.isfinite(forecast).all()
    assert model.analogs_.values.shape[1] == at_once
    np.testing.assert_array_equal(model.predict(3), forecast[:3, 0])


@pytest.mark.parametrize("fraction", slow_but((0.2,), (0.05, 0.2, 1 / 3, 0.9)))
def test_windows_are_left_to_learn_from_whatever_is_held_out(fraction):
    series = make_months(60)
    for n, season, horizon in ((60, 24, 48), (60, 1, 28), (37, 12, 18), (11, 1, 5)):
        model = KernelForecaster(horizon, season_length=season, validation_fraction=fraction)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(series[:n])
        n_windows = n - model.lookback_ - model.analogs_.values.shape[1] + 1
        n_held_out = max(1, int(n_windows * fraction))
        assert n_windows - n_held_out >= model.analogs_.values.shape[1]
        assert len(model.predict()) == horizon


@pytest.mark.filterwarnings("ignore:horizon=60 is more")
@pytest.mark.parametrize("model", FORECASTERS)
def test_a_horizon_beyond_the_series_keeps_the_season(model):
    series = make_months(90)
    forecast, lower, upper = model(60).fit(series[:30]).predict(coverage=0.9).to_numpy().T
    assert np.abs(forecast - series[30:]).mean() < 5
    assert np.mean((lower <= series[30:]) & (series[30:] <= upper)) > 0.6


@pytest.mark.filterwarnings("ignore:horizon=12 is more")
@pytest.mark.parametrize("n_since", slow_but((10,), (3, 10, 14)))
@pytest.mark.parametrize("model", FORECASTERS)
def test_the_season_of_thirty_months_goes_on_after_a_step(model, n_since):
    series = make_months(42)
    series.iloc[30 - n_since :] += 60
    assert np.abs(model(12).fit(series[:30]).predict() - series[30:]).mean() < 5


def test_a_series_of_three_steps_is_refused():
    with pytest.raises(ValueError, match="3 samples, but KernelForecaster needs at least 4"):
        KernelForecaster(2).fit([1.0, 2.0, 4.0])


@pytest.mark.parametrize(("season", "expected"), [(12, 12), (24, 24), (30, 10), (1, 10)])
def test_a_window_has_a_short_season(season, expected):
    assert choose_lookback(40, "auto", 5, season, n_seasons=1) == min(expected, 40 - 2 * 5 - 1)


def test_thirteen_months_are_forecast_with_the_season_that_months_have():
    series = make_months(25)
    model = TransformerForecaster(12).fit(series[:13])
    assert model.candidate_weights_["last season"].iloc[0] == pytest.approx(0.75)
    forecast = model.predict()
    assert np.abs(forecast - series[13:]).mean() < 6


@pytest.mark.parametrize(("n", "share"), [(5, 0.75), (6, 0.75), (7, 0.0)])
def test_five_quarters_validate_hardly_anything(n, share):
    quarters = pd.date_range("2020-01-01", periods=n, freq="QS")
    series = pd.Series([90.0, 100, 120, 80, 92, 104, 119][:n], quarters)
    weights = TransformerForecaster(2).fit(series).candidate_weights_.iloc[0]
    assert weights.sum() == pytest.approx(1)
    assert weights["last season"] >= share
