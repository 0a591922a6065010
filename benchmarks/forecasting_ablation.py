"""Effect of each kind of candidates, and of each way to combine them.

    python benchmarks/forecasting_ablation.py [--sets A,B] [--again] [--results FILE]
                                              [--data FOLDER]
    python benchmarks/forecasting_ablation.py report [--results FILE]

Sets and units of errors are those of `forecasting.py`; all are measured that the file of
results does not have yet, and a JSON line is appended for each. `report` prints a Markdown
table of the file: the mean absolute scaled error of `TransformerForecaster` at its defaults,
and of variants as ratios to it, where more than 1 is worse.

Variants omit one kind of candidates, named by its class, with new weights of the others by
their held-out forecasts; give all candidates equal weights; take only the best candidate of
each series; or omit the learned attention of panels. Candidates, effects of features and
attention are fitted once for all variants; without `Classical` there is no attention. Weights
are the mean share of each kind in the forecasts. Of many origins twelve, evenly spread, are
taken.

Expected: errors increase without any kind on some sets; equal weights and the single best
candidate are worse nearly everywhere; attention is better on panels of short series.

Little more than a fit of each set: ten minutes on one core. Progress goes to stderr.
"""

import argparse
import os
import warnings
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

from sklearn_attention.forecasting import _combination

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("ett", "square")
MOST_FOLDS = 12
ALL, NO_ATTENTION, EQUAL, BEST = "all", "no attention", "equal weights", "best alone"


def cells(data):
    """The sets by name, and functions that load their tasks."""
    tables = {name: table(data) for name, table in TABLES.items() if name not in LEFT_OUT}
    return {
        (table, name, horizon): load
        for table, found in tables.items()
        for (name, horizon), load in found.items()
    }


class Variants:
    """A fitted model, and what it is with other weights."""

    def __init__(self, task, past, known):
        calls = []

        def recorded(forecasts, training, *others, **options):
            found = choose(forecasts, training, *others, **options)
            calls.append((found, (forecasts, training, *others), options))
            return found

        choose = _combination.choose_weights
        self.ours = Ours(task, "TransformerForecaster")
        with patch.object(_combination, "choose_weights", recorded):
            self.ours.fit(past, before(known, past))
        self.model = self.ours.model
        self.whole = self.model.combined_, self.model.attention_
        # A model with and one without logarithms may have been fitted before one was chosen.
        own = [call for call in calls if call[0][0] is self.whole[0].weights] or calls[-1:]
        _, (self.every, *self.others), self.options = own[-1]
        self.choose = choose
        self.changed = {ALL: self.whole, **dict(self._changes())}

    @property
    def shares(self):
        """Mean weight of each kind."""
        weights = self.whole[0].weights
        means = weights.mean(axis=(0, *range(2, weights.ndim)))
        return {kind: float(means[self.kinds == kind].sum()) for kind in np.unique(self.kinds)}

    def _changes(self):
        combined, attention = self.whole
        self.kinds = np.array(
            [type(one).__name__ for one in combined.candidates for _ in one.names]
        )
        weights = combined.weights
        if attention is not None and attention.share:
            yield NO_ATTENTION, (combined, None)
        equal = np.full_like(weights, 1 / len(self.kinds))
        yield EQUAL, (replace(combined, weights=equal), None)
        best = np.zeros_like(weights)
        np.put_along_axis(best, weights.argmax(axis=1)[:, None], 1.0, axis=1)
        yield BEST, (replace(combined, weights=best), None)
        for kind in np.unique(self.kinds):
            others = np.flatnonzero(self.kinds != kind)
            if len(others) and weights[:, self.kinds == kind].any():
                own = attention if kind != "Classical" else None
                yield f"no {kind}", (self._weighed(others), own)

    def _weighed(self, columns):
        """Combined forecasts of some candidates."""
        combined, _ = self.whole
        found, usual, _ = self.choose(self.every[:, columns], *self.others, **self.options)
        weights, of_others = np.zeros_like(combined.weights), np.zeros_like(combined.usual)
        weights[:, columns], of_others[columns] = found, usual
        return replace(combined, weights=weights, usual=of_others)

    def forecasts(self, horizon, known):
        """Of each variant."""
        for name, (combined, attention) in self.changed.items():
            self.model.combined_, self.model.attention_ = combined, attention
            yield name, self.ours.predict(horizon, known)
        self.model.combined_, self.model.attention_ = self.whole


def measure(task):
    """Mean scaled errors of the variants over folds and series, and weights of kinds."""
    errors, shares, variants = {}, [], None
    scales = task.scales(task.season)
    folds = task.folds[:: -(-len(task.folds) // MOST_FOLDS)]
    for past, future, known in folds:
        if task.refit or variants is None:
            variants = Variants(task, past, known)
            shares.append(variants.shares)
        else:
            variants.ours.update(past, before(known, past))
        own = variants.forecasts(task.horizon, known)
        every = {name: error(found, future, scales) for name, found in own}
        # In folds where a kind has no weight nothing changes without it.
        for name in {*errors, *every}:
            errors.setdefault(name, list(errors.get(ALL, [])))
        for name, found in errors.items():
            found.append(every.get(name, every[ALL]))
    kinds = sorted({kind for one in shares for kind in one})
    weights = {kind: np.mean([one.get(kind, 0.0) for one in shares]) for kind in kinds}
    return {name: float(np.nanmean(found)) for name, found in errors.items()}, weights


def error(forecasts, future, scales):
    missed = [np.nanmean(np.abs(forecasts[i] - future[i])) / scales[i] for i in future]
    return np.nanmean(missed)


def run(options):
    known = results(options.results, ["set"])
    for (table, name, horizon), load in cells(options.data).items():
        label = f"{name}, {horizon}" if table != "m3" else f"M3 {name}"
        chosen = options.sets is None or name in options.sets
        if not chosen or (label in set(known["set"]) and not options.again):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors, weights = measure(load())
        append({"set": label, "errors": errors, "weights": weights}, options.results)


def report(options):
    frame = results(options.results, ["set"])
    found = [name for own in frame["errors"] for name in own]
    kinds = sorted({name for own in frame["weights"] for name in own})
    names = [NO_ATTENTION, EQUAL, BEST, *(f"no {kind}" for kind in kinds)]
    names = [name for name in names if name in found]
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
    table(["set", "MASE", *names], rows)
    print("\nMean weights of kinds, in %.\n")
    rows = [
        [own["set"], *(f"{100 * own['weights'].get(kind, 0):.0f}" for kind in kinds)]
        for _, own in frame.iterrows()
    ]
    table(["set", *kinds], rows)


def table(header, rows):
    for row in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["run", "report"], default="run")
    parser.add_argument("--sets", type=lambda text: text.split(","))
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    parser.add_argument("--results", type=Path, default=HERE / "forecasting_ablation.jsonl")
    beside = HERE.parents[1] / "shared" / "data"
    folder = os.environ.get("SKLEARN_ATTENTION_DATA", beside)
    parser.add_argument("--data", type=Path, default=folder)
    options = parser.parse_args()
    report(options) if options.what == "report" else run(options)
