"""Effect of each kind of candidates, and of each way to combine them.

    python benchmarks/forecasting_ablation.py [--sets "A;B"] [--variants "C,D"]
                                              [--folds N] [--again] [--results FILE]
                                              [--data FOLDER]
    python benchmarks/forecasting_ablation.py report [--results FILE]

Sets and units of errors are those of `forecasting.py`; all are measured that the file of
results does not have yet, and a JSON line is appended for each set and variant. `report` prints
a Markdown table of the file: the mean absolute scaled error of `TransformerForecaster` at its
defaults, and of variants as ratios to it, where more than 1 is worse.

Each variant is a fit of its own, without one kind of candidates, without effects of features
taken out, without the learned attention of panels, with windows of one length for ridges and
analogs, with equal weights, or with the best candidate of each series alone. What a set has
not is not left out there. Columns of what has gone since are of the last version that had it.
Of many origins at most N are taken, twelve unless said otherwise, evenly spread.

Expected: errors increase without any kind on some sets; equal weights and the single best
candidate are worse nearly everywhere; attention is better on panels of short series.

A fit for each variant of each set: two hours on one core. Progress goes to stderr.
"""

import argparse
import os
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

# Before NumPy is loaded.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _forecasting_data import TABLES
from _forecasting_models import Ours
from _results import append, results
from forecasting import before

from sklearn_attention.forecasting import _combination, _transformer_forecaster

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("ett", "square")
ALL, EQUAL, BEST = "all", "equal weights", "best alone"
KINDS = {
    "classical": "Classical",
    "ridge": "WindowRidge",
    "analogs": "OwnAnalogs",
    "trees": "Trees",
    "transformer": "TransformerCandidate",
}


def cells(data):
    """The sets by name, and functions that load their tasks."""
    tables = {name: table(data) for name, table in TABLES.items() if name not in LEFT_OUT}
    return {
        (f"M3 {name}" if table == "m3" else f"{name}, {horizon}"): load
        for table, found in tables.items()
        for (name, horizon), load in found.items()
    }


def without(kind):
    """Names of candidates but one, in the place of all."""
    kept = tuple(one for one in _combination.CANDIDATES if one != kind)
    return [(_transformer_forecaster, "CANDIDATES", kept)]


# What is replaced in the package while a variant is fitted, and the class whose candidates, or
# the attribute, a model has to have for it to differ.
VARIANTS = {
    **{f"no {kind}": (without(kind), KINDS[kind]) for kind in KINDS},
    "no effects": ([(_combination, "learn_effects", lambda *_: (None, []))], "effects"),
    "no attention": (
        [(_transformer_forecaster, "_LEAST_CLASSICAL", np.inf)],
        "attention",
    ),
    "one lookback": ([(_combination, "_N_LOOKBACKS", 1)], "WindowRidge"),
    "no stacking": ([(_combination, "_STACKED", 0.0)], "Classical"),
    "no whole years": ([(_combination, "_NEAR", 1)], "Classical"),
}


def parts_of(model):
    """Classes of the candidates with weight, and what else a model has."""
    combined = model.combined_
    used = combined.weights.any(axis=0)
    classes = [type(one).__name__ for one in combined.candidates for _ in one.names]
    return {
        *(name for name, own in zip(classes, used, strict=True) if own),
        *(["effects"] if combined.effects is not None else []),
        *(["attention"] if model.attention_share_ else []),
    }


def reweighed(model, weights):
    """A model with other weights, without attention."""
    model.combined_, model.attention_ = replace(model.combined_, weights=weights), None


def measure(task, n_folds, variants):
    """Mean scaled errors of the variants over folds and series."""
    folds = task.folds[:: -(-len(task.folds) // n_folds)]
    found = {ALL: errors_of(task, folds, [])}
    _, parts = found[ALL]
    for name in variants:
        if name in VARIANTS and VARIANTS[name][1] in parts:
            errors_there = errors_of(task, folds, VARIANTS[name][0])[0]
            found[name] = errors_there, None
        elif name in (EQUAL, BEST):
            found[name] = errors_of(task, folds, [], name)
    return {name: float(np.nanmean(own)) for name, (own, _) in found.items()}


def errors_of(task, folds, replaced, weights=None):
    """Scaled errors of folds, and the parts of all models."""
    errors, parts, ours, scales = [], set(), None, task.scales(task.season)
    with ExitStack() as stack:
        for module, name, value in replaced:
            stack.enter_context(patch.object(module, name, value))
        for past, future, known in folds:
            if task.refit or ours is None:
                ours = Ours(task, "TransformerForecaster").fit(past, before(known, past))
                parts |= parts_of(ours.model)
                if weights == EQUAL:
                    own = ours.model.combined_.weights
                    reweighed(ours.model, np.full_like(own, 1 / own.shape[1]))
                elif weights == BEST:
                    own = ours.model.combined_.weights
                    best = np.zeros_like(own)
                    np.put_along_axis(best, own.argmax(axis=1)[:, None], 1.0, axis=1)
                    reweighed(ours.model, best)
            else:
                ours.update(past, before(known, past))
            errors.append(error(ours.predict(task.horizon, known), future, scales))
    return errors, parts


def error(forecasts, future, scales):
    missed = [np.nanmean(np.abs(forecasts[i] - future[i])) / scales[i] for i in future]
    return np.nanmean(missed)


def run(options):
    known = set(results(options.results, ["set"])["set"])
    names = [*VARIANTS, EQUAL, BEST] if options.variants is None else options.variants
    for label, load in cells(options.data).items():
        chosen = options.sets is None or label in options.sets
        if not chosen or (label in known and not options.again):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = measure(load(), options.folds, names)
        append({"set": label, "errors": errors}, options.results)


def report(options):
    frame = results(options.results, ["set"])
    found = {name for own in frame["errors"] for name in own}
    usual = (*VARIANTS, EQUAL, BEST)
    names = [*filter(found.__contains__, usual), *sorted(found.difference(usual, [ALL]))]
    rows, ratios = [], {name: [] for name in names}
    for _, own in frame.iterrows():
        row = [own["set"], f"{own['errors'][ALL]:.3f}"]
        for name in names:
            ratio = own["errors"].get(name, np.nan) / own["errors"][ALL]
            ratios[name].append(ratio)
            row.append("–" if np.isnan(ratio) else f"{ratio:.3f}")
        rows.append(row)
    means = [np.exp(np.nanmean(np.log(ratios[name]))) for name in names]
    rows.append(["geometric mean", "", *(f"{mean:.3f}" for mean in means)])
    print("# Candidates of forecasts, one kind left out\n")
    print("Measurements: see `forecasting_ablation.py`. MASE at defaults; ratios to it.\n")
    for row in [["set", "MASE", *names], ["---"] * (len(names) + 2), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["run", "report"], default="run")
    parser.add_argument("--sets", type=lambda text: text.split(";"))
    parser.add_argument("--variants", type=lambda text: text.split(","))
    parser.add_argument("--folds", type=int, default=12)
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    parser.add_argument("--results", type=Path, default=HERE / "forecasting_ablation.jsonl")
    beside = HERE.parents[1] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    options = parser.parse_args()
    report(options) if options.what == "report" else run(options)
