"""Minimising a bumpy curve over a positive scale."""

import numpy as np
from scipy.optimize import minimize_scalar

# A bandwidth is known to a tenth of a per mille; no criterion is sharper than that.
_RELATIVE_PRECISION = 1e-4
# Points of the first grid; how many of its valleys get a finer one, and of how many points
# each; how many of all valleys are followed to the bottom, in how many steps each.
_GRID = 60
_FINER_VALLEYS, _FINER_GRID = 4, 12
_BOTTOMS, _STEPS = 2, 16
MAX_CANDIDATES = _GRID + _FINER_VALLEYS * _FINER_GRID + _BOTTOMS * _STEPS


class _Stop(Exception):
    """The caller has seen enough."""


def minimize_scale(criterion, low, high):
    """Scale between ``low`` and ``high`` at which a criterion is smallest.

    The curve may have many local minima, jumps, or be infinite in places. It is laid out
    on a logarithmic grid, laid out finer in the grid's lowest valleys, and the lowest of
    those are followed to the bottom by Brent's method.

    Parameters
    ----------
    criterion : callable
        ``criterion(scale) -> (value, stop)``: the value there, where NaN counts as
        infinite, and whether to end the search with the best scale so far.
    low, high : float
        Ends of the search, ``0 < low < high``.

    Returns
    -------
    scale : float
        The best scale that was tried.
    value : float
        The criterion there; infinite if it was finite nowhere.

    Examples
    --------
    >>> from sklearn_attention.bandwidth import minimize_scale
    >>> scale, value = minimize_scale(lambda h: ((h - 2.0) ** 2, False), 0.01, 100.0)
    >>> round(scale, 3)
    2.0
    """
    tried = {}

    def evaluate(log_scale):
        scale = float(np.exp(log_scale))
        value, stop = criterion(scale)
        tried[scale] = np.inf if np.isnan(value) else float(value)
        if stop:
            raise _Stop
        return tried[scale]

    try:
        for point in np.linspace(np.log(low), np.log(high), _GRID):
            evaluate(point)
        for start, end in _valleys(tried, _FINER_VALLEYS):
            for point in np.linspace(start, end, _FINER_GRID + 2)[1:-1]:
                evaluate(point)
        for bounds in _valleys(tried, _BOTTOMS):
            options = {"xatol": _RELATIVE_PRECISION, "maxiter": _STEPS}
            minimize_scalar(evaluate, bounds=bounds, method="bounded", options=options)
    except _Stop:
        pass
    scale = min(tried, key=tried.get)
    return scale, tried[scale]


def _valleys(tried, n_valleys):
    """Ends, on the log scale, of the lowest valleys between the points tried so far."""
    scales = np.array(sorted(tried))
    values = np.array([tried[scale] for scale in scales])
    padded = np.concatenate([[np.inf], values, [np.inf]])
    bottoms = (values <= padded[:-2]) & (values <= padded[2:]) & np.isfinite(values)
    points = np.flatnonzero(bottoms)
    points = points[np.argsort(values[points], kind="stable")][:n_valleys]
    starts, ends = np.maximum(points - 1, 0), np.minimum(points + 1, len(scales) - 1)
    return list(zip(np.log(scales[starts]), np.log(scales[ends]), strict=True))
