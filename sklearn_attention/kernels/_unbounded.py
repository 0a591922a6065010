"""Smoothing kernels with unbounded support, and the Gaussian as a dot product."""

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from ._numerics import slope_in_square, square_root
from ._radial import SmoothingKernel


class Logistic(SmoothingKernel, name="logistic"):
    r"""Logistic kernel, the density of the logistic distribution.

    .. math:: K(u) = \frac{1}{e^u + 2 + e^{-u}}

    Its tails are heavier than the Gaussian's, so that distant keys have some weight.

    Examples
    --------
    >>> from sklearn_attention.kernels import Logistic
    >>> Logistic()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[0.25  , 0.1966]])
    """

    positive_definite = True
    roughness, second_moment = 1 / 6, math.pi**2 / 3
    analytic_strip = math.pi

    def log_profile(self, squared) -> Any:
        xp = array_namespace(squared)
        distance = square_root(squared)
        return -distance - 2 * xp.log1p(xp.exp(-distance))

    def log_slope(self, squared) -> Any:
        distance = square_root(squared)
        return slope_in_square(-array_namespace(squared).tanh(distance / 2), distance)


class Sigmoid(SmoothingKernel, name="sigmoid"):
    r"""Sigmoid kernel, the density of the hyperbolic secant distribution.

    .. math:: K(u) = \frac{2}{\pi} \frac{1}{e^u + e^{-u}}

    Its tails are lighter than those of the logistic kernel, and heavier than the Gaussian's.

    Examples
    --------
    >>> from sklearn_attention.kernels import Sigmoid
    >>> Sigmoid()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[0.3183, 0.2063]])
    """

    positive_definite = True
    roughness, second_moment = 2 / math.pi**2, math.pi**2 / 4
    analytic_strip = math.pi / 2

    def log_profile(self, squared) -> Any:
        xp = array_namespace(squared)
        distance = square_root(squared)
        return math.log(2 / math.pi) - distance - xp.log1p(xp.exp(-2 * distance))

    def log_slope(self, squared) -> Any:
        distance = square_root(squared)
        return slope_in_square(-array_namespace(squared).tanh(distance), distance)


class Silverman(SmoothingKernel, name="silverman"):
    r"""Silverman's kernel of order 4, the equivalent kernel of a smoothing spline.

    .. math:: K(u) = \tfrac12 e^{-|u| / \sqrt2}
              \sin\left(\frac{|u|}{\sqrt2} + \frac{\pi}{4}\right)

    It takes negative values: averages can leave the range of the values, in exchange for a bias
    of higher order. Estimators of probabilities refuse it.

    References
    ----------
    .. [1] Silverman, B. W. (1984). Spline smoothing: the equivalent variable kernel
       method. Annals of Statistics 12, 898-916.

    Examples
    --------
    >>> from sklearn_attention.kernels import Silverman
    >>> Silverman()([[0.0]], [[0.0], [5.0]]).round(4)
    array([[ 0.3536, -0.0135]])
    """

    roughness, second_moment = 3 * math.sqrt(2) / 16, 0.0
    signed = True
    decreasing = False

    def profile(self, squared) -> Any:
        xp = array_namespace(squared)
        # At 1e3 the exponential is 0 already. The sine of infinity would be NaN.
        scaled = xp.clip(square_root(squared) / math.sqrt(2), max=1e3)
        return 0.5 * xp.exp(-scaled) * xp.sin(scaled + math.pi / 4)

    def log_slope(self, squared) -> Any:
        xp = array_namespace(squared)
        scaled = xp.clip(square_root(squared) / math.sqrt(2), max=1e3)
        sine, cosine = xp.sin(scaled + math.pi / 4), xp.cos(scaled + math.pi / 4)
        # If the sine is 0, so is the kernel, which then has no logarithm; any slope will do.
        slope = cosine / xp.where(sine == 0, 1.0, sine) - 1
        return 0.5 * slope_in_square(slope, scaled)


class DotProductForm(NamedTuple):
    r"""A log-kernel as a dot product, :math:`\log K = \tilde q^\top \tilde k + b(k) + a(q)`.

    The term a(q) cancels in the weighted average, so softmax attention with the scores
    :math:`\tilde q^\top \tilde k + b(k)` computes that average exactly.
    """

    queries: Any  # the q~, (n_queries, n_features)
    keys: Any  # the k~, (n_keys, n_features)
    key_bias: Any  # b(k), (n_keys,)
    query_bias: Any  # a(q), (n_queries,)


class Gaussian(SmoothingKernel, name="gaussian"):
    r"""Gaussian kernel.

    .. math:: K(u) = \frac{1}{\sqrt{2\pi}} \exp\left(-\frac{u^2}{2}\right)

    It is smooth and positive everywhere, so every query has an average, however far it lies
    from the data. It is the default choice.

    Notes
    -----
    From :math:`-\lVert q - k \rVert^2 / 2 = q^\top k - \lVert k \rVert^2 / 2 -
    \lVert q \rVert^2 / 2` follows that Nadaraya-Watson regression with this kernel is
    dot-product attention whose keys have the bias :math:`-\lVert k \rVert^2 / 2`.

    Examples
    --------
    >>> from sklearn_attention.kernels import Gaussian
    >>> Gaussian()([[0.0]], [[0.0], [1.0]]).round(4)
    array([[0.3989, 0.242 ]])
    """

    positive_definite = True
    roughness, second_moment = 1 / (2 * math.sqrt(math.pi)), 1.0
    analytic_strip = math.inf

    _log_peak = -0.5 * math.log(2 * math.pi)

    def log_profile(self, squared) -> Any:
        return self._log_peak - 0.5 * squared

    def log_slope(self, squared) -> Any:
        return array_namespace(squared).full_like(squared, -0.5)

    def as_dot_product(self, queries, keys) -> DotProductForm | None:
        # -|q - k|^2 / 2 = q.k - |k|^2 / 2 - |q|^2 / 2
        xp = array_namespace(queries, keys)
        return DotProductForm(
            queries,
            keys,
            key_bias=-0.5 * xp.vecdot(keys, keys),
            query_bias=self._log_peak - 0.5 * xp.vecdot(queries, queries),
        )


class GaussianProduct(Gaussian):
    r"""Product of n Gaussians along several axes, :math:`(2 \pi)^{-n/2} \exp(-u^2 / 2)`."""

    def __init__(self, n_factors):
        self.n_factors = n_factors

    @property
    def _log_peak(self):
        return self.n_factors * Gaussian._log_peak
