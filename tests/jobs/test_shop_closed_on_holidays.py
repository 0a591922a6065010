"""Sales of a shop that is open from Monday to Saturday, but not on holidays."""

import io

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.model_selection import TimeSeriesSplit, cross_val_score

from sklearn_attention import KernelForecaster, TransformerForecaster

OPEN = pd.offsets.CustomBusinessDay(
    weekmask="Mon Tue Wed Thu Fri Sat", holidays=["2024-12-25", "2024-12-26", "2025-01-01"]
)


def sales_of(days):
    weekdays = np.array([20.0, 21, 22, 24, 30, 45])[days.day_of_week]
    return pd.Series(weekdays + np.random.default_rng(0).normal(size=len(days)), days)


@pytest.mark.parametrize(
    "forecaster",
    [KernelForecaster, pytest.param(TransformerForecaster, marks=pytest.mark.slow)],
)
def test_there_is_no_forecast_for_a_holiday(forecaster):
    days = pd.date_range("2024-07-01", periods=170, freq=OPEN)
    sales = sales_of(days)
    model = forecaster(12).fit(sales[:140])
    found = model.predict("2025-01-10")
    assert found.index.equals(days[140 : 140 + len(found)])
    assert found.index[-1] == pd.Timestamp("2025-01-10")
    # The noise has deviation 1: four of them are an error in one of 16 000 forecasts.
    assert np.abs(found[:5] - sales[140:145]).max() < 4
    file = io.BytesIO()
    skops.io.dump(model.update(sales[140:150]), file)
    trusted = skops.io.get_untrusted_types(data=file.getvalue())
    again = skops.io.loads(file.getvalue(), trusted=trusted)
    assert again.predict().index.equals(days[150:162])
    assert np.isfinite(cross_val_score(forecaster(12), sales, cv=TimeSeriesSplit(2))).all()
