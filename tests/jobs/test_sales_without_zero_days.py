"""Sales of three shops, one row for each day on which something was sold."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster


def test_days_without_a_row_are_zeros():
    """The error names a shop, and the option with which forecasts are means.

    Sales are Poisson with a mean of 1.5, so that one of five days has no row. The mean of 200
    days is within .35, four standard errors, and forecasts are means of many days.
    """
    days = pd.date_range("2024-01-01", periods=200)
    sold = np.random.default_rng(0).poisson(1.5, size=(200, 3))
    every = pd.DataFrame(sold, days, ["north", "south", "west"]).rename_axis("ds")
    rows = every.melt(var_name="unique_id", value_name="y", ignore_index=False).reset_index()
    rows = rows[rows["y"] > 0]
    model = KernelForecaster(7, lookback=14, bandwidth=2.0)
    named = (
        r"^X\['north'\] has gaps in its index.*missing='zero' where a step without a row is 0"
    )
    with pytest.raises(ValueError, match=named):
        model.fit(rows)
    found = model.set_params(missing="zero").fit(rows).predict(7)
    assert abs(found["forecast"].mean() - 1.5) < 0.35
    tested = model.backtest(rows, cv=3)
    assert (tested["y"] == 0).sum() > 5  # days of three weeks on which nothing was sold count
    # Between days of sales alone forecasts are of these, the mean of which is 1.93.
    between = model.set_params(missing="interpolate").fit(rows).predict(7)
    assert between["forecast"].mean() > found["forecast"].mean()
