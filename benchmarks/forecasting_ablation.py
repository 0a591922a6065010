"""What each kind of candidates, and each way to combine them, is worth.

    python benchmarks/forecasting_ablation.py [--sets A,B] [--data FOLDER]

Prints a Markdown table: the mean absolute scaled error of `TransformerForecaster` at its
defaults, and of variants, each a column of ratios to it, where more than 1 is worse. Variants
lack one kind of candidates; weigh all candidates alike; take the best candidate of each series
alone; or do without the learned attention of panels. Sets are some of those of
`forecasting.py`; single series are forecast at their last five stretches of a horizon.

Expected: every kind is missed somewhere; equal weights and the best candidate alone lose nearly
everywhere; attention gains on panels of short series.

Half an hour on one core with all sets. Progress goes to stderr.
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

# Before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from _forecasting_data import TABLES

from sklearn_attention import TransformerForecaster

KINDS = ("classical", "seasonal", "ridge", "analogs")
SETS = {
    "M3 yearly": ("m3", "yearly"),
    "M3 quarterly": ("m3", "quarterly"),
    "M3 other": ("m3", "other"),
    "nn3": ("nn3", "nn3"),
    "M4 weekly": ("m4_weekly", "m4_weekly"),
    "air_passengers": ("single", "air_passengers"),
    "co2_weekly": ("single", "co2_weekly"),
    "sunspots_monthly": ("single", "sunspots_monthly"),
    "daily_min_temp": ("single", "daily_min_temp"),
}


def without_attention(model):
    model.attention_ = None


def alike(model):
    without_attention(model)
    n_series, n_names = model.combined_.weights.shape
    equal = np.full((n_series, n_names), 1 / n_names)
    model.combined_ = replace(model.combined_, weights=equal)


def best_alone(model):
    without_attention(model)
    weights = model.combined_.weights
    best = np.eye(weights.shape[1])[weights.argmax(axis=1)]
    model.combined_ = replace(model.combined_, weights=best)


CHANGES = {
    "all": None,
    "no learned attention": without_attention,
    "equal weights": alike,
    "best candidate alone": best_alone,
}


def errors(task):
    """Scaled errors of the variants, means over folds and series."""
    rows, scales = [], task.scales(task.season)
    for past, future, _ in task.folds:
        model = TransformerForecaster(task.horizon).fit(past)
        row = {}
        for name, change in CHANGES.items():
            if change is not None:
                change(model)
            row[name] = error(model, task.horizon, future, scales)
        for kind in KINDS:
            others = [own for own in KINDS if own != kind]
            model = TransformerForecaster(task.horizon, candidates=others).fit(past)
            row[f"no {kind}"] = error(model, task.horizon, future, scales)
        rows.append(row)
    return pd.DataFrame(rows).mean()


def error(model, horizon, future, scales):
    forecasts = model.predict(horizon)
    missed = [
        np.nanmean(np.abs(np.asarray(forecasts[i]) - future[i])) / scales[i] for i in future
    ]
    return np.mean(missed)


def table(data, names):
    lines, header = [], None
    for name in names:
        kind, own = SETS[name]
        cells = TABLES[kind](data)
        (load,) = (load for (found, _), load in cells.items() if found == own)
        found = errors(load())
        header = header or ["set", "MASE", *found.index[1:]]
        ratios = found.iloc[1:] / found.iloc[0]
        lines.append([name, f"{found.iloc[0]:.3f}", *(f"{ratio:.3f}" for ratio in ratios)])
        print(lines[-1], file=sys.stderr, flush=True)
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    options = parser.parse_args()
    print(table(options.data, options.sets))
