"""Kernels of the distance, and the smoothing kernels among them."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from scipy.integrate import quad
from sklearn.base import clone

from ._base import Kernel
from ._numerics import log, squared_distances


class RadialForm(NamedTuple):
    r"""A kernel of the distance in some columns C, times a kernel of categories.

    :math:`K = K_0(\lVert q_C - k_C \rVert)\, K_1(q, k)`; the bandwidth divides the distance.
    """

    kernel: Any  # K_0, a RadialKernel
    columns: Any  # C, a list of int
    categorical: Any  # K_1, a Kernel that takes all columns, or None for the constant 1

    def squared(self, queries, keys):
        """Compute squared distances (n_queries, n_keys) in the columns of the distance."""
        return squared_distances(queries[:, self.columns], keys[:, self.columns])

    def values(self, squared, queries, keys):
        """Evaluate the kernel, (n_queries, n_keys), at the result of `squared`."""
        values = self.kernel.profile(squared)
        if self.categorical is None:
            return values
        return values * self.categorical(queries, keys)

    def log_values(self, squared, queries, keys):
        """Evaluate the logarithm of the kernel at the result of `squared`."""
        values = self.kernel.log_profile(squared)
        if self.categorical is None:
            return values
        return values + self.categorical.log(queries, keys)


class RadialKernel(Kernel):
    r"""Base class of kernels of the distance: :math:`K(q, k) = K(\lVert q - k \rVert)`.

    A subclass writes its formula once, as a function of the squared distance: in
    :meth:`log_profile` if the kernel is positive everywhere, otherwise in :meth:`profile`. The
    method has to take NumPy arrays, and for attention layers and derivatives torch tensors too;
    ``array_api_compat.array_namespace`` returns the module of either.

    Examples
    --------
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> from sklearn_attention.kernels import RadialKernel
    >>> class Student(RadialKernel):
    ...     positive_definite = decreasing = True
    ...
    ...     def profile(self, squared):
    ...         return 1 / (1 + squared)
    >>> model = NadarayaWatsonRegressor(Student(), bandwidth=0.5).fit([[0.0], [1.0]], [0, 1])
    >>> model.predict([[0.0]]).round(3)
    array([0.167])
    """

    stationary = True
    # Whether the kernel has a kink at distance 0, which magnifies rounding errors of distances.
    kinked = False

    def profile(self, squared) -> Any:
        """Evaluate the kernel at squared distances.

        Parameters
        ----------
        squared : array or tensor
            Squared distances in bandwidths, of any shape.

        Returns
        -------
        values : array or tensor
            The values, of the same shape.
        """
        self._need_formula(RadialKernel, "log_profile")
        xp = array_namespace(squared)
        return xp.exp(self.log_profile(squared))

    def log_profile(self, squared) -> Any:
        """Evaluate the logarithm of the kernel at squared distances.

        Parameters
        ----------
        squared : array or tensor
            Squared distances in bandwidths, of any shape.

        Returns
        -------
        log_values : array or tensor
            The logarithms, of the same shape; -inf where the kernel is 0.
        """
        self._need_formula(RadialKernel, "profile")
        return log(self.profile(squared))

    def log_slope(self, squared) -> Any:
        """Differentiate :meth:`~RadialKernel.log_profile` with respect to the squared distance.

        Parameters
        ----------
        squared : array or tensor
            Squared distances in bandwidths, of any shape.

        Returns
        -------
        slope : array or tensor
            The derivatives, of the same shape; finite also where the kernel is 0 or has a kink.
        """
        # A kernel's formula runs on NumPy arrays and on torch tensors. If the kernel does not
        # define its derivative, torch computes it.
        import torch

        variable = torch.as_tensor(squared).detach().clone().requires_grad_()
        try:
            with torch.enable_grad():
                (slope,) = torch.autograd.grad(self.log_profile(variable).sum(), variable)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"kernel={self!r} has no derivative, since its formula does not take tensors: "
                "write it with functions of array_api_compat.array_namespace(squared), or "
                "define log_slope."
            ) from error
        slope = torch.where(torch.isfinite(slope), slope, 0.0)
        return slope if is_torch_array(squared) else slope.numpy()

    def radial_form(self, n_features) -> RadialForm | None:
        return RadialForm(self, list(range(n_features)), categorical=None)

    # Distances that overflow are infinite, and the kernel is right there: no warning is needed.

    def _values(self, queries, keys):
        with np.errstate(over="ignore"):
            return self.profile(squared_distances(queries, keys))

    def _log_values(self, queries, keys):
        with np.errstate(over="ignore"):
            return self.log_profile(squared_distances(queries, keys))


class SmoothingKernel(RadialKernel):
    r"""Base class of the symmetric densities used as weights in kernel smoothing.

    In one dimension :math:`\int K(u)\,du = 1`. In several, :math:`K(\lVert u \rVert)` has
    the same shape along every ray. For the product form use :class:`ProductKernel`.

    A kernel of your own needs the method :meth:`~RadialKernel.profile` alone, and
    ``support = 1.0`` if it is 0 beyond one bandwidth. Integrals that it does not state are
    computed by quadrature.

    Attributes
    ----------
    roughness : float
        :math:`R(K) = \int K(u)^2\,du`.
    second_moment : float
        :math:`\mu_2(K) = \int u^2 K(u)\,du`.
    canonical_bandwidth : float or None
        :math:`\delta_0 = (R(K) / \mu_2(K)^2)^{1/5}` [1]_: two kernels smooth equally if
        their bandwidths have the ratio of their :math:`\delta_0`. None where
        :math:`\mu_2` is 0 or infinite.

    References
    ----------
    .. [1] Marron, J. S. and Nolan, D. (1988). Canonical kernels for density estimation.
       Statistics & Probability Letters 7, 195-199.

    Examples
    --------
    >>> from array_api_compat import array_namespace
    >>> from sklearn_attention.kernels import SmoothingKernel
    >>> class Parabola(SmoothingKernel):
    ...     support = 1.0
    ...
    ...     def profile(self, squared):
    ...         xp = array_namespace(squared)
    ...         return 0.75 * xp.clip(1 - squared, 0, None)
    >>> round(Parabola().roughness, 3), round(Parabola().second_moment, 3)
    (0.6, 0.2)
    """

    decreasing = True

    @property
    def roughness(self):
        return _integrals(clone(self))[0]

    @property
    def second_moment(self):
        return _integrals(clone(self))[1]

    @property
    def spread(self):
        return math.sqrt(self.second_moment) if 0 < self.second_moment < math.inf else 1.0

    @property
    def canonical_bandwidth(self):
        if not 0 < self.second_moment < math.inf:
            return None
        return (self.roughness / self.second_moment**2) ** 0.2


@functools.lru_cache(maxsize=32)
def _integrals(kernel):
    """Compute roughness and second moment of a smoothing kernel; inf if they diverge."""
    values = []
    for power, order in ((2, 0), (1, 2)):

        def integrand(u, power=power, order=order):
            squared = np.full(1, u**2)
            return float(u**order * kernel.profile(squared)[0] ** power)

        half, _, _, *problems = quad(integrand, 0, kernel.support, full_output=True)
        # The second moment of a kernel of higher order is 0, except for rounding.
        values.append(math.inf if problems else 2 * half if abs(half) > 1e-8 else 0.0)
    return tuple(values)
