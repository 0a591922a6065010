"""A smoothing kernel convolved with itself, which least-squares cross-validation needs."""

import functools
import math

import numpy as np
from array_api_compat import array_namespace
from scipy.interpolate import CubicSpline
from sklearn.base import clone

from ..kernels import RadialKernel

# The integral over either side of a kink is a polynomial of degree 18 for the tricube
# kernel, and smooth for the others: so many nodes leave nothing but rounding.
_NODES = 100
# Steps of the table. The error of a cubic spline falls with their fourth power: here
# below 1e-10 of the peak.
_STEPS = 2**13
# A kernel without bounds ends where it is this small.
_NEGLIGIBLE = 1e-18
_LONGEST_REACH = 1e3


class SelfConvolution(RadialKernel):
    r"""A smoothing kernel convolved with itself, in one dimension.

    .. math:: (K * K)(t) = \int K(v)\, K(t - v)\,dv
              = 2 \int_{t/2}^{\infty} K(v)\, K(t - v)\,dv

    Tabulated from the second form: whatever kinks a kernel has at 0 and at its edges, the
    integrand is smooth on either side of :math:`v = t`.

    Parameters
    ----------
    kernel : SmoothingKernel
        :math:`K`.
    """

    def __init__(self, kernel):
        self.kernel = kernel

    @property
    def support(self):
        return 2 * kernel_reach(self.kernel)

    def profile(self, squared):
        xp = array_namespace(squared)
        # The copy keeps what is remembered from changing with this kernel's parameters.
        table, step = _table(clone(self.kernel))
        positive = squared > 0  # the square root has no slope at 0, and needs none
        position = xp.sqrt(xp.where(positive, squared, 1.0)) / step
        position = xp.where(positive, position, 0.0)
        inside = position < _STEPS
        position = xp.where(inside, position, 0.0)
        index = xp.astype(position, xp.int64)
        fraction = (position - index) * step
        cubic = [xp.asarray(row)[index] for row in table]
        value = cubic[0] + fraction * (cubic[1] + fraction * (cubic[2] + fraction * cubic[3]))
        return xp.clip(xp.where(inside, value, 0.0), 0, None)


@functools.lru_cache(maxsize=8)
def _table(kernel):
    """Coefficients of a cubic for each step, lowest power first, and the step."""
    reach = kernel_reach(kernel)
    grid = np.linspace(0, 2 * reach, _STEPS + 1)
    edge = np.clip(grid, None, reach)
    near, far = _integral(kernel, grid, grid / 2, edge), _integral(kernel, grid, edge, reach)
    return CubicSpline(grid, 2 * (near + far)).c[::-1], grid[1]


def _integral(kernel, t, start, end):
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (end - start) / 2
    v = (start + half)[:, None] + half[:, None] * nodes
    products = kernel.profile(v**2) * kernel.profile((t[:, None] - v) ** 2)
    return half * (products @ weights)


def kernel_reach(kernel):
    """Distance, in bandwidths, beyond which a smoothing kernel is 0 or next to it.

    Parameters
    ----------
    kernel : SmoothingKernel

    Returns
    -------
    reach : float

    Raises
    ------
    ValueError
        If the kernel falls too slowly to be tabulated.

    Examples
    --------
    >>> from sklearn_attention.bandwidth import kernel_reach
    >>> from sklearn_attention.kernels import Epanechnikov
    >>> kernel_reach(Epanechnikov())
    1.0
    """
    if math.isfinite(kernel.support):
        return float(kernel.support)
    reach = 1.0
    while kernel.profile(np.float64(reach**2)) * reach > _NEGLIGIBLE:
        reach *= 1.25
        if reach > _LONGEST_REACH:
            raise ValueError(
                f"kernel={kernel!r} falls too slowly to be tabulated: choose a kernel with "
                "lighter tails, such as 'gaussian' or 'logistic'."
            )
    return reach
