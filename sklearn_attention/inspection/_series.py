"""The series that is drawn, and its times."""

import numpy as np
import pandas as pd


def place_of(series, names):
    """Return the position of a series in a list of names; None is the first one."""
    if series is None:
        return 0
    if series not in names:
        raise ValueError(
            f"series={series!r} is none of the series: pass one of {list(names)[:5]}."
        )
    return list(names).index(series)


def plain_times(index):
    """Return an index of times that matplotlib can draw: periods become dates."""
    return index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index


def forecast_of(prediction, panel, place):
    """Return forecasts and ends of intervals of one series as columns, at plain times.

    `prediction` is that of a forecaster for all series of `panel`, in any form that it returns.
    """
    name, has_several = panel.names[place], len(panel.names) > 1
    if isinstance(prediction, np.ndarray):
        end = panel.starts[place] + len(panel.observations[place])
        index = panel.time.index_between(end, end + len(prediction))
        of_series = pd.DataFrame(prediction[..., place] if has_several else prediction, index)
    elif panel.form.kind == "tidy":
        is_single = panel.form.single
        rows = prediction if is_single else prediction[prediction["unique_id"] == name]
        of_series = rows.set_index("ds").drop(columns="unique_id", errors="ignore")
    elif isinstance(prediction, dict):
        of_series = prediction[name]
    elif isinstance(prediction.index, pd.MultiIndex):
        of_series = prediction.xs(name, level=0)
    elif has_several or isinstance(getattr(prediction, "columns", None), pd.MultiIndex):
        of_series = prediction[name]
    else:
        of_series = prediction
    of_series = pd.DataFrame(of_series)
    return of_series.set_axis(plain_times(of_series.index), axis=0)
