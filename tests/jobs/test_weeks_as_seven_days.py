"""Weekly readings whose index says "7D": seasons are those of weeks."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import TransformerForecaster


@pytest.mark.parametrize("freq", ["7D", "168h", "W-WED"])
def test_weeks_as_seven_days(freq):
    weeks = pd.date_range("2019-01-02", periods=156, freq=freq)  # a Wednesday
    noise = np.random.default_rng(0).normal(size=156)
    demand = pd.Series(50 + 20 * np.sin(2 * np.pi * np.arange(156) / 52.18) + noise, weeks)
    model = TransformerForecaster(4, candidates=["classical"], season_length="auto")
    # A year has 52 weeks, however pandas spells a week.
    assert model.fit(demand).season_length_ == 52
    assert model.seasons_[0] == pytest.approx(365.25 / 7)
