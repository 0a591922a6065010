"""Local polynomials: from the moments of a weighted average to a value and its slopes."""

from typing import NamedTuple

import torch

# Below this variance, in units of the kernel's own or the data's, rows are too close
# together in some direction to tell a slope: a hundredth of the window's width.
THIN = 1e-4
# A direction is thin, too, whose variance is this many squares of the distance, times the
# distance: a million times the rounding.
_ROUNDING = 1e6 * torch.finfo(torch.float64).eps


class LocalSolution(NamedTuple):
    """The polynomial at its own centre."""

    value: torch.Tensor  # (n, p)
    coefficients: torch.Tensor  # (n, P - 1, p) of the terms beyond the constant
    pull: torch.Tensor  # (n, P - 1) how the terms' mean moves the value: C^-1 mean
    mean: torch.Tensor  # (n, P - 1) of the terms
    inverse: torch.Tensor  # (n, P - 1, P - 1) of their covariance, ridge included
    ridge: torch.Tensor  # (n,)


class Basis:
    r"""Polynomials of total degree at most 2 in local coordinates, the constant first.

    Parameters
    ----------
    degree : int
        0, 1 or 2.
    n_coordinates : int
        Number of local coordinates :math:`d`.
    """

    def __init__(self, degree, n_coordinates):
        self.degree = degree if n_coordinates else 0
        self.n_coordinates = n_coordinates
        left, right = torch.triu_indices(n_coordinates, n_coordinates)
        self._left, self._right = left, right
        self.size = 1 + (self.degree >= 1) * n_coordinates + (self.degree == 2) * len(left)
        self._rows, self._columns = torch.triu_indices(self.size, self.size)

    def terms(self, u):
        """The basis at some points, (n, size)."""
        parts = [u.new_ones((len(u), 1))]
        if self.degree >= 1:
            parts.append(u)
        if self.degree == 2:
            parts.append(u[:, self._left] * u[:, self._right])
        return torch.cat(parts, dim=1)

    def columns(self, terms, values):
        """What to average: products of terms with each other, and with the values."""
        products = terms[:, self._rows] * terms[:, self._columns]
        with_values = (terms[:, :, None] * values[:, None, :]).flatten(1)
        return torch.cat([products, with_values], dim=1)

    def moments(self, averages):
        """The averaged columns as ``E[terms terms^T]`` and ``E[terms values^T]``."""
        n_products = len(self._rows)
        gram = averages.new_empty((len(averages), self.size, self.size))
        gram[:, self._rows, self._columns] = averages[:, :n_products]
        gram[:, self._columns, self._rows] = averages[:, :n_products]
        return gram, averages[:, n_products:].reshape(len(averages), self.size, -1)

    def shift(self, offset, unit):
        """Matrices that turn terms about a centre into terms about ``centre + offset``.

        Parameters
        ----------
        offset : torch.Tensor of shape (n, d)
        unit : torch.Tensor of shape (d,) or (n, d)
            What the new coordinates are divided by.

        Returns
        -------
        matrices : torch.Tensor of shape (n, size, size)
        """
        n, d = offset.shape
        if self.degree == 0:
            return offset.new_ones((n, 1, 1))
        unit = unit.expand(n, d)
        offset = offset / unit
        corner, none = offset.new_ones((n, 1, 1)), offset.new_zeros((n, 1, d))
        linear = torch.cat([-offset[:, :, None], torch.diag_embed(1 / unit)], dim=2)
        constant = torch.cat([corner, none], dim=2)
        if self.degree == 1:
            return torch.cat([constant, linear], dim=1)
        left, right = self._left, self._right
        # (u_l / s_l - o_l) (u_r / s_r - o_r), term by term.
        along = torch.zeros((n, len(left), d), dtype=offset.dtype, device=offset.device)
        pair = torch.arange(len(left), device=offset.device)
        along[:, pair, left] -= offset[:, right] / unit[:, left]
        along[:, pair, right] -= offset[:, left] / unit[:, right]
        products = torch.diag_embed(1 / (unit[:, left] * unit[:, right]))
        product = (offset[:, left] * offset[:, right])[:, :, None]
        quadratic = torch.cat([product, along, products], dim=2)
        above = offset.new_zeros((n, 1 + d, len(left)))
        first = torch.cat([torch.cat([constant, linear], dim=1), above], dim=2)
        return torch.cat([first, quadratic], dim=1)


def local_unit(spread, keys, weights):
    """What local coordinates are measured in: the kernel's width, or the data's if smaller.

    So a window is thin where rows are few beside what it could hold, and not because it is
    wider than all data: then the polynomial is an ordinary least-squares one.

    Parameters
    ----------
    spread : float or torch.Tensor of shape (n, 1)
        The kernel's width.
    keys : torch.Tensor of shape (m, d)
        In the same units.
    weights : torch.Tensor of shape (m,)

    Returns
    -------
    unit : torch.Tensor of shape (d,) or (n, d)
    """
    share = weights / weights.sum()
    deviation = keys - share @ keys
    extent = (share @ deviation.square()).sqrt()
    extent = torch.where(extent > 0, extent, torch.inf)
    return torch.minimum(torch.as_tensor(spread, dtype=keys.dtype, device=keys.device), extent)


def solve(gram, cross):
    r"""Weighted least squares on centred terms, with a ridge where the design is thin.

    With the terms' mean :math:`\mu`, covariance :math:`C` and covariance with the values
    :math:`c`, the coefficients are :math:`\beta = (C + \rho I)^{-1} c` and the value at the
    centre is :math:`\bar v - \mu^\top \beta`. The ridge is
    :math:`\rho = \max(0, \tau - \lambda_{\min}(C))`, so that nothing but a thin design feels
    it, and it leaves the mean alone.

    Parameters
    ----------
    gram : torch.Tensor of shape (n, size, size)
        :math:`E[\phi \phi^\top]`, in coordinates about the centre in units of the kernel.
    cross : torch.Tensor of shape (n, size, p)
        :math:`E[\phi v^\top]`.

    Returns
    -------
    solution : LocalSolution
    """
    mean, average = gram[:, 0, 1:], cross[:, 0]
    covariance = gram[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]
    with_values = cross[:, 1:] - mean[:, :, None] * average[:, None, :]
    ridge = thin_ridge(covariance, _least_variance(gram, mean))
    eye = torch.eye(covariance.shape[1], dtype=gram.dtype, device=gram.device)
    inverse = _inverse(covariance + ridge[:, None, None] * eye)
    coefficients = inverse @ with_values
    pull = (inverse @ mean[:, :, None])[:, :, 0]
    value = average - (mean[:, None, :] @ coefficients)[:, 0]
    return LocalSolution(value, coefficients, pull, mean, inverse, ridge)


def _inverse(matrices):
    if matrices.shape[1] == 1:
        return 1 / matrices
    factor = torch.linalg.cholesky_ex(matrices).L
    return torch.cholesky_inverse(factor)


def _least_variance(gram, mean):
    """Variance below which a direction is thin, for each query.

    The covariance of rows that are all far from the query is rounded like the squares of
    their distances, and extrapolated over these.
    """
    if mean.shape[1] == 0:
        return mean.new_full((len(mean),), THIN)
    largest = gram.detach().diagonal(dim1=1, dim2=2).amax(dim=1)
    distance = mean.detach().abs().amax(dim=1)
    return (_ROUNDING * largest * distance).clamp_min(THIN)


def thin_ridge(covariance, least):
    """What must be added to the diagonal for the smallest eigenvalue to be large enough.

    Parameters
    ----------
    covariance : torch.Tensor of shape (n, P, P)
    least : torch.Tensor of shape (n,)
        What it is to be at least.

    Returns
    -------
    ridge : torch.Tensor of shape (n,)
        NaN where the covariance is.
    """
    size = covariance.shape[1]
    if size == 0:
        return torch.zeros_like(least)
    if size == 1:
        return (least - covariance[:, 0, 0]).clamp_min(0)
    eye = torch.eye(size, dtype=covariance.dtype, device=covariance.device)
    # Cholesky says much faster than eigenvalues whether there is anything to add.
    thin = torch.linalg.cholesky_ex(covariance.detach() - least[:, None, None] * eye).info != 0
    ridge = covariance.new_zeros(len(covariance))
    rows = thin.nonzero()[:, 0]
    if len(rows):
        known = torch.isfinite(covariance[rows]).flatten(1).all(dim=1)
        smallest = torch.linalg.eigvalsh(
            torch.where(known[:, None, None], covariance[rows], eye)
        )[:, 0]
        missing = torch.where(known, least[rows] - smallest, torch.nan)
        # A hair more, against rounding in the factors.
        ridge = ridge.index_put((rows,), missing.clamp_min(0) * (1 + 1e-9))
    return ridge
