"""Single outliers are damped, by nothing but what came before, and hardly anything else is."""

import copy
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._transform import (
    _VALUES_PER_OUTLIER,
    damped,
    without_outliers,
)

HORIZON = 6


def damp(*series):
    return damped(
        Table.from_arrays([np.array(values, dtype=float) for values in series])
    ).observations


def moved(values):
    """Positions of the values that are moved."""
    return np.flatnonzero(damp(values)[0] != values).tolist()


def by_hand(values):
    found = list(values)
    for t in range(2, len(values)):
        before = values[:t]
        changes = sum(1 if a != b else -1 for a, b in pairwise(before))
        if changes > 0:
            spread = max(before) - min(before)
            width = spread * _VALUES_PER_OUTLIER ** (1 / changes)
            if not min(before) - width <= values[t] <= max(before) + width:
                found[t] = before[-1]
    return found


series = st.lists(st.floats(-100, 100) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=14)


@settings(max_examples=40)
@given(series)
def test_values_far_outside_the_range_so_far_are_those_before_them(values):
    np.testing.assert_allclose(
        without_outliers(np.array([values]))[0], by_hand(values), rtol=1e-12
    )


@pytest.mark.parametrize(
    "values",
    [
        2.0 ** np.arange(200),
        np.r_[np.zeros(30), 5.0, np.zeros(30), 400.0, 0.0],
        np.r_[np.full(30, 7.0), 700.0],
        [1.0, 1.01, 5.0, 1.0, 9.0],
        [1e308, -1e308, 1e308, -1e308],
    ],
    ids="growth counts constant beginning huge".split(),
)
def test_what_is_no_outlier_stays(values):
    assert moved(values) == []


def wave_with_outlier(before_end, n=144, season=12, freq="MS", seed=0):
    """A series with one value far off so many steps before its end, and what follows it."""
    steps = np.arange(n + HORIZON)
    truth = 100 + 10 * np.sin(2 * np.pi * steps / season)
    values = truth[:n] + np.random.default_rng(seed).normal(size=n)
    values[n - before_end] = 1e4
    return pd.Series(values, pd.date_range("2012-01-01", periods=n, freq=freq)), truth[n:]


@pytest.mark.parametrize("before_end", [1, 10])
@pytest.mark.parametrize(
    "model",
    [
        KernelForecaster(HORIZON),
        TransformerForecaster(HORIZON, candidates=["ridge"]),
        pytest.param(TransformerForecaster(HORIZON), marks=pytest.mark.slow),
    ],
    ids=["kernel", "candidates", "all"],
)
def test_forecasts_after_an_outlier_are_those_without(model, before_end):
    series, truth = wave_with_outlier(before_end)
    forecast, lower, upper = model.fit(series).predict(coverage=0.9).to_numpy().T
    assert np.abs(forecast - truth).max() < 20
    assert ((lower <= forecast) & (forecast <= upper)).all()
    assert (forecast - lower).max() < 60
    # An outlier at the end may be a jump, which lasts: the interval reaches it.
    if before_end == 1:
        assert upper.min() > 9900
    else:
        assert (upper - lower).max() < 60


def test_later_outliers_are_damped_as_they_are_in_training():
    series, truth = wave_with_outlier(3)
    model = KernelForecaster(HORIZON).fit(series[:-12])
    updated = copy.deepcopy(model).update(series[-12:])
    assert np.abs(updated.predict() - truth).max() < 20
    fresh = model.predict(history=series)
    pd.testing.assert_series_equal(updated.predict(), fresh)
    # What was observed stays what it was.
    assert updated.observed_.observations[0].max() == 1e4
    assert updated.scale_ < 20
    assert model.backtest(series, cv=2)["actual"].max() == 1e4
