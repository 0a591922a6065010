"""Local polynomials: from the sums about a query to a value and its slopes."""

import functools
import itertools
import math
import numbers
from typing import Any, NamedTuple

import numpy as np

from .._blocks import check_memory
from ..kernels._numerics import LARGEST

# Below this variance, in units of the kernel's own or of the data's if these are narrower, rows
# are too close together in some direction to determine a slope: their standard deviation is a
# hundredth of the window's.
MIN_VARIANCE = 1e-4
# A direction is also ill-conditioned if its variance is below this number times the square of
# the rows' distance, times the distance: a million times the rounding error.
_ROUNDING = 1e6 * np.finfo(np.float64).eps
# Number of terms up to which pivots tell sooner than eigenvalues whether a matrix is positive
# definite.
_MAX_TERMS_OF_PIVOTS = 30
# Systems of up to this many unknowns are solved for all queries at once. With 4000 queries
# this takes 0.1 of LAPACK's time for 3 unknowns, 0.3 for 5 and 0.5 for 9; with 500 queries 0.3,
# 0.6 and 1.0.
_MAX_UNKNOWNS = 5
# A polynomial is evaluated at most this many standard deviations of the window's rows, root
# mean square over terms, from their mean. A query at the end of the rows is about 1.5 away.
_MAX_DEVIATIONS = 3.0
# Queries are moved to this distance in bandwidths at most: products of six terms of more would
# overflow, and products of their inverses would vanish.
MAX_DISTANCE = 1e50


class Moments(NamedTuple):
    """Averages about each query, from which local polynomials are computed."""

    gram: Any  # (n, P, P) averages of the products of the polynomial's terms
    cross: Any  # (n, P, p) averages of the terms times the values
    unit: Any  # (n, d) what the terms' coordinates are measured in; None for averages


class LocalSolution(NamedTuple):
    """The polynomial at its own centre."""

    value: Any  # (n, p)
    coefficients: Any  # (n, P - 1, p) of the terms beyond the constant
    solved_mean: Any  # (n, P - 1) C^-1 times the mean of the terms, times the shrinkage
    squared_distance: Any  # (n,) of the rows' mean from the query: mean' C^-1 mean
    shrinkage: Any  # (n,) share of the way from the rows' mean to the query
    mean: Any  # (n, P - 1) of the terms
    covariance: Any  # (n, P - 1, P - 1) of the terms, ridge included
    ridge: Any  # (n,)


def is_degree(degree):
    """Return True for a degree of local polynomials."""
    is_integer = isinstance(degree, numbers.Integral) and not isinstance(degree, bool)
    return is_integer and 0 <= degree <= 3


def check_degree(degree):
    """Return the degree of local polynomials as an int."""
    if not is_degree(degree):
        raise ValueError(f"degree={degree!r} is not valid: pass 0, 1, 2 or 3.")
    return int(degree)


class Basis:
    """Polynomials of total degree at most 3 in local coordinates, the constant first."""

    # Their products are the monomials up to twice the degree, each summed once. With
    # `n_points`, columns at so many keys are checked to fit into memory.

    def __init__(self, degree, n_coordinates, n_points=None):
        self.degree = degree if n_coordinates else 0
        self.n_coordinates = n_coordinates
        self.size = math.comb(n_coordinates + self.degree, self.degree)
        if n_points is not None:  # the factors of each product, and their product
            check_memory(
                f"degree={degree} for {n_coordinates} features, with {self.size} coefficients,",
                (3, n_points, self.size * (self.size + 1) // 2),
                "choose a smaller degree, or fewer features",
            )
        # Of each monomial its exponents, and terms whose product it is; of each pair of terms
        # the monomial.
        self.powers, self._lower, self.place = _products(self.degree, n_coordinates)
        self.n_powers = len(self.powers)

    def columns(self, u, values):
        """Return the columns that are summed at points (n, d).

        These are the products of terms, and the terms times the values. The terms themselves
        are the first of their products, of which each is a lower one times a coordinate.
        """
        n, p = values.shape
        columns = np.ones((self.n_powers + self.size * p, n))
        for power, (lower, axis) in enumerate(self._lower, 1):
            np.multiply(columns[lower], u[:, axis], out=columns[power])
        with_values = columns[self.n_powers :].reshape(self.size, p, n)
        np.multiply(columns[: self.size, None], values.T, out=with_values)
        return columns.T

    def of_products(self, forms):
        """Turn quadratic forms (n, size, size) of the terms into linear ones of products."""
        linear = np.zeros((len(forms), self.n_powers))
        for i, j in np.ndindex(self.place.shape):
            linear[:, self.place[i, j]] += forms[:, i, j]
        return linear

    def moments(self, sums):
        """Return sums or averages of columns as ``terms terms^T`` and ``terms values^T``."""
        n_values = (sums.shape[1] - self.n_powers) // self.size
        cross = sums[:, self.n_powers :].reshape(len(sums), self.size, n_values)
        return sums[:, self.place], cross

    def averages(self, sums, scale, spread, extent):
        """Compute moments from sums (n_powers, 1 + p, n) about each query.

        Powers of the sums are in bandwidths times the scale (n,). The unit of the moments is
        the kernel's width at that scale, or the extent (d,) of the keys if it is smaller.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            averages = sums / sums[0, 0]
        unit = local_unit(spread * scale[:, None], extent)
        if self.degree:
            ratio = scale[:, None] / unit
            averages *= self.columns(ratio, ratio[:, :0]).T[:, None]
        gram = averages[:, 0][self.place].transpose(2, 0, 1)
        cross = averages[: self.size, 1:].transpose(2, 0, 1)
        return Moments(gram, cross, unit)

    def shift(self, offset, unit):
        """Return matrices (n, size, size) that turn terms about a centre into those elsewhere.

        The new centres are at offsets (n, d) from the old one; the new unit is (d,) or (n, d).
        """
        n, d = offset.shape
        matrices = np.zeros((n, self.size, self.size))
        matrices[:, 0, 0] = 1.0
        if self.degree == 0:
            return matrices
        unit = np.broadcast_to(unit, (n, d))
        offset = offset / unit
        # Each term is a lower one times (u / s - o) along an axis.
        n_lower = math.comb(d + self.degree - 1, d)
        for term, (lower, axis) in enumerate(self._lower[: self.size - 1], 1):
            terms, raised = matrices[:, lower, :n_lower], self.place[:n_lower, 1 + axis]
            matrices[:, term, :n_lower] = -offset[:, axis, None] * terms
            matrices[:, term, raised] += terms / unit[:, axis, None]
        return matrices


@functools.lru_cache(maxsize=64)
def _products(degree, n_coordinates):
    """List the distinct products of two terms, such as 1, u, v, uu, uv, vv for 1, u and v.

    Returns the exponents of each product; for every product but the constant, the position of
    one of lower degree and the axis by which this is multiplied; and for each pair of terms the
    position of their product.
    """
    axes = range(n_coordinates)
    terms = [
        combination
        for total in range(degree + 1)
        for combination in itertools.combinations_with_replacement(axes, total)
    ]
    place = {}
    for a, b in itertools.combinations_with_replacement(terms, 2):
        place.setdefault(tuple(sorted(a + b)), len(place))
    lower = [(place[product[1:]], product[0]) for product in place if product]
    of_pairs = np.array([[place[tuple(sorted(a + b))] for b in terms] for a in terms])
    powers = np.array([[product.count(axis) for axis in axes] for product in place])
    return powers.reshape(len(place), n_coordinates), lower, of_pairs


def extent_of(keys, weights):
    """Return weighted standard deviations of keys; infinite if all keys are at one place."""
    share = weights / weights.sum()
    deviation = keys - share @ keys
    extent = np.sqrt(share @ deviation**2)
    return np.where(extent > 1 / MAX_DISTANCE, extent, np.inf)


def local_unit(spread, extent):
    """Return the unit of local coordinates: the kernel's std, or the extent (d,) if smaller.

    `spread`, the kernel's standard deviation, is a number or (n, 1).
    """
    # A window is ill-conditioned if its rows spread less than it could hold, and not because it
    # is wider than all data, where the polynomial is ordinary least squares.
    return np.minimum(spread, extent)


def refuse_far(keys):
    """Raise ValueError where products of terms would overflow."""
    if 0 not in keys.shape and float(abs(keys).max()) > MAX_DISTANCE:
        raise ValueError(
            f"features divided by bandwidth reach {float(abs(keys).max()):g}, and their "
            "products overflow: leave out rows that are so far from the others, or pass a "
            "larger bandwidth, or degree=0."
        )


def refuse_signed(kernel, passed=None):
    """Raise ValueError if a kernel, which was passed in some form, takes negative values."""
    if kernel.signed:
        passed = kernel if passed is None else passed
        raise ValueError(
            f"kernel={passed!r} takes negative values, with which least squares has no "
            "minimum: choose a positive kernel such as 'gaussian', or degree=0."
        )


def solve(gram, cross):
    r"""Solve weighted least squares on centred terms, with a ridge if they are ill-conditioned.

    `gram` holds :math:`E[\phi \phi^\top]` and `cross` :math:`E[\phi v^\top]` of the terms
    :math:`\phi`, of which the first is 1, and the values :math:`v`. Let :math:`\mu` and
    :math:`C` be the mean and the covariance of the other terms, and :math:`c` their covariance
    with the values. Then :math:`\beta = (C + \rho I)^{-1} c`, where the ridge
    :math:`\rho = \max(0, \tau - \lambda_{\min}(C))` lifts the smallest eigenvalue to a minimum
    :math:`\tau`. The value at the centre is :math:`\bar v - r \mu^\top \beta`. With the squared
    distance :math:`D = \mu^\top (C + \rho I)^{-1} \mu` and :math:`b^2`, 9 for each term, the
    shrinkage :math:`r = \min(1, b / \sqrt D)` keeps it within :math:`b` standard deviations of
    the values from their mean (by Cauchy and Schwarz).
    """
    mean, average = gram[:, 0, 1:], cross[:, 0]
    covariance = _covariance(gram)
    with_values = cross[:, 1:] - mean[:, :, None] * average[:, None, :]
    ridge = ridge_of(covariance, _least_variance(gram))
    diagonal = np.arange(covariance.shape[1])
    covariance[:, diagonal, diagonal] += ridge[:, None]
    solved = _solve(covariance, np.concatenate([with_values, mean[:, :, None]], axis=2))
    coefficients, solved_mean = solved[:, :, :-1], solved[:, :, -1]
    squared_distance = (solved_mean * mean).sum(axis=1)
    shrinkage = shrinkage_of(squared_distance, covariance.shape[1])
    value = average - shrinkage[:, None] * (mean[:, None, :] @ coefficients)[:, 0]
    return LocalSolution(
        value,
        coefficients,
        shrinkage[:, None] * solved_mean,
        squared_distance,
        shrinkage,
        mean,
        covariance,
        ridge,
    )


def solve_vjp(solution, gram, cross, of_value, of_reach):
    """Return derivatives along `gram` and `cross` from those along results of :func:`solve`.

    The latter are those along the value (n, p), and along ``solved_mean @ mean`` (n,), by which
    the leverage of a row at the query is larger.
    """
    mean, beta = solution.mean, solution.coefficients
    distance, shrinkage = solution.squared_distance, solution.shrinkage
    of_gram, of_cross = np.zeros_like(gram), np.zeros_like(cross)
    if not mean.shape[1]:
        of_cross[:, 0] = of_value
        return of_gram, of_cross
    # These lines go backwards through the value, shrinkage * distance, and the shrinkage.
    of_shrinkage = of_reach * distance - np.vecdot(of_value, np.vecmat(mean, beta))
    slope = shrinkage / np.where(shrinkage < 1, 2 * distance, np.inf)
    of_distance = of_reach * shrinkage - of_shrinkage * slope
    of_mean = -shrinkage[:, None] * np.matvec(beta, of_value)
    of_beta = -shrinkage[:, None, None] * mean[:, :, None] * of_value[:, None, :]
    # These go through beta = C^-1 c and the distance mean' C^-1 mean.
    both = np.concatenate([of_beta, mean[:, :, None]], axis=2)
    solved = _solve(solution.covariance, both)
    of_c, solved_mean = solved[:, :, :-1], solved[:, :, -1]
    of_mean += 2 * of_distance[:, None] * solved_mean
    of_covariance = -of_c @ beta.swapaxes(1, 2)
    of_covariance -= of_distance[:, None, None] * (
        solved_mean[:, :, None] * solved_mean[:, None, :]
    )
    (with_ridge,) = np.nonzero(solution.ridge > 0)
    if len(with_ridge):  # the ridge falls as the smallest eigenvalue grows
        vector = np.linalg.eigh(solution.covariance[with_ridge])[1][:, :, 0]
        of_ridge = np.trace(of_covariance[with_ridge], axis1=1, axis2=2)
        outer = vector[:, :, None] * vector[:, None]
        of_covariance[with_ridge] -= of_ridge[:, None, None] * outer
    # These go through the means that were subtracted.
    of_cross[:, 1:] = of_c
    of_cross[:, 0] = of_value - np.vecmat(mean, of_c)
    of_mean -= np.matvec(of_c, cross[:, 0])
    of_mean -= np.matvec(of_covariance + of_covariance.swapaxes(1, 2), mean)
    of_gram[:, 1:, 1:], of_gram[:, 0, 1:] = of_covariance, of_mean
    return of_gram, of_cross


def shrinkage_of(squared_distance, n_terms):
    """Return the shrinkage: the share of the way from the rows' mean to the query."""
    limit = _MAX_DEVIATIONS**2 * max(n_terms, 1)
    return (limit / squared_distance.clip(limit)) ** 0.5


def local_fit(moments):
    """Return values (n, p), slopes per bandwidth (n, p, d), ridges and distances (n,)."""
    solution = solve(moments.gram, moments.cross)
    linear = solution.coefficients[:, : moments.unit.shape[1]]
    linear = linear / moments.unit[:, : linear.shape[1], None]  # degree 0 has no slopes
    return solution.value, linear.swapaxes(1, 2), solution.ridge, solution.squared_distance


def _covariance(gram):
    mean = gram[:, 0, 1:]
    return gram[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]


def _solve(matrices, columns):
    """Solve positive definite systems (n, size, size) for columns (n, size, n_columns).

    The solution is NaN where the matrix is.
    """
    if matrices.shape[1] == 1:
        return columns / matrices
    if not 0 < matrices.shape[1] <= _MAX_UNKNOWNS:
        return np.linalg.solve(matrices, columns)
    # NumPy passes fastest over queries that are next to each other in memory.
    systems = (np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in (matrices, columns))
    return np.moveaxis(_eliminate(*systems), -1, 0)


def _eliminate(matrices, columns):
    """Solve n systems (size, size, n) for columns (size, n_columns, n) by elimination."""
    # Determinants of large entries could overflow.
    pivot = matrices[0, 0]
    if len(matrices) == 1:
        return columns / pivot
    ratio = matrices[1:, :1] / pivot
    solutions = _eliminate(
        matrices[1:, 1:] - ratio * matrices[:1, 1:], columns[1:] - ratio * columns[:1]
    )
    first = columns[0].copy()
    for entry, solution in zip(matrices[0, 1:], solutions, strict=True):
        first -= entry * solution
    return np.concatenate([[first / pivot], solutions])


def _least_variance(gram):
    """Return the variance below which a direction counts as ill-conditioned, for each query."""
    # The covariance of rows that are all far from the query has rounding errors like the
    # squares of their distances, over which it is extrapolated. Beyond the square of the
    # largest number all slopes are 0, and sums are still numbers.
    mean = gram[:, 0, 1:]
    largest = np.linalg.diagonal(gram).max(axis=1, initial=0.0)
    distance = np.abs(mean).max(axis=1, initial=0.0)
    with np.errstate(over="ignore"):
        return (_ROUNDING * largest * distance).clip(MIN_VARIANCE, LARGEST**2)


def ridge_of(covariance, min_variance):
    """Return the addition to the diagonal (n,) that lifts eigenvalues to a minimum (n,).

    It is NaN where the covariance is.
    """
    size = covariance.shape[1]
    if size == 0:
        return min_variance * 0
    if size == 1:
        return (min_variance - covariance[:, 0, 0]).clip(0)
    rows = np.flatnonzero(~_min_eigenvalue_above(covariance, min_variance))
    ridge = np.zeros(len(min_variance))
    if len(rows):
        finite, is_finite = _replace_not_finite(covariance[rows], 1.0)
        missing = min_variance[rows] - _smallest_eigenvalue(finite)
        # Slightly more is added, against rounding in the factors.
        ridge[rows] = np.where(is_finite, missing, np.nan).clip(0) * (1 + 1e-9)
    return ridge


def _min_eigenvalue_above(covariance, limit):
    """Return True where the smallest eigenvalue is above a limit (n,)."""
    size = covariance.shape[1]
    if size > _MAX_TERMS_OF_PIVOTS:
        finite, is_finite = _replace_not_finite(covariance, 1.0)
        # A factorisation takes a tenth of the time, but tells only whether all are above.
        try:
            np.linalg.cholesky(finite - limit[:, None, None] * np.eye(size))
        except np.linalg.LinAlgError:
            return is_finite & (_smallest_eigenvalue(finite) > limit)
        return is_finite
    # If the limit is subtracted from the diagonal, all pivots are still positive.
    is_above, reduced = np.isfinite(covariance).all(axis=(1, 2)), np.copy(covariance)
    diagonal = np.arange(size)
    with np.errstate(over="ignore", invalid="ignore"):
        reduced[:, diagonal, diagonal] -= limit[:, None]
        while reduced.shape[1]:
            pivot, column = reduced[:, 0, 0], reduced[:, 1:, 0]
            is_above &= pivot > 0
            factor = column / np.where(pivot > 0, pivot, 1.0)[:, None]
            reduced = reduced[:, 1:, 1:] - column[:, :, None] * factor[:, None, :]
    return is_above


def _replace_not_finite(matrices, fill):
    """Replace matrices that are not finite by multiples of 1; return which are finite."""
    is_finite = np.isfinite(matrices).all(axis=(1, 2))
    identity = fill * np.eye(matrices.shape[1])
    return np.where(is_finite[:, None, None], matrices, identity), is_finite


def _smallest_eigenvalue(matrices):
    if matrices.shape[1] > 2:
        return np.linalg.eigvalsh(matrices)[:, 0]
    half = (matrices[:, 0, 0] - matrices[:, 1, 1]) / 2
    middle = (matrices[:, 0, 0] + matrices[:, 1, 1]) / 2
    return middle - np.hypot(half, matrices[:, 0, 1])
