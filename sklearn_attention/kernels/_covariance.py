"""Covariance functions of Gaussian processes, used as weights."""

import math
from typing import Any

from array_api_compat import array_namespace

from .._validation import check_positive
from ._base import Kernel
from ._numerics import slope_in_square, square_root
from ._radial import RadialKernel

# Distances are limited to this number of bandwidths (Matérn) or periods where infinity would
# make NaN. At this distance the logarithm in a Matérn kernel is below the rounding error of the
# distance that is subtracted from it, and the phase within a period is rounding.
_MAX_DISTANCE = 1e18


class Exponential(RadialKernel, name="exponential"):
    r"""Exponential kernel, the Matérn kernel of smoothness 1/2.

    Take it for rough functions: predictions have a bend at every training row.

    .. math:: K(q, k) = \exp(-\lVert q - k \rVert_2)

    It is pointed at 0 and has heavy tails (Rasmussen and Williams 2006, eq. 4.18).

    Examples
    --------
    >>> from sklearn_attention.kernels import Exponential
    >>> Exponential()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    positive_definite = decreasing = True
    exponential_polynomial = (1.0, (1.0,))
    kinked = True

    def log_profile(self, squared) -> Any:
        return -square_root(squared)

    def log_slope(self, squared) -> Any:
        return slope_in_square(-1.0, square_root(squared))


class Laplacian(Kernel, name="laplacian"):
    r"""Laplacian kernel, a product of exponentials over the features.

    Take it for functions that are rough along single features.

    .. math:: K(q, k) = \exp(-\lVert q - k \rVert_1)

    The formula is that of :func:`sklearn.metrics.pairwise.laplacian_kernel` with ``gamma=1``.

    Examples
    --------
    >>> from sklearn_attention.kernels import Laplacian
    >>> Laplacian()([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    positive_definite = decreasing = True
    exponential_polynomial = (1.0, (1.0,))
    stationary = True

    def radial_form(self, n_features) -> Any:
        # Along a single feature both norms are the absolute difference.
        return Exponential().radial_form(1) if n_features == 1 else None

    def radial_factors(self, n_features) -> Any:
        return [(Exponential(), [j]) for j in range(n_features)], None

    def _log_values(self, queries, keys):
        return -sum(abs(q[:, None] - k) for q, k in zip(queries.T, keys.T, strict=True))


class Matern32(RadialKernel, name="matern32"):
    r"""Matérn kernel of smoothness 3/2.

    Take it for functions that are rougher than those of :class:`Matern52`, and smoother than
    those of :class:`Exponential`.

    .. math:: K(r) = (1 + \sqrt3\, r) \exp(-\sqrt3\, r),\quad r = \lVert q - k \rVert

    It suits functions with one derivative (Rasmussen and Williams 2006, eq. 4.17).

    Examples
    --------
    >>> from sklearn_attention.kernels import Matern32
    >>> Matern32()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834]])
    """

    positive_definite = decreasing = True
    exponential_polynomial = (math.sqrt(3), (1.0, math.sqrt(3)))

    def log_profile(self, squared) -> Any:
        xp = array_namespace(squared)
        scaled = math.sqrt(3) * square_root(squared)
        return xp.log1p(xp.clip(scaled, max=_MAX_DISTANCE)) - scaled

    def log_slope(self, squared) -> Any:
        return -1.5 / (1 + math.sqrt(3) * square_root(squared))


class Matern52(RadialKernel, name="matern52"):
    r"""Matérn kernel of smoothness 5/2.

    Take it for functions that are smooth, but less so than those of :class:`Gaussian`.

    .. math:: K(r) = \left(1 + \sqrt5\, r + \tfrac53 r^2\right) \exp(-\sqrt5\, r)

    It suits functions with two derivatives (Rasmussen and Williams 2006, eq. 4.17).

    Examples
    --------
    >>> from sklearn_attention.kernels import Matern52
    >>> Matern52()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.   , 0.524]])
    """

    positive_definite = decreasing = True
    exponential_polynomial = (math.sqrt(5), (1.0, math.sqrt(5), 5 / 3))

    def log_profile(self, squared) -> Any:
        xp = array_namespace(squared)
        scaled = math.sqrt(5) * square_root(squared)
        limited = xp.clip(scaled, max=_MAX_DISTANCE)
        return xp.log1p(limited + limited * limited / 3) - scaled

    def log_slope(self, squared) -> Any:
        scaled = array_namespace(squared).clip(
            math.sqrt(5) * square_root(squared), max=_MAX_DISTANCE
        )
        return -5 / 6 * (1 + scaled) / (1 + scaled + scaled * scaled / 3)


class RationalQuadratic(RadialKernel, name="rational_quadratic"):
    r"""Rational quadratic kernel, a mixture of Gaussians over all length-scales.

    .. math:: K(r) = \left(1 + \frac{r^2}{2\alpha}\right)^{-\alpha}

    Its tails fall like a power: the smaller :math:`\alpha`, the more distant keys count. For
    :math:`\alpha \to \infty` it is Gaussian (Rasmussen and Williams 2006, eq. 4.19).

    Parameters
    ----------
    alpha : float, default=1.0
        Positive weight of large against small length-scales.

    Examples
    --------
    >>> from sklearn_attention.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.6667]])
    """

    positive_definite = decreasing = True

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    @property
    def analytic_strip(self):
        return math.sqrt(2 * check_positive("alpha", self.alpha))

    def log_profile(self, squared) -> Any:
        alpha = check_positive("alpha", self.alpha)
        xp = array_namespace(squared)
        return -alpha * xp.log1p(0.5 * squared / alpha)

    def log_slope(self, squared) -> Any:
        return -0.5 / (1 + 0.5 * squared / check_positive("alpha", self.alpha))


class Periodic(RadialKernel, name="periodic"):
    r"""Periodic kernel, which repeats after every period.

    Take it for what repeats exactly, such as hours of a day or angles.

    .. math:: K(r) = \exp\left(-\frac{2 \sin^2(\pi r / \text{period})}
              {\text{length\_scale}^2}\right),\quad r = \lVert q - k \rVert

    Parameters
    ----------
    period : float, default=1.0
        Distance after which the kernel repeats, in bandwidths.
    length_scale : float, default=1.0
        Scale of the similarity within a period; with small values only equal phases count.

    Notes
    -----
    The formula is MacKay's (1998). "Attention is Kernel Trick Reloaded" writes it with
    :math:`\ell^2` for the period and :math:`p` for the squared length-scale.

    Examples
    --------
    >>> from sklearn_attention.kernels import Periodic
    >>> Periodic(period=2.0)([[0.0]], [[1.0], [2.0]]).round(4)
    array([[0.1353, 1.    ]])
    """

    def __init__(self, period: float = 1.0, length_scale: float = 1.0) -> None:
        self.period = period
        self.length_scale = length_scale

    def log_profile(self, squared) -> Any:
        period = check_positive("period", self.period)
        length_scale = check_positive("length_scale", self.length_scale)
        xp = array_namespace(squared)
        periods = xp.clip(square_root(squared) / period, max=_MAX_DISTANCE)
        return -2 * (xp.sin(math.pi * periods) / length_scale) ** 2

    def log_slope(self, squared) -> Any:
        period = check_positive("period", self.period)
        length_scale = check_positive("length_scale", self.length_scale)
        xp = array_namespace(squared)
        distance = square_root(squared)
        waves = xp.sin(2 * math.pi * xp.clip(distance / period, max=_MAX_DISTANCE))
        return slope_in_square(-2 * math.pi / period / length_scale**2 * waves, distance)


class LocallyPeriodic(Periodic, name="locally_periodic"):
    r"""Locally periodic kernel, a periodic kernel that fades with the distance.

    Take it for what repeats, but changes from period to period.

    .. math:: K(r) = \exp\left(-\frac{2 \sin^2(\pi r / \text{period})}
              {\text{length\_scale}^2}\right)
              \exp\left(-\frac{r^2}{2\,\text{length\_scale}^2}\right)

    Parameters
    ----------
    period : float, default=1.0
        Distance after which the kernel repeats, in bandwidths.
    length_scale : float, default=1.0
        Scale both of the comparison within a period and of the fading, in bandwidths.

    Notes
    -----
    It is a periodic times a Gaussian kernel (Duvenaud 2014, section 2.4). For two separate
    length-scales write the product: ``Periodic(period=p, length_scale=a) * Gaussian()``.

    Examples
    --------
    >>> from sklearn_attention.kernels import LocallyPeriodic
    >>> LocallyPeriodic(period=1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    def log_profile(self, squared) -> Any:
        length_scale = check_positive("length_scale", self.length_scale)
        # The division is done twice, since the square of an extreme length_scale overflows or
        # vanishes.
        return super().log_profile(squared) - 0.5 * squared / length_scale / length_scale

    def log_slope(self, squared) -> Any:
        length_scale = check_positive("length_scale", self.length_scale)
        return super().log_slope(squared) - 0.5 / length_scale / length_scale
