"""Sums over keys, from which averages, polynomials and densities are computed.

`Sums` over parts of the keys, such as tiles, chunks or partitions, can be added. Each has a
*shift*, the logarithm of a number that divides its sums, so that they neither overflow nor
vanish; sums are brought to the larger shift before they are added. `Nearest` has the sums over
the nearest keys, which replace those of a query without weights.
"""

from typing import Any, NamedTuple

import numpy as np

from .._validation import check_choice

EMPTY_POLICIES = ("nearest", "nan")


class Nearest(NamedTuple):
    """Sums over the keys that are nearest to each query, in one part of the keys."""

    distance: Any  # (n_queries,) to the nearest key; inf if there is no key
    rounding: Any  # (n_queries,) smaller differences of distances are rounding: keys are tied
    sums: Any  # (1 + n_values, n_queries) sums of the weights, and of these times the values

    def put(self, rows, nearest) -> None:
        """Replace the sums of the queries at `rows`, in place, by those in `nearest`."""
        for field, new in zip(self, nearest, strict=True):
            field[..., rows] = new

    def plus(self, nearest):
        """Return sums over the nearest keys of two parts of the keys; tied keys are added.

        `nearest` are the sums of the other part, about the same queries.
        """
        distance = np.minimum(self.distance, nearest.distance)
        rounding = np.maximum(self.rounding, nearest.rounding)
        sums = sum(
            np.where(terms.distance <= distance + rounding, terms.sums, 0.0)
            for terms in (self, nearest)
        )
        return Nearest(distance, rounding, sums)


class Sums(NamedTuple):
    r"""Weighted sums of values, and sums of weights, at each query over a part of the keys.

    They are the result of :func:`attention_sums`. Sums over several parts can be added, and
    their method `average` returns the weighted averages.

    .. math:: S_{\alpha c}(q) = \sum_i w_i\, K(q, k_i)\, (k_i - q)^\alpha\, (1, v_i)_c

    Distances are from the query, so that sums over different keys can be added: ``a + b``, or
    ``sum`` of a list. All are divided by :math:`e^{\text{shift}}`, so that nothing overflows or
    vanishes.

    Attributes
    ----------
    shift : array of shape (n_queries,)
        Logarithm of the scale; -inf where no key has weight.
    sums : array of shape (n_powers, 1 + n_values, n_queries)
        Scaled sums: of the weights, and of these times each value; for averages there is one
        power, 0. Powers of distances are in bandwidths; those above the degree of a
        polynomial have only the sums of weights.
    error_bound : array of shape (n_queries,)
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
    error_bound: Any
    nearest: Any = None

    def __add__(self, other):
        """Add sums over other keys, or 0, with which Python's function `sum` begins."""
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

    def plus(self, sums):
        """Add sums over other keys; either may have no `nearest`."""
        shift = np.maximum(self.shift, sums.shift)
        finite_shift = np.where(shift > -np.inf, shift, 0.0)
        factor, other_factor = (np.exp(terms.shift - finite_shift) for terms in (self, sums))
        nearest = self.nearest if sums.nearest is None else sums.nearest
        if self.nearest is not None and sums.nearest is not None:
            nearest = self.nearest.plus(sums.nearest)
        total = self.sums * factor + sums.sums * other_factor
        error_bound = self.error_bound * factor + sums.error_bound * other_factor
        return Sums(shift, total, error_bound, nearest)

    def times(self, log_factor):
        """Return the sums for weights that are ``exp(log_factor)`` times as large."""
        nearest = self.nearest
        if nearest is not None:
            nearest = nearest._replace(sums=nearest.sums * np.exp(log_factor))
        return self._replace(shift=self.shift + log_factor, nearest=nearest)

    def put(self, rows, sums) -> None:
        """Replace the sums of the queries at `rows` in place; `nearest` is not changed."""
        for field, new in zip(self[:3], sums[:3], strict=True):
            field[..., rows] = new

    @property
    def is_nonzero(self):
        """True for each query whose sum of weights differs from 0 beyond rounding."""
        return np.abs(self.sums[0, 0]) > self.error_bound

    @property
    def is_accurate(self):
        """True for each query whose sum of weights is accurate; an exact sum may be 0."""
        return (self.error_bound == 0) | self.is_nonzero

    @property
    def log_total(self):
        """Logarithm of the absolute value of the sum of weights; -inf if no key has weight."""
        with np.errstate(divide="ignore"):
            log_total = self.shift + np.log(np.abs(self.sums[0, 0]))
        return np.where(self.shift == -np.inf, -np.inf, log_total)

    def average(self, empty: str = "nearest") -> Any:
        """Compute averages, and logarithms of the sums of weights.

        Parameters
        ----------
        empty : {"nearest", "nan"}, default="nearest"
            Policy for queries without weights, the one that these sums were made with.

        Returns
        -------
        averages : array of shape (n_queries, n_values)
        log_normalizers : array of shape (n_queries,)
            Logarithm of the absolute sum of the weights; -inf for a query without weights.

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
        """Replace sums of queries without weights by those over the nearest keys, or by NaN.

        Their shift becomes -inf. All powers of distances become 0, so that a polynomial is the
        average of the nearest keys.
        """
        (empty_rows,) = np.nonzero(~self.is_nonzero)
        if not len(empty_rows):
            return self
        shift, sums = self.shift.copy(), self.sums.copy()
        shift[empty_rows], sums[..., empty_rows] = -np.inf, np.nan
        if empty == "nearest":
            if self.nearest is None:
                raise ValueError(
                    "empty='nearest' needs sums that were made with it: pass the same value to "
                    "attention_sums and to average."
                )
            # Sums remain NaN for a query that leaves out all keys.
            filled_rows = empty_rows[self.nearest.sums[0, empty_rows] > 0]
            sums[..., filled_rows] = 0.0
            sums[0][:, filled_rows] = self.nearest.sums[:, filled_rows]
        return self._replace(shift=shift, sums=sums)


def require_sums(sums):
    """Return sums over all keys; raise ValueError if they are None, since no key has weight."""
    if sums is None:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    return sums
