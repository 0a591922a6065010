"""Tabular regressors and classifiers at their defaults: errors, probabilities and seconds.

    python benchmarks/tabular.py run [--task TASK] [--sets A,B] [--models M,N] [--splits 5,6]
                                     [--results FILE] [--data FOLDER] [--again]
    python benchmarks/tabular.py report [--results FILE]

`run` measures every set, split and model that the file of results does not have yet, and
appends a JSON line for each, so that an interrupted run goes on where it stopped; with several
lines for the same, the last one counts. `report` prints Markdown tables.

Compared are models without any tuning, each at one thread, on 24 sets for regression, 20 for
classification, and one function at several sizes. The defaults of kernel attention were chosen
on splits 0 to 4; reported are 5 to 7.

Expected: kernel attention has the least errors on most sets, most of all on smooth targets;
boosted trees lead on some sets with steps, and predict in a hundredth of its time.

Models whose library is missing (dependency group `bench`) are left out with a message. All of
it takes two hours. Progress goes to stderr.
"""

import os
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from _results import alone, parser_of, peak_megabytes, refuse_unknown, results, run, stamp
from _tabular_data import SETS, SPLITS, load_split
from _tabular_models import MODELS, OURS
from sklearn.metrics import mean_pinball_loss, root_mean_squared_error
from threadpoolctl import threadpool_limits

KEYS = ["task", "set", "split", "model"]
LEVELS = np.arange(1, 20) / 20
BASE = "CatBoost"
# One fit takes five minutes.
LEFT_OUT = [("leaves", "CatBoost")]
PACKAGES = ("scikit-learn", "lightgbm", "catboost", "numpy", "scipy", "pandas")


# Run.


def timed(function, *arguments):
    """The result, and seconds of the processor."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def regression_scores(model, X, y):
    predictions, seconds = timed(model.predict, X)
    scores = {"error": root_mean_squared_error(y, predictions), "predict_s": seconds}
    if hasattr(model, "predict_quantiles"):
        quantiles = model.predict_quantiles(X, LEVELS).T
        losses = [
            mean_pinball_loss(y, q, alpha=a) for q, a in zip(quantiles, LEVELS, strict=True)
        ]
        lower, upper = model.predict_interval(X, coverage=0.9).T
        scores |= {
            "crps": 2 * np.mean(losses),
            "coverage": np.mean((lower <= y) & (y <= upper)),
        }
    return scores


def classification_scores(model, X, y):
    shares, seconds = timed(model.predict_proba, X)
    if not np.array_equal(model.classes_, np.arange(shares.shape[1])):
        raise ValueError(f"classes are {model.classes_}")
    own, top = shares[np.arange(len(y)), y], shares.max(axis=1)
    correct = shares.argmax(axis=1) == y
    # Mean distance of confidence and accuracy, over 15 bins of equal width.
    bins = np.minimum((top * 15).astype(int), 14)
    return {
        "error": -np.mean(np.log(own.clip(1e-15, 1))),
        "accuracy": correct.mean(),
        "calibration": np.abs(np.bincount(bins, top - correct)).sum() / len(bins),
        "predict_s": seconds,
    }


def measure(task, model, X_train, X_test, y_train, y_test):
    """Scores and seconds, or what went wrong."""
    score = classification_scores if task == "classification" else regression_scores
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            _, seconds = timed(model.fit, X_train, y_train)
            scores = score(model, X_test, y_test) | {"fit_s": seconds, "n_test": len(y_test)}
            if not np.all(np.isfinite(list(scores.values()))):
                raise ValueError(f"scores are not finite: {scores}")
        except Exception as error:
            return {"error_message": f"{type(error).__name__}: {error}"[:300]}
    return {name: float(value) for name, value in scores.items()}


def cell(task, name, split, model, data):
    """Fields of a line; in a process of its own its memory is that of the model."""
    parts = load_split(task, name, split, data)
    before = peak_megabytes()
    found = measure(task, MODELS[task][model](parts[0], 1), *parts)
    shape = {"n_train": parts[0].shape[0], "n_features": parts[0].shape[1]}
    return shape | found | {"megabytes": round(peak_megabytes() - before)}


def cells(options):
    """Keys, and what measures them."""
    for task in [options.task] if options.task else SETS:
        for name in [name for name in SETS[task] if name in (options.sets or SETS[task])]:
            for split in [s for s in SPLITS[task] if s in (options.splits or SPLITS[task])]:
                for model in [m for m in MODELS[task] if m in (options.models or MODELS[task])]:
                    if (name, model) in LEFT_OUT:
                        continue
                    key = task, name, split, model
                    measure_cell = partial(alone, cell) if task == "scale" else cell
                    yield key, partial(measure_cell, *key, options.data)


# Report.


def number(value):
    if np.isnan(value):
        return "–"
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def means(frame, task, field):
    """Means over the splits, a row for each set and a column for each model."""
    table = frame[frame["task"] == task].pivot_table(field, "set", "model")
    models = [model for model in MODELS[task] if model in table]
    return table.reindex([name for name in SETS[task] if name in table.index])[models]


def markdown(table, best=None, first="set"):
    lines = [f"| {first} | " + " | ".join(table) + " |", "|---" * (table.shape[1] + 1) + "|"]
    for name, row in table.iterrows():
        chosen = getattr(row, best)() if best else None
        texts = [f"**{number(v)}**" if v == chosen else number(v) for v in row]
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return [*lines, ""]


def summary(frame, task):
    """How models compare over all sets."""
    cells = frame[frame["task"] == task].pivot_table("error", ["set", "split"], "model")
    ratios = cells.div(cells[BASE], axis=0)
    fit, predict = (means(frame, task, field) for field in ("fit_s", "predict_s"))

    def geometric(ratios):
        return np.exp(np.log(ratios).mean())

    complete = means(frame, task, "error").dropna()
    table = pd.DataFrame({
        "mean rank of errors": complete.rank(axis=1).mean(),
        "sets ranked": len(complete),
        f"error / {BASE}": geometric(ratios),
        f"splits ahead of {BASE}": ratios.lt(1).sum(),
        "of splits": ratios.notna().sum(),
        f"fit / {BASE}": geometric(fit.div(fit[BASE], axis=0)),
        f"prediction / {BASE}": geometric(predict.div(predict[BASE], axis=0)),
    })  # fmt: skip
    table = table.reindex([model for model in MODELS[task] if model in table.index])
    note = (
        "Ratios are averaged geometrically. Ranks are computed on the sets that all "
        "models can read. “splits ahead” counts the splits on which the model's error is "
        "smaller than CatBoost's. HistGradientBoosting and LightGBM grow the same trees from "
        "small tables of numbers, where their errors agree to all digits."
    )
    return [note, "", *markdown(table, first="model")]


def sizes(frame, task):
    """Rows and features of the training part of each set."""
    cells = frame[frame["task"] == task].dropna(subset="n_train").groupby("set")
    table = cells[["n_train", "n_features"]].first()
    table = table.reindex([name for name in SETS[task] if name in table.index])
    return table.set_axis(["training rows", "features"], axis=1)


def sections(frame, task, label):
    """Tables of a task."""
    lines = [f"## {task.capitalize()}", "", *summary(frame, task)]
    lines += ["### Sizes", "", *markdown(sizes(frame, task))]
    lines += [f"### {label}", "", *markdown(means(frame, task, "error"), "min")]
    if task == "classification":
        for title, field in (("Accuracy", "accuracy"), ("Calibration error", "calibration")):
            best = "max" if field == "accuracy" else "min"
            lines += [f"### {title}", "", *markdown(means(frame, task, field), best)]
    else:
        parts = {
            "continuous ranked probability score": means(frame, task, "crps")[OURS],
            "coverage of 90 % intervals, in %": 100 * means(frame, task, "coverage")[OURS],
        }
        lines += [f"### Distributions of {OURS}", "", *markdown(pd.DataFrame(parts))]
    return [
        *lines,
        "### Processor seconds of a fit",
        "",
        *markdown(means(frame, task, "fit_s")),
    ]


def scale(frame):
    rows = frame[frame["task"] == "scale"].assign(
        microseconds=lambda f: 1e6 * f["predict_s"] / f["n_test"]
    )
    lines = [
        "## Size",
        "",
        "The rows are drawn from Friedman's first function of 10 features, or of 10 relevant "
        "features among 200, with noise of standard deviation 1.",
        "",
    ]
    for title, field in (
        ("Root mean squared error", "error"),
        ("Processor seconds of a fit", "fit_s"),
        ("Processor microseconds of a prediction", "microseconds"),
        ("Megabytes of memory for a fit and 4000 predictions with intervals", "megabytes"),
    ):
        lines += [f"### {title}", "", *markdown(means(rows, "scale", field))]
    return lines


def report(options):
    frame = results(options.results, KEYS, ["error_message"])
    lines = [
        "# Tabular models at their defaults",
        "",
        f"{stamp(*PACKAGES, lines=frame)} Seconds are processor seconds. "
        "Entries are means over three splits. A dash marks a model that takes too long or "
        "cannot read so many levels of a category.",
        "",
        *sections(frame, "regression", "Root mean squared error"),
        *sections(frame, "classification", "Log-loss"),
        *scale(frame),
        "## Sets that a model could not read",
        "",
    ]
    failed = frame.dropna(subset="error_message")
    lines += [f"* {' '.join(map(str, row))}" for row in failed[[*KEYS, "error_message"]].values]
    print("\n".join(lines if len(failed) else [*lines, "None."]))


def parse():
    parser = parser_of(__doc__, "tabular.jsonl", "sets", "models", "splits")
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("--task", choices=SETS)
    options = parser.parse_args()
    options.splits = options.splits and [int(split) for split in options.splits]
    known = [name for names in (*SETS.values(), *MODELS.values()) for name in names]
    refuse_unknown(parser, known, options.sets, options.models)
    return options


if __name__ == "__main__":
    options = parse()
    if options.action == "report":
        report(options)
    else:
        for library in ("OMP", "NUMBA"):  # for what is loaded later
            os.environ[f"{library}_NUM_THREADS"] = "1"
        run(cells(options), KEYS, options)
