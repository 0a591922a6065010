"""
========================
Forecast a pandas Series
========================

Forecast a monthly series with intervals, and test the forecasts on its past.

A forecaster takes a Series and returns one, with the index continued. This example forecasts a
monthly series with intervals, shows the methods that the forecast combines, and compares
forecasts of the past with observations.
"""

# %%
# A series with irregular cycles
# ------------------------------
#
# The series is simulated by a formula for spots on a star like the sun: cycles of about eleven
# years with different heights. High ones rise faster than low ones, and all fall more slowly
# than they rise. The length of the cycles varies, and the calendar year has no effect.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import YearLocator

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import mase, naive_scale, seasonal_naive
from sklearn_attention.inspection import STYLE

random = np.random.default_rng(1)
months = pd.date_range("1900-01", periods=1500, freq="MS", name="month")
time, activity, start = np.arange(len(months)), np.full(len(months), 10.0), -60.0
while start < len(months):
    height = random.uniform(50, 200)
    since = np.clip((time - start) / (48 * (110 / height) ** 0.3), 0, None)
    activity += height * since**2 * np.exp(1 - since**2)
    start += random.normal(132, 8)
noise = np.exp(0.15 * random.standard_normal(len(months)))
spots = pd.Series(activity * noise, months, name="spots")
past, future = spots[:"2019"], spots["2020":]

# %%
# Fit and forecast
# ----------------
#
# The forecaster averages forecasts of many methods for two years, with weights by their errors
# in the past. The only parameter here is the horizon. The forecaster chooses to take logarithms
# of the spots, and finds the cycle of eleven years.

model = TransformerForecaster(horizon=24).fit(past)
print("logarithms:", model.log_, "  seasons:", [round(own, 1) for own in model.seasons_])
print(model.predict().head(3).round(1))

# %%
# The forecast continues the index. Beyond the horizon it starts from its own forecasts.
# Intervals are quantiles of errors on held-out data and assume no distribution of the noise;
# they widen where forecasts start from forecasts.

forecast = model.predict(60, coverage=0.9)
inside = future.between(forecast["lower_90"], forecast["upper_90"])
print(f"{inside.sum()} of {len(future)} months are inside the 90 % intervals")

# %%
# The candidates and their weights
# --------------------------------
#
# ``candidate_weights_`` has the weights of the methods, and ``explain`` returns those that are
# not 0, with the forecasts. Linear maps of windows and analogs, at several lengths, have most
# of the weight: none is clearly the best, and their errors partly cancel.

explained = model.explain()
print(explained[["candidate", "weight", 1, 12, 24]].round(2).to_string(index=False))

# %%
# A backtest
# ----------
#
# ``backtest`` forecasts the last ten years, two at a time, each from the observations before,
# and returns forecasts beside observations. Errors are in units of the mean absolute difference
# between successive months. Two other methods are compared: averages of the values that
# followed similar windows, by :class:`~sklearn_attention.KernelForecaster`, and the values of
# eleven years before. With other random seeds the averages of similar windows are sometimes
# better: try both.

models = {
    "candidates": TransformerForecaster(horizon=24),
    "similar windows": KernelForecaster(horizon=24, lookback=66),
}
folds = {name: each.backtest(spots, cv=5, coverage=0.9) for name, each in models.items()}
repeated = folds["candidates"].copy()
first = len(spots) - len(repeated)
repeated["forecast"] = np.concatenate(
    [
        seasonal_naive(spots.to_numpy()[None, :end], 24, season_length=132)[0]
        for end in range(first, len(spots), 24)
    ]
)
folds["eleven years ago"] = repeated
scale = naive_scale(spots[:first])
for name, table in folds.items():
    missed = [mase(own["actual"], own["forecast"], scale) for _, own in table.groupby("fold")]
    print(f"{name:<18}{np.mean(missed):.2f}   in each fold", *np.round(missed, 2))

# %%
# New observations without a new fit
# ----------------------------------
#
# ``update`` appends new observations, and ``predict`` forecasts the steps after them.

model.update(spots["2020":"2020-06"])
print(model.predict(3).round(1))

# %%
# The figures
# -----------
#
# Left: the forecast of five years with intervals; the last three start from forecasts. Right:
# the five folds of the backtest.

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)
figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained", sharey=True)

recent = spots["1995":]
ends = forecast["lower_90"], forecast["upper_90"]
left.fill_between(forecast.index, *ends, color=BLUE, alpha=0.2, lw=0)
left.plot(recent, color=INK, lw=1, label="observed")
left.plot(forecast["forecast"], color=BLUE, lw=2.2, label="forecast, and 90 % interval")
left.axvline(forecast.index[0], color=GREY, lw=1, ls="--")
left.set(title="Five years ahead", ylabel="spots", ylim=(0, 330))

right.plot(recent, color=INK, lw=1)
for fold, table in folds["candidates"].groupby("fold"):
    label = "forecast, two years at a time" if fold == 0 else None
    ends = table["lower_90"], table["upper_90"]
    right.fill_between(table["time"], *ends, color=ORANGE, alpha=0.2, lw=0)
    right.plot(table["time"], table["forecast"], color=ORANGE, lw=2.2, label=label)
    right.axvline(table["time"].iloc[0], color=GREY, lw=1, ls="--")
right.set(title="The backtest")
for axis in (left, right):
    axis.legend(frameon=False, loc="upper left")

# %%
# The candidates: their weights, and their forecasts of the first two years, darker for larger
# weights.

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
shown = explained.iloc[::-1]
left.barh(shown["candidate"], shown["weight"], color=BLUE)
left.set(title="Weights of the candidates", xlabel="weight")

two_years = forecast.index[:24]
for _, own in explained.iterrows():
    shade = 0.15 + 0.85 * own["weight"] / explained["weight"].max()
    right.plot(two_years, own[range(1, 25)].to_numpy(), color=BLUE, alpha=shade, lw=1.2)
right.plot([], [], color=BLUE, lw=1.2, label="candidates")
right.plot(forecast["forecast"][:24], color=ORANGE, lw=2.6, label="their average")
right.plot(spots["2016":"2021"], color=INK, lw=1, label="observed")
right.xaxis.set_major_locator(YearLocator())
right.axvline(two_years[0], color=GREY, lw=1, ls="--")
right.set(title="Forecasts of the candidates", ylabel="spots", ylim=(0, None))
right.legend(frameon=False, loc="upper left")
plt.show()
