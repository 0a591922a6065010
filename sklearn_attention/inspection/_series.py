"""The series that is drawn, and its times."""

import numpy as np
import pandas as pd


def place_of(series, names):
    """Place of the series of this name among others; of the first for None."""
    if series is None:
        return 0
    if series not in names:
        raise ValueError(
            f"series={series!r} is none of the series: pass one of {list(names)[:5]}."
        )
    return list(names).index(series)


def plain_times(index):
    """An index of times that matplotlib takes: dates in the place of periods."""
    return index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index


def forecast_of(told, panel, place):
    """Forecasts and ends of intervals of one series as columns, at plain times.

    `told` is the prediction of a forecaster that has observed the series of `panel`.
    """
    name, several = panel.names[place], len(panel.names) > 1
    if isinstance(told, np.ndarray):
        end = panel.starts[place] + len(panel.observations[place])
        index = panel.time.index_between(end, end + len(told))
        told = pd.DataFrame(told[..., place] if several else told, index)
    elif panel.form.kind == "tidy":
        rows = told if panel.form.single else told[told["unique_id"] == name]
        told = rows.set_index("ds").drop(columns="unique_id", errors="ignore")
    elif isinstance(told, dict):
        told = told[name]
    elif isinstance(told.index, pd.MultiIndex):
        told = told.xs(name, level=0)
    elif several or isinstance(getattr(told, "columns", None), pd.MultiIndex):
        told = told[name]
    told = pd.DataFrame(told)
    return told.set_axis(plain_times(told.index), axis=0)
