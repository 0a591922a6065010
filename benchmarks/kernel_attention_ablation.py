"""What each ingredient of kernel attention is worth: one parameter changed at a time.

    python benchmarks/kernel_attention_ablation.py [--data FOLDER] [--sets A,B]
                                                   [--splits 0,1] [--variants "A,B"]
                                                   [--results FILE]

Prints a Markdown table of mean test errors, variants against sets. The last three columns
compare with the default: the processor's seconds for fit and predict, how many of all sets
and splits have a larger error, and the geometric mean over sets of the ratio of errors, where
more than 1 is worse. The variant `random_state=1` shows what chance alone does.

Splits 0 to 4 are those that the defaults were found on; `tabular.py` measures others.
Expected: one readout alone or one view alone is good on some sets and bad on others, without
learned length-scales all sets lose, and more members or steps than the default gain little.

More than an hour on one core. Progress goes to stderr, and with `--results` to a file of JSON
lines as well, so that an interrupted run goes on where it stopped.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch  # noqa: F401 (loaded on first use, which is not to be timed)
from _tabular_data import SETS, load_split
from sklearn.metrics import root_mean_squared_error

from sklearn_attention import KernelAttentionRegressor

DEFAULT = "default"
S, Q, P = "standard", "quantile", "piecewise_linear"
VARIANTS = {
    DEFAULT: {},
    "random_state=1": {"random_state": 1},
    **{f"readout={way}": {"readout": way} for way in ("solve", "local_linear", "average")},
    **{
        f"views={'+'.join(views)}": {"views": views}
        for views in [(S,), (P,), (S, Q), (S, P), (Q, P)]
    },
    "n_heads=2": {"n_heads": 2},
    **{f"n_estimators={n}": {"n_estimators": n} for n in (1, 2, 8)},
    **{f"max_steps={n}": {"max_steps": n} for n in (0, 20, 40, 150)},
    **{
        f"kernel={name}": {"kernel": name}
        for name in ("matern52", "rational_quadratic", "exponential")
    },
    "clip=None": {"clip": None},
}


def measure(options):
    """Errors and seconds of every set, split and variant."""
    found = {}
    if options.results and options.results.exists():
        lines = options.results.read_text("utf-8").splitlines()
        found = {tuple(row[:3]): row for row in map(json.loads, lines)}
    rows = []
    for split in options.splits:
        for name in options.sets:
            parts = load_split("regression", name, split, options.data)
            for variant in options.variants:
                row = found.get((name, split, variant))
                if row is None:
                    row = [name, split, variant, *error_and_seconds(variant, *parts)]
                    line = json.dumps(row)
                    print(line, file=sys.stderr, flush=True)
                    if options.results:
                        with options.results.open("a", encoding="utf-8") as file:
                            file.write(line + "\n")
                rows.append(row)
    return pd.DataFrame(rows, columns=["set", "split", "variant", "error", "seconds"])


def error_and_seconds(variant, X_train, X_test, y_train, y_test):
    start = time.process_time()
    model = KernelAttentionRegressor(**VARIANTS[variant]).fit(X_train, y_train)
    error = root_mean_squared_error(y_test, model.predict(X_test))
    return error, time.process_time() - start


def report(frame):
    """Lines of the table."""
    sets, variants = frame["set"].unique(), frame["variant"].unique()
    means = frame.pivot_table("error", "variant", "set")
    ratios = np.exp(np.log(means / means.loc[DEFAULT]).mean(axis=1))
    seconds = frame.groupby("variant")["seconds"].sum()
    cells = frame.pivot(index=["set", "split"], columns="variant", values="error")
    worse = cells.gt(cells[DEFAULT], axis=0).sum()
    header = ["variant", *sets, "time", f"worse of {len(cells)}", "error"]
    lines = [header, ["---"] * len(header)]
    for variant in variants:
        row = [f"{means.at[variant, name]:.4g}" for name in sets]
        row += [f"{seconds[variant] / seconds[DEFAULT]:.1f}"]
        row += ["" if variant == DEFAULT else str(worse[variant]), f"{ratios[variant]:.3f}"]
        lines.append([f"`{variant}`" if "=" in variant else variant, *row])
    return ["| " + " | ".join(line) + " |" for line in lines]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    parser.add_argument("--results", type=Path, help="what was measured, to go on from")
    small = "yacht,bostonHousing,energy,concrete,wine-quality-red"
    for name, default in {"sets": small, "splits": "0,1", "variants": None}.items():
        parser.add_argument(f"--{name}", default=default, help="separated by commas")
    options = parser.parse_args()
    options.sets = options.sets.split(",")
    options.splits = [int(split) for split in options.splits.split(",")]
    chosen = options.variants.split(",") if options.variants else list(VARIANTS)
    options.variants = list(dict.fromkeys([DEFAULT, *chosen]))
    unknown = set(options.sets) - set(SETS["regression"]) | set(options.variants) - set(
        VARIANTS
    )
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    print("\n".join(report(measure(parse()))))
