"""
=======================================
Choose a forecaster by cross-validation
=======================================

Tune a forecaster by cross-validation in which each fold comes after its training data.

:class:`~sklearn.model_selection.GridSearchCV` tunes forecasters as other estimators, with two
differences. With :class:`~sklearn.model_selection.TimeSeriesSplit` every fold is fitted on
observations before its test. And ``fit`` takes only the series.
"""

# %%
# A series with two seasons
# -------------------------
#
# Hourly demand for electricity, simulated by a formula: a daily and a weekly season, with less
# demand at weekends, autocorrelated weather, and noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter, DayLocator
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from sklearn_attention import TransformerForecaster
from sklearn_attention.inspection import STYLE

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
# By default :class:`~sklearn_attention.TransformerForecaster` averages the forecasts of several
# kinds of methods, with weights by their errors in the past, and finds seasons in the index and
# the series. The search compares this with a single kind of method and with a given season. The
# score is minus the mean absolute scaled error: higher is better, and folds of different spread
# have equal weight. ``refit=True``, the default, fits the best forecaster to all of the past,
# and the search then forecasts with it.

kinds = ["classical", "ridge", "analogs"]
grid = {"candidates": [*([kind] for kind in kinds), "auto"], "season_length": [24, "auto"]}
search = GridSearchCV(
    TransformerForecaster(horizon=24, log=False), grid, cv=TimeSeriesSplit(3, test_size=168)
).fit(past)
table = pd.DataFrame(search.cv_results_)
table["candidates"] = ["all" if own == "auto" else own[0] for own in table["param_candidates"]]
table["season"] = table["param_season_length"].map({24: "a day", "auto": "found"})
errors = -table.pivot(index="candidates", columns="season", values="mean_test_score")
errors = errors.loc[[*kinds, "all"]]
print(errors.round(2))
print("best:", search.best_params_, f"scaled error {-search.best_score_:.2f}")

# %%
# A test outside the search
# -------------------------
#
# The last week, forecast a day at a time, each day from the forecasts before.

forecast = search.predict(168)
print(f"scaled error on the last week: {-search.score(future):.2f}")

# %%
# The figure
# ----------
#
# Left: scores of the search. The average of all kinds is better than each of them, and only
# seasonal means need the weekly season, since long windows contain it. Right: the last week,
# after the days before.

INK, GREY, COLORS = "#25313d", "#8a949e", ["C0", "C1"]
plt.rcParams.update(STYLE)
layout = {"layout": "constrained", "width_ratios": [2, 3]}
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), **layout)

places = np.arange(len(errors))
for season, color, shift in zip(["found", "a day"], COLORS, [-0.2, 0.2], strict=True):
    label = f"season: {season}"
    left.bar(places + shift, errors[season], width=0.38, color=color, label=label)
left.set_xticks(places, errors.index)
left.set(title="The search", xlabel="candidates", ylabel="scaled error")
left.legend(frameon=False)

right.plot(demand[-11 * 24 :], color=INK, lw=1.2, label="observed")
right.plot(forecast, color=COLORS[0], lw=2.2, label="forecast")
right.axvline(forecast.index[0], color=GREY, lw=1, ls="--")
right.set(title="The test week", ylabel="demand (GW)", ylim=(16, None))
right.xaxis.set_major_locator(DayLocator())
right.xaxis.set_major_formatter(DateFormatter("%a"))
right.legend(frameon=False, loc="lower left")
plt.show()
