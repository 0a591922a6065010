"""Kernels for what repeats."""

import math

from array_api_compat import array_namespace

from .._validation import check_positive
from ._distances import square_root
from ._radial import RadialKernel


class Periodic(RadialKernel):
    r"""Periodic kernel: a key counts as near at every whole number of periods.

    .. math:: K(r) = \exp\left(-\frac{2 \sin^2(\pi r / \text{period})}
              {\text{length\_scale}^2}\right),\quad r = \lVert q - k \rVert

    Parameters
    ----------
    period : float, default=1.0
        Distance after which the kernel repeats, in bandwidths.
    length_scale : float, default=1.0
        How fast similarity falls within a period; small values compare only equal phases.

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

    def __init__(self, period=1.0, length_scale=1.0):
        self.period = period
        self.length_scale = length_scale

    def _log_profile(self, squared):
        period = check_positive("period", self.period)
        length_scale = check_positive("length_scale", self.length_scale)
        xp = array_namespace(squared)
        # So many periods away no digit of the phase is left, and infinity would be NaN.
        periods = xp.clip(square_root(squared) / period, None, 1e18)
        return -2 * (xp.sin(math.pi * periods) / length_scale) ** 2


class LocallyPeriodic(Periodic):
    r"""Locally periodic kernel: periodic, with a similarity that fades over the periods.

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
    A periodic times a Gaussian kernel (Duvenaud 2014, section 2.4). For two separate
    length-scales write the product: ``Periodic(period=p, length_scale=a) * Gaussian()``.

    Examples
    --------
    >>> from sklearn_attention.kernels import LocallyPeriodic
    >>> LocallyPeriodic(period=1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    def _log_profile(self, squared):
        length_scale = check_positive("length_scale", self.length_scale)
        # Divided twice: the square of an extreme length_scale overflows or vanishes.
        return super()._log_profile(squared) - 0.5 * squared / length_scale / length_scale
