"""Analogs of the own series against loops."""

from dataclasses import replace

import numpy as np
import pytest
from forecasting_validation import make_validation_of, make_walks, overlapping_rows

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._own_analogs import OwnAnalogs

LOOKBACK, HORIZON, SEASON = 8, 4, 6
TEMPERATURES = 0.25, 0.5, 1.0


def slow_average(values, past, temperature, left_out=()):
    """Average of what followed the windows of a series, weighted by distance."""
    level = past[-SEASON:].mean()
    distances, followed = [], []
    for t in range(LOOKBACK, len(values) - HORIZON + 1):
        if t in left_out:
            continue
        window = values[t - LOOKBACK : t]
        base = window[-SEASON:].mean()
        distances.append(np.sum((window - base - (past - level)) ** 2))
        followed.append(values[t : t + HORIZON] - base)
    ratio = np.array(distances) / min(distances) - 1
    weights = np.exp(-ratio / (2 * temperature**2))
    return level + weights @ np.array(followed) / weights.sum()


def fit(lengths=(80, 60)):
    series = make_walks(lengths)
    validation = make_validation_of(series, HORIZON, LOOKBACK)
    return series, validation, *OwnAnalogs(LOOKBACK, SEASON).fit(validation)


def slow_held_out(series, validation, temperature):
    tests = validation.tests
    found = []
    for i, t, block in zip(tests.series, tests.n_known, validation.block, strict=True):
        left_out = set(overlapping_rows(validation, i, block))
        past = series[i][t - LOOKBACK : t]
        found.append(slow_average(series[i], past, temperature, left_out))
    return np.array(found)


def test_held_out_forecasts_and_the_temperature_are_those_of_a_loop():
    series, validation, analogs, held_out = fit()
    scale = validation.scale[validation.tests.series, None]
    tried = [slow_held_out(series, validation, temperature) for temperature in TEMPERATURES]
    errors = [np.nansum(((found - validation.tests.targets()) / scale) ** 2) for found in tried]
    best = int(np.argmin(errors))
    assert analogs.temperature == TEMPERATURES[best]
    np.testing.assert_allclose(held_out[:, 0], tried[best], rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.25, 1.0])
def test_forecasts_are_those_of_a_loop(temperature):
    series, _, analogs, _ = fit()
    analogs = replace(analogs, temperature=temperature)
    later = [own[-LOOKBACK:] + 0.3 * np.sin(np.arange(LOOKBACK)) for own in series]
    fresh = Table.from_arrays(later, np.zeros(2, dtype=int), np.array([1, 0]))
    found = analogs.forecast(Origins.at_ends(fresh, HORIZON))[:, 0]
    for i in range(2):
        expected = slow_average(series[1 - i], later[i], temperature)
        np.testing.assert_allclose(found[i], expected, rtol=1e-6)


def test_unknown_and_short_series_are_forecast_as_nan():
    series, validation, analogs, held_out = fit((80, 25))
    there = ~np.isnan(held_out[:, 0, 0])
    assert set(validation.tests.series[there]) == {0}
    found = analogs.forecast(Origins.at_ends(validation.origins.table, HORIZON))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    unknown = Table.from_arrays([series[0]], np.zeros(1, dtype=int), np.array([-1]))
    assert np.isnan(analogs.forecast(Origins.at_ends(unknown, HORIZON))).all()
    short = Table.from_arrays([series[0][:5]], np.zeros(1, dtype=int), np.array([0]))
    assert np.isnan(analogs.forecast(Origins.at_ends(short, HORIZON))).all()
