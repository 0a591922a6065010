"""Sums over keys: what every average, polynomial and density is finished from."""

from typing import Any, NamedTuple

import numpy as np

from .._validation import check_choice

EMPTY_POLICIES = ("nearest", "nan")


class Nearest(NamedTuple):
    """Sums over the keys that are nearest to each query, of one part of the keys."""

    distance: Any  # (n_queries,) inf where there is no key
    rounding: Any  # (n_queries,) differences of distances that are no larger are rounding
    sums: Any  # (1 + n_values, n_queries) sums of the weights, and of these times the values

    def put(self, rows, other) -> None:
        """Put the sums of some queries in the place of those before."""
        for field, new in zip(self, other, strict=True):
            field[..., rows] = new

    def plus(self, other):
        """Sums over the nearest keys of both parts; equally near ones are added."""
        distance = np.minimum(self.distance, other.distance)
        rounding = np.maximum(self.rounding, other.rounding)
        sums = sum(
            np.where(part.distance <= distance + rounding, part.sums, 0.0)
            for part in (self, other)
        )
        return Nearest(distance, rounding, sums)


class Sums(NamedTuple):
    r"""Weighted sums of values, and sums of weights, at each query over one part of the keys.

    They are the result of :func:`attention_sums`. Sums of several parts can be added, and their
    method `average` returns the weighted averages.

    .. math:: S_{\alpha c}(q) = \sum_i w_i\, K(q, k_i)\, (k_i - q)^\alpha\, (1, v_i)_c

    They are taken about the query, so sums over different keys add as they are: ``a + b``, or
    ``sum`` of a list.
    They are divided by :math:`e^{\text{shift}}`, so that nothing overflows or vanishes.

    Attributes
    ----------
    shift : array of shape (n_queries,)
        Logarithm of the scale; -inf where no key has weight.
    sums : array of shape (n_powers, 1 + n_values, n_queries)
        Scaled sums: of the weights, and of these times each value; for averages there is one
        power, 0. Powers of distances are in bandwidths; those above the degree of a
        polynomial have only the sums of weights.
    least : array of shape (n_queries,)
        Bound of the rounding error: a sum of weights whose absolute value is not above it is
        not used as a divisor. 0 where sums are exact.
    nearest : Nearest or None
        Sums over the nearest keys, for queries without weights; None under the policy "nan".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import attend
    >>> from sklearn_attention.attention import attention_sums
    >>> X, y = np.linspace(0, 1, 6)[:, None], np.arange(6.0)
    >>> first = attention_sums(X, X[:2], y[:2], bandwidth=0.1)
    >>> rest = attention_sums(X, X[2:], y[2:], bandwidth=0.1)
    >>> averages, log_normalizers = (first + rest).average()
    >>> np.allclose(averages[:, 0], attend(X, X, y, bandwidth=0.1)[0])
    True
    """

    shift: Any
    sums: Any
    least: Any
    nearest: Any = None

    def __add__(self, other):
        """Sums over the keys of both, and the same with 0, at which `sum` begins."""
        if isinstance(other, int) and other == 0:
            return self
        shapes = tuple(self.sums.shape), tuple(other.sums.shape)
        if shapes[0] != shapes[1] or (self.nearest is None) != (other.nearest is None):
            raise ValueError(
                f"sums of shapes {shapes[0]} and {shapes[1]} cannot be added: compute both for "
                "the same queries, with the same number of values and the same value of empty."
            )
        return self.plus(other)

    __radd__ = __add__

    def plus(self, other):
        """Sums over the keys of both, where either may have no `nearest`."""
        shift = np.maximum(self.shift, other.shift)
        base = np.where(shift > -np.inf, shift, 0.0)
        one, two = (np.exp(part.shift - base) for part in (self, other))
        nearest = self.nearest if other.nearest is None else other.nearest
        if self.nearest is not None and other.nearest is not None:
            nearest = self.nearest.plus(other.nearest)
        least = self.least * one + other.least * two
        return Sums(shift, self.sums * one + other.sums * two, least, nearest)

    def times(self, log_factor):
        """Return the sums for weights that are larger by a factor with this logarithm."""
        nearest = self.nearest
        if nearest is not None:
            nearest = nearest._replace(sums=nearest.sums * np.exp(log_factor))
        return self._replace(shift=self.shift + log_factor, nearest=nearest)

    def put(self, rows, other) -> None:
        """Put the sums of some queries in the place of those before."""
        for field, new in zip(self[:3], other[:3], strict=True):
            field[..., rows] = new

    @property
    def usable(self):
        """True for each query whose weights may be divided by their sum."""
        return np.abs(self.sums[0, 0]) > self.least

    @property
    def sure(self):
        """True for each query whose sum of weights is accurate, be it 0."""
        return (self.least == 0) | self.usable

    @property
    def log_total(self):
        """Logarithm of the sum of the weights, or of its absolute value; -inf for none."""
        with np.errstate(divide="ignore"):
            found = self.shift + np.log(np.abs(self.sums[0, 0]))
        return np.where(self.shift == -np.inf, -np.inf, found)

    def average(self, empty: str = "nearest") -> Any:
        """Averages, and logarithms of the sums of weights.

        Parameters
        ----------
        empty : {"nearest", "nan"}, default="nearest"
            Policy for queries without weights, the one that these sums were made with.

        Returns
        -------
        averages : array of shape (n_queries, n_values)
        log_normalizers : array of shape (n_queries,)
            Logarithm of the absolute sum of the weights; -inf where there is none.

        Raises
        ------
        ValueError
            If a query has no weights, and `empty` is another policy than that of these sums.
        """
        check_choice("empty", empty, EMPTY_POLICIES)
        sums = self.fall_back(empty).sums[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return (sums[1:] / sums[0]).T, self.log_total

    def fall_back(self, empty="nearest"):
        """Replace sums that are not usable by those over the nearest keys, or by NaN.

        Their shift is then -inf. Powers of distances are 0, so a polynomial is the average.
        """
        (lost,) = np.nonzero(~self.usable)
        if not len(lost):
            return self
        shift, sums = self.shift.copy(), self.sums.copy()
        shift[lost], sums[..., lost] = -np.inf, np.nan
        if empty == "nearest":
            if self.nearest is None:
                raise ValueError(
                    "empty='nearest' needs sums that were made with it: pass the same value to "
                    "attention_sums and to average."
                )
            lost = lost[self.nearest.sums[0, lost] > 0]
            sums[..., lost] = 0.0
            sums[0][:, lost] = self.nearest.sums[:, lost]
        return self._replace(shift=shift, sums=sums)
