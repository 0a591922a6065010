"""
=================
A shop that opens
=================

Predict the sales of a shop that is in none of the training rows, with intervals that allow for
it.

A table of sales has a column that names the shop, and next week a shop opens that is in none
of its rows. What it will sell is unknown for two reasons: sales differ from week to week, as in
every shop, and nobody knows yet whether this shop is a good one.
:class:`~sklearn_attention.KernelAttentionRegressor` learns from the other shops how much shops
differ, and its intervals allow for both.
"""

# %%
# Twenty shops and one more
# -------------------------
#
# All shops sell more ice cream in warmer weeks. Besides, each shop sells more or less than the
# mean of all shops, with a standard deviation of 8 thousand. The weeks of one shop differ by 1
# thousand.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.inspection import STYLE

plt.rcParams.update(STYLE)

rng = np.random.default_rng(4)
n_shops, n_weeks = 21, 8
shop = np.repeat(np.arange(n_shops), n_weeks)
warmth = rng.uniform(5, 30, len(shop))  # degrees
sales = 25 + 1.2 * warmth + 8 * rng.normal(size=n_shops)[shop] + rng.normal(size=len(shop))
table = pd.DataFrame({"warmth": warmth, "shop": [f"shop {k}" for k in shop]})
opens = shop == n_shops - 1

model = KernelAttentionRegressor().fit(table[~opens], sales[~opens])

# %%
# Two intervals
# -------------
#
# Eight weeks of shop 3 are in training, so its interval says what one more week may bring. The
# interval of the new shop is about as wide as the sales of all shops at that temperature.

grid = pd.DataFrame({"warmth": np.linspace(5, 30, 80)})
fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
panels = ("shop 3", "Shop 3 is in training"), ("shop 20", "Shop 20 opens next week")
for ax, (name, title) in zip(axes, panels, strict=True):
    queries = grid.assign(shop=name)
    lower, upper = model.predict_interval(queries, coverage=0.9).T
    of_shop = table["shop"] == name
    ax.scatter(warmth[~opens], sales[~opens], s=9, color="0.8", label="weeks in training")
    ax.fill_between(grid["warmth"], lower, upper, alpha=0.25, label="90 % interval")
    ax.plot(grid["warmth"], model.predict(queries), label="prediction")
    ax.scatter(
        warmth[of_shop], sales[of_shop], s=24, color="C1", zorder=3, label="weeks of this shop"
    )
    ax.set(title=title, xlabel="temperature in degrees")
axes[0].set_ylabel("sales in thousands a week")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

# %%
# How much shops differ
# ---------------------
#
# Weeks of each shop are predicted a second time, without all weeks of that shop. By how much
# the squared errors become larger is the variance of what a shop adds, and squares of both
# widths add up. If names of shops tell nothing, nothing is added: intervals of a new name are
# about as wide as those of a known one.

shuffled = table.assign(shop=rng.permutation(table["shop"]))
blind = KernelAttentionRegressor().fit(shuffled[~opens], sales[~opens])
for name in ("shop 3", "a new shop"):
    widths = np.diff(blind.predict_interval(grid.assign(shop=name)))
    print(f"names at random, {name}: intervals of width {widths.mean():.0f}")
