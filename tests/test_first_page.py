"""Figures of the first pages are those of the benchmarks' tables."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import sklearn_attention

ROOT = Path(sklearn_attention.__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]

pytestmark = pytest.mark.skipif(
    not (ROOT / "benchmarks").exists(), reason="benchmarks do not come with a package"
)


@pytest.fixture(scope="module")
def pages():
    """Texts of the README and of the site's first page."""
    return [path.read_text("utf-8") for path in PAGES]


def rows_of(benchmark, section, skip=0):
    """Names of columns, and rows by their first cell, of a table of a benchmark."""
    page = (ROOT / "benchmarks" / benchmark).read_text("utf-8")
    text = page.partition(f"# {section}\n")[2].partition("\n## ")[0]
    table = [part for part in text.split("\n\n") if part.startswith("|")][skip]
    header, _, *rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    return header, {row[0]: row for row in rows}


def says(line, name, *figures):
    """Whether a line has figures right behind a name, in bold or not, the last in brackets."""
    first, *rest = (re.escape(figure) for figure in figures)
    behind = "".join(rf"\*?\*? \(\*?\*?{figure}" for figure in rest)
    return re.search(rf"{name}[^|;\d]*? \*?\*?{first}{behind}\b", line) is not None


def numbers_in(cells):
    """The first number in each cell."""
    return [float(re.search(r"[\d.]+", cell)[0]) for cell in cells]


@pytest.mark.parametrize(
    ("words", "section"), [("numbers", "Regression"), ("classes", "Classification")]
)
def test_ranks_of_tables(words, section, pages):
    _, rows = rows_of("tabular.md", section)
    line = next(x for x in pages[0].splitlines() if f"tables of {words}" in x)
    assert all(says(line, name, f"{float(row[1]):.1f}") for name, row in rows.items())


def test_what_a_fit_and_a_prediction_of_a_table_cost(pages):
    found = []
    for section in "Classification", "Regression":
        _, rows = rows_of("tabular.md", section)
        cost = {name: [float(cell) for cell in row[5:]] for name, row in rows.items()}
        (fit, prediction), light = cost["KernelAttention"], cost["LightGBM"][0]
        found.append((f"{fit:.1f}".lstrip("0"), round(fit / light), round(prediction)))
    (fit, light, asked), (fit_2, light_2, asked_2) = found
    text = " ".join(pages[0].split())
    assert f"takes {fit} (classes) to {fit_2} (numbers) of CatBoost's seconds" in text
    assert (
        f"and {light} to {light_2} times LightGBM's, a prediction {asked} to {asked_2}" in text
    )


def test_errors_and_seconds_of_series(pages):
    lines = pages[0].splitlines()
    names, errors = rows_of("forecasting.md", "M3")
    _, seconds = rows_of("forecasting.md", "M3", skip=2)
    line = next(x for x in lines if x.startswith("| M3,"))
    for name in ("TransformerForecaster", "LightGBM", "AutoETS", "AutoTheta"):
        cells = (table["all"][names.index(name)] for table in (errors, seconds))
        error, spent = numbers_in(cells)
        assert says(line, name, f"{error:.2f}", f"{spent:.0f}"), name
    names, errors = rows_of("forecasting.md", "Single series")
    line = next(x for x in lines if x.startswith("| half-hourly taxis"))
    for name in ("TransformerForecaster", "LightGBM", "seasonal naive"):
        (error,) = numbers_in([errors["nyc_taxi_counts"][names.index(name)]])
        assert says(line, name, f"{error:.2f}"), name
    section = "Series at several cuts that nothing was chosen on"
    names, errors = rows_of("forecasting.md", section)
    _, seconds = rows_of("forecasting.md", section, skip=2)
    line = next(x for x in lines if x.startswith(f"| {len(errors)} sets of series"))
    # Without the other forecaster of the package.
    some = [names.index(name) for name in names[2:] if name != "KernelForecaster"]
    ranks = rankdata([numbers_in(row[i] for i in some) for row in errors.values()], axis=1)
    spent = np.sum([numbers_in(row[i] for i in some) for row in seconds.values()], axis=0)
    for i, rank, total in zip(some, ranks.mean(axis=0), spent, strict=True):
        if names[i] in line:
            # Halves go up.
            assert says(line, names[i], f"{rank + 1e-9:.1f}", f"{total:.0f}"), names[i]


def test_seconds_of_bandwidths(pages):
    _, rows = rows_of("smoothing_speed.md", "Bandwidths by leave-one-out")
    (ours, theirs), (few, many) = (numbers_in(rows[n][2:4]) for n in ("5000", "1000"))
    # Halves go up.
    ours = f"{ours + 1e-9:.2f}"
    assert f"`NadarayaWatsonRegressor`, the same (**{ours}**) |" in pages[0]
    assert f"statsmodels, the same ({theirs:.1f})" in pages[0]
    assert f"| {few:.2f}, statsmodels {many:.2f}, with the same result |" in pages[1]


def test_ranks_of_curves_and_of_sequences(pages):
    names, rows = rows_of("encoders.md", "Series: accuracy", skip=1)
    line = next(x for x in pages[0].splitlines() if "sets of series: mean" in x)
    for name, rank in zip(names[2:-1], rows["transformer"][2:-1], strict=True):
        own = "TransformerClassifier" if name == "its own" else name
        assert own not in line or says(line, own, f"{float(rank):.1f}"), own
    names, rows = rows_of("smoothing_accuracy.md", "Eight curves, 10 seeds")
    line = next(x for x in pages[1].splitlines() if x.startswith("| 8 curves"))
    for name in ("LocalPolynomialCV", "local polynomials", "spline", "Gaussian process"):
        place = next(i for i, column in enumerate(names) if column.startswith(name))
        assert says(line, name, f"{float(rows['mean rank'][place]) + 1e-9:.1f}"), name
