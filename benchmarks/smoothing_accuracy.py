"""Accuracy of smoothers at their defaults, on one feature.

    python benchmarks/smoothing_accuracy.py [scenarios] [doses] [curves] [--seeds N]
    python benchmarks/smoothing_accuracy.py --peers [--seeds N]

* scenarios: root mean squared error over the range of the rows, relative to that of R's
  mgcv with as many basis functions as the curves need, for 30 to 2000 rows: smooth curves,
  peaks, waves, a jump, noise that grows, has heavy tails, outliers or autocorrelation, and
  places with an outlier, a gap, ties, clusters or a thin tail. Also the worst error inside the
  gap and beyond the rows. Expected: averages of local polynomials at 1.00 of mgcv in the
  geometric mean, where noise has no memory, and nowhere more than 2.2 times mgcv.
* doses: the same error, relative to mgcv, where the rows lie at five to eight places.
  Expected: at most 1.2 times mgcv in the geometric mean.
* curves: mean squared error on eight curves, four with jumps, peaks or ever faster
  oscillation and four smooth ones, for n = 256 rows, and the mean rank over all of them.
  Expected: chosen degrees follow jumps and peaks as closely as smoothers by leave-one-out do,
  with at most 1.5, 2.1 and 1.2 times the variance of the noise on blocks, bumps and Doppler's
  curve at a ratio of 7; a Gaussian process leads on smooth curves, and they come near it.

Errors of the peers in scenarios and at doses are stored in `smoothing_peers.json`, which
`--peers` writes: R's mgcv, loess, locfit and smooth.spline, and statsmodels' lowess and
KernelReg, which the part "curves" runs too (dependency group `bench`). Half an hour on one
core, most of it for scenarios. Progress goes to stderr.
"""

import argparse
import json
import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _results import markdown, stamp
from _smoothing_data import (
    AT_DOSES,
    CURVES,
    DOSE_CURVES,
    N_DOSES,
    SCENARIOS,
    curve,
    scenario,
)
from _smoothing_peers import PEERS, predictions
from scipy.interpolate import make_smoothing_spline
from scipy.stats import rankdata
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)

try:
    from statsmodels.nonparametric.kernel_regression import KernelReg
    from statsmodels.nonparametric.smoothers_lowess import lowess
except ImportError:
    KernelReg = lowess = None

ROWS = 30, 100, 500, 2000
SEEDS = {"scenarios": 5, "doses": 5, "curves": 10}
STORED = Path(__file__).with_name("smoothing_peers.json")
BASE = "mgcv"
IN_SCENARIOS = {
    "polynomials": LocalPolynomialRegressor(),
    "lines": LocalPolynomialRegressor(degree=1),
    "Nadaraya-Watson": NadarayaWatsonRegressor(),
    "LocalPolynomialCV": LocalPolynomialCV(),
}
IN_SCENARIOS["polynomials, robust"] = LocalPolynomialRegressor(robust=True)
AR = "AR noise"
WITH_MEMORY, IN_MEMORY = "polynomials, gap=3", LocalPolynomialRegressor(gap=3)
# Worst errors apart from that over the range of the rows.
REGIONS = {"gap": ["gap"], "outside": ["near", "far"]}
ABOUT_REGIONS = {
    "gap": "in the gap of 0.3",
    "near": "up to 0.1 of the range beyond",
    "far": "0.1 to 1 range beyond",
}


# Scenarios. Errors are {(scenario, n, measure): {smoother: [one for each seed]}}.


def measures(data, found):
    """Errors of predictions at the places of a data set, by their name."""
    wrong = np.abs(found - data.truth)
    inside = np.isin(data.region, ("range", "gap"))
    errors = {"range": np.sqrt(np.mean(wrong[inside] ** 2))}
    others = sorted(set(data.region) - {"range"})
    return errors | {region: wrong[data.region == region].max() for region in others}


def collect(cells):
    """Errors by scenario, n and measure from those of each smoother and data set."""
    errors = {}
    for name, n, smoother, found in cells:
        for measure, error in found.items():
            errors.setdefault((name, n, measure), {}).setdefault(smoother, []).append(error)
    return errors


def our_errors(n_seeds):
    def cells():
        for name, n in product(SCENARIOS, ROWS):
            print(name, n, file=sys.stderr)
            models = dict(IN_SCENARIOS)
            if name == AR:
                models[WITH_MEMORY] = IN_MEMORY
            for seed, (smoother, model) in product(range(n_seeds), models.items()):
                data = scenario(name, n, seed)
                found = model.fit(data.x[:, None], data.y).predict(data.places[:, None])
                yield name, n, smoother, measures(data, found)

    return collect(cells())


def store_peers(n_seeds):
    cases = list(product(SCENARIOS | AT_DOSES, ROWS, range(n_seeds)))
    data_sets = [scenario(*case) for case in cases]
    cells = (
        (name, n, peer, measures(data, column))
        for (name, n, _), data, found in zip(
            cases, data_sets, predictions(data_sets), strict=True
        )
        for peer, column in zip(PEERS, found.T, strict=True)
    )
    lines = [
        json.dumps({"scenario": name, "n": n, "measure": measure} | rounded(errors))
        for (name, n, measure), errors in collect(cells).items()
    ]
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def rounded(errors):
    return {
        peer: [float(f"{error:.4g}") if np.isfinite(error) else None for error in found]
        for peer, found in errors.items()
    }


def stored_errors(n_seeds):
    """As `our_errors`, of the peers."""
    errors = {}
    for line in json.loads(STORED.read_text()):
        key = tuple(line.pop(name) for name in ("scenario", "n", "measure"))
        errors[key] = {peer: found[:n_seeds] for peer, found in line.items()}
        if len(errors[key][BASE]) < n_seeds:
            sys.exit(f"{STORED.name} has fewer seeds than {n_seeds}: run --peers --seeds.")
    return errors


def scenario_tables(n_seeds):
    peers, own = stored_errors(n_seeds), our_errors(n_seeds)
    names = [*IN_SCENARIOS, WITH_MEMORY, *PEERS]
    errors = {
        key: np.array([(peers[key] | own[key]).get(name, [np.nan] * n_seeds) for name in names])
        for key in own
    }  # (n_smoothers, n_seeds), NaN where a smoother has no prediction
    errors = {key: found.astype(float) for key, found in errors.items()}
    base, others = names.index(BASE), [names.index(peer) for peer in PEERS]
    header = ["scenario", *names]
    lines, all_ratios, all_independent, all_worst = [], [], [], []
    for n in ROWS:
        rows, ratios, worst = [], [], []
        for name in SCENARIOS:
            found = errors[name, n, "range"]
            size = np.sqrt(np.mean(found**2, axis=1))
            typical = np.exp(np.mean(np.log(found / found[base]), axis=1))
            ratios.append(size / size[base])
            worst.append(size / np.nanmin(size[others]))
            cells = [
                "" if np.isnan(b) else f"{a:.2f}, {b:.2f}"
                for a, b in zip(typical, ratios[-1], strict=True)
            ]
            best = np.nanargmin(ratios[-1])
            cells[best] = f"**{cells[best]}**"
            rows.append([name, *cells])
        independent = [own for own, name in zip(ratios, SCENARIOS, strict=True) if name != AR]
        rows += [
            ["geometric mean", *numbers(geometric(ratios))],
            [f"without {AR}", *numbers(geometric(independent))],
            ["largest ratio to the best peer", *numbers(np.max(worst, axis=0))],
        ]
        lines += ["", f"n = {n}:", "", *markdown(header, rows)]
        all_ratios += ratios
        all_independent += independent
        all_worst += worst
    rows = [
        ["geometric mean", *numbers(geometric(all_ratios))],
        [f"without {AR}", *numbers(geometric(all_independent))],
        ["largest ratio to the best peer", *numbers(np.max(all_worst, axis=0))],
    ]
    return [
        f"## Scenarios, {n_seeds} seeds",
        "",
        "Every entry has two numbers. Both compare the root mean squared error against the "
        "true curve, at 101 points over the range of the rows, with that of R's mgcv, `gam(y "
        '~ s(x, k), method = "REML")` with k = 15, 40, 60 and 80 for 30, 100, 500 and 2000 '
        "rows. The first is the geometric mean of the ratio over data sets; the second is "
        "the ratio of root mean squares over data sets, in which bad data sets count more. "
        "All smoothers have their default settings. `locfit gcv` chooses the share of rows "
        'in a window, `loess robust` has `family="symmetric"`, `gap=3` is used for '
        "autocorrelated noise only, and KernelReg is run on up to 100 rows. The last rows "
        "summarise the second numbers: their geometric mean, and the largest ratio to the "
        "best peer of a scenario.",
        "",
        "All n:",
        "",
        *markdown(["", *names], rows),
        *lines,
        "",
        "Largest absolute error where there are no rows (the 90th percentile over data sets):",
        "",
        *region_table(errors, names),
    ]


def region_table(errors, names):
    rows = []
    for name, n in product(REGIONS, ROWS):
        for region in REGIONS[name]:
            high = np.quantile(errors[name, n, region], 0.9, axis=1)
            rows.append([ABOUT_REGIONS[region], f"{n}", *numbers(high)])
    rows.sort(key=lambda row: list(ABOUT_REGIONS.values()).index(row[0]))
    return markdown(["where", "n", *names], rows)


def dose_table(n_seeds):
    """Errors relative to mgcv, a row for each curve and number of rows."""
    peers, model = stored_errors(n_seeds), LocalPolynomialRegressor()
    ratios = {}
    for name, n_doses, n in product(DOSE_CURVES, N_DOSES, ROWS):
        case = f"{name} at {n_doses} doses"
        print(case, n, file=sys.stderr)
        data_sets = [scenario(case, n, seed) for seed in range(n_seeds)]
        fits = (model.fit(data.x[:, None], data.y) for data in data_sets)
        errors = [
            measures(data, fit.predict(data.places[:, None]))["range"]
            for data, fit in zip(data_sets, fits, strict=True)
        ]
        base = np.array(peers[case, n, "range"][BASE])
        ratios[name, n_doses, n] = geometric(np.array(errors) / base)
    cells = {
        (name, n): [ratios[name, n_doses, n] for n_doses in N_DOSES]
        for name, n in product(DOSE_CURVES, ROWS)
    }
    rows = [[name, f"{n}", *numbers(cell)] for (name, n), cell in cells.items()]
    for n in ROWS:
        means = geometric([cells[name, n] for name in DOSE_CURVES])
        rows.append(["geometric mean", f"{n}", *numbers(means)])
    mean = geometric(list(ratios.values()))
    return [
        f"## Few places, {n_seeds} seeds",
        "",
        "All rows lie at five to eight places, such as doses, and errors are measured at them "
        "and between. Root mean squared errors of `LocalPolynomialRegressor()` are relative to "
        "those of mgcv, which has as many basis functions as there are places; entries are "
        f"geometric means over data sets. The mean of all entries is {mean:.2f}.",
        "",
        *markdown(["curve", "n", *(f"{k} doses" for k in N_DOSES)], rows),
    ]


def geometric(ratios):
    return np.exp(np.mean(np.log(ratios), axis=0))


def numbers(values):
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]


# Curves. Smoothers are functions of places and targets that return the curve there.


def ours(model, X, y):
    return model.fit(X, y).predict(X)


def kernel_regression(X, y):
    fitted, _ = KernelReg(y, X, "c", reg_type="ll", bw="cv_ls").fit()
    return fitted


def robust_lines(X, y):
    return lowess(y, X[:, 0], return_sorted=False)


def smoothing_spline(X, y):
    return make_smoothing_spline(X[:, 0], y)(X[:, 0])


def gaussian_process(X, y):
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y).predict(X)


N, NOISE_RATIOS = 256, (3, 7)
ON_CURVES = {
    "Nadaraya-Watson": NadarayaWatsonRegressor(),
    "local polynomials": LocalPolynomialRegressor(),
    "local lines": LocalPolynomialRegressor(degree=1),
    "lines, knn-loo": LocalPolynomialRegressor(bandwidth="knn-loo"),
    "LocalPolynomialCV": LocalPolynomialCV(),
}
SMOOTHERS = {name: partial(ours, model) for name, model in ON_CURVES.items()}
if KernelReg is not None:
    SMOOTHERS |= {"KernelReg ll": kernel_regression, "lowess": robust_lines}
SMOOTHERS |= {
    "spline (SciPy)": smoothing_spline,
    "Gaussian process (scikit-learn)": gaussian_process,
}


def curve_table(n_seeds):
    """Mean squared errors, a row for each curve and noise; ranks in the last row."""
    rows, all_errors = [], []
    for signal_to_noise, name in product(NOISE_RATIOS, CURVES):
        errors = np.zeros(len(SMOOTHERS))
        for seed in range(n_seeds):
            X, y, truth = curve(name, N, signal_to_noise, seed)
            for j, smooth in enumerate(SMOOTHERS.values()):
                errors[j] += np.mean((smooth(X, y) - truth) ** 2) / n_seeds
        all_errors.append(errors)
        cells = [f"{error:.3f}" for error in errors]
        cells[errors.argmin()] = f"**{cells[errors.argmin()]}**"
        rows.append([name, f"{signal_to_noise}", *cells])
        print(" ".join(rows[-1]), file=sys.stderr)
    ranks = rankdata(all_errors, axis=1).mean(axis=0)
    rows.append(["mean rank", "", *(f"{rank:.2f}" for rank in ranks)])
    return [
        f"## Eight curves, {n_seeds} seeds",
        "",
        f"Mean squared error against the truth. n = {N} rows on a grid, noise of variance 1: "
        "1 is what no smoothing gives. All smoothers at their defaults; the Gaussian process "
        "has `ConstantKernel() * RBF() + WhiteKernel()` and `normalize_y=True`.",
        "",
        *markdown(["curve", "signal to noise", *SMOOTHERS], rows),
    ]


PARTS = {"scenarios": scenario_tables, "doses": dose_table, "curves": curve_table}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--seeds", type=int, metavar="N", help="data sets, instead of 5, 10")
    parser.add_argument("--peers", action="store_true", help=f"only write {STORED.name}")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    with warnings.catch_warnings():
        # Peers divide by zero and reach the bounds of their searches, which is their affair.
        warnings.simplefilter("ignore")
        if arguments.peers:
            store_peers(arguments.seeds or SEEDS["scenarios"])
            sys.exit()
        lines = ["# Accuracy of smoothers at their defaults", ""]
        lines += [stamp("numpy", "scipy", "scikit-learn", "statsmodels")]
        for part in arguments.parts or PARTS:
            lines += ["", *PARTS[part](arguments.seeds or SEEDS[part])]
    print("\n".join(lines))
