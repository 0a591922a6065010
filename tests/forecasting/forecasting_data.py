"""Series and indexes that the tests of forecasting share."""

import numpy as np
import pandas as pd

from sklearn_attention import KernelForecaster

N = 60


def make_indexes(n=N):
    """The six kinds of index that a series may have, and their frequencies."""
    return {
        "MS": pd.date_range("2015-01-01", periods=n, freq="MS"),
        "ME": pd.date_range("2015-01-31", periods=n, freq="ME"),
        "B": pd.date_range("2024-01-01", periods=n, freq="B"),
        "W-MON": pd.date_range("2020-01-06", periods=n, freq="W-MON"),
        "10min": pd.date_range("2024-03-31", periods=n, freq="10min", tz="Europe/Berlin"),
        "period": pd.period_range("2015-01", periods=n, freq="M"),
    }


def make_values(n=N, seed=0):
    """A trend, a season of 12 steps, and noise."""
    steps = np.arange(n)
    noise = np.random.default_rng(seed).normal(size=n)
    return 50 + 0.2 * steps + 5 * np.sin(2 * np.pi * steps / 12) + 0.3 * noise


def make_series(kind="MS", n=N, seed=0):
    index = make_indexes(n)[kind] if kind != "range" else pd.RangeIndex(n)
    return pd.Series(make_values(n, seed), index=index, name="load")


def make_panel():
    """Two series of different lengths, by name."""
    return {"a": make_series(), "b": make_series(seed=1)[:53]}


def make_long():
    """The same one below the other."""
    return pd.concat(make_panel(), names=["site", "month"]).rename("load")


def tidy_of(long):
    """A long series as a frame with a row for each observation."""
    return long.rename_axis(["unique_id", "ds"]).rename("y").reset_index()


def lag_matrix(values, lookback, horizon=1):
    """All windows of a series, and what followed them."""
    both = np.lib.stride_tricks.sliding_window_view(values, lookback + horizon)
    return both[:, :lookback], both[:, lookback:]


def make_features():
    """Two features beside :func:`make_series`."""
    rng, index = np.random.default_rng(0), make_indexes()["MS"]
    return pd.DataFrame(rng.normal(size=(N, 2)), index, columns=["wind", "sun"])


def new(horizon=3, **parameters):
    """A forecaster that learns in no time."""
    return KernelForecaster(horizon, **({"lookback": 6, "bandwidth": 1.0} | parameters))


def fit(*data, **parameters):
    return new(**parameters).fit(*data)
