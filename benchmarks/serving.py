"""Seconds of fits and predictions of tables, from a single row to a thousand.

    OMP_NUM_THREADS=1 python benchmarks/serving.py [--data FOLDER]

Kernel attention is compared with boosted trees on simulated tables (Friedman's first function,
noise 1, 300 to 20 000 rows) and on three tables of `tabular.py` with categories, with at most
5000 training rows. All models have their defaults and one thread. Seconds and milliseconds are
the processor's; of predictions the best of several calls counts. Partial dependence is that of
one feature at 100 values over 3000 rows: by `partial_dependence` of kernel attention, and by
scikit-learn's function for all models.

Expected: trees predict a thousand rows ten to fifty times as fast; one row takes milliseconds
by any model. About five minutes on one core. Models whose library is missing are left out.
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _results import HERE, markdown, stamp
from _tabular_data import load_split
from _tabular_models import MODELS, OURS
from sklearn.datasets import make_friedman1
from sklearn.inspection import partial_dependence
from threadpoolctl import threadpool_limits

MAX_ROWS, N_QUERIES = 5000, 1000
SIZES = ((300, 10), (1000, 10), (5000, 10), (20_000, 10), (2000, 200))
TABLES = (("regression", "ames"), ("classification", "adult"), ("regression", "diamonds"))
# Rows of a call, and calls of which the fastest counts.
CALLS = {1: 30, 100: 10, 1000: 3}


def simulated(n_rows, n_columns):
    """Training features, queries, and targets of the training rows."""
    X, y = make_friedman1(n_rows + N_QUERIES, n_columns, noise=1.0, random_state=0)
    X = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    return X[:n_rows], X[n_rows:], y[:n_rows]


def real(task, name, data):
    """The same of a table of `tabular.py`, with at most `MAX_ROWS` training rows."""
    X, queries, y, _ = load_split(task, name, 5, data)
    rows = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    return X.iloc[rows], queries[:N_QUERIES], y[rows]


def timed(function, *arguments):
    """Processor seconds of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def measure(task, table, X, queries, y):
    """A row for each model."""
    rows = []
    for name, make in MODELS[task].items():
        try:
            model = make(X, 1)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        fit_seconds, model = timed(model.fit, X, y)
        predict = model.predict if task == "regression" else model.predict_proba
        calls = [
            1000 * min(timed(predict, queries[:n])[0] for _ in range(n_calls))
            for n, n_calls in CALLS.items()
        ]
        rows.append([table, name, f"{fit_seconds:.2f}", *(f"{call:.1f}" for call in calls)])
        print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def dependence():
    """Seconds of the partial dependence of one of 20 features over 3000 rows."""
    X, _, y = simulated(3000, 20)
    rows = []
    for name, make in MODELS["regression"].items():
        model = make(X, 1).fit(X, y)
        seconds, _ = timed(partial_dependence, model, X, ["x3"])
        own = f"{timed(model.partial_dependence, X, 'x3')[0]:.1f}" if name == OURS else "–"
        rows.append([name, f"{seconds:.1f}", own])
    return rows


def main():
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", HERE.parents[1] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(folder))
    data = parser.parse_args().data
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in SIZES:
            name = "{} × {}".format(*size)
            rows += measure("regression", name, *simulated(*size))
        for task, name in TABLES:
            rows += measure(task, name, *real(task, name, data))
        columns = [f"{n} row{'s' * (n > 1)}, ms" for n in CALLS]
        lines = [
            "# Seconds of fits and predictions",
            "",
            f"{stamp('scikit-learn', 'lightgbm', 'catboost', 'numpy')} Seconds and "
            "milliseconds are processor time. Tables named by numbers are simulated (rows × "
            "features).",
            "",
            *markdown(["table", "model", "fit, s", *columns], rows),
            "",
            "Seconds for the partial dependence of one feature, at 100 values over 3000 rows "
            "of 20 features:",
            "",
            *markdown(["model", "scikit-learn", "`model.partial_dependence`"], dependence()),
        ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
