"""Forecasting: what follows the windows that series end with."""

from ._baselines import RidgeMap, fit_ridge, seasonal_naive
from ._forecaster import Forecaster
from ._index import TimeIndex
from ._kernel_forecaster import KernelForecaster
from ._measures import Measures, measure
from ._metrics import crps, mase, msis, naive_scale
from ._panel import Panel
from ._transformer_forecaster import TransformerForecaster
from ._windows import WindowBatch, Windows

__all__ = [
    "Forecaster",
    "KernelForecaster",
    "Measures",
    "Panel",
    "RidgeMap",
    "TimeIndex",
    "TransformerForecaster",
    "WindowBatch",
    "Windows",
    "crps",
    "fit_ridge",
    "mase",
    "measure",
    "msis",
    "naive_scale",
    "seasonal_naive",
]
