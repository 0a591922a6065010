"""The order in which series are passed changes nothing."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table

FOREST = RandomForestRegressor(5, random_state=0)
MODELS = {
    "kernel": KernelForecaster(3),
    "kernel in units of deviations": KernelForecaster(3, lookback=8, normalize="standard"),
    "kernel in units of the data": KernelForecaster(3, lookback=8, normalize=None),
    "candidates": TransformerForecaster(3),
    "regressor": TransformerForecaster(3, candidates=["classical", FOREST]),
    "trees": TransformerForecaster(3, candidates=["trees"]),
    "transformer": TransformerForecaster(
        3, lookback=10, candidates=None, d_model=8, n_heads=2, n_layers=1, max_epochs=2
    ),
}


def make_series(n_series, seed):
    """Series of several lengths, of which some begin later, and two have equal values."""
    rng = np.random.default_rng(seed)
    days = pd.date_range("2024-01-01", periods=90)
    series = {}
    for i in range(n_series):
        first, n = rng.integers(0, 10), rng.integers(40, 80)
        wave = np.sin(2 * np.pi * np.arange(n) / 7 + i)
        values = (1 + i) * (20 + wave + 0.3 * rng.normal(size=n).cumsum())
        series[f"shop {i}"] = pd.Series(values, days[first : first + n])
    series["copy"] = series["shop 0"].copy()
    return series


def answers(model, series, names):
    """Forecasts, intervals and weights, by name."""
    model = model.fit({name: series[name] for name in names})
    forecasts = model.predict(4, coverage=0.8)
    return {name: forecasts[name].to_numpy() for name in series}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=5)
@given(data=st.data())
def test_order_changes_nothing(name, data):
    series = make_series(data.draw(st.integers(2, 5)), data.draw(st.integers(0, 99)))
    shuffled = data.draw(st.permutations(list(series)))
    expected = answers(MODELS[name], series, list(series))
    found = answers(MODELS[name], series, shuffled)
    for own in series:
        np.testing.assert_allclose(found[own], expected[own], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel", "candidates"])
def test_order_changes_nothing_of_many_series(name):
    """With attention over errors, a correction, and more windows than are compared."""
    series = make_series(60, 0)
    expected = answers(MODELS[name], series, list(series))
    found = answers(MODELS[name], series, list(series)[::-1])
    for own in series:
        np.testing.assert_allclose(found[own], expected[own], rtol=1e-9)


@pytest.mark.slow
def test_order_changes_nothing_with_features():
    rng, days = np.random.default_rng(0), pd.date_range("2024-01-01", periods=200)
    heat = pd.Series(rng.normal(size=210), pd.date_range("2024-01-01", periods=210))
    frame = pd.DataFrame(
        {k: 5 + k + heat[:200] ** 2 + 0.2 * rng.normal(size=200) for k in range(3)}, days
    )
    X, later = heat[:200].to_frame("heat"), heat[200:].to_frame("heat")
    for model in (KernelForecaster(3), TransformerForecaster(3)):
        expected = model.fit(X, frame).predict(later)
        found = model.fit(X, frame[frame.columns[::-1]]).predict(later)[frame.columns]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_units_do_not_change_the_order_that_is_learned_from():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=n).cumsum() for n in (30, 30, 30, 25, 30)]
    order = Table.from_arrays(values).order_of_content()
    scaled = [7 - 3 * values[0], 1e6 + values[1], 1e-3 * values[2], *values[3:]]
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order[0] == 3
    np.testing.assert_array_equal(Table.from_arrays(scaled).order_of_content(), order)
    backwards = Table.from_arrays(values[::-1]).order_of_content()
    np.testing.assert_array_equal(4 - backwards, order)


def test_analogs_are_named_after_their_series():
    series = make_series(3, 0)
    model = KernelForecaster(3, lookback=8, normalize=None).fit(series)
    explained = model.explain(k=3)
    _, places, _ = model.analogs_.heaviest(model._ends(None, None)[0], 3)
    for (_, row), place in zip(explained.iterrows(), places, strict=True):
        window = series[row["analog"]].loc[: row["time"]][-8:]
        np.testing.assert_allclose(model.analogs_.keys[place], window)


def test_history_and_updates_find_series_by_their_names():
    series = make_series(3, 0)
    model = KernelForecaster(3, lookback=8).fit(series)
    expected, names = model.predict()["shop 1"], model.observed_.learned_names
    found = model.predict(history={"shop 1": series["shop 1"]})["shop 1"]
    np.testing.assert_allclose(found, expected)
    model.update({"shop 9": series["shop 2"]})
    assert model.observed_.learned_names == names
    np.testing.assert_allclose(model.predict()["shop 1"], expected)
