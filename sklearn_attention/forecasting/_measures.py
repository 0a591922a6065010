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


def measure(values):
    """Measure series.

    Parameters
    ----------
    values : list of ndarray of shape (n_steps,)
        The series.

    Returns
    -------
    measures : Measures
        With a scale and a unit of 1 for constant series and single values, so that they may
        divide.
    """
    steps = [np.abs(np.diff(own)).mean() if len(own) > 1 else 0.0 for own in values]
    spreads = np.array([own.std() for own in values])
    largest = np.array([np.abs(own).max() for own in values])
    return Measures(
        np.where(np.array(steps) > 0, steps, 1.0),
        np.array([own.mean() for own in values]),
        np.where(spreads > 1e-12 * largest, spreads, 1.0),
    )
