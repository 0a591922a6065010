"""Sums and products of kernels over the same columns."""

import math
import numbers

from array_api_compat import array_namespace

from .._validation import check_in_interval
from ._base import Kernel, combined_columns, combined_sign


class _Pair(Kernel):
    """Two kernels that look at the same columns."""

    def __init__(self, left, right):
        self.left = left
        self.right = right

    @property
    def _parts(self):
        """Both kernels, names and numbers resolved."""
        from ._registry import as_kernel

        return [
            Constant(part) if isinstance(part, numbers.Real) else as_kernel(part)
            for part in (self.left, self.right)
        ]

    def _column_kinds(self, n_features):
        return combined_columns(self, [part._column_kinds(n_features) for part in self._parts])

    @property
    def scaled(self):
        return any(part.scaled for part in self._parts)

    @property
    def stationary(self):
        return all(part.stationary for part in self._parts)

    @property
    def decreasing(self):
        return all(part.decreasing or isinstance(part, Constant) for part in self._parts)

    @property
    def signed(self):
        return combined_sign(self._parts)


class Sum(_Pair):
    r"""Sum of two kernels, :math:`K(q, k) = K_1(q, k) + K_2(q, k)`.

    A key counts as near if either kernel says so. Usually written ``kernel1 + kernel2``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The two kernels; a number stands for a constant kernel.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar, Triangular
    >>> (Boxcar() + Triangular())([[0.0]], [[0.5]])
    array([[1.]])
    """

    @property
    def support(self):
        return max(part.support for part in self._parts)

    def _values(self, queries, keys):
        left, right = self._parts
        return left._values(queries, keys) + right._values(queries, keys)

    def _log_values(self, queries, keys):
        left, right = (part._log_values(queries, keys) for part in self._parts)
        xp = array_namespace(left, right)
        # Where both are 0 the gradient of logaddexp would be NaN.
        both_zero = xp.maximum(left, right) == -math.inf
        total = xp.logaddexp(xp.where(both_zero, 0.0, left), right)
        return xp.where(both_zero, -math.inf, total)


class Product(_Pair):
    r"""Product of two kernels, :math:`K(q, k) = K_1(q, k) K_2(q, k)`.

    A key counts as near only if both kernels say so. Usually written
    ``kernel1 * kernel2``. For different columns use :class:`ProductKernel`.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The two kernels; a number stands for a constant kernel.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar, Triangular
    >>> (Boxcar() * Triangular())([[0.0]], [[0.5]])
    array([[0.25]])
    """

    @property
    def support(self):
        return min(part.support for part in self._parts)

    def _values(self, queries, keys):
        left, right = self._parts
        return left._values(queries, keys) * right._values(queries, keys)

    def _log_values(self, queries, keys):
        left, right = self._parts
        return left._log_values(queries, keys) + right._log_values(queries, keys)


class Constant(Kernel):
    r"""Constant kernel, :math:`K(q, k) = \text{value}`: the plain mean.

    Alone it weights all keys alike; added to another kernel it pulls averages to the mean
    of all values. A number in a sum or product of kernels stands for it.

    Parameters
    ----------
    value : float, default=1.0
        The value; a negative one makes the kernel signed.

    Examples
    --------
    >>> from sklearn_attention.kernels import Boxcar
    >>> (Boxcar() + 0.1)([[0.0]], [[0.5], [3.0]])
    array([[0.6, 0.1]])
    """

    stationary = True
    scaled = False

    def __init__(self, value=1.0):
        self.value = value

    @property
    def _number(self):
        return check_in_interval("value", self.value, -math.inf, math.inf)

    @property
    def signed(self):
        return self._number < 0

    def _column_kinds(self, n_features):
        return set(), set()  # goes with numbers and with categories

    def _values(self, queries, keys):
        xp = array_namespace(queries, keys)
        shape = (queries.shape[0], keys.shape[0])
        return xp.full(shape, self._number, dtype=queries.dtype, device=queries.device)
