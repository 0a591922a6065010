"""Sales of shops in polars: forecasts come back in polars, as those of pandas are."""

import datetime

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelForecaster

pl = pytest.importorskip("polars")

DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(n) for n in range(98)]


def forecaster(horizon):
    """A quick one."""
    return KernelForecaster(horizon, lookback=14, bandwidth=1.0, normalize="standard")


def sales():
    """Days of two shops, with a price, a day off and kinds of campaigns that are known."""
    rng, shops = np.random.default_rng(0), []
    for shop, level in [("north", 40.0), ("south", 25.0)]:
        campaign = rng.choice(["none", "mail", "radio"], len(DAYS))
        lift = 8.0 * (campaign == "mail") + rng.normal(size=len(DAYS))
        sold = level + 6 * np.sin(2 * np.pi * np.arange(len(DAYS)) / 7) + lift
        price = np.where(np.arange(len(DAYS)) % 5 == 0, 1.9, 2.2)
        shops.append(
            pl.DataFrame({"ds": DAYS, "y": sold, "price": price, "campaign": campaign})
            .with_columns(pl.lit(shop).alias("unique_id"), open=pl.col("ds").dt.weekday() < 7)
            .with_columns(
                pl.col("campaign").cast(pl.Enum(["radio", "mail", "none"])),
                pl.col("price").cast(pl.Decimal(10, 2)),
            )
        )
    return pl.concat(shops)


def of_pandas(frame):
    """The same rows as a user of pandas has them."""
    columns = {name: frame[name].to_list() for name in frame.columns}
    return pd.DataFrame(columns).astype({"ds": "datetime64[s]"})


def check_equal(found, expected):
    assert isinstance(found, pl.DataFrame)
    assert found.columns == [str(name) for name in expected]
    for name, column in zip(found.columns, expected, strict=True):
        column = pl.Series(expected[column].tolist()).cast(found[name].dtype)
        assert found[name].to_list() == column.to_list()


@pytest.fixture(scope="module")
def models():
    past = sales().filter(pl.col("ds") < DAYS[84])
    return [forecaster(14).fit(rows) for rows in (past, of_pandas(past))]


def test_a_panel_with_features(models):
    """Rows in any order, and forecasts that join what happened by name and day."""
    later = sales().filter(pl.col("ds") >= DAYS[84]).sample(fraction=1, shuffle=True, seed=0)
    (ours, theirs), rows = models, of_pandas(later)
    check_equal(ours.predict(later), theirs.predict(rows))
    check_equal(ours.predict_quantiles(later), theirs.predict_quantiles(rows))
    check_equal(ours.explain(later, k=2), theirs.explain(rows, k=2))
    found = ours.predict(later.drop("y"), coverage=[0.5, 0.9])
    check_equal(found, theirs.predict(rows.drop(columns="y"), coverage=[0.5, 0.9]))
    found = ours.predict(later)
    assert found["ds"].dtype == pl.Date
    joined = later.join(found, on=["unique_id", "ds"])
    assert joined.height == 28
    assert ours.score(later) == theirs.score(rows)


def test_a_backtest():
    """Folds, cutoffs and times come back in polars, too."""
    check_equal(
        forecaster(7).backtest(sales(), cv=2, coverage=0.8),
        forecaster(7).backtest(of_pandas(sales()), cv=2, coverage=0.8),
    )


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_column_for_each_shop(zone):
    """A wide frame has its days in "ds", with or without a time zone."""
    wide = sales().pivot("unique_id", index="ds", values="y")
    wide = wide.with_columns(pl.col("ds").cast(pl.Datetime("us")).dt.replace_time_zone(zone))
    columns = {name: wide[name].to_list() for name in ("north", "south")}
    days = pd.DatetimeIndex(DAYS, tz=zone)
    theirs = forecaster(7).fit(pd.DataFrame(columns, days))
    ours = forecaster(7).fit(wide)
    found, expected = ours.predict(7), theirs.predict(7)
    assert found.schema == wide.schema
    check_equal(found, expected.rename_axis("ds").reset_index())
    ends = ours.predict_interval(wide[-2:].select("ds"))
    assert ends.columns == ["ds", "north_lower", "north_upper", "south_lower", "south_upper"]
    assert ours.predict(7, history=wide).equals(found)


def test_what_has_no_rows_yet():
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        KernelForecaster().fit(sales().lazy())
    with pytest.raises(ValueError, match=r"dates in its column 'day'.*rename.*'ds' the date"):
        KernelForecaster().fit(sales().select(pl.col("ds").alias("day"), "y"))
