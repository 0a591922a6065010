"""The four test curves of nonparametric regression, with noise."""

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._validation import check_choice, check_positive, check_size

# Donoho and Johnstone (1994), Table 1. Blocks and bumps change at the same eleven places.
_PLACES = (0.1, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81)
_BLOCK_STEPS = (4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2)
_BUMP_HEIGHTS = (4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2)
_BUMP_WIDTHS = (0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005)


def _blocks(t):
    steps = zip(_PLACES, _BLOCK_STEPS, strict=True)
    return sum(height * (1 + np.sign(t - place)) / 2 for place, height in steps)


def _bumps(t):
    bumps = zip(_PLACES, _BUMP_HEIGHTS, _BUMP_WIDTHS, strict=True)
    return sum(h * (1 + np.abs((t - place) / width)) ** -4 for place, h, width in bumps)


def _heavisine(t):
    return 4 * np.sin(4 * math.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t)


def _doppler(t):
    return np.sqrt(t * (1 - t)) * np.sin(2 * math.pi * 1.05 / (t + 0.05))


# For each name the curve, and its standard deviation over the unit interval, which was computed
# by quadrature to 30 digits. Curves are divided by this constant, and not by the standard
# deviation of the sample, so that every sample shows the same curve.
_CURVES = {
    "blocks": (_blocks, 1.9141313956988959),
    "bumps": (_bumps, 0.6648397089604301),
    "doppler": (_doppler, 0.2889963835793447),
    "heavisine": (_heavisine, 2.9699569424493600),
}


def make_smoothing_curve(
    name,
    n_samples: int = 2048,
    *,
    signal_to_noise: float = 7.0,
    design: str = "grid",
    random_state=None,
    return_truth: bool = False,
) -> Any:
    r"""Sample one of the test curves of Donoho and Johnstone, with Gaussian noise.

    Each curve is hard to smooth in its own way: *blocks* is a step function, *bumps* has sharp
    peaks, *heavisine* is smooth but for two jumps, and *doppler* oscillates ever faster as x
    approaches 0, so that no single bandwidth suits all of it.

    Parameters
    ----------
    name : {"blocks", "bumps", "doppler", "heavisine"}
        The curve.
    n_samples : int, default=2048
        Number of rows.
    signal_to_noise : float, default=7.0
        Standard deviation of the curve, divided by that of the noise. The noise always has the
        standard deviation 1, and the curve is scaled. 7 is the value of [1]_.
    design : {"grid", "uniform"}, default="grid"
        Places at which the curve is sampled. "grid" is :math:`i / n` for
        :math:`i = 1, \dots, n`, as in [1]_. "uniform" are places that are drawn uniformly from
        the unit interval, and sorted.
    random_state : int, RandomState instance or None, default=None
        Determines the noise and the random design. Pass an int for reproducible output
        across calls.
    return_truth : bool, default=False
        Whether to return the curve without noise as well.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The places, in increasing order.
    y : ndarray of shape (n_samples,)
        The curve with noise.
    truth : ndarray of shape (n_samples,)
        The curve without noise. Only returned if `return_truth` is True.

    Raises
    ------
    ValueError
        If `name` or `design` is unknown, `n_samples` is not an integer of at least 1, or
        `signal_to_noise` is not a positive finite number.

    See Also
    --------
    make_periodic_series : Periodic series to forecast.

    Notes
    -----
    Before scaling, the curves on :math:`0 \le t \le 1` are

    .. math::

        \text{blocks}(t) &= \sum_j h_j \, \frac{1 + \operatorname{sgn}(t - t_j)}{2}

        \text{bumps}(t) &= \sum_j h'_j \left(1 + \left|\frac{t - t_j}{w_j}\right|\right)^{-4}

        \text{doppler}(t) &= \sqrt{t (1 - t)} \,
            \sin\left(\frac{2 \pi (1 + \varepsilon)}{t + \varepsilon}\right),
            \qquad \varepsilon = 0.05

        \text{heavisine}(t) &= 4 \sin(4 \pi t) - \operatorname{sgn}(t - 0.3)
            - \operatorname{sgn}(0.72 - t)

    with the constants of Table 1 in [1]_. The scale is the curve's standard deviation over
    the whole interval, so samples of any size, design and random state with the same
    `signal_to_noise` show the same curve and can serve as training and test sets.

    References
    ----------
    .. [1] Donoho, D. L. and Johnstone, I. M. (1994). Ideal spatial adaptation by wavelet
       shrinkage. Biometrika 81, 425-455.

    Examples
    --------
    >>> from sklearn_attention.datasets import make_smoothing_curve
    >>> X, y = make_smoothing_curve("doppler", 500, random_state=0)
    >>> X.shape, y.shape
    ((500, 1), (500,))

    The truth shows how much of the noise a smoother removes:

    >>> X, y, truth = make_smoothing_curve("bumps", random_state=0, return_truth=True)
    >>> round(float((y - truth).std()), 1)
    1.0
    >>> round(float(truth.std()))
    7
    """
    check_choice("name", name, _CURVES)
    check_size("n_samples", n_samples, 8)
    check_positive("signal_to_noise", signal_to_noise)
    check_choice("design", design, ("grid", "uniform"))
    rng = check_random_state(random_state)
    if design == "grid":
        t = np.arange(1, n_samples + 1) / n_samples
    else:
        t = np.sort(rng.uniform(size=n_samples))
    curve, curve_std = _CURVES[name]
    truth = curve(t) * (signal_to_noise / curve_std)
    X, y = t[:, np.newaxis], truth + rng.standard_normal(n_samples)
    return (X, y, truth) if return_truth else (X, y)
