"""
===================================
A transformer learns to be periodic
===================================

A sine, a sine that grows, and a square wave: a published comparison trains transformers on the
first 1000 steps of each and forecasts the next 200, from their own forecasts.
``TransformerForecaster(candidates=None)``, the transformer alone, does the same here. Then its
attention shows that it has found the period.
"""

# %%
# Forecasts
# ---------
#
# All three series have the period :math:`2\pi`, sampled every 0.1, so that no whole number of
# steps makes a period. The forecaster sees windows of 200 steps, cut into patches of 8, and
# answers 50 steps at once; four rounds make 200.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import Architecture, Training, TransformerForecaster
from sklearn_attention.datasets import make_periodic_series
from sklearn_attention.inspection import STYLE, AttentionMapDisplay

GREY, BLUE, ORANGE = "#8a949e", "C0", "C1"
plt.rcParams.update(STYLE)

names = {"sine": "sin(x)", "growing_sine": "sin(x) exp(0.01x)", "square": "square(x)"}
published = {"sine": 0.0050, "growing_sine": 0.0085, "square": 0.0243}

forecasts, errors = {}, {}
for name in names:
    series = make_periodic_series(name)
    past, future = series[:1000], series[1000:]
    forecaster = TransformerForecaster(
        horizon=50, lookback=200, candidates=None, training=Training(max_steps=300)
    )
    forecasts[name] = forecaster.fit(past).predict(200)
    errors[name] = np.mean((forecasts[name] - future) ** 2)

table = pd.DataFrame({"published": published, "here": errors})
print(table.rename(index=names).map("{:.2g}".format))

# %%
# The squared error of the square wave is that of its edges: one edge, one step too early or too
# late, costs 4 / 200 = 0.02.

figure, axes = plt.subplots(3, 1, figsize=(8, 6.5), sharex=True, layout="constrained")
for ax, (name, title) in zip(axes, names.items(), strict=True):
    series = make_periodic_series(name)
    steps = np.arange(len(series))
    ax.plot(steps[800:1000], series[800:1000], color=GREY, label="source")
    ax.plot(steps[1000:], series[1000:], color=BLUE, linewidth=4, alpha=0.35, label="target")
    ax.plot(steps[1000:], forecasts[name], color=ORANGE, label="forecast")
    ax.set_title(title)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
axes[-1].set_xlabel("step")

# %%
# What it attends to
# ------------------
#
# With ``patch_length=1`` every step is a token, and the attention a map of steps by steps.
# Learned positions start near 0, so that tokens are told apart by their values at first. Below
# are the maps of the first head of the second layer, one for each series. Steps attend to those
# of the same part of a period, in every period: stripes and fields that come again after a
# period, which the lines beneath, autocorrelations along the keys, show.

attention = {}
for name in names:
    forecaster = TransformerForecaster(
        horizon=50,
        lookback=200,
        candidates=None,
        architecture=Architecture(patch_length=1, positions="learned"),
        d_model=32,
        n_heads=2,
        batch_size=32,
        training=Training(max_steps=150),
    )
    forecaster.fit(make_periodic_series(name)[:1000])
    attention[name] = forecaster.attention_maps()[0, 1, 0]  # second layer, first head

lags = np.arange(150)
figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained", height_ratios=[2, 1])
for (above, below), (name, weights) in zip(axes.T, attention.items(), strict=True):
    AttentionMapDisplay.from_weights(weights, ax=above)
    above.set_title(names[name])
    centred = weights - weights.mean(axis=1, keepdims=True)
    products = [np.mean(centred[:, : 200 - lag] * centred[:, lag:]) for lag in lags]
    correlation = np.array(products) / products[0]
    print(f"{name:<14}peak at {30 + np.argmax(correlation[30:100])} steps; the period is 62.8")
    below.plot(lags, correlation)
    below.axvline(20 * np.pi, color=GREY, lw=1, ls="--")
    below.set_xlabel("lag (steps)")
axes[1, 0].set_ylabel("autocorrelation")
plt.show()
