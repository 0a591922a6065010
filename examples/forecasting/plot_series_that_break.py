"""
Series that break
=================

See what forecasts and their intervals do after level shifts, drops and stops.

Level shifts, drops, a first jump and a stop, and a horizon beyond the history: forecasts go on
from the level where a series is now, and intervals are as wide as what is not known yet.
"""

# %%
# A break is a change far larger than all others, after which the level stays another one for
# three steps or more. Before anything is learned, all steps before it are moved to the level
# after it. After a single step nobody can tell a jump from an outlier: the forecast stays, and
# the interval reaches the last value.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_attention import TransformerForecaster

months = pd.date_range("2016-01-01", periods=84, freq="MS")
t = np.arange(84)
rng = np.random.default_rng(0)
season = 100 + 10 * np.sin(2 * np.pi * t / 12) + 2 * rng.normal(size=84)


def shifted(n_since, by):
    """Return the series with another level in its last `n_since` months."""
    return season + by * (t >= 84 - n_since)


series = {
    "rose by 40 a year ago": shifted(12, 40),
    "fell by 50 five months ago": shifted(5, -50),
    "jumped last month": shifted(1, 40),
    "stopped half a year ago": np.where(t >= 78, 0.0, season),
    "a price, raised once": np.where(t >= 70, 12.49, 9.99) + 0.01 * rng.normal(size=84),
    "a random walk, three horizons": 100 + rng.normal(size=84).cumsum(),
}

fig, axes = plt.subplots(3, 2, figsize=(10, 8), layout="constrained")
for ax, (name, values) in zip(axes.flat, series.items(), strict=True):
    history = pd.Series(values, months)
    n_steps = 36 if "horizons" in name else 12
    forecast = TransformerForecaster(12).fit(history).predict(n_steps, coverage=0.9)
    ax.plot(history, color="0.3", lw=1)
    ax.plot(forecast["forecast"], color="C0")
    ax.fill_between(
        forecast.index, forecast["lower_90"], forecast["upper_90"], color="C0", alpha=0.2
    )
    ax.set_title(name)
fig.suptitle("Forecasts with 90 % intervals")
plt.show()

# %%
# What was observed stays what it was, and steps before a break are still forecast from those
# before them. With features nothing is moved, since these may explain a break: a holiday, a
# price, or a column that is 1 from the break on.
model = TransformerForecaster(12).fit(pd.Series(series["rose by 40 a year ago"], months))
model.predict(coverage=0.9).round(0)
