"""Effect of each part of kernel attention: one is changed at a time.

    python benchmarks/kernel_attention_ablation.py [--data FOLDER] [--sets A,B]
                                                   [--splits 0,1] [--variants "A,B"]

Prints mean test errors, variants against sets. A variant with "=" changes a parameter; others
change the training of members.

Splits are 0 to 4, on which the defaults were chosen; `tabular.py` measures others.
Expected: some encodings alone are good on some sets and bad on others; without learned
length-scales all sets lose, without the rough part those with much noise; more folds, steps and
rows in a batch than the default gain little.

Five minutes on one core. Progress goes to stderr.
"""

import argparse
import os
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

# Before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from _results import markdown, stamp
from _tabular_data import SETS, load_split
from sklearn.metrics import root_mean_squared_error

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.kernel_attention import _regressor

DEFAULT = "default"
SPLITS = range(5)
S, Q, P = "standard", "quantile", "piecewise_linear"
PARAMETERS = {
    DEFAULT: {},
    "random_state=1": {"random_state": 1},
    "readout=average": {"readout": "average"},
    **{
        f"encodings={'+'.join(names)}": {"encodings": names}
        for names in [(S,), (Q,), (P,), (S, Q), (S, P), (Q, P)]
    },
    **{f"n_folds={n}": {"n_folds": n} for n in (1, 2, 4)},
    **{f"max_steps={n}": {"max_steps": n} for n in (0, 10, 40)},
    **{f"kernel={name}": {"kernel": name} for name in ("matern52", "rational_quadratic")},
    "n_folds=1 max_steps=15": {"n_folds": 1, "max_steps": 15},
}


# What is changed of the members that the estimator would learn.
RECIPES = {
    "no rough part": {"rough": False},
    "no linear part": {"linear": False},
    "no constant": {"constant": False},
    "scales held at their start": {"precision": 0.5},
    "half the rate": {"rate": 0.1},
    "batches of 256": {"batch": 256},
}
VARIANTS = [*PARAMETERS, *RECIPES]


def measure(options):
    """Errors and seconds of every set, split and variant."""
    rows = []
    for split in options.splits:
        for name in options.sets:
            parts = load_split("regression", name, split, options.data)
            for variant in options.variants:
                rows.append([name, split, variant, *error_and_seconds(variant, *parts)])
                print(*rows[-1], file=sys.stderr, flush=True)
    return pd.DataFrame(rows, columns=["set", "split", "variant", "error", "seconds"])


def error_and_seconds(variant, X_train, X_test, y_train, y_test):
    with recipe(variant):
        start = time.process_time()
        model = KernelAttentionRegressor(**PARAMETERS.get(variant, {})).fit(X_train, y_train)
        error = root_mean_squared_error(y_test, model.predict(X_test))
        return error, time.process_time() - start


def recipe(variant):
    """A context in which members learn as the variant says."""
    if variant not in RECIPES:
        return nullcontext()
    usual = _regressor.REGRESSION

    def ridge(n_rows):
        return replace(usual.ridge(n_rows), **RECIPES[variant])

    return patch.object(_regressor, "REGRESSION", replace(usual, ridge=ridge))


def report(frame):
    """Lines of the table."""
    sets, variants = frame["set"].unique(), frame["variant"].unique()
    means = frame.pivot_table("error", "variant", "set")
    ratios = np.exp(np.log(means / means.loc[DEFAULT]).mean(axis=1))
    seconds = frame.groupby("variant")["seconds"].mean()
    cells = frame.pivot(index=["set", "split"], columns="variant", values="error")
    worse = cells.gt(cells[DEFAULT], axis=0).sum()
    header = ["variant", *sets, "seconds", f"worse of {len(cells)}", "error"]
    rows = []
    for variant in variants:
        row = [f"{means.at[variant, name]:.4g}" for name in sets]
        row += [f"{seconds[variant]:.2f}"]
        row += ["" if variant == DEFAULT else str(worse[variant]), f"{ratios[variant]:.3f}"]
        rows.append([f"`{variant}`" if "=" in variant else variant, *row])
    return markdown(header, rows)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    small = "yacht,bostonHousing,energy,concrete,wine-quality-red"
    for name, default in {"sets": small, "splits": "0,1", "variants": None}.items():
        parser.add_argument(f"--{name}", default=default, help="separated by commas")
    options = parser.parse_args()
    options.sets = options.sets.split(",")
    options.splits = [int(split) for split in options.splits.split(",")]
    chosen = options.variants.split(",") if options.variants else VARIANTS
    options.variants = list(dict.fromkeys([DEFAULT, *chosen]))
    unknown = set(options.sets) - set(SETS["regression"])
    unknown |= set(options.variants) - set(VARIANTS)
    unknown |= {str(split) for split in options.splits if split not in SPLITS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    lines = [
        "# Parts of kernel attention, changed one at a time",
        "",
        f"{stamp('scikit-learn', 'numpy', 'scipy')} Entries are root mean squared errors on "
        "five UCI sets, on the splits on which the defaults were chosen. “seconds” are "
        "processor seconds of a fit and its predictions, “worse” counts the splits with a "
        "larger error than the default's, and “error” is the geometric mean over the sets of "
        "the ratio to the default's error. `random_state=1` is the default with another "
        "random seed.",
        "",
        *report(measure(parse())),
    ]
    print("\n".join(lines))
