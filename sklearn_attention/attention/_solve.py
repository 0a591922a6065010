r"""Local polynomials: from the sums about a query to a value and its slopes.

Symbols follow Fan and Gijbels (1996). About a query a polynomial in d features has P *terms*
:math:`\phi`: the constant 1, then the d coordinates of :math:`k - q`, then their products. For
n queries and p columns of values v, the normal equations of weighted least squares have

* the *Gram matrix* `gram` (n, P, P), :math:`E[\phi \phi^\top]`, and `cross` (n, P, p),
  :math:`E[\phi v^\top]`. E averages over the keys, with the weights at the query;
* the mean :math:`\mu` and covariance C of the terms without the constant. The *squared
  distance* of the query from the keys is :math:`\mu^\top C^{-1} \mu`.

All products of two terms are monomials up to twice the degree, the *powers*, each of which is
summed once. Coordinates are divided by a local *unit* (d,), the standard deviation of the
kernel or of the keys. Solving takes O(P^3) for each query.
"""

import functools
import itertools
import math
import numbers
from typing import Any, NamedTuple

import numpy as np

from .._blocks import check_memory
from ..kernels._numerics import LARGEST

# Minimum variance of the terms along any direction, relative to the variance of the kernel, or
# of the data if they are narrower. Below it rows are too close together along the direction to
# determine a slope: their standard deviation is a hundredth of the window's.
MIN_VARIANCE = 1e-4
# A direction is also ill-conditioned if its variance is below this number times the square of
# the rows' distance, times the distance: a million times the rounding error.
_ROUNDING = 1e6 * np.finfo(np.float64).eps
# Number of terms up to which elimination is faster than a Cholesky factorization in deciding
# whether matrices are positive definite.
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
    """Normal equations about each query, from which local polynomials are computed."""

    gram: Any  # (n, P, P) averages of the products of the polynomial's terms
    cross: Any  # (n, P, p) averages of the terms times the values
    unit: Any  # (n, d) divides the terms' coordinates, which are in bandwidths


class LocalSolution(NamedTuple):
    """The solution of the normal equations: the polynomial about each query."""

    value: Any  # (n, p) fit at the query
    coefficients: Any  # (n, P - 1, p) of the terms without the constant
    solved_mean: Any  # (n, P - 1) C^-1 times the mean of the terms, times the shrinkage
    squared_distance: Any  # (n,) of the query from the keys: mean' C^-1 mean
    shrinkage: Any  # (n,) fraction of the way from the keys' mean to the query, see `solve`
    mean: Any  # (n, P - 1) of the terms without the constant
    covariance: Any  # (n, P - 1, P - 1) C of these terms, including the ridge
    ridge: Any  # (n,) what was added to the diagonal of C


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
    """Terms of polynomials of total degree at most 3 in local coordinates, the constant first.

    `size` is P, the number of terms, and `n_powers` the number of their distinct products.
    `powers` (n_powers, d) has the exponents of each product, and `product_index` (P, P) the
    position among these of the product of each pair of terms. The first P products are the
    terms. For example, the terms of degree 1 in one coordinate u are 1 and u, their products 1,
    u and uu, and `product_index` is [[0, 1], [1, 2]].
    """

    def __init__(self, degree, n_coordinates, n_points=None):
        """Make the basis of polynomials in `n_coordinates` coordinates.

        If the number of keys, `n_points`, is passed, raise MemoryError unless the products of
        all keys fit into memory.
        """
        self.degree = degree if n_coordinates else 0
        self.n_coordinates = n_coordinates
        self.size = math.comb(n_coordinates + self.degree, self.degree)
        if n_points is not None:  # the factors of each product, and their product
            check_memory(
                f"degree={degree} for {n_coordinates} features, with {self.size} coefficients,",
                (3, n_points, self.size * (self.size + 1) // 2),
                "choose a smaller degree, or fewer features",
            )
        # `_factors` has for each product but the constant the position of a product of lower
        # degree, and the coordinate by which this is multiplied: for uv, that of v, and u.
        self.powers, self._factors, self.product_index = _products(self.degree, n_coordinates)
        self.n_powers = len(self.powers)

    def products(self, u, values):
        """Return the products (n, n_powers + P p) of terms and values at points `u` (n, d).

        Their averages are the normal equations. The first n_powers columns are the products of
        two terms, of which the first P are the terms themselves. Then come the terms times the
        values (n, p).
        """
        n, p = values.shape
        columns = np.ones((self.n_powers + self.size * p, n))
        # Each monomial is one of lower degree times a coordinate.
        for power, (lower, axis) in enumerate(self._factors, 1):
            np.multiply(columns[lower], u[:, axis], out=columns[power])
        with_values = columns[self.n_powers :].reshape(self.size, p, n)
        np.multiply(columns[: self.size, None], values.T, out=with_values)
        return columns.T

    def linear_forms(self, quadratic_forms):
        """Turn quadratic forms (n, P, P) of the terms into linear forms of their products.

        The result is the coefficient (n, n_powers) of each product. So this is also the adjoint
        of `moments`, from the Gram matrix to the averages of the products.
        """
        coefficients = np.zeros((len(quadratic_forms), self.n_powers))
        for i, j in np.ndindex(self.product_index.shape):
            coefficients[:, self.product_index[i, j]] += quadratic_forms[:, i, j]
        return coefficients

    def moments(self, averages):
        """Return averages (n, n_powers + P p) of `products` as `gram` and `cross`."""
        n_values = (averages.shape[1] - self.n_powers) // self.size
        cross = averages[:, self.n_powers :].reshape(len(averages), self.size, n_values)
        return averages[:, self.product_index], cross

    def averages(self, sums, scale, kernel_std, key_std):
        """Compute :class:`Moments` from sums (n_powers, 1 + p, n) about each query.

        Powers of the sums are in bandwidths times the scale (n,). The unit of the moments is
        the kernel's standard deviation, `kernel_std` times the scale, or that of the keys,
        `key_std` (d,), if it is smaller.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            averages = sums / sums[0, 0]
        unit = local_unit(kernel_std * scale[:, None], key_std)
        if self.degree:
            # The unit changes from the scale to `unit`: each monomial of coordinates is
            # multiplied by the same monomial of the ratio of both units.
            ratio = scale[:, None] / unit
            averages *= self.products(ratio, ratio[:, :0]).T[:, None]
        gram = averages[:, 0][self.product_index].transpose(2, 0, 1)
        cross = averages[: self.size, 1:].transpose(2, 0, 1)
        return Moments(gram, cross, unit)

    def shift(self, offset, unit):
        """Return matrices (n, P, P) that turn terms about a centre into terms about queries.

        Queries are at offsets (n, d) from the centre, in the unit of the old terms; coordinates
        of the new terms are divided by `unit`, (d,) or (n, d).
        """
        n, d = offset.shape
        matrices = np.zeros((n, self.size, self.size))
        matrices[:, 0, 0] = 1.0
        if self.degree == 0:
            return matrices
        unit = np.broadcast_to(unit, (n, d))
        # With the old coordinate u along an axis, the new one is (u - offset) / unit. So
        #   new[term] = new[lower] * (u - offset) / unit,
        # where new[lower] is a combination of the first `n_lower` old terms, those of less than
        # the full degree. Times u, these are the old terms at the positions `times_u`, since u
        # is the old term 1 + axis.
        scaled_offset = offset / unit
        n_lower = math.comb(d + self.degree - 1, d)
        for term, (lower, axis) in enumerate(self._factors[: self.size - 1], 1):
            new_lower = matrices[:, lower, :n_lower]
            times_u = self.product_index[:n_lower, 1 + axis]
            matrices[:, term, :n_lower] = -scaled_offset[:, axis, None] * new_lower
            matrices[:, term, times_u] += new_lower / unit[:, axis, None]
        return matrices


@functools.lru_cache(maxsize=64)
def _products(degree, n_coordinates):
    """List the distinct products of two terms, such as 1, u, v, uu, uv, vv for 1, u and v.

    Returns
    -------
    powers : array of shape (n_products, n_coordinates)
        Exponents of each product.
    factors : list of (int, int)
        For each product but the constant, the position of a product of lower degree, and the
        coordinate by which this is multiplied.
    product_index : array of shape (n_terms, n_terms)
        Position of the product of each pair of terms.
    """
    axes = range(n_coordinates)
    terms = [
        combination
        for total in range(degree + 1)
        for combination in itertools.combinations_with_replacement(axes, total)
    ]
    # A term or product is a sorted tuple of axes: (0, 0, 1) is u u v.
    position = {}
    for a, b in itertools.combinations_with_replacement(terms, 2):
        position.setdefault(tuple(sorted(a + b)), len(position))
    factors = [(position[product[1:]], product[0]) for product in position if product]
    product_index = np.array([[position[tuple(sorted(a + b))] for b in terms] for a in terms])
    powers = np.array([[product.count(axis) for axis in axes] for product in position])
    return powers.reshape(len(position), n_coordinates), factors, product_index


def std_of_keys(keys, weights):
    """Return weighted standard deviations (d,) of keys; infinite if all keys are equal."""
    normalized = weights / weights.sum()
    centred = keys - normalized @ keys
    key_std = np.sqrt(normalized @ centred**2)
    return np.where(key_std > 1 / MAX_DISTANCE, key_std, np.inf)


def local_unit(kernel_std, key_std):
    """Return the unit of local coordinates: the smaller one of two standard deviations.

    `kernel_std`, that of the kernel, is a number, (d,) or (n, 1); `key_std` (d,) is that of the
    keys.
    """
    # In this unit a window is ill-conditioned if its keys vary less than it could hold, but not
    # because it is wider than all data, where the fit is ordinary least squares.
    return np.minimum(kernel_std, key_std)


def refuse_far(keys):
    """Raise ValueError if products of terms would overflow for some of the keys."""
    if 0 not in keys.shape and float(abs(keys).max()) > MAX_DISTANCE:
        raise ValueError(
            f"features divided by bandwidth reach {float(abs(keys).max()):g}, and their "
            "products overflow: leave out rows that are so far from the others, or pass a "
            "larger bandwidth, or degree=0."
        )


def refuse_signed(kernel, passed=None):
    """Raise ValueError if a kernel takes negative values.

    `passed` is what the user passed as kernel, for the message; None if it is `kernel`.
    """
    if kernel.signed:
        passed = kernel if passed is None else passed
        raise ValueError(
            f"kernel={passed!r} takes negative values, with which least squares has no "
            "minimum: choose a positive kernel such as 'gaussian', or degree=0."
        )


def solve(gram, cross):
    r"""Solve weighted least squares on centred terms, with a ridge if they are ill-conditioned.

    `gram` has :math:`E[\phi \phi^\top]` and `cross` has :math:`E[\phi v^\top]`. Let :math:`\mu`
    and :math:`C` be the mean and the covariance of the terms without the constant, and
    :math:`c` their covariance with the values. Then :math:`\beta = (C + \rho I)^{-1} c`, where
    the ridge :math:`\rho = \max(0, \tau - \lambda_{\min}(C))` lifts the smallest eigenvalue to
    a minimum :math:`\tau`. The value at the centre is :math:`\bar v - r \mu^\top \beta`. Let
    :math:`D = \mu^\top (C + \rho I)^{-1} \mu` be the squared distance, and :math:`b^2` 9 for
    each term. The shrinkage :math:`r = \min(1, b / \sqrt D)` keeps the value within :math:`b`
    standard deviations of the values from their mean (by Cauchy and Schwarz).
    """
    mean, average = gram[:, 0, 1:], cross[:, 0]
    covariance = _covariance(gram)
    covariance_with_values = cross[:, 1:] - mean[:, :, None] * average[:, None, :]
    ridge = ridge_of(covariance, _min_variance(gram))
    diagonal = np.arange(covariance.shape[1])
    covariance[:, diagonal, diagonal] += ridge[:, None]
    right_sides = np.concatenate([covariance_with_values, mean[:, :, None]], axis=2)
    solved = _solve(covariance, right_sides)
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


def solve_vjp(solution, gram, cross, of_value, of_shrunk_distance):
    """Return derivatives along `gram` and `cross` from those along results of :func:`solve`.

    `of_value` (n, p) are derivatives along the value, and `of_shrunk_distance` (n,) along the
    squared distance times the shrinkage, ``solved_mean @ mean``, on which leverages depend.
    """
    mean, beta = solution.mean, solution.coefficients
    distance, shrinkage = solution.squared_distance, solution.shrinkage
    of_gram, of_cross = np.zeros_like(gram), np.zeros_like(cross)
    if not mean.shape[1]:
        of_cross[:, 0] = of_value
        return of_gram, of_cross
    # These lines go backwards through the value, shrinkage * distance, and the shrinkage, whose
    # derivative along the distance is -shrinkage / (2 distance) where it is below 1.
    of_shrinkage = of_shrunk_distance * distance - np.vecdot(of_value, np.vecmat(mean, beta))
    slope = shrinkage / np.where(shrinkage < 1, 2 * distance, np.inf)
    of_distance = of_shrunk_distance * shrinkage - of_shrinkage * slope
    of_mean = -shrinkage[:, None] * np.matvec(beta, of_value)
    of_beta = -shrinkage[:, None, None] * mean[:, :, None] * of_value[:, None, :]
    # These go through beta = C^-1 c and the distance mean' C^-1 mean. Here c is the covariance
    # of the terms with the values.
    right_sides = np.concatenate([of_beta, mean[:, :, None]], axis=2)
    solved = _solve(solution.covariance, right_sides)
    of_c, solved_mean = solved[:, :, :-1], solved[:, :, -1]
    of_mean += 2 * of_distance[:, None] * solved_mean
    of_covariance = -of_c @ beta.swapaxes(1, 2)
    of_covariance -= of_distance[:, None, None] * (
        solved_mean[:, :, None] * solved_mean[:, None, :]
    )
    (with_ridge,) = np.nonzero(solution.ridge > 0)
    if len(with_ridge):
        # The ridge falls by what the smallest eigenvalue grows, whose derivative along the
        # covariance is the outer product of its eigenvector.
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
    """Return the shrinkage r = min(1, b / sqrt(D)) of :func:`solve` for squared distances D."""
    limit = _MAX_DEVIATIONS**2 * max(n_terms, 1)
    return (limit / squared_distance.clip(limit)) ** 0.5


def local_fit(moments):
    """Solve normal equations at queries for the fields of a local polynomial.

    Returns values (n, p), slopes per bandwidth (n, p, d), ridges (n,) and squared distances
    (n,), all at the queries.
    """
    solution = solve(moments.gram, moments.cross)
    slopes = solution.coefficients[:, : moments.unit.shape[1]]
    slopes = slopes / moments.unit[:, : slopes.shape[1], None]  # degree 0 has no slopes
    return solution.value, slopes.swapaxes(1, 2), solution.ridge, solution.squared_distance


def _covariance(gram):
    """Return the covariance (n, P - 1, P - 1) of the terms without the constant."""
    mean = gram[:, 0, 1:]
    return gram[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]


def _solve(matrices, columns):
    """Solve positive definite systems (n, size, size) for columns (n, size, n_columns).

    The solution of a system that has NaN is NaN.
    """
    if matrices.shape[1] == 1:
        return columns / matrices
    if not 0 < matrices.shape[1] <= _MAX_UNKNOWNS:
        return np.linalg.solve(matrices, columns)
    # NumPy passes fastest over queries that are next to each other in memory.
    systems = (np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in (matrices, columns))
    return np.moveaxis(_eliminate(*systems), -1, 0)


def _eliminate(matrices, columns):
    """Solve n systems (size, size, n) for columns (size, n_columns, n) by Gauss elimination.

    Systems are positive definite, so no pivoting is needed.
    """
    # Cramer's rule is not used, since determinants of large entries could overflow.
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


def _min_variance(gram):
    """Return the variance (n,) below which a direction of the terms is ill-conditioned."""
    # If all keys are far from the query, their covariance has rounding errors in proportion to
    # their squared distances, and the fit is extrapolated over this distance. Beyond the square
    # of the largest number all slopes are 0, and sums are still numbers.
    mean = gram[:, 0, 1:]
    largest = np.linalg.diagonal(gram).max(axis=1, initial=0.0)
    distance = np.abs(mean).max(axis=1, initial=0.0)
    with np.errstate(over="ignore"):
        return (_ROUNDING * largest * distance).clip(MIN_VARIANCE, LARGEST**2)


def ridge_of(covariance, min_variance):
    """Return the ridge (n,) that lifts the eigenvalues of covariances to a minimum (n,).

    It is 0 if all eigenvalues are above the minimum, and NaN if the covariance is not finite.
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
        shortfall = min_variance[rows] - _smallest_eigenvalue(finite)
        # Slightly more is added, against rounding in the elimination.
        ridge[rows] = np.where(is_finite, shortfall, np.nan).clip(0) * (1 + 1e-9)
    return ridge


def _min_eigenvalue_above(covariance, limit):
    """Return True (n,) for matrices whose smallest eigenvalue is above a limit (n,)."""
    size = covariance.shape[1]
    if size > _MAX_TERMS_OF_PIVOTS:
        finite, is_finite = _replace_not_finite(covariance, 1.0)
        # A Cholesky factorization takes a tenth of the time of eigenvalues, but it only says
        # whether the eigenvalues of all matrices are above.
        try:
            np.linalg.cholesky(finite - limit[:, None, None] * np.eye(size))
        except np.linalg.LinAlgError:
            return is_finite & (_smallest_eigenvalue(finite) > limit)
        return is_finite
    # If and only if the eigenvalues are above the limit, all pivots of the elimination stay
    # positive when the limit is subtracted from the diagonal.
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
    """Replace matrices that are not finite by `fill` times the identity; say which are finite.

    Returns matrices (n, size, size) and a mask (n,).
    """
    is_finite = np.isfinite(matrices).all(axis=(1, 2))
    identity = fill * np.eye(matrices.shape[1])
    return np.where(is_finite[:, None, None], matrices, identity), is_finite


def _smallest_eigenvalue(matrices):
    """Return the smallest eigenvalue (n,) of symmetric matrices with two or more rows."""
    if matrices.shape[1] > 2:
        return np.linalg.eigvalsh(matrices)[:, 0]
    half = (matrices[:, 0, 0] - matrices[:, 1, 1]) / 2
    middle = (matrices[:, 0, 0] + matrices[:, 1, 1]) / 2
    return middle - np.hypot(half, matrices[:, 0, 1])
