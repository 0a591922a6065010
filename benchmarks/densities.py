"""Accuracy of density estimates at their defaults, with outliers and at bounds.

    python benchmarks/densities.py [line] [plane] [given] [bounds] [--seeds N]

* line: 200 rows of one column, of six shapes, and of a normal one with outliers. The error is
  the integral of the absolute difference from the truth, 2 at most; the score is the mean
  log-density of 1000 new rows without outliers. Expected: outliers hardly change the error of
  our default, and its scores are best for heavy tails.
* plane: the same for 300 rows of two columns, without the peers that take minutes.
* given: the same for `ConditionalKernelDensity` and 200 rows of a feature and a target, the
  error being a mean over features.
* bounds: the integral of the absolute error from 0 to half a deviation, and the integrated
  squared error, with the bound 0 and without. Expected: half the error near 0.

Peers are SciPy, scikit-learn, statsmodels (dependency group `bench`) and KDEpy, left out where
they are missing. Five minutes on one core.
"""

import argparse
import warnings

import numpy as np
from scipy import stats
from sklearn.neighbors import KernelDensity

from sklearn_attention import ConditionalKernelDensity, ProductKernelDensity

try:
    from statsmodels.nonparametric.kernel_density import KDEMultivariate
except ImportError:
    KDEMultivariate = None
try:
    from KDEpy import TreeKDE
except ImportError:
    TreeKDE = None

N_FRESH, STEP, END = 1000, 0.02, 40.0
CLEAN = {"normal": stats.norm(), "bimodal": None, "t, 2 degrees": stats.t(2)}
CLEAN |= {"Cauchy": stats.cauchy(), "lognormal": stats.lognorm(1), "exponential": stats.expon()}
OUTLIERS = {f"one at {place}": lambda _, x=place: [x] for place in (10, 30, 100, 10**4, 10**6)}
OUTLIERS |= {
    "1 %, Cauchy times 100": lambda rng: 100 * rng.standard_cauchy(2),
    "3 %, uniform to 300": lambda rng: rng.uniform(-300, 300, 6),
}


def clean(shape, n, rng):
    """Rows of one of the shapes, (n,)."""
    if shape == "bimodal":
        return rng.choice([-2, 2], n) + 0.6 * rng.normal(size=n)
    return CLEAN[shape].rvs(n, random_state=rng)


def truth(shape, x):
    if shape == "bimodal":
        return (stats.norm.pdf(x, -2, 0.6) + stats.norm.pdf(x, 2, 0.6)) / 2
    return CLEAN[shape].pdf(x)


# Estimates: functions of rows that return the density as a function of rows.
def ours(**options):
    def fit(X):
        model = ProductKernelDensity(**options).fit(X)
        return lambda queries: np.exp(model.score_samples(queries))

    return fit


def of_scipy(X):
    model = stats.gaussian_kde(X.T)
    return lambda queries: model(queries.T)


def of_scikit_learn(X):
    model = KernelDensity(bandwidth="silverman").fit(X)
    return lambda queries: np.exp(model.score_samples(queries))


def of_statsmodels(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KDEMultivariate(X, "c" * X.shape[1], bw="cv_ml")
    return lambda queries: model.pdf(queries).reshape(len(queries))


def improved_sheather_jones(X):
    model = TreeKDE(bw="ISJ").fit(X[:, 0])
    return lambda queries: model.evaluate(queries[:, 0])


ESTIMATES = {
    "likelihood": ours(),
    "least_squares": ours(bandwidth="least_squares"),
    "SciPy": of_scipy,
    "scikit-learn, silverman": of_scikit_learn,
}
if KDEMultivariate is not None:
    ESTIMATES["statsmodels, cv_ml"] = of_statsmodels
if TreeKDE is not None:
    ESTIMATES["KDEpy, ISJ"] = improved_sheather_jones


def mean_log(density):
    return np.log(np.maximum(density, np.finfo(np.float64).tiny)).mean()


def distance(found, true, cell):
    """Of densities on cells of one size, all that is not on the grid being wrong."""
    beyond = (1 - found.sum() * cell).clip(0) + (1 - true.sum() * cell).clip(0)
    return np.abs(found - true).sum() * cell + beyond


def on_line(fit, case, rng):
    shape, outliers = case
    x = np.append(clean(shape, 200, rng), OUTLIERS[outliers](rng) if outliers else [])
    fresh, grid = clean(shape, N_FRESH, rng), np.arange(-END, END, STEP) + STEP / 2
    density = fit(x[:, None])
    error = distance(density(grid[:, None]), truth(shape, grid), STEP)
    return error, mean_log(density(fresh[:, None]))


def on_plane(fit, case, rng):
    shape, outliers = case
    X = np.column_stack([clean(shape, 300, rng), rng.normal(size=300)])
    if outliers:
        X = np.vstack([X, np.column_stack([OUTLIERS[outliers](rng)] * 2)])
    fresh = np.column_stack([clean(shape, N_FRESH, rng), rng.normal(size=N_FRESH)])
    density, step = fit(X), 0.2
    grid = [np.arange(-end, end, step) + step / 2 for end in (15, 5)]
    places = np.column_stack([x.ravel() for x in np.meshgrid(*grid)])
    true = truth(shape, places[:, 0]) * stats.norm.pdf(places[:, 1])
    return distance(density(places), true, step**2), mean_log(density(fresh))


def given_feature(fit, case, rng):
    noise, outliers = case
    rows = {"target": slice(0, 1), "feature": slice(1, 2), "both": slice(0, 2)}[
        outliers or "both"
    ]
    y, x = clean(noise, 200, rng), rng.uniform(-2, 2, 200)
    far = np.column_stack([rng.normal(size=2), rng.uniform(-2, 2, 2)])
    far[:, rows] = 1e4 * rng.uniform(0.5, 1, (2, 1))
    table = np.column_stack([np.sin(2 * x) + y, x])
    table = np.vstack([table, far]) if outliers else table
    model = fit(table[:, 1:], table[:, 0])
    fresh = rng.uniform(-2, 2, N_FRESH)
    score = model.score(fresh[:, None], np.sin(2 * fresh) + clean(noise, N_FRESH, rng))
    grid, places = np.arange(-END / 2, END / 2, 0.1) + 0.05, np.linspace(-1.8, 1.8, 9)
    queries, targets = np.repeat(places, len(grid))[:, None], np.tile(grid, len(places))
    density = np.exp(model.score_samples(queries, targets)).reshape(len(places), -1)
    true = [truth(noise, grid - np.sin(2 * place)) for place in places]
    return np.mean([distance(*pair, 0.1) for pair in zip(density, true, strict=True)]), score


def at_bound(fit, case, rng):
    shape, _ = case
    density, deviation = fit(clean(shape, 200, rng)[:, None]), CLEAN[shape].std()
    grid = np.arange(-2, END, STEP / 4) + STEP / 8
    error = density(grid[:, None]) - truth(shape, grid)
    near = (grid > 0) & (grid < deviation / 2)
    return np.abs(error[near]).sum() * STEP / 4, np.square(error).sum() * STEP / 4


PARTS = {
    "line": (on_line, ESTIMATES, [*((shape, None) for shape in CLEAN),
                                  *(("normal", o) for o in OUTLIERS)], ("error", "score")),
    "plane": (on_plane, dict(list(ESTIMATES.items())[:4]),
              [("normal", None), ("bimodal", None), ("t, 2 degrees", None), ("lognormal", None),
               *(("normal", o) for o in list(OUTLIERS)[::2])], ("error", "score")),
    "given": (given_feature, {"likelihood": lambda X, y: ConditionalKernelDensity().fit(X, y)},
              [("normal", None), ("bimodal", None), ("t, 2 degrees", None),
               *(("normal", o) for o in ("target", "feature", "both"))], ("error", "score")),
    "bounds": (at_bound, {"likelihood": ours(), "likelihood, bounds": ours(bounds=(0, None)),
                          "least_squares, bounds": ours(bandwidth="least_squares",
                                                        bounds=(0, None)),
                          "SciPy": of_scipy},
               [("exponential", None), ("lognormal", None)], ("near 0", "squared")),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        measure, estimates, cases, names = PARTS[part]
        print(f"\n## {part}: {names[0]} / {names[1]}, {options.seeds} seeds\n")
        print("| rows |", " | ".join(estimates), "|\n|" + " --- |" * (1 + len(estimates)))
        for case in cases:
            cells = []
            for fit in estimates.values():
                seeds = range(200, 200 + options.seeds)
                found = [measure(fit, case, np.random.default_rng(seed)) for seed in seeds]
                cells.append("{:.3f} / {:.3f}".format(*np.mean(found, axis=0)))
            print(f"| {', outliers: '.join(filter(None, case))} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
