"""Minimisation of a bumpy curve over a positive scale, and descents in several bandwidths."""

import numpy as np
from scipy.optimize import minimize

# Distance of the points of the first grid, as a difference of logarithms.
STEP = 0.15
# The same for smooth curves, such as those of many rows.
WIDE_STEP = 0.35
# Number of the lowest valleys that get a finer grid and are followed to the bottom, and the
# factor by which this grid is finer.
_VALLEYS, _FINER = 2, 4
# A bottom is approached in rounds of four points and the lowest point of the cubic through
# them, whose error is in proportion to the third power of their distance. The distance shrinks
# by the first factor in each round, down to the precision, below which values differ by
# rounding.
_SHRINK, PRECISION = 10.0, 5e-4
# A valley is left out if it is higher than the lowest one by this share of the height of the
# median. (The largest value may be larger by any power of ten.)
_NO_RIVAL = 0.2


def minimize_scale(
    criterion, low, high, *, step=STEP, approximate=None, error=0.0, precision=PRECISION
):
    """Return the scale from `low` to `high` with the smallest criterion, and its value.

    The curve may have many local minima, jumps, or infinite values. It is computed on a
    logarithmic grid, which is refined in its lowest valleys; cubics through four points at a
    time then follow the lowest of those to the bottom. Of equally good scales the largest is
    taken. The value is infinite if it was finite nowhere.

    ``criterion(scales)`` has the values, NaN counted as infinite; an exception in it ends the
    search. ``approximate(scales)`` has about these values for less time: it is used on the
    grids, and `criterion` only near the bottoms, whose positions on the grid may be wrong by
    `error`, in logarithms. `step` is that of the grid, in logarithms. If the precision of the
    bottom may be lower, the grid is not refined and one valley is followed.
    """
    tried = {}
    ends = np.log([low, high])

    def exact(points):
        values = _finite(criterion(np.exp(points)))
        tried.update(zip(points.tolist(), values.tolist(), strict=True))
        return values

    # A range of a whole number of steps has this number, whatever the rounding.
    n_steps = int(np.ceil(np.diff(ends)[0] / step - 1e-6))
    grid = np.linspace(*ends, 1 + max(3, n_steps))
    known = tried if approximate is None else {}

    def lay_out(points):
        if approximate is None:
            exact(points)
        else:
            values = _finite(approximate(np.exp(points)))
            known.update(zip(points.tolist(), values.tolist(), strict=True))

    lay_out(grid)
    is_coarse = precision > PRECISION
    for start, _, end in [] if is_coarse else _valleys(known):
        n_finer = round((end - start) / step) * _FINER - 1
        lay_out(np.linspace(start, end, n_finer + 2)[1:-1])
    for start, bottom, end in _valleys(known)[: 1 if is_coarse else None]:
        _descend(exact, bottom, max(bottom - start, end - bottom, error), ends, precision)
    if not tried:
        return float(low), np.inf
    point = min(tried, key=lambda point: (tried[point], -point))
    return float(np.exp(point)), tried[point]


def descend(objective, start, bounds, *, size, n_steps=1000):
    """Minimise a function that returns its value and gradient, from a starting point."""
    # Minimisers stop at changes far below 1, so values are in units of their size.
    size = abs(size) if 0 < abs(size) < np.inf else 1.0

    def in_units(point):
        value, gradient = objective(point)
        return value / size, gradient / size

    options = {"maxiter": n_steps, "ftol": 1e-5, "gtol": 1e-12}
    minimize(in_units, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def _finite(values):
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(values), np.inf, values)


def _descend(evaluate, center, distance, ends, precision):
    """Approach the bottom of a valley, which is at most at a distance from a center."""
    while distance >= precision:
        points = np.clip(center + distance * np.array([-1, -1 / 3, 1 / 3, 1]), *ends)
        points = np.unique(points)
        values = evaluate(points)
        lowest = _lowest_of_cubic(points, values)
        value = evaluate(np.array([lowest]))[0]
        best = values.argmin()
        center = lowest if value <= values[best] else points[best]
        distance /= _SHRINK


def _lowest_of_cubic(points, values):
    """Return the lowest point of the cubic through four points, between these."""
    best = points[values.argmin()]
    if len(points) < 4 or not np.isfinite(values).all():
        return best
    middle, half = (points[0] + points[-1]) / 2, (points[-1] - points[0]) / 2
    cubic = np.polynomial.Polynomial.fit((points - middle) / half, values, 3, domain=[-1, 1])
    c, b, a = np.pad(cubic.deriv().coef, (0, 3))[:3]
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return best
    # In this form no digits cancel, even if the cubic is nearly a parabola.
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.array([q / a, c / q])
    turns = turns[np.abs(turns) <= 1]
    if len(turns) == 0:
        return best
    lowest = turns[cubic(turns).argmin()]
    return middle + half * lowest if cubic(lowest) <= values.min() else best


def _valleys(values_at):
    """Return start, bottom and end, as logarithms, of the lowest valleys."""
    points = np.array(sorted(values_at))
    values = np.array([values_at[point] for point in points])
    known = np.isfinite(values)
    if not known.any():
        return []
    lowest = values.min()
    limit = lowest + _NO_RIVAL * (np.median(values[known]) - lowest)
    padded = np.concatenate([[np.inf], values, [np.inf]])
    bottoms = known & (values <= padded[:-2]) & (values <= padded[2:]) & (values <= limit)
    places = np.flatnonzero(bottoms)
    places = places[np.argsort(values[places], kind="stable")][:_VALLEYS]
    starts, ends = np.maximum(places - 1, 0), np.minimum(places + 1, len(points) - 1)
    return list(zip(points[starts], points[places], points[ends], strict=True))
