"""Recipes of training that make small networks learn faster per second of the processor.

    python benchmarks/learning.py run [--tasks dates,...] [--recipes Muon,...] [--seeds 3]
    python benchmarks/learning.py report > benchmarks/learning.md

Tasks, at the sizes that the estimators have by default:

* language: Tiny Shakespeare by characters, nanoGPT's small network, 500 steps of 12 windows of
  64. The loss, in nats, is that of the last tenth.
* dates: 1000 pairs such as "March 5, 1998" and "1998-03-05" by characters, 320 steps of 64; the
  share of 500 other dates that are right in every character.
* concrete, energy (UCI): TransformerRegressor; the mean squared error in units of the variance.
* vowels, power (UEA): TransformerClassifier of series; log-loss.

For the last four, a third of the official training rows is held out, another one for each seed;
official test rows are never read. "A tenth init" and "zero init" are of the last matrix of
every sublayer. Results are stored in benchmarks/learning.jsonl and not measured again. Seconds
are of the processor, for the fit, on one thread.
"""

import collections
import datetime
import gzip
import time
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
from _results import parser_of, results, run, stamp
from torch import nn

from sklearn_attention import (
    Training,
    TransformerClassifier,
    TransformerLanguageModel,
    TransformerRegressor,
    TransformerSeq2Seq,
)
from sklearn_attention.training import _network
from sklearn_attention.training._network import torch_seed, torch_threads

KEYS = ["task", "recipe", "seed"]
# AdamW at the same rate too: no row is to be better by its rate alone.
MUON = {"training__optimizer": "muon", "learning_rate": 3e-3}
# Parameters of the estimator, and the factor of initial values of the last layers of sublayers.
RECIPES = {
    "AdamW": ({}, 1),
    "AdamW at 3e-3": ({"learning_rate": 3e-3}, 1),
    "Muon": (MUON, 1),
    "Muon, a tenth init": (MUON, 0.1),
    "Muon, zero init": (MUON, 0),
}


def by_recipe(kind, parameters, start):
    """An estimator whose training and whose first weights are those of a recipe."""

    def build(network, shape, seed):
        with torch_seed(seed):
            made = network(**shape)
            for name, value in made.named_parameters():
                if name.endswith(("attention.out.weight", "feedforward.narrow.weight")):
                    nn.init.xavier_uniform_(value, start)
        return made

    class ByRecipe(kind):
        def fit(self, *data, **validation):
            fixed = {"training__optimizer": "adamw", "training__patience": None}
            self.set_params(**fixed | parameters)
            with mock.patch.object(_network, "build_network", build):
                return super().fit(*data, **validation)

    return ByRecipe


def language(recipe, seed, data):
    with gzip.open(data / "text" / "tinyshakespeare.txt.gz", "rt") as file:
        text = file.read()
    model = by_recipe(TransformerLanguageModel, *recipe)(
        baseline=False, batch_size=12, training=Training(max_steps=500), random_state=seed,
        device="cpu",
    )  # fmt: skip
    cut = int(0.9 * len(text))
    start = time.process_time()
    model.fit([text[:cut]], X_val=[text[cut:]])
    seconds = time.process_time() - start
    return min(model.training_history_["validation_loss"]), seconds


def dates(recipe, seed, _):
    rng = np.random.default_rng(seed)
    first = datetime.date(1900, 1, 1)
    days = [first + datetime.timedelta(days=int(d)) for d in rng.permutation(47_000)[:1500]]
    X = [f"{day:%B} {day.day}, {day.year}" for day in days]
    y = [day.isoformat() for day in days]
    model = by_recipe(TransformerSeq2Seq, *recipe)(
        "characters", max_epochs=20, random_state=seed, device="cpu"
    )
    seconds = fit(model, X[:1000], y[:1000])
    found = model.predict(X[1000:])
    return np.mean([a == b for a, b in zip(found, y[1000:], strict=True)]), seconds


def table(name):
    def measure(recipe, seed, data):
        frame = pd.read_csv(data / "uci" / f"{name}.csv.gz")
        official = np.load(data / "uci" / f"{name}_splits.npz")["test_00"]
        rows = np.setdiff1d(np.arange(len(frame)), official)
        learned, held = halves(rows, seed)
        X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
        model = by_recipe(TransformerRegressor, *recipe)(
            baseline=False, random_state=seed, device="cpu"
        )
        seconds = fit(model, X.iloc[learned], y.iloc[learned])
        wrong = y.iloc[held] - model.predict(X.iloc[held])
        return np.mean(np.square(wrong)) / np.var(y.iloc[held]), seconds

    return measure


def series(name):
    def measure(recipe, seed, data):
        file = np.load(data / "series" / f"{name}.npz")
        ends = np.cumsum(file["length_train"])[:-1]
        X, y = np.split(file["X_train"], ends), file["y_train"]
        learned, held = halves(np.arange(len(X)), seed)
        model = by_recipe(TransformerClassifier, *recipe)(
            baseline=False, random_state=seed, device="cpu"
        )
        seconds = fit(model, [X[i] for i in learned], y[learned])
        proba = model.predict_proba([X[i] for i in held])
        columns = np.searchsorted(model.classes_, y[held])
        return -np.mean(np.log(proba[np.arange(len(held)), columns])), seconds

    return measure


def halves(rows, seed):
    """Two thirds of the rows, and the others."""
    rows = np.random.default_rng(seed).permutation(rows)
    return rows[len(rows) // 3 :], rows[: len(rows) // 3]


def fit(model, *data):
    """Seconds of the processor."""
    start = time.process_time()
    model.fit(*data)
    return time.process_time() - start


TASKS = {
    "language": (language, "loss"),
    "dates": (dates, "share right"),
    "concrete": (table("concrete"), "error"),
    "energy": (table("energy"), "error"),
    "vowels": (series("JapaneseVowels"), "log-loss"),
    "power": (series("ItalyPowerDemand"), "log-loss"),
}


def cells(options):
    for seed in range(options.seeds):
        for task in options.tasks or TASKS:
            for name in options.recipes or RECIPES:
                yield (task, name, seed), partial(measure, task, name, seed, options.data)


def measure(task, name, seed, data):
    with torch_threads(1):
        value, seconds = TASKS[task][0](RECIPES[name], seed, data)
    return {"value": float(value), "seconds": seconds}


def report(options):
    frame, found = results(options.results, KEYS), collections.defaultdict(list)
    for line in frame.itertuples():
        found[line.task, line.recipe].append((line.value, line.seconds))
    print("# Recipes of training for small networks\n")
    print(
        f"{stamp('torch', lines=frame)} Entries are means ± standard deviations over as "
        "many seeds as the number in brackets says, and processor seconds of a fit."
    )
    for task, (_, unit) in TASKS.items():
        if not any(key[0] == task for key in found):
            continue
        print(f"\n## {task}\n\n| recipe | {unit} | seconds |\n| --- | --- | --- |")
        for name in RECIPES:
            if (task, name) in found:
                values, seconds = np.array(found[task, name]).T
                spread = f" ± {values.std(ddof=1):.4f}" if len(values) > 1 else ""
                print(
                    f"| {name} | {values.mean():.4f}{spread} ({len(values)}) "
                    f"| {seconds.mean():.1f} |"
                )


if __name__ == "__main__":
    parser = parser_of(__doc__, "learning.jsonl", "tasks", "recipes")
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    run(cells(options), KEYS, options) if options.command == "run" else report(options)
