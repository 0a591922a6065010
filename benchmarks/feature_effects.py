"""What smoothers say of the effect of a feature: tests whether it matters, and slopes.

    python benchmarks/feature_effects.py [noise] [effect] [slopes]

* noise: 400 sets of 60 rows whose targets are noise. The share in which `feature_significance`
  rejects at 5 %, where the bandwidth is chosen again for each draw, and where draws have the
  bandwidth of the data; processor seconds relative to a fit. Expected: 0.03 to 0.075 with the
  bandwidth chosen again or given, and twice as much and more without.
* effect: 100 sets in which a wave explains a tenth of the variance. The share that is found at
  5 %. Expected: about six of ten.
* slopes: errors of the derivative of the prediction relative to those of the slope of the local
  polynomial, along six curves with 50 to 800 rows and two sizes of noise. Expected: the default
  has the smaller ones, or less than 2 % more.

Fifty minutes on one core.
"""

import argparse
import time
import warnings
from itertools import product

import numpy as np
from _results import markdown, stamp

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor
from sklearn_attention.smoothing._significance import feature_significance

MODELS = {
    "averages": NadarayaWatsonRegressor(),
    "lines": LocalPolynomialRegressor(degree=1),
    'degree="auto"': LocalPolynomialRegressor(),
    "averages, bandwidth given": NadarayaWatsonRegressor(bandwidth=0.3),
}
N_RESAMPLES = 99
CURVES = {
    "wave": (lambda x: 2 * np.sin(2 * x), lambda x: 4 * np.cos(2 * x)),
    "exponential": (np.exp, np.exp),
    "bump": (lambda x: 2 * np.exp(-8 * x**2), lambda x: -32 * x * np.exp(-8 * x**2)),
    "corner": (lambda x: 2 * np.abs(x), lambda x: 2 * np.sign(x)),
    "line": (lambda x: x, np.ones_like),
    "growing wave": (
        lambda x: np.sin(6 * x) * (x + 2) / 2,
        lambda x: 3 * np.cos(6 * x) * (x + 2) + np.sin(6 * x) / 2,
    ),
}


def draw(seed, signal=0.0):
    """Draw 60 rows of one feature and their targets."""
    rng = np.random.default_rng(seed)
    X, noise = rng.uniform(-1, 1, (60, 1)), rng.normal(size=60)
    return X, signal * np.sin(3 * X[:, 0]) + noise


def p_values(model, seeds, signal=0.0):
    """P-values of sets with the bandwidth chosen again and not, and seconds in fits."""
    found, seconds = [], np.zeros(2)
    for seed in seeds:
        X, y = draw(seed, signal)
        start = time.process_time()
        model.fit(X, y)
        fitted = time.process_time()
        again = model.feature_significance(N_RESAMPLES).p_values[0]
        seconds += fitted - start, time.process_time() - fitted
        random_state = np.random.RandomState(0)
        same = feature_significance(model.smoother_, N_RESAMPLES, random_state, None, None)
        found.append([again, same.p_values[0]])
    return np.array(found), seconds[1] / seconds[0]


def noise():
    """Lines about how often noise is rejected."""
    rows = []
    for name, model in MODELS.items():
        found, fits = p_values(model, range(400))
        again, same = (found <= 0.05).mean(axis=0)
        rows.append([name, f"{again:.3f}", f"{same:.3f}", f"{fits:.0f}"])
    header = [
        "model",
        "bandwidth chosen again for each draw",
        "bandwidth of the data",
        "time / time of a fit",
    ]
    return [
        "## False alarms: 400 sets of 60 rows of noise",
        "",
        "Entries are the share of tests that reject at the 5 % level; it should be 0.05, and "
        "its standard error is 0.011. The first column of shares chooses the bandwidth again "
        "for each draw, the second keeps the bandwidth of the data. The last column is the "
        "time of the test divided by that of a fit.",
        "",
        *markdown(header, rows),
    ]


def effect():
    """Lines about how often a weak effect is found."""
    rows = []
    for name in ("averages", "lines"):
        found, _ = p_values(MODELS[name], range(1000, 1100), signal=0.47)
        rows.append([name, *(f"{share:.2f}" for share in (found <= 0.05).mean(axis=0))])
    return [
        "## Power: 100 sets of 60 rows with a wave that has a tenth of the variance",
        "",
        "Entries are the share of tests that detect the wave at the 5 % level.",
        "",
        *markdown(
            ["model", "bandwidth chosen again for each draw", "bandwidth of the data"], rows
        ),
    ]


def slopes_of(model, places):
    """Derivatives of predictions, slopes of polynomials, and what `predict_gradient` says."""
    smoother, step = model.smoother_, 1e-4 * model.bandwidth_[0]
    rise = smoother.predict(places + step) - smoother.predict(places - step)
    parts = getattr(smoother, "polynomials", [(1.0, smoother)])
    local = sum(
        weight * (part.local_fit(places, part.values)[1] if part.degree else 0)
        for weight, part in parts
        if weight
    )
    return rise / (2 * step), local[:, 0], model.predict_gradient(places)[:, 0]


def slopes():
    """Lines about errors of derivatives relative to those of local slopes."""
    places, errors = np.linspace(-1.9, 1.9, 100)[:, None], {}
    for (curve, slope), n, noise in product(CURVES.values(), (50, 200, 800), (0.1, 0.5)):
        true_slope = slope(places[:, 0])
        for degree in (1, 2, 3, "auto"):
            own = []
            for seed in range(8):
                rng = np.random.default_rng(seed)
                X = rng.uniform(-2, 2, (n, 1))
                y = curve(X[:, 0]) + noise * rng.normal(size=n)
                model = LocalPolynomialRegressor(degree=degree).fit(X, y)
                found = slopes_of(model, places)
                own.append([np.sqrt(np.mean((s - true_slope) ** 2)) for s in found])
            derivative, local, default = np.mean(own, axis=0)
            errors.setdefault(degree, []).append([derivative / local, default / local])
    rows = []
    for degree, ratios in errors.items():
        means = np.exp(np.log(ratios).mean(axis=0))
        rows.append([str(degree), *(f"{mean:.2f}" for mean in means)])
    return [
        "## Slopes along six curves",
        "",
        "Entries are errors of a slope divided by the error of the fitted polynomials' own "
        "slope: geometric means over six curves, 50, 200 and 800 rows, noise of standard "
        "deviation 0.1 and 0.5, and 8 seeds of each.",
        "",
        *markdown(["degree", "derivative of the prediction", "predict_gradient"], rows),
    ]


PARTS = {"noise": noise, "effect": effect, "slopes": slopes}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    lines = ["# Effects of a feature", "", stamp("numpy", "scipy")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of searches, that noise does not depend on X
        for name in arguments.parts or PARTS:
            lines += ["", *PARTS[name]()]
    print("\n".join(lines))
