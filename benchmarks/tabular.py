"""Tabular regressors and classifiers at their defaults: errors, probabilities and seconds.

    python benchmarks/tabular.py run [--task TASK] [--sets A,B] [--models M,N]
                                     [--splits 5,6] [--jobs N] [--machine LABEL]
                                     [--results FILE] [--data FOLDER] [--again]
    python benchmarks/tabular.py report [--results FILE]

`run` measures every set, split and model that the file of results does not have yet, and
appends a JSON line for each, so that an interrupted run goes on where it stopped; with
several lines for the same, the last one counts. `report` prints Markdown tables.

Seconds are compared on one machine only: `--machine` puts a label in the lines of a run, and
ratios of seconds are of lines with the same label, or without any.

Compared are all models without any tuning, on 14 sets for regression and 7 for
classification. The defaults of kernel attention were chosen on splits 0 to 4; reported are
5 to 9. "KernelAttention before" is an earlier version, without a rough part and overlapping
blocks: its lines are in the file of results, and no code here makes new ones.

Expected: boosted trees lead on sets with many rows and
many levels, smooth models such as Gaussian processes on small sets with smooth targets; no
model leads everywhere, so ranks and worst ratios stand beside the means.

Models whose library is missing (dependency group `bench`) are left out with a message.
All of it takes many hours on one core. Progress goes to stderr.
"""

import argparse
import os
import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _results import append, package_version, results
from _tabular_data import SETS, SPLITS, load_split
from _tabular_models import BEFORE, LEVELS, MODELS, MOST_ROWS, OURS, UNRANKED
from sklearn.metrics import accuracy_score, mean_pinball_loss, root_mean_squared_error
from threadpoolctl import threadpool_limits

from sklearn_attention import __version__

HERE = Path(__file__).resolve().parent
KEYS = ["task", "set", "split", "model"]
UNRANKED_NOTE = f"{' and '.join(UNRANKED)} are not ranked."
PACKAGES = (
    "scikit-learn",
    "lightgbm",
    "xgboost",
    "catboost",
    "erbf",
    "numpy",
    "scipy",
    "pandas",
)


# Run.


class Watch:
    """Wall seconds of each part, and process seconds of all together."""

    def __init__(self):
        self.seconds = {"cpu_s": 0.0}

    def __call__(self, part, function, *arguments):
        wall, process = time.perf_counter(), time.process_time()
        result = function(*arguments)
        self.seconds[part] = time.perf_counter() - wall
        self.seconds["cpu_s"] += time.process_time() - process
        return result


def regression_scores(model, X, y, watch):
    if not hasattr(model, "predict"):
        return quantile_scores(
            model, X, y, watch("predict_s", model.predict_quantiles, X, LEVELS)
        )
    scores = {"rmse": root_mean_squared_error(y, watch("predict_s", model.predict, X))}
    if hasattr(model, "predict_quantiles"):
        scores |= quantile_scores(model, X, y, model.predict_quantiles(X, LEVELS))
    return scores


def quantile_scores(model, X, y, quantiles):
    losses = [
        mean_pinball_loss(y, quantile, alpha=level)
        for level, quantile in zip(LEVELS, quantiles.T, strict=True)
    ]
    if hasattr(model, "predict_interval"):
        lower, upper = model.predict_interval(X, coverage=0.9).T
    else:
        lower, upper = quantiles[:, 0], quantiles[:, -1]
    return {
        "crps": 2 * np.mean(losses),
        "coverage90": np.mean((lower <= y) & (y <= upper)),
        "width90": np.mean(upper - lower),
    }


def classification_scores(model, X, y, watch):
    shares = watch("predict_s", model.predict_proba, X)
    if not np.array_equal(model.classes_, np.arange(shares.shape[1])):
        raise ValueError(f"classes are {model.classes_}")
    predicted = shares.argmax(axis=1)
    return {
        "log_loss": -np.mean(np.log(shares[np.arange(len(y)), y].clip(1e-15, 1))),
        "accuracy": accuracy_score(y, predicted),
        "ece": calibration_error(shares.max(axis=1), predicted == y),
    }


def calibration_error(confidence, correct, n_bins=15):
    """Mean distance of confidence and accuracy, over bins of equal width."""
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return np.abs(np.bincount(bins, confidence - correct)).sum() / len(bins)


SCORES = {"regression": regression_scores, "classification": classification_scores}


def measure(task, model, X_train, X_test, y_train, y_test):
    """Scores and seconds, or what went wrong."""
    watch = Watch()
    with warnings.catch_warnings():
        # Models that do not converge at their defaults show it in their scores.
        warnings.simplefilter("ignore")
        try:
            watch("fit_s", model.fit, X_train, y_train)
            scores = SCORES[task](model, X_test, y_test, watch)
            if not np.all(np.isfinite(list(scores.values()))):
                raise ValueError(f"scores are not finite: {scores}")
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {name: float(f"{value:.6g}") for name, value in (scores | watch.seconds).items()}


def wanted(options, measured):
    """The missing cells, set after set, split after split, model after model."""
    for task in [options.task] if options.task else SETS:
        for name in SETS[task]:
            for split in SPLITS[name]:
                for model in MODELS[task]:
                    if (
                        name in (options.sets or SETS[task])
                        and split in (options.splits or SPLITS[name])
                        and model in (options.models or MODELS[task])
                        and (task, name, split, model) not in measured
                    ):
                        yield task, name, split, model


def run(options):
    for library in ("OMP", "NUMBA"):  # for what is loaded later
        os.environ[f"{library}_NUM_THREADS"] = str(options.jobs)
    known = results(options.results, [*KEYS, "machine"])
    measured = set() if options.again else set(known[KEYS].itertuples(index=False, name=None))
    missing, loaded = set(), None
    for task, name, split, model_name in wanted(options, measured):
        if loaded != (task, name, split):
            parts, loaded = load_split(task, name, split, options.data), (task, name, split)
        n_train, n_features = parts[0].shape
        if n_train > MOST_ROWS.get(model_name, n_train) or (task, model_name) in missing:
            continue
        try:
            model = MODELS[task][model_name](parts[0], options.jobs)
        except ImportError as error:
            missing.add((task, model_name))
            print(f"{model_name} is left out: {error}", file=sys.stderr)
            continue
        cell = dict(zip(KEYS, (task, name, split, model_name), strict=True))
        cell |= {"n_train": n_train, "n_features": n_features, "jobs": options.jobs}
        if options.machine:
            cell["machine"] = options.machine
        with threadpool_limits(options.jobs):
            cell |= measure(task, model, *parts)
        append(cell, options.results)


# Report.


def values_of(frame, task, field, models=None, index=("set", "split")):
    """A row for each set and split, a column for each model; a failure is infinite."""
    frame = frame[frame["task"] == task].drop_duplicates(["model", *index], keep="last")
    values = frame.get(field, pd.Series(np.nan, frame.index))
    frame = frame.assign(value=values.where(frame["error"].isna(), np.inf))
    values = frame.pivot(index=list(index), columns="model", values="value")
    if models is None:
        models = values.columns[np.isfinite(values).any()]
    values = values[[model for model in [*MODELS[task], BEFORE] if model in models]]
    in_order = [name for name in SETS[task] if name in values.index.unique("set")]
    return values.reindex(in_order, level="set")


def number(value):
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "failed"
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def mean_rows(values, best=None):
    """Means over splits, a row for each set; `best` finds the value printed bold."""
    rows = []
    contestants = ranked(values)
    for name, splits in values.groupby(level="set", sort=False):
        means, counts = splits.mean(), splits.count()
        known = means[contestants].dropna()
        chosen = best(known) if best and len(known) else None
        row = [name]
        for model, mean in means.items():
            text = f"**{number(mean)}**" if mean == chosen else number(mean)
            partial = 0 < counts[model] < len(SPLITS[name])
            row.append(f"{text} ({counts[model]})" if partial else text)
        rows.append(row)
    return rows


def ranked(values):
    return [model for model in values if model not in UNRANKED]


def rank_rows(values, models, label):
    """Mean ranks and worst ratios among `models`, where all of them were measured."""
    cells = values[models].dropna()
    means = cells.groupby(level="set", sort=False).mean()
    rows = {
        "mean rank over splits": cells.rank(axis=1).mean(),
        "mean rank over sets": means.rank(axis=1).mean(),
        "worst ratio to the best": means.div(means.min(axis=1), axis=0).max(),
    }
    note = (
        f"Ranks {label}: over the splits that all of these models have been measured on, "
        f"{len(cells)}, and over the means of these splits in each set, {len(means)} of "
        f"{values.index.unique('set').size}: {', '.join(means.index) or '–'}."
    )
    lines = [
        [f"{name}, {label}", *(rank_text(row.get(model, np.nan)) for model in values)]
        for name, row in rows.items()
    ]
    return lines, note


def rank_text(value):
    return f"{value:.2f}" if np.isfinite(value) else number(value)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def section(title, note, values, best=None, groups=()):
    """A table of means; `groups` of (label, models) are ranked below it."""
    rows, notes = mean_rows(values, best), [note]
    for label, models in groups:
        ranks, text = rank_rows(values, models, label)
        rows += ranks
        notes.append(text)
    paragraphs = [line for note in notes if note for line in (note, "")]
    return [f"## {title}", "", *paragraphs, *table(["set", *values], rows), ""]


def ratio_of_means(values, model, base):
    """For each set, of splits (and machines) that both have; failures do not count."""
    if not {model, base} <= set(values):
        return pd.Series(dtype=float)
    pairs = values[[model, base]].replace(np.inf, np.nan).dropna()
    means = pairs.groupby(level="set", sort=False).mean()
    return means[model] / means[base]


def ratios(frame, task, field):
    """Section: errors beside those before, and the processor's seconds beside CatBoost's."""
    errors = values_of(frame, task, field)
    process = values_of(frame, task, "cpu_s", index=("set", "split", "machine"))
    rows = []
    for model in (*OURS, BEFORE):
        error = ratio_of_means(errors, model, BEFORE)
        time_ratio = ratio_of_means(process, model, "CatBoost")
        row = [model, "–", "–", "–"]
        if len(error) and model != BEFORE:
            row[1] = f"{np.exp(np.log(error).mean()):.3f} ({len(error)})"
        if len(time_ratio):
            row[2] = f"{np.exp(np.log(time_ratio).mean()):.3g} ({len(time_ratio)})"
            row[3] = f"{time_ratio.max():.3g} ({time_ratio.idxmax()})"
        rows.append(row)
    header = ["model", f"error, beside {BEFORE}", "seconds, beside CatBoost", "largest"]
    return [
        f"## {task.capitalize()}: ratios of errors, and of seconds of the processor",
        "",
        "Of means over the splits that both models have: the geometric mean of these ratios "
        "over sets, in brackets how many, and the largest, with its set. Seconds are compared "
        "on the same machine.",
        "",
        *table(header, rows),
        "",
    ]


def regression_sections(frame):
    models = set(frame.loc[frame["task"] == "regression", "model"])
    errors = values_of(frame, "regression", "rmse", models - {"HistGB-quantile"})
    contestants = ranked(errors)
    groups = [("all sets", [model for model in contestants if model != "GPR-ARD"])]
    if "GPR-ARD" in contestants:
        groups.append(("with GPR-ARD", contestants))
    coverage = values_of(frame, "regression", "coverage90") * 100
    return [
        *section(
            "Regression: root mean squared error",
            f"{UNRANKED_NOTE} GPR-ARD runs on {MOST_ROWS['GPR-ARD']} training rows or fewer.",
            errors,
            min,
            groups,
        ),
        *ratios(frame, "regression", "rmse"),
        *seconds(frame, "regression"),
        *section(
            "Regression: continuous ranked probability score",
            "Twice the mean pinball loss over the levels .05, .10, …, .95.",
            values_of(frame, "regression", "crps"),
            min,
        ),
        *section("Regression: coverage of 90 % intervals, in %", "", coverage),
        *section(
            "Regression: mean width of 90 % intervals",
            "",
            values_of(frame, "regression", "width90"),
        ),
    ]


def classification_sections(frame):
    losses = values_of(frame, "classification", "log_loss")
    accuracy = values_of(frame, "classification", "accuracy")
    calibration = values_of(frame, "classification", "ece")
    title = "Classification: calibration error of the top class"
    return [
        *section(
            "Classification: log-loss",
            UNRANKED_NOTE,
            losses,
            min,
            [("all sets", ranked(losses))],
        ),
        *ratios(frame, "classification", "log_loss"),
        *section("Classification: accuracy", "", accuracy, max),
        *section(title, "15 bins of equal width.", calibration, min),
        *seconds(frame, "classification"),
    ]


def seconds(frame, task):
    machines = frame.loc[frame["task"] == task, "machine"].unique()
    several = " Models were run on several machines." if len(machines) > 1 else ""
    wall = values_of(frame, task, "fit_s") + values_of(frame, task, "predict_s")
    title = f"{task.capitalize()}: seconds"
    process = values_of(frame, task, "cpu_s")
    return [
        *section(f"{title}, fit and predict", f"Wall time.{several}", wall),
        *section(f"{title} of the processor", f"Of all threads together.{several}", process),
    ]


def failures(frame):
    failed = frame.drop_duplicates(KEYS, keep="last").dropna(subset="error")
    rows = [
        [row.task, row.set, str(row.split), row.model, row.error.replace("|", "/")]
        for row in failed.replace(r"\s+", " ", regex=True).itertuples()
    ]
    return ["## Failures", "", *(table([*KEYS, "error"], rows) if rows else ["None."])]


def report(options):
    frame = results(options.results, [*KEYS, "machine"], ["jobs"])
    frame["machine"] = frame["machine"].astype(object).fillna("")
    cells = zip(frame["set"], frame["split"], strict=True)
    shown = [split in SPLITS.get(name, ()) for name, split in cells]
    frame = frame.loc[np.array(shown, dtype=bool)]
    jobs = sorted(int(count) for count in frame["jobs"].dropna().unique())
    sections = {"regression": regression_sections, "classification": classification_sections}
    lines = [
        "# Tabular models at their defaults",
        "",
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} processors; models ran "
        f"with `--jobs {' or '.join(map(str, jobs))}`. Python {platform.python_version()}, "
        f"sklearn-attention {__version__}, {', '.join(map(package_version, PACKAGES))}.",
        "",
        "Means over splits; in brackets, how many there are where some are missing. –: not "
        "measured. failed: raised an error in at least one split, which ranks last.",
        "",
    ]
    for task, write in sections.items():
        if (frame["task"] == task).any():
            lines += write(frame)
    print("\n".join([*lines, *failures(frame)]))


# Command line.


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("--task", choices=SETS)
    for name in ("sets", "splits"):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), help="some of them")
    parser.add_argument(
        "--models", type=lambda text: text.split(","), help="some of them, or peers, or ours"
    )
    parser.add_argument("--jobs", type=int, default=2, help="threads of a model; default 2")
    parser.add_argument("--machine", help="a label for its lines")
    parser.add_argument("--results", type=Path, default=HERE / "tabular.jsonl")
    beside = HERE.parents[1] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    options = parser.parse_args()
    tasks = [options.task] if options.task else list(SETS)
    models = dict.fromkeys(model for task in tasks for model in MODELS[task])
    groups = {"ours": OURS, "peers": [model for model in models if model not in OURS]}
    if options.models:
        options.models = [m for name in options.models for m in groups.get(name, [name])]
    if options.splits:
        options.splits = [int(split) for split in options.splits]
    sets = {name for task in tasks for name in SETS[task]}
    if unknown := (set(options.models or ()) - set(models)) | (set(options.sets or ()) - sets):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    options = parse()
    {"run": run, "report": report}[options.action](options)
