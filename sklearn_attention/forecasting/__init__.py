"""Forecasting series: candidates and attention over them, analogs, and the forms of series."""

from ._calibration import Calibration
from ._forecaster import Forecaster
from ._forecasts import Forecasts
from ._kernel_forecaster import KernelForecaster
from ._metrics import crps, mase, msis, naive_scale
from ._origins import Origins
from ._profiles import seasonal_naive
from ._table import Table
from ._time import TimeIndex
from ._transformer_forecaster import TransformerForecaster

__all__ = [
    "Calibration",
    "Forecaster",
    "Forecasts",
    "KernelForecaster",
    "Origins",
    "Table",
    "TimeIndex",
    "TransformerForecaster",
    "crps",
    "mase",
    "msis",
    "naive_scale",
    "seasonal_naive",
]
