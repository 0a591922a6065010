"""Forecasts come back in the form and the library of the series."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_attention.forecasting._forms import read_series
from sklearn_attention.forecasting._output_forms import to_library, wrap

DAYS = pd.date_range("2024-01-01", periods=6)
VALUES = np.arange(6.0)
WIDE = pd.DataFrame({"a": VALUES, "b": VALUES + 10}, index=DAYS)
LONG = WIDE.rename_axis(index="ds", columns="unique_id").unstack().rename("y")


@pytest.mark.parametrize(
    "y",
    [
        VALUES,
        WIDE["b"],
        WIDE,
        {"b": WIDE["b"], "a": WIDE["a"].iloc[:4]},
        {"b": VALUES, "a": VALUES[:4]},
        LONG,
        LONG.to_frame(),
    ],
    ids=["array", "Series", "frame", "dict", "dict of arrays", "long", "long frame"],
)
def test_the_rows_of_a_series_come_back_in_its_form(y):
    table = read_series(y)
    found = wrap(table, table.value)
    assert type(found) is type(y)
    if isinstance(y, dict):
        assert list(found) == list(y)
        for name, values in y.items():
            np.testing.assert_array_equal(found[name], values)
    else:
        np.testing.assert_array_equal(found, y)
    if isinstance(y, pd.Series | pd.DataFrame):
        pd.testing.assert_index_equal(found.index, y.index, exact="equiv")


def test_several_quantities_are_columns_under_each_series():
    table = read_series(WIDE)
    bounds = np.column_stack([table.value - 1, table.value + 1])
    found = wrap(table, bounds, ["lower", "upper"])
    assert found.columns.to_list() == [
        (name, bound) for name in ("a", "b") for bound in ("lower", "upper")
    ]
    np.testing.assert_array_equal(found["a", "upper"], WIDE["a"] + 1)


def test_tidy_frames_come_back_with_a_column_of_forecasts():
    tidy = LONG.reset_index()
    found = wrap(read_series(tidy), np.repeat(1.5, 12))
    assert found.columns.to_list() == ["unique_id", "ds", "forecast"]
    assert found["unique_id"].to_list() == ["a"] * 6 + ["b"] * 6


def test_another_library_gets_times_as_a_column():
    frame = to_library(WIDE, "polars", with_index=True)
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["ds", "a", "b"]
    assert frame["ds"].to_list()[0] == datetime.datetime(2024, 1, 1)
    assert to_library(WIDE, "pandas") is WIDE


def test_times_of_a_zone_keep_it_and_an_offset_without_name_becomes_utc():
    berlin = pd.DataFrame({"y": VALUES}, index=DAYS.tz_localize("Europe/Berlin"))
    assert (
        to_library(berlin, "polars", with_index=True)["ds"].dtype.time_zone == "Europe/Berlin"
    )
    offset = berlin.tz_convert(datetime.timezone(datetime.timedelta(hours=2)))
    assert to_library(offset, "polars", with_index=True)["ds"].dtype.time_zone == "UTC"
