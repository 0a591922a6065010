"""How much whole series vary."""

import numpy as np


def naive_scales(values):
    """Mean absolute differences between neighbours, the errors of the naive forecast.

    Parameters
    ----------
    values : list of ndarray of shape (n_steps,)
        The series.

    Returns
    -------
    scales : ndarray of shape (n_series,)
        1 for constant series and single values, so that they may divide.
    """
    steps = [np.abs(np.diff(own)).mean() if len(own) > 1 else 0.0 for own in values]
    return dividing(np.array(steps))


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
