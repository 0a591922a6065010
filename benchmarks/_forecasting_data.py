"""The sets of `forecasting.py`: known values, values to forecast, and units of errors.

Files lie in the folder `forecasting/` of a data folder. A task is one cell of a table: folds
of past and future values, which `forecasting.py` goes through. `ett` has its own, since there
every row of the test part is an origin.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from _forecasting_panels import cuts, panels
from _forecasting_tasks import Fold, Task, read
from _forecasting_weather import weather

# Panels of a competition: one origin, official horizons.


class PanelKind(NamedTuple):
    horizon: int
    season: int
    seasons: tuple
    freq: str | None


M3_GROUPS = {
    "yearly": PanelKind(6, 1, (1,), "YS"),
    "quarterly": PanelKind(8, 4, (4,), "QS"),
    "monthly": PanelKind(18, 12, (12,), "MS"),
    "other": PanelKind(8, 1, (1,), None),
}
PANELS = {
    "m4_weekly": PanelKind(13, 1, (1, 52), "W"),
    "m4_hourly": PanelKind(48, 24, (24, 168), "h"),
    "nn3": PanelKind(18, 12, (12,), "MS"),
}


def panel_task(frame, kind):
    """A task of a long frame; files have no dates, so every series begins in 1970."""
    past, future = {}, {}
    for name, own in frame.groupby("unique_id", sort=False):
        values = own["y"].to_numpy(float)
        test = own["is_test"].to_numpy(bool)
        past[name], future[name] = values[~test], values[test]
        if kind.freq is not None:
            index = pd.date_range("1970-01-01", periods=len(past[name]), freq=kind.freq)
            past[name] = pd.Series(past[name], index, name=name)
    return Task(kind.horizon, kind.season, kind.seasons, [Fold(past, future)])


def m3(data):
    period = read(data, "m3_meta").set_index("unique_id")["period"].str.lower()
    frame = read(data, "m3")
    groups = frame["unique_id"].map(period)
    return {
        (name, kind.horizon): lambda name=name, kind=kind: panel_task(
            frame[groups == name], kind
        )
        for name, kind in M3_GROUPS.items()
    }


def panel(name):
    kind = PANELS[name]
    return lambda data: {(name, kind.horizon): lambda: panel_task(read(data, name), kind)}


# Single series: five folds at the end, learned anew.


class SingleKind(NamedTuple):
    horizon: int
    season: int
    seasons: tuple
    start: str
    freq: str


FOLDS = 5
# Sunspots have a cycle of about eleven years, which statistical models cannot follow; they are
# told a year. The file of daily temperatures leaves out two leap days, which moves the season
# of its years by as many days.
SINGLES = {
    "air_passengers": SingleKind(12, 12, (12,), "1949-01-01", "MS"),
    "co2_weekly": SingleKind(26, 52, (52,), "1958-03-29", "W-SAT"),
    "sunspots_monthly": SingleKind(24, 132, (12,), "1749-01-01", "MS"),
    "taylor_elec": SingleKind(336, 336, (48, 336), "2000-06-05", "30min"),
    "nyc_taxi_counts": SingleKind(48, 336, (48, 336), "2014-07-01", "30min"),
    "daily_min_temp": SingleKind(28, 365, (365,), "1981-01-01", "D"),
}


def single_task(data, name):
    kind = SINGLES[name]
    values = read(data, name).iloc[:, -1].to_numpy(float)
    index = pd.date_range(kind.start, periods=len(values), freq=kind.freq)
    series, folds = pd.Series(values, index, name=name), []
    for origin in range(len(values) - FOLDS * kind.horizon, len(values), kind.horizon):
        # Of the series here only that of carbon dioxide has gaps.
        past = series.iloc[:origin].interpolate()
        folds.append(Fold({name: past}, {name: values[origin : origin + kind.horizon]}))
    return Task(kind.horizon, kind.season, kind.seasons, folds)


def single(data):
    return {
        (name, kind.horizon): lambda name=name: single_task(data, name)
        for name, kind in SINGLES.items()
    }


# Rolling origins: learned once, then observed.

ILLNESS_HORIZON, ILLNESS_STEP, ILLNESS_TEST = 24, 8, 0.2


def national_illness(data):
    """Seven weekly columns; an origin every eight weeks of the last fifth."""

    def task():
        frame = read(data, "national_illness", index_col="date", parse_dates=True)
        frame = frame.astype(float).asfreq("7D")
        first = len(frame) - int(ILLNESS_TEST * len(frame))
        last = len(frame) - ILLNESS_HORIZON
        folds = []
        for origin in range(first, last + 1, ILLNESS_STEP):
            future = frame.iloc[origin : origin + ILLNESS_HORIZON]
            folds.append(
                Fold(
                    {name: frame[name].iloc[:origin] for name in frame},
                    {name: future[name].to_numpy() for name in frame},
                )
            )
        return Task(ILLNESS_HORIZON, 52, (52,), folds, refit=False)

    return {("national_illness", ILLNESS_HORIZON): task}


def alone(data):
    """Panels for the transformer without other candidates."""
    of_panels = {key: load for key, load in panels(data).items() if key[0] in ALONE}
    competitions = {key: load for name in ALONE[:2] for key, load in panel(name)(data).items()}
    return competitions | of_panels | {("ETTh1", 24): partial(transformer_station, data)}


ALONE = "nn3", "m4_hourly", "visitors", "stations"


def transformer_station(data):
    """Seven hourly columns, the last seven days one by one."""
    frame = read(data, "ETTh1", index_col="date", parse_dates=True).astype(float).asfreq("h")
    folds = []
    for origin in range(len(frame) - 7 * 24, len(frame), 24):
        future = frame.iloc[origin : origin + 24]
        past = {name: frame[name].iloc[:origin] for name in frame}
        folds.append(Fold(past, {name: future[name].to_numpy() for name in frame}))
    return Task(24, 24, (24, 168), folds, refit=False)


# Seconds and memory of many series.

MANY = PanelKind(12, 12, (12,), "MS")
SIZES = 100, 1000, 5000


def many_series(n_series):
    """Ten years of monthly sales: a level with a trend and noise, and a season, of each."""
    rng, months = np.random.default_rng(0), np.arange(120 + MANY.horizon)
    index = pd.date_range("2015-01-01", periods=120, freq=MANY.freq)
    past, future = {}, {}
    for i in range(n_series):
        level = rng.lognormal(5, 1) * np.exp(rng.normal(0.002, 0.003) * months)
        walk = np.cumsum(0.02 * rng.normal(size=len(months)))
        season = rng.uniform(0, 0.3) * np.sin(2 * np.pi * (months / 12 + rng.uniform()))
        values = level * np.exp(walk + season + 0.1 * rng.normal(size=len(months)))
        name = f"shop {i}"
        past[name] = pd.Series(values[:120], index, name=name)
        future[name] = values[120:]
    return Task(MANY.horizon, MANY.season, MANY.seasons, [Fold(past, future)])


def speed(data):
    """Panels of several sizes; they are generated, so no data are read."""
    return {(f"{size} series", MANY.horizon): partial(many_series, size) for size in SIZES}


TABLES = {
    "single": single,
    "nn3": panel("nn3"),
    "national_illness": national_illness,
    "m4_hourly": panel("m4_hourly"),
    "m4_weekly": panel("m4_weekly"),
    "m3": m3,
    "weather": weather,
    "panels": panels,
    "cuts": cuts,
    "alone": alone,
    "speed": speed,
}
