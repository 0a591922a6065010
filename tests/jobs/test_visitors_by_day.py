"""Visitors by day in Santiago, where the day on which clocks change begins at one o'clock."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster


@pytest.mark.parametrize("tidy", [False, True])
def test_a_winter_and_the_spring_that_follows(tidy):
    """Weeks repeat exactly, and so do their forecasts, also on the day of the change."""
    days = pd.date_range("2024-05-01", periods=160)
    days = days.tz_localize("America/Santiago", nonexistent="shift_forward")
    visitors = pd.Series(np.array([5.0, 4, 4, 5, 7, 9, 8])[days.day_of_week], days)
    rows = pd.DataFrame({"unique_id": "museum", "ds": days, "y": visitors.to_numpy()})
    past, later = (rows[:120], rows[120:]) if tidy else (visitors[:120], visitors[120:])
    model = KernelForecaster(14).fit(past)
    found = model.predict("2024-10-07")
    if tidy:
        found = found.set_index("ds")["forecast"]
    assert found.index.equals(days[120:])
    assert found.index[10] == pd.Timestamp("2024-09-08T04:00Z")
    np.testing.assert_allclose(found, visitors[120:], atol=0.1)
    assert model.update(later).predict(1).shape[0] == 1
    assert len(KernelForecaster(14).backtest(rows if tidy else visitors, cv=3)) == 3 * 14
