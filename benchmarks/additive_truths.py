"""Kernel attention on sums of functions of single features, on interactions, and on 100 rows.

    python benchmarks/additive_truths.py [truths] [tables] [--data FOLDER]
    python benchmarks/additive_truths.py --peers

* truths: errors on six sums of functions of single features and five functions with
  interactions, with 60 to 1000 rows, beside R's generalised additive model (mgcv), CatBoost,
  scikit-learn's splines with a ridge, and kernel attention without its additive part. Expected:
  on sums at most 1.12 times the error of mgcv, and on interactions that of kernels alone.
* tables: errors with 100 training rows of twelve sets of `tabular.py`, beside a ridge, a random
  forest, a Gaussian process and CatBoost. Expected: 0.98 of that of kernels alone, or less.

Errors of mgcv are stored in `additive_truths_peers.json`, which `--peers` writes (it needs
`apt-get install r-base-core r-cran-mgcv`). Fifteen minutes on one core. The seeds and the
splits of the sets have chosen nothing in the package.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from _results import HERE, markdown, stamp
from _tabular_data import load_split
from _tabular_models import catboost
from scipy.stats import gmean
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention.kernel_attention import _regressor

# Numbers of rows, and of data sets with as many rows of each truth.
ROWS = {60: 6, 100: 6, 200: 4, 500: 2, 1000: 2}
N_QUERIES, NOISE, FIRST_SEED = 2000, 0.4, 100
STORED = HERE / "additive_truths_peers.json"
OURS, ALONE = "kernel attention", "kernels alone"
TABLES = (
    *("mpg", "bostonHousing", "concrete", "wine-quality-red", "nyc_taxis", "kin8nm"),
    *("power-plant", "california_housing", "cps1988", "salaries", "windsor", "saratoga"),
)
SPLITS, ROWS_OF_TABLES = range(5, 9), 100
ALPHAS = np.logspace(-4, 4, 25)

# Truths: features and the mean of the targets, from a generator and a number of rows.


def gu_wahba(rng, n):
    X = rng.uniform(size=(n, 4))
    hump = 0.2 * X[:, 2] ** 11 * (10 * (1 - X[:, 2])) ** 6
    hump += 10 * (10 * X[:, 2]) ** 3 * (1 - X[:, 2]) ** 10
    return X, 2 * np.sin(np.pi * X[:, 0]) + np.exp(2 * X[:, 1]) + hump


def friedman_sum(rng, n):
    X = rng.uniform(size=(n, 10))
    jump = 4 / (1 + np.exp(-20 * (X[:, 1] - 0.5)))
    return X, 0.1 * np.exp(4 * X[:, 0]) + jump + 3 * X[:, 2] + 2 * X[:, 3] + X[:, 4]


def waves(rng, n):
    X = rng.uniform(-1, 1, size=(n, 6))
    return X, np.sin(3 * X[:, 0]) + np.cos(5 * X[:, 1]) + np.sin(7 * X[:, 2])


def lines_and_curve(rng, n):
    X = rng.normal(size=(n, 8))
    return X, X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + np.abs(X[:, 3])


def correlated(rng, n):
    X = rng.normal(size=(n, 5)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(5)).T
    return X, np.tanh(2 * X[:, 0]) + 0.4 * X[:, 1] ** 2 + np.cos(2 * X[:, 2])


def lognormal(rng, n):
    X = np.exp(rng.normal(size=(n, 4)))
    return X, np.log1p(X[:, 0]) + np.sqrt(X[:, 1]) - 2 / (1 + X[:, 2])


def friedman_1(rng, n):
    X = rng.uniform(size=(n, 10))
    squares = 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + squares


def friedman_2(rng, n):
    X = rng.uniform([0, 40 * np.pi, 0, 1], [100, 560 * np.pi, 1, 11], size=(n, 4))
    reactance = X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])
    return X, np.hypot(X[:, 0], reactance)


def two_products(rng, n):
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]


def wave_of_a_sum(rng, n):
    X = rng.uniform(size=(n, 4))
    return X, np.sin(5 * (X[:, 0] + X[:, 1] - X[:, 2]))


def bump(rng, n):
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, np.exp(-2 * np.square(X).sum(axis=1))


SUMS = gu_wahba, friedman_sum, waves, lines_and_curve, correlated, lognormal
INTERACTIONS = friedman_1, friedman_2, two_products, wave_of_a_sum, bump


def draw(truth, n, seed):
    """Return features and targets of rows, then features of queries, means and targets."""
    rng = np.random.default_rng([FIRST_SEED + seed, n])
    X, mean = truth(rng, n + N_QUERIES)
    mean = (mean - mean.mean()) / mean.std()
    y = mean + NOISE * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], mean[n:], y[n:]


# Models.


def alone():
    """Kernel attention as if all tables had too few rows for an additive part."""
    task = dataclasses.replace(_regressor.REGRESSION, min_additive_rows=np.inf)
    return patch.object(_regressor, "REGRESSION", task)


def splines(X):
    columns = SplineTransformer(n_knots=10, knots="quantile", extrapolation="linear")
    return make_pipeline(columns, StandardScaler(), RidgeCV(ALPHAS))


def numbers_and_levels(X):
    numbers = list(X.select_dtypes("number"))
    of_numbers = make_pipeline(SimpleImputer(), StandardScaler())
    of_levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    levels = [name for name in X if name not in numbers]
    return make_column_transformer((of_numbers, numbers), (of_levels, levels))


def gaussian_process():
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1)


def kernel_attention(X):
    return KernelAttentionRegressor()


MODELS_OF_TRUTHS = {
    OURS: kernel_attention,
    ALONE: kernel_attention,
    "CatBoost": lambda X: catboost("CatBoostRegressor")(pd.DataFrame(X), 1)[-1],
    "splines and ridge": splines,
}
MODELS_OF_TABLES = {
    OURS: kernel_attention,
    ALONE: kernel_attention,
    "ridge": lambda X: make_pipeline(numbers_and_levels(X), RidgeCV(ALPHAS)),
    "random forest": lambda X: make_pipeline(
        numbers_and_levels(X), RandomForestRegressor(random_state=0)
    ),
    "Gaussian process": lambda X: make_pipeline(numbers_and_levels(X), gaussian_process()),
    "CatBoost": lambda X: catboost("CatBoostRegressor")(X, 1),
}


def measure(model, name, X, y, queries, targets, observed):
    """Return the error of predictions, coverage of intervals, and seconds."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        if name == ALONE:
            with alone():
                model.fit(X, y)
        else:
            model.fit(X, y)
        fitted = time.process_time()
        predictions = np.ravel(model.predict(queries))
        end = time.process_time()
        scores = {"error": np.sqrt(np.mean(np.square(predictions - targets)))}
        if isinstance(model, KernelAttentionRegressor):
            lower, upper = model.predict_interval(queries).T
            scores["coverage"] = np.mean((lower <= observed) & (observed <= upper))
    return scores | {"fit": fitted - start, "predict": end - fitted}


# The generalised additive model of R.

SCRIPT = """
suppressMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
for (name in readLines(file.path(folder, "names"))) {
  rows <- read.csv(file.path(folder, paste0(name, "_rows.csv")))
  queries <- read.csv(file.path(folder, paste0(name, "_queries.csv")))
  features <- setdiff(names(rows), "y")
  n <- nrow(rows)
  k <- if (n <= 200) min(10, (n - 1) %/% length(features)) else 20
  terms <- paste0("s(", features, ", k = ", k, ")", collapse = " + ")
  if (length(arguments) > 1) terms <- arguments[2]
  fitted <- gam(as.formula(paste("y ~", terms)), data = rows, method = "REML")
  cat(name, sqrt(mean((predict(fitted, queries) - queries$mean)^2)), "\\n")
}
"""


def store_peers():
    """Write the errors of mgcv, a line for each truth and number of rows."""
    sets = product((*SUMS, *INTERACTIONS), ROWS.items())
    keys = [(truth, n, seed) for truth, (n, n_sets) in sets for seed in range(n_sets)]
    errors = {}
    for name, error in errors_of_mgcv(keys).items():
        errors.setdefault(name.rpartition("-")[0], []).append(error)
    lines = ",\n".join(json.dumps({"set": name, "mgcv": e}) for name, e in errors.items())
    STORED.write_text(f"[\n{lines}\n]\n")


def errors_of_mgcv(keys, terms=None):
    """Return the error of mgcv on data sets, given by truth, number of rows and seed.

    `terms` is the right side of its formula, by default a smooth function of every feature.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder, names = Path(folder), []
        for truth, n, seed in keys:
            X, y, queries, mean, _ = draw(truth, n, seed)
            names.append(f"{truth.__name__}-{n}-{seed}")
            columns = [f"x{j}" for j in range(X.shape[1])]
            for kind, table in (
                ("rows", pd.DataFrame(X, columns=columns).assign(y=y)),
                ("queries", pd.DataFrame(queries, columns=columns).assign(mean=mean)),
            ):
                table.to_csv(folder / f"{names[-1]}_{kind}.csv", index=False)
        (folder / "names").write_text("\n".join(names) + "\n")
        (folder / "gam.R").write_text(SCRIPT)
        command = ["Rscript", folder / "gam.R", folder, *([terms] if terms else [])]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: float(f"{float(e):.4g}") for name, e in map(str.split, text.splitlines())}


def stored_errors():
    """Errors of mgcv by truth, number of rows and seed."""
    return {
        (*line["set"].rsplit("-", 1), seed): error
        for line in json.loads(STORED.read_text())
        for seed, error in enumerate(line["mgcv"])
    }


# The page.


def ratio(values, base):
    return f"{gmean(values / base):.2f}"


def truths(options):
    """Lines about sums and interactions."""
    peers, cells = stored_errors(), []
    for truth, (n, n_sets) in product((*SUMS, *INTERACTIONS), ROWS.items()):
        for seed in range(n_sets):
            data = draw(truth, n, seed)
            key = {"truth": truth.__name__, "n": n, "seed": seed}
            kind = "sums" if truth in SUMS else "interactions"
            gam = peers[truth.__name__, str(n), seed]
            for name, model in MODELS_OF_TRUTHS.items():
                scores = measure(model(data[0]), name, *data)
                cells.append(key | {"kind": kind, "model": name, "mgcv": gam} | scores)
        print(truth.__name__, n, file=sys.stderr)
    frame = pd.DataFrame(cells)
    lines = [
        "## Sums and interactions",
        "",
        "Root mean squared errors from the true means, as geometric means of ratios to those "
        "of mgcv's `gam` with a smooth function of every feature and REML, over six sums of "
        f"functions of single features; noise is {NOISE} of the signal's standard deviation.",
        "",
        *markdown(["rows", *MODELS_OF_TRUTHS], list(by_rows(frame, "sums"))),
        "",
        "The same on five functions with interactions, relative to kernels alone:",
        "",
        *markdown(["rows", *MODELS_OF_TRUTHS], list(by_rows(frame, "interactions"))),
        "",
        "By truth, over all numbers of rows, relative to kernels alone, and for sums to mgcv:",
        "",
    ]
    rows = []
    for name, cells in frame.groupby("truth", sort=False):
        ours, before = (cells[cells["model"] == m] for m in (OURS, ALONE))
        to_gam = ratio(ours["error"].to_numpy(), ours["mgcv"].to_numpy())
        is_sum = ours["kind"].iloc[0] == "sums"
        to_before = ratio(ours["error"].to_numpy(), before["error"].to_numpy())
        rows.append([name.replace("_", " "), to_before, to_gam if is_sum else "–"])
    lines += markdown(["truth", f"to {ALONE}", "to mgcv"], rows)
    lines += [
        "",
        "Coverage of 90 % intervals in percent, and seconds relative to kernels alone:",
        "",
        *markdown(
            ["rows", f"coverage, {ALONE}", "coverage", "fit, sums", "fit, interactions",
             "prediction, sums", "prediction, interactions"],
            list(costs(frame)),
        ),
        "",
    ]  # fmt: skip
    return lines


def by_rows(frame, kind):
    """Yield ratios of errors, a row for each number of rows."""
    for n, cells in frame[frame["kind"] == kind].groupby("n"):
        errors = cells.pivot(index=["truth", "seed"], columns="model", values="error")
        gam = cells.groupby(["truth", "seed"])["mgcv"].first()
        base = gam if kind == "sums" else errors[ALONE]
        yield [str(n), *(ratio(errors[model], base) for model in MODELS_OF_TRUTHS)]


def costs(frame):
    """Yield coverage and ratios of seconds, a row for each number of rows."""
    ours = frame[frame["model"] == OURS].reset_index()
    before = frame[frame["model"] == ALONE].reset_index()
    for n in ROWS:
        rows = ours["n"] == n
        coverage = [100 * cells["coverage"][rows].mean() for cells in (before, ours)]
        seconds = [
            ours[field][rows & (ours["kind"] == kind)].sum()
            / before[field][rows & (ours["kind"] == kind)].sum()
            for field, kind in product(("fit", "predict"), ("sums", "interactions"))
        ]
        yield [str(n), *(f"{c:.1f}" for c in coverage), *(f"{s:.2f}" for s in seconds)]


def tables(options):
    """Lines about tables of 100 rows."""
    cells = []
    for name, split in product(TABLES, SPLITS):
        X, queries, y, targets = load_split("regression", name, split, options.data)
        rows = np.random.default_rng(split).permutation(len(y))[:ROWS_OF_TABLES]
        X, y, targets = X.iloc[rows], np.asarray(y)[rows], np.asarray(targets)
        data = X, y, queries, targets, targets
        for model_name, model in MODELS_OF_TABLES.items():
            scores = measure(model(X), model_name, *data)
            cells.append({"set": name, "split": split, "model": model_name} | scores)
        print(name, split, file=sys.stderr)
    frame = pd.DataFrame(cells)
    errors = frame.pivot(index=["set", "split"], columns="model", values="error")
    errors = errors[list(MODELS_OF_TABLES)]
    ratios = errors.div(errors[ALONE], axis=0)
    rows = [
        [name, *(f"{gmean(cells[m]):.3f}" for m in cells)]
        for name, cells in ratios.groupby(level="set", sort=False)
    ]
    rows.append(["all", *(f"{gmean(ratios[m]):.3f}" for m in ratios)])
    coverage = 100 * frame.groupby("model")["coverage"].mean()
    seconds = frame.groupby("model")[["fit", "predict"]].sum()
    fit, predict = seconds.loc[OURS] / seconds.loc[ALONE]
    return [
        "## Tables of 100 rows",
        "",
        "Root mean squared errors relative to kernels alone, geometric means over "
        f"{len(SPLITS)} splits with 100 training rows each.",
        "",
        *markdown(["set", *errors], rows),
        "",
        f"90 % intervals contain {coverage[OURS]:.1f} % of the targets, "
        f"{coverage[ALONE]:.1f} % with kernels alone. A fit takes {fit:.2f} times as long, a "
        f"prediction {predict:.2f} times.",
        "",
    ]


PARTS = {"truths": truths, "tables": tables}
INTRODUCTION = (
    "`KernelAttentionRegressor` mixes predictions of learned kernels with those of an "
    "additive part, a sum of smooth functions of single features. *Kernels alone* is the same "
    "estimator without this part. On sums it is about as accurate as a model that assumes a "
    "sum. Where features interact, held-out rows show it, and little changes."
)


def command_line(description, parts, stored):
    """Return a parser of the parts to run, the file that has peers' results, and the data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], help="all by default")
    parser.add_argument("--peers", action="store_true", help=f"only write {stored.name}")
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", HERE.parents[1] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=folder)
    return parser


def main():
    options = command_line(__doc__.splitlines()[0], PARTS, STORED).parse_args()
    if options.peers:
        store_peers()
        return
    packages = "catboost", "scikit-learn", "numpy", "scipy"
    lines = ["# Sums of functions, and tables of 100 rows", ""]
    lines += [f"{stamp(*packages)} R's mgcv 1.8.", "", INTRODUCTION, ""]
    for name in options.parts or PARTS:
        lines += PARTS[name](options)
    print("\n".join(lines).rstrip())


if __name__ == "__main__":
    main()
