"""Each figure of the first pages is that of a table of the benchmarks."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import sklearn_attention

ROOT = Path(sklearn_attention.__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="benchmarks do not come with a package"
)


def page(name):
    return (ROOT / name).read_text("utf-8")


def table_of(benchmark, section, skip=0):
    """Names of columns, and rows by their first cell, of a table of a benchmark."""
    text = page(f"benchmarks/{benchmark}").partition(f"# {section}\n")[2].partition("\n## ")[0]
    table = [part for part in text.split("\n\n") if part.startswith("|")][skip]
    header, _, *rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    return header, {row[0]: row for row in rows}


def numbers_in(cells):
    """The first number in each cell."""
    return [float(re.search(r"[\d.]+", cell)[0]) for cell in cells]


def rounded(number, n_digits=1):
    """A figure as pages write it; halves go up."""
    return f"{number + 1e-9:.{n_digits}f}"


def ranks_of_tables(section):
    """The number of sets, and mean ranks of models by their names, the best first."""
    header, rows = table_of("tabular.md", section)
    rank, sets = (header.index(column) for column in ("mean rank of errors", "sets ranked"))
    (n_sets,) = {row[sets] for row in rows.values()}
    ranks = {name: float(row[rank]) for name, row in rows.items()}
    return n_sets, {name: ranks[name] for name in sorted(ranks, key=ranks.get)}


def listed(figures):
    """Peers with their figures, as in a cell of a table of results."""
    return ", ".join(f"{name} {figure}" for name, figure in figures.items())


def row_of_tables(words, section, estimator):
    n_sets, ranks = ranks_of_tables(section)
    ours = rounded(ranks.pop("KernelAttention"))
    peers = listed({name: rounded(rank) for name, rank in ranks.items()})
    measure = f"mean rank of {len(ranks) + 1} models"
    return f"| {n_sets} {words} tables | {measure} | `{estimator}` **{ours}** | {peers} |"


def row_of_bandwidths():
    _, rows = table_of("smoothing_speed.md", "Bandwidths by leave-one-out")
    ours, theirs = numbers_in(rows["5000"][2:4])
    return (
        "| choosing a bandwidth by leave-one-out, 5000 rows | seconds to find the same one | "
        f"`NadarayaWatsonRegressor` **{rounded(ours, 2)}** | statsmodels {rounded(theirs)} |"
    )


def row_of_m3():
    text = page("benchmarks/forecasting.md")
    n_series = re.search(r"averaged over all (\d+) series", text.partition("## M3")[2])[1]
    names, errors = table_of("forecasting.md", "M3")
    _, seconds = table_of("forecasting.md", "M3", skip=2)
    cells = {}
    for model in ("TransformerForecaster", "LightGBM", "AutoETS", "AutoTheta"):
        place = names.index(model)
        error, spent = numbers_in([errors["all"][place], seconds["all"][place]])
        cells[model] = rounded(error, 2), f"({spent:.0f})"
    error, spent = cells.pop("TransformerForecaster")
    peers = listed({name: " ".join(cell) for name, cell in cells.items()})
    return (
        f"| {n_series} series of the M3 competition | sMAPE, in percent | "
        f"`TransformerForecaster` **{error}** {spent} | {peers} |"
    )


def row_of_cuts():
    section = "Single series that were not used in development"
    names, errors = table_of("forecasting.md", section)
    _, seconds = table_of("forecasting.md", section, skip=2)
    ranks = rankdata([numbers_in(row[2:]) for row in errors.values()], axis=1).mean(axis=0)
    spent = np.sum([numbers_in(row[2:]) for row in seconds.values()], axis=0)
    figures = dict(zip(names[2:], zip(ranks, spent, strict=True), strict=True))
    best = sorted(figures, key=lambda name: figures[name][0])[:4]
    cells = {name: f"{rounded(figures[name][0])} ({figures[name][1]:.0f})" for name in best}
    rank, seconds = cells.pop("TransformerForecaster").split()
    return (
        f"| {len(errors)} sets of series, not used in development | mean rank of "
        f"{len(figures)} forecasters (the best four are shown) | "
        f"`TransformerForecaster` **{rank}** {seconds} | {listed(cells)} |"
    ).replace("KernelForecaster", "`KernelForecaster` (also ours)")


def row_of_taxis():
    names, errors = table_of("forecasting.md", "Single series")
    models = ("TransformerForecaster", "LightGBM", "seasonal naive")
    cells = [errors["nyc_taxi_counts"][names.index(model)] for model in models]
    ours, trees, naive = (rounded(error, 2) for error in numbers_in(cells))
    return (
        f"| taxi rides in New York, half-hourly | MASE | `TransformerForecaster` {ours} | "
        f"LightGBM **{trees}**, seasonal naive {naive} |"
    )


def row_of_classified_series():
    names, rows = table_of("encoders.md", "Series: accuracy", skip=1)
    figures = dict(zip(names[1:-1], rows["transformer"][1:-1], strict=True))
    n_sets, ours = figures.pop("sets"), figures.pop("transformer")
    peers = sorted(figures, key=lambda name: float(figures[name]))
    peers = listed({name: rounded(float(figures[name])) for name in peers})
    return (
        f"| {n_sets} sequence-classification sets | mean rank of {len(figures) + 1} models | "
        f"`TransformerClassifier` **{rounded(float(ours))}** | {peers} |"
    )


def results_of(text):
    """Rows of the table with a measure in each, without its header."""
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    return next(rows[2:] for rows in tables if "measure" in rows[0].split())


def test_each_result_of_the_readme_is_that_of_a_benchmark():
    assert results_of(page("README.md")) == [
        row_of_tables("regression", "Regression", "KernelAttentionRegressor"),
        row_of_tables("classification", "Classification", "KernelAttentionClassifier"),
        row_of_m3(),
        row_of_cuts(),
        row_of_taxis(),
        row_of_classified_series(),
        row_of_bandwidths(),
    ]


def test_each_result_of_the_landing_page_is_that_of_a_benchmark():
    n_tables, ranks = ranks_of_tables("Classification")
    ranks = [rounded(ranks[name]) for name in ("KernelAttention", "CatBoost", "LightGBM")]
    names, rows = table_of("smoothing_accuracy.md", "Eight curves, 10 seeds")
    mean_ranks = dict(zip(names[2:], map(float, rows.pop("mean rank")[2:]), strict=True))
    columns = ["local polynomials", "LocalPolynomialCV", "KernelReg ll", "spline (SciPy)"]
    assert columns == sorted(mean_ranks, key=mean_ranks.get)[:4]
    best = [rounded(mean_ranks[name]) for name in columns]
    _, seconds = table_of("smoothing_speed.md", "Bandwidths by leave-one-out")
    ours, theirs = numbers_in(seconds["1000"][2:4])
    assert results_of(page("docs/index.md")) == [
        f"| {n_tables} classification tables | mean rank of the log-loss among four models | "
        f"`KernelAttentionClassifier` {ranks[0]}, CatBoost {ranks[1]}, LightGBM {ranks[2]} |",
        f"| {len(rows)} simulated curves, each with weak and with strong noise | mean rank of "
        f"the error among nine smoothers | `LocalPolynomialRegressor` {best[0]}, "
        f"`LocalPolynomialCV` {best[1]}, `KernelReg` of statsmodels {best[2]}, a spline of "
        f"SciPy {best[3]} |",
        f"| choosing a bandwidth by leave-one-out, 1000 rows | seconds to find the same one | "
        f"`NadarayaWatsonRegressor` {rounded(ours, 2)}, statsmodels {rounded(theirs, 2)} |",
    ]
    assert len(mean_ranks) == 9


def test_the_bars_of_the_landing_page_are_ranks_of_the_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    evidence = importlib.import_module("_evidence")
    n_tables, ranks = ranks_of_tables("Regression")
    drawn, n_drawn = evidence.table_ranks()
    assert n_drawn == int(n_tables)
    assert drawn.round(3).to_dict() == pytest.approx(ranks, abs=1e-3)
    ranks, n_series = evidence.classified_series_ranks()
    measured = listed({name: rounded(rank) for name, rank in ranks.drop("transformer").items()})
    assert f"| {n_series} sequence-" in row_of_classified_series()
    assert row_of_classified_series().endswith(
        f"**{rounded(ranks['transformer'])}** | {measured} |"
    )
    ranks, n_series = evidence.forecast_ranks()
    assert row_of_cuts().startswith(f"| {n_series} sets of series")
    assert f"of {len(ranks)} forecasters" in row_of_cuts()
    for name in ("AutoTheta", "MSTL"):
        assert f"{name} {rounded(ranks[name])} (" in row_of_cuts()


@pytest.mark.slow
def test_the_code_of_the_landing_page_runs():
    jobs = re.findall(r"```python\n(.*?)```", page("docs/index.md"), re.DOTALL)
    assert len(jobs) == 3
    for job in jobs:
        assert len([line for line in job.splitlines() if line]) == 6
        exec(job, {})


def test_what_a_fit_and_a_prediction_of_a_table_cost():
    ratios = []
    for section in "Classification", "Regression":
        header, rows = table_of("tabular.md", section)
        places = [header.index(f"{part} / CatBoost") for part in ("fit", "prediction")]
        fit, asked = (float(rows["KernelAttention"][place]) for place in places)
        light = float(rows["LightGBM"][places[0]])
        ratios.append((f"{fit:.1f}", round(fit / light), round(asked)))
    (fit, light, asked), (fit_2, light_2, asked_2) = ratios
    text = " ".join(page("README.md").split())
    assert (
        f"Fitting a table takes {fit} (classification) to {fit_2} (regression) of CatBoost's "
        f"time, but {light} to {light_2} times LightGBM's; a prediction takes "
        f"{min(asked, asked_2)} to {max(asked, asked_2)} times CatBoost's."
    ) in text


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_no_figure_stands_outside_of_results_and_code(name):
    text = page(name)
    for row in results_of(text):
        text = text.replace(row, "")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"Fitting a table takes .*? times\s+CatBoost's\.", "", text, flags=re.DOTALL)
    text = text.replace("rise by 20 on weekends and by 30", "")
    minimum = re.search(r'requires-python = ">=([\d.]+)"', page("pyproject.toml"))[1]
    text = text.replace(f"Python {minimum} or later", "").replace("BSD 3-clause", "")
    # Layout of the site, links and names of classes.
    text = re.sub(r"^:.*$|\([^)]*\)|`[^`]*`", "", text, flags=re.MULTILINE)
    assert re.findall(r".*\d.*", text) == []
