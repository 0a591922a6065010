"""Datasets made by a formula: curves to smooth and series to forecast. No downloads."""

from ._periodic_series import make_periodic_series
from ._smoothing_curves import make_smoothing_curve

__all__ = [
    "make_periodic_series",
    "make_smoothing_curve",
]
