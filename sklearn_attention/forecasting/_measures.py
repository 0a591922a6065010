"""What is measured of whole series: how much they vary, and around what."""

from typing import NamedTuple

import numpy as np


class Measures(NamedTuple):
    """Level and units of several series.

    Attributes
    ----------
    scale : ndarray of shape (n_series,)
        Mean absolute difference between neighbours, the error of the naive forecast.
    level : ndarray of shape (n_series,)
        Mean.
    unit : ndarray of shape (n_series,)
        Standard deviation.
    """

    scale: np.ndarray
    level: np.ndarray
    unit: np.ndarray

    def take(self, rows):
        """Measures of some of the series."""
        return Measures(*(values[rows] for values in self))


def measure(values, share=1.0):
    """Measure series.

    Parameters
    ----------
    values : list of ndarray of shape (n_steps,)
        The series.
    share : float, default=1.0
        Level and unit are those of so much of each series, its beginning, unless that is
        constant.

    Returns
    -------
    measures : Measures
        With a scale and a unit of 1 for constant series and single values, so that they may
        divide.
    """
    rows = [_levels_of(own, share) for own in values]
    return Measures(*np.array(rows).T)


def _levels_of(values, share):
    steps = np.abs(np.diff(values)).mean() if len(values) > 1 else 0.0
    beginning = values[: max(1, round(share * len(values)))]
    spread = spread_of(beginning)
    if spread == 0:
        beginning, spread = values, spread_of(values)
    return dividing(steps), beginning.mean(), dividing(spread)


def spread_of(values, axis=None):
    """Standard deviation, 0 where rounding is all there is to it.

    Parameters
    ----------
    values : ndarray
    axis : int or tuple of int, default=None
        Along which; None for all of them.

    Returns
    -------
    spread : float or ndarray
    """
    spread = values.std(axis=axis)
    return np.where(spread > 1e-12 * np.abs(values).max(axis=axis), spread, 0.0)


def dividing(spread):
    """Spreads that may divide: 1 in the place of 0.

    Parameters
    ----------
    spread : float or ndarray

    Returns
    -------
    spread : ndarray
    """
    return np.where(spread > 0, spread, 1.0)
