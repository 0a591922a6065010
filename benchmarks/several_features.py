"""A bandwidth for each feature against one scale on all, where few of the features matter.

Root mean squared errors at new rows, relative to those of ``per_feature=False``, as geometric
means over samples; of classes the differences of probabilities. Polynomials, whose degrees
are averaged, are relative to lines with one scale. Run from the project's root::

    OMP_NUM_THREADS=1 python benchmarks/several_features.py > several_features.md
"""

import argparse
import functools
import time
import warnings

import numpy as np

from sklearn_attention import (
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)

FUNCTIONS = {
    "isotropic": lambda X: 2 * np.exp(-3 * ((X - 0.5) ** 2).sum(axis=1)),
    "linear": lambda X: 2 * X.mean(axis=1),
    "nothing matters": lambda X: 0 * X[:, 0],
    "two matter": lambda X: np.sin(6 * X[:, 0]) + 4 * (X[:, 1] - 0.5) ** 2,
    "one matters": lambda X: np.sin(6 * X[:, 0]),
    "two interact": lambda X: np.sin(8 * (X[:, 0] - 0.5) * X[:, 1]),
    "waves": lambda X: np.sin(5 * X).sum(axis=1) / np.sqrt(X.shape[1]),
}
SIZES = (20, 2), (40, 2), (40, 5), (100, 3), (100, 5), (300, 5), (300, 10), (1000, 10)
OF_POLYNOMIALS = (40, 2), (100, 2), (300, 2), (1000, 2), (40, 3), (100, 3), (300, 3), (1000, 3)
OF_POLYNOMIALS += (100, 4), (300, 4), *SIZES[2:3], *SIZES[4:]
NOISE, N_TEST = 0.3, 500
LINES = functools.partial(LocalPolynomialRegressor, degree=1)
MODELS = {
    "averages": NadarayaWatsonRegressor,
    "lines": LINES,
    "polynomials": LocalPolynomialRegressor,
    "classes": NadarayaWatsonClassifier,
}
SETTINGS = False, True, "auto"


def make(function, n, d, seed, classes):
    """Rows, targets, new rows and what is expected there."""
    rng = np.random.default_rng(seed)
    X, queries = rng.uniform(size=(n, d)), rng.uniform(size=(N_TEST, d))
    if not classes:
        return X, function(X) + NOISE * rng.normal(size=n), queries, function(queries)
    own, expected = (
        1 / (1 + np.exp(-3 * (function(x) - function(X).mean()))) for x in (X, queries)
    )
    return X, (rng.uniform(size=n) < own).astype(int), queries, expected


def error(model, X, y, queries, expected):
    """Root mean squared error at the queries, and seconds of the fit."""
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    if not hasattr(model, "classes_"):
        found = model.predict(queries)
    else:  # of one class only, if there is no other
        found = model.predict_proba(queries)[:, -1] * model.classes_[-1]
    return np.sqrt(np.mean((found - expected) ** 2)), seconds


def ratios(name, function, n, d, n_seeds, first_seed):
    """Geometric means relative to one scale: of errors, worst of them, of seconds."""
    found = []
    for seed in range(first_seed, first_seed + n_seeds):
        data = make(function, n, d, seed, name == "classes")
        settings = [MODELS[name](per_feature=given, random_state=0) for given in SETTINGS]
        if name == "polynomials":
            settings[0] = LINES(per_feature=False)
        found.append([error(model, *data) for model in settings])
    found = np.array(found)
    relative = found[:, 1:] / found[:, :1]
    errors = np.exp(np.log(relative[..., 0]).mean(axis=0))
    return errors, relative[:, 1, 0].max(), found[:, 2, 1].sum() / found[:, 0, 1].sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("# A bandwidth for each feature\n")
    print(
        "Errors at new rows relative to those of one scale on all features, geometric means "
        f'over {options.seeds} samples: with `per_feature=True`, with the default "auto", and '
        "the worst sample with that. Polynomials, whose degrees are averaged, are relative to "
        "lines with one scale. The last column has the seconds of a fit, relative too.\n"
    )
    for name in options.models:
        print(f"## {name.capitalize()}\n")
        print("| rows, features |", " | ".join(FUNCTIONS), "| seconds |")
        print("| --- " * (len(FUNCTIONS) + 2) + "|", flush=True)
        for n, d in OF_POLYNOMIALS if name == "polynomials" else SIZES:
            cells, seconds = [], []
            for function in FUNCTIONS.values():
                errors, worst, times = ratios(
                    name, function, n, d, options.seeds, options.first_seed
                )
                cells.append(f"{errors[0]:.2f}, **{errors[1]:.2f}**, {worst:.2f}")
                seconds.append(times)
            print(f"| {n}, {d} |", " | ".join(cells), f"| {np.mean(seconds):.1f} |", flush=True)
        print()


if __name__ == "__main__":
    main()
