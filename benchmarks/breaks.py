"""Forecasts and intervals of 90 % of series that broke, and beyond the horizon.

    python benchmarks/breaks.py [--data FOLDER]

* breaks: seasonal series with noise that fell by half, jumped up, rose along a ramp or stopped,
  so many steps before their end: monthly, weekly, daily and hourly, ten seeds of each. What
  follows goes on as after the break. "far" counts ends of intervals that are farther than three
  ranges of the series outside of it; "error" is the median over series of the absolute error
  relative to that of the better of the last value and the last season.
* real series: series of M3 and M4 weekly, at most 500 of a group, are cut after their breaks,
  once for each break and for up to 5, 11, 23 and more steps since. Errors, in mean absolute
  differences of the series, are compared with those of the same model without a search for
  breaks. Expected: errors are smaller.
* beyond the horizon: random walks and seasonal series, a hundred of each, over three horizons.
  Expected: coverage stays near 90 %, and widths do not fall where a block of forecasts from
  forecasts begins.

Seconds are not measured. It takes about ten minutes of a processor.
"""

import argparse
import os
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from _forecasting_data import TABLES
from _results import HERE, markdown, stamp
from threadpoolctl import threadpool_limits

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._breaks import aligned

MODELS = {"TransformerForecaster": TransformerForecaster, "KernelForecaster": KernelForecaster}
HORIZON, SEEDS, STEPS_SINCE = 12, range(2000, 2010), (1, 3, 12, 14, 24)
# Frequency, steps in a season, and steps of a series.
CALENDARS = {
    "monthly": ("MS", 12, 120),
    "weekly": ("W", 52, 208),
    "daily": ("D", 7, 200),
    "hourly": ("h", 24, 240),
}
KINDS = ("drop", "step", "ramp", "zeros")
LEVEL, SEASON, NOISE = 100.0, 10.0, 2.0
# Season and horizon of groups of real series.
GROUPS = {
    ("m3", "yearly"): (1, 6),
    ("m3", "quarterly"): (4, 8),
    ("m3", "other"): (1, 8),
    ("m3", "monthly"): (12, 12),
    ("m4_weekly", "m4_weekly"): (52, 13),
}
MAX_SERIES = 500
TEXT = [
    "Intervals of 90 %, twelve steps ahead. The generated series have a level of 100, a "
    "season of amplitude 10 and noise of standard deviation 2. At the break the level falls "
    "by 50, rises by 40 at once, rises by 40 within eight steps, or the series becomes zero; "
    "there are ten series of each kind and frequency. “far ends” counts interval ends that "
    "are more than three ranges of the series outside its range. “error” is the median of "
    "the absolute error divided by that of the better of two naive forecasts, the last value "
    "and the last season."
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


def cuts_after_breaks(data):
    """Yield parts of real series that end after a break, what follows, and steps since."""
    for (table, group), (season, horizon) in GROUPS.items():
        tasks = TABLES[table](data)
        (fold,) = next(task() for key, task in tasks.items() if key[0] == group).folds
        names = list(fold.past)
        if len(names) > MAX_SERIES:
            rng = np.random.default_rng(0)
            names = [names[i] for i in rng.choice(len(names), MAX_SERIES, replace=False)]
        for name in names:
            values = np.concatenate([np.asarray(fold.past[name], float), fold.future[name]])
            seen = set()
            step = 1 if len(values) < 150 else 6
            for cut in range(max(20, 3 * season + 8), len(values) - horizon + 1, step):
                _, since = aligned(
                    Table.from_arrays([values[:cut]]), season, 2.0, 3 * max(season, horizon)
                )
                if np.isinf(since[0]):
                    continue
                label = cut - int(since[0]), int(np.searchsorted([5, 11, 23], since[0]))
                if label not in seen:
                    seen.add(label)
                    yield values[:cut], values[cut : cut + horizon], season


def real_series(data):
    """Lines on breaks in real series."""
    rows = []
    for name, model in MODELS.items():

        class Unaligned(model):
            """The same without a search for breaks."""

            _min_break = np.inf

        cells = []
        for past, future, season in cuts_after_breaks(data):
            unit = np.abs(np.diff(past)).mean()
            cells.append([])
            for kind in (Unaligned, model):
                fitted = kind(len(future), season_length=season).fit(past)
                forecast, lower, upper = fitted.predict(coverage=0.9).T
                is_covered = (lower <= future) & (future <= upper)
                cells[-1] += [np.abs(forecast - future).mean() / unit, is_covered.mean()]
        without, covered_without, error, covered = np.array(cells).T
        # A twentieth of a difference is added, since some errors are next to nothing.
        ratio = np.exp(np.mean(np.log((error + 0.05) / (without + 0.05))))
        rows.append([
            name, str(len(cells)), f"{ratio:.3f}", f"{error.mean() / without.mean():.3f}",
            f"{covered_without.mean():.2f} → {covered.mean():.2f}",
        ])  # fmt: skip
    header = [
        "",
        "breaks",
        "geometric mean of error ratios",
        "ratio of mean errors",
        "coverage",
    ]
    note = (
        "Errors with the search for breaks are compared with those of the same forecaster "
        "without it. The last column is the coverage without and with the search."
    )
    return ["## Breaks in real series", "", note, "", *markdown(header, rows), ""]


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
    header = [
        "",
        "series",
        "which horizon",
        "coverage",
        "smallest coverage of a step",
        "width at the start of the horizon",
    ]
    return ["## Beyond the horizon", "", *markdown(header, rows)]


def main():
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", HERE.parents[1] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(folder), help="of real series")
    data = parser.parse_args().data
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        lines = ["# Breaks, and beyond the horizon", "", stamp("numpy", "pandas"), ""]
        lines += [*TEXT, "", *breaks(), *real_series(data), *beyond()]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
