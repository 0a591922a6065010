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
    "transformer": "TransformerClassifier",
}
_PANELS = ["m3", "m4_hourly", "m4_weekly", "nn3"]


def tables():
    """Mean ranks over the sets, and geometric means of seconds of a fit."""
    found = results(BENCHMARKS / "tabular.jsonl", ["task", "set", "split", "model"])
    found = found[found["task"] == "regression"]
    errors = found.pivot(index=["set", "split"], columns="model", values="error").dropna()
    ranks = errors.groupby(level="set").mean().rank(axis=1).mean()
    return ranks, _seconds(found, "model", ["set", "split"], "fit_s")


def series():
    """The same of the classification of series."""
    found = results(BENCHMARKS / "encoders.jsonl", ["table", "set", "model", "seed"])
    found = found[found["table"] == "series"]
    shares = found.pivot_table(index="set", columns="model", values="accuracy").dropna()
    return shares.rank(axis=1, ascending=False).mean(), _seconds(
        found, "model", ["set"], "fit_s"
    )


def panels():
    """Mean ranks of scaled errors over panels of series, and seconds of a fit and forecast."""
    found = results(BENCHMARKS / "forecasting.jsonl", ["table", "set", "horizon", "model"])
    found = found[found["table"].isin(_PANELS)]
    cells = found.pivot_table(index=["table", "set"], columns="model", values="mase")
    cells = cells.loc[:, cells.notna().all()]
    found = found[found["model"].isin(cells.columns)]
    return cells.rank(axis=1).mean(), _seconds(found, "model", ["table", "set"], "cpu_s")


def _seconds(found, model, cells, column):
    means = found.pivot_table(index=cells, columns=model, values=column)
    return np.exp(np.log(means.clip(lower=1e-3)).mean())


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
        "Regression on tables, 24 sets": tables(),
        "Classification of series, 7 sets": series(),
        "Forecasts of panels: M3, M4 weekly and hourly, NN3": panels(),
    }
    heights = [len(ranks) for ranks, _ in parts.values()]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            3, 2, figsize=(8.4, 1.6 + 0.27 * sum(heights) + 1.5), layout="constrained",
            height_ratios=heights, sharey="row",
        )  # fmt: skip
        for (left, right), (title, (ranks, seconds)) in zip(axes, parts.items(), strict=True):
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
            left.set_title(title, loc="left")
            left.set_xlabel("mean rank, 1 is best")
            right.set(xscale="log", xlabel="seconds of a fit, geometric mean")
        figure.savefig(path, dpi=110)
        plt.close(figure)
