"""
===========================
Forecasting a pandas Series
===========================

A forecaster takes a Series with its index and returns one: dates in, dates out. This example
follows a monthly series from ``fit`` to a forecast with intervals, looks at which methods it
comes from, and asks how good such forecasts would have been in the past.
"""

# %%
# Spots on a star
# ---------------
#
# Made by a formula, after those of the sun: cycles of about eleven years, each of another
# height; a high one rises faster than a low one, and all fall more slowly than they rise.
# No season repeats to the month, and the year that goes with months means nothing.

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
# The forecaster asks many methods for two years at once, and weighs them by how well they would
# have forecast from moments in the past. All it is told is the horizon. That spots are better
# looked at as logarithms, and that there is a cycle of eleven years, it finds by itself.

model = TransformerForecaster(horizon=24).fit(past)
print("logarithms:", model.log_, "  seasons:", [round(own, 1) for own in model.seasons_])
print(model.predict().head(3).round(1))

# %%
# The forecast continues the index, and rolls on beyond the horizon when more steps are asked
# for. Intervals come from errors on what was held out, whatever the noise is like; they widen
# where forecasts are made from forecasts.

forecast = model.predict(60, coverage=0.9)
inside = future.between(forecast["lower_90"], forecast["upper_90"])
print(f"{inside.sum()} of {len(future)} months are inside the 90 % intervals")

# %%
# Where it comes from
# -------------------
#
# ``candidate_weights_`` has the weights of the methods, and ``explain`` puts the forecasts of
# those that have one beside them. Linear maps of windows and analogs, at several lengths, share
# most of the weight: none is clearly the best, and their errors partly cancel.

explained = model.explain()
print(explained[["candidate", "weight", 1, 12, 24]].round(2).to_string(index=False))

# %%
# How good would it have been?
# ----------------------------
#
# ``backtest`` forecasts the last ten years, two at a time, each from what came before, and
# returns what it said beside what happened. Errors are in units of the usual difference
# between one month and the next. :class:`~sklearn_attention.KernelForecaster` averages what
# followed similar windows, and everybody can repeat what was seen eleven years before. With
# other random numbers the averages of similar windows are sometimes ahead: try both.

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
# News without learning anew
# --------------------------
#
# ``update`` appends what has happened since, and ``predict`` goes on from there.

model.update(spots["2020":"2020-06"])
print(model.predict(3).round(1))

# %%
# The figures
# -----------
#
# Left, the forecast of five years, the last three from forecasts, with its intervals. Right,
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
# The methods behind the forecast: their weights, and what each of them says of the first two
# years, the heavier the darker.

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
right.set(title="What each of them says", ylabel="spots", ylim=(0, None))
right.legend(frameon=False, loc="upper left")
plt.show()
