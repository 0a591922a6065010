"""Data as users have it: small tables and series, each named after the job it stands for."""

import numpy as np
import pandas as pd


def readings():
    """A sensor rounded to halves, one that is stuck, and labels of rows from a split."""
    rng = np.random.default_rng(0)
    heat = np.round(2 * rng.uniform(10, 20, 90)) / 2
    X = pd.DataFrame({"heat": heat, "stuck": 7.0}, index=rng.permutation(1000)[:90])
    return X, 280 + np.sin(heat / 2) + 0.1 * rng.normal(size=90)  # kelvin


def orders():
    """Sums of money with heavy tails, and one that is mistyped."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"items": rng.poisson(4, 90), "weight": rng.lognormal(size=90)})
    y = 5 * X["items"] * np.exp(0.3 * rng.normal(size=90))
    y[11] = 1e5
    return X, y.to_numpy()


def shops():
    """Towns of which many are there once, missing cells, and rows that were exported twice."""
    rng = np.random.default_rng(2)
    town = np.append(rng.choice(["Rome", "Oslo", "Lima"], 60), [f"town {i}" for i in range(12)])
    X = pd.DataFrame({"town": pd.Categorical(town), "area": rng.uniform(50, 500, 72)})
    X.loc[::9, "area"] = np.nan
    y = X["area"].fillna(200) / 100 + (X["town"] == "Rome") + 0.1 * rng.normal(size=72)
    rows = np.append(np.arange(72), np.arange(0, 54, 3))
    return X.iloc[rows].reset_index(drop=True), y.to_numpy()[rows]


def survey():
    """Columns of pandas that may be missing: integers, flags, and texts of Arrow."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({
        "age": pd.array(rng.integers(18, 80, 90), dtype="Int64"),
        "owner": pd.array(rng.integers(0, 2, 90) == 1, dtype="boolean"),
        "region": pd.array(rng.choice(["north", "south"], 90), dtype="string[pyarrow]"),
        "income": pd.array(rng.uniform(1, 9, 90), dtype="double[pyarrow]"),
    })  # fmt: skip
    X.loc[4, ["age", "owner", "region", "income"]] = pd.NA
    y = X["age"].fillna(40).astype(float) / 20 + rng.normal(size=90) / 5
    return X, y.to_numpy()


TABLES = {table.__name__: table for table in (readings, orders, shops, survey)}


def days_with_a_feature():
    """A year of days, with promotions that are known ahead."""
    rng = np.random.default_rng(4)
    index = pd.date_range("2023-01-01", periods=369, name="day")
    X = pd.DataFrame({"promotion": (rng.uniform(size=369) < 0.1) * 1.0}, index)
    season = np.sin(np.arange(369) * 2 * np.pi / 7)
    y = pd.Series(50 + 10 * season + 20 * X["promotion"] + rng.normal(size=369), index)
    return y[:366], X[:366], X[366:]


def month_ends():
    """Two series by columns, at the last days of months."""
    index = pd.date_range("2019-01-31", periods=60, freq="ME")
    base = 100 + np.arange(60) + 9 * np.sin(np.arange(60) * np.pi / 6)
    return pd.DataFrame({"north": base, "south": 2 * base[::-1]}, index)


def quarters_that_begin_in_may():
    rng = np.random.default_rng(5)
    index = pd.date_range("2010-02-01", periods=48, freq="QS-FEB")
    return pd.Series(20 + np.tile([1.0, 3, -2, 0], 12) + 0.1 * rng.normal(size=48), index)


def hours_of_a_zone_without_some_midnights():
    """Chilean clocks go forward at midnight, which then is not there."""
    index = pd.date_range("2023-08-28", periods=240, freq="h", tz="America/Santiago")
    rng = np.random.default_rng(6)
    return pd.Series(5 + np.sin(index.hour * np.pi / 12) + 0.1 * rng.normal(size=240), index)


def a_machine_that_stands_still():
    """Nothing but one value; and another that works."""
    index = pd.period_range("2020-01", periods=48, freq="M")
    return pd.DataFrame({"still": 4.0, "works": np.arange(48) % 4 + 1.0}, index)


SERIES = {
    series.__name__: series
    for series in (
        month_ends, quarters_that_begin_in_may, hours_of_a_zone_without_some_midnights,
        a_machine_that_stands_still,
    )
}  # fmt: skip
