"""
===============================
Choosing a forecaster by search
===============================

A forecaster is a scikit-learn estimator: :class:`~sklearn.model_selection.GridSearchCV` tunes
it. Two things differ from tables. The folds have to respect time, which
:class:`~sklearn.model_selection.TimeSeriesSplit` does: every fold learns from what came before
its test. And ``fit`` takes the series alone.
"""

# %%
# A series with two seasons
# -------------------------
#
# Demand for electricity, hour by hour, by a formula: a day, a week whose weekends are lower and
# flatter, weather that comes and goes, and noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter, DayLocator
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from sklearn_attention import TransformerForecaster

random = np.random.default_rng(0)
hours = pd.date_range("2025-01-06", periods=10 * 168, freq="h", name="hour")
day = 1 - np.cos(2 * np.pi * (hours.hour - 4) / 24) + 0.4 * np.cos(4 * np.pi * hours.hour / 24)
weather = np.zeros(len(hours))
for now in range(1, len(hours)):
    weather[now] = 0.95 * weather[now - 1] + 0.05 * random.standard_normal()
shape = np.where(hours.day_of_week < 5, 1.0, 0.55) * day + weather
noise = 0.05 * random.standard_normal(len(hours))
demand = pd.Series(20 + 4 * (shape + noise), hours, name="demand")
past, future = demand[:-168], demand[-168:]

# %%
# The search
# ----------
#
# How far to look back, and what the transformer adds to: a ridge, the last season, or nothing.
# The score is minus the mean absolute scaled error, so that higher is better and folds of
# different spread count alike. ``refit=True``, the default, learns the best anew from all of
# the past, and the search then forecasts itself.

grid = {"lookback": [24, 72, 168], "base": ["ridge", "seasonal", None]}
search = GridSearchCV(
    TransformerForecaster(horizon=24, season_length=24, d_model=32, n_layers=1, max_steps=60),
    grid,
    cv=TimeSeriesSplit(2, test_size=168),
).fit(past)
table = pd.DataFrame(search.cv_results_)
table["base"] = table["param_base"].fillna("none")
table["lookback"] = table["param_lookback"]
errors = -table.pivot(index="lookback", columns="base", values="mean_test_score")
print(errors.round(2))
print("best:", search.best_params_, f"scaled error {-search.best_score_:.2f}")

# %%
# A test that the search has not seen
# -----------------------------------
#
# A week, forecast a day at a time from forecasts.

forecast = search.predict(168)
print(f"scaled error on the last week: {-search.score(future):.2f}")

# %%
# The figure
# ----------
#
# Left, what the search saw: a week is needed to know a weekend from a working day. Right, the
# last week, after the days before.

INK, GREY, COLORS = "#25313d", "#8a949e", ["#2b6cb0", "#d9822b", "#2a9d8f"]
plt.rc("font", size=11)
plt.rc("axes", titlelocation="left", titleweight="bold", edgecolor=GREY)
plt.rc("axes.spines", top=False, right=False)
layout = {"layout": "constrained", "width_ratios": [2, 3]}
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), **layout)

places = range(len(grid["lookback"]))
for base, color in zip(["ridge", "seasonal", "none"], COLORS, strict=True):
    label = "transformer alone" if base == "none" else f"on top of {base}"
    left.plot(places, errors[base], color=color, lw=2.2, marker="o", label=label)
left.set_xticks(places, grid["lookback"])
left.set(title="The search", xlabel="lookback (hours)", ylabel="scaled error", ylim=(0, None))
left.legend(frameon=False)

right.plot(demand[-11 * 24 :], color=INK, lw=1.2, label="observed")
right.plot(forecast, color=COLORS[0], lw=2.2, label="forecast")
right.axvline(forecast.index[0], color=GREY, lw=1, ls="--")
right.set(title="A week that nothing was learned from", ylabel="demand (GW)")
right.xaxis.set_major_locator(DayLocator())
right.xaxis.set_major_formatter(DateFormatter("%a"))
right.legend(frameon=False, loc="lower left")
plt.show()
