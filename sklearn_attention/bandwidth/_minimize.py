"""Minimisation of a bumpy criterion over a positive scale, and descents in several variables.

In this module a point is the logarithm of a scale, and distances and steps are differences of
such logarithms. A valley is a point of a grid that is not higher than its two neighbours, with
these neighbours.
"""

import numpy as np
from scipy.optimize import minimize

# Step of the first grid.
STEP = 0.15
# Step of the first grid for smooth curves, such as those of many rows.
WIDE_STEP = 0.35
# Maximum number of valleys, the lowest ones, that get a finer grid and are followed to the
# bottom, and the factor by which the step of this grid is smaller.
_MAX_VALLEYS, _REFINEMENT = 2, 4
# The bottom of a valley is approached in rounds. Each evaluates four points and the minimum of
# the cubic through them, whose error is in proportion to the third power of their distance. So
# the distance is divided by the first number in each round, until it is below the second one,
# where values differ only by rounding.
_CONTRACTION, PRECISION = 10.0, 5e-4
# A valley is skipped if it is higher than the lowest one by more than this fraction of the
# distance from the lowest to the median value. (The largest value would not do as a measure of
# the curve's height: it may be larger by any power of ten.)
_MAX_RELATIVE_HEIGHT = 0.2


def minimize_scale(
    criterion, low, high, *, step=STEP, approximate=None, error=0.0, precision=PRECISION
):
    """Find the scale from `low` to `high` at which a criterion is smallest.

    The criterion may have many local minima, jumps, or infinite values. It is computed on a
    logarithmic grid, which is refined in its lowest valleys; cubics through four points then
    lead to their bottoms.

    Parameters
    ----------
    criterion : callable
        ``criterion(scales)`` returns the values (n,) at scales (n,). NaN counts as infinity; an
        exception ends the search.
    low, high : float
        The range of scales; both are positive.
    step : float
        Step of the first grid.
    approximate : callable, default=None
        ``approximate(scales)`` returns approximate values in less time. They replace those of
        `criterion` on the grids, but not near the bottoms of valleys.
    error : float, default=0.0
        Maximum distance between a bottom of the approximate values and one of the criterion.
    precision : float
        Precision of the best point. If it is larger than `PRECISION`, the grid is not refined
        and only the lowest valley is followed.

    Returns
    -------
    scale : float
        The best scale; of equally good ones the largest.
    value : float
        The criterion at this scale; infinite if no computed value was finite.
    """
    computed = {}  # values of the criterion by point

    def evaluate(points):
        values = _nan_to_infinity(criterion(np.exp(points)))
        computed.update(zip(points.tolist(), values.tolist(), strict=True))
        return values

    grid = computed if approximate is None else {}  # values on the grids by point

    def extend_grid(points):
        if approximate is None:
            evaluate(points)
        else:
            values = _nan_to_infinity(approximate(np.exp(points)))
            grid.update(zip(points.tolist(), values.tolist(), strict=True))

    # 1. Compute the first grid. The small number is subtracted so that a range of n steps has n
    # of them in spite of rounding.
    ends = np.log([low, high])
    n_steps = int(np.ceil(np.diff(ends)[0] / step - 1e-6))
    extend_grid(np.linspace(*ends, 1 + max(3, n_steps)))
    # 2. Refine it in its lowest valleys.
    is_coarse = precision > PRECISION
    if not is_coarse:
        for start, _, end in _lowest_valleys(grid):  # `start` and `end` are on the grid already
            n_inner = round((end - start) / step) * _REFINEMENT - 1
            extend_grid(np.linspace(start, end, n_inner + 2)[1:-1])
    # 3. Follow the lowest valleys of all grids to their bottoms.
    # A coarse search follows only the lowest one.
    for start, lowest, end in _lowest_valleys(grid)[: 1 if is_coarse else None]:
        distance = max(lowest - start, end - lowest, error)
        _follow_to_bottom(evaluate, lowest, distance, ends, precision)
    if not computed:
        return float(low), np.inf
    best = min(computed, key=lambda point: (computed[point], -point))
    return float(np.exp(best)), computed[best]


def descend(objective, start, bounds, *, size, n_steps=1000):
    """Minimise a function of several variables by L-BFGS-B.

    Nothing is returned: the objective stores the points at which it is called.

    Parameters
    ----------
    objective : callable
        ``objective(point)`` returns the value and the gradient (n_variables,).
    start : ndarray of shape (n_variables,)
    bounds : ndarray of shape (n_variables, 2)
    size : float
        Typical absolute value of the objective.
    n_steps : int
        Maximum number of iterations.
    """
    # The tolerance `ftol` is relative to 1 if the value is smaller, and L-BFGS-B would stop too
    # early at a small value. So values are divided by their size. The tiny `gtol` leaves the
    # decision to `ftol`.
    size = abs(size) if 0 < abs(size) < np.inf else 1.0

    def scaled_objective(point):
        value, gradient = objective(point)
        return value / size, gradient / size

    options = {"maxiter": n_steps, "ftol": 1e-5, "gtol": 1e-12}
    minimize(
        scaled_objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )


def _nan_to_infinity(values):
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(values), np.inf, values)


def _follow_to_bottom(evaluate, center, distance, ends, precision):
    """Evaluate points closer and closer to the bottom of a valley.

    ``evaluate(points)`` returns the criterion, and stores it; nothing else is returned. The
    bottom is at most `distance` away from the center, and lies between the two `ends` of the
    range of points.
    """
    while distance >= precision:
        points = np.clip(center + distance * np.array([-1, -1 / 3, 1 / 3, 1]), *ends)
        points = np.unique(points)  # at an end of the range several are equal
        values = evaluate(points)
        minimum = _minimum_of_cubic(points, values)
        value = evaluate(np.array([minimum]))[0]
        best = values.argmin()
        center = minimum if value <= values[best] else points[best]
        distance /= _CONTRACTION


def _minimum_of_cubic(points, values):
    """Return the point at which the cubic through four points has its minimum among them.

    The result is the point with the smallest value if the cubic has no lower minimum between
    the points, if a value is infinite, or if there are fewer than four points.
    """
    best = points[values.argmin()]  # the result if the cubic has no lower minimum
    if len(points) < 4 or not np.isfinite(values).all():
        return best
    # The cubic is fitted to points that are rescaled to [-1, 1].
    middle, half = (points[0] + points[-1]) / 2, (points[-1] - points[0]) / 2
    cubic = np.polynomial.Polynomial.fit((points - middle) / half, values, 3, domain=[-1, 1])
    c, b, a = cubic.deriv().coef  # the derivative is a x^2 + b x + c
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return best
    # In this form of the roots no digits cancel, even if the cubic is nearly a parabola.
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.array([q / a, c / q])
    roots = roots[np.abs(roots) <= 1]  # only those between the first and the last point
    if len(roots) == 0:
        return best
    minimum = roots[cubic(roots).argmin()]
    return middle + half * minimum if cubic(minimum) <= values.min() else best


def _lowest_valleys(value_of_point):
    """Find the lowest valleys of a curve, which is a dict of values by point.

    Returns a list of at most `_MAX_VALLEYS` valleys, the lowest one first. A valley is a tuple
    of three points: the next smaller point, the lowest point, and the next larger point.
    """
    points = np.array(sorted(value_of_point))
    values = np.array([value_of_point[point] for point in points])
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return []
    # Valleys that are higher than `highest` are skipped.
    lowest = values.min()
    highest = lowest + _MAX_RELATIVE_HEIGHT * (np.median(values[is_finite]) - lowest)
    # An end of the curve is a valley if it is not higher than its only neighbour.
    padded = np.concatenate([[np.inf], values, [np.inf]])
    is_valley = is_finite & (values <= padded[:-2]) & (values <= padded[2:])
    bottoms = np.flatnonzero(is_valley & (values <= highest))
    bottoms = bottoms[np.argsort(values[bottoms], kind="stable")][:_MAX_VALLEYS]
    below, above = np.maximum(bottoms - 1, 0), np.minimum(bottoms + 1, len(points) - 1)
    return list(zip(points[below], points[bottoms], points[above], strict=True))
