"""The distribution of which a smoothing kernel is the density."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from ..bandwidth import kernel_reach
from ..kernels import Gaussian, SmoothingKernel, as_kernel

# Steps of the table, with an error below 1e-10 for every kernel of the package.
_STEPS = 2**13


class KernelDistribution:
    r"""Distribution function of a smoothing kernel, and its inverse.

    .. math:: F(u) = \int_{-\infty}^u K(v)\,dv

    In closed form for the Gaussian kernel, else from a table of the density.

    Parameters
    ----------
    kernel : SmoothingKernel
        A positive one.
    """

    def __init__(self, kernel):
        self.reach = kernel_reach(kernel)
        self._closed = type(kernel) is Gaussian
        if not self._closed:
            self._grid = np.linspace(0, self.reach, _STEPS + 1)
            density = CubicSpline(self._grid, kernel.profile(self._grid**2))
            self._mass = density.antiderivative()
            self._half = np.maximum.accumulate(self._mass(self._grid))

    def cdf(self, u):
        """Probability of being at most `u`."""
        if self._closed:
            return ndtr(u)
        mass = self._mass(np.minimum(np.abs(u), self.reach)) / self._half[-1]
        return 0.5 + 0.5 * np.copysign(np.clip(mass, 0, 1), u)

    def ppf(self, probability):
        """Quantile: where the distribution function has a given value."""
        if self._closed:
            return ndtri(probability)
        mass = np.abs(2 * np.asarray(probability) - 1) * self._half[-1]
        return np.copysign(np.interp(mass, self._half, self._grid), probability - 0.5)

    def draw(self, random_state, shape):
        """Independent draws from the kernel."""
        # In the middle of the cells a generator draws from: 0, whose quantile is infinite,
        # is none of them.
        return self.ppf(random_state.uniform(size=shape) + 2.0**-54)


def check_density_kernel(name, kernel):
    """A positive smoothing kernel for what the user passed, else an error.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    kernel : str or SmoothingKernel
        What the user passed.

    Returns
    -------
    kernel : SmoothingKernel
        A copy: changing the parameter later must not change a fitted estimator.
    """
    resolved = as_kernel(clone(kernel, safe=False))
    if not isinstance(resolved, SmoothingKernel) or resolved.signed:
        why = "takes negative values" if resolved.signed else "is no smoothing kernel"
        raise ValueError(
            f"{name}={kernel!r} {why} and so no density: choose a positive smoothing kernel, "
            "such as 'gaussian' or 'epanechnikov'."
        )
    return resolved
