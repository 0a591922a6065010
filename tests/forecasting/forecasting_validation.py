"""Series and training that the tests of candidates share."""

from dataclasses import replace

import numpy as np

from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._origins import Validation


def make_walks(lengths, season=6, seed=0):
    """Walks with a season and different units."""
    rng = np.random.default_rng(seed)
    series = []
    for i, n in enumerate(lengths):
        wave = 3 * np.sin(2 * np.pi * np.arange(n) / season + i)
        series.append((1 + 9 * i) * (20 + wave + 0.5 * np.cumsum(rng.normal(size=n))))
    return series


def make_validation_of(series, horizon=4, lookback=5):
    """Training with validation origins in five blocks."""
    return Validation.from_table(Table.from_arrays(series), horizon, lookback)


def unknown_twins(table):
    """Series that were not learned from, a thousand times as large and shifted."""
    twins = replace(table, training_index=np.full(len(table), -1))
    return twins.with_observations([1000 * own - 5 for own in table.observations])


def overlapping_rows(validation, series, block):
    """Origins of a series whose targets overlap with those of a block, by a loop."""
    horizon = validation.origins.horizon
    own = (validation.tests.series == series) & (validation.block == block)
    forecast = {
        step
        for known in validation.tests.n_known[own]
        for step in range(known, known + horizon)
    }
    if forecast:  # a block is one stretch of time
        forecast = set(range(min(forecast), max(forecast) + 1))
    return [
        known
        for known in validation.origins.n_known[validation.origins.series == series]
        if forecast & set(range(known, known + horizon))
    ]
