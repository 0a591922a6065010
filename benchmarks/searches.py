"""Criteria that searches for bandwidths reach, and their seconds, beside another version.

    python benchmarks/searches.py run RESULTS.jsonl
    python benchmarks/searches.py compare BEFORE.jsonl AFTER.jsonl

`run` fits about 270 estimators that search for a bandwidth: one factor for all features, a
bandwidth for each, also beside a category, numbers of neighbours, densities and conditional
densities, with the Gaussian and Epanechnikov's kernel, on simulated tables of 30 to 3000 rows
and one to ten features and on scikit-learn's diabetes and wine. It writes a line for each, with
the criterion at the chosen bandwidth (or minus the leave-one-out log-density) and processor
seconds. To run another version, put its checkout first in PYTHONPATH. `compare` prints the mean
difference of criteria, relative for errors, the largest, and the geometric mean of seconds.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_wine

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
)

CRITERIA = "loo", "penalized-loo", "gcv", "aicc"


def simulated(n, d, seed):
    """Return a table of which the first and the last feature matter, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d)) if seed % 2 else rng.normal(size=(n, d))
    return X, np.sin(6 * X[:, 0]) + 2 * X[:, -1] ** 2 + 0.4 * rng.normal(size=n)


def tables():
    """Return simulated and real tables by name, smallest first."""
    sizes = [(30, 1), (100, 1), (300, 1), (1000, 1), (3000, 1), (60, 2), (300, 2), (1000, 2),
             (200, 3), (1000, 3), (3000, 3), (200, 5), (200, 10)]  # fmt: skip
    result = {f"{n} × {d}": simulated(n, d, n + d) for n, d in sizes}
    X, y = load_diabetes(return_X_y=True)
    result |= {"diabetes, bmi": (X[:, [2]], y), "diabetes": (X[:, [2, 3, 8]], y)}
    X, y = load_wine(return_X_y=True)
    return result | {"wine": (X[:, 1:4], X[:, 0])}


def with_category(X):
    """Return the table with a category of three levels."""
    levels = np.random.default_rng(0).choice(["red", "green", "blue"], len(X))
    return pd.DataFrame(X).assign(color=levels).rename(columns=str)


def cases():
    """Yield the name, the estimator, rows and targets of each search."""
    for name, (X, y) in tables().items():
        n, d = X.shape
        for kernel in ("gaussian", "epanechnikov"):
            for criterion in CRITERIA if d < 3 else CRITERIA[:2]:
                options = {"bandwidth": criterion, "per_feature": False}
                yield f"{name}, one", NadarayaWatsonRegressor(kernel, **options), X, y
                if 30 < n < 3000:
                    lines = LocalPolynomialRegressor(kernel, degree=1, **options)
                    yield f"{name}, one of lines", lines, X, y
            if 1 < d and n < 3000:
                for criterion in ("penalized-loo", "aicc"):
                    model = NadarayaWatsonRegressor(
                        kernel, bandwidth=criterion, per_feature=True
                    )
                    yield f"{name}, each", model, X, y
                lines = LocalPolynomialRegressor(kernel, degree=1, per_feature=True)
                yield f"{name}, each of lines", lines, X, y
            if n < 3000:
                model = NadarayaWatsonRegressor(kernel, per_feature=d > 1)
                yield f"{name}, category", model, with_category(X), y
                model = NadarayaWatsonRegressor(kernel, bandwidth="knn-loo")
                yield f"{name}, neighbours", model, X, y
            if d < 5:
                yield f"{name}, density", ProductKernelDensity(kernel, sensitivity=0), X, None
            if n <= 300 and d < 5:
                yield f"{name}, conditional", ConditionalKernelDensity(kernel), X, y


def run(path):
    """Fit all, and write a line for each."""
    with Path(path).open("w") as file:
        for name, model, X, y in cases():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            seconds = time.process_time() - start
            value = getattr(model, "criterion_value_", None)
            is_error = value is not None and model.bandwidth != "aicc"
            value = -model.likelihood_score_ if value is None else value
            line = {"case": f"{name}: {model!r}", "value": value, "is_error": is_error,
                    "seconds": seconds}  # fmt: skip
            print(json.dumps(line), file=file, flush=True)


def compare(before, after):
    """Print how criteria and seconds of two runs differ."""
    first, second = (
        pd.read_json(path, lines=True).set_index("case") for path in (before, after)
    )
    first, second = first.loc[second.index], second
    differences = second["value"] - first["value"]
    differences = differences / first["value"].where(first["is_error"], 1.0)
    ratios = second["seconds"] / first["seconds"]
    print(
        f"{len(differences)} searches: criteria differ by {differences.mean():.1e} on average"
    )
    print(f"seconds are {np.exp(np.log(ratios).mean()):.3f} times as many")
    for case in differences.abs().sort_values(ascending=False).index[:25]:
        if abs(differences[case]) > 1e-3:
            print(f"{differences[case]:+.4f}  {case}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["run", "compare"])
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    {"run": run, "compare": compare}[arguments.command](*arguments.paths)
