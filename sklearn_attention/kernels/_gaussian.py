"""The Gaussian kernel, and its averages as dot-product attention."""

import math
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from ._radial import SmoothingKernel


class DotProductForm(NamedTuple):
    r"""A log-kernel as a dot product, :math:`\log K = \tilde q^\top \tilde k + b(k) + a(q)`."""

    # a(q) cancels in the weighted average, so softmax attention with scores q~ . k~ + b(k)
    # computes that average exactly.

    queries: Any  # (n_queries, n_features)
    keys: Any  # (n_keys, n_features)
    key_bias: Any  # (n_keys,)
    query_bias: Any  # (n_queries,)


class Gaussian(SmoothingKernel, name="gaussian"):
    r"""Gaussian kernel.

    .. math:: K(u) = \frac{1}{\sqrt{2\pi}} \exp\left(-\frac{u^2}{2}\right)

    Smooth and positive everywhere, so every query has an average, however far it lies
    from the data. The default choice.

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

    def log_profile(self, squared):
        return self._log_peak - 0.5 * squared

    def log_slope(self, squared):
        return array_namespace(squared).full_like(squared, -0.5)

    def radial_moment(self, order):
        return 2 ** (order / 2 - 1) * math.gamma((order + 1) / 2) / math.sqrt(math.pi)

    def as_dot_product(self, queries, keys):
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
