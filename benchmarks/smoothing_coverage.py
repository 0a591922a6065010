"""Coverage of intervals and bands of smoothers, among the rows and off them.

    python benchmarks/smoothing_coverage.py [places] [weights] [dependence] [curves]
                                            [--seeds N]

* places: intervals and bands of polynomials by scenario and region. Expected: 85 to 97 % of new
  targets in 90 % intervals, except where rows have no information, as for a peak within a gap.
* weights: noise that grows along the range, with weights one over its variance, in two units.
  Expected: 90 % at either end with weights, whatever the unit.
* dependence: autoregressive and independent noise, with and without a gap. Expected: coverage
  of bands is far too low without a gap, and about 90 % with one.
* curves: intervals, quantiles and bands of degrees 0 to 2 among the rows.

Ten minutes on one core; `--seeds 20` takes an hour.
"""

import argparse
import sys
import warnings
from itertools import product

import numpy as np
from _results import markdown, stamp

from sklearn_attention import LocalPolynomialRegressor
from sklearn_attention.datasets import make_smoothing_curve

CURVES = {
    "line": lambda t: 3 * t,
    "sine": lambda t: 1.4 * np.sin(2 * np.pi * t + 1),
    "exponential": lambda t: np.exp(3 * t) / 5,
    "bump": lambda t: 3 * np.exp(-(((t - 0.5) / 0.12) ** 2) / 2),
    "heavisine": lambda t: np.sin(4 * np.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t),
}
DESIGNS = {
    "uniform": lambda n, rng: rng.uniform(size=n),
    "gap": lambda n, rng: (lambda x: np.where(x > 0.4, x + 0.3, x))(0.7 * rng.uniform(size=n)),
    "clusters": lambda n, rng: rng.choice([0.1, 0.4, 0.9], n) + 0.06 * rng.normal(size=n),
    "normal": lambda n, rng: 0.5 + 0.2 * rng.normal(size=n),
}
NOISES = {
    "normal": lambda n, rng: 0.3 * rng.normal(size=n),
    "t3": lambda n, rng: 0.3 * rng.standard_t(3, n) / np.sqrt(3),
}
REGIONS = "inside", "edge", "gap", "outside 0.1", "outside 0.5"
HARD = "blocks", "bumps", "doppler", "heavisine"
FIRST_SEED = 1000  # of those that nothing was chosen on


def queries_in(region, x, rng, n=30):
    low, high = x.min(), x.max()
    side, share = rng.integers(0, 2, n), rng.uniform(size=n)
    if region == "inside":
        return rng.choice(np.sort(x)[len(x) // 10 : -len(x) // 10], n)
    if region == "gap":
        return 0.42 + 0.26 * share
    ends = {"edge": (-0.05, 0), "outside 0.1": (0, 0.1), "outside 0.5": (0.1, 0.5)}[region]
    beyond = (ends[0] + (ends[1] - ends[0]) * share) * (high - low)
    return np.where(side, high + beyond, low - beyond)


def inside(ends, values):
    return (ends[:, 0] <= values) & (values <= ends[:, 1])


def places_table(n_seeds):
    """A row for each number of rows, curve and region: means over designs and noise."""
    rows, everything = [], {}
    for n, curve in product((30, 100, 500), CURVES):
        found = {region: [] for region in REGIONS}
        for design, noise, seed in product(DESIGNS, NOISES, range(n_seeds)):
            rng = np.random.default_rng(FIRST_SEED + seed)
            x = DESIGNS[design](n, rng)
            model = LocalPolynomialRegressor()
            model.fit(x[:, None], CURVES[curve](x) + NOISES[noise](n, rng))
            for region in REGIONS:
                if region != "gap" or design == "gap":
                    places = queries_in(region, x, rng)
                    new = CURVES[curve](places) + NOISES[noise](len(places), rng)
                    found[region].append(held(model, places, CURVES[curve](places), new))
        for region, values in found.items():
            everything.setdefault((n, region), []).extend(values)
        print(n, curve, file=sys.stderr, flush=True)
        rows += [[f"{n}", curve, region, *cells(found[region])] for region in REGIONS]
    rows += [[f"{n}", "all", region, *cells(v)] for (n, region), v in everything.items()]
    header = ["n", "curve", "region", "interval", "width", "band", "width", "all of the band"]
    return [
        f"## Where coverage is 90 %, {n_seeds} seeds",
        "",
        "Local polynomials have their default settings. “interval” is the share of new "
        "targets that lie in 90 % intervals, “band” the share of points at which the true "
        "curve lies in the 90 % band, each in % and with its median width. “all of the band” "
        "is the share of data sets whose true curve lies in the simultaneous band at all of "
        "30 points. Shares are averaged over four designs (uniform, clustered, normal, with "
        "a gap) and two kinds of noise with standard deviation 0.3 (normal, and Student's t "
        "with three degrees of freedom).",
        "",
        *markdown(header, rows),
    ]


def held(model, places, truth, new):
    """Shares and widths: interval, band, and whether the simultaneous one has all."""
    X = places[:, None]
    interval, band = model.predict_interval(X), model.confidence_band(X)
    together = model.confidence_band(X, simultaneous=True, n_resamples=300)
    return (
        inside(interval, new).mean(), np.median(np.diff(interval)), inside(band, truth).mean(),
        np.median(np.diff(band)), inside(together, truth).all(),
    )  # fmt: skip


def cells(found):
    found = np.array(found)
    shares, widths = 100 * found.mean(axis=0), np.median(found, axis=0)
    chosen = shares[0], widths[1], shares[2], widths[3], shares[4]
    return [f"{x:.2f}" if k in (1, 3) else f"{x:.0f}" for k, x in enumerate(chosen)]


def weights_table(n_seeds):
    """A row for each unit of weights."""
    rows = []
    for n, (name, unit) in product((100, 500), {"none": 0, "1": 1, "100": 100}.items()):
        found = []
        for seed in range(n_seeds):
            rng = np.random.default_rng(FIRST_SEED + seed)
            x, places = rng.uniform(size=n), np.repeat([0.05, 0.5, 0.95], 20)[:, None]
            deviation = 0.1 + 0.5 * x
            y = CURVES["sine"](x) + deviation * rng.normal(size=n)
            weights = unit / deviation**2 if unit else None
            model = LocalPolynomialRegressor().fit(x[:, None], y, weights)
            truth = CURVES["sine"](places[:, 0])
            new = truth + (0.1 + 0.5 * places[:, 0]) * rng.normal(size=60)
            shares = inside(model.predict_interval(places), new)
            found.append(np.append(shares.reshape(3, 20).mean(axis=1), [
                inside(model.confidence_band(places), truth).mean(),
                inside(model.confidence_band(places, simultaneous=True), truth).all(),
            ]))  # fmt: skip
        rows.append([f"{n}", name, *(f"{100 * x:.0f}" for x in np.mean(found, axis=0))])
        print(rows[-1], file=sys.stderr, flush=True)
    header = ["n", "unit of weights", "interval at 0.05", "at 0.5", "at 0.95"]
    header += ["band", "all of it"]
    return [
        f"## Weights that are precisions, {n_seeds} seeds, in %",
        "",
        "The truth is a sine; the standard deviation of the noise grows from 0.1 to 0.6, and "
        "each row's weight is one over its variance.",
        "",
        *markdown(header, rows),
    ]


def autoregressive(coefficient, n, rng):
    shocks, found = rng.normal(size=n + 100), np.zeros(n + 100)
    for t in range(1, n + 100):
        found[t] = coefficient * found[t - 1] + shocks[t]
    return 0.5 * np.sqrt(1 - coefficient**2) * found[100:]


def dependence_table(n_seeds):
    """A row for each autocorrelation and gap."""
    rows, n = [], 120
    x = np.linspace(0, 1, n)
    for coefficient, gap in product((0.0, 0.6), (0, 5, 8)):
        found = []
        for curve, seed in product(("line", "sine", "bump"), range(n_seeds)):
            rng = np.random.default_rng(FIRST_SEED + seed)
            y = CURVES[curve](x) + autoregressive(coefficient, n, rng)
            model = LocalPolynomialRegressor(gap=gap).fit(x[:, None], y)
            places = x[5:-5:4]
            truth = CURVES[curve](places)
            new = truth + 0.5 * rng.normal(size=len(places))
            found.append(held(model, places, truth, new))
        rows.append([f"{coefficient}", f"{gap}", *cells(found)])
        print(rows[-1], file=sys.stderr, flush=True)
    header = ["autocorrelation", "gap", "interval", "width", "band", "width", "all of the band"]
    return [
        f"## Noise that depends on the rows before, {n_seeds} seeds", "",
        "The truth is a line, a sine or a bump, observed in 120 ordered rows with noise of "
        "standard deviation 0.5. New targets have independent noise.",
        "",
        *markdown(header, rows),
    ]  # fmt: skip


def curves_table(n_seeds):
    """A row for each degree, number of rows and kind of curves."""
    rows = []
    for degree, n, kind in product((0, 1, 2), (100, 256, 500), ("smooth", "jumps and peaks")):
        found = []
        names = HARD if kind != "smooth" else [name for name in CURVES if name != "heavisine"]
        for name, seed in product(names, range(n_seeds)):
            rng = np.random.default_rng(FIRST_SEED + seed)
            if kind == "smooth":
                x = rng.uniform(size=(2, n))
                truth, noise = CURVES[name](x), 0.3 * rng.normal(size=(2, n))
            else:
                X, y, truth = make_smoothing_curve(
                    name, 2 * n, signal_to_noise=5, design="uniform", return_truth=True,
                    random_state=rng.integers(2**31),
                )  # fmt: skip
                x, order = X[:, 0], rng.permutation(2 * n).reshape(2, n)
                x, truth, noise = x[order], truth[order], (y - truth)[order]
            model = LocalPolynomialRegressor(degree=degree)
            model.fit(x[0, :, None], (truth + noise)[0])
            X, truth, new = x[1, :100, None], truth[1, :100], (truth + noise)[1, :100]
            found.append([
                inside(model.predict_interval(X), new).mean(),
                inside(model.predict_interval(X, heteroscedastic=True), new).mean(),
                inside(model.predict_quantiles(X, [0.05, 0.95]), new).mean(),
                inside(model.confidence_band(X), truth).mean(),
                inside(model.confidence_band(X, simultaneous=True), truth).all(),
            ])  # fmt: skip
        shares = [f"{100 * x:.0f}" for x in np.mean(found, axis=0)]
        rows.append([f"{degree}", f"{n}", kind, *shares])
        print(rows[-1], file=sys.stderr, flush=True)
    header = ["degree", "n", "curves", "interval", "heteroscedastic", "quantiles", "band"]
    return [
        f"## Among the rows, {n_seeds} seeds, in %", "",
        "The rows lie at random points. Smooth curves are a line, a sine, an exponential and "
        "a bump with noise of standard deviation 0.3; those with jumps and peaks are blocks, "
        "bumps, doppler and heavisine at a signal-to-noise ratio of 5.",
        "",
        *markdown([*header, "simultaneous band"], rows),
    ]  # fmt: skip


PARTS = {
    "places": (places_table, 2), "weights": (weights_table, 4),
    "dependence": (dependence_table, 4), "curves": (curves_table, 2),
}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--seeds", type=int, metavar="N", help="data sets of each kind")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    lines = ["# Coverage of intervals and bands", "", stamp("numpy", "scipy")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of flat criteria, which noise that is dependent has
        for name in arguments.parts or PARTS:
            make, n_seeds = PARTS[name]
            lines += ["", *make(arguments.seeds or n_seeds)]
    print("\n".join(lines))
