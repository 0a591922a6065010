"""Answers go back in the form of the series, against forms put together by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import make_long, make_panel, tidy_of

from sklearn_attention.forecasting._forms import in_library, read_series, wrap
from sklearn_attention.forecasting._inputs import request

PANEL, LONG = make_panel(), make_long()
WIDE = pd.DataFrame(PANEL).rename_axis("site", axis=1)
MONTHS = PANEL["a"].index
# Two steps of "a" and three of "b".
SERIES, STEP = np.array([0, 0, 1, 1, 1]), np.array([58, 59, 50, 51, 52])
NAMES = ["a", "a", "b", "b", "b"]
ANSWERS = np.arange(10.0).reshape(5, 2)
BOTH = pytest.mark.parametrize("columns", [None, ["lower", "upper"]])


def requested(y, series=SERIES, step=STEP, index=None, rows=None):
    return request(read_series(y), np.asarray(series), np.asarray(step), index, rows)


def answers_of(columns):
    return ANSWERS[:, 0] if columns is None else ANSWERS


@BOTH
@pytest.mark.parametrize("form", ["long", "long_frame", "tidy"])
def test_one_below_the_other(form, columns):
    y = {"long": LONG, "long_frame": LONG.to_frame(), "tidy": tidy_of(LONG)}[form]
    found = wrap(requested(y), answers_of(columns), columns)
    if form == "tidy":
        names = ["unique_id", "ds", *(columns or ["forecast"])]
        parts = [NAMES, MONTHS[STEP], *answers_of(columns).reshape(5, -1).T]
        expected = pd.DataFrame(dict(zip(names, parts, strict=True)))
        pd.testing.assert_frame_equal(found, expected)
        return
    index = pd.MultiIndex.from_arrays([NAMES, MONTHS[STEP]], names=["site", "month"])
    if form == "long" and columns is None:
        pd.testing.assert_series_equal(found, pd.Series(ANSWERS[:, 0], index, name="load"))
    else:
        expected = pd.DataFrame(answers_of(columns).reshape(5, -1), index, columns or ["load"])
        pd.testing.assert_frame_equal(found, expected)


@BOTH
@pytest.mark.parametrize("levels", [1, 2])
def test_a_wide_frame(columns, levels):
    wide = WIDE
    if levels == 2:
        names = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")], names=["land", "site"])
        wide = WIDE.set_axis(names, axis=1)
    asked = [0, 0, 1, 1], [60, 61, 60, 61]
    found = wrap(requested(wide, *asked), answers_of(columns)[:4], columns)
    months = pd.date_range("2020-01-01", periods=2, freq="MS")
    names = [("a",), ("b",)] if levels == 1 else [("x", "a"), ("x", "b")]
    if columns is None:
        expected = pd.DataFrame(ANSWERS[:4, 0].reshape(2, 2).T, months, wide.columns)
    else:
        header = [(*name, column) for name in names for column in columns]
        header = pd.MultiIndex.from_tuples(header, names=[*wide.columns.names, None])
        values = np.concatenate([ANSWERS[:2], ANSWERS[2:4]], axis=1)
        expected = pd.DataFrame(values, months, header)
    pd.testing.assert_frame_equal(found, expected)
    own = wrap(requested(wide, *asked, pd.Index(["p", "q"])), answers_of(columns)[:4], columns)
    assert list(own.index) == ["p", "q"]


@pytest.mark.parametrize(
    ("unit", "zone"),
    [("s", None), ("s", "Europe/Berlin"), ("ms", None), ("ns", "Europe/Berlin")],
)
def test_times_in_polars_are_as_precise(unit, zone):
    hours = pd.date_range("2024-03-30", periods=60, freq="h", tz=zone, unit=unit)
    found = in_library(pd.DataFrame({"ds": hours}), "polars")["ds"]
    assert [pd.Timestamp(moment) for moment in found] == list(hours)
    days = pd.date_range("2024-03-30", periods=3, tz=zone, unit=unit)
    kind = in_library(pd.DataFrame({"ds": days}), "polars")["ds"].dtype
    precise = pl.Datetime("ms" if unit == "s" else unit, zone)
    assert kind == (pl.Date if unit == "s" and zone is None else precise)
