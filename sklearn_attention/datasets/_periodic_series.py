"""Three periodic series on which forecasters are compared."""

import numpy as np

from .._validation import check_choice, check_positive, check_size


def _sine(x):
    return np.sin(x)


def _growing_sine(x):
    return np.sin(x) * np.exp(0.01 * x)


def _square(x):
    return np.where(np.mod(x, 2 * np.pi) < np.pi, 1.0, -1.0)


_SERIES = {"sine": _sine, "growing_sine": _growing_sine, "square": _square}


def make_periodic_series(name, n_steps: int = 1200, *, step: float = 0.1) -> np.ndarray:
    r"""Sample one of three periodic series at regular steps, without noise.

    All three have the period :math:`2\pi`, but the amplitude of the growing one increases. A
    period is not a whole number of steps, so that repeating the last one does not forecast
    exactly.

    Parameters
    ----------
    name : {"sine", "growing_sine", "square"}
        The series: a sine; a sine whose amplitude grows; a square wave, 1 in the first
        half of each period and -1 in the second.
    n_steps : int, default=1200
        Number of observations. The default suits the comparison below: 1000 to learn from and
        200 to forecast.
    step : float, default=0.1
        Distance between observations. Observation :math:`i` is taken at
        :math:`x_i = i \cdot \text{step}`, starting from :math:`x_0 = 0`.

    Returns
    -------
    series : ndarray of shape (n_steps,)
        The observations.

    Raises
    ------
    ValueError
        If `name` is unknown, `n_steps` is not an integer of at least 1, or `step` is not
        a positive finite number.

    See Also
    --------
    make_smoothing_curve : Noisy curves to smooth.

    Notes
    -----
    .. math::

        \text{sine}(x) &= \sin x

        \text{growing sine}(x) &= e^{0.01 x} \sin x

        \text{square}(x) &= \begin{cases} 1 & x \bmod 2\pi < \pi \\
                                          -1 & \text{otherwise} \end{cases}

    A published comparison of transformers trains on the first 1000 steps, forecasts the
    next 200 recursively from its own predictions, and reports their mean squared error. On
    the square wave a single edge placed one step too early or too late costs
    4 / 200 = 0.02.

    Examples
    --------
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> series = make_periodic_series("growing_sine")
    >>> past, future = series[:1000], series[1000:]
    >>> past.shape, future.shape
    ((1000,), (200,))

    A pandas Series is one call away:

    >>> import pandas as pd
    >>> pd.Series(make_periodic_series("square", 70), name="square").value_counts()
    square
     1.0    39
    -1.0    31
    Name: count, dtype: int64
    """
    check_choice("name", name, _SERIES)
    check_size("n_steps", n_steps, 4)
    check_positive("step", step)
    return _SERIES[name](step * np.arange(n_steps))
