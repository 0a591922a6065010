"""Seconds that it takes to explain predictions by features, and agreement with SHAP.

    OMP_NUM_THREADS=1 python benchmarks/explaining.py [--data FOLDER]

Kernel attention is explained by `explain_features`, and boosted trees by SHAP's TreeExplainer,
on four tables with at most 3000 training rows. SHAP's KernelExplainer also explains a row of
kernel attention with the same background; it takes codes of levels, since it subtracts cells.
All models have their defaults and one thread; seconds are the processor's. Afterwards effects
are compared with those of SHAP against the same background: exact ones on two tables of at most
eight features, sampled ones with 200 permutations of SHAP on two others. Last, the products of
kernels by which kernel attention computes effects are compared with predictions of mixed rows.

Expected: trees take a tenth of the time or less; exact effects are the same to rounding. About
five minutes on one core. Models whose library is missing are left out.
"""

import argparse
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import shap
from _results import HERE, markdown, stamp
from _tabular_data import load_split
from _tabular_models import MODELS, OURS
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

from sklearn_attention._shapley import FeatureEffectsMixin

MAX_ROWS, N_ROWS, N_PERMUTATIONS = 3000, 100, 200
SIMULATED = "3000 × 20"
TABLES = {
    "cps1988": "regression", "diamonds": "regression", SIMULATED: "regression",
    "churn": "classification", "bank": "classification", "adult": "classification",
}  # fmt: skip
# Tables of the comparison with SHAP, and the number of rows that are explained.
EXACT = {"cps1988": ("regression", 20), "phoneme": ("classification", 20)}
SAMPLED = {"friedman": ("regression", 4), "german credit": ("classification", 3)}
# Tables on which both ways of kernel attention are compared, and the number of rows.
WAYS = {
    "cps1988": ("regression", 20), "phoneme": ("classification", 20),
    SIMULATED: ("regression", 4), "german credit": ("classification", 3),
}  # fmt: skip


def load(name, task, data):
    """Training features, queries, and targets of the training rows, MAX_ROWS at most."""
    if name in (SIMULATED, "friedman"):
        n_rows, n_columns = (3000, 20) if name == SIMULATED else (300, 10)
        X, y = make_friedman1(n_rows + N_ROWS, n_columns, noise=1.0, random_state=0)
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
        return X[:n_rows], X[n_rows:], y[:n_rows]
    X, queries, y, _ = load_split(task, name, 5, data)
    rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    return X.iloc[rows], queries[:N_ROWS], y[rows]


def seconds_of(function, *arguments):
    """Processor seconds of a call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def timed(name, task, data):
    """A row for each model: seconds of the first row, of one more, and of a hundred."""
    X, queries, y = load(name, task, data)
    for label, make in MODELS[task].items():
        if label == "HistGradientBoosting":
            continue
        try:
            model = make(X, 1).fit(X, y)
        except ImportError as error:
            print(f"{label} is left out: {error}", file=sys.stderr)
            continue
        rows = queries
        if label == OURS:
            explain = model.explain_features
        else:
            if label == "CatBoost":
                rows, model = model[:-1].transform(queries), model[-1]

            def explain(rows, model=model):
                return shap.TreeExplainer(model)(rows)

        seconds = [seconds_of(explain, rows[:n]) for n in (1, 1, N_ROWS)]
        yield [name, str(X.shape[1]), label, *(f"{each:.2f}" for each in seconds)]
        if label == OURS:
            codes = model._read_rows(queries[:1])
            explainer = shap.KernelExplainer(model._predict_scores, model._background)
            seconds = seconds_of(partial(explainer.shap_values, codes, silent=True))
            label = f"{OURS}, KernelExplainer"
            yield [
                name,
                str(X.shape[1]),
                label,
                "–",
                f"{seconds:.2f}",
                f"{N_ROWS * seconds:.0f}",
            ]


def compared(name, task, n_rows, data):
    """Differences from SHAP's effects of some rows, in standard deviations of predictions."""
    X, queries, y = load(name, task, data)
    model = MODELS[task][OURS](X, 1).fit(X, y)
    options = {} if task == "regression" else {"class_label": model.classes_[-1]}
    effects, std = model.explain_features(queries[:n_rows], return_std=True, **options)
    codes, background = model._read_rows(queries[:n_rows]), model._background
    masker = shap.maskers.Independent(background, max_samples=len(background))

    def predict(rows):
        return model._predict_scores(rows)[:, -1]

    if name in EXACT:
        expected = shap.explainers.Exact(predict, masker)(codes).values
    else:
        explainer = shap.explainers.Permutation(predict, masker, seed=1)
        n_evaluations = N_PERMUTATIONS * (2 * X.shape[1] + 1)
        expected = explainer(codes, max_evals=n_evaluations, silent=True).values
    unit = predict(background).std()
    errors = np.abs(effects.to_numpy()[:, 1:] - expected) / unit
    reported = std.to_numpy()[:, 1:] / unit
    inside = "–" if name in EXACT else f"{(errors <= 2 * reported).mean():.2f}"
    numbers = errors.max(), np.sqrt(np.mean(errors**2)), np.sqrt(np.mean(reported**2))
    sizes = str(X.shape[1]), str(errors.size)
    return [name, *sizes, *(f"{number:.2g}" for number in numbers), inside]


def both_ways(name, task, n_rows, data):
    """Differences between the two ways of kernel attention, and seconds of each."""
    X, queries, y = load(name, task, data)
    model = MODELS[task][OURS](X, 1).fit(X, y)
    options = {} if task == "regression" else {"class_label": model.classes_[-1]}
    unit = model._predict_scores(model._game(None).background)[:, -1].std()
    tables, seconds, kind = [], [], type(model)
    for way in (kind._mean_scores, FeatureEffectsMixin._mean_scores):
        kind._mean_scores, fast = way, kind._mean_scores
        model._memo.clear()  # it holds the way of the first explanation
        start = time.process_time()
        tables.append(model.explain_features(queries[:n_rows], return_std=True, **options))
        seconds.append(time.process_time() - start)
        kind._mean_scores = fast
    (effects, std), (expected, _) = tables
    errors = (effects - expected).abs().to_numpy()[:, 1:] / unit
    reported = std.to_numpy()[:, 1:] / unit
    numbers = errors.max(), np.sqrt(np.mean(errors**2)), np.sqrt(np.mean(reported**2))
    inside = f"{(errors <= 2 * reported).mean():.2f}"
    times = (f"{each / n_rows:.2f}" for each in seconds)
    return [name, str(errors.size), *(f"{number:.2g}" for number in numbers), inside, *times]


def main():
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", HERE.parents[1] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(folder))
    data = parser.parse_args().data
    rows, agreement, ways = [], [], []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (task, n_rows) in (EXACT | SAMPLED).items():
            agreement.append(compared(name, task, n_rows, data))
            print(*agreement[-1], file=sys.stderr, flush=True)
        for name, (task, n_rows) in WAYS.items():
            ways.append(both_ways(name, task, n_rows, data))
            print(*ways[-1], file=sys.stderr, flush=True)
        for name, task in TABLES.items():
            for row in timed(name, task, data):
                rows.append(row)
                print(*row, file=sys.stderr, flush=True)
    lines = [
        "# Explanations by features",
        "",
        f"{stamp('shap', 'lightgbm', 'catboost', 'numpy')} Seconds are processor time.",
        "",
        "Seconds to explain rows: the first one after a fit, which chooses a background, one "
        f"more, and {N_ROWS}. KernelExplainer's {N_ROWS} rows are {N_ROWS} times its one.",
        "",
        *markdown(
            ["table", "features", "model", "first row", "one row", f"{N_ROWS} rows"], rows
        ),
        "",
        "Differences from SHAP's effects with the same background, in standard deviations of "
        "the predictions; the reported error is the root mean square of the standard errors:",
        "",
        *markdown(
            ["table", "features", "effects", "largest", "root mean square", "reported",
             "within two reported errors"], agreement,
        ),
        "",
        "Differences of effects by products of kernels from those by predictions of mixed "
        "rows, in the same units, and seconds for a row of each way:",
        "",
        *markdown(
            ["table", "effects", "largest", "root mean square", "reported",
             "within two reported errors", "products", "predictions"], ways,
        ),
    ]  # fmt: skip
    print("\n".join(lines))


if __name__ == "__main__":
    main()
