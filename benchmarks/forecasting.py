"""Forecasters beside linear maps, published transformers and exponential smoothing.

    python benchmarks/forecasting.py [ett] [series] [speed]
                                     [--seed N] [--data FOLDER] [--save FILE]

* ett: ETTh1 and ETTh2, 96 and 336 steps ahead, seven channels as a panel: error of
  `TransformerForecaster` on all test windows, beside the ridge that it starts from, the last
  day again, and what is published of transformers and linear models. Expected: the ridge is
  level with the transformers, so a correction of it finds little; the gate closes where it
  finds nothing, and the forecaster then is that ridge, of training and validation rows.
* series: three single series of different character, five folds at the end of each, learned
  anew for every fold: mean absolute scaled error of both forecasters at their defaults,
  beside seasonal naive and AutoETS (dependency group `bench`; left out where it is missing).
  Expected: AutoETS is hard to beat on a short series with trend and season, and on a long one
  once it is told the long season; a cycle without fixed length is hard for all.
* speed: a forecast of one horizon after `fit`, thousands of fresh windows in one call, and
  two processes that fit at the same time against one after the other. Expected: a few
  milliseconds; seconds; and half the time on two idle cores, or as much as two loops in plain
  Python take, since neither process takes the other's threads.

About five minutes on two idle cores for each of the first two parts, one for the last.
Progress goes to stderr.
"""

import argparse
import os
import platform
import sys
import time
import warnings
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.model_selection import TimeSeriesSplit

from sklearn_attention import KernelForecaster, TransformerForecaster, __version__
from sklearn_attention.forecasting import fit_ridge, seasonal_naive

try:
    from statsforecast.models import AutoETS
except ImportError:
    AutoETS = None

HERE = Path(__file__).resolve().parent
PACKAGES = ("scikit-learn", "torch", "numpy", "pandas", "statsforecast")

# Rows of training, of validation and of test, as published results have them.
TRAIN, VALIDATION, TEST = 8640, 2880, 2880
LOOKBACK, DAY = 336, 24
TASKS = (("ETTh1", 96), ("ETTh1", 336), ("ETTh2", 96), ("ETTh2", 336))
# Mean squared and mean absolute errors as their authors print them, for TASKS in order.
# PatchTST drops up to a batch of the last test windows, which flatters it.
PUBLISHED = {
    "PatchTST/64": (".370 / .400", ".422 / .440", ".274 / .337", ".329 / .384"),
    "PatchTST/42": (".375 / .399", ".431 / .436", ".274 / .336", ".331 / .380"),
    "NLinear": (".374 / .394", ".429 / .427", ".277 / .338", ".357 / .400"),
    "DLinear": (".375 / .399", ".439 / .443", ".289 / .353", ".448 / .465"),
    "iTransformer": (".386 / .405", ".487 / .458", ".297 / .349", ".428 / .432"),
}

# Steps ahead, steps in the season that the naive forecast and AutoETS are told, and the index.
SERIES = {
    "air_passengers": (12, 12, ("1949-01", "MS")),
    "sunspots_monthly": (24, 132, ("1749-01", "MS")),
    "taylor_elec": (336, 336, ("2000-06-05", "30min")),
}
FOLDS = 5
# AutoETS cannot follow eleven years of months, and is told those of a year.
ETS_SEASON = {"sunspots_monthly": 12}


# Seven channels, many windows.


def read_channels(folder, name):
    """Rows of all channels up to the end of the test, standardised by those of training."""
    table = pd.read_csv(
        folder / "forecasting" / f"{name}.csv.gz", index_col="date", parse_dates=True
    )
    table = table.iloc[: TRAIN + VALIDATION + TEST]
    first = table.iloc[:TRAIN]
    return (table - first.mean()) / first.std(ddof=0)


def windows_of(values, start, stop, horizon):
    """Windows and targets of all channels, with targets in these rows; (channel, window, step).

    Windows look back into the rows before.
    """
    rows = values[max(0, start - LOOKBACK) : stop].T
    both = sliding_window_view(rows, LOOKBACK + horizon, axis=1)
    return both[..., :LOOKBACK], both[..., LOOKBACK:]


def flat(windows):
    return [part.reshape(-1, part.shape[-1]) for part in windows]


def errors(forecasts, targets):
    missed = forecasts - targets
    return f"{np.mean(missed**2):.4f} / {np.mean(np.abs(missed)):.4f}"


def ridges(values, horizon):
    """Linear maps of the training rows, and of the validation rows too, with one penalty."""
    known = TRAIN + VALIDATION
    later = flat(windows_of(values, TRAIN, known, horizon))
    first = fit_ridge(*flat(windows_of(values, 0, TRAIN, horizon)), holdout=later)
    every = flat(windows_of(values, 0, known, horizon))
    return first, fit_ridge(*every, alphas=[first.alpha])


def ett_table(folder, seed):
    """Errors on all test windows, a row for each set and horizon."""
    rows = []
    for i, (name, horizon) in enumerate(TASKS):
        table, known = read_channels(folder, name), TRAIN + VALIDATION
        values = table.to_numpy()
        n_origins = known - LOOKBACK - horizon + 1
        model = TransformerForecaster(
            horizon,
            lookback=LOOKBACK,
            season_length=DAY,
            # The windows held out are those whose targets are validation rows.
            validation_fraction=(VALIDATION - horizon + 1) / n_origins,
            random_state=seed,
        )
        start = time.perf_counter()
        model.fit(table.iloc[:known])
        seconds = time.perf_counter() - start
        past, targets = windows_of(values, known, len(values), horizon)
        forecasts = np.stack([model.predict(history=np.array(own)) for own in past])
        (past, targets), forecasts = flat((past, targets)), forecasts.reshape(-1, horizon)
        found = [errors(forecasts, targets)]
        found += [errors(ridge.predict(past), targets) for ridge in ridges(values, horizon)]
        found.append(errors(seasonal_naive(past, horizon, DAY), targets))
        published = [column[i] for column in PUBLISHED.values()]
        rows.append([name, str(horizon), f"{model.gate_:.2f}", *found, *published])
        rows[-1].append(f"{seconds:.0f}")
        print(" | ".join(rows[-1]), file=sys.stderr)
    header = ["set", "horizon", "gate", "TransformerForecaster", "ridge, training rows"]
    header += ["ridge, validation rows too", "seasonal naive", *PUBLISHED, "fit, s"]
    return [
        "## ETT: mean squared / mean absolute error",
        "",
        f"Rows {TRAIN}/{VALIDATION}/{TEST}, standardised by the training rows; all "
        f"{TEST} − horizon + 1 test windows of all seven channels. Our columns look back "
        f"{LOOKBACK} steps, and were computed in this run; published columns are as printed by "
        "their authors, iTransformer with 96 steps. The forecaster is fitted on training and "
        "validation rows, of which the latter set penalty and gate, and answers the windows of "
        "each channel in one call. The penalty of both ridges is that with the least error on "
        "the validation rows. Where the gate is shut, the forecaster is the second ridge.",
        "",
        *markdown(header, rows),
    ]


# Single series.


def read_series(folder, name):
    values = pd.read_csv(folder / "forecasting" / f"{name}.csv.gz").iloc[:, -1]
    start, freq = SERIES[name][2]
    index = pd.date_range(start, periods=len(values), freq=freq)
    return pd.Series(values.to_numpy(float), index=index, name=name)


def backtest(series, horizon, forecast):
    """Forecasts of all folds by a function of the values before each of them."""
    values, folds = series.to_numpy(), []
    for before, rows in TimeSeriesSplit(FOLDS, test_size=horizon).split(values):
        found = np.ravel(forecast(values[before]))
        folds.append(pd.DataFrame({"actual": values[rows], "forecast": found}))
    return pd.concat(folds)


def smoothing(values, horizon, season):
    return AutoETS(season_length=season).fit(values).predict(horizon)["mean"]


def series_table(folder, seed):
    """Scaled errors, a row for each series."""
    rows, seconds = [], []
    for name, (horizon, season, _) in SERIES.items():
        series = read_series(folder, name)
        # The unit is the error of the naive forecast on the rows before all tests.
        first = series.to_numpy()[: -FOLDS * horizon]
        scale = np.abs(np.diff(first)).mean()
        models = {
            "TransformerForecaster": TransformerForecaster(horizon, random_state=seed),
            "KernelForecaster": KernelForecaster(horizon),
        }
        runs = {
            label: partial(model.backtest, series, cv=FOLDS, refit=True)
            for label, model in models.items()
        }
        naive = partial(seasonal_naive, horizon=horizon, season_length=season)
        runs["seasonal naive"] = partial(
            backtest, series, horizon, lambda x, f=naive: f(x[None])
        )
        if AutoETS is not None:
            told = ETS_SEASON.get(name, season)
            exponential = partial(smoothing, horizon=horizon, season=told)
            runs["AutoETS"] = partial(backtest, series, horizon, exponential)
        found, spent = {}, {}
        for label, run in runs.items():
            start = time.perf_counter()
            table = run()
            spent[label] = f"{time.perf_counter() - start:.0f}"
            found[label] = np.abs(table["forecast"] - table["actual"]).mean() / scale
            print(f"{name} {label} {found[label]:.3f} {spent[label]} s", file=sys.stderr)
        cells = {label: f"{error:.3f}" for label, error in found.items()}
        best = min(found, key=found.get)
        cells[best] = f"**{cells[best]}**"
        head = [name, str(len(series)), str(horizon)]
        rows.append(head + [cells.get(label, "not installed") for label in COLUMNS])
        seconds.append(head + [spent.get(label, "–") for label in COLUMNS])
    header = ["series", "rows", "horizon", *COLUMNS]
    return [
        f"## Single series: mean absolute scaled error over {FOLDS} folds",
        "",
        f"The last {FOLDS} stretches of one horizon, each forecast from all rows before it, "
        "everything learned anew. Errors are in units of the mean absolute difference between "
        "neighbours in the rows before the first of them. Both forecasters are at their "
        "defaults. Seasons for naive and AutoETS: a year of months, the 11 years of sunspots "
        "(for AutoETS one year), a week of half hours.",
        "",
        *markdown(header, rows),
        "",
        "Seconds, all folds together:",
        "",
        *markdown(header, seconds),
    ]


COLUMNS = ("TransformerForecaster", "KernelForecaster", "seasonal naive", "AutoETS")


# Speed.


def fit_and_count(values):
    """Fit, and how many threads torch has in this process."""
    TransformerForecaster(96, lookback=LOOKBACK, max_steps=60, base=None).fit(values)
    return torch.get_num_threads()


def seconds_of(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def together_or_in_turn(parallel, work):
    """Time of doing it twice in two processes, as a share of doing it twice in this one."""
    together = seconds_of(parallel, [joblib.delayed(work)()] * 2)
    return together / seconds_of(lambda: [work(), work()])


def speed_table(folder, seed):
    """Times of forecasts, and of fits side by side."""
    values = read_channels(folder, "ETTh1").to_numpy()
    past, _ = windows_of(values, TRAIN + VALIDATION, len(values), 96)
    fresh, rows = np.array(past[-1]), []
    oil = values[: TRAIN + VALIDATION, -1]
    for label, series, options in (
        ("144 months, defaults, horizon 12", read_series(folder, "air_passengers"), {}),
        (f"oil temperature, {LOOKBACK} steps, horizon 96", oil, {"lookback": LOOKBACK}),
    ):
        horizon = 96 if options else 12
        # Without a base, the network is asked for sure.
        model = TransformerForecaster(
            horizon, base=None, max_steps=20, random_state=seed, **options
        ).fit(series)
        model.predict()
        times = [seconds_of(model.predict) for _ in range(101)]
        cell = f"{1e3 * np.median(times):.1f} ms, at best {1e3 * min(times):.1f} ms"
        rows.append([f"one horizon: {label}", cell])
        print(rows[-1], file=sys.stderr)
    times = [seconds_of(lambda: model.predict(history=fresh)) for _ in range(3)]
    rows.append([f"{len(fresh)} fresh windows in one call", f"{np.median(times):.2f} s"])
    parallel = joblib.Parallel(n_jobs=2, backend="loky")
    n_threads, _ = parallel([joblib.delayed(fit_and_count)(oil[:4000])] * 2)
    # What the machine has to give at this moment is what plain Python gets of it.
    for label, work in (
        (f"fits, torch with {n_threads} thread in each", partial(fit_and_count, oil[:4000])),
        ("loops in plain Python", partial(sum, range(100_000_000))),
    ):
        ratios = [together_or_in_turn(parallel, work) for _ in range(3)]
        cell = "time × " + ", ".join(f"{ratio:.2f}" for ratio in ratios)
        rows.append([f"two processes at once against one after the other: {label}", cell])
        print(rows[-1], file=sys.stderr)
    return [
        "## Speed",
        "",
        "The network without a base, so that every forecast asks it.",
        "",
        *markdown(["", ""], rows),
    ]


# Report.


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def package_version(name):
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is missing"


PARTS = {"ett": ett_table, "series": series_table, "speed": speed_table}


def report(parts, folder, seed):
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    load = os.getloadavg()[0]
    lines = [
        "# Forecasters",
        "",
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} processors, "
        f"with a load of {load:.1f} before the run; `OMP_NUM_THREADS` {threads}. "
        f"Python {platform.python_version()}, sklearn-attention {__version__}, "
        f"{', '.join(map(package_version, PACKAGES))}. Seed {seed}.",
    ]
    for part in parts:
        lines += ["", *PARTS[part](folder, seed)]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--seed", type=int, default=0, help="of the networks; default 0")
    beside = HERE.parents[1] / "shared" / "data"
    shared = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=shared)
    parser.add_argument("--save", metavar="FILE", help="also write the tables to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no parts: {', '.join(sorted(unknown))}")
    with warnings.catch_warnings():
        # Of the peer: it says what it leaves out of a long season.
        warnings.filterwarnings("ignore", module="statsforecast")
        text = report(arguments.parts or PARTS, arguments.data, arguments.seed)
    print(text)
    if arguments.save:
        Path(arguments.save).write_text(text + "\n")
