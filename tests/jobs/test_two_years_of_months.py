"""A shop forecasts its next year from one to three years of monthly sales."""

import numpy as np
import pandas as pd
import pytest
from slow_cases import slow_but

from sklearn_attention import TransformerForecaster


def sales_of_shop(n_months, seed):
    """Monthly sales with a season and growth, and those of the year after them."""
    t, rng = np.arange(n_months + 12), np.random.default_rng(seed)
    season = 1 + 0.3 * np.sin(2 * np.pi * t / 12) + 0.1 * np.cos(4 * np.pi * t / 12)
    sales = (100 + 0.5 * t) * season * (1 + 0.02 * rng.normal(size=len(t)))
    months = pd.date_range("2015-01-01", periods=len(t), freq="MS")
    return pd.Series(sales, months)[:n_months], sales[n_months:]


LENGTHS = (13, 15, 18, 20, 24, 26, 30, 34, 36, 40)


@pytest.mark.parametrize("n_months", slow_but((13, 24), LENGTHS))
def test_forecasts_are_about_as_good_as_the_last_season_or_better(n_months):
    errors, covered = [], []
    for seed in range(3):
        past, future = sales_of_shop(n_months, seed)
        forecast, lower, upper = (
            TransformerForecaster(12).fit(past).predict(coverage=0.9).T.values
        )
        errors.append([np.abs(f - future).mean() for f in (forecast, past.to_numpy()[-12:])])
        covered.append((lower <= future) & (future <= upper))
    of_model, of_last_season = np.mean(errors, axis=0)
    assert of_model < (1.1 if n_months >= 18 else 1.3) * of_last_season
    assert np.mean(covered) > 0.85


@pytest.mark.slow
def test_a_panel_of_shops_of_two_years():
    pairs = [sales_of_shop(24, seed) for seed in range(40)]
    forecasts = TransformerForecaster(12).fit({k: past for k, (past, _) in enumerate(pairs)})
    predicted = forecasts.predict()
    errors = [
        [np.abs(f - future).mean() for f in (predicted[k].to_numpy(), past.to_numpy()[-12:])]
        for k, (past, future) in enumerate(pairs)
    ]
    of_model, of_last_season = np.mean(errors, axis=0)
    assert of_model < of_last_season
