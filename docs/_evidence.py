"""Bar charts of the stored results of the benchmarks, drawn as the site is built."""

import sys
from pathlib import Path

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


def table_ranks():
    """Mean ranks of models of tables with a numeric target, and the number of tables."""
    lines = results(BENCHMARKS / "tabular.jsonl", ["task", "set", "split", "model"])
    return _mean_ranks(lines[lines["task"] == "regression"], "error")


def classified_series_ranks():
    """The same of classifiers of series, without the parts of our model alone."""
    lines = results(BENCHMARKS / "encoders.jsonl", ["table", "set", "model", "seed"])
    is_part = lines["model"].isin(["network alone", "baseline alone"])
    lines = lines[(lines["table"] == "series") & ~is_part]
    return _mean_ranks(lines.assign(error=1 - lines["accuracy"]), "error")


def forecast_ranks():
    """The same of forecasters of series that were not used in development."""
    lines = results(BENCHMARKS / "forecasting.jsonl", ["table", "set", "horizon", "model"])
    return _mean_ranks(lines[lines["table"] == "cuts"], "mase")


def _mean_ranks(lines, error):
    """Rank models by their error on each set that all of them were measured on."""
    errors = lines.pivot_table(
        index="set", columns="model", values=error, dropna=False
    ).dropna()
    return errors.rank(axis=1).mean().sort_values(), len(errors)


CHARTS = {
    "tables": ("Predictions for {} tables", table_ranks),
    "series": ("Classification of {} sets of series", classified_series_ranks),
    "forecasts": ("Forecasts of {} sets of series", forecast_ranks),
}


def draw_charts(folder):
    """Draw each chart of mean ranks into a file ``ranks_<name>.svg`` of the folder."""
    import matplotlib.pyplot as plt

    for file, (title, ranks_of_models) in CHARTS.items():
        ranks, n_sets = ranks_of_models()
        names = [OURS.get(name, name) for name in ranks.index]
        colors = ["C0" if name in OURS else "0.7" for name in ranks.index]
        with plt.rc_context(STYLE):
            figure, ax = plt.subplots(figsize=(5.2, 3.1), layout="constrained")
            bars = ax.barh(names, ranks, 0.7, color=colors)
            ax.bar_label(bars, [f"{rank:.1f}" for rank in ranks], padding=4)
            for label, name in zip(ax.get_yticklabels(), ranks.index, strict=True):
                label.set_fontweight("bold" if name in OURS else "normal")
            ax.invert_yaxis()
            ax.tick_params(axis="y", length=0)
            ax.spines[["left", "bottom"]].set_visible(False)
            ax.set(xticks=[], xlabel="mean rank of the error; shorter is better")
            figure.suptitle(title.format(n_sets), x=0.01, ha="left", fontweight="bold")
            figure.savefig(folder / f"ranks_{file}.svg", transparent=True)
            plt.close(figure)
