"""
==============================================
Forecast periodic functions with a transformer
==============================================

Let a transformer alone continue periodic functions, and find the period in its attention
weights.

A published comparison trains transformers on the first 1000 steps of a sine, a growing sine and
a square wave, and forecasts the next 200 from their own forecasts.
``TransformerForecaster(candidates=None)``, a transformer without other methods, does the same
here. Its attention weights show the period.
"""

# %%
# Forecasts
# ---------
#
# All three series have the period :math:`2\pi` and are sampled every 0.1, so the period is not
# a whole number of steps. The forecaster reads windows of 200 steps, cut into patches of 8, and
# forecasts 50 steps at once; four rounds make 200.

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
# The mean squared error of the square wave comes from its edges: one edge that is one step too
# early or too late adds 4 / 200 = 0.02.

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
# Attention weights
# -----------------
#
# With ``patch_length=1`` every step is a token, and the attention a map of steps by steps.
# Learned positions start near 0, so that at first tokens differ by their values. Below are the
# maps of the first head of the second layer, one for each series. Steps attend to steps at the
# same phase of every period, so the maps repeat along the keys after a period. The curves below
# are their autocorrelations along the keys.

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
