"""Forecasters without any tuning beside peers: errors, intervals and seconds.

    python benchmarks/forecasting.py TABLE... [--models A,B] [--sets A,B] [--horizons N,M]
                                     [--again] [--results FILE] [--data FOLDER]
    python benchmarks/forecasting.py report [--results FILE]

Each TABLE measures every set, horizon and model that the file of results does not have yet, and
appends a JSON line for each, so that an interrupted run goes on where it stopped; with
several lines for the same, the last one counts. `--models` takes names, "peers" or "ours".
`report` prints Markdown tables of the file alone.

* single: six series, five folds of one horizon at the end, with a fit for each. Expected: no
  model leads everywhere.
* nn3, m3, m4_weekly, m4_hourly: all series of competitions, official horizons.
* national_illness: seven weekly columns, 24 weeks ahead from every eighth week of the last
  fifth. Models are fitted once, to the rows before it, and then updated.
* weather: series with important features, which are known for the forecast steps too:
  half-hourly electric load (temperature, holidays), hourly rentals of bikes (weather, working
  days), daily riders of a station (weather, home games). Models are fitted once to a year,
  eight months and fourteen years; origins are every eighth, third and fifteenth day after them.
  Load is also forecast from four origins, with a fit to the year before each, and daily
  births (holidays) from eight origins, with a fit to the eight years before each.
  Expected: trees on features, calendar and lags of whole seasons lead.
* panels: seven panels on which no setting was chosen, of 20 to 125 yearly, quarterly, monthly
  and daily series, two of them counts; the last steps of each.
* cuts: eighteen sets of series on which nothing was chosen either, 5-minutely to yearly, eight
  cuts of most with a fit at each; features of two are told to LightGBM and ours.
* alone: the transformer without other candidates beside the default: two competitions, two
  panels, and seven hourly columns of a transformer station (ETTh1), which are learned from once
  and forecast a day ahead on seven days. Expected: without features the default leads.
* speed: 100, 1000 and 5000 generated monthly series of ten years, a year ahead. Each cell has
  a process of its own, which first forecasts fifty series, so that seconds and megabytes are
  without those that loading and compiling libraries take. Expected: ours and LightGBM learn
  from all series at once, and take a fraction of the seconds of AutoETS.

Errors are mean absolute errors scaled by that of the seasonal naive forecast on the first past
(MASE), and symmetric percentages (sMAPE, to 200). Of intervals of 90 % there are the coverage
and the mean scaled interval score (MSIS, with the scale of MASE). Seconds are of the
processor, in one thread: of fits and forecasts, over all folds; additional seconds for
intervals are reported separately.

Models whose library is missing (dependency group `bench`) are left out with a message.
The rentals of bikes are in the file `Bikeshare.csv` of the package ISLP, which is in no group:
copy it to the data folder, or install the package.
All of it takes about an hour of a processor.
"""

import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from _forecasting_data import TABLES, many_series
from _forecasting_models import COVERAGE, MODELS, OURS, VARIANTS
from _results import (
    alone,
    markdown,
    parser_of,
    peak_megabytes,
    refuse_unknown,
    results,
    run,
    stamp,
)
from threadpoolctl import threadpool_limits

KEYS = ["table", "set", "horizon", "model"]
PACKAGES = ("statsforecast", "lightgbm", "torch", "numpy", "pandas")

PANEL_PEERS = ("seasonal naive", "Naive2", "AutoTheta", "AutoETS", "LightGBM")
PEERS = {
    "single": ("seasonal naive", "AutoTheta", "AutoETS", "MSTL", "AutoARIMA", "LightGBM"),
    "nn3": PANEL_PEERS,
    "national_illness": ("seasonal naive", "AutoTheta", "AutoETS", "MSTL", "LightGBM"),
    "m4_hourly": PANEL_PEERS,
    "m4_weekly": PANEL_PEERS,
    "m3": PANEL_PEERS,
    "weather": ("seasonal naive", "LightGBM", "LightGBM on steps"),
    "panels": ("seasonal naive", "AutoTheta", "AutoETS", "LightGBM"),
    "cuts": ("seasonal naive", "AutoTheta", "AutoETS", "MSTL", "LightGBM"),
    "alone": ("LightGBM",),
    "speed": ("AutoETS", "LightGBM"),
}
# Three minutes or more, up to an hour.
LEFT_OUT = [
    ("nyc_taxi_counts", "AutoETS"), ("taylor_elec", "AutoETS"), ("m4_hourly", "AutoETS"),
    ("national_illness", "AutoETS"), ("m4_weekly", "AutoTheta"),
]  # fmt: skip
# Errors as printed by their authors, beside ours in the order of the rows of a table.
# sMAPE / MASE; M3 by group and for all.
PUBLISHED = {
    "m3": {
        "Theta": ("16.97 / 2.81", "8.96 / 1.09", "13.89 / 0.86", "", "12.76 / 1.39"),
        "ForecastPro": ("17.27 / 3.03", "9.82 / 1.20", "13.90 / 0.85", "", "13.06 / 1.47"),
    },
    "m4_hourly": {
        "ES-RNN, the winner": ("9.328 / 0.893",),
        "PatchTST": ("14.3 / 1.40",),
        "Chronos-2": ("8.47 / 0.788",),
        "TiRex": ("7.85 / 0.722",),
    },
    "m4_weekly": {
        "AutoARIMA": ("8.99 / 2.36",),
        "PatchTST": ("6.94 / 2.34",),
        "Chronos-2": ("5.97 / 2.026",),
        "TiRex": ("6.01 / 1.990",),
    },
}


# Measure.


class Watch:
    """Process seconds of each part."""

    def __init__(self):
        self.seconds = {}

    def __call__(self, part, function, *arguments):
        start = time.process_time()
        result = function(*arguments)
        taken = time.process_time() - start
        self.seconds[part] = self.seconds.get(part, 0.0) + taken
        return result


def measure_folds(task, name):
    """Scores of every fold and series, averaged, and seconds."""
    watch, rows, models = Watch(), [], []
    scales, horizon = task.scales(task.season), task.horizon
    for past, future, known in task.folds:
        if task.refit or not models:
            models.append(MODELS[name](task))
            observe = models[-1].fit
        else:
            observe = models[-1].update
        model = models[-1]
        watch("cpu_s", observe, past, before(known, past))
        forecasts = watch("cpu_s", model.predict, horizon, known)
        ends = watch("interval_s", model.predict_interval, horizon, known)
        rows += [scores(future[own], forecasts[own], ends[own], scales[own]) for own in future]
    means = pd.DataFrame(rows).mean().to_dict()
    n_failed = sum(getattr(model, "n_failed", 0) for model in models)
    sizes = {"n_folds": len(task.folds), "n_series": len(future), "n_failed": n_failed}
    return sizes | means | watch.seconds


def before(known, past):
    """Features up to the origin, the only ones that an update may use."""
    return None if known is None else known.iloc[: len(next(iter(past.values())))]


def scores(actual, forecast, ends, scale):
    seen = ~np.isnan(actual)
    if not seen.any():
        return {}
    actual, forecast, ends = actual[seen], forecast[seen], ends[seen]
    if not np.all(np.isfinite(forecast)):
        raise ValueError("forecasts are not finite")
    missed = np.abs(actual - forecast)
    sizes = np.maximum(np.abs(actual) + np.abs(forecast), 1e-9)
    covered, loss = interval_scores(actual, ends[:, 0], ends[:, 1])
    return {
        "mase": missed.mean() / scale,
        "smape": np.mean(200 * missed / sizes),
        "mae": missed.mean(),
        "mse": np.mean(missed**2),
        "coverage90": covered.mean(),
        "msis": loss.mean() / scale,
    }


def interval_scores(actual, lower, upper):
    """Coverage indicators, and interval scores: width plus penalties of misses, (n,) each."""
    below, above = np.maximum(lower - actual, 0), np.maximum(actual - upper, 0)
    loss = upper - lower + 2 / (1 - COVERAGE) * (below + above)
    return (lower <= actual) & (actual <= upper), loss


# Run.


def models_of(table):
    """Peers first, then ours."""
    return [*PEERS[table], *OURS, *VARIANTS.get(table, ())]


def measure(load, model):
    with warnings.catch_warnings(), threadpool_limits(1):
        # Models say what they leave out, or do not converge; their scores show it.
        warnings.simplefilter("ignore")
        try:
            found = measure_folds(load(), model)
        except (ImportError, FileNotFoundError):
            raise
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {name: float(value) for name, value in found.items()}


def measure_memory(load, model):
    """As `measure`, and by how many megabytes the memory of this process grows."""
    measure(partial(many_series, 50), model)
    before = peak_megabytes()
    scores = measure(load, model)
    return scores | {"megabytes": round(peak_megabytes() - before)}


def cells(table, options):
    """Of a table: keys, and what measures them."""
    for (name, horizon), load in TABLES[table](options.data).items():
        if name in (options.sets or [name]) and horizon in (options.horizons or [horizon]):
            for model in models_of(table):
                if model in (options.models or [model]) and (name, model) not in LEFT_OUT:
                    measured = partial(alone, measure_memory) if table == "speed" else measure
                    yield (table, name, horizon, model), partial(measured, load, model)


# Report.

TITLES = {
    "single": (
        "Single series",
        ("mase",),
        "Errors are the MASE, averaged over five folds. AutoTheta and AutoETS use only the "
        "longest season (for sunspots, one year). MSTL removes all seasons, and AutoETS "
        "forecasts the remainder. AutoARIMA models seasons of up to 24 steps itself; MSTL "
        "removes longer ones first. A dash marks a model that needs more than three minutes.",
    ),
    "nn3": (
        "NN3",
        ("smape", "mase"),
        "Errors are sMAPE / MASE, averaged over 111 monthly series.",
    ),
    "national_illness": (
        "National illness",
        ("mase", "smape"),
        "Errors are MASE / sMAPE, averaged over 22 forecast origins. LightGBM and our "
        "forecasters are fitted once and then updated with new values; the other models are "
        "fitted again at every origin, and their seconds contain all these fits.",
    ),
    "m4_hourly": (
        "M4 hourly",
        ("smape", "mase"),
        "Errors are sMAPE / MASE, averaged over all 414 series. LightGBM is given features "
        "of the hour in the day and in the week.",
    ),
    "m4_weekly": (
        "M4 weekly",
        ("smape", "mase"),
        "Errors are sMAPE / MASE, averaged over all 359 series. Of the peers, only LightGBM "
        "is given the season of one year.",
    ),
    "m3": ("M3", ("smape", "mase"), "Errors are sMAPE / MASE, averaged over all 3003 series."),
    "weather": (
        "Weather",
        ("mae", "mase"),
        "Errors are mean absolute error / MASE. The seasonal naive forecast repeats the last "
        "week. Rows with “anew” have few forecast origins and a new fit at each of them. "
        "“LightGBM on steps” is LightGBM on the features, the calendar and values one or "
        "more seasons ago. “without network and trees” is TransformerForecaster without its "
        "transformer and without its boosted trees.",
    ),
    "panels": (
        "Panels that were not used in development",
        ("smape", "mase"),
        "Errors are sMAPE / MASE, averaged over all series of a panel.",
    ),
    "cuts": (
        "Single series that were not used in development",
        ("mase",),
        "Errors are the MASE, averaged over the series of a set and the dates at which each "
        "series was cut. LightGBM and our forecasters are given the holidays for births, and "
        "the working days and temperatures for demand.",
    ),
    "alone": (
        "The transformer alone",
        ("smape", "mase"),
        "Errors are sMAPE / MASE. By default, TransformerForecaster uses its transformer "
        "only if there are features, and these series have none. “transformer alone” is "
        "TransformerForecaster with `candidates=None`.",
    ),
    "speed": (
        "Seconds and memory of large panels",
        ("mase",),
        "Errors are the MASE on generated monthly series of ten years. Seconds and megabytes "
        "do not include loading and compiling libraries.",
    ),
}


def with_all(frame):
    """Rows of M3, and those of all its series, where every group was measured."""
    rows = []
    for model, own in frame.groupby("model", sort=False):
        if len(own) == 4 and own["error"].isna().all():
            weights = own["n_series"] / own["n_series"].sum()
            fields = own.select_dtypes("number").columns.drop("horizon")
            means = own[fields].mul(weights, axis=0).sum()
            totals = own[["cpu_s", "interval_s", "n_series", "n_failed"]].sum()
            names = {"table": "m3", "set": "all", "horizon": "", "model": model}
            rows.append({**means, **totals, **names, "error": np.nan})
    return pd.concat([frame, pd.DataFrame(rows)]) if rows else frame


def number(value):
    if np.isnan(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def grid(table, frame, text, best=None, published=None):
    """Lines of a table: sets and horizons, a `text` of every model's cell, published ones."""
    models = [model for model in models_of(table) if model in set(frame["model"])]
    rows, published = [], published or {}
    for (name, horizon), of_set in frame.groupby(["set", "horizon"], sort=False):
        of_set = of_set.set_index("model").reindex(models)
        others = [cells[name, horizon] for cells in published.values()]
        texts = [cell_text(of_set.loc[model], text) for model in models] + others
        if best:
            first = [float(cell.split()[0]) if cell else np.nan for cell in others]
            values = [*of_set[best], *first]
            texts = [
                f"**{cell}**" if value == np.nanmin(values) else cell
                for cell, value in zip(texts, values, strict=True)
            ]
        rows.append([name, str(horizon), *texts])
    headings = [f"published: {name}" for name in published]
    return markdown(["set", "horizon", *models, *headings], rows)


def cell_text(row, text):
    if pd.isna(row["table"]):
        return "–"
    return "failed" if isinstance(row["error"], str) else text(row)


def numbers(*fields):
    return lambda row: " / ".join(number(row[field]) for field in fields)


def seconds(row):
    shown = [row["cpu_s"], row["interval_s"]]
    return " / ".join("< 0.01" if value < 0.01 else f"{value:.3g}" for value in shown)


def section(table, frame, data):
    title, fields, note = TITLES[table]
    cells = list(TABLES[table](data))
    places = [cells.index(cell) for cell in zip(frame["set"], frame["horizon"], strict=True)]
    frame = frame.iloc[np.argsort(places, kind="stable")]
    if table == "m3":
        frame, cells = with_all(frame), [*cells, ("all", "")]
    published = {
        name: dict(zip(cells, column, strict=True))
        for name, column in PUBLISHED.get(table, {}).items()
    }
    errors = grid(table, frame, numbers(*fields), fields[0], published)
    lines = [f"## {title}", "", note, "", *errors, ""]
    frame = frame.assign(coverage=(frame["coverage90"] * 100).round(1))
    lines += ["90 % intervals: coverage in % / MSIS.", ""]
    lines += [*grid(table, frame, numbers("coverage", "msis"), "msis"), ""]
    lines += [
        "Processor seconds for fits and forecasts / additional seconds for intervals.",
        "",
    ]
    lines += [*grid(table, frame, seconds), ""]
    if table == "speed":
        lines += ["Megabytes of memory beyond those of the libraries.", ""]
        lines += [*grid(table, frame, numbers("megabytes"), "megabytes"), ""]
    fallen = frame[frame.get("n_failed", 0) > 0]
    for row in fallen[fallen["set"] != "all"].itertuples():
        lines += [
            f"{row.model} failed on {row.n_failed:.0f} of {row.n_series * row.n_folds:.0f} "
            f"series of {row.set}, which it forecasts by their last value.",
            "",
        ]
    for row in frame.dropna(subset="error").itertuples():
        lines += [f"{row.model}, {row.set}, {row.horizon}: {row.error}", ""]
    return lines


def report(options):
    frame = results(options.results, KEYS)
    lines = [
        "# Forecasters without tuning",
        "",
        stamp(*PACKAGES, lines=frame),
        "",
        "A dash marks what was not measured. Columns headed “published” repeat the figures "
        "of the models' authors. Bold marks the best value of a row, measured or published: "
        "the smallest error (the first of two numbers) or the smallest MSIS. Two cells were "
        "measured at a time, which makes seconds up to one half longer than on an idle "
        "machine.",
        "",
    ]
    for table in TITLES:
        own = frame[frame["table"] == table]
        if len(own):
            lines += section(table, own, options.data)
    print("\n".join(lines).rstrip())


def parse():
    parser = parser_of(__doc__, "forecasting.jsonl", "models", "sets", "horizons")
    parser.add_argument(
        "tables", nargs="+", metavar="TABLE", help=f"{', '.join(PEERS)}; report"
    )
    options = parser.parse_args()
    own = (*OURS, *(name for names in VARIANTS.values() for name in names))
    groups = {"ours": own, "peers": [model for model in MODELS if model not in own]}
    if options.models:
        options.models = [m for name in options.models for m in groups.get(name, [name])]
    if options.horizons:
        options.horizons = [int(horizon) for horizon in options.horizons]
    refuse_unknown(parser, {*MODELS, *PEERS, "report"}, options.models, options.tables)
    return options


if __name__ == "__main__":
    options = parse()
    for table in options.tables:
        report(options) if table == "report" else run(cells(table, options), KEYS, options)
