"""Local polynomials with an additive stage: sums, interactions, real tables, and components.

    python benchmarks/additive_smoothing.py [truths] [peers] [tables] [components]
    python benchmarks/additive_smoothing.py --peers

* truths: errors of `LocalPolynomialRegressor` on five sums of functions of single features and
  seven functions with interactions, with 200, 1000 and 5000 rows, beside the same smoother
  without an additive stage (structure="joint") and R's generalised additive model (mgcv).
  Expected: on sums at most 1.05 times the error of mgcv, on interactions at most 1.02 times
  that of the joint smoother, and at most 2.2 times its seconds.
* peers: errors and seconds on the same truths beside kernel attention, a Gaussian process of
  scikit-learn and, in two features, tensor products of splines (mgcv's `te`).
* tables: errors on ten real tables with at most 1000 training rows, relative to the joint
  smoother. Expected: 0.97 in the geometric mean, and no table above 1.03.
* components: how often bands of 90 % around components hold the true ones. Expected: 0.87 to
  0.93.

Errors of mgcv are stored in `additive_smoothing_peers.json`, which `--peers` writes (it needs
`apt-get install r-base-core r-cran-mgcv`). An hour on one core. The seeds and splits
that are reported have chosen nothing in the package; `--choice` takes those that have.
"""

import json
import sys
import time
import warnings
from itertools import product

import additive_truths
import numpy as np
import pandas as pd
from _results import HERE, markdown, stamp
from _tabular_data import SETS
from additive_truths import (
    bump,
    command_line,
    correlated,
    draw,
    friedman_1,
    friedman_2,
    friedman_sum,
    gu_wahba,
    ratio,
    two_products,
    wave_of_a_sum,
)
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from sklearn_attention import KernelAttentionRegressor, LocalPolynomialRegressor

# Numbers of rows, and of data sets with as many rows of each truth.
ROWS = {200: 8, 1000: 4, 5000: 1}
ROWS_OF_PEERS = {200: 4, 1000: 1}
CHOICE, REPORTED = range(0, 5), range(5, 10)
FIRST_SEED = {True: 0, False: 20}
STORED = HERE / "additive_smoothing_peers.json"
TABLES = (
    *("yacht", "mpg", "bostonHousing", "energy", "concrete", "wine-quality-red"),
    *("kin8nm", "power-plant", "california_housing", "cps1988"),
)
MAX_ROWS, N_INTERVALS = 1000, 500
STRUCTURES = "joint", "auto", "additive"


def three_waves(rng, n):
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, np.sin(3 * X[:, 0]) + np.cos(5 * X[:, 1]) + np.sin(7 * X[:, 2])


def gu_wahba_and_one(rng, n):
    X, mean = gu_wahba(rng, n)
    return np.column_stack([X, rng.uniform(size=n)]), mean


def two_of_ten(rng, n):
    X = rng.uniform(size=(n, 10))
    return X, np.sin(2 * np.pi * X[:, 0]) + 2 * X[:, 1] ** 2


def two_hills(rng, n):
    """The surface on which mgcv's manual shows its tensor products."""
    X = rng.uniform(size=(n, 2))
    first = np.square((X - [0.2, 0.3]) / [0.3, 0.4]).sum(axis=1)
    second = np.square((X - [0.7, 0.8]) / [0.3, 0.4]).sum(axis=1)
    return X, 1.2 * np.exp(-first) + 0.8 * np.exp(-second)


def wave_of_a_product(rng, n):
    X = rng.uniform(size=(n, 2))
    return X, np.sin(2 * np.pi * X[:, 0] * X[:, 1]) + X[:, 0]


SUMS = three_waves, gu_wahba_and_one, correlated, friedman_sum, two_of_ten
SURFACES = two_hills, wave_of_a_product
INTERACTIONS = friedman_1, friedman_2, two_products, wave_of_a_sum, bump, *SURFACES


def fit(model, X, y, queries, targets):
    """Fit a model; return its error and the processor seconds of the fit."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        error = np.sqrt(np.mean(np.square(model.predict(queries) - targets)))
    return {"error": error, "seconds": seconds}


def measure(structure, X, y, queries, targets, observed):
    """Return error, coverage of intervals, and processor seconds of a local polynomial."""
    model = LocalPolynomialRegressor(structure=structure)
    scores = fit(model, X, y, queries, targets)
    with threadpool_limits(1):
        lower, upper = model.predict_interval(queries[:N_INTERVALS]).T
    inside = (lower <= observed[:N_INTERVALS]) & (observed[:N_INTERVALS] <= upper)
    return scores | {"coverage": inside.mean()}


def gaussian_process(X):
    """Return a Gaussian process with a length scale for each feature."""
    kernel = ConstantKernel() * RBF(X.std(axis=0)) + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True)


def seeds(options, n):
    """Return the seeds of data sets with n rows."""
    return range(FIRST_SEED[options.choice], FIRST_SEED[options.choice] + ROWS[n])


def store_peers():
    """Write the errors of mgcv, a line for each truth and number of rows."""
    sums = [
        (truth, n, seed)
        for truth, n in product(SUMS, ROWS)
        for first in FIRST_SEED.values()
        for seed in range(first, first + ROWS[n])
    ]
    errors = additive_truths.errors_of_mgcv(sums)
    surfaces = [
        (truth, n, FIRST_SEED[False] + seed)
        for truth, (n, n_sets) in product(SURFACES, ROWS_OF_PEERS.items())
        for seed in range(n_sets)
    ]
    errors |= additive_truths.errors_of_mgcv(surfaces, terms="te(x0, x1, k = 10)")
    lines = ",\n".join(json.dumps({"set": k, "mgcv": e}) for k, e in errors.items())
    STORED.write_text(f"[\n{lines}\n]\n")


def truths(options):
    """Lines about sums and interactions."""
    gam = {line["set"]: line["mgcv"] for line in json.loads(STORED.read_text())}
    cells = []
    for n, truth in product(options.rows or ROWS, (*SUMS, *INTERACTIONS)):
        for seed, structure in product(seeds(options, n), STRUCTURES):
            key = {"truth": truth.__name__, "n": n, "seed": seed, "structure": structure}
            scores = measure(structure, *draw(truth, n, seed))
            peer = gam.get(f"{truth.__name__}-{n}-{seed}", np.nan)
            cells.append(key | scores | {"mgcv": peer})
            print(cells[-1], file=sys.stderr, flush=True)
    frame = pd.DataFrame(cells)
    errors = frame.pivot(index=["truth", "n", "seed"], columns="structure", values="error")
    errors["mgcv"] = frame.groupby(["truth", "n", "seed"])["mgcv"].first()
    rows = []
    for truth in (*SUMS, *INTERACTIONS):
        for n, own in errors.loc[truth.__name__].groupby("n"):
            base = own["mgcv" if truth in SUMS else "joint"]
            ratios = [ratio(own[structure], base) for structure in STRUCTURES]
            rows.append([truth.__name__.replace("_", " "), str(n), *ratios])
    means = []
    sums = errors.index.get_level_values("truth").isin([truth.__name__ for truth in SUMS])
    for (kind, is_kind, base), n in product(
        [("sums, to mgcv", sums, "mgcv"), ("interactions, to joint", ~sums, "joint")],
        options.rows or ROWS,
    ):
        own = errors[is_kind & (errors.index.get_level_values("n") == n)]
        means.append([kind, str(n), *(ratio(own[s], own[base]) for s in STRUCTURES)])
    costs = []
    for n, own in frame.groupby("n"):
        by = own.groupby("structure")
        coverage = by["coverage"].mean() * 100
        seconds = by["seconds"].sum() / by["seconds"].sum()["joint"]
        costs.append([
            str(n), *(f"{coverage[s]:.1f}" for s in STRUCTURES),
            *(f"{seconds[s]:.2f}" for s in STRUCTURES[1:]),
        ])  # fmt: skip
    header = [f'"{structure}"' for structure in STRUCTURES]
    return [
        "## Sums and interactions",
        "",
        "Root mean squared errors from the true means: of sums relative to mgcv's `gam` with a "
        "smooth function of every feature and REML, of interactions relative to the joint "
        "smoother, as geometric means over data sets.",
        "",
        *markdown(["truths", "rows", *header], means),
        "",
        *markdown(["truth", "rows", *header], rows),
        "",
        "Coverage of 90 % intervals in percent, and seconds of fits relative to the joint one:",
        "",
        *markdown(
            ["rows", *(f"coverage, {name}" for name in header),
             *(f"seconds, {name}" for name in header[1:])], costs,
        ),
        "",
    ]  # fmt: skip


def peers(options):
    """Lines about kernel attention, a Gaussian process and tensor products."""
    mgcv = {line["set"]: line["mgcv"] for line in json.loads(STORED.read_text())}
    cells = []
    for truth, (n, n_sets) in product((*SUMS, *INTERACTIONS), ROWS_OF_PEERS.items()):
        for seed in range(FIRST_SEED[False], FIRST_SEED[False] + n_sets):
            *data, _ = draw(truth, n, seed)
            models = {
                "ours": LocalPolynomialRegressor(),
                "kernel attention": KernelAttentionRegressor(),
                "Gaussian process": gaussian_process(data[0]),
            }
            scores = {name: fit(model, *data) for name, model in models.items()}
            if truth in SURFACES:
                error = mgcv[f"{truth.__name__}-{n}-{seed}"]
                scores["te"] = {"error": error, "seconds": np.nan}
            for name, row in scores.items():
                cells.append({"truth": truth, "n": n, "seed": seed, "model": name} | row)
            print(cells[-1], file=sys.stderr, flush=True)
    frame = pd.DataFrame(cells)
    names = "kernel attention", "Gaussian process", "te"
    rows, costs = [], []
    for (truth, n), of_truth in frame.groupby(["truth", "n"], sort=False):
        errors = of_truth.pivot(index="seed", columns="model", values="error")
        texts = [ratio(errors["ours"], errors[m]) if m in errors else "–" for m in names]
        rows.append([truth.__name__.replace("_", " "), str(n), *texts])
    for n, of_rows in frame.groupby("n"):
        seconds = of_rows.groupby("model")["seconds"].mean()
        costs.append([str(n), *(f"{seconds['ours'] / seconds[m]:.2f}" for m in names[:2])])
    return [
        "## Beside other models",
        "",
        'Root mean squared errors of structure="auto" relative to those of kernel attention, '
        "of scikit-learn's Gaussian process with a length scale for each feature, and of "
        "tensor products (`te` of mgcv) in two features, as geometric means over data sets.",
        "",
        *markdown(["truth", "rows", *names], rows),
        "",
        "Seconds of fits relative to theirs:",
        "",
        *markdown(["rows", *names[:2]], costs),
        "",
    ]


def table_rows(name, split, data):
    """Return training and test rows without missing numbers, and their targets."""
    train, test, y, observed = SETS["regression"][name](data, split)
    drawn = np.random.default_rng(split).permutation(len(train))[:MAX_ROWS]
    parts = []
    for X, targets in ((train.iloc[drawn], y[drawn]), (test, observed)):
        kept = X.notna().all(axis=1).to_numpy()
        parts += [X[kept], targets[kept]]
    return parts


def tables(options):
    """Lines about real tables."""
    rows, all_ratios = [], []
    for name in TABLES:
        errors = {structure: [] for structure in STRUCTURES}
        coverage = {structure: [] for structure in STRUCTURES}
        for split in CHOICE if options.choice else REPORTED:
            X, y, queries, observed = table_rows(name, split, options.data)
            for structure in STRUCTURES:
                scores = measure(structure, X, y, queries, observed, observed)
                errors[structure].append(scores["error"])
                coverage[structure].append(scores["coverage"])
        ratios = [ratio(np.array(errors[s]), np.array(errors["joint"])) for s in STRUCTURES[1:]]
        of_table = [f"{100 * np.mean(coverage[s]):.1f}" for s in STRUCTURES]
        rows.append([name, *ratios, *of_table])
        all_ratios.append([float(own) for own in ratios])
        print(rows[-1], file=sys.stderr, flush=True)
    means = np.exp(np.log(all_ratios).mean(axis=0))
    rows.append(["geometric mean", *(f"{mean:.3f}" for mean in means), "", "", ""])
    return [
        "## Real tables",
        "",
        f"At most {MAX_ROWS} training rows; rows with missing numbers are left out. Errors "
        "are relative to the joint smoother; coverage is that of 90 % intervals in percent.",
        "",
        *markdown(
            ["table", *(f'"{structure}"' for structure in STRUCTURES[1:]),
             *(f'coverage, "{structure}"' for structure in STRUCTURES)], rows,
        ),
        "",
    ]  # fmt: skip


# Components of the sums, in the order of the features; all further ones are 0.
COMPONENTS = {
    three_waves: (lambda x: np.sin(3 * x), lambda x: np.cos(5 * x), lambda x: np.sin(7 * x)),
    gu_wahba_and_one: (
        lambda x: 2 * np.sin(np.pi * x),
        lambda x: np.exp(2 * x),
        lambda x: 0.2 * x**11 * (10 * (1 - x)) ** 6 + 10 * (10 * x) ** 3 * (1 - x) ** 10,
    ),
    correlated: (lambda x: np.tanh(2 * x), lambda x: 0.4 * x**2, lambda x: np.cos(2 * x)),
    friedman_sum: (
        lambda x: 0.1 * np.exp(4 * x),
        lambda x: 4 / (1 + np.exp(-20 * (x - 0.5))),
        lambda x: 3 * x,
        lambda x: 2 * x,
        lambda x: x,
    ),
    two_of_ten: (lambda x: np.sin(2 * np.pi * x), lambda x: 2 * x**2),
}


def components(options):
    """Lines about bands of components."""
    rows, cells = [], []
    for (truth, functions), n in product(COMPONENTS.items(), (200, 1000)):
        for seed in range(seeds(options, n)[0], seeds(options, n)[0] + 20):
            X, y, *_ = draw(truth, n, seed)
            with threadpool_limits(1):
                model = LocalPolynomialRegressor(structure="additive").fit(X, y)
            # The standard deviation by which `draw` divides the means of all its rows.
            rng = np.random.default_rng([additive_truths.FIRST_SEED + seed, n])
            scale = truth(rng, n + additive_truths.N_QUERIES)[1].std()
            for j in range(X.shape[1]):
                expected = functions[j](X[:, j]) / scale if j < len(functions) else np.zeros(n)
                component, std = model.smoother_.component(j, X)
                errors = component[:, 0] - (expected - expected.mean())
                inside = np.mean(np.abs(errors) <= norm.ppf(0.95) * std[:, 0])
                cells.append((truth.__name__, n, j < len(functions), inside))
    frame = pd.DataFrame(cells, columns=["truth", "n", "matters", "inside"])
    means = frame.groupby(["n", "truth", "matters"])["inside"].mean().unstack()
    of_rows = frame.groupby(["n", "matters"])["inside"].mean().unstack()
    for n, of_all in of_rows.iterrows():
        own = [("all", of_all), *means.loc[n].iterrows()]
        for name, shares in own:
            texts = ["–" if np.isnan(shares[m]) else f"{shares[m]:.3f}" for m in (True, False)]
            rows.append([str(n), name.replace("_", " "), *texts])
    return [
        "## Bands of components",
        "",
        "Share of the rows at which 90 % bands hold the true components, 20 data sets each:",
        "",
        *markdown(["rows", "truth", "features that matter", "other features"], rows),
        "",
    ]


PARTS = {"truths": truths, "peers": peers, "tables": tables, "components": components}


def main():
    parser = command_line(__doc__.splitlines()[0], PARTS, STORED)
    parser.add_argument("--choice", action="store_true", help="seeds that chose constants")
    parser.add_argument("--rows", type=int, nargs="*", choices=ROWS, help="numbers of rows")
    options = parser.parse_args()
    if options.peers:
        store_peers()
        return
    lines = ["# Local polynomials with an additive stage", ""]
    lines += [f"{stamp('scikit-learn', 'numpy', 'scipy')} R's mgcv 1.8.", ""]
    for name in options.parts or PARTS:
        lines += PARTS[name](options)
    print("\n".join(lines).rstrip())


if __name__ == "__main__":
    main()
