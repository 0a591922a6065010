"""
===========================
Forecasting a pandas Series
===========================

A forecaster takes a Series with its index and returns one: dates in, dates out. This example
follows a monthly series from ``fit`` to a forecast with intervals, and asks how good such
forecasts would have been in the past.
"""

# %%
# Spots on a star
# ---------------
#
# Made by a formula, after those of the sun: cycles of about eleven years, each of another
# height; a high one rises faster than a low one, and all fall more slowly than they rise.
# There is no season that repeats, and what comes next depends on more than a linear map of
# the last years can say.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import seasonal_naive

random = np.random.default_rng(1)
months = pd.date_range("1900-01", periods=1500, freq="MS", name="month")
time, activity, start = np.arange(len(months)), np.zeros(len(months)), -60.0
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
# Forecasts of two years are made from the five and a half before. The forecaster starts from
# a linear map of the window, and adds what its transformer has learned beyond that, as far as
# windows that were held out support it: that share is the gate.

model = TransformerForecaster(horizon=24, lookback=66, max_steps=300).fit(past)
print(f"base: {model.base_}; gate: {model.gate_:.2f}")
print(model.predict().head(3).round(1))

# %%
# The forecast continues the index, and rolls on beyond the horizon when more steps are asked
# for. Intervals come from errors on the windows that were held out, whatever the noise is
# like; they widen where forecasts are made from forecasts.

forecast = model.predict(60)
interval = model.predict_interval(60, coverage=0.9)
inside = future.between(interval["lower"], interval["upper"])
print(f"{inside.sum()} of {len(future)} months are inside the 90 % intervals")

# %%
# News without learning anew
# --------------------------
#
# ``update`` appends what has happened since, and ``predict`` goes on from there.

model.update(spots["2020":"2020-06"])
print(model.predict(3).round(1))

# %%
# How good would it have been?
# ----------------------------
#
# ``backtest`` forecasts the last ten years, two at a time, each from what came before, and
# returns what it said beside what happened. Errors are in units of the usual difference
# between one month and the next. :class:`~sklearn_attention.KernelForecaster` averages what
# followed similar windows; the linear map alone is a transformer with one step of training;
# and everybody can repeat what was seen eleven years before.
#
# With other random numbers the averages of similar windows are sometimes ahead of the
# transformer: try both.

models = {
    "transformer": model,
    "linear map": TransformerForecaster(horizon=24, lookback=66, max_steps=1),
    "similar windows": KernelForecaster(horizon=24, lookback=66),
}
folds = {name: each.backtest(spots, cv=5) for name, each in models.items()}
repeated = folds["similar windows"].copy()
first = len(spots) - len(repeated)
repeated["forecast"] = np.concatenate(
    [
        seasonal_naive(spots.to_numpy()[None, :end], 24, season_length=132)[0]
        for end in range(first, len(spots), 24)
    ]
)
folds["eleven years ago"] = repeated
scale = spots[:first].diff().abs().mean()
for name, table in folds.items():
    missed = (table["forecast"] - table["actual"]).abs().groupby(table["fold"]).mean() / scale
    print(f"{name:<18}{missed.mean():.2f}   in each fold", *missed.round(2))

# %%
# The figure
# ----------
#
# Left, the forecast of five years, the last three from forecasts, with its intervals. Right,
# the five folds of the backtest.

INK, GREY, BLUE, ORANGE = "#25313d", "#8a949e", "#2b6cb0", "#d9822b"
plt.rc("font", size=11)
plt.rc("axes", titlelocation="left", titleweight="bold", edgecolor=GREY)
plt.rc("axes.spines", top=False, right=False)
figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.6), layout="constrained", sharey=True)

recent = spots["1995":]
left.fill_between(interval.index, *interval.T.to_numpy(), color=BLUE, alpha=0.2, lw=0)
left.plot(recent, color=INK, lw=1, label="observed")
left.plot(forecast, color=BLUE, lw=2.2, label="forecast, and 90 % interval")
left.axvline(forecast.index[0], color=GREY, lw=1, ls="--")
left.set(title="Five years ahead", ylabel="spots", ylim=(0, None))

right.plot(recent, color=INK, lw=1)
for fold, table in folds["transformer"].groupby("fold"):
    label = "forecast, two years at a time" if fold == 0 else None
    right.plot(table["time"], table["forecast"], color=ORANGE, lw=2.2, label=label)
    right.axvline(table["time"].iloc[0], color=GREY, lw=1, ls="--")
right.set(title="The backtest")
for axis in (left, right):
    axis.legend(frameon=False, loc="upper left")
plt.show()
