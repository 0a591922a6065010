"""Gain and cost of robust=True, and a comparison with the robust loess of R.

    python benchmarks/robust_smoothing.py [--rows N,...] [--seeds N] [--features N]

Five curves of one feature, with noise of a third of their deviation: normal, normal of a
deviation that grows or jumps from left to right, heavy-tailed (t with two degrees of freedom,
Cauchy), and normal with 1, 3 or 10 % outliers of 5 to 1000 standard deviations, to both sides,
to one, or next to each other. Errors are root mean squares against the curve at the rows, over
seeds; ratios are geometric means over curves. With several features the curve is of their mean.

Peers: `loess(family = "symmetric")` of R, lines and parabolas at the default span of .75, and
lines at the span of eight that has the least mean absolute error by ten-fold cross-validation
of the robust fit. Without Rscript, the same with `lowess` of statsmodels for one feature.

Expected: errors at most 1.05 of the lines with a span chosen, and at most 1.05 (normal noise)
and 1.02 (noise that differs from place to place) of those of robust=False. Some ten minutes for
30 and 100 rows and three seeds on an idle core.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sklearn_attention import LocalPolynomialRegressor, NadarayaWatsonRegressor

CURVES = {
    "sine": lambda x: np.sin(2 * np.pi * x),
    "three sines": lambda x: np.sin(6 * np.pi * x),
    "line": lambda x: 2 * x,
    "peak": lambda x: x + 2 * np.exp(-(((x - 0.5) / 0.05) ** 2)),
    "steep": lambda x: np.exp(3 * x) / 5,
}
# Share of outliers, their size in standard deviations, and where they are.
OUTLIERS = {
    "1 % of 10": (0.01, 10, "both"),
    "3 % of 5": (0.03, 5, "both"),
    "3 % of 10, above": (0.03, 10, "above"),
    "3 % of 1000": (0.03, 1000, "both"),
    "10 % of 5, above": (0.1, 5, "above"),
    "10 % of 10, above": (0.1, 10, "above"),
    "10 % of 30": (0.1, 30, "both"),
    "10 % of 1000, above": (0.1, 1000, "above"),
    "3 % of 10, together": (0.03, 10, "together"),
    "5 % of 1000, together": (0.05, 1000, "together"),
}
NOISE = "normal", "growing", "jumping", "t2", "Cauchy", *OUTLIERS
R = r"""
data <- read.csv(commandArgs(trailingOnly = TRUE)[1])
names <- setdiff(names(data), c("set", "y"))
formula <- as.formula(paste("y ~", paste(names, collapse = " + ")))
fit <- function(rows, span, degree, ...) suppressWarnings(loess(
  formula, rows, span = span, degree = degree, family = "symmetric", ...))
direct <- loess.control(surface = "direct")
spans <- c(.1, .15, .2, .3, .4, .5, .75, 1)
predictions <- lapply(split(data, data$set), function(rows) {
  set.seed(1)
  n <- nrow(rows)
  fold <- sample(rep(1:10, length.out = n))
  tried <- spans[spans * n >= 3 * (length(names) + 1)]
  errors <- sapply(tried, function(span) mean(unlist(lapply(1:10, function(k) {
    kept <- rows[fold != k, ]
    model <- tryCatch(fit(kept, span, 1, control = direct), error = function(e) NULL)
    if (is.null(model)) NA else abs(rows$y[fold == k] - predict(model, rows[fold == k, ]))
  })), na.rm = TRUE))
  data.frame(set = rows$set, loess1 = fitted(fit(rows, .75, 1)),
    loess2 = fitted(fit(rows, .75, 2)), chosen = fitted(fit(rows, tried[which.min(errors)], 1)))
})
write.csv(do.call(rbind, predictions), commandArgs(trailingOnly = TRUE)[2], row.names = FALSE)
"""


def sample(curve, noise, n, n_features, seed):
    """Rows, targets and the curve at the rows."""
    rng = np.random.default_rng([seed, n, NOISE.index(noise), list(CURVES).index(curve)])
    X = rng.uniform(size=(n, n_features))
    X = X[np.argsort(X[:, 0])]
    f = CURVES[curve]
    x = X.mean(axis=1)
    deviation, normal = np.std(f(np.linspace(0, 1, 401))) / 3, rng.normal(size=n)
    if noise == "t2":
        normal = rng.standard_t(2, size=n)
    elif noise == "Cauchy":
        normal = rng.standard_cauchy(size=n)
    elif noise == "growing":
        normal *= (0.1 + 1.9 * X[:, 0] ** 2) / 0.75
    elif noise == "jumping":
        normal *= np.where(X[:, 0] < 0.5, 0.2, 1.4)
    elif noise in OUTLIERS:
        share, size, where = OUTLIERS[noise]
        count = max(1, round(share * n))
        rows, sign = rng.choice(n, count, replace=False), np.ones(count)
        if where == "together":
            rows = rng.integers(n - count + 1) + np.arange(count)
        elif where == "both":
            sign = rng.choice([-1, 1], count)
        normal[rows] += size * sign * rng.uniform(0.8, 1.2, count)
    return X, f(x) + deviation * normal, f(x)


MODELS = {
    "usual lines": LocalPolynomialRegressor(degree=1),
    "averages": NadarayaWatsonRegressor(robust=True),
    "lines": LocalPolynomialRegressor(degree=1, robust=True),
}


def ours(samples):
    """Predictions of each sample by each model, and seconds of the processor."""
    found, seconds = [], dict.fromkeys(MODELS, 0.0)
    for X, y, _ in samples:
        predicted = {}
        for name, model in MODELS.items():
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted[name] = model.fit(X, y).predict(X)
            seconds[name] += time.process_time() - began
        found.append(predicted)
    return found, {name: total / len(samples) for name, total in seconds.items()}


def theirs(samples):
    """The same by loess."""
    if shutil.which("Rscript") is None:
        return lowess(samples)
    tables = [
        pd.DataFrame(X).add_prefix("x").assign(y=y, set=i)
        for i, (X, y, _) in enumerate(samples)
    ]
    with tempfile.TemporaryDirectory() as folder:
        script, given, found = (Path(folder) / name for name in ("r.R", "in.csv", "out.csv"))
        script.write_text(R)
        pd.concat(tables).to_csv(given, index=False)
        command = ["Rscript", str(script), str(given), str(found)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        table = pd.read_csv(found)
    return [dict(part.drop(columns="set")) for _, part in table.groupby("set")]


def lowess(samples):
    """Lines by statsmodels; nothing else is there."""
    from statsmodels.nonparametric.smoothers_lowess import lowess

    return [{"loess1": lowess(y, X[:, 0], 0.75, 4, return_sorted=False)} for X, y, _ in samples]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="30,100")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--features", type=int, default=1)
    options = parser.parse_args()
    for n in map(int, options.rows.split(",")):
        seeds = range(100, 100 + options.seeds)
        cells = [(curve, noise, s) for curve in CURVES for noise in NOISE for s in seeds]
        samples = [sample(c, noise, n, options.features, s) for c, noise, s in cells]
        found, seconds = ours(samples)
        lines = []
        for cell, (_, _, truth), own, peers in zip(
            cells, samples, found, theirs(samples), strict=True
        ):
            errors = {k: np.mean((p - truth) ** 2) for k, p in (own | peers).items()}
            lines.append(dict(zip(("curve", "noise", "seed"), cell, strict=True)) | errors)
        names = [k for k in lines[0] if k not in ("curve", "noise", "seed")]
        by_curve = ["noise", "curve"]
        errors = np.sqrt(pd.DataFrame(lines).groupby(by_curve, sort=False)[names].mean())
        peers = [name for name in names if name not in MODELS]
        ratios = {f"lines / {name}": errors["lines"] / errors[name] for name in peers}
        ratios["averages / usual lines"] = errors["averages"] / errors["usual lines"]
        ratios["lines / usual lines"] = errors["lines"] / errors["usual lines"]
        logs = np.log(pd.DataFrame(ratios))
        table = np.exp(logs.groupby("noise", sort=False).mean())
        table.loc["all"] = np.exp(logs.mean())
        head = (
            f"{n} rows, {options.features} feature(s), {len(seeds)} seeds; seconds of a fit: "
        )
        head += ", ".join(f"{name} {time:.2f}" for name, time in seconds.items())
        print(f"\n## {head}\n\n{_markdown(table)}", flush=True)


def _markdown(table):
    rows = [["noise", *table], ["---"] * (1 + table.shape[1])]
    rows += [
        [name, *(f"{x:.2f}" for x in row)]
        for name, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
