"""The series that is drawn, and its times."""

import numpy as np
import pandas as pd


def series_position(series, names):
    """Return the position of a series in `names`, which is 0 if `series` is None."""
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


def select_forecast(prediction, panel, position):
    """Return forecasts and ends of intervals of one series, as columns of a frame.

    `prediction` is what `predict` returns for all series of `panel`, in any form, and
    `position` is the position of the series in the panel. The index of the frame has plain
    times.
    """
    name, has_several = panel.names[position], len(panel.names) > 1
    if isinstance(prediction, np.ndarray):
        end = panel.starts[position] + len(panel.observations[position])
        index = panel.time.index_between(end, end + len(prediction))
        values = prediction[..., position] if has_several else prediction
        forecast = pd.DataFrame(values, index)
    elif panel.form.kind == "tidy":
        is_single = panel.form.single
        rows = prediction if is_single else prediction[prediction["unique_id"] == name]
        forecast = rows.set_index("ds").drop(columns="unique_id", errors="ignore")
    elif isinstance(prediction, dict):
        forecast = prediction[name]
    elif isinstance(prediction.index, pd.MultiIndex):
        forecast = prediction.xs(name, level=0)
    elif has_several or isinstance(getattr(prediction, "columns", None), pd.MultiIndex):
        forecast = prediction[name]
    else:
        forecast = prediction
    forecast = pd.DataFrame(forecast)
    return forecast.set_axis(plain_times(forecast.index), axis=0)
