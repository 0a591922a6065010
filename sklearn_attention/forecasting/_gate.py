"""How much of what was learned on top of a base may be trusted."""

import numpy as np

# The hold-out is judged block by block, and no block may lose.
_BLOCKS = 4
_FEWEST_WINDOWS = 8


def fit_gate(residuals, corrections, origins):
    r"""Share of the corrections that windows held out support.

    .. math:: g = \min\Bigl(1, \frac{\sum_i c_i^\top r_i}{\sum_i c_i^\top c_i}\Bigr)

    if that is positive, and lessens the squared error in every one of four blocks of time;
    otherwise 0.

    Parameters
    ----------
    residuals : ndarray of shape (n_windows, horizon)
        What the base missed, :math:`r`, in comparable units.
    corrections : ndarray of shape (n_windows, horizon)
        What is to be added to the base, :math:`c`.
    origins : ndarray of shape (n_windows,)
        When the windows ended.

    Returns
    -------
    gate : float
        Between 0 and 1.

    Notes
    -----
    Neighbouring windows overlap, so that the errors of a stretch of time are of one kind: one
    stretch in which corrections help proves little.
    """
    power = np.sum(corrections**2)
    if len(residuals) < _FEWEST_WINDOWS or power == 0:
        return 0.0
    gate = min(1.0, np.sum(residuals * corrections) / power)
    if gate <= 0:
        return 0.0
    gained = residuals**2 - (residuals - gate * corrections) ** 2
    of_windows = gained.mean(axis=1)[np.argsort(origins, kind="stable")]
    blocks = np.array_split(of_windows, _BLOCKS)
    return float(gate) if all(block.mean() > 0 for block in blocks) else 0.0
