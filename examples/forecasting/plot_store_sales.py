"""
===================================
Stores with promotions and holidays
===================================

Forecast stores with promotions and holidays, and ask what each of these adds.

Sales of four stores are forecast four weeks ahead, with promotions that are planned and
holidays that are known. The example tests the forecasts on the past, draws them with intervals,
and asks what each promotion and holiday adds.
"""

# %%
# A frame of observations
# -----------------------
#
# Sales are simulated: a level, a week and a year, noise, and what promotions and holidays add,
# as shares of usual sales. A promotion lasts four days and adds 30 %. On holidays stores are
# closed half of the day, and on the day before people buy 30 % more. There is a row for each
# store and day, with the columns ``unique_id``, ``ds`` and ``y``, and features in further ones.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import TransformerForecaster
from sklearn_attention.forecasting import mase, naive_scale
from sklearn_attention.inspection import BacktestDisplay, ForecastDisplay

random = np.random.default_rng(0)
days = pd.date_range("2022-01-01", "2024-12-31")
fixed = [(1, 1), (5, 1), (8, 15), (10, 3), (11, 1), (12, 25), (12, 26)]
holiday = np.array([(day.month, day.day) in fixed for day in days])
before = np.append(holiday[1:], True)

stores = []
for store in "ABCD":
    promotion = np.zeros(len(days), dtype=bool)
    for start in [*random.choice(len(days) - 40, 40, replace=False), len(days) - 22]:
        promotion[start : start + 4] = True
    week = random.uniform(0.8, 1.3, 7)[days.day_of_week]
    year = 1 + 0.1 * np.sin(2 * np.pi * (days.day_of_year - 60) / 365)
    level = 400 * np.exp(np.cumsum(random.normal(0, 0.004, len(days))))
    effect = (1 + 0.3 * promotion) * (1 - 0.5 * holiday) * (1 + 0.3 * (before & ~holiday))
    sold = level * week * year * effect * np.exp(random.normal(0, 0.05, len(days)))
    stores.append(
        pd.DataFrame(
            {
                "unique_id": store,
                "ds": days,
                "y": sold,
                "promotion": promotion,
                "holiday": holiday,
            }
        )
    )
rows = pd.concat(stores, ignore_index=True)
past, future = rows[rows["ds"] < "2024-12-04"], rows[rows["ds"] >= "2024-12-04"]
print(past.tail(3).to_string(index=False))

# %%
# A backtest
# ----------
#
# Four stretches of four weeks are forecast, each from what was before. Errors are relative to
# those of repeating the day a week before. Without the features a forecaster cannot know when
# promotions come.

model = TransformerForecaster(horizon=28)
table = model.backtest(past, cv=4, coverage=0.9)
plain = model.backtest(past[["unique_id", "ds", "y"]], cv=4)
scales = {
    store: naive_scale(own["y"].to_numpy(), 7) for store, own in past.groupby("unique_id")
}
for name, found in {"with features": table, "without": plain}.items():
    missed = [
        mase(own["y"], own["forecast"], scales[key]) for key, own in found.groupby("unique_id")
    ]
    print(f"{name:<14}{np.mean(missed):.2f}   in each store", *np.round(missed, 2))
inside = table["y"].between(table["lower_90"], table["upper_90"]).mean()
print(f"{100 * inside:.0f} % of the days are inside the 90 % intervals")

# %%

BacktestDisplay.from_predictions(table, series="C")

# %%
# Forecasts, and what promotions and holidays add
# -----------------------------------------------
#
# December is forecast with the planned promotions and the holidays. ``events_`` has the columns
# that are rare enough that the days since and until they are 1 are features, too: so the day
# before a holiday is seen, although no column is about it.

model.fit(past)
print("rare events:", model.feature_names_in_[model.events_])
forecast = model.predict(future.drop(columns="y"), coverage=0.9)
print(forecast.head(3).to_string(index=False, float_format="%.0f"))

# %%
# ``explain_features`` has the forecast if there were neither, "usual", and what each column
# adds. All of a day sum to its forecast. What the day before Christmas adds is the holiday's.

added = model.explain_features(future.drop(columns="y"))
christmas = added[(added["unique_id"] == "C") & added["ds"].between("2024-12-22", "2024-12-28")]
print(christmas.to_string(index=False, float_format="%.0f"))

# %%
# What promotions add, as a share of usual sales, is about the 30 % of the simulation.

planned = added.merge(future, on=["unique_id", "ds"], suffixes=("", "_planned"))
planned = planned[planned["promotion_planned"] & ~planned["holiday_planned"]]
share = (planned["promotion"] / planned["usual"]).groupby(planned["unique_id"]).mean()
print(share.round(2).to_string())

# %%
# In the figure a dotted line is the forecast if features were usual; bars are what they add.

display = ForecastDisplay.from_estimator(
    model, future.drop(columns="y"), future, series="C", coverage=0.9, n_past=28, effects=True
)
display.ax_.set_ylim(0, None)
plt.show()
