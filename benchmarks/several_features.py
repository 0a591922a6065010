"""A bandwidth for each feature against one scale on all, where few of the features matter.

Root mean squared errors at new rows, relative to those of ``per_feature=False``, as geometric
means over samples; of classes the differences of probabilities. Polynomials, whose degrees
are averaged, are relative to lines with one scale. With ``--classifiers`` the log-loss and the
share of errors of classifiers on six sets, three splits into five folds, beside scikit-learn's.
Run from the project's root::

    OMP_NUM_THREADS=1 python benchmarks/several_features.py > several_features.md
"""

import argparse
import functools
import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

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


def disk():
    X = np.random.default_rng(0).normal(size=(400, 6))
    return X, (X[:, 0] ** 2 + X[:, 1] > 0.5).astype(int)


SETS = {
    "iris": functools.partial(datasets.load_iris, return_X_y=True),
    "wine": functools.partial(datasets.load_wine, return_X_y=True),
    "breast cancer": functools.partial(datasets.load_breast_cancer, return_X_y=True),
    "moons": functools.partial(datasets.make_moons, 300, noise=0.3, random_state=0),
    "two of six features": disk,
    "ten features": functools.partial(
        datasets.make_classification, 500, 10, n_informative=5, n_classes=3, random_state=1
    ),
}
CLASSIFIERS = {
    '"auto"': NadarayaWatsonClassifier(),
    "one scale": NadarayaWatsonClassifier(per_feature=False),
    "each feature": NadarayaWatsonClassifier(per_feature=True),
    "SVC": SVC(probability=True, random_state=0),
    "logistic": LogisticRegressionCV(max_iter=2000),
    "forest": RandomForestClassifier(300, random_state=0),
}


def of_classifiers():
    print("| set |", " | ".join(CLASSIFIERS), "|\n|" + " --- |" * (len(CLASSIFIERS) + 1))
    for name, load in SETS.items():
        X, y = load()
        cells = []
        for classifier in CLASSIFIERS.values():
            model, found = make_pipeline(StandardScaler(), classifier), []
            for seed in (11, 12, 13):
                folds = StratifiedKFold(5, shuffle=True, random_state=seed)
                p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
                found.append((log_loss(y, p), np.mean(p.argmax(axis=1) != y)))
            cells.append("{:.3f} / {:.3f}".format(*np.mean(found, axis=0)))
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--classifiers", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.classifiers:
        of_classifiers()
        return
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
