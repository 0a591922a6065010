"""Coverage and accuracy of conditional densities of degrees 0 and 1 along a feature.

    OMP_NUM_THREADS=1 python benchmarks/conditional_densities.py [--rows N,...] [--seeds N]
                                                                 [--peer]

`ConditionalKernelDensity` at its defaults, with `degree=0` and `degree=1`, on nine kinds of
targets at three designs: uniform, normal, and t with three degrees of freedom, whose outer rows
are sparse. With `--peer` also `KDEMultivariateConditional` of statsmodels with bandwidths by
"cv_ml", on the uniform design; of two features a fit of 100 rows takes ten seconds.

* Coverage: the true probability of the range from the quantile 0.05 to 0.95, given the
  features, which should be 0.9; averages over the inner 80 % of places, and the outer 20 %.
* Log-density of new targets, and the CRPS, by 19 quantiles.
* Distance of the quantiles 0.05, 0.5 and 0.95 from the true ones.

Expected: degree 1 has its coverage closer to 0.9, and is better by the others, except beside a
jump and where two branches make the line uncertain. A few minutes on an idle core with
`--seeds 3`, without the peer.
"""

import argparse
import itertools
import sys
import time

import numpy as np
from _results import markdown, stamp
from scipy.stats import norm, t

from sklearn_attention import ConditionalKernelDensity

DESIGNS = {
    "uniform": lambda u: u,
    "normal": lambda u: 0.5 + 0.25 * norm.ppf(u),
    "t3": lambda u: 0.5 + 0.15 * t(3).ppf(u),
}
LEVELS = np.arange(1, 20) / 20
TRUTH = (np.arange(200) + 0.5) / 200
N_PLACES = 100


def two_branches(x, u):
    far = 0.3 + 0.7 * x[:, 0]
    return np.where(u < 0.5, -far, far) + 0.1 * norm.ppf(2 * u % 1)


# The mean or another center, the quantiles of the noise around it, the number of features.
TARGETS = {
    "clean line": (lambda x: x[:, 0], lambda x, u: 0.02 * norm.ppf(u), 1),
    "line": (lambda x: x[:, 0], lambda x, u: 0.3 * norm.ppf(u), 1),
    "steep line": (lambda x: 20 * x[:, 0], lambda x, u: 0.3 * norm.ppf(u), 1),
    "sine": (lambda x: np.sin(6 * x[:, 0]), lambda x, u: 0.2 * norm.ppf(u), 1),
    "growing noise": (
        lambda x: 2 * x[:, 0],
        lambda x, u: (0.05 + 0.5 * np.clip(x[:, 0], 0, 2)) * norm.ppf(u), 1,
    ),
    "skewed noise": (
        lambda x: 2 * x[:, 0], lambda x, u: 0.3 * (np.exp(0.8 * norm.ppf(u)) - 1), 1
    ),
    "two branches": (lambda x: x[:, 0], two_branches, 1),
    "jump": (lambda x: 2.0 * (x[:, 0] > 0.5), lambda x, u: 0.2 * norm.ppf(u), 1),
    "two features": (lambda x: 2 * x[:, 0], lambda x, u: 0.3 * norm.ppf(u), 2),
}  # fmt: skip


class Statsmodels:
    """The peer with the methods of ours."""

    def fit(self, X, y):
        from statsmodels.nonparametric.kernel_density import KDEMultivariateConditional

        self.y = y
        self.model = KDEMultivariateConditional(y, X, "c", "c" * X.shape[1], bw="cv_ml")
        return self

    def score_samples(self, X, y):
        with np.errstate(divide="ignore"):
            return np.log(self.model.pdf(y, X))

    def predict_quantiles(self, X, quantiles):
        margin = 4 * self.model.bw[0]
        grid = np.linspace(self.y.min() - margin, self.y.max() + margin, 200)
        cdf = [self.model.cdf(grid, np.tile(x, (200, 1))) for x in X]
        return np.array([np.interp(quantiles, below, grid) for below in cdf])


def measure(model, target, design, n, seed):
    """Coverage inside and at the edges, log-density, CRPS, distance of quantiles; seconds."""
    center, noise, d = TARGETS[target]
    rng = np.random.default_rng([1000 + seed, n])
    u = rng.uniform(size=(n, d))
    X, places = DESIGNS[design](u), rng.uniform(size=(N_PLACES, d))
    y, Q = center(X) + noise(X, rng.uniform(size=n)), DESIGNS[design](places)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    truth = np.column_stack([center(Q) + noise(Q, np.full(len(Q), v)) for v in TRUTH])
    found = model.predict_quantiles(Q, LEVELS)
    inside = ((found[:, :1] <= truth) & (truth <= found[:, -1:])).mean(axis=1)
    outer = np.abs(places[:, 0] - 0.5) > 0.4
    some = truth[:, 4::10]
    log_density = model.score_samples(np.repeat(Q, some.shape[1], axis=0), some.ravel())
    above = some[:, :, None] - found[:, None]
    crps = 2 * np.maximum(LEVELS * above, (LEVELS - 1) * above).mean()
    exact = [np.quantile(truth, level, axis=1) for level in (0.05, 0.5, 0.95)]
    distance = np.abs(found[:, [0, 9, 18]] - np.transpose(exact)).mean()
    return (
        inside[~outer].mean(), inside[outer].mean(), np.maximum(log_density, -50).mean(), crps,
        distance, seconds,
    )  # fmt: skip


def report(sizes, n_seeds, peer):
    header = "design", "target", "n", *(
        f"{name}, degree 0 / 1{' / peer' * peer}"
        for name in ("inside", "edges", "log-density", "CRPS", "quantiles", "s")
    )  # fmt: skip
    digits, rows, wins = (3, 3, 2, 3, 3, 2), [], []
    for n, design, target in itertools.product(sizes, DESIGNS, TARGETS):
        models = [ConditionalKernelDensity(degree=degree) for degree in (0, 1)]
        models += [Statsmodels()] if peer and design == "uniform" else []
        cells = np.array([
            np.mean([measure(m, target, design, n, seed) for seed in range(n_seeds)], axis=0)
            for m in models
        ])  # fmt: skip
        shown = [
            " / ".join(f"{value:.{d}f}" for value in column)
            for d, column in zip(digits, cells.T, strict=True)
        ]
        rows.append([design, target, str(n), *shown])
        print(*rows[-1], file=sys.stderr, flush=True)
        zero, one = cells[:2]
        off = np.abs(cells[:2, :2] - 0.9)
        wins.append([*(off[1] < off[0]), one[2] > zero[2], *(one[3:5] < zero[3:5])])
    names = "coverage inside", "at the edges", "log-density", "CRPS", "quantiles"
    counts = [
        f"{name} {count}" for name, count in zip(names, np.sum(wins, axis=0), strict=True)
    ]
    return [
        *markdown(header, rows),
        "",
        f"Degree 1 is better in, of {len(wins)}: {', '.join(counts)}.",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows", default="100,300", help="numbers of rows, with commas between"
    )
    parser.add_argument("--seeds", type=int, default=3, help="samples of each kind")
    parser.add_argument("--peer", action="store_true", help="statsmodels too")
    arguments = parser.parse_args()
    sizes = [int(n) for n in arguments.rows.split(",")]
    print("# Conditional densities along a feature\n")
    print(stamp("numpy", "scipy"), f"Means of {arguments.seeds} samples.\n")
    print("\n".join(report(sizes, arguments.seeds, arguments.peer)))
