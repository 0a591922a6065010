"""Accuracy of density estimates at their defaults, with outliers and at bounds.

    python benchmarks/densities.py [PART ...] [--seeds 5]

* shapes: 200 and 1000 rows of fourteen shapes, most of them mixtures of Marron and Wand (1992).
  The integral of the absolute error of our default and of a fixed bandwidth, and beside them
  Sheather and Jones' rule of R, scikit-learn's search and others. Expected: our default's is
  0.80 to 0.85 of the fixed one's in the geometric mean, and no peer's is less.

* line: 200 rows of one column, of six shapes, and of a normal one with outliers. The error is
  the integral of the absolute difference from the truth, 2 at most; the score is the mean
  log-density of 1000 new rows without outliers. Expected: outliers hardly change the error of
  our default, and its scores are best for heavy tails.
* targets: the mean log-density of 1500 new targets, and the processor's seconds of a fit, for
  200 rows of a feature and eight targets. Expected: the default is near the better of its
  degrees, and no less than statsmodels' but beside the jump.
* bounds: the integral of the absolute error from 0 to half a deviation, and the integrated
  squared error, with the bound 0 and without. Expected: half the error near 0.

* zeros: the score of new rows that are not 0, of gamma rows of which a share is 0. Expected: no
  less than by Scott's rule.

Peers are SciPy, scikit-learn, statsmodels (dependency group `bench`), KDEpy and `bw.SJ` of R,
left out where they are missing. Eight minutes on one core.
"""

import argparse
import shutil
import subprocess
import time
import warnings

import numpy as np
from _results import stamp
from scipy import stats
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from sklearn_attention import ConditionalKernelDensity, ProductKernelDensity

try:
    from statsmodels.nonparametric.kernel_density import (
        KDEMultivariate,
        KDEMultivariateConditional,
    )
except ImportError:
    KDEMultivariate = KDEMultivariateConditional = None
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
    "SciPy": of_scipy,
    "scikit-learn, silverman": of_scikit_learn,
}
if KDEMultivariate is not None:
    ESTIMATES["statsmodels, cv_ml"] = of_statsmodels
if TreeKDE is not None:
    ESTIMATES["KDEpy, ISJ"] = improved_sheather_jones


def searched_by_scikit_learn(X):
    scales = X.std() * np.geomspace(0.02, 1, 20)
    search = GridSearchCV(KernelDensity(), {"bandwidth": scales}).fit(X)
    return lambda queries: np.exp(search.score_samples(queries))


def sheather_jones(X):
    script = 'cat(bw.SJ(scan(file("stdin"), quiet = TRUE)))'
    rows = "\n".join(map(repr, X[:, 0].tolist()))
    found = subprocess.run(
        ["Rscript", "-e", script], input=rows, capture_output=True, text=True, check=True
    )
    return ours(bandwidth=float(found.stdout))(X)


OF_SHAPES = {
    "default": ours(),
    "fixed bandwidth": ours(sensitivity=0),
    "SciPy": of_scipy,
    "scikit-learn, search": searched_by_scikit_learn,
}
if TreeKDE is not None:
    OF_SHAPES["KDEpy, ISJ"] = improved_sheather_jones
if shutil.which("Rscript"):
    OF_SHAPES["R, bw.SJ"] = sheather_jones


def mixture(weights, means, deviations):
    """Draws, and the density, of a mixture of normal distributions."""
    weights, means, deviations = map(np.asarray, (weights, means, deviations))
    weights = weights / weights.sum()

    def draw(n, rng):
        part = rng.choice(len(weights), n, p=weights)
        return means[part] + deviations[part] * rng.normal(size=n)

    return draw, lambda x: stats.norm.pdf(x[:, None], means, deviations) @ weights


def drawn(distribution):
    return lambda n, rng: distribution.rvs(n, random_state=rng), distribution.pdf


STEPS = np.arange(8.0)
SHAPES = {
    "normal": drawn(stats.norm()),
    "bimodal": mixture([1, 1], [-1, 1], [2 / 3, 2 / 3]),
    "separated": mixture([1, 1], [-4, 4], [1, 0.5]),
    "kurtotic": mixture([2, 1], [0, 0], [1, 0.1]),
    "outlier": mixture([1, 9], [0, 0], [1, 0.1]),
    "skewed": mixture([1, 1, 3], [0, 0.5, 13 / 12], [1, 2 / 3, 5 / 9]),
    "strongly skewed": mixture(np.ones(8), 3 * ((2 / 3) ** STEPS - 1), (2 / 3) ** STEPS),
    "claw": mixture([0.5, *5 * [0.1]], [0, *(STEPS[:5] / 2 - 1)], [1, *5 * [0.1]]),
    "comb": mixture(
        2.0 ** (5 - STEPS[:6]), (65 - 96 / 2 ** STEPS[:6]) / 21, 32 / 63 / 2 ** STEPS[:6]
    ),
    "t, 2 degrees": drawn(stats.t(2)),
    "Cauchy": drawn(stats.cauchy()),
    "lognormal": drawn(stats.lognorm(1)),
    "gamma": drawn(stats.gamma(2)),
    "uniform": drawn(stats.uniform()),
}


def on_shape(fit, case, rng):
    (draw, pdf), n = SHAPES[case[0]], int(case[1].split()[0])
    density, reference = fit(draw(n, rng)[:, None]), draw(100_000, np.random.default_rng(0))
    low, high = np.quantile(reference, [0.01, 0.99])
    grid = np.linspace(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low, 6001)
    error = np.trapezoid(np.abs(density(grid[:, None]) - pdf(grid)), grid)
    return error, density(grid[:, None]).max() / pdf(grid).max()


def with_zeros(fit, case, rng):
    share, rows = float(case[0]), 0.1 + rng.gamma(0.8, 8, size=200 + N_FRESH)
    rows[: int(200 * share)] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is a point mass
        density = fit(rows[:200, None])
    found = density(rows[200:, None])
    return mean_log(found), found.max()


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


# Of a feature, a normal variable and a generator.
TARGETS = {
    "sine": lambda x, z, rng: np.sin(6 * x) + 0.2 * z,
    "t, 2 degrees": lambda x, z, rng: np.sin(6 * x) + 0.5 * rng.standard_t(2, len(x)),
    "growing": lambda x, z, rng: 2 * x + (0.05 + 0.5 * x) * z,
    "two branches": lambda x, z, rng: (
        np.where(rng.random(len(x)) < 0.5, 1, -1) * (0.3 + 0.7 * x) + 0.2 * z
    ),
    "skewed": lambda x, z, rng: 2 * x + 0.3 * (np.exp(0.8 * z) - 1),
    "gamma": lambda x, z, rng: 0.3 * (1 + x) * rng.gamma(1 + 2 * x),
    "jump": lambda x, z, rng: 2.0 * (x > 0.5) + 0.2 * z,
    "line": lambda x, z, rng: x + 0.3 * z,
}


def drawn_targets(name, n, rng):
    x = rng.uniform(size=n)
    return x[:, None], TARGETS[name](x, rng.normal(size=n), rng)


def on_target(fit, case, rng):
    rows, fresh = (drawn_targets(case[0], n, rng) for n in (200, 1500))
    start = time.process_time()
    model = fit(*rows)
    seconds = time.process_time() - start
    return model(*fresh), seconds


def conditional(**options):
    def fit(X, y):
        return ConditionalKernelDensity(**options).fit(X, y).score

    return fit


def conditional_of_statsmodels(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KDEMultivariateConditional(y, X, "c", "c", bw="cv_ml")

    def score(X, y):
        with np.errstate(invalid="ignore"):  # some searches end at no density
            return mean_log(model.pdf(y, X))

    return score


OF_TARGETS = {
    "default": conditional(), "degree 0": conditional(degree=0),
    "degree 1": conditional(degree=1),
}  # fmt: skip
if KDEMultivariate is not None:
    OF_TARGETS["statsmodels, cv_ml"] = conditional_of_statsmodels


def at_bound(fit, case, rng):
    shape, _ = case
    density, deviation = fit(clean(shape, 200, rng)[:, None]), CLEAN[shape].std()
    grid = np.arange(-2, END, STEP / 4) + STEP / 8
    error = density(grid[:, None]) - truth(shape, grid)
    near = (grid > 0) & (grid < deviation / 2)
    return np.abs(error[near]).sum() * STEP / 4, np.square(error).sum() * STEP / 4


PARTS = {
    "shapes": (on_shape, OF_SHAPES,
               [(shape, f"{n} rows") for n in (200, 1000) for shape in SHAPES],
               ("error", "height of the peak relative to the true one")),
    "zeros": (with_zeros, {"likelihood": ours(), "fixed bandwidth": ours(sensitivity=0),
                           "likelihood, bounds": ours(bounds=(0, None)),
                                                  "scott": ours(bandwidth="scott")},
              [(f"{share}", "") for share in (0.0, 0.1, 0.3, 0.5)], ("score", "highest value")),
    "line": (on_line, ESTIMATES, [*((shape, None) for shape in CLEAN),
                                  *(("normal", o) for o in OUTLIERS)], ("error", "score")),
    "targets": (on_target, OF_TARGETS, [(name, "") for name in TARGETS], ("score", "seconds")),
    "bounds": (at_bound, {"likelihood": ours(), "likelihood, bounds": ours(bounds=(0, None)),
                          "SciPy": of_scipy},
               [("exponential", None), ("lognormal", None)], ("error near 0", "squared error")),
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print("# Accuracy of density estimates at their defaults\n")
    print(stamp("numpy", "scipy", "scikit-learn", "statsmodels", "KDEpy"), end=" ")
    print(
        "All estimates have their default settings unless a column says otherwise. The two "
        "numbers of an entry are named in the heading of the table."
    )
    for part in options.parts or PARTS:
        measure, estimates, cases, names = PARTS[part]
        of_all = {}
        print(f"\n## {part}: {names[0]} / {names[1]}, {options.seeds} seeds\n")
        print("| data |", " | ".join(estimates), "|\n|" + " --- |" * (1 + len(estimates)))
        for case in cases:
            cells = []
            for name, fit in estimates.items():
                seeds = range(200, 200 + options.seeds)
                found = [measure(fit, case, np.random.default_rng(seed)) for seed in seeds]
                cells.append("{:.3f} / {:.3f}".format(*np.mean(found, axis=0)))
                of_all.setdefault(name, []).append(np.mean(found, axis=0)[0])
            joint = ", " if part == "shapes" else ", outliers: "
            print(f"| {joint.join(filter(None, case))} |", " | ".join(cells), "|", flush=True)
        if part == "shapes":
            logs = {name: np.log(found) for name, found in of_all.items()}
            n = len(SHAPES)
            for size, some in {"200 rows": slice(n), "1000 rows": slice(n, None)}.items():
                errors = np.array([own[some] for own in logs.values()])
                ratios = [f"{x:.2f} |" for x in np.exp((errors - errors[0]).mean(axis=1))]
                print(f"| errors relative to the default, {size} |", *ratios)


if __name__ == "__main__":
    main()
