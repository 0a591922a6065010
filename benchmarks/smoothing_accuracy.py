"""Accuracy of smoothers at their defaults, and whether intervals cover what they say.

    python benchmarks/smoothing_accuracy.py [error] [coverage] [bands] [boundary]
                                            [--seeds N] [--save FILE]

* error: mean squared error against the truth on eight curves, four with jumps, peaks or
  ever faster oscillation and four smooth ones, for n = 256 rows, and the mean rank over
  all of them. Expected: no smoother with one bandwidth follows jumps and peaks; a Gaussian
  process leads on smooth curves, and chosen degrees come near it.
* coverage: share of new targets in 90 % prediction intervals. Expected: 90 %.
* bands: share of the truth in 90 % confidence bands, and between the conditional quantiles
  0.05 and 0.95 of new targets, for 100, 256 and 500 rows. Expected: about 90 % of places; of
  simultaneous bands those of smooth curves alone, since no smoother follows a jump.
* boundary: how often local lines are nearer to the truth than local averages at the ends
  of the range. Expected: nearly always where the signal is strong and the curve has a slope
  there; less often in strong noise, which a line follows more than an average does.

Peers are statsmodels (dependency group `bench`; left out where it is missing), SciPy and
scikit-learn. More than an hour on one core for all parts, most of it coverage and bands;
minutes with `--seeds 2`. Progress goes to stderr.
"""

import argparse
import math
import sys
import warnings
from functools import partial
from itertools import product

import numpy as np
from scipy.interpolate import make_smoothing_spline
from scipy.stats import rankdata
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sklearn_attention import (
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
)
from sklearn_attention.datasets import make_smoothing_curve

try:
    from statsmodels.nonparametric.kernel_regression import KernelReg
    from statsmodels.nonparametric.smoothers_lowess import lowess
except ImportError:
    KernelReg = lowess = None

N = 256
NOISE_RATIOS = (3, 7)
SMOOTH = {
    "line": lambda t: t,
    "exponential": lambda t: np.exp(3 * t),
    "sine": lambda t: np.sin(2 * math.pi * t + 1),
    "bump": lambda t: np.exp(-(((t - 0.5) / 0.12) ** 2) / 2),
}
CURVES = ("blocks", "bumps", "doppler", "heavisine", *SMOOTH)
BAND_ROWS = (100, 256, 500)
BOUNDARY_CURVES = ("line", "exponential", "sine", "heavisine")
MODELS = {
    "local lines": LocalPolynomialRegressor,
    "Nadaraya-Watson": NadarayaWatsonRegressor,
}


def noise_scale(t):
    """Standard deviation that grows along the range more than fivefold; mean square 1."""
    scale = 0.3 + 1.4 * t
    return scale / math.sqrt((1.7**3 - 0.3**3) / 4.2)


def truth_of(curve, t, signal_to_noise):
    """A smooth curve, scaled as `make_smoothing_curve` scales the others."""
    middles = (np.arange(10_000) + 0.5) / 10_000
    return SMOOTH[curve](t) * (signal_to_noise / SMOOTH[curve](middles).std())


def sample(curve, signal_to_noise, seed, design="grid", heteroscedastic=False, n=N):
    """Places, targets and truth."""
    X, y, truth = make_smoothing_curve(
        "blocks" if curve in SMOOTH else curve,
        n,
        signal_to_noise=signal_to_noise,
        design=design,
        random_state=seed,
        return_truth=True,
    )
    noise = y - truth
    if curve in SMOOTH:
        truth = truth_of(curve, X[:, 0], signal_to_noise)
    if heteroscedastic:
        noise = noise * noise_scale(X[:, 0])
    return X, truth + noise, truth


def true_curve(curve, t, signal_to_noise):
    """The curve at any places, without noise."""
    if curve in SMOOTH:
        return truth_of(curve, t, signal_to_noise)
    # The generator knows its curves on a grid alone: take one so fine that it includes t.
    fine = make_smoothing_curve(
        curve, FINE, signal_to_noise=signal_to_noise, random_state=0, return_truth=True
    )[2]
    return fine[np.rint(t * FINE).astype(int) - 1]


FINE = 20_000


def places(n):
    """Places in the middle of n equal parts of the range, that lie on the fine grid."""
    return np.rint((np.arange(n) + 0.5) / n * FINE) / FINE


# Smoothers: functions of places and targets that return the curve at the same places.


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


OURS = {
    "Nadaraya-Watson": NadarayaWatsonRegressor(),
    "local lines": LocalPolynomialRegressor(),
    "lines, knn-loo": LocalPolynomialRegressor(bandwidth="knn-loo"),
    "LocalPolynomialCV": LocalPolynomialCV(),
}
PEERS = {
    "spline (SciPy)": smoothing_spline,
    "Gaussian process (scikit-learn)": gaussian_process,
}
if KernelReg is not None:
    PEERS = {"KernelReg ll": kernel_regression, "lowess": robust_lines} | PEERS
SMOOTHERS = {name: partial(ours, model) for name, model in OURS.items()} | PEERS


def error_table(n_seeds):
    """Mean squared errors, a row for each curve and noise; ranks in the last row."""
    rows, all_errors = [], []
    for signal_to_noise in NOISE_RATIOS:
        for curve in CURVES:
            errors = np.zeros(len(SMOOTHERS))
            for seed in range(n_seeds):
                X, y, truth = sample(curve, signal_to_noise, seed)
                for j, smooth in enumerate(SMOOTHERS.values()):
                    errors[j] += np.mean((smooth(X, y) - truth) ** 2) / n_seeds
            all_errors.append(errors)
            cells = [f"{error:.3f}" for error in errors]
            cells[errors.argmin()] = f"**{cells[errors.argmin()]}**"
            rows.append([curve, f"{signal_to_noise}", *cells])
            print(" ".join(rows[-1]), file=sys.stderr)
    ranks = rankdata(all_errors, axis=1).mean(axis=0)
    rows.append(["mean rank", "", *(f"{rank:.2f}" for rank in ranks)])
    return [
        f"## Mean squared error against the truth, {n_seeds} seeds",
        "",
        f"n = {N} rows on a grid, noise of variance 1: 1 is what no smoothing gives. All "
        "smoothers at their defaults; the Gaussian process has `ConstantKernel() * RBF() + "
        "WhiteKernel()` and `normalize_y=True`.",
        "",
        *table(["curve", "signal to noise", *SMOOTHERS], rows),
    ]


def coverage_table(n_seeds):
    """Shares that intervals and bands contain, a row for each model, curve and noise."""
    grid = places(100)
    rows = []
    for name, model in MODELS.items():
        for heteroscedastic in (False, True):
            for curve in CURVES:
                truth = true_curve(curve, grid, 3)
                shares = np.zeros(2)
                for seed in range(n_seeds):
                    shares += covered(model(), curve, heteroscedastic, seed, grid, truth)
                noise = "growing" if heteroscedastic else "constant"
                cells = [f"{100 * share / n_seeds:.0f}" for share in shares]
                rows.append([name, noise, curve, *cells])
                print(" ".join(rows[-1]), file=sys.stderr)
    header = ["model", "noise", "curve", "interval", "interval, heteroscedastic"]
    return [
        f"## Coverage at 90 %, {n_seeds} seeds, in %",
        "",
        f"n = {N} rows at random places, signal to noise 3. Intervals of `predict_interval`: "
        "share of new targets inside, over places spread over the whole range. The growing "
        "noise has a standard deviation more than five times larger at the right end than "
        "at the left.",
        "",
        *table(header, rows),
    ]


def covered(model, curve, heteroscedastic, seed, grid, truth):
    """Shares of new targets in both intervals, of one data set."""
    X, y, _ = sample(curve, 3, seed, "uniform", heteroscedastic)
    model.fit(X, y)
    new = new_targets(truth, seed, noise_scale(grid) if heteroscedastic else 1)
    queries = grid[:, None]
    return (
        inside(model.predict_interval(queries), new).mean(),
        inside(model.predict_interval(queries, heteroscedastic=True), new).mean(),
    )


def new_targets(truth, seed, scale=1):
    return truth + np.random.default_rng(10_000 + seed).standard_normal(len(truth)) * scale


def inside(band, values):
    return (band[:, 0] <= values) & (values <= band[:, 1])


def bands_table(n_seeds):
    """What bands and quantiles contain, a row for each degree and number of rows."""
    grid, rows = places(100), []
    for degree, n in product((0, 1, 2), BAND_ROWS):
        cells = []
        for curves in (SMOOTH, set(CURVES) - set(SMOOTH)):
            found = [
                banded(degree, curve, signal_to_noise, seed, grid, n)
                for curve, signal_to_noise in product(sorted(curves), NOISE_RATIOS)
                for seed in range(n_seeds)
            ]
            *shares, width = np.mean(found, axis=0)
            cells += [f"{100 * share:.0f}" for share in shares] + [f"{width:.2f}"]
        rows.append([f"{degree}", f"{n}", *cells])
        print(" ".join(rows[-1]), file=sys.stderr)
    names = ["pointwise", "simultaneous", "quantiles", "width"]
    header = ["degree", "n", *(f"smooth: {name}" for name in names)]
    header += [f"jumps and peaks: {name}" for name in names]
    return [
        f"## Bands and quantiles at 90 %, {n_seeds} seeds, in %",
        "",
        "Rows at random places, noise of variance 1, signal to noise 3 and 7. Bands of "
        "`confidence_band`: share of places at which the truth is inside, and, "
        "simultaneously, share of data sets with the truth inside at all 100 places. "
        "Quantiles: share of new targets between the quantiles 0.05 and 0.95 of "
        "`predict_quantiles`. Width of the pointwise band. Smooth: "
        f"{', '.join(SMOOTH)}; jumps and peaks: the other four curves.",
        "",
        *table(header, rows),
    ]


def banded(degree, curve, signal_to_noise, seed, grid, n):
    """Shares and the band's width, of one data set."""
    X, y, _ = sample(curve, signal_to_noise, seed, "uniform", n=n)
    truth, queries = true_curve(curve, grid, signal_to_noise), grid[:, None]
    model = LocalPolynomialRegressor(degree=degree).fit(X, y)
    band = model.confidence_band(queries)
    return (
        inside(band, truth).mean(),
        inside(model.confidence_band(queries, simultaneous=True), truth).all(),
        inside(model.predict_quantiles(queries, [0.05, 0.95]), new_targets(truth, seed)).mean(),
        np.diff(band).mean(),
    )


def boundary_table(n_seeds):
    """How often degree 1 beats degree 0 at the ends."""
    rows = []
    for curve in BOUNDARY_CURVES:
        cells = []
        for signal_to_noise in NOISE_RATIOS:
            errors = np.empty((n_seeds, 2))
            for seed in range(n_seeds):
                X, y, truth = sample(curve, signal_to_noise, seed, "uniform")
                outer = (X[:, 0] < 0.1) | (X[:, 0] > 0.9)
                for degree in (0, 1):
                    model = LocalPolynomialRegressor(degree=degree).fit(X, y)
                    error = model.predict(X[outer]) - truth[outer]
                    errors[seed, degree] = np.mean(error**2)
            wins = np.mean(errors[:, 1] < errors[:, 0])
            averages, lines = errors.mean(axis=0)
            cells += [f"{100 * wins:.0f} %", f"{averages:.3f}", f"{lines:.3f}"]
        rows.append([curve, *cells])
        print(" ".join(rows[-1]), file=sys.stderr)
    header = ["curve"]
    for signal_to_noise in NOISE_RATIOS:
        header += [f"lines win, signal to noise {signal_to_noise}", "averages", "lines"]
    return [
        f"## The ends of the range, {n_seeds} seeds",
        "",
        f"n = {N} rows at random places, bandwidths by leave-one-out. Share of data sets in "
        "which local lines have a smaller squared error than local averages at the rows in "
        "the outer 10 % of the range at either end, and both mean squared errors there.",
        "",
        *table(header, rows),
    ]


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


PARTS = {
    "error": error_table,
    "coverage": coverage_table,
    "bands": bands_table,
    "boundary": boundary_table,
}
SEEDS = {"error": 20, "coverage": 200, "bands": 50, "boundary": 50}


def report(parts, n_seeds=None):
    lines = ["# Accuracy of smoothers at their defaults"]
    with warnings.catch_warnings():
        # Peers divide by zero and reach the bounds of their searches, which is their affair.
        warnings.simplefilter("ignore")
        for part in parts:
            lines += ["", *PARTS[part](n_seeds or SEEDS[part])]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="data sets, instead of the above"
    )
    parser.add_argument("--save", metavar="FILE", help="also write the tables to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    text = report(arguments.parts or PARTS, arguments.seeds)
    print(text)
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write(text + "\n")
