"""Peers of `smoothing_accuracy.py`: R's smoothers in one call, statsmodels', and their errors.

Needs `Rscript` with mgcv and locfit (`apt-get install r-base-core r-cran-mgcv r-cran-locfit`),
statsmodels, and a larger stack than usual (`ulimit -s 65536`). A peer that fails on a data set
has NaN there, as has `loess` beyond the rows.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

R_PEERS = (
    "mgcv",
    "mgcv k = 10",
    "loess",
    "loess robust",
    "locfit",
    "locfit gcv",
    "smooth.spline",
)
PEERS = (*R_PEERS, "lowess", "KernelReg")
# Its search takes seconds for more rows.
MOST_ROWS_OF_KERNEL_REG = 100

_SCRIPT = """
suppressMessages({library(mgcv); library(locfit)})
folder <- commandArgs(trailingOnly = TRUE)[1]
rows <- read.csv(file.path(folder, "rows.csv"))
queries <- read.csv(file.path(folder, "queries.csv"))
rows <- split(rows, rows$set)
queries <- split(queries, queries$set)
nearest <- seq(0.15, 1, 0.05)
# As many basis functions as the curves need, and at most as many as there are places.
functions <- function(d) {
  most <- c(15, 40, 60, 80)[findInterval(nrow(d), c(0, 100, 500, 2000))]
  min(most, length(unique(d$x)))
}

smoothers <- list(
  function(d, q) predict(gam(y ~ s(x, k = functions(d)), method = "REML", data = d), q),
  function(d, q) predict(gam(y ~ s(x), method = "REML", data = d), q),
  function(d, q) predict(loess(y ~ x, data = d), q),
  function(d, q) predict(loess(y ~ x, data = d, family = "symmetric"), q),
  function(d, q) predict(locfit(y ~ lp(x), data = d), q),
  function(d, q) {
    score <- function(nn) tryCatch(gcv(y ~ lp(x, nn = nn), data = d)["gcv"],
                                   error = function(e) Inf)
    best <- nearest[which.min(sapply(nearest, score))]
    predict(locfit(y ~ lp(x, nn = best), data = d), q)
  },
  function(d, q) predict(smooth.spline(d$x, d$y), q$x)$y
)
answer <- function(set) {
  q <- queries[[set]]
  found <- lapply(smoothers, function(smooth)
    tryCatch(as.numeric(smooth(rows[[set]], q)), error = function(e) rep(NA, nrow(q))))
  as.data.frame(do.call(cbind, found))
}
found <- suppressWarnings(lapply(names(rows), answer))
write.csv(do.call(rbind, found), file.path(folder, "found.csv"), row.names = FALSE)
"""


def predictions(data_sets):
    """Of every peer at the places of each data set, (n_places, n_peers)."""
    of_r = _by_r(data_sets)
    return [
        np.column_stack([found, lowess(data), kernel_regression(data)])
        for data, found in zip(data_sets, of_r, strict=True)
    ]


def _by_r(data_sets):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        _table(data_sets, "x", "y").to_csv(folder / "rows.csv", index=False)
        _table(data_sets, "places").rename(columns={"places": "x"}).to_csv(
            folder / "queries.csv", index=False
        )
        (folder / "peers.R").write_text(_SCRIPT)
        subprocess.run(["Rscript", folder / "peers.R", folder], check=True)
        found = pd.read_csv(folder / "found.csv").to_numpy(float)
    ends = np.cumsum([len(data.places) for data in data_sets])
    return np.split(found, ends[:-1])


def _table(data_sets, *names):
    # Names of equal length, which R sorts as they come.
    frames = [
        pd.DataFrame({name: getattr(data, name) for name in names}).assign(set=f"s{i:06d}")
        for i, data in enumerate(data_sets)
    ]
    return pd.concat(frames)


def lowess(data):
    from statsmodels.nonparametric.smoothers_lowess import lowess

    return lowess(data.y, data.x, xvals=data.places)


def kernel_regression(data):
    from statsmodels.nonparametric.kernel_regression import KernelReg

    if len(data.x) > MOST_ROWS_OF_KERNEL_REG:
        return np.full(len(data.places), np.nan)
    try:
        return KernelReg(data.y, data.x, "c", reg_type="ll", bw="cv_ls").fit(data.places)[0]
    except np.linalg.LinAlgError:
        return np.full(len(data.places), np.nan)
