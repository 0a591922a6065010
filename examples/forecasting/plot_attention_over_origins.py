"""
Weights of forecasts that depend on the state of a series
=========================================================

See how a forecaster of a panel weights its methods by the state that a series is in.

In a panel of thirty series or more, ``TransformerForecaster`` weights its candidates by the
errors that they had at past origins where the state of a series was similar. The state is how
far the candidates differ, how far their mean moves, and how far it departs from the last value.

Here every series is a random walk for most of the time. Now and then it jumps, and comes back
within a few steps. After a jump the last value is the worst forecast, at all other times it is
among the best.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import TransformerForecaster

rng = np.random.default_rng(0)
n_series, n_steps, horizon = 80, 120, 4
panel = np.cumsum(0.3 * rng.normal(size=(n_steps, n_series)), axis=0)
for series in range(n_series):
    for jump in rng.choice(np.arange(5, n_steps - 1, 5), size=8, replace=False):
        back = np.array([1.0, 0.6, 0.2])[: n_steps - jump]
        panel[jump : jump + 3, series] += rng.choice([-8, 8]) * back
# Half of the series end with a jump that has just happened.
panel[-1, : n_series // 2] += 8
panel = pd.DataFrame(panel, index=pd.period_range("2020-01", periods=n_steps, freq="M"))

# %%
# Attention over past origins is part of the fit. ``attention_`` is None if it would not save
# more than one standard error.
model = TransformerForecaster(horizon, season_length=1).fit(panel)
print("bandwidth of the attention:", model.attention_.bandwidth)

# %%
# ``candidate_weights_`` are the weights at the end of each series, and ``explain`` has the
# forecasts as well. How far these differ is the first number of the state.
explained = model.explain()
spread = explained.groupby("series")[list(range(1, horizon + 1))].std().mean(axis=1)
weight = model.candidate_weights_["naive"]
has_jumped = np.arange(n_series) < n_series // 2
print("spread of the candidates:", spread.groupby(has_jumped).mean().round(2).to_dict())
print("weight of the last value:", weight.groupby(has_jumped).mean().round(2).to_dict())

# %%
# After a jump candidates differ, and the last value loses its weight.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for jumped, label in ((True, "has just jumped"), (False, "random walk")):
    rows = has_jumped == jumped
    axes[0].scatter(spread[rows], weight[rows], s=14, label=label)
axes[0].set(xlabel="spread of the candidates", ylabel="weight of the last value")
axes[0].legend()
forecast = model.predict()
for series in (0, n_series - 1):
    past = panel[series].iloc[-24:]
    (line,) = axes[1].plot(np.arange(-24, 0), past)
    axes[1].plot(np.arange(horizon), forecast[series], "--", color=line.get_color())
axes[1].set(xlabel="steps from the origin", title="a series of each kind and its forecast")
plt.show()
