"""Series and training that the tests of candidates share."""

from dataclasses import replace

import numpy as np

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._origins import Validation


def make_walks(lengths, season=6, seed=0):
    """Walks with a season and different units."""
    rng = np.random.default_rng(seed)
    series = []
    for i, n in enumerate(lengths):
        wave = 3 * np.sin(2 * np.pi * np.arange(n) / season + i)
        series.append((1 + 9 * i) * (20 + wave + 0.5 * np.cumsum(rng.normal(size=n))))
    return series


def make_training_of(series, horizon=4, lookback=5):
    """Training with validation origins in five blocks."""
    return Validation.of(Table.of(series), horizon, lookback)


def changed_after(table, known):
    """The same series with other values and past features after so many steps (n_series,)."""
    later = table.step - table.starts[table.series] >= known[table.series]
    features, past = table.features.copy(), np.arange(table.n_features)
    features[np.ix_(later, np.setdiff1d(past, table.known))] = 77.0
    value = np.where(later, 1e3 - 2 * table.value, table.value)
    return replace(table, value=value, features=features)


def check_knows_nothing_later(forecast, table, horizon, tolerance=1e-11):
    """Forecasts do not depend on what follows, nor on the origins they are made with.

    `forecast(origins)` has a row for each origin. All are compared at once and one by one, in
    the series as they are, and with other values and past features after each origin.
    """
    origins = Origins.within(table, horizon, lookback=1, ahead=0)
    rows = np.unique(np.linspace(0, len(origins) - 1, 25).astype(int))
    expected = forecast(origins)
    assert np.isfinite(expected[rows]).any()
    for row in rows:
        one = origins.take([row])
        np.testing.assert_allclose(forecast(one)[0], expected[row], rtol=tolerance)
        known = np.where(np.arange(len(table.values)) == one.series, one.known, 1)
        changed = changed_after(table, known)
        found = forecast(Origins.at_ends(changed, horizon).at(one.series, one.known))
        np.testing.assert_allclose(found[0], expected[row], rtol=tolerance)


def unknown_twins(table):
    """Series that were not learned from, a thousand times as large and shifted."""
    twins = replace(table, identity=np.full(len(table), -1))
    return twins.with_values([1000 * own - 5 for own in table.values])


def overlapping_rows(training, series, block):
    """Origins of a series whose targets overlap with those of a block, by a loop."""
    horizon = training.origins.horizon
    own = (training.validation.series == series) & (training.block == block)
    forecast = {
        step
        for known in training.validation.known[own]
        for step in range(known, known + horizon)
    }
    if forecast:  # a block is one stretch of time
        forecast = set(range(min(forecast), max(forecast) + 1))
    return [
        known
        for known in training.origins.known[training.origins.series == series]
        if forecast & set(range(known, known + horizon))
    ]
