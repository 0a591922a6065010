"""Rules for the default bandwidth, on simulated and real curves.

    python benchmarks/bandwidth_rules.py [one] [two] [edges] [real] [copies] [blocks]
                                         [--quick] [--seed N] [--kernel NAME] [--save FILE]

A rule chooses one of 60 bandwidths, from the distance of neighbours to the extent of the data,
that are multiples of each feature's spread. Rules depend on the leave-one-out error, the
residuals and the degrees of freedom of each (t is degrees of freedom per row):

* loo, gcv, aicc: leave-one-out, generalised cross-validation, corrected Akaike criterion;
* charge t^2: leave-one-out times exp(t^2), and the same with t, 2 t^2 and t^3;
* gcv 1.4, loo 1.4: degrees of freedom count 1.4 times, which is customary for splines;
* rice: residuals divided by 1 - 2 t;
* loo x aicc: the sum of their logarithms; loo x gcv likewise, with the charge;
* loo, aicc's charge: the factor of aicc over gcv, which is exp(t^2) for small t;
* wider: the wider of loo's and aicc's bandwidths;
* one standard error: the widest bandwidth whose leave-one-out error is at most one standard
  error above the least.

Parts:

* one, two: curves of one and of two features. Each sample draws a curve, places, noise, ratio
  of signal to noise (of standard deviations) and number of rows, all levels equally often. The
  squared error at 200 (400) quantiles of the places, as for new rows, is divided by that of the
  best of the 60 bandwidths for this sample: 1 is an oracle.
* edges: no signal at all, and hardly any noise.
* real: five data sets, halved at random; error in the other half. Left out where there is no
  folder of data: SKLEARN_ATTENTION_DATA names it, or it is ../shared/data.
* copies: half of the rows twice, where copies are left out one by one and together; and rows
  with few different values, that are equal by chance.
* blocks: rows at regular places, noise autocorrelated in their order; a block of neighbours is
  left out around each row (Burman, Chow and Nolan 1994), or the own place has no weight
  in the kernel (De Brabanter et al. 2011).

The rules were listed before the first run. Expected: leave-one-out is right on average and
sometimes far too narrow; a charge that is small relative to the variance corrects this for
independent noise. Correlated noise needs blocks. Ten minutes on one core for all parts, one
minute with `--quick`. Progress goes to stderr.
"""

import argparse
import functools
import math
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from sklearn_attention import attend
from sklearn_attention._spread import feature_spread
from sklearn_attention.attention import LeaveOneOut, attend_local
from sklearn_attention.bandwidth import (
    corrected_akaike,
    generalized_cross_validation,
)
from sklearn_attention.bandwidth._search import canonical_ratio, search_range
from sklearn_attention.kernels import Gaussian
from sklearn_attention.kernels._base import as_kernel

N_SCALES, N_QUERIES, QUERIES_PER_SIDE = 60, 200, 20
SIZES, SIGNAL_TO_NOISE = (80, 150, 300), (1.5, 4, 10)
CORRELATION = 0.6
DEGREES = {0: "local averages", 1: "local lines"}
SAMPLES = {"one": 2100, "two": 400, "edges": 120, "real": 200, "copies": 100, "blocks": 150}
QUICK = 12  # times fewer

# Curves of t between 0 and 1, with parameters drawn anew for each sample.


def waves(rng, frequencies):
    """A Gaussian process, from waves of random directions: (m, d) angular frequencies."""
    phases = rng.uniform(0, 2 * math.pi, len(frequencies))
    return lambda t: np.cos(t @ frequencies.T + phases).sum(axis=1)


def smooth_process(rng, d=1, shortest=0.04, longest=0.5):
    length = np.exp(rng.uniform(math.log(shortest), math.log(longest)))
    return waves(rng, rng.standard_normal((100, d)) / length)


def rough_process(rng, d=1):
    length = np.exp(rng.uniform(math.log(0.1), math.log(1)))
    return waves(rng, rng.standard_t(3, (100, d)) / length)


def broken_line(rng):
    knots = np.sort(rng.random(rng.integers(1, 5)))
    knots, heights = np.r_[0, knots, 1], rng.standard_normal(len(knots) + 2)
    return lambda t: np.interp(t[:, 0], knots, heights)


def growth(rng):
    speed, middle = rng.uniform(5, 40), rng.uniform(0.2, 0.8)
    return lambda t: 1 / (1 + np.exp(-speed * (t[:, 0] - middle)))


def damped(rng):
    decay, frequency, phase = rng.uniform(1, 5), rng.uniform(1.5, 6), rng.uniform(0, 7)
    return lambda t: (
        np.exp(-decay * t[:, 0]) * np.cos(2 * math.pi * frequency * t[:, 0] + phase)
    )


def runge(rng):
    sharpness, middle = rng.uniform(40, 240), rng.uniform(0.3, 0.7)
    return lambda t: 1 / (1 + sharpness * (t[:, 0] - middle) ** 2)


def step_and_slope(rng):
    place, slope = rng.uniform(0.2, 0.8), rng.normal(0, 2)
    return lambda t: slope * t[:, 0] + (t[:, 0] > place)


def polynomial_wave(rng):
    coefficients, frequency = rng.standard_normal(4), rng.uniform(1, 5)

    def curve(t):
        polynomial = np.polynomial.legendre.legval(2 * t[:, 0] - 1, coefficients)
        return polynomial * np.sin(2 * math.pi * frequency * t[:, 0])

    return curve


def fourier_series(rng):
    orders = np.arange(1, 13)
    size = orders ** -rng.uniform(0.8, 2.0)
    cosines, sines = rng.standard_normal((2, 12)) * size

    def curve(t):
        angles = 2 * math.pi * t[:, :1] * orders
        return np.cos(angles) @ cosines + np.sin(angles) @ sines

    return curve


def parabola(rng):
    slope, bend = rng.standard_normal(2)
    return lambda t: slope * t[:, 0] + bend * t[:, 0] ** 2


def additive(rng):
    parts = [ONE_FEATURE[name](rng) for name in rng.choice(list(ONE_FEATURE), 2)]
    return lambda t: sum(part(t[:, [j]]) for j, part in enumerate(parts))


def product(rng):
    parts = [smooth_process(rng, 1, 0.2, 1.0) for _ in range(2)]
    return lambda t: parts[0](t[:, :1]) * parts[1](t[:, 1:])


def ridge(rng):
    part, angle = rng.choice([damped, growth, runge])(rng), rng.uniform(0, math.pi / 2)
    direction = np.array([math.cos(angle), math.sin(angle)])
    return lambda t: part((t @ direction)[:, None] / direction.sum())


ONE_FEATURE = {
    "smooth process": smooth_process,
    "rough process": rough_process,
    "broken line": broken_line,
    "growth": growth,
    "damped wave": damped,
    "Runge": runge,
    "step and slope": step_and_slope,
    "polynomial x wave": polynomial_wave,
    "Fourier series": fourier_series,
    "parabola": parabola,
}
TWO_FEATURES = {
    "smooth process": functools.partial(smooth_process, d=2, shortest=0.12, longest=1.0),
    "rough process": functools.partial(rough_process, d=2),
    "additive": additive,
    "product": product,
    "ridge": ridge,
}

# Places: quantile functions, so that evenly spread levels give where new rows lie.


def two_clusters(u):
    left = u < 0.5
    inside = ndtri(np.where(left, 2 * u, 2 * u - 1).clip(1e-4, 1 - 1e-4))
    return np.where(left, 0.25 + 0.06 * inside, 0.75 + 0.08 * inside)


PLACES = {
    "beta": functools.partial(betaincinv, 2, 5),
    "exponential": lambda u: -np.log1p(-u * -math.expm1(-5)) / 5,
    "clusters": two_clusters,
    "regular": lambda u: u,
    "rounded": lambda u: u,
}


def draw_places(rng, places, n, d):
    """Rows, and where new rows lie: both of shape (., d)."""
    quantile = PLACES[places]
    side = N_QUERIES if d == 1 else QUERIES_PER_SIDE
    queries = quantile(lattice(side, d))
    if places == "regular":
        return lattice(round(n ** (1 / d)), d), queries
    X = quantile(rng.random((n, d)))
    if places == "rounded":
        # About four rows at a place.
        steps = (n / 4) ** (1 / d)
        X = np.round(X * steps) / steps
    return X, queries


def lattice(side, d):
    middles = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(*[middles] * d), axis=-1).reshape(-1, d)


# Noise of variance 1.


def autocorrelated(rng, n, correlation):
    noise = rng.standard_normal(n)
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    return noise


def draw_noise(rng, noise, x):
    """Noise at places x; a number is the correlation of neighbours in their order."""
    n = len(x)
    if noise == "t4":
        return rng.standard_t(4, n) / math.sqrt(2)
    if noise == "skewed":
        return (rng.gamma(2, size=n) - 2) / math.sqrt(2)
    if isinstance(noise, float):
        ordered = np.empty(n)
        ordered[x.argsort(kind="stable")] = autocorrelated(rng, n, noise)
        return ordered
    normal = rng.standard_normal(n)
    if noise == "growing":
        scale = 0.3 + 1.4 * x
        return normal * scale / math.sqrt(np.mean(scale**2))
    return normal


NOISES = ("normal", "t4", "growing", "skewed")


class Sample(NamedTuple):
    X: Any
    y: Any
    queries: Any
    truth: Any  # at the queries


def draw(rng, curves, curve, places, noise, ratio, n, d=1):
    X, queries = draw_places(rng, places, n, d)
    function = curves[curve](rng)
    # Rows have no information on the curve beyond them.
    queries = queries.clip(X.min(axis=0), X.max(axis=0))
    values, truth = function(X), function(queries)
    # Of the places rows come from, lest a sample without signal be scaled up.
    size = ratio / max(truth.std(), 1e-12)
    return Sample(X, values * size + draw_noise(rng, noise, X[:, 0]), queries, truth * size)


def designs(n_samples, seed, **levels):
    """Samples in which each level of each factor is equally often, combined at random."""
    rng = np.random.default_rng(seed)
    columns = {
        name: rng.permutation(np.resize(np.arange(len(values)), n_samples))
        for name, values in levels.items()
    }
    for i in range(n_samples):
        chosen = {name: levels[name][column[i]] for name, column in columns.items()}
        yield np.random.default_rng([seed, i]), chosen


# Arguments of rules, and the costs of their choices.


class Candidates(NamedTuple):
    """Bandwidths from narrow to wide: criteria for rules, errors for us."""

    bandwidths: Any  # of the first feature
    left_out: Any
    fitted: Any
    trace: Any
    n: int
    standard_error: float  # of the least left-out error
    error: Any  # against the truth

    @property
    def share(self):
        """Degrees of freedom per row."""
        return self.trace / self.n


def candidates(sample, kernel, degree, sample_weight=None):
    X, y, queries, truth = sample
    spread = feature_spread(X, sample_weight)
    scales = np.geomspace(*search_range(X / spread, canonical_ratio(kernel)), N_SCALES)
    rows = LeaveOneOut(
        X, y[:, None], kernel, bandwidth=spread, degree=degree, sample_weight=sample_weight
    )
    scores = rows.scores(scales)
    left_out = np.where(np.isnan(scores.left_out), np.inf, scores.left_out)
    squares = (rows.predictions(scales[left_out.argmin()]).left_out[:, 0] - y[rows.rows]) ** 2
    standard_error = squares.std() / math.sqrt(len(squares))
    curves = curves_at(queries, X, y, kernel, degree, spread, scales, sample_weight)
    error = np.mean((curves - truth) ** 2, axis=1)
    return Candidates(
        scales * spread[0], left_out, scores.fitted, scores.trace, len(rows.rows),
        standard_error, error,
    )  # fmt: skip


def curves_at(queries, X, y, kernel, degree, spread, scales, sample_weight=None):
    """The curve at all queries, for each scale: (n_scales, n_queries)."""
    options = {
        "bandwidth": spread,
        "query_scale": np.repeat(scales, len(queries)),
        "sample_weight": sample_weight,
    }
    everywhere = np.tile(queries, (len(scales), 1))
    if degree == 0:
        found = attend(everywhere, X, y, kernel, **options)[0]
    else:
        found = attend_local(everywhere, X, y, kernel, degree=degree, **options).values
    return found.reshape(len(scales), len(queries))


def charge(seen, weight=1.0, power=2):
    return seen.left_out * np.exp(weight * seen.share**power)


def inflated(seen, errors, factor):
    """Errors divided by the square of 1 - factor x t; infinite beyond."""
    rest = 1 - factor * seen.share
    return np.where(rest > 0, errors / np.where(rest > 0, rest, 1) ** 2, np.inf)


def rice(seen):
    rest = 1 - 2 * seen.share
    return np.where(rest > 0, seen.fitted / np.where(rest > 0, rest, 1), np.inf)


def loo_and_gcv(seen):
    return charge(seen) * generalized_cross_validation(seen, seen.n) * np.exp(seen.share**2)


def akaike_charge(seen):
    """Leave-one-out times what makes aicc of gcv: exp(t^2) for small t, infinite at 1."""
    rest, corrected = 1 - seen.share, 1 - seen.share - 2 / seen.n
    inside = corrected > 0
    rest, corrected = (np.where(inside, x, 1) for x in (rest, corrected))
    charged = np.log(seen.left_out) + (1 + seen.share) / corrected + 2 * np.log(rest)
    return np.where(inside, charged, np.inf)


def lowest(criterion):
    return lambda seen: int(np.argmin(criterion(seen)))


def wider(seen):
    return max(RULES["loo"](seen), RULES["aicc"](seen))


def one_standard_error(seen):
    limit = seen.left_out.min() + seen.standard_error
    return int(np.flatnonzero(seen.left_out <= limit)[-1])


RULES = {
    "loo": lowest(lambda s: s.left_out),
    "charge t^2": lowest(charge),
    "charge 2 t^2": lowest(lambda s: charge(s, weight=2)),
    "charge t^3": lowest(lambda s: charge(s, power=3)),
    "charge t": lowest(lambda s: charge(s, power=1)),
    "loo 1.4": lowest(lambda s: inflated(s, s.left_out * (1 - s.share) ** 2, 1.4)),
    "gcv": lowest(lambda s: generalized_cross_validation(s, s.n)),
    "gcv 1.4": lowest(lambda s: inflated(s, s.fitted, 1.4)),
    "aicc": lowest(lambda s: corrected_akaike(s, s.n)),
    "rice": lowest(rice),
    "loo x aicc": lowest(lambda s: np.log(s.left_out) + corrected_akaike(s, s.n)),
    "loo x gcv, charge t^2": lowest(loo_and_gcv),
    "loo, aicc's charge": lowest(akaike_charge),
    "wider": wider,
    "one standard error": one_standard_error,
}
# In tables by factor.
SHOWN = ("loo", "charge t^2", "charge 2 t^2", "gcv 1.4", "aicc", "loo x aicc", "wider")


def choices(seen, rules=RULES):
    return np.array([rule(seen) for rule in rules.values()])


def ratios(seen, chosen):
    """Errors of what was chosen, in units of the least."""
    return seen.error[chosen] / seen.error.min()


# Tables.


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def cell(values, tail=True):
    """Mean, its standard error, 90th percentile, and share above 2."""
    if len(values) < 2:
        return "–"
    error = values.std(ddof=1) / math.sqrt(len(values))
    text = f"{values.mean():.2f} ± {error:.2f} / {np.quantile(values, 0.9):.2f}"
    return text + f" / {100 * np.mean(values > 2):.0f} %" if tail else text


def rule_table(groups, names=RULES, shown=None):
    """A row for each rule, a column for each group of samples: (n, n_rules) ratios.

    Where few are shown, without the share above 2.
    """
    header = ["rule", *(f"{name} ({len(values)})" for name, values in groups.items())]
    rows = [
        [name, *(cell(values[:, j], shown is None) for values in groups.values())]
        for j, name in enumerate(names)
        if shown is None or name in shown
    ]
    return table(header, rows)


def against(values, name="charge t^2", names=RULES):
    """Errors above those of one rule, in %, from the mean logarithm of paired ratios."""
    logs = np.log(values / values[:, [list(names).index(name)]])
    errors = logs.std(axis=0, ddof=1) / math.sqrt(len(logs))
    return [
        f"{100 * math.expm1(mean):+.1f} ± {100 * error:.1f}"
        for mean, error in zip(logs.mean(axis=0), errors, strict=True)
    ]


def beside(lines, header, cells):
    """A table with one more column."""
    return [
        f"{line} {more} |" for line, more in zip(lines, [header, "---", *cells], strict=True)
    ]


def progress(text):
    print(text, file=sys.stderr, flush=True)


class Study(NamedTuple):
    """Samples of one part, for each degree."""

    levels: list  # what each sample was
    ratios: dict  # degree: (n, n_rules)
    freedom: dict  # degree: (n, n_rules), degrees of freedom chosen

    def where(self, degree, **wanted):
        inside = [all(of[name] == wanted[name] for name in wanted) for of in self.levels]
        return self.ratios[degree][inside]


def study(curves, n_samples, seed, kernel, d=1, **levels):
    given = {"curve": list(curves), "places": list(PLACES), "ratio": SIGNAL_TO_NOISE}
    given |= {"n": SIZES} | levels
    seen_levels, found, freedom = [], {0: [], 1: []}, {0: [], 1: []}
    for i, (rng, level) in enumerate(designs(n_samples, seed, **given)):
        sample = draw(rng, curves, d=d, **level)
        for degree in DEGREES:
            seen = candidates(sample, kernel, degree)
            chosen = choices(seen)
            found[degree].append(ratios(seen, chosen))
            freedom[degree].append(seen.trace[chosen])
        seen_levels.append(level)
        if (i + 1) % 200 == 0:
            progress(f"{i + 1} samples of {d} features")
    stacked = [{degree: np.array(of[degree]) for degree in of} for of in (found, freedom)]
    return Study(seen_levels, *stacked)


PAIRED = "against charge t^2, paired, %"
LEGEND = (
    "Squared error over that of the best bandwidth: mean ± standard error / 90th percentile"
)


def one_feature(n_samples, seed, kernel):
    clean = study(ONE_FEATURE, n_samples, seed, kernel, noise=NOISES)
    dependent = study(ONE_FEATURE, n_samples // 4, seed + 1, kernel, noise=(CORRELATION,))
    lines = []
    for degree, name in DEGREES.items():
        lines += ["", f"## One feature, {name}"]
        lines += ["", f"{LEGEND} / share above 2. Independent noise (samples).", ""]
        groups = {"all": clean.ratios[degree]}
        groups |= {f"n = {n}": clean.where(degree, n=n) for n in SIZES}
        lines += beside(rule_table(groups), PAIRED, against(clean.ratios[degree]))
        lines += ["", f"{LEGEND}, by places and noise.", ""]
        groups = {places: clean.where(degree, places=places) for places in PLACES}
        lines += rule_table(groups, shown=SHOWN)
        groups = {noise: clean.where(degree, noise=noise) for noise in NOISES}
        groups |= {f"AR(1), correlation {CORRELATION}": dependent.ratios[degree]}
        lines += ["", *rule_table(groups, shown=SHOWN)]
        lines += ["", f"{LEGEND}, by signal to noise.", ""]
        groups = {f"{ratio:g}": clean.where(degree, ratio=ratio) for ratio in SIGNAL_TO_NOISE}
        lines += rule_table(groups, shown=SHOWN)
        lines += ["", "Mean by curve.", ""]
        lines += curve_table(clean, degree)
    return lines + warning_table(clean, dependent)


def curve_table(found, degree):
    names = list(ONE_FEATURE)
    rows = [
        [rule, *(f"{found.where(degree, curve=of)[:, j].mean():.2f}" for of in names)]
        for j, rule in enumerate(RULES)
        if rule in SHOWN
    ]
    return table(["rule", *names], rows)


def warning_table(clean, dependent):
    """Share of samples with a multiple of the charged rule's degrees of freedom by loo."""
    loo, charged = (list(RULES).index(name) for name in ("loo", "charge t^2"))
    rows = []
    for noise, found in {"independent": clean, "AR(1)": dependent}.items():
        for degree, name in DEGREES.items():
            freedom, errors = found.freedom[degree], found.ratios[degree]
            for factor in (1.5, 2, 3):
                said = freedom[:, loo] > factor * freedom[:, charged]
                bad = errors[:, charged] > 2
                rows.append(
                    [noise, name, f"{factor:g}", f"{100 * said.mean():.1f} %"]
                    + [mean_of(errors[said, j]) for j in (loo, charged)]
                    + [mean_of(errors[~said, j]) for j in (loo, charged)]
                    + [f"{100 * said[bad].mean():.0f} % of {bad.sum()}" if bad.any() else "–"]
                )
    header = ["noise", "degree", "factor", "warned", "loo where warned", "charged where warned"]
    header += ["loo elsewhere", "charged elsewhere", "warned of charged above 2"]
    return [
        "",
        "## A warning of a flat minimum",
        "",
        "Warned where loo's degrees of freedom are more than a factor times those of the "
        "charged rule; mean ratio of errors, with samples.",
        "",
        *table(header, rows),
    ]


def mean_of(values):
    return f"{values.mean():.2f} ({len(values)})" if len(values) else "–"


def two_features(n_samples, seed, kernel):
    found = study(TWO_FEATURES, n_samples, seed + 2, kernel, d=2, noise=NOISES)
    lines = []
    for degree, name in DEGREES.items():
        groups = {"all": found.ratios[degree]}
        groups |= {f"n = {n}": found.where(degree, n=n) for n in SIZES}
        groups |= {f"s/n {r:g}": found.where(degree, ratio=r) for r in SIGNAL_TO_NOISE}
        lines += ["", f"## Two features, {name}", "", f"{LEGEND} / share above 2.", ""]
        lines += beside(rule_table(groups), PAIRED, against(found.ratios[degree]))
    return lines


def edges(n_samples, seed, kernel):
    """Hardly any noise, and nothing else."""
    found = {
        ratio: study(
            ONE_FEATURE, n_samples, seed + 3, kernel, noise=("normal",), ratio=(ratio,)
        )
        for ratio in (40, 200, 0)
    }
    none = found.pop(0)
    groups = {
        f"signal to noise {ratio}, {name}": of.ratios[degree]
        for ratio, of in found.items()
        for degree, name in DEGREES.items()
    }
    lines = ["", "## Hardly any noise", "", f"{LEGEND} / share above 2.", ""]
    lines += rule_table(groups)
    lines += ["", "## No signal", "", f"Degrees of freedom, {n_samples} samples.", ""]
    header, rows = ["rule"], [[rule] for rule in RULES]
    for degree, name in DEGREES.items():
        header += [f"{name}: mean", "90th percentile", "largest"]
        for row, of in zip(rows, none.freedom[degree].T, strict=True):
            row += [f"{of.mean():.2f}", f"{np.quantile(of, 0.9):.1f}", f"{of.max():.0f}"]
    return lines + table(header, rows)


# Real curves.

CURVES = {
    "cps71": ("age", "logwage"),
    "faithful": ("eruptions", "waiting"),
    "gagurine": ("Age", "GAG"),
    "lidar": ("range", "logratio"),
    "mcycle": ("times", "accel"),
}


def real_curves():
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SKLEARN_ATTENTION_DATA", beside)) / "curves"
    for name, (x, y) in CURVES.items():
        file = folder / f"{name}.csv.gz"
        if not file.exists():
            progress(f"{file} is not there: left out")
            continue
        rows = np.genfromtxt(file, delimiter=",", names=True)
        yield name, rows[x][:, None], rows[y]


def real(n_splits, seed, kernel):
    lines = []
    sets = list(real_curves())
    for degree, title in DEGREES.items() if sets else ():
        columns = {}
        for name, X, y in sets:
            whole = candidates(Sample(X, y, X[:1], y[:1]), kernel, degree)
            excess, freedom = [], []
            for split in range(n_splits):
                order = np.random.default_rng([seed, split]).permutation(len(X))
                train, test = np.array_split(order, 2)
                seen = candidates(Sample(X[train], y[train], X[test], y[test]), kernel, degree)
                chosen = choices(seen)
                excess.append(100 * (ratios(seen, chosen) - 1))
                freedom.append(seen.trace[chosen])
            everything = whole.trace[choices(whole)]
            columns[name] = np.array(excess), np.array(freedom), everything
            progress(f"{name}, degree {degree}")
        rows = [
            [rule]
            + [
                f"{e[:, j].mean():.1f} ± {e[:, j].std() / math.sqrt(len(e)):.1f} / "
                f"{np.quantile(e[:, j], 0.9):.1f} / {np.median(f[:, j]):.0f} / {w[j]:.0f}"
                for e, f, w in columns.values()
            ]
            + [f"{np.mean([e[:, j].mean() for e, _, _ in columns.values()]):.2f}"]
            for j, rule in enumerate(RULES)
        ]
        header = ["rule", *(f"{name} ({len(X)} rows)" for name, X, _ in sets), "mean of means"]
        lines += ["", f"## Real curves, {title}, {n_splits} random halves", ""]
        lines += [
            "Squared error in the other half above that of the best bandwidth, in %: mean ± "
            "standard error over splits / 90th percentile; degrees of freedom: median / from "
            "all rows.",
            "",
            *table(header, rows),
        ]
    return lines


# Copies.

SHORT = ("loo", "charge t^2", "gcv", "aicc", "loo x aicc", "wider", "one standard error")


def merged(sample):
    """Equal rows once, with their number."""
    rows = np.column_stack([sample.X, sample.y])
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    once = sample._replace(X=sample.X[first], y=sample.y[first])
    return once, counts.astype(float)


def repeated(sample, rng, share):
    again = rng.choice(len(sample.X), round(share * len(sample.X)), replace=False)
    rows = np.r_[np.arange(len(sample.X)), again]
    return sample._replace(X=sample.X[rows], y=sample.y[rows])


def coarse(sample, n_levels):
    """Values rounded to about so many levels, so that rows are equal by chance."""
    step = np.ptp(sample.y) / n_levels
    return sample._replace(y=np.round(sample.y / step) * step)


def copies(n_samples, seed, kernel):
    rules = {name: RULES[name] for name in SHORT}
    kinds = {
        "a tenth twice": lambda s, rng: repeated(s, rng, 0.1),
        "half twice": lambda s, rng: repeated(s, rng, 0.5),
        "all twice": lambda s, rng: repeated(s, rng, 1.0),
        "no copies, 8 levels of y": lambda s, rng: coarse(s, 8),
    }
    names = [f"{name}, {how}" for how in ("one by one", "together") for name in rules]
    found = {(degree, kind): [] for degree in DEGREES for kind in kinds}
    distinct = {kind: [] for kind in kinds}
    levels = {"curve": list(ONE_FEATURE), "places": list(PLACES), "ratio": SIGNAL_TO_NOISE}
    levels |= {"n": SIZES, "noise": NOISES}
    for rng, level in designs(n_samples, seed + 4, **levels):
        clean = draw(rng, ONE_FEATURE, **level)
        for kind, change in kinds.items():
            sample = change(clean, rng)
            once, counts = merged(sample)
            distinct[kind].append(len(np.unique(once.y)) / len(once.y))
            for degree in DEGREES:
                apart = candidates(sample, kernel, degree)
                together = candidates(once, kernel, degree, counts)
                best = min(apart.error.min(), together.error.min())
                errors = [seen.error[choices(seen, rules)] for seen in (apart, together)]
                found[degree, kind].append(np.concatenate(errors) / best)
    lines = []
    for degree, title in DEGREES.items():
        groups = {kind: np.array(found[degree, kind]) for kind in kinds}
        lines += ["", f"## Copies, {title}", "", f"{LEGEND} / share above 2.", ""]
        lines += rule_table(groups, names)
    rows = [
        [kind, f"{np.min(of):.2f}", f"{np.median(of):.2f}", f"{np.max(of):.2f}"]
        for kind, of in distinct.items()
    ]
    lines += ["", "Different values of y, per different row.", ""]
    return lines + table(["data", "least", "median", "most"], rows)


# Blocks.

BLOCKS = (1, 2, 3, 4, 6, 8, 12)
# The kernel u^2 exp(-u^2) without its own place: the best Gaussian is as much wider.
HOLLOW = 1.16231


def block_errors(y, widths, lengths, hollow=False):
    """Left-out errors at regular places, of a Gaussian of so many rows' width.

    Rows do not predict each other that are at most a block apart.

    Returns
    -------
    errors : dict of degree to ndarray of shape (n_lengths, n_widths)
    """
    n = len(y)
    lag = np.fft.fftfreq(2 * n, 1 / (2 * n))
    width, length = widths[:, None], np.array(lengths)[:, None, None]
    # The nearest row left weighs 1, so that none vanish.
    power = 1 if hollow else 2
    near = np.where(np.abs(lag) > length, ((length + 1) ** 2 - lag**2), -np.inf)
    weights = np.exp(near / (power * width**2)) * (lag**2 if hollow else 1)
    moments = [np.fft.rfft(weights * (-lag) ** k) for k in range(3)]
    ones, values = (np.fft.rfft(x, 2 * n) for x in (np.ones(n), y))

    def total(moment, x):
        return np.fft.irfft(moment * x, 2 * n)[..., :n]

    sums = total(moments[0], ones)
    mean, square = (total(moment, ones) / sums for moment in moments[1:])
    average, product = (total(moment, values) / sums for moment in moments[:2])
    least = 1e-4 * np.minimum(width, np.arange(n).std()) ** 2  # as the package has it
    slope = (product - mean * average) / np.maximum(square - mean**2, least)
    fits = {0: average, 1: average - mean * slope}
    return {degree: np.mean((fit - y) ** 2, axis=-1) for degree, fit in fits.items()}


def correlated_lags(residuals):
    """Number of lags, from the first on, whose correlation exceeds chance."""
    n = len(residuals)
    x = residuals - residuals.mean()
    beyond = [x[k:] @ x[: n - k] <= 2 / math.sqrt(n) * (x @ x) for k in range(1, n // 8)]
    return int(np.argmax([*beyond, True]))


def blocks(n_samples, seed, kernel):
    if not isinstance(kernel, Gaussian):
        progress("blocks: for the Gaussian alone")
        return []
    rules = {name: RULES[name] for name in SHORT}
    kinds = [f"block {length}" for length in (*BLOCKS, "n^(1/3)", "measured")]
    names = [*rules, *kinds, "hollow kernel", *(f"{kind}, charged" for kind in kinds)]
    groups, measured = {}, []
    for correlation in (0.0, 0.5, 0.8):
        found, lags = {0: [], 1: []}, {0: [], 1: []}
        levels = {"curve": list(ONE_FEATURE), "ratio": SIGNAL_TO_NOISE, "n": SIZES}
        levels |= {"noise": (correlation,), "places": ("regular",)}
        for rng, level in designs(n_samples, seed + 5, **levels):
            sample = draw(rng, ONE_FEATURE, **level)
            for degree in DEGREES:
                seen = candidates(sample, kernel, degree)
                by_blocks, length = choices_by_blocks(sample, seen, kernel, degree)
                found[degree].append(ratios(seen, np.r_[choices(seen, rules), by_blocks]))
                lags[degree].append(length)
        for degree, title in DEGREES.items():
            groups[f"{title}, {correlation:g}"] = np.array(found[degree])
            shares = np.quantile(lags[degree], [0.1, 0.5, 0.9])
            measured.append([title, f"{correlation:g}", *(f"{lag:.0f}" for lag in shares)])
            measured[-1].append(f"{100 * np.mean(np.array(lags[degree]) > 0):.0f} %")
        progress(f"blocks, correlation {correlation:g}")
    lines = ["", "## Blocks, for noise autocorrelated in the order of rows", ""]
    lines += [f"{LEGEND} / share above 2, by degree and correlation of neighbours.", ""]
    lines += rule_table(groups, names)
    lines += ["", "Lengths measured.", ""]
    header = ["degree", "correlation", "10th percentile", "median", "90th percentile"]
    return lines + table([*header, "above 0"], measured)


def choices_by_blocks(sample, seen, kernel, degree):
    """Positions chosen by blocks of several lengths, and the length that was measured."""
    X, y = sample.X, sample.y
    n = len(y)
    widths = seen.bandwidths * n
    pilot = round(n ** (1 / 3))
    errors = block_errors(y, widths, [*BLOCKS, pilot])[degree]
    cost = np.exp(seen.share**2)
    h = seen.bandwidths[[(errors[-1] * cost).argmin()]]
    length = correlated_lags(y - curves_at(X, X, y, kernel, degree, 1.0, h)[0])
    errors = np.append(errors, block_errors(y, widths, [length])[degree], axis=0)
    hollow = block_errors(y, widths, [0], hollow=True)[degree][0].argmin()
    steps = round(math.log(HOLLOW) / math.log(widths[1] / widths[0]))
    hollow = min(hollow + steps, len(widths) - 1)
    chosen = [*errors.argmin(axis=1), hollow, *(errors * cost).argmin(axis=1)]
    return chosen, length


PARTS = {
    "one": one_feature,
    "two": two_features,
    "edges": edges,
    "real": real,
    "copies": copies,
    "blocks": blocks,
}


def report(parts, seed, kernel, fewer=1):
    lines = ["# Rules for the bandwidth"]
    for part in parts:
        lines += PARTS[part](max(SAMPLES[part] // fewer, 10), seed, as_kernel(kernel))
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--quick", action="store_true", help=f"1 of {QUICK} samples")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="other samples")
    parser.add_argument("--kernel", default="gaussian", metavar="NAME")
    parser.add_argument("--save", metavar="FILE", help="also write the tables to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    fewer = QUICK if arguments.quick else 1
    text = report(arguments.parts or PARTS, arguments.seed, arguments.kernel, fewer)
    print(text)
    if arguments.save:
        with open(arguments.save, "w") as file:
            file.write(text + "\n")
