"""Transformer encoders of rows beside gradient boosting, both at their defaults.

    python benchmarks/encoders.py run [--sets A,B] [--splits N] [--data FOLDER] [--results FILE]
    python benchmarks/encoders.py report [--results FILE] [--save FILE]

* digits: scikit-learn's handwritten digits, each a sequence of 8 rows of 8 pixels, for
  `TransformerClassifier`; `HistGradientBoostingClassifier` sees the 64 pixels side by side.
  Random stratified splits with a quarter of the digits as test rows. Expected: the encoder
  makes fewer errors on every split.
* tables: every feature a token. Sets and splits are those of `tabular.py`: numbers alone (mpg
  has one category), numbers and categories with missing cells (titanic, penguins), and many
  rows (california_housing, adult). Expected: errors near those of boosting, below them where
  targets are smooth; fits take longer by one or two orders of magnitude. The defaults of
  learning rate, epochs and dropout, and the embedding of numbers, were chosen by errors on two
  splits, 5 and 6, of mpg, energy, concrete and titanic; the other sets had no part in it.

`run` appends a line for each fit and leaves out those that are there. All sets with two splits
take about ten minutes on an idle core. Progress goes to stderr.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch
from _tabular_data import SPLITS, load_split
from sklearn import __version__ as sklearn_version
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error
from sklearn.model_selection import train_test_split

from sklearn_attention import TransformerClassifier, TransformerRegressor, __version__

HERE = Path(__file__).resolve().parent
DIGITS = "digits, row by row"
TABLES = {
    "mpg": "regression",
    "energy": "regression",
    "concrete": "regression",
    "kin8nm": "regression",
    "california_housing": "regression",
    "penguins": "classification",
    "titanic": "classification",
    "adult": "classification",
}
N_SPLITS = 5


def digits(split):
    """Training and test images, training and test targets."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(
        X.reshape(-1, 8, 8), y, test_size=0.25, random_state=split, stratify=y
    )


def models(name):
    """For each side its estimator, and what it sees of X."""
    if name == DIGITS:
        return {
            "transformer": (TransformerClassifier(), lambda X: X),
            "boosting": (
                HistGradientBoostingClassifier(random_state=0),
                lambda X: X.reshape(len(X), -1),
            ),
        }
    regression = TABLES[name] == "regression"
    ours = TransformerRegressor() if regression else TransformerClassifier()
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    theirs = kind(categorical_features="from_dtype", random_state=0)
    return {"transformer": (ours, lambda X: X), "boosting": (theirs, lambda X: X)}


def measure(name, split, data):
    """A result for each side."""
    if name == DIGITS:
        train_X, test_X, train_y, test_y = digits(split)
    else:
        train_X, test_X, train_y, test_y = load_split(TABLES[name], name, split, data)
    for side, (model, seen) in models(name).items():
        start, clock = time.perf_counter(), time.process_time()
        model.fit(seen(train_X), train_y)
        seconds, of_processor = time.perf_counter() - start, time.process_time() - clock
        predictions = model.predict(seen(test_X))
        if hasattr(model, "classes_"):
            probabilities = model.predict_proba(seen(test_X))
            errors = {
                "error": 1 - accuracy_score(test_y, predictions),
                "log_loss": log_loss(test_y, probabilities, labels=model.classes_),
            }
        else:
            errors = {"error": root_mean_squared_error(test_y, predictions)}
        yield {
            "set": name, "split": split, "model": side, "rows": len(train_y),
            "columns": int(np.prod(np.shape(train_X)[1:])), **errors, "seconds": seconds,
            "processor_seconds": of_processor,
        }  # fmt: skip


def read_results(path):
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def run(options):
    there = {(r["set"], r["split"]) for r in read_results(options.results)}
    names = options.sets.split(",") if options.sets else [DIGITS, *TABLES]
    names = [DIGITS if name == "digits" else name for name in names]
    for name in names:
        of_set = range(N_SPLITS) if name == DIGITS else SPLITS[name]
        for split in list(of_set)[: options.splits]:
            if (name, split) in there:
                continue
            results = list(measure(name, split, options.data))
            with options.results.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(result) + "\n" for result in results)
            for result in results:
                print(result, file=sys.stderr, flush=True)


def report(options):
    results = read_results(options.results)
    where = f"{platform.platform()}, {os.cpu_count()} processors"
    versions = f"sklearn-attention {__version__}, scikit-learn {sklearn_version}"
    lines = [
        "# Encoders of rows",
        "",
        f"{where}, one thread, shared with other work. Python {platform.python_version()}, "
        f"{versions}, torch {torch.__version__}.",
        "",
        "Both sides at their defaults; boosting is `HistGradientBoosting` of scikit-learn. The "
        "ratio is that of the mean errors, below 1 where the transformer's is smaller. Two "
        "splits (5 and 6) of mpg, energy, concrete and titanic were used to choose the "
        "defaults.",
    ]
    regression = [name for name, task in TABLES.items() if task == "regression"]
    classification = [DIGITS, *(name for name in TABLES if name not in regression)]
    for title, names, measured in (
        ("Regression: root mean squared error", regression, "error"),
        ("Classification: share of errors", classification, "error"),
        ("Classification: log-loss", classification, "log_loss"),
    ):
        lines += ["", f"## {title}", "", *table(results, names, measured)]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.save:
        options.save.write_text(text, "utf-8")


def table(results, names, measured):
    """Rows of a table in Markdown, one for each set."""
    yield (
        "| set | rows | columns | splits | transformer | boosting | ratio | better in | "
        "processor seconds of a fit |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in names:
        sides = [
            sorted(
                (r for r in results if (r["set"], r["model"]) == (name, side)),
                key=lambda r: r["split"],
            )
            for side in ("transformer", "boosting")
        ]
        if not sides[0]:
            continue
        ours, theirs = (np.array([r[measured] for r in side]) for side in sides)
        seconds = [np.mean([r["processor_seconds"] for r in side]) for side in sides]
        ratio = ours.mean() / theirs.mean()
        yield (
            f"| {name} | {sides[0][0]['rows']} | {sides[0][0]['columns']} | {len(ours)} "
            f"| {ours.mean():.4g} | {theirs.mean():.4g} | {ratio:.3f} "
            f"| {(ours < theirs).sum()} of {len(ours)} "
            f"| {seconds[0]:.1f} / {seconds[1]:.1f} |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("--sets", help="digits and names of tables, with commas; all of them")
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--results", type=Path, default=HERE / "encoders.jsonl")
    parser.add_argument("--save", type=Path, help="where to write the report")
    options = parser.parse_args()
    unknown = set((options.sets or "digits").split(",")) - {"digits", *TABLES}
    if unknown:
        parser.error(f"unknown sets {sorted(unknown)}: choose digits or {list(TABLES)}")
    (run if options.action == "run" else report)(options)


if __name__ == "__main__":
    main()
