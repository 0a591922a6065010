"""Forecasts and intervals of 90 % of series that broke, and beyond the horizon.

    python benchmarks/breaks.py

* breaks: seasonal series with noise that fell by half, jumped up, rose along a ramp or stopped,
  so many steps before their end: monthly, weekly, daily and hourly, ten seeds of each. What
  follows goes on as after the break. "far" counts ends of intervals that are farther than three
  ranges of the series outside of it; "error" is the median over series of the absolute error
  relative to that of the better of the last value and the last season.
* beyond the horizon: random walks and seasonal series, a hundred of each, over three horizons.
  Expected: coverage stays near 90 %, and widths do not fall where a block of forecasts from
  forecasts begins.

Seconds are not measured. It takes about ten minutes of a processor.
"""

import warnings
from itertools import product

import numpy as np
import pandas as pd
from _results import markdown, stamp
from threadpoolctl import threadpool_limits

from sklearn_attention import KernelForecaster, TransformerForecaster

MODELS = {"TransformerForecaster": TransformerForecaster, "KernelForecaster": KernelForecaster}
HORIZON, SEEDS, STEPS_SINCE = 12, range(1000, 1010), (1, 3, 12, 14, 24)
# Frequency, steps in a season, and steps of a series.
CALENDARS = {
    "monthly": ("MS", 12, 120),
    "weekly": ("W", 52, 208),
    "daily": ("D", 7, 200),
    "hourly": ("h", 24, 240),
}
KINDS = ("drop", "step", "ramp", "zeros")
LEVEL, SEASON, NOISE = 100.0, 10.0, 2.0
TEXT = [
    "Intervals of 90 %, twelve steps ahead. Series with a season around 100, of amplitude 10, "
    "and noise of 2 fell by 50, rose by 40 at once or within eight steps, or stopped, ten of "
    "each kind and calendar. Far ends are more than three ranges of the series outside of it; "
    "errors are medians of those relative to the better of the last value and the last season."
]


def broken(kind, calendar, n_since, seed):
    """A series as a pandas Series, and what follows it."""
    frequency, season, n = CALENDARS[calendar]
    t = np.arange(n + HORIZON)
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=len(t))
    values = LEVEL + SEASON * np.sin(2 * np.pi * t / season) + noise
    since = np.maximum(t - (n - n_since) + 1, 0)
    values += {"drop": -50, "step": 40, "ramp": 0, "zeros": 0}[kind] * (since > 0)
    if kind == "ramp":
        values += 5 * np.minimum(since, 8)
    if kind == "zeros":
        values[since > 0] = 0.0
    index = pd.date_range("2015-01-01", periods=n, freq=frequency)
    return pd.Series(values[:n], index), values[n:]


def measure_breaks(model):
    """A row for each series."""
    rows = []
    for calendar, kind, n_since, seed in product(CALENDARS, KINDS, STEPS_SINCE, SEEDS):
        series, future = broken(kind, calendar, n_since, seed)
        forecast, lower, upper = model(HORIZON).fit(series).predict(coverage=0.9).to_numpy().T
        past, season = series.to_numpy(), CALENDARS[calendar][1]
        low, high = past.min(), past.max()
        far = 3 * (high - low)
        last_season = past[len(past) - season + np.arange(HORIZON) % season]
        naive = min(np.abs(simple - future).mean() for simple in (past[-1], last_season))
        rows.append({
            "calendar": calendar, "kind": kind, "since": n_since,
            "coverage": ((lower <= future) & (future <= upper)).mean(),
            "width": (upper - lower).mean() / (high - low),
            "far": np.sum((lower < low - far) | (upper > high + far)),
            "error": np.abs(forecast - future).mean() / max(naive, NOISE / 2),
        })  # fmt: skip
    return pd.DataFrame(rows)


def breaks():
    """Lines on breaks."""
    lines = ["## Breaks", ""]
    for name, model in MODELS.items():
        table = measure_breaks(model)
        by_since = table.groupby("since").agg(
            {"coverage": "mean", "width": "mean", "far": "sum", "error": "median"}
        )
        cells = [
            [str(since), f"{row.coverage:.2f}", f"{row.width:.2f}", f"{row.far:.0f}",
             f"{row.error:.1f}"]
            for since, row in by_since.iterrows()
        ]  # fmt: skip
        header = ["steps since the break", "coverage", "width in ranges", "far ends", "error"]
        late = table[table["since"] >= 12]
        shares = [
            ", ".join(
                f"{key} {value:.2f}"
                for key, value in late.groupby(by)["coverage"].mean().items()
            )
            for by in ("calendar", "kind")
        ]
        lines += [f"### {name}", "", *markdown(header, cells), ""]
        lines += [f"Coverage from twelve steps on: {'; '.join(shares)}.", ""]
    return lines


def beyond():
    """Lines on random walks and seasonal series over three horizons."""
    rows = []
    for (name, model), kind in product(MODELS.items(), ("random walks", "seasonal series")):
        covered, widths = [], []
        for seed in range(1000, 1100):
            t = np.arange(180 + 3 * HORIZON)
            noise = np.random.default_rng(seed).normal(size=len(t))
            values = 100 + noise.cumsum()
            if kind == "seasonal series":
                values = 100 + 10 * np.sin(2 * np.pi * t / 12) + 2 * noise
            index = pd.date_range("2005-01-01", periods=180, freq="MS")
            series, future = pd.Series(values[:180], index), values[180:]
            _, lower, upper = (
                model(HORIZON).fit(series).predict(3 * HORIZON, coverage=0.9).to_numpy().T
            )
            covered.append((lower <= future) & (future <= upper))
            widths.append(upper - lower)
        covered, width = np.mean(covered, axis=0), np.mean(widths, axis=0)
        for k in range(3):
            block = slice(k * HORIZON, (k + 1) * HORIZON)
            before = f"{width[block.start - 1]:.1f} → " if k else ""
            rows.append([
                name, kind, str(k + 1), f"{covered[block].mean():.2f}",
                f"{covered[block].min():.2f}", f"{before}{width[block.start]:.1f}",
            ])  # fmt: skip
    header = ["", "series", "horizon", "coverage", "least of a step", "width where it begins"]
    return ["## Beyond the horizon", "", *markdown(header, rows)]


def main():
    """Print the page."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = ["# Breaks, and beyond the horizon", "", stamp("numpy", "pandas"), ""]
        lines += [*TEXT, "", *breaks(), *beyond()]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
