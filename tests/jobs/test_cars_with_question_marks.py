"""A file of used cars has "?" where a number is not known, and a line of totals below."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelAttentionRegressor, NadarayaWatsonRegressor


@pytest.fixture
def file():
    """120 cars, five of unknown power, and a footer that pandas reads as one more."""
    rng = np.random.default_rng(0)
    power = rng.integers(60, 220, 120)
    miles = (60 - 0.2 * power + 2 * rng.normal(size=120)).round(1)
    cells = np.where(np.arange(120) % 25 == 7, "?", power.astype(str))
    lines = [f"{a},{b}" for a, b in zip(cells, miles, strict=True)]
    return "\n".join(["power,miles", *lines, f"Total,{miles.sum():.1f}"])


@pytest.mark.parametrize(
    "model",
    [KernelAttentionRegressor(n_folds=1, max_steps=5), NadarayaWatsonRegressor("epanechnikov")],
    ids=lambda model: type(model).__name__,
)
def test_the_warning_leads_to_the_numbers(file, model):
    cars = pd.read_csv(io.StringIO(file))[:-1]  # without the footer
    with pytest.warns(UserWarning, match="and numbers in column 'power'"):
        model.fit(cars[["power"]], cars["miles"])
    # The warning says what to do, and the error about what is missing then what comes next.
    cars["power"] = pd.to_numeric(cars["power"], errors="coerce")
    if isinstance(model, NadarayaWatsonRegressor):
        with pytest.raises(ValueError, match=r"Columns with NaN are \['power'\]"):
            model.fit(cars[["power"]], cars["miles"])
        cars = cars.dropna()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(cars[["power"]], cars["miles"])
    new = pd.DataFrame({"power": np.linspace(70.0, 210.0, 50)})
    assert np.std(model.predict(new) - (60 - 0.2 * new["power"])) < 1.5


def test_the_footer_is_named_as_well(file):
    cars = pd.read_csv(io.StringIO(file))
    with pytest.warns(UserWarning, match=r"such as \['\?', 'Total'\]"):
        NadarayaWatsonRegressor(bandwidth="scott").fit(cars[["power"]], cars["miles"])
