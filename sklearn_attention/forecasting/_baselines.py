"""Linear forecasts of windows in closed form: seasonal naive, and ridge regression."""

from typing import NamedTuple

import numpy as np

from .._validation import check_positive

# Ridge penalties tried, relative to the mean squared singular value of the windows.
ALPHAS = tuple(10.0 ** np.arange(-6, 2.1, 0.5))


def seasonal_naive(past, horizon, season_length):
    """Repeat the last season.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
        Windows.
    horizon : int
        How many steps to forecast.
    season_length : int
        Steps in a season, at most `lookback`; 1 repeats the last value.

    Returns
    -------
    forecasts : ndarray of shape (n_windows, horizon)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.forecasting import seasonal_naive
    >>> seasonal_naive(np.array([[5, 1, 2, 3]]), horizon=4, season_length=3)
    array([[1, 2, 3, 1]])
    """
    season_length = check_positive("season_length", season_length, integer=True)
    lookback = past.shape[1]
    if season_length > lookback:
        raise ValueError(
            f"season_length={season_length!r} is longer than the windows of {lookback} steps: "
            "pass a smaller one, or longer windows."
        )
    steps = np.arange(check_positive("horizon", horizon, integer=True)) % season_length
    return past[:, lookback - season_length + steps]


class RidgeMap(NamedTuple):
    """A linear map from windows to what follows.

    Attributes
    ----------
    coef : ndarray of shape (lookback, horizon)
        Weights of the steps of a window, less its last value.
    alpha : float
        The penalty that was chosen, relative to the mean squared singular value.
    """

    coef: np.ndarray
    alpha: float

    def predict(self, past):
        """Forecast what follows windows.

        Parameters
        ----------
        past : ndarray of shape (n_windows, lookback)

        Returns
        -------
        forecasts : ndarray of shape (n_windows, horizon)
        """
        last = past[:, -1:]
        return last + (past - last) @ self.coef


def fit_ridge(past, target, *, scale=1.0, alphas=ALPHAS, holdout=None):
    r"""Ridge regression from windows to what followed, all steps at once.

    Parameters
    ----------
    past : ndarray of shape (n_windows, lookback)
        Windows.
    target : ndarray of shape (n_windows, horizon)
        What followed them.
    scale : float or ndarray of shape (n_windows,), default=1.0
        Unit of each window, such as that of its series, so that several series count alike.
    alphas : sequence of float, default=ALPHAS
        Penalties to choose from, relative to the mean squared singular value.
    holdout : tuple of (past, target) or (past, target, scale), default=None
        Windows to choose the penalty by; None chooses by generalised cross-validation.

    Returns
    -------
    ridge : RidgeMap

    Raises
    ------
    ValueError
        If shapes do not fit, or `alphas` has none that is positive.

    Notes
    -----
    Windows and what followed are taken relative to the window's last value, and there is no
    intercept, so that the map is the same at all levels and in all units:

    .. math:: \min_B \sum_i \lVert y_i - l_i - B^\top (x_i - l_i) \rVert^2 / s_i^2
              + \alpha \lVert B \rVert^2

    One decomposition of the lookback x lookback matrix of products serves all penalties.
    Generalised cross-validation [1]_ counts overlapping windows as if they were independent,
    so it shrinks less than a hold-out.

    References
    ----------
    .. [1] Golub, G. H., Heath, M. and Wahba, G. (1979). Generalized cross-validation as a
       method for choosing a good ridge parameter. Technometrics 21, 215-223.

    Examples
    --------
    >>> import numpy as np
    >>> from numpy.lib.stride_tricks import sliding_window_view
    >>> from sklearn_attention.forecasting import fit_ridge
    >>> windows = sliding_window_view(np.sin(0.3 * np.arange(200)), 12)
    >>> ridge = fit_ridge(windows[:, :10], windows[:, 10:])
    >>> bool(abs(ridge.predict(windows[:, :10]) - windows[:, 10:]).max() < 1e-3)
    True
    """
    if len(past) != len(target) or len(past) == 0:
        raise ValueError(
            f"past has {len(past)} windows and target {len(target)}: pass as many of each, and "
            "at least one."
        )
    alphas = [check_positive("alphas", alpha) for alpha in alphas]
    if not alphas:
        raise ValueError("alphas=[] is not valid: pass at least one.")
    x, y = _relative(past, target, scale)
    powers, directions = np.linalg.eigh(x.T @ x)
    powers = np.maximum(powers, 0.0)
    unit = powers.mean() or 1.0
    products = directions.T @ (x.T @ y)  # (lookback, horizon)

    def ridge_at(alpha):
        coef = directions @ (products / (powers + alpha * unit)[:, None])
        return RidgeMap(coef, alpha)

    if len(alphas) == 1:
        return ridge_at(alphas[0])
    if holdout is not None:
        later, later_target, *units = holdout
        x_later, y_later = _relative(later, later_target, *(units or [1.0]))

        def error(ridge):
            return np.mean((y_later - x_later @ ridge.coef) ** 2)

    else:
        n = len(x)

        def error(ridge):
            freedom = np.sum(powers / (powers + ridge.alpha * unit))
            rest = np.mean((y - x @ ridge.coef) ** 2)
            return rest / max(1 - freedom / n, 1e-12) ** 2

    return min(map(ridge_at, alphas), key=error)


def _relative(past, target, scale):
    last, scale = past[:, -1:], np.reshape(scale, (-1, 1))
    return (past - last) / scale, (target - last) / scale
