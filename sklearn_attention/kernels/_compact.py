"""Smoothing kernels that are exactly 0 beyond one bandwidth."""

import math
from typing import Any

from array_api_compat import array_namespace

from ._numerics import slope_in_square, square_root
from ._radial import SmoothingKernel

# Smallest distance from the edge of a kernel at which the slope of its logarithm is evaluated,
# about the rounding error of 1. Beyond the edge the kernel is 0 and has no logarithm; the slope
# there is the one at this distance.
_MIN_TO_EDGE = 1e-16


class CompactKernel(SmoothingKernel):
    """Base class of the smoothing kernels that vanish outside the unit ball.

    If no key lies within one bandwidth of a query, all weights of the query are 0.
    """

    support = 1.0


class _BetaKernel(CompactKernel):
    """Base class of the kernels proportional to (1 - u^2)^p, with p = 1, 2 or 3."""

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        power = len(self.polynomial) // 2
        return self.polynomial[0] * xp.clip(1 - squared, min=0) ** power

    def log_slope(self, squared) -> Any:
        power = len(self.polynomial) // 2
        return -power / array_namespace(squared).clip(1 - squared, min=_MIN_TO_EDGE)


class Epanechnikov(_BetaKernel, name="epanechnikov"):
    r"""Epanechnikov kernel.

    .. math:: K(u) = \tfrac34 (1 - u^2) \quad \text{for } |u| \le 1

    It has the smallest asymptotic mean squared error of all positive kernels (Epanechnikov
    1969). Its derivative jumps at the edge of the window.

    Examples
    --------
    >>> from sklearn_attention.kernels import Epanechnikov
    >>> Epanechnikov()([[0.0]], [[0.0], [0.5], [2.0]])
    array([[0.75  , 0.5625, 0.    ]])
    """

    roughness, second_moment = 3 / 5, 1 / 5
    polynomial = (3 / 4, 0.0, -3 / 4)


class Biweight(_BetaKernel, name="biweight"):
    r"""Biweight (quartic) kernel.

    .. math:: K(u) = \tfrac{15}{16} (1 - u^2)^2 \quad \text{for } |u| \le 1

    It is similar to :class:`Epanechnikov`, but its derivative is continuous.

    Examples
    --------
    >>> from sklearn_attention.kernels import Biweight
    >>> Biweight()([[0.0]], [[0.0], [1.0]])
    array([[0.9375, 0.    ]])
    """

    roughness, second_moment = 5 / 7, 1 / 7
    polynomial = (15 / 16, 0.0, -15 / 8, 0.0, 15 / 16)


class Triweight(_BetaKernel, name="triweight"):
    r"""Triweight kernel.

    .. math:: K(u) = \tfrac{35}{32} (1 - u^2)^3 \quad \text{for } |u| \le 1

    It is twice continuously differentiable, and similar to a Gaussian that is cut off.

    Examples
    --------
    >>> from sklearn_attention.kernels import Triweight
    >>> Triweight()([[0.0]], [[0.0], [1.0]])
    array([[1.09375, 0.     ]])
    """

    roughness, second_moment = 350 / 429, 1 / 9
    polynomial = (35 / 32, 0.0, -105 / 32, 0.0, 105 / 32, 0.0, -35 / 32)


class Boxcar(CompactKernel, name="boxcar"):
    r"""Boxcar (uniform) kernel.

    .. math:: K(u) = \tfrac12 \quad \text{for } |u| \le 1

    It averages all rows within one bandwidth, as a moving window does. Its estimates jump.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar
    >>> Boxcar()([[0.0]], [[1.0], [1.1]])
    array([[0.5, 0. ]])
    """

    roughness, second_moment = 1 / 2, 1 / 3
    polynomial = (0.5,)

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        return 0.5 * xp.astype(squared <= 1, squared.dtype)

    def log_slope(self, squared) -> Any:
        return array_namespace(squared).zeros_like(squared)


class Triangular(CompactKernel, name="triangular"):
    r"""Triangular kernel.

    .. math:: K(u) = 1 - |u| \quad \text{for } |u| \le 1

    It falls linearly, as the weights of linear interpolation on a regular grid do.

    Examples
    --------
    >>> from sklearn_attention.kernels import Triangular
    >>> Triangular()([[0.0]], [[0.25], [2.0]])
    array([[0.75, 0.  ]])
    """

    roughness, second_moment = 2 / 3, 1 / 6
    polynomial = (1.0, -1.0)
    kinked = True

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        return xp.clip(1 - square_root(squared), min=0)

    def log_slope(self, squared) -> Any:
        distance = square_root(squared)
        to_edge = array_namespace(squared).clip(1 - distance, min=_MIN_TO_EDGE)
        return slope_in_square(-1 / to_edge, distance)


class Tricube(CompactKernel, name="tricube"):
    r"""Tricube kernel.

    .. math:: K(u) = \tfrac{70}{81} (1 - |u|^3)^3 \quad \text{for } |u| \le 1

    These are the weights of LOWESS (Cleveland 1979), flat near 0 and smooth at the edge.

    Examples
    --------
    >>> from sklearn_attention.kernels import Tricube
    >>> Tricube()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[0.8642, 0.    ]])
    """

    roughness, second_moment = 175 / 247, 35 / 243
    polynomial = (70 / 81, 0.0, 0.0, -70 / 27, 0.0, 0.0, 70 / 27, 0.0, 0.0, -70 / 81)

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        squared = xp.clip(squared, max=1.0)
        return 70 / 81 * (1 - squared * square_root(squared)) ** 3

    def log_slope(self, squared) -> Any:
        xp = array_namespace(squared)
        squared = xp.clip(squared, max=1.0)
        distance = square_root(squared)
        return -4.5 * distance / xp.clip(1 - squared * distance, min=_MIN_TO_EDGE)


class Cosine(CompactKernel, name="cosine"):
    r"""Cosine kernel, one arch of a cosine.

    .. math:: K(u) = \tfrac{\pi}{4} \cos\left(\tfrac{\pi}{2} u\right)
              \quad \text{for } |u| \le 1

    It is almost as efficient as :class:`Epanechnikov`. :class:`CosineSimilarity` is another
    kernel, of the angle between query and key.

    Examples
    --------
    >>> from sklearn_attention.kernels import Cosine
    >>> Cosine()([[0.0]], [[0.0], [2.0]]).round(4)
    array([[0.7854, 0.    ]])
    """

    roughness, second_moment = math.pi**2 / 16, 1 - 8 / math.pi**2
    # These are the terms of the Taylor series; those beyond degree 20 are rounding errors.
    polynomial = tuple(
        0.0
        if k % 2
        else math.pi / 4 * (-1) ** (k // 2) * (math.pi / 2) ** k / math.factorial(k)
        for k in range(21)
    )

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        distance = square_root(xp.clip(squared, max=1.0))
        # cos(pi / 2 * u) is written as a sine of the distance to the edge, which is exactly 0
        # at u = 1, where the cosine has a rounding error.
        return math.pi / 4 * xp.sin(math.pi / 2 * (1 - distance))

    def log_slope(self, squared) -> Any:
        xp = array_namespace(squared)
        distance = square_root(xp.clip(squared, max=1.0))
        to_edge = math.pi / 2 * xp.clip(1 - distance, min=_MIN_TO_EDGE)
        return slope_in_square(-math.pi / 2 * xp.cos(to_edge) / xp.sin(to_edge), distance)
