"""Forecasting series: candidates and attention over them, analogs, and the forms of series."""

# What those who write a forecaster of their own use is imported, but not listed.
from ._calibration import Calibration as Calibration
from ._forecaster import Forecaster
from ._metrics import crps, mase, msis, naive_scale, seasonal_naive
from ._origins import Forecasts as Forecasts
from ._origins import Origins as Origins
from ._table import Table as Table
from ._time import TimeIndex as TimeIndex

__all__ = ["Forecaster", "crps", "mase", "msis", "naive_scale", "seasonal_naive"]
