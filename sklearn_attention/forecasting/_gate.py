"""How much of what was learned on top of a base may be trusted."""

import numpy as np
from scipy.special import stdtrit

# The hold-out is judged in so many stretches of time; with fewer than three there is no
# telling luck from merit.
_FEWEST_GROUPS, _MOST_STRETCHES = 3, 8
_CONFIDENCE = 0.9
# A network that takes less off the squared error is not worth asking.
_LEAST_GAIN = 0.02


def fit_gate(residuals, corrections, origins, series=None):
    r"""Share of the corrections that windows held out support.

    The gate of least squares, less its uncertainty: the lower end of its one-sided confidence
    interval of 90 %,

    .. math:: \hat g = \frac{\sum_b p_b}{\sum_b q_b}, \qquad
              g = \hat g - t_{0.9, B - 1}
              \frac{\sqrt{\frac{B}{B - 1} \sum_b (p_b - \hat g q_b)^2}}{\sum_b q_b}

    with :math:`p_b = \sum_{i \in b} c_i^\top r_i` and :math:`q_b = \sum_{i \in b} c_i^\top c_i`
    summed over each of :math:`B` stretches of time; between 0 and 1.

    Parameters
    ----------
    residuals : ndarray of shape (n_windows, horizon)
        What the base missed, :math:`r`, in comparable units.
    corrections : ndarray of shape (n_windows, horizon)
        What is to be added to the base, :math:`c`.
    origins : ndarray of shape (n_windows,)
        When the windows ended.
    series : ndarray of shape (n_windows,), default=None
        Which series each window is of; None if there is one.

    Returns
    -------
    gate : float
        Between 0 and 1. It is 0 where there are less than three horizons of time and less
        than three series to judge by, and where it would take less than 2 % off the squared
        error.

    Notes
    -----
    Neighbouring windows overlap, so that the errors of a stretch of time are of one kind, and
    corrections that help in one stretch prove little. Stretches are as long as the horizon or
    longer, at most eight; what they tell is nearly independent, and their spread tells how
    sure the ratio is [1]_. Series too short for three stretches are judged series by series.

    References
    ----------
    .. [1] Cochran, W. G. (1977). Sampling techniques, 3rd edition, section 6.4. Wiley.
    """
    group = _groups(residuals.shape[1], origins, series)
    n_groups = 0 if group is None else group.max() + 1
    if n_groups < _FEWEST_GROUPS:
        return 0.0
    products = np.bincount(group, np.sum(residuals * corrections, axis=1))
    powers = np.bincount(group, np.sum(corrections**2, axis=1))
    if powers.sum() == 0:
        return 0.0
    gate = products.sum() / powers.sum()
    spread = np.sum((products - gate * powers) ** 2) * n_groups / (n_groups - 1)
    margin = stdtrit(n_groups - 1, _CONFIDENCE) * np.sqrt(spread) / powers.sum()
    gate = float(np.clip(gate - margin, 0.0, 1.0))
    gain = gate * (2 * products.sum() - gate * powers.sum())
    return gate if gain > _LEAST_GAIN * np.sum(residuals**2) else 0.0


def _groups(horizon, origins, series):
    """Stretch of time that each window is in, or its series; None if there are no windows."""
    n = len(origins)
    if n == 0:
        return None
    n_stretches = min(_MOST_STRETCHES, (np.ptp(origins) + 1) // horizon, n)
    if n_stretches >= _FEWEST_GROUPS or series is None:
        rank = np.argsort(np.argsort(origins, kind="stable"), kind="stable")
        return rank * max(1, n_stretches) // n
    return np.unique(series, return_inverse=True)[1]
