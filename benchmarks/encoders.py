"""Transformers of series, texts and tables at their defaults beside simpler models.

    python benchmarks/encoders.py TABLE... [--models A,B] [--sets A,B] [--seeds 0,1]
                                  [--again] [--peer-python PYTHON]
                                  [--results FILE] [--data FOLDER]
    python benchmarks/encoders.py report [--results FILE]

Each TABLE measures every set, model and seed that the file of results does not have yet, and
appends a JSON line for each, so that an interrupted run goes on where it stopped; with several
lines for the same, the last one counts. `--models` takes names, "peers", "ours" or "parts".
`report` prints Markdown tables of the file alone.

At its defaults a transformer is blended with a baseline: "baseline alone" and "network alone"
are the predictions of these two parts.

* series: seven sets of the UCR and UEA archive, official splits. Beside boosting, for which
  steps are columns, there are MiniRocket and the nearest neighbour by dynamic time warping.
  Those two are aeon's, which needs an older pandas: `--peer-python`, or the variable
  PEER_PYTHON, names a Python that has it, in an environment of its own
  (`python -m venv FOLDER && FOLDER/bin/pip install aeon`). Without it, the stored lines count.
  For MiniRocket and boosting short series are padded with zeros.
  Expected: MiniRocket leads, and models that compare steps by their number are worse.
* text: summaries of docstrings, whose class is one of eight installed packages; names of
  packages are left out. The set depends on their versions and is named by a hash.
  Expected: TF-IDF with logistic regression is hard to beat on 3000 texts.
* tables: numbers, levels and missing cells. Seeds 0, 1, 2 are splits 7, 8, 9 of `tabular.py`,
  on which no defaults were chosen. Expected: errors at most those of boosting, the baseline of
  the transformer.

Seconds are of the processor, in one thread. Progress goes to stderr.
"""

import json
import os
import subprocess
import time
import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import torch
from _encoders_data import SERIES, docstrings, padded, series
from _results import HERE, markdown, parser_of, refuse_unknown, results, run, stamp
from _tabular_data import load_split
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_attention import (
    Training,
    TransformerClassifier,
    TransformerRegressor,
)

KEYS = ["table", "set", "model", "seed"]
FIELDS = ["accuracy", "log_loss", "rmse", "fit_s", "predict_s"]
BASELINE_ALONE, NETWORK = PARTS = "baseline alone", "network alone"
OURS, BOOSTING, MINIROCKET, DTW = (
    "transformer",
    "HistGradientBoosting",
    "MiniRocket",
    "1-NN DTW",
)
TF_IDF = "TF-IDF + logistic regression"
# Number of runs of each: one without random numbers.
SEEDS = {
    "series": {MINIROCKET: 3, DTW: 1, BOOSTING: 1, BASELINE_ALONE: 3, NETWORK: 3, OURS: 3},
    "text": {TF_IDF: 1, BASELINE_ALONE: 1, NETWORK: 3, OURS: 3},
    "tables": {BOOSTING: 3, BASELINE_ALONE: 3, NETWORK: 3, OURS: 3},
}
BY_AEON = (MINIROCKET, DTW)
TABLES = {
    "mpg": "regression",
    "ames": "regression",
    "nyc_taxis": "regression",
    "california_housing": "regression",
    "cps1988": "regression",
    "penguins": "classification",
    "titanic": "classification",
    "adult": "classification",
}
# Whose parts are not measured: the network alone trains for minutes.
LARGE = ("ames", "nyc_taxis", "california_housing", "cps1988", "adult")
FIRST_SPLIT = 7
# Where nothing is held out, the baseline predicts alone.
BY_ITSELF = {"baseline": True, "training": Training(max_steps=1, validation_fraction=None)}
PACKAGES = ("scikit-learn", "torch", "numpy", "pandas")


# Measure.


def load_series(name, model, seed, data):
    """Training and test rows as a model reads them, and their classes."""
    train, test, y_train, y_test = series(data, name)
    if model == BOOSTING:
        longest = max(map(len, train + test))
        train, test = (padded(part, longest).reshape(len(part), -1) for part in (train, test))
    elif len({len(sequence) for sequence in train + test}) == 1:
        train, test = np.stack(train), np.stack(test)
    return train, test, y_train, y_test


def load_text(name, model, seed, data):
    return texts()[:4]


def load_table(name, model, seed, data):
    return load_split(TABLES[name], name, FIRST_SPLIT + seed, data)


LOADS = {"series": load_series, "text": load_text, "tables": load_table}
texts = cache(docstrings)


def sets_of(table):
    if table == "text":
        return [texts()[4]]
    return list(SERIES if table == "series" else TABLES)


def make_model(table, name, model, seed):
    regression = TABLES.get(name) == "regression"
    if model in (OURS, *PARTS):
        kind = TransformerRegressor if regression else TransformerClassifier
        options = {OURS: {}, NETWORK: {"baseline": False}, BASELINE_ALONE: BY_ITSELF}
        return kind(random_state=seed, **options[model])
    if model == TF_IDF:
        return make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(random_state=seed)


def measure(table, name, model, seed, data):
    """Scores on the test rows, and seconds, or what went wrong."""
    X_train, X_test, y_train, y_test = LOADS[table](name, model, seed, data)
    estimator = make_model(table, name, model, seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        # Models that do not converge at their defaults show it in their scores.
        warnings.simplefilter("ignore")
        try:
            start = time.process_time()
            estimator.fit(X_train, y_train)
            fitted = time.process_time()
            if not hasattr(estimator, "classes_"):
                scores = {"rmse": root_mean_squared_error(y_test, estimator.predict(X_test))}
            else:
                probabilities = estimator.predict_proba(X_test)
                labels = estimator.classes_
                scores = {
                    "accuracy": accuracy_score(y_test, labels[probabilities.argmax(axis=1)]),
                    "log_loss": log_loss(y_test, probabilities, labels=labels),
                }
            seconds = {"fit_s": fitted - start, "predict_s": time.process_time() - fitted}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}
    return scores | seconds


def measure_by_aeon(name, model, seed, options):
    if not options.peer_python:
        raise ImportError("no --peer-python")
    command = [options.peer_python, HERE / "_encoders_peers.py", model, name, str(seed)]
    limits = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS")}
    done = subprocess.run(
        [*command, options.data], env=os.environ | limits, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


# Run.


def cells(table, options):
    """Of a table: keys, and what measures them."""
    for name in [name for name in sets_of(table) if name in (options.sets or sets_of(table))]:
        for model, n_seeds in SEEDS[table].items():
            if model not in (options.models or SEEDS[table]):
                continue
            if model in PARTS and name in LARGE:
                continue
            for seed in range(n_seeds):
                if seed in (options.seeds or range(n_seeds)):
                    measured = partial(measure, table, name, model, seed, options.data)
                    if model in BY_AEON:
                        measured = partial(measure_by_aeon, name, model, seed, options)
                    yield (table, name, model, seed), measured


# Report.

TITLES = {
    "series": (
        "Series: accuracy",
        "Entries are accuracies, averaged over as many seeds as the number in brackets says "
        "(one if there is none). The last column is the transformer's accuracy minus that of "
        "the better of MiniRocket and HistGradientBoosting.",
    ),
    "text": (
        "Texts: accuracy and log-loss",
        "Entries are accuracy / log-loss on 2600 test "
        "texts of 8 classes, after training on 3000 "
        "texts.",
    ),
    "tables": (
        "Tables: errors",
        "Entries are root mean squared errors; for classes, shares of wrong predictions and, "
        "in separate rows, log-losses. They are averaged over as many splits as the number "
        "in brackets says. The ratio is the transformer's error divided by that of "
        "HistGradientBoosting.",
    ),
}


def columns_of(table, frame):
    """Models in order, ours last."""
    return [model for model in SEEDS[table] if model in set(frame["model"])]


def means_of(frame, columns, field):
    """Means and counts over seeds, a row for each set in their order."""
    cells = frame.dropna(subset=field).groupby(["set", "model"], sort=False)[field]
    return [
        found.unstack().reindex(index=list(dict.fromkeys(frame["set"])), columns=columns)
        for found in (cells.mean(), cells.count())
    ]


def fixed(value):
    return "–" if np.isnan(value) else f"{value:.3f}"


def signed(value):
    return "–" if np.isnan(value) else f"{value:+.3f}"


def number(value):
    if np.isnan(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def texts_of(means, counts, text):
    return [
        text(mean) + (f" ({count:.0f})" if count > 1 else "")
        for mean, count in zip(means, counts, strict=True)
    ]


def series_section(frame, columns, ours):
    means, counts = means_of(frame, columns, "accuracy")
    differences = means[ours].sub(means[[MINIROCKET, BOOSTING]].max(axis=1), axis=0)
    rows = [
        [
            name,
            *texts_of(means.loc[name], counts.loc[name], fixed),
            *map(signed, differences.loc[name]),
        ]
        for name in means.index
    ]
    lines = [*markdown(["set", *columns, *(f"difference, {c}" for c in ours)], rows), ""]
    peers = [column for column in columns if column.split(",")[0] not in (OURS, *PARTS)]
    rows = []
    for column in ours:
        complete = means[[*peers, column]].dropna()
        ranks = complete.rank(axis=1, ascending=False).mean()
        ranks = [*map(fixed, ranks), signed(differences[column].min())]
        rows.append([column, str(len(complete)), *ranks])
    header = ["mean ranks, with the", "sets", *peers, "transformer", "smallest difference"]
    return [*lines, *markdown(header, rows), ""]


def text_section(frame, columns, ours):
    found = [means_of(frame, columns, field) for field in ("accuracy", "log_loss")]
    rows = []
    for name in dict.fromkeys(frame["set"]):
        parts = [texts_of(m.loc[name], c.loc[name], fixed) for m, c in found]
        rows.append([name, *(" / ".join(pair) for pair in zip(*parts, strict=True))])
    return [*markdown(["set", *columns], rows), ""]


def tables_section(frame, columns, ours):
    frame = frame.assign(wrong=1 - frame["accuracy"])
    parts = [column for column in columns if column.split(",")[0] in PARTS]
    rows = []
    for field, label in (("rmse", ""), ("wrong", ", share"), ("log_loss", ", log-loss")):
        cells = frame.pivot(index=["set", "seed"], columns="model", values=field)
        for name in dict.fromkeys(frame.dropna(subset=field)["set"]):
            row = [name + label]
            for column in parts:
                own = cells.loc[name].get(column, pd.Series(dtype=float)).dropna()
                row += texts_of([own.mean()], [len(own)], number)
            for column in ours:
                both = cells.loc[name, [BOOSTING, column]].dropna()
                theirs, mine = both.mean()
                shown = [number(mine), number(theirs), fixed(mine / theirs)]
                row += [f"{shown[0]} / {shown[1]} ({len(both)})", shown[2]]
            rows.append(row)
    header = [*parts, *(h for c in ours for h in (f"{c} / {BOOSTING}", "ratio"))]
    return [*markdown(["set", *header], rows), ""]


SECTIONS = {"series": series_section, "text": text_section, "tables": tables_section}


def section(table, frame):
    if table != "text":
        order = sets_of(table)
        frame = frame.iloc[np.argsort(frame["set"].map(order.index), kind="stable")]
    columns = columns_of(table, frame)
    ours = [column for column in columns if column.split(",")[0] == OURS]
    title, note = TITLES[table]
    lines = [f"## {title}", "", note, "", *SECTIONS[table](frame, columns, ours)]
    seconds = [means_of(frame, columns, field)[0] for field in ("fit_s", "predict_s")]
    rows = [
        [name, *(f"{number(fit)} / {number(ask)}" for fit, ask in zip(*pair, strict=True))]
        for name, *pair in zip(
            seconds[0].index, *(part.to_numpy() for part in seconds), strict=True
        )
    ]
    lines += ["Processor seconds of the fit / of the predictions.", ""]
    lines += [*markdown(["set", *columns], rows), ""]
    for row in frame.dropna(subset="error").itertuples():
        lines += [f"{row.model}, {row.set}, seed {row.seed}: {row.error}", ""]
    return lines


def report(options):
    frame = results(options.results, KEYS, FIELDS)
    lines = [
        "# Transformers of series, texts and tables",
        "",
        f"{stamp(*PACKAGES, lines=frame)} MiniRocket and 1-NN DTW are of aeon 1.6.",
        "",
        "All models have their default settings. A dash marks what was not measured. "
        "“baseline alone” and “network alone” are the two parts of which the transformer's "
        "prediction is made.",
        "",
    ]
    for table in TITLES:
        own = frame[frame["table"] == table]
        if len(own):
            lines += section(table, own)
    print("\n".join(lines).rstrip())


def parse():
    parser = parser_of(__doc__, "encoders.jsonl", "models", "sets", "seeds")
    parser.add_argument(
        "tables", nargs="+", metavar="TABLE", help=f"{', '.join(SEEDS)}; report"
    )
    parser.add_argument(
        "--peer-python", default=os.environ.get("PEER_PYTHON"), help="a Python that has aeon"
    )
    options = parser.parse_args()
    models = {model for seeds in SEEDS.values() for model in seeds}
    groups = {"ours": [OURS], "parts": PARTS, "peers": models - {OURS, *PARTS}}
    if options.models:
        options.models = [m for name in options.models for m in groups.get(name, [name])]
    if options.seeds:
        options.seeds = [int(seed) for seed in options.seeds]
    known = {*SEEDS, "report", *models, *SERIES, *TABLES}
    refuse_unknown(parser, known, options.tables, options.models, options.sets)
    return options


if __name__ == "__main__":
    options = parse()
    torch.set_num_threads(1)
    for table in options.tables:
        report(options) if table == "report" else run(cells(table, options), KEYS, options)
