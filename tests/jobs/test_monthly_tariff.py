"""A tariff that was 100 for 35 months, then 101: the interval is about euros, not millions."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster, TransformerForecaster


@pytest.mark.parametrize("forecaster", [TransformerForecaster, KernelForecaster])
def test_monthly_tariff(forecaster):
    months = pd.date_range("2022-01-01", periods=36, freq="MS")
    tariff = pd.Series([100.0] * 35 + [101.0], months)
    found = forecaster(3).fit(tariff).predict(coverage=0.9)
    # It has changed by one euro once: ten times that, and the root of three steps, is plenty.
    assert found.iloc[:, 1].between(100 - 10 * np.sqrt(3), found.iloc[:, 0]).all()
    assert found.iloc[:, 2].between(found.iloc[:, 0], 101 + 10 * np.sqrt(3)).all()
