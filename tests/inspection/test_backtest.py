"""Forecasts from the past beside what happened."""

import numpy as np
import pandas as pd
import polars as pl
from numpy.testing import assert_allclose

from sklearn_attention import KernelForecaster
from sklearn_attention.inspection import BacktestDisplay


def test_a_backtest_is_drawn_fold_by_fold(series):
    model = KernelForecaster(12, lookback=24)
    display = BacktestDisplay.from_estimator(model, series, cv=3, coverage=[0.5, 0.9])
    table = model.backtest(series, cv=3, coverage=[0.5, 0.9])
    forecasts = [line for line in display.ax_.lines if len(line.get_xdata()) == 12][1::2]
    assert_allclose(np.concatenate([line.get_ydata() for line in forecasts]), table["forecast"])
    assert len(display.ax_.collections) == 6
    missed = (table["actual"] - table["forecast"]).abs().to_numpy().reshape(3, 12)
    assert_allclose(display.errors_, missed.mean(axis=1))
    within = table["actual"].between(table["lower_50"], table["upper_50"])
    assert display.coverage_.index.tolist() == [0.5, 0.9]
    assert display.coverage_[0.5] == within.mean()
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert f"50 % interval: {100 * within.mean():.0f} % within" in labels


def test_coverage_is_of_what_was_observed(series):
    table = KernelForecaster(12, lookback=24).backtest(series, cv=2, coverage=0.925)
    first = table["actual"].between(table["lower_92.5"], table["upper_92.5"])[:12].mean()
    table.loc[12:, "actual"] = np.nan
    display = BacktestDisplay.from_predictions(table)
    assert display.coverage_.to_dict() == {0.925: first}
    plain = BacktestDisplay.from_predictions(table[["fold", "time", "forecast", "actual"]])
    assert plain.coverage_.empty


def test_a_backtest_of_several_series_draws_one(series):
    frame = pd.DataFrame({"a": series, "b": 10 - series})[:120]
    table = KernelForecaster(12, lookback=24).backtest(frame, cv=2)
    display = BacktestDisplay.from_predictions(table, series="b")
    assert display.ax_.get_ylabel() == "b"
    assert len(display.table) == 24
    assert BacktestDisplay.from_predictions(table).ax_.get_ylabel() == "a"
    tidy = table.rename(columns={"series": "unique_id", "time": "ds", "actual": "y"})
    for other in (tidy, pl.DataFrame(table.to_dict("list"))):
        found = BacktestDisplay.from_predictions(other, series="b")
        assert_allclose(found.errors_, display.errors_)
    single = tidy[tidy["unique_id"] == "b"].drop(columns="unique_id")
    found = BacktestDisplay.from_predictions(single)
    assert_allclose(found.errors_, display.errors_)
