"""Series as files and other packages have them: years that are floats, dates of text, cells."""

import re

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster, Training, TransformerRegressor

MONTHS = pd.date_range("2018-01-01", periods=72, freq="MS")
LOAD = (
    20 + 5 * np.sin(2 * np.pi * np.arange(72) / 12) + np.random.default_rng(0).normal(size=72)
)

SMALL = {
    "d_model": 8,
    "n_heads": 1,
    "n_layers": 1,
    "baseline": False,
    "training": Training(max_steps=1, validation_fraction=None),
}


def quick():
    return KernelForecaster(6, lookback=6, bandwidth=1.0)


def tidy(ds, y=LOAD, **features):
    return pd.DataFrame({"unique_id": "plant", "ds": ds, "y": y, **features})


def test_years_that_are_floats():
    """A column of years with a gap in the file becomes floats, which count as they did."""
    years = np.arange(1950.0, 2022.0)
    expected = KernelForecaster(5).fit(pd.Series(LOAD, years.astype(int))).predict()
    found = KernelForecaster(5).fit(pd.Series(LOAD, years)).predict()
    pd.testing.assert_series_equal(found, expected)
    assert KernelForecaster(5).fit(tidy(years)).predict()["ds"].tolist() == [*range(2022, 2027)]
    gap = pd.Series(LOAD, years).drop(2000.0)
    with pytest.raises(ValueError, match="2000 missing at frequency 1"):
        KernelForecaster(5).fit(gap)
    assert KernelForecaster(5, missing="interpolate").fit(gap).predict().index[0] == 2022
    with pytest.raises(ValueError, match=r"1950.25.* number the steps by range\(len"):
        KernelForecaster(5).fit(pd.Series(LOAD, years + 0.25))
    KernelForecaster(5).fit(pd.Series(LOAD, range(len(years))))


@pytest.mark.parametrize("write", ["{:%Y-%m}", "{:%Y-%m-%dT%H:%M}", None])
def test_dates_of_text(write):
    """Text of ISO 8601, and dates of Python, are dates: in ds and in indexes, of y and of X."""
    written = [write.format(day) if write else day.date() for day in MONTHS]
    x = np.arange(72) % 5
    model = quick().fit(tidy(MONTHS, x=x)[:60])
    expected = model.predict(tidy(MONTHS, x=x)[60:])["forecast"]
    rows = tidy(written, x=x)
    found = quick().fit(rows[:60]).predict(rows[60:].drop(columns="y"))
    np.testing.assert_array_equal(found["forecast"], expected)
    assert list(found["ds"]) == written[60:]  # as X has them
    X, y = pd.DataFrame({"x": x}, written), pd.Series(LOAD, written)
    model = quick().fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.predict(X[60:]), expected)
    assert list(model.update(X[60:66], y[60:66]).predict(X[66:]).index) == list(MONTHS[66:])
    frame = pd.DataFrame({"a": LOAD, "b": LOAD[::-1]}, written)
    assert len(quick().fit(frame).predict("2024-03")) == 3
    assert len(quick().backtest(rows, cv=2)) == 12


class Day:
    """A date of a class of its own, such as those of climate models."""

    def __init__(self, day):
        self.day = day

    def __str__(self):
        return str(self.day)


@pytest.mark.parametrize("kind", ["month first", "days first", "objects"])
def test_dates_that_need_a_hand(kind):
    """What may be a date is named with its column, and with the conversion, which works."""
    ds = {
        "month first": pd.Index(MONTHS.strftime("%m/%d/%Y")),
        "days first": pd.Index(MONTHS.strftime("%d/%m/%Y")),
        "objects": pd.Index([Day(day) for day in MONTHS]),
    }[kind]
    for y in (tidy(ds), pd.Series(LOAD, ds.rename("ds"))):
        with pytest.raises(
            ValueError, match=r"in its 'ds', of .*, which cannot be read as"
        ) as error:
            KernelForecaster(6).fit(y)
        convert, option = re.search(r"by (.*)\), with (\S*) ", str(error.value)).groups()
        advised = f"{convert}, {option})" if kind == "days first" else f"{convert})"
        dates = eval(advised, {"pandas": pd, "index": ds})
        assert list(dates) == list(MONTHS)


def test_series_in_the_cells_of_a_frame():
    """The nested frames of sktime: a dict for forecasters, a list of arrays for encoders."""
    rng = np.random.default_rng(0)
    dim_0, dim_1 = ([pd.Series(rng.normal(size=30)) for _ in range(12)] for _ in range(2))
    X, y = pd.DataFrame({"dim_0": dim_0, "dim_1": dim_1}), rng.normal(size=12)
    with pytest.raises(ValueError, match=r"X \('dim_0'\) has the entry") as error:
        KernelForecaster(2).fit(X)
    advised = re.search(r"dict\(enumerate\(.*?\)\)", str(error.value))[0]
    series = eval(advised, {"column": X["dim_0"]})
    assert len(KernelForecaster(2).fit(series).predict()) == 12
    model = TransformerRegressor(**SMALL)
    for tokens in ("auto", "steps"):
        with pytest.raises(ValueError, match="of column 'dim_0', where each cell") as error:
            model.set_params(tokens=tokens).fit(X, y)
    advised = re.search(r"for example (.*)\.$", str(error.value))[1]
    arrays = eval(advised, {"numpy": np, "X": X})
    assert model.fit(arrays, y).predict(arrays).shape == (12,)
    assert model.fit(X["dim_0"], y).predict(X["dim_0"]).shape == (12,)


def test_channels_before_steps():
    """The layout of aeon is (n_series, n_channels, n_steps); here steps come first."""
    X = np.random.default_rng(0).normal(size=(12, 3, 30))
    model = TransformerRegressor("steps", **SMALL)
    with pytest.warns(UserWarning, match="at most 3 steps with 30 channels") as caught:
        model.fit(X, X[:, 0, -1])
    advised = re.search(r"X\.transpose\(.*?\)", str(caught[0].message))[0]
    model.fit(eval(advised, {"X": X}), X[:, 0, -1])
