"""Forecasts of short series, of series with an outlier, and of counts, by seeds.

    python benchmarks/forecasting_edges.py [short] [outliers] [counts] [parts] [--seeds N]

Prints Markdown tables, of all four where none is named.

* short: random walks, independent values and trends with noise, of 4 to 15 steps, three steps
  ahead: the share of values within intervals of 90 %, the mean interval score, and the widest
  interval, both in standard deviations of the noise. Expected: about 90 % each.
* outliers: a season of 12 months or 7 days around 100 of amplitude 10 with noise of standard
  deviation 1, of 120 to 400 steps, where one value is 10 000: so many steps before the end, or
  in the middle. The largest error of any forecast, the share of forecasts within their own
  intervals, and of new values within these. Expected: errors like those without.
* counts: 150 steps of a Poisson distribution, 12 ahead: the sum of forecasts relative to its
  expectation, how much the upper ends of intervals differ between neighbouring steps, relative
  to their mean, the share of values within intervals, and the least number. Expected: unbiased,
  smooth, not negative; counts of few values are within more often than 90 %.
* parts: monthly sales of 400 car parts, three of four of which are 0, 6 ahead from three
  origins, from the file `forecasting/carparts.csv.gz` of the data folder: sums relative to what
  was sold, and root mean squares of errors relative to those of neighbouring months, in the
  mean over parts and of all, beside exponential smoothing by .1 and the mean of a year.
  Expected: as these, which know that nothing but the level counts.

Ten minutes on one core with 40 seeds, of which outliers take most. Progress goes to stderr.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

# Before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd

from sklearn_attention import KernelForecaster, TransformerForecaster

COVERAGE = 0.9
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LENGTHS = (4, 5, 6, 7, 8, 10, 12, 15)
PLACES = (1, 2, 3, 5, 10, "middle")
RATES = (0.1, 0.5, 2.0, 20.0)


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def table(*names):
    print()
    row(*names)
    row(*("---" for _ in names))


def within(actual, lower, upper):
    return ((actual >= lower) & (actual <= upper)).mean()


def short_series(kind, n, horizon, seed):
    """Past and future of a series whose noise has standard deviation 1."""
    noise = np.random.default_rng([seed, n]).normal(size=n + horizon)
    y = {
        "random walk": 10 + np.cumsum(noise),
        "independent": 10 + noise,
        "trend": 10 + 0.5 * np.arange(n + horizon) + noise,
    }[kind]
    return y[:n], y[n:]


def short(n_seeds):
    horizon = 3
    table("series", "steps", "coverage, %", "score", "widest")
    for kind in ("random walk", "independent", "trend"):
        for n in LENGTHS:
            coverage, scores, widths = [], [], []
            for seed in range(n_seeds):
                past, future = short_series(kind, n, horizon, seed)
                model = TransformerForecaster(horizon).fit(past)
                lower, upper = model.predict_interval(coverage=COVERAGE).T
                beyond = np.maximum(lower - future, 0) + np.maximum(future - upper, 0)
                coverage.append(within(future, lower, upper))
                scores.append(upper - lower + 2 / (1 - COVERAGE) * beyond)
                widths.append((upper - lower).max())
            row(
                kind, n, f"{100 * np.mean(coverage):.1f}", f"{np.mean(scores):.2f}",
                f"{max(widths):.1f}",
            )  # fmt: skip
            print(kind, n, file=sys.stderr)


def with_outlier(season, place, horizon, seed):
    """A series with an outlier, what follows it without noise, and with."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(120, 401))
    level = 100 + 10 * np.sin(2 * np.pi * np.arange(n + horizon) / season)
    y = level + rng.normal(size=n + horizon)
    y[n // 2 if place == "middle" else n - place] = 1e4
    freq = {12: "MS", 7: "D"}[season]
    past = pd.Series(y[:n], pd.date_range("2000-01-01", periods=n, freq=freq))
    return past, level[n:], y[n:]


def outliers(n_seeds):
    horizon = 6
    table(
        "forecaster", "season", "steps before the end", "largest error", "median of largest",
        "within its interval, %", "coverage, %",
    )  # fmt: skip
    for kind in (KernelForecaster, TransformerForecaster):
        for season in (12, 7):
            for place in PLACES:
                errors, own, coverage = [], [], []
                for seed in range(n_seeds):
                    past, level, future = with_outlier(season, place, horizon, seed)
                    found = kind(horizon).fit(past).predict(coverage=COVERAGE)
                    forecast, lower, upper = found.to_numpy().T
                    errors.append(np.abs(forecast - level).max())
                    own.append(within(forecast, lower, upper))
                    coverage.append(within(future, lower, upper))
                row(
                    kind.__name__, season, place, f"{max(errors):.1f}",
                    f"{np.median(errors):.1f}", f"{100 * np.mean(own):.0f}",
                    f"{100 * np.mean(coverage):.0f}",
                )  # fmt: skip
                print(kind.__name__, season, place, file=sys.stderr)


def counts(n_seeds):
    n, horizon = 150, 12
    table("forecaster", "rate", "sum, relative", "jumps", "coverage, %", "least")
    for kind in (KernelForecaster, TransformerForecaster):
        for rate in RATES:
            sums, jumps, coverage, least = [], [], [], []
            for seed in range(n_seeds):
                y = np.random.default_rng(seed).poisson(rate, n + horizon).astype(float)
                found = kind(horizon).fit(pd.Series(y[:n])).predict(coverage=COVERAGE)
                forecast, lower, upper = found.to_numpy().T
                sums.append(forecast.sum() / (rate * horizon))
                jumps.append(np.abs(np.diff(upper)).mean() / max(upper.mean(), 1e-12))
                coverage.append(within(y[n:], lower, upper))
                least.append(min(forecast.min(), lower.min()))
            row(
                kind.__name__, rate, f"{np.mean(sums):.2f}", f"{np.mean(jumps):.2f}",
                f"{100 * np.mean(coverage):.0f}", f"{min(least):.2g}",
            )  # fmt: skip
            print(kind.__name__, rate, file=sys.stderr)


def smoothed(past, horizon):
    level = past[:6].mean(axis=0)
    for sold in past:
        level = level + 0.1 * (sold - level)
    return np.tile(level, (horizon, 1))


def parts(n_seeds, horizon=6):
    whole = pd.read_csv(DATA / "forecasting" / "carparts.csv.gz").dropna(axis=1)
    whole = whole.sample(400, axis=1, random_state=0)
    months = pd.date_range("1998-01-01", periods=len(whole), freq="MS")
    methods = {
        "exponential smoothing": lambda past: smoothed(past.to_numpy(), horizon),
        "mean of a year": lambda past: np.tile(past[-12:].mean(), (horizon, 1)),
        "KernelForecaster": lambda past: KernelForecaster(horizon).fit(past).predict(),
        "TransformerForecaster": lambda past: (
            TransformerForecaster(horizon).fit(past).predict()
        ),
    }
    table("forecaster", "sum, relative", "RMSSE", "of all", "s")
    for name, forecast in methods.items():
        found, start = [], time.process_time()
        for end in (33, 39, 45):
            past, later = whole[:end].set_axis(months[:end]), whole[end : end + horizon]
            past = past.loc[:, past.any()]
            later, given = later[past.columns].to_numpy(), np.asarray(forecast(past))
            unit = np.sqrt((past.diff()[1:].to_numpy() ** 2).mean(axis=0))
            missed = ((given - later) / unit) ** 2
            mean, of_all = np.sqrt(missed.mean(axis=0)).mean(), np.sqrt(missed.mean())
            found.append((given.sum() / later.sum(), mean, of_all))
        seconds = (time.process_time() - start) / 3
        row(name, *(f"{value:.3f}" for value in np.mean(found, axis=0)), f"{seconds:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tables = {"short": short, "outliers": outliers, "counts": counts, "parts": parts}
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--seeds", type=int, default=40)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.tables or tables:
        tables[name](arguments.seeds)
