"""Errors and seconds of the search for a bandwidth on difficult data.

    python benchmarks/bandwidth_robustness.py [--quick] [--rows N,...] [--kernels NAME,...]
                                              [--data NAME,...] [--seeds N] [--no-reference]
                                              [--save FILE]

One feature: places that are uniform, normal, heavy-tailed (t with two degrees of freedom,
Cauchy, lognormal), in clusters, rounded, each twice with another target, each row twice, and
normal with one outlier. The target is a sine of the rank of the place and noise, so all data
have a curve. Local averages and lines, four kernels, 150 to 100 000 rows.

* Errors: relative excess of the criterion at the chosen bandwidth over the best of a fine grid,
  which is refined in its lowest valleys. The grid is wider than the search. Bandwidths below
  the floor of the search, where single neighbours predict most rows, are reported separately
  where they are better. For up to 1000 rows the code below computes everything pair by pair.
  For more rows the sums of the package compute the grid; they are compared with all pairs of
  1000 rows at the chosen bandwidths.
* Seconds of the processor for `fit` with the default rule.
* Frequency of the warning about a flat minimum by the default rule.

Bounds: 1 % for both rules; 3 times the seconds of uniform places; 10 s, and 30 s for 100 000
rows. Expected: none is broken. Two to three minutes on an idle core with `--quick` (up to 1000
rows, two samples), half an hour for up to 10 000 rows, as much again for 100 000. Run it with
OMP_NUM_THREADS=1. Progress goes to stderr.
"""

import argparse
import collections
import itertools
import math
import sys
import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.attention import LeaveOneOut
from sklearn_attention.bandwidth import penalized_leave_one_out
from sklearn_attention.kernels._base import as_kernel

ROWS = 150, 1000, 10_000, 100_000
KERNELS = "gaussian", "epanechnikov", "tricube", "laplacian"
DEGREES = {0: "averages", 1: "lines"}
RULES = ("loo", "penalized-loo")
SEEDS, QUICK_ROWS, QUICK_SEEDS = 6, (150, 1000), 2
MOST_ROWS_FOR_ALL_SEEDS = MOST_ROWS_BY_PAIRS = 1000
# Bounds.
WORSE, SLOWER, SECONDS, SECONDS_OF_MANY, MANY = 0.01, 3.0, 10.0, 30.0, 100_000
# The grid of the reference, as logarithms: coarse, from so much below the least distance to
# as much above the greatest; and so much finer in so many valleys.
STEP, STEP_OF_FEW, FEW, FINER, VALLEYS, BEYOND = 0.15, 0.05, 500, 5, 4, math.log(4)
CHECKED_ROWS, BLOCK_ROWS = 1000, 64


class Profile(NamedTuple):
    """A kernel, written once more: logarithm at |u|, width of its lines, reach."""

    log: Any
    spread: float
    reach: float
    bounded: bool


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(x, 0.0))


# Beyond the reach weights are below exp(-40) of that of the nearest row.
PROFILES = {
    "gaussian": Profile(lambda u: -u * u / 2, 1.0, 9.0, False),
    "laplacian": Profile(lambda u: -u, 1.0, 40.0, False),
    "epanechnikov": Profile(lambda u: _log(1 - u * u), math.sqrt(1 / 5), 1.0, True),
    "tricube": Profile(lambda u: 3 * _log(1 - u**3), math.sqrt(35 / 243), 1.0, True),
}


def places(name, n, rng):
    if name == "uniform":
        return rng.uniform(size=n)
    if name == "t2":
        return rng.standard_t(2, size=n)
    if name == "cauchy":
        return rng.standard_cauchy(size=n)
    x = rng.normal(size=n)
    if name == "lognormal":
        return np.exp(2 * x)
    if name == "clusters":
        return x + 1000 * rng.integers(0, 10, size=n)
    if name == "rounded":
        return np.round(20 * x)
    if name in ("twins", "copies"):
        x[n // 2 :] = x[: n // 2]
    if name.startswith("outlier"):
        x[0] = float(name.split()[1])
    return x


DATA = (
    "uniform", "normal", "t2", "cauchy", "lognormal", "clusters", "rounded", "twins", "copies",
    "outlier 1e2", "outlier 1e6",
)  # fmt: skip


def sample(name, n, seed):
    """Places and targets."""
    rng = np.random.default_rng(seed)
    x = places(name, n, rng)
    rank = (np.argsort(np.argsort(x)) + 0.5) / n
    y = np.sin(12 * rank) + 0.3 * rng.normal(size=n)
    if name == "copies":
        y[n // 2 :] = y[: n // 2]
    return x, y


class Pairs:
    """Leave-one-out errors and degrees of freedom, from all pairs of rows.

    Copies of rows are one row, as the search has them.
    """

    def __init__(self, x, y, kernel):
        rows = np.unique(np.column_stack([x, y]), axis=0)
        self.x, self.y, self.profile = rows[:, 0], rows[:, 1], PROFILES[kernel]
        self.n = len(self.x)
        gap = np.diff(self.x)
        self.nearest = np.minimum(np.append(gap, np.inf), np.append(np.inf, gap))
        self.extent = self.x.std()
        self.known, self.answers = {}, {}

    def ends(self):
        """Logarithms of the ends of the grid."""
        gap = np.diff(self.x)
        return np.log(gap[gap > 0].min()) - BEYOND, np.log(np.ptp(self.x)) + 2 * BEYOND

    def criteria(self, log_h):
        """Both criteria for each degree, (n_degrees, n_rules), at one bandwidth."""
        if log_h not in self.known:
            left_out, leverage = self.predict(np.arange(self.n), math.exp(log_h))
            error = np.mean((left_out - self.y) ** 2, axis=1)
            penalty = np.exp((leverage.sum(axis=1) / self.n) ** 2)
            self.known[log_h] = np.stack([error, error * penalty], axis=1)
        return self.known[log_h]

    def predict(self, rows, h):
        """Predictions of rows from all others, and leverages, (n_degrees, n_rows)."""
        found = np.empty((2, 2, len(rows)))
        reach = self.profile.reach * h + (0 if self.profile.bounded else self.nearest[rows])
        low = np.searchsorted(self.x, self.x[rows] - reach, "left")
        high = np.searchsorted(self.x, self.x[rows] + reach, "right")
        for first in range(0, len(rows), BLOCK_ROWS):
            part = slice(first, first + BLOCK_ROWS)
            keys = slice(low[part].min(), high[part].max())
            found[:, :, part] = self._block(rows[part], keys, h)
        return found

    def _nearest(self, row):
        """The mean of the nearest rows, where the window is empty."""
        if row not in self.answers:
            distance = np.abs(self.x - self.x[row])
            distance[row] = np.inf
            self.answers[row] = self.y[distance == distance.min()].mean()
        return self.answers[row]

    def _block(self, rows, keys, h):
        profile, y = self.profile, self.y[keys]
        u = (self.x[keys] - self.x[rows][:, None]) / h
        itself = np.arange(len(rows)), rows - keys.start
        log = profile.log(np.abs(u))
        log[itself] = -np.inf
        top = log.max(axis=1)
        with np.errstate(invalid="ignore"):
            weight = np.exp(log - np.where(np.isfinite(top), top, 0.0)[:, None])
        total = weight.sum(axis=1)
        with np.errstate(over="ignore"):
            share = np.where(total > 0, 1 / (1 + np.exp(top) * total), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight /= total[:, None]
        mean = weight @ y
        for row in np.flatnonzero(total == 0):
            mean[row], weight[row] = self._nearest(rows[row]), 0.0
        # The line, in units of the kernel's deviation or the data's.
        u /= min(profile.spread, self.extent / h)
        weight *= u
        moment = weight.sum(axis=1)
        with_y = weight @ y
        weight *= u
        square = weight.sum(axis=1)
        line, _ = _line(moment, square, with_y, mean)
        rest = 1 - share
        _, pull = _line(rest * moment, rest * square)
        leverage = share, share * (1 + pull)
        return np.stack([np.stack([mean, line]), np.stack(leverage)])


def _line(moment, square, with_y=0.0, mean=0.0):
    """Height at 0 of the line through weighted points, and what moves it beside the mean."""
    variance = square - moment**2
    least = 1e6 * np.finfo(float).eps * np.maximum(square, 1) * np.abs(moment)
    variance = np.maximum(variance, np.maximum(least, 1e-4))
    return mean - moment * (with_y - moment * mean) / variance, moment**2 / variance


class Sums:
    """The same from the sums of the package."""

    def __init__(self, pairs, kernel):
        self.pairs, self.known = pairs, {}
        self.smoothers = [
            LeaveOneOut(pairs.x[:, None], pairs.y[:, None], as_kernel(kernel), degree=degree)
            for degree in DEGREES
        ]

    def criteria(self, log_h):
        if log_h not in self.known:
            scores = [smoother.scores([math.exp(log_h)]) for smoother in self.smoothers]
            self.known[log_h] = np.array([
                [found.left_out[0], penalized_leave_one_out(found, self.pairs.n)[0]]
                for found in scores
            ])  # fmt: skip
        return self.known[log_h]

    def difference(self, log_h, rows):
        """From all pairs of some rows, beside the deviation of the target."""
        left_out, _ = self.pairs.predict(rows, math.exp(log_h))
        return max(
            np.abs(smoother.predictions(math.exp(log_h)).left_out[rows, 0] - found).max()
            for smoother, found in zip(self.smoothers, left_out, strict=True)
        ) / self.pairs.y.std()  # fmt: skip


def best_of_grid(reference, ends, floor, step):
    """Lowest values from the floor up, and of all, of both criteria for each degree."""
    grid = np.arange(ends[0], ends[1] + step, step)
    curves = np.array([reference.criteria(point) for point in grid])
    allowed = grid >= floor
    points = set()
    for curve in curves[allowed].reshape(allowed.sum(), -1).T:
        padded = np.concatenate([[np.inf], curve, [np.inf]])
        bottoms = np.flatnonzero((curve <= padded[:-2]) & (curve <= padded[2:]))
        for bottom in grid[allowed][bottoms[np.argsort(curve[bottoms])][:VALLEYS]]:
            points |= {round(bottom + k * step / FINER, 9) for k in range(1 - FINER, FINER)}
    finer = [reference.criteria(point) for point in sorted(points) if point >= floor]
    best = np.concatenate([curves[allowed], finer]).min(axis=0)
    return best, np.minimum(best, curves.min(axis=0))


class Fit(NamedTuple):
    bandwidth: float
    value: float
    seconds: float
    flat: bool
    floor: float


def fit(x, y, kernel, degree, rule):
    classes = NadarayaWatsonRegressor, partial(LocalPolynomialRegressor, degree=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        model = classes[degree](kernel=kernel, bandwidth=rule).fit(x[:, None], y)
        seconds = time.process_time() - start
    flat = any("error is flat" in str(warning.message) for warning in caught)
    floor = model.bandwidth_search_["bandwidth"].min()
    bandwidth, value = float(model.bandwidth_[0]), float(model.criterion_value_)
    return Fit(bandwidth, value, seconds, flat, float(floor))


class Cell(NamedTuple):
    """One sample, kernel and degree.

    Excess of each rule above the best that the search may try, and excess of that above the
    best there is; seconds, disagreement with pairs, warning.
    """

    excess: tuple
    beyond: tuple
    seconds: float
    difference: float
    flat: bool


def cells_of(name, n, kernel, seed, with_reference):
    """A cell for each degree."""
    x, y = sample(name, n, seed)
    rules = RULES if with_reference else RULES[1:]
    fits = {(d, rule): fit(x, y, kernel, d, rule) for d in DEGREES for rule in rules}
    excess, beyond = np.full((2, 2, 2), np.nan)
    difference = np.full(2, np.nan)
    if with_reference:
        pairs = Pairs(x, y, kernel)
        by_pairs = n <= MOST_ROWS_BY_PAIRS
        judge = pairs if by_pairs else Sums(pairs, kernel)
        floor = math.log(fits[0, "loo"].floor) - 1e-9
        best, lowest = best_of_grid(
            judge, pairs.ends(), floor, STEP_OF_FEW if n < FEW else STEP
        )
        for d, (k, rule) in itertools.product(DEGREES, enumerate(RULES)):
            there = judge.criteria(math.log(fits[d, rule].bandwidth))[d, k]
            excess[d, k] = there / min(there, best[d, k]) - 1
            beyond[d, k] = min(there, best[d, k]) / min(there, lowest[d, k]) - 1
            difference[d] = np.fmax(difference[d], abs(fits[d, rule].value / there - 1))
        if not by_pairs:
            rows = np.sort(np.random.default_rng(0).choice(pairs.n, CHECKED_ROWS, False))
            chosen = {fits[d, "loo"].bandwidth for d in DEGREES}
            difference[:] = max(judge.difference(math.log(h), rows) for h in chosen)
    cells = []
    for d in DEGREES:
        default = fits[d, RULES[1]]
        found = tuple(excess[d]), tuple(beyond[d]), default.seconds, difference[d]
        cells.append(Cell(*found, default.flat))
    return cells


def measure(data, sizes, kernels, seeds, with_reference):
    found = collections.defaultdict(list)
    for n, kernel, name in itertools.product(sizes, kernels, data):
        for seed in range(seeds if n <= MOST_ROWS_FOR_ALL_SEEDS else 1):
            cells = cells_of(name, n, kernel, seed, with_reference)
            for degree, cell in enumerate(cells):
                found[n, degree, kernel, name].append(cell)
        shown = [summary(found[n, degree, kernel, name]) for degree in DEGREES]
        print(n, kernel, name, *shown, sep="  ", file=sys.stderr, flush=True)
    return found


def worst(cells):
    return np.array([cell.excess for cell in cells]).max(axis=0)


def middle(cells):
    return float(np.median([cell.seconds for cell in cells]))


def summary(cells):
    excess = ["-" if np.isnan(e) else f"{100 * e:.2f}" for e in worst(cells)]
    return " / ".join([*excess, f"{middle(cells):.2f}"])


def table(header, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return [lines[0], "|" + " --- |" * len(header), *lines[1:]]


def faults_of(cells, uniform, n):
    """The bounds that the samples of a cell break, in words."""
    seconds = middle(cells)
    faults = []
    for k, rule in enumerate(RULES):
        above = [cell.excess[k] for cell in cells if cell.excess[k] > WORSE]
        if above:
            how = f"{len(above)} of {len(cells)} samples, up to {100 * max(above):.1f} %"
            faults.append(f"{rule} above the best: {how}")
    if uniform and seconds > SLOWER * middle(uniform):
        faults.append(f"{seconds / middle(uniform):.1f} times the seconds of uniform")
    if seconds > (SECONDS_OF_MANY if n >= MANY else SECONDS):
        faults.append(f"{seconds:.1f} s")
    return faults


def report(found, data):
    rows, broken, narrower = [], [], []
    for n, degree, kernel in dict.fromkeys(key[:3] for key in found):
        rows.append([n, DEGREES[degree], kernel])
        for name in data:
            where = [n, DEGREES[degree], kernel, name]
            cells = found[n, degree, kernel, name]
            faults = faults_of(cells, found.get((n, degree, kernel, "uniform")), n)
            if faults:
                broken.append([*where, "; ".join(faults)])
            rows[-1].append(summary(cells) + " *" * bool(faults))
            for k, rule in enumerate(RULES):
                below = [cell.beyond[k] for cell in cells if cell.beyond[k] > WORSE]
                if below:
                    how = f"{len(below)} of {len(cells)}", f"{100 * max(below):.1f} %"
                    narrower.append([*where, rule, *how])
    where = ["n", "fit", "kernel", "data"]
    lines = ["Worst percent above the best of loo / of penalized-loo / median seconds of the"]
    lines[0] += " default rule; * breaks a bound."
    lines += ["", *table(["n", "fit", "kernel", *data], rows)]
    lines += ["", "Broken bounds.", ""]
    lines += table([*where, "how"], broken) if broken else ["None."]
    if not any(np.isnan(cell.excess).any() for cells in found.values() for cell in cells):
        lines += [
            "",
            "Where bandwidths below the search's floor are better by more than 1 %.",
            "",
        ]
        header = [*where, "rule", "samples", "up to"]
        lines += table(header, narrower) if narrower else ["Nowhere."]
        lines += differences(found)
    return lines + flat_minima(found, data)


def differences(found):
    lines = ["", "Largest disagreement with all pairs: of the criterion, up to "]
    lines[-1] += f"{MOST_ROWS_BY_PAIRS} rows; of predictions, beside the deviation of the "
    lines[-1] += "target, of more."
    rows = []
    for n in dict.fromkeys(key[0] for key in found):
        some = [c.difference for key, cells in found.items() if key[0] == n for c in cells]
        rows.append([n, f"{max(some):.0e}"])
    return [*lines, "", *table(["n", "difference"], rows)]


def flat_minima(found, data):
    rows = []
    for name in data:
        some = [c.flat for key, cells in found.items() if key[3] == name for c in cells]
        rows.append([name, sum(some), len(some)])
    warned, fits = np.sum([row[1:] for row in rows], axis=0)
    rows.append(["all", warned, f"{fits} ({100 * warned / fits:.1f} %)"])
    return ["", "Warnings of a flat minimum.", "", *table(["data", "warned", "of"], rows)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, two seeds")
    parser.add_argument("--rows", help="numbers of rows, with commas between")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="names, likewise")
    parser.add_argument("--data", default=",".join(DATA), help="names, likewise")
    parser.add_argument("--seeds", type=int, help="samples of each kind of data")
    parser.add_argument("--no-reference", action="store_true", help="only seconds, warnings")
    parser.add_argument("--save", metavar="FILE", help="also write the tables to this file")
    arguments = parser.parse_args()
    sizes = QUICK_ROWS if arguments.quick else ROWS
    if arguments.rows:
        sizes = [int(float(n)) for n in arguments.rows.split(",")]
    seeds = arguments.seeds or (QUICK_SEEDS if arguments.quick else SEEDS)
    data, kernels = arguments.data.split(","), arguments.kernels.split(",")
    found = measure(data, sizes, kernels, seeds, not arguments.no_reference)
    text = "\n".join(report(found, data))
    print(text)
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write(text + "\n")
