"""Unfinished averages: what is left to divide, and how two of them become one."""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .._validation import check_choice

EMPTY_POLICIES = ("nearest", "nan", "mean", "raise")


class Fallback(NamedTuple):
    """The average that answers for a query whose weights sum to nothing.

    For the policy "nearest" it holds the values of the nearest key seen so far; for
    "mean" all keys count as equally near.
    """

    distance: Any  # (n,)    inf where no key was looked at
    numerator: Any  # (n, p)
    denominator: Any  # (n,)


class Part(NamedTuple):
    r"""An unfinished weighted average over some of the keys.

    With weights :math:`w_i` and values :math:`v_i` it holds, for each query,
    :math:`\sum_i w_i v_i` and :math:`\sum_i w_i`, both divided by
    :math:`e^{\text{shift}}` so that neither overflows nor underflows. Parts over disjoint
    keys are put together by :func:`merge` and divided once, by :func:`finish`.

    Attributes
    ----------
    shift : array of shape (n_queries,)
        Logarithm of the scale; -inf where no key has any weight.
    numerator : array of shape (n_queries, n_values)
        Scaled sum of weights times values.
    denominator : array of shape (n_queries,)
        Scaled sum of the weights; signed for signed kernels.
    mass : array of shape (n_queries,) or None
        Scaled sum of the absolute weights; a denominator far below it has cancelled. None
        where no weight is negative, so that it equals the denominator.
    fallback : Fallback or None
        What answers for queries without weights, if the policy needs it.
    """

    shift: Any
    numerator: Any
    denominator: Any
    mass: Any = None
    fallback: Fallback | None = None

    @property
    def usable(self):
        """Where the weights' sum is safely away from 0 and may be divided by."""
        xp = array_namespace(self.denominator)
        tolerance = float(xp.finfo(self.denominator.dtype).eps) ** 0.5
        return xp.abs(self.denominator) > tolerance * self.total_mass

    @property
    def total_mass(self):
        """The mass, whether or not it is stored apart."""
        return self.denominator if self.mass is None else self.mass


def merge(part_a, part_b):
    """Put together two parts of the same queries over disjoint keys.

    Associative and commutative, up to rounding: tiles, chunks of a file, partitions of a
    cluster and rows that arrive later all reduce with it.

    Parameters
    ----------
    part_a, part_b : Part
        Over disjoint sets of keys.

    Returns
    -------
    part : Part
        Over the union of the keys.

    Raises
    ------
    ValueError
        If the parts are not of the same queries, values and policy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.attention import attend, finish, merge, partial_attend
    >>> X, y = np.linspace(0, 1, 6)[:, None], np.arange(6.0)
    >>> first = partial_attend(X, X[:2], y[:2], "gaussian", bandwidth=0.1)
    >>> rest = partial_attend(X, X[2:], y[2:], "gaussian", bandwidth=0.1)
    >>> averages, _ = finish(merge(first, rest))
    >>> np.allclose(averages[:, 0], attend(X, X, y, "gaussian", bandwidth=0.1)[0])
    True
    """
    shapes = tuple(part_a.numerator.shape), tuple(part_b.numerator.shape)
    if shapes[0] != shapes[1] or (part_a.fallback is None) != (part_b.fallback is None):
        raise ValueError(
            f"part_a and part_b do not belong together (shapes {shapes[0]} and {shapes[1]}): "
            "make them for the same queries, as many values and the same empty policy."
        )
    xp = array_namespace(part_a.shift, part_b.shift)
    shift = xp.maximum(part_a.shift, part_b.shift)
    base = xp.where(shift > -xp.inf, shift, xp.zeros_like(shift))
    scale_a, scale_b = xp.exp(part_a.shift - base), xp.exp(part_b.shift - base)
    mass = None
    if part_a.mass is not None or part_b.mass is not None:
        mass = part_a.total_mass * scale_a + part_b.total_mass * scale_b
    return Part(
        shift=shift,
        numerator=part_a.numerator * scale_a[:, None] + part_b.numerator * scale_b[:, None],
        denominator=part_a.denominator * scale_a + part_b.denominator * scale_b,
        mass=mass,
        fallback=_merge_fallbacks(part_a.fallback, part_b.fallback),
    )


def _merge_fallbacks(a, b):
    if a is None or b is None:
        return None
    xp = array_namespace(a.distance, b.distance)
    # Equally near keys share the answer, so it does not depend on their order.
    share_a = xp.astype(a.distance <= b.distance, a.denominator.dtype)
    share_b = xp.astype(b.distance <= a.distance, a.denominator.dtype)
    return Fallback(
        distance=xp.minimum(a.distance, b.distance),
        numerator=a.numerator * share_a[:, None] + b.numerator * share_b[:, None],
        denominator=a.denominator * share_a + b.denominator * share_b,
    )


def finish(part, empty="nearest"):
    """Divide an unfinished average, and answer for queries without weights.

    Parameters
    ----------
    part : Part
        Over all keys.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        The policy `part` was made with.

    Returns
    -------
    averages : array of shape (n_queries, n_values)
        The weighted averages.
    log_normalizers : array of shape (n_queries,)
        Logarithm of the (absolute) sum of the weights; -inf where there is none.

    Raises
    ------
    ValueError
        If a query has no weights and `empty` is "raise", or the part was made for another
        policy.
    """
    check_choice("empty", empty, EMPTY_POLICIES)
    if empty in ("nearest", "mean") and part.fallback is None:
        raise ValueError(
            f"empty={empty!r} needs a part that was made with it: pass the same value to "
            "partial_attend and to finish."
        )
    xp = array_namespace(part.denominator)
    usable = part.usable
    divisor = xp.where(usable, part.denominator, xp.ones_like(part.denominator))
    averages = part.numerator / divisor[:, None]
    if not bool(xp.all(usable)):
        if empty == "raise":
            refuse_empty(usable)
        answer = xp.nan
        if empty in ("nearest", "mean"):
            fallback = part.fallback
            seen = fallback.denominator > 0
            divisor = xp.where(seen, fallback.denominator, xp.ones_like(divisor))
            answer = xp.where(
                seen[:, None],
                fallback.numerator / divisor[:, None],
                xp.full_like(averages, xp.nan),
            )
        averages = xp.where(usable[:, None], averages, answer)
    with np.errstate(divide="ignore"):
        log_normalizers = part.shift + xp.log(xp.abs(part.denominator))
    return averages, log_normalizers


def refuse_empty(usable):
    """Raise ValueError if a query has no weights, naming the first.

    Parameters
    ----------
    usable : array of bool, of shape (n_queries,)
        Whether each query's weights may be divided by their sum.
    """
    rows = [i for i, good in enumerate(usable.tolist()) if not good]
    if rows:
        raise ValueError(
            f"empty='raise': {len(rows)} of {len(usable)} queries have no key with a usable "
            f"weight (first: row {rows[0]}): use a larger bandwidth, a kernel of unbounded "
            "support such as 'gaussian', or empty='nearest'."
        )
