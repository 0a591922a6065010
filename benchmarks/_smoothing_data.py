"""Data sets of `smoothing_accuracy.py`: scenarios of one feature, and curves on a grid.

Seeds are fixed and numbers are NumPy's, so that stored errors of peers stay comparable.
Defaults of the package are chosen on seeds from 10 on, and reported on 0 to 9.
"""

import math
import zlib
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from sklearn_attention.datasets import make_smoothing_curve

NOISE = 0.3
GAP = 0.35, 0.65
GRID = 101  # places over the range of the rows; so many per side for each place beyond
BEYOND = 21


class DataSet(NamedTuple):
    """Rows, and the truth at other places, each in "range", "gap", "near" or "far"."""

    x: np.ndarray
    y: np.ndarray
    places: np.ndarray
    truth: np.ndarray
    region: np.ndarray


def sine(x):
    return np.sin(2 * math.pi * x)


def bump(x):
    return x + 2 * np.exp(-((16 * (x - 0.5)) ** 2))


def jump(x):
    return sine(x) + 1.5 * (x > 0.5)


def wiggles(x):
    return np.sin(10 * math.pi * x)


def kink(x):
    return 4 * np.abs(x - 0.4)


def chirp(x):
    return np.sin(2 * math.pi * (1 + 4 * x) * x)


def two_peaks(x):
    return np.exp(-((12 * (x - 0.3)) ** 2)) + 2 * np.exp(-((40 * (x - 0.7)) ** 2))


def season(month):
    return np.cos(2 * math.pi * (month - 7) / 12)


def saturation(x):
    return 2 - 2 * np.exp(-8 * x)


def uniform(n, rng):
    return rng.uniform(size=n)


def of_months(n, rng):
    return rng.integers(1, 13, n).astype(float)


def beta(n, rng):
    return rng.beta(2, 5, n)


def even(n, rng):
    return (np.arange(n) + 0.5) / n


def with_outlier(n, rng):
    return np.append(rng.uniform(size=n - 1), 4.0)


def with_gap(n, rng):
    x = rng.uniform(size=n) * (1 - GAP[1] + GAP[0])
    return np.where(x > GAP[0], x + GAP[1] - GAP[0], x)


def skewed(n, rng):
    return rng.exponential(size=n)


def rounded(n, rng):
    return np.round(rng.uniform(size=n) * 20) / 20


def doses(n, rng, n_doses):
    return rng.choice(np.linspace(0, 1, n_doses), n)


def clustered(n, rng):
    return rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], n) + 0.03 * rng.standard_normal(n)


def normal_noise(x, rng):
    return NOISE * rng.standard_normal(len(x))


def small_noise(x, rng):
    return 0.05 * rng.standard_normal(len(x))


def growing_noise(x, rng):
    return (0.05 + 0.6 * x) * rng.standard_normal(len(x))


def heavy_noise(x, rng):
    return 0.2 * rng.standard_t(2, len(x))


def noise_with_outliers(x, rng):
    noise = normal_noise(x, rng)
    wrong = rng.choice(len(x), max(1, round(0.03 * len(x))), replace=False)
    noise[wrong] += 5 * rng.choice([-1, 1], len(wrong))
    return noise


def autoregressive_noise(x, rng):
    """AR(0.6) along the rows, of the same variance as the others'."""
    steps, noise = rng.standard_normal(len(x)), np.empty(len(x))
    noise[0] = steps[0]
    for i in range(1, len(x)):
        noise[i] = 0.6 * noise[i - 1] + 0.8 * steps[i]
    return NOISE * noise


# Truth, places and noise.
SCENARIOS = {
    "sine": (sine, uniform, normal_noise),
    "exponential": (lambda x: np.exp(3 * x) / 5, uniform, normal_noise),
    "bump": (bump, uniform, normal_noise),
    "jump": (jump, uniform, normal_noise),
    "heteroscedastic": (sine, uniform, growing_noise),
    "t2 noise": (sine, uniform, heavy_noise),
    "outliers in y": (sine, uniform, noise_with_outliers),
    "outlier in x": (sine, with_outlier, normal_noise),
    "AR noise": (sine, even, autoregressive_noise),
    "gap": (sine, with_gap, normal_noise),
    "skewed places": (lambda x: np.sin(1.5 * x), skewed, normal_noise),
    "rounded places": (sine, rounded, normal_noise),
    "clustered places": (sine, clustered, normal_noise),
    "outside": (lambda x: np.tanh(3 * x - 1.5), uniform, normal_noise),
    "wiggles": (wiggles, uniform, normal_noise),
    "kink": (kink, uniform, normal_noise),
    "chirp": (chirp, uniform, normal_noise),
    "two peaks": (two_peaks, uniform, normal_noise),
    "months": (season, of_months, normal_noise),
    "small noise": (sine, uniform, small_noise),
    "nothing": (np.zeros_like, uniform, normal_noise),
    "beta places": (saturation, beta, normal_noise),
}  # fmt: skip

# The same for curves that are observed at a few places only.
N_DOSES = 5, 7, 8
DOSE_CURVES = {
    "sine": sine,
    "exponential": lambda x: np.exp(3 * x) / 5,
    "line": lambda x: 1.5 * x,
    "kink": kink,
    "saturation": saturation,
    "tanh": lambda x: np.tanh(3 * x - 1.5),
    "nothing": np.zeros_like,
}
AT_DOSES = {
    f"{name} at {n_doses} doses": (truth, partial(doses, n_doses=n_doses), normal_noise)
    for (name, truth), n_doses in product(DOSE_CURVES.items(), N_DOSES)
}


def scenario(name, n, seed):
    """The data set of a scenario, with places over the range of its rows and beyond."""
    truth, draw, noise = (SCENARIOS | AT_DOSES)[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), n, seed])
    x = np.sort(draw(n, rng))
    y = truth(x) + noise(x, rng)
    low, high = (x[0], x[-2]) if name == "outlier in x" else (x[0], x[-1])
    places = np.linspace(low, high, GRID)
    region = np.full(GRID, "range")
    if name == "gap":
        region[(GAP[0] < places) & (places < GAP[1])] = "gap"
    if name == "outside":
        for kind, first, last in (("near", 0, 0.1), ("far", 0.1, 1)):
            steps = (high - low) * np.linspace(first, last, BEYOND)[1:]
            places = np.concatenate([places, low - steps, high + steps])
            region = np.append(region, np.full(2 * len(steps), kind))
    return DataSet(x, y, places, truth(places), region)


# Curves on a grid, with noise of variance 1: four of `make_smoothing_curve`, and smooth ones.
SMOOTH = {
    "line": lambda t: t,
    "exponential": lambda t: np.exp(3 * t),
    "sine": lambda t: np.sin(2 * math.pi * t + 1),
    "bump": lambda t: np.exp(-(((t - 0.5) / 0.12) ** 2) / 2),
}
CURVES = ("blocks", "bumps", "doppler", "heavisine", *SMOOTH)


def curve(name, n, signal_to_noise, seed):
    """Places (n, 1), targets and the truth there."""
    X, y, truth = make_smoothing_curve(
        "blocks" if name in SMOOTH else name,
        n,
        signal_to_noise=signal_to_noise,
        random_state=seed,
        return_truth=True,
    )
    if name not in SMOOTH:
        return X, y, truth
    middles = (np.arange(10_000) + 0.5) / 10_000
    size = signal_to_noise / SMOOTH[name](middles).std()
    smooth = SMOOTH[name](X[:, 0]) * size
    return X, smooth + (y - truth), smooth
