"""Forecasting series: candidates and attention over them, analogs, and the forms of series."""

from ._calibration import Calibration
from ._forecaster import Forecaster
from ._forecasts import Forecasts
from ._metrics import crps, mase, msis, naive_scale, seasonal_naive
from ._origins import Origins
from ._table import Table
from ._time import TimeIndex

__all__ = [
    "Calibration",
    "Forecaster",
    "Forecasts",
    "Origins",
    "Table",
    "TimeIndex",
    "crps",
    "mase",
    "msis",
    "naive_scale",
    "seasonal_naive",
]
