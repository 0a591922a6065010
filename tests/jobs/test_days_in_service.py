"""Two counters of a lift, read every day: one counts days in service, one trips."""

import numpy as np
import pandas as pd

from sklearn_attention import KernelForecaster


def test_both_counters_are_forecast():
    """Days go on by one, and trips by a hundred or so: either is a series like others."""
    rng, n = np.random.default_rng(0), 120
    dates = pd.date_range("2024-01-01", periods=n + 3)
    trips = np.cumsum(100 + rng.normal(size=n))
    counters = pd.DataFrame({"day": np.arange(400, 400 + n), "trips": trips}, dates[:n])
    found = KernelForecaster(3, normalize="last").fit(counters).predict()
    # Windows like the last one are averaged: a hundredth of a day is plenty.
    np.testing.assert_allclose(found["day"], 400 + n + np.arange(3), atol=0.01)
    # The sum of three trips is three times as uncertain as one, at most: four deviations.
    assert np.abs(found["trips"] - trips[-1] - 100 * np.arange(1, 4)).max() < 4 * 3
    alone = KernelForecaster(3).fit(counters[["day"]], counters["trips"])
    later = pd.DataFrame({"day": 400 + n + np.arange(3)}, dates[n:])
    assert alone.predict(later).index.equals(dates[n:])
