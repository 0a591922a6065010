"""Daily sales are forecast for a day with an event that has never happened before."""

import numpy as np
import pandas as pd
import pytest
from slow_cases import slow_but

from sklearn_attention import KernelForecaster, TransformerForecaster

FORECASTERS = [KernelForecaster, TransformerForecaster]
EFFECTS = {"none": 0.0, "sale": 12.0, "fair": 6.0, "storm": -9.0}
N_DAYS = 300


def days_with_events(seed=0):
    """Sales of days, a tenth of which have one of three events, and the events."""
    rng = np.random.default_rng(seed)
    names = np.array(list(EFFECTS))
    events = names[rng.choice(4, N_DAYS + 7, p=[0.88, 0.04, 0.04, 0.04])]
    sales = 50 + np.array([EFFECTS[e] for e in events]) + rng.normal(size=N_DAYS + 7)
    days = pd.date_range("2023-01-01", periods=N_DAYS + 7)
    return pd.DataFrame({"event": events}, days), pd.Series(sales, days)


@pytest.mark.parametrize("model", slow_but(FORECASTERS[:1], FORECASTERS))
def test_the_forecast_is_that_of_a_mean_day_and_the_interval_is_wide(model):
    X, sales = days_with_events()
    fitted = model(7).fit(X[:N_DAYS], sales[:N_DAYS])

    def first_day(event, **options):
        ahead = X[N_DAYS:].assign(event=pd.Series([event] * 7, X.index[N_DAYS:], dtype=object))
        return fitted.predict(ahead, **options).to_numpy()[0]

    known = {event: first_day(event, coverage=0.9) for event in EFFECTS}
    for event, effect in EFFECTS.items():
        assert known[event][0] == pytest.approx(50 + effect, abs=1.5)
        assert np.ptp(known[event][1:]) < 6
    for event in ("strike", None):
        forecast, lower, upper = first_day(event, coverage=0.9)
        mean = np.mean([EFFECTS[e] for e in X["event"][:N_DAYS]])
        assert forecast == pytest.approx(50 + mean, abs=1.0)
        # Effects have a standard deviation of 9, of which there are four.
        assert 30 < upper - lower < 55
        nested = first_day(event, coverage=[0.5, 0.9])
        assert nested[3] < nested[1] < nested[2] < nested[4]
        ahead = X[N_DAYS:].assign(event=event)
        quantiles = fitted.predict_quantiles(ahead, [0.05, 0.5, 0.95]).to_numpy()[0]
        assert quantiles[0] < 40 < 60 < quantiles[2]
    # The other days of the week are as certain as before.
    ahead = X[N_DAYS:].assign(event=["strike", *["none"] * 6])
    widths = np.ptp(fitted.predict_interval(ahead).to_numpy(), axis=1)
    assert widths[0] > 5 * widths[1:].max()


def test_sales_are_not_negative_where_they_never_were():
    X, sales = days_with_events()
    fitted = KernelForecaster(7).fit(X[:N_DAYS], (sales[:N_DAYS] - 38).clip(lower=0))
    ends = fitted.predict_interval(X[N_DAYS:].assign(event="strike"), coverage=0.99)
    assert ends["lower"].min() == 0


def test_a_strike_is_none_of_the_events_that_are_known():
    """The day after a sale is weak; nothing is known of the day after a strike."""
    rng, effects = np.random.default_rng(0), np.array([-6.0, 0.0, 12.0])
    code = rng.choice(3, N_DAYS + 107, p=[0.05, 0.9, 0.05])
    sales = 50 + effects[code] + rng.normal(size=len(code))
    sales -= np.where(np.append(1, code[:-1]) == 2, 8, 0)
    days = pd.date_range("2023-01-01", periods=len(code))
    X = pd.DataFrame({"event": np.array(["fair", "none", "sale"])[code]}, days)
    model = KernelForecaster(7).fit(X[:-7], pd.Series(sales, days)[:-7])
    ahead = X[-7:].assign(event="none")
    expected = model.predict(ahead)
    forecast = model.predict(ahead.assign(event=[*2 * ["none"], "strike", *4 * ["none"]]))
    mean = 50 + effects[code[:-7]].mean()
    assert forecast.iloc[2] == pytest.approx(mean, abs=1)
    np.testing.assert_allclose(forecast.drop(days[-5]), expected.drop(days[-5]), atol=0.5)
