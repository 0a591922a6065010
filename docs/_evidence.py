"""Pictures of the stored results of the benchmarks, drawn as the site is built."""

import sys
from pathlib import Path

import numpy as np

from sklearn_attention.inspection import STYLE

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from _results import results  # noqa: E402

OURS = {
    "KernelAttention": "KernelAttentionRegressor",
    "TransformerForecaster": "TransformerForecaster",
    "KernelForecaster": "KernelForecaster",
    "transformer": "TransformerClassifier",
}


def tables():
    """Mean ranks of models, geometric means of their seconds, and the number of sets.

    Sets are those that all models were measured on.
    """
    lines = results(BENCHMARKS / "tabular.jsonl", ["task", "set", "split", "model"])
    return _ranks_and_seconds(lines[lines["task"] == "regression"], "error", "fit_s")


def series():
    """The same of the classification of series, without the parts of our model alone."""
    lines = results(BENCHMARKS / "encoders.jsonl", ["table", "set", "model", "seed"])
    is_part = lines["model"].isin(["network alone", "baseline alone"])
    lines = lines[(lines["table"] == "series") & ~is_part]
    lines = lines.assign(error=1 - lines["accuracy"])
    return _ranks_and_seconds(lines, "error", "fit_s")


def forecasts():
    """The same of scaled errors of forecasts, of series that were not used in development."""
    lines = results(BENCHMARKS / "forecasting.jsonl", ["table", "set", "horizon", "model"])
    return _ranks_and_seconds(lines[lines["table"] == "cuts"], "mase", "cpu_s")


def _ranks_and_seconds(lines, error, seconds):
    errors, seconds = (
        lines.pivot_table(index="set", columns="model", values=field, dropna=False)
        for field in (error, seconds)
    )
    errors = errors.dropna()
    seconds = seconds.loc[errors.index].clip(lower=1e-3)
    return errors.rank(axis=1).mean(), np.exp(np.log(seconds).mean()), len(errors)


def draw(path):
    """Draw mean ranks and seconds of all three.

    Parameters
    ----------
    path : Path
        Of the picture.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = {
        "Regression on tables, {} sets": tables(),
        "Classification of series, {} sets": series(),
        "Forecasts, {} sets of series that were not used in development": forecasts(),
    }
    heights = [len(ranks) for ranks, *_ in parts.values()]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, 2, figsize=(8.4, 1.6 + 0.27 * sum(heights) + 1.5), layout="constrained",
            height_ratios=heights, sharey="row",
        )  # fmt: skip
        for (left, right), (title, part) in zip(axes, parts.items(), strict=True):
            ranks, seconds, n_sets = part
            ranks = ranks.sort_values(ascending=False)
            names = [OURS.get(name, name) for name in ranks.index]
            colors = ["C0" if name in OURS else "0.6" for name in ranks.index]
            for ax, values in ((left, ranks), (right, seconds[ranks.index])):
                ax.scatter(values, range(len(ranks)), c=colors, s=46, zorder=2)
                ax.hlines(range(len(ranks)), *ax.get_xlim(), color="0.92", lw=1, zorder=0)
                ax.tick_params(axis="y", length=0)
                ax.spines["left"].set_visible(False)
            left.set_yticks(range(len(ranks)), names)
            left.set_ylim(-0.6, len(ranks) - 0.4)
            for label, name in zip(left.get_yticklabels(), ranks.index, strict=True):
                label.set_fontweight("bold" if name in OURS else "normal")
            left.set_title(title.format(n_sets), loc="left")
            left.set_xlabel("mean rank, 1 is best")
            right.set(xscale="log", xlabel="seconds of a fit, geometric mean")
        figure.savefig(path, dpi=110)
        plt.close(figure)
